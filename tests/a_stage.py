"""Running the tasks of a stage without the machinery of a stage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from temporalwiki.builders.stages import Report

T = TypeVar("T")


def run_tasks(run: Callable[[T, Path], Report], tasks: Sequence[T], folder: Path) -> list[Report]:
    """Run the tasks in this process and return their reports."""
    folder.mkdir(parents=True, exist_ok=True)
    return [run(task, folder) for task in tasks]
