"""Scores that others put on the Hub join a leaderboard: marked, without ranks, and only if they say what they are."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from temporalwiki.base.errors import InputError
from temporalwiki.eval_harness.tasks.twiki_probes import TwikiProbes
from temporalwiki.push_scripts import reported
from temporalwiki.push_scripts.dataset import publish_dataset
from temporalwiki.push_scripts.reported import reported_by_others

from a_month import add_month, article, probe
from loopback_hub import LoopbackHub

MODEL, DATA, TASK_ID = "somebody/model", "ORG/temporalwiki", "probes-20211101-20211201-changed"
FILE = ".eval_results/x.yaml"


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


OTHER = "of another program or version of the task"
NO_DATA = "on other data, or without the commit of their data"
NO_TASKS = ("", TASK_ID.replace("changed", "deleted"), TASK_ID.replace("2021", "2020"), "../x", 7)
LEFT_OUT = [
    *(({"value": value}, "not a percentage") for value in (100.1, -0.1, True, "30", None, [30], 10**400)),
    *(({"notes": notes}, OTHER) for notes in (None, "", "twiki_probes", 7, "x; temporalwiki twiki_probes 3")),
    *(({"revision": revision}, NO_DATA) for revision in (None, "main", "f" * 40, "../" * 13 + "x", "REPLACED")),
    *(({"task_id": task}, "of a task that the dataset lacks") for task in NO_TASKS),
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


NO_ADDRESSES = ["javascript:alert(1)", "data:text/html,x", "//example.org", "https://huggingface.co@example.org/"]
NO_ADDRESSES += ["https://example.org/\u202egnp", "https://example.org/\n", f"https://example.org/{'x' * 300}"]


@pytest.mark.parametrize("address", [*NO_ADDRESSES, 7, ["x"]])
def test_only_a_plain_web_address_is_a_source(hub: LoopbackHub, data: str, address: Any) -> None:
    put(hub, entry(data, source={"url": address}), model="somebody/b")
    put(hub, entry(data, source={"url": "https://example.org/runs?id=1#x"}), model="somebody/c")
    shown = [row.reported for row in reported_by_others(DATA, []).rows]
    assert shown == ["https://huggingface.co/somebody/b", "https://example.org/runs?id=1#x"]


def test_a_later_commit_of_the_data_and_a_model_with_a_base_model_count(hub: LoopbackHub, data: str) -> None:
    put(hub, entry(hub.commit("dataset", DATA, {"notes.md": b"x"})))
    hub.commit("model", MODEL, {"README.md": b"---\nbase_model: a/b\n---\n"})
    assert len(reported_by_others(DATA, []).rows) == 1


def test_of_doubles_a_verified_one_counts_and_then_the_newest(hub: LoopbackHub, data: str) -> None:
    notes = entry(data)["notes"]
    put(hub, entry(data, value=1, date="2022-01-02"), entry(data, value=2, date="2022-01-03"))
    assert [row.value for row in reported_by_others(DATA, []).rows] == [2]
    again = entry(data, value=3, date="2021-01-01", verifyToken="valid", notes=f"again; {notes}")
    put(hub, again, file=f"{FILE}.yaml")
    found = reported_by_others(DATA, [])
    assert [(row.value, row.verified) for row in found.rows] == [(3, True)]
    assert found.left_out == {"doubles": 2}


def test_what_is_left_out_of_a_model_costs_only_that_model(
    hub: LoopbackHub, data: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for nth in range(5):
        put(hub, entry(data, value=nth), model=f"somebody/model{nth}")
    hub.fault("GET", "/api/models/somebody/model4$", status=403)
    monkeypatch.setattr(reported, "_MODELS", 2)
    found = reported_by_others(DATA, [f"somebody/model3@{'a' * 40}"])
    assert [row.model for row in found.rows] == ["somebody/model2"]
    assert found.left_out == {
        "that cannot be read": 1,
        "of models that the results hold": 1,
        "of models after the first 2, or without a valid id": 2,
    }


def test_a_dataset_without_a_leaderboard(hub: LoopbackHub) -> None:
    hub.commit("dataset", DATA, {"README.md": b""})
    with pytest.raises(InputError, match=f"{DATA}: the Hub has no leaderboard of it"):
        reported_by_others(DATA, [])
    with pytest.raises(InputError, match="ORG/none"):
        reported_by_others("ORG/none", [])
