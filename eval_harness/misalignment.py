"""Temporal misalignment: the scores of models that were trained up to different months, on the tests of each month."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import msgspec

from temporalwiki.base import terminal
from temporalwiki.base.errors import InputError
from temporalwiki.base.options import did_you_mean
from temporalwiki.builders.configs import SCHEMAS
from temporalwiki.eval_harness import statistics
from temporalwiki.eval_harness.result_manifest import ResultModel
from temporalwiki.eval_harness.results import Result
from temporalwiki.eval_harness.statistics import Estimate, Transfer

_KINDS = (*SCHEMAS, *(f"{kind}lama(?:-easy)?" for kind in ("invariant", "updated", "new")), "newquestions(?:-easy)?")
# the name of a config, alone or within a model's name: diffset-1112, diffset-20211101-20211201, wikipedia-12
_CONFIG = re.compile(rf"(?:{'|'.join(_KINDS)})-((?:\d{{8}}-)?\d{{8}}|(?:0[1-9]|1[0-2]){{1,2}})(?!\d)")


class MatrixRow(NamedTuple):
    """A model in a matrix."""

    model: str  # as in its results
    revision: str
    method: str | None  # None: not trained by temporalwiki, or not known
    month: str | None  # the last month it was trained on, with the name of the column if there is one


@dataclass(frozen=True)
class Matrix:
    """One score of a task for each model (row) and tested month (column); None if it was not measured.

    Rows are sorted by month, with models without a month first. Columns are months, named as in configs ("1112").
    ``values`` are [rows, columns].
    """

    task: str
    score: str
    rows: tuple[MatrixRow, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[Estimate | None, ...], ...]

    @property
    def methods(self) -> list[str]:
        """The methods with at least one model trained up to a month that has a column, in the order of the rows."""
        return list(dict.fromkeys(row.method for row in self.rows if row.method and row.month in self.columns))


def matrix(results: Sequence[Result], task: str, score: str) -> Matrix:
    """Return one score, such as "average/perplexity", of each model (rows) on the test of each month (columns).

    A model's month is the last one in the "trained_on" of its result. If its method is not known, its name gives the
    month. Raises InputError if the task or score is missing, a config has no month, a model has two results for a
    month, or two models were not asked the same questions.
    """
    found = [result for result in results if result.manifest.scored == task]
    tasks = sorted({result.manifest.scored for result in results})
    if not found:
        raise InputError(f"no results of {task}{did_you_mean(task, tasks)}; there are {', '.join(tasks) or 'none'}")
    scores = sorted({name for result in found for name in result.manifest.scores})
    if score not in scores:
        raise InputError(f"{task} has no score {score!r}{did_you_mean(score, scores)}; there are {', '.join(scores)}")
    tested = [_tested(result) for result in found]
    trained = [month_of_model(result.manifest.model) for result in found]
    place = places({*tested, *(month for month in trained if month)})
    columns = {place[month]: month for month in tested}

    cells: dict[MatrixRow, dict[int, Result]] = {}
    asked: dict[int, Result] = {}
    for result, test, month in zip(found, tested, trained, strict=True):
        model, column = result.manifest.model, place[test]
        last = month and columns.get(place[month], month)
        row = MatrixRow(model.marked(model.name), model.revision, model.method, last)
        other = cells.setdefault(row, {}).setdefault(column, result)
        if other is not result:
            raise InputError(f"{other.path}, {result.path}: both are of {row.model} and {test}; remove one")
        other = asked.setdefault(column, result)
        if _questions(other) != _questions(result):
            raise InputError(
                f"{other.path}, {result.path}: not the same questions about {test} (other rows, or another version or "
                f"other options of {task}); remove one, or evaluate its model again"
            )
    rows = sorted(
        cells, key=lambda row: (place[row.month] if row.month else -1, row.method or "", row.model, row.revision)
    )
    values = [[cells[row].get(column) for column in sorted(columns)] for row in rows]
    return Matrix(
        task,
        score,
        tuple(rows),
        tuple(columns[column] for column in sorted(columns)),
        tuple(tuple(_estimate(result, score) for result in cells) for cells in values),
    )


def transfer(
    matrix: Matrix, method: str, baseline: str | None = None, *, higher_is_better: bool
) -> tuple[float | None, Transfer]:
    """Return the mean score of a method's models on their own months, and the method's ``statistics.transfer``.

    Only months that are rows of the method and columns of the matrix count. ``baseline`` is the name of the untrained
    model. Raises InputError without such a month, if a month has two models, or if ``baseline`` does not name exactly
    one.
    """
    rows: dict[str, Sequence[Estimate | None]] = {}
    for row, values in zip(matrix.rows, matrix.values, strict=True):
        if row.method == method and row.month in matrix.columns:
            if row.month in rows:
                raise InputError(f"{method}: two models of {row.month}, one of them {row.model}; remove its results")
            rows[row.month] = values
    if not rows:
        raise InputError(f"{method}: no model of the months {', '.join(matrix.columns)}")
    months = [i for i, month in enumerate(matrix.columns) if month in rows]

    def plain(values: Sequence[Estimate | None]) -> list[float | None]:
        return [None if (cell := values[i]) is None else cell.value for i in months]

    square = [plain(rows[matrix.columns[i]]) for i in months]
    before = None
    if baseline is not None:
        found = [values for row, values in zip(matrix.rows, matrix.values, strict=True) if row.model == baseline]
        if len(found) != 1:
            known = dict.fromkeys(row.model for row in matrix.rows)
            hint = did_you_mean(baseline, known)
            raise InputError(f"{len(found)} models named {baseline!r}{hint}; there are {', '.join(known)}")
        before = plain(found[0])
    own = [value for i, row in enumerate(square) if (value := row[i]) is not None]
    return fmean(own) if own else None, statistics.transfer(square, before, higher_is_better=higher_is_better)


def table(matrix: Matrix) -> str:
    """Return the matrix as text, without intervals: one row per model, one column per month."""
    lines = [["model", "method", "month", *matrix.columns]]
    for row, values in zip(matrix.rows, matrix.values, strict=True):
        cells = [f"{cell.value:,.2f}" if cell else "" for cell in values]
        lines.append([row.model, row.method or "", row.month or "", *cells])
    return "\n".join(terminal.table(lines, left=3))


def month_of(config: str) -> str | None:
    """Return the month in a name, such as "1112" in "probes-1112", or None."""
    found = _CONFIG.search(config)
    return found[1] if found else None


def month_of_model(model: ResultModel) -> str | None:
    """Return the last month that the model of a result was trained on, or None.

    It is the month of the last config in "trained_on" that names one, or the month in the model's name if its method
    is not known. It is None for Initial, the model before all months.
    """
    if model.method == "initial":
        return None
    configs = model.trained_on if model.method else [Path(model.name).name]
    return next((month for config in reversed(configs) if (month := month_of(config))), None)


def places(months: Collection[str]) -> dict[str, int]:
    """Return the position in time of each month; two names of one month have the same position.

    Long names contain dates. Short names have no year: if there are only short names, they lie within twelve months
    and begin after the longest gap (so 12 comes before 01). If there are also long names, a short name gets the year
    that puts it between them, or nearest to them.
    """
    ends = {month: month[-8:] for month in months if len(month) >= 8}
    short = {month: int(month[-2:]) for month in months if len(month) < 8}
    if ends:
        dates = {int(date[:4]) * 12 + int(date[4:6]): date for date in sorted(ends.values())}  # by month number
        first, last = min(dates), max(dates)

        def distance(count: int) -> tuple[int, bool, int]:
            return max(first - count, count - last, 0), count not in dates, count

        for name, month in short.items():
            count = min((n for n in range(first - 12, last + 13) if (n - month) % 12 == 0), key=distance)
            ends[name] = dates.get(count, f"{(count - 1) // 12:04}{month:02}")
        order = sorted(set(ends.values()))
    else:
        ends = {name: f"{month:02}" for name, month in short.items()}
        order = sorted(set(ends.values()))
        gaps = [(int(end) - int(order[i - 1])) % 12 for i, end in enumerate(order)]
        begin = gaps.index(max(gaps)) if gaps else 0
        order = order[begin:] + order[:begin]
    return {month: order.index(end) for month, end in ends.items()}


def _tested(result: Result) -> str:
    config = result.manifest.data.config
    if (month := month_of(config)) is None:
        raise InputError(f"{result.path}: the config {config} has no month in its name")
    return month


def _questions(result: Result) -> tuple[Any, Any]:
    return result.manifest.task, result.manifest.data.hash


def _estimate(result: Result | None, score: str) -> Estimate | None:
    found = result.manifest.scores.get(score) if result else None
    return None if found is None else Estimate(**msgspec.structs.asdict(found))
