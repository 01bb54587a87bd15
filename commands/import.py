"""``temporalwiki import``: released archives into the configs that a build makes."""

from __future__ import annotations

import argparse
from pathlib import Path

from temporalwiki.api.table import Table, tell
from temporalwiki.builders.archives import CKL_FOLDER, WIKI_FOLDER, import_archives
from temporalwiki.model_cards.folder_card import folder_card

_EXAMPLE = """\
example:
  temporalwiki import TWiki_Probes.zip TWiki_Diffsets.zip     # into ./temporalwiki
  temporalwiki import ckl_data                                # a folder of unpacked files, into ./ckl

Files of TemporalWiki: 0801-0901_changed.csv, 0801-0901_unchanged.csv, wikipedia_0809_gpt2.csv, and the same for the
next three months.
Files of CKL: invariantLAMA.csv, updatedLAMA.csv, newLAMA.csv, newLAMA_easy.csv, newLAMA_easy_small.csv and its two
parts, each with the JSON file of its answers; recent_news_full.csv, recent_news_small.csv and its two parts;
wikipedia_pretrain_full.csv and wikipedia_pretrain_small.csv; trex_5000.csv and newLAMA_easy_5000.csv.
"""


def add_arguments(parser: argparse.ArgumentParser, argv: list[str]) -> None:
    """Add the subcommand's arguments."""
    parser.epilog = _EXAMPLE
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATHS", help="zips, csv files, and folders of them")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help=f"the dataset folder (default: {WIKI_FOLDER}, and {CKL_FOLDER} for CKL's files)",
    )


def run(arguments: argparse.Namespace) -> Table:
    """Import the files, and print and return a line for each split."""
    rows = []
    for line in import_archives(arguments.paths, arguments.out, folder_card):
        tell(line, arguments.json)
        rows.append({"line": line})
    return Table(arguments.out or Path(), rows, "")
