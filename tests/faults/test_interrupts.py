"""Ctrl-C: a command says that it was interrupted, at once and without a traceback."""

import importlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import temporalwiki.__main__
from temporalwiki.builders.sql import database
from temporalwiki.commands import main

pytestmark = pytest.mark.slow

SAID = "interrupted; run the same command again to continue\n"
WORK = """
import time

def work(task, folder):
    (folder / f"{task} began").touch()
    time.sleep(60)
"""
POOL = """
import signal, sys
from pathlib import Path
from temporalwiki.builders.machine import Machine
from temporalwiki.builders.stages import run_stage
from work import work

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    Path(sys.argv[1], "starts").touch()
    try:
        run_stage("work", work, [1, 2], Path(sys.argv[1], "stage"), Machine(2))
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        sys.exit(0)  # without it, Python may end with the signal's status: it remembers an interrupted exec
"""


@pytest.mark.fault("Ctrl-C", "any command, while Python still imports", "it says so in one line and ends with 1")
def test_an_interrupt_before_the_command_began(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupted:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "temporalwiki.commands":
                raise KeyboardInterrupt

    monkeypatch.setattr(sys, "meta_path", [Interrupted(), *sys.meta_path])
    monkeypatch.delitem(sys.modules, "temporalwiki.commands")
    assert temporalwiki.__main__.main() == 1
    assert capsys.readouterr().err == "temporalwiki: interrupted\n"


@pytest.mark.fault(
    "Ctrl-C", "build: while workers start, and when they are at work", "it ends, and prints nothing else"
)
@pytest.mark.parametrize("moment", ["starts", "stage/1 began"])
def test_a_pool_of_workers(moment: str, tmp_path: Path) -> None:
    """A terminal sends the signal to the workers, too, and to the process that starts them."""
    program = tmp_path / "program.py"
    program.write_text(POOL)
    (tmp_path / "work.py").write_text(WORK)  # workers do not read the main module
    running = subprocess.Popen(
        [sys.executable, program, tmp_path],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        while not (tmp_path / moment).exists() and running.poll() is None:
            time.sleep(0.01)
        time.sleep(0.3 if moment == "starts" else 0)  # imports in the process that starts workers
        os.killpg(running.pid, signal.SIGINT)
        out, err = running.communicate()
    finally:
        running.kill()
    assert (running.returncode, out, err) == (0, "interrupted\n", "")


@pytest.mark.fault("Ctrl-C", "a command: while DuckDB computes", "an interruption as any other")
def test_duckdb(tmp_path: Path) -> None:
    interrupt = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt), database(tmp_path, 1 << 30) as db:
        interrupt.start()
        db.execute("SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b").fetchall()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.fault("Ctrl-C", "a command: while its module is imported", "an interruption as any other")
def test_an_import(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(_name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(importlib, "import_module", interrupted)
    assert main(["inspect", "x"]) == 1
    assert capsys.readouterr().err == f"temporalwiki inspect: {SAID}"
