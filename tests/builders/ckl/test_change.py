"""Which facts changed within the interval: by their dates, else by the text; the others are set aside."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from temporalwiki.builders.ckl.change import shown_by
from temporalwiki.builders.ckl.templates import find_template
from temporalwiki.builders.snapshot import Interval

from a_fact import fact, made_splits, month, new


def day(year: int, month: int = 1, day: int = 1) -> datetime:
    return datetime(year, month, day, tzinfo=UTC)


def undated(**more: Any) -> dict[str, Any]:
    return fact(dated="undated", **more)


def undated_new(kind: str = "new_relation", **more: Any) -> dict[str, Any]:
    return new(kind, dated="undated", **more)


BEFORE, OLD, ELSEWHERE = "began_before", "may_be_an_old_fact", "dated_otherwise_in_the_text"
NOT_NEW, SEVERAL, STILL = "not_newly_stated", "one_of_several_answers", "old_answer_in_the_text"
BEGUN = {"dated": "before"}
BOTH_HOLD: dict[str, Any] = {"objects": ["Ann Weber", "Bo Li"], "objects_before": ["Carl Ito"]}
# A fact of the interval 2021-11-01 to 2021-12-01, and what shows that it changed then, or why nothing does
CASES: dict[str, tuple[dict[str, Any], str]] = {
    "a start within": (fact(start_time=day(2021, 11, 9)), "start"),
    "a start on the first day": (fact(start_time=day(2021, 11, 1)), "start"),
    "a point in time within": (fact(), "start"),
    "a start within, not in the text": (fact(start_time=day(2021, 11, 9), newly_stated=False), "start"),
    "a start within, two answers": (fact(start_time=day(2021, 11, 9), **BOTH_HOLD), "start"),
    "only an end within": (fact(end_time=day(2021, 12, 1), newly_stated=False), NOT_NEW),
    "begun long ago, an end within": (fact(start_time=day(2010, 5, 2), end_time=day(2021, 12, 1)), BEFORE),
    "the old one ended within": (undated(gone_end=day(2021, 11, 2), newly_stated=False), "end"),
    "the old one ended within, two answers": (undated(gone_end=day(2021, 11, 2), **BOTH_HOLD), "end"),
    "ended within, begun before": (fact(**BEGUN, start_time=day(2021, 10, 20), gone_end=day(2021, 11, 2)), "end"),
    "the old one ended some day of the year": (undated(gone_end=day(2021), newly_stated=False), NOT_NEW),
    "the old one ended some day of the year, new in the text": (undated(gone_end=day(2021)), "text"),
    "a start on the day before": (fact(dated="before", start_time=day(2021, 10, 31)), BEFORE),
    "a start in the month before": (fact(dated="before", start_time=day(2021, 10)), BEFORE),
    "a start in the year before": (fact(dated="before", start_time=day(2020)), BEFORE),
    "a start in the year": (fact(dated="before", start_time=day(2021)), "text"),
    "a start in the year, known to the text": (fact(**BEGUN, start_time=day(2021), newly_stated=False), NOT_NEW),
    "a point in time before": (fact(dated="over"), BEFORE),
    "new in the text": (undated(), "text"),
    "not in the text": (undated(newly_stated=False), NOT_NEW),
    "two answers": (undated(**BOTH_HOLD), SEVERAL),
    "two names of one answer": (undated(objects=["Ann Weber", "ann  weber"]), "text"),
    "a year of the interval in the text": (undated(evidence="Ann won in 2021, after 20 years, against 3."), "text"),
    "two years in the text": (undated(evidence="Ann, born in 1970, won in 2021."), "text"),
    "another year in the text": (undated(evidence="Ann has led it since 2019."), ELSEWHERE),
    "a later year in the text": (undated(evidence="Ann will lead it in 2025."), ELSEWHERE),
    "years in a range": (undated(evidence="Ann (2021-25) leads it."), "text"),
    "numbers that are not years": (undated(evidence="Ann got 1,950 votes, 20190 euros, 1999.5 points."), "text"),
    "the old answer in the text": (undated(evidence="Ann leads it, with Carl Ito."), STILL),
    "the old answer in a longer word": (undated(evidence="Ann leads Carl Itoland."), "text"),
    "the old answer in the text, with a year": (undated(evidence="In 2021 Ann followed Carl Ito."), "text"),
    "a relation": (undated_new(), "text"),
    "a relation that had begun": (new(dated="before", start_time=day(2010, 10, 14)), BEFORE),
    "a relation known to the text": (undated_new(newly_stated=False), NOT_NEW),
    "a birthplace": (undated_new(relation_id="P19"), OLD),
    "a death of the year": (undated_new(relation_id="P20", evidence="He died in May 2021 in Ann Weber."), "text"),
    "a death of old": (undated_new(relation_id="P20", evidence="He died in 1871 in Ann Weber."), ELSEWHERE),
    "a relation that nobody checked": (undated_new(relation_id="P999999", relation="chief engineer"), OLD),
    "a subject": (undated_new("new_subject"), OLD),
    "a subject with a start": (new("new_subject"), "start"),
    "a subject of the year": (undated_new("new_subject", evidence="The 2021 film is by Ann Weber."), "text"),
    "a subject of another year": (undated_new("new_subject", evidence="The 1931 film is by Ann Weber."), ELSEWHERE),
}


@pytest.mark.parametrize("case", CASES)
def test_what_shows_that_a_fact_changed_within_the_interval(case: str) -> None:
    row, shown = CASES[case]
    template = find_template(row["relation_id"], row["relation"])
    assert template is not None
    assert shown_by(row, template, Interval("enwiki", "20211101", "20211201")) == shown


@pytest.mark.parametrize(("year", "shown"), [(2013, ELSEWHERE), (2014, "text"), (2019, "text"), (2020, ELSEWHERE)])
def test_the_years_of_a_long_interval(tmp_path: Path, year: int, shown: str) -> None:
    facts = month(tmp_path, "20141106-20190401", changed=[undated(evidence=f"Since {year}.")])
    config, splits = made_splits("updatedlama", facts)
    found = {split: [row["shown_by"] for row in rows] for split, rows in splits.items()}
    assert found == {"test": [shown], "backfilled": []} if shown == "text" else {"test": [], "backfilled": [shown]}
    assert config.counts.more["kept_by_change"] == {shown: 1}


def test_a_change_of_the_interval_comes_before_other_answers(tmp_path: Path) -> None:
    """A subject and relation have one row: of two new answers, the one that is known to be new."""
    old = fact(obj="Ann Weber", object_id="Q2", objects=["Ann Weber", "Bo Li"], dated="before", start_time=day(2010))
    late = fact(obj="Bo Li", object_id="Q3", objects=["Ann Weber", "Bo Li"], start_time=day(2021, 11, 9))
    for facts in ([old, late], [late, old]):
        config, splits = made_splits("updatedlama", month(tmp_path / facts[0]["object_id"], changed=facts))
        assert [row["answers"] for row in splits["test"]] == [["Bo Li", "Ann Weber"]]
        assert splits["backfilled"] == []
        assert config.counts.dropped == {"same_subject_and_relation": 1}


def test_the_caps_hold_in_each_split(tmp_path: Path) -> None:
    rows = [
        fact(subject_id=f"Q{i}", object_id=f"Q{i}0", subject=f"Land {i} X", obj=f"Ann {i}", newly_stated=False)
        | {"dated": dated, "relation_id": relation}
        for i, (dated, relation) in enumerate([("within", "P6"), ("undated", "P6"), ("undated", "P169")] * 3, 1)
    ]
    config, splits = made_splits("updatedlama", month(tmp_path, changed=rows))
    relations = {split: sorted(row["relation_id"] for row in of_split) for split, of_split in splits.items()}
    assert relations == {"test": ["P6"], "backfilled": ["P169", "P6"]}
    assert config.counts.dropped == {"relation_over_5_percent": 6}
