"""Fetch the dumps of an interval, so that a build finds them.

Mirrors are tried in the given order. The lists of files (``dumpstatus.json``, ``sha1sums``) come from the first mirror
that serves them. A file comes from the first mirror whose bytes match these lists. So as long as the first mirror
serves the lists, the others cannot give you wrong files. The checksums are stored next to the dumps before any file is
downloaded, so that a build checks them again and refuses an incomplete folder.
"""

import asyncio
import hashlib
import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from pathlib import Path

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.base.files import UNFINISHED, only_one, whole_file
from temporalwiki.base.progress import Progress
from temporalwiki.base.terminal import say
from temporalwiki.builders import checksums, snapshot
from temporalwiki.builders.build import find_sources
from temporalwiki.builders.fetch.connection import Connection, check_mirror
from temporalwiki.builders.fetch.download import chunks, download, part_of
from temporalwiki.builders.fetch.server import NoSuchDump, NotYet, Server, Wanted, consecutive_firsts
from temporalwiki.builders.snapshot import Dump, Interval

__all__ = [
    "MIRROR",
    "NoSuchDump",
    "NotYet",
    "dates_of_wikidata",
    "describe_plan",
    "fetch",
    "left",
    "newest_interval",
    "plan",
    "unfinished_dump",
]

MIRROR = "https://dumps.wikimedia.org"
CONNECTIONS = 3  # at once, which is the limit of Wikimedia


def newest_interval(mirror: str, wiki: str) -> tuple[str, str]:
    """Return the dates of the newest two finished dumps from the first days of consecutive months, as YYYYMMDD.

    Raises NotYet, which says what is not finished, if the server has no two such dumps, and InputError if it lists no
    two.
    """
    with Connection(say) as connection:
        server = Server(connection, [check_mirror(mirror)])
        dates = server.dates(wiki)
        pairs = consecutive_firsts(dates)
        if not pairs:
            there = ", ".join(dates[-8:])
            raise InputError(f"{wiki}: no dumps from the first days of two consecutive months; there are {there}")
        problems: dict[str, str | None] = {}
        for pair in pairs:
            problems |= {date: server.problem(wiki, date) for date in pair if date not in problems}
            if not any(problems[date] for date in pair):
                return pair
    missing = "; ".join(f"{date}: {problem}" for date, problem in problems.items() if problem)
    raise NotYet(f"{wiki}: no two finished dumps of consecutive months: {missing}")


def unfinished_dump(mirror: str, wiki: str, after: str) -> str | None:
    """Return which dump of the first of a month is not done, and since when; None if all after ``after`` are done.

    The newest one counts. Raises InputError if the server cannot be read.
    """
    with Connection(say) as connection:
        server = Server(connection, [check_mirror(mirror)])
        for date in reversed(server.dates(wiki)):
            if date > after and date.endswith("01") and (problem := server.problem(wiki, date)):
                return f"{wiki} {date} is not done: {problem}{server.since(wiki, date)}"
    return None


def plan(
    interval: Interval, dumps: Path, mirrors: Sequence[str], wikidata: tuple[str | None, str | None] = (None, None)
) -> list[Wanted]:
    """Return the files of an interval, in the order of a build; ``wikidata`` is as in ``fetch``.

    Raises InputError for a dump that is missing or not finished, and for files in ``dumps`` that a build would read
    instead of these.
    """
    with Connection(say) as connection:
        return _plan(connection, interval, dumps, _checked(mirrors), wikidata)


def _checked(mirrors: Sequence[str]) -> list[str]:
    if not mirrors:
        raise UsageError("name at least one mirror")
    return [check_mirror(mirror) for mirror in mirrors]


def _plan(
    connection: Connection,
    interval: Interval,
    dumps: Path,
    mirrors: Sequence[str],
    wikidata: tuple[str | None, str | None],
) -> list[Wanted]:
    dates = wikidata[0] or interval.prev, wikidata[1] or interval.recent
    if snapshot.check_date(dates[0]) >= snapshot.check_date(dates[1]):
        raise UsageError(f"the Wikidata dumps must go forward in time: {dates[0]} is not before {dates[1]}")
    server = Server(connection, mirrors)
    prev, recent = (_articles(server, dumps, interval.wiki, date) for date in (interval.prev, interval.recent))
    page_props = _or_kept(
        lambda: server.page_props(interval.wiki, interval.recent),
        dumps,
        [dumps / interval.wiki / interval.recent],
        "-page_props.sql.gz",
    )
    facts_prev, facts_recent = (
        _wikidata(server, dumps, date, exact=named is not None) for date, named in zip(dates, wikidata, strict=True)
    )
    begins, ends = dates_of_wikidata([Path(file.path) for file in (*facts_prev, *facts_recent)])
    if ends <= begins and wikidata[1] is None:
        raise NotYet(f"wikidata: no finished JSON dump after that of {begins} and up to {dates[1]}; try later")
    found = zip((interval.prev, interval.recent, *dates), (prev, recent, facts_prev, facts_recent), strict=True)
    sides = [Dump(date, tuple(dumps / file.path for file in files)) for date, files in found]
    snapshot.check_parts(sides[0], sides[1])
    snapshot.check_pair(sides[2], sides[3], "wikidata")
    wanted = [*prev, *recent, *facts_prev, *facts_recent, *page_props]
    _check_place(dumps, wanted, dates if wikidata == (None, None) else ())
    return wanted


def _or_kept(find: Callable[[], list[Wanted]], dumps: Path, folders: Iterable[Path], part: str) -> list[Wanted]:
    """Return what a server lists, or else the files with ``part`` in their names in the first folder that has some."""
    try:
        return find()
    except NoSuchDump:
        for folder in folders:
            if kept := _kept(dumps, folder):
                return [file for file in kept if part in file.name]
        raise


def _articles(server: Server, dumps: Path, wiki: str, date: str) -> list[Wanted]:
    folder = dumps / wiki / date
    found = _or_kept(lambda: server.articles(wiki, date, folder), dumps, [folder], "-pages-articles-multistream")
    return sorted(found, key=lambda file: [int(part) for part in re.findall(r"[0-9]+", file.name)])


def _wikidata(server: Server, dumps: Path, date: str, exact: bool) -> list[Wanted]:
    folders = sorted((dumps / "wikidatawiki" / "entities").glob("[0-9]" * 8), reverse=True)
    right = [folder for folder in folders if folder.name == date or (folder.name < date and not exact)]
    return _or_kept(lambda: server.wikidata(date, exact), dumps, right, "-all.json.")[:1]  # gz before bz2


def _kept(dumps: Path, folder: Path) -> list[Wanted]:
    """Return the files of a folder that were fetched and checked before; the server may have removed them since."""
    kept = []
    for name, noted in sorted(checksums.notes(folder).items(), reverse=True):
        file = folder / name
        # the last value is the time of change, which differs in a copy of the folder
        if (
            Path(name).name == name
            and file.is_file()
            and isinstance(noted, list)
            and noted[:2] == checksums.state(file)[:2]
        ):
            kept.append(Wanted(file.relative_to(dumps).as_posix(), file.stat().st_size, str(noted[-1]), "", ()))
    return kept


def fetch(
    interval: Interval, dumps: Path, mirrors: Sequence[str], wikidata: tuple[str | None, str | None] = (None, None)
) -> list[Path]:
    """Fetch the dumps of ``interval`` into ``dumps`` and return the files in the order of a build.

    A file that is already there is checked once and kept if it is right, even if the server has removed it; partial
    files are continued. ``wikidata`` has the dates of the two Wikidata dumps; None stands for the newest one at or
    before the snapshot. Raises InputError for an unfinished dump, for a server that does not give what it lists, and
    for a disk that is too small. Call it again to continue.
    """
    dumps, mirrors = dumps.resolve(), _checked(mirrors)
    with only_one(dumps / "wikidatawiki", "fetch"), Connection(say) as connection:
        wanted = _plan(connection, interval, dumps, mirrors, wikidata)
        _check_room(dumps, wanted)
        _write_checksums(dumps, wanted)
        with Progress("fetch", sum(file.size for file in wanted), "B") as progress:
            connection.run(_fetch_all(connection, mirrors, dumps, wanted, progress))
        dates = dates_of_wikidata([dumps / file.path for file in wanted])
        return find_sources(dumps, interval, dates).files


def dates_of_wikidata(files: Sequence[Path]) -> tuple[str, str]:
    """Return the dates of the two Wikidata dumps among the files that ``fetch`` returned."""
    prev, recent = (file.parent.name for file in files if file.parent.parent.name == "entities")
    return prev, recent


def left(dumps: Path, file: Wanted) -> int:
    """Return how many bytes of a file are still missing, judged by the size of the files on the disk."""
    target, part = dumps / file.path, part_of(dumps / file.path, file.sha1)
    if target.is_file() and target.stat().st_size == file.size:
        return 0
    return max(0, file.size - (part.stat().st_size if part.is_file() else 0))


def describe_plan(dumps: Path, wanted: Sequence[Wanted]) -> str:
    """Return a table of the files to fetch."""
    rows = [(file.size, left(dumps, file), file.path) for file in wanted]
    rows.append((sum(size for size, *_ in rows), sum(missing for _, missing, _ in rows), f"{len(wanted)} files"))
    return "\n".join(f"{of / 1e6:>12,.1f} MB  {missing / 1e6:>12,.1f} to fetch  {name}" for of, missing, name in rows)


def _check_room(dumps: Path, wanted: Sequence[Wanted]) -> None:
    missing, free = sum(left(dumps, file) for file in wanted), shutil.disk_usage(dumps).free
    if missing > free:
        raise InputError(f"{dumps}: {missing / 1e9:.1f} GB are missing, but {free / 1e9:.1f} GB are free; make room")


def _check_place(dumps: Path, wanted: Sequence[Wanted], dates: Sequence[str]) -> None:
    """Raise InputError if a build would read other files of the folder instead of the fetched ones.

    ``dates`` are the dates for which a build looks up the Wikidata dumps itself.
    """
    paths = {dumps / file.path for file in wanted}
    for folder in sorted({file.parent for file in paths}):
        stem = f"{folder.parent.name}-{folder.name}-pages-articles-multistream"
        if folder / f"{stem}.xml.bz2" in paths:
            continue  # a build prefers it
        for other in sorted(folder.glob(f"{stem}*.xml*")):
            if other not in paths:
                raise InputError(f"{other}: not a file of the dump as the server lists it; remove it and fetch again")
    taken = [file.name for file in wanted if file.path.startswith("wikidatawiki/")]
    for date, name in zip(dates, taken, strict=False):
        for other in sorted((dumps / "wikidatawiki" / "entities").glob("*/wikidata-????????-all.json.*")):
            if name < other.name and other.parent.name <= date and other not in paths:
                raise InputError(f"{other}: newer than what the server has; remove it, or name dates with --wikidata")


def _write_checksums(dumps: Path, wanted: Sequence[Wanted]) -> None:
    """Write the lists of checksums for builds, one per job; lists of other jobs stay."""
    listed = [file for file in wanted if file.checksums]  # files that were fetched before have their list
    for (folder, name), files in groupby(listed, lambda file: ((dumps / file.path).parent, file.checksums)):
        with whole_file(folder / name) as part:
            part.write_text("".join(f"{file.sha1}  {file.name}\n" for file in files), encoding="utf-8")


async def _fetch_all(
    connection: Connection, mirrors: Sequence[str], dumps: Path, wanted: Sequence[Wanted], progress: Progress
) -> None:
    for folder in {(dumps / file.path).parent for file in wanted}:
        for litter in folder.glob(UNFINISHED):  # lists and notes of a killed process; downloads have other names
            litter.unlink()
    slots = asyncio.Semaphore(CONNECTIONS)

    async def one(file: Wanted) -> None:
        """Fetch one file unless it is complete, and note its state on the disk."""
        target = dumps / file.path
        async with slots:
            if (state := await _is_there(target, file)) is None:
                urls = [f"{mirror}/{place}" for mirror in mirrors for place in file.places]
                await download(connection, urls, target, file.size, file.sha1, progress)
                say(f"fetch: {file.path}: {file.size / 1e6:,.1f} MB")
                state = checksums.state(target)
            else:
                progress.update(file.size)
            checksums.note(target, state, file.sha1)

    try:
        async with asyncio.TaskGroup() as group:
            for file in sorted(wanted, key=lambda file: -file.size):  # the largest first
                group.create_task(one(file))
    except BaseExceptionGroup as failed:  # the first error ends the others
        raise failed.exceptions[0] from None


async def _is_there(target: Path, file: Wanted) -> list[int] | None:
    """Return the state of a complete file, or None. A file is read once; later its size and time are compared."""
    if not target.is_file():
        return None
    state = checksums.state(target)
    if state[0] == file.size:
        if checksums.notes(target.parent).get(target.name) == [*state, file.sha1]:
            return state
        digest = hashlib.sha1()
        async for chunk in chunks(target):
            digest.update(chunk)
        if digest.hexdigest() == file.sha1:
            return state
    say(f"fetch: {target} differs from the listed file and is fetched again")
    return None
