"""``temporalwiki inspect``: what a dataset folder or a dump holds."""

from __future__ import annotations

import argparse
from pathlib import Path

from temporalwiki.builders.inspection import describe

_EXAMPLE = """\
example:
  temporalwiki inspect temporalwiki
  temporalwiki inspect dumps/enwiki/20211101/enwiki-20211101-pages-articles-multistream.xml.bz2
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the subcommand's arguments."""
    parser.epilog = _EXAMPLE
    parser.add_argument("path", type=Path, metavar="PATH", help="a dataset folder, or a dump file")


def run(arguments: argparse.Namespace) -> None:
    """Print the description."""
    print(describe(arguments.path))
