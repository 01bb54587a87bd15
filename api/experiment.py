"""``temporalwiki.experiment``: train and evaluate several methods over several months."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from temporalwiki.api.leaderboard import picture_in
from temporalwiki.api.table import Table
from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.methods import needs
from temporalwiki.methods.recipes import read_recipe


@dataclass(frozen=True, repr=False)
class Cells(Table):
    """The trainings and evaluations of an experiment: a row for each, with its state and, if it failed, the reason."""

    failure: str  # the error message if cells failed, or ""

    @property
    def picture(self) -> Path | None:
        """The chart "learned and forgotten" of the methods, or None if no result has both measures."""
        return picture_in(self.path / "leaderboard")


def experiment(
    recipe: str | os.PathLike[str], *, engine: str = "local", jobs: int = 1, cell: Sequence[str] = ()
) -> Cells:
    """Run an experiment, and write its leaderboard to OUTPUT/leaderboard.

    The arguments are the options of ``temporalwiki experiment``. Call it again to continue an
    interrupted experiment and to retry what failed.

    Args:
        recipe: a YAML file, or the name of a recipe in the package.
        engine: where jobs run: "local", "slurm" or "hub_jobs".
        jobs: how many jobs run at once.
        cell: run only these trainings or evaluations, as a job does.

    Raises UsageError for a wrong argument or recipe, and InputError if cells failed: OUTPUT/cells.csv lists them.
    """
    made = run(recipe, engine=engine, jobs=jobs, cell=cell)
    if made.failure:
        raise InputError(made.failure)
    return made


def run(recipe: str | os.PathLike[str], *, engine: str = "local", jobs: int = 1, cell: Sequence[str] = ()) -> Cells:
    """Run an experiment as ``experiment`` does; failed cells raise no error."""
    if jobs < 1:
        raise UsageError(f"--jobs must be at least 1, not {jobs}")
    read_recipe(os.fspath(recipe), None)  # report a wrong name before torch is imported, which takes seconds
    with needs("eval"):
        from temporalwiki.eval_harness.experiment import read_experiment, run_experiment, show
        from temporalwiki.eval_harness.experiment.job_runners import find_job_runner
        from temporalwiki.model_cards.space import space_card

    wanted = read_experiment(os.fspath(recipe))
    if cell:
        outcomes, lines = run_experiment(wanted, only=cell), []
    else:
        outcomes = run_experiment(wanted, find_job_runner(engine, wanted, jobs), jobs)
        lines = list(show(wanted, outcomes, space_card)) if os.environ.get("RANK", "0") == "0" else []
    rows = [
        {"cell": one.cell.name, "state": one.state, "seconds": one.note.get("seconds"), "why": one.why}
        for one in outcomes
    ]
    failed = [one for one in outcomes if one.state == "failed"]
    failure = (
        f"{len(failed)} of {len(outcomes)} cells failed, the first is {failed[0].cell.name}: {failed[0].why}; run "
        "the same command again to retry them"
        if failed
        else ""
    )
    return Cells(wanted.output, rows, "\n".join(lines), failure)
