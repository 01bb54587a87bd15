"""Results for Every Eval Ever, a database of evaluations: each is a JSON document of version 0.3.0 of its schema."""

from __future__ import annotations

import math
import re
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from temporalwiki.base.files import make_folder
from temporalwiki.base.json_files import write_json
from temporalwiki.eval_harness.leaderboard.rows import without_path
from temporalwiki.eval_harness.leaderboard.write import dataset_on_hub
from temporalwiki.eval_harness.measures import MEASURES, higher_is_better
from temporalwiki.eval_harness.result_manifest import ResultManifest, ResultScore
from temporalwiki.eval_harness.results import COMMIT, Result
from temporalwiki.eval_harness.statistics import PERPLEXITY, POSITIVE

SCHEMA = "0.3.0"
_BEHIND = ("api", "server")  # the precisions of models behind an interface


def write_logs(results: Sequence[Result], folder: Path) -> list[Path]:
    """Write each result to FOLDER/temporalwiki/DEVELOPER/MODEL/UUID.json, the database's layout; return the paths.

    The UUID is made from the result, so the same results have the same files. Results without scores that can be
    better or worse are left out.
    """
    written = []
    for result in results:
        log = evaluation_log(result, int(result.path.stat().st_mtime))
        if not log["evaluation_results"]:
            continue
        parts = [re.sub(r"[^\w.-]|^\.+", "-", part) for part in log["model_info"]["id"].split("/", 1)]
        path = folder.joinpath("temporalwiki", *parts, f"{uuid.uuid5(uuid.NAMESPACE_URL, log['evaluation_id'])}.json")
        make_folder(path.parent)
        write_json(path, log)
        written.append(path)
    return written


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
    return {
        "schema_version": SCHEMA,
        "evaluation_id": f"temporalwiki-{found.scored}-{found.data.config}/{model['id']}/{retrieved}".replace(
            " ", "-"
        ),
        "retrieved_timestamp": str(retrieved),
        "source_metadata": {
            "source_name": "temporalwiki",
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
        },
        "eval_library": {
            "name": "temporalwiki",
            "version": found.run.temporalwiki or "unknown",
            "additional_details": task | {name: str(value) for name, value in found.task.options.items()},
        },
        "model_info": model,
        "evaluation_results": scores,
    }


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
    return {"name": name, "id": name if "/" in name else f"unknown/{name}", "additional_details": given}


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
        "evaluation_result_id": f"{found.scored}/{found.data.config}/{name}",
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
