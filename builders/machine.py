"""Which processes a build uses: how many at once, with how much memory, and where they run."""

from __future__ import annotations

import importlib
from dataclasses import dataclass

from temporalwiki.base.errors import UsageError

# name of --engine -> the module that has its Executor(step, machine, folder, progress), whose run() runs every task
# that is not complete, default_jobs(), how many tasks run at once where nobody says it, and most_memory(), how many
# bytes it has for all of them
ENGINES = {
    "local": "temporalwiki.builders.executors.local",
    "ray": "temporalwiki.builders.executors.ray",
    "slurm": "temporalwiki.builders.executors.slurm",
}
LEAST_MEMORY = 768 << 20  # bytes a job


@dataclass(frozen=True)
class Machine:
    """What a build may use, and where its tasks run; none of it changes a byte of the result."""

    jobs: int = 1  # tasks at once
    memory: int = 8 << 30  # bytes, for all jobs together
    engine: str = "local"  # of ENGINES

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise UsageError(f"there is no engine {self.engine!r}; there are {', '.join(ENGINES)}")
        if self.jobs < 1:
            raise UsageError(f"--jobs must be at least 1, not {self.jobs}")
        if self.memory < self.jobs * LEAST_MEMORY:
            raise UsageError(
                f"--memory {self.memory >> 20}MB is too little: at least {LEAST_MEMORY >> 20}MB for each job, so "
                f"{self.jobs * LEAST_MEMORY >> 20}MB for --jobs {self.jobs}"
            )

    @property
    def memory_of_a_job(self) -> int:
        """Bytes that one job may take in all."""
        return self.memory // self.jobs

    @property
    def memory_of_a_task(self) -> int:
        """What DuckDB may take in one task, beside what Python and Arrow hold."""
        return self.memory_of_a_job - LEAST_MEMORY // 2


HERE = Machine()  # one process of this machine


def find_machine(engine: str = "local", jobs: int | None = None, memory: int | None = None) -> Machine:
    """Return a machine with what is not given filled in: all that the engine has, and 8 GB, or 1 GB a job if more.

    No more memory than the engine has, as far as it is enough for the jobs.

    Raises UsageError for an engine that is not there, and for too few jobs or too little memory.
    """
    if engine not in ENGINES:
        raise UsageError(f"there is no engine {engine!r}; there are {', '.join(ENGINES)}")
    module = importlib.import_module(ENGINES[engine])
    if jobs is None:
        jobs = int(module.default_jobs())
        if memory is not None:
            jobs = max(1, min(jobs, memory // LEAST_MEMORY))
    if memory is None:
        memory = min(max(8, jobs) << 30, max(int(module.most_memory()), jobs * LEAST_MEMORY))
    return Machine(jobs, memory, engine)
