"""A news page as a server sent it: it gives an article with valid fields, or a reason."""

import contextlib
import gzip
import zlib

from temporalwiki.builders.ckl import html_page
from temporalwiki.builders.ckl.html_page import (
    LARGEST,
    NewsPage,
    Response,
    clean_line,
    clean_text,
    decoded,
    moment,
    web_address,
)

_HTML = b"""<html lang="en"><head><title>A title</title><link rel="canonical" href="https://a.example/2020/05/01/x">
<meta property="article:published_time" content="2020-05-01T10:00:00+02:00"><meta charset="utf-8">
<script type="application/ld+json">{"@type": "NewsArticle", "datePublished": "2020-05-01", "url": "https://a.example/"}
</script></head><body><article><h1>A title</h1><time datetime="2020-05-01">May 1</time>
<p>The first paragraph of the article says enough, in a sentence or two, to be taken for text.</p>
<p>And the second one adds to it what the first one left out, so that it is more.</p></article></body></html>"""
_CHUNKED = b"%x\r\n%s\r\n0\r\n\r\n" % (len(_HTML), _HTML)
_FLIGHT = b"""<html><head><title>T</title></head><body><div id="a"></div>
<script>self.__next_f.push([1,"1:[]\\n2:T32,<p>A first paragraph, which only a script has.</p>3:"])</script>
<script>self.__next_f.push([1,"null\\n"])</script></body></html>"""
# the first byte chooses the headers of the response
SEEDS = (
    b"\x00" + _HTML,
    b"\x01" + gzip.compress(_HTML, mtime=0),
    b"\x02" + zlib.compress(_HTML),
    b"\x04" + _CHUNKED,
    b"\x10" + _HTML.decode().encode("utf-16"),
    b"\x00<p>1 &lt; 2",
    b"\x00" + _FLIGHT,
)
WORDS = (
    *b'<article> </article> <p> </script> <!-- <![CDATA[ <svg> {"@graph":[ "mainEntity": "datePublished":"'.split(),
    *b"2020-13-45 1588300000 http://[ https://a:99999/ // &#0; &#xD800; \xff\xfe \x00".split(),
    *(b"<script type='application/ld+json'>", b"<base href='", b"<meta name='date' content='", b"<time datetime='"),
    *(b"<iframe src='http://a.example/'>", b"Tue, 05 May", b"10 pm EST", b"\r\n0\r\n", b"<html lang='ja'>", b"&#1;"),
    *(b"<script>self.__next_f.push(", b'[1,"1:Tff,<p>', b"sign up for our newsletter", b"charset=gb2312"),
)
_ENCODINGS = (None, "gzip", "deflate", "br")
_read: html_page._Reader | None = None


def check(data: bytes) -> None:
    global _read
    _read = _read or html_page._Reader()
    said = data[:1] or b"\0"
    response = Response(
        url="https://a.example/x" if said[0] & 8 else None,
        charset=("latin-1", "utf-16", "x-unknown", "rot13")[said[0] >> 4 & 3] if said[0] & 64 else None,
        encoding=_ENCODINGS[said[0] & 3],
        chunked=bool(said[0] & 4),
    )
    with contextlib.suppress(html_page._UnreadablePage):
        assert len(decoded(data[1:], response)) <= LARGEST, "more than a page may have"
    found = html_page._answer(_read, data[1:], response)
    assert found, "neither page nor reason"
    if isinstance(found, NewsPage):
        _check(found)
    text = data[1:].decode("utf-8", "replace")
    day = moment(text[:120])
    assert day is None or html_page.in_our_time(day) == day
    assert (address := web_address(text)) is None or web_address(address) == address, "another address of an address"


def _check(page: NewsPage) -> None:
    for text in filter(None, (page.url, page.title, page.text, page.language)):
        text.encode()
        assert "\0" not in text
    assert page.url is None or web_address(page.url) == page.url, f"no address: {page.url!a}"
    assert page.title is None or clean_line(page.title) == page.title, f"a title that is no line: {page.title!a}"
    assert page.text is None or clean_text(page.text) == page.text, "a text that is cleaned again differs"
    assert page.published is None or html_page.in_our_time(page.published) == page.published
