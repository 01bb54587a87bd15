"""Run an experiment's cells, those that are not done, in this process or as jobs; a failed one stops no other."""

from __future__ import annotations

import gc
import json
import os
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from temporalwiki.base.errors import InputError, UsageError, in_one_line
from temporalwiki.base.files import only_one, whole_file
from temporalwiki.base.json_files import write_json
from temporalwiki.base.options import did_you_mean
from temporalwiki.eval_harness.experiment.cells import Cell, Done, cells
from temporalwiki.eval_harness.experiment.job_runners import Engine, Job
from temporalwiki.eval_harness.experiment.recipe import Experiment
from temporalwiki.methods.processes import processes
from temporalwiki.methods.train import MANIFEST

POLL = 5.0  # seconds between two looks at the jobs
DONE, NOTHING, FAILED, NOT_RUN = "done", "nothing to score", "failed", "not run"


@dataclass(frozen=True)
class Progress:
    """What became of a cell: done, nothing to score, failed or not run; why, and what was noted of it."""

    cell: Cell
    state: str
    why: str
    noted: Done


def run_experiment(
    experiment: Experiment, engine: Engine | None = None, at_once: int = 1, only: Sequence[str] = ()
) -> list[Progress]:
    """Run the cells that are not done and return what became of all.

    Without an ``engine`` they run here, one after the other; with one as its jobs, ``at_once`` at a time. ``only``
    names cells: these run here, and no other. Several processes (``accelerate launch``) run each cell together; there
    a failure ends the experiment, as the other processes would wait for the one that failed. Raises InputError where
    another one runs all cells at the same time.
    """
    planned = cells(experiment)
    names = {cell.name for cell in planned}
    for name in only:
        if name not in names:
            raise UsageError(f"no cell {name!r}{did_you_mean(name, names)}")
    if only:
        planned = [cell for cell in planned if cell.name in only]
    with only_one(experiment.output, "experiment") if _first_process() and not only else nullcontext():
        todo = _todo(planned, experiment.output)
        (experiment.output / "cells").mkdir(parents=True, exist_ok=True)
        together = int(os.environ.get("WORLD_SIZE", "1")) > 1
        if together:  # all have looked before anybody writes
            processes().wait_for_everyone()
        if _first_process():
            for cell in todo:  # what was noted of one whose files were taken away
                cell.note.unlink(missing_ok=True)
        _say(f"{len(planned)} cells, {len(planned) - len(todo)} of them done before")
        if engine is None:
            _run_here(todo, together)
        else:
            _run_jobs(todo, engine, at_once)
    found: dict[str, Progress] = {}
    for cell in planned:
        found[cell.name] = _progress(cell, found)
    return list(found.values())


def _todo(planned: Sequence[Cell], output: Path) -> list[Cell]:
    """Return the cells that are not done, and those before them whose checkpoints were taken away."""
    todo: set[str] = set()
    needed: set[str | None] = set()
    for cell in reversed(planned):
        noted = _note(cell)
        if noted is not None and all((output / name).is_file() for name in noted.get("results", [])):
            gone = cell.name in needed and not (Path(noted["checkpoint"]) / MANIFEST).is_file()
        else:
            gone = True
        if gone:
            todo.add(cell.name)
        if gone or cell.name in needed:  # an adapter is loaded on the checkpoint before it
            needed.add(cell.needs)
    return [cell for cell in planned if cell.name in todo]


def _run_here(todo: Sequence[Cell], together: bool) -> None:
    failed: set[str] = set()
    begun = time.perf_counter()
    for number, cell in enumerate(todo):
        if cell.needs in failed:
            failed.add(cell.name)
            continue
        passed = time.perf_counter() - begun
        left = f", about {_duration(passed / number * (len(todo) - number))} left" if number else ""
        _say(f"{number + 1} of {len(todo)}: {cell.name}{left}")
        started = time.perf_counter()
        try:
            done = cell.run()
        except Exception as error:
            if together:
                raise
            failed.add(cell.name)
            with whole_file(cell.failure) as part:
                part.write_text("".join(traceback.format_exception(error)), "utf-8")
            _say(f"{cell.name} failed: {_line(error)}")
        else:
            if _first_process():
                seconds = round(time.perf_counter() - started, 1)
                write_json(cell.note, {"cell": cell.name, "seconds": seconds, **done})
                cell.failure.unlink(missing_ok=True)
        gc.collect()  # of a failed cell's model, too
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def _run_jobs(todo: Sequence[Cell], engine: Engine, at_once: int) -> None:
    """Start a job a group when what it needs is there, and wait for all."""
    groups: dict[str, list[Cell]] = {}
    for cell in todo:
        groups.setdefault(cell.group, []).append(cell)
    waiting, running = dict(groups), dict[str, Job]()
    undone = {cell.name for cell in todo}
    while waiting or running:
        for group in [group for group, job in running.items() if _ended(job)]:
            job = running.pop(group)
            left = [cell for cell in groups[group] if _note(cell) is None and not cell.failure.is_file()]
            if left:  # it died without a word, in the first of these; the others have not been tried
                with whole_file(left[0].failure) as part:
                    part.write_text(f"the job ended before it was done; its log: {job.log}\n", "utf-8")
            if left[1:]:
                groups[group] = waiting[group] = left[1:]
            done = {cell.name for cell in todo if cell.group == group and _note(cell) is not None}
            undone -= done
            failed = [cell for cell in todo if cell.group == group and cell.failure.is_file()]
            what = f"failed: {_failure(failed[0])}" if failed else "done"
            _say(f"{group} {what} ({len(waiting)} wait, {len(running)} run)")
        for group, of in list(waiting.items()):
            needs = {cell.needs for cell in of} - {cell.name for cell in of}
            if any(need in undone for need in needs if need):
                if not any(need in (*waiting, *running) for need in needs if need):
                    del waiting[group]  # what it needs has failed
                continue
            if len(running) < at_once:
                del waiting[group]
                for cell in of:
                    cell.failure.unlink(missing_ok=True)
                try:
                    running[group] = engine.start(group, [cell.name for cell in of])
                except Exception as error:  # noqa: BLE001 - a scheduler that says no to one job may take the next
                    for cell in of:
                        with whole_file(cell.failure) as part:
                            part.write_text(f"the job could not be started: {_line(error)}\n", "utf-8")
                    _say(f"{group} could not be started: {_line(error)}")
                else:
                    _say(f"{group} started ({running[group].log})")
        if running:
            time.sleep(POLL if engine.remote else POLL / 10)


def _ended(job: Job) -> bool:
    """Whether a job has ended; one that cannot be asked, as where a network is down for a while, counts as running."""
    try:
        return job.ended()
    except Exception as error:  # noqa: BLE001 - whatever a scheduler's client raises
        _say(f"cannot be asked ({job.log}): {_line(error)}")
        return False


def _progress(cell: Cell, before: Mapping[str, Progress]) -> Progress:
    if (noted := _note(cell)) is not None:
        return Progress(cell, NOTHING if noted.get("nothing") else DONE, noted.get("nothing", ""), noted)
    needed = before.get(cell.needs or "")
    if needed is not None and needed.state in (FAILED, NOT_RUN):
        return Progress(cell, NOT_RUN, f"{cell.needs} {needed.state}", {})
    if cell.failure.is_file():
        return Progress(cell, FAILED, _failure(cell), {})
    return Progress(cell, NOT_RUN, "", {})


def _note(cell: Cell) -> dict[str, Any] | None:
    try:
        return dict(json.loads(cell.note.read_text("utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, RecursionError):
        raise InputError(f"{cell.note}: cannot be read; remove it, and the cell runs again") from None


def _failure(cell: Cell) -> str:
    """Return the last line of what is kept of a failure, where a traceback says what went wrong."""
    try:
        return f"{cell.failure.read_text('utf-8').strip().splitlines()[-1]} ({cell.failure})"
    except (OSError, IndexError):
        return str(cell.failure)


def _line(error: Exception) -> str:
    return in_one_line(error) or type(error).__name__


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{seconds:.0f} s" if seconds < 90 else f"{minutes} min" if minutes < 90 else f"{minutes / 60:.1f} h"


def _first_process() -> bool:
    return os.environ.get("RANK", "0") == "0"


def _say(text: str) -> None:
    if _first_process():
        print(f"experiment: {text}", file=sys.stderr, flush=True)
