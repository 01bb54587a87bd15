"""The table of the benchmarks: its Markdown, and the command below it."""

import runpy
from pathlib import Path

import pytest

PROGRAM = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "table.py"))


def test_numbers_of_a_column_have_equal_decimals() -> None:
    columns = ("way", "items a second", "ours : it", "whole")
    rows = [("ours", 1234.5, 1, "99 %"), ("theirs", 617.25, None, "1 %")]
    assert PROGRAM["markdown"](columns, rows).splitlines() == [
        "| way | items a second | ours : it | whole |",
        "|---|---:|---:|---|",
        "| ours | 1,234.50 | 1 | 99 % |",
        "| theirs | 617.25 |  | 1 % |",
    ]


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["/home/me/month.py", "--folder", "/tmp/bench"], "python benchmarks/month.py --folder FOLDER"),
        (["month.py", "--sizes", "1", "4"], "python benchmarks/month.py --sizes 1 4"),
        (["scoring.py", "answers", "--model", "a/b"], "python benchmarks/scoring.py answers --model MODEL"),
    ],
)
def test_a_command_is_shown_without_paths_of_the_machine(words: list[str], shown: str) -> None:
    assert PROGRAM["typed"](words) == shown
