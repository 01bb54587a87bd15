"""Every number with an interval in docs/study.md, and every cell of its tables, is a row of scores.parquet."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

STUDY = Path(__file__).parents[2] / "docs" / "study.md"
INTERVAL = re.compile(r"(−?\d+) \[(−?\d+), (−?\d+)\]")
COLUMNS = {  # of the page's tables -> measure, and the method that is subtracted
    "new facts known": ("new_known", ""),
    "old facts known": ("old_known", ""),
    "learned": ("learned", ""),
    "forgotten": ("forgotten", ""),
    "new facts, minus diff's": ("new_known", "diff"),
    "old facts, minus diff's": ("old_known", "diff"),
}


@pytest.fixture(scope="module")
def scores() -> pd.DataFrame:
    return pd.read_parquet(STUDY.with_suffix("") / "scores.parquet")


def rounded(row: pd.Series) -> tuple[int, ...]:
    return tuple(round(row[name]) for name in ("value", "low", "high"))


def triples(text: str) -> list[tuple[int, ...]]:
    return [tuple(int(number.replace("−", "-")) for number in found) for found in INTERVAL.findall(text)]


def test_every_interval_of_the_page_is_a_row(scores: pd.DataFrame) -> None:
    rows = {rounded(row) for _, row in scores.dropna(subset=["low"]).iterrows()}
    rows |= {(-value, -high, -low) for value, low, high in rows}  # "29 points less"
    found = triples(STUDY.read_text("utf-8"))
    assert len(found) > 20
    assert set(found) <= rows


def test_a_cell_is_the_score_of_its_line_and_column(scores: pd.DataFrame) -> None:
    scores = scores[scores.test == "all"]
    checked, heads = 0, []
    for line in STUDY.read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if cells[1:2] == ["runs"]:
            heads = cells
            mark = cells[0].removeprefix("method")  # ", small"
        elif cells and heads and cells[0].startswith("`"):
            for head, cell in zip(heads[2:], cells[2:], strict=True):
                measure, minus = COLUMNS[head]
                if not cell:
                    continue
                name = cells[0].strip("`") + mark
                is_cell = (scores.method == name) & (scores.measure == measure) & (scores.minus == minus)
                (row,) = (row for _, row in scores[is_cell & (scores.runs == int(cells[1]))].iterrows())
                assert triples(cell) == [rounded(row)], (cells[0], head)
                checked += 1
        elif not cells:
            heads = []
    assert checked > 15
