"""What each method learned and forgot, month by month: the table that the page opens with."""

from __future__ import annotations

from collections.abc import Sequence

from temporalwiki.eval_harness.leaderboard.rows import Row
from temporalwiki.eval_harness.leaderboard.selection import Board, Line, ScoreName
from temporalwiki.eval_harness.leaderboard.tables.table import Cell, Table, column

MEASURES = {measure: ScoreName("learned_and_forgotten", measure, "all") for measure in ("learned", "forgotten")}
ONE_RUN = "One training run; differences between runs are not included."


def learned_and_forgotten(rows: Sequence[Row]) -> Table | None:
    """Return the table: one line for each method, the most learned first, and the newest month first."""
    board = Board([row for row in rows if any(score.of(row) for score in MEASURES.values())])
    own = {line: {name: board.own_month(line, score) for name, score in MEASURES.items()} for line in board.lines}
    tested = {place: month for score in MEASURES.values() for place, month in board.months(score).items()}
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
        for name in MEASURES:
            columns.append((f"{month} {name}", column([own[line][name].get(at) for line in lines])))
    cells = [row for of in own.values() for by_month in of.values() for row in by_month.values()]
    fewest, most = min(row.runs for row in cells), max(row.runs for row in cells)
    how = ONE_RUN
    if most > 1:
        runs = str(most) if fewest == most else f"{fewest} to {most}"
        spread = max(row.spread or 0 for row in cells)
        how = f"Means of {runs} training runs; their standard deviation, at most {spread:.2f}, is in the intervals."
    return Table(
        "Learned and forgotten",
        "How much likelier the objects of facts became since the start model, in nats per token. Learned: the gain of "
        "changed facts minus that of unchanged facts of the same relations; higher is better. Forgotten: the loss of "
        "unchanged facts; lower is better. The columns of a month show the models that were trained up to that "
        f"month. In brackets: 95 % intervals over facts. {how} Bold: the best value of a column, and models whose "
        "rank may be 1. A model that forgets more than it learns has no rank.",
        tuple(name for name, _ in columns),
        tuple(zip(*(cells for _, cells in columns), strict=True)),
    )
