"""Every number in docs/study.md and docs/study/tables.md comes from docs/study/scores.parquet."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).parents[2]
STUDY = ROOT / "docs" / "study.md"
TABLES = ROOT / "docs" / "study" / "tables.md"
IN_THE_PAGE = ("methods", "runs")
NUMBER = re.compile(r"\d[\d,]*\.\d+")  # without its sign: "learned 0.50 less" is −0.50


@pytest.fixture(scope="module")
def study() -> Any:
    """The script that makes the tables."""
    spec = importlib.util.spec_from_file_location("study", ROOT / "examples" / "factbook" / "study.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["study"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def scores(study: Any) -> list[Any]:
    return [study.Number(**row) for row in pq.read_table(STUDY.with_suffix("") / "scores.parquet").to_pylist()]


def test_all_tables_are_made_of_the_scores(study: Any, scores: list[Any], tmp_path: Path) -> None:
    assert TABLES.read_text("utf-8") == study.document(scores)


@pytest.mark.parametrize("name", IN_THE_PAGE)
def test_a_table_of_the_page_is_made_of_the_scores(study: Any, scores: list[Any], name: str) -> None:
    assert study.tables(scores)[name] in STUDY.read_text("utf-8")


def test_the_prose_repeats_numbers_of_the_tables() -> None:
    lines = STUDY.read_text("utf-8").splitlines()
    tables = {number for line in TABLES.read_text("utf-8").splitlines() for number in NUMBER.findall(line)}
    prose = {number for line in lines if not line.startswith("|") for number in NUMBER.findall(line)}
    assert prose
    assert prose <= tables


def test_a_number_of_a_table_is_a_row_of_the_file(study: Any, scores: list[Any]) -> None:
    """By another way than the script's: the first cells of the table of methods, read from the file itself."""
    (line,) = [line for line in study.tables(scores)["methods"].splitlines() if line.startswith("| `diff` ")]
    table = pq.read_table(STUDY.with_suffix("") / "scores.parquet").to_pandas()
    rows = table[(table.method == "diff") & (table.minus == "") & (table.year == "2022 to 2024")]
    rows = rows[(rows.test == "strict") & (rows.relation == "")].set_index("measure")
    for measure, cell in zip(("learned", "forgotten"), line.split("|")[3:5], strict=True):
        found = [float(text.replace("−", "-")) for text in re.findall(r"−?\d+\.\d+", cell)]
        assert found == [round(rows[name][measure], 2) for name in ("value", "low", "high")]
