"""Table 3, zero-shot and after light-tuning: each month's scores of the models of that month."""

from __future__ import annotations

from typing import Any

import pytest

from temporalwiki.eval_harness.leaderboard.rows import Row
from temporalwiki.eval_harness.leaderboard.tables import TABLES, Score, to_markdown

from a_row import make_row

TESTS = ("unchanged", "changed", "average")
# TemporalWiki, table 3, month 0809, and a month after it: (label, month trained, month tested) -> its three values
VALUES: dict[tuple[str, str | None, str], tuple[float, float, float]] = {
    ("initial", None, "0809"): (386.16, 364.82, 375.49),
    ("initial", None, "0910"): (380.0, 360.0, 370.0),
    ("diff", "0809", "0809"): (409.31, 284.34, 346.83),
    ("diff", "0809", "0910"): (999.0, 999.0, 999.0),
    ("diff", "0910", "0809"): (1.0, 1.0, 1.0),
    ("diff", "0910", "0910"): (420.0, 270.0, 345.0),
    ("mix_review", "0809", "0809"): (337.59, 274.91, 306.25),
    ("recadam", "0809", "0809"): (358.10, 253.07, 305.59),
    ("recadam", "0910", "0910"): (350.0, 290.0, 320.0),
}


def make_rows(stage: str = "", **changes: Any) -> list[Row]:
    return [
        make_row(
            label=label,
            method=label,
            month=month,
            tested=tested,
            config=f"probes-{tested}",
            test=f"{stage}{test}",
            value=value,
            low=value - 1,
            high=value + 1,
            tokens=None if month is None else {"0809": 100, "0910": 250}[month],
            trainable=None if month is None else 7_000,
            **changes,
        )
        for (label, month, tested), values in VALUES.items()
        for test, value in zip(TESTS, values, strict=True)
    ]


def test_each_month_is_of_the_models_of_that_month_and_the_best_are_marked() -> None:
    table = TABLES["temporalwiki_table_3"](make_rows()[::-1])
    assert table is not None
    months = [f"{month} {test}" for month in ("0809", "0910") for test in TESTS]
    assert table.columns == ("method", "trainable parameters", "tokens read", *months)
    values = [[cell.value if isinstance(cell, Score) else cell for cell in line] for line in table.lines]
    assert values == [
        ["initial", None, None, 386.16, 364.82, 375.49, 380.0, 360.0, 370.0],
        ["diff", 7_000, 250, 409.31, 284.34, 346.83, 420.0, 270.0, 345.0],
        ["recadam", 7_000, 250, 358.10, 253.07, 305.59, 350.0, 290.0, 320.0],
        ["mix_review", 7_000, 100, 337.59, 274.91, 306.25, None, None, None],
    ]
    best = [
        [cell.value for cell in column if isinstance(cell, Score) and cell.best]
        for column in zip(*table.lines, strict=True)
    ]
    assert best[3:] == [[337.59], [253.07], [305.59], [350.0], [270.0], [320.0]]
    assert "| initial |  |  | 386.16 [385.16, 387.16] |" in to_markdown(table)
    assert "| 100 | **337.59** [336.59, 338.59] | 274.91 [273.91, 275.91] |" in to_markdown(table)


@pytest.mark.parametrize(
    ("name", "measure"),
    [("light_tuned_perplexity", "perplexity"), ("light_tuned_exact_match", "exact_match"), ("light_tuned_f1", "f1")],
)
def test_light_tuned_tests_have_tables_of_their_own(name: str, measure: str) -> None:
    rows = make_rows("light-tuned/", measure=measure, higher_is_better=measure != "perplexity")
    table = TABLES[name](rows)
    assert table is not None
    cells = [line[3] for line in table.lines]
    assert [cell.value for cell in cells if isinstance(cell, Score)] == [386.16, 409.31, 358.10, 337.59]
    best = [cell.value for cell in cells if isinstance(cell, Score) and cell.best]
    assert best == ([337.59] if measure == "perplexity" else [409.31])
    assert [other for other, make in TABLES.items() if make(rows)] == [name]


@pytest.mark.parametrize("changes", [{"task": "deleted"}, {"measure": "f1"}, {"test": "deleted"}, {"kind": "diffset"}])
def test_without_its_scores_there_is_no_table(changes: dict[str, Any]) -> None:
    assert TABLES["temporalwiki_table_3"]([make_row(**changes)]) is None
    assert TABLES["temporalwiki_table_3"]([]) is None


def test_a_column_that_no_model_has_is_left_out() -> None:
    table = TABLES["temporalwiki_table_3"]([make_row()])
    assert table is not None
    assert table.columns == ("method", "trainable parameters", "tokens read", "0910 changed")
    # a model of another month alone is in no column of this one
    assert TABLES["temporalwiki_table_3"]([make_row(month="0809")]) is None
