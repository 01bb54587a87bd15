"""Results for Every Eval Ever have the fields that its schema 0.3.0 requires, and keep no path."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from temporalwiki.eval_harness.results import read_results
from temporalwiki.model_cards.every_eval_ever import SCHEMA, evaluation_log, write_logs

import a_result

# what the schema requires of each part, and the values that it allows
REQUIRED: dict[str, set[str]] = {
    "": {"schema_version", "evaluation_id", "retrieved_timestamp", "source_metadata", "model_info", "eval_library",
         "evaluation_results"},
    "source_metadata": {"source_type", "source_organization_name", "evaluator_relationship"},
    "eval_library": {"name", "version"},
    "model_info": {"name", "id", "additional_details"},
    "model_info/additional_details": {"deployment_type", "model_availability"},
    "evaluation_results": {"evaluation_name", "source_data", "metric_config", "score_details"},
    "evaluation_results/source_data": {"dataset_name", "source_type"},
    "evaluation_results/metric_config": {"lower_is_better"},
    "evaluation_results/score_details": {"score"},
    "evaluation_results/score_details/uncertainty/confidence_interval": {"lower", "upper"},
}  # fmt: skip
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
        {"name": "openai/gpt-5", "revision": "r", "precision": "api"}, "openai/gpt-5", "externally_managed", "unknown"
    ),
    "on a server": (
        {"name": "vllm-completions/ORG/model", "revision": "r", "precision": "server"}, "vllm-completions/ORG/model",
        "externally_managed", "unknown",
    ),
}  # fmt: skip


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
    wanted = {"deployment_type": deployment, "model_availability": availability}
    assert info["additional_details"].items() >= wanted.items()
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
    assert on_hub["source_data"].items() >= {"source_type": "hf_dataset", "hf_repo": "ORG/temporalwiki"}.items()
    assert on_hub["source_data"]["additional_details"]["revision"] == "2021.12"
    assert elsewhere["source_data"]["source_type"] == "other"
    assert "/home/" not in json.dumps(elsewhere)


def test_scores_that_are_neither_good_nor_bad_are_left_out() -> None:
    scores = {"changed/f1": estimate(1.5), "changed/old_exact_match": estimate(3), "all/chance": estimate(50)}
    assert [one["metric_config"]["metric_name"] for one in log(scores)["evaluation_results"]] == ["f1"]


NAMES = ["../../x", "..", "a/../../b", "ORG/.hidden", "a b/c\n", "x" * 5000, "\u65e5" * 300, "CON", "data/nul.txt"]
NAMES.append("a" * 90)


def written(tmp_path: Path, hits: int = 1, **model: Any) -> list[Path]:
    """Write one result, and return the files of its export."""
    a_result.write_clozes(tmp_path / "results", "newlama-1112", a_result.clozes(hits), **model)
    return write_logs(read_results(tmp_path / "results"), tmp_path / "out")


def problems(path: Path, top: Path) -> list[Any]:
    """Return what the database's own validator has against a file."""
    reason = "every-eval-ever, which needs Python 3.12, is not installed"
    core = pytest.importorskip("every_eval_ever.validator.validation_core", reason=reason)
    there = {file.relative_to(top).as_posix() for file in top.rglob("*") if file.is_file()}
    read = {"available_files": there, "read_repo_file": lambda name: (top / name).read_text("utf-8")}
    at = path.relative_to(top).as_posix()
    report = core.validate_file(path, repo_path=at, run_semantic_checks=True, **read)
    developer = report.warnings and "developer" in report.warnings[0]["msg"]  # of models that have none
    return [*report.errors, *(() if developer else report.warnings)]


@pytest.mark.parametrize("name", ["ORG/model", "gpt2", *NAMES])
def test_the_databases_validator_takes_all_files(name: str, tmp_path: Path) -> None:
    revision = "c" * 40 if len(name) < 300 else "r"
    (path,) = written(tmp_path, name=name, revision=revision)
    for file in (path, path.with_name(f"{path.stem}_samples.jsonl")):
        assert problems(file, tmp_path / "out") == []


def test_items_are_exported_with_their_scores(tmp_path: Path) -> None:
    (path,) = written(tmp_path, hits=3)
    log = json.loads(path.read_text("utf-8"))
    detail = log["detailed_evaluation_results"]
    lines = (tmp_path / "out" / detail["file_path"]).read_bytes()
    assert detail["checksum"] == hashlib.sha256(lines).hexdigest()
    samples = [json.loads(line) for line in lines.splitlines()]
    assert len(samples) == detail["total_rows"] == 10
    assert [sample["evaluation"] for sample in samples[2:4]] == [
        {"score": 1.0, "is_correct": True},
        {"score": 0.0, "is_correct": False},
    ]
    (score,) = log["evaluation_results"]
    of = {(sample["evaluation_id"], sample["model_id"], sample["evaluation_result_id"]) for sample in samples}
    assert of == {(log["evaluation_id"], log["model_info"]["id"], score["evaluation_result_id"])}


def test_an_id_is_made_of_the_content(tmp_path: Path) -> None:
    """Another revision of a model has another file; the same result at another time has the same."""
    (first,) = written(tmp_path / "1", name="ORG/model", revision="c" * 40)
    (other,) = written(tmp_path / "2", name="ORG/model", revision="d" * 40)
    (scores,) = written(tmp_path / "3", hits=2, name="ORG/model", revision="c" * 40)
    for path in (tmp_path / "1" / "results").rglob("*.json"):
        os.utime(path, (1, 1))
    (again,) = write_logs(read_results(tmp_path / "1" / "results"), tmp_path / "1" / "out")
    assert again == first
    assert json.loads(again.read_text("utf-8"))["retrieved_timestamp"] == "1"
    assert len({first.name, other.name, scores.name}) == 3
    assert first.parent.relative_to(tmp_path / "1") == other.parent.relative_to(tmp_path / "2")


@pytest.mark.parametrize("options", [{"beams": 2}, {"temperature": 2.0}])
def test_other_options_are_another_result(options: dict[str, Any]) -> None:
    content = {
        "model": {"name": "ORG/m", "revision": "c" * 40},
        "data": {"config": "newlama-1112", "hash": "h"},
        "scores": {"test/exact_match": estimate(5.0)},
    }
    ids = {
        evaluation_log(a_result.from_content(Path("a.json"), content | {"task": task}), 1)["evaluation_id"]
        for task in ({"name": "lama", "options": options}, {"name": "lama", "options": {}})
    }
    assert len(ids) == 2


@pytest.mark.fault(
    "odd paths and streams", "leaderboard --export: the name of a model that is a path", "no file leaves the folder"
)
@pytest.mark.parametrize("name", NAMES)
def test_no_name_of_a_model_leads_out_of_the_folder(name: str, tmp_path: Path) -> None:
    (path,) = written(tmp_path, name=name, revision="c" * 40 if len(name) < 300 else "r")
    assert [path.resolve()] == list((tmp_path / "out").rglob("*.json"))
    assert ".." not in path.relative_to(tmp_path).parts
    assert max(map(len, path.relative_to(tmp_path).parts)) < 100
