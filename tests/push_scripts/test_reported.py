"""Scores that others put on the Hub join a leaderboard: marked, without ranks, and only if they say what they are."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from huggingface_hub import HfApi

from temporalwiki.api.leaderboard import leaderboard
from temporalwiki.base.errors import InputError
from temporalwiki.eval_harness.leaderboard.rows import read_parquet
from temporalwiki.eval_harness.tasks.twiki_probes import TwikiProbes
from temporalwiki.push_scripts import reported
from temporalwiki.push_scripts.dataset import publish_dataset
from temporalwiki.push_scripts.leaderboard import publish_leaderboard
from temporalwiki.push_scripts.reported import reported_by_others
from temporalwiki.push_scripts.results import publish_results

import a_result
from a_folder import contents
from a_month import add_month, article, probe
from loopback_hub import LoopbackHub

MODEL, DATA, TASK_ID = "somebody/model", "ORG/temporalwiki", "probes-20211101-20211201-changed"
FILE = ".eval_results/x.yaml"
PAGE_OF_MODEL = f"https://huggingface.co/{MODEL}"


@pytest.fixture
def data(hub: LoopbackHub, tmp_path: Path) -> str:
    """The commit of a dataset that has a month."""
    add_month(tmp_path / "month", "20211101", "20211201", [article(1)], [probe(1)])
    list(publish_dataset(tmp_path / "month", DATA))
    return hub.repo("dataset", DATA).tags["2021.12"]


def entry(data: str, **changes: Any) -> dict[str, Any]:
    """An entry that counts, with ``changes``; of its dataset, by revision and task_id."""
    of = {"id": DATA, "task_id": changes.pop("task_id", TASK_ID), "revision": changes.pop("revision", data)}
    notes = f"exact match in percent; temporalwiki twiki_probes {TwikiProbes.version}"
    return {"dataset": of, "value": 30.5, "date": "2022-01-01", "notes": notes, **changes}


def put(hub: LoopbackHub, *entries: dict[str, Any], model: str = MODEL, file: str = FILE) -> None:
    hub.commit("model", model, {file: yaml.safe_dump(list(entries)).encode()})


def written(folder: Path, name: str, revision: str) -> None:
    """Write a result of the newest version of the task, on the published month, with exact match of 30 %."""
    items = [dict(item) for item in a_result.facts(*range(1, 11))]
    made = a_result.write_probes(
        folder, "probes-1112", {"unchanged": items, "changed": items}, name=name, revision=revision
    )
    content = json.loads(made.path.read_text())
    content["data"]["dataset"] = f"{DATA}@2021.12"
    content["task"]["version"] = TwikiProbes.version
    for split in ("unchanged", "changed"):
        content["scores"][f"{split}/exact_match"] = {
            "value": 30.0,
            "low": 25.0,
            "high": 35.0,
            "items": 10,
            "clusters": 9,
        }
    made.path.write_text(json.dumps(content))


def test_a_merged_pull_request_makes_a_board_of_two_authors(hub: LoopbackHub, data: str, tmp_path: Path) -> None:
    hub.add_user("somebody", "hf_somebody")
    scored = hub.commit("model", MODEL, {"config.json": b"{}"})
    written(tmp_path / "theirs", f"{MODEL}@{scored}", scored)
    list(publish_results(tmp_path / "theirs", MODEL))
    written(tmp_path / "ours", "runs/ours", "r")
    leaderboard(tmp_path / "ours", tmp_path / "alone")
    before = leaderboard(tmp_path / "ours", tmp_path / "board", others=DATA)
    assert str(before).endswith(f"0 scores reported by others on {DATA}; left out: 2 in pull requests that are open")
    assert contents(tmp_path / "board") == contents(tmp_path / "alone")

    HfApi().merge_pull_request(MODEL, 1, token="hf_somebody")
    after = leaderboard(tmp_path / "ours", tmp_path / "board", others=DATA)
    assert str(after).endswith(f"2 scores reported by others on {DATA}; left out: none")
    rows = read_parquet(tmp_path / "board" / "results.parquet")
    theirs = [row for row in rows if row.reported]
    assert [row for row in rows if not row.reported] == read_parquet(tmp_path / "alone" / "results.parquet")
    assert [(row.model, row.config, row.test, row.value) for row in theirs] == [
        (MODEL, "probes-20211101-20211201", split, 30.0) for split in ("changed", "unchanged")
    ]
    for row in theirs:
        assert (row.label, row.tested) == (f"{MODEL} (reported by others)", "1112")  # the month's name in our rows
        assert (row.low, row.rank_best, row.competes, row.verified) == (None, None, False, False)
        assert row.reported.endswith(f"/datasets/{DATA}")
    ours, both = contents(tmp_path / "alone"), contents(tmp_path / "board")
    assert both.keys() - ours.keys() == {f"tables/reported_by_others.{ending}" for ending in ("md", "csv")}
    assert {name for name in ours if ours[name] != both[name]} == {"index.html", "results.parquet"}

    list(publish_leaderboard(tmp_path / "board", "ORG/leaderboard"))
    assert "tables/reported_by_others.csv" in hub.repo("space", "ORG/leaderboard").files()


def test_a_model_that_the_results_hold_is_not_listed_again(hub: LoopbackHub, data: str) -> None:
    put(hub, entry(data))
    assert reported_by_others(DATA, [f"{MODEL}@{'a' * 40}"]) == ([], Counter({"of models that the results hold": 1}))


OTHER = "of another program or version of the task"
NO_DATA = "on other data, or without the commit of their data"
LEFT_OUT = [
    *(({"value": value}, "not a percentage") for value in (100.1, -0.1, True, "30", None, [30], 10**400)),
    *(({"notes": notes}, OTHER) for notes in (None, "", "twiki_probes", 7, "x; temporalwiki twiki_probes 3")),
    *(({"revision": revision}, NO_DATA) for revision in (None, "main", "f" * 40, "../" * 13 + "x", "REPLACED")),
    *(
        ({"task_id": task}, "of a task that the dataset lacks")
        for task in ("", "probes-20211101-20211201-deleted", "probes-20211201-20220101-changed", "../x", 7)
    ),
]  # fmt: skip


@pytest.mark.fault(
    "hostile YAML",
    "leaderboard --others: scores that are not percentages, or of other data, another program or task",
    "left out and counted by reason; the others stay",
)
@pytest.mark.parametrize(("changes", "why"), LEFT_OUT)
def test_a_score_that_does_not_say_what_it_is_is_left_out(
    hub: LoopbackHub, data: str, changes: dict[str, Any], why: str
) -> None:
    if changes.get("revision") == "REPLACED":  # a commit at which the month is another one
        manifest = "manifests/20211101-20211201.json"
        good = hub.repo("dataset", DATA).files()[manifest]
        changes = {"revision": hub.commit("dataset", DATA, {manifest: good + b" "})}
        hub.commit("dataset", DATA, {manifest: good})
    put(hub, entry(data), {**entry(data), "dataset": {"id": "ORG/other", "task_id": "x"}}, entry(data, **changes))
    found = reported_by_others(DATA, [])
    assert [row.value for row in found.rows] == [30.5]
    assert found.left_out == {why: 1}


ADDRESSES = [
    ("https://example.org/runs?id=1#x", "https://example.org/runs?id=1#x"),
    *(
        (address, PAGE_OF_MODEL)
        for address in (
            "javascript:alert(1)", "data:text/html,x", "//example.org", "https://huggingface.co@example.org/",
            "https://example.org/\u202egnp", "https://example.org/\n", "https://example.org/" + "x" * 300, 7, ["x"],
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize(("address", "shown"), ADDRESSES)
def test_only_a_plain_web_address_is_a_source(hub: LoopbackHub, data: str, address: Any, shown: str) -> None:
    put(hub, entry(data, source={"url": address, "name": "<b>"}))
    [row] = reported_by_others(DATA, []).rows
    assert row.reported == shown


def test_data_of_a_later_commit_is_the_same_if_the_month_is(hub: LoopbackHub, data: str) -> None:
    later = hub.commit("dataset", DATA, {"notes.md": b"x"})
    put(hub, entry(later))
    assert len(reported_by_others(DATA, []).rows) == 1


def test_of_doubles_a_verified_one_counts_and_then_the_newest(hub: LoopbackHub, data: str) -> None:
    notes = entry(data)["notes"]
    put(hub, entry(data, value=1, date="2022-01-02"), entry(data, value=2, date="2022-01-03"))
    assert [row.value for row in reported_by_others(DATA, []).rows] == [2]
    put(
        hub, entry(data, value=3, date="2021-01-01", verifyToken="valid", notes=f"again; {notes}"), file=f"{FILE}.yaml"
    )
    found = reported_by_others(DATA, [])
    assert [(row.value, row.verified) for row in found.rows] == [(3, True)]
    assert found.left_out == {"doubles": 2}


def test_a_model_that_cannot_be_read_or_one_too_many_costs_only_itself(
    hub: LoopbackHub, data: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for nth in range(4):
        put(hub, entry(data, value=nth), model=f"somebody/model{nth}")
    hub.fault("GET", "/api/models/somebody/model3$", status=403)
    monkeypatch.setattr(reported, "_MODELS", 3)
    found = reported_by_others(DATA, [])
    assert [row.model for row in found.rows] == ["somebody/model1", "somebody/model2"]
    assert found.left_out == {"that cannot be read": 1, "of models after the first 3, or without a valid id": 1}


def test_models_with_a_base_model_count(hub: LoopbackHub, data: str) -> None:
    put(hub, entry(data))
    hub.commit("model", MODEL, {"README.md": b"---\nbase_model: a/b\n---\n"})
    assert len(reported_by_others(DATA, []).rows) == 1


def test_a_dataset_without_a_leaderboard(hub: LoopbackHub) -> None:
    hub.commit("dataset", DATA, {"README.md": b""})
    with pytest.raises(InputError, match=f"{DATA}: the Hub has no leaderboard of it"):
        reported_by_others(DATA, [])
    with pytest.raises(InputError, match="ORG/none"):
        reported_by_others("ORG/none", [])
