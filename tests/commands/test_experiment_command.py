"""`temporalwiki experiment` and `temporalwiki leaderboard` as commands, and one line for what fails."""

import csv
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from temporalwiki.commands import main
from temporalwiki.eval_harness.leaderboard.headline import UNDECIDED

from tiny_experiment import there, wanted, write

__all__ = ["there", "wanted", "write"]  # fixtures

pytestmark = pytest.mark.usefixtures("quick")

Write = Callable[..., Path]


def test_an_experiment_ends_with_its_page(write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["experiment", str(write())]) == 0
    said = capsys.readouterr().out.splitlines()
    board = tmp_path / "out" / "leaderboard"
    assert said[-2:] == [f"the page: {board / 'index.html'}", UNDECIDED]  # it scores no known facts
    assert any(re.fullmatch(r" *diff/1011 +done, \d+ s +2 done", line) for line in said)
    for name in (
        "index.html",
        "results.parquet",
        "README.md",
        "tables/temporalwiki_table_3.md",
        "tables/temporalwiki_table_3.csv",
        "figures/average_perplexity.png",
        "figures/average_perplexity.svg",
        "figures/misalignment.svg",
    ):
        assert (board / name).stat().st_size > 0
    with (tmp_path / "out" / "cells.csv").open(newline="") as file:
        assert {row["state"] for row in csv.DictReader(file)} == {"done"}
    files = {path: path.read_bytes() for path in board.rglob("*") if path.is_file()}
    (tmp_path / "again").mkdir()
    (tmp_path / "again" / ".results.parquet.0123abcd.part").write_text("of one that was killed")
    assert main(["leaderboard", str(tmp_path / "out" / "results"), "--out", str(tmp_path / "again")]) == 0
    assert not list(tmp_path.rglob(".*.part"))
    for path, there_before in files.items():
        other = tmp_path / "again" / path.relative_to(board)
        if "relations" not in path.name and path.name != "index.html":  # which name --data and where the results are
            assert other.read_bytes() == there_before, path.name


def test_a_failed_cell_is_one_line_and_status_1(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = write(**{"experiment/methods": {"initial": None, "modular": {"small": "no/such"}}})
    assert main(["experiment", str(recipe)]) == 1
    said = capsys.readouterr()
    assert "failed: modular/0910: " in said.out
    assert f"the page: {tmp_path / 'out' / 'leaderboard' / 'index.html'}" in said.out  # of those that are there
    assert said.err.splitlines()[-1].startswith(
        "temporalwiki experiment: 1 of 9 cells failed, the first is modular/0910"
    )
