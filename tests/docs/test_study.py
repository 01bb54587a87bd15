"""Every number with an interval in docs/study.md, and every cell of its tables, is a row of scores.parquet."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

Row = dict[str, Any]

STUDY = Path(__file__).parents[2] / "docs" / "study.md"
INTERVAL = re.compile(r"(−?\d+) \[(−?\d+), (−?\d+)\]")
YEAR = "20210101-20220101"  # of the tables
READ = ("", YEAR, *YEAR.split("-"))  # nothing, the changes, the book before or after
COLUMNS = {  # of the page's tables -> measure, and the method that is subtracted
    "new facts known": ("new_known", ""),
    "old facts known": ("old_known", ""),
    "learned": ("learned", ""),
    "forgotten": ("forgotten", ""),
    "new facts, minus diff's": ("new_known", "diff"),
    "old facts, minus diff's": ("old_known", "diff"),
}


@pytest.fixture(scope="module")
def scores() -> list[Row]:
    found: list[Row] = pq.read_table(STUDY.with_suffix("") / "scores.parquet").to_pylist()
    return found


def rounded(row: Row) -> tuple[int, ...]:
    return tuple(round(row[name]) for name in ("value", "low", "high"))


def triples(text: str) -> list[tuple[int, ...]]:
    return [tuple(int(number.replace("−", "-")) for number in found) for found in INTERVAL.findall(text)]


def test_every_interval_of_the_page_is_a_row(scores: list[Row]) -> None:
    rows = {rounded(row) for row in scores if row["low"] is not None and row["measure"] != "fuar"}
    apart = [rounded(row) for row in scores if row["minus"] and row["low"] is not None]
    rows |= {(-value, -high, -low) for value, low, high in apart}  # "29 points less"
    found = triples(STUDY.read_text("utf-8"))
    assert len(found) > 20
    assert set(found) <= rows


def test_every_fuar_of_the_page_is_a_row(scores: list[Row]) -> None:
    rows = {
        tuple(f"{row[name]:.2f}" for name in ("value", "low", "high")) for row in scores if row["measure"] == "fuar"
    }
    found = re.findall(r"(\d+\.\d+) \[(\d+\.\d+), (\d+\.\d+)\]", STUDY.read_text("utf-8"))
    assert found
    assert set(found) <= rows


def test_a_cell_is_the_score_of_its_line_and_column(scores: list[Row]) -> None:
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
                wanted = {"measure": measure, "minus": minus, "test": "all", "runs": int(cells[1]), "year": YEAR}
                wanted |= {"method": cells[0].strip("`") + mark}
                (row,) = (row for row in scores if wanted.items() <= row.items() and row["read"] in READ)
                assert triples(cell) == [rounded(row)], (cells[0], head)
                checked += 1
        elif not cells:
            heads = []
    assert checked > 15
