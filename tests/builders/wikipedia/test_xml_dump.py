"""DumpCounts pages out of MediaWiki XML, whole and in ranges."""

import bz2
import datetime
import re
import xml.etree.ElementTree as ET
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temporalwiki.base.errors import InputError
from temporalwiki.builders.wikipedia.xml_dump import DumpCounts, DumpPage, read_header, read_pages

from tiny_dumps import FOOTER, header, multistream, page, revision, write_bz2


def read(path: Path, **options: object) -> tuple[list[DumpPage], DumpCounts]:
    counts = DumpCounts()
    return list(read_pages(path, read_header(path), counts, **options)), counts  # type: ignore[arg-type]


def test_a_page_is_read_with_all_its_fields(tmp_path: Path) -> None:
    text = "A & B < C\n\n''x''"
    path = multistream(tmp_path / "d.xml.bz2", [page(12, "Anarchism", text, revision_id=7, parent=5)])
    [found], counts = read(path)
    assert (found.page_id, found.namespace, found.title, found.redirect) == (12, 0, "Anarchism", False)
    assert (found.revision_id, found.parent_id, found.text) == (7, 5, text)
    assert found.timestamp.isoformat() == "2021-10-01T00:00:00+00:00"
    assert counts.complete


@pytest.mark.parametrize("version", ["0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "0.10", "0.11"])
def test_every_schema_gives_namespace_and_redirect(tmp_path: Path, version: str) -> None:
    old = float(version.split(".")[1]) < 6  # no <ns> before 0.6, no <redirect/> before 0.4
    before_redirect = version == "0.3"
    pages = [
        page(1, "An article", "text", ns=None if old else 0),
        page(2, "Talk:An article", "text", ns=None if old else 1),
        page(3, "Star: a film", "text", ns=None if old else 0),
        page(4, "Old", "#REDIRECT [[New]]", ns=None if old else 0, redirect=not before_redirect),
    ]
    found, _ = read(multistream(tmp_path / "d.xml.bz2", pages, version=version))
    assert [(p.namespace, p.redirect) for p in found] == [(0, False), (1, False), (0, False), (0, True)]


def test_of_a_history_the_newest_revision_at_the_date_is_taken(tmp_path: Path) -> None:
    revisions = [
        revision("one", 1, at="2021-09-30T12:00:00Z"),
        revision("three", 3, 2, at="2021-11-05T00:00:00Z"),
        revision("two", 2, 1, at="2021-10-31T23:59:59Z"),
    ]
    midnight = [revision("a second later", 9, at="2021-11-01T00:00:01Z")]
    midnight.append(revision("now", 8, at="2021-11-01T00:00:00Z"))
    pages = page(5, "T", revisions=revisions) + page(6, "Later", "x", at="2021-12-01T00:00:00Z")
    path = write_bz2(tmp_path / "d.xml.bz2", header() + pages + FOOTER)
    at_end, _ = read(path)
    assert [p.text for p in at_end] == ["three", "x"]
    at_november, counts = read(path, at="20211101")
    assert [p.text for p in at_november] == ["two"]
    assert counts.dropped == {"after_the_date": 1}
    path = write_bz2(tmp_path / "m.xml.bz2", header() + page(7, "M", revisions=midnight) + FOOTER)
    assert [p.text for p in read(path, at="20211101")[0]] == ["now"]  # the date is included


def test_a_redirect_of_today_was_an_article_at_the_date(tmp_path: Path) -> None:
    """<redirect/> is about the last revision only."""
    then, now = "2021-10-01T00:00:00Z", "2021-11-20T00:00:00Z"
    became = [revision("Text.", 1, at=then), revision("#REDIRECT [[X]]", 2, 1, at=now)]
    was = [revision("#redirect: [[X]]", 3, at=then), revision("Text.", 4, 3, at=now)]
    # an export lists revisions in any order
    pages = page(1, "Became", revisions=became[::-1], redirect=True) + page(2, "Was", revisions=was)
    path = write_bz2(tmp_path / "d.xml.bz2", header() + pages + FOOTER)
    assert [p.redirect for p in read(path, at="20211101")[0]] == [False, True]
    assert [p.redirect for p in read(path, at="20211201")[0]] == [True, False]


ODD_TEXT = {
    "deleted": ('<text deleted="deleted" />', "text_deleted"),
    "missing in the database": ('<text bytes="12" />', "no_text"),
    "empty": ('<text bytes="0" />', None),
    "not there": ("", "no_text"),
}


@pytest.mark.parametrize(("tag", "missing"), ODD_TEXT.values(), ids=ODD_TEXT)
def test_a_revision_without_text_says_why(tmp_path: Path, tag: str, missing: str | None) -> None:
    body = f"<revision><id>1</id><timestamp>2021-01-01T00:00:00Z</timestamp><model>wikitext</model>{tag}</revision>"
    path = write_bz2(tmp_path / "d.xml.bz2", header() + page(1, "T", revisions=[body]) + FOOTER)
    [found], _ = read(path)
    assert found.missing == missing
    assert found.text == (None if missing else "")


def test_the_main_slot_is_read_and_other_slots_are_not(tmp_path: Path) -> None:
    body = revision("main text").replace(
        "    </revision>", "<content><role>other</role><model>json</model><text>{}</text></content></revision>"
    )
    [found], _ = read(write_bz2(tmp_path / "d.xml.bz2", header() + page(1, "T", revisions=[body]) + FOOTER))
    assert (found.text, found.missing) == ("main text", None)


def test_pages_may_carry_the_attributes_of_the_root(tmp_path: Path) -> None:
    body = page(1, "T", "text").replace("<page>", '<page xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">')
    found, _ = read(write_bz2(tmp_path / "d.xml.bz2", header() + body + FOOTER))
    assert [p.title for p in found] == ["T"]


TEXT = "''Text'' & [[links]] <ref name=\"a\">b</ref>\n\ttab é 漢 \U0001f600"
CONTRIBUTOR = "<contributor><username>A</username><id>1</id></contributor>"
USUAL = [
    page(1, "Title & <more>", TEXT, revision_id=7, parent=5),
    page(2, "Alt", "#REDIRECT [[X]]", redirect=True).replace(
        "<model>", "<minor />\n<comment>/* a */ b</comment><model>"
    ),
    page(3, "Talk:T", "x", ns=1).replace("<username>A</username><id>1</id>", "<ip>1.2.3.4</ip>"),
    page(4, "T", "x").replace(CONTRIBUTOR, '<contributor deleted="deleted" />'),
    page(5, "T", "x").replace("<model>", '<comment deleted="deleted"/><origin>7</origin><model>'),
    page(6, "T", "x").replace("</text>", "</text>\n      <sha1>abc</sha1>"),
    page(7, "T", "x").replace('<text bytes="1"', '<text bytes="1" sha1="0a"'),
]

UNUSUAL = {
    "control character": ("x", "\x01"),
    "carriage return": ("x", "a\r\nb"),
    "character reference": ("x", "&#65;&#x42;"),
    "apostrophe": ("x", "&apos;"),
    "unknown entity": ("x", "&nbsp;"),
    "bare ampersand": ("x", "a & b"),
    "bare quote": ("x", 'say "a"'),
    "bare greater": ("x", "a > b"),
    "end of CDATA": ("x", "a ]]> b"),
    "CDATA": ("x", "<![CDATA[<b>]]>"),
    "comment": ("x", "a<!-- b -->c"),
    "element in the text": ("x", "a<b/>c"),
    "no character": ("x", "a\ufffeb\uffff"),
    "DEL": ("x", "a\x7fb\x85c"),
    "empty title": ("<title>T</title>", "<title></title>"),
    "blank title": ("<title>T</title>", "<title> </title>"),
    "title with entities": ("<title>T</title>", "<title>a &amp;amp; &lt;b&gt;</title>"),
    "title with a bad entity": ("<title>T</title>", "<title>a &b; c</title>"),
    "comment with a bad entity": ("<model>", "<comment>&b;</comment><model>"),
    "redirect with a bad entity": ("<revision>", '<redirect title="&b;" /><revision>'),
    "redirect in quotes": ("<revision>", "<redirect title='a' /><revision>"),
    "page 0": ("<id>1</id>\n    <revision>", "<id>0</id>\n    <revision>"),
    "leading zeros": ("<ns>0</ns>", "<ns>-007</ns>"),
    "namespace beyond all": ("<ns>0</ns>", "<ns>9999999999</ns>"),
    "month 13": ("2021-10-01T", "2021-13-01T"),
    "no time zone": ("00:00:00Z", "00:00:00"),
    "spaces about a number": ("<ns>0</ns>", "<ns> 0 </ns>"),
    "form feed between tags": ("<revision>", "\x0c<revision>"),
    "attributes twice": ("<text bytes", '<text bytes="1" bytes'),
    "other model": (">wikitext<", ">json<"),
    "deleted text": ('xml:space="preserve">', 'deleted="deleted" xml:space="preserve">'),
    "empty text": (">x</text>", "></text>"),
    "text without end": ("</text>", ""),
    "second text": ("</text>", "</text><text>y</text>"),
    "second title": ("<ns>", "<title>U</title><ns>"),
    "other order": ("<ns>0</ns>", "<restrictions>sysop</restrictions><ns>0</ns>"),
    "upload behind the revision": ("</revision>", "</revision><upload><comment>a</comment></upload>"),
    "unknown element": ("<model>", "<flags a='b'>c</flags><model>"),
    "page in a page": ("<revision>", "<page><revision>"),
}


def by_another_parser(xml: str) -> object:
    """The titles and texts of all pages, or None if the dump should be refused."""
    if "<!" in xml or xml.count("<page") > 3:  # in valid XML, but in no dump
        return None
    try:
        pages = ET.fromstring(xml).findall("{*}page")
        [datetime.datetime.fromisoformat(of.findtext("{*}revision/{*}timestamp") or "") for of in pages]
    except (ET.ParseError, ValueError):
        return None
    of_page = ("title", "ns", "id", "revision/{*}model", "revision/{*}text")
    return [tuple(page.findtext(f"{{*}}{name}") or "" for name in of_page) for page in pages]


@pytest.mark.fault("hostile XML", "a page in every unusual form", "read as another XML parser reads it, or refused")
@pytest.mark.parametrize("case", UNUSUAL)
def test_whatever_is_unusual_is_read_as_another_parser_reads_it(tmp_path: Path, case: str) -> None:
    old, new = UNUSUAL[case]
    plain = page(1, "T", "x")
    body = plain.replace(">x<", f">{new}<") if old == "x" else plain.replace(old, new)
    assert body != plain
    xml = header() + page(8, "Before", "a") + body + page(9, "Behind", "b") + FOOTER
    expected = by_another_parser(xml)
    path = write_bz2(tmp_path / "d.xml.bz2", xml)
    if expected is None or case in ("page 0", "empty title", "namespace beyond all"):
        with pytest.raises(InputError):
            read(path)
        return
    found = [(p.title, p.namespace, p.page_id, p.text or "") for p in read(path)[0]]
    told = [(title, int(ns), int(id), text) for title, ns, id, model, text in expected]
    assert found == [
        one if case not in ("other model", "deleted text") else (*one[:3], text)
        for one, (*_, text) in zip(told, found, strict=True)
    ]


_BROKEN = (
    "<page> </page> <page/> <page&#32;a='b'> </mediawiki> <!--<page>--> <![CDATA[<page>]]> <![CDATA[</mediawiki>]]> "
    "<revision> </revision> </text> <text> <x/> <pagf> <?pi?> </id> <id>7</id> &#10; > < & \x01 \r T 0"
)
BROKEN = st.sampled_from([snippet.replace("&#32;", " ") for snippet in _BROKEN.split(" ")])


def in_ranges(path: Path, starts: list[int], at: str | None, allow_truncated: bool) -> object:
    """What a build makes of it: pages, which ranges closed, counts; or the first error, but for its bytes."""
    try:
        pages: list[DumpPage] = []
        whole = DumpCounts()
        for start, end in zip(starts, [*starts[1:], None], strict=True):
            found, counts = read(path, start=start, end=end, at=at, allow_truncated=allow_truncated)
            pages += found
            whole.complete |= counts.complete
            whole.pages += counts.pages
            whole.dropped = dict(Counter(whole.dropped) + Counter(counts.dropped))
            assert counts.pages == len(found) + sum(counts.dropped.values())
    except InputError as error:
        said = "no </mediawiki> at its end" if "no </mediawiki>" in str(error) else str(error)
        return re.sub(r"byte [0-9]+", "byte", said.replace(str(path), ""))
    if not whole.complete and not allow_truncated:  # which extract.check refuses
        return "no </mediawiki> at its end"
    return pages, whole.complete, whole.pages, whole.dropped


@pytest.mark.fault(
    "hostile XML",
    "tags of pages that are broken, lost, doubled, in CDATA or in comments, in a dump that is read in ranges",
    "one range and many give the same pages and counts, or the same error",
)
@settings(max_examples=250)
@given(
    chosen=st.lists(st.sampled_from(USUAL), min_size=1, max_size=4),
    edits=st.lists(st.tuples(st.booleans(), st.integers(0, 3000), st.sampled_from([0, 1, 3, 10]), BROKEN), max_size=3),
    foot=st.sampled_from([FOOTER, FOOTER, FOOTER, "", "</mediawiki>x", "</mediawiki></mediawiki>", "</mediawik"]),
    cuts=st.lists(st.integers(0, 10_000), max_size=4),
    at=st.sampled_from([None, "20210101"]),
    cut=st.booleans(),
)
def test_an_edited_dump_gives_in_ranges_what_it_gives_as_one(
    tmp_path_factory: pytest.TempPathFactory,
    chosen: list[str],
    edits: list[tuple[bool, int, int, str]],
    foot: str,
    cuts: list[int],
    at: str | None,
    cut: bool,
) -> None:
    body = "".join(chosen)
    for in_tag, place, length, new in edits:
        tags = [tag.start() + 1 for tag in re.finditer("</?(?:page|revision|text)", body)]
        place = tags[place % len(tags)] if in_tag and tags else place % len(body)
        body = body[:place] + new + body[place + length :]
    raw = (header() + body + foot).encode()
    bounds = sorted({0, len(raw), *(place % len(raw) for place in cuts)})
    packed = [bz2.compress(raw[a:b], 1) for a, b in pairwise(bounds)]
    starts = [sum(map(len, packed[:number])) for number in range(len(packed))]
    path = tmp_path_factory.mktemp("d") / "d.xml.bz2"
    path.write_bytes(b"".join(packed))
    one = in_ranges(path, [0], at, cut)
    assert in_ranges(path, starts, at, cut) == one


T, U = page(1, "T", "x"), page(2, "U", "y")
BROKEN_REVISION = revision("b", 2).replace("<revision>", "<revisiom>")
BAD = (
    {  # a dump and the error
        "a DOCTYPE": ('<!DOCTYPE m [<!ENTITY a "b">]>' + header() + T + FOOTER, "DOCTYPE"),
        "no MediaWiki": ("<html><body/></html>", "not a MediaWiki export"),
        "no XML": ("hello", "not a MediaWiki export"),
        "a cut between pages": (header() + T, "no </mediawiki> at its end"),
        "a cut inside a page": (header() + T[:-40], "no </mediawiki> at its end"),
        "a cut in the header": (header()[:-60], "no </mediawiki> at its end"),
        "two dumps joined": ((header() + T + FOOTER) * 2, "after </mediawiki>"),
        "a namespace key beyond all": (header().replace('key="14"', 'key="99999999999"') + T + FOOTER, "no namespace"),
    }
    | {
        case: (header() + pages + FOOTER, said)
        for case, (pages, said) in {
            "an undefined entity": (T.replace(">x<", ">&bomb;<"), "not well formed"),
            "tags that do not close": (T.replace("</id>", "", 1), "not well formed"),
            "a page without an id": (T.replace("<id>1</id>", "", 1), "without a title"),
            "an id that is not a number": (T.replace("<id>1</id>", "<id>x</id>", 1), "an id that is not a number"),
            "a bad time": (page(1, "T", "x", at="yesterday"), "page 1"),
            "something between pages": (T + "<virus/>" + U, "unexpected <virus>"),
            "a page that does not end": (T.replace("</page>", "") + U, "begins inside a page"),
            "a last page that does not end": (T.replace("</page>", "</pag>"), "not well formed"),
            "a page in CDATA": (T.replace(">x<", "><![CDATA[<page>]]><"), "no dump has one"),
            "a page in a comment": (page(1, "T") + "<!--<page>-->", "no dump has one"),
            "a broken revision": (page(1, "T", revisions=[revision("a"), BROKEN_REVISION]), "not well formed"),
            "a broken page before much white space": (
                T + U.replace("<page>", "<pagf>") + " " * 999 + page(3, "V"),
                "unexpected <pagf>",
            ),
            "a header without end": ("<!--" + "x" * (3 << 20) + "-->" + T, "no <page> in"),
            "a namespace beyond all": (page(1, "T", "x", ns=99999999999), "no namespace"),
            "something before pages": ("<virus/>" + U, "<virus>"),
        }.items()
    }
)


@pytest.mark.fault(
    "hostile XML",
    "a DOCTYPE, entities, tags that do not close, a page in a page, joined dumps",
    "refused with file and place",
)
@pytest.mark.parametrize("case", BAD)
def test_bad_xml_is_refused_with_file_and_place(tmp_path: Path, case: str) -> None:
    text, expected = BAD[case]
    path = write_bz2(tmp_path / "d.xml.bz2", text)
    with pytest.raises(InputError, match=expected) as error:
        read(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_cut_dump_is_read_as_far_as_it_goes_where_that_is_allowed(tmp_path: Path) -> None:
    path = write_bz2(tmp_path / "d.xml.bz2", header() + page(1, "T", "x") + page(2, "U", "y")[:-30])
    found, counts = read(path, allow_truncated=True)
    assert [p.title for p in found] == ["T"]
    assert not counts.complete
    assert (counts.pages, counts.dropped) == (2, {"cut_off": 1})


@pytest.mark.fault("large page", "a revision of more than 64 MB of XML", "dropped by reason")
def test_a_revision_beyond_all_bounds_is_dropped_by_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An older revision does not stand in for it."""
    monkeypatch.setattr("temporalwiki.builders.wikipedia.xml_dump.MAX_REVISION", 10_000)
    monkeypatch.setattr("temporalwiki.builders.streams.OUT", 1_000)
    revisions = [revision("old", 1), revision("0" * 100_000, 2, 1, at="2021-10-02T00:00:00Z")]
    for listed in (revisions, revisions[::-1], [revision("0" * 5_000_000)]):
        path = multistream(tmp_path / "d.xml.bz2", [page(1, "Bomb", revisions=listed), page(2, "U", "y")])
        found, counts = read(path)
        assert [p.title for p in found] == ["U"]
        assert (counts.dropped, counts.complete) == ({"too_long": 1}, True)


REAL = {
    "odd/truncated/enwiki-2014-11-head361.truncated.xml.bz2": None,
    "odd/multipart/pages-articles-sample4.xml-p4606p5340.bz2": None,  # a header and nothing else
    "odd/multipart/pages-articles-sample1.xml-p1p1500.bz2": 2,
    "odd/minidumps/enwiki-minidump-2019-08-16-a955fddc0.xml.bz2": 11,
    "odd/minidumps/enwiki-minidump-2021-01-22-7a165b430.xml.bz2": 23,
    "odd/content_history/MediawikiDumperOutputTest.Simplewiki.Sample.xml": 2,
    "odd/aawiki/aawiki-20260101-pages-meta-current.xml.bz2": 507,
    "odd/multipart/stub-history-sample.xml.gz": 20,
    "dumps/enwiki/20141106/enwiki-20141106-pages-articles-multistream.xml.bz2": 361,
    "dumps/enwiki/20160501/enwiki-20160501-pages-articles-multistream.xml.bz2": 206,
}


@pytest.mark.parametrize("name", REAL)
def test_real_dumps_give_as_many_pages_as_their_readme_says(shared_data: Path, name: str) -> None:
    if REAL[name] is None:
        with pytest.raises(InputError, match="no </mediawiki> at its end"):
            read(shared_data / name)
    else:
        assert len(read(shared_data / name)[0]) == REAL[name]
