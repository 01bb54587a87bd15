"""Algorithm 2: by hand, against the slow reference, and the stage over two dumps."""

import bz2
import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from temporalwiki.base.errors import InputError
from temporalwiki.builders.parquet import ParquetWriter, read_rows
from temporalwiki.builders.snapshot import Dump
from temporalwiki.builders.stages import Report
from temporalwiki.builders.wikidata import buckets, extract, fact_diff, labels, tables
from temporalwiki.builders.wikipedia import extract as wiki_extract
from temporalwiki.builders.wikipedia.page_props import PAGE_ITEMS

import reference
from a_stage import run_tasks
from tiny_dumps import (
    articles_file,
    item,
    multistream,
    page,
    property_,
    statement,
    time,
    value,
    wikidata_file,
    write_wikidata,
)

PREV, RECENT, RECENT_TEXT = 20211101, 20211129, 20211201


def run_dumps(
    tmp_path: Path,
    prev: Path,
    recent: Path,
    fraction: float = 1.0,
    pages: dict[int, str] | None = None,
    pages_before: dict[int, str] | None = None,
    recent_date: int = RECENT,
    seed: int = 0,
    allow_truncated: bool = False,
) -> tuple[list[dict[str, Any]], Report]:
    """Candidates and report of two Wikidata dumps; without ``pages`` every item of them has the page of its number."""
    for side, path in (("prev", prev), ("recent", recent)):
        run_tasks(extract.run, extract.plan(Dump("x", (path,)), "enwiki", "en", allow_truncated), tmp_path / side)
    if pages is None:
        written = [file for side in ("prev", "recent") for file in tables.files(tmp_path / side, "entities")]
        items = {row["s"] for row in read_rows(written)}
        pages = pages_before = {number: f"A{number}" for number in items}
        with ParquetWriter(tmp_path / "page_items.parquet", PAGE_ITEMS) as out:
            out.write_table(pa.table([sorted(items)] * 2, schema=PAGE_ITEMS))
    for side, of_side in (("prev", pages_before), ("recent", pages)):
        texts = [page(i, t, "text") for i, t in sorted((of_side or {}).items())]
        articles = multistream(articles_file(tmp_path / side, "20211101"), texts)
        tasks = wiki_extract.plan(Dump("x", (articles,)), "enwiki", False)
        run_tasks(wiki_extract.run, tasks, tmp_path / f"{side}_articles")
    task = task_of(tmp_path, fraction, recent_date, seed)
    run_tasks(labels.run, labels.plan([task]), tmp_path / "labels")
    report = fact_diff.run(task, tmp_path / "diff")
    return list(read_rows([tmp_path / "diff" / "candidates-00000.parquet"])), report


def task_of(tmp_path: Path, fraction: float, recent_date: int = RECENT, seed: int = 0) -> fact_diff.FactDiffTask:
    """The one task over the extracts that run_dumps leaves."""
    folders = {name: str(tmp_path / name) for name in ("prev", "recent", "labels", "prev_articles", "recent_articles")}
    page_items = str(path) if (path := tmp_path / "page_items.parquet").exists() else None
    dates = {"prev_date": PREV, "recent_date": recent_date, "prev_text": PREV, "recent_text": RECENT_TEXT}
    drawn = {"unchanged_fraction": fraction, "seed": seed}
    [task] = fact_diff.plan(0, **folders, **dates, **drawn, page_items=page_items)
    return task


def run(tmp_path: Path, prev: list[Any], recent: list[Any], **options: Any) -> tuple[list[dict[str, Any]], Report]:
    dumps = (("20211101", prev), ("20211129", recent))
    return run_dumps(tmp_path, *(write_wikidata(wikidata_file(tmp_path, date), of) for date, of in dumps), **options)


@pytest.mark.parametrize(
    ("facts", "tasks"), [(0, 1), (1, 1), (4_000_000, 1), (4_000_001, 2), (256_000_000, 64), (700_000_000, 64)]
)
def test_tasks_have_so_many_facts_and_every_bucket_once(facts: int, tasks: int) -> None:
    names = ("prev", "recent", "labels", "prev_articles", "recent_articles", "page_items")
    dates = {"prev_date": PREV, "recent_date": RECENT, "prev_text": PREV, "recent_text": RECENT_TEXT}
    planned = fact_diff.plan(facts, **dict.fromkeys(names, "x"), **dates, unchanged_fraction=0.0, seed=0)
    assert len(planned) == fact_diff.count_tasks(facts) == tasks
    assert [bucket for task in planned for bucket in range(task.first, task.end)] == list(range(tables.BUCKETS))


SPLITS = {"unchanged": "unchanged"} | dict.fromkeys(("replaced", "ended", "removed"), "deleted")


def kinds(rows: list[dict[str, Any]]) -> dict[tuple[int, int, int], str]:
    """The kind of every fact; each kind belongs to one split."""
    assert all(row["split"] == SPLITS.get(row["kind"], "changed") for row in rows)
    return {(row["s"], row["p"], row["o"]): row["kind"] for row in rows}


def S(object: int, rank: str = "normal", **more: Any) -> dict[str, Any]:
    return statement(value(object), rank, **more)


Cases = dict[str, tuple[list[Any], list[Any], Any]]


def run_cases(tmp_path: Path, cases: Cases, others: Sequence[Any] = ()) -> dict[str, list[dict[str, Any]]]:
    """The rows of every case of one diff: case n is item 100 + n, with other statements of P54 before and after."""
    prev, recent = (
        [item(number, {"P54": case[side]} if case[side] else None) for number, case in enumerate(cases.values(), 100)]
        for side in (0, 1)
    )
    rows, _ = run(tmp_path, [*prev, *others], [*recent, *others])
    return {case: [row for row in rows if row["s"] == number] for number, case in enumerate(cases, 100)}


P = "preferred"
UNKNOWN = {"P582": [{"snaktype": "somevalue"}]}
ENDED = {"P582": [time("+2021-11-15T00:00:00Z")]}
ON_THE_DAY = {"P582": [time("+2021-11-29T00:00:00Z")]}  # of recent's dump
LATER = {"P582": [time("+2024-11-15T00:00:00Z")]}
CASES: Cases = {
    "the same": ([S(5)], [S(5)], {5: "unchanged"}),
    "a new object": ([S(5)], [S(6)], {5: "replaced", 6: "new_object"}),
    "a second object": ([S(5)], [S(5), S(6)], {5: "unchanged", 6: "new_object"}),
    "a new relation": ([], [S(6)], {6: "new_relation"}),
    "a removed fact": ([S(5)], [], {5: "removed"}),
    "ended, still of best rank": ([S(5)], [S(5, **ENDED)], {5: "ended"}),
    "an end that is to come": ([S(5)], [S(5, **LATER)], {5: "unchanged"}),
    "an end that was there before": ([S(5, **ENDED)], [S(5, **ENDED)], {5: "unchanged"}),
    "an end on the day of the dump": ([S(5)], [S(5, **ON_THE_DAY)], {5: "ended"}),
    "an end on the day of the dump, there before": ([S(5, **ON_THE_DAY)], [S(5, **ON_THE_DAY)], {5: "unchanged"}),
    "an end of unknown date": ([S(5)], [S(5, **UNKNOWN)], {5: "ended"}),
    "ended and replaced": ([S(5)], [S(5, **ENDED), S(6)], {5: "replaced", 6: "new_object"}),
    "ended, and the added object also": ([S(5)], [S(5, **ENDED), S(6, **ENDED)], {5: "ended", 6: "new_object"}),
    "one of two statements of a fact ended": ([S(5)], [S(5, **ENDED), S(5)], {5: "unchanged"}),
    "a rank raised without a change": ([S(5)], [S(5, "preferred")], {5: "unchanged"}),
    "deprecated": ([S(5)], [S(5, "deprecated")], {5: "removed"}),
    "open in another rank": ([S(5, "preferred")], [S(5, "preferred", **ENDED), S(5)], {5: "unchanged"}),
    "open only in another rank before": ([S(5, P, **ENDED), S(5)], [S(5, P, **ENDED)], {5: "unchanged"}),
    "the open one of two statements ended": ([S(5, **ENDED), S(5)], [S(5, **ENDED)] * 2, {5: "ended"}),
    "ended early": ([S(5, **LATER)], [S(5, **ENDED)], {5: "ended"}),
    "no end": ([S(5)], [S(5, P582=[{"snaktype": "novalue"}])], {5: "unchanged"}),
    "another is preferred, and the first ended": ([S(5)], [S(5, **ENDED), S(6, P)], {5: "replaced", 6: "new_object"}),
    "replaced by one that is over": ([S(5)], [S(6, **ENDED)], {5: "removed", 6: "new_object"}),
    "the other object was there before": ([S(5), S(6)], [S(6)], {5: "removed", 6: "unchanged"}),
    "demoted for an old one": ([S(5), S(6)], [S(5), S(6, "preferred")], {5: "removed", 6: "unchanged"}),
    "never a fact": ([S(5), S(6, "preferred")], [S(6)], {6: "unchanged"}),
    "a fact only now": ([S(5), S(6, "preferred")], [S(5)], {5: "new_object", 6: "replaced"}),
    "the preferred one of two": ([S(5, P), S(6)], [S(5), S(6, P)], {5: "replaced", 6: "new_object"}),
    "only a qualifier changed": ([S(5, P642=[value(8)])], [S(5, P642=[value(9)])], {5: "unchanged"}),
}


@pytest.mark.fault(
    "ranks that flip",
    "the preferred one of two statements changes",
    "the new best fact is changed, with the earlier object; the earlier fact is deleted",
)
def test_algorithm_2(tmp_path: Path) -> None:
    found = run_cases(tmp_path, CASES, [item(5, label="E")])
    assert [row["previous_objects"] for row in found["the preferred one of two"] if row["o"] == 6] == [["E"]]
    assert {case: {fact[2]: kind for fact, kind in kinds(rows).items()} for case, rows in found.items()} == {
        case: expected for case, (_, _, expected) in CASES.items()
    }


BEGUN = {"P580": [time("+2021-11-20T00:00:00Z")]}
TO_BEGIN = {"P580": [time("+2022-01-00T00:00:00Z", 10)]}
LONG_OVER = {"P582": [time("+2010-00-00T00:00:00Z", 9)]}
# Statements before and after. Of each new fact: its object, whether it holds, all objects that hold, those that are
# gone.
HOLDS: Cases = {
    "replaced": ([S(5)], [S(6, **BEGUN)], [(6, True, ["F"], ["E"])]),
    "the old one ended": ([S(5)], [S(5, **ENDED), S(6)], [(6, True, ["F"], ["E"])]),
    "one more": ([S(5)], [S(5), S(6)], [(6, True, ["E", "F"], [])]),
    "one of two replaced": ([S(5), S(7)], [S(7), S(6)], [(6, True, ["F", "G"], ["E"])]),
    "added when it was over": ([S(5)], [S(5), S(6, **ENDED)], [(6, False, ["E"], [])]),
    "added before it begins": ([S(5)], [S(5), S(6, **TO_BEGIN)], [(6, False, ["E"], [])]),
    "an end to come": ([S(5)], [S(6, **LATER)], [(6, True, ["F"], ["E"])]),
    "over before, so not gone now": ([S(5, **LONG_OVER)], [S(6)], [(6, True, ["F"], [])]),
    "an end within the interval, known before": ([S(5, **ENDED)], [S(5, **ENDED), S(6)], [(6, True, ["F"], ["E"])]),
    "another is preferred, but the first still holds": ([S(5)], [S(5), S(6, "preferred")], [(6, True, ["F"], [])]),
    "a second term": ([S(5)], [S(6, **ENDED), S(6, **BEGUN)], [(6, True, ["F"], ["E"])]),
    "an object without a label": ([S(8)], [S(6), S(9)], [(o, True, ["F", "Q9"], ["Q8"]) for o in (6, 9)]),
    "an item that recent does not have": ([S(3)], [S(6)], [(6, True, ["F"], [])]),
    "an end long ago, written down late": ([S(5)], [S(5, **LONG_OVER), S(6)], [(6, True, ["F"], [])]),
    "an end of unknown date": ([S(5)], [S(5, **UNKNOWN), S(6)], [(6, True, ["F"], ["E"])]),
    **{
        f"an end {when}, written down late": ([S(5)], [S(5, P582=[end]), S(6)], [(6, True, ["F"], gone)])
        for when, end, gone in (
            ("on the day before prev", time("+2021-10-31T00:00:00Z"), []),
            ("in the month before prev", time("+2021-10-00T00:00:00Z", 10), []),
            ("in the month of prev", time("+2021-11-00T00:00:00Z", 10), ["E"]),
            ("in the year before prev", time("+2020-00-00T00:00:00Z", 9), []),
            ("in the year of prev", time("+2021-00-00T00:00:00Z", 9), ["E"]),
        )
    },
    "a start in this year": ([S(5)], [S(6, P580=[time("+2021-12-31T00:00:00Z", 9)])], [(6, True, ["F"], ["E"])]),
}


def test_what_holds_and_what_is_gone(tmp_path: Path) -> None:
    labels = [item(5, label="E"), item(6, label="F"), item(7, label="G"), item(8), item(9)]
    found = run_cases(tmp_path, HOLDS, labels)
    columns = ("o", "current", "objects", "gone_objects")
    assert {
        case: [tuple(row[name] for name in columns) for row in rows if row["split"] == "changed"]
        for case, rows in found.items()
    } == {case: expected for case, (_, _, expected) in HOLDS.items()}


# Statements before and after, and the last known end of the objects that are gone.
GONE_ENDS: Cases = {
    "ended": ([S(5)], [S(5, **ENDED), S(6)], "2021-11-15"),
    "ended in the year": ([S(5)], [S(5, P582=[time("+2021-00-00T00:00:00Z", 9)]), S(6)], "2021-01-01"),
    "removed": ([S(5)], [S(6)], None),
    "unknown": ([S(5)], [S(5, **UNKNOWN), S(6)], None),
    "nothing went": ([], [S(5, **ENDED), S(6)], None),
    "over before, so not gone now": ([S(5)], [S(5, **LONG_OVER), S(6)], None),
    "another one ended": ([S(5)], [S(5, P580=[time("+2022-03-00T00:00:00Z", 10)]), S(7, **ENDED), S(6)], None),
    "two terms": ([S(5)], [S(5, P582=[time("+2021-11-02T00:00:00Z")]), S(5, **ENDED), S(6)], "2021-11-15"),
    "two went": ([S(5), S(7)], [S(5, P582=[time("+2021-11-02T00:00:00Z")]), S(7, **ENDED), S(6)], "2021-11-15"),
}


def test_when_the_last_of_the_old_answers_ended(tmp_path: Path) -> None:
    labels = [item(5, label="E"), item(6, label="F"), item(7, label="G")]
    found = run_cases(tmp_path, GONE_ENDS, labels)
    assert {
        case: [row["gone_end"] and f"{row['gone_end']:%Y-%m-%d}" for row in rows if row["o"] == 6]
        for case, rows in found.items()
    } == {case: [expected] for case, (_, _, expected) in GONE_ENDS.items()}


def test_what_was_known_at_another_rank(tmp_path: Path) -> None:
    before = {"P54": [S(5, "preferred"), S(6)]}
    rows, _ = run(tmp_path, [item(1, before)], [item(1, {"P54": [S(6), S(7)]})])
    assert {row["o"]: row["known_before"] for row in rows} == {5: True, 6: True, 7: False}


DEAD = {20: True, 509: True, 1196: True, 119: True, 19: False, 551: False}  # relations of a subject


def test_who_is_dead(tmp_path: Path) -> None:
    """A place, cause or manner of death or a place of burial, of best rank, says it."""
    of = {number: {f"P{number}": [S(5)], "P54": [S(6)]} for number in DEAD}
    of[1] = {"P20": [S(5, "deprecated")], "P54": [S(6)]}
    rows, _ = run(tmp_path, [item(number) for number in of], [item(number, claims) for number, claims in of.items()])
    assert {row["s"]: row["dead"] for row in rows if row["p"] == 54} == DEAD | {1: False}


def test_times_are_those_of_the_statement_that_holds(tmp_path: Path) -> None:
    over, now = {**ENDED, "P580": [time("+2020-00-00T00:00:00Z", 9)]}, {**BEGUN, **LATER}
    recent = [item(1, {"P54": [S(6, id="a", **over), S(6, id="b", **now)]})]
    [row] = run(tmp_path, [item(1)], recent)[0]
    assert [f"{row[name]:%Y-%m-%d %Z}" for name in ("start_time", "end_time")] == ["2021-11-20 UTC", "2024-11-15 UTC"]
    assert row["statement_id"] == "b"


WITHIN, BEFORE = time("+2021-11-20T00:00:00Z"), time("+2019-05-01T00:00:00Z")
SOMETIME, NEXT_YEAR = {"snaktype": "somevalue"}, time("+2022-05-01T00:00:00Z")
# qualifiers of a new statement, and where they lie in the interval of the text, 2021-11-01 to 2021-12-01
DATES: dict[str, tuple[dict[str, list[Any]], str]] = {
    "none": ({}, "undated"),
    "a start within": ({"P580": [WITHIN]}, "within"),
    "a start on the first day": ({"P580": [time("+2021-11-01T00:00:00Z")]}, "within"),
    "a start on the last day, after Wikidata's dump": ({"P580": [time("+2021-12-01T00:00:00Z")]}, "within"),
    "an end within": ({"P580": [BEFORE], "P582": [WITHIN]}, "within"),
    "a point in time within": ({"P585": [WITHIN]}, "within"),
    "a start before": ({"P580": [BEFORE]}, "before"),
    "a start in the year": ({"P580": [time("+2021-00-00T00:00:00Z", 9)]}, "before"),
    "a start before, an end to come": ({"P580": [BEFORE], "P582": [NEXT_YEAR]}, "before"),
    "an end before": ({"P582": [BEFORE]}, "over"),
    "an end of unknown date": ({"P580": [BEFORE], "P582": [SOMETIME]}, "over"),
    "a point in time before": ({"P585": [BEFORE]}, "over"),
    "a start of unknown date": ({"P580": [SOMETIME]}, "undated"),
    "a start to come": ({"P580": [NEXT_YEAR]}, "undated"),
    "before our era": ({"P580": [time("-0044-03-15T00:00:00Z")]}, "before"),
}


def test_where_the_dates_of_a_fact_lie(tmp_path: Path) -> None:
    numbers = dict(enumerate(DATES, 1))
    recent = [item(number, {"P166": [S(100, **DATES[case][0])]}) for number, case in numbers.items()]
    rows, _ = run(tmp_path, [item(number) for number in numbers], recent)
    assert {numbers[row["s"]]: row["dated"] for row in rows} == {case: dated for case, (_, dated) in DATES.items()}
    [bc] = [row for row in rows if numbers[row["s"]] == "before our era"]
    assert bc["start_time"] is None


def test_aliases_are_those_of_all_right_objects(tmp_path: Path) -> None:
    named = [item(n, label=f"L{n}", aliases={"en": [{"value": f"A{n}"}, {"value": "A"}]}) for n in (5, 6, 7)]
    rows, _ = run(tmp_path, [item(1), *named], [item(1, {"P54": [S(5), S(6)], "P69": [S(7), S(8)]}), *named])
    assert {(row["p"], tuple(row["aliases"])) for row in rows} == {(54, ("A", "A5", "A6")), (69, ("A", "A7"))}


def test_without_properties_a_table_names_the_relations(tmp_path: Path) -> None:
    claims = {"P19": [S(5)], "P999999": [S(6)]}
    for properties, names in (([], ["place of birth", None]), ([property_(19, "born in")], ["born in", None])):
        folder = tmp_path / str(len(properties))
        folder.mkdir()
        rows, _ = run(folder, [item(1)], [item(1, claims), *properties])
        assert [row["relation"] for row in rows] == names


def test_previous_objects_are_all_that_the_relation_had_by_label(tmp_path: Path) -> None:
    prev = [item(1, {"P54": [S(5), S(6), S(7)]}), item(5, label="Zeta"), item(6, label="Alpha")]
    rows, _ = run(tmp_path, prev, [item(1, {"P54": [S(7), S(8)]}), item(5, label="Zeta (now)")])
    [new] = [row for row in rows if row["kind"] == "new_object"]
    assert new["previous_objects"] == ["Alpha", "Zeta"]  # as they were called then; Q7 has no label
    assert new["gone_objects"] == ["Zeta"]  # recent does not have Q6


def test_labels_are_recents_and_prevs_where_recent_lacks_the_entity(tmp_path: Path) -> None:
    prev = [item(1, label="Old"), item(5, label="Club"), property_(54, "member of team"), property_(6, "head")]
    claims = {"P54": [S(5)], "P6": [S(7)]}
    recent = [item(1, claims, label="New"), item(7), property_(54, "member of sports team")]
    rows, _ = run(tmp_path, prev, recent)
    found = {row["p"]: (row["subject"], row["relation"], row["object"]) for row in rows}
    assert found == {54: ("New", "member of sports team", "Club"), 6: ("New", "head", None)}


def test_the_subjects_page_is_that_of_its_sitelink(tmp_path: Path) -> None:
    claims = {"P54": [S(5)]}
    prev = [item(1, title="Old title"), item(4, claims, title="Gone")]
    recent = [item(1, claims, title="Ann"), item(2, claims, title="No such page"), item(3, claims)]
    rows, report = run(tmp_path, prev, recent, pages={10: "Ann"}, pages_before={10: "Old title", 11: "Gone"})
    assert {row["s"]: row["page_id"] for row in rows} == {1: 10, 4: 11}
    assert report["alignment"] == {"changed": {"candidates": 2, "not_aligned": {"subject_without_article": 2}}}
    # items are merged: where the article is still there, the fact is another item's by now, and not deleted
    same = {11: "Gone"}
    rows, report = run(tmp_path / "merged", prev[1:], [item(9)], pages=same, pages_before=same)
    assert (rows, report["facts"]["deleted"]) == ([], {"removed": 1})
    assert report["alignment"] == {"deleted": {"candidates": 1, "not_aligned": {"subject_without_article": 1}}}


def test_a_new_subject_and_an_entity_that_a_dump_holds_twice_which_counts_in_its_newest_revision(
    tmp_path: Path,
) -> None:
    newest = item(1, {"P54": [S(7)]}, lastrevid=30)
    recent = [item(1, {"P54": [S(6)]}, lastrevid=20), newest, item(1, {"P54": [S(5)]}, lastrevid=10)]
    rows, report = run(tmp_path, [item(1)], [*recent, item(2, {"P54": [S(5)]})])
    assert kinds(rows) == {(1, 54, 7): "new_relation", (2, 54, 5): "new_subject"}
    assert report["facts"]["changed"] == {"new_relation": 1, "new_subject": 1}
    assert report["facts"]["duplicate_entities"] == 1


def test_the_sample_of_unchanged_facts_is_seeded_and_nested(tmp_path: Path) -> None:
    entities = [item(s, {"P54": [S(5)]}) for s in range(1, 301)]

    def sample(name: str, **options: Any) -> set[int]:
        return {row["s"] for row in run(tmp_path / name, entities, entities[::-1], **options)[0]}

    all_of_them, third = sample("all"), sample("third", fraction=1 / 3)
    assert len(all_of_them) == 300
    assert 70 < len(third) < 130
    assert sample("tenth", fraction=0.1) < third < all_of_them
    assert sample("seed", fraction=1 / 3, seed=1) != third
    assert sample("none", fraction=0.0) == set()


Held = tuple[int, int, int, bool]
OBJECTS = st.integers(10, 14)
ENDS = st.sampled_from([None, "+2021-11-15T00:00:00Z", "+2030-01-01T00:00:00Z", "somevalue", "novalue"])
RANKS = st.sampled_from(["normal", "normal", "preferred", "deprecated"])


@st.composite
def statements(draw: st.DrawFn) -> dict[str, Any]:
    end = draw(ENDS)
    snak = {"snaktype": end} if end in ("somevalue", "novalue") else time(end) if end else None
    return statement(value(draw(OBJECTS)), draw(RANKS), **({"P582": [snak]} if snak else {}))


ENTITIES = st.lists(
    st.builds(
        lambda number, claims, revision, label: item(number, claims, label, f"T{number}", lastrevid=revision),
        st.integers(1, 4),
        st.dictionaries(st.sampled_from(["P1", "P2"]), st.lists(statements(), min_size=1, max_size=4), max_size=2),
        st.integers(0, 3),
        st.sampled_from([None, "A", "B"]),
    ),
    max_size=6,
)


@st.composite
def snapshots(draw: st.DrawFn) -> tuple[list[Any], list[Any]]:
    """Two snapshots: a revision of an item always has the same content; 0 stands for a missing revision."""
    revisions: dict[tuple[str, int], Any] = {}
    prev, recent = (
        [revisions.setdefault((e["id"], e["lastrevid"]), e) if e["lastrevid"] else e for e in draw(ENTITIES)]
        for _ in range(2)
    )
    return prev, recent


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    worlds=snapshots(),
    fraction=st.sampled_from([0.3, 1.0, 1.0]),
    held_rows=st.sampled_from([1, 250_000]),
    pages=st.sampled_from([None, None, {10: "T1", 11: "T2"}]),
)
def test_a_diff_agrees_with_a_reference_and_needs_no_comparison_of_equal_revisions(
    tmp_path_factory: pytest.TempPathFactory,
    worlds: tuple[list[Any], list[Any]],
    fraction: float,
    held_rows: int,
    pages: dict[int, str] | None,
) -> None:
    """With tables of any size, a diff that takes every item for touched gives the same rows."""
    place = tmp_path_factory.mktemp("world")
    labels = [item(number, label=f"L{number}" if number % 2 else None) for number in range(10, 15)]
    prev, recent = ([*entities, *labels] for entities in worlds)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(buckets, "ROWS", held_rows)
        rows, report = run(place, prev, recent, fraction=fraction, pages=pages, pages_before={12: "T3"})
        patch.setattr(fact_diff, "_TOUCHED", fact_diff._TOUCHED.replace("lastrevid > 0", "false"))
        full_report = fact_diff.run(task_of(place, fraction), place / "full")
    assert rows == list(read_rows([place / "full" / "candidates-00000.parquet"]))
    assert (report["facts"], report["alignment"]) == (full_report["facts"], full_report["alignment"])
    if pages is None and fraction == 1.0:
        dumps = (wikidata_file(place, date) for date in ("20211101", "20211129"))
        assert kinds(rows) == expected_kinds(*dumps, str(RECENT))
        check_objects(rows, held(worlds[0], "20211101"), held(worlds[1], "20211129"))


def check_objects(rows: list[dict[str, Any]], before: set[Held], after: set[Held]) -> None:
    """Compare the objects of each fact with the reference. Items with an even number have no label."""

    def named(objects: set[int]) -> list[str]:
        return sorted(f"{'L' if o % 2 else 'Q'}{o}" for o in objects)

    for row in rows:
        best = {o for s, p, o, of_best in after if (s, p) == (row["s"], row["p"]) and of_best}
        still = {o for s, p, o, _ in after if (s, p) == (row["s"], row["p"])}
        then = {o for s, p, o, of_best in before if (s, p) == (row["s"], row["p"]) and of_best}
        assert (row["objects_before"], row["objects"]) == (named(then), named(best))
        assert (row["gone_objects"], row["current"]) == (named(then - still), row["o"] in best)


@pytest.mark.fault(
    "too little memory", "build: a join needs more than its memory", "one line says to give more --memory"
)
def test_too_little_memory_is_said_in_one_line(tmp_path: Path) -> None:
    many = [item(i, {"P1": [statement(value(i + 1))]}) for i in range(1, 3000)]
    run(tmp_path, many[:1], many)
    with pytest.raises(InputError, match=r"too little memory or disk \(0 MB of memory\).*; give more --memory"):
        fact_diff.run(task_of(tmp_path, 1.0), tmp_path / "again", memory=1)


def held(entities: list[dict[str, Any]], date: str) -> set[Held]:
    """Facts that hold at a date, by statements of any rank but deprecated, and whether of best rank."""
    newest = {e["id"]: e for e in sorted(entities, key=lambda e: e["lastrevid"])}  # stable: the last of equals
    found = set()
    for entity in newest.values():
        for relation, claims in dict(entity["claims"] or {}).items():
            ranks = {claim["rank"] for claim in claims}
            best = "preferred" if "preferred" in ranks else "normal"
            for claim in claims:
                [end] = claim.get("qualifiers", {"P582": [None]})["P582"]
                unknown = end is not None and end["snaktype"] == "somevalue"
                day = end["datavalue"]["value"]["time"][1:11].replace("-", "") if end and "datavalue" in end else "9"
                if claim["rank"] != "deprecated" and not unknown and day > date:
                    number = claim["mainsnak"]["datavalue"]["value"]["numeric-id"]
                    found.add((int(entity["id"][1:]), int(relation[1:]), number, claim["rank"] == best))
    return found


def expected_kinds(prev: Path, recent: Path, date: str) -> dict[tuple[int, int, int], str]:
    categories = reference.algorithm_2(reference.read_facts(prev), reference.read_facts(recent), date)
    out = categories.changed | dict.fromkeys(categories.unchanged, "unchanged") | categories.deleted
    return {(int(s[1:]), int(p[1:]), int(o[1:])): kind for (s, p, o), kind in out.items()}


def test_the_real_pair_agrees_with_the_reference(shared_data: Path, tmp_path: Path) -> None:
    prev = wikidata_file(shared_data / "dumps", "20141201", "bz2")
    recent = wikidata_file(shared_data / "dumps", "20170330")
    rows, report = run_dumps(tmp_path, prev, recent, recent_date=20170330)
    assert kinds(rows) == expected_kinds(prev, recent, "20170330")
    facts = report["facts"]
    assert len(rows) == sum([*facts["changed"].values(), facts["unchanged"], *facts["deleted"].values()])


def test_the_real_edit_stream_agrees_with_the_reference(shared_data: Path, tmp_path: Path) -> None:
    """635 lines of 574 entities: the newest revision of each counts."""
    [stream] = (shared_data / "odd/wikidata_stream").glob("*.bz2")
    empty = write_wikidata(wikidata_file(tmp_path, "20180101"), [item(1)])
    rows, _ = run_dumps(tmp_path, empty, stream, recent_date=20190402, allow_truncated=True)
    assert kinds(rows) == expected_kinds(empty, stream, "20190402")


def extract_text(tmp_path: Path, streams: list[str], suffix: str, allow_truncated: bool = False) -> Report:
    path = wikidata_file(tmp_path, "20211101", suffix)
    path.parent.mkdir(parents=True)
    compress = gzip.compress if suffix == "gz" else bz2.compress
    path.write_bytes(b"".join(compress(text.encode()) for text in streams))
    tasks = extract.plan(Dump("20211101", (path,)), "enwiki", "en", allow_truncated)
    reports = run_tasks(extract.run, tasks, tmp_path / "out")
    reports[0]["warning"] = extract.check(path, reports, allow_truncated)
    return reports[0]


BAD = {
    "no JSON in a line": (["[\n", '{"type":"item","id":"Q1"\n', "]\n"], "not one entity in JSON"),
    "no closing bracket, two streams": (["[\n", '{"type":"item","id":"Q1"},\n'], "no closing"),
    "a line cut in the middle": (["[\n", '{"type":"item","id":"Q1"},\n', '{"type":"it'], "not one entity in JSON"),
    "more behind the closing bracket": (['[\n{"type":"item","id":"Q1"}\n]\n', "{}\n"], "after the closing"),
    "XML": (["<mediawiki>\n"], "not a Wikidata JSON dump"),
}


@pytest.mark.parametrize("suffix", ["gz", "bz2"])
@pytest.mark.parametrize(("streams", "said"), BAD.values(), ids=BAD)
def test_bad_dumps_are_refused_with_file_and_place(tmp_path: Path, streams: list[str], said: str, suffix: str) -> None:
    with pytest.raises(InputError, match=said) as error:
        extract_text(tmp_path, streams, suffix)
    assert f"wikidata-20211101-all.json.{suffix}" in str(error.value)


Q1, Q2 = '{"type":"item","id":"Q1"}', '{"type":"item","id":"Q2"}'


def test_a_cut_dump_is_read_to_its_last_whole_line_where_that_is_allowed(tmp_path: Path) -> None:
    report = extract_text(tmp_path, ["[\n", f"{Q1},\n", Q2[:9]], "gz", allow_truncated=True)
    assert report["entities"] == {"items": 1, "properties": 0, "dropped": {"cut_line": 1}}
    assert "as far as it goes" in report["warning"]
    with pytest.raises(InputError, match="not one entity in JSON"):  # the damage is in the middle
        extract_text(tmp_path / "b", ["[\n", f"{Q1[:9]},\n{Q2}\n"], "gz", allow_truncated=True)
    # a transfer that breaks off cuts a single stream inside; a whole one without ] is an excerpt
    report = extract_text(tmp_path / "c", [f"[\n{Q1},\n{Q2},\n"], "gz")
    assert report["entities"]["items"] == 2 and "taken for an excerpt" in report["warning"]
    with pytest.raises(InputError, match="no closing"):
        extract_text(tmp_path / "d", [f"[\n{Q1},\n{Q2}"], "gz")


CLOSED = {
    "on a line of its own": ["[\n", f"{Q1},\n{Q2}\n]\n"],
    "on the last entity's line": [f"[\n{Q1},\n", f"{Q2}]\n"],
    "all on one line": [f"[{Q1}]"],
    "in a stream of its own": ["[\n", f"{Q1},\n", f"{Q2}\n", "]\n"],
    "after blank lines": [f"[\n{Q1}\n\n", "]"],
}


@pytest.mark.parametrize("range_", [1, 1 << 20])
@pytest.mark.parametrize("case", CLOSED)
def test_the_closing_bracket_is_found_wherever_it_stands(
    tmp_path: Path, case: str, range_: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut at every stream, the bracket's line may begin exactly where the last range does."""
    monkeypatch.setattr(extract, "RANGE", range_)
    assert extract_text(tmp_path, CLOSED[case], "gz")["warning"] is None


LARGEST = 2**62


def drawn(fraction: float, seed: int, *fact: int) -> bool:
    """Whether one fact is in the sample."""
    number = seed
    for part in fact:
        number = ((number ^ part) + 0x9E3779B97F4A7C15) % 2**64
        number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        number = (number ^ number >> 27) * 0x94D049BB133111EB % 2**64
        number ^= number >> 31
    return number < fraction * 2**64


SHARES = st.sampled_from([0.0, 0.001, 0.3, 0.7, 1.0])
NUMBERS = st.lists(st.tuples(*[st.integers(1, LARGEST)] * 3), max_size=20)


@given(facts=NUMBERS, share=SHARES, seed=st.integers(-(2**70), 2**70))
def test_a_sample_is_drawn_as_said_of_one_fact_at_a_time(
    facts: list[tuple[int, int, int]], share: float, seed: int
) -> None:
    columns = [np.array([fact[at] for fact in facts], np.int64) for at in range(3)]
    expected = [drawn(share, seed % 2**64, *fact) for fact in facts]
    assert fact_diff.sampled(share, seed, *columns).tolist() == expected


def test_a_sample_has_its_share_of_facts_that_are_alike() -> None:
    """Within four standard deviations, for each column where the facts differ; another seed draws others."""
    many, same = np.arange(1, 100_001), np.full(100_000, 42)
    for columns in ((many, same, same), (same, many, same), (same, same, many), (many, same, many)):
        of_seeds = [fact_diff.sampled(0.1, seed, *columns) for seed in range(3)]
        assert all(abs(int(found.sum()) - 10_000) < 4 * 95 for found in of_seeds)
        assert abs(int((of_seeds[0] & of_seeds[1]).sum()) - 1000) < 4 * 32
        assert not (of_seeds[2] & ~fact_diff.sampled(0.2, 2, *columns)).any()
