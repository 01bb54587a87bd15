"""The table of faults says what the suite does, no more and no less."""

from __future__ import annotations

from pathlib import Path

import pytest

from faults.rows import ROWS
from faults.table import MARKED, WHOLE, read_table

TABLE = Path(__file__).parents[2] / "docs" / "faults.md"
ARE_THERE = "Run make faults, which writes docs/faults.md."


def test_the_table_names_exactly_what_is_tested(pytestconfig: pytest.Config) -> None:
    if not pytestconfig.stash[WHOLE] or pytestconfig.option.faults:
        pytest.skip("not all tests were collected, or the table is being written")
    assert read_table(TABLE) == pytestconfig.stash[MARKED], ARE_THERE


def test_every_row_has_a_case_and_no_case_failed() -> None:
    assert {row for row, _, _ in read_table(TABLE)} == set(ROWS), ARE_THERE
    assert "**failed**" not in TABLE.read_text("utf-8")


ONE_FILE = """
import pytest
DISK = ("full disk", "a|b", "one line")
@pytest.mark.fault(*DISK)
@pytest.mark.parametrize("case", range(3))
def test_three(case):
    pass
@pytest.mark.fault("kill -9", "at once", "goes on")
def test_many(record_property):
    record_property("cases", 20)
@pytest.mark.fault("bomb", "a small one", "refused")
def test_fails():
    assert not "refused"
@pytest.mark.fault("hostile XML", "none", "nothing")
def test_skipped():
    pytest.skip("no XML")
def test_plain():
    assert not "in the table"
"""


@pytest.mark.parametrize("processes", ["0", "2"])
def test_the_table_is_made_of_what_ran(processes: str, tmp_path: Path) -> None:
    import subprocess
    import sys

    (tmp_path / "test_one.py").write_text(ONE_FILE)
    words = ["-q", "-p", "faults.table", "-m", "fault", "--faults", "out.md", "-n", processes, "test_one.py"]
    environment = {"PYTHONPATH": str(Path(__file__).parents[1]), "PATH": ""}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words], cwd=tmp_path, env=environment, capture_output=True, check=False
    )
    assert done.returncode == 1, done.stdout
    assert (tmp_path / "out.md").read_text().partition("|---|---|---|---|\n")[2].splitlines() == [
        "| kill -9 | at once | goes on | 20 |",
        r"| full disk | a\|b | one line | 3 |",
        "| hostile XML | none | nothing | not run here |",
        "| bomb | a small one | refused | **failed**: test_one.py::test_fails |",
    ]
    assert read_table(tmp_path / "out.md") == {
        ("kill -9", "at once", "goes on"),
        ("full disk", "a|b", "one line"),
        ("hostile XML", "none", "nothing"),
        ("bomb", "a small one", "refused"),
    }
