"""The tasks of the evaluation, one file each. ``TASKS`` lists them."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from temporalwiki.base.errors import UsageError
from temporalwiki.base.options import did_you_mean
from temporalwiki.methods import needs

if TYPE_CHECKING:
    from temporalwiki.eval_harness.task import Task

# task, which is also the name of its module -> class
TASKS = {
    "learned_and_forgotten": "LearnedAndForgotten",
    "kilt": "Kilt",
    "lama": "Lama",
    "new_questions": "NewQuestions",
    "twiki_probes": "TwikiProbes",
    "twiki_intrinsic": "TwikiIntrinsic",
    "deleted": "Deleted",
    "multiple_choice": "MultipleChoice",
    "general": "General",
}


def find_task(name: str) -> type[Task]:
    """Return the class of a task. Raises UsageError, with the nearest name, for an unknown task."""
    if name not in TASKS:
        raise UsageError(f"no task {name!r}{did_you_mean(name, TASKS)}; there are {', '.join(TASKS)}")
    with needs("eval"):
        module = importlib.import_module(f"temporalwiki.eval_harness.tasks.{name}")
    task: type[Task] = getattr(module, TASKS[name])
    return task
