"""The facts that the page shows: a choice of nobody's, the same for all methods, and few."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from temporalwiki.base.errors import InputError
from temporalwiki.eval_harness.leaderboard.headline import months
from temporalwiki.eval_harness.leaderboard.page.items import items_data, items_of
from temporalwiki.eval_harness.leaderboard.rows import Row
from temporalwiki.eval_harness.results import Result

import a_result
from a_row import make_row

HOSTILE = "</script>\u202e" + "x" * 500


def an_item(i: int, split: str = "changed", **more: Any) -> dict[str, Any]:
    texts = {"prompt": f"subject {i} head of", "object": f"o{i}", "answer": f"a{i}"}
    return {"id": f"{i:02}", "cluster": "Q1", "form": "name", "split": split, **texts, "known": 1.0} | more


def shown(folder: Path, models: dict[str, Sequence[dict[str, Any]]]) -> tuple[list[Result], list[Row]]:
    """Results and rows of models of a month, each with its items."""
    results = []
    for name, items in models.items():
        (folder / name).mkdir()
        pq.write_table(pa.Table.from_pylist(items), folder / name / "x.parquet")
        content = {"task": {"name": "learned_and_forgotten"}, "model": {"name": name, "revision": "1"}}
        results.append(a_result.from_content(folder / name / "x.json", content | {"data": {"config": "", "hash": ""}}))
    of = {"task": "learned_and_forgotten", "test": "all", "higher_is_better": True, "month": "1112", "tested": "1112"}
    rows = [
        make_row(**of, label=name, method=None, measure=measure, result=f"{name}/x.json", value=-float(i))
        for i, name in enumerate(models)
        for measure in ("new_known", "old_known")
    ]
    return results, rows


def data_of(folder: Path, models: dict[str, Sequence[dict[str, Any]]]) -> dict[str, Any]:
    results, rows = shown(folder, models)
    (data,) = items_data(months(rows), items_of(results, rows, folder))
    return data


def test_question_right_answer_answer_and_known_before_and_after(tmp_path: Path) -> None:
    a = [an_item(1, start_known=0.0), an_item(2, "unchanged", known=0.0, start_known=1.0), an_item(3, form="spelling")]
    data = data_of(
        tmp_path, {"a": a, "b": [an_item(1, answer="other", start_known=None)], "old": [{"id": "1", "cluster": "Q1"}]}
    )
    assert data["facts"] == [["changed", "subject 1 head of", "o1"], ["unchanged", "subject 2 head of", "o2"]]
    assert data["lines"] == [[["a1", 0.0, 1.0], ["a2", 1.0, 0.0]], [["other", None, 1.0], None], None]


def test_few_facts_by_their_ids_and_short_texts_without_signs_that_turn_the_line(tmp_path: Path) -> None:
    items = [an_item(i, split, answer=HOSTILE) for split in ("unchanged", "changed") for i in range(30)]
    items = [item | {"id": f"{item['id']}{item['split'][0]}"} for item in items]
    data = data_of(tmp_path, {"a": items[::-1]})
    assert [fact[1] for fact in data["facts"]] == [f"subject {i} head of" for i in range(20)] * 2
    (line,) = data["lines"]
    assert all(len(answer) == 100 and "\u202e" not in answer for answer, _, _ in line)


def test_a_page_of_many_months_shows_facts_of_the_newest_ones(tmp_path: Path) -> None:
    results, rows = shown(tmp_path, {"a": [an_item(1)]})
    names = [f"{year}{month:02}01" for year in (2020, 2021) for month in range(1, 9)]
    rows = [replace(row, month=name, tested=name) for name in names for row in rows]
    rows = [replace(row, result="gone" if row.tested == names[-1] else f"{row.tested}/x.json") for row in rows]
    assert items_of(results, rows, tmp_path) == {}
    old, twelfth = (replace(rows[0], month=name, tested=name, result="a/x.json") for name in (names[3], names[4]))
    assert items_of(results, [*(row for row in rows if row.tested != names[3]), old], tmp_path) == {}
    assert items_of(results, [*(row for row in rows if row.tested != names[4]), twelfth], tmp_path).keys() == {
        "a/x.json"
    }


@pytest.mark.parametrize("wrong", [{"prompt": 1}, {"known": "yes"}, {"form": 5}, {"start_known": [1]}])
def test_damaged_items_are_named(tmp_path: Path, wrong: dict[str, Any]) -> None:
    results, rows = shown(tmp_path, {"a": [an_item(1, **wrong)]})
    with pytest.raises(InputError, match=rf"{tmp_path}/a/x\.parquet: not the items of a result"):
        items_of(results, rows, tmp_path)
