"""``--engine ray``: tasks on a cluster of Ray, whose nodes share the storage of the work folder."""

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

from temporalwiki.base.errors import InputError, UsageError, first_line
from temporalwiki.builders.executors.executor import StageExecutor

ATTEMPTS = 4  # to run a task whose worker or node dies
# They decide the bytes of a dataset, so all nodes need the same versions.
_LIBRARIES = ("temporalwiki", "pyarrow", "duckdb", "sentencex")


def default_jobs() -> int:
    """Return how many cores the cluster has now. Raises UsageError if Ray is not installed."""
    return max(1, int(_connect().cluster_resources().get("CPU", 1)))


def most_memory() -> int:
    """Return the bytes of memory that the cluster has now for tasks."""
    return int(_connect().cluster_resources().get("memory", 0))


def _connect() -> Any:
    """Return the module ``ray``, connected to a cluster.

    That is the cluster of RAY_ADDRESS, or one that runs on this machine, or a new one with all cores.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray reads it when it is imported: send no statistics
    # when one task fails, the errors of the cancelled ones do not matter
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
            why = first_line(error)
            # only the cause of Ray's error tells it
            if isinstance(error, ray.exceptions.AuthenticationError) or "AuthenticationError" in str(error.__cause__):
                why = (
                    "it asks for a token: set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH if "
                    "the cluster's token is not in ~/.ray/auth_token"
                )
            raise InputError(f"Ray: cannot connect to {where}: {why}") from None
    return ray


def _check_address() -> None:
    """Raise InputError if nothing listens at the cluster's address: ``ray.init`` would wait forever."""
    current = Path(os.environ.get("RAY_TMPDIR") or os.environ.get("TMPDIR") or "/tmp") / "ray" / "ray_current_cluster"
    address, source = os.environ.get("RAY_ADDRESS", ""), "RAY_ADDRESS"
    if address == "" and current.exists():
        address, source = current.read_text().strip(), str(current)
    host, _, port = address.rpartition(":")
    if "://" in host or not port.isdigit():
        return  # "local", or an address of another kind
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=5).close()
    except OSError as error:
        raise InputError(
            f"Ray: nobody answers at {address}, which {source} names ({first_line(error)}): start the cluster, or "
            "set RAY_ADDRESS=local for one on this machine"
        ) from None


class Executor(StageExecutor):
    """Runs each task of a stage as a task of Ray, and runs it again if its worker dies. Raises what a task raises.

    datatrove's executor of Ray waits forever if a worker is killed, and logs a task's error instead of raising it.
    """

    def run(self, done: Callable[[int], None]) -> None:
        """Run the tasks that are not done yet.

        Raises what a task raised, UsageError if no node has room for a task, and InputError if a node cannot take
        part or workers were killed.
        """
        ray = _connect()
        self._check_nodes(ray)
        # a new name for each run: file systems may remember that a name did not exist
        proof = self.folder / f".{secrets.token_hex(4)}.part"
        proof.touch()
        memory = self.machine.memory_of_a_job
        task = ray.remote(num_cpus=1, memory=memory, max_retries=0, scheduling_strategy="SPREAD")(_run)
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
                            raise InputError(f"{self.name}: Ray: {first_line(error.cause)}") from None
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
        """Raise UsageError if no node has room for a task: Ray would wait for one that has."""
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        able = [node.get("memory", 0) for node in nodes if node.get("CPU", 0) >= 1]
        if not able:
            raise UsageError("no node of the Ray cluster has a CPU for tasks: start one with --num-cpus")
        most, memory = max(able), self.machine.memory_of_a_job
        if memory > most:
            raise UsageError(
                f"a job may take {memory >> 20}MB (--memory divided by --jobs), and no node of the Ray cluster "
                f"with a CPU has more than {int(most) >> 20}MB: give less --memory or more --jobs"
            )

    def _killed(self, rank: int, error: Exception) -> InputError:
        killed = f"the worker of task {rank} was killed {ATTEMPTS} times (out of memory?): {first_line(error)}"
        again = "run the same command again to continue, with more --memory or fewer --jobs if it happens again"
        return InputError(f"{self.name}: {killed}; {again}")


def _libraries() -> dict[str, str]:
    return {"Python": platform.python_version(), **{name: version(name) for name in _LIBRARIES}}


def _run(executor: Executor, rank: int, proof: str, libraries: dict[str, str]) -> None:
    """Run a task in a worker. Raises what the task raises, and InputError if this node cannot take part."""
    if not Path(proof).exists():
        shared = "all nodes of the Ray cluster must share the work folder and the dumps, under the same names"
        raise InputError(f"{executor.folder}: the node {platform.node()} does not see this folder: {shared}")
    for name, here in _libraries().items():
        if here != (there := libraries[name]):
            raise InputError(f"the node {platform.node()} has {name} {here}, this command {there}: install the same")
    executor.run_task(rank)
