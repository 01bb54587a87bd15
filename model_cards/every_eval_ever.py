"""Results for Every Eval Ever, a database of evaluations: each is a JSON document of version 0.3.0 of its schema."""

import hashlib
import json
import math
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from temporalwiki.base.errors import InputError
from temporalwiki.base.files import digest, whole_file
from temporalwiki.base.json_files import fingerprint, write_json
from temporalwiki.eval_harness.leaderboard.rows import without_path
from temporalwiki.eval_harness.leaderboard.write import dataset_on_hub
from temporalwiki.eval_harness.measures import MEASURES, higher_is_better
from temporalwiki.eval_harness.result_manifest import ResultManifest, ResultScore
from temporalwiki.eval_harness.results import COMMIT, Result, plain
from temporalwiki.eval_harness.statistics import PERPLEXITY, POSITIVE

SCHEMA = "0.3.0"
_BEHIND = ("api", "server")  # the precisions of models behind an interface
# by Windows, by the database
_RESERVED = re.compile(r"(con|prn|aux|nul|com[1-9]|lpt[1-9]|data)(\..*)?", re.IGNORECASE)


def write_logs(results: Sequence[Result], folder: Path) -> list[Path]:
    """Write each result to FOLDER/data/temporalwiki/DEVELOPER/MODEL/UUID.json, and its items to UUID_samples.jsonl.

    This is the database's layout; the paths of the results are returned. The UUID is made of the content, so the same
    result has the same file at any time. Results without scores that can be better or worse are left out. Raises
    InputError for damaged items.
    """
    written = []
    for result in results:
        log = evaluation_log(result, int(result.path.stat().st_mtime))
        if not log["evaluation_results"]:
            continue
        developer, _, own = log["model_info"]["id"].partition("/")
        key = log["evaluation_id"].rpartition("/")[2]
        at = f"data/temporalwiki/{developer}/{own.replace('/', '_')}/{key}"
        samples = f"{at}_samples.jsonl"
        with whole_file(folder / samples) as part, part.open("wb") as file:
            count = sum(file.write(line) > 0 for line in _samples(result, log))
        if count:
            known = {"format": "jsonl", "file_path": samples, "total_rows": count, "hash_algorithm": "sha256"}
            log["detailed_evaluation_results"] = known | {"checksum": digest(folder / samples, "sha256")}
        else:
            (folder / samples).unlink()
        write_json(folder / f"{at}.json", log)
        written.append(folder / f"{at}.json")
    return written


def _samples(result: Result, log: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield a line for each item of each score that is a percentage of items.

    Items have no text: their input is the subject and the relation, as Wikidata's ids if there are any.
    """
    try:
        items = result.items() if result.path.with_suffix(".parquet").is_file() else []
    except (OSError, pa.ArrowException):
        raise InputError(f"{result.path.with_suffix('.parquet')}: not the items of a result; evaluate again") from None
    for score in log["evaluation_results"]:
        test, _, name = score["evaluation_result_id"].removeprefix(_prefix(result.manifest)).rpartition("/")
        measure = MEASURES.get(name)
        if measure is None or not measure.scale.percent:
            continue
        for item in items:
            value, split = item.get(measure.needs or name), str(item.get("split", ""))
            if split != test and not (test == "all" and split in (measure.of or split)):
                continue
            if isinstance(value, int | float) and math.isfinite(value) and item.get("form", "name") == "name":
                said = [str(item["answer"])] if item.get("answer") is not None else []
                found = {"source": "output.raw", "extraction_method": "first sentence", "is_terminal": True}
                sample = {
                    "schema_version": SCHEMA,
                    "evaluation_id": log["evaluation_id"],
                    "model_id": log["model_info"]["id"],
                    "evaluation_name": score["evaluation_name"],
                    "evaluation_result_id": score["evaluation_result_id"],
                    "sample_id": str(item.get("id")),
                    "interaction_type": "single_turn",
                    "input": {"raw": f"{item.get('cluster')} {item.get('relation', '')}".strip(), "reference": []},
                    "output": {"raw": said},
                    "answer_attribution": [found | {"turn_idx": 0, "extracted_value": text} for text in said],
                    "evaluation": {"score": float(value), "is_correct": value >= 1},
                    "metadata": {"split": split},
                }
                yield json.dumps(sample, sort_keys=True).encode() + b"\n"


def evaluation_log(result: Result, retrieved: int) -> dict[str, Any]:
    """Return a result as a document of the database. ``retrieved`` is when it was written, in seconds since 1970."""
    found = result.manifest
    model = _model(found)
    task = {"task": found.task.name, "task_version": str(found.task.version)}
    scores = [
        _score(result, name, score)
        for name, score in found.scores.items()
        if math.isfinite(score.value) and higher_is_better(found.task.name, name.rpartition("/")[2]) is not None
    ]
    details = task | {name: str(value) for name, value in found.task.options.items()}
    for name in ("start", "judge"):  # the models that it was compared with or judged by
        if isinstance(other := result.data.get(name), dict):
            details[name] = str(other.get("revision"))
    if found.data.retrieved is not None:
        details["retrieved"] = str(found.data.retrieved.hash)
    log: dict[str, Any] = {
        "schema_version": SCHEMA,
        "source_metadata": {
            "source_name": "temporalwiki",
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
        },
        "eval_library": {
            "name": "temporalwiki",
            "version": found.run.temporalwiki or "unknown",
            "additional_details": details,
        },
        "model_info": model,
        "evaluation_results": scores,
    }
    key = uuid.UUID(bytes=hashlib.sha256(json.dumps(log, sort_keys=True).encode()).digest()[:16], version=4)
    name = plain(f"temporalwiki-{found.scored}-{found.data.config}")
    return log | {"evaluation_id": f"{name}/{model['id']}/{key}", "retrieved_timestamp": str(retrieved)}


def _prefix(found: ResultManifest) -> str:
    return f"{found.scored}/{found.data.config}/"


def _part(name: str) -> str:
    """Return a name as a part of a path on any system, at most 90 characters long."""
    part = plain(name) if len(name) <= 80 else f"{plain(name[:70])}-{fingerprint(name)[:8]}"
    return f"model-{part}" if _RESERVED.fullmatch(part) else part


def _model(found: ResultManifest) -> dict[str, Any]:
    model = found.model
    on_hub, behind = bool(COMMIT.fullmatch(model.revision)), model.precision in _BEHIND
    name = model.name if on_hub or behind else without_path(model.name)
    details = {
        "deployment_type": "externally_managed" if behind else "self_deployed",
        "model_availability": "open_weights" if on_hub else "unknown",
        "revision": model.revision,
        "precision": model.precision,
        "method": model.method,
        "base": model.base,
        "trained_on": ", ".join(model.trained_on),
        "trained_on_test": ", ".join(model.trained_on_test),
    }
    given = {key: value for key, value in details.items() if value}
    parts = (name if "/" in name else f"unknown/{name}").split("/", 2)
    return {"name": name, "id": "/".join(map(_part, parts)), "additional_details": given}


def _score(result: Result, name: str, score: ResultScore) -> dict[str, Any]:
    found = result.manifest
    test, _, measure = name.rpartition("/")
    details = {"config": found.data.config, "test": test, "hash": found.data.hash}
    data: dict[str, Any] = {"dataset_name": found.data.config, "source_type": "other", "additional_details": details}
    if (on_hub := dataset_on_hub(result)) is not None:
        revision = found.data.dataset.partition("@")[2]
        data |= {"source_type": "hf_dataset", "hf_repo": on_hub, "samples_number": score.items}
        data["additional_details"] = details | {"revision": revision}
    uncertainty: dict[str, Any] = {"num_samples": score.items}
    if score.low is not None and score.high is not None and math.isfinite(score.low) and math.isfinite(score.high):
        ends = {"lower": score.low, "upper": score.high, "confidence_level": 0.95}
        uncertainty["confidence_interval"] = ends | {"method": f"clustered by {score.clusters} subjects"}
    return {
        "evaluation_result_id": f"{_prefix(found)}{name}",
        "evaluation_name": f"{found.scored} {found.data.config} {test}".strip(),
        "source_data": data,
        "metric_config": _metric(found.task.name, measure),
        "score_details": {"score": score.value, "uncertainty": uncertainty},
    }


def _metric(task: str, measure: str) -> dict[str, Any]:
    known = MEASURES.get(measure)
    low, high, unit = "-Infinity", "Infinity", ""
    bounds: dict[str, Any] = {"min_score": low, "max_score": high}
    if known is not None and known.scale.percent:
        bounds, unit = {"min_score": 0, "max_score": 100}, "percent"
    elif known is not None and known.scale in (PERPLEXITY, POSITIVE):
        bounds["min_score"] = 1 if "perplexity" in measure else 0
    elif known is not None and known.scale.points:
        bounds, unit = {"min_score": -100, "max_score": 100}, "percentage points"
    elif known is not None and known.sign:
        unit = f"{known.sign} per token"
    return {
        "metric_id": f"temporalwiki.{measure}",
        "metric_name": measure,
        **({"metric_unit": unit} if unit else {}),
        "lower_is_better": not higher_is_better(task, measure),
        "score_type": "continuous",
        **bounds,
    }
