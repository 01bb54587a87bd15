"""Wikitext that stops careless parsers: every function of text ends, and every page is kept or counted."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from temporalwiki.builders.build import BuildOptions, build, find_sources
from temporalwiki.builders.ckl import salient_spans
from temporalwiki.builders.machine import Machine
from temporalwiki.builders.parquet import read_rows
from temporalwiki.builders.snapshot import Interval
from temporalwiki.builders.wikidata.align import says
from temporalwiki.builders.wikipedia.sentences import split_sentences
from temporalwiki.builders.wikipedia.xml_dump import DumpCounts, read_header, read_pages
from temporalwiki.eval_harness.answers import answer, ended
from temporalwiki.eval_harness.metrics.knowledge_match import exact_match, f1
from temporalwiki.push_scripts.dataset_repository import maintainers_settings

from tiny_dumps import (
    FOOTER,
    articles_file,
    header,
    item,
    multistream,
    page,
    revision,
    wikidata_file,
    write_bz2,
    write_wikidata,
)

INTERVAL = Interval("enwiki", "20211101", "20211201")
MANY = 5_000
NESTED: dict[str, str] = {
    "templates never closed": "{{a|b=c " * 4_000,
    "templates never closed, more of them": "{{a|b=c " * 20_000,
    "templates that are closed": "{{a|" * MANY + "x" + "}}" * MANY,
    "links": "[[a|" * MANY + "x" + "]]" * MANY,
    "links never closed": "[[" * MANY,
    "tables": "{|\n|\n" * MANY + "x" + "\n|}" * MANY,
    "tables never closed": "{|\n" * MANY,
    "tags": "<div><sup>" * MANY + "x" + "</sup></div>" * MANY,
    "lists": "*" * MANY + " x",
    "parameters": "{{{a|" * MANY + "}}}" * MANY,
    "everything": "{{[[{|<ref>''" * 5_000,
}
BROKEN: dict[str, str] = {
    "references never closed": "<ref>" * MANY,
    "a reference with half a tag": "<ref name=" * MANY,
    "references that close twice": "a<ref>b</ref></ref>" * 10_000,
    "quotes": "''''" * MANY,
    "quotes and words": "'''a ''b " * MANY,
    "comments never closed": "<!-- " * MANY,
    "nowiki never closed": "<nowiki>" * MANY + "{{a",
    "links in links": "[[File:a.jpg|thumb|[[b|[[c]]]] d]] " * 10_000,
    "external links never closed": "[http://a b " * MANY,
    "entities": "&#x110000;&#0;&lt" * MANY,
    "headings": "=" * MANY + "\n" + "== a ==\n" * 10_000,
    "magic words": "__A_" * MANY,
}
LARGE: dict[str, str] = {
    "over 2 MB of prose": "The town of Easton has a mayor. " * 70_000,
    "over 1 M characters in one sentence": "and " * 260_000,
    "over 1 M characters without a space": "a" * 1_100_000,
    "many lines": "* a\n" * 100_000,
    "accents on one letter": "a" + "\u0301" * 100_000,
    "opening quotes": "“" * 100_000,
    "spaces": "a" + " " * 200_000 + "b",
    "line ends": "a" + "\n" * 200_000 + "b",
}
PAGES = NESTED | BROKEN | LARGE
# Dropped pages, and pages where an element takes in all the text after it, as in MediaWiki.
TOO_DEEP = {"templates that are closed", "links", "parameters"}
OPEN_TO_THE_END = {"tables never closed", "comments never closed"}


def run(dumps: Path, out: Path) -> dict[str, Any]:
    return build(find_sources(dumps, INTERVAL), out, out.with_name("work"), BuildOptions(), Machine(jobs=1))


def rows(out: Path, config: str) -> list[dict[str, Any]]:
    return list(read_rows(sorted((out / "data" / config).glob("*.parquet"))))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    """A build with a new article, an edited one and a repaired one for each text."""
    dumps = tmp_path_factory.mktemp("wikitext") / "dumps"
    texts = list(PAGES.values())
    prev = [page(1, "Plain", "It is plain.", revision_id=1)]
    recent = [page(1, "Plain", "It is plain. It is new.", revision_id=2)]
    for i, text in enumerate(texts):
        new, edited, healed = 100 + i, 200 + i, 300 + i
        prev += [page(edited, f"Edited {i}", text, revision_id=10), page(healed, f"Healed {i}", text, revision_id=10)]
        recent += [
            page(new, f"New {i}", f"{text}\n\nThe end is new.", revision_id=11),
            page(edited, f"Edited {i}", f"{text}\n\nThe end was edited.", revision_id=11, parent=10),
            page(healed, f"Healed {i}", "It is plain now.", revision_id=11, parent=10),
        ]
    for date, pages in (("20211101", prev), ("20211201", recent)):
        pages.sort(key=lambda text: int(text.partition("<id>")[2].partition("<")[0]))
        multistream(articles_file(dumps, date), pages)
        write_wikidata(wikidata_file(dumps, date), [item(1, label="Plain", title="Plain"), item(2, label=date)])
    out = dumps.with_name("out")
    return run(dumps, out), out


def mark(row: str, cases: dict[str, str], happens: str) -> list[Any]:
    done = "an article that is new, was edited or is repaired, in a build"
    return [pytest.param(case, marks=pytest.mark.fault(row, done, happens)) for case in cases]


@pytest.mark.parametrize(
    "case",
    [
        *mark(
            "nested wikitext", NESTED, "its text is read, or it is dropped by reason; all other articles are unchanged"
        ),
        *mark(
            "broken wikitext", BROKEN, "its text is read, or it is dropped by reason; all other articles are unchanged"
        ),
        *mark("large page", LARGE, "its text is read, or it is dropped by reason; all other articles are unchanged"),
    ],
)
def test_every_page_of_a_build_is_kept_or_counted(case: str, built: tuple[dict[str, Any], Path]) -> None:
    manifest, out = built
    pages = manifest.content["counts"]["pages"]
    assert pages["read"] == 1 + 3 * len(PAGES)
    assert pages["read"] == pages["unchanged"] + pages["new"] + pages["updated"] + sum(pages["dropped"].values())
    i = list(PAGES).index(case)
    diffset = {row["id"]: row["text"] for row in rows(out, f"diffset-{INTERVAL.name}")}
    assert diffset[1] == "It is new."
    ends = {100 + i: "The end is new.", 200 + i: "The end was edited.", 300 + i: "It is plain now."}
    if case in TOO_DEEP:
        ends = {}
    elif case in OPEN_TO_THE_END:
        del ends[100 + i], ends[200 + i]
    found = {page_id: diffset[page_id] for page_id in (100 + i, 200 + i, 300 + i) if page_id in diffset}
    assert found.keys() == ends.keys()
    assert all(found[page_id].endswith(end) for page_id, end in ends.items())


def test_dropped_pages_are_counted_by_reason(built: tuple[dict[str, Any], Path]) -> None:
    """Pages that are not read are counted under a reason."""
    manifest, out = built
    pages = manifest.content["counts"]["pages"]
    deep, swallowed = len(TOO_DEEP), len(OPEN_TO_THE_END)
    assert pages["dropped"] == {
        "nested_too_deep": 2 * deep, "nested_too_deep_in_prev": deep, "no_prose": swallowed,
    }  # fmt: skip
    assert (pages["new"], pages["unchanged"]) == (len(PAGES) - deep - swallowed, swallowed)
    assert len(rows(out, f"diffset-{INTERVAL.name}")) == pages["new"] + pages["updated"]


# Other functions of text; one that takes quadratic time would not end within a test run

TEXTS = {**PAGES, "names": "Dr. A. " * 50_000, "sentinels": "<extra_id_0>" * 10_000, "initials": "A. " * 100_000}


def sentences(text: str) -> None:
    split = split_sentences(text, "en")
    assert "".join("".join(split).split()) == "".join(text.split())  # nothing but white space is lost


WAYS: dict[str, Callable[[str], object]] = {
    "sentence split": sentences,
    "salient spans": lambda text: salient_spans.Rules()(text[:200_000]),
    "an answer's end": lambda text: (answer(text), ended(text)),
    "exact match and F1": lambda text: (exact_match(text[:100_000], [text[:100_000]]), f1(text[:50_000], ["a b"])),
    "the search for a label": lambda text: (says(text, text[: len(text) // 2]), says(text, text[:250])),
    "a published card's header": lambda text: maintainers_settings(f"---\n{text}".encode(), lambda _name: False),
}


@pytest.mark.fault(
    "broken wikitext",
    "nested, broken and large texts through the sentence split, salient spans, answers, scores, alignment, cards",
    "each ends, in time that grows with the text",
)
@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_text_ends(way: str) -> None:
    for text in TEXTS.values():
        WAYS[way](text)


@pytest.mark.parametrize("between", [" ", "\n", "\t\n", ": ", "a", "#a "])
def test_what_is_nearly_a_redirect_in_a_history_is_an_article(between: str, tmp_path: Path) -> None:
    """In a history that is cut at a date, only the text shows whether the page was a redirect then."""
    old = revision("#REDIRECT" + between * 300_000, 1, at="2021-10-01T00:00:00Z")
    new = revision("x", 2, at="2021-12-02T00:00:00Z")
    dump = write_bz2(tmp_path / "d.xml.bz2", header(), page(1, "T", revisions=[old, new]), FOOTER)
    found = list(read_pages(dump, read_header(dump), DumpCounts(), at="20211201"))
    assert [(one.redirect, one.revision_id) for one in found] == [(False, 1)]
