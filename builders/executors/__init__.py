"""Where the tasks of a stage run: one module for each value of ``--engine``."""

import importlib
from collections.abc import Callable
from typing import Any

EXECUTORS = ("local", "ray", "slurm")
SLURM_JOBS = "slurm_jobs.json"  # in a stage's folder while its tasks may be with Slurm

Step = Callable[[object, int, int], None]  # a task as datatrove calls it: data, its number, how many there are


def load(name: str) -> Any:
    """Import and return the module of an executor, which may need packages that are not installed.

    The module has a class ``Executor(name, step, tasks, machine, folder)``, whose method ``run(done)`` runs the tasks
    that are not done yet and calls ``done`` with the number of each; a function ``default_jobs()``, which returns how
    many tasks run at once by default; and ``most_memory()``, which returns how many bytes there are for all of them.
    """
    return importlib.import_module(f"temporalwiki.builders.executors.{name}")
