"""Read the pages of a MediaWiki XML dump (schemas 0.3 to 0.11), or of a range of its compressed streams.

The XML parser gets the decompressed bytes piece by piece, and only one revision is held: so memory is bounded, even
for exports of the full history. What no dump has is refused: a DOCTYPE, whose entities could expand a small file to
gigabytes, and comments, CDATA sections and processing instructions, in which a range could begin at a false <page>.
"""

import contextlib
import datetime
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from xml.parsers import expat

from temporalwiki.base.errors import InputError
from temporalwiki.builders.streams import Piece, pieces
from temporalwiki.builders.wikipedia.languages import is_redirect

MAX_REVISION = 64 << 20  # characters; MediaWiki itself refuses pages over 2 MB of wikitext
MAX_NAMESPACE = 1 << 30
_MAX_HEADER = 1 << 20
# Wikitext is escaped, so in the XML this can only be a tag. Some tools copy the attributes of the root to every page.
_PAGE = re.compile(rb"<page(?=[\s/>])")
_PAGE_OR_END = re.compile(rb"<page(?=[\s/>])|</mediawiki")
_NUMBER = re.compile(r"\s*-?[0-9]{1,18}\s*", re.ASCII)
_OF_PAGE = frozenset({"title", "ns", "id"})
_OF_REVISION = frozenset({"id", "parentid", "timestamp", "model", "text"})
_CUT = {expat.errors.codes[name] for name in (
    expat.errors.XML_ERROR_NO_ELEMENTS, expat.errors.XML_ERROR_UNCLOSED_TOKEN, expat.errors.XML_ERROR_PARTIAL_CHAR,
)}  # fmt: skip


@dataclass(frozen=True)
class Header:
    """The head of a dump, before its first page."""

    version: str
    wiki: str | None  # dbname; None before schema 0.9
    namespaces: dict[str, int]  # local name -> number


class DumpPage(NamedTuple):
    """One page at one revision."""

    page_id: int
    namespace: int
    title: str
    redirect: bool
    revision_id: int
    parent_id: int | None
    timestamp: datetime.datetime
    text: str | None  # the wikitext, or None
    missing: str | None = None  # why the wikitext is None


@dataclass
class DumpCounts:
    """What ``read_pages`` counts while it reads a dump or a range of it."""

    complete: bool = False  # the closing </mediawiki> was read
    pages: int = 0
    dropped: dict[str, int] = field(default_factory=dict)  # pages by reason
    bytes: int = 0  # of XML

    def drop(self, reason: str) -> None:
        """Count a page that is dropped for ``reason``."""
        self.dropped[reason] = self.dropped.get(reason, 0) + 1


def read_header(path: Path) -> Header:
    """Parse the start of a dump, up to its first page. Raises InputError if it is not a MediaWiki export."""
    head = b""
    for piece in pieces(path, allow_truncated=True):
        head += piece.data
        if _PAGE_OR_END.search(head) or len(head) > _MAX_HEADER:
            break
    first = _PAGE_OR_END.search(head)
    version, wiki, namespaces = "", None, dict[str, int]()
    tags, texts, key = list[str](), list[str](), 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal version, key
        if not tags and tag != "mediawiki":
            raise InputError(f"{path}: not a MediaWiki export: its root is <{tag[:40]}>, not <mediawiki>")
        if len(tags) == 1 and tag != "siteinfo":
            raise InputError(f"{path}: line {parser.CurrentLineNumber}: <{tag[:40]}> where pages should begin")
        if not tags:
            version = attributes.get("version", "?")
        if tag == "namespace":
            key = int(attributes["key"])
            if abs(key) > MAX_NAMESPACE:
                raise InputError(f"{path}: no namespace has the number {attributes['key'][:40]}")
        tags.append(tag)
        texts.clear()

    def end(tag: str) -> None:
        nonlocal wiki
        text = "".join(texts).strip()
        if tag == "namespace":
            namespaces[text] = key
        elif tag == "dbname":
            wiki = text
        texts.clear()
        tags.pop()

    def doctype(*_: object) -> None:
        raise InputError(f"{path}: refused: it has a DOCTYPE (line {parser.CurrentLineNumber}), which no dump has")

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = texts.append, doctype
    try:
        parser.Parse(head[: first.start()] if first else head, False)
    except InputError:
        raise
    except (expat.ExpatError, KeyError, ValueError) as error:
        raise InputError(f"{path}: not a MediaWiki export: {error}") from None
    if not version:
        raise InputError(f"{path}: not a MediaWiki export: no <mediawiki> in it")
    if first is None and len(head) > _MAX_HEADER:
        raise InputError(f"{path}: not a MediaWiki export: no <page> in its first {_MAX_HEADER >> 20} MB")
    return Header(version, wiki, namespaces)


def read_pages(
    path: Path,
    header: Header,
    counts: DumpCounts,
    start: int = 0,
    end: int | None = None,
    at: str | None = None,
    allow_truncated: bool = False,
    listed: bool = False,
) -> Iterator[DumpPage]:
    """Yield the pages that begin in the compressed byte range [start, end) of ``path``, and fill ``counts``.

    A page is yielded with its newest revision, or with the newest at the date ``at`` (YYYYMMDD, 00:00 UTC). Pages
    without such a revision are dropped. The task that reads a page also reads up to the next one, even beyond its
    range, and refuses what is not a page there. ``listed`` is as in ``streams.pieces``.

    Raises InputError, which names the file and byte, for XML that is not well formed. If the whole file is read, it
    is also raised for a dump without its closing tag, unless ``allow_truncated`` is true. For a range, the caller must
    look at ``counts.complete`` of all ranges, because any of them can hold that tag.
    """
    reader = _PageReader(path, header, counts, at)
    last = path.stat().st_size if end is None else end
    with contextlib.closing(pieces(path, start, allow_truncated, last, listed)) as source:
        for piece in source:
            if end is not None and piece.stream >= end and reader.range_bytes is None:
                reader.range_bytes = reader.bytes
            yield from reader.read(piece, from_page=start > 0)
            if reader.done:
                break
        else:
            yield from reader.finish()
    # bytes after the range were only read to finish its last page
    counts.bytes = reader.bytes if reader.range_bytes is None else reader.range_bytes
    if start == 0 and end is None and not counts.complete and not allow_truncated:
        cut = f"{path}: no </mediawiki> at its end: it was cut off after page {counts.pages}"
        raise InputError(f"{cut}; fetch it again, or use --allow-truncated")


class _RangeEnd(Exception):
    """The next page begins after the range."""


class _PageReader:
    """Feeds pieces of a range to the XML parser, and collects the pages that it finds."""

    def __init__(self, path: Path, header: Header, counts: DumpCounts, at: str | None) -> None:
        self.path, self.header, self.counts = path, header, counts
        self.limit = None if at is None else f"{at[:4]}-{at[4:6]}-{at[6:]}T00:00:00Z"
        self.bytes = self.stream = 0  # decompressed so far; where the stream at work begins
        self.range_bytes: int | None = None  # how many decompressed bytes belong to the range, once known
        self.done = False
        self._before = 0  # the decompressed byte at which the parser's input begins
        self._unsearched: bytes | None = b""  # the end of the bytes before the first page; None behind it
        self._pages: list[DumpPage] = []
        self._depth = self._size = 0
        self._page: dict[str, str] = {}  # the texts of elements by name
        self._revision: dict[str, str] = {}
        self._newest: dict[str, str] | None = None  # of the page's revisions, at the date
        self._key = self._last = ("", 0)  # timestamp and id of the newest revision, at the date and of all
        self._too_long = False
        self._field = ""  # the element whose text is read
        self._chunks: list[str] = []
        self._parser = parser = expat.ParserCreate()
        parser.buffer_text, parser.buffer_size = True, 1 << 20
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = self._text, self._refuse
        parser.CommentHandler = parser.StartCdataSectionHandler = parser.ProcessingInstructionHandler = self._refuse

    @property
    def where(self) -> str:
        """The place as error messages name it."""
        place = self._before + self._parser.CurrentByteIndex
        return f"{self.path}: decompressed byte {place} of the stream at byte {self.stream}"

    def read(self, piece: Piece, from_page: bool) -> list[DumpPage]:
        """Return the pages that are complete now. With ``from_page``, bytes before the first page are skipped."""
        data, self.stream = piece.data, piece.stream
        self.bytes += len(data)
        if from_page and self._unsearched is not None:
            data = self._unsearched + data
            first = _PAGE.search(data)
            if first is None:
                self._unsearched = data[-len(b"<page") :]
                self.done = self.range_bytes is not None and self.bytes - len(self._unsearched) >= self.range_bytes
                return []
            data = data[first.start() :]
            self._parser.Parse(b"<mediawiki>", False)
            self._before = self.bytes - len(data) - len(b"<mediawiki>")
        self._unsearched = None
        self._parse(data, last=False)
        if self.bytes - self._before - self._parser.CurrentByteIndex > 2 * MAX_REVISION:
            raise InputError(f"{self.where}: a tag without end")
        pages, self._pages = self._pages, []
        return pages

    def finish(self) -> list[DumpPage]:
        """Return the last pages, at the end of the file, which may be cut off inside a page."""
        if self._unsearched is None:
            self._parse(b"", last=True)
            if self._depth > 1 and self.counts.pages:
                self.counts.drop("cut_off")
        return self._pages

    def _parse(self, data: bytes, last: bool) -> None:
        try:
            self._parser.Parse(data, last)
        except _RangeEnd:
            self.done = True
        except expat.ExpatError as error:
            if last and error.code in _CUT:
                return
            if self.counts.complete:
                raise InputError(f"{self.where}: more after </mediawiki>: joined dumps are not read") from None
            raise InputError(f"{self.where}: XML that is not well formed: {expat.ErrorString(error.code)}") from None

    def _refuse(self, *_: object) -> None:
        raise InputError(f"{self.where}: a DOCTYPE, comment, CDATA section or processing instruction: no dump has one")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth = depth = self._depth + 1
        if self._field:
            self._store()
        if tag == "page":
            self._start_page(depth)
        elif depth == 3 and tag == "revision":
            self._revision, self._size = {}, 0
        elif depth == 2 and (tag != "siteinfo" or self.counts.pages):
            raise InputError(f"{self.where}: unexpected <{tag[:40]}> between pages")
        elif depth == 3 and tag == "redirect":
            self._page["redirect"] = ""
        elif (depth == 3 and tag in _OF_PAGE) or (depth == 4 and tag in _OF_REVISION):
            self._field, self._field_depth = tag, depth
            if tag == "text" and "text" not in self._revision:
                self._revision |= {name: attributes[name] for name in ("deleted", "bytes") if name in attributes}

    def _start_page(self, depth: int) -> None:
        if depth != 2:
            raise InputError(f"{self.where}: <page> begins inside a page")
        if self.range_bytes is not None and self._before + self._parser.CurrentByteIndex >= self.range_bytes:
            raise _RangeEnd
        self.counts.pages += 1
        self._page, self._newest, self._size, self._too_long = {}, None, 0, False
        self._key = self._last = ("", 0)

    def _text(self, text: str) -> None:
        if self._field:
            self._size += len(text)
            if self._size <= MAX_REVISION:
                self._chunks.append(text)
        elif self._depth == 1 and (found := text.strip()):
            raise InputError(f"{self.where}: unexpected {found[:40]!r} between pages")

    def _store(self) -> None:
        """Keep the text of an element; of several with the same name, the first counts."""
        texts = self._page if self._field_depth == 3 else self._revision
        texts.setdefault(self._field, "".join(self._chunks))
        self._field = ""
        self._chunks.clear()

    def _end(self, tag: str) -> None:
        if self._field:
            self._store()
        if self._depth == 3 and tag == "revision":
            self._end_revision()
        elif self._depth == 2 and tag == "page":
            self._end_page()
        self._depth -= 1
        self.counts.complete = not self._depth

    def _end_revision(self) -> None:
        stamp = self._revision.get("timestamp", "")
        this = stamp, self._number(self._revision.get("id"))
        self._last = max(self._last, this)
        self._too_long = self._too_long or self._size > MAX_REVISION
        if (self.limit is None or stamp <= self.limit) and this >= self._key:
            self._newest, self._key = self._revision, this

    def _end_page(self) -> None:
        page_id, revision = self._number(self._page.get("id")), self._newest
        if not self._page.get("title") or page_id < 1:
            raise InputError(f"{self.where}: a page without a title or an id")
        if self._too_long or revision is None:  # an older revision must not replace one that is too long
            later = "after_the_date" if self._last > ("", 0) else "no_revision"
            self.counts.drop("too_long" if self._too_long else later)
            return
        try:
            timestamp = datetime.datetime.fromisoformat(revision.get("timestamp", ""))
        except ValueError as error:
            raise InputError(f"{self.where}: page {page_id}: {error}") from None
        timestamp = timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=datetime.UTC)
        self._pages.append(self._made(page_id, timestamp, self._page, revision))

    def _made(
        self, page_id: int, timestamp: datetime.datetime, page: dict[str, str], revision: dict[str, str]
    ) -> DumpPage:
        text, missing = revision.get("text", ""), None
        if "text" not in revision or (not text and revision.get("bytes", "0") != "0"):
            missing = "no_text"  # as in stub dumps, and for revisions whose text the database has lost
        if "deleted" in revision:
            missing = "text_deleted"
        if missing is None and (revision.get("model") or "wikitext") != "wikitext":
            missing = "not_wikitext"
        namespace, title = page.get("ns"), page["title"]
        number = self._number(namespace) if namespace is not None else 0
        if abs(number) > MAX_NAMESPACE:
            raise InputError(f"{self.where}: no namespace has the number {number}")
        if namespace is None and ":" in title:
            number = self.header.namespaces.get(title.split(":", 1)[0], 0)
        # <redirect/> describes the page's last revision, and schemas before 0.4 do not have it
        by_text = self._key != self._last or re.fullmatch(r"0\.0*[0-3]", self.header.version)
        redirect = is_redirect(text if missing is None else "") if by_text else "redirect" in page
        revision_id, parent = (self._number(revision.get(name)) for name in ("id", "parentid"))
        shown = None if missing else text
        return DumpPage(page_id, number, title, redirect, revision_id, parent or None, timestamp, shown, missing)

    def _number(self, text: str | None) -> int:
        """Return a number in a page, or 0 for an empty element."""
        if text and not _NUMBER.fullmatch(text):
            raise InputError(f"{self.where}: an id that is not a number: {text[:40]!r}")
        return int(text or 0)
