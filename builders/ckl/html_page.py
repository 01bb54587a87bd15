"""What a saved page of a news site says: news-please finds title and text, in a process that may be killed.

Pages come from anywhere. One that makes the parser run for ever, eat the memory or crash takes down a process that
does nothing else, and is dropped by reason; nothing that a page names is fetched.
"""

from __future__ import annotations

import contextlib
import datetime
import importlib.util
import io
import json
import logging
import multiprocessing
import re
import resource
import signal
import socket
import time
import urllib.parse
import warnings
from collections.abc import Iterator
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self

import msgspec

from temporalwiki.builders.errors import InputError

VERSION = 1  # of what is read out of a page; a new one makes kept pages stale
LARGEST = 10 << 20  # bytes of a page or record; articles are far smaller
CPU_SECONDS = 30  # for one page; of the processor and not of the clock, so that a busy machine drops no more
MEMORY = 4 << 30  # bytes for one page, beyond what the libraries take
LIBRARIES = (
    *("news-please", "newspaper4k", "readability-lxml", "langdetect", "lxml", "beautifulsoup4", "python-dateutil"),
    *("jieba", "tinysegmenter", "pythainlp", "indic-nlp-library"),  # newspaper's, for languages without spaces
)

_DETECTED = 5_000  # characters of a text that tell its language


class Page(msgspec.Struct):
    """An article as the page has it; None for what it does not have."""

    url: str | None
    title: str | None
    text: str | None  # a paragraph a line
    published: int | None  # seconds since 1970, UTC
    language: str | None  # of the text, ISO 639-1


class Response(msgspec.Struct):
    """What is known of a page beside its bytes, where a server sent it."""

    url: str | None = None
    charset: str | None = None
    encoding: str | None = None  # of the content: "gzip", "br"
    chunked: bool = False


class _Reply(msgspec.Struct):
    page: Page | None = None
    reason: str | None = None


def check_installed() -> None:
    """Raise InputError where news-please is not installed."""
    for module, package in (("newsplease", "news-please"), ("warcio", "warcio")):
        if importlib.util.find_spec(module) is None:
            raise InputError(f"{package} is not installed, which reads news pages; pip install 'temporalwiki[news]'")


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
        """Return what a page says, or the reason why it says nothing."""
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
    except ImportError:  # newspaper's words of Chinese, Japanese, Thai ...
        return _Reply(reason="needs a word splitter for its language that is not installed")
    except Exception:  # noqa: BLE001  # whatever five libraries raise on what is no page
        return _Reply(reason="cannot be parsed")


def _go_offline() -> None:
    """Let no library open a connection: some would load pictures, or lists of domain names."""

    def refuse(*_args: Any, **_options: Any) -> NoReturn:
        raise OSError("pages are read offline")

    socket.socket.connect = refuse  # type: ignore[method-assign]
    socket.socket.connect_ex = refuse  # type: ignore[method-assign]
    socket.getaddrinfo = refuse


def _limit_memory() -> None:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except OSError:  # not Linux
        return
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, resource.RLIM_INFINITY))


class _Unreadable(Exception):
    """What was given holds no page; the message is the reason."""


def decoded(data: bytes, response: Response) -> bytes:
    """Undo what HTTP did to a page; servers say of some pages what is not so, which come back as they are."""
    if not response.chunked and response.encoding is None:
        return data
    from warcio.bufferedreaders import BufferedReader, ChunkedDataReader

    if response.chunked:
        data = ChunkedDataReader(io.BytesIO(data)).read()
    if response.encoding in ("gzip", "x-gzip", "deflate"):
        data = BufferedReader(io.BytesIO(data), decomp_type=response.encoding.removeprefix("x-")).read(LARGEST + 1)
    elif response.encoding == "br":
        data = _unbrotli(data)
    if len(data) > LARGEST:
        raise _Unreadable(f"larger than {LARGEST >> 20} MB")
    return data


def _unbrotli(data: bytes) -> bytes:
    import brotli

    try:
        return bytes(brotli.Decompressor().process(data, output_buffer_limit=LARGEST + 1)) or data
    except brotli.error:
        return data


class _Reader:
    """news-please with its date extractor replaced, and what it leaves open: encoding, address and language."""

    def __init__(self) -> None:
        import langdetect
        from bs4 import BeautifulSoup, UnicodeDammit
        from dotmap import DotMap
        from newsplease.crawler.items import NewscrawlerItem
        from newsplease.pipeline.extractor.article_extractor import Extractor as ArticleExtractor
        from newsplease.pipeline.extractor.extractors.date_extractor import DateExtractor

        class Dates(DateExtractor):  # type: ignore[misc]
            """news-please's, which loses the time zone, takes today's for what is missing, and prefers dateCreated."""

            def parse_date_str(self, text: str | None) -> str | None:
                found = moment(text) if text else None
                return None if found is None else str(found)

            def _extract_from_json(self, html: BeautifulSoup) -> str | None:
                dates = (*_json_dates(html), *_meta_dates(html))
                return next(filter(None, map(self.parse_date_str, dates)), None)

        langdetect.DetectorFactory.seed = 0
        self._detect, self._no_language = langdetect.detect, langdetect.LangDetectException
        self._decode, self._soup, self._map, self._item = UnicodeDammit, BeautifulSoup, DotMap, NewscrawlerItem
        self._extractor = ArticleExtractor(
            [("newspaper_extractor_no_images", "NewspaperExtractorNoImages"), "readability_extractor"]
        )
        # its cleaner takes tags out of what is text already, and with them "a < b and c > d"
        self._extractor.cleaner.delete_tags = str
        self._dates = Dates()

    def __call__(self, data: bytes, url: str | None, charset: str | None) -> Page:
        markup = self._decode(data, [charset] if charset else [], is_html=True).unicode_markup
        if not markup or "<" not in markup:
            raise _Unreadable("not HTML")
        markup = markup.replace("\0", "")
        address = url or self._own_address(markup)
        item = self._item()
        item["spider_response"], item["url"], item["html_title"] = self._map(body=markup), address or "", b""
        found = self._extractor.extract(item)
        date = self._dates._publish_date(item)
        text = clean_text(found["article_text"] or "")
        return Page(
            url=address,
            title=clean_line(found["article_title"] or "") or None,
            text=text or None,
            published=None if date is None else int(date),
            language=self._language(text),
        )

    def _own_address(self, markup: str) -> str | None:
        page = self._soup(markup, "lxml")
        links = [(link, "href") for link in page.find_all("link", rel="canonical")]
        links += [(meta, "content") for meta in page.find_all("meta", property="og:url")]
        return next(filter(None, (web_address(tag.get(name)) for tag, name in links)), None)

    def _language(self, text: str) -> str | None:
        try:
            found = str(self._detect(text[:_DETECTED]))
        except self._no_language:  # no letters
            return None
        return found.split("-")[0]


def _json_dates(html: Any) -> Iterator[str]:
    """Publication dates in a page's JSON-LD; those of articles first."""
    others = []
    for script in html.find_all("script", type="application/ld+json"):
        try:
            data = json.loads(script.string or "")
        except (ValueError, RecursionError):
            continue
        listed = data if isinstance(data, list) else [data]
        things = [thing for thing in listed if isinstance(thing, dict)]
        for thing in list(things):
            graph = thing.get("@graph")
            things += [inner for inner in graph if isinstance(inner, dict)] if isinstance(graph, list) else []
        for thing in things:
            date = thing.get("datePublished")
            if isinstance(date, str):
                if any(word in str(thing.get("@type")) for word in ("Article", "Posting", "Report")):
                    yield date
                else:
                    others.append(date)
    yield from others


def _meta_dates(html: Any) -> Iterator[str]:
    names = ("article:published_time", "og:article:published_time", "datePublished")
    found: dict[str, str] = {}
    for meta in html.find_all("meta", content=True):
        for attribute in ("property", "name", "itemprop"):
            if meta.get(attribute) in names:
                found.setdefault(meta[attribute], meta["content"])
    yield from (found[name] for name in names if name in found)


# Values

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
_EPOCH = re.compile(r"1[0-9]{9}(?:[0-9]{3})?")
_HOURS = {"UTC": 0, "GMT": 0, "BST": 1, "CET": 1, "CEST": 2, "EST": -5, "CST": -6, "MST": -7, "PST": -8}
_HOURS |= {"EDT": -4, "CDT": -5, "MDT": -6, "PDT": -7}
_ZONES = {name: hours * 3600 for name, hours in _HOURS.items()}
_SOME_DAYS = (datetime.datetime(1972, 2, 29), datetime.datetime(1976, 1, 31))


def moment(text: str) -> int | None:
    """Return the moment that a date names, in seconds since 1970; None where it names no day of a year.

    Without a time of day it is midnight, without a time zone UTC; 08/05/2024 is in August.
    """
    from dateutil import parser

    text = text.strip()
    if len(text) > 100:
        return None
    if _EPOCH.fullmatch(text):
        return int(text[:10])
    try:
        one, other = (parser.parse(text, default=day, tzinfos=_ZONES) for day in _SOME_DAYS)
        if one != other:  # a part of the date was taken from what stands in for it
            return None
        return int((one if one.tzinfo else one.replace(tzinfo=datetime.UTC)).timestamp())
    except (ValueError, OverflowError, TypeError):
        return None


def clean_text(text: str) -> str:
    """Return a text with a paragraph a line, no empty ones, and no characters that are none."""
    lines = _CONTROL.sub("", text.replace("\r", "\n")).splitlines()
    return "\n".join(filter(None, (" ".join(line.split()) for line in lines)))


def clean_line(text: str) -> str:
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
