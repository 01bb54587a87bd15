"""``temporalwiki experiment``: train and evaluate several methods over several months."""

from __future__ import annotations

import argparse
import os

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.base.terminal import print_result
from temporalwiki.commands.train import quiet
from temporalwiki.methods import needs
from temporalwiki.methods.recipes import read_recipe

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
        help="run only this training or evaluation, as a job does",
    )


def run(arguments: argparse.Namespace) -> None:
    """Run the experiment and write its leaderboard; raise InputError if cells failed."""
    if arguments.jobs < 1:
        raise UsageError(f"--jobs must be at least 1, not {arguments.jobs}")
    read_recipe(arguments.recipe, None)  # report a wrong name before torch is imported, which takes seconds
    with needs("eval"):
        from temporalwiki.eval_harness.experiment import read_experiment, run_experiment, show
        from temporalwiki.eval_harness.experiment.job_runners import end_with_parent, find_job_runner
        from temporalwiki.model_cards.space import space_card

    quiet()
    experiment = read_experiment(arguments.recipe)
    if arguments.cell:
        end_with_parent()
        progress = run_experiment(experiment, only=arguments.cell)
    else:
        engine = find_job_runner(arguments.engine, experiment, arguments.jobs)
        progress = run_experiment(experiment, engine, arguments.jobs)
        for text in show(experiment, progress, space_card) if os.environ.get("RANK", "0") == "0" else ():
            print_result(text)
    failed = [one for one in progress if one.state == "failed"]
    if failed:
        raise InputError(
            f"{len(failed)} of {len(progress)} cells failed, the first is {failed[0].cell.name}: {failed[0].why}; run "
            "the same command again to retry them"
        )
