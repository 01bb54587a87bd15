"""``temporalwiki fetch``: download and check the dumps of two snapshots; resume interrupted downloads.

Example:

    temporalwiki fetch 20211101 20211201 --dumps dumps
    temporalwiki build 20211101 20211201 --dumps dumps
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from temporalwiki.api.arguments import Arg, Flag, Folder
from temporalwiki.api.build import read_interval
from temporalwiki.api.table import Table
from temporalwiki.builders import fetch as fetcher


def fetch(
    prev: Annotated[str, Arg("PREV", positional=True)],
    recent: Annotated[str, Arg("RECENT", positional=True)],
    *,
    dumps: Folder,
    wiki: Annotated[str, Arg()] = "enwiki",
    wikidata: Annotated[Sequence[str], Arg(("DATE_PREV", "DATE_RECENT"), nargs=2)] | None = None,
    mirror: Annotated[Sequence[str], Arg("URL", repeat=True)] = (),
    plan: Flag = False,
) -> Table:
    """Fetch the dumps that a build reads, and return a row for each file.

    Args:
        prev: date of the earlier Wikipedia dump, such as 20211101 or 2021-11-01.
        recent: date of the later dump.
        dumps: folder of dumps, laid out as on Wikimedia's server.
        wiki: database name of the wiki.
        wikidata: dates of the two Wikidata dumps; by default the newest at or before each snapshot.
        mirror: a dump server; repeat the option to name more. Checksums come from the first one that has them, so the
            others need not be trusted; https://dumps.wikimedia.org by default.
        plan: list the files and their sizes, and stop.
    """
    mirrors = mirror or [fetcher.MIRROR]
    interval, named = read_interval(wiki, prev, recent, wikidata)
    folder, dates = Path(dumps), named or (None, None)
    if plan:
        wanted = fetcher.plan(interval, folder, mirrors, dates)
        rows = [{"file": str(file.path), "size": file.size, "to_fetch": fetcher.left(folder, file)} for file in wanted]
        return Table(folder, rows, fetcher.describe_plan(folder, wanted))
    files = fetcher.fetch(interval, folder, mirrors, dates)
    sizes = {str(file.relative_to(folder.resolve())): file.stat().st_size for file in files}
    rows = [{"file": file, "size": size, "to_fetch": 0} for file, size in sizes.items()]
    return Table(folder, rows, f"{folder}: {len(files)} files, {sum(sizes.values()) / 1e9:,.2f} GB, all as listed")
