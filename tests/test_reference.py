"""Hand-worked tables for the reference (tests/reference.py); every input is written here."""

from __future__ import annotations

import bz2
import gzip
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError
from xml.sax.saxutils import escape

import pytest

from . import reference as ref

# ---------------------------------------------------------------------------------------------------------
# Wikipedia dumps

SITEINFO = """<siteinfo><namespaces><namespace key="0" case="first-letter" />
<namespace key="1" case="first-letter">Talk</namespace>
<namespace key="14" case="first-letter">Category</namespace></namespaces></siteinfo>"""


def revision(revision_id: int, day: str, text: str | None, parent: int | None = None) -> str:
    parent_element = "" if parent is None else f"<parentid>{parent}</parentid>"
    text_element = '<text bytes="0" />' if text is None else f'<text xml:space="preserve">{escape(text)}</text>'
    return (
        f"<revision><id>{revision_id}</id>{parent_element}<timestamp>{day}</timestamp>"
        f"<contributor><username>A</username><id>77</id></contributor>{text_element}</revision>"
    )


def page(page_id: int, title: str, *revisions: str, ns: int | None = 0, redirect: bool = False) -> str:
    ns_element = "" if ns is None else f"<ns>{ns}</ns>"
    redirect_element = '<redirect title="X" />' if redirect else ""
    return (
        f"<page><title>{escape(title)}</title>{ns_element}<id>{page_id}</id>{redirect_element}"
        f"{''.join(revisions)}</page>"
    )


def dump(*pages: str, version: str = "0.10") -> str:
    return (
        f'<mediawiki xmlns="http://www.mediawiki.org/xml/export-{version}/" version="{version}">'
        f"{SITEINFO}{''.join(pages)}</mediawiki>\n"
    )


@pytest.mark.parametrize("suffix", [".xml", ".xml.gz", ".xml.bz2"])
def test_read_articles_reads_every_page_from_any_packing(tmp_path: Path, suffix: str) -> None:
    data = dump(
        page(10, "Old name", revision(100, "2021-11-01T10:00:00Z", "#REDIRECT [[X]]", 99), redirect=True),
        page(12, "A & B", revision(120, "2021-10-31T23:59:59Z", "One < two.")),
        page(13, "Category:Things", revision(130, "2021-10-30T00:00:00Z", "", 0), ns=14),
        page(14, "Category: not by its prefix", revision(140, "2021-10-30T00:00:00Z", None)),
    ).encode()
    path = tmp_path / f"dump{suffix}"
    if suffix == ".xml.gz":
        data = gzip.compress(data)
    if suffix == ".xml.bz2":  # multistream
        data = bz2.compress(data[:500]) + bz2.compress(data[500:])
    path.write_bytes(data)

    pages = ref.read_articles(path)

    assert list(pages) == [10, 12, 13, 14]
    assert pages[12] == ref.RefPage(
        page_id=12,
        title="A & B",
        namespace=0,
        redirect=False,
        revision_id=120,
        parent_id=None,
        timestamp=datetime(2021, 10, 31, 23, 59, 59, tzinfo=UTC),
        text="One < two.",
    )
    assert (pages[10].redirect, pages[10].parent_id) == (True, 99)
    assert (pages[13].namespace, pages[13].parent_id) == (14, None)
    assert (pages[14].namespace, pages[14].text) == (0, "")
    assert list(ref.articles(pages)) == [12, 14]


def test_read_articles_takes_the_namespace_from_the_title_without_ns(tmp_path: Path) -> None:
    path = tmp_path / "dump.xml"
    one = revision(1, "2009-01-01T00:00:00Z", "x")
    moved = revision(2, "2009-01-01T00:00:00Z", "#redirect: [[Y]]")
    path.write_text(
        dump(
            page(1, "Talk:A", one, ns=None),
            page(2, "Star: Trek", one, ns=None),
            page(3, "Talk", one, ns=None),
            page(4, "Category:A:B", one, ns=None),
            page(5, "Z", moved, ns=None),
            version="0.3",
        )
    )
    pages = ref.read_articles(path)
    assert {page_id: p.namespace for page_id, p in pages.items()} == {1: 1, 2: 0, 3: 0, 4: 14, 5: 0}
    assert [page_id for page_id, p in pages.items() if p.redirect] == [5], "0.3 has no <redirect>"


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ("20200101", {}),
        ("20200201", {1: (11, False)}),  # a revision at 00:00:00 of the day itself counts
        ("20200202", {1: (11, False)}),
        ("20200301", {1: (13, True), 2: (21, False)}),
        ("20200401", {1: (14, False), 2: (21, False)}),
        (None, {1: (16, True), 2: (21, False)}),  # of two at one second the greater id
    ],
)
def test_read_articles_cuts_a_snapshot_at_any_date(
    tmp_path: Path, at: str | None, expected: dict[int, tuple[int, bool]]
) -> None:
    path = tmp_path / "history.xml"
    path.write_text(
        dump(
            page(
                1,
                "A",
                revision(11, "2020-02-01T00:00:00Z", "First."),
                revision(13, "2020-02-20T00:00:00Z", "#REDIRECT [[B]]", 11),
                revision(12, "2020-02-10T00:00:00Z", "Out of order.", 11),
                revision(14, "2020-03-20T00:00:00Z", "# redirect is a word", 13),
                revision(16, "2020-05-01T00:00:01Z", "#redirect [[C]]", 14),
                revision(15, "2020-05-01T00:00:01Z", "Text.", 14),
                redirect=True,
            ),
            page(2, "B", revision(21, "2020-02-15T12:00:00Z", "B.")),
            version="0.11",
        )
    )
    pages = ref.read_articles(path, at)
    assert {page_id: (p.revision_id, p.redirect) for page_id, p in pages.items()} == expected


def test_read_articles_fails_on_a_cut_dump_and_on_a_doctype(tmp_path: Path) -> None:
    path = tmp_path / "dump.xml"
    path.write_text(dump(page(1, "A", revision(1, "2020-01-01T00:00:00Z", "x"))).replace("</mediawiki>", ""))
    with pytest.raises(ParseError):
        ref.read_articles(path)
    path.write_text('<!DOCTYPE a [<!ENTITY b "c">]>' + dump())
    with pytest.raises(ValueError, match="DOCTYPE"):
        ref.read_articles(path)
    path.write_text("<html/>")
    with pytest.raises(ValueError, match="not a MediaWiki dump"):
        ref.read_articles(path)


# ---------------------------------------------------------------------------------------------------------
# Algorithm 1

P = ref.Paragraphs


@pytest.mark.parametrize(
    ("previous", "recent", "expected"),
    [
        pytest.param(None, [["A.", "B."], ["C."]], [["A.", "B."], ["C."]], id="new page"),
        pytest.param(None, [[], [" ", "A."], ["\n"]], [["A."]], id="no prose is left out"),
        pytest.param([], [["A."]], [["A."]], id="prev was empty"),
        pytest.param([["A.", "B."]], [["A.", "B."]], [], id="the same"),
        pytest.param([["A.", "B."]], [["B."], ["A."]], [], id="moved"),
        pytest.param([["A."], ["B."]], [["A.", "X.", "B.", "Y."]], [["X.", "Y."]], id="partly new"),
        pytest.param([["A."], ["B."]], [["X.", "Y."], ["B."]], [["X.", "Y."]], id="first paragraph"),
        pytest.param([["A."], ["B."]], [["A."], ["B.", "Y."]], [["Y."]], id="last paragraph"),
        pytest.param([["A."], ["B."]], [["X."], ["Y.", "Z."]], [["X."], ["Y.", "Z."]], id="rewrite"),
        pytest.param([["A."]], [["X.", "X."], ["A.", "X."]], [["X.", "X."], ["X."]], id="said twice"),
        pytest.param([["A."], ["B."]], [["A."]], [], id="something removed"),
        pytest.param([["A."]], [], [], id="emptied"),
        pytest.param([["Cafe\u0301  is\u00a0here. "]], [["Café is\nhere."]], [], id="NFC and white space"),
        pytest.param([["A."]], [["a."]], [["a."]], id="case counts"),
        pytest.param([["A."]], [["B\u0301  x."]], [["B\u0301  x."]], id="kept as it is in recent"),
        pytest.param([["A."]], [["A.", " "]], [], id="a blank sentence is no news"),
    ],
)
def test_diff_article(previous: P | None, recent: P, expected: P) -> None:
    assert ref.diff_article(previous, recent) == expected


@pytest.mark.parametrize(
    ("previous", "recent", "expected"),
    [
        ([["A.", "B."], ["C."]], [["A.", "X."]], [["B."], ["C."]]),
        ([["A.", "B."], ["C."]], [["B."], ["A.", "C."]], []),
        ([["A.", "B."], ["C."]], None, [["A.", "B."], ["C."]]),
        ([["A."]], [], [["A."]]),
        ([], [["A."]], []),
    ],
)
def test_deleted_sentences(previous: P, recent: P | None, expected: P) -> None:
    assert ref.deleted_sentences(previous, recent) == expected


def split(wikitext: str) -> P:
    """Lines are paragraphs, "/" ends a sentence."""
    return [[sentence.strip() for sentence in line.split("/") if sentence.strip()] for line in wikitext.split("\n")]


def ref_page(
    page_id: int, revision_id: int, text: str, parent: int | None = None, ns: int = 0, redirect: bool = False
) -> ref.RefPage:
    return ref.RefPage(
        page_id=page_id,
        title=f"P{page_id}",
        namespace=ns,
        redirect=redirect,
        revision_id=revision_id,
        parent_id=parent,
        timestamp=datetime(2021, 1, 1, tzinfo=UTC),
        text=text,
    )


def by_id(*pages: ref.RefPage) -> dict[int, ref.RefPage]:
    return {page.page_id: page for page in pages}


PREV = by_id(
    ref_page(1, 10, "A/B\nC"),  # edited
    ref_page(2, 20, "A"),  # the same revision
    ref_page(3, 30, "A/B"),  # only a removal
    ref_page(4, 40, "#REDIRECT", redirect=True),  # becomes an article
    ref_page(5, 50, "A", ns=2),  # moved into namespace 0
    ref_page(6, 60, "A/B"),  # becomes a redirect
    ref_page(7, 70, "A\nB"),  # gone
    ref_page(8, 80, "A"),  # moved out of namespace 0
    ref_page(9, 90, ""),  # gone, without prose
    ref_page(50, 500, "T", ns=10),  # the largest id, of no article
)
RECENT = by_id(
    ref_page(1, 11, "A/X\nC\nY/Z", 10),
    ref_page(2, 20, "A"),
    ref_page(3, 31, "B", 30),
    ref_page(4, 41, "D/E", 40),
    ref_page(5, 51, "A", 50),
    ref_page(6, 61, "#REDIRECT", 60, redirect=True),
    ref_page(8, 81, "A", 80, ns=2),
    ref_page(20, 201, "M", 200),  # missing in prev: a parent and an id below 50
    ref_page(21, 210, "N"),  # undeleted, say: no parent
    ref_page(60, 601, "O", 600),  # edited since it was made
    ref_page(61, 610, ""),  # no prose
    ref_page(62, 620, "U", ns=2),
)


def test_diffset() -> None:
    assert ref.diffset(PREV, RECENT, split) == {
        1: ref.RefRow("updated", [["X"], ["Y", "Z"]], 11, 10),
        4: ref.RefRow("updated", [["D", "E"]], 41, 40),
        5: ref.RefRow("updated", [["A"]], 51, 50),
        20: ref.RefRow("updated", [["M"]], 201, None),
        21: ref.RefRow("new", [["N"]], 210, None),
        60: ref.RefRow("new", [["O"]], 601, None),
    }
    assert ref.diffset({}, by_id(ref_page(1, 2, "A", 1)), split) == {1: ref.RefRow("new", [["A"]], 2, None)}


def test_deletions() -> None:
    assert ref.deletions(PREV, RECENT, split) == {
        1: ref.RefRow("updated", [["B"]], 11, 10),
        3: ref.RefRow("updated", [["A"]], 31, 30),
        6: ref.RefRow("deleted", [["A", "B"]], None, 60),
        7: ref.RefRow("deleted", [["A"], ["B"]], None, 70),
        8: ref.RefRow("deleted", [["A"]], None, 80),
    }


# ---------------------------------------------------------------------------------------------------------
# Wikidata dumps

Json = dict[str, Any]


def item_snak(number: int, style: str = "both") -> Json:
    value: Json = {"entity-type": "item"}
    if style in ("both", "number"):
        value["numeric-id"] = number
    if style in ("both", "id"):
        value["id"] = f"Q{number}"
    return {
        "snaktype": "value",
        "property": "P1",
        "datavalue": {"type": "wikibase-entityid", "value": value},
    }


def time_snak(time: str, precision: int = 11) -> Json:
    return {
        "snaktype": "value",
        "datavalue": {"type": "time", "value": {"time": time, "precision": precision}},
    }


def statement(statement_id: str, mainsnak: Json, rank: str = "normal", **qualifiers: list[Json]) -> Json:
    result: Json = {"id": statement_id, "mainsnak": mainsnak, "rank": rank, "type": "statement"}
    if qualifiers:
        result["qualifiers"] = qualifiers
    return result


def entity(entity_id: str, claims: Json | list[Json] | None = None, **more: Any) -> Json:
    kind = {"Q": "item", "P": "property", "L": "lexeme"}[entity_id[0]]
    return {"id": entity_id, "type": kind, "labels": {}, "claims": claims or [], "sitelinks": [], **more}


def write_json(path: Path, *entities: Json, brackets: bool = True) -> Path:
    lines = ",\n".join(json.dumps(one) for one in entities) + "\n"
    data = (f"[\n{lines}]\n" if brackets else lines.replace(",\n", "\n")).encode()
    path.write_bytes(bz2.compress(data) if path.suffix == ".bz2" else gzip.compress(data))
    return path


def test_read_facts_keeps_best_rank_main_snaks_with_items(tmp_path: Path) -> None:
    text_snak = {"snaktype": "value", "datavalue": {"type": "string", "value": "Q9"}}
    property_snak = {
        "snaktype": "value",
        "datavalue": {
            "type": "wikibase-entityid",
            "value": {"entity-type": "property", "numeric-id": 9, "id": "P9"},
        },
    }
    unknown_snak = {"snaktype": "value", "datavalue": {"type": "of-the-future", "value": [1]}}
    claims = {
        "P1": [statement("a", item_snak(1)), statement("b", item_snak(2, "number"))],
        "P2": [
            statement("c", item_snak(3), "preferred"),
            statement("d", item_snak(4), P580=[time_snak("+2001-00-00T00:00:00Z", 9)]),
            statement("e", item_snak(5), "deprecated"),
        ],
        "P3": [statement("f", item_snak(6), "deprecated")],
        "P4": [statement("g", {"snaktype": "novalue"}, "preferred"), statement("h", item_snak(7))],
        "P5": [
            statement("i", text_snak),
            statement("j", property_snak),
            statement("k", unknown_snak),
            statement("l", {"snaktype": "somevalue"}),
            statement("m", item_snak(8, "id"), P642=[item_snak(99)]),
        ],
        "P6": [
            statement("n", item_snak(1), P582=[{"snaktype": "somevalue"}, {"snaktype": "novalue"}]),
            statement("o", item_snak(1)),
        ],
    }
    claims["P6"][1]["qualifiers"] = []
    claims["P6"][1]["references"] = [{"snaks": {"P248": [item_snak(98)]}}]
    path = write_json(tmp_path / "all.json.bz2", entity("Q42", claims))

    data = ref.read_facts(path)

    year = ref.RefTime("value", "+2001-00-00T00:00:00Z", 9)
    ends = (ref.RefTime("somevalue"), ref.RefTime("novalue"))
    assert data.statements == [
        ref.RefStatement(("Q42", "P1", "Q1"), "a", "normal", True, (), ()),
        ref.RefStatement(("Q42", "P1", "Q2"), "b", "normal", True, (), ()),
        ref.RefStatement(("Q42", "P2", "Q3"), "c", "preferred", True, (), ()),
        ref.RefStatement(("Q42", "P2", "Q4"), "d", "normal", False, (year,), ()),
        ref.RefStatement(("Q42", "P4", "Q7"), "h", "normal", False, (), ()),
        ref.RefStatement(("Q42", "P5", "Q8"), "m", "normal", True, (), ()),
        ref.RefStatement(("Q42", "P6", "Q1"), "n", "normal", True, (), ends),
        ref.RefStatement(("Q42", "P6", "Q1"), "o", "normal", True, (), ()),
    ]
    assert data.facts() == {
        ("Q42", "P1", "Q1"),
        ("Q42", "P1", "Q2"),
        ("Q42", "P2", "Q3"),
        ("Q42", "P5", "Q8"),
        ("Q42", "P6", "Q1"),
    }
    assert data.complete


@pytest.mark.parametrize("brackets", [True, False])
def test_read_facts_entities(tmp_path: Path, brackets: bool) -> None:
    def with_fact(number: int, revision_id: int | None) -> Json:
        more = {} if revision_id is None else {"lastrevid": revision_id}
        return entity("Q1", {"P1": [statement(f"s{number}", item_snak(number))]}, **more)

    path = write_json(
        tmp_path / "all.json.gz",
        with_fact(10, 5),
        with_fact(11, 7),
        with_fact(12, 7),  # counts
        with_fact(13, 6),
        with_fact(14, None),
        entity(
            "Q2",
            labels={"en": {"language": "en", "value": "two"}, "de": {"language": "de", "value": "zwei"}},
            sitelinks={
                "enwiki": {"site": "enwiki", "title": "2"},
                "dewiki": {"site": "dewiki", "title": "Zwei"},
            },
        ),
        entity("Q3", labels=[]),
        entity(
            "P1",
            {"P31": [statement("x", item_snak(1))]},
            labels={"en": {"language": "en", "value": "of"}},
        ),
        {"id": "Q5", "missing": ""},
        {"type": "item", "id": "Q6", "redirect": "Q2"},
        {"entity": "Q7", "redirect": "Q2"},
        entity("L1", {"P1": [statement("y", item_snak(1))]}),
        brackets=brackets,
    )
    data = ref.read_facts(path)
    assert data.facts() == {("Q1", "P1", "Q12")}
    assert data.items == {"Q1", "Q2", "Q3"}
    assert data.labels == {"Q1": {}, "Q2": {"en": "two", "de": "zwei"}, "Q3": {}, "P1": {"en": "of"}}
    assert data.sitelinks == {"Q2": "2"}
    assert data.complete is brackets
    assert ref.read_facts(path, wiki="dewiki").sitelinks == {"Q2": "Zwei"}


def test_read_facts_of_equal_revisions_the_later_counts(tmp_path: Path) -> None:
    one = entity("Q1", {"P1": [statement("s", item_snak(2))]})
    two = entity("Q1", {"P1": [statement("s", item_snak(3))]})
    path = write_json(tmp_path / "all.json.gz", one, two)
    assert ref.read_facts(path).facts() == {("Q1", "P1", "Q3")}


# ---------------------------------------------------------------------------------------------------------
# Algorithm 2


@pytest.mark.parametrize(
    ("time", "precision", "expected"),
    [
        ("+2014-00-00T00:00:00Z", None, (2014, 1, 1)),
        ("+2014-05-00T00:00:00Z", None, (2014, 5, 1)),
        ("+2014-05-17T00:00:00Z", 11, (2014, 5, 17)),
        ("+2014-05-17T00:00:00Z", 10, (2014, 5, 1)),
        ("+2014-12-31T00:00:00Z", 9, (2014, 1, 1)),
        ("+00000002014-01-01T00:00:00Z", 9, (2014, 1, 1)),
        ("+2015-00-00T00:00:00Z", 8, (2010, 1, 1)),
        ("+2000-00-00T00:00:00Z", 7, (1901, 1, 1)),
        ("+2001-00-00T00:00:00Z", 7, (2001, 1, 1)),
        ("+2000-00-00T00:00:00Z", 6, (1001, 1, 1)),
        ("-0044-03-15T00:00:00Z", 11, (-44, 1, 1)),
        ("yesterday", None, None),
    ],
)
def test_earliest_day(time: str, precision: int | None, expected: tuple[int, int, int] | None) -> None:
    assert ref.earliest_day(time, precision) == expected


def until(*times: str) -> tuple[ref.RefTime, ...]:
    return tuple(ref.RefTime("value", time, None) if time[0] in "+-" else ref.RefTime(time) for time in times)


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ((), False),
        (("novalue",), False),
        (("somevalue",), True),
        (("+2021-11-30T00:00:00Z",), True),
        (("+2021-12-01T00:00:00Z",), True),
        (("+2021-12-02T00:00:00Z",), False),
        (("+2021-12-00T00:00:00Z",), True),
        (("+2021-00-00T00:00:00Z",), True),
        (("+2022-00-00T00:00:00Z",), False),
        (("-0300-00-00T00:00:00Z",), True),
        (("novalue", "+2020-00-00T00:00:00Z"), True),
        (("+2030-00-00T00:00:00Z", "+2020-00-00T00:00:00Z"), True),
        (("+soon",), False),
    ],
)
def test_has_end(ends: tuple[str, ...], expected: bool) -> None:
    one = ref.RefStatement(("Q1", "P1", "Q2"), "s", "normal", True, (), until(*ends))
    assert ref.has_end(one, "20211201") is expected


def world(text: str, items: str = "") -> ref.RefWikidata:
    """One statement a line: subject relation object, then "best" or "other", then its ends."""
    data = ref.RefWikidata()
    for number, line in enumerate(text.strip().splitlines()):
        subject, relation, value, best, *ends = line.split()
        data.items.add(subject)
        data.statements.append(
            ref.RefStatement((subject, relation, value), f"s{number}", "normal", best == "best", (), until(*ends))
        )
    data.items |= set(items.split())
    return data


PAST = "+2021-11-10T00:00:00Z"
FUTURE = "+2030-01-01T00:00:00Z"


def algorithm_2(prev: str, recent: str, prev_items: str = "") -> ref.RefCategories:
    return ref.algorithm_2(world(prev, prev_items), world(recent), "20211201")


def test_algorithm_2_new_facts() -> None:
    result = algorithm_2(
        "Q1 P1 Q10 best\nQ1 P1 Q9 best\nQ1 P1 Q8 other\nQ1 P3 Q8 other\nQ3 P1 Q10 best",
        "Q1 P1 Q10 best\nQ1 P1 Q9 best\nQ1 P1 Q11 best\nQ1 P2 Q12 best\nQ1 P3 Q13 best\n"
        "Q2 P1 Q10 best\nQ3 P1 Q10 best\nQ4 P1 Q14 best\nQ1 P2 Q15 other",
        prev_items="Q4",
    )
    assert result == ref.RefCategories(
        changed={
            ("Q1", "P1", "Q11"): ("new_object", ("Q10", "Q9")),
            ("Q1", "P2", "Q12"): ("new_relation", ()),
            ("Q1", "P3", "Q13"): ("new_relation", ()),  # prev's statement of P3 was no fact
            ("Q2", "P1", "Q10"): ("new_subject", ()),
            ("Q4", "P1", "Q14"): ("new_relation", ()),  # in prev, but without facts
        },
        unchanged={("Q1", "P1", "Q10"), ("Q1", "P1", "Q9"), ("Q3", "P1", "Q10")},
        deleted={},
    )


OLD = ("Q1", "P1", "Q2")
NEW = ("Q1", "P1", "Q3")


@pytest.mark.parametrize(
    ("prev", "recent", "unchanged", "deleted"),
    [
        pytest.param("Q1 P1 Q2 best", "Q1 P1 Q2 best", True, None, id="unchanged"),
        pytest.param("Q1 P1 Q2 best", "Q1 P2 Q2 best", False, "removed", id="removed"),
        pytest.param("Q1 P1 Q2 best", "", False, "removed", id="subject gone"),
        pytest.param("Q1 P1 Q2 best", f"Q1 P1 Q2 best {PAST}", False, "ended", id="ended"),
        pytest.param("Q1 P1 Q2 best", "Q1 P1 Q2 best somevalue", False, "ended", id="end unknown"),
        pytest.param("Q1 P1 Q2 best", "Q1 P1 Q2 best novalue", True, None, id="no end"),
        pytest.param("Q1 P1 Q2 best", f"Q1 P1 Q2 best {FUTURE}", True, None, id="end to come"),
        pytest.param(f"Q1 P1 Q2 best {PAST}", f"Q1 P1 Q2 best {PAST}", True, None, id="over before"),
        pytest.param(f"Q1 P1 Q2 best {FUTURE}", f"Q1 P1 Q2 best {PAST}", False, "ended", id="ended early"),
        pytest.param("Q1 P1 Q2 best", f"Q1 P1 Q2 best {PAST}\nQ1 P1 Q2 best", True, None, id="one statement is open"),
        pytest.param("Q1 P1 Q2 best", f"Q1 P1 Q2 best {PAST}\nQ1 P1 Q2 other", True, None, id="open in another rank"),
        pytest.param(
            f"Q1 P1 Q2 best {PAST}\nQ1 P1 Q2 best",
            f"Q1 P1 Q2 best {PAST}\nQ1 P1 Q2 best {PAST}",
            False,
            "ended",
            id="the open one ended",
        ),
        pytest.param(
            f"Q1 P1 Q2 best {PAST}\nQ1 P1 Q2 other",
            f"Q1 P1 Q2 best {PAST}",
            True,
            None,
            id="open only in another rank before",
        ),
        pytest.param("Q1 P1 Q2 best", "Q1 P1 Q3 best", False, "replaced", id="replaced"),
        pytest.param(
            "Q1 P1 Q2 best",
            f"Q1 P1 Q2 best {PAST}\nQ1 P1 Q3 best",
            False,
            "replaced",
            id="ended and replaced",
        ),
        pytest.param("Q1 P1 Q2 best", f"Q1 P1 Q2 other {PAST}\nQ1 P1 Q3 best", False, "replaced", id="new preferred"),
        pytest.param("Q1 P1 Q2 best", f"Q1 P1 Q3 best {PAST}", False, "removed", id="the other is over as well"),
        pytest.param(
            "Q1 P1 Q2 best",
            f"Q1 P1 Q2 best {PAST}\nQ1 P1 Q3 best somevalue",
            False,
            "ended",
            id="both are over",
        ),
        pytest.param("Q1 P1 Q2 best", "Q1 P1 Q3 best\nQ1 P1 Q2 best", True, None, id="one more"),
        pytest.param("Q1 P1 Q2 best", "Q1 P2 Q3 best", False, "removed", id="another relation's object"),
        pytest.param(
            "Q1 P1 Q2 best\nQ1 P1 Q3 best", "Q1 P1 Q3 best", False, "removed", id="the other was there before"
        ),
        pytest.param("Q1 P1 Q2 best", "Q1 P1 Q2 other", False, "removed", id="demoted, with nothing in its place"),
        pytest.param("Q1 P1 Q2 other", "", False, None, id="never a fact"),
    ],
)
def test_algorithm_2_old_facts(prev: str, recent: str, unchanged: bool, deleted: str | None) -> None:
    result = algorithm_2(prev, recent)
    assert (OLD in result.unchanged) is unchanged
    assert result.deleted.get(OLD) == deleted
    assert (NEW in result.changed) is ("Q1 P1 Q3 best" in recent and "Q1 P1 Q3" not in prev)


# ---------------------------------------------------------------------------------------------------------
# Labels, alignment and filters


@pytest.mark.parametrize(
    ("labels", "language", "expected"),
    [
        ("en=a de=b", "de", "b"),
        ("pt=a pt-br=b", "pt-br", "b"),
        ("pt=a en=b", "pt-br", "a"),
        ("mul=a en=b", "ko", "a"),
        ("mul=a en=b", "en", "b"),
        ("mul=a en-gb=b", "en", "a"),
        ("en=a fr=b", "ko", "a"),
        ("en-gb=a en-us=b en-ca=c", "en", "a"),
        ("en-us=b en-ca=c", "en", "b"),
        ("en-ca=c en-in=d", "en", "c"),
        ("en-gb=a", "de", None),
        ("en-us=b", "en-gb", "b"),
        ("fr=b", "en", None),
        ("", "en", None),
    ],
)
def test_label(labels: str, language: str, expected: str | None) -> None:
    assert ref.label(dict(pair.split("=") for pair in labels.split()), language) == expected


@pytest.mark.parametrize(
    ("sentence", "text", "expected"),
    [
        ("She was born in Paris.", "Paris", True),
        ("Parisians eat.", "Paris", False),
        ("The comParis", "Paris", False),
        ("PARIS is big", "Paris", True),
        ("Parisian or Paris?", "Paris", True),
        ("Paris2 is not", "Paris", False),
        ("Paris_ is not", "Paris", False),
        ("Paris-based", "Paris", True),
        ("He uses C++20.", "C++", True),
        ("He uses C++.", "C++", True),
        ("ABC++", "C++", False),
        ("say!Hello", "!Hello", True),
        ("Cafe\u0301 here", "Café", True),
        ("Große Straße", "STRASSE", True),
        ("東京都庁", "東京", False),
        ("Paris", "Paris", True),
        ("", "Paris", False),
        ("Paris", "", False),
        ("New  York", "New York", False),
    ],
)
def test_holds(sentence: str, text: str, expected: bool) -> None:
    assert ref.holds(sentence, text) is expected


def test_evidence_is_the_first_sentence() -> None:
    text = [["In Parisian.", "Yes."], ["To Paris.", "From paris."]]
    assert ref.evidence(text, "Paris") == "To Paris."
    assert ref.evidence(text, "Rome") is None
    assert ref.evidence(None, "Paris") is None


@pytest.mark.parametrize(
    ("subject", "item", "expected"),
    [
        ("Ada", "London", True),
        ("London Bridge", "london", False),
        ("York", "New YORK", False),
        ("Ada", "one two three four five", True),
        ("Ada", "one two three four five six", False),
        ("Ada", "Adam", False),
    ],
)
def test_passes_filters(subject: str, item: str, expected: bool) -> None:
    assert ref.passes_filters(subject, item) is expected


def test_subject_pages() -> None:
    prev = ref.RefWikidata(sitelinks={"Q1": "P1", "Q2": "P2", "Q3": "P3", "Q4": "P4", "Q5": "nowhere"})
    prev_pages = by_id(ref_page(1, 1, ""), ref_page(2, 1, ""), ref_page(3, 1, ""), ref_page(4, 1, "", ns=2))
    recent_pages = by_id(ref_page(1, 1, ""), ref_page(2, 1, "", redirect=True))
    assert ref.subject_pages(prev, prev_pages) == {"Q1": 1, "Q2": 2, "Q3": 3}
    assert ref.deleted_subject_pages(prev, prev_pages, recent_pages) == {"Q2": 2, "Q3": 3}


def test_align_and_filter() -> None:
    labels = {
        "Q1": "Ada",
        "Q2": "Paris",
        "Q3": "Rome",
        "Q4": "Lisbon",
        "Q5": None,
        "Q6": "Adam",
        "Q7": "Bea",
        "P1": "home",
    }
    categories = ref.RefCategories(
        changed={
            ("Q1", "P1", "Q3"): ("new_object", ("Q2",)),
            ("Q1", "P1", "Q2"): ("new_object", ("Q4",)),
            ("Q1", "P1", "Q4"): ("new_object", ("Q2",)),  # only in the full text
            ("Q1", "P1", "Q5"): ("new_object", ("Q2",)),  # no label
            ("Q1", "P1", "Q6"): ("new_object", ("Q2",)),  # holds the subject's label
            ("Q1", "P9", "Q2"): ("new_relation", ()),  # the relation has no label
            ("Q7", "P1", "Q2"): ("new_subject", ()),  # its page is not in the diffset
            ("Q8", "P1", "Q2"): ("new_subject", ()),  # no page
        },
        unchanged={("Q1", "P1", "Q4"), ("Q1", "P1", "Q2"), ("Q7", "P1", "Q2")},
        deleted={
            ("Q1", "P1", "Q2"): "replaced",
            ("Q9", "P1", "Q3"): "removed",
            ("Q7", "P1", "Q3"): "ended",
        },
    )
    labels["Q9"] = "Cid"
    result = ref.align_and_filter(
        categories,
        labels,
        pages={"Q1": 1, "Q7": 7},
        deleted_pages={"Q7": 70, "Q9": 90},
        diffset_texts={1: [["She left.", "Rome it was, with Adam."], ["rome or PARIS."]]},
        recent_texts={1: [["Rome it was, with Adam.", "Lisbon."]], 7: [["In Paris."]]},
        deletion_texts={1: [["Ah, Paris."]], 90: [["To Rome."]], 70: [["To Rome."]]},
    )
    assert result == ref.RefCandidates(
        changed=[
            ref.RefProbe(("Q1", "P1", "Q2"), "new_object", ("Ada", "home", "Paris"), ("Q4",), 1, "rome or PARIS."),
            ref.RefProbe(
                ("Q1", "P1", "Q3"),
                "new_object",
                ("Ada", "home", "Rome"),
                ("Q2",),
                1,
                "Rome it was, with Adam.",
            ),
        ],
        unchanged=[
            ref.RefProbe(("Q1", "P1", "Q4"), "unchanged", ("Ada", "home", "Lisbon"), (), 1, "Lisbon."),
            ref.RefProbe(("Q7", "P1", "Q2"), "unchanged", ("Bea", "home", "Paris"), (), 7, "In Paris."),
        ],
        deleted=[
            ref.RefProbe(("Q1", "P1", "Q2"), "replaced", ("Ada", "home", "Paris"), (), 1, "Ah, Paris."),
            ref.RefProbe(("Q9", "P1", "Q3"), "removed", ("Cid", "home", "Rome"), (), 90, "To Rome."),
        ],
        aligned={"changed": 3, "unchanged": 2, "deleted": 2},
    )


def rows(total: int, name: Callable[[int], tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    return [name(number) for number in range(total)]


@pytest.mark.parametrize(
    ("total", "subjects", "relations", "objects", "broken"),
    [
        # `total` rows over so many subjects, relations and objects, as evenly as can be.
        (0, 1, 1, 1, None),
        (1, 1, 1, 1, None),
        (2, 2, 2, 2, None),
        (2, 1, 2, 2, "subject"),
        (39, 39, 39, 39, None),
        (39, 39, 38, 39, "relation"),
        (40, 40, 20, 20, None),
        (40, 39, 20, 20, "subject"),
        (40, 40, 20, 19, "object"),
        (199, 198, 50, 50, "subject"),
        (200, 100, 20, 20, None),
        (200, 100, 19, 20, "relation"),
        (2900, 100, 20, 20, None),
        (2900, 99, 20, 20, "subject"),
    ],
)
def test_check_caps(total: int, subjects: int, relations: int, objects: int, broken: str | None) -> None:
    table = rows(total, lambda n: (f"s{n % subjects}", f"r{n % relations}", f"o{n % objects}"))
    if broken is None:
        ref.check_caps(table)
    else:
        with pytest.raises(AssertionError, match=broken):
            ref.check_caps(table)
