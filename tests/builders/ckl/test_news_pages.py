"""Every page of WARC files, saved pages, JSON records and Parquet is kept or dropped for a reason."""

import datetime
import gzip
import json
import re
from pathlib import Path
from typing import Any, Self

import brotli
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from temporalwiki.base.errors import InputError
from temporalwiki.builders.ckl import news_pages
from temporalwiki.builders.ckl.html_page import NewsPage, Response, _UnreadablePage, decoded
from temporalwiki.builders.ckl.news_pages import Extracted, extract
from temporalwiki.builders.ckl.schemas import SCHEMAS
from temporalwiki.builders.parquet import read_rows

NOON = 1604404800  # 2020-11-03T12:00:00Z


class Reader:
    """An extractor for tests: the page is the title, or "bad"."""

    read_pages: list[tuple[bytes, str | None, str | None]]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        pass

    def read(self, data: bytes, response: Response | None = None) -> NewsPage | str:
        response = response or Response()
        try:
            data = decoded(data, response)
        except _UnreadablePage as error:
            return str(error)
        self.read_pages.append((data, response.url, response.charset))
        return "cannot be parsed" if data == b"bad" else NewsPage(response.url, data.decode(), "A text.", NOON, "en")


@pytest.fixture(autouse=True)
def reader(monkeypatch: pytest.MonkeyPatch) -> type[Reader]:
    monkeypatch.setattr(Reader, "read_pages", [], raising=False)
    monkeypatch.setattr(news_pages, "Extractor", Reader)
    return Reader


def articles(extracted: Extracted) -> list[dict[str, Any]]:
    rows = list(read_rows(extracted.articles))
    assert extracted.read == len(rows) + sum(extracted.dropped.values())
    return rows


# WARC

HTML = "Content-Type: text/html\r\n"


def record(
    body: bytes = b"a page",
    url: str = "http://n.example/a",
    kind: str = "response",
    status: str = "200 OK",
    http: str = HTML,
    more: str = "",
    length: int | None = None,
) -> bytes:
    content = f"HTTP/1.1 {status}\r\n{http}\r\n".encode() + body if kind in ("response", "revisit") else body
    head = (
        f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {url}\r\nWARC-Date: 2020-11-04T00:00:00Z\r\n{more}"
        f"Content-Type: {'application/http; msgtype=response' if kind in ('response', 'revisit') else 'text/html'}\r\n"
        f"Content-Length: {len(content) if length is None else length}\r\n\r\n"
    )
    return head.encode() + content + b"\r\n\r\n"


def warc(path: Path, *records: bytes) -> Path:
    path.write_bytes(b"".join(gzip.compress(one) for one in records) if path.suffix == ".gz" else b"".join(records))
    return path


KEPT = {"url": "http://n.example/a", "title": "a page", "text": "A text.", "published": NOON, "language": "en"}


@pytest.mark.parametrize("name", ["a.warc.gz", "a.warc", "A.WARC.gz"])
def test_a_warc_file(tmp_path: Path, reader: type[Reader], name: str) -> None:
    file = warc(
        tmp_path / name,
        record(b"software: x\r\n", kind="warcinfo"),
        record(kind="request"),
        record(),
        record(kind="metadata"),
        record(b"b", "http://n.example/b", http="Content-Type: Text/HTML; a=b; CharSet=\"windows-1251\"\r\n"),
    )  # fmt: skip
    extracted = extract([file], tmp_path / "work")
    assert articles(extracted) == [KEPT, KEPT | {"url": "http://n.example/b", "title": "b"}]
    assert extracted.read == 2
    assert extracted.inputs == [file]
    assert reader.read_pages == [(b"a page", "http://n.example/a", None), (b"b", "http://n.example/b", "windows-1251")]


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        (record(status="404 Not Found"), "HTTP status not 200"),
        (record(status="301 Moved"), "HTTP status not 200"),
        (record(status=""), "no HTTP status"),
        (record(status="OK"), "no HTTP status"),
        (record(gzip.compress(b"a page")[:9], http=f"{HTML}Content-Encoding: gzip\r\n"), "cut off in transfer"),
        (record(http="Content-Type: image/png\r\n"), "not HTML"),
        (record(http="Content-Type: text/htmlx\r\n"), "not HTML"),
        (record(more="WARC-Truncated: length\r\n"), "cut off by the crawler"),
        (record(kind="revisit"), "revisit of a page, without content"),
        (record(url="dns:n.example"), "no address"),
        (record(url="ftp://n.example/a"), "no address"),
        (record(b"bad"), "cannot be parsed"),
        (record(b""), "no title"),
    ],
)
def test_what_is_dropped(tmp_path: Path, page: bytes, reason: str) -> None:
    extracted = extract([warc(tmp_path / "a.warc.gz", page, record())], tmp_path / "work")
    assert articles(extracted) == [KEPT]
    assert extracted.dropped == {reason: 1}


@pytest.mark.parametrize(
    "page",
    [
        record(gzip.compress(b"a page"), http=f"{HTML}Content-Encoding: gzip\r\n"),
        record(brotli.compress(b"a page"), http=f"{HTML}Content-Encoding: BR\r\n"),
        record(http=f"{HTML}Content-Encoding: identity\r\n"),
        record(b"6\r\na page\r\n0\r\n\r\n", http=f"{HTML}Transfer-Encoding: chunked\r\n"),
        record(http="Content-Type: application/xhtml+xml\r\n"),
        record(http=""),
        record(kind="resource"),
    ],
)
def test_forms_of_a_page(tmp_path: Path, page: bytes) -> None:
    assert articles(extract([warc(tmp_path / "a.warc", page)], tmp_path / "work")) == [KEPT]


@pytest.mark.parametrize("encoding", ["", "Content-Encoding: gzip\r\n"])
def test_a_large_page_is_read_whole(tmp_path: Path, encoding: str) -> None:
    title = b"%d " * 400_000 % tuple(range(400_000))
    body = gzip.compress(title) if encoding else title
    page = record(body, http=f"Content-Type: text/html\r\n{encoding}")
    (row,) = articles(extract([warc(tmp_path / "a.warc.gz", page)], tmp_path / "work"))
    assert row["title"] == title.decode()


def test_a_large_file_is_read_by_many_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = [record(b"%d" % i + b" page" * (i % 7), f"http://n.example/{i}") for i in range(60)]
    file = warc(tmp_path / "a.warc.gz", *pages)
    whole = articles(extract([file], tmp_path / "work"))
    monkeypatch.setattr(news_pages, "_BYTES_A_TASK", file.stat().st_size // 5)
    parts = extract([file], tmp_path / "work", jobs=1)
    assert len(parts.articles) == 5
    assert articles(parts) == whole
    assert [row["url"] for row in whole] == [f"http://n.example/{i}" for i in range(60)]


@pytest.mark.parametrize("cut", [1, 3, 10, 30, 100, 200])
def test_a_file_that_was_cut_off(tmp_path: Path, cut: int) -> None:
    first = record(b"x" * 50_000)
    for name, start in (("a.warc", len(first)), ("a.warc.gz", len(gzip.compress(first)))):
        if name == "a.warc" and cut <= 4:
            continue  # the lines after the last record
        file = warc(tmp_path / name, first, record(b" ".join(b"%d" % number for number in range(400))))
        file.write_bytes(file.read_bytes()[:-cut])
        with pytest.raises(InputError, match=rf"{name}: cut off inside the .* byte {start}\b.*fetch it") as raised:
            extract([file], tmp_path / "work")
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"<html>no archive</html>\r\n\r\n", r"a\.warc: not a WARC record near byte 0"),
        (record(length=3) + record(), r"a\.warc: .* byte \d+: the record before is not as long as it says"),
        (
            re.sub(rb"(?<=Content-Length: )\d+", lambda length: b"%d" % (int(length[0]) - 2), record()),
            r"a\.warc: the last record is not as long as it says",
        ),
        (record() + record()[:-30] + b"\r\n\r\n", r"a\.warc: cut off inside the record at byte \d+"),
        (record() + record().partition(b"HTTP")[0], r"a\.warc: cut off inside the record at byte \d+"),
        (
            re.sub(rb"Content-Length: \d+\r\n", b"", record()) + record(),
            r"a\.warc: the record at byte 0 does not say how long it is",
        ),
        (b"\r\n\r\n" + record(), r"a\.warc: the record at byte 0 does not say how long it is"),
        (gzip.compress(record()), r"a\.warc: not a WARC record near byte 0"),
    ],
)
def test_damaged_warc_files(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "a.warc").write_bytes(content)
    with pytest.raises(InputError, match=message):
        extract([tmp_path / "a.warc"], tmp_path / "work")


def test_a_damaged_member(tmp_path: Path) -> None:
    file = warc(tmp_path / "a.warc.gz", record(), record(b"b" * 500))
    data = bytearray(file.read_bytes())
    data[-8] ^= 255  # in the checksum
    file.write_bytes(data)
    with pytest.raises(InputError, match=r"a\.warc\.gz: damaged gz data in the stream that starts at byte \d+"):
        extract([file], tmp_path / "work")


# Saved pages and records


def test_a_folder(tmp_path: Path, reader: type[Reader]) -> None:
    pages = tmp_path / "pages"
    (pages / "sub").mkdir(parents=True)
    (pages / "b & ü.html").write_bytes(b"b")
    (pages / "sub" / "c.htm.gz").write_bytes(gzip.compress(b"c"))
    (pages / "empty.html").touch()
    (pages / "notes.txt").write_text("not read")
    (pages / ".hidden.html").write_text("not read")
    (pages / "d.json").write_text(json.dumps({"url": "http://n.example/d", "title": "d", "maintext": "D."}))
    warc(pages / "a.warc.gz", record())
    extracted = extract([pages], tmp_path / "work")
    assert [(row["url"], row["title"]) for row in articles(extracted)] == [
        ("file:///b%20%26%20%C3%BC.html#e9d71f5ee7c92d6d", "b"),  # SHA-1 of "b"
        ("file:///c.htm.gz#84a516841ba77a5b", "c"),
        ("http://n.example/a", "a page"),
    ]
    assert extracted.dropped == {"no title": 1, "no date": 1}
    assert extracted.ignored == ["notes.txt"]
    # each file counts once, and nothing is read again
    calls = len(reader.read_pages)
    assert extract([pages, pages / "sub" / ".." / "b & ü.html"], tmp_path / "work") == extracted
    assert len(reader.read_pages) == calls
    (pages / "b & ü.html").write_bytes(b"other")
    assert "other" in [row["title"] for row in articles(extract([pages], tmp_path / "work"))]


def test_pages_without_an_address_are_as_many_as_there_are(tmp_path: Path) -> None:
    """Files with one name in several folders, given in several ways and orders, give the same articles."""
    pages = tmp_path / "pages"
    for number, folder in enumerate(("a", "b", "b/c")):
        (pages / folder).mkdir(parents=True)
        (pages / folder / "index.html").write_text(f"page {number}")
    (pages / "b" / "notes.txt").touch()
    whole = extract([pages], tmp_path / "work")
    assert len({row["url"] for row in articles(whole)}) == 3
    assert all(row["url"].startswith("file:///index.html#") for row in articles(whole))
    orders = [["b/c", "b", "a"], ["a", "b"], ["b", "a", "b/c"], ["b/c/index.html", "", "b"]]
    for order in orders:
        again = extract([pages / name for name in order], tmp_path / "work")
        assert articles(again) == articles(whole)
        assert again.ignored == ["notes.txt"]
        assert again.key == whole.key


def test_unreadable_paths_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    (tmp_path / "empty").mkdir()
    for paths, message in (
        ([tmp_path / "none"], "none: no such file or folder"),
        ([tmp_path / "a.txt"], r"a\.txt: not a file of news \(\.warc, \.html"),
        ([tmp_path / "empty"], "empty: no files of news"),
        ([], "no path: no files of news"),
    ):
        with pytest.raises(InputError, match=message):
            extract(paths, tmp_path / "work")


RECORD = {
    "url": "https://n.example/a",
    "title": "A  title",
    "maintext": "One.\n\n Two.",
    "date_publish": "2020-11-03 12:00:00",
    "language": "en",
    "authors": ["B"],
    "image_url": None,
}
ARTICLE = {"url": "https://n.example/a", "title": "A title", "text": "One.\nTwo.", "published": NOON, "language": "en"}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, ARTICLE),
        ({"language": "pt-br"}, ARTICLE | {"language": "pt"}),
        ({"language": None}, ARTICLE | {"language": ""}),
        ({"language": "None"}, ARTICLE | {"language": ""}),
        ({"date_publish": "2020-11-03T13:00:00+01:00"}, ARTICLE),
        ({"title": "<extra_id_0>\0'; --"}, ARTICLE | {"title": "<extra_id_0>'; --"}),
        ({"date_publish": "None"}, "no date"),
        ({"date_publish": None}, "no date"),
        ({"title": "None"}, "no title"),
        ({"maintext": None}, "no text"),
        ({"url": "None"}, "no address"),
        ({"url": "../../etc/passwd"}, "no address"),
        ({"url": None, "maintext": None}, "not a record of news-please"),
        ({"title": ["A"]}, "not a record of news-please"),
    ],
)
@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.jsonl.gz"])
def test_records_of_news_please(tmp_path: Path, change: dict[str, Any], expected: Any, name: str) -> None:
    data = json.dumps(RECORD | change).encode() + b"\n"
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    extracted = extract([tmp_path / name], tmp_path / "work")
    if isinstance(expected, str):
        assert articles(extracted) == []
        assert extracted.dropped == {expected: 1}
    else:
        assert articles(extracted) == [expected]


def test_json_of_another_kind_is_dropped(tmp_path: Path) -> None:
    for number, content in enumerate(("[]", "7", "{}", '{"V1": {"title": "A"}}', '"a"', "null", "[" * 100_000)):
        (tmp_path / f"{number}.json").write_text(content)
    assert extract([tmp_path], tmp_path / "work").dropped == {"not a record of news-please": 7}


@pytest.mark.parametrize("line", [b'{"url": "a"', b"\xff", b'{"a": 1} {"b": 2}', b'"\\ud800"'])
def test_what_is_no_json_is_named_by_its_line(tmp_path: Path, line: bytes) -> None:
    (tmp_path / "a.jsonl").write_bytes(json.dumps(RECORD).encode() + b"\n\n" + line)
    with pytest.raises(InputError, match=r"a\.jsonl, line 3: not JSON") as raised:
        extract([tmp_path / "a.jsonl"], tmp_path / "work")
    assert "\n" not in str(raised.value)


def test_what_is_too_large_is_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(news_pages, "LARGEST", 3 << 20)
    large = json.dumps(RECORD | {"maintext": "a " * (2 << 20)}).encode()
    small = json.dumps(RECORD).encode()
    (tmp_path / "a.jsonl").write_bytes(large + b"\n" + small + b"\n" + large)
    (tmp_path / "a.json").write_bytes(large)
    (tmp_path / "a.html.gz").write_bytes(gzip.compress(b" " * (4 << 20)))
    extracted = extract([tmp_path], tmp_path / "work")
    assert articles(extracted) == [ARTICLE]
    assert extracted.dropped == {"larger than 3 MB": 4}


# Parquet


def test_recentnews_itself(tmp_path: Path) -> None:
    noon = datetime.datetime.fromtimestamp(NOON, datetime.UTC)
    rows = [
        {"id": "1", "url": "file:///a%20b.html#0123456789abcdef", "title": "A", "text": "One.", "published": noon},
        {"id": "2", "url": None, "title": "B", "text": "Two.", "published": noon},
        {"id": "3", "url": "http://n.example/c", "title": "C", "text": "", "published": noon},
        {"id": "4", "url": "http://n.example/d", "title": "D", "text": "Four.", "published": None},
    ]
    pq.write_table(pa.Table.from_pylist(rows, SCHEMAS["news"]), tmp_path / "a.parquet")
    extracted = extract([tmp_path / "a.parquet"], tmp_path / "work")
    kept = {name: rows[0][name] for name in ("url", "title", "text")} | {"published": NOON, "language": None}
    assert articles(extracted) == [kept]
    assert extracted.dropped == {"no address": 1, "no date": 1, "no text": 1}


def news_table(**columns: Any) -> pa.Table:
    """One article as recentnews writes it, with some columns replaced."""
    columns = {"id": ["1"], "url": ["https://n.example/a"], "title": ["b"], "text": ["c"], "published": [0]} | columns
    arrays = {name: pa.array(values, SCHEMAS["news"].field(name).type) for name, values in columns.items()}
    return pa.table(arrays, SCHEMAS["news"])


def test_parquet_of_another_kind_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    news = news_table()
    for table in (
        news.drop_columns(["published"]),
        news.set_column(4, "published", pa.array(["2020"])),
        news.set_column(3, "text", pa.array([["c"]])),
        pa.table({"a\nb": ["x"]}),
        pa.table({}),
    ):
        pq.write_table(table, file)
        with pytest.raises(InputError, match=r"a\.parquet: not written by recentnews") as raised:
            extract([file], tmp_path / "work")
        assert "\n" not in str(raised.value)
    file.write_bytes(b"PAR1 or not")
    with pytest.raises(InputError, match=r"a\.parquet: not a whole Parquet file"):
        extract([file], tmp_path / "work")


def test_moments_of_parquet(tmp_path: Path) -> None:
    """Any year, even one that Python does not know."""
    most = 2**63 - 1
    moments = [NOON * 1000 + 999, most, -most, -1000, None]
    letters = {name: ["a"] * 5 for name in ("id", "title", "text")}
    urls = [f"https://n.example/{n}" for n in range(5)]
    pq.write_table(news_table(**letters, url=urls, published=moments), tmp_path / "a.parquet")
    extracted = extract([tmp_path / "a.parquet"], tmp_path / "work")
    assert [(row["url"][-1], row["published"]) for row in articles(extracted)] == [("0", NOON), ("3", -1)]
    assert extracted.dropped == {"no date": 3}


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "file:///a/b.html#0123456789abcdef", "ftp://a.example/", "javascript:alert(1)", ""]
)
def test_addresses_of_parquet_are_of_the_web_or_our_own(tmp_path: Path, url: str) -> None:
    pq.write_table(news_table(url=[url]), tmp_path / "a.parquet")
    assert extract([tmp_path / "a.parquet"], tmp_path / "work").dropped == {"no address": 1}


def test_damaged_parquet_is_named(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    pq.write_table(news_table(id=["id" * 50_000], text=["text" * 50_000]), file, compression="gzip")
    data = bytearray(file.read_bytes())
    data[20:80] = b"\xff" * 60
    file.write_bytes(data)
    with pytest.raises(InputError, match=r"a\.parquet: not a whole Parquet file: .*; fetch it again") as raised:
        extract([file], tmp_path / "work")
    assert "\n" not in str(raised.value)
