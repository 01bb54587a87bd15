"""Which processes a build uses: how many at once, with how much memory, and where they run."""

import re
from dataclasses import dataclass

from temporalwiki.base.errors import UsageError
from temporalwiki.builders import executors

LEAST_MEMORY = 768 << 20  # bytes a job


@dataclass(frozen=True)
class Machine:
    """What a build may use and where its tasks run. No field changes a byte of the result."""

    jobs: int = 1  # tasks at once
    memory: int = 8 << 30  # bytes, for all jobs together
    engine: str = "local"  # one of EXECUTORS

    def __post_init__(self) -> None:
        if self.engine not in executors.EXECUTORS:
            raise UsageError(f"there is no engine {self.engine!r}; there are {', '.join(executors.EXECUTORS)}")
        if self.jobs < 1:
            raise UsageError(f"--jobs must be at least 1, not {self.jobs}")
        if self.memory < self.jobs * LEAST_MEMORY:
            least, all_jobs = LEAST_MEMORY >> 20, self.jobs * LEAST_MEMORY >> 20
            needed = f"at least {least}MB for each job, so {all_jobs}MB for --jobs {self.jobs}"
            raise UsageError(f"--memory {self.memory >> 20}MB is too little: {needed}")

    @property
    def memory_of_a_job(self) -> int:
        """Bytes that one job may use in all."""
        return self.memory // self.jobs

    @property
    def memory_of_a_task(self) -> int:
        """Bytes that DuckDB may use in one task; Python and Arrow need the rest."""
        return self.memory_of_a_job - LEAST_MEMORY // 2


def find_machine(engine: str = "local", jobs: int | None = None, memory: str | int | None = None) -> Machine:
    """Return a machine with defaults for the jobs and the memory that are not given.

    The default is as many jobs as the engine has room for, and as ``memory`` allows if it is given. The default memory
    is 8 GB, or 1 GB for each job if that is more; it is more than the engine has only if the given jobs need it.
    ``memory`` is in bytes, or a text such as 8GB. Raises UsageError for an unknown engine, for a text that is not a
    size, and for too few jobs or too little memory.
    """
    if isinstance(memory, str):
        memory = _size_in_bytes(memory)
    machine = Machine(engine=engine)
    executor = executors.load(machine.engine)
    if jobs is None:
        jobs = int(executor.default_jobs())
        if memory is not None:
            jobs = max(1, min(jobs, memory // LEAST_MEMORY))
    if memory is None:
        memory = min(max(8, jobs) << 30, max(int(executor.most_memory()), jobs * LEAST_MEMORY))
    return Machine(jobs, memory, engine)


def _size_in_bytes(text: str) -> int:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]i?B?|B)", text.strip(), re.IGNORECASE)
    if not match:
        raise UsageError(f"--memory: {text!r} is not a size: write 8GB or 500MB")
    return int(float(match[1]) * 1024 ** "BKMGT".index(match[2][0].upper()))
