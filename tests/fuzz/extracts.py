"""Months of a Wikipedia, each extracted with the month before as its base, give the same as full extracts."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from temporalwiki.base.errors import InputError
from temporalwiki.builders import incremental
from temporalwiki.builders.snapshot import Dump
from temporalwiki.builders.stages import Report
from temporalwiki.builders.wikipedia import extract, unchanged_pages
from temporalwiki.builders.wikipedia.sentence_diff import Articles

from fuzz import xml_dump
from fuzz.files import file, folder
from fuzz.xml_pages import mutate as mutate
from tiny_dumps import FOOTER, header, page, revision

_BETWEEN = b"\0"  # the months, each without the dump's header and its end
PAGES = [
    page(1, "A &amp; B", 'x < y & "z"', revision_id=5),
    page(2, "Talk:C", "y", ns=1),
    page(3, "D", "#REDIRECT [[A]]", redirect=True),
    page(4, "E", revisions=[revision("one", 1), revision("two", 2, 1, at="2021-11-05T00:00:00Z")]),
    page(5, "é漢", "text " * 9, revision_id=7),
]
_LATER = [
    page(1, "A and B", 'x < y & "z"', revision_id=5),  # renamed
    page(2, "C", "y"),  # moved
    page(3, "D", "no redirect any more", revision_id=8),
    page(4, "E", "three", revision_id=3, parent=2),
    page(5, "é漢", "test " * 9, revision_id=8),
]
SEEDS = tuple(
    "\0".join(map("".join, months)).encode()
    for months in (
        (PAGES, _LATER, PAGES),
        (PAGES[:2], [], PAGES[1:], _LATER[2:]),
        (PAGES, PAGES[::-1], [PAGES[4], PAGES[4]]),
        ([PAGES[0].replace("&quot;", '"')], PAGES[:1]),
        ([PAGES[0]], [PAGES[0].replace("wikitext<", "json<")], [PAGES[0]]),
    )
)
FOUND: tuple[bytes, ...] = ()
WORDS = (*xml_dump.WORDS, _BETWEEN)
LONGEST = 8192
_MONTHS = 4


def check(data: bytes) -> None:
    shutil.rmtree(folder() / "months", ignore_errors=True)
    texts: dict[tuple[int, int], bytes] = {}  # a revision has one text, or nothing is promised
    before: Path | None = None
    for number, pages in enumerate(data.split(_BETWEEN)[:_MONTHS]):
        dump = Dump("x", (file("enwiki.xml", header().encode() + pages + FOOTER.encode()),))
        full, now = (folder() / "months" / f"{kind}-{number}" for kind in ("full", "now"))
        wanted = _read(dump, full, None)
        if wanted is None:
            return
        articles = _articles(full)
        if any(texts.setdefault(one[:2], one[3]) != one[3] for one in articles):
            return
        if before is not None:
            assert _read(dump, now, before) == wanted, "other counts than in the full extract"
            shutil.rmtree(before)  # an extract is complete without its base
            assert _articles(now) == articles, "other articles than in the full extract"
            for name in ("pages-*", "*.npy"):
                assert _bytes(now, name) == _bytes(full, name), f"other {name}"
        before = full if before is None else now


def _read(dump: Dump, into: Path, base_folder: Path | None) -> list[Report] | None:
    """Make an extract as a build does; None where the dump is refused."""
    into.mkdir(parents=True)
    base = incremental.base_of(base_folder) if base_folder is not None else None
    try:
        tasks = [replace(task, base=base) for task in extract.plan(dump, "enwiki", False)]
        reports = [extract.run(task, into) for task in tasks]
        extract.check(dump, reports, False)
    except InputError as error:
        assert "enwiki.xml" in str(error) and "\n" not in str(error), f"not one line with the file: {error}"
        return None
    unchanged_pages.link_base(into, base)
    incremental.finish(into, tasks, base)
    return [{part: report[part] for part in report if part not in ("kept", "wrote")} for report in reports]


def _articles(of: Path) -> Sequence[tuple[Any, ...]]:
    columns = ("page_id", "revision_id", "parent_id", "sha1", "timestamp", "title", "size")
    return [(*map(article.__getitem__, columns), article.wikitext) for article in Articles(of, 0, 1 << 62)]


def _bytes(of: Path, name: str) -> list[bytes]:
    return [path.read_bytes() for path in sorted(of.glob(name))]
