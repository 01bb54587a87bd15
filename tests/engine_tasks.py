"""Tasks for the tests of the engine: worker processes import them, so they lie in a module of their own."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from temporalwiki.builders.engine import Report
from temporalwiki.builders.errors import InputError


def write_square(task: int, folder: Path) -> Report:
    """Leaves a trace of every call, so that a test can tell what ran."""
    with (folder.parent / "calls").open("a") as calls:
        calls.write(f"{task} ")
    (folder / f"{task}.txt").write_text(str(task * task))
    return {"count": {"tasks": 1}}


def die_at_three(task: int, folder: Path) -> Report:
    if task == 3 and not (folder.parent / "mended").exists():
        os.kill(os.getpid(), signal.SIGKILL)
    return write_square(task, folder)


def refuse_three(task: int, folder: Path) -> Report:
    if task == 3:
        raise InputError("three.xml: page 3 is bad")
    return write_square(task, folder)
