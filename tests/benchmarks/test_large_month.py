"""The benchmark of a large month runs each of its commands, here on a small one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "large_month.py"


@pytest.mark.slow
def test_each_command_reads_the_month() -> None:
    shown = subprocess.run([sys.executable, PROGRAM, "30"], check=True, capture_output=True, text=True).stdout
    rows = [line.split(" | ") for line in shown.splitlines() if line.startswith("| ")]
    assert rows[0] == ["| command", "seconds", "CPU s", "peak MB |"]
    assert [row[0][2:].split(" ")[0] for row in rows[1:]] == ["stream", "stream", "load", "`inspect`", "`publish"]
