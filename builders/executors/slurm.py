"""``--engine slurm``: tasks in job arrays on a cluster of Slurm, whose nodes share the storage of the work folder."""

from __future__ import annotations

import contextlib
import os
import pickle
import re
import secrets
import shlex
import shutil
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.base.json_files import fingerprint, read_json, write_json
from temporalwiki.base.terminal import say
from temporalwiki.builders import slurm
from temporalwiki.builders.executors import SLURM_JOBS, Step
from temporalwiki.builders.executors.executor import StageExecutor
from temporalwiki.builders.machine import Machine

ATTEMPTS = 4  # to run a task whose job ends without a report
LARGEST_ARRAY = 1000  # tasks; Slurm's default limit
POLL = 10.0  # seconds between two looks at the queue; the first ones are sooner
_FULL_QUEUE = re.compile(r"submit limit|MaxSubmit|MaxJob|temporarily|timed out|unable to contact", re.I)
_TOO_LARGE = re.compile(r"array specification", re.I)
_ERRORS = (UsageError, InputError, OSError)  # that a job passes on as they are


class _Jobs(msgspec.Struct):
    """What ``slurm_jobs.json`` says: the jobs that a command submitted for a stage."""

    jobs: dict[str, list[int]] = {}  # id of an array -> the tasks that it runs
    clusters: list[str] = []  # empty: the local one
    cancelled: bool = False


class _Error(msgspec.Struct):
    """The error of a task, as its job reports it."""

    kind: str
    text: str
    traceback: str


def default_jobs() -> int:
    """Return how many jobs may run at once by default. Slurm runs fewer if it has no room for them."""
    return 100


def most_memory() -> int:
    """Return no limit: only Slurm knows the memory of its nodes."""
    return sys.maxsize


def cancel(folder: Path) -> None:
    """End the jobs that a killed command left with Slurm for a stage. Raises InputError if they do not end."""
    name = _job_name(folder)
    try:
        slurm.check_installed(("scancel", "squeue"))
    except UsageError as error:
        raise UsageError(
            f"{folder}: Slurm jobs of an earlier command, {name}, may still write here; cancel them where they were "
            f"submitted, then delete {SLURM_JOBS} here ({error})"
        ) from None
    clusters = read_json(folder / SLURM_JOBS, _Jobs).clusters
    slurm.cancel(name, clusters)
    deadline = time.monotonic() + 2 * slurm.GRACE
    while slurm.queued(name, clusters) != set():
        if time.monotonic() > deadline:
            raise InputError(f"{folder}: the Slurm jobs {name} of an earlier command do not end: cancel them first")
        time.sleep(min(POLL, 2.0))
    (folder / SLURM_JOBS).unlink(missing_ok=True)


def _job_name(folder: Path) -> str:
    """Return the name of a stage's jobs, which no other stage's jobs have."""
    return f"temporalwiki-{fingerprint(str(folder.absolute()))}"


@dataclass
class _ArrayJob:
    """What every job of an array runs: the task at its index. datatrove unpickles it and calls ``run``."""

    executor: Executor
    ranks: list[int]

    def run(self) -> None:
        rank = self.ranks[int(os.environ["SLURM_ARRAY_TASK_ID"])]
        if self.executor.is_rank_completed(rank):  # Slurm requeued the job after its task
            return
        try:
            self.executor.run_task(rank)
        except Exception as error:
            kind = next((kind.__name__ for kind in _ERRORS if isinstance(error, kind)), "")
            report = {"kind": kind, "text": str(error), "traceback": traceback.format_exc()}
            write_json(self.executor.folder / "errors" / f"{rank:05d}.json", report)
            raise


class Executor(StageExecutor):
    """Submits tasks as job arrays, waits for them, and submits the tasks of lost jobs again.

    Partition, account and time limit come from Slurm's variables SBATCH_PARTITION, SBATCH_ACCOUNT, SBATCH_TIMELIMIT
    and so on, or from the cluster's defaults.
    """

    def __init__(self, name: str, step: Step, tasks: int, machine: Machine, folder: Path) -> None:
        super().__init__(name, step, tasks, machine, folder)
        self.job_name = _job_name(folder)
        self.largest_array = LARGEST_ARRAY
        self.jobs: dict[str, list[int]] = {}  # id of an array -> the tasks that it runs
        self.job_of: dict[int, str] = {}  # task -> id of its job
        chosen = os.environ.get("SBATCH_CLUSTERS") or os.environ.get("SLURM_CLUSTERS") or ""
        self.clusters = [cluster for cluster in chosen.split(",") if cluster]  # empty: the local one

    def run(self, done: Callable[[int], None]) -> None:
        """Run the tasks that are not done yet.

        An InputError, UsageError or OSError of a task is raised here, and any other error as a RuntimeError. Raises
        UsageError if Slurm is not installed, and InputError if Slurm refuses a job or loses it again and again.
        """
        slurm.check_installed()
        shutil.rmtree(self.folder / "errors", ignore_errors=True)
        for name in ("errors", "executor", "slurm_logs"):
            (self.folder / name).mkdir(exist_ok=True)
        self._take_over()
        try:
            self._wait(done)
        except BaseException:
            slurm.cancel(self.job_name, self.clusters)
            with contextlib.suppress(InputError, OSError):  # the disk may be full; the first error says more
                self._write_jobs(cancelled=True)
            raise
        (self.folder / SLURM_JOBS).unlink(missing_ok=True)
        for file in (self.folder / "executor").glob("array-*"):
            file.unlink()

    def _write_jobs(self, cancelled: bool = False) -> None:
        write_json(self.folder / SLURM_JOBS, {"jobs": self.jobs, "clusters": self.clusters, "cancelled": cancelled})

    def _take_over(self) -> None:
        """Continue with the jobs of a killed command; cancel them if it did not record all of them."""
        if not (self.folder / SLURM_JOBS).exists():
            return
        earlier = read_json(self.folder / SLURM_JOBS, _Jobs)
        queued = slurm.queued(self.job_name, earlier.clusters)
        if earlier.cancelled or queued is None or {job.partition("_")[0] for job in queued} - earlier.jobs.keys():
            cancel(self.folder)
        else:
            for job, ranks in earlier.jobs.items():
                self._record(job, ranks)
            self.clusters = sorted({*self.clusters, *earlier.clusters})

    def _record(self, job: str, ranks: list[int]) -> None:
        self.jobs[job] = ranks
        self.job_of |= {rank: f"{job}_{index}" for index, rank in enumerate(ranks)}

    def _wait(self, done: Callable[[int], None]) -> None:
        """Submit every task that is not with Slurm, again and again, until all are done."""
        open_ranks = self.get_incomplete_ranks(range(self.tasks))
        missed: dict[int, float] = {}  # task -> when its job was first missing in the queue
        losses: Counter[int] = Counter()
        told: set[str] = set()
        pause = 1.0
        while True:
            # ask Slurm before looking at the markers: a job that ends in between is not lost
            queued = slurm.queued(self.job_name, self.clusters)
            left = self.get_incomplete_ranks(open_ranks)
            for rank in sorted(set(open_ranks) - set(left)):
                done(rank)
            open_ranks = left
            self._raise_errors_of_jobs()
            if not left:
                return
            for rank in left:
                if rank not in self.job_of or queued is None or self.job_of[rank] in queued:
                    missed.pop(rank, None)
                elif time.monotonic() - missed.setdefault(rank, time.monotonic()) >= slurm.GRACE:
                    losses[rank] += 1
                    if losses[rank] == ATTEMPTS:
                        raise self._lost(rank)
                    del self.job_of[rank], missed[rank]
            refused = self._submit([rank for rank in left if rank not in self.job_of])
            for problem, text in (
                (queued is None, "squeue does not answer, waiting"),
                (refused, f"Slurm takes no more jobs now, waiting: {refused}"),
            ):
                if problem and text[:9] not in told:
                    say(f"{self.name}: {text}")
                    told.add(text[:9])
            time.sleep(min(pause, POLL))
            pause *= 1.5

    def _submit(self, ranks: list[int]) -> str:
        """Submit tasks as arrays; return why Slurm did not take all of them, or "".

        An array that keeps all workers busy makes the next one wait for it.
        """
        busy, largest = "", self.largest_array
        while ranks:
            part = ranks[:largest]
            pickled = self.folder / "executor" / f"array-{secrets.token_hex(4)}.pickle"
            pickled.write_bytes(pickle.dumps(_ArrayJob(self, part)))
            # before sbatch: if this command is killed now, the next one finds the jobs by their name
            self._write_jobs()
            logs = str(self.folder / "slurm_logs").replace("%", "%%") + "/%A_%a.out"
            arguments = [f"--dependency=afterany:{busy}"] if busy else []
            arguments += [f"--array=0-{len(part) - 1}%{self.workers}", f"--output={logs}"]
            try:
                job, cluster = slurm.submit(self._script(pickled), f"--job-name={self.job_name}", *arguments)
            except slurm.RefusedError as error:
                pickled.unlink()
                too_large = _TOO_LARGE.search(str(error)) is not None
                if not too_large and not _FULL_QUEUE.search(str(error)):
                    raise InputError(f"{self.name}: Slurm refused the job: {error}") from None
                if len(part) == 1:
                    return str(error)
                largest = len(part) // 2
                if too_large:  # a full queue has room again later, a limit on arrays stays
                    self.largest_array = largest
                continue
            if cluster and cluster not in self.clusters:
                self.clusters.append(cluster)
            self._record(job, part)
            self._write_jobs()
            busy = job if len(part) >= self.workers else busy
            ranks = ranks[len(part) :]
        return ""

    def _script(self, pickled: Path) -> str:
        # -P: the current folder holds no packages
        program = [sys.executable, "-P", "-m", "datatrove.tools.launch_pickled_pipeline", str(pickled)]
        return (
            f"#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --cpus-per-task=1\n#SBATCH --requeue\n"
            f"#SBATCH --mem={self.machine.memory_of_a_job >> 20}M\nexport PYTHONUNBUFFERED=TRUE\n"
            f"exec {shlex.join(program)}\n"
        )

    def _raise_errors_of_jobs(self) -> None:
        for path in sorted((self.folder / "errors").glob("*.json")):
            error = read_json(path, _Error)
            for kind in _ERRORS:
                if error.kind == kind.__name__:
                    raise kind(error.text)
            raise RuntimeError(f"{self.name}, task {int(path.stem)}:\n{error.traceback}")

    def _lost(self, rank: int) -> InputError:
        log = self.folder / "slurm_logs" / f"{self.job_of[rank]}.out"
        hint = f"see {log}" if log.exists() else f"do all nodes share the storage of {self.folder}?"
        lost = f"the job of task {rank} was lost {ATTEMPTS} times (out of memory or time?)"
        more = "with more --memory, fewer --jobs or a higher SBATCH_TIMELIMIT if it happens again"
        return InputError(f"{self.name}: {lost}; {hint}; run the same command again to continue, {more}")
