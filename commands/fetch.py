"""``temporalwiki fetch``: the dumps that a build reads."""

from __future__ import annotations

import argparse

from temporalwiki.base.terminal import print_result
from temporalwiki.builders.fetch import MIRROR, describe_plan, fetch, plan
from temporalwiki.commands.build import add_interval, read_interval

_EXAMPLE = """\
example:
  temporalwiki fetch 20211101 20211201 --dumps dumps
  temporalwiki build 20211101 20211201 --dumps dumps
"""


def add_arguments(parser: argparse.ArgumentParser, argv: list[str]) -> None:
    """Add the subcommand's arguments."""
    parser.epilog = _EXAMPLE
    add_interval(parser)
    parser.add_argument(
        "--mirror",
        action="append",
        metavar="URL",
        help="a dump server; given again, the next to try, which need not be trusted: checksums come from the first "
        f"that has them (default: {MIRROR})",
    )
    parser.add_argument("--plan", action="store_true", help="list the files and their sizes, and stop")


def run(arguments: argparse.Namespace) -> None:
    """Fetch, or with --plan say what would be fetched."""
    interval, named = read_interval(arguments)
    wikidata = named or (None, None)
    mirrors = arguments.mirror or [MIRROR]
    if arguments.plan:
        print_result(describe_plan(arguments.dumps, plan(interval, arguments.dumps, mirrors, wikidata)))
        return
    files = fetch(interval, arguments.dumps, mirrors, wikidata)
    size = sum(file.stat().st_size for file in files)
    print_result(f"{arguments.dumps}: {len(files)} files, {size / 1e9:,.2f} GB, all as listed")
