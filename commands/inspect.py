"""``temporalwiki inspect``: what a dataset folder or a dump holds."""

from __future__ import annotations

import argparse
from pathlib import Path

from temporalwiki.builders.errors import InputError
from temporalwiki.builders.inspection import describe, describe_problems

_EXAMPLE = """\
example:
  temporalwiki inspect temporalwiki
  temporalwiki inspect dumps/enwiki/20211101/enwiki-20211101-pages-articles-multistream.xml.bz2
"""


def add_arguments(parser: argparse.ArgumentParser, argv: list[str]) -> None:
    """Add the subcommand's arguments."""
    parser.epilog = _EXAMPLE
    parser.add_argument("path", type=Path, metavar="PATH", help="a dataset folder, or a dump file")


def run(arguments: argparse.Namespace) -> None:
    """Print the description. Raises InputError if a dataset folder is not what its manifests say."""
    print(describe(arguments.path))
    if found := describe_problems(arguments.path):
        raise InputError(f"{arguments.path}: {'; '.join(found)}")
    if arguments.path.is_dir():
        print("\nall files are as the manifests say")
