"""``--engine local``: tasks on processes of this machine."""

from __future__ import annotations

import contextlib
import multiprocessing.util
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import resource_tracker
from pathlib import Path
from types import ModuleType
from typing import Any

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.base.interrupts import POLL, held_interrupts
from temporalwiki.builders.executors.executor import StageExecutor

_GROUPS, _OWN_GROUPS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
_LONGEST_SOCKET = 107  # bytes of a socket's path that Linux accepts
_executor: Executor  # in a worker


def default_jobs() -> int:
    """Return the number of cores that this process may use, or of gigabytes of memory if that is less."""
    return max(1, min(len(os.sched_getaffinity(0)), most_memory() >> 30))


def most_memory() -> int:
    """Return the bytes of memory of this machine, or the limit of this process's control groups if that is less."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for line in _OWN_GROUPS.read_text().splitlines() if _OWN_GROUPS.exists() else []:
        _, controllers, name = line.split(":", 2)
        if controllers == "":  # version 2
            top, limit = _GROUPS, "memory.max"
        elif "memory" in controllers.split(","):
            top, limit = _GROUPS / "memory", "memory.limit_in_bytes"
        else:
            continue
        own = top / name.lstrip("/")
        for group in (own, *own.parents):  # a container shows its own group at the top, under any name
            with contextlib.suppress(OSError, ValueError):  # "max" means no limit
                found.append(int((group / limit).read_text()))
    return min(found)


class Executor(StageExecutor):
    """Runs tasks in this process, or in a process pool that notices a killed worker.

    ``multiprocessing.Pool``, which datatrove uses, waits forever if one of its workers is killed.
    """

    def run(self, done: Callable[[int], None]) -> None:
        """Run the tasks that are not done yet.

        Raises what a task raised, InputError if a worker was killed, and UsageError if TMPDIR is too long.
        """
        ranks = self.get_incomplete_ranks(range(self.tasks))
        if self.workers == 1 or len(ranks) == 1:  # to start a process takes longer than most of such stages
            for rank in ranks:
                self.run_task(rank)
                done(rank)
        else:
            with held_interrupts() as check_interrupt:
                self._run_in_pool(ranks, done, check_interrupt)

    def _run_in_pool(self, ranks: list[int], done: Callable[[int], None], check_interrupt: Callable[[], None]) -> None:
        socket = Path(multiprocessing.util.get_temp_dir(), "listener-12345678")
        if len(os.fsencode(socket)) > _LONGEST_SOCKET:
            where = tempfile.gettempdir()
            raise UsageError(f"{where}: too long a path for sockets; give a shorter folder in TMPDIR, or --jobs 1")
        context = multiprocessing.get_context("forkserver")
        # pyarrow imports pandas if it is installed: once here is faster than in the workers of every stage
        context.set_forkserver_preload(["temporalwiki.builders.build", __name__, "pandas"])
        # each worker gets all tasks once, instead of one with each call
        pool = ProcessPoolExecutor(min(self.workers, len(ranks)), context, initializer=_begin, initargs=(self,))
        try:
            resource_tracker.ensure_running()  # it unblocks the signal when it starts
            # workers inherit the blocked signal: on Ctrl-C this process ends them
            mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:
                with _without_main():
                    futures: dict[Future[Any], int] = {pool.submit(_run, rank): rank for rank in ranks}
            except (EOFError, OSError) as error:  # a worker, or the process that starts workers, was killed
                if isinstance(error, EOFError | ConnectionError) or str(error) == "handle is closed":
                    raise BrokenProcessPool from None
                raise
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            pending = set(futures)
            while pending:
                check_interrupt()
                finished, pending = wait(pending, POLL, FIRST_COMPLETED)
                for future in sorted(finished, key=futures.__getitem__):
                    future.result()
                    done(futures[future])
        except BrokenProcessPool:
            again = "run the same command again to continue, with fewer --jobs if it happens again"
            raise InputError(f"{self.name}: a worker process was killed (out of memory?); {again}") from None
        finally:
            for worker in list((pool._processes or {}).values()):
                worker.terminate()
            pool.shutdown(cancel_futures=True)


@contextlib.contextmanager
def _without_main() -> Iterator[None]:
    """Hide the program's main module from workers, which would run it again: in a script, that is the whole build."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _begin(executor: Executor) -> None:
    """Initialize a worker. It ends when its command is gone, so that it never writes next to a rerun."""
    global _executor
    _executor = executor
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _run(rank: int) -> None:
    _executor.run_task(rank)
