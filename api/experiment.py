"""``temporalwiki experiment``: train and evaluate several methods over several months, and compare them.

Example:

    temporalwiki experiment temporalwiki-gpt2-large           # the paper's experiment, on ./temporalwiki
    temporalwiki experiment mine.yaml --jobs 8                # eight trainings or evaluations at once, one per GPU
    temporalwiki experiment mine.yaml --engine slurm --jobs 40
    accelerate launch --num_processes 8 -m temporalwiki experiment mine.yaml   # each training on eight GPUs

Run the same command again to continue after an interruption and to retry what failed. docs/experiments.md describes
recipes.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from temporalwiki.api.arguments import Arg
from temporalwiki.api.leaderboard import picture_in
from temporalwiki.api.table import Table, failed
from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.methods import needs
from temporalwiki.methods.recipes import names, read_recipe


@dataclass(frozen=True, repr=False)
class Cells(Table):
    """The trainings and evaluations of an experiment: a row for each, with its state and, if it failed, the reason."""

    @property
    def picture(self) -> Path | None:
        """The chart "learned and forgotten" of the methods, or None if no result has both measures."""
        return picture_in(self.path / "leaderboard")


def experiment(
    recipe: Annotated[str | os.PathLike[str], Arg("RECIPE", positional=True, names=tuple(names()))],
    *,
    engine: Annotated[str, Arg("NAME")] = "local",
    jobs: Annotated[int, Arg("N")] = 1,
    cell: Annotated[Sequence[str], Arg("NAME", repeat=True)] = (),
) -> Cells:
    """Run an experiment, and write its leaderboard to OUTPUT/leaderboard.

    The arguments are the options of ``temporalwiki experiment``. Call it again to continue an
    interrupted experiment and to retry what failed.

    Args:
        recipe: a YAML file, or the name of a recipe in the package.
        engine: where jobs run: local, slurm or hub_jobs.
        jobs: jobs at once.
        cell: run only this cell (a training or an evaluation), as a job does; may be repeated.

    Raises UsageError for a wrong argument or recipe, and InputError if cells failed: OUTPUT/cells.csv lists them.
    """
    if jobs < 1:
        raise UsageError(f"--jobs must be at least 1, not {jobs}")
    read_recipe(os.fspath(recipe), None)  # report a wrong name before torch is imported, which takes seconds
    with needs("eval"):
        from temporalwiki.eval_harness.experiment import read_experiment, run_experiment, show
        from temporalwiki.eval_harness.experiment.job_runners import end_with_parent, find_job_runner
        from temporalwiki.model_cards.space import space_card

    wanted = read_experiment(os.fspath(recipe))
    if cell:
        end_with_parent()
        outcomes, lines = run_experiment(wanted, only=cell), []
    else:
        outcomes = run_experiment(wanted, find_job_runner(engine, wanted, jobs), jobs)
        lines = list(show(wanted, outcomes, space_card)) if os.environ.get("RANK", "0") == "0" else []
    rows = [
        {"cell": one.cell.name, "state": one.state, "seconds": one.note.get("seconds"), "why": one.why}
        for one in outcomes
    ]
    made = Cells(wanted.output, rows, "\n".join(lines))
    wrong = [one for one in outcomes if one.state == "failed"]
    if wrong:
        message = f"{len(wrong)} of {len(outcomes)} cells failed, the first is {wrong[0].cell.name}: {wrong[0].why}"
        raise failed(InputError(f"{message}; run the same command again to retry them"), made)
    return made
