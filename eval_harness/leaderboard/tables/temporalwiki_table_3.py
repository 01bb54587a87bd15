"""TemporalWiki's table 3: scores of unchanged and changed facts, for the models trained up to each month."""

from __future__ import annotations

from collections.abc import Sequence

from temporalwiki.eval_harness.leaderboard.rows import Row
from temporalwiki.eval_harness.leaderboard.selection import Board, ScoreName
from temporalwiki.eval_harness.leaderboard.tables.table import Cell, Maker, Table, column

_TESTS = ("unchanged", "changed", "average")


def maker(title: str, how: str, stage: str, measure: str) -> Maker:
    """Return a function that makes the table of a measure; ``stage`` is a prefix of its tests ("light-tuned/").

    ``how`` is a sentence on how to read the values.
    """

    def make(rows: Sequence[Row]) -> Table | None:
        board = Board(rows)
        scores = {test: ScoreName("twiki_probes", measure, stage + test, "probes") for test in _TESTS}
        lines = [line for line in board.lines if any(board.own_month(line, score) for score in scores.values())]
        if not lines:
            return None
        months = {place: month for score in scores.values() for place, month in board.months(score).items()}
        columns: list[tuple[str, Sequence[Cell]]] = []
        for place, month in sorted(months.items()):
            for test, score in scores.items():
                cells = column([board.own_month(line, score).get(place) for line in lines])
                if any(cells):
                    columns.append((f"{month} {test}", cells))
        newest = [next(row for score in scores.values() for row in board.newest(line, score)) for line in lines]
        columns = [
            ("method", [line.label for line in lines]),
            ("trainable parameters", [row.trainable for row in newest]),
            ("tokens read", [row.tokens for row in newest]),
            *columns,
        ]
        return Table(
            title,
            f"{how} The columns of a month show the models that were trained up to that month, and the same initial "
            "model. In brackets: 95 % intervals over subjects and relations. Bold: the best value of a column, and "
            "models whose rank may be 1 with 95 % confidence. Parameters and tokens belong to a method's newest "
            "model.",
            tuple(name for name, _ in columns),
            tuple(zip(*(cells for _, cells in columns), strict=True)),
        )

    return make
