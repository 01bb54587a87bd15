"""What a dump server has. Its answers are not trusted: every name and size is checked before it is used.

Layout below a mirror's address, as on https://dumps.wikimedia.org:

    enwiki/                                               an index of dates
    enwiki/20211101/dumpstatus.json                       jobs, and their files with size and SHA-1
    wikidatawiki/entities/                                an index of dates (other/wikibase/wikidatawiki/ on mirrors)
    wikidatawiki/entities/20211101/wikidata-20211101-sha1sums.txt
"""

import datetime
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from temporalwiki.base.errors import InputError
from temporalwiki.builders.fetch.connection import Connection, Failed, NotThere

_ARTICLES = "articlesmultistreamdump"
_RECOMBINED = "articlesmultistreamdumprecombine"
_PAGE_PROPS = "pagepropstable"
_ENTITIES = ("wikidatawiki/entities", "other/wikibase/wikidatawiki")
_SHA1 = re.compile(r"[0-9a-f]{40}")
_LARGEST = 1 << 50  # bytes
_LOOKED_AT = 40  # dated folders of Wikidata: some three months, as most hold other dumps than JSON


class NoSuchDump(InputError):
    """The server has no finished dump of this date, not yet or no longer."""


class NotYet(NoSuchDump):
    """The server has no finished dump of this date yet."""


@dataclass(frozen=True)
class Wanted:
    """A file to fetch: its ``path`` in the folder of dumps and its possible ``places`` on a mirror."""

    path: str
    size: int
    sha1: str
    checksums: str  # the name of the list that gets its SHA-1
    places: tuple[str, ...]

    @property
    def name(self) -> str:
        """The file's name."""
        return self.path.rpartition("/")[2]


class Server:
    """All mirrors as one server. A list of files, with its SHA-1 sums, comes from the first mirror that has it."""

    def __init__(self, connection: Connection, mirrors: Sequence[str]) -> None:
        self._connection, self._mirrors = connection, mirrors
        self._read: dict[tuple[str, ...], tuple[str, str]] = {}

    def dates(self, wiki: str) -> list[str]:
        """Return the dates of all dumps of a wiki, oldest first. Raises InputError if the server lists no date."""
        try:
            place, text = self._first([f"{wiki}/"])
        except Failed as failure:
            raise InputError(f"{wiki}: {failure}") from None
        dates = _dates(text)
        if not dates:
            raise InputError(f"{wiki}: no dated folders at {place}")
        return dates

    def articles(self, wiki: str, date: str, folder: Path) -> list[Wanted]:
        """Return the multistream article files of a dump, in page order.

        Numbered parts are preferred: they are fetched and read in parallel, and a damaged part is small. The single
        file is chosen only if it is already in ``folder``, or if the dump has no parts. Raises InputError for files
        that are missing, unfinished or listed wrongly.
        """
        url, jobs = self._jobs(wiki, date)
        stem = f"{wiki}-{date}-pages-articles-multistream"
        whole = f"{stem}.xml.bz2"
        if _status(jobs, _RECOMBINED) == "done" and whole in (files := _files(jobs, _RECOMBINED)):
            wanted = _wanted(wiki, date, {whole: files[whole]}, "pages-articles-multistream", url)
            if (folder / whole).is_file() and (folder / whole).stat().st_size == wanted[0].size:
                return wanted
        self._check_done(wiki, date, url, jobs, _ARTICLES)
        listed = _files(jobs, _ARTICLES)
        parts = []
        for name in listed:
            if match := re.fullmatch(re.escape(stem) + r"[0-9]{1,9}\.xml-p([0-9]{1,18})p([0-9]{1,18})\.bz2", name):
                parts.append((int(match[1]), int(match[2]), name))
        parts.sort()
        for (_, last, _), (first, _, _) in pairwise([(0, 0, ""), *parts]):
            if first != last + 1:
                raise InputError(f"{wiki} {date}: {url} does not list page {min(first, last + 1)} in exactly one part")
        names = [name for _, _, name in parts] or [name for name in listed if name == whole]
        if not names:
            raise InputError(f"{wiki} {date}: {url} lists neither {whole} nor numbered parts")
        return _wanted(wiki, date, {name: listed[name] for name in names}, "pages-articles-multistream", url)

    def page_props(self, wiki: str, date: str) -> list[Wanted]:
        """Return the table of page properties; an empty list if the dump lacks it, since a build works without it.

        Raises InputError if the table is not finished.
        """
        url, jobs = self._jobs(wiki, date)
        if _PAGE_PROPS not in jobs:
            self._connection.say(f"{wiki} {date}: no {_PAGE_PROPS}; pages are found by the sitelinks of Wikidata")
            return []
        self._check_done(wiki, date, url, jobs, _PAGE_PROPS)
        name = f"{wiki}-{date}-page_props.sql.gz"
        files = _files(jobs, _PAGE_PROPS)
        if name not in files:
            raise InputError(f"{wiki} {date}: {url} lists no {name}")
        return _wanted(wiki, date, {name: files[name]}, "page_props", url)

    def problem(self, wiki: str, date: str) -> str | None:
        """Return why a build cannot have a dump, such as the job that is not done; None if it can."""
        try:
            _, jobs = self._jobs(wiki, date)
        except InputError as error:
            return str(error).removeprefix(f"{wiki} {date}: ")
        for job in (_ARTICLES, *([_PAGE_PROPS] if _PAGE_PROPS in jobs else [])):
            if (status := _status(jobs, job)) != "done":
                return f"{job} is {status}"
        return None

    def since(self, wiki: str, date: str) -> str:
        """Return " since " and when an unfinished job last changed, or the date of the dump; "" without a status."""
        try:
            _, jobs = self._jobs(wiki, date)
        except InputError:
            return ""
        for job in (_ARTICLES, _PAGE_PROPS):
            if job in jobs and _status(jobs, job) not in ("done", "not there"):
                updated = str(jobs[job].get("updated"))
                if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{5,8}", updated):
                    return f" since {updated}"
        return f" since {date[:4]}-{date[4:6]}-{date[6:]}"

    def wikidata(self, date: str, exact: bool) -> list[Wanted]:
        """Return the newest JSON dump at or before ``date`` (only at ``date`` if ``exact``), gz before bz2.

        A dump that the list of checksums does not name is not finished and is skipped. If a server has no index,
        only ``date`` is tried. Raises InputError if no dump is found.
        """
        indexes = tuple(f"{entities}/" for entities in _ENTITIES)
        try:
            place, text = self._first(indexes)
            dates = _dates(text)
        except NotThere as failure:
            place, dates = str(failure), [date]
        except Failed as failure:
            raise InputError(f"wikidata: {failure}") from None
        candidates = [day for day in dates if (day == date if exact else day <= date)]
        for day in candidates[: -_LOOKED_AT - 1 : -1]:
            places = tuple(f"{entities}/{day}" for entities in _ENTITIES)
            try:
                _, sums = self._first([f"{place}/wikidata-{day}-sha1sums.txt" for place in places])
            except NotThere:
                continue
            except Failed as failure:
                raise InputError(f"wikidata {day}: {failure}") from None
            for name in (f"wikidata-{day}-all.json.gz", f"wikidata-{day}-all.json.bz2"):
                if sha1 := _sha1_in(sums, name):
                    files = tuple(f"{place}/{name}" for place in places)
                    if day != candidates[-1]:
                        self._connection.say(f"wikidata {date}: using {day}; {candidates[-1]} lists no JSON dump")
                    path = f"{_ENTITIES[0]}/{day}/{name}"
                    return [Wanted(path, self._size(files), sha1, f"wikidata-{day}-sha1sums-entities.txt", files)]
        there = f"; the newest dates are {', '.join(dates[-6:])}" if dates != [date] else ""
        at = "of" if exact else "at or before"
        raise NoSuchDump(f"wikidata: no finished JSON dump {at} {date} at {place}{there}")

    def _jobs(self, wiki: str, date: str) -> tuple[str, Mapping[str, Any]]:
        """Return the URL of a dump's status and its jobs by name."""
        place = f"{wiki}/{date}/dumpstatus.json"
        try:
            url, text = self._first([place])
        except NotThere as failure:
            there = self.dates(wiki)
            raise NoSuchDump(f"{wiki} {date}: no such dump ({failure}); there are {', '.join(there[-8:])}") from None
        except Failed as failure:
            raise InputError(f"{wiki} {date}: {failure}") from None
        try:
            jobs = json.loads(text)["jobs"]
        except (ValueError, TypeError, KeyError, RecursionError):
            jobs = None
        if not isinstance(jobs, dict):
            raise InputError(f"{wiki} {date}: {url} is not the status of a dump: it has no jobs")
        return url, jobs

    def _check_done(self, wiki: str, date: str, url: str, jobs: Mapping[str, Any], job: str) -> None:
        if (status := _status(jobs, job)) != "done":
            earlier = [day for day in self.dates(wiki) if day < date]
            instead = f", or fetch {earlier[-1]}" if earlier else ""
            raise NotYet(f"{wiki} {date}: {job} is {status} by {url}; try later{instead}")

    def _urls(self, places: Sequence[str]) -> list[str]:
        return [f"{mirror}/{place}" for mirror in self._mirrors for place in places]

    def _first(self, places: Sequence[str]) -> tuple[str, str]:
        """Return the URL and text of the first page that exists.

        If none can be read, raises NotThere if every server answered that it has no such page, and Failed otherwise.
        """
        key, failures = tuple(places), list[Failed]()
        if key in self._read:
            return self._read[key]
        for url in self._urls(places):
            try:
                self._read[key] = url, self._connection.page(url)
                return self._read[key]
            except Failed as failure:
                failures.append(type(failure)(f"{url} {failure}"))
        kind = NotThere if all(isinstance(failure, NotThere) for failure in failures) else Failed
        raise kind("; ".join(map(str, failures)))

    def _size(self, places: Sequence[str]) -> int:
        failures = []
        for url in self._urls(places):
            try:
                if 0 < (size := self._connection.size(url)) < _LARGEST:
                    return size
                failures.append(f"{url} has {size} bytes")
            except Failed as failure:
                failures.append(f"{url} {failure}")
        raise InputError(f"wikidata: {'; '.join(failures)}")


def consecutive_firsts(dates: Sequence[str]) -> list[tuple[str, str]]:
    """Return the pairs of dates that are the first days of consecutive months, newest first."""
    firsts = {day for day in dates if day.endswith("01")}
    pairs = []
    for day in sorted(firsts, reverse=True):
        before = datetime.date(int(day[:4]), int(day[4:6]), 1) - datetime.timedelta(days=1)
        if (prev := before.strftime("%Y%m01")) in firsts:
            pairs.append((prev, day))
    return pairs


def _dates(index: str) -> list[str]:
    """Return the dated folders that an index page links to, oldest first."""
    linked = set(re.findall(r"""href\s*=\s*["']?(?:[^"'\s<>=]*/)?([0-9]{8})/?["'\s>]""", index, re.IGNORECASE))
    return sorted(day for day in linked if _is_date(day))


def _is_date(day: str) -> bool:
    try:
        return bool(datetime.date(int(day[:4]), int(day[4:6]), int(day[6:])))
    except ValueError:
        return False


def _status(jobs: Mapping[str, Any], job: str) -> str:
    """Return the status of a job, such as ``done`` or ``in-progress``; unknown text is escaped."""
    entry = jobs.get(job)
    if not isinstance(entry, dict):
        return "not there"
    status = str(entry.get("status"))
    return status if re.fullmatch(r"[a-z-]{1,20}", status) else f"{status[:40]!a}"


def _files(jobs: Mapping[str, Any], job: str) -> dict[str, Any]:
    files = jobs[job].get("files")
    return files if isinstance(files, dict) else {}


def _wanted(wiki: str, date: str, files: Mapping[str, Any], what: str, url: str) -> list[Wanted]:
    """Return checked files of a dump. The caller has checked their names; the URLs in the list are not used."""
    wanted = []
    for name, entry in files.items():
        size, sha1 = (entry.get("size"), entry.get("sha1")) if isinstance(entry, dict) else (None, None)
        if type(size) is not int or not 0 < size < _LARGEST or not isinstance(sha1, str):
            raise InputError(f"{wiki} {date}: {url} has no size and SHA-1 of {name}; try later")
        if not _SHA1.fullmatch(sha1.lower()):
            raise InputError(f"{wiki} {date}: {url} has no valid SHA-1 of {name}: {sha1[:60]!a}")
        path = f"{wiki}/{date}/{name}"
        wanted.append(Wanted(path, size, sha1.lower(), f"{wiki}-{date}-sha1sums-{what}.txt", (path,)))
    return wanted


def _sha1_in(sums: str, name: str) -> str | None:
    """Return the SHA-1 of a file in a list. If a name is listed twice, the last entry wins."""
    found = None
    for line in sums.splitlines():
        sha1, _, named = line.partition(" ")
        if named.lstrip(" *").strip() == name and _SHA1.fullmatch(sha1.lower()):
            found = sha1.lower()
    return found
