"""Live CKL: compared with the truth of a generated world, and rule by rule on hand-made months."""

import random
import re
import string
import tempfile
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from odd_world import write_odd_world
from oracle import changes

from temporalwiki.base.errors import InputError
from temporalwiki.builders.build import BuildOptions, build, find_sources
from temporalwiki.builders.ckl import live as module
from temporalwiki.builders.ckl.eligibility import reason_to_drop
from temporalwiki.builders.ckl.invariantlama import RELATIONS
from temporalwiki.builders.ckl.live import live
from temporalwiki.builders.ckl.templates import find_template
from temporalwiki.builders.parquet import read_rows
from temporalwiki.builders.snapshot import Interval
from temporalwiki.builders.wikidata import probes
from temporalwiki.builders.world import Snapshot, World, WorldFact

from a_fact import FIRST, SECOND, Rows, fact, made, month, months, new, same

DATES = ("20211101", "20211201", "20220101", "20220201")


# ---------------------------------------------------------------------------------------------------------
# A generated world


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("dumps")


@pytest.fixture(scope="module")
def snapshots(dumps: Path) -> dict[str, Snapshot]:
    """What is true in each month, by its date."""
    months = write_odd_world(dumps, World(people=60, dates=DATES, wikidata_dates=DATES))
    return {month.date: month for month in months}


@pytest.fixture(scope="module")
def out(dumps: Path, snapshots: dict[str, Snapshot], tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("built")
    for prev, recent in pairwise(DATES):
        sources = find_sources(dumps, Interval("enwiki", prev, recent))
        build(sources, place / "temporalwiki", place / "work", BuildOptions(unchanged_fraction=1.0))
    return place / "temporalwiki"


@pytest.fixture
def no_caps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "CAPS", None)


def held(snapshot: Snapshot, subject: str, relation: str) -> set[str]:
    """Return the objects of a subject that have not ended."""
    day = re.sub(r"(....)(..)(..)", r"\1-\2-\3", snapshot.wikidata_date)
    facts = {f for f in snapshot.facts if (f.subject, f.relation) == (subject, relation)}
    return {f.object for f in facts if (snapshot.facts[f] or "9") > day}


def compared(text: str) -> str:
    """Return a label as an exact match compares it."""
    kept = "".join(c for c in text.lower() if c not in string.punctuation)
    return " ".join(word for word in kept.split() if word not in ("a", "an", "the"))


def checked(row: dict[str, Any], prev: Snapshot, recent: Snapshot) -> WorldFact:
    """Return the fact of a row: it is true, all right objects are answers, and the cloze is sound."""
    fact = WorldFact(row["subject_id"], row["relation_id"], row["object_id"])
    labels = {**prev.labels, **recent.labels}
    assert (row["subject"], row["relation"], row["object"]) == tuple(labels[name] for name in fact)
    now = held(recent, fact.subject, fact.relation)
    assert fact.object in now
    assert set(map(compared, row["answers"])) == {compared(labels[o]) for o in now if o in labels}
    assert row["answers"][0] == row["object"]
    assert len({compared(answer) for answer in row["answers"]}) == len(row["answers"])
    assert row["statement"] == row["template"].replace("[Y]", "<extra_id_0>").replace("[X]", row["subject"])
    assert row["subject"] in row["question"]
    assert row["object"].casefold() in row["evidence"].casefold()
    article = recent.articles[row["page_id"]]
    assert (row["title"], row["page_revision_id"]) == (article.title, article.revision_id)
    assert any(row["evidence"] in " ".join(paragraph) for paragraph in article.paragraphs)
    check_no_overlap(row)
    assert fact.relation not in IN_LIFE or fact.subject not in dead(recent)
    return fact


def check_no_overlap(row: dict[str, Any]) -> None:
    for answer in (*row["answers"], *row["old_answers"]):
        assert answer.casefold() not in row["subject"].casefold()
        assert row["subject"].casefold() not in answer.casefold()


# Relations of the world that end with death
IN_LIFE = frozenset(re.findall(r"P\d+", "P26 P39 P54 P102 P108 P118 P451 P463 P551 P937"))


def dead(snapshot: Snapshot) -> set[str]:
    return {f.subject for f in snapshot.facts if f.relation in ("P20", "P509", "P1196", "P119")}


@pytest.mark.parametrize("name", [f"{prev}-{recent}" for prev, recent in pairwise(DATES)])
def test_every_row_is_a_change_of_the_world(
    out: Path, snapshots: dict[str, Snapshot], no_caps: None, name: str
) -> None:
    prev, recent = (snapshots[date] for date in name.split("-"))
    changed, labels = changes(prev, recent).changed, {**prev.labels, **recent.labels}
    config, rows = made("updatedlama", out, interval=name)
    assert config.name == f"updatedlama-{name}"
    assert len(rows) > 15
    for row in rows:
        fact = checked(row, prev, recent)
        assert changed[fact] == row["kind"] == "new_object"
        before, now = (held(one, fact.subject, fact.relation) for one in (prev, recent))
        gone = before - now
        # no right answer was right before
        assert gone == before
        assert not {compared(labels.get(o, o)) for o in before} & {compared(labels.get(o, o)) for o in now}
        assert set(row["old_answers"]) == {{**labels, **prev.labels}[o] for o in gone}  # as they were called then
        assert not {compared(old) for old in row["old_answers"]} & {compared(new) for new in row["answers"]}
    _, rows = made("newlama", out, interval=name)
    assert len(rows) > 15
    for row in rows:
        fact = checked(row, prev, recent)
        assert changed[fact] == row["kind"] != "new_object"
        assert not {f for f in prev.facts if (f.subject, f.relation) == (fact.subject, fact.relation)}
        assert row["old_answers"] == []
    assert {row["kind"] for row in rows} == {"new_subject", "new_relation"}


# Relations of the world that can change; in others a new object is a correction
MAY_CHANGE = re.findall(
    r"P\d+",
    "P27 P106 P108 P26 P551 P1412 P140 P463 P102 P39 P54 P264 P101 P286 P634 P115 P118 P859 P488 P127 P159 P169 P749 "
    "P452 P1037 P17 P131 P190 P6 P35 P36 P37 P527 P123",
)


def test_no_update_that_the_text_states_is_lost(out: Path, snapshots: dict[str, Snapshot], no_caps: None) -> None:
    """Every replacement that the diffset states and that is still true is found."""
    prev, recent = list(snapshots.values())[1:3]
    expected_changes = changes(prev, recent)
    titles = {article.item: article.title.casefold() for article in recent.articles.values()}
    labels = {**prev.labels, **recent.labels}
    asked = {(f.relation, f.subject) for f in recent.facts if f.subject in labels}
    shared = Counter((relation, compared(labels[subject])) for relation, subject in asked)
    expected = set()

    def names(objects: set[str]) -> list[str]:
        return [compared(labels[name]) for name in objects]

    for stated in expected_changes.stated:
        now, before = (held(one, stated.subject, stated.relation) for one in (recent, prev))
        gone = before - now
        texts = [labels.get(name, "") for name in (*now, *gone)]
        subject = labels[stated.subject].casefold()
        title = titles.get(stated.subject, "")
        if (
            expected_changes.changed[stated] == "new_object"
            and stated.object in now
            and gone == before  # if one of several objects goes, the others were right before
            and stated.relation in MAY_CHANGE
            and not title.startswith((f"{subject} (", f"{subject}, "))  # other subjects have that name
            and not (stated.relation in IN_LIFE and stated.subject in dead(recent))
            and len(labels[stated.object].split()) <= 5
            and all(t and t.casefold() not in subject and subject not in t.casefold() and compared(t) for t in texts)
            and not any(one in other or other in one for one in names(now) for other in names(gone))
            and shared[stated.relation, compared(subject)] == 1
        ):
            expected.add((stated.subject, stated.relation))
    _, rows = made("updatedlama", out, interval=f"{prev.date}-{recent.date}")
    assert len(expected) > 15
    assert expected - {(row["subject_id"], row["relation_id"]) for row in rows} == set()


def test_what_stays_is_true_in_every_month_of_the_world(out: Path, snapshots: dict[str, Snapshot]) -> None:
    config, rows = made("invariantlama", out)
    months = list(snapshots.values())
    assert config.name == "invariantlama-20211101-20220201"
    assert config.short_name == "invariantlama-1102"
    assert len(rows) > 40
    for row in rows:
        fact = checked(row, *months[-2:])
        assert fact.relation in RELATIONS
        assert row["kind"] == "unchanged"
        assert row["end_time"] is None
        assert all(fact in month.facts and month.facts[fact] is None for month in months)
        # no object was added or removed in any interval
        assert len({frozenset(held(s, fact.subject, fact.relation)) for s in months}) == 1


def test_the_caps_are_those_of_the_probes(out: Path) -> None:
    config, rows = made("updatedlama", out)
    assert config.name == "updatedlama-20220101-20220201"  # the newest
    assert sum(config.counts.dropped[reason] for reason in config.counts.dropped if "percent" in reason) > 0
    for column, share in (("subject_id", 0.01), ("relation_id", 0.05), ("object_id", 0.05)):
        assert max(Counter(row[column] for row in rows).values()) <= max(1, share * len(rows))
    assert config.counts.more["kept_by_relation"] == Counter(row["relation_id"] for row in rows)


# ---------------------------------------------------------------------------------------------------------
# Months made by hand


def test_an_update_in_full(tmp_path: Path) -> None:
    """White space in labels is folded."""
    start, end = (datetime(*day, tzinfo=UTC) for day in ((2021, 11, 9), (2025, 1, 1)))
    row = fact(
        subject=" Nor\n \u2028land",
        obj="Ann\u00a0 Weber",
        objects=["Zed\t[Y]", "Ann Weber"],
        aliases=["A. Weber", "a weber", "zed  y", "!", "<extra_id_0>", "Nor", "NOR LAND IA"],
        gone_objects=["Carl\r\nIto", "Di\u2029Anker ", "The carl Ito!"],
        title="Norland",
        start_time=start,
        end_time=end,
    )
    config, rows = made("updatedlama", month(tmp_path, changed=[row]))
    assert rows == [
        {
            "id": "Q1-P6",
            "relation_id": "P6",
            "relation": "head of government",
            "subject_id": "Q1",
            "subject": "Nor land",
            "object_id": "Q2",
            "object": "Ann Weber",
            "statement": "The head of government of Nor land is <extra_id_0>.",
            "question": "Who is the head of government of Nor land?",
            "answers": ["Ann Weber", "Zed [Y]"],
            "aliases": ["A. Weber"],
            "old_answers": ["Carl Ito", "Di Anker"],
            "candidates": ["Carl Ito", "Di Anker"],
            "template": "The head of government of [X] is [Y].",
            "kind": "new_object",
            "shown_by": "start",
            "start_time": start,
            "end_time": end,
            "evidence": "E.",
            "title": "Norland",
            "page_id": 7,
            "page_revision_id": 8,
            "statement_id": "Q1$a",
        }
    ]
    assert (config.name, config.short_name) == ("updatedlama-20211101-20211201", "updatedlama-1112")
    assert config.licences == ("cc0-1.0", "cc-by-sa-4.0")
    assert len(config.inputs) == 3
    assert config.options == {"wiki": "enwiki", "intervals": ["20211101-20211201"], "seed": 0, "templates": "own"}


def test_wrong_answers_are_objects_of_the_same_relation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They come from all facts of the interval; earlier answers come first, and no right answer is among them."""
    names = ("Ann  Weber", "A. Weber", "Bo Li", "Ed [Y]", "the Fay!", "the", "<extra_id_0>", "Bo  Li")
    others = [
        same(subject_id=f"Q{n}", subject=f"Land {n} X", relation_id="P6", obj=name) for n, name in enumerate(names, 10)
    ]
    others.append(same(subject_id="Q30", subject="Land 30 X", relation_id="P36", obj="Gia"))
    gone = [fact(subject_id="Q31", subject="Land 31 X", obj="Hal", kind="removed", current=False)]
    asked = fact(objects=["Ann Weber", "Fay"], aliases=["a. weber"], gone_objects=["Carl Ito"])
    folder = month(tmp_path, unchanged=others, changed=[asked], deleted=gone)
    _, [row] = made("updatedlama", folder)
    assert row["answers"] == ["Ann Weber", "Fay"]
    assert row["candidates"][0] == "Carl Ito"
    assert sorted(row["candidates"][1:]) == ["Bo Li", "Ed [Y]", "Hal"]
    monkeypatch.setattr(module, "CANDIDATES", 2)
    _, [cut] = made("updatedlama", folder)
    assert cut["candidates"] == row["candidates"][:2]


BEFORE = "an_answer_was_right_before"
CORRECTION = "correction_of_what_does_not_change"
OVERLAP = "answer_and_subject_overlap"
CHANGED = "changed_in_an_interval"
DEAD = "subject_is_dead"
TWO, EASTON, BOTH_TOWNS = ["Ann Weber", "Bo Li"], ["Easton"], ["Easton", "Weston"]
WESTON = {"object_id": "Q3", "obj": "Weston"}
VACANT = "nothing_held_before"
STILL, EARLIER = "addition_to_what_still_holds", "nothing_went_in_the_interval"
MARK = "label_with_control_character"
NOT_ALWAYS = "not_unchanged_in_every_interval"
# Facts of an interval, and the reason to drop the last one, or None for a row of updatedlama
UPDATED: dict[str, tuple[dict[str, Any], str | None]] = {
    "replaced": (fact(), None),
    "of a new subject": (fact(kind="new_subject"), "kind_new_subject"),
    "of a new relation": (fact(kind="new_relation"), "kind_new_relation"),
    "over already": (fact(current=False), "not_current"),
    "one more, the old one holds": (fact(gone_objects=[], objects=TWO, objects_before=["Bo Li"]), STILL),
    "the old one had gone before": (fact(gone_objects=[], objects_before=["Carl Ito"]), EARLIER),
    "the office was vacant": (fact(gone_objects=[], objects_before=[]), VACANT),
    "one of two is another": (fact(objects=TWO, objects_before=["Bo Li", "Carl Ito"]), BEFORE),
    "joined words were right before": (fact(objects=TWO, objects_before=["The bo-li!"]), None),  # not "bo li"
    "right before as an answer is compared": (fact(objects=TWO, objects_before=["The bo Li!", "Carl Ito"]), BEFORE),
    "two of two are others": (fact(objects=TWO, objects_before=["Carl Ito", "Di Anker"]), None),
    "known before at another rank": (fact(known_before=True), "known_before_at_another_rank"),
    "a birthplace put right": (fact(relation_id="P19"), CORRECTION),
    "another item of the same name": (fact(gone_objects=["ann weber"]), BEFORE),
    "the same after normalisation": (fact(gone_objects=["The Ann-Weber!"], obj="annweber"), BEFORE),
    "put more precisely": (fact(obj="Easton City", gone_objects=["Easton"]), "old_and_new_answer_overlap"),
    "put less precisely": (fact(obj="Easton", gone_objects=["X", "East Easton"]), "old_and_new_answer_overlap"),
    "another holds, under another item": (fact(objects=["Ann Weber", "Bo Li"], gone_objects=["Bo Li"]), BEFORE),
    "letters of a word do not overlap": (fact(obj="Annex", gone_objects=["Anne"]), None),
    "no words for it": (fact(relation_id="P999999", relation="depicted by"), "relation_without_template"),
    "words after its label": (fact(relation_id="P505", relation="general manager"), None),
    "words after a label, may not change": (fact(relation_id="P999999", relation="chief engineer"), CORRECTION),
    "a child put right": (fact(relation_id="P40"), CORRECTION),
    "an employer of one who lives": (fact(relation_id="P108"), None),
    "an employer of one who is dead": (fact(relation_id="P108", dead=True), DEAD),
    "an occupation of one who is dead": (fact(relation_id="P106", dead=True), None),
    "one of several of that name": (fact(title="Norland (novel)"), "subject_ambiguous"),
    "one of several places of that name": (fact(title="norland,  Ohio"), "subject_ambiguous"),
    "a title that only begins so": (fact(title="Norlandia (novel)"), None),
    "a name in another typography": (fact(subject="L'Aquila", title="L’Aquila (town)"), "subject_ambiguous"),
    "initials with spaces": (fact(subject="J.R. Otto", title="J. R. Otto (painter)"), "subject_ambiguous"),
    "a hyphen and a mark": (fact(subject="Saint-Paul", title="Saint‑Paul, Ohio"), "subject_ambiguous"),
    "a title without the mark": (fact(title="Norland novel"), None),
    "a label that says which": (fact(subject="Norland (novel)", title="Norland (novel)"), None),
    "no label that reads right": (fact(relation_id="P999999", relation="chief [Y]"), "relation_without_template"),
    "a sentinel in the subject": (fact(subject="<extra_id_0>"), "label_with_sentinel"),
    "a sentinel in an answer": (fact(objects=["Ann Weber", "<extra_id_17>"]), "label_with_sentinel"),
    "a sentinel in an old answer": (fact(gone_objects=["a <extra_id_1>"]), "label_with_sentinel"),
    "markup is not a sentinel": (fact(subject="[X] <extra_id> {0} [Y] </script>"), None),
    "a NUL": (fact(obj="Ann\0"), MARK),
    "an escape": (fact(subject="Nor\x1b[1mland"), MARK),
    "text that is turned round": (fact(gone_objects=["A\u202eb", "Carl Ito"]), MARK),
    "a mark of direction": (fact(objects=["Ann Weber", "Bo Li\u200e"]), MARK),
    "an item without a name": (fact(obj="Q42"), "label_is_an_id"),
    "another answer without a name": (fact(objects=["Ann Weber", "Q42"]), "label_is_an_id"),
    "a year": (fact(subject="1984"), "label_is_a_number"),
    "a date in figures": (fact(gone_objects=["1,984.5"]), "label_is_a_number"),
    "figures and a word": (fact(subject="Apollo 11"), None),
    "signs without a figure": (fact(subject="(-)"), None),
    "figures without end": (fact(subject="1" * 50_000 + "a" + "1" * 50_000), None),
    "one letter": (fact(objects=["Ann Weber", "F"]), "answer_of_one_letter"),
    "an old answer of one letter": (fact(gone_objects=["(X)"]), "answer_of_one_letter"),
    "a letter and a figure": (fact(obj="U2"), None),
    "nothing to compare": (fact(obj="The"), "answer_without_words"),
    "only signs": (fact(gone_objects=["!?"]), "answer_without_words"),
    "an answer in the subject": (fact(objects=["Ann Weber", "land"]), OVERLAP),
    "the subject in an answer": (fact(objects=["Ann Weber", "Lord of NORLAND"]), OVERLAP),
    "an old answer in the subject": (fact(gone_objects=["Norland"]), OVERLAP),
    "an answer in the words": (fact(obj="Head"), "answer_in_the_wording"),
    "an answer in the question only": (fact(obj="Who"), "answer_in_the_wording"),
    "letters of the words": (fact(obj="Govern"), None),
    "quotes, commas, pipes": (fact(subject="\"a\", 'b' | =1+1", obj="--- c: d"), None),
    "not Latin": (fact(subject="東京", obj="日本 🎉"), None),
}


NEW: dict[str, tuple[dict[str, Any], str | None]] = {
    "a relation": (new(), None),
    "a subject": (new("new_subject"), None),
    "an object": (fact(), "kind_new_object"),
    "over already": (new(current=False), "not_current"),
    "a birthplace": (new(relation_id="P19"), None),
    "known before at another rank": (new(known_before=True), "known_before_at_another_rank"),
    "a spouse of one who is dead": (new(relation_id="P26", dead=True), DEAD),
    "a death": (new(relation_id="P20", dead=True), None),
    "one of several of that name": (new("new_subject", title="Norland (film)"), "subject_ambiguous"),
    "an answer in the subject": (new(subject="Ann Webers land"), OVERLAP),
}


@pytest.mark.parametrize(
    ("kind", "case"), [*(("updatedlama", case) for case in UPDATED), *(("newlama", case) for case in NEW)]
)
def test_what_is_updated_or_new(kind: str, case: str) -> None:
    row, reason = (UPDATED if kind == "updatedlama" else NEW)[case]
    row["objects"] = row["objects"] if row["object"] in row["objects"] else [row["object"]]
    template = find_template(row["relation_id"], row["relation"])
    assert reason_to_drop(row | {"ambiguous": False}, kind, template) == reason
    if reason is None and template is not None:
        assert template.statement(row["subject"]).count("<extra_id_0>") == 1


def test_a_subject_is_asked_once_for_a_relation(tmp_path: Path, no_caps: None) -> None:
    """The usable fact with the smallest statement id represents all."""
    both = ["Ann Weber", "Bo Li"]
    rows = [
        new(object_id="Q5", obj="Bo Li", statement_id="Q1$b", objects=both),
        new(object_id="Q4", obj="Ann Weber", statement_id="Q1$c", objects=both),
        new(object_id="Q3", obj="Gone", statement_id="Q1$a", objects=both, current=False),
        new(object_id="Q6", obj="Bo Li", statement_id="Q1$b", subject_id="Q9", subject="Sudland"),
    ]
    config, found = made("newlama", month(tmp_path, changed=rows))
    assert [(row["id"], row["object"], row["answers"]) for row in found] == [
        ("Q1-P6", "Bo Li", ["Bo Li", "Ann Weber"]),
        ("Q9-P6", "Bo Li", ["Bo Li"]),
    ]
    assert config.counts.dropped == {"not_current": 1, "same_subject_and_relation": 1}


@pytest.mark.parametrize(
    ("split", "twin", "dropped"),
    [
        ("unchanged", {"subject_id": "Q8", "subject": "NORLAND "}, True),
        ("unchanged", {"subject_id": "Q8", "subject": "\nNORLAND"}, True),
        ("deleted", {"subject_id": "Q8"}, True),
        ("changed", {"subject_id": "Q8"}, True),
        ("unchanged", {"subject_id": "Q8", "relation_id": "P35"}, False),
        ("unchanged", {"subject_id": "Q8", "subject": "Norlands"}, False),
        ("unchanged", {"subject_id": "Q1"}, False),
    ],
)
def test_subjects_with_one_name_are_dropped(tmp_path: Path, split: str, twin: dict[str, Any], dropped: bool) -> None:
    facts: dict[str, Any] = {"changed": [new()]}
    facts[split] = [*facts.get(split, []), fact(kind="unchanged", current=False) | twin]
    config, rows = made("newlama", month(tmp_path, **facts))
    assert ("Q1-P6" in {row["id"] for row in rows}) is not dropped
    assert config.counts.dropped.get("another_subject_of_this_label", 0) == dropped


KINDS = {"unchanged": "unchanged", "new_object": "changed", "removed": "deleted"}
MORE = {"objects": BOTH_TOWNS, "objects_before": EASTON}
# Other facts of two months that both have one fact: the reason why that is not invariant, or None
INVARIANT: dict[str, tuple[Rows, Rows, str | None]] = {
    "in both": ([same()], [same()], None),
    "in the second only": ([], [same()], NOT_ALWAYS),
    "new in the first": ([same(kind="new_object")], [same()], CHANGED),
    "another new in the first": ([same(), same(kind="new_object", **WESTON)], [same()], CHANGED),
    "another deleted in the second": ([same()], [same(), same(kind="removed", **WESTON)], CHANGED),
    "another gone in the first, unstated": ([same(objects_before=BOTH_TOWNS)], [same()], CHANGED),
    "one more in the first, unstated": ([same(**MORE)], [same(objects=BOTH_TOWNS)], CHANGED),
    "one more in the last, unstated": ([same()], [same(**MORE)], CHANGED),
    "other objects in the next": ([same()], [same(objects=BOTH_TOWNS)], NOT_ALWAYS),
    "an object twice": ([same(objects=EASTON * 2)], [same(objects_before=EASTON * 2)], None),
    "a place of work of one who is dead": (*[[same(relation_id="P937", dead=True)]] * 2, DEAD),
    "a citizenship of one who is dead": (*[[same(relation_id="P27", dead=True)]] * 2, None),
    "over": ([same()], [same(current=False)], "not_current"),
    "not begun in the first": ([same(current=False)], [same()], NOT_ALWAYS),
    "with an end to come": ([same()], [same(end_time=datetime(2030, 1, 1, tzinfo=UTC))], "with_end_time"),
    "another relation": ([same(relation_id="P6")], [same(relation_id="P6")], "another_relation"),
    "an answer in the subject": ([same(subject="Great Easton")], [same(subject="Great Easton")], OVERLAP),
    "changes of another subject": ([same(), same(subject_id="Q7", kind="new_object")], [same()], None),
}


@pytest.mark.parametrize("reason", {reason: None for _, _, reason in INVARIANT.values()})
def test_invariant_facts(tmp_path: Path, reason: str | None) -> None:
    """All cases of a reason are in one pair of months, about subjects of their own."""
    splits: list[dict[str, Rows]] = [{split: [] for split in KINDS.values()} for _ in (FIRST, SECOND)]
    cases = [(number, first, second) for number, (first, second, why) in enumerate(INVARIANT.values(), 10)
             if why == reason]  # fmt: skip
    for number, *both in cases:
        for of_month, rows in zip(splits, both, strict=True):
            for row in rows:
                name = f"{row['subject']} {chr(ord('A') + number)}x"
                own = {"subject_id": f"{row['subject_id']}{number}", "subject": name, "title": name}
                of_month[KINDS[row["kind"]]].append(row | own)
    folders = [month(tmp_path / name, name, **of) for name, of in zip((FIRST, SECOND), splits, strict=True)]
    config, rows = made("invariantlama", *folders)
    assert config.name == "invariantlama-20211001-20211201"
    assert config.counts.dropped == ({} if reason is None else {reason: len(cases)})
    kept = sorted((f"Q1{number}-{second[0]['relation_id']}", ["Easton"], []) for number, _, second in cases)
    assert sorted((row["id"], row["answers"], row["old_answers"]) for row in rows) == kept * (reason is None)


def test_the_number_of_facts_of_a_relation_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PER_RELATION", 10)
    facts = [
        same(subject_id=f"Q{i}", subject=f"Land {i} X", relation_id=p) for i in range(1, 31) for p in ("P36", "P17")
    ]
    chosen = {}
    for seed in (0, 1):
        config, rows = made("invariantlama", month(tmp_path, unchanged=facts), seed=seed)
        assert Counter(row["relation_id"] for row in rows) == {"P36": 10, "P17": 10}
        assert config.counts.dropped == {"over_10_of_the_relation": 40}
        assert rows == sorted(rows, key=lambda row: (int(row["subject_id"][1:]), int(row["relation_id"][1:])))
        chosen[seed] = {row["id"] for row in rows}
    assert chosen[0] != chosen[1]


def test_facts_are_read_until_there_are_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If most facts are unusable, all are read; no fact is read in two parts."""
    monkeypatch.setattr(module, "PER_RELATION", 5)
    good = [same(subject_id=f"Q{i}", subject=f"Land {i} X") for i in range(1, 9)]
    bad = [same(subject_id=f"Q{i}", subject=f"Easton {i}") for i in range(9, 400)]
    few = [same(subject_id=f"Q{i}", subject=f"Land {i} X", relation_id="P17") for i in range(1, 4)]
    config, rows = made("invariantlama", month(tmp_path, unchanged=good + bad + few))
    assert Counter(row["relation_id"] for row in rows) == {"P36": 5, "P17": 3}
    assert config.counts.dropped[OVERLAP] + config.counts.dropped["over_5_of_the_relation"] == 394
    config, rows = made("invariantlama", month(tmp_path / "b", unchanged=good[:4] + bad))
    assert [row["subject_id"] for row in rows] == ["Q1", "Q2", "Q3", "Q4"]
    assert config.counts.dropped == {OVERLAP: 391}


def test_samples_are_reported(tmp_path: Path) -> None:
    month(tmp_path, FIRST, fraction=0.001, seed=3, unchanged=[same()])
    [config] = live("invariantlama", [month(tmp_path, SECOND, unchanged=[same()])])
    assert any("0.001 (seed 3), 1 (seed 0)" in warning for warning in config.warnings)
    assert not live("invariantlama", [tmp_path], "1112")[0].warnings
    assert not live("newlama", [tmp_path], "1011")[0].warnings


def test_the_same_rows_whatever_the_order_of_folders_and_facts(out: Path, tmp_path: Path) -> None:
    facts = list(read_rows(sorted((out / "data" / "facts-20220101-20220201").glob("changed-*"))))
    random.Random(5).shuffle(facts)
    shuffled = month(tmp_path / "a", "20220101-20220201", changed=facts)
    facts.sort(key=lambda row: row["object"])
    by_object = month(tmp_path / "b", "20220101-20220201", changed=facts)
    assert made("updatedlama", shuffled)[1] == made("updatedlama", by_object)[1] != []
    other = months(tmp_path / "c", "20211201-20220101")
    first, second = made("invariantlama", other, shuffled), made("invariantlama", shuffled, other)
    assert first == second or (first[1], first[0].inputs) == (second[1], second[0].inputs)


def test_a_seed_draws_other_facts(out: Path) -> None:
    drawn = [{row["id"] for row in made("newlama", out, seed=seed)[1]} for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_lamas_templates_are_marked(tmp_path: Path) -> None:
    config, [row] = made("newlama", month(tmp_path, changed=[new()]), templates={"P6": "[X] is run by [Y] ."})
    assert row["statement"] == "Norland is run by <extra_id_0> ."
    assert row["template"] == "[X] is run by [Y] ."
    assert row["question"] == "Who is the head of government of Norland?"
    assert "cc-by-nc-4.0" in config.licences
    assert "CC BY-NC 4.0" in config.source
    assert config.options["templates"] == "LAMA's"


def test_a_german_wiki_is_asked_in_german(tmp_path: Path, no_caps: None) -> None:
    facts = [new(subject="Hessen", relation_id="P36", relation="Hauptstadt", obj="Wiesbaden"), new(subject_id="Q7")]
    others = [new(subject="Ulm", subject_id="Q8", relation_id="P987654", relation="Patron")]
    folder = month(tmp_path, wiki="dewiki", language="de", changed=[*facts, *others])
    config, rows = made("newlama", folder)
    assert config.language == "de"
    assert [(row["statement"], row["question"]) for row in rows] == [
        ("Die Hauptstadt von Hessen ist <extra_id_0>.", "Was ist die Hauptstadt von Hessen?"),
        ("Die Regierung von Norland leitet <extra_id_0>.", "Wer leitet die Regierung von Norland?"),
    ]
    assert config.counts.dropped == {"relation_without_template": 1}
    assert config.counts.more["relations_without_template"] == {"P987654": 1}
    with pytest.raises(InputError, match=r"its labels are in 'de', and LAMA's templates are English"):
        live("newlama", [folder], templates={"P36": "The capital of [X] is [Y] ."})


@pytest.mark.slow
def test_texts_are_read_only_for_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Data beyond the memory goes to ``work``, and is removed at the end."""
    facts = (
        same(subject_id=f"Q{i}", object_id=f"Q{i}0", subject=f"Land {i} X", obj=f"Ann {i}", evidence=f"{i} " * 400)
        for i in range(1, 40_001)
    )
    monkeypatch.setattr(module, "PER_RELATION", 100)
    folder = month(tmp_path / "facts", unchanged=facts)
    ample = made("invariantlama", folder)[1]
    monkeypatch.setattr(module, "MEMORY", 48 << 20)
    work = tmp_path / "work"
    (work / ".duckdb-a.part").mkdir(parents=True)  # of a killed run
    (work / "news" / ".duckdb-b.part").mkdir(parents=True)  # of another command
    assert made("invariantlama", folder, work=work)[1] == ample
    assert len(ample) == 100
    assert sorted(work.rglob("*")) == [work / "news", work / "news" / ".duckdb-b.part"]


def test_too_little_memory_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MEMORY", 1 << 20)
    folder = months(tmp_path / "facts", SECOND)
    for work in (None, tmp_path / "work"):
        where = re.escape(str(work or tempfile.gettempdir()))
        with pytest.raises(InputError, match=f"^{where}: the facts need more than 1 MB of memory .*; free some space"):
            made("newlama", folder, work=work)
    assert list((tmp_path / "work").iterdir()) == []


TURNS = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
LABELS = st.text(min_size=1, max_size=12) | st.sampled_from(
    ["Rome", "rome", "The Rome", "Q5", "<extra_id_0>", "[Y]", "1", "Ro\u202eme", "Ro\u2028me", " \t", "Ro\0me", "R"]
)


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(LABELS, st.lists(LABELS, min_size=1, max_size=3), st.lists(LABELS, max_size=3)), max_size=12)
)
def test_whatever_the_labels_rows_are_sound(
    tmp_path_factory: pytest.TempPathFactory, facts: Sequence[tuple[str, list[str], list[str]]]
) -> None:
    changed: list[Mapping[str, Any]] = [
        fact(subject_id=f"Q{i}", subject=subject, obj=objects[0], objects=objects, gone_objects=gone)
        for i, (subject, objects, gone) in enumerate(facts, 1)
    ]
    config, rows = made("updatedlama", month(tmp_path_factory.mktemp("month"), changed=changed))
    assert config.counts.read == len(changed)
    for row in rows:
        assert row["statement"].count("<extra_id_") == 1
        for label in (row["subject"], *row["answers"], *row["old_answers"]):
            assert label == " ".join(label.split())
            assert not any(unicodedata.category(c) == "Cc" or unicodedata.bidirectional(c) in TURNS for c in label)
        assert row["old_answers"]
        assert not {compared(a) for a in row["answers"]} & {compared(a) for a in row["old_answers"]}
        assert all(map(compared, (*row["answers"], *row["old_answers"])))
        check_no_overlap(row)
