"""``temporalwiki evaluate``: score a model on tasks."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any

from temporalwiki.api.evaluate import PRECISIONS, evaluate, names_of
from temporalwiki.api.table import Table
from temporalwiki.commands.train import add_options, given
from temporalwiki.eval_harness.tasks import TASKS, find_task
from temporalwiki.methods.recipes import read_recipe

_EXAMPLE = """\
example:
  temporalwiki evaluate --model runs/lora-diffset-1112 --data temporalwiki --tasks twiki_probes --config probes-1112
  temporalwiki evaluate --model runs/lora-diffset-1112 --data temporalwiki --tasks learned_and_forgotten \\
      --start openai-community/gpt2-large                    # compared with the model that it started from
  temporalwiki evaluate --model runs/lora-diffset-1112 --data temporalwiki --tasks twiki_probes \\
      --after-cutoff 2021-10                                 # only facts that began later
  temporalwiki evaluate --model runs/lora-diffset-1112 --data temporalwiki --tasks twiki_probes \\
      --config probes-1112 --retrieve diffset-1112           # it reads the month's text before each question
  temporalwiki evaluate --recipe evaluation.yaml --model runs/lora-diffset-1112
  temporalwiki evaluate --tasks twiki_probes --help          # also shows the options of the task
  accelerate launch --num_processes 8 -m temporalwiki evaluate --model openai-community/gpt2-large \\
      --data temporalwiki --tasks twiki_probes               # the same on eight GPUs, all months

Existing results are not computed again, and a text is scored only once for each model.
"""


def add_arguments(parser: argparse.ArgumentParser, argv: list[str]) -> None:
    """Add the arguments of every evaluation and of the tasks in ``argv``."""
    parser.epilog = _EXAMPLE
    parser.add_argument(
        "--model",
        metavar="ID_OR_DIR",
        help="model: folder, Hub id, .gguf file, package:NAME, a model of inspect-ai's providers, such as openai/NAME "
        "or openai-api/SERVICE/NAME, or a log of inspect-ai or lm_eval",
    )
    parser.add_argument(
        "--judge",
        metavar="MODEL",
        help="another model of a provider that also judges the replies; the results say how often it agrees with the "
        "rules",
    )
    parser.add_argument(
        "--start",
        metavar="MODEL_OR_RESULTS",
        help="for learned_and_forgotten: the model that the training started from, or its result file or folder",
    )
    parser.add_argument("--data", metavar="DATASET", help="dataset folder, Hub id or id@revision")
    parser.add_argument("--tasks", metavar="NAME,...", help=f"tasks, separated by commas: {', '.join(TASKS)}")
    parser.add_argument(
        "--config",
        nargs="+",
        metavar="NAME",
        help="configs to score on (default: all that the tasks can read)",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        help="folder of the result files (default: results)",
    )
    parser.add_argument("--limit", type=int, metavar="N", help="score only the first N rows of each split")
    parser.add_argument(
        "--after-cutoff",
        metavar="DATE_OR_MODEL",
        help="score only facts that began, and text that appeared, after a date (20211101, 2021-11) or after a "
        "model's cutoff: a cutoff.json of `temporalwiki cutoff`, or the name of a model that has one in --output",
    )
    parser.add_argument(
        "--retrieve",
        metavar="CONFIG",
        help="let the model read passages of this config, such as diffset-1112, before each question; or `evidence`: "
        "the sentence in the fact's own row",
    )
    parser.add_argument("--top-k", type=int, metavar="N", help="passages of --retrieve for each question (default: 5)")
    parser.add_argument(
        "--precision",
        metavar="NAME",
        help=f"precision of likelihoods: {', '.join(PRECISIONS)}; auto, the default, is bf16 on GPUs that support it",
    )
    parser.add_argument("--recipe", metavar="FILE", help="YAML file with these options; the command line overrides it")
    parser.owners = lambda: _tasks(",".join(TASKS))  # type: ignore[attr-defined]
    for name, of in _tasks_in(argv).items():
        add_options(parser.add_argument_group(f"options of {name}"), of, {a.dest for a in parser._actions})


def run(arguments: argparse.Namespace) -> Table:
    """Score the model, and return its scores. Raises UsageError for wrong options."""
    names = ("model", "data", "tasks", "config", "output", "limit", "start", "judge", "precision", "after_cutoff")
    own = {option.name for task in _tasks(_named(arguments)).values() for option in fields(task)}
    return evaluate(**given(arguments, (*names, "retrieve", "top_k", "recipe", *own)))


def _tasks(names: str | Iterable[str]) -> dict[str, Any]:
    return {name: find_task(name) for name in names_of(names)}


def _tasks_in(argv: list[str]) -> dict[str, Any]:
    """Return the tasks in ``argv``. They are needed before parsing, because the options depend on them."""
    first = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    first.add_argument("--tasks")
    first.add_argument("--recipe")
    try:
        found, _ = first.parse_known_args(argv)
    except argparse.ArgumentError:
        return {}  # the real parser reports the error
    return _tasks(_named(found))


def _named(arguments: argparse.Namespace) -> str | list[str]:
    """Return the tasks that the command line names, or else its recipe."""
    if arguments.tasks is not None or arguments.recipe is None:
        return arguments.tasks or ""
    named = read_recipe(arguments.recipe, None).get("tasks")
    if isinstance(named, list | dict):
        return [name for name in named if isinstance(name, str)]
    return named if isinstance(named, str) else ""  # `evaluate` reports the error
