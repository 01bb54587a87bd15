"""How a stage runs: independent tasks on datatrove, each leaving a report when it is done.

A stage is a plain function ``run(task, folder) -> report`` over a list of tasks. Its folder holds what the tasks
write, one JSON report a task, and datatrove's completion markers: a rerun skips what is complete.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import json
import multiprocessing
import os
import resource
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

import loguru
from datatrove.executor.local import LocalPipelineExecutor
from filelock import FileLock, Timeout
from tqdm import tqdm

from temporalwiki.builders.errors import InputError

Report = dict[str, Any]
T = TypeVar("T")

# The executor's own log lines would drown the progress; its per-task files and stats are kept.
loguru.logger.disable("datatrove")


def fingerprint(*what: Any) -> str:
    """A short name for content: the same for equal JSON, and so for equal inputs and options."""
    text = json.dumps(what, sort_keys=True, default=_plain)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no fingerprint")


def write_json(path: Path, data: Any) -> None:
    """Write JSON whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as part:
        part.write_text(json.dumps(data, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A name to write under, which becomes ``path`` when the block ends well and vanishes when it does not."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with room_for(path):
            yield part
            with part.open("rb") as file:
                os.fsync(file.fileno())
            part.replace(path)
    finally:
        part.unlink(missing_ok=True)


@contextlib.contextmanager
def room_for(path: Path) -> Iterator[None]:
    """Say which file did not fit where the disk is full; libraries name it rarely."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise InputError(f"{path}: no space left on the disk; free some and run the same command again") from None


@contextlib.contextmanager
def only_one(folder: Path, what: str) -> Iterator[None]:
    """Hold ``folder`` for this process alone; raise InputError if another one is at work in it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    lock = folder.with_name(f".{folder.name}.lock")
    lock.touch()  # a folder that cannot be written to says so here
    try:
        with FileLock(lock, timeout=0):
            try:
                yield
            finally:
                # while it is held: nobody waits for it, and whoever comes next makes a new one
                lock.unlink(missing_ok=True)
    except Timeout:
        raise InputError(f"{folder}: another {what} is at work here; wait for it, or use another folder") from None


def run_stage(
    name: str,
    run: Callable[[T, Path], Report],
    tasks: Sequence[T],
    folder: Path,
    jobs: int = 1,
    sizes: Sequence[int] | None = None,
    plan: Any = None,
) -> list[Report]:
    """Run ``run`` over ``tasks`` with ``jobs`` processes and return the tasks' reports in order.

    ``folder`` is started afresh if it was made by another ``plan``, and continued otherwise; the plan is the tasks
    themselves unless it is given. ``sizes`` (bytes a task) weigh the progress, which ``name`` heads. Raises what a
    task raised, or InputError where a worker was killed.
    """
    key = fingerprint(list(tasks) if plan is None else plan)
    stage_file = folder / "stage.json"
    if _planned(stage_file) != key:
        shutil.rmtree(folder, ignore_errors=True)
        write_json(stage_file, {"plan": key, "tasks": len(tasks)})
    (folder / "reports").mkdir(exist_ok=True)
    for part in folder.glob(".*.part"):  # of a run that was killed
        part.unlink(missing_ok=True)
    if tasks:
        step = functools.partial(_run_task, run=run, tasks=list(tasks), folder=folder)
        weights = list(sizes) if sizes else [1] * len(tasks)
        _Executor(step, jobs, folder, Progress(name, weights, "B" if sizes else "task")).run()
    return [json.loads((folder / "reports" / f"{rank:05d}.json").read_text("utf-8")) for rank in range(len(tasks))]


def _planned(stage_file: Path) -> str | None:
    """The plan that a stage's folder was made by; None where that cannot be told."""
    try:
        return str(json.loads(stage_file.read_text("utf-8"))["plan"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _run_task(
    _data: object,
    rank: int,
    _world_size: int,
    *,
    run: Callable[[T, Path], Report],
    tasks: list[T],
    folder: Path,
) -> None:
    begun, cpu = time.perf_counter(), time.process_time()
    report = run(tasks[rank], folder)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    report["run"] = {
        "seconds": round(time.perf_counter() - begun, 3),
        "cpu_seconds": round(time.process_time() - cpu, 3),
        "peak_memory_mb": usage.ru_maxrss // 1024,
    }
    write_json(folder / "reports" / f"{rank:05d}.json", report)


class _Executor(LocalPipelineExecutor):  # type: ignore[misc]
    """datatrove's local executor on a process pool that notices a killed worker.

    ``multiprocessing.Pool``, which datatrove uses, waits for ever when one of its workers is killed.
    """

    def __init__(self, step: Callable[..., None], jobs: int, folder: Path, progress: Progress) -> None:
        tasks = len(progress.weights)
        super().__init__([step], tasks=tasks, workers=jobs, logging_dir=str(folder / "executor"))
        self.progress = progress

    def run(self) -> None:
        ranks = self.get_incomplete_ranks(range(self.tasks))
        with self.progress.shown(skipped=set(range(self.tasks)) - set(ranks)):
            if self.workers == 1:
                for rank in ranks:
                    self._run_for_rank(rank, rank)
                    self.progress.done(rank)
            elif ranks:
                self._run_in_pool(ranks)

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "progress"}

    def _run_in_pool(self, ranks: list[int]) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["temporalwiki.builders.build"])
        pool = ProcessPoolExecutor(min(self.workers, len(ranks)), context, initializer=_die_with_parent)
        try:
            # Ctrl-C is for the command, which ends its workers: they are born deaf to it
            mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            futures: dict[Future[Any], int] = {pool.submit(self._run_for_rank, rank, rank): rank for rank in ranks}
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            pending = set(futures)
            while pending:
                finished, pending = wait(pending, return_when="FIRST_COMPLETED")
                for future in sorted(finished, key=futures.__getitem__):
                    future.result()
                    self.progress.done(futures[future])
        except BrokenProcessPool:
            raise InputError(
                f"{self.progress.name}: a worker process was killed (out of memory?); "
                "run the same command again to go on, with fewer --jobs if it happens again"
            ) from None
        finally:
            for worker in list((pool._processes or {}).values()):
                worker.terminate()
            pool.shutdown(cancel_futures=True)


def _die_with_parent() -> None:
    """End this worker when the command that started it is gone, so that nobody writes beside its rerun."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class Progress:
    """A bar with rate and time left on a terminal, one plain line a stage elsewhere."""

    def __init__(self, name: str, weights: list[int], unit: str) -> None:
        self.name, self.weights, self.unit = name, weights, unit

    @contextlib.contextmanager
    def shown(self, skipped: set[int]) -> Iterator[None]:
        begun = time.perf_counter()
        self.bar = tqdm(
            desc=self.name,
            total=sum(self.weights),
            initial=sum(self.weights[rank] for rank in skipped),
            unit=self.unit,
            unit_scale=self.unit == "B",
            disable=not sys.stderr.isatty(),
        )
        with self.bar:
            yield
        if self.bar.disable:
            kept = f", {len(skipped)} kept from before" if skipped else ""
            took = time.perf_counter() - begun
            tasks = f"{len(self.weights)} task{'s' if len(self.weights) > 1 else ''}"
            print(f"{self.name}: {tasks}{kept}, {took:.1f} s", file=sys.stderr)

    def done(self, rank: int) -> None:
        self.bar.update(self.weights[rank])


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
