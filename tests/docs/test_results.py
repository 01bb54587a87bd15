"""Every number with an interval on a page of results, and every cell of its tables, is in the page's file."""

import math
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

Row = dict[str, Any]

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {  # -> its numbers, the years or months of its tables, and the fewest intervals and cells that it has
    "study.md": ("study/scores.parquet", ("20210101-20220101",), 60, 60),
    "price.md": ("price.parquet", ("1112", "1011", "20210101-20220101"), 100, 180),
    "software.md": ("software_known.parquet", ("20260701-20260801",), 13, 13),
}
INTERVAL = re.compile(r"(−?\d+) \[(−?\d+), (−?\d+|∞)\]")
COLUMNS = {  # of the pages' tables -> measure, test, the method that is subtracted, and the end of the method's name
    "new facts known": ("new_known", "all", "", ""),
    "at twice the tokens": ("new_known", "all", "", "-2x"),
    "at five times": ("new_known", "all", "", "-5x"),
    "as a cloze": ("new_known", "cloze/all", "", ""),
    "as a question": ("new_known", "question/all", "", ""),
    "old facts known": ("old_known", "all", "", ""),
    "learned": ("learned", "all", "", ""),
    "forgotten": ("forgotten", "all", "", ""),
    "new facts, minus diff's": ("new_known", "all", "diff", ""),
    "old facts, minus diff's": ("old_known", "all", "diff", ""),
    "thousand tokens": ("thousand_tokens", "all", "", ""),
    "seconds": ("seconds", "all", "", ""),
    "kB": ("kilobytes", "all", "", ""),
    "thousand tokens a learned fact": ("thousand_tokens_per_fact", "all", "", ""),
}


@pytest.fixture(params=PAGES)
def page(request: pytest.FixtureRequest) -> str:
    return (DOCS / request.param).read_text("utf-8")


@pytest.fixture()
def scores(request: pytest.FixtureRequest, page: str) -> list[Row]:
    name, *_ = PAGES[request.node.callspec.params["page"]]
    found: list[Row] = pq.read_table(DOCS / name).to_pylist()
    return found


def rounded(row: Row) -> tuple[float, ...]:
    """Return a value and its interval; an end that is not known is infinite."""
    numbers = (row[name] for name in ("value", "low", "high"))
    return tuple(round(one) if one is not None and math.isfinite(one) else math.inf for one in numbers)


def triples(text: str) -> list[tuple[float, ...]]:
    return [
        tuple(float(number.replace("−", "-").replace("∞", "inf")) for number in found)
        for found in INTERVAL.findall(text)
    ]


def test_every_interval_of_a_page_is_a_row(scores: list[Row], page: str, request: pytest.FixtureRequest) -> None:
    rows = {rounded(row) for row in scores if row["low"] is not None and row["measure"] != "fuar"}
    apart = [rounded(row) for row in scores if row["minus"] and row["low"] is not None]
    rows |= {(-value, -high, -low) for value, low, high in apart}  # "29 points less"
    found = triples(page)
    assert len(found) >= PAGES[request.node.callspec.params["page"]][2]
    assert set(found) <= rows


@pytest.mark.parametrize("page", ["study.md"], indirect=True)
def test_every_fuar_of_the_page_is_a_row(scores: list[Row], page: str) -> None:
    rows = {
        tuple(f"{row[name]:.2f}" for name in ("value", "low", "high")) for row in scores if row["measure"] == "fuar"
    }
    found = re.findall(r"(\d+\.\d+) \[(\d+\.\d+), (\d+\.\d+)\]", page)
    assert found
    assert set(found) <= rows


def test_a_cell_is_the_score_of_its_line_and_column(
    scores: list[Row], page: str, request: pytest.FixtureRequest
) -> None:
    _, years, _, least = PAGES[request.node.callspec.params["page"]]
    # nothing, the changes, the book before or after
    read = {"", *years, *(date for year in years for date in year.split("-"))}
    checked, heads = 0, []
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if cells[1:2] == ["runs"]:
            heads = cells
            mark = cells[0].removeprefix("method")  # ", small"
        elif cells and heads and cells[0].startswith("`"):
            for head, cell in zip(heads[2:], cells[2:], strict=True):
                measure, test, minus, times = COLUMNS[head]
                if not cell:
                    continue
                wanted = {"measure": measure, "minus": minus, "test": test, "runs": int(cells[1])}
                wanted |= {"method": cells[0].strip("`") + times + mark}
                found = [row for row in scores if wanted.items() <= row.items()]
                (row,) = (row for row in found if row["year"] in years and row["read"] in read)
                shown = triples(cell) if "[" in cell else [(float(cell), math.inf, math.inf)]
                assert shown == [rounded(row)], (cells[0], head)
                checked += 1
        elif not cells:
            heads = []
    assert checked >= least
