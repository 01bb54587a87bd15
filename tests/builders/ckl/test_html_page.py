"""Pages say what news-please finds, dates are moments, and a page that kills the parser is dropped."""

from __future__ import annotations

import gzip
import html
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalwiki.builders.ckl import html_page
from temporalwiki.builders.ckl.html_page import Extractor, Page, Response, clean_line, clean_text, moment, web_address

PARAGRAPHS = [
    "The city council of Springfield voted on Tuesday, if 3 < 4 and 5 > 4, to build a second bridge across the river, "
    "after years of talks between the mayor and the owners of the ferries that have run there since 1911.",
    "“We have waited long enough,” said Ada O’Neil, the mayor, at a meeting with the people of the town. The bridge "
    "will cost about 40 million dollars & open in 2023, according to the engineers who planned it.",
    "The owners of the ferries said that they would not go to court. They want to show visitors the river instead, "
    "and have ordered two boats with a glass roof from a shipyard in Norway.",
]
BODY = "".join(f"<p>{html.escape(text)}</p>" for text in PARAGRAPHS)


def page(head: str = "", title: str = "Springfield votes for a second bridge") -> bytes:
    return (
        f"<!DOCTYPE html><html lang='en'><head><meta charset='utf-8'><title>{title}</title>{head}</head><body>"
        "<nav><ul><li><a href='/'>Home</a></li><li><a href='/sport'>Sport</a></li></ul></nav>"
        f"<article><h1>{title}</h1>{BODY}</article><footer>All rights reserved.</footer></body></html>"
    ).encode()


@pytest.fixture(scope="module")
def extractor() -> Iterator[Extractor]:
    with Extractor() as started:
        yield started


def read(extractor: Extractor, data: bytes, url: str | None = None, charset: str | None = None) -> Page:
    found = extractor.read(data, Response(url, charset))
    assert isinstance(found, Page)
    return found


def test_an_article(extractor: Extractor) -> None:
    head = (
        "<link rel='canonical' href='https://news.example/bridge?a=1&amp;b=2'>"
        '<script type="application/ld+json">{"@type": "NewsArticle", "datePublished": "2020-11-01T01:30:00+02:00"}'
        "</script><script>document.write('</scr' + 'ipt><p>not said</p>')</script>"
    )
    assert read(extractor, page(head)) == Page(
        url="https://news.example/bridge?a=1&b=2",
        title="Springfield votes for a second bridge",
        text="\n".join(PARAGRAPHS),
        published=1604187000,  # 2020-10-31 23:30 UTC
        language="en",
    )


@pytest.mark.parametrize(
    ("head", "url", "published"),
    [
        ("", "https://n.example/a", None),
        ("", "https://n.example/2020/11/03/a", 1604361600),
        ("<meta property='article:published_time' content='2020-11-03T12:00:00Z'>", "https://n.example/a", 1604404800),
        # Reuters'
        ("<meta name='article:published_time' content='2020-11-03T12:00:00Z'>", "https://n.example/a", 1604404800),
        # a date that news-please knows
        ("<meta name='pubdate' content='2020-11-03 07:00 EST'>", "https://n.example/a", 1604404800),
        # what was published, not what was created before, or another thing on the page
        (
            '<script type="application/ld+json">[{"@type": "ImageObject", "datePublished": "2019-01-01"}, {"@graph": '
            '[{"@type": ["NewsArticle"], "dateCreated": "2020-11-01", "datePublished": "2020-11-03T12:00:00.000Z"}]}]'
            "</script>",
            "https://n.example/2020/11/05/a",
            1604404800,
        ),
        # no day, and nothing that today could fill
        ("<meta property='article:published_time' content='November 2020'>", "https://n.example/a", None),
        ("<meta property='article:published_time' content='10:30'>", "https://n.example/a", None),
        ('<script type="application/ld+json">' + "[" * 100_000 + "</script>", "https://n.example/a", None),
        (
            '<script type="application/ld+json">{"@graph": [7], "datePublished": [1]}</script>',
            "https://n.example/a",
            None,
        ),
    ],
)
def test_when_it_was_published(extractor: Extractor, head: str, url: str, published: int | None) -> None:
    assert read(extractor, page(head), url).published == published


@pytest.mark.parametrize(
    ("link", "url"),
    [
        ("<meta property='og:url' content='http://n.example/b'>", "http://n.example/b"),
        ("<link rel='canonical' href='/b'>", None),
        ("<link rel='canonical' href='javascript:alert(1)'>", None),
        ("<link rel='canonical'><meta property='og:url' content=' https://n.example/b '>", "https://n.example/b"),
        ("", None),
    ],
)
def test_a_saved_page_tells_its_address(extractor: Extractor, link: str, url: str | None) -> None:
    assert read(extractor, page(link)).url == url


@pytest.mark.parametrize(
    ("encoding", "declared", "told"),
    [
        ("utf-8", "", None),
        ("windows-1251", "windows-1251", None),
        ("windows-1251", "", "windows-1251"),
        ("utf-8", "", "no-such-encoding"),
        ("utf-16", "", None),  # with a byte order mark
    ],
)
def test_encodings(extractor: Extractor, encoding: str, declared: str, told: str | None) -> None:
    text = (
        "Городской совет проголосовал во вторник за строительство второго моста через реку после многих лет "
        "переговоров между мэром и владельцами паромов, которые ходят здесь уже больше ста лет."
    )
    meta = f"<meta charset='{declared}'>" if declared else ""
    source = (
        f"<html lang='ru'><head>{meta}<title>Мост через реку</title></head><body><article><p>{text}</p><p>{text}</p>"
    )
    found = read(extractor, source.encode(encoding), charset=told)
    assert (found.title, found.language) == ("Мост через реку", "ru")
    assert found.text == f"{text}\n{text}"


@pytest.mark.parametrize("data", [b"", b"\0" * 100, b"no tags at all", b"\xff\xfe", b"%PDF-1.4 \x80"])
def test_what_is_no_page(extractor: Extractor, data: bytes) -> None:
    assert extractor.read(data) == "not HTML"


@pytest.mark.parametrize("data", [b"<" * 100_000, b"<b>" * 20_000, b"<a href='" + b"x" * 100_000, b"<!--" * 9_000])
def test_whatever_the_page_something_comes_back(extractor: Extractor, data: bytes) -> None:
    found = extractor.read(data)
    assert isinstance(found, str) or not found.text


def test_control_characters_are_left_out(extractor: Extractor) -> None:
    found = read(extractor, page("", "A \0bridge&#1; \t&amp; a &lt;/script&gt; 🙂"))
    assert found.title == "A bridge & a </script> 🙂"
    assert found.text == "\n".join(PARAGRAPHS)


def test_a_page_that_is_too_large_is_not_parsed(extractor: Extractor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html_page, "LARGEST", 3 << 20)
    assert extractor.read(b"<p>" * (1 << 20) + b"x") == "larger than 3 MB"


@pytest.mark.parametrize(
    ("encoding", "compress"), [("gzip", gzip.compress), ("br", partial(brotli.compress, quality=0))]
)
def test_a_bomb_is_dropped(extractor: Extractor, encoding: str, compress: Callable[[bytes], bytes]) -> None:
    page_in_parts = Response(encoding=encoding, chunked=True)
    data = compress(page())
    chunked = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (data[:100], data[100:], b""))
    found = extractor.read(chunked, page_in_parts)
    assert isinstance(found, Page)
    assert found.text == "\n".join(PARAGRAPHS)
    assert extractor.read(compress(bytes(200 << 20)), Response(encoding=encoding)) == "larger than 10 MB"


def test_a_page_that_takes_too_long_is_dropped_and_the_next_is_read() -> None:
    with Extractor(cpu_seconds=1) as extractor:
        assert extractor.read(b"<p>x</p>" * 200_000) == "takes too long to parse"
        assert read(extractor, page()).text == "\n".join(PARAGRAPHS)
        assert extractor._process is not None
        assert extractor._process.pid is not None
        os.kill(extractor._process.pid, signal.SIGSEGV)
        assert extractor.read(page()) == "crashes the parser"


def test_nothing_that_a_page_names_is_fetched(extractor: Extractor) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        site = f"http://127.0.0.1:{server.getsockname()[1]}"
        head = (
            f"<meta property='og:image' content='{site}/a.png'><link rel='icon' href='{site}/i.ico'>"
            f"<meta http-equiv='refresh' content='0; url={site}/next'><link rel='canonical' href='{site}/a'>"
        )
        assert read(extractor, page(head)).url == f"{site}/a"
        with pytest.raises(TimeoutError):
            server.accept()


def test_a_process_that_does_not_start_is_no_reason_to_drop_pages(tmp_path: Path) -> None:
    script = tmp_path / "unguarded.py"
    script.write_text(
        "from temporalwiki.builders.ckl.html_page import Extractor\n"
        "with Extractor() as extractor:\n"
        "    print(extractor.read(b'<p>'))\n"
    )
    run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert "InputError: the process that reads pages did not start" in run.stderr
    assert run.stdout == ""


# Values


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-02", 86400),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-01 00:00:00.9Z", 0),
        ("Thu, 01 Jan 1970 00:10:00 GMT", 600),
        ("Jan 2, 1970 7:00 PM EST", 172800),
        ("02/03/1970", 2851200),  # the 3rd of February
        ("19700102", 86400),
        ("1604404800", 1604404800),
        ("1604404800123", 1604404800),
        (" 1969-12-31T23:59:59Z ", -1),
        *((text, None) for text in ("", "yesterday", "1970", "May 2020", "May 5", "12:30", "2020-13-01", "None")),
        *((text, None) for text in ("9" * 400, "99999-01-01", "2020-02-30", "0000-00-00", "\0", "🙂", "1e99")),
    ],
)
def test_moments(text: str, expected: int | None) -> None:
    assert moment(text) == expected


@given(st.text(max_size=40))
def test_no_text_is_too_odd_to_be_no_moment(text: str) -> None:
    assert isinstance(moment(text), int | None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\r\n\r\n  b\tc \n\n", "a\nb c"),
        ("\0a\x07 \u00a0b\ud800", "a b"),
        ("a\u2028b\x0cc", "a\nbc"),
        ("", ""),
    ],
)
def test_texts_are_cleaned(text: str, expected: str) -> None:
    assert clean_text(text) == expected
    assert clean_line(text) == " ".join(expected.split())


@given(st.text(st.characters() | st.sampled_from("\n\r\t\0 \ud800\u2028\x85")))
def test_clean_texts_stay_as_they_are(text: str) -> None:
    cleaned = clean_text(text)
    assert clean_text(cleaned) == cleaned
    cleaned.encode()
    assert all(line and line == " ".join(line.split()) for line in cleaned.split("\n")) or not cleaned


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://a.example/b c", "https://a.example/b c"),
        (" http://a.example/\n", "http://a.example/"),
        *(
            (url, None)
            for url in ("", "a.example", "/a", "file:///etc/passwd", "http://", "http://[", "data:,a", 7, None)
        ),
    ],
)
def test_addresses(url: object, expected: str | None) -> None:
    assert web_address(url) == expected
