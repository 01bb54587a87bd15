"""Snapshots, intervals, and the dump files of each.

A snapshot is (wiki, date); an interval is two snapshots of one wiki. Dumps lie as Wikimedia lays them out:

    DUMPS/enwiki/20211101/enwiki-20211101-pages-articles-multistream.xml.bz2
    DUMPS/wikidatawiki/entities/20211101/wikidata-20211101-all.json.gz
"""

import datetime
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.base.files import read_small

_WIKI = re.compile(r"[a-z][a-z0-9_]{0,60}wiki")
_PART = re.compile(r"(\d*)\.xml-p(\d+)p(\d+)(?:\.bz2|\.gz)?$")

# Database names whose language code is not the name without "wiki".
LANGUAGES = {
    "simple": "en",
    "no": "nb",
    "als": "gsw",
    "bat_smg": "sgs",
    "be_x_old": "be-tarask",
    "fiu_vro": "vro",
    "roa_rup": "rup",
    "zh_classical": "lzh",
    "zh_min_nan": "nan",
    "zh_yue": "yue",
}


def check_date(text: str) -> str:
    """Return ``text`` if it is a date written YYYYMMDD. Raises UsageError otherwise."""
    if not re.fullmatch(r"[0-9]{8}", text):
        raise UsageError(f"{text!r} is not a date: write YYYYMMDD, for example 20211101")
    try:
        datetime.date(int(text[:4]), int(text[4:6]), int(text[6:]))
    except ValueError as error:
        raise UsageError(f"{text!r} has the form YYYYMMDD, but there is no such day: {error}") from None
    return text


def read_date(text: str) -> str:
    """Return a date that a user wrote, YYYYMMDD or YYYY-MM-DD, as YYYYMMDD; raise UsageError as ``check_date``."""
    return check_date(text.replace("-", "") if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text) else text)


def check_wiki(text: str) -> str:
    """Return ``text`` if it is a wiki's database name. Raises UsageError otherwise."""
    if not _WIKI.fullmatch(text):
        raise UsageError(f"{text!r} is not a wiki's database name: for example enwiki, simplewiki, kowiki")
    return text


@dataclass(frozen=True)
class Interval:
    """Two snapshots of one wiki: ``prev`` and ``recent`` are dates written YYYYMMDD."""

    wiki: str
    prev: str
    recent: str

    def __post_init__(self) -> None:
        check_wiki(self.wiki)
        if check_date(self.prev) >= check_date(self.recent):
            raise UsageError(f"the interval must go forward in time: {self.prev} is not before {self.recent}")

    @property
    def name(self) -> str:
        """The full name of the interval, ``20211101-20211201``."""
        return f"{self.prev}-{self.recent}"

    @property
    def short_name(self) -> str:
        """The two months, ``1112``, as in the TemporalWiki paper."""
        return self.prev[4:6] + self.recent[4:6]

    @property
    def language(self) -> str:
        """The language code of the wiki's labels in Wikidata."""
        code = self.wiki.removesuffix("wiki")
        return LANGUAGES.get(code, code.replace("_", "-"))

    @property
    def site(self) -> str:
        """The start of the addresses of articles, made from the wiki's name because a dump could give a false one."""
        return f"https://{self.wiki.removesuffix('wiki').replace('_', '-')}.wikipedia.org/wiki/"


@dataclass(frozen=True)
class Dump:
    """The files of one snapshot, in page order."""

    date: str
    files: tuple[Path, ...]
    cut: str | None = None  # for a history dump: read each page's newest revision at this date


def wikipedia_dump(dumps: Path, wiki: str, date: str) -> Dump:
    """Find the dump of ``wiki`` at ``date``.

    The first of these that exists is chosen: the multistream articles of that date, its plain pages-articles, its
    content export, its meta-current; the earliest full-history dump of that date or later, the earliest
    content-history export of that date or later. The last two are cut at ``date``. Raises InputError if the dump or a
    numbered part is missing, or if the format is not supported.
    """
    folder = dumps / wiki / date
    iso = f"{date[:4]}-{date[4:6]}-{date[6:]}"
    current = dumps / "other" / "mediawiki_content_current" / wiki / iso / "xml" / "bzip2"
    for place, stem in (
        (folder, f"{wiki}-{date}-pages-articles-multistream"),
        (folder, f"{wiki}-{date}-pages-articles"),
        (current, f"{wiki}-{iso}"),
        (folder, f"{wiki}-{iso}"),
        (folder, f"{wiki}-{date}-pages-meta-current"),
    ):
        if files := _parts(place, stem):
            return Dump(date, files)
    for later in sorted(d.name for d in _folders(dumps / wiki) if d.name >= date):
        if files := _parts(dumps / wiki / later, f"{wiki}-{later}-pages-meta-history"):
            return Dump(date, files, cut=date)
    history = dumps / "other" / "mediawiki_content_history" / wiki
    for export in sorted(_folders(history, r"\d{4}-\d\d-\d\d"), key=lambda d: d.name):
        if export.name >= iso and (files := _parts(export / "xml" / "bzip2", f"{wiki}-{export.name}")):
            return Dump(date, files, cut=date)
    raise InputError(_what_is_there_instead(dumps, wiki, date))


def _what_is_there_instead(dumps: Path, wiki: str, date: str) -> str:
    folder = dumps / wiki / date
    wanted = f"{wiki}-{date}-pages-articles-multistream.xml.bz2"
    if not dumps.is_dir():
        return f"{dumps}: no such folder of dumps; `temporalwiki fetch` brings them"
    if folder.is_dir():
        found = sorted(f.name for f in folder.iterdir())
        packed = [name for name in found if name.endswith(".7z")]
        if packed:
            return f"{folder / packed[0]}: 7z is not read; take the .bz2 of the same dump, or repack it"
        listing = ", ".join(found[:4]) or "nothing"
        return f"{folder}: no {wanted} (nor numbered parts of it) there; found {listing}"
    dates = sorted(d.name for d in _folders(dumps / wiki))
    if dates:
        return f"{folder}: no such dump; there are {', '.join(dates[-6:])}"
    place = dumps / wiki if (dumps / wiki).is_dir() else dumps
    names = ", ".join(sorted(f.name for f in place.iterdir())[:6]) or "nothing"
    return f"{place}: no dumps of {wiki}, which lie in folders such as {wiki}/{date}; found {names}"


def _folders(place: Path, pattern: str = r"\d{8}") -> list[Path]:
    if not place.is_dir():
        return []
    return [d for d in place.iterdir() if re.fullmatch(pattern, d.name) and d.is_dir()]


def _parts(folder: Path, stem: str) -> tuple[Path, ...]:
    """Return the one file ``stem.xml.bz2`` or its numbered parts, in page order."""
    if not folder.is_dir():
        return ()
    for suffix in (".xml.bz2", ".xml.gz", ".xml"):
        if (folder / f"{stem}{suffix}").is_file():
            return (folder / f"{stem}{suffix}",)
    parts: list[tuple[int, int, Path]] = []
    for file in folder.iterdir():
        if not file.name.startswith(stem):
            continue
        rest = file.name[len(stem) :]
        # content exports write "-p1p99.xml.bz2", the older dumps "1.xml-p1p99.bz2"
        match = _PART.match(rest) or re.fullmatch(r"()-p(\d+)p(\d+)\.xml(?:\.bz2|\.gz)?", rest)
        if match:
            parts.append((int(match[2]), int(match[3]), file))
    parts.sort()
    for first, last, named in _listed_parts(folder, stem):
        if parts and (first, last) not in {(a, b) for a, b, _ in parts}:
            raise InputError(f"{folder}: the part with pages {first} to {last} is missing; {named} lists it")
    for (_, last, file), (first, _, after) in pairwise(parts):
        if first > last + 1:
            missing = f"the part with pages {last + 1} to {first - 1} is missing"
            raise InputError(f"{folder}: {missing}, between {file.name} and {after.name}")
        if first <= last:
            raise InputError(f"{folder}: {file.name} and {after.name} hold the same pages; keep one of them")
    if parts and parts[0][0] > 10:  # content exports begin at the lowest existing id, which is 10 in English
        raise InputError(f"{folder}: the part with pages 1 to {parts[0][0] - 1} is missing, before {parts[0][2].name}")
    return tuple(file for _, _, file in parts)


def _listed_parts(folder: Path, stem: str) -> Iterator[tuple[int, int, str]]:
    """Yield the page ranges of the parts that index files and lists of checksums next to a dump name."""
    index = re.compile(re.escape(stem) + r"-index\d*\.txt-p(\d+)p(\d+)\.bz2")
    listed = re.compile(re.escape(stem) + r"\d*\.xml-p(\d+)p(\d+)(?:\.bz2|\.gz)?\b")
    for file in sorted(folder.iterdir()):
        if match := index.fullmatch(file.name):
            yield int(match[1]), int(match[2]), file.name
        elif re.search(r"sha1sums.*\.txt$", file.name):
            for match in listed.finditer(read_small(file).decode("utf-8", "replace")):
                yield int(match[1]), int(match[2]), file.name


def check_parts(prev: Dump, recent: Dump) -> None:
    """Raise InputError if the parts of ``recent`` end before the parts of ``prev``: the largest page id only grows."""
    ends = [_PART.search(dump.files[-1].name) for dump in (prev, recent)]
    if ends[0] and ends[1] and int(ends[1][3]) < int(ends[0][3]):
        where = f"the pages end at {ends[1][3]}, and in {prev.date} at {ends[0][3]}"
        raise InputError(f"{recent.files[-1].parent}: the last part is missing: {where}")


def wikidata_dump(dumps: Path, date: str, exact: bool = False) -> Dump:
    """Find the newest Wikidata JSON dump at or before ``date``, or exactly at ``date`` if ``exact``; gz before bz2.

    Raises InputError if it finds none.
    """
    entities = dumps / "wikidatawiki" / "entities"
    dates = sorted(d.name for d in _folders(entities))
    chosen = [d for d in dates if d == date] if exact else [d for d in dates if d <= date]
    for day in reversed(chosen):
        for suffix in ("gz", "bz2"):
            file = entities / day / f"wikidata-{day}-all.json.{suffix}"
            if file.is_file():
                return Dump(day, (file,))
    wanted = f"wikidata-{date}-all.json.gz or .bz2"
    there = f"; there are {', '.join(dates[-6:])}" if dates else ""
    at = "of" if exact else "at or before"
    hint = "" if exact or not dates else "; name two of them with --wikidata"
    raise InputError(f"{entities}: no Wikidata dump {at} {date} ({wanted}){there}{hint}")


def page_props_file(dumps: Path, wiki: str, date: str) -> Path | None:
    """Return the snapshot's table of page properties, or None if it is missing."""
    file = dumps / wiki / date / f"{wiki}-{date}-page_props.sql.gz"
    return file if file.is_file() else None


def check_pair(prev: Dump, recent: Dump, what: str) -> None:
    """Raise InputError if ``prev`` and ``recent`` are the same dump. ``what`` names them in the message."""
    if prev.files == recent.files and prev.cut == recent.cut:
        both = f"{what}: both sides are {'/'.join(prev.files[0].parts[-3:])}"
        raise InputError(f"{both}; fetch the dump nearer to the second date, or name both")
