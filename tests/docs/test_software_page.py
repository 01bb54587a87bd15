"""Every number with an interval in docs/software.md is a row of software_known.parquet, and a cell the right one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

Row = dict[str, Any]

PAGE = Path(__file__).parents[2] / "docs" / "software.md"
INTERVAL = re.compile(r"(−?\d+) \[(−?\d+), (−?\d+)\]")
LAST = "20260701-20260801"
COLUMNS = {  # of the page's table -> measure, and the method that is subtracted
    "new facts known": ("new_known", ""),
    "old facts known": ("old_known", ""),
    "learned": ("learned", ""),
    "new facts, minus diff's": ("new_known", "diff"),
}


@pytest.fixture(scope="module")
def scores() -> list[Row]:
    rows: list[Row] = pq.read_table(PAGE.with_name("software_known.parquet")).to_pylist()
    return [row for row in rows if row["read"] in ("", LAST) and None not in (row["low"], row["high"])]


def rounded(row: Row) -> tuple[int, ...]:
    return tuple(round(row[name]) for name in ("value", "low", "high"))


def triples(text: str) -> list[tuple[int, ...]]:
    return [tuple(int(number.replace("−", "-")) for number in found) for found in INTERVAL.findall(text)]


def test_every_interval_of_the_page_is_a_row(scores: list[Row]) -> None:
    rows = {rounded(row) for row in scores}
    rows |= {(-value, -high, -low) for value, low, high in (rounded(row) for row in scores if row["minus"])}
    found = triples(PAGE.read_text("utf-8"))
    assert len(found) > 6
    assert set(found) <= rows


def test_a_cell_is_the_score_of_its_line_and_column(scores: list[Row]) -> None:
    checked, heads = 0, list[str]()
    for line in PAGE.read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if cells[1:2] == ["runs"]:
            heads = cells
        elif heads and cells and cells[0].startswith("`"):
            for head, cell in zip(heads[2:], cells[2:], strict=True):
                measure, minus = COLUMNS[head]
                wanted = {"measure": measure, "minus": minus, "test": "all", "runs": int(cells[1])}
                wanted |= {"method": cells[0].strip("`")}
                if cell:
                    (row,) = (row for row in scores if wanted.items() <= row.items())
                    assert triples(cell) == [rounded(row)], (cells[0], head)
                    checked += 1
        elif not cells:
            heads = []
    assert checked > 6
