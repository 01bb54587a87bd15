"""``temporalwiki cutoff``: find the month up to which a model knows what changed.

Example:

    temporalwiki cutoff runs/lora-diffset-1112 --data temporalwiki
    temporalwiki cutoff openai-community/gpt2-large --data ORG/temporalwiki --topics relation --from 2021-01
    temporalwiki cutoff runs/lora-diffset-1112 --data temporalwiki --output results/lora   # for `leaderboard results`
    temporalwiki cutoff openai/gpt-5 --data temporalwiki                   # asks questions: it gives no likelihoods
    temporalwiki cutoff Qwen/Qwen3-8B --data temporalwiki --panel openai-community/gpt2-xl=2017-12
    temporalwiki cutoff --answers graded.csv --output cutoffs    # of any models, asked and graded by anybody

A month counts as known if the model prefers its new facts and sentences to those that they replaced. docs/cutoff.md
explains the method and its errors. Scores are cached: the same command continues where it was stopped.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from temporalwiki.api.arguments import Arg, Folder
from temporalwiki.api.table import Table
from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.methods import needs

if TYPE_CHECKING:
    from peft import PeftModel
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

TOPICS = ("none", "relation", "class")


class CutoffMonth(NamedTuple):
    """The month of a cutoff, YYYY-MM, and the ends of its 95 % interval. None stands for a month outside the data."""

    value: str | None
    low: str | None
    high: str | None
    verdict: str  # found, before the data, after the data, cannot tell


@dataclass(frozen=True, repr=False)
class Known(Table):
    """The cutoff of a model: a row for each month of the data, with the share of the month's changes that it knows."""

    scores: Mapping[str, CutoffMonth]  # "all", then each form and topic; of several models, by MODEL/NAME

    @property
    def picture(self) -> Path:
        """The chart of the months."""
        return self.path / "cutoff.svg"


def cutoff(
    model: Annotated[str | os.PathLike[str] | PreTrainedModel | PeftModel, Arg("MODEL", positional=True, nargs="?")]
    | None = None,
    data: Annotated[str | os.PathLike[str], Arg("DATASET")] | None = None,
    *,
    answers: Annotated[str | os.PathLike[str], Arg("FILE.csv")] | None = None,
    topics: Annotated[str, Arg("NAME", names=TOPICS)] = "none",
    from_: Annotated[str, Arg("MONTH")] | None = None,
    to: Annotated[str, Arg("MONTH")] | None = None,
    panel: Annotated[Mapping[str, str] | Sequence[str], Arg("MODEL=MONTH", nargs="+")] = (),
    output: Folder = "cutoff",
    tokenizer: str | os.PathLike[str] | PreTrainedTokenizerBase | None = None,
    name: str | None = None,
) -> Known:
    """Find the month up to which a model knows what changed. The arguments are the options of ``temporalwiki cutoff``.

    Args:
        model: a folder, a Hub id, a .gguf file, package:NAME, or a model of a provider such as openai/NAME, which
            gives no likelihoods: it is asked questions about the changed facts. In Python, also a model in memory.
        data: dataset folder, Hub id or id@revision. All its months are read.
        answers: instead of a model and data: graded answers to dated questions, a CSV file with the columns model,
            form, date, topic and grade (right, wrong, abstained or unreadable), and perhaps event, advertised and kind
            (change, unchanged or never). Each model gets a cutoff for all forms together, and for each form and topic.
        topics: none, relation or class: also find a cutoff for each relation or each class of subjects.
        from_: ignore changes before this month, YYYY-MM.
        to: ignore changes after this month, YYYY-MM.
        panel: reference models, each with the last month that it knows: they measure how difficult a change is, by
            their preference before they can know it. In Python, also a mapping from models to months.
        output: folder of cutoff.json and cutoff.svg; for answers of several models, of a folder for each.
        tokenizer: tokenizer of a model in memory. By default it is loaded from the model's ``name_or_path``.
        name: name of a model in memory; by default its ``name_or_path``.

    Raises UsageError for a wrong argument, and InputError for a model or data that cannot be used.
    """
    first, last = _month("--from", from_), _month("--to", to)
    if first is not None and last is not None and first > last:
        raise UsageError(f"--from {from_} is after --to {to}")
    if topics not in TOPICS:
        raise UsageError(f"no topics {topics!r}; there are {', '.join(TOPICS)}")
    asks = model is not None and data is not None and answers is None
    reads = model is None and data is None and answers is not None
    if not asks and not (reads and not panel and topics == "none"):
        raise UsageError("name a MODEL and its --data; or only --answers, which holds models and topics")
    if answers is None and not isinstance(data, str | os.PathLike):
        raise UsageError(
            f"a cutoff reads all months of a dataset: name its folder or Hub id, not {type(data).__name__}"
        )
    if not isinstance(panel, Mapping):
        if wrong := [one for one in panel if not one.rpartition("=")[0]]:
            raise UsageError(f"--panel {wrong[0]}: write MODEL=YYYY-MM, the last month that it knows")
        panel = {one: month for one, _, month in (text.rpartition("=") for text in panel)}
    folder = Path(output)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file; name a folder with --output")
    if answers is not None:
        return _of_answers(Path(answers), folder, first, last)
    with needs("eval"):
        from temporalwiki.api.evaluate import open_model
        from temporalwiki.eval_harness.cutoff.report import report, write_report
        from temporalwiki.eval_harness.models.local import modes_kept
        from temporalwiki.eval_harness.models.model import LIKELIHOODS, REPLIES, Model

    def opened(*which: Any) -> Model:
        found = open_model(which[0], "auto", *which[1:])
        if not found.can & {LIKELIHOODS, REPLIES}:
            raise UsageError(f"{found.name}: holds results, and a cutoff asks a model: name the model")
        found.check()
        return found

    asked = opened(model, tokenizer, name)
    references = [(opened(one), _month(f"--panel {one}=", month)) for one, month in panel.items()]
    with modes_kept(*asked.borrowed):
        found = report(asked, os.fspath(data), topics, first, last, references)  # type: ignore[arg-type]  # checked above
    paths = write_report(found, folder) if asked.state.is_main_process else []
    made = found.as_json()
    return Known(folder, made["curve"], "\n".join([*found.lines(), *map(str, paths)]), _scores(made))


def _of_answers(file: Path, folder: Path, first: int | None, last: int | None) -> Known:
    """Find the cutoff of each model whose graded answers a file holds."""
    with needs("eval"):
        from temporalwiki.eval_harness.cutoff.answers import judged_answers, read_answers
        from temporalwiki.eval_harness.cutoff.report import write_report

    answers = read_answers(file)
    names = {model: re.sub(r"[^\w.-]+", "--", model)[:100].strip(".") for model in answers}
    if len({name.casefold() for name in names.values()} - {""}) < len(names):
        raise InputError(f"{file}: the names of its models do not differ in letters and digits; rename one")
    reports = [judged_answers(model, of, str(file), first, last) for model, of in sorted(answers.items())]
    lines, rows, scores = list[str](), list[dict[str, Any]](), dict[str, CutoffMonth]()
    for report in reports:
        made, several = report.as_json(), len(reports) > 1
        paths = write_report(report, folder / names[report.model] if several else folder)
        lines += [*report.lines(), *map(str, paths)]
        rows += [{"model": report.model, **row} for row in made["curve"]] if several else made["curve"]
        scores |= {f"{report.model}/{name}" if several else name: score for name, score in _scores(made).items()}
    return Known(folder, rows, "\n".join(lines), scores)


def _scores(made: Mapping[str, Any]) -> dict[str, CutoffMonth]:
    parts = {"all": made["overall"], **(made["forms"] if len(made["forms"]) > 1 else {}), **made["topics"]}
    return {name: _as_month(of) for name, of in parts.items()}


def _as_month(found: Mapping[str, Any]) -> CutoffMonth:
    return CutoffMonth(found["cutoff"], found["low"], found["high"], found["verdict"])


def _month(option: str, text: str | None) -> int | None:
    """Return a month as a number, counted from the year 0, or None."""
    if text is None:
        return None
    found = re.fullmatch(r"([0-9]{4})-(0[1-9]|1[0-2])", text)
    if found is None:
        raise UsageError(f"{option} {text!r} is not a month: write YYYY-MM, for example 2021-03")
    return int(found[1]) * 12 + int(found[2]) - 1
