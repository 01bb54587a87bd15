"""``temporalwiki experiment``: train and evaluate several methods over several months."""

from __future__ import annotations

import argparse

from temporalwiki.api.experiment import run as run_experiment
from temporalwiki.api.table import Table, show
from temporalwiki.base.errors import InputError
from temporalwiki.methods import needs

_EXAMPLE = """\
example:
  temporalwiki experiment temporalwiki-gpt2-large           # the paper's experiment, on ./temporalwiki
  temporalwiki experiment mine.yaml --jobs 8                # eight trainings or evaluations at once, one per GPU
  temporalwiki experiment mine.yaml --engine slurm --jobs 40
  accelerate launch --num_processes 8 -m temporalwiki experiment mine.yaml   # each training on eight GPUs

Run the same command again to continue after an interruption and to retry what failed. docs/experiments.md describes
recipes.
"""


def add_arguments(parser: argparse.ArgumentParser, argv: list[str]) -> None:
    """Add the subcommand's arguments."""
    parser.epilog = _EXAMPLE
    parser.add_argument("recipe", metavar="RECIPE", help="YAML file, or the name of a recipe in the package")
    parser.add_argument(
        "--engine", default="local", metavar="NAME", help="where jobs run: local (default), slurm or hub_jobs"
    )
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="jobs at once (default: 1)")
    parser.add_argument(
        "--cell",
        action="append",
        default=[],
        metavar="NAME",
        help="run only this cell (a training or an evaluation), as a job does; may be repeated",
    )


def run(arguments: argparse.Namespace) -> Table:
    """Run the experiment and write its leaderboard; raise InputError, after its table, if cells failed."""
    if arguments.cell:
        with needs("eval"):
            from temporalwiki.eval_harness.experiment.job_runners import end_with_parent
        end_with_parent()
    made = run_experiment(arguments.recipe, engine=arguments.engine, jobs=arguments.jobs, cell=arguments.cell)
    if made.failure:
        show(made, arguments.json)
        raise InputError(made.failure)
    return made
