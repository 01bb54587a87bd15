"""The base class of all executors: the tasks of a stage, and the markers of the finished ones."""

from pathlib import Path

from datatrove.executor.local import LocalPipelineExecutor

from temporalwiki.builders.executors import Step
from temporalwiki.builders.machine import Machine


class StageExecutor(LocalPipelineExecutor):  # type: ignore[misc]
    """The tasks of a stage. datatrove marks a finished task with a file in ``folder``/executor/completions.

    Subclasses replace datatrove's ``run``, which waits forever if a worker is killed or logs a task's error instead
    of raising it.
    """

    def __init__(self, name: str, step: Step, tasks: int, machine: Machine, folder: Path) -> None:
        super().__init__([step], tasks=tasks, workers=machine.jobs, logging_dir=str(folder / "executor"))
        self.name, self.step, self.folder, self.machine = name, step, folder, machine

    def run_task(self, rank: int) -> None:
        """Run a task and mark it as finished.

        datatrove's own method also writes a log and statistics, which take longer than the shortest tasks.
        """
        self.step(None, rank, self.tasks)
        self.mark_rank_as_completed(rank)
