"""A Wikipedia dump of many streams, read in ranges of them: what each says is together what the whole says."""

import bz2
import gzip
import zlib
from collections import Counter
from pathlib import Path
from unittest import mock

from temporalwiki.base.errors import InputError
from temporalwiki.builders import streams
from temporalwiki.builders.wikipedia.xml_dump import DumpCounts, DumpPage, Header, read_header, read_pages

from fuzz import xml_dump
from fuzz.files import file
from fuzz.xml_pages import mutate as mutate
from tiny_dumps import FOOTER, header, page, revision

_BETWEEN = b"\0"  # the streams
PAGES = [
    page(1, "A &amp; B", 'x < y & "z"', revision_id=5),
    page(2, "Talk:C", "y", ns=1),
    page(3, "D", "#REDIRECT [[A]]", redirect=True),
    page(4, "E", revisions=[revision("one", 1), revision("two", 2, 1, at="2021-11-05T00:00:00Z")]),
    page(5, "é漢", "text " * 9, revision_id=7),
]
SEEDS = tuple(
    "\0".join(parts).encode()
    for parts in (
        [header(), *PAGES, FOOTER],
        [header(), "".join(PAGES[:2]), "".join(PAGES[2:]), FOOTER],
        [header() + PAGES[0][:-12], PAGES[0][-12:] + PAGES[3][:300], PAGES[3][300:] + FOOTER],
        [header()[:200], header()[200:], PAGES[1], PAGES[4] + FOOTER, "\n"],
        [header("0.3") + PAGES[2], PAGES[4], FOOTER],
        [header(), PAGES[0], PAGES[1]],  # cut off
        [header(), PAGES[0], FOOTER, header(), PAGES[1], FOOTER],  # joined
    )
)
WORDS = (*xml_dump.WORDS, _BETWEEN, b"</mediawiki>\0", b"\0<page>")
LONGEST = 8192
_ONE_IN = 8  # inputs are read by the decoder that is for dumps known to be whole

_Found = tuple[list[DumpPage], DumpCounts]


def check(data: bytes) -> None:
    chosen = zlib.crc32(data)
    kind, compress = (("bz2", bz2.compress), ("gz", gzip.compress))[chosen & 1]
    packed = [compress(part, 1) for part in data.split(_BETWEEN) if part]
    if not packed:
        return
    path = file(f"dump.xml.{kind}", b"".join(packed))
    starts = [0]
    for part in packed[:-1]:
        starts.append(starts[-1] + len(part))
    starts = [0, *(start for i, start in enumerate(starts[1:]) if chosen >> i % 24 & 2)]
    try:
        head = read_header(path)
    except InputError as error:
        assert str(path) in str(error) and "\n" not in str(error), f"not one line with the file: {error}"
        return
    whole = _read(path, head, [0])
    parts = _read(path, head, starts)
    assert parts == whole or not whole, "ranges give another result"
    if whole:
        with mock.patch.object(streams, "OUT", 1 + chosen % 301):
            assert _read(path, head, starts) == whole, "ranges in other pieces give another result"
        if chosen // 2 % _ONE_IN == 0:
            assert _read(path, head, starts, listed=True) == whole, "the fast decoder gives another result"
    elif parts:
        assert not parts[1].complete, "a dump that is refused as a whole, and not in ranges"


def _read(path: Path, head: Header, starts: list[int], listed: bool = False) -> _Found | None:
    """What all ranges say, one after the other; None where one is refused."""
    pages: list[DumpPage] = []
    dropped: Counter[str] = Counter()
    total = DumpCounts()
    for start, end in zip(starts, [*starts[1:], None], strict=True):
        counts = DumpCounts()
        try:
            pages += read_pages(path, head, counts, start, end, listed=listed)
        except InputError as error:
            assert path.name in str(error) and "\n" not in str(error), f"not one line with a place: {error}"
            return None
        total.complete = total.complete or counts.complete
        total.pages += counts.pages
        total.bytes += counts.bytes
        dropped.update(counts.dropped)
    total.dropped = dict(sorted(dropped.items()))
    return pages, total
