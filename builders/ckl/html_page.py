"""Extract title, text, date and language from a saved news page, in a process that may be killed.

trafilatura finds the text. A hostile page may let the parser run forever, use up the memory or crash: only the process
that reads pages dies, and the page is dropped with a reason. Nothing that a page links to is fetched.
"""

from __future__ import annotations

import codecs
import contextlib
import datetime
import importlib.util
import json
import logging
import math
import multiprocessing
import re
import resource
import signal
import socket
import time
import urllib.parse
import warnings
import zlib
from collections.abc import Iterator
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, NoReturn, Self

import msgspec
import regex
from rapidfuzz import fuzz

from temporalwiki.base.errors import InputError
from temporalwiki.base.json_files import read_yaml

VERSION = 4  # increase it when the extraction changes: kept pages of other versions are not used
LARGEST = 10 << 20  # bytes of a page or record; articles are far smaller
CPU_SECONDS = 30  # for one page; CPU time, so that a busy machine does not drop more pages
MEMORY = 4 << 30  # bytes for one page; the libraries need more
LIBRARIES = ("trafilatura", "justext", "lxml", "charset-normalizer", "py3langid", "python-dateutil")

_NEEDED = ("trafilatura", "lxml", "charset_normalizer", "py3langid", "dateutil", "warcio", "brotli", "rensa")
_DETECTED = 5_000  # characters that suffice to detect the language


class NewsPage(msgspec.Struct):
    """An article; fields that the page does not have are None."""

    url: str | None
    title: str | None
    text: str | None  # one paragraph per line
    published: int | None  # seconds since 1970, UTC
    language: str | None  # ISO 639-1; "" if unknown, None if the articles were already selected by language


class Response(msgspec.Struct):
    """What the server said about a page."""

    url: str | None = None
    charset: str | None = None
    encoding: str | None = None  # of the content: "gzip", "br"
    chunked: bool = False


def check_installed() -> None:
    """Raise InputError if a library that reads news is not installed."""
    for module in _NEEDED:
        if importlib.util.find_spec(module) is None:
            raise InputError(f"reading news needs {module}, which is not installed: pip install 'temporalwiki[news]'")


class Extractor:
    """Reads pages in its own process, which is started for the first page, and again after a page has killed it."""

    def __init__(self, cpu_seconds: int = CPU_SECONDS) -> None:
        self._cpu_seconds = cpu_seconds
        self._process: SpawnProcess | None = None
        self._connection: Connection | None = None

    def __enter__(self) -> Self:
        check_installed()
        return self

    def __exit__(self, *_error: object) -> None:
        self._end()

    def read(self, data: bytes, response: Response | None = None) -> NewsPage | str:
        """Return the article of a page, or the reason to drop it; raise InputError if a library is not installed."""
        if len(data) > LARGEST:
            return f"larger than {LARGEST >> 20} MB"
        try:
            connection = self._connection or self._start()
            connection.send_bytes(msgspec.msgpack.encode((response or Response(), data)))
            return msgspec.msgpack.decode(connection.recv_bytes(), type=NewsPage | str)
        except (EOFError, ConnectionError):
            assert self._process is not None
            self._process.join()
            too_slow = self._process.exitcode == -signal.SIGXCPU
            self._end()
            return "takes too long to parse" if too_slow else "crashes the parser"

    def _start(self) -> Connection:
        context = multiprocessing.get_context("spawn")
        connection, its_end = context.Pipe()
        self._process = context.Process(target=_serve, args=(its_end, self._cpu_seconds), daemon=True)
        self._process.start()
        its_end.close()  # so that the pipe breaks when the process dies
        try:
            connection.recv_bytes()
        except (EOFError, ConnectionError):
            raise InputError(
                "the process that reads pages did not start; see its error above. A script that calls this needs "
                '`if __name__ == "__main__":`'
            ) from None
        self._connection = connection
        return connection

    def _end(self) -> None:
        if self._connection is not None:
            self._connection.close()
        if self._process is not None:
            self._process.kill()
            self._process.join()
        self._process = self._connection = None


# Functions of the process that may be killed


def _serve(connection: Connection, cpu_seconds: int) -> None:
    """Answer requests until the other process ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    _go_offline()
    warnings.simplefilter("ignore")
    logging.disable()
    read = _Reader()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _limit_memory()
    with contextlib.suppress(EOFError, ConnectionError):
        connection.send_bytes(b"ready")
        while True:
            response, data = msgspec.msgpack.decode(connection.recv_bytes(), type=tuple[Response, bytes])
            spent = int(time.process_time())
            resource.setrlimit(resource.RLIMIT_CPU, (spent + cpu_seconds + 1, resource.RLIM_INFINITY))
            connection.send_bytes(msgspec.msgpack.encode(_answer(read, data, response)))


def _answer(read: _Reader, data: bytes, response: Response) -> NewsPage | str:
    """Return the article of a page, or the reason to drop it."""
    try:
        return read(decoded(data, response), response.url, response.charset)
    except _UnreadablePage as error:
        return str(error)
    except MemoryError:
        return "takes too much memory to parse"
    except Exception:  # noqa: BLE001  # the libraries raise anything on hostile pages
        return "cannot be parsed"


def _go_offline() -> None:
    """Refuse all connections: no library needs one, but each might open one."""

    def refuse(*_args: Any, **_options: Any) -> NoReturn:
        raise OSError("pages are read offline")

    for name in ("connect", "connect_ex", "sendto", "sendmsg"):
        setattr(socket.socket, name, refuse)
    for name in ("getaddrinfo", "gethostbyname", "gethostbyname_ex", "gethostbyaddr", "getnameinfo"):
        setattr(socket, name, refuse)


def _limit_memory() -> None:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except OSError:  # not Linux
        return
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, resource.RLIM_INFINITY))


class _UnreadablePage(Exception):
    """The data is not a page; the message is the reason."""


_CUT = "cut off in transfer"
_CHUNK = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\r\n]*)?\r?\n")


def decoded(data: bytes, response: Response) -> bytes:
    """Return a page without HTTP's chunks and compression; data that does not have them is returned unchanged.

    Raises _UnreadablePage if the content is cut off or too large.
    """
    if response.chunked:
        data = _unchunked(data)
    if response.encoding in ("gzip", "x-gzip", "deflate"):
        data = _inflated(data)
    elif response.encoding == "br":
        data = _unbrotli(data)
    if len(data) > LARGEST:
        raise _UnreadablePage(f"larger than {LARGEST >> 20} MB")
    return data


def _unchunked(data: bytes) -> bytes:
    parts = bytearray()
    at = 0
    while chunk := _CHUNK.match(data, at):
        size, start = int(chunk[1], 16), chunk.end()
        if not size:
            return bytes(parts)
        parts += data[start : start + size]
        if len(data) < start + size:
            raise _UnreadablePage(_CUT)
        at = start + size
        at += 2 if data.startswith(b"\r\n", at) else data.startswith(b"\n", at)
    if not at:
        return data  # the crawler has removed the chunks
    raise _UnreadablePage(_CUT if at + 10 > len(data) else "damaged in transfer")


def _inflated(data: bytes) -> bytes:
    """Decompress gzip, zlib or raw deflate; servers call each of the latter two "deflate"."""
    for format in (zlib.MAX_WBITS | 32, -zlib.MAX_WBITS):
        out, rest = bytearray(), data
        try:
            while rest and len(out) <= LARGEST:
                stream = zlib.decompressobj(format)
                out += stream.decompress(rest, LARGEST + 1 - len(out))
                if not stream.eof and len(out) <= LARGEST:
                    raise _UnreadablePage(_CUT)
                rest = stream.unused_data if stream.unused_data.startswith(b"\x1f\x8b") else b""
        except zlib.error:
            if out:
                raise _UnreadablePage("damaged in transfer") from None
            continue
        return bytes(out)
    return data


def _unbrotli(data: bytes) -> bytes:
    import brotli

    stream = brotli.Decompressor()
    try:
        out = bytes(stream.process(data, output_buffer_limit=LARGEST + 1))
    except brotli.error:
        return data
    if not stream.is_finished() and len(out) <= LARGEST:
        if not out or data.lstrip().startswith(b"<"):
            return data
        raise _UnreadablePage(_CUT)
    return out


class _Reader:
    """Reads an article: the text with trafilatura; encoding, address, title, date and language with this module."""

    def __init__(self) -> None:
        import py3langid
        import trafilatura

        self._classify, self._load, self._extract = py3langid.classify, trafilatura.load_html, trafilatura.extract
        py3langid.classify("")  # loads its model

    def __call__(self, data: bytes, url: str | None, charset: str | None) -> NewsPage:
        markup = _markup(data, charset)
        html = self._load(markup) if "<" in markup else None
        if html is None:
            raise _UnreadablePage("not HTML")
        address = url or _own_address(html)
        title = _title(html)
        dates = map(moment, _dates(html, address))
        text = self._text(html, title)
        return NewsPage(
            url=address,
            title=title or None,
            text=text or None,
            published=next((date for date in dates if date is not None), None),
            language=self._language(text),
        )

    def _text(self, html: Any, title: str) -> str:
        """Return the paragraphs of an article, without its title and without notes about subscriptions."""
        text = self._main_text(html)
        if not text and (hidden := _flight_markup(html)):
            text = self._main_text(self._load(f"<html><body><article>{hidden}</article></body></html>"))
        lines = clean_text(text).split("\n")
        if lines[0] == title:
            del lines[0]
        return "\n".join(without_notes(lines))

    def _main_text(self, html: Any) -> str:
        """Return what trafilatura finds in its precise mode, or in its usual mode if that finds far more."""
        precise, usual = (
            self._extract(html, include_comments=False, favor_precision=favor) or "" for favor in (True, False)
        )
        return precise if len(precise) * 4 >= len(usual) else usual

    def _language(self, text: str) -> str:
        text = text[:_DETECTED]
        return str(self._classify(text)[0]) if any(map(str.isalpha, text)) else ""


_DECLARED = re.compile(
    rb"""<(?:meta|\?xml)[^>]{0,200}?(?:charset|encoding)\s*=\s*["']?\s*([\w.:-]{1,40})""", re.IGNORECASE
)
_HEAD = 4096  # bytes of a page that may declare its encoding
_MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
# browsers read these names as a larger encoding, and pages count on it
_LARGER = {"ascii": "cp1252", "iso8859-1": "cp1252", "iso8859-9": "cp1254", "gb2312": "gb18030", "gbk": "gb18030"}
_LARGER |= {"shift_jis": "cp932", "euc_kr": "cp949", "big5": "big5hkscs", "tis-620": "cp874"}


def _markup(data: bytes, told: str | None) -> str:
    """Return a page as text: by its byte order mark, as UTF-8, as the server or the page says, or by a guess."""
    from charset_normalizer import from_bytes

    declared = _DECLARED.search(data[:_HEAD])
    marked = [name for mark, name in _MARKS.items() if data.startswith(mark)]
    said = [told or "", declared[1].decode() if declared else ""]
    # a page with only ASCII bytes may be ISO-2022-JP
    for name in (*marked, *said, "utf-8") if data.isascii() else (*marked, "utf-8", *said):
        try:
            name = codecs.lookup(name).name
            text = data.decode(_LARGER.get(name, name), "replace")
        except (LookupError, ValueError):
            continue
        if text.count("\ufffd") * 10 <= len(text) - len(text.encode("ascii", "ignore")):
            break
    else:
        text = str(from_bytes(data).best() or data.decode("cp1252", "replace"))
    # without control characters, which lxml refuses to write
    return _CONTROL.sub("", _CONTROL_REFERENCE.sub("", text.replace("\r", "\n")))


_ROW = re.compile(rb"[0-9a-f]*:(?:T([0-9a-f]{1,7}),)?")


def _flight_markup(html: Any) -> str:
    """Return the markup that a page of Next.js keeps in its scripts, and shows only in a browser.

    The scripts push a stream of rows in pieces. A row of text begins with its length in bytes; others end with a line.
    """
    stream = ""
    for script in html.iterfind(".//script"):
        before, _, pushed = (script.text or "").strip().partition("self.__next_f.push(")
        with contextlib.suppress(ValueError, RecursionError):
            pieces = json.loads(pushed.rstrip("; \n)")) if pushed and not before else []
            stream += "".join(piece for piece in pieces if isinstance(piece, str))
    data, found, at = stream.encode("utf-8", "ignore"), [], 0
    while at < len(data):
        row = _ROW.match(data, at)
        if row and row[1]:
            at = row.end() + int(row[1], 16)
            found.append(data[row.end() : at].decode("utf-8", "ignore"))
        else:
            at = data.find(b"\n", at) + 1 or len(data)
    return "".join(text for text in found if "<p" in text)


def _title(html: Any) -> str:
    """Return the heading that is like the page's name in its metadata, or else this name."""
    names = html.xpath("//meta[@property='og:title']/@content") + html.xpath("//title/text()")
    name = next(filter(None, map(clean_line, names)), "")
    headings = [clean_line(heading.text_content()) for heading in html.iterfind(".//h1")]
    alike = (heading for heading in headings if heading and fuzz.token_set_ratio(heading, name) >= _ALIKE)
    return next(alike, name or next(filter(None, headings), ""))


_ALIKE = 60  # per cent of the characters


def _own_address(html: Any) -> str | None:
    """Return the address that a page gives for itself."""
    found = html.xpath("//link[@rel='canonical']/@href") + html.xpath("//meta[@property='og:url']/@content")
    return next(filter(None, (web_address(str(one)) for one in found)), None)


# The date of publishing. Metadata for machines comes first, then the address, then visible dates. Dates of pictures,
# and of elements with "date" in their class, are seldom the article's.

_METAS = (
    # as property, name or itemprop: about articles, about publishing, and then just "date"
    *("article:published_time", "og:article:published_time", "datepublished"),
    *("article.published", "og:published_time", "pubdate", "publishdate", "publish-date", "publish_date"),
    *("published-date", "published_date", "publication-date", "publication_date", "date_published"),
    *("article_date_original", "bt:pubdate", "parsely-pub-date", "sailthru.date", "cxenseparse:recs:publishtime"),
    *("dc.date.issued", "dcterms.issued", "dc.date", "dcterms.date", "date"),
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DATED = re.compile(
    rf"(?<!\d)((?:19|20)\d\d)(?:([/_.-])(0?[1-9]|1[0-2]|{'|'.join(_MONTHS)})\2(0?[1-9]|[12]\d|3[01])"
    r"|(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01]))(?!\d)",
    re.IGNORECASE,
)


def _dates(html: Any, address: str | None) -> Iterator[str]:
    """Yield the candidates for the date of publishing, most reliable first."""
    yield from _json_dates(html)
    metas: dict[str, str] = {}
    for meta in html.iterfind(".//meta[@content]"):
        for attribute in ("property", "name", "itemprop"):
            name = meta.get(attribute, "").lower()
            if name in _METAS and not _aside(meta):
                metas.setdefault(name, meta.get("content"))
    yield from (metas[name] for name in _METAS if name in metas)
    yield from _address_dates(address or "")
    tags = [tag for tag in html.iterfind(".//*[@itemprop='datePublished']") if tag.tag != "meta"]
    times = [tag for tag in html.iterfind(".//time") if tag.get("itemprop") != "dateModified"]
    inside = [tag for tag in times if next(tag.iterancestors("article", "main"), None) is not None]
    for tag in (*tags, *inside, *times):
        if not _aside(tag):
            yield tag.get("content") or tag.get("datetime") or " ".join(tag.itertext())


def _aside(tag: Any) -> bool:
    return next(tag.iterancestors("aside", "nav", "footer"), None) is not None


def _json_dates(html: Any) -> list[str]:
    """Return the dates of publishing in JSON-LD: of articles, then of pages."""
    articles, pages = list[str](), list[str]()
    for thing in _json_things(html):
        date, kind = thing.get("datePublished"), str(thing.get("@type"))
        if isinstance(date, str) and any(word in kind for word in ("Article", "Posting", "Report")):
            articles.append(date)
        elif isinstance(date, str) and "WebPage" in kind:
            pages.append(date)
    return articles + pages


def _json_things(html: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects of a page's JSON-LD, with those inside lists, ``@graph`` and ``mainEntity``."""
    for script in html.iterfind(".//script[@type='application/ld+json']"):
        try:
            found = [json.loads((script.text or "").strip().removeprefix("<!--").removesuffix("-->"))]
        except (ValueError, RecursionError):
            continue
        while found:
            thing = found.pop()
            if isinstance(thing, list):
                found += reversed(thing)
            elif isinstance(thing, dict):
                yield thing
                found += [thing[name] for name in ("mainEntity", "@graph") if name in thing]


def _address_dates(url: str) -> Iterator[str]:
    """Yield the days in an address: /2015/03/12/, /2015-03-12, /2015/mar/12, 20150312."""
    for year, _, month, day, *whole in _DATED.findall(urllib.parse.urlsplit(url).path):
        month, day = (month, day) if month else whole
        number = _MONTHS.index(month.lower()) + 1 if month.lower() in _MONTHS else int(month)
        yield f"{year}-{number:02d}-{int(day):02d}"


# Notes of a site in its articles: about subscriptions, and invitations to a newsletter

_LONGEST_NOTE = 320  # characters; a longer paragraph is the article's
_NOTE = regex.compile(
    "|".join(pattern for of in read_yaml(Path(__file__).with_name("site_notes.yaml")).values() for pattern in of),
    regex.IGNORECASE,
)


def without_notes(lines: list[str]) -> list[str]:
    """Return the lines of an article that are not notes of its site."""
    return [line for line in lines if len(line) > _LONGEST_NOTE or not _NOTE.search(line.removeprefix("- "))]


# Values

_CONTROL_REFERENCE = re.compile(
    r"&#(?:0*(?:[0-8]|1[124-9]|2\d|3[01])|x0*(?:[0-8bcef]|1[0-9a-f]))(?:;|\b)", re.IGNORECASE
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
_EPOCH = re.compile(r"1[0-9]{9}(?:[0-9]{3})?")
_HOURS = {"UTC": 0, "GMT": 0, "Z": 0, "WET": 0, "BST": 1, "WEST": 1, "CET": 1, "CEST": 2, "EET": 2, "EEST": 3}
_HOURS |= {"MSK": 3, "EST": -5, "CST": -6, "MST": -7, "PST": -8, "AKST": -9, "HST": -10, "JST": 9, "AEST": 10}
_HOURS |= {"AEDT": 11, "EDT": -4, "CDT": -5, "MDT": -6, "PDT": -7, "AKDT": -8}
_FIRST, _END = -2_208_988_800, 4_133_980_800  # 1900 to 2100: other years are mistakes
_SOME_DAYS = (datetime.datetime(1972, 2, 29), datetime.datetime(1976, 1, 31))


def moment(text: str) -> int | None:
    """Return a date as seconds since 1970; None unless it is a complete day from 1900 to 2100.

    The default time is midnight, the default time zone UTC; 08/05/2024 is in August.
    """
    from dateutil import parser

    text = text.strip()
    if len(text) > 100:
        return None
    if _EPOCH.fullmatch(text):
        return int(text[:10])
    try:
        one, other = (parser.parse(text, default=day, tzinfos=_zone) for day in _SOME_DAYS)
        if one != other:  # the date is incomplete: the default filled a part of it
            return None
        return in_our_time(math.floor(one.timestamp()))
    except (ValueError, OverflowError, TypeError):
        return None


def _zone(name: str | None, offset: int | None) -> datetime.timezone:
    """Return the zone of a date, UTC if it is unknown: dateutil would read some names as this machine's zone."""
    if offset is None:
        offset = _HOURS.get(name or "", 0) * 3600
    return datetime.timezone(datetime.timedelta(seconds=offset))


def in_our_time(seconds: int) -> int | None:
    """Return ``seconds``; None unless they are in the years 1900 to 2100."""
    return seconds if _FIRST <= seconds < _END else None


def clean_text(text: str) -> str:
    """Return a text with one paragraph per line, without empty lines and control characters."""
    lines = _CONTROL.sub("", text.replace("\r", "\n")).splitlines()
    return "\n".join(filter(None, (" ".join(line.split()) for line in lines)))


def clean_line(text: str) -> str:
    """Return a text on one line, without control characters."""
    return " ".join(clean_text(text).split())


def web_address(url: object) -> str | None:
    """Return a clean http or https address; None if ``url`` is not one."""
    if not isinstance(url, str):
        return None
    url = _CONTROL.sub("", url).strip()
    try:
        parts = urllib.parse.urlsplit(url)
    except ValueError:
        return None
    return url if parts.scheme in ("http", "https") and parts.hostname else None
