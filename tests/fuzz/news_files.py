"""Files of news: WARC by its framing, records, and tables; every page is an article or dropped for a reason."""

import contextlib
import gzip
import io
import json
import re
import zlib
from pathlib import Path
from typing import Any, Self
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq

from temporalwiki.base.errors import InputError
from temporalwiki.builders import streams
from temporalwiki.builders.ckl import html_page, news_pages
from temporalwiki.builders.ckl.html_page import NewsPage, Response
from temporalwiki.builders.ckl.news_pages import NewsTask, run
from temporalwiki.builders.parquet import read_rows

from fuzz.files import file, folder
from fuzz.json_text import mutate as json_mutate

_BETWEEN = b"\0"  # gzip members of a WARC file


def _record(
    kind: str, body: bytes, more: str = "", http: str = "Content-Type: text/html\r\n", length: int = 0
) -> bytes:
    if kind == "response":
        body = f"HTTP/1.1 200 OK\r\n{http}\r\n".encode() + body
    head = (
        f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: http://n.example/a\r\n{more}Content-Type: text/html\r\n"
        f"Content-Length: {len(body) + length}\r\n\r\n"
    )
    return head.encode() + body + b"\r\n\r\n"


_INFO, _PAGE = _record("warcinfo", b"software: x\r\n"), _record("response", b"A page")
_GZIPPED = _record(
    "response", gzip.compress(b"B", mtime=0), http="Content-Type: text/html\r\nContent-Encoding: gzip\r\n"
)
_CHUNKED = _record(
    "response", b"1\r\nC\r\n0\r\n\r\n", http="Content-Type: text/html\r\nTransfer-Encoding: chunked\r\n"
)
_NEWS = {"url": "https://n.example/b", "title": "T", "maintext": "A.", "date_publish": "2020-05-01", "language": "en"}
_MAY = 1588300000
_TABLE = {
    "id": ["1", "2"],
    "url": ["https://n.example/b", "x"],
    "title": ["T", None],
    "text": ["A", "B"],
    "published": [_MAY, None],
}
# the first byte is the kind of file: w and z for WARC, j for lines, t for a table in JSON and p for one in Parquet
SEEDS = (
    b"w" + _INFO + _PAGE + _GZIPPED + _CHUNKED,
    b"z" + _BETWEEN.join([_INFO, _PAGE, _GZIPPED + _CHUNKED, _record("revisit", b""), _record("request", b"GET /")]),
    b"z" + _BETWEEN.join([_PAGE[:99], _PAGE[99:], _record("resource", b"D")]),
    b"w" + _record("response", b"short", length=9),
    b"w" + _record("response", b"long", length=-2) + _PAGE,
    b"w" + _PAGE.replace(b"text/html", b"image/png") + _PAGE.replace(b"200 OK", b"404 No"),
    b"w" + _PAGE.replace(b"200", b"x"),
    b"w" + _record("conversion", b"text") + _record("response", b"E", "WARC-Truncated: length\r\n"),
    b"w" + _PAGE.replace(b"WARC/1.0", b"ARC/1.0") + b"\n" * 5,
    b"j" + b"\n".join(json.dumps(one).encode() for one in (_NEWS, _NEWS | {"url": "None", "text": "x"}, {}, [])),
    b"t" + json.dumps(_TABLE).encode(),
    b"t" + json.dumps(_TABLE | {"published": ["2020"]}).encode(),
)
FOUND: tuple[bytes, ...] = (
    b"w" + _PAGE.replace(b"Content-Length: ", b"Content-Length: " + b"9" * 20),  # more than any file has
    b"t" + json.dumps({"a\nb": ["x"]}).encode(),  # a refusal of two lines
    b"w" + _PAGE.replace(b"WARC-Target-URI: http://n.example/a\r\n", b""),  # a response without an address
    b"w" + _PAGE + _PAGE[: _PAGE.index(b"HTTP")],  # cut off where a page's headers should begin
    b"w" + _record("response", b"long", length=-2),  # the last record, which is longer than it says
    b"w" + _INFO.replace(b"Content-Length: 13\r\n", b"") + _PAGE,  # a record that takes all that follows for its own
)
WORDS = (
    *b'\x00 \x1f\x8b\x08 "date_publish": "published": "maintext": \\ud800'.split(),
    *(b"WARC/1.0\r\n", b"WARC/1.1\r\n", b"WARC-Type: ", b"response\r\n", b"resource\r\n", b"revisit\r\n"),
    *(b"\r\n\r\n", b"warcinfo\r\n", b"WARC-Target-URI: ", b"Content-Length: ", b"Content-Length: 99999999999\r\n"),
    *(b"\r\n", b"\n", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.0 301 x\r\n", b"Content-Type: text/html; charset=utf-16\r\n"),
    *(b"-1\r\n", b"0\r\n", b"Content-Encoding: br\r\n", b"Transfer-Encoding: chunked\r\n", b"WARC-Truncated: x\r\n"),
    *(b"filedesc://x 0.0.0.0 ", b"ffffffff\r\n", b"WARC-Record-ID: <urn:uuid:1>\r\n"),
    *(b"WARC-Payload-Digest: sha1:A\r\n", b"[" * 1200, b"9" * 20),
)
LONGEST = 8192


class _Reader:
    """An extractor without a parser, which the target news_page tests: the article is the page's bytes."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        pass

    def read(self, data: bytes, response: Response | None = None) -> NewsPage | str:
        sent = response or Response()
        try:
            text = html_page.decoded(data, sent)
        except html_page._UnreadablePage as error:
            return str(error)
        return NewsPage(sent.url, repr(text), repr(sent), 0, "en")


_HEAD = re.compile(rb"WARC/1\.[01]\r\n((?:[!-9;-~]+: [!-~]+(?: [!-~]+)*\r\n)+)\r\n")
_CUT = -1
_FIELD = re.compile(rb"(.+?): (.+)\r\n")
_Found = tuple[list[dict[str, Any]], dict[str, Any]]


def mutate(data: bytes, longest: int, seed: int, plain: Any) -> bytes:
    """Mutate JSON by its structure, and move the ends of a WARC file's members."""
    if data[:1] in (b"j", b"t") or not data[1:]:
        return json_mutate(data, longest, seed, plain)
    places = [found.start() for found in re.finditer(b"WARC/", data)]
    if data[:1] == b"z" and seed % 4 == 0 and places:
        at = places[seed // 4 % len(places)]
        return (data[: at - 1] + data[at:] if data[at - 1 : at] == _BETWEEN else data[:at] + _BETWEEN + data[at:])[
            :longest
        ]
    if seed % 4 == 1 and len(places) > 1:  # records are doubled, and lost
        records = [data[start:end] for start, end in zip(places, [*places[1:], None], strict=True)]
        at = seed // 4 % len(records)
        records[at : at + 1] = [records[at]] * (2 * (seed // 64 % 2))
        return (data[: places[0]] + b"".join(records))[:longest]
    return plain(data, longest)


def check(data: bytes) -> None:
    kind, data = data[:1], data[1:]
    if kind == b"z":
        _check_members([part for part in data.split(_BETWEEN) if part])
    elif kind == b"w" and data:
        path = file("news/a.warc", data)
        one = _read(NewsTask(0, "warc", (str(path),)))
        with mock.patch.object(streams, "OUT", 1 + zlib.crc32(data) % 97), mock.patch.object(streams, "READ", 64):
            assert _read(NewsTask(0, "warc", (str(path),))) == one, "in other pieces, other pages"
        pages = _slowly(data)
        if pages is not None:
            assert (one[1]["read"] if one else _CUT) == pages, "another number of pages than the file has"
    elif kind == b"j":
        _read(NewsTask(0, "records", (str(file("news/a.jsonl", data)),)))
        _read(NewsTask(0, "page", (str(file("news/a.json", data)),)))
    elif kind == b"p":
        _read(NewsTask(0, "table", (str(file("news/a.parquet", data)),)))
    elif kind == b"t" and _write_table(data, file("news/a.parquet", b"")):
        _read(NewsTask(0, "table", (str(folder() / "news/a.parquet"),)))


def _check_members(parts: list[bytes]) -> None:
    """Compare members read in ranges, at once, and without compression."""
    if not parts:
        return
    packed = [gzip.compress(part, 1, mtime=0) for part in parts]
    starts = [sum(map(len, packed[:number])) for number in range(len(packed))]
    path = file("news/a.warc.gz", b"".join(packed))
    whole = _read(NewsTask(0, "warc", (str(path),)))
    plain = _read(NewsTask(0, "warc", (str(file("news/a.warc", b"".join(parts))),)))
    assert plain == whole, "decompressed, other pages"
    if whole is not None and all(part.startswith(b"WARC/") for part in parts):
        found = [
            _read(NewsTask(0, "warc", (str(path),), start, end))
            for start, end in zip(starts, [*starts[1:], None], strict=True)
        ]
        if None not in found:
            rows = [row for one in found if one for row in one[0]]
            read = sum(one[1]["read"] for one in found if one)
            assert (rows, read) == (whole[0], whole[1]["read"]), "in ranges, other pages"


def _slowly(data: bytes) -> int | None:
    """Return the pages of a file of standard records, the last possibly cut off; None for any other file."""
    at = pages = 0
    while at < len(data):
        head = _HEAD.match(data, at)
        if head is None:
            return None
        fields = {name.lower(): value for name, value in _FIELD.findall(head[1])}
        length = fields.get(b"content-length", b"")
        if len(fields) < head[1].count(b"\n") or not re.fullmatch(rb"[0-9]{1,9}", length):
            return None  # a field is repeated or invalid
        at = head.end() + int(length)
        if at > len(data):
            return _CUT
        if data[at : at + 4] != b"\r\n\r\n":
            return None
        at += 4
        pages += fields.get(b"warc-type") in (b"response", b"resource", b"revisit")
    return pages


def _read(task: NewsTask) -> _Found | None:
    """Return the articles and the counts; None if the file is refused."""
    out = folder() / "articles-00000.parquet"
    try:
        with mock.patch.object(news_pages, "Extractor", _Reader), contextlib.redirect_stderr(io.StringIO()):
            report = run(task, folder())
    except InputError as error:
        assert task.files[0] in str(error) and "\n" not in str(error), f"not one line with the file: {error}"
        return None
    rows = list(read_rows([out]))
    assert report["read"] == report["kept"] + sum(report["dropped"].values()), "a page is lost"
    assert len(rows) == report["kept"]
    assert all(row["url"] and row["title"] and row["text"] and row["published"] is not None for row in rows)
    return rows, report


def _write_table(data: bytes, path: Path) -> bool:
    """Write a table from JSON columns of any types, ``published`` in seconds; return False if there is none."""
    try:
        columns = json.loads(data)
        table = pa.table({str(name): pa.array(values) for name, values in columns.items()})
        at = table.schema.get_field_index("published")
        if at >= 0 and pa.types.is_integer(table.schema.field(at).type):
            table = table.set_column(at, "published", table.column(at).cast(pa.timestamp("s", "UTC")))
        pq.write_table(table, path)
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError, pa.ArrowException):
        return False
    return True
