"""What a saved page of a news site says: news-please finds title and text, in a process that may be killed.

Pages come from anywhere. One that makes the parser run for ever, eat the memory or crash takes down a process that
does nothing else, and is dropped by reason; nothing that a page names is fetched.
"""

from __future__ import annotations

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
from types import TracebackType
from typing import Any, NoReturn, Self

import msgspec

from temporalwiki.base.errors import InputError

VERSION = 2  # of what is read out of a page; a new one makes kept pages stale
LARGEST = 10 << 20  # bytes of a page or record; articles are far smaller
CPU_SECONDS = 30  # for one page; of the processor and not of the clock, so that a busy machine drops no more
MEMORY = 4 << 30  # bytes for one page, beyond what the libraries take
LIBRARIES = (
    *("news-please", "newspaper4k", "readability-lxml", "langdetect", "lxml", "beautifulsoup4", "python-dateutil"),
    *("jieba", "tinysegmenter", "pythainlp", "indic-nlp-library"),  # newspaper's, for languages without spaces
)

# the modules of the extra "news", and what one installs for each
_NEEDED = {
    "newsplease": "news-please",
    "newspaper": "newspaper4k",
    "readability": "readability-lxml",
    "langdetect": "langdetect",
    "lxml": "lxml",
    "bs4": "beautifulsoup4",
    "dateutil": "python-dateutil",
    "warcio": "warcio",
    "brotli": "brotli",
    "datasketch": "datasketch",
}

_DETECTED = 5_000  # characters of a text that tell its language


class Page(msgspec.Struct):
    """An article as the page has it; None for what it does not have."""

    url: str | None
    title: str | None
    text: str | None  # a paragraph a line
    published: int | None  # seconds since 1970, UTC
    language: str | None  # of the text, ISO 639-1; "" where that cannot be told, None where it was chosen before


class Response(msgspec.Struct):
    """What is known of a page beside its bytes, where a server sent it."""

    url: str | None = None
    charset: str | None = None
    encoding: str | None = None  # of the content: "gzip", "br"
    chunked: bool = False


class _Reply(msgspec.Struct):
    page: Page | None = None
    reason: str | None = None
    missing: str | None = None  # a module that is not installed


def check_installed() -> None:
    """Raise InputError where a library that reads news is not installed."""
    for module in _NEEDED:
        if importlib.util.find_spec(module) is None:
            raise _not_installed(module)


def _not_installed(module: str) -> InputError:
    return InputError(f"{_NEEDED[module]} is not installed, which news is read with; pip install 'temporalwiki[news]'")


class Extractor:
    """Reads pages in a process of its own, which is started when it is needed, and again after a page killed it."""

    def __init__(self, cpu_seconds: int = CPU_SECONDS) -> None:
        self._cpu_seconds = cpu_seconds

    def __enter__(self) -> Self:
        self._process: SpawnProcess | None = None
        self._connection: Connection | None = None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def read(self, data: bytes, response: Response | None = None) -> Page | str:
        """Return what a page says, or the reason why it says nothing.

        Raises UsageError where news-please is not installed.
        """
        if len(data) > LARGEST:
            return f"larger than {LARGEST >> 20} MB"
        try:
            connection = self._started()
            connection.send_bytes(msgspec.json.encode(response or Response()))
            connection.send_bytes(data)
            reply = msgspec.json.decode(connection.recv_bytes(), type=_Reply)
        except (EOFError, ConnectionError):
            assert self._process is not None
            self._process.join()
            late = self._process.exitcode == -signal.SIGXCPU
            self._end()
            return "takes too long to parse" if late else "crashes the parser"
        if reply.missing:
            raise _not_installed(reply.missing)
        return reply.page or reply.reason or "cannot be parsed"

    def _started(self) -> Connection:
        if self._connection is None:
            context = multiprocessing.get_context("spawn")
            self._connection, theirs = context.Pipe()
            self._process = context.Process(target=_serve, args=(theirs, self._cpu_seconds), daemon=True)
            self._process.start()
            theirs.close()  # its end of the pipe closes with the process
            try:
                self._connection.recv_bytes()
            except (EOFError, ConnectionError):
                self._end()
                raise InputError(
                    "the process that reads pages did not start; its error stands above. A script that calls this "
                    'needs `if __name__ == "__main__":`, and news-please all its libraries'
                ) from None
        return self._connection

    def _end(self) -> None:
        if self._connection is not None:
            self._connection.close()
        if self._process is not None:
            self._process.kill()
            self._process.join()
        self._process = self._connection = None


# In the process that may be killed


def _serve(connection: Connection, cpu_seconds: int) -> None:
    """Answer requests until the one who sends them is gone."""
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
            response = msgspec.json.decode(connection.recv_bytes(), type=Response)
            data = connection.recv_bytes()
            spent = int(time.process_time())
            resource.setrlimit(resource.RLIMIT_CPU, (spent + cpu_seconds + 1, resource.RLIM_INFINITY))
            connection.send_bytes(msgspec.json.encode(_reply(read, data, response)))


def _reply(read: _Reader, data: bytes, response: Response) -> _Reply:
    try:
        return _Reply(page=read(decoded(data, response), response.url, response.charset))
    except _Unreadable as error:
        return _Reply(reason=str(error))
    except MemoryError:
        return _Reply(reason="takes too much memory to parse")
    except ImportError as error:  # newspaper's words of Chinese, Japanese, Thai ...
        if error.name in _NEEDED:
            return _Reply(missing=error.name)
        return _Reply(reason="needs a word splitter for its language that is not installed")
    except Exception:  # noqa: BLE001  # whatever five libraries raise on what is no page
        return _Reply(reason="cannot be parsed")


def _go_offline() -> None:
    """Let no library open a connection: some would load pictures, or lists of domain names."""

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


class _Unreadable(Exception):
    """What was given holds no page; the message is the reason."""


_CUT = "cut off in transfer"
_CHUNK = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\r\n]*)?\r?\n")


def decoded(data: bytes, response: Response) -> bytes:
    """Undo what HTTP did to a page; servers say of some pages what is not so, which come back as they are.

    Raises _Unreadable where the content ends before its end, or is too large.
    """
    if response.chunked:
        data = _unchunked(data)
    if response.encoding in ("gzip", "x-gzip", "deflate"):
        data = _inflated(data)
    elif response.encoding == "br":
        data = _unbrotli(data)
    if len(data) > LARGEST:
        raise _Unreadable(f"larger than {LARGEST >> 20} MB")
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
            raise _Unreadable(_CUT)
        at = start + size
        at += 2 if data.startswith(b"\r\n", at) else data.startswith(b"\n", at)
    if not at:
        return data  # chunks that somebody has undone before
    raise _Unreadable(_CUT if at + 10 > len(data) else "damaged in transfer")


def _inflated(data: bytes) -> bytes:
    """Decompress gzip or zlib or bare deflate, of which some servers mean either by "deflate"."""
    for format in (zlib.MAX_WBITS | 32, -zlib.MAX_WBITS):
        out, rest = bytearray(), data
        try:
            while rest and len(out) <= LARGEST:
                stream = zlib.decompressobj(format)
                out += stream.decompress(rest, LARGEST + 1 - len(out))
                if not stream.eof and len(out) <= LARGEST:
                    raise _Unreadable(_CUT)
                rest = stream.unused_data if stream.unused_data.startswith(b"\x1f\x8b") else b""
        except zlib.error:
            if out:
                raise _Unreadable("damaged in transfer") from None
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
        raise _Unreadable(_CUT)
    return out


class _Reader:
    """news-please's title and text, and what it leaves open or guesses: encoding, address, date and language."""

    def __init__(self) -> None:
        import langdetect
        from bs4 import BeautifulSoup, UnicodeDammit
        from dotmap import DotMap
        from newsplease.crawler.items import NewscrawlerItem
        from newsplease.pipeline.extractor.article_extractor import Extractor as ArticleExtractor

        langdetect.DetectorFactory.seed = 0
        self._detect, self._no_language = langdetect.detect, langdetect.LangDetectException
        self._decode, self._soup, self._map, self._item = UnicodeDammit, BeautifulSoup, DotMap, NewscrawlerItem
        self._extractor = ArticleExtractor(
            [("newspaper_extractor_no_images", "NewspaperExtractorNoImages"), "readability_extractor"]
        )
        # its cleaner takes tags out of what is text already, and with them "a < b and c > d"
        self._extractor.cleaner.delete_tags = str

    def __call__(self, data: bytes, url: str | None, charset: str | None) -> Page:
        markup = self._decode(data, [charset] if charset else [], is_html=True).unicode_markup
        if not markup or "<" not in markup:
            raise _Unreadable("not HTML")
        markup = markup.replace("\0", "")
        html = self._soup(markup, "lxml")
        said = _said_addresses(html)
        address = url or next(iter(said), None)
        item = self._item()
        item["spider_response"], item["url"], item["html_title"] = self._map(body=markup), address or "", b""
        found = self._extractor.extract(item)
        text = clean_text(found["article_text"] or "")
        return Page(
            url=address,
            title=clean_line(found["article_title"] or "") or None,
            text=text or None,
            published=next((date for text in _dates(html, address, said) if (date := moment(text)) is not None), None),
            language=self._language(text),
        )

    def _language(self, text: str) -> str:
        try:
            found = str(self._detect(text[:_DETECTED]))
        except self._no_language:  # no letters
            return ""
        return found.split("-")[0]


def _said_addresses(html: Any) -> list[str]:
    """Return the addresses that a page says it has."""
    links = [(link, "href") for link in html.find_all("link", rel="canonical")]
    links += [(meta, "content") for meta in html.find_all("meta", property="og:url")]
    return [url for tag, name in links if (url := web_address(tag.get(name)))]


# When it was published. What a page says of itself for machines comes first, then its address, then what it shows.
# Dates of pictures, and of whatever has "date" in its class, are seldom the article's.

_METAS = (
    # as property, name or itemprop; those for articles, those for publishing, those that only say "date"
    *("article:published_time", "og:article:published_time", "datepublished"),
    *("article.published", "og:published_time", "pubdate", "publishdate", "publish-date", "publish_date"),
    *("published-date", "published_date", "publication-date", "publication_date", "date_published"),
    *("article_date_original", "bt:pubdate", "parsely-pub-date", "sailthru.date", "cxenseparse:recs:publishtime"),
    *("dc.date.issued", "dcterms.issued", "dc.date", "dcterms.date", "date"),
)
_ASIDE = ("aside", "nav", "footer")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DATED = re.compile(
    rf"(?<!\d)((?:19|20)\d\d)(?:([/_.-])(0?[1-9]|1[0-2]|{'|'.join(_MONTHS)})\2(0?[1-9]|[12]\d|3[01])"
    r"|(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01]))(?!\d)",
    re.IGNORECASE,
)


def _dates(html: Any, address: str | None, said: list[str]) -> Iterator[str]:
    """Yield what may be the date of publishing, the best first."""
    sure, doubtful = _json_dates(html, {_page(url) for url in (address, *said) if url})
    yield from sure
    metas: dict[str, str] = {}
    for meta in html.find_all("meta", content=True):
        for attribute in ("property", "name", "itemprop"):
            name = str(meta.get(attribute) or "").lower()
            if name in _METAS and not meta.find_parent(_ASIDE):
                metas.setdefault(name, meta["content"])
    yield from (metas[name] for name in _METAS if name in metas)
    yield from _address_dates(address or "")
    yield from doubtful
    tags = [tag for tag in html.find_all(itemprop="datePublished") if tag.name != "meta"]
    times = [tag for tag in html.find_all("time") if tag.get("itemprop") != "dateModified"]
    inside = [tag for tag in times if tag.find_parent(("article", "main"))]
    for tag in (*tags, *inside, *times):
        if not tag.find_parent(_ASIDE):
            yield str(tag.get("content") or tag.get("datetime") or tag.get_text(" "))


def _json_dates(html: Any, own: set[tuple[str, str]]) -> tuple[list[str], list[str]]:
    """Return dates of publishing out of JSON-LD: sure ones, the best first, and a doubtful one.

    Sure are those of the article of this page, of one that names no page, and of the page. Doubtful is that of an
    article which names another page and is the only one: some sites name their front page there.
    """
    ours: list[str] = []
    unnamed: list[str] = []
    others: list[str] = []
    pages: list[str] = []
    for thing in _json_things(html):
        date, kind = thing.get("datePublished"), str(thing.get("@type"))
        if not isinstance(date, str):
            continue
        if any(word in kind for word in ("Article", "Posting", "Report")):
            main = thing.get("mainEntityOfPage")
            named = (thing.get("url"), thing.get("@id"), main.get("@id") if isinstance(main, dict) else main)
            about = {_page(url) for name in named if (url := web_address(name))}
            (ours if about & own else others if about else unnamed).append(date)
        elif "WebPage" in kind:
            pages.append(date)
    return [*ours, *unnamed, *pages], others if len(others) == 1 else []


def _json_things(html: Any) -> Iterator[dict[str, Any]]:
    """Yield the things of a page's JSON-LD; what is inside lists, ``@graph`` and ``mainEntity``, too."""
    for script in html.find_all("script", type="application/ld+json"):
        try:
            found = [json.loads((script.string or "").strip().removeprefix("<!--").removesuffix("-->"))]
        except (ValueError, RecursionError):
            continue
        while found:
            thing = found.pop()
            if isinstance(thing, list):
                found += reversed(thing)
            elif isinstance(thing, dict):
                yield thing
                found += [thing[name] for name in ("mainEntity", "@graph") if name in thing]


def _page(url: str) -> tuple[str, str]:
    """Return what of an address names the page: no scheme, "www.", query or slash at the end."""
    parts = urllib.parse.urlsplit(url)
    return (parts.hostname or "").removeprefix("www."), parts.path.rstrip("/")


def _address_dates(url: str) -> Iterator[str]:
    """Yield days that stand in an address: /2015/03/12/, /2015-03-12, /2015/mar/12, 20150312."""
    for year, _, month, day, *whole in _DATED.findall(urllib.parse.urlsplit(url).path):
        month, day = (month, day) if month else whole
        number = _MONTHS.index(month.lower()) + 1 if month.lower() in _MONTHS else int(month)
        yield f"{year}-{number:02d}-{int(day):02d}"


# Values

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
_EPOCH = re.compile(r"1[0-9]{9}(?:[0-9]{3})?")
_HOURS = {"UTC": 0, "GMT": 0, "Z": 0, "WET": 0, "BST": 1, "WEST": 1, "CET": 1, "CEST": 2, "EET": 2, "EEST": 3}
_HOURS |= {"MSK": 3, "EST": -5, "CST": -6, "MST": -7, "PST": -8, "AKST": -9, "HST": -10, "JST": 9, "AEST": 10}
_HOURS |= {"AEDT": 11, "EDT": -4, "CDT": -5, "MDT": -6, "PDT": -7, "AKDT": -8}
_FIRST, _END = -2_208_988_800, 4_133_980_800  # 1900 to 2100: what is of no such year is a mistake
_SOME_DAYS = (datetime.datetime(1972, 2, 29), datetime.datetime(1976, 1, 31))


def moment(text: str) -> int | None:
    """Return the moment that a date names, in seconds since 1970; None where it names no day of a year.

    Without a time of day it is midnight, without a time zone that is known UTC; 08/05/2024 is in August. A day before
    1900 or after 2100 is none.
    """
    from dateutil import parser

    text = text.strip()
    if len(text) > 100:
        return None
    if _EPOCH.fullmatch(text):
        return int(text[:10])
    try:
        one, other = (parser.parse(text, default=day, tzinfos=_zone) for day in _SOME_DAYS)
        if one != other:  # a part of the date was taken from what stands in for it
            return None
        return in_our_time(math.floor(one.timestamp()))
    except (ValueError, OverflowError, TypeError):
        return None


def _zone(name: str | None, offset: int | None) -> datetime.timezone:
    """Return the zone of a date; dateutil would take names that this machine's zone has for this machine's."""
    if offset is None:
        offset = _HOURS.get(name or "", 0) * 3600
    return datetime.timezone(datetime.timedelta(seconds=offset))


def in_our_time(seconds: int) -> int | None:
    """Return a moment, in seconds since 1970, where it is in the years 1900 to 2100, which all can hold."""
    return seconds if _FIRST <= seconds < _END else None


def clean_text(text: str) -> str:
    """Return a text with a paragraph a line, no empty ones, and no characters that are none."""
    lines = _CONTROL.sub("", text.replace("\r", "\n")).splitlines()
    return "\n".join(filter(None, (" ".join(line.split()) for line in lines)))


def clean_line(text: str) -> str:
    """Text as ``clean_text`` gives it, in one line."""
    return " ".join(clean_text(text).split())


def web_address(url: object) -> str | None:
    """Return an address of the web as it is to be kept, None if it is none."""
    if not isinstance(url, str):
        return None
    url = _CONTROL.sub("", url).strip()
    try:
        parts = urllib.parse.urlsplit(url)
    except ValueError:
        return None
    return url if parts.scheme in ("http", "https") and parts.hostname else None
