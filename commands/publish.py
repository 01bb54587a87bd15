"""``temporalwiki publish``: publish a dataset, model, metric or leaderboard on the Hub."""

from __future__ import annotations

import argparse
from inspect import signature
from pathlib import Path

from temporalwiki.api.publish import KINDS, publish, steps
from temporalwiki.api.table import Table
from temporalwiki.base.terminal import print_result

_EXAMPLE = """\
example:
  temporalwiki publish dataset temporalwiki ORG/temporalwiki --dry-run
  temporalwiki publish dataset temporalwiki ORG/temporalwiki             # a commit and a tag (2021.12) per interval
  temporalwiki publish dataset ckl ORG/ckl --accept-noncommercial        # all configs, also those made from LAMA
  temporalwiki publish model runs/lora-diffset-1112 ORG/lora-1112 --base openai-community/gpt2-large --results results
  temporalwiki publish metric eval_harness/metrics/fuar ORG/fuar
  temporalwiki publish leaderboard leaderboard ORG/leaderboard

The token comes from `hf auth login`, HF_TOKEN or a trusted publisher (docs/publishing.md).
"""


def add_arguments(parser: argparse.ArgumentParser, argv: list[str]) -> None:
    """Add the subcommand's arguments."""
    parser.epilog = _EXAMPLE
    parser.add_argument("kind", metavar="KIND", help=f"what to publish: {', '.join(KINDS)}")
    parser.add_argument("path", type=Path, metavar="PATH", help="folder to publish")
    parser.add_argument("repo_id", metavar="REPO_ID", help="repository: ORG/NAME; created if it does not exist")
    parser.add_argument("--tag", metavar="TAG", help="tag of the commit (default for datasets: the month, 2021.12)")
    parser.add_argument("--dry-run", action="store_true", help="print what would be done; send nothing")
    dataset = parser.add_argument_group("options for datasets")
    dataset.add_argument("--accept-jump", action="store_true", help="publish even if counts jump since last month")
    dataset.add_argument("--replace", action="store_true", help="replace an interval, under a new --tag")
    dataset.add_argument(
        "--accept-noncommercial", action="store_true", help="publish configs with a licence like LAMA's (CC BY-NC)"
    )
    model = parser.add_argument_group("options for models")
    model.add_argument("--base", metavar="ID", help="Hub id of the model that an adapter was trained on")
    model.add_argument(
        "--dataset", metavar="ORG/NAME@TAG", help="if the model was trained on a folder: the same dataset on the Hub"
    )
    model.add_argument(
        "--results", type=Path, metavar="DIR", help="folder with results of `temporalwiki evaluate` for the card"
    )


def run(arguments: argparse.Namespace) -> Table | None:
    """Publish, and print each step when it is done."""
    named = {name: value for name, value in vars(arguments).items() if name in signature(publish).parameters}
    if arguments.json:
        return publish(**named)
    for line in steps(**named):
        print_result(line)
    return None
