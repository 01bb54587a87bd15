"""How a stage runs: an executor runs its independent tasks, and each task leaves a report.

A stage is a plain function ``run(task, folder) -> report`` and a list of tasks. Its folder holds the files that the
tasks write, one JSON report for each task, and datatrove's completion markers. A rerun, on any executor, skips a task
if its marker, its report and the files that the report lists are unchanged.
"""

import contextlib
import copy
import functools
import gc
import hashlib
import json
import os
import pickle
import shutil
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import loguru
import msgspec

from temporalwiki.base.errors import InputError
from temporalwiki.base.files import make_folder, sweep
from temporalwiki.base.json_files import fingerprint, read_json, write_json
from temporalwiki.base.progress import Progress
from temporalwiki.base.terminal import say
from temporalwiki.builders import executors
from temporalwiki.builders.executors import SLURM_JOBS
from temporalwiki.builders.machine import Machine
from temporalwiki.builders.measurement import measured

# Tasks leave hardly any garbage in cycles. Python's own thresholds cost a fifth of align and 2 % of a month.
_GARBAGE_THRESHOLDS = 50_000, 20, 100

Report = dict[str, Any]
T = TypeVar("T")

# The executor's own log lines would hide the progress.
loguru.logger.disable("datatrove")


class _Plan(msgspec.Struct):
    """What ``stage.json`` says: which tasks a stage's folder belongs to."""

    plan: str
    tasks: int = 0


# the path of a file in the folder of a stage: no part of it is hidden or leads out of the folder
FileName = Annotated[str, msgspec.Meta(pattern=r"\A[^./\0][^/\0]*(/[^./\0][^/\0]*)*\Z")]


class _Cost(msgspec.Struct):
    """What a task has cost, as manifests sum it up."""

    seconds: float
    cpu_seconds: float
    peak_memory_mb: float


class _Done(msgspec.Struct):
    """What every report says: the cost of its task, and the checksums of the files that it wrote, by their paths."""

    run: _Cost
    files: dict[FileName, str]


def run_stage(
    name: str,
    run: Callable[[T, Path], Report],
    tasks: Sequence[T],
    folder: Path,
    machine: Machine | None = None,
    sizes: Sequence[int] | None = None,
    plan: Any = None,
) -> list[Report]:
    """Run the tasks that are not done yet and return the reports of all tasks, in order.

    A task writes its files into ``folder`` and lists their paths in its report under "wrote". The finished report has
    their checksums under "files" and the task's cost under "run"; ``run["kept"]`` tells whether an earlier run did the
    task. A task may write unfinished files to the folder under hidden names that end in ".part".

    Args:
        name: the name of the stage, which the progress and error messages begin with.
        run: runs one task.
        tasks: the arguments of ``run``.
        folder: continues an earlier run if that had the same plan; its content is deleted otherwise.
        machine: where the tasks run; by default one after another in this process.
        sizes: bytes that each task reads; the progress counts them.
        plan: JSON that decides the stage's result; by default the tasks.

    Raises what a task raised, or a RuntimeError with its traceback if that error cannot be sent between processes, and
    InputError if a worker was killed.
    """
    machine = machine or Machine()
    numbers = range(len(tasks))
    key = fingerprint(list(tasks) if plan is None else plan)
    _prepare(name, folder, key, len(tasks), machine)
    ranks: list[int] = []
    if tasks:
        step = functools.partial(_run_task, run=run, tasks=list(tasks), folder=folder, key=key)
        executor = executors.load(machine.engine).Executor(name, step, len(tasks), machine, folder)
        ranks = executor.get_incomplete_ranks(numbers)
    if ranks:
        weights = list(sizes) if sizes else [1] * len(tasks)
        done = sum(weights) - sum(weights[rank] for rank in ranks)
        with Progress(name, sum(weights), "B" if sizes else "task", done) as progress:
            executor.run(lambda rank: progress.update(weights[rank]))
        sweep(folder, ".*.part")
    reports: list[Report] = [json.loads((folder / _report(rank)).read_text("utf-8")) for rank in numbers]
    for rank, report in enumerate(reports):
        report["run"]["kept"] = rank not in ranks
    return reports


def _prepare(name: str, folder: Path, key: str, tasks: int, machine: Machine) -> None:
    """Prepare a stage's folder: delete the files of another plan, and the markers of tasks that lost a file."""
    planned = _plan_of(folder).plan
    if (folder / SLURM_JOBS).exists() and machine.engine != "slurm":
        executors.load("slurm").cancel(folder)  # jobs of a killed command may still write here
    if planned != key:
        remove(folder)
        write_json(folder / "stage.json", {"plan": key, "tasks": tasks})
    make_folder(folder / "reports")
    if not (folder / SLURM_JOBS).exists():  # running jobs own the unfinished files
        sweep(folder, ".*.part")
    for rank in range(tasks):
        marker = _marker(folder, rank)
        if marker.exists() and (lost := _lost(folder, rank)) is not None:
            say(f"{name}: {folder / lost} is missing or has changed; its task runs again")
            marker.unlink()


def remove(folder: Path) -> None:
    """Delete the folder of a stage, or a folder of such folders, and cancel the Slurm jobs of these stages.

    If the process is killed halfway, the rest counts as not started. If it is a link, only the link is deleted.
    """
    if folder.is_symlink():
        folder.unlink()
        return
    for jobs in list(folder.rglob(SLURM_JOBS)):
        executors.load("slurm").cancel(jobs.parent)
    for stage_file in list(folder.rglob("stage.json")):
        stage_file.unlink()
    if folder.exists():
        shutil.rmtree(folder)


def _plan_of(folder: Path) -> _Plan:
    """Return what a stage's folder is for; an empty plan if the folder is new or its ``stage.json`` is damaged."""
    try:
        return read_json(folder / "stage.json", _Plan)
    except InputError:
        return _Plan("")


def progress(folder: Path) -> tuple[int, int]:
    """Return how many tasks the stage of a folder has, and how many of them are done; (0, 0) if it has not begun."""
    completions = folder / "executor" / "completions"
    return _plan_of(folder).tasks, len(list(completions.iterdir())) if completions.is_dir() else 0


def _report(rank: int) -> str:
    """Return the path of a task's report within its stage's folder."""
    return f"reports/{rank:05d}.json"


def _marker(folder: Path, rank: int) -> Path:
    """Return the file with which datatrove marks a finished task."""
    return folder / "executor" / "completions" / f"{rank:05d}"


def _lost(folder: Path, rank: int) -> str | None:
    """Return the first missing or changed file of a finished task, or None. The report itself is checked first."""
    try:
        files = read_json(folder / _report(rank), _Done).files
    except InputError:
        return _report(rank)
    for name, checksum in files.items():
        try:
            if _checksum(folder / name) != checksum:
                return name
        except OSError:
            return name
    return None


def lost(folder: Path) -> Path | None:
    """Return the first file of a finished stage that is missing or has changed, or None."""
    if not (plan := _plan_of(folder)).plan:
        return folder / "stage.json"
    for rank in range(plan.tasks):
        if not (marker := _marker(folder, rank)).exists():
            return marker
        if (name := _lost(folder, rank)) is not None:
            return folder / name
    return None


def _checksum(path: Path) -> str:
    """Return a checksum of a file; for Parquet, whose pages have checksums of their own, of its size and footer.

    Raises FileNotFoundError if it is missing, or if a link or a device is in its place.
    """
    if path.is_symlink() or not path.is_file():
        raise FileNotFoundError(path)
    with path.open("rb") as file:
        size = ""
        if path.suffix == ".parquet":
            size = f"{file.seek(-8, os.SEEK_END) + 8} "
            file.seek(-int.from_bytes(file.read(4), "little") - 8, os.SEEK_END)
        return size + hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=8)).hexdigest()


def _run_task(
    _data: object,
    rank: int,
    _world_size: int,
    *,
    run: Callable[[T, Path], Report],
    tasks: list[T],
    folder: Path,
    key: str,
) -> None:
    """Run one task and write its report; datatrove passes the positional arguments."""
    with measured() as cost, _little_garbage_collection():
        try:
            report = run(tasks[rank], folder)
        except Exception as error:
            if not _can_be_sent(error):
                raise RuntimeError(traceback.format_exc()) from None
            raise
    wrote = sorted(report.pop("wrote", ()))
    report |= {"run": cost, "files": {file.relative_to(folder).as_posix(): _checksum(file) for file in wrote}}
    if _plan_of(folder).plan != key:  # the command that started this task was killed, and another one took the folder
        raise InputError(f"{folder}: another command has started this stage again, with other dumps or options")
    write_json(folder / _report(rank), report)


@contextlib.contextmanager
def _little_garbage_collection() -> Iterator[None]:
    """Collect garbage rarely, and never among the modules that are loaded."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(*_GARBAGE_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def _can_be_sent(error: Exception) -> bool:
    """Return whether another process can receive an error; otherwise that would look like a killed worker."""
    try:
        pickle.dumps(copy.copy(error))  # unpickling calls the constructor as copying does
    except Exception:  # noqa: BLE001 - a constructor may raise anything
        return False
    return True


def total(reports: Sequence[Report], *path: str) -> dict[str, Any]:
    """Return the sum of the nested counters at ``path`` over all reports, with sorted keys."""
    counts: dict[str, Any] = {}
    for report in reports:
        _add(counts, functools.reduce(lambda part, key: part.get(key, {}), path, report))
    return counts


def _add(counts: dict[str, Any], more: dict[str, Any]) -> None:
    for key, value in more.items():
        if isinstance(value, dict):
            _add(counts.setdefault(key, {}), value)
        else:
            counts[key] = counts.get(key, 0) + value
    for key in sorted(counts):
        counts[key] = counts.pop(key)
