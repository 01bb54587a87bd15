"""Every number in docs/study.md comes from docs/study/tables.md, and those from scores.parquet."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow.parquet as pq

ROOT = Path(__file__).parents[2]
STUDY = ROOT / "docs" / "study.md"
TABLES = ROOT / "docs" / "study" / "tables.md"
NUMBER = re.compile(r"\d[\d,]*\.\d+")  # without its sign: "learned 0.50 less" is −0.50


def test_the_page_repeats_numbers_of_the_tables() -> None:
    page = set(NUMBER.findall(STUDY.read_text("utf-8")))
    assert page
    assert page <= set(NUMBER.findall(TABLES.read_text("utf-8")))


def test_a_number_of_a_table_is_a_row_of_the_file() -> None:
    lines = [line for line in TABLES.read_text("utf-8").splitlines() if line.startswith("| `diff` | 2 ")]
    table = pq.read_table(STUDY.with_suffix("") / "scores.parquet").to_pandas()
    rows = table[(table.method == "diff") & (table.minus == "") & (table.year == "2022 to 2024")]
    rows = rows[(rows.test == "strict") & (rows.relation == "")].set_index("measure")
    for measure, cell in zip(("learned", "forgotten"), lines[0].split("|")[3:5], strict=True):
        found = [float(text.replace("−", "-")) for text in re.findall(r"−?\d+\.\d+", cell)]
        assert found == [round(rows[name][measure], 2) for name in ("value", "low", "high")]
