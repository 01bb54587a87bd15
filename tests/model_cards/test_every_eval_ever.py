"""Results for Every Eval Ever have the fields that its schema 0.3.0 requires, and keep no path."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from temporalwiki.eval_harness.results import read_results
from temporalwiki.model_cards.every_eval_ever import SCHEMA, evaluation_log, write_logs

import a_result

# what the schema requires of each part, and the values that it allows
REQUIRED: dict[str, set[str]] = {
    "": {
        "schema_version",
        "evaluation_id",
        "retrieved_timestamp",
        "source_metadata",
        "model_info",
        "eval_library",
        "evaluation_results",
    },
    "source_metadata": {"source_type", "source_organization_name", "evaluator_relationship"},
    "eval_library": {"name", "version"},
    "model_info": {"name", "id", "additional_details"},
    "model_info/additional_details": {"deployment_type", "model_availability"},
    "evaluation_results": {"evaluation_name", "source_data", "metric_config", "score_details"},
    "evaluation_results/source_data": {"dataset_name", "source_type"},
    "evaluation_results/metric_config": {"lower_is_better"},
    "evaluation_results/score_details": {"score"},
    "evaluation_results/score_details/uncertainty/confidence_interval": {"lower", "upper"},
}
ALLOWED = {
    "source_metadata/source_type": {"documentation", "evaluation_run"},
    "source_metadata/evaluator_relationship": {"first_party", "third_party", "collaborative", "other"},
    "model_info/additional_details/deployment_type": {"self_deployed", "externally_managed", "unknown"},
    "model_info/additional_details/model_availability": {"open_weights", "closed_weights", "unknown"},
    "evaluation_results/metric_config/score_type": {"binary", "continuous", "levels"},
}
HUB: dict[str, Any] = {"name": "ORG/model", "revision": "c" * 40, "trained_on": ["diffset-1011", "diffset-1112"]}
# how a model is named and known -> its id and how it runs
MODELS: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "on the Hub": (HUB, "ORG/model", "self_deployed", "open_weights"),
    "on the Hub, without an owner": (HUB | {"name": "gpt2"}, "unknown/gpt2", "self_deployed", "open_weights"),
    "a folder": ({"name": "/home/ann/runs/lora", "revision": "r"}, "unknown/lora", "self_deployed", "unknown"),
    "behind an interface": (
        {"name": "openai/gpt-5", "revision": "r", "precision": "api"},
        "openai/gpt-5",
        "externally_managed",
        "unknown",
    ),
    "on a server": (
        {"name": "vllm-completions/ORG/model", "revision": "r", "precision": "server"},
        "vllm-completions/ORG/model",
        "externally_managed",
        "unknown",
    ),
}


def estimate(value: float, low: float | None = None, high: float | None = None) -> dict[str, Any]:
    return {"value": value, "low": low, "high": high, "items": 12, "clusters": 7}


def log(scores: dict[str, Any], dataset: str = "data", task: str = "twiki_probes", **model: Any) -> dict[str, Any]:
    content = {
        "task": {"name": task, "version": 3, "options": {"beams": 1}},
        "model": {"name": "m", "revision": "r", **model},
        "data": {"dataset": dataset, "config": "probes-1112", "hash": "h"},
        "scores": scores,
    }
    made = evaluation_log(a_result.from_content(Path("m", "a.json"), content), 1_700_000_000)
    for path, keys in REQUIRED.items():
        assert all(keys <= part.keys() for part in parts(made, path)), path
    for path, values in ALLOWED.items():
        assert all(value in values for value in parts(made, path)), path
    return json.loads(json.dumps(made, allow_nan=False))  # type: ignore[no-any-return]


def parts(made: Any, path: str) -> list[Any]:
    """Return the parts of a document at a path; all parts of a list count, and a missing part is none."""
    found = [made]
    for key in filter(None, path.split("/")):
        inner = [part[key] for part in found if key in part]
        found = [one for part in inner for one in (part if isinstance(part, list) else [part])]
    return found


@pytest.mark.parametrize("case", MODELS)
def test_a_model(case: str) -> None:
    model, id, deployment, availability = MODELS[case]
    info = log({"changed/f1": estimate(1.5)}, **model)["model_info"]
    assert info["id"] == id
    assert (info["additional_details"]["deployment_type"], info["additional_details"]["model_availability"]) == (
        deployment,
        availability,
    )
    assert "/home/" not in json.dumps(info)


# task, measure -> unit, whether lower is better, the ends of the scale
METRICS = [
    ("twiki_probes", "exact_match", "percent", False, 0, 100),
    ("twiki_probes", "perplexity", None, True, 1, "Infinity"),
    ("learned_and_forgotten", "new_known", "percent", False, 0, 100),
    ("learned_and_forgotten", "learned", "percentage points", False, -100, 100),
    ("learned_and_forgotten", "forgotten", "percentage points", True, -100, 100),
]


@pytest.mark.parametrize(("task", "measure", "unit", "lower", "least", "most"), METRICS)
def test_a_score(task: str, measure: str, unit: str | None, lower: bool, least: object, most: object) -> None:
    made = log({f"changed/{measure}": estimate(10.25, 8.5, 12)}, task=task)
    assert made["schema_version"] == SCHEMA == "0.3.0"
    [result] = made["evaluation_results"]
    metric = result["metric_config"]
    assert (metric.get("metric_unit"), metric["lower_is_better"]) == (unit, lower)
    assert (metric["min_score"], metric["max_score"]) == (least, most)
    assert result["score_details"]["score"] == 10.25
    uncertainty = result["score_details"]["uncertainty"]
    interval = uncertainty["confidence_interval"]
    assert (interval["lower"], interval["upper"], interval["confidence_level"]) == (8.5, 12, 0.95)
    assert uncertainty["num_samples"] == 12
    assert result["evaluation_name"] == f"{task} probes-1112 changed"


def test_a_dataset_on_the_hub_and_one_elsewhere() -> None:
    scores = {"changed/f1": estimate(1.5)}
    [on_hub] = log(scores, "ORG/temporalwiki@2021.12")["evaluation_results"]
    [elsewhere] = log(scores, "/home/ann/data")["evaluation_results"]
    assert (on_hub["source_data"]["source_type"], on_hub["source_data"]["hf_repo"]) == (
        "hf_dataset",
        "ORG/temporalwiki",
    )
    assert on_hub["source_data"]["additional_details"]["revision"] == "2021.12"
    assert elsewhere["source_data"]["source_type"] == "other"
    assert "/home/" not in json.dumps(elsewhere)


def test_scores_that_are_neither_good_nor_bad_are_left_out() -> None:
    scores = {"changed/f1": estimate(1.5), "changed/old_exact_match": estimate(3), "all/chance": estimate(50)}
    assert [one["metric_config"]["metric_name"] for one in log(scores)["evaluation_results"]] == ["f1"]


@pytest.mark.parametrize("name", ["../../x", "..", "a/../../b", "ORG/.hidden", "a b/c\n"])
def test_no_name_of_a_model_leads_out_of_the_folder(name: str, tmp_path: Path) -> None:
    item = {"id": "1", "cluster": "a", "relation": "r", "exact_match": 1.0}
    a_result.write_clozes(tmp_path / "results", "newlama-1112", [item], name=name, revision="c" * 40)
    written = write_logs(read_results(tmp_path / "results"), tmp_path / "out")
    assert [path.resolve() for path in written] == list((tmp_path / "out").rglob("*.json"))
    assert all(".." not in path.relative_to(tmp_path).parts for path in written)
    assert written == write_logs(read_results(tmp_path / "results"), tmp_path / "out")
