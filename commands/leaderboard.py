"""``temporalwiki leaderboard``: make a static page, tables and figures from result files."""

from __future__ import annotations

import argparse
from pathlib import Path

from temporalwiki.api.leaderboard import leaderboard
from temporalwiki.api.table import Table

_EXAMPLE = """\
example:
  temporalwiki leaderboard results --out leaderboard
  temporalwiki leaderboard results --out leaderboard --data temporalwiki   # also plots the data
  temporalwiki cutoff MODEL --data DATASET --output results/MODEL            # adds MODEL to a timeline of cutoffs
"""


def add_arguments(parser: argparse.ArgumentParser, argv: list[str]) -> None:
    """Add the subcommand's arguments."""
    parser.epilog = _EXAMPLE
    parser.add_argument(
        "results",
        type=Path,
        metavar="RESULTS",
        help="folder with results of `temporalwiki evaluate`, and of `temporalwiki cutoff` as DIR/cutoff.json",
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder of the page")
    parser.add_argument("--data", metavar="DATASET", help="dataset folder or Hub id, to plot its facts")
    parser.add_argument(
        "--export", type=Path, metavar="DIR", help="also write each result as a document of Every Eval Ever to DIR"
    )


def run(arguments: argparse.Namespace) -> Table:
    """Write the leaderboard. Raises UsageError if a package is missing."""
    return leaderboard(arguments.results, arguments.out, data=arguments.data, export=arguments.export)
