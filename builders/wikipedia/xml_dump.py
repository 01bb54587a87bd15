"""Pages out of a MediaWiki XML dump: schemas 0.3 to 0.11, whole files or ranges of compressed streams.

Pages are found by their tags in the bytes and each revision is parsed alone, so memory is bounded by one
revision, a history export with any number of revisions a page included, and an error names its byte.

A page as MediaWiki writes nearly all of them, with one revision of wikitext, is read by one regular expression.
Anything else about a page, or a byte in it that XML does not allow, leaves it to the XML parser, which decides.
"""

from __future__ import annotations

import contextlib
import datetime
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from xml.parsers import expat

from temporalwiki.base.errors import InputError
from temporalwiki.builders.streams import pieces

MAX_REVISION = 64 << 20  # bytes of XML; MediaWiki itself refuses pages over 2 MB of wikitext
MAX_NAMESPACE = 1 << 30
KNOWN = "known"  # why a page has no wikitext that the caller has
_MAX_HEADER = 1 << 20
# Wikitext is escaped in XML, so these occur as tags only: a page or the dump's end that begins inside a page is
# refused, in CDATA or a comment, too, as who reads from there on would take it for one. Some tools copy the root's
# attributes to every page.
_PAGE_OR_DUMP_END = rb"<(?:page(?:\s[^<>]{0,1000})?|/mediawiki\s{0,1000})>"
_PAGE_OR_END = re.compile(_PAGE_OR_DUMP_END)
_REVISION_OR_PAGE_END = re.compile(
    rb"<(?:revision(?:\s[^<>]{0,1000})?|/page(?:\s[^<>]{0,1000})?)>|" + _PAGE_OR_DUMP_END
)
_REVISION_END = re.compile(rb"</revision\s{0,1000}>|" + _PAGE_OR_DUMP_END)
_LONGEST_TAG = 1100
_PAGE_IN_SIGHT = 1 << 16  # bytes after which a page of the usual form has come to its end, mostly
_UP_TO_THE_TEXT = re.compile(
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
_BEHIND_THE_TEXT = re.compile(rb"</text>~(?:<sha1>[0-9a-z]*</sha1>~)?</revision>~</page>".replace(b"~", rb"[ \n\t]*"))
_NOT_AS_WRITTEN = re.compile(rb"&(?!lt;|gt;|quot;|amp;)")
_CONTROLS = bytes(number for number in range(32) if number not in b"\t\n")
_REDIRECT = re.compile(r"\s*#[^\s\[:]+\s*(?::\s*)?\[\[", re.IGNORECASE)


@dataclass(frozen=True)
class Header:
    """What a dump says about itself before its first page."""

    version: str
    wiki: str | None  # dbname; schemas before 0.9 do not say it
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
    escaped: bytes | None  # the wikitext as ``escape`` writes it; None: the dump does not hold it
    missing: str | None = None  # why it does not

    @property
    def text(self) -> str | None:
        """The wikitext; None where the dump does not hold it."""
        return None if self.escaped is None else unescape(self.escaped)


def escape(text: str) -> bytes:
    """Text as MediaWiki writes it in dumps, in UTF-8; equal texts are equal bytes."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace('"', "&quot;").encode()


_ESCAPED = re.compile(rb"&(lt|gt|quot|amp);")
_CHARACTERS = {b"lt": b"<", b"gt": b">", b"quot": b'"', b"amp": b"&"}


def unescape(escaped: bytes) -> str:
    """The text that ``escape`` made ``escaped`` of."""
    if b"&" not in escaped:
        return escaped.decode()
    parts = _ESCAPED.split(escaped)  # in half the time of one replacement after the other
    parts[1::2] = map(_CHARACTERS.__getitem__, parts[1::2])
    return b"".join(parts).decode()


@dataclass
class Reading:
    """What a pass over (a range of) a dump saw; filled while pages are read."""

    complete: bool = False  # the closing </mediawiki> was read
    pages: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    bytes: int = 0  # of XML

    def drop(self, reason: str) -> None:
        """Count a page that is left out."""
        self.dropped[reason] = self.dropped.get(reason, 0) + 1


def read_header(path: Path) -> Header:
    """Parse the start of a dump, up to its first page.

    Raises InputError if it is not a MediaWiki export, or carries a DOCTYPE (no dump does; entities can expand
    a small file to gigabytes).
    """
    head = b""
    for piece in pieces(path, allow_truncated=True):
        head += piece.data
        if _PAGE_OR_END.search(head) or len(head) > _MAX_HEADER:
            break
    first = _PAGE_OR_END.search(head)
    version = ""
    names: dict[str, int] = {}
    texts: list[str] = []
    found: dict[str, str] = {}
    keys: list[int] = []
    path_down: list[str] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal version
        if not version and tag != "mediawiki":
            raise InputError(f"{path}: not a MediaWiki export: its root is <{tag[:40]}>, not <mediawiki>")
        if len(path_down) == 1 and tag != "siteinfo":
            raise InputError(f"{path}: line {parser.CurrentLineNumber}: <{tag[:40]}> where pages should begin")
        path_down.append(tag)
        if tag == "mediawiki":
            version = attributes.get("version", "?")
        if tag == "namespace":
            keys.append(int(attributes["key"]))
            if abs(keys[-1]) > MAX_NAMESPACE:
                raise InputError(f"{path}: no namespace has the number {attributes['key'][:40]}")
        texts.clear()

    def end(tag: str) -> None:
        text = "".join(texts).strip()
        if tag == "namespace" and keys:
            names[text] = keys.pop()
        elif tag == "dbname":
            found[tag] = text
        texts.clear()
        path_down.pop()

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
    return Header(version, found.get("dbname"), names)


def read_pages(
    path: Path,
    header: Header,
    reading: Reading,
    start: int = 0,
    end: int | None = None,
    at: str | None = None,
    allow_truncated: bool = False,
    known: Callable[[int, int], int | None] | None = None,
    listed: bool = False,
) -> Iterator[Page]:
    """Yield the pages that begin in the compressed byte range [start, end) of ``path``.

    Of a page with several revisions the newest one is taken, or with ``at`` (YYYYMMDD) the newest at that date,
    00:00 UTC; a page without any is not in the snapshot. ``reading`` is filled on the way.
    ``known`` tells of a page and revision id how many bytes of wikitext the caller has of it: where there are as many
    in an article of the usual form, they are not looked at, and the page is yielded without them, as ``KNOWN``.
    ``listed`` as in ``streams.pieces``.
    Raises InputError naming file and byte for XML that is not well formed, and where the whole file is read for a
    dump without its closing tag, unless ``allow_truncated``. Of a range, ``reading.complete`` says whether it had
    that tag, which may stand in any.
    """
    limit = None if at is None else f"{at[:4]}-{at[4:6]}-{at[6:]}T00:00:00Z"
    window = _Window(path, start, end, allow_truncated, known, listed)
    with contextlib.closing(window.source):
        yield from _pages(window, header, reading, limit)
    # what lies behind the range was read to finish its last page, and is the next range's
    reading.bytes = window.bytes if window.range_bytes is None else window.range_bytes
    if start == 0 and end is None and not reading.complete and not allow_truncated:
        raise InputError(
            f"{path}: no </mediawiki> at its end: it was cut off after page {reading.pages}; fetch it "
            "again, or read what is there with --allow-truncated"
        )


def _pages(window: _Window, header: Header, reading: Reading, limit: str | None) -> Iterator[Page]:
    may_be_usual = not _older_than_0_4(header)
    while True:
        if may_be_usual and (usual := window.usual_page()) is not None:
            reading.pages += 1
            page, stamp = usual
            if limit is None or stamp <= limit:
                yield page
            else:
                reading.drop("after_the_date")
            continue
        if may_be_usual and len(window.buffer) - window.position < _PAGE_IN_SIGHT and window.more():
            continue  # what follows may just not be there yet
        # Whoever read the page before answers for what stands between: there may be a page's tag that is none.
        tag, in_range = window.seek(_PAGE_OR_END, beyond=reading.pages > 0)
        if reading.pages and window.skipped:
            raise InputError(
                f"{window.path}: unexpected {window.skipped[:40]!r} between pages, "
                f"before decompressed byte {window.place} of the stream at byte {window.stream}"
            )
        if not in_range:
            break
        if tag.startswith(b"</"):
            reading.complete = True
            window.check_end()
            break
        parsed = _read_page(window, header, reading, limit)
        if parsed is not None:
            yield parsed


class _Window:
    """A view that moves over the decompressed bytes of a range, and past its end to finish a page."""

    def __init__(
        self,
        path: Path,
        start: int,
        end: int | None,
        allow_truncated: bool,
        known: Callable[[int, int], int | None] | None,
        listed: bool,
    ) -> None:
        self.path, self.known = path, known
        self.source = pieces(path, start, allow_truncated, path.stat().st_size if end is None else end, listed)
        self.end = end
        self.buffer = b""
        self.position = 0  # of the cursor in the buffer
        self.bytes = 0  # decompressed so far
        self.stream = start
        self.range_bytes: int | None = None  # how many decompressed bytes belong to the range, once known
        self.skipped = b""

    @property
    def place(self) -> int:
        return self.bytes - len(self.buffer) + self.position

    def more(self) -> bool:
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

    def usual_page(self) -> tuple[Page, str] | None:
        """The next page and its timestamp, if it is in the buffer and has the usual form."""
        buffer = self.buffer
        head = _UP_TO_THE_TEXT.match(buffer, self.position)
        if head is None:
            return None
        if self.range_bytes is not None and self.bytes - len(buffer) + head.start(1) >= self.range_bytes:
            return None
        text = head.end()
        text_end = buffer.find(b"<", text)
        tail = _BEHIND_THE_TEXT.match(buffer, text_end) if text < text_end <= text + MAX_REVISION else None
        if tail is None:
            return None
        _, title, namespace, page, redirect, limits, revision, parent, stamp, user, ip, comment = head.groups(b"")
        page_id, revision_id = int(page), int(revision)
        free = [title, redirect, limits, user, ip, comment]  # all else in a page of this form is as it must be
        size = None
        if self.known is not None and not redirect and namespace == b"0":
            size = self.known(page_id, revision_id)
        escaped = None
        if size != text_end - text:
            escaped = buffer[text:text_end]
            if b">" in escaped:
                return None
            free.append(escaped)
        xml = b"\n".join(free)
        if len(xml.translate(None, _CONTROLS)) < len(xml) or _NOT_AS_WRITTEN.search(xml):
            return None
        try:
            if not xml.isascii() and not _only_characters(xml.decode()):
                return None
            timestamp = datetime.datetime.fromisoformat(stamp.decode())
        except ValueError:
            return None
        self.position = tail.end()
        return (
            Page(
                page_id,
                int(namespace),
                unescape(title),
                bool(redirect),
                revision_id,
                int(parent or 0) or None,
                timestamp,
                None if escaped is None else escaped.replace(b'"', b"&quot;"),
                KNOWN if escaped is None else None,
            ),
            stamp.decode(),
        )

    def check_end(self) -> None:
        """Refuse a file that goes on behind its closing tag: somebody has joined dumps, or worse."""
        while not (rest := self.buffer[self.position :].strip()) and self.more():
            continue
        if rest:
            raise InputError(f"{self.path}: {rest[:40]!r} after </mediawiki>: joined dumps are not read")

    def _unsearched(self) -> int:
        """Where a tag may begin that the buffer does not hold whole."""
        at = self.buffer.rfind(b"<", max(self.position, len(self.buffer) - _LONGEST_TAG))
        return len(self.buffer) if at < 0 else at

    def seek(self, tags: re.Pattern[bytes], beyond: bool) -> tuple[bytes, bool]:
        """Move behind the next of ``tags``: (it, whether it begins inside the range); (b"", False) if there is none.

        What lies behind the range is looked at with ``beyond`` only. ``skipped`` is how what was passed over begins,
        white space apart.
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
        """Read up to and over the next of ``tags``: (what stands before it, the tag).

        (None, tag) where that is more than MAX_REVISION bytes; (b"", b"") where the file ends first.
        """
        searched, too_long = self.position, False
        while True:
            if found := tags.search(self.buffer, searched):
                too_long = too_long or found.start() - self.position > MAX_REVISION
                data = None if too_long else self.buffer[self.position : found.start()]
                self.position = found.end()
                return data, found[0]
            searched = max(searched, self._unsearched())
            if searched - self.position > MAX_REVISION:
                too_long, self.position = True, searched
            searched -= self.position
            if not self.more():
                return b"", b""


def _only_characters(text: str) -> bool:
    """Whether UTF-8 that is no ASCII holds only what XML calls characters."""
    return "\ufffe" not in text and "\uffff" not in text


def _read_page(window: _Window, header: Header, reading: Reading, limit: str | None) -> Page | None:
    reading.pages += 1
    head, tag = _take(window, _REVISION_OR_PAGE_END)
    page = _parse(window, reading, b"<page>" + (head or b"") + b"</page>", tag)
    if page is None:
        return None
    title = page.findtext("title") or ""
    page_id = _number(window, page.findtext("id"))
    if not title or page_id < 1:
        raise InputError(f"{_where(window)}: a page without a title or an id")
    newest: ET.Element | None = None
    key = last = ("", 0)
    seen = too_long = False
    while tag.startswith(b"<r"):
        body, tag = _take(window, _REVISION_END)
        if body is None:
            too_long = True
        else:
            revision = _parse(window, reading, b"<revision>" + body + b"</revision>", tag)
            if revision is None:
                return None
            seen = True
            stamp = revision.findtext("timestamp") or ""
            this = (stamp, _number(window, revision.findtext("id")))
            last = max(last, this)
            if (limit is None or stamp <= limit) and this >= key:
                newest, key = revision, this
        between, tag = _take(window, _REVISION_OR_PAGE_END)
        between = (between or b"").strip()
        if (between or not tag) and _parse(window, reading, b"<page>" + between + b"</page>", tag) is None:
            return None
    if too_long or newest is None:  # an older revision must not stand in for one that is too long
        reading.drop("too_long" if too_long else "after_the_date" if seen else "no_revision")
        return None
    # <redirect/> is about the page's last revision; schemas before 0.4 do not have it
    by_text = key != last or _older_than_0_4(header)
    return _make_page(window, header, page, newest, title, page_id, by_text)


def _take(window: _Window, tags: re.Pattern[bytes]) -> tuple[bytes | None, bytes]:
    """What ``window.take`` gives. Raises InputError for a tag that cannot stand in a page."""
    data, tag = window.take(tags)
    if tag.startswith((b"<page", b"</m")):
        raise InputError(f"{_where(window)}: {tag[:40]!r} begins inside a page")
    return data, tag


def _parse(window: _Window, reading: Reading, xml: bytes, closing: bytes) -> ET.Element | None:
    """One element as a tree; None where the file ends first, which is allowed, or the dump's end is missed later."""
    if not closing:
        window.position = len(window.buffer)
        reading.drop("cut_off")
        return None
    try:
        return ET.fromstring(xml)
    except ET.ParseError as error:
        raise InputError(f"{_where(window)}: XML that is not well formed: {error}") from None


def _where(window: _Window) -> str:
    return f"{window.path}: page before byte {window.place} of what the stream at byte {window.stream} decodes to"


def _number(window: _Window, text: str | None) -> int:
    """A number in a page; 0 where there is none."""
    if not text:
        return 0
    if not re.fullmatch(r"\s*-?[0-9]{1,18}\s*", text, re.ASCII):
        raise InputError(f"{_where(window)}: an id that is no number: {text[:40]!r}")
    return int(text)


def _namespace(window: _Window, text: str) -> int:
    number = _number(window, text)
    if abs(number) > MAX_NAMESPACE:
        raise InputError(f"{_where(window)}: no namespace has the number {text.strip()}")
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
        missing = "no_text"  # stubs, and revisions whose text the database has lost
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
        raise InputError(f"{_where(window)}: page {page_id}: {error}") from None
