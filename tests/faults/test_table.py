"""The table of faults lists exactly the marked tests."""

from pathlib import Path

import pytest

from faults.rows import ROWS
from faults.table import MARKED, WHOLE, read_table

TABLE = Path(__file__).parents[2] / "docs" / "faults.md"
HINT = "Run make faults, which writes docs/faults.md."


def test_the_table_names_exactly_what_is_tested(pytestconfig: pytest.Config) -> None:
    if not pytestconfig.stash[WHOLE] or pytestconfig.option.faults:
        pytest.skip("not all tests were collected, or the table is being written")
    assert read_table(TABLE) == pytestconfig.stash[MARKED], HINT


def test_every_row_has_a_case_and_no_case_failed() -> None:
    assert {row for row, _, _ in read_table(TABLE)} == set(ROWS), HINT
    assert "**failed**" not in TABLE.read_text("utf-8")
