"""Labels of both snapshots, looked up by number."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from temporalwiki.builders.snapshot import Dump
from temporalwiki.builders.wikidata import extract, fact_diff, labels
from temporalwiki.builders.wikipedia.titles import title_hash

from a_stage import run_tasks
from tiny_dumps import item, wikidata_file, write_wikidata

PREV = [item(1, label="one, before"), item(2, label="two")]
PREV += [item(3, label="old", lastrevid=1), item(3, label="new", lastrevid=2)]
RECENT = [
    item(1, label="one", title="One", aliases={"en": [{"language": "en", "value": "a one"}]}),
    item(65, label="sixty-five"),
    item(4),
    item(5, label="first", lastrevid=8),
    item(5, lastrevid=9),
]


@pytest.mark.parametrize("tasks", [1, 64])
def test_labels_are_recents_and_those_of_the_newest_reading_that_has_one(
    tmp_path: Path, tasks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fact_diff, "FACTS_A_TASK", 1)
    for side, date, items in (("prev", "20211101", PREV), ("recent", "20211129", RECENT)):
        path = write_wikidata(wikidata_file(tmp_path, date), items)
        run_tasks(extract.run, extract.plan(Dump("x", (path,)), "enwiki", "en", False), tmp_path / side)
    names = ("prev", "recent", "labels", "prev_articles", "recent_articles")
    others: dict[str, Any] = dict.fromkeys(("prev_date", "recent_date", "prev_text", "recent_text", "seed"), 0)
    others |= {"page_items": None, "unchanged_fraction": 0.0} | {name: str(tmp_path / name) for name in names}
    of_diff = fact_diff.plan(tasks, **others)
    assert len(of_diff) == tasks
    run_tasks(labels.run, labels.plan(of_diff), tmp_path / "labels")
    found, former = labels.look_up(tmp_path / "labels", np.array([65, 7, 4, 3, 2, 1, 5, 10**17]))
    of_prev, of_recent = {2: "two", 3: "new"}, {1: "one", 4: None, 5: "first", 65: "sixty-five"}
    expected = {i: (label, False) for i, label in of_prev.items()} | {i: (of_recent[i], True) for i in of_recent}
    assert {row["id"]: (row["label"], row["recent"]) for row in found.to_pylist()} == expected
    [one] = [row for row in found.to_pylist() if row["id"] == 1]
    assert (one["aliases"], one["title"]) == (["a one"], title_hash("One"))
    assert [(row["id"], row["label"]) for row in former.to_pylist()] == [(1, "one, before")]
    assert [found.num_rows for found in labels.look_up(tmp_path / "labels", np.array([], np.int64))] == [0, 0]
