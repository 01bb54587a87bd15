"""The table that the page opens with: one line for each method, newest month first."""

from __future__ import annotations

from typing import Any

from temporalwiki.eval_harness.leaderboard.rows import Row
from temporalwiki.eval_harness.leaderboard.tables import TABLES, Score

from a_row import make_row

# label -> learned and forgotten of its models of 0809 and 0910, and whether it learned more than it forgot
VALUES = {
    "diff": ((1.0, 0.5), (1.2, 0.6), True),
    "lora": ((0.5, 0.1), (2.0, 0.2), True),
    "random": ((4.0, 9.0), (4.0, 9.0), False),
}


def make_rows(**changes: Any) -> list[Row]:
    return [
        make_row(
            label=label,
            method=label,
            month=month,
            tested=month,
            config=f"probes-{month}",
            task="learned_and_forgotten",
            test="all",
            measure=measure,
            higher_is_better=measure == "learned",
            value=value,
            low=value - 0.1,
            high=value + 0.1,
            competes=competes,
            **changes,
        )
        for label, (first, second, competes) in VALUES.items()
        for month, values in (("0809", first), ("0910", second))
        for measure, value in zip(("learned", "forgotten"), values, strict=True)
    ]


def test_a_line_for_each_method_the_most_learned_first_and_the_newest_month_first() -> None:
    table = TABLES["learned_and_forgotten"](make_rows())
    assert table is not None
    assert table.columns == ("method", "0910 learned", "0910 forgotten", "0809 learned", "0809 forgotten")
    cells = [[cell.value if isinstance(cell, Score) else cell for cell in line] for line in table.lines]
    assert cells == [
        ["lora", 2.0, 0.2, 0.5, 0.1],
        ["diff", 1.2, 0.6, 1.0, 0.5],
        ["random", 4.0, 9.0, 4.0, 9.0],
    ]
    best = [[cell.best for cell in line if isinstance(cell, Score)] for line in table.lines]
    assert best == [[True, True, False, True], [False, False, True, False], [False] * 4]


def test_the_caption_says_what_the_intervals_hold() -> None:
    one, several = (TABLES["learned_and_forgotten"](make_rows(**runs)) for runs in ({}, {"runs": 3, "spread": 0.25}))
    assert one is not None and several is not None
    assert "One training run for each method; differences between runs are not included." in one.caption
    assert "Means of 3 training runs; the intervals include the differences between runs." in several.caption


def test_without_the_task_there_is_no_table() -> None:
    assert TABLES["learned_and_forgotten"]([make_row()]) is None
