"""`.eval_results`: entries of the benchmark's own tasks, only from results on a dataset of the Hub."""

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from huggingface_hub import EvalResultEntry
from huggingface_hub._eval_results import parse_eval_result_entries
from hypothesis import example, given
from hypothesis import strategies as st

from temporalwiki.eval_harness.results import Result
from temporalwiki.model_cards.eval_results import HubDataset, eval_results

import a_result

FULL = {"probes-1112": "probes-20211101-20211201", "diffset-1112": "diffset-20211101-20211201"}
HUB = {
    "ORG/temporalwiki@2021.12": HubDataset("ORG/temporalwiki", "c" * 40, FULL),
    "ORG/temporalwiki": HubDataset("ORG/temporalwiki", None, FULL),
}


def estimate(value: float, low: float | None = None, high: float | None = None) -> dict[str, Any]:
    return {"value": value, "low": low, "high": high, "items": 1951, "clusters": 1700}


def result(
    scores: Mapping[str, Any],
    dataset: str = "ORG/temporalwiki@2021.12",
    config: str = "probes-1112",
    task: str = "twiki_probes",
    version: int = 1,
    precision: str = "fp32",
    name: str = "a",
    **model: Any,
) -> Result:
    data = {
        "task": {"name": task, "version": version, "options": {"beams": 1}},
        "model": {"name": "m", "revision": "r", "precision": precision, **model},
        "data": {"dataset": dataset, "config": config, "rows": {"changed": 1951}, "hash": "h"},
        "scores": dict(scores),
    }
    return a_result.from_content(Path("m", f"{name}.json"), data)


def read(text: str | None) -> list[EvalResultEntry]:
    return parse_eval_result_entries(yaml.safe_load(text)) if text is not None else []


CHANGED = {"changed/exact_match": estimate(10.123456, 8.5, 12.25), "changed/f1": estimate(20.5)}


def test_a_model_that_was_trained_on_test_data_has_no_entries() -> None:
    assert eval_results([result(CHANGED, trained_on_test=["probes-1112"])], HUB) is None


def test_a_result_without_older_rows_has_no_entries() -> None:
    newer = {"day": "2021-10-31", "kept": {"changed": 9}, "dropped": {"changed": 1}}
    assert eval_results([a_result.changed(result(CHANGED), "data", newer=newer)], HUB) is None


def test_an_entry_says_what_was_measured() -> None:
    assert read(eval_results([result(CHANGED)], HUB)) == [
        EvalResultEntry(
            dataset_id="ORG/temporalwiki",
            task_id="probes-20211101-20211201-changed",
            value=10.12,
            dataset_revision="c" * 40,
            source_url="https://huggingface.co/datasets/ORG/temporalwiki",
            source_name="temporalwiki",
            notes="exact match in percent, 95 % interval 8.50 to 12.25; 1,951 probes of 1,700 subjects; F1 20.50; "
            "the model goes on from 'SUBJECT RELATION' (greedy, no instruction) and the answer ends with its "
            "sentence; temporalwiki twiki_probes 1",
        )
    ]


def test_entries_of_other_tasks_stay() -> None:
    first = eval_results([result(CHANGED, config="probes-20211001-20211101")], HUB)
    assert first is not None
    both = read(eval_results([result(CHANGED)], HUB, first.encode()))
    assert [one.task_id for one in both] == ["probes-20211001-20211101-changed", "probes-20211101-20211201-changed"]
    other = eval_results(
        [result({"changed/exact_match": estimate(11)})], HUB, (eval_results([result(CHANGED)], HUB) or "").encode()
    )
    assert [one.value for one in read(other)] == [11]
    for before in (b"", b"[]", b"- x", b"{", b"\xff"):
        assert eval_results([result(CHANGED)], HUB, before) == eval_results([result(CHANGED)], HUB)


def test_the_date_is_that_of_the_result(tmp_path: Path) -> None:
    scored = result(CHANGED)
    file = tmp_path / "a.json"
    file.touch()
    os.utime(file, (1640995200, 1640995200))
    [entry] = read(eval_results([dataclasses.replace(scored, path=file)], HUB))
    assert entry.date == "2022-01-01"


def test_a_score_of_one_subject_has_no_interval() -> None:
    [entry] = read(eval_results([result({"changed/exact_match": estimate(10)})], HUB))
    assert entry.notes is not None
    assert entry.notes.startswith("exact match in percent; 1,951 probes of 1,700 subjects; the model goes on")


@pytest.mark.parametrize(
    ("config", "tasks"),
    [
        ("probes-1112", ["probes-20211101-20211201-changed"]),
        ("probes-20211101-20211201", ["probes-20211101-20211201-changed"]),
        ("probes-20211201-20220101", ["probes-20211201-20220101-changed"]),
        ("probes-1201", []),  # of no interval that the dataset holds
        ("invariantlama-1112", []),
        ("probes", []),
        ("probes-1112-x", []),
        ("probes-1112\n", []),
    ],
)
def test_tasks_are_named_as_the_datasets_eval_yaml_does(config: str, tasks: list[str]) -> None:
    assert [entry.task_id for entry in read(eval_results([result(CHANGED, config=config)], HUB))] == tasks


@pytest.mark.parametrize(
    "other",
    [
        {"dataset": "temporalwiki"},  # a folder
        {"dataset": "ORG/private"},  # not found on the Hub
        {"task": "deleted"},
        {"scores": {"light-tuned/changed/exact_match": estimate(10)}},  # of a copy
        {"scores": {"average/exact_match": estimate(10)}},
        {"scores": {"changed/perplexity": estimate(10)}},
        {"scores": {"changed/exact_match": estimate(float("nan"))}},
    ],
)
def test_other_results_are_no_entries(other: dict[str, Any]) -> None:
    assert eval_results([result(**{"scores": CHANGED, **other})], HUB) is None


def test_without_a_revision_none_is_named() -> None:
    [entry] = read(eval_results([result(CHANGED, dataset="ORG/temporalwiki")], HUB))
    assert entry.dataset_revision is None


@pytest.mark.parametrize(
    ("first", "second", "value"),
    [
        ({"version": 1}, {"version": 2}, 2),
        ({"version": 2}, {"version": 1}, 1),
        ({"precision": "bf16"}, {"precision": "fp32"}, 2),
        ({"precision": "bf16", "version": 2}, {"precision": "fp32"}, 1),
        ({"config": "probes-20211101-20211201"}, {"config": "probes-1112"}, 2),
        ({"name": "a"}, {"name": "b"}, 2),
    ],
)
def test_of_two_results_of_a_task_one_counts(first: dict[str, Any], second: dict[str, Any], value: float) -> None:
    made = [result({"changed/exact_match": estimate(i)}, **of) for i, of in enumerate((first, second), start=1)]
    for results in (made, made[::-1]):
        assert [entry.value for entry in read(eval_results(results, HUB))] == [value]


@given(st.text(), st.text(), st.floats(0, 100))
@example("\x85", "\u2028\ud800", 1.0)
def test_hostile_names_come_back_as_they_were(id: str, commit: str, value: float) -> None:
    scored = result({"changed/exact_match": estimate(value)}, dataset="d")
    text = eval_results([scored], {"d": HubDataset(id, commit, FULL)})
    [entry] = read(text)
    assert (entry.dataset_id, entry.dataset_revision, entry.value) == (id, commit, round(value, 2))
