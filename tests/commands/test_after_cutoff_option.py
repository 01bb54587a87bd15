# ruff: noqa: E501 - one case a line
"""`temporalwiki evaluate --after-cutoff`: what is scored, what is dropped, and how much of it leaked."""

import datetime
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from temporalwiki.eval_harness.results import Result, read_results

import tiny_models
from a_dataset import write_dataset
from tiny_probes import forward_passes, save_taught

pytestmark = pytest.mark.usefixtures("quick")

Run = Callable[..., tuple[int, str, str]]

LONG = "20211101-20211201"


def fact(subject: str, relation: str, new: str, gone: str | None, began: int | None = None) -> dict[str, Any]:
    start = None if began is None else datetime.datetime(began, 1, 1, tzinfo=datetime.UTC)
    known = {"subject": subject, "relation": relation, "object": new, "subject_id": f"Q-{subject}"}
    return {**known, "previous_objects": [gone] if gone else [], "start_time": start}


# What the taught model says: Anna Weber of Norland, [Ito] <b> of Easton
CHANGED = [
    fact("Norland", "head of government", "Anna Weber", "Carl Ito"),  # it prefers what is new
    fact("Easton", "{{mayor}}", "Carl Ito", "[Ito] <b>"),  # and here what is old
    fact("東京", "country", "日本", None),  # nothing is old
    fact("Anna Weber", "year of birth", "1961", "1962", began=1961),  # older than any cutoff
]
UNCHANGED = [fact("Norland", "capital", "Easton", None), fact("Anna Weber", "was born in", "Easton", None, 1961)]
CLOZES = [
    {
        **{name: text for name, text in row.items() if isinstance(text, str)},
        "statement": f"{row['subject']} {row['relation']} <extra_id_0>.",
        "answers": [row["object"]],
        "old_answers": row["previous_objects"],
        "start_time": None,
    }
    for row in CHANGED[:2]
]


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("there")
    save_taught("gpt2", folder / "taught")
    tiny_models.save("gpt2", folder / "gpt2")
    earlier = {"changed": [fact("Norland", "capital", "Weston", "Easton")]}
    probes = {"changed": CHANGED, "unchanged": UNCHANGED}
    eight = {  # a panel in each split
        split: [
            fact(f"{split} {i}", "capital", f"Town {split} {i}", "Weston" if split == "changed" else None)
            for i in range(8)
        ]
        for split in probes
    }
    eight["changed"][0] |= fact("x", "capital", "y", None, 1961)
    text = [{"id": 1, "title": "Anna", "text": "Anna Weber is in Easton. " * 9}]
    configs: dict[str, Any] = {
        f"probes-{LONG}": probes, "probes-1112": probes,
        "probes-20211001-20211101": earlier, "probes-1011": earlier,
        "probes-20211201-20220101": eight,
        f"updatedlama-{LONG}": {"test": CLOZES}, f"unchanged-{LONG}": {"train": text},
    }  # fmt: skip
    write_dataset(folder / "data", configs)
    return folder


@pytest.fixture
def evaluate(run: Run, there: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(there)
    monkeypatch.setattr("temporalwiki.eval_harness.models.cache.cache_folder", lambda: tmp_path / "scores")

    def evaluated(*words: Any) -> tuple[int, str, str]:
        given = ("--model", "taught", "--data", "data", "--output", tmp_path / "results")
        own = () if "--tasks" in words else ("--tasks", "twiki_probes", "--no-answers", "--no-light-tuning")
        return run("evaluate", *given, *own, *words)

    return evaluated


def results(tmp_path: Path) -> list[Result]:
    return read_results(tmp_path / "results")


@pytest.mark.parametrize("after", ["20211031", "2021-10"])
def test_it_scores_and_says_what_is_newer_and_what_leaked(after: str, evaluate: Run, tmp_path: Path) -> None:
    words = ("--config", "probes-1112", "--after-cutoff", after)
    status, out, _ = evaluate(*words)
    assert status == 0
    lines = out.splitlines()
    assert lines[0] == "twiki_probes after 2021-10-31 of taught on probes-1112"
    assert lines[-4:-2] == [
        "kept, after 2021-10-31: 3 of 4 rows of changed, 0 of 2 rows of unchanged",
        "leak check: taught prefers what is new in 1 of 2 changed facts",
    ]
    [result] = results(tmp_path)
    assert result.data["data"]["rows"] == {"changed": 3}
    assert result.data["data"]["newer"] == {
        "day": "2021-10-31",
        "model": None,
        "kept": {"changed": 3, "unchanged": 0},
        "dropped": {"changed": 1, "unchanged": 2},
    }
    assert result.data["leak"] == {"model": "taught", "facts": 2, "new": 1}
    assert {item["cluster"] for item in result.items()} == {"Q-Norland", "Q-Easton", "Q-東京"}
    with forward_passes() as passes:  # the same command reads the result and says the same
        assert evaluate(*words) == (0, out, "")
    assert passes == []


def test_the_cutoff_of_a_model_by_name(evaluate: Run, tmp_path: Path) -> None:
    overall = {"verdict": "found", "cutoff": "2021-09", "low": "2021-08", "high": "2021-10"}
    path = tmp_path / "results" / "gpt2" / "cutoff.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"model": "gpt2", "overall": overall, "curve": []}))
    status, out, _ = evaluate("--config", "probes-1112", "--after-cutoff", "gpt2")
    assert status == 0
    assert "kept, after 2021-10-31, the cutoff of gpt2: 3 of 4 rows of changed" in out
    assert results(tmp_path)[0].data["data"]["newer"]["model"] == "gpt2"
    path.write_text(path.read_text().replace('"found"', '"cannot tell"').replace("2021-", "x"))
    status, _, err = evaluate("--config", "probes-1112", "--after-cutoff", "gpt2")
    assert status == 1
    assert f"{path}: not a result of `temporalwiki cutoff`; run the command again" in err.splitlines()[-1]


def test_a_limit_counts_what_is_left(evaluate: Run, tmp_path: Path) -> None:
    assert evaluate("--config", "probes-1112", "--after-cutoff", "2021-10", "--limit", 2)[0] == 0
    [result] = results(tmp_path)
    assert (result.data["data"]["rows"]["changed"], result.data["data"]["newer"]["kept"]["changed"]) == (2, 3)


def test_what_is_compared_stays_and_the_start_model_is_checked(evaluate: Run, tmp_path: Path) -> None:
    words = ("--config", "probes-1112", "--after-cutoff", "2021-10")
    in_panels = ("--config", "probes-20211201-20220101", "--after-cutoff", "2021-10")
    status, out, err = evaluate("--tasks", "learned_and_forgotten", "--start", "gpt2", *in_panels)
    assert status == 0, err
    [result] = results(tmp_path)
    assert result.data["data"]["newer"]["dropped"] == {"changed": 1, "unchanged": 0}
    assert "all/forgotten" in result.data["scores"]
    assert result.data["leak"]["model"] == "gpt2"
    # also for a task that compares nothing
    assert evaluate("--tasks", "multiple_choice", "--start", "gpt2", *words)[0] == 0
    assert [one.data["leak"]["model"] for one in results(tmp_path)] == ["gpt2", "gpt2"]
    # results have no likelihoods of what is old
    status, out, err = evaluate(
        "--tasks", "learned_and_forgotten", "--model", result.path, "--start", result.path, *in_panels
    )
    assert status == 0, err
    assert "leak check: none; it needs changed facts with an old object, and a model instead of its results" in out


def test_old_answers_of_clozes_are_checked(evaluate: Run) -> None:
    words = ("--tasks", "lama", "--candidates", 0, "--config", f"updatedlama-{LONG}", "--after-cutoff", "2021-10")
    status, out, _ = evaluate(*words)
    assert status == 0
    assert "leak check: taught prefers what is new in 1 of 2 changed facts" in out


def test_a_config_without_newer_rows_is_left_out(evaluate: Run, tmp_path: Path) -> None:
    status, _, err = evaluate("--after-cutoff", "2021-10")
    assert status == 0
    assert "left out: data, probes-1011: none of its 1 rows is newer than 2021-10-31" in err
    assert [result.data["data"]["config"] for result in results(tmp_path)] == ["probes-1112"]


FAILED: dict[str, tuple[tuple[Any, ...], int, str]] = {
    "nothing is newer": (
        ("--config", "probes-1112", "--after-cutoff", "2021-11"), 1,
        "data, probes-1112: none of its 6 rows is newer than 2021-11-30, so twiki_probes has nothing to score",
    ),
    "nothing but what is compared": (
        ("--tasks", "learned_and_forgotten", "--start", "gpt2", "--config", "probes-1112", "--after-cutoff", "2021-11"), 1,
        "data, probes-1112: none of its 4 rows is newer than 2021-11-30, so learned_and_forgotten has nothing",
    ),
    "no date": (("--after-cutoff", "2021-13"), 2, "after-cutoff '2021-13': there is no such day or month"),
    "a model without a cutoff": (("--after-cutoff", "org/model"), 1, "org/model: not a result of `temporalwiki"),
}  # fmt: skip


@pytest.mark.parametrize("case", FAILED)
def test_what_it_refuses_is_one_line(case: str, evaluate: Run, tmp_path: Path) -> None:
    words, expected, line = FAILED[case]
    status, out, err = evaluate(*words)
    assert (status, out) == (expected, "")
    assert line in err.splitlines()[-1]
    assert "Traceback" not in err
    assert not (tmp_path / "results").exists()
