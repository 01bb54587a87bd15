"""``temporalwiki cutoff``: the month up to which a model knows what changed."""

from __future__ import annotations

import argparse
from pathlib import Path

from temporalwiki.api.cutoff import TOPICS, cutoff
from temporalwiki.api.table import Table
from temporalwiki.base.errors import UsageError
from temporalwiki.commands.train import given

_EXAMPLE = """\
example:
  temporalwiki cutoff runs/lora-diffset-1112 --data temporalwiki
  temporalwiki cutoff openai-community/gpt2-large --data ORG/temporalwiki --topics relation --from 2021-01
  temporalwiki cutoff runs/lora-diffset-1112 --data temporalwiki --output results/lora   # for `leaderboard results`
  temporalwiki cutoff openai/gpt-5 --data temporalwiki                   # asks questions: it gives no likelihoods
  temporalwiki cutoff Qwen/Qwen3-8B --data temporalwiki --panel openai-community/gpt2-xl=2017-12

A month counts as known if the model prefers its new facts and sentences to those that they replaced. docs/cutoff.md
explains the method and its errors. Scores are cached: the same command continues where it was stopped.
"""


def add_arguments(parser: argparse.ArgumentParser, argv: list[str]) -> None:
    """Add the subcommand's arguments."""
    parser.epilog = _EXAMPLE
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="model: folder, Hub id, .gguf file, package:NAME, or a model of inspect-ai's providers",
    )
    parser.add_argument("--data", metavar="DATASET", required=True, help="dataset folder, Hub id or id@revision")
    parser.add_argument(
        "--topics",
        metavar="NAME",
        default="none",
        help=f"{', '.join(TOPICS)}: also a cutoff for each relation, or for each class of subjects "
        "(default: %(default)s)",
    )
    parser.add_argument("--from", dest="from_", metavar="MONTH", help="ignore changes before this month, YYYY-MM")
    parser.add_argument("--to", metavar="MONTH", help="ignore changes after this month, YYYY-MM")
    parser.add_argument(
        "--panel",
        nargs="+",
        metavar="MODEL=MONTH",
        help="reference models, each with the last month that it knows: they measure how difficult a change is",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("cutoff"),
        metavar="DIR",
        help="folder of cutoff.json and cutoff.svg (default: %(default)s)",
    )


def run(arguments: argparse.Namespace) -> Table:
    """Find the cutoff, and write it with its chart. Raises UsageError for wrong months."""
    if wrong := [one for one in arguments.panel or () if not one.rpartition("=")[0]]:
        raise UsageError(f"--panel {wrong[0]}: write MODEL=YYYY-MM, the last month that it knows")
    panel = {name: month for name, _, month in (one.rpartition("=") for one in arguments.panel or ())}
    return cutoff(**given(arguments, ("model", "data", "topics", "from_", "to", "output")), panel=panel)
