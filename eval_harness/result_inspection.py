"""Describe a result file or a folder of results as text, for ``temporalwiki inspect``."""

from collections.abc import Sequence
from pathlib import Path

from temporalwiki.base import terminal
from temporalwiki.base.errors import InputError
from temporalwiki.base.terminal import in_line
from temporalwiki.eval_harness.measures import higher_is_better
from temporalwiki.eval_harness.misalignment import matrix, month_of, transfer
from temporalwiki.eval_harness.misalignment import table as matrix_table
from temporalwiki.eval_harness.results import Result, read_result, result_files, table

_MOST_TABLES = 20  # a folder of more results is shown with one score of each
# scores that are shown month by month; other tasks show their first score
_SHOWN = ("average/perplexity", "all/learned", "deleted/let_go", "changed/acc")


def describe(path: Path) -> str | None:
    """Describe a result file, or all results in a model's folder or in a folder of such folders.

    If a task was scored on several months, a matrix of models and months follows. If there are many results, only
    one score of each is shown. Return None without results.
    """
    results = [read_result(file) for file in result_files(path)]
    if not results:
        return None
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        kind = result.manifest.data.config.partition("-")[0]
        groups.setdefault((result.manifest.scored, kind), []).append(result)
    many = len(results) > _MOST_TABLES
    shown = [_months(task, kind, group) or many * _list(task, group) for (task, kind), group in sorted(groups.items())]
    first = _contents(results) if many else table(results)
    return "\n\n".join([first, *(text for text in shown if text)])


def _contents(results: Sequence[Result]) -> str:
    """Return a line about a folder of many results, and how to see all scores of one model."""
    folders = list(dict.fromkeys(result.path.parent for result in results))
    return (
        f"{len(results):,} results of {len(folders):,} models. For all scores of a model, name its folder, such as "
        f"{folders[0]}"
    )


def _list(task: str, results: Sequence[Result]) -> str:
    """Return one score of each result as text."""
    score = _score(results)
    lines = [["model", "method", "config", score]]
    for result in results:
        model, found = result.manifest.model, result.manifest.scores.get(score)
        value = f"{found.value:,.2f}" if found else ""
        lines.append([model.marked(model.name), model.method or "", result.manifest.data.config, value])
    return "\n".join([task, *terminal.table(lines, left=3)])


def _score(results: Sequence[Result]) -> str:
    scores = [name for result in results for name in result.manifest.scores]
    return next((name for name in _SHOWN if name in scores), min(scores, default=""))


def _months(task: str, kind: str, results: Sequence[Result]) -> str | None:
    """Return a matrix of models and months with each method's transfer, or an error; None for a single month."""
    if len({month_of(result.manifest.data.config) for result in results}) < 2:
        return None
    score = _score(results)
    higher = higher_is_better(results[0].manifest.task.name, score.rpartition("/")[2]) is not False
    title = in_line(f"{task}, {score} on {kind}-* by month")
    try:
        months = matrix(results, task, score)
    except InputError as error:
        return f"{title}\n{error}"
    lines = [title, matrix_table(months)]
    untrained = [row.model for row in months.rows if row.month is None]
    before = untrained[0] if len(untrained) == 1 else None
    for method in months.methods:
        try:
            diagonal, change = transfer(months, method, before, higher_is_better=higher)
        except InputError as error:
            lines.append(str(error))
            continue
        named = {"diagonal": diagonal, "backward": change.backward, "forward": change.forward}
        named["forgetting"] = change.forgetting
        shown = ", ".join(f"{name} {value:,.2f}" for name, value in named.items() if value is not None)
        lines.append(f"{in_line(method)}: {shown}")
    return "\n".join(lines)
