"""CKL's table 2: exact match of kept, updated and new knowledge, and FUAR."""

from __future__ import annotations

from collections.abc import Sequence

from temporalwiki.eval_harness.leaderboard.rows import Row
from temporalwiki.eval_harness.leaderboard.selection import Board, Line, ScoreName
from temporalwiki.eval_harness.leaderboard.tables.table import Cell, Table, column

_KINDS = {
    "invariantlama": "InvariantLAMA",
    "updatedlama": "UpdatedLAMA",
    "newlama": "NewLAMA",
    "newlama-easy": "NewLAMA-Easy",
}
_FUAR = ScoreName("fuar", "fuar", "lama")


def ckl_table_2(rows: Sequence[Row]) -> Table | None:
    """Return the table: one row for each line's newest checkpoint, one column for the newest config of each kind."""
    board = Board([row for row in rows if row.task == "lama" or _FUAR.of(row)])
    scores = {kind: ScoreName("lama", "exact_match", kind=kind) for kind in _KINDS}
    newest = {line: row for line in board.lines if (row := _newest(board, line, list(scores.values())))}
    if not newest:
        return None
    months: Sequence[Cell] = [row.month for row in newest.values()]
    columns: list[tuple[str, Sequence[Cell]]] = [
        ("method", [line.label for line in newest]),
        *([("month", months)] if any(months) else []),
        ("trainable parameters", [row.trainable for row in newest.values()]),
        ("parameters", [row.parameters for row in newest.values()]),
    ]
    for kind, score in scores.items():
        asked = board.months(score)
        last = max(asked, default=-1)
        cells = column([_cell(board, line, score, row, last) for line, row in newest.items()])
        if any(cells):
            columns.append((f"{_KINDS[kind]} {asked.get(last, '')}".strip(), cells))
    gained = column([_cell(board, line, _FUAR, row, None) for line, row in newest.items()])
    if any(gained):
        columns.append(("FUAR", gained))
    return Table(
        "CKL, table 2: exact match, and forgetting per gain (FUAR)",
        "Exact match of each method's newest model in percent; higher is better. FUAR is the points forgotten "
        'for each point updated or acquired; lower is better, and "no gain" means no such points. In brackets: '
        "95 % intervals. Bold: the best value of a column, and models whose rank may be 1 with 95 % confidence.",
        tuple(name for name, _ in columns),
        tuple(zip(*(cells for _, cells in columns), strict=True)),
    )


def _newest(board: Board, line: Line, scores: Sequence[ScoreName]) -> Row | None:
    rows = [row for score in scores for row in board.newest(line, score)]
    return max(rows, key=lambda row: board.place(row.month), default=None)


def _cell(board: Board, line: Line, score: ScoreName, like: Row, tested: int | None) -> Row | None:
    """Return a score of the checkpoint of row ``like`` on the month ``tested``, or on any month if it is None."""
    rows = [row for row in board.newest(line, score) if row.month == like.month]
    return next((row for row in rows if tested is None or board.place(row.tested) == tested), None)
