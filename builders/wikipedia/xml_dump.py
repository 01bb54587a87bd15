"""Read the pages of a MediaWiki XML dump (schemas 0.3 to 0.11), or of a range of its compressed streams.

Pages are found by their tags in the bytes, and each revision is parsed by itself. So memory is bounded by one
revision, even for exports of the full history, and errors name a byte.

Nearly all pages have the same simple form, with one revision of wikitext: regular expressions read them. A page with
anything else, or with a byte that XML does not allow, goes to the XML parser, which accepts or refuses it.
"""

from __future__ import annotations

import contextlib
import datetime
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from xml.parsers import expat

from temporalwiki.base.errors import InputError
from temporalwiki.builders.streams import pieces

MAX_REVISION = 64 << 20  # bytes of XML; MediaWiki itself refuses pages over 2 MB of wikitext
MAX_NAMESPACE = 1 << 30
_MAX_HEADER = 1 << 20
# Wikitext is escaped, so in the XML these can only be tags. Inside a page they are refused, even in CDATA and
# comments: a task whose range begins there would take them for a page. Some tools copy the attributes of the root to
# every page.
_PAGE_OR_DUMP_END = rb"<(?:page(?:\s[^<>]{0,1000})?|/mediawiki\s{0,1000})>"
_PAGE_OR_END = re.compile(_PAGE_OR_DUMP_END)
_REVISION_OR_PAGE_END = re.compile(
    rb"<(?:revision(?:\s[^<>]{0,1000})?|/page(?:\s[^<>]{0,1000})?)>|" + _PAGE_OR_DUMP_END
)
_REVISION_END = re.compile(rb"</revision\s{0,1000}>|" + _PAGE_OR_DUMP_END)
_LONGEST_TAG = 1100
_MOST_PAGES = 1 << 16  # bytes; most pages are shorter
_SIMPLE_HEAD = re.compile(
    rb"""~(<page>)~<title>([^<>]+)</title>~<ns>(-?[0-9]{1,9})</ns>~<id>([1-9][0-9]{0,17})</id>~
    (<redirect[ ]title="[^"<>]*"[ ]?/>~)?(?:<restrictions>([^<>]*)</restrictions>~)?
    <revision>~<id>([0-9]{1,18})</id>~(?:<parentid>([0-9]{1,18})</parentid>~)?
    <timestamp>([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z)</timestamp>~
    <contributor(?:[ ]deleted="deleted"[ ]?/>
    |>~(?:<username>([^<>]*)</username>~<id>[0-9]+</id>|<ip>([^<>]*)</ip>)~</contributor>)~(?:<minor[ ]?/>~)?
    (?:<comment(?:[ ]deleted="deleted"[ ]?/>|>([^<>]*)</comment>)~)?(?:<origin>[0-9]+</origin>~)?
    <model>wikitext</model>~<format>text/x-wiki</format>~
    <text(?:[ ]bytes="[0-9]+")?(?:[ ]sha1="[0-9a-z]*")?(?:[ ]xml:space="preserve")?>""".replace(b"~", rb"[ \n\t]*"),
    re.VERBOSE,
)
_SIMPLE_TAIL = re.compile(rb"</text>~(?:<sha1>[0-9a-z]*</sha1>~)?</revision>~</page>".replace(b"~", rb"[ \n\t]*"))
_OTHER_ENTITY = re.compile(rb"&(?!lt;|gt;|quot;|amp;)")
_CONTROLS = bytes(number for number in range(32) if number not in b"\t\n")
_REDIRECT = re.compile(r"\s*#[^\s\[:]+\s*(?::\s*)?\[\[", re.IGNORECASE)


@dataclass(frozen=True)
class Header:
    """The head of a dump, before its first page."""

    version: str
    wiki: str | None  # dbname; None before schema 0.9
    namespaces: dict[str, int]  # local name -> number


class Page(NamedTuple):
    """One page at one revision."""

    page_id: int
    namespace: int
    title: str
    redirect: bool
    revision_id: int
    parent_id: int | None
    timestamp: datetime.datetime
    escaped: bytes | None  # the wikitext as ``escape`` writes it, or None
    missing: str | None = None  # why the wikitext is None

    @property
    def text(self) -> str | None:
        """The wikitext, or None."""
        return None if self.escaped is None else unescape(self.escaped)


def escape(text: str) -> bytes:
    """Return a text as MediaWiki writes it in dumps, in UTF-8; equal texts give equal bytes."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace('"', "&quot;").encode()


_ESCAPED = re.compile(rb"&(lt|gt|quot|amp);")
_CHARACTERS = {b"lt": b"<", b"gt": b">", b"quot": b'"', b"amp": b"&"}


def unescape(escaped: bytes) -> str:
    """Return the text from which ``escape`` made these bytes."""
    if b"&" not in escaped:
        return escaped.decode()
    parts = _ESCAPED.split(escaped)  # twice as fast as one replacement after the other
    parts[1::2] = map(_CHARACTERS.__getitem__, parts[1::2])
    return b"".join(parts).decode()


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
    """Parse the start of a dump, up to its first page.

    Raises InputError if it is not a MediaWiki export, or has a DOCTYPE: no dump has one, and its entities could expand
    a small file to gigabytes.
    """
    head = b""
    for piece in pieces(path, allow_truncated=True):
        head += piece.data
        if _PAGE_OR_END.search(head) or len(head) > _MAX_HEADER:
            break
    first = _PAGE_OR_END.search(head)
    version = ""
    wiki: str | None = None
    namespaces: dict[str, int] = {}
    texts: list[str] = []
    keys: list[int] = []
    depth = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal version, depth
        if not version and tag != "mediawiki":
            raise InputError(f"{path}: not a MediaWiki export: its root is <{tag[:40]}>, not <mediawiki>")
        if depth == 1 and tag != "siteinfo":
            raise InputError(f"{path}: line {parser.CurrentLineNumber}: <{tag[:40]}> where pages should begin")
        depth += 1
        if tag == "mediawiki":
            version = attributes.get("version", "?")
        if tag == "namespace":
            keys.append(int(attributes["key"]))
            if abs(keys[-1]) > MAX_NAMESPACE:
                raise InputError(f"{path}: no namespace has the number {attributes['key'][:40]}")
        texts.clear()

    def end(tag: str) -> None:
        nonlocal wiki, depth
        text = "".join(texts).strip()
        if tag == "namespace" and keys:
            namespaces[text] = keys.pop()
        elif tag == "dbname":
            wiki = text
        texts.clear()
        depth -= 1

    def doctype(*_: object) -> None:
        raise InputError(f"{path}: refused: it has a DOCTYPE (line {parser.CurrentLineNumber}), which no dump has")

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = texts.append
    parser.StartDoctypeDeclHandler = doctype
    try:
        parser.Parse(head[: first.start()] if first else head, False)
    except (expat.ExpatError, KeyError, ValueError) as error:
        if isinstance(error, InputError):
            raise
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
) -> Iterator[Page]:
    """Yield the pages that begin in the compressed byte range [start, end) of ``path``, and fill ``counts``.

    A page is yielded with its newest revision, or with the newest at the date ``at`` (YYYYMMDD, 00:00 UTC). Pages
    without such a revision are dropped.

    ``listed`` is as in ``streams.pieces``.

    Raises InputError, which names the file and byte, for XML that is not well formed. If the whole file is read, it
    is also raised for a dump without its closing tag, unless ``allow_truncated`` is true. For a range, the caller must
    look at ``counts.complete`` of all ranges, because any of them can hold that tag.
    """
    limit = None if at is None else f"{at[:4]}-{at[4:6]}-{at[6:]}T00:00:00Z"
    window = _Window(path, start, end, allow_truncated, listed)
    with contextlib.closing(window.source):
        yield from _pages(window, header, counts, limit)
    # bytes after the range were only read to finish its last page
    counts.bytes = window.bytes if window.range_bytes is None else window.range_bytes
    if start == 0 and end is None and not counts.complete and not allow_truncated:
        raise InputError(
            f"{path}: no </mediawiki> at its end: it was cut off after page {counts.pages}; fetch it "
            "again, or read it up to there with --allow-truncated"
        )


def _pages(window: _Window, header: Header, counts: DumpCounts, limit: str | None) -> Iterator[Page]:
    try_simple = not _older_than_0_4(header)
    while True:
        if try_simple and (simple := window.simple_page()) is not None:
            counts.pages += 1
            page, stamp = simple
            if limit is None or stamp <= limit:
                yield page
            else:
                counts.drop("after_the_date")
            continue
        if try_simple and len(window.buffer) - window.position < _MOST_PAGES and window.more():
            continue  # the page may just not be complete yet
        # The task that read the page before also checks the bytes up to the next page, even beyond its range: they may
        # hold something that only looks like a page's tag.
        tag, in_range = window.seek(_PAGE_OR_END, beyond=counts.pages > 0)
        if counts.pages and window.skipped:
            raise InputError(
                f"{window.path}: unexpected {window.skipped[:40]!r} between pages, "
                f"before decompressed byte {window.place} of the stream at byte {window.stream}"
            )
        if not in_range:
            break
        if tag.startswith(b"</"):
            counts.complete = True
            window.check_end()
            break
        parsed = _read_page(window, header, counts, limit)
        if parsed is not None:
            yield parsed


class _Window:
    """A buffer that moves over the decompressed bytes of a range, and past its end to finish the last page."""

    def __init__(self, path: Path, start: int, end: int | None, allow_truncated: bool, listed: bool) -> None:
        self.path = path
        self.source = pieces(path, start, allow_truncated, path.stat().st_size if end is None else end, listed)
        self.end = end
        self.buffer = b""
        self.position = 0  # in the buffer
        self.bytes = 0  # decompressed so far
        self.stream = start
        self.range_bytes: int | None = None  # how many decompressed bytes belong to the range, once known
        self.skipped = b""  # the start of the bytes that ``seek`` passed over

    @property
    def place(self) -> int:
        """The number of decompressed bytes before the position."""
        return self.bytes - len(self.buffer) + self.position

    @property
    def where(self) -> str:
        """The place as error messages name it."""
        return f"{self.path}: page before decompressed byte {self.place} of the stream at byte {self.stream}"

    def more(self) -> bool:
        """Decompress another piece into the buffer. Return False at the end of the file."""
        piece = next(self.source, None)
        if piece is None:
            return False
        if self.range_bytes is None and self.end is not None and piece.stream >= self.end:
            self.range_bytes = self.bytes
        self.stream = piece.stream
        self.buffer = self.buffer[self.position :] + piece.data
        self.position = 0
        self.bytes += len(piece.data)
        return True

    def simple_page(self) -> tuple[Page, str] | None:
        """Return the next page and its timestamp, or None if it has another form or is not all in the buffer."""
        buffer = self.buffer
        head = _SIMPLE_HEAD.match(buffer, self.position)
        if head is None:
            return None
        if self.range_bytes is not None and self.bytes - len(buffer) + head.start(1) >= self.range_bytes:
            return None
        text = head.end()
        text_end = buffer.find(b"<", text)
        tail = _SIMPLE_TAIL.match(buffer, text_end) if text < text_end <= text + MAX_REVISION else None
        if tail is None:
            return None
        _, title, namespace, page, redirect, limits, revision, parent, stamp, user, ip, comment = head.groups(b"")
        escaped = buffer[text:text_end]
        if b">" in escaped:
            return None
        xml = b"\n".join(
            (title, redirect, limits, user, ip, comment, escaped)
        )  # the pattern allows more than XML does
        if len(xml.translate(None, _CONTROLS)) < len(xml) or _OTHER_ENTITY.search(xml):
            return None
        try:
            if not xml.isascii() and not _are_xml_characters(xml.decode()):
                return None
            timestamp = datetime.datetime.fromisoformat(stamp.decode())
        except ValueError:
            return None
        self.position = tail.end()
        return (
            Page(
                int(page),
                int(namespace),
                unescape(title),
                bool(redirect),
                int(revision),
                int(parent or 0) or None,
                timestamp,
                escaped.replace(b'"', b"&quot;"),
            ),
            stamp.decode(),
        )

    def check_end(self) -> None:
        """Raise InputError if the file goes on after its closing tag."""
        while not (rest := self.buffer[self.position :].strip()) and self.more():
            continue
        if rest:
            raise InputError(f"{self.path}: {rest[:40]!r} after </mediawiki>: joined dumps are not read")

    def _unsearched(self) -> int:
        """Return the place in the buffer where a tag may begin whose end is not in the buffer."""
        at = self.buffer.rfind(b"<", max(self.position, len(self.buffer) - _LONGEST_TAG))
        return len(self.buffer) if at < 0 else at

    def seek(self, tags: re.Pattern[bytes], beyond: bool) -> tuple[bytes, bool]:
        """Move behind the next of ``tags``; return it and whether it begins in the range, or (b"", False).

        The bytes after the range are searched only if ``beyond``. ``skipped`` is the start of the bytes
        passed over, without leading white space.
        """
        self.skipped = b""
        while True:
            found = tags.search(self.buffer, self.position)
            at = found.start() if found else self._unsearched()
            in_range = self.range_bytes is None or self.bytes - len(self.buffer) + at < self.range_bytes
            if not in_range and not beyond:
                return b"", False
            self.skipped = (self.skipped + self.buffer[self.position : at]).lstrip()[:200]
            if found:
                self.position = found.end()
                return found[0], in_range
            self.position = at
            if not self.more():
                return b"", False

    def take(self, tags: re.Pattern[bytes]) -> tuple[bytes | None, bytes]:
        """Move behind the next of ``tags``; return the bytes before it and the tag.

        The bytes are None if there are more than MAX_REVISION; both are empty if the file ends first. Raises
        InputError if the tag is of a new page or of the dump's end, which cannot be inside a page.
        """
        searched, too_long = self.position, False
        while True:
            if found := tags.search(self.buffer, searched):
                too_long = too_long or found.start() - self.position > MAX_REVISION
                data, tag = None if too_long else self.buffer[self.position : found.start()], found[0]
                self.position = found.end()
                if tag.startswith((b"<page", b"</m")):
                    raise InputError(f"{self.where}: {tag[:40]!r} begins inside a page")
                return data, tag
            searched = max(searched, self._unsearched())
            if searched - self.position > MAX_REVISION:
                too_long, self.position = True, searched
            searched -= self.position
            if not self.more():
                return b"", b""


def _are_xml_characters(text: str) -> bool:
    """Return whether XML allows the characters beyond ASCII of a text that was valid UTF-8."""
    return "\ufffe" not in text and "\uffff" not in text


def _read_page(window: _Window, header: Header, counts: DumpCounts, limit: str | None) -> Page | None:
    """Read the page whose opening tag was just read, with the XML parser. Return None if it is dropped."""
    counts.pages += 1
    head, tag = window.take(_REVISION_OR_PAGE_END)
    page = _parse(window, counts, b"<page>" + (head or b"") + b"</page>", tag)
    if page is None:
        return None
    title = page.findtext("title") or ""
    page_id = _number(window, page.findtext("id"))
    if not title or page_id < 1:
        raise InputError(f"{window.where}: a page without a title or an id")
    newest: ET.Element | None = None
    key = last = ("", 0)
    seen = too_long = False
    while tag.startswith(b"<r"):
        body, tag = window.take(_REVISION_END)
        if body is None:
            too_long = True
        else:
            revision = _parse(window, counts, b"<revision>" + body + b"</revision>", tag)
            if revision is None:
                return None
            seen = True
            stamp = revision.findtext("timestamp") or ""
            this = (stamp, _number(window, revision.findtext("id")))
            last = max(last, this)
            if (limit is None or stamp <= limit) and this >= key:
                newest, key = revision, this
        between, tag = window.take(_REVISION_OR_PAGE_END)
        between = (between or b"").strip()
        if (between or not tag) and _parse(window, counts, b"<page>" + between + b"</page>", tag) is None:
            return None
    if too_long or newest is None:  # an older revision must not replace one that is too long
        counts.drop("too_long" if too_long else "after_the_date" if seen else "no_revision")
        return None
    # <redirect/> describes the page's last revision, and schemas before 0.4 do not have it
    by_text = key != last or _older_than_0_4(header)
    return _make_page(window, header, page, newest, title, page_id, by_text)


def _parse(window: _Window, counts: DumpCounts, xml: bytes, closing: bytes) -> ET.Element | None:
    """Parse one element. Return None and count a drop if its ``closing`` tag is missing because the file ends.

    Other code raises an error for a dump without its end, unless truncated dumps are allowed.
    """
    if not closing:
        window.position = len(window.buffer)
        counts.drop("cut_off")
        return None
    try:
        return ET.fromstring(xml)
    except ET.ParseError as error:
        raise InputError(f"{window.where}: XML that is not well formed: {error}") from None


def _number(window: _Window, text: str | None) -> int:
    """Return a number in a page, or 0 for an empty element."""
    if not text:
        return 0
    if not re.fullmatch(r"\s*-?[0-9]{1,18}\s*", text, re.ASCII):
        raise InputError(f"{window.where}: an id that is not a number: {text[:40]!r}")
    return int(text)


def _namespace(window: _Window, text: str) -> int:
    number = _number(window, text)
    if abs(number) > MAX_NAMESPACE:
        raise InputError(f"{window.where}: no namespace has the number {text.strip()}")
    return number


def _older_than_0_4(header: Header) -> bool:
    major, _, minor = header.version.partition(".")
    return major == "0" and minor.isdigit() and int(minor) < 4


def _make_page(
    window: _Window,
    header: Header,
    page: ET.Element,
    revision: ET.Element,
    title: str,
    page_id: int,
    redirect_by_text: bool,
) -> Page:
    element = revision.find("text")
    text, missing = "", None
    if element is None or element.get("deleted") is not None:
        text, missing = "", "text_deleted" if element is not None else "no_text"
    elif element.text is None and (element.get("bytes") or "0") != "0":
        missing = "no_text"  # in stub dumps, and for revisions whose text the database has lost
    else:
        text = element.text or ""
    namespace = page.findtext("ns")
    prefix = title.split(":", 1)[0] if ":" in title else ""
    redirect = bool(_REDIRECT.match(text)) if redirect_by_text else page.find("redirect") is not None
    model = revision.findtext("model") or "wikitext"
    if missing is None and model != "wikitext":
        missing = "not_wikitext"
    try:
        timestamp = datetime.datetime.fromisoformat(revision.findtext("timestamp") or "")
        return Page(
            page_id=page_id,
            namespace=header.namespaces.get(prefix, 0) if namespace is None else _namespace(window, namespace),
            title=title,
            redirect=redirect,
            revision_id=_number(window, revision.findtext("id")),
            parent_id=_number(window, revision.findtext("parentid")) or None,
            timestamp=timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=datetime.UTC),
            escaped=None if missing else escape(text),
            missing=missing,
        )
    except ValueError as error:
        raise InputError(f"{window.where}: page {page_id}: {error}") from None
