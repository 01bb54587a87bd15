"""What each method learned and forgot, month by month, as a table to download."""

from __future__ import annotations

from collections.abc import Sequence

from temporalwiki.eval_harness.leaderboard.headline import FORGOTTEN, LEARNED, training_runs
from temporalwiki.eval_harness.leaderboard.rows import Row
from temporalwiki.eval_harness.leaderboard.selection import Board, Line
from temporalwiki.eval_harness.leaderboard.tables.table import Cell, Table, column

_SCORES = {found.title.lower(): found.score for found in (LEARNED, FORGOTTEN)}


def learned_and_forgotten(rows: Sequence[Row]) -> Table | None:
    """Return the table, or None if it would have no scores.

    It has one line for each method and two columns for each month, the newest month first. The method that learned
    most in the newest month comes first.
    """
    board = Board([row for row in rows if any(score.of(row) for score in _SCORES.values())])
    own = {line: {name: board.own_month(line, score) for name, score in _SCORES.items()} for line in board.lines}
    tested = {place: month for score in _SCORES.values() for place, month in board.months(score).items()}
    shown = {place for of in own.values() for by_month in of.values() for place in by_month}
    months = {place: tested[place] for place in sorted(shown, reverse=True)}
    if not months:
        return None
    newest = max(months)

    def place(line: Line) -> tuple[bool, float]:
        row = own[line]["learned"].get(newest)
        return (False, -row.value) if row and row.competes else (True, 0.0)

    lines = sorted(board.lines, key=place)
    columns: list[tuple[str, Sequence[Cell]]] = [("method", [line.label for line in lines])]
    for at, month in months.items():
        for name in _SCORES:
            columns.append((f"{month} {name}", column([own[line][name].get(at) for line in lines])))
    cells = [row for of in own.values() for by_month in of.values() for row in by_month.values()]
    return Table(
        "Learned and forgotten",
        "How much likelier the objects of facts became since the start model, in nats per token. Learned: the gain of "
        "changed facts minus that of unchanged facts of the same relations; higher is better. Forgotten: the loss of "
        "unchanged facts; lower is better. The columns of a month show the models that were trained up to that "
        f"month. In brackets: 95 % intervals over facts. {training_runs(cells)} Bold: the best value of a column, "
        "and models whose rank may be 1. A model that did not learn more than it forgot has no rank.",
        tuple(name for name, _ in columns),
        tuple(zip(*(cells for _, cells in columns), strict=True)),
    )
