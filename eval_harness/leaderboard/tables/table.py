"""A table as data, as Markdown and as CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from temporalwiki.base.markdown import escaped, one_line, table_row
from temporalwiki.eval_harness.leaderboard.rows import Row

_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")  # the last four are their wide forms


@dataclass(frozen=True)
class Score:
    """A value with its 95 % interval; ``best`` values are bold."""

    value: float
    low: float | None
    high: float | None
    best: bool = False


Cell = str | int | Score | None  # None: not measured or not known


@dataclass(frozen=True)
class Table:
    """A table; each line has one cell for each column."""

    title: str
    caption: str
    columns: tuple[str, ...]
    lines: tuple[tuple[Cell, ...], ...]


Maker = Callable[[Sequence[Row]], Table | None]


def column(rows: Sequence[Row | None]) -> list[Score | None]:
    """Return the cells of one column; the best value, and values whose rank may be 1, are marked as best.

    Ranks are among all models that were asked the same questions, which may be more than the table shows. A model that
    was trained on test data is never the best.
    """
    fair = [row for row in rows if row and row.competes and not row.trained_on_test and math.isfinite(row.value)]
    best = max(map(_good, fair), default=-math.inf)
    marked = [row for row in fair if row.rank_best == 1 or _good(row) == best]
    return [Score(row.value, row.low, row.high, row in marked) if row else None for row in rows]


def to_markdown(table: Table) -> str:
    """Return a table as GitHub Markdown, with title and caption."""
    scores = _score_columns(table)
    rule = [
        "---:" if i in scores or any(isinstance(line[i], int) for line in table.lines) else "---"
        for i in range(len(table.columns))
    ]
    lines = [[escaped(name) for name in table.columns], rule]
    lines += [[_shown(cell) for cell in line] for line in table.lines]
    body = "\n".join(table_row(*line) for line in lines)
    return f"# {escaped(table.title)}\n\n{body}\n\n{escaped(table.caption)}\n"


def to_csv(table: Table) -> str:
    """Return a table as CSV with all digits; two columns with the ends of the interval follow each column of scores.

    A text that a spreadsheet would read as a formula gets an apostrophe in front.
    """
    scores = _score_columns(table)
    header: list[str] = []
    for i, name in enumerate(table.columns):
        header += [name, f"{name}, low", f"{name}, high"] if i in scores else [name]
    lines: list[list[str | float | None]] = [[_harmless(name) for name in header]]
    for line in table.lines:
        values: list[str | float | None] = []
        for i, cell in enumerate(line):
            if isinstance(cell, Score):
                values += [cell.value, cell.low, cell.high]
            elif i in scores:
                values += [None, None, None]
            else:
                values.append(_harmless(cell) if isinstance(cell, str) else cell)
        lines.append(values)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue()


def number(value: float) -> str:
    """Return a score as text for people."""
    if not math.isfinite(value):
        return "no gain"
    if abs(value) < 1000:
        return f"{round(value, 2) + 0.0:.2f}"  # 0.0: no minus before a zero
    return f"{value:,.0f}" if abs(value) < 1e6 else f"{value:.2e}"


def _good(row: Row) -> float:
    return row.value if row.higher_is_better else -row.value


def _score_columns(table: Table) -> set[int]:
    return {i for line in table.lines for i, cell in enumerate(line) if isinstance(cell, Score)}


def _shown(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, str):
        return escaped(cell)
    if isinstance(cell, int):
        return f"{cell:,}"
    value = f"**{number(cell.value)}**" if cell.best else number(cell.value)
    return value if cell.low is None or cell.high is None else f"{value} [{number(cell.low)}, {number(cell.high)}]"


def _harmless(text: str) -> str:
    text = one_line(text)
    return f"'{text}" if text.startswith(_FORMULA) else text
