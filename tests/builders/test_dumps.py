"""Dumps written from pages and items of any source: what a build reads from them, and what the writer refuses."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.builders.build import BuildOptions, build, find_sources
from temporalwiki.builders.dumps import Item, Page, Statement, stable_number, wikitext, write_dumps
from temporalwiki.builders.machine import Machine
from temporalwiki.builders.parquet import read_rows
from temporalwiki.builders.snapshot import Interval
from temporalwiki.builders.wikipedia.plain_text import paragraphs
from temporalwiki.model_cards.folder_card import folder_card

from a_folder import contents

PROPERTIES = {"P6": "head of government", "P36": "capital"}
ANN, BO = Item("Q7", {"en": "Ann Lee"}), Item("Q900000000000001", {"en": "Bo Kim"}, aliases={"en": ["B. Kim"]})
EASTON = Item("Q8", {"en": "Easton"})


def nation(head: Item, start: str) -> Item:
    statements = [Statement("P6", head.id, start), Statement("P36", "Q8")]
    return Item("Q1", {"en": "Norland"}, statements, {"enwiki": "Norland"})


def page(head: str) -> Page:
    return Page(5, "Norland", f"Capital of Norland: Easton.\n\nHead of government of Norland: {head}.")


def write(dumps: Path) -> None:
    write_dumps(dumps, "20240101", [page("Ann Lee")], [nation(ANN, "2019-00-00"), ANN, EASTON], PROPERTIES)
    write_dumps(dumps, "20240201", [page("Bo Kim")], [nation(BO, "2024-01-15"), ANN, BO, EASTON], PROPERTIES)


def test_a_build_reads_what_was_written(tmp_path: Path) -> None:
    write(tmp_path / "dumps")
    interval, out = Interval("enwiki", "20240101", "20240201"), tmp_path / "out"
    sources = find_sources(tmp_path / "dumps", interval)
    build(sources, out, tmp_path / "work", BuildOptions(unchanged_fraction=1.0), Machine(jobs=1), folder_card)

    def rows(config: str, split: str) -> list[dict[str, object]]:
        return list(read_rows(sorted((out / "data" / f"{config}-20240101-20240201").glob(f"{split}-*.parquet"))))

    assert [row["text"] for row in rows("diffset", "train")] == ["Head of government of Norland: Bo Kim."]
    [changed] = rows("facts", "changed")
    assert (changed["relation"], changed["object"], changed["previous_objects"]) == (
        "head of government", "Bo Kim", ["Ann Lee"],
    )  # fmt: skip
    assert (changed["object_id"], changed["support"], changed["strict"]) == ("Q900000000000001", "stated", True)
    assert (changed["aliases"], str(changed["start_time"])[:10]) == (["B. Kim"], "2024-01-15")
    assert [(row["relation"], row["object"]) for row in rows("facts", "unchanged")] == [("capital", "Easton")]


def test_equal_arguments_give_equal_bytes_and_the_order_of_pages_does_not_matter(tmp_path: Path) -> None:
    pages = [Page(number, f"Page {number}", "Text.") for number in (3, 1, 2)]
    write_dumps(tmp_path / "a", "20240101", pages, [ANN], {})
    write_dumps(tmp_path / "b", "20240101", reversed(pages), [ANN], {})
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    assert [one.revision for one in pages] == [0, 0, 0], "the caller's pages are changed"


def test_later_dumps_have_higher_revisions_unless_the_source_has_its_own(tmp_path: Path) -> None:
    from temporalwiki.builders.dumps import entities, page_xml

    write(tmp_path)
    own = replace(page("Ann Lee"), revision=12, timestamp="2023-05-01T00:00:00Z")
    assert "<id>12</id>" in page_xml(own)
    assert '"lastrevid":9' in next(entities([replace(ANN, revision=9)], {}))


# what is wrong -> pages, items, properties, and what the error names
WRONG = {
    "no pages": ([], [ANN], {}, "0 and 1"),
    "no items": ([page("x")], [], {}, "1 and 0"),
    "two pages with one id": ([page("x"), replace(page("x"), title="Other")], [ANN], {}, "page 5 ('Other')"),
    "two pages with one title": ([page("x"), replace(page("x"), id=6)], [ANN], {}, "page 6 ('Norland')"),
    "an id below 1": ([replace(page("x"), id=0)], [ANN], {}, "page 0"),
    "no title": ([replace(page("x"), title=" ")], [ANN], {}, "page 5"),
    "a character that XML lacks": ([page("\x0b")], [ANN], {}, "U+000B"),
    "a lone surrogate": ([page("\ud800")], [ANN], {}, "U+D800"),
    "a timestamp without a time": ([replace(page("x"), timestamp="2024-01-01")], [ANN], {}, "'2024-01-01'"),
    "not an item": ([page("x")], [replace(ANN, id="../Q7")], {}, "'../Q7'"),
    "an item twice": ([page("x")], [ANN, ANN], {}, "Q7: there are 2"),
    "not a property": ([page("x")], [ANN], {"Q6": "x"}, "'Q6'"),
    "a relation without a label": ([page("x")], [nation(ANN, "2019-00-00"), ANN, EASTON], {"P36": "x"}, "P6 has no"),
    "an object without an item": ([page("x")], [nation(ANN, "2019-00-00"), EASTON], PROPERTIES, "no item Q7"),
    "not a day": ([page("x")], [nation(ANN, "May 2019"), ANN, EASTON], PROPERTIES, "May 2019"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_no_build_could_use_is_refused_before_anything_is_written(case: str, tmp_path: Path) -> None:
    pages, items, properties, named = WRONG[case]
    with pytest.raises(InputError, match=re.escape(named)):
        write_dumps(tmp_path, "20240101", pages, items, properties)
    assert not contents(tmp_path)


@pytest.mark.parametrize(
    "wrong",
    [{"date": "2024-01-01"}, {"date": "20240231"}, {"wikidata_date": "../../x"}, {"wiki": "../x"}, {"wiki": "en"}],
)
def test_a_date_or_wiki_that_is_none_is_wrong_usage(wrong: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        write_dumps(tmp_path, **{"date": "20240101"} | wrong, pages=[page("x")], items=[ANN], properties={})
    assert not contents(tmp_path)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Salt & pepper <b>", "Salt & pepper <b>"),
        ("[[Link|x]] {{t|a}}", "((Link/x)) ((t/a))"),
        ("''Bold'' ___TOC__ ~~~~", '"Bold" _TOC_ ----'),
        ("* item", "item"),
        ("== Heading ==", "Heading =="),
        ("<ref>gone?</ref>", "<ref>gone?</ref>"),
        ("<!-- hidden -->", "<!-- hidden -->"),
    ],
)
def test_plain_text_stays_plain(text: str, shown: str) -> None:
    assert paragraphs(wikitext(text)) == [shown]


@given(st.text(alphabet="[]{}|'<>&=*#:;!-_~ ab\n/", max_size=40).map(lambda text: " ".join(text.split())))
def test_no_markup_comes_from_a_source(text: str) -> None:
    escaped = wikitext(text)
    assert not set(escaped) & set("[]{}|~<>")
    assert "''" not in escaped and "__" not in escaped and escaped[:1] not in tuple("*#:;= !-/_")


def test_a_stable_number_is_an_id() -> None:
    assert stable_number("person ann lee") == stable_number("person ann lee") != stable_number("person bo kim")
    assert all(0 < stable_number(str(number)) < 10**15 for number in range(1000))
