"""Run the cells of an experiment that are not done, in this process or as jobs. A failed cell stops only the
cells that need its checkpoint; under ``accelerate launch`` it stops the whole experiment."""

import gc
import os
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from temporalwiki.base.errors import UsageError, in_one_line
from temporalwiki.base.files import make_folder, only_one, whole_file
from temporalwiki.base.json_files import read_json, write_json
from temporalwiki.base.options import did_you_mean
from temporalwiki.base.progress import Progress
from temporalwiki.base.terminal import say
from temporalwiki.eval_harness.experiment.cells import Cell, Note, plan_cells
from temporalwiki.eval_harness.experiment.job_runners import CellJob, JobRunner
from temporalwiki.eval_harness.experiment.recipe import Experiment
from temporalwiki.methods.manifest import check_checkpoint
from temporalwiki.methods.processes import processes
from temporalwiki.methods.train import MANIFEST

POLL = 5.0  # seconds between two looks at the jobs
DONE, NOTHING, FAILED, NOT_RUN = "done", "nothing to score", "failed", "not run"


@dataclass(frozen=True)
class CellOutcome:
    """The state of a cell after a run."""

    cell: Cell
    state: str  # DONE, NOTHING, FAILED or NOT_RUN
    why: str  # it failed, was not run or had nothing to score
    note: Note  # the content of its note file, or empty


def run_experiment(
    experiment: Experiment, runner: JobRunner | None = None, at_once: int = 1, only: Sequence[str] = ()
) -> list[CellOutcome]:
    """Run the cells that are not done, and return the outcome of all cells.

    Args:
        experiment: the experiment, as ``read_experiment`` returns it.
        runner: starts jobs that run the cells; without one, this process runs them one after the other.
        at_once: the number of jobs at a time.
        only: names of cells; this process runs these and no others.

    Several processes (``accelerate launch``) run each cell together. There, a failed cell ends the experiment, because
    the other processes would wait for it. Raises InputError if another process runs the same experiment.
    """
    planned = plan_cells(experiment)
    names = {cell.name for cell in planned}
    for name in only:
        if name not in names:
            raise UsageError(f"no cell {name!r}{did_you_mean(name, names)}")
    if only:
        planned = [cell for cell in planned if cell.name in only]
    with only_one(experiment.output, "experiment") if _first_process() and not only else nullcontext():
        todo = _todo(planned, experiment.output)
        make_folder(experiment.output / "cells")
        together = int(os.environ.get("WORLD_SIZE", "1")) > 1
        if together:  # all processes read the notes before one writes
            processes().wait_for_everyone()
        if _first_process():
            for cell in todo:  # the note of a cell whose files were deleted
                cell.note_path.unlink(missing_ok=True)
        done = len(planned) - len(todo)
        _say(f"{len(planned)} cells, {done} of them done before")
        with Progress("experiment", len(planned), "cells", done, shown=_first_process()) as progress:
            if runner is None:
                _run_here(todo, together, progress)
            else:
                _run_jobs(todo, runner, at_once, progress)
    outcomes: dict[str, CellOutcome] = {}
    for cell in planned:
        outcomes[cell.name] = _outcome(cell, outcomes)
    return list(outcomes.values())


def _todo(planned: Sequence[Cell], output: Path) -> list[Cell]:
    """Return the cells that are not done, and the trainings before them whose checkpoints were deleted.

    Raises InputError for a damaged checkpoint. It compares sizes; a cell that loads a checkpoint compares its content.
    """
    todo: set[str] = set()
    needed: set[str | None] = set()
    for cell in reversed(planned):
        note = _read_note(cell)
        missing = note is None or not all((output / name).is_file() for name in note.get("results", []))
        if note is not None and not missing and (trained := note.get("checkpoint")):
            check_checkpoint(Path(trained), content=False)
            missing = cell.name in needed and not (Path(trained) / MANIFEST).is_file()
        if missing:
            todo.add(cell.name)
        if missing or cell.name in needed:  # an adapter is loaded on the checkpoint before it
            needed.add(cell.needs)
    return [cell for cell in planned if cell.name in todo]


def _run_here(todo: Sequence[Cell], together: bool, progress: Progress) -> None:
    failed: set[str] = set()
    for cell in todo:
        if cell.needs in failed:
            failed.add(cell.name)
            progress.update()
            continue
        started = time.perf_counter()
        try:
            note = cell.run()
        except Exception as error:
            if together:
                raise
            failed.add(cell.name)
            _write_failure(cell, "".join(traceback.format_exception(error)))
            _say(f"{cell.name} failed: {_line(error)}")
        else:
            if _first_process():
                seconds = round(time.perf_counter() - started, 1)
                write_json(cell.note_path, {"cell": cell.name, "seconds": seconds, **note})
                cell.failure_path.unlink(missing_ok=True)
        progress.update()
        gc.collect()  # also frees the model of a failed cell
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def _run_jobs(todo: Sequence[Cell], runner: JobRunner, at_once: int, progress: Progress) -> None:
    """Start a job for each group as soon as the checkpoint that it needs is done, and wait for all jobs."""
    groups: dict[str, list[Cell]] = {}
    for cell in todo:
        groups.setdefault(cell.group, []).append(cell)
    waiting, running = dict(groups), dict[str, CellJob]()
    undone = {cell.name for cell in todo}
    while waiting or running:
        for group in [group for group, job in running.items() if _ended(job)]:
            job = running.pop(group)
            left = [cell for cell in groups[group] if _read_note(cell) is None and not cell.failure_path.is_file()]
            if left:  # the job was killed in the first of these cells, and did not start the others
                _write_failure(left[0], f"the job ended before it was done; its log: {job.log}\n")
            if left[1:]:
                groups[group] = waiting[group] = left[1:]
            done = {cell.name for cell in todo if cell.group == group and _read_note(cell) is not None}
            progress.update(len(undone & done))
            undone -= done
            if failed := [cell for cell in todo if cell.group == group and cell.failure_path.is_file()]:
                _say(f"{group} failed: {_failure(failed[0])}")
        for group, of_group in list(waiting.items()):
            needs = {cell.needs for cell in of_group} - {cell.name for cell in of_group}
            if any(need in undone for need in needs if need):
                if not any(need in (*waiting, *running) for need in needs if need):
                    del waiting[group]  # the training that it needs has failed
                continue
            if len(running) < at_once:
                del waiting[group]
                for cell in of_group:
                    cell.failure_path.unlink(missing_ok=True)
                try:
                    running[group] = runner.start(group, [cell.name for cell in of_group])
                except Exception as error:  # noqa: BLE001 - a scheduler that refuses one job may take the next
                    for cell in of_group:
                        _write_failure(cell, f"the job could not be started: {_line(error)}\n")
                    _say(f"{group} could not be started: {_line(error)}")
                else:
                    _say(f"{group} started ({running[group].log})")
        if running:
            time.sleep(POLL if runner.remote else POLL / 10)


def _ended(job: CellJob) -> bool:
    """Return whether a job has ended. A job whose state is unknown, as during a network failure, counts as running."""
    try:
        return job.ended()
    except Exception as error:  # noqa: BLE001 - the clients of schedulers raise errors of many types
        _say(f"the state of a job is not known ({job.log}): {_line(error)}")
        return False


def _outcome(cell: Cell, before: Mapping[str, CellOutcome]) -> CellOutcome:
    if (note := _read_note(cell)) is not None:
        return CellOutcome(cell, NOTHING if note.get("nothing") else DONE, note.get("nothing", ""), note)
    needed = before.get(cell.needs or "")
    if needed is not None and needed.state in (FAILED, NOT_RUN):
        return CellOutcome(cell, NOT_RUN, f"{cell.needs} {needed.state}", {})
    if cell.failure_path.is_file():
        return CellOutcome(cell, FAILED, _failure(cell), {})
    return CellOutcome(cell, NOT_RUN, "", {})


def _read_note(cell: Cell) -> Note | None:
    if not cell.note_path.is_file():
        return None
    return read_json(cell.note_path, dict[str, Any], "the note of a finished cell; remove it to run the cell again")


def _write_failure(cell: Cell, text: str) -> None:
    with whole_file(cell.failure_path) as part:
        part.write_text(text, "utf-8")


def _failure(cell: Cell) -> str:
    """Return the last line of a cell's traceback, which is the error message, and the path of the traceback's file."""
    try:
        return f"{cell.failure_path.read_text('utf-8').strip().splitlines()[-1]} ({cell.failure_path})"
    except (OSError, IndexError):
        return str(cell.failure_path)


def _line(error: Exception) -> str:
    return in_one_line(error) or type(error).__name__


def _first_process() -> bool:
    return os.environ.get("RANK", "0") == "0"


def _say(text: str) -> None:
    if _first_process():
        say(f"experiment: {text}")
