"""``temporalwiki fetch``: the dumps that a build reads."""

from __future__ import annotations

import argparse

from temporalwiki.api.table import Table
from temporalwiki.builders.fetch import MIRROR, describe_plan, fetch, left, plan
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
        help="a dump server; repeat the option to name more. Checksums come from the first one that has them, so the "
        f"others need not be trusted (default: {MIRROR})",
    )
    parser.add_argument("--plan", action="store_true", help="list the files and their sizes, and stop")


def run(arguments: argparse.Namespace) -> Table:
    """Fetch the dumps, or with --plan list what would be fetched."""
    interval, named = read_interval(arguments)
    wikidata = named or (None, None)
    mirrors, dumps = arguments.mirror or [MIRROR], arguments.dumps
    if arguments.plan:
        wanted = plan(interval, dumps, mirrors, wikidata)
        rows = [{"file": str(file.path), "size": file.size, "to_fetch": left(dumps, file)} for file in wanted]
        return Table(dumps, rows, describe_plan(dumps, wanted))
    files = fetch(interval, dumps, mirrors, wikidata)
    sizes = {str(file.relative_to(dumps.resolve())): file.stat().st_size for file in files}
    rows = [{"file": file, "size": size, "to_fetch": 0} for file, size in sizes.items()]
    return Table(dumps, rows, f"{dumps}: {len(files)} files, {sum(sizes.values()) / 1e9:,.2f} GB, all as listed")
