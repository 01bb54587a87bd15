"""Articles from pages, dates, and pages that kill the parser."""

import gzip
import html
import importlib.util
import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalwiki.base.errors import InputError
from temporalwiki.builders.ckl import html_page
from temporalwiki.builders.ckl.html_page import (
    Extractor,
    NewsPage,
    Response,
    clean_line,
    clean_text,
    decoded,
    moment,
    web_address,
    without_notes,
)

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


def read(extractor: Extractor, data: bytes, url: str | None = None, charset: str | None = None) -> NewsPage:
    found = extractor.read(data, Response(url, charset))
    assert isinstance(found, NewsPage)
    return found


def test_an_article(extractor: Extractor) -> None:
    head = (
        "<link rel='canonical' href='https://news.example/bridge?a=1&amp;b=2'>"
        '<script type="application/ld+json">{"@type": "NewsArticle", "datePublished": "2020-11-01T01:30:00+02:00"}'
        "</script><script>document.write('</scr' + 'ipt><p>not said</p>')</script>"
    )
    assert read(extractor, page(head)) == NewsPage(
        url="https://news.example/bridge?a=1&b=2",
        title="Springfield votes for a second bridge",
        text="\n".join(PARAGRAPHS),
        published=1604187000,  # 2020-10-31 23:30 UTC
        language="en",
    )


NOON, DAY = 1604404800, 1604361600  # 2020-11-03T12:00:00Z, and the day
HERE, LATER = "https://n.example/a", "https://n.example/2020/11/05/a"


def ld(*objects: object) -> str:
    """Return JSON-LD in a script."""
    return f'<script type="application/ld+json">{json.dumps(objects)}</script>'


def news(published: str = "2020-11-03T12:00:00Z", **more: object) -> dict[str, object]:
    return {"@type": "NewsArticle", "datePublished": published, **more}


def meta(name: str, content: str = "2020-11-03T12:00:00Z", kind: str = "name") -> str:
    return f"<meta {kind}='{name}' content='{content}'>"


PICTURE = meta("og:image", "https://n.example/wp/2015/03/12/a.jpg", "property")
OTHER_DATES = {"dateCreated": "2020-11-01", "@type": ["NewsArticle"]}
REPORT = {"@type": "WebPage", "datePublished": "2019-01-01", "mainEntity": news() | {"@type": "ReportageNewsArticle"}}
PUBLISHED = [
    ("", HERE, None),
    ("", "https://n.example/2020/11/03/a", DAY),
    (meta("article:published_time", kind="property"), HERE, NOON),
    (meta("article:published_time"), HERE, NOON),  # Reuters'
    (meta("pubdate", "2020-11-03 07:00 EST"), HERE, NOON),
    # the date of publishing, not of creation or of another object on the page
    (ld({"@type": "ImageObject", "datePublished": "2019-01-01"}, {"@graph": [news() | OTHER_DATES]}), LATER, NOON),
    # of several articles, the first
    (ld(news() | {"@type": "BlogPosting"}, news("2011-05-01")), LATER, NOON),
    (ld(REPORT).replace("[{", "<!-- [{").replace("}]", "}] -->"), HERE, NOON),
    # dates of articles before those that only say "date", in any order
    (meta("date", "2019-01-01") + meta("DC.date.issued", "2020-01-01") + meta("article:published_time"), LATER, NOON),
    (meta("Date"), LATER, NOON),
    # not the dates of pictures and clocks
    (PICTURE, "https://n.example/2020/11/03/a", DAY),
    (PICTURE, HERE, None),
    (meta("date", "2019-01-01", "http-equiv"), HERE, None),
    # addresses
    *(("", f"https://n.example/{path}", DAY) for path in ("world/2020/nov/03/a", "a-2020-11-03.html", "20201103/a")),
    *(
        ("", f"https://n.example/{path}", None)
        for path in ("2020/11/a", "2020/13/01/a", "a120201103", "?d=2020-11-03")
    ),
    ("", "https://2020-11-03.example/a", None),
    # incomplete dates, which today's date must not complete
    (meta("article:published_time", "November 2020"), HERE, None),
    (meta("article:published_time", "10:30"), HERE, None),
    ('<script type="application/ld+json">' + "[" * 100_000 + "</script>", HERE, None),
    (ld({"@graph": [7], "datePublished": [1]}), HERE, None),
]


@pytest.mark.parametrize(("head", "url", "published"), PUBLISHED)
def test_when_it_was_published(extractor: Extractor, head: str, url: str, published: int | None) -> None:
    assert read(extractor, page(head), url).published == published


THEN, ELSE = "<time datetime='2020-11-03'></time>", "<time datetime='2012-01-01'></time>"


@pytest.mark.parametrize(
    ("body", "published"),
    [
        ("<article><time datetime='2020-11-03T12:00Z'>today</time>BODY</article>", NOON),
        ("<article><time>November 3, 2020</time>BODY</article>", DAY),
        # not the dates of another article, of today, or of a change
        (f"<aside>{ELSE}</aside><article>BODY{THEN}</article>", DAY),
        (f"{ELSE}<main>BODY{THEN}</main>", DAY),
        ("<div class='current-date'>Nov 22, 2026</div><article>BODY</article>", None),
        ("<article><time itemprop='dateModified' datetime='2021-01-01'></time>BODY</article>", None),
        (f"<article>{ELSE}<span itemprop='datePublished' content='2020-11-03'></span>BODY</article>", DAY),
        (f"<article>BODY</article><nav>{ELSE}</nav>", None),
    ],
)
def test_dates_that_a_page_shows(extractor: Extractor, body: str, published: int | None) -> None:
    source = f"<html lang='en'><head><title>A bridge</title></head><body>{body.replace('BODY', BODY)}</body></html>"
    assert read(extractor, source.encode(), "https://n.example/a").published == published


@pytest.mark.parametrize(
    ("head", "headings", "title"),
    [
        ("<title>A bridge for Springfield | Post</title>", ["A bridge for Springfield"], "A bridge for Springfield"),
        # a site's name is not the title
        ("<title>A bridge for Springfield | The Post</title>", ["The Daily Courier", "A bridge for Springfield"],
         "A bridge for Springfield"),
        ("<title>A bridge | The Post</title><meta property='og:title' content='A bridge for Springfield'>",
         ["Courier"], "A bridge for Springfield"),
        ("<title>A bridge</title>", [], "A bridge"),
        ("", ["", "A &amp; <i>bridge</i>"], "A & bridge"),
        ("", [], None),
    ],
)  # fmt: skip
def test_titles(extractor: Extractor, head: str, headings: list[str], title: str | None) -> None:
    shown = "".join(f"<h1>{heading}</h1>" for heading in headings)
    found = read(extractor, f"<html><head>{head}</head><body>{shown}<article>{BODY}</article></body></html>".encode())
    assert found.title == title


def test_the_title_and_notes_of_the_site_are_not_in_the_text(extractor: Extractor) -> None:
    notes = "<p>Sign up for our newsletter and get the news in your inbox.</p><p>Already a subscriber? Log in</p>"
    source = page().replace(b"</p>", b"</p>" + notes.encode(), 1)
    assert read(extractor, source).text == "\n".join(PARAGRAPHS)


def test_a_page_is_read_alike_whatever_was_read_before(extractor: Extractor) -> None:
    """So a build has the same bytes with any number of workers."""
    first = read(extractor, page())
    assert read(extractor, page("", "Another bridge").replace(b"Springfield", b"Oslo")).text != first.text
    assert read(extractor, page()) == first


def flight(*pieces: str) -> bytes:
    """Return a page of Next.js whose stream comes in these pieces."""
    scripts = "".join(f"<script>self.__next_f.push({json.dumps([1, piece])})</script>" for piece in pieces)
    return f"<html><head><title>A bridge</title></head><body><div id='root'></div>{scripts}</body></html>".encode()


MARKUP = BODY + "<p>–</p>"  # more bytes than characters
STREAM = f'1:["$","p",null]\n2:T{len(MARKUP.encode()):x},{MARKUP}3:T5,<b>xy4:["$","div"]\n'


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (flight(STREAM), "\n".join(PARAGRAPHS)),
        (flight(STREAM[:40], STREAM[40:300], STREAM[300:]), "\n".join(PARAGRAPHS)),
        (flight(STREAM.replace("2:T", "2:")), None),
        (flight("2:Tfffffff,<b>no paragraph"), None),
        (b"<html><body><script>self.__next_f.push([1,</script><script>self.__next_f.push(" + b"[" * 99_999, None),
    ],
)
def test_the_text_that_a_page_keeps_in_its_scripts(extractor: Extractor, source: bytes, text: str | None) -> None:
    found = read(extractor, source).text
    assert found is None if text is None else found is not None and found.removesuffix("\n–") == text


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
        ("utf-8", "windows-1251", "windows-1251"),
        ("windows-1251", "utf-8", None),
        ("koi8-r", "zip", "a\0b"),
        ("utf-16", "", None),  # with a byte order mark
        ("iso-2022-jp", "iso-2022-jp", None),
    ],
)
def test_encodings(extractor: Extractor, encoding: str, declared: str, told: str | None) -> None:
    texts = (
        "Городской совет проголосовал во вторник за строительство второго моста через реку после многих лет "
        "переговоров между мэром и владельцами паромов, которые ходят здесь уже больше ста лет.",
        "Владельцы паромов сказали, что не пойдут в суд, и заказали два новых корабля для туристов в Норвегии.",
    )
    meta = f"<meta charset='{declared}'>" if declared else ""
    source = (
        f"<html lang='ru'><head>{meta}<title>Мост через реку</title></head><body><article>"
        f"<p>{texts[0]}</p><p>{texts[1]}</p>"
    )
    found = read(extractor, source.encode(encoding), charset=told)
    assert (found.title, found.language) == ("Мост через реку", "ru")
    assert found.text == "\n".join(texts)


@pytest.mark.parametrize(
    ("data", "charset", "title"),
    [
        ("Citroën – “100 €”".encode("cp1252"), "iso-8859-1", "Citroën – “100 €”"),  # as browsers read it
        ("镕基".encode("gb18030"), "gb2312", "镕基"),
        ("①".encode("cp932"), "shift_jis", "①"),
        ("é".encode() * 50 + b"\xe9", None, "é" * 50 + "\ufffd"),  # one damaged character
    ],
)
def test_encodings_that_are_larger_or_damaged(
    extractor: Extractor, data: bytes, charset: str | None, title: str
) -> None:
    source = b"<html><head><title>%s</title></head><body></body></html>" % data
    assert read(extractor, source, None, charset).title == title


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


@pytest.mark.fault("bomb", "a news page compressed as a bomb", "dropped by reason")
@pytest.mark.parametrize(
    ("encoding", "compress"), [("gzip", gzip.compress), ("br", partial(brotli.compress, quality=0))]
)
def test_a_bomb_is_dropped(extractor: Extractor, encoding: str, compress: Callable[[bytes], bytes]) -> None:
    page_in_parts = Response(encoding=encoding, chunked=True)
    data = compress(page())
    chunked = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (data[:100], data[100:], b""))
    found = extractor.read(chunked, page_in_parts)
    assert isinstance(found, NewsPage)
    assert found.text == "\n".join(PARAGRAPHS)
    assert extractor.read(compress(bytes(40 << 20)), Response(encoding=encoding)) == "larger than 10 MB"


@pytest.mark.fault(
    "large page",
    "a news page that takes too long",
    "its worker is killed, the page dropped by reason, the next one read",
)
@pytest.mark.slow
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


CALLS: list[Callable[[socket.socket, tuple[str, int]], object]] = [
    lambda one, where: one.connect(where),
    lambda one, where: one.connect_ex(where),
    lambda _, where: socket.create_connection(where),
    lambda one, where: one.sendto(b"x", where),
    lambda one, where: one.sendmsg([b"x"], [], 0, where),
    lambda *_: socket.getaddrinfo("localhost", 80),
    lambda *_: socket.gethostbyname("localhost"),
    lambda *_: socket.gethostbyname_ex("localhost"),
    lambda *_: socket.gethostbyaddr("127.0.0.1"),
    lambda _, where: socket.getnameinfo(where, 0),
]


class Calls:
    """A parser for tests: it makes one of the calls, by the page's number, to the port in its address."""

    def __call__(self, data: bytes, url: str | None, charset: str | None) -> NewsPage:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            try:
                CALLS[int(data)](one, ("127.0.0.1", int(url or 0)))
            except OSError as error:
                return NewsPage(None, str(error), None, None, None)
        return NewsPage(None, "was made", None, None, None)


def test_the_process_opens_no_connection_and_asks_for_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html_page, "_Reader", Calls)
    fork = multiprocessing.get_context("fork")  # inherits the replaced class
    monkeypatch.setattr(multiprocessing, "get_context", lambda _: fork)
    with Extractor() as extractor, socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        said = [extractor.read(b"%d" % call, Response(url=port)) for call in range(len(CALLS))]
        assert said == [NewsPage(None, "pages are read offline", None, None, None)] * len(CALLS)


def test_a_text_without_letters_has_no_language() -> None:
    reader = html_page._Reader()
    assert [reader._language(text) for text in ("12, 345.", "", "Madrid is not Rome")] == ["", "", "en"]


@pytest.mark.slow
def test_the_libraries_that_read_pages_stay_out_of_this_process(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_bytes(page())
    code = f"""
import sys
from pathlib import Path
from temporalwiki.builders.ckl.recentnews import NewsOptions, find_news
if __name__ == "__main__":
    find_news([Path({str(tmp_path)!r})], NewsOptions(), Path({str(tmp_path / "work")!r}))
    print([name for name in ("trafilatura", "justext", "py3langid") if name in sys.modules])
"""
    (tmp_path / "reads.py").write_text(code, "utf-8")
    said = subprocess.run([sys.executable, tmp_path / "reads.py"], capture_output=True, text=True, check=True).stdout
    assert said.split("\n")[-2] == "[]"


CUT = "cut off in transfer"
HTML = page()
DEFLATE = zlib.compressobj(wbits=-15)
BARE = DEFLATE.compress(HTML) + DEFLATE.flush()


@pytest.mark.parametrize(
    ("data", "response", "becomes"),
    [
        (gzip.compress(HTML), Response(encoding="gzip"), HTML),
        (gzip.compress(HTML[:50]) + gzip.compress(HTML[50:]), Response(encoding="gzip"), HTML),
        (gzip.compress(HTML) + b"\0\0", Response(encoding="gzip"), HTML),
        (gzip.compress(HTML)[:300], Response(encoding="gzip"), CUT),
        (gzip.compress(HTML)[:-1], Response(encoding="x-gzip"), CUT),
        (gzip.compress(HTML)[:5], Response(encoding="gzip"), CUT),
        (HTML, Response(encoding="gzip"), HTML),
        (b"", Response(encoding="gzip"), b""),
        (zlib.compress(HTML), Response(encoding="deflate"), HTML),
        (zlib.compress(HTML)[:-9], Response(encoding="deflate"), CUT),
        (BARE, Response(encoding="deflate"), HTML),
        (BARE[:-9], Response(encoding="deflate"), CUT),
        (brotli.compress(HTML), Response(encoding="br"), HTML),
        (brotli.compress(HTML)[:-9], Response(encoding="br"), CUT),
        (HTML, Response(encoding="br"), HTML),
        (b"4;a=b\r\n<p>a\r\nA\r\nbcdefghijk\r\n0\r\n\r\n", Response(chunked=True), b"<p>abcdefghijk"),
        (b"4\n<p>a\n0\n", Response(chunked=True), b"<p>a"),
        (b"4\r\n<p>a\r\nA\r\nbcdef", Response(chunked=True), CUT),
        (b"4\r\n<p>a\r\n", Response(chunked=True), CUT),
        (b"4\r\n<p>a", Response(chunked=True), CUT),
        (b"4\r\n<p>a\r\n-5\r\nbcdefghijklmnop", Response(chunked=True), "damaged in transfer"),
        (b"4\r\n<p>a\r\nFFFFFFFF\r\nzz", Response(chunked=True), CUT),
        (HTML, Response(chunked=True), HTML),
    ],
)
def test_what_http_did_to_a_page_is_undone(data: bytes, response: Response, becomes: bytes | str) -> None:
    if isinstance(becomes, bytes):
        assert decoded(data, response) == becomes
    else:
        with pytest.raises(html_page._UnreadablePage, match=becomes):
            decoded(data, response)


@pytest.mark.parametrize("module", ["trafilatura", "lxml", "py3langid", "dateutil", "warcio", "brotli", "rensa"])
def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    there = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == module else there(name))
    with pytest.raises(
        InputError, match=rf"{module[:4]}.* which is not installed: pip install 'temporalwiki\[news\]'"
    ):
        html_page.check_installed()
    with pytest.raises(InputError, match=module), Extractor():
        pass


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
        *((text, None) for text in ("0001-01-01T00:00:00+05:00", "9999-12-31T23:59:59-05:00", "0000-01-01")),
        *((text, None) for text in ("1899-12-31T23:59:59Z", "2101-01-01", "1900-01-01T00:00:00+00:01")),
        ("1900-01-01", -2208988800),
        ("2100-12-31T23:59:59Z", 4133980799),
        ("1970-01-01 00:00 XYZ", 0),  # an unknown zone counts as UTC on any machine
        ("1970-01-01 10:00 AEST", 0),
        ("1970-01-01 00:00 GMT+99", None),
        *((text, None) for text in ("9" * 400, "99999-01-01", "2020-02-30", "0000-00-00", "\0", "🙂", "1e99")),
    ],
)
def test_moments(text: str, expected: int | None) -> None:
    assert moment(text) == expected


@pytest.mark.parametrize("zone", ["Asia/Kolkata", "Australia/Sydney", "America/New_York", "UTC"])
def test_moments_are_the_same_whatever_the_zone_of_the_machine(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        for name, seconds in {"IST": 0, "AEDT": -39600, "EST": 18000, "EDT": 14400, "": 0, "Z": 0}.items():
            assert moment(f"1970-01-01 00:00:00 {name}") == seconds
        assert moment("Jan 2, 1970 7:00 PM") == 154800
    finally:
        monkeypatch.undo()
        time.tzset()


@given(st.text(max_size=40))
def test_no_text_is_too_odd_to_be_no_moment(text: str) -> None:
    assert isinstance(moment(text), int | None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a\r\n\r\n  b\tc \n\n", "a\nb c"), ("\0a\x07 \u00a0b\ud800", "a b"), ("a\u2028b\x0cc", "a\nbc"), ("", "")],
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
        *((url, None) for url in ("", "a.example", "/a", "file:///etc/passwd", "http://", "http://[", 7, None)),
    ],
)
def test_addresses(url: object, expected: str | None) -> None:
    assert web_address(url) == expected


# Notes of a site are removed from an article, and its own sentences about subscribers are not

NOTES = [
    "Sign up for our newsletter",
    "Sign up now",
    "- Sign up here for the Morning Briefing, our daily email.",
    "For the latest stories, sign up to the Springfield Post's newsletters.",
    "Get the day's top headlines in your inbox every morning.",
    "Click here to subscribe to the Tech Newsletter",
    "SUBSCRIBE NOW!",
    "Subscribe to continue reading.",
    "Log in or create an account to continue",
    "Already a subscriber? Log in",
    "The rest of this article is available only to subscribers.",
    "You have two free articles remaining this month.",
    "Unlock this story with a free account",
    "Der Newsletter bringt Ihnen das Wichtigste vom Tag. Hier geht es zur Anmeldung!",
    "Weiterlesen mit einem Abo",
    "Dieser Artikel ist nur für Abonnenten",
    "Il vous reste 57 % de cet article à lire. La suite est réservée aux abonnés.",
    "Contenido sólo para suscriptores",
    "Contenuto riservato agli abbonati",
    "Conteúdo exclusivo para assinantes",
    "Dit artikel is alleen voor abonnees",
    "Artykuł tylko dla prenumeratorów",
]
SENTENCES = [
    "The service lost 200,000 subscribers in the first quarter.",
    "“I signed up for the army in 1941,” said Mr Lee.",
    "She signed up for a course in Latin.",
    "Subscribers to the newspaper can vote until Sunday.",
    "The mayor sent the newsletter to every household.",
    "His inbox was full of letters from readers.",
    "Readers who want to continue the debate met in the library.",
    "The company said that it would unlock a further 20 million dollars.",
    "Log cabins are cheap in Norway, and many people continue to buy them.",
    "This law is for all members of the union.",
    "Der Verlag hat 40.000 Abonnenten verloren.",
    "Le journal a gagné 3 000 abonnés en un an.",
    "El diario tiene 300.000 suscriptores.",
    "O jornal tem 300 mil assinantes.",
]


def test_notes_are_removed_and_the_sentences_of_the_article_and_long_paragraphs_stay() -> None:
    article = [*SENTENCES, f"Subscribe to continue reading. {'A word. ' * 50}"]
    assert without_notes([*article, *NOTES]) == article
