"""``temporalwiki cutoff``: the month up to which a model knows what changed."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.base.terminal import print_result
from temporalwiki.commands.train import quiet
from temporalwiki.methods import needs

_EXAMPLE = """\
example:
  temporalwiki cutoff runs/lora-diffset-1112 --data temporalwiki
  temporalwiki cutoff openai-community/gpt2-large --data ORG/temporalwiki --topics relation --from 2021-01
  temporalwiki cutoff runs/lora-diffset-1112 --data temporalwiki --output results/lora   # for `leaderboard results`

A month counts as known if the model prefers what is new in it to what it replaced. docs/cutoff.md says how, and how
sure the answer is. Scores are cached: the same command continues where it was stopped.
"""
_TOPICS = ("none", "relation", "class")


def add_arguments(parser: argparse.ArgumentParser, argv: list[str]) -> None:
    """Add the subcommand's arguments."""
    parser.epilog = _EXAMPLE
    parser.add_argument("model", metavar="MODEL", help="model: folder, Hub id, .gguf file or package:NAME")
    parser.add_argument("--data", metavar="DATASET", required=True, help="dataset folder, Hub id or id@revision")
    parser.add_argument(
        "--topics",
        choices=_TOPICS,
        default="none",
        help="also a cutoff for each relation, or for each class of subjects (default: %(default)s)",
    )
    parser.add_argument("--from", dest="first", metavar="MONTH", help="ignore changes before this month, YYYY-MM")
    parser.add_argument("--to", dest="last", metavar="MONTH", help="ignore changes after this month, YYYY-MM")
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("cutoff"),
        metavar="DIR",
        help="folder of cutoff.json and cutoff.svg (default: %(default)s)",
    )


def run(arguments: argparse.Namespace) -> None:
    """Print the cutoff, and write it with its chart. Raises UsageError for wrong months."""
    first, last = (_month(option, text) for option, text in (("--from", arguments.first), ("--to", arguments.last)))
    if first is not None and last is not None and first > last:
        raise UsageError(f"--from {arguments.first} is after --to {arguments.last}")
    if arguments.output.exists() and not arguments.output.is_dir():
        raise InputError(f"{arguments.output}: is a file; name a folder with --output")
    with needs("eval"):
        from temporalwiki.eval_harness.cached_model import CachedModel, default_precision
        from temporalwiki.eval_harness.cutoff_report import report, write_report
        from temporalwiki.eval_harness.score_cache import cache_folder

    quiet()
    model = CachedModel(arguments.model, cache_folder(), default_precision())
    model.check()
    found = report(model, arguments.data, arguments.topics, first, last)
    if model.state.is_main_process:
        paths = write_report(found, arguments.output)
        for line in (*found.lines(), *paths):
            print_result(line)


def _month(option: str, text: str | None) -> int | None:
    """Return a month as the estimator counts, or None."""
    if text is None:
        return None
    found = re.fullmatch(r"([0-9]{4})-(0[1-9]|1[0-2])", text)
    if found is None:
        raise UsageError(f"{option} {text!r} is not a month: write YYYY-MM, for example 2021-03")
    return int(found[1]) * 12 + int(found[2]) - 1
