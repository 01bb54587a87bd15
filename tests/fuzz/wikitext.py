"""Wikitext to paragraphs: only what is readable comes out, and in linear time."""

import unicodedata
import zlib

from temporalwiki.builders.wikipedia.plain_text import UnreadablePage, paragraphs
from temporalwiki.builders.wikipedia.prose_lines import FORMULA, MARKS

SEEDS = tuple(
    text.encode()
    for text in (
        "'''A''' is [[B|b]] of {{lang|fr|''c''}}.<ref>d</ref>\n\n== H ==\nText {{convert|3|km|mi|abbr=on}} on.",
        "{| class=x\n|-\n| a || b\n|}\nAfter.\n* one\n* two\n:three\n; t : d\n\n== References ==\n{{reflist}}",
        "[[File:A.jpg|thumb|A [[b]] c]] It<ref name=a/> was {{circa|1900}} ([[pipe (trick)|]]) &amp; &#x41;.",
        "<math>x</math> <nowiki>[[a]]</nowiki><!-- c --> l'''orage'' __TOC__ [http://a.b c] x<sup>2</sup>",
        "<poem>a\nb</poem> {{music|flat}} {{zh|c=漢}}",
        "{{IPA|/a/}} ({{IPAc-en|a}}; {{lang-de|b}}) {{birth date|1900|1|2}} {{val|1.5|u=kg}} {{ill|a|de|b}}",
        "{{coord|1|2|N|3|4|E}} {{USS|A|1}} {{frac|1|2}} {{nihongo|a|漢|b}} {{DEU}} {{ubl|a|b}} {{as of|2020}}",
        "-{H|zh-cn:甲; zh-tw:乙}- 甲 -{zh-hans:[[a|丙]]; zh-hant:{{lang|en|b}}}- -{R|c}- -{丁=>zh-tw:戊}-",
        "{{quote|a}} {{currency|1|USD}} {{pop density|1|2|km2}} {{su|b=1|p=2}} {{langx|de|a}} {{IPAc-en|ˈ|a}}",
    )
)
FOUND: tuple[bytes, ...] = (
    b"== R {{respell}}",  # a blank where a pronunciation was left out
    b"{{respell|>\n\n=c''}}",  # a mark, of a pronunciation over two paragraphs
    b"a \x08 b",  # the mark of a formula, in the page
)
WORDS = (
    *b"{{ }} {{{ }}} [[ ]] {| |} |- || <ref> </ref> <!-- --> <nowiki> </nowiki> <math> </math> <poem>".split(),
    *b"</poem> <table> </table> <br> <sup>2</sup> <sub>2</sub> <li> <p> '' ''' ''''' __TOC__ [[File:".split(),
    *b"[[Category: [[de: [[: |]] &amp; &nbsp; &#1; &#xD800; {{convert| {{lang| {{lang- {{nowrap| {{zh|".split(),
    *b"{{val| {{coord| {{IPA {{frac| {{currency| {{ill| {{nihongo| {{ubl| {{hlist| {{su| |1= {{formatnum:".split(),
    *b"{{USS| {{ship| {{harvtxt| {{langx| {{respell| {{chem| {{music| =on \xe2\x80\x8b \x01 \x02 \x08 ,".split(),
    *(b"\n{|", b"\n|}", b"<ref name=a/>", b"\n== See also ==\n", b"\n=== H ===\n", b"\n\n", b"\n*", b"\n#", b"\n:"),
    *(b"\n;a:b", b"\n----", b"[http://a b]", b"{{as of|", b"{{birth date|", "\u0301".encode(), b"\r"),
    *"-{ }- -{H| -{A| -{-| zh-cn: ;zh-tw: => __notoc__ ＿＿ ＃転送 甲 乙".encode().split(),
    *(b"#REDIRECT [[x]]", b" (;", b"\xef\xbc\x88"),
)
NAMESPACES = {"Datei": 6, "Kategorie": 14}
_NO_MARKS = dict.fromkeys(map(ord, MARKS))
_PUMPED = 40_000  # characters: what takes the square of its length does not end within the fuzzer's time
_ONE_IN = 16  # inputs are pumped


def check(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    language = "zh-tw" if len(data) % 2 else "en"
    said = _read(text, language)
    assert _read(text, language) == said, "read twice, another text"
    assert _read(text.translate(_NO_MARKS), language) == said, "a mark in the page changes its text"
    if isinstance(said, list):
        for paragraph in said:
            assert paragraph and unicodedata.is_normalized("NFC", paragraph), f"not NFC: {paragraph!a}"
            assert not any(mark in paragraph for mark in MARKS if mark != FORMULA), f"a mark is left in {paragraph!a}"
            for line in paragraph.split("\n"):
                assert line == " ".join(line.split()), f"white space in {paragraph!a}"
        _check_size(text, said)
    half = len(text) // 2
    if text and zlib.crc32(data) % _ONE_IN == 0:
        times = _PUMPED // len(text)
        for longer in (text * times, text[:half] * times, text[:half] * (times // 2) + text[half:] * (times // 2)):
            if isinstance(found := _read(longer, language), list):
                _check_size(longer, found)


def _read(text: str, language: str) -> list[str] | str:
    try:
        return paragraphs(text, namespaces=NAMESPACES, language=language)
    except UnreadablePage as error:
        assert error.reason in ("too_long", "nested_too_deep"), error.reason
        return error.reason


def _check_size(text: str, said: list[str]) -> None:
    """A template adds at most a few words to its arguments, and does not repeat them many times."""
    assert sum(map(len, said)) <= 12 * len(text) + 100, "far more comes out than went in"
