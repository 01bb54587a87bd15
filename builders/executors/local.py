"""``--engine local``: tasks on processes of this machine."""

from __future__ import annotations

import contextlib
import multiprocessing.util
import os
import signal
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from datatrove.executor.local import LocalPipelineExecutor

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.builders.executors import Step
from temporalwiki.builders.machine import Machine

_GROUPS, _OWN_GROUPS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
_SOCKET = 107  # bytes of a socket's path that Linux takes
_executor: Executor  # in a worker, whose tasks it runs


def default_jobs() -> int:
    """All cores that this process may use, as far as there is 1 GB of memory for each."""
    return max(1, min(len(os.sched_getaffinity(0)), most_memory() >> 30))


def most_memory() -> int:
    """Bytes of memory that there are here, or that the control groups of this process may take if that is less."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for line in _OWN_GROUPS.read_text().splitlines() if _OWN_GROUPS.exists() else []:
        _, controllers, name = line.split(":", 2)
        if controllers == "":  # of version 2
            top, limit = _GROUPS, "memory.max"
        elif "memory" in controllers.split(","):
            top, limit = _GROUPS / "memory", "memory.limit_in_bytes"
        else:
            continue
        own = top / name.lstrip("/")
        for group in (own, *own.parents):  # in a container the files are those of its own group, whatever its name
            with contextlib.suppress(OSError, ValueError):  # "max" is no limit
                found.append(int((group / limit).read_text()))
    return min(found)


class Executor(LocalPipelineExecutor):  # type: ignore[misc]
    """datatrove's local executor on a process pool that notices a killed worker.

    ``multiprocessing.Pool``, which datatrove uses, waits for ever when one of its workers is killed.
    """

    def __init__(self, name: str, step: Step, tasks: int, machine: Machine, folder: Path) -> None:
        super().__init__([step], tasks=tasks, workers=machine.jobs, logging_dir=str(folder / "executor"))
        self.name = name

    def run(self, done: Callable[[int], None]) -> None:
        """Run the tasks that are not done yet.

        Raises InputError where a worker was killed, UsageError where TMPDIR is too long, and what a task raised.
        """
        ranks = self.get_incomplete_ranks(range(self.tasks))
        if self.workers == 1:
            for rank in ranks:
                self.do(rank)
                done(rank)
        else:
            self._run_in_pool(ranks, done)

    def do(self, rank: int) -> None:
        """Run a task here and mark it as done.

        datatrove's way begins a log for it first and writes statistics then, all empty, which takes longer than the
        shortest tasks.
        """
        [step] = self.pipeline
        step(None, rank, self.tasks)
        self.mark_rank_as_completed(rank)

    def _run_in_pool(self, ranks: list[int], done: Callable[[int], None]) -> None:
        socket = Path(multiprocessing.util.get_temp_dir(), "listener-12345678")
        if len(os.fsencode(socket)) > _SOCKET:
            raise UsageError(
                f"{tempfile.gettempdir()}: too long a path for the sockets by which processes find one another; give "
                "a shorter folder in TMPDIR, or --jobs 1"
            )
        context = multiprocessing.get_context("forkserver")
        # pyarrow imports pandas if it is there: better once than in the workers of every stage
        context.set_forkserver_preload(["temporalwiki.builders.build", __name__, "pandas"])
        # all tasks go to a worker once, not with each of them
        pool = ProcessPoolExecutor(min(self.workers, len(ranks)), context, initializer=_begin, initargs=(self,))
        try:
            # Ctrl-C is for the command, which ends its workers: they are born deaf to it
            mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:
                futures: dict[Future[Any], int] = {pool.submit(_run, rank): rank for rank in ranks}
            except (EOFError, ConnectionError):  # the process that begins them was killed
                raise BrokenProcessPool from None
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            pending = set(futures)
            while pending:
                finished, pending = wait(pending, return_when="FIRST_COMPLETED")
                for future in sorted(finished, key=futures.__getitem__):
                    future.result()
                    done(futures[future])
        except BrokenProcessPool:
            raise InputError(
                f"{self.name}: a worker process was killed (out of memory?); "
                "run the same command again to go on, with fewer --jobs if it happens again"
            ) from None
        finally:
            for worker in list((pool._processes or {}).values()):
                worker.terminate()
            pool.shutdown(cancel_futures=True)


def _begin(executor: Executor) -> None:
    """Begin as a worker, which ends when the command that started it is gone: nobody writes beside its rerun."""
    global _executor
    _executor = executor
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _run(rank: int) -> None:
    _executor.do(rank)
