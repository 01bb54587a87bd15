"""``temporalwiki evaluate``: score a model on tasks."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from temporalwiki.base.errors import UsageError
from temporalwiki.base.terminal import print_result
from temporalwiki.builders.after_cutoff import read_after
from temporalwiki.commands.train import add_options, given_options, quiet
from temporalwiki.eval_harness.tasks import TASKS, find_task
from temporalwiki.methods import needs

_EXAMPLE = """\
example:
  temporalwiki evaluate --model runs/lora-diffset-1112 --data temporalwiki --tasks twiki_probes --config probes-1112
  temporalwiki evaluate --model runs/lora-diffset-1112 --data temporalwiki --tasks learned_and_forgotten \\
      --start openai-community/gpt2-large                    # compared with the model that it started from
  temporalwiki evaluate --model runs/lora-diffset-1112 --data temporalwiki --tasks twiki_probes \\
      --after-cutoff 2021-10                                 # only facts that began later
  temporalwiki evaluate --tasks twiki_probes --help          # also shows the options of the task
  accelerate launch --num_processes 8 -m temporalwiki evaluate --model openai-community/gpt2-large \\
      --data temporalwiki --tasks twiki_probes               # the same on eight GPUs, all months

Existing results are not computed again, and a text is scored only once for each model.
"""
_PRECISIONS = ("auto", "fp32", "bf16")


def add_arguments(parser: argparse.ArgumentParser, argv: list[str]) -> None:
    """Add the arguments of every evaluation and of the tasks in ``argv``."""
    parser.epilog = _EXAMPLE
    parser.add_argument(
        "--model",
        metavar="ID_OR_DIR",
        required=True,
        help="model: folder, Hub id, .gguf file, package:NAME, or a "
        "model of inspect-ai's providers, such as openai/NAME, anthropic/NAME or openai-api/SERVICE/NAME",
    )
    parser.add_argument(
        "--judge",
        metavar="MODEL",
        help="another model of a provider, which reads the replies as well; its agreement with the rules is reported",
    )
    parser.add_argument(
        "--start",
        metavar="MODEL_OR_RESULTS",
        help="the model that it started from, or a result file or folder of that model, for learned_and_forgotten",
    )
    parser.add_argument("--data", metavar="DATASET", required=True, help="dataset folder, Hub id or id@revision")
    parser.add_argument(
        "--tasks", metavar="NAME,...", required=True, help=f"tasks, separated by commas: {', '.join(TASKS)}"
    )
    parser.add_argument(
        "--config",
        nargs="+",
        default=[],
        metavar="NAME",
        help="configs to score on (default: all that the tasks can read)",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("results"),
        metavar="DIR",
        help="folder of the result files (default: %(default)s)",
    )
    parser.add_argument("--limit", type=int, metavar="N", help="score only the first N rows of each split")
    parser.add_argument(
        "--after-cutoff",
        metavar="DATE_OR_MODEL",
        help="score only facts that began, and text that appeared, after a date (20211101, 2021-11), or after the "
        "cutoff of a model: a result of `temporalwiki cutoff`, or the name of a model that has one in --output",
    )
    parser.add_argument(
        "--precision",
        choices=_PRECISIONS,
        default="auto",
        help="precision of likelihoods; auto is bf16 on GPUs that support it",
    )
    parser.owners = lambda: _tasks(",".join(TASKS))  # type: ignore[attr-defined]
    for name, of in _tasks_in(argv).items():
        add_options(parser.add_argument_group(f"options of {name}"), of, {a.dest for a in parser._actions})


def run(arguments: argparse.Namespace) -> None:
    """Score the model and print its scores. Raises UsageError for wrong options."""
    if arguments.limit is not None and arguments.limit < 1:
        raise UsageError(f"--limit must be at least 1, not {arguments.limit}")
    if not (found := _tasks(arguments.tasks)):
        raise UsageError("--tasks: name one or more, separated by commas")
    after = None if arguments.after_cutoff is None else read_after(arguments.after_cutoff, arguments.output)
    with needs("eval"):
        from temporalwiki.eval_harness.cached_model import default_precision
        from temporalwiki.eval_harness.interface_model import InterfaceModel
        from temporalwiki.eval_harness.results import table
        from temporalwiki.eval_harness.runner import Evaluation, evaluate
        from temporalwiki.eval_harness.score_cache import cache_folder
        from temporalwiki.eval_harness.stored_scores import open_scores

    quiet()
    tasks = {name: given_options(task, arguments, "--") for name, task in found.items()}
    precision = default_precision() if arguments.precision == "auto" else arguments.precision
    model = open_scores(arguments.model, cache_folder(), precision)
    if arguments.judge is not None:
        judge = open_scores(arguments.judge, cache_folder(), precision)
        if not isinstance(model, InterfaceModel) or not isinstance(judge, InterfaceModel):
            raise UsageError("--judge: both --model and --judge must be models of a provider, such as openai/NAME")
        model.judge = judge
    wanted = Evaluation(
        arguments.model,
        arguments.data,
        tasks,
        tuple(arguments.config),
        arguments.output,
        arguments.limit,
        start=arguments.start,
        after=after,
    )
    results = evaluate(wanted, model)
    if model.state.is_main_process:
        print_result(table(results))
        for result in results:
            print_result(result.path)


def _tasks(names: str) -> dict[str, Any]:
    return {name: find_task(name) for name in names.replace(",", " ").split()}


def _tasks_in(argv: list[str]) -> dict[str, Any]:
    """Return the tasks in ``argv``. They are needed before parsing, because the options depend on them."""
    first = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    first.add_argument("--tasks", default="")
    try:
        found, _ = first.parse_known_args(argv)
    except argparse.ArgumentError:
        return {}  # the real parser reports the error
    return _tasks(found.tasks)
