"""``--engine ray``: tasks on a cluster of Ray, whose nodes share the storage of the work folder."""

from __future__ import annotations

import importlib
import os
import platform
import secrets
import socket
from collections import Counter, deque
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from datatrove.executor.ray import RayPipelineExecutor

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.builders.executors import Step
from temporalwiki.builders.machine import Machine

# A task is run as often as this when its worker or node dies.
ATTEMPTS = 4
# What decides the bytes of a dataset, and so must be the same everywhere.
_LIBRARIES = ("temporalwiki", "pyarrow", "duckdb", "sentencex")


def default_jobs() -> int:
    """All cores that the cluster has now. Raises UsageError where there is no Ray."""
    return max(1, int(_connect().cluster_resources().get("CPU", 1)))


def most_memory() -> int:
    """Bytes of memory that the cluster has now for tasks."""
    return int(_connect().cluster_resources().get("memory", 0))


def _connect() -> Any:
    """Return ``ray``, connected: to the cluster of RAY_ADDRESS or the one at work here, else to one of all cores."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # read when it is imported; nothing is sent anywhere
    # what comes of tasks that are cancelled because another one failed is nobody's concern
    os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")
    try:
        ray = importlib.import_module("ray")
    except ImportError:
        raise UsageError("Ray is not installed: pip install 'temporalwiki[ray]'") from None
    if not ray.is_initialized():
        _check_address()
        try:
            ray.init(include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
            where = os.environ.get("RAY_ADDRESS", "the cluster that runs here")
            why = _first_line(error)
            # Ray says it in a cause of its error alone
            if isinstance(error, ray.exceptions.AuthenticationError) or "AuthenticationError" in str(error.__cause__):
                why = (
                    "it asks for a token: set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH where "
                    "the cluster's is not in ~/.ray/auth_token"
                )
            raise InputError(f"Ray: cannot connect to {where}: {why}") from None
    return ray


def _check_address() -> None:
    """Raise InputError where nobody listens at the cluster's address: ``ray.init`` would wait there for ever."""
    noted = Path(os.environ.get("RAY_TMPDIR") or os.environ.get("TMPDIR") or "/tmp") / "ray" / "ray_current_cluster"
    address, source = os.environ.get("RAY_ADDRESS", ""), "RAY_ADDRESS"
    if address == "" and noted.exists():
        address, source = noted.read_text().strip(), str(noted)
    host, _, port = address.rpartition(":")
    if "://" in host or not port.isdigit():
        return  # "local", or what Ray itself makes of it
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=5).close()
    except OSError as error:
        raise InputError(
            f"Ray: nobody answers at {address}, which {source} names ({_first_line(error)}): start the cluster, or "
            "set RAY_ADDRESS=local for one on this machine"
        ) from None


class Executor(RayPipelineExecutor):  # type: ignore[misc]
    """datatrove's executor of Ray, with a run of our own: what a task raises comes out, and only dead workers count.

    datatrove's runs a task in a process pool inside an actor, which waits for ever when the process is killed, and
    logs what a task raises instead of raising it.
    """

    def __init__(self, name: str, step: Step, tasks: int, machine: Machine, folder: Path) -> None:
        super().__init__([step], tasks=tasks, workers=machine.jobs, logging_dir=str(folder / "executor"))
        self.memory, self.name, self.folder = machine.memory_of_a_job, name, folder

    def run(self, done: Callable[[int], None]) -> None:
        """Run the tasks that are not done yet. Raises InputError where nodes do not fit or a task failed."""
        ray = _connect()
        self._check_nodes(ray)
        # new for each run, so that no file system remembers that it was not there
        proof = self.folder / f".{secrets.token_hex(4)}.part"
        proof.touch()
        task = ray.remote(num_cpus=1, memory=self.memory, max_retries=0, scheduling_strategy="SPREAD")(_run)
        executor, libraries = ray.put(self), _libraries()
        waiting = deque(self.get_incomplete_ranks(range(self.tasks)))
        running: dict[Any, int] = {}
        deaths: Counter[int] = Counter()
        try:
            while waiting or running:
                while waiting and len(running) < self.workers:
                    rank = waiting.popleft()
                    running[task.remote(executor, rank, str(proof), libraries)] = rank
                finished, _ = ray.wait(list(running), timeout=1.0)
                for reference in finished:
                    rank = running.pop(reference)
                    try:
                        ray.get(reference)
                    except ray.exceptions.RayTaskError as error:
                        if isinstance(error.cause, ray.exceptions.RayError):  # before the task began
                            raise InputError(f"{self.name}: Ray: {_first_line(error.cause)}") from None
                        raise error.cause from None
                    except ray.exceptions.RayError as error:
                        deaths[rank] += 1
                        if deaths[rank] == ATTEMPTS:
                            raise self._killed(rank, error) from None
                        waiting.append(rank)
                    else:
                        done(rank)
        finally:
            for reference in running:
                ray.cancel(reference, force=True)
            proof.unlink(missing_ok=True)

    def _check_nodes(self, ray: Any) -> None:
        """Raise UsageError where no node could ever run a task: Ray would wait for one that can."""
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        able = [node.get("memory", 0) for node in nodes if node.get("CPU", 0) >= 1]
        if not able:
            raise UsageError("no node of the Ray cluster has a CPU for tasks: start one with --num-cpus")
        most = max(able)
        if self.memory > most:
            raise UsageError(
                f"a job may take {self.memory >> 20}MB (--memory divided by --jobs), and no node of the Ray cluster "
                f"with a CPU has more than {int(most) >> 20}MB: give less --memory or more --jobs"
            )

    def _killed(self, rank: int, error: Exception) -> InputError:
        return InputError(
            f"{self.name}: the worker of task {rank} was killed {ATTEMPTS} times (out of memory?): "
            f"{_first_line(error)}; run the same command again to go on, with more --memory or fewer --jobs if it "
            "happens again"
        )


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _libraries() -> dict[str, str]:
    return {"Python": platform.python_version(), **{name: version(name) for name in _LIBRARIES}}


def _run(executor: Executor, rank: int, proof: str, libraries: dict[str, str]) -> None:
    """Run a task in a worker. Raises what it raises, and InputError where this node cannot take part."""
    if not Path(proof).exists():
        raise InputError(
            f"{executor.folder}: the node {platform.node()} does not see this folder: the work folder and the dumps "
            "must be on storage that all nodes of the Ray cluster share, under the same name"
        )
    for name, here in _libraries().items():
        if here != libraries[name]:
            raise InputError(
                f"the node {platform.node()} has {name} {here}, this command {libraries[name]}: install the same"
            )
    executor._run_for_rank(rank)
