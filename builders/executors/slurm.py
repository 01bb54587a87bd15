"""``--engine slurm``: a stage is job arrays of Slurm, whose nodes share the storage of the work folder."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import pickle
import re
import secrets
import shlex
import shutil
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from datatrove.executor.slurm import SlurmPipelineExecutor

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.base.json_files import fingerprint, write_json
from temporalwiki.base.progress import say
from temporalwiki.builders.executors import SLURM_JOBS, Step
from temporalwiki.builders.machine import Machine

ATTEMPTS = 4  # a task is submitted as often as this when its job ends without a word
LARGEST_ARRAY = 1000  # tasks; what Slurm takes unless it is told otherwise
POLL = 10.0  # seconds between two looks at the queue, after the first ones
GRACE = 60.0  # seconds after which what a node has written is seen here, whatever the file system
_FULL = re.compile(r"submit limit|MaxSubmit|MaxJob|temporarily|timed out|unable to contact", re.I)
_TOO_LARGE = re.compile(r"array specification", re.I)
_COMMANDS = ("sbatch", "squeue", "scancel")


def default_jobs() -> int:
    """How many jobs run at once; Slurm knows how many there is room for."""
    return 100


def most_memory() -> int:
    """As much as anybody asks for: only Slurm knows what its nodes have."""
    return sys.maxsize


def cancel(folder: Path) -> None:
    """End the jobs that a killed command left with Slurm for a stage. Raises InputError where they do not end."""
    name = _name(folder)
    if missing := [command for command in ("scancel", "squeue") if shutil.which(command) is None]:
        raise UsageError(
            f"{folder}: Slurm jobs of an earlier command, {name}, may write here, and there is no {missing[0]} to end "
            f"them: do it where they were submitted, then delete {SLURM_JOBS} here"
        )
    clusters = _noted(folder)["clusters"]
    _end(name, clusters)
    until = time.monotonic() + 2 * GRACE
    while _alive(name, clusters) != set():
        if time.monotonic() > until:
            raise InputError(f"{folder}: the Slurm jobs {name} of an earlier command do not end: cancel them first")
        time.sleep(min(POLL, 2.0))
    (folder / SLURM_JOBS).unlink(missing_ok=True)


class Executor(SlurmPipelineExecutor):  # type: ignore[misc]
    """datatrove's executor of Slurm that waits for its jobs: what a task raises comes out, a lost one is run again.

    Partition, account and time limit are those of Slurm's own variables SBATCH_PARTITION, SBATCH_ACCOUNT,
    SBATCH_TIMELIMIT and so on, or the cluster's defaults.
    """

    def __init__(self, name: str, step: Step, tasks: int, machine: Machine, folder: Path) -> None:
        super().__init__(
            [step],
            tasks=tasks,
            time="",
            partition="",
            qos="",
            workers=machine.jobs,
            job_name=_name(folder),
            logging_dir=str(folder / "executor"),
        )
        self.memory, self.name, self.folder = machine.memory_of_a_job, name, folder
        self.largest_array = LARGEST_ARRAY
        self.jobs: dict[str, list[int]] = {}  # id of an array -> the tasks of its jobs
        chosen = os.environ.get("SBATCH_CLUSTERS") or os.environ.get("SLURM_CLUSTERS") or ""
        self.clusters = [cluster for cluster in chosen.split(",") if cluster]  # none: the one that is here
        self.ranks: list[int] | None = None  # the same, in a job

    def get_sbatch_args(self, max_array: int = 1) -> dict[str, Any]:
        """What the script asks for; the variables SBATCH_* go before it, and the arguments of sbatch before them."""
        memory = f"{self.memory >> 20}M"
        return {"nodes": 1, "cpus-per-task": 1, "mem": memory, "requeue": ""}

    def run(self, done: Callable[[int], None] = lambda rank: None) -> None:
        """Run the tasks that are not done yet. Raises UsageError where a job cannot be asked for, InputError where a
        task failed.
        """
        if self.ranks is not None:
            self._run_in_job(self.ranks[int(os.environ["SLURM_ARRAY_TASK_ID"])])
            return
        if missing := [command for command in _COMMANDS if shutil.which(command) is None]:
            raise UsageError(f"there is no {missing[0]} here: run --engine slurm where jobs are submitted to Slurm")
        shutil.rmtree(self.folder / "errors", ignore_errors=True)
        for name in ("errors", "executor", "slurm_logs"):
            (self.folder / name).mkdir(exist_ok=True)
        self._take_over()
        try:
            self._wait(done)
        except BaseException:
            _end(self.job_name, self.clusters)
            with contextlib.suppress(InputError, OSError):  # of a full disk, it may be: what was raised says more
                self._note(cancelled=True)
            raise
        (self.folder / SLURM_JOBS).unlink(missing_ok=True)
        for file in (self.folder / "executor").glob("array-*"):
            file.unlink()

    def _run_in_job(self, rank: int) -> None:
        try:
            self._run_for_rank(rank)
        except Exception as error:
            kinds = [kind.__name__ for kind in (UsageError, InputError, OSError) if isinstance(error, kind)]
            told = {"kind": kinds[0] if kinds else "", "text": str(error), "traceback": traceback.format_exc()}
            write_json(self.folder / "errors" / f"{rank:05d}.json", told)
            raise

    def _note(self, cancelled: bool = False) -> None:
        noted = {"jobs": self.jobs, "clusters": self.clusters, "cancelled": cancelled}
        write_json(self.folder / SLURM_JOBS, noted)

    def _take_over(self) -> None:
        """Go on with the jobs of a command that was killed; end those that it did not come to note."""
        if not (self.folder / SLURM_JOBS).exists():
            return
        noted = _noted(self.folder)
        left = _alive(self.job_name, noted["clusters"])
        if noted["cancelled"] or left is None or {job for job, _ in left} - noted["jobs"].keys():
            cancel(self.folder)
        else:
            self.jobs = noted["jobs"]
            self.clusters = sorted({*self.clusters, *noted["clusters"]})

    def _wait(self, done: Callable[[int], None]) -> None:
        """Submit what is not with Slurm until everything is done. Raises what tasks raised."""
        open_ranks = self.get_incomplete_ranks(range(self.tasks))
        place = {rank: (job, index) for job, ranks in self.jobs.items() for index, rank in enumerate(ranks)}
        gone: dict[int, float] = {}  # when its job was first missed
        lost: Counter[int] = Counter()
        said: set[str] = set()
        pause = 1.0
        while True:
            alive = _alive(
                self.job_name, self.clusters
            )  # before looking at what is done: a job that ends meanwhile is not missed
            left = self.get_incomplete_ranks(open_ranks)
            for rank in sorted(set(open_ranks) - set(left)):
                done(rank)
            open_ranks = left
            self._raise_what_was_raised()
            if not left:
                return
            for rank in left:
                if rank not in place or alive is None or place[rank] in alive:
                    gone.pop(rank, None)
                elif time.monotonic() - gone.setdefault(rank, time.monotonic()) >= GRACE:
                    lost[rank] += 1
                    if lost[rank] == ATTEMPTS:
                        raise self._lost(rank, *place[rank])
                    del place[rank], gone[rank]
            refused = self._submit([rank for rank in left if rank not in place], place)
            for text in (
                "squeue does not answer, waiting" if alive is None else "",
                f"Slurm takes no more jobs now, waiting: {refused}" if refused else "",
            ):
                if text and text[:9] not in said:
                    say(f"{self.name}: {text}")
                    said.add(text[:9])
            time.sleep(min(pause, POLL))
            pause *= 1.5

    def _submit(self, ranks: list[int], place: dict[int, tuple[str, int]]) -> str:
        """Submit tasks as arrays and note where they are; return why some were not taken.

        An array that keeps all workers busy is waited for by the next one.
        """
        before, most = "", self.largest_array
        while ranks:
            some = ranks[:most]
            ready = self.folder / "executor" / f"array-{secrets.token_hex(4)}"
            self._write_script(ready, some)
            self._note()  # jobs that are not noted, because this command is killed now, are found by their name
            arguments = [f"--dependency=afterany:{before}"] if before else []
            logs = str(self.folder / "slurm_logs").replace("%", "%%") + "/%A_%a.out"
            array = f"0-{len(some) - 1}%{self.workers}"
            # the variables SBATCH_* go before what a script says, but not before arguments
            arguments += [f"--job-name={self.job_name}", f"--array={array}", f"--output={logs}"]
            done = _slurm("sbatch", "--parsable", *arguments, f"{ready}.slurm")
            if done.returncode == 0:
                job, _, cluster = done.stdout.strip().split("\n")[-1].partition(";")
                if cluster and cluster not in self.clusters:
                    self.clusters.append(cluster)
                self.jobs[job] = some
                self._note()
                place.update({rank: (job, index) for index, rank in enumerate(some)})
                before = job if len(some) >= self.workers else before
                ranks = ranks[len(some) :]
                continue
            for file in ready.parent.glob(f"{ready.name}.*"):
                file.unlink()
            said = " ".join(done.stderr.split()) or f"exit status {done.returncode}"
            too_large = _TOO_LARGE.search(said) is not None
            if not too_large and not _FULL.search(said):
                raise InputError(f"{self.name}: Slurm refused the job: {said}")
            if len(some) == 1:
                return said
            most = len(some) // 2
            if too_large:  # and will be; a queue that is full has room again
                self.largest_array = most
        return ""

    def _write_script(self, ready: Path, ranks: list[int]) -> None:
        job = copy.copy(self)
        job.ranks = ranks
        pickled = ready.with_suffix(".pickle")
        pickled.write_bytes(pickle.dumps(job))
        # -P: what lies in the current folder is no package
        program = [sys.executable, "-P", "-m", "datatrove.tools.launch_pickled_pipeline", str(pickled)]
        script = self.get_launch_file_contents(self.get_sbatch_args(), shlex.join(program))
        ready.with_suffix(".slurm").write_text(script, encoding="utf-8")

    def _raise_what_was_raised(self) -> None:
        for path in sorted((self.folder / "errors").glob("*.json")):
            told = json.loads(path.read_text("utf-8"))
            for kind in (UsageError, InputError, OSError):
                if told["kind"] == kind.__name__:
                    raise kind(told["text"])
            raise RuntimeError(f"{self.name}, task {int(path.stem)}:\n{told['traceback']}")

    def _lost(self, rank: int, job: str, index: int) -> InputError:
        log = self.folder / "slurm_logs" / f"{job}_{index}.out"
        hint = f"see {log}" if log.exists() else f"do all nodes share the storage of {self.folder}?"
        return InputError(
            f"{self.name}: the job of task {rank} ended without a word {ATTEMPTS} times (out of memory or "
            f"time?); {hint}; run the same command again to go on, with more --memory, fewer --jobs or a higher "
            "SBATCH_TIMELIMIT if it happens again"
        )


def _name(folder: Path) -> str:
    """Of a stage's jobs: nobody else's have it."""
    return f"temporalwiki-{fingerprint(str(folder.absolute()))}"


def _noted(folder: Path) -> dict[str, Any]:
    """What a command noted of its jobs for a stage."""
    noted = json.loads((folder / SLURM_JOBS).read_text("utf-8"))
    return {"jobs": {}, "clusters": [], "cancelled": False} | dict(noted)


def _slurm(*command: str) -> subprocess.CompletedProcess[str]:
    # without what would hide jobs from the answer, or wait until they end
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("SQUEUE_", "SCANCEL_"))}
    ours.pop("SBATCH_WAIT", None)
    return subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, env=ours)


def _on(clusters: list[str]) -> list[list[str]]:
    """The arguments that ask each of these clusters, or the one that is here."""
    return [[f"--clusters={cluster}"] for cluster in clusters] or [[]]


def _end(name: str, clusters: list[str]) -> None:
    for cluster in _on(clusters):
        _slurm("scancel", *cluster, f"--name={name}")


def _alive(name: str, clusters: list[str]) -> set[tuple[str, int]] | None:
    """Array and index of the jobs of this name that wait or run; None where Slurm does not answer."""
    rows: list[list[str]] = []
    for cluster in _on(clusters):
        done = _slurm("squeue", *cluster, "--noheader", "--array", f"--name={name}", "--format=%F %K")
        if done.returncode != 0:
            return None
        rows += [line.split() for line in done.stdout.splitlines()]
    return {(row[0], int(row[1])) for row in rows if len(row) == 2 and row[1].isdigit()}
