"""Draw docs/performance.md from the figures of the benchmarks.

    python benchmarks/performance.py

Each benchmark prints one table for each thing that it measures, with its peers. With ``--figures benchmarks/figures``,
it also keeps the table as JSON, one file for each table, and this program draws the page from those files.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "performance.md"
HEAD = """\
# Performance

Each table comes from a program in `benchmarks/` and names the command, the commit, the day and the machine.
`pip install '.[bench,adapters]'` installs the peers. With `--figures benchmarks/figures`, a program keeps its table in
that folder, and `python benchmarks/performance.py` draws this page from the folder. CPU seconds are the time of the
processor, which other programs on the machine disturb least. Speeds of other machines differ; ratios differ less. A
program without a table here has not been run with this option yet.
"""
Cell = str | int | float | None


@dataclass(frozen=True)
class Table:
    """A table of figures, and how they were made. Its name is also the file's."""

    name: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str
    command: str = field(default_factory=lambda: typed(sys.argv))
    commit: str = field(default_factory=lambda: _commit())
    date: str = field(default_factory=lambda: datetime.datetime.now(datetime.UTC).date().isoformat())
    machine: str = field(default_factory=lambda: _machine())

    def markdown(self) -> str:
        """Return the table as Markdown. Columns of numbers are aligned at the right and have equal decimals."""
        columns = [[row[i] for row in self.rows] for i in range(len(self.columns))]
        rule = "|".join("---" if any(isinstance(cell, str) for cell in column) else "---:" for column in columns)
        shown = [self.columns, *zip(*map(_shown, columns), strict=True)]
        lines = [f"| {' | '.join(row)} |" for row in shown]
        return "\n".join([lines[0], f"|{rule}|", *lines[1:]])


def add_option(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--figures``."""
    parser.add_argument("--figures", type=Path, metavar="FOLDER", help="keep the tables in this folder, as JSON")


def report(table: Table, folder: Path | None) -> None:
    """Print a table, and keep it if there is a folder."""
    print(f"\n{table.title}\n\n{table.markdown()}\n\n{table.note}", flush=True)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(asdict(table), indent=1, ensure_ascii=False)
        (folder / f"{table.name}.json").write_text(text + "\n", "utf-8")


def page(folder: Path) -> str:
    """Return the page with all tables in a folder, in the order of their names."""
    tables = [Table(**json.loads(path.read_text("utf-8"))) for path in sorted(folder.glob("*.json"))]
    parts = [
        f"## {one.title}\n\n{one.markdown()}\n\n{one.note}\n\n"
        f"`{one.command}` at commit {one.commit}, {one.date}. {one.machine}\n"
        for one in tables
    ]
    return "\n".join([HEAD, *parts])


def typed(words: Sequence[str]) -> str:
    """Return the command, with each path replaced by the name of its option: the page is for other machines."""
    shown = ["python", f"benchmarks/{Path(words[0]).name}"]
    for before, word in pairwise(words):
        if "--figures" not in (before, word):
            shown.append(before.lstrip("-").upper() if "/" in word else word)
    return " ".join(shown)


def _commit() -> str:
    """Return the commit of this program."""
    words = ["git", "describe", "--always", "--dirty"]
    return subprocess.run(words, cwd=HERE, capture_output=True, text=True).stdout.strip() or "unknown"


def _machine() -> str:
    """Return what matters for speed: processor, cores, Python and what else was running."""
    load = f"{os.getloadavg()[0]:.1f} processes were running at the end"
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}; {load}."


def _shown(column: Sequence[Cell]) -> list[str]:
    decimals = max((len(repr(cell).partition(".")[2]) for cell in column if isinstance(cell, float)), default=0)
    return [
        f"{cell:,.{decimals}f}" if isinstance(cell, float) else f"{cell:,}" if isinstance(cell, int) else cell or ""
        for cell in column
    ]


if __name__ == "__main__":
    PAGE.write_text(page(HERE / "figures"), "utf-8")
    print(PAGE)
