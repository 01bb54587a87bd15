"""Temporal misalignment: a score of models, in the order of the months that they were trained on, on each month."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from temporalwiki.base.errors import InputError
from temporalwiki.base.options import did_you_mean
from temporalwiki.builders.configs import SCHEMAS
from temporalwiki.eval_harness import statistics
from temporalwiki.eval_harness.results import Result
from temporalwiki.eval_harness.statistics import Estimate, Transfer

_KINDS = (*SCHEMAS, *(f"{kind}lama(?:-easy)?" for kind in ("invariant", "updated", "new")), "newquestions(?:-easy)?")
# a config's name, or one in a model's name: diffset-1112, diffset-20211101-20211201, wikipedia-12
_CONFIG = re.compile(rf"(?:{'|'.join(_KINDS)})-((?:\d{{8}}-)?\d{{8}}|(?:0[1-9]|1[0-2]){{1,2}})(?!\d)")


class Row(NamedTuple):
    """A model."""

    model: str  # as its results name it
    revision: str
    method: str | None  # None: not trained by temporalwiki, as far as is known
    month: str | None  # the last that it was trained on, named as its column if there is one; None: none is known


@dataclass(frozen=True)
class Matrix:
    """A task's score of models on months, None where a model was not scored.

    Rows are in the order of their months, models without one first. Columns are months as the configs name them, such
    as "1112". ``values`` are [rows, columns].
    """

    task: str
    score: str
    rows: tuple[Row, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[Estimate | None, ...], ...]

    @property
    def methods(self) -> list[str]:
        """Methods with a model of one of the columns' months, in the order of the rows."""
        return list(dict.fromkeys(row.method for row in self.rows if row.method and row.month in self.columns))


def matrix(results: Sequence[Result], task: str, score: str) -> Matrix:
    """Arrange a score (such as "average/perplexity") of a task's results.

    A model's month is the last in its result's "trained_on"; where no method is known either, the one in its name.
    Raises InputError where there is no such task or score, a config is of no month, a model has two results for a
    month, and where two models were not asked the same.
    """
    found = [result for result in results if result.data["task"]["name"] == task]
    tasks = sorted({result.data["task"]["name"] for result in results})
    if not found:
        raise InputError(f"no results of {task}{did_you_mean(task, tasks)}; there are {', '.join(tasks) or 'none'}")
    scores = sorted({name for result in found for name in result.data["scores"]})
    if score not in scores:
        raise InputError(f"{task} has no score {score!r}{did_you_mean(score, scores)}; there are {', '.join(scores)}")
    tested = [_tested(result) for result in found]
    trained = [month_of_model(result.data["model"]) for result in found]
    place = places({*tested, *(month for month in trained if month)})
    columns = {place[month]: month for month in tested}

    cells: dict[Row, dict[int, Result]] = {}
    asked: dict[int, Result] = {}
    for result, test, month in zip(found, tested, trained, strict=True):
        model, column = result.data["model"], place[test]
        row = Row(model["name"], model["revision"], model.get("method"), month and columns.get(place[month], month))
        other = cells.setdefault(row, {}).setdefault(column, result)
        if other is not result:
            raise InputError(f"{other.path}, {result.path}: both are of {row.model} and {test}; take one away")
        other = asked.setdefault(column, result)
        if _questions(other) != _questions(result):
            raise InputError(
                f"{other.path}, {result.path}: not the same questions about {test} (other rows, or another version or "
                f"other options of {task}); take one away, or evaluate its model again"
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
    """Return a method's mean on the diagonal, each model on its own month, and what ``statistics.transfer`` measures.

    It reads the months that the method was trained on and that are columns. ``baseline`` is the model before any of
    them, by name. Raises InputError where there is no such month, or two models of one.
    """
    rows: dict[str, Sequence[Estimate | None]] = {}
    for row, values in zip(matrix.rows, matrix.values, strict=True):
        if row.method == method and row.month in matrix.columns:
            if row.month in rows:
                raise InputError(f"{method}: two models of {row.month}, {row.model} is one; take its results away")
            rows[row.month] = values
    if not rows:
        raise InputError(f"{method}: no model of the months {', '.join(matrix.columns)}")
    months = [i for i, month in enumerate(matrix.columns) if month in rows]

    def plain(values: Sequence[Estimate | None]) -> list[float | None]:
        return [None if (cell := values[i]) is None else cell.value for i in months]

    square = [plain(rows[matrix.columns[i]]) for i in months]
    before = None if baseline is None else plain(_values_of(matrix, baseline))
    own = [value for i, row in enumerate(square) if (value := row[i]) is not None]
    found = statistics.transfer(square, before, higher_is_better=higher_is_better)
    return fmean(own) if own else None, found


def table(matrix: Matrix) -> str:
    """Return the matrix as text, without its intervals: a row a model, a column a month."""
    lines = [["model", "method", "month", *matrix.columns]]
    for row, values in zip(matrix.rows, matrix.values, strict=True):
        cells = [f"{cell.value:,.2f}" if cell else "" for cell in values]
        lines.append([row.model, row.method or "", row.month or "", *cells])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if i > 2 else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def month_of(config: str) -> str | None:
    """Return the month in a name, such as "1112" in "probes-1112"; None where there is none."""
    found = _CONFIG.search(config)
    return found[1] if found else None


def month_of_model(model: Mapping[str, Any]) -> str | None:
    """Return the last month that a result's model was trained on, None for Initial.

    Its manifests say it, or, of a model without a method, its name. Whatever Initial was trained on, it is the model
    before any of the months.
    """
    if model.get("method") == "initial":
        return None
    configs = model.get("trained_on", ()) if model.get("method") else [Path(model["name"]).name]
    return next((month for config in reversed(configs) if (month := month_of(config))), None)


def places(months: Collection[str]) -> dict[str, int]:
    """Return where months stand in time, one place for all names of a month.

    Long names have dates. Names without a year are taken to be within twelve months, after the longest gap between
    any two (12 is before 01); beside long names they are of the year that puts them among those, or nearest to them.
    """
    ends = {month: month[-8:] for month in months if len(month) >= 8}
    short = {month: int(month[-2:]) for month in months if len(month) < 8}
    if ends:
        dates = {int(date[:4]) * 12 + int(date[4:6]): date for date in sorted(ends.values())}  # by months since 0
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


def _values_of(matrix: Matrix, model: str) -> tuple[Estimate | None, ...]:
    found = [values for row, values in zip(matrix.rows, matrix.values, strict=True) if row.model == model]
    if len(found) != 1:
        models = dict.fromkeys(row.model for row in matrix.rows)
        raise InputError(
            f"{len(found)} models named {model!r}{did_you_mean(model, models)}; there are {', '.join(models)}"
        )
    return found[0]


def _tested(result: Result) -> str:
    config = result.data["data"]["config"]
    if (month := month_of(config)) is None:
        raise InputError(f"{result.path}: {config} is of no month")
    return month


def _questions(result: Result) -> tuple[Any, Any]:
    return result.data["task"], result.data["data"]["hash"]


def _estimate(result: Result | None, score: str) -> Estimate | None:
    return Estimate(**result.data["scores"][score]) if result and score in result.data["scores"] else None
