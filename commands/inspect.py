"""``temporalwiki inspect``: what a dataset folder, a dump or a result file holds."""

from __future__ import annotations

import argparse
from pathlib import Path

from temporalwiki.base.errors import InputError
from temporalwiki.base.terminal import print_result
from temporalwiki.builders.inspection import describe, describe_problems
from temporalwiki.eval_harness import inspection as results

_EXAMPLE = """\
example:
  temporalwiki inspect temporalwiki
  temporalwiki inspect dumps/enwiki/20211101/enwiki-20211101-pages-articles-multistream.xml.bz2
  temporalwiki inspect results                    # scores by month, and what training keeps and brings
"""


def add_arguments(parser: argparse.ArgumentParser, argv: list[str]) -> None:
    """Add the subcommand's arguments."""
    parser.epilog = _EXAMPLE
    parser.add_argument(
        "path", type=Path, metavar="PATH", help="a dataset folder, a dump file, a result file or a folder of results"
    )


def run(arguments: argparse.Namespace) -> None:
    """Print the description. Raises InputError if a dataset folder is not what its manifests say."""
    if (text := results.describe(arguments.path)) is not None:
        print_result(text)
        return
    print_result(describe(arguments.path))
    if found := describe_problems(arguments.path):
        raise InputError(f"{arguments.path}: {'; '.join(found)}")
    if arguments.path.is_dir():
        print_result("\nall files are as the manifests say")
