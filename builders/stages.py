"""How a stage runs: independent tasks on datatrove, each leaving a report when it is done.

A stage is a plain function ``run(task, folder) -> report`` over a list of tasks. Its folder holds what the tasks
write, one JSON report a task, and datatrove's completion markers: a rerun skips what is complete, whichever engine
did it. A task is complete whose marker, report and files, which the report lists with checksums, are all there.
"""

from __future__ import annotations

import contextlib
import copy
import ctypes
import functools
import gc
import hashlib
import json
import os
import pickle
import resource
import shutil
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import loguru

from temporalwiki.base.errors import InputError
from temporalwiki.base.files import _wrote, sweep
from temporalwiki.base.json_files import fingerprint, write_json
from temporalwiki.base.progress import Progress
from temporalwiki.builders import executors
from temporalwiki.builders.executors import SLURM_JOBS
from temporalwiki.builders.machine import Machine

_COLLECTIONS = 50_000, 20, 100  # thresholds of Python's garbage collector in a task

Report = dict[str, Any]
T = TypeVar("T")

# The executor's own log lines would drown the progress; its per-task files and stats are kept.
loguru.logger.disable("datatrove")


def checksums_in(folder: Path, files: Iterable[Path]) -> dict[str, str]:
    """What ``first_lost`` compares of those of ``files`` that are in a folder, by their names in it."""
    there = sorted(file for file in files if file.is_relative_to(folder) and file.exists())
    return {file.relative_to(folder).as_posix(): _checksum(file) for file in there}


def first_lost(folder: Path, checksums: Mapping[str, str]) -> str | None:
    """The first of the files that ``checksums_in`` named that is gone or another one now; None if there is none."""
    for name, checksum in checksums.items():
        try:
            if _checksum(folder / name) != checksum:
                return name
        except OSError:
            return name
    return None


def _checksum(path: Path) -> str:
    """Of all bytes of a file; of a Parquet file, whose pages have their own, of its size and what comes after them."""
    with path.open("rb") as file:
        size = ""
        if path.suffix == ".parquet":
            size = f"{file.seek(-8, os.SEEK_END) + 8} "
            file.seek(-int.from_bytes(file.read(4), "little") - 8, os.SEEK_END)
        return size + hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=8)).hexdigest()


def run_stage(
    name: str,
    run: Callable[[T, Path], Report],
    tasks: Sequence[T],
    folder: Path,
    machine: Machine | None = None,
    sizes: Sequence[int] | None = None,
    plan: Any = None,
) -> list[Report]:
    """Run ``run`` over ``tasks`` on ``machine`` and return the tasks' reports in order.

    ``folder`` is started afresh if it was made by another ``plan``, and continued otherwise; the plan is the tasks
    themselves unless it is given. ``sizes`` (bytes a task) weigh the progress, which ``name`` heads. What a task
    writes aside lies in the folder under a hidden name that ends in .part, until it is whole. In a report, "files" are
    those that the task wrote here, with checksums, "run" says what it took, and in "kept" whether an earlier run had
    done it: if something of it was lost since, it is done again. Raises what a task raised, or InputError where a
    worker was killed.
    """
    machine = machine or Machine()
    key = fingerprint(list(tasks) if plan is None else plan)
    stage_file = folder / "stage.json"
    planned = _planned(stage_file)
    if (folder / SLURM_JOBS).exists() and machine.engine != "slurm":
        # of a command that was killed: nobody shall write here any more
        executors.load("slurm").cancel(folder)
    if planned != key:
        remove(folder)
        write_json(stage_file, {"plan": key, "tasks": len(tasks)})
    (folder / "reports").mkdir(exist_ok=True)
    if not (folder / SLURM_JOBS).exists():  # those are at work
        sweep(folder)
    for rank in range(len(tasks)):
        marker = folder / "executor" / "completions" / f"{rank:05d}"
        if marker.exists() and (lost := _lost(folder, rank)) is not None:
            print(f"{name}: {folder / lost} is not as it was left; its task is done again", file=sys.stderr)
            marker.unlink()
    ranks: list[int] = []
    if tasks:
        step = functools.partial(_run_task, run=run, tasks=list(tasks), folder=folder, key=key)
        weights = list(sizes) if sizes else [1] * len(tasks)
        executor = executors.load(machine.engine).Executor(name, step, len(tasks), machine, folder)
        ranks = executor.get_incomplete_ranks(range(len(tasks)))
        done = sum(weights) - sum(weights[rank] for rank in ranks)
        if ranks:
            with Progress(name, sum(weights), "B" if sizes else "task", done) as progress:
                executor.run(lambda rank: progress.update(weights[rank]))
            sweep(folder)
    reports = [json.loads((folder / _report(rank)).read_text("utf-8")) for rank in range(len(tasks))]
    for rank, report in enumerate(reports):
        report["run"]["kept"] = rank not in ranks
    return reports


def remove(folder: Path) -> None:
    """Delete a stage's folder, or a folder of such, if it is there; jobs that Slurm still has for it are ended.

    What is left when this is killed counts as not begun.
    """
    for jobs in list(folder.rglob(SLURM_JOBS)):
        executors.load("slurm").cancel(jobs.parent)
    for stage_file in list(folder.rglob("stage.json")):
        stage_file.unlink()
    if folder.exists():
        shutil.rmtree(folder)


def _planned(stage_file: Path) -> str | None:
    """The plan that a stage's folder was made by; None where that cannot be told."""
    try:
        return str(json.loads(stage_file.read_text("utf-8"))["plan"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _report(rank: int) -> str:
    """The report of a task, in its stage's folder."""
    return f"reports/{rank:05d}.json"


def _lost(folder: Path, rank: int) -> str | None:
    """What of a task that is done is not there as it left it: its report, or a file that this lists."""
    try:
        report = json.loads((folder / _report(rank)).read_text("utf-8"))
        return _report(rank) if "run" not in report else first_lost(folder, report["files"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return _report(rank)


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
    _wrote.clear()
    with measured() as took, _few_collections():
        try:
            report = run(tasks[rank], folder)
        except Exception as error:
            if not _travels(error):
                raise RuntimeError(traceback.format_exc()) from None
            raise
    report |= {"run": took, "files": checksums_in(folder, _wrote)}
    if _planned(folder / "stage.json") != key:  # whoever waited for this task is gone, and another took the folder
        raise InputError(f"{folder}: another command has begun this stage anew, with other dumps or options")
    write_json(folder / _report(rank), report)


@contextlib.contextmanager
def _few_collections() -> Iterator[None]:
    """Look for garbage in cycles seldom: tasks make hardly any, and it takes a fifth of align and 2 % of a month."""
    before = gc.get_threshold()
    gc.freeze()  # the modules are none
    gc.set_threshold(*_COLLECTIONS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def _travels(error: Exception) -> bool:
    """Whether an error comes out of another process as it is; one that does not looks there like a killed worker."""
    try:
        pickle.dumps(copy.copy(error))  # a copy is made of what is sent, too
    except Exception:  # noqa: BLE001 - its constructor is anybody's
        return False
    return True


@contextlib.contextmanager
def measured() -> Iterator[dict[str, Any]]:
    """Fill in, when the block ends well, what it took: when it began, its wall and CPU seconds, its peak of memory."""
    took: dict[str, Any] = {}
    give_back_memory()
    began, begun, cpu, children = time.time(), time.perf_counter(), time.process_time(), _cpu_of_children()
    reset = _reset_peak()
    yield took
    took |= {
        "began": round(began, 3),
        "seconds": round(time.perf_counter() - begun, 3),
        "cpu_seconds": round(time.process_time() - cpu + _cpu_of_children() - children, 3),
        "peak_memory_mb": _peak(reset) >> 20,
    }


def _cpu_of_children() -> float:
    """CPU seconds of the processes that this one started and that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def give_back_memory() -> None:
    """Give the kernel what this process has freed: its allocators keep it, each for itself alone."""
    import pyarrow

    pyarrow.default_memory_pool().release_unused()
    with contextlib.suppress(OSError, AttributeError):  # only glibc has it
        ctypes.CDLL(None).malloc_trim(0)


def _reset_peak() -> bool:
    """Let the kernel forget this process's peak of memory: it has run other tasks. False where it does not."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def _peak(reset: bool) -> int:
    """Bytes that this process held at once since it was reset, or else since it began."""
    if reset:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def total(reports: Sequence[Report], *path: str) -> dict[str, Any]:
    """The sum of the (nested) counters at ``path`` in all reports, keys sorted."""
    out: dict[str, Any] = {}
    for report in reports:
        at: Any = report
        for key in path:
            at = at.get(key, {})
        _add(out, at)
    return out


def _add(out: dict[str, Any], more: dict[str, Any]) -> None:
    for key, value in more.items():
        if isinstance(value, dict):
            _add(out.setdefault(key, {}), value)
        else:
            out[key] = out.get(key, 0) + value
    for key in sorted(out):
        out[key] = out.pop(key)
