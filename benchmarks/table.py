"""The table that a benchmark prints: Markdown for docs/performance.md, with its command, commit and machine."""

import datetime
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

Cell = str | int | float | None


def show(title: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]], note: str = "") -> None:
    """Print a section of docs/performance.md."""
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True).stdout.strip()
    load = f"{os.getloadavg()[0]:.1f} processes were running at the end"
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}; {load}."
    made = f"`{typed(sys.argv)}` at commit {commit}, {datetime.datetime.now(datetime.UTC).date()}. {machine}"
    parts = (f"## {title}", markdown(columns, rows), note, made)
    print("\n" + "\n\n".join(filter(None, parts)), flush=True)


def markdown(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """Return a table. Columns of numbers are aligned at the right and have equal decimals."""
    cells = list(zip(*rows, strict=True))
    rule = "|".join("---" if any(isinstance(cell, str) for cell in column) else "---:" for column in cells)
    lines = [f"| {' | '.join(row)} |" for row in (columns, *zip(*map(_shown, cells), strict=True))]
    return "\n".join([lines[0], f"|{rule}|", *lines[1:]])


def typed(words: Sequence[str]) -> str:
    """Return the command, with each path replaced by the name of its option: the page is for other machines."""
    shown = [before.lstrip("-").upper() if "/" in word else word for before, word in pairwise(words)]
    return " ".join(["python", f"benchmarks/{Path(words[0]).name}", *shown])


def _shown(column: Sequence[Cell]) -> list[str]:
    decimals = max((len(repr(cell).partition(".")[2]) for cell in column if isinstance(cell, float)), default=0)
    return [
        f"{cell:,.{decimals}f}" if isinstance(cell, float) else f"{cell:,}" if isinstance(cell, int) else cell or ""
        for cell in column
    ]
