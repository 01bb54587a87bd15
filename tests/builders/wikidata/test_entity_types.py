"""The types of entities: by hand, over small dumps."""

from pathlib import Path
from typing import Any

import pytest

from temporalwiki.builders.snapshot import Dump
from temporalwiki.builders.wikidata import entity_types, extract, labels, tables
from temporalwiki.builders.wikidata.probes import Fact

from a_stage import run_tasks
from tiny_dumps import item, statement, value, wikidata_file, write_wikidata

Items = list[dict[str, Any]]


def a(number: int, *classes: int, **more: Any) -> dict[str, Any]:
    """An item of these classes."""
    return item(number, {"P31": [statement(value(of)) for of in classes]} if classes else None, **more)


def known(place: Path, prev: Items, recent: Items) -> Path:
    """The folder of stage wikidata-labels over two dumps."""
    for date, items in (("20211101", prev), ("20211129", recent)):
        path = write_wikidata(wikidata_file(place, date), items)
        tasks = extract.plan(Dump("x", (path,)), "enwiki", "en", False)
        run_tasks(extract.run, tasks, place / date)
    task = labels.LabelsTask(0, str(place / "20211101"), str(place / "20211129"), 0, tables.BUCKETS)
    run_tasks(labels.run, [task], place / "labels")
    return place / "labels"


def count(place: Path, prev: Items, recent: Items, facts: list[Fact]) -> Any:
    return entity_types.count({"changed": facts}, known(place, prev, recent))["changed"]


HUMAN, CITY, CAPITAL = item(5, label="human"), item(515, label="city"), item(5119, label="capital")
ANY = [item(999_999, label="so that no dump is empty")]


def ranked(*classes: tuple[int, str]) -> dict[str, Any]:
    return item(1, {"P31": [statement(value(of), rank=rank) for of, rank in classes]})


TYPES: dict[str, tuple[Items, Items, str]] = {  # prev, recent, the type of Q1
    "the label of its class": (ANY, [a(1, 5), HUMAN], "human"),
    "of several the first statement's, not the smallest": (ANY, [a(1, 5119, 515), CITY, CAPITAL], "capital"),
    "of the preferred ones only": (ANY, [ranked((5119, "normal"), (515, "preferred")), CITY, CAPITAL], "city"),
    "never of a deprecated one": (ANY, [ranked((5119, "deprecated"), (515, "normal")), CITY, CAPITAL], "city"),
    "no class, no type": (ANY, [a(1)], "unknown"),
    "another relation": (ANY, [item(1, {"P279": [statement(value(5))]}), HUMAN], "unknown"),
    "a class without a label": (ANY, [a(1, 5), item(5)], "Q5"),
    "a class that no dump holds": (ANY, [a(1, 5)], "Q5"),
    "a class that is gone keeps its label": ([HUMAN], [a(1, 5)], "human"),
    "recent's label": ([item(5, label="person")], [a(1, 5), HUMAN], "human"),
    "recent's class": ([a(1, 515), CITY], [a(1, 5), HUMAN], "human"),
    "a class taken away is not looked up in prev": ([a(1, 5), HUMAN], [a(1), HUMAN], "unknown"),
    "an entity that is gone keeps its type": ([a(1, 5), HUMAN], [HUMAN], "human"),
    "an entity that became a redirect keeps its type": ([a(1, 5)], [item(1, redirect="Q2"), HUMAN], "human"),
    "an entity that neither holds": (ANY, ANY, "unknown"),
    "twice in a dump: the newest revision": (ANY, [a(1, 515, lastrevid=9), a(1, 5, lastrevid=8), CITY], "city"),
    "twice, and the newest has no label": (
        ANY,
        [a(1, 5, label="A", lastrevid=8), a(1, 515, lastrevid=9), CITY],
        "city",
    ),
    "twice, and the newest has no class": (ANY, [a(1, 5, lastrevid=8), a(1, lastrevid=9), HUMAN], "unknown"),
    "a label may hold anything": (ANY, [a(1, 5), item(5, label='"$\n</script>')], '"$\n</script>'),
}


@pytest.mark.parametrize(("prev", "recent", "expected"), TYPES.values(), ids=TYPES)
def test_the_type_of_an_entity(tmp_path: Path, prev: Any, recent: Any, expected: str) -> None:
    found = count(tmp_path, prev, recent, [Fact(1, 17, 77), Fact(1, 17, 1)])
    assert found == {"subject": {expected: 2}, "object": {"unknown": 1} | {expected: 1 + (expected == "unknown")}}


def test_each_probe_counts_once_a_role(tmp_path: Path) -> None:
    """Two classes of one label are one type; an entity in two probes counts twice."""
    items = [a(1, 5), a(2, 6), a(65, 515, 5119), HUMAN, item(6, label="human"), CITY, CAPITAL]
    facts = [Fact(1, 17, 65), Fact(2, 17, 65), Fact(65, 6, 1), Fact(1, 22, 2), Fact(3, 17, 65)]
    assert count(tmp_path, ANY, items, facts) == {
        "subject": {"city": 1, "human": 3, "unknown": 1},
        "object": {"city": 3, "human": 2},
    }


def test_splits_are_counted_apart_and_no_probes_are_no_types(tmp_path: Path) -> None:
    place = known(tmp_path, ANY, [a(1, 5), a(2, 515), HUMAN, CITY])
    splits = {"unchanged": [Fact(1, 17, 2)], "changed": [Fact(2, 6, 1)], "deleted": []}
    assert entity_types.count(splits, place) == {
        "unchanged": {"subject": {"human": 1}, "object": {"city": 1}},
        "changed": {"subject": {"city": 1}, "object": {"human": 1}},
        "deleted": {"subject": {}, "object": {}},
    }


def test_the_order_of_statements_outlives_the_cut_into_row_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred classes each, the largest id first, written seven rows at a time into one bucket."""
    monkeypatch.setattr(tables, "MAX_ROWS", 7)
    items = [a(64 * i, *range(1000 + i, 900 + i, -1)) for i in range(1, 5)]
    facts = [Fact(64 * i, 17, 77) for i in range(1, 5)]
    assert count(tmp_path, ANY, items, facts)["subject"] == {f"Q{1000 + i}": 1 for i in range(1, 5)}
