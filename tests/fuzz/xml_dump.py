"""A Wikipedia dump: the reader and a parse of the whole file agree."""

import datetime
import xml.etree.ElementTree as ET
import zlib
from pathlib import Path
from unittest import mock

from temporalwiki.base.errors import InputError
from temporalwiki.builders import streams
from temporalwiki.builders.wikipedia.xml_dump import DumpCounts, DumpPage, read_header, read_pages

from fuzz.files import file
from tiny_dumps import FOOTER, header, page, revision

_USUAL = (
    "<page><title>A &amp; B</title><ns>0</ns><id>12</id><revision><id>7</id><parentid>5</parentid>"
    "<timestamp>2021-10-01T00:00:00Z</timestamp><contributor><username>U</username><id>1</id></contributor><minor />"
    '<comment>c</comment><origin>7</origin><model>wikitext</model><format>text/x-wiki</format><text bytes="9" '
    'sha1="0a" xml:space="preserve">a &lt;b&gt; &quot;c&quot;</text><sha1>0a</sha1></revision></page>'
)
_OTHERS = (
    page(3, "Talk:Rd", "#REDIRECT [[X]]", ns=1, redirect=True)
    + page(4, "Two", revisions=[revision("one", 1), revision("two", 2, 1, at="2021-11-05T00:00:00Z")])
    + page(5, "é漢", "text").replace("<page>", '<page xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">')
)
SEEDS = tuple(
    text.encode()
    for text in (
        header() + _USUAL + FOOTER,
        header() + _USUAL + _USUAL.replace("12", "13") + _OTHERS + FOOTER,
        header("0.3") + page(1, "Talk:Old", "#REDIRECT [[X]]", ns=None) + FOOTER,
        header("0.10") + _OTHERS + FOOTER,
        header() + page(1, "T", "x").replace('<text bytes="1"', '<text deleted="deleted"') + FOOTER,
        header() + _USUAL[:-9],
        header() + _USUAL + _USUAL.replace("A &amp; B", "A\ufffe") + FOOTER,
        header() + FOOTER,
        '<!DOCTYPE x [<!ENTITY a "b">]>' + header() + page(1, "&a;", "x") + FOOTER,
    )
)
WORDS = (
    *b"<page> </page> <revision> </revision> </mediawiki> <title> </title> <ns> <id> <text </text>".split(),
    *b'deleted="deleted" bytes="0" <timestamp> <minor/> <![CDATA[ ]]> <!-- --> &amp; &lt; &#0; &#x41; &x;'.split(),
    *b"<!DOCTYPE 0001-01-01T00:00:00Z 9999-12-31T23:59:60Z -1 \xef\xbf\xbe \xed\xa0\x80".split(),
    *b"<model>wikitext</model> <model>json</model> <ip> xmlns='' <restrictions> <content>".split(),
    *(b'<redirect title="X" />', b"<?x ?>", b"9" * 18, b"\x0b", b"\r"),
)


def check(data: bytes) -> None:
    """The result is the same in pieces of any size, and is what the XML says."""
    path = file("dump.xml", data)
    chosen = zlib.crc32(data)
    at = "20211101" if chosen & 1 else None
    cut = bool(chosen & 2)
    one = _read(path, at, cut)
    with mock.patch.object(streams, "OUT", 1 + chosen % 301):
        assert _read(path, at, cut) == one, "pieces of another size give another result"
    pages, counts, accepted = one
    for found in pages:
        assert found.page_id > 0 and found.title, found
    if accepted and counts.complete and at is None:
        _compare(data, pages, counts)


def _read(path: Path, at: str | None, cut: bool) -> tuple[list[DumpPage], DumpCounts, bool]:
    pages: list[DumpPage] = []
    counts = DumpCounts()
    try:
        for found in read_pages(path, read_header(path), counts, at=at, allow_truncated=cut):
            pages.append(found)
    except InputError as error:
        assert "dump.xml" in str(error) and "\n" not in str(error), f"not one line with a place: {error}"
        return pages, DumpCounts(), False
    return pages, counts, True


def _compare(data: bytes, pages: list[DumpPage], counts: DumpCounts) -> None:
    """Compare with a parse of the whole dump, unless the text between pages makes it invalid XML."""
    if b"<!" in data or b"<?" in data:  # no dump has comments
        return
    try:
        root = ET.fromstring(data)
    except (ET.ParseError, ValueError):
        return
    found = root.findall("{*}page")
    assert len(found) == counts.pages, "pages were lost or made up"
    if counts.dropped:
        return
    for element, read in zip(found, pages, strict=True):
        assert int(element.findtext("{*}id") or 0) == read.page_id
        assert element.findtext("{*}title") == read.title
        revisions = element.findall("{*}revision")
        if len(revisions) == 1 and read.text is not None:
            assert (revisions[0].findtext("{*}text") or "") == read.text, "another text"
        stamps = [stamp for revision in revisions if (stamp := revision.findtext("{*}timestamp"))]
        assert read.timestamp == _moment(max(stamps))


def _moment(stamp: str) -> datetime.datetime:
    moment = datetime.datetime.fromisoformat(stamp)
    return moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)
