"""``temporalwiki cutoff``: the month up to which a model knows what changed."""

from __future__ import annotations

import argparse
from pathlib import Path

from temporalwiki.api.cutoff import TOPICS, cutoff
from temporalwiki.api.table import Table
from temporalwiki.commands.train import given

_EXAMPLE = """\
example:
  temporalwiki cutoff runs/lora-diffset-1112 --data temporalwiki
  temporalwiki cutoff openai-community/gpt2-large --data ORG/temporalwiki --topics relation --from 2021-01
  temporalwiki cutoff runs/lora-diffset-1112 --data temporalwiki --output results/lora   # for `leaderboard results`

A month counts as known if the model prefers what is new in it to what it replaced. docs/cutoff.md says how, and how
sure the answer is. Scores are cached: the same command continues where it was stopped.
"""


def add_arguments(parser: argparse.ArgumentParser, argv: list[str]) -> None:
    """Add the subcommand's arguments."""
    parser.epilog = _EXAMPLE
    parser.add_argument("model", metavar="MODEL", help="model: folder, Hub id, .gguf file or package:NAME")
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
        "--output",
        type=Path,
        default=Path("cutoff"),
        metavar="DIR",
        help="folder of cutoff.json and cutoff.svg (default: %(default)s)",
    )


def run(arguments: argparse.Namespace) -> Table:
    """Find the cutoff, and write it with its chart. Raises UsageError for wrong months."""
    return cutoff(**given(arguments, ("model", "data", "topics", "from_", "to", "output")))
