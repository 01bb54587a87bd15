"""docs/performance.md is made of the figures that the benchmarks kept."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
PAGE = BENCHMARKS.parent / "docs" / "performance.md"
MADE = {"command": "python benchmarks/speed.py", "commit": "abc1234", "date": "2026-11-25", "machine": "2 cores."}
SPEED = """\
## Speed

| way | items a second | ours : it | whole |
|---|---:|---:|---|
| ours | 1,234.50 | 1 | 99 % |
| theirs | 617.25 |  | 1 % |

Higher is better.

`python benchmarks/speed.py` at commit abc1234, 2026-11-25. 2 cores.
"""


@pytest.fixture(scope="module")
def performance() -> Any:
    """The program that draws the page."""
    spec = importlib.util.spec_from_file_location("performance", BENCHMARKS / "performance.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["performance"] = module
    spec.loader.exec_module(module)
    return module


def test_the_page_has_the_figures_that_were_kept(performance: Any) -> None:
    assert PAGE.read_text("utf-8") == performance.page(BENCHMARKS / "figures")


def test_a_table_is_printed_kept_and_drawn(
    performance: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = ("way", "items a second", "ours : it", "whole")
    rows = [("ours", 1234.5, 1, "99 %"), ("theirs", 617.25, None, "1 %")]
    table = performance.Table("speed", "Speed", columns, rows, "Higher is better.", **MADE)
    performance.report(table, tmp_path / "figures")
    table_and_note = SPEED.split("\n\n", 1)[1].rsplit("\n\n", 1)[0]
    assert table_and_note in capsys.readouterr().out
    assert json.loads((tmp_path / "figures" / "speed.json").read_text())["rows"][1] == ["theirs", 617.25, None, "1 %"]
    assert performance.page(tmp_path / "figures") == f"{performance.HEAD}\n{SPEED}"


def test_without_a_folder_nothing_is_kept(performance: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    performance.report(performance.Table("speed", "Speed", ("way",), [("ours",)], "", **MADE), None)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["/home/me/month.py", "--folder", "/tmp/bench"], "python benchmarks/month.py --folder FOLDER"),
        (["month.py", "--sizes", "1", "4", "--no-authors"], "python benchmarks/month.py --sizes 1 4 --no-authors"),
        (["month.py", "--figures", "benchmarks/figures", "--sizes", "1"], "python benchmarks/month.py --sizes 1"),
        (["scoring.py", "answers", "--model", "a/b"], "python benchmarks/scoring.py answers --model MODEL"),
    ],
)
def test_a_command_is_shown_without_paths_of_the_machine(performance: Any, words: list[str], shown: str) -> None:
    assert performance.typed(words) == shown


@pytest.mark.parametrize("path", sorted((BENCHMARKS / "figures").glob("*.json")), ids=lambda path: path.stem)
def test_figures_have_a_cell_for_each_column_and_say_how_they_were_made(performance: Any, path: Path) -> None:
    table = performance.Table(**json.loads(path.read_text("utf-8")))
    assert table.name == path.stem
    assert {len(row) for row in table.rows} == {len(table.columns)}
    assert all((table.note, table.command, table.commit, table.date, table.machine))
    assert "/" not in table.command.removeprefix("python benchmarks/")
