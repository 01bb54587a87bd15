"""What a model said in another harness, scored by `evaluate` without the model."""

from __future__ import annotations

import json
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from temporalwiki.base.errors import InputError
from temporalwiki.eval_harness import adapters
from temporalwiki.eval_harness.models.logged import LoggedModel
from temporalwiki.eval_harness.models.stored import open_scores
from temporalwiki.eval_harness.results import Result
from temporalwiki.eval_harness.runner import Evaluation, evaluate
from temporalwiki.eval_harness.tasks import find_task

from .conftest import EXACT_MATCH, F1, PROBES, write_probes

TASKS = ["twiki_probes", "twiki_objects", "twiki_answers"]


def score(model: Path, task: str, month: Path, out: Path, **options: Any) -> Result:
    """Score a model or a log as the command does."""
    wanted = Evaluation(str(model), str(month), {task: find_task(task)(**options)}, (), out, None)
    (result,) = evaluate(wanted, open_scores(str(model), out / "cache", "fp32"))
    return result


def values(result: Result) -> dict[str, float]:
    return {name: found.value for name, found in result.manifest.scores.items()}


def lm_eval_log(model: Path, data: Path, out: Path) -> Path:
    """Return the folder that lm_eval writes with --log_samples."""
    pytest.importorskip("lm_eval", reason="lm-evaluation-harness is not installed")
    from lm_eval.evaluator import simple_evaluate
    from lm_eval.loggers import EvaluationTracker
    from lm_eval.tasks import TaskManager

    tracker = EvaluationTracker(output_path=str(out))
    results = simple_evaluate(
        model="hf",
        model_args={"pretrained": str(model), "dtype": "float32", "device": "cpu", "add_bos_token": True},
        tasks=TASKS,
        task_manager=TaskManager(
            include_path=str(Path(adapters.__file__).parent / "lm_eval"),
            include_defaults=False,
            metadata={"data": str(data), "config": "probes-1112", "pretrained": str(model)},
        ),
        bootstrap_iters=0,
        evaluation_tracker=tracker,
        log_samples=True,
    )
    samples = results.pop("samples")
    tracker.save_results_aggregated(results=results, samples=samples)
    for task, of_task in samples.items():
        tracker.save_results_samples(task_name=task, samples=of_task)
    (log,) = out.iterdir()
    return log


def test_a_log_of_lm_eval_scores_as_its_model_does(month: Path, models: dict[str, Path], tmp_path: Path) -> None:
    logged = score(lm_eval_log(models["gpt2"], month, tmp_path / "log"), "twiki_probes", month, tmp_path)
    own = score(models["gpt2"], "twiki_probes", month, tmp_path)
    assert values(logged) == pytest.approx(values(own), rel=1e-4)
    assert {"average/object_perplexity", "changed/exact_match"} <= values(logged).keys()
    assert (logged.manifest.model.name, logged.manifest.model.precision) == (models["gpt2"].name, "fp32")
    assert logged.manifest.model.revision != own.manifest.model.revision


def inspect_log(folder: Path, month: Path, said: list[str], form: str = "eval", **options: Any) -> Path:
    """Return a log of our task for inspect-ai, by a model that answers ``said``."""
    pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")
    from inspect_ai import eval as inspect_eval
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    from temporalwiki.eval_harness.adapters.inspect_tasks import twiki_probes

    outputs = [ModelOutput.from_content("mockllm", text) for text in said]
    for output in outputs:
        output.usage = ModelUsage()
    inspect_eval(
        twiki_probes(data=str(month)),
        model=get_model("mockllm/model", custom_outputs=outputs, memoize=False),
        log_dir=str(folder),
        log_format=form,
        display="none",
        max_samples=1,
        max_connections=1,
        **options,
    )
    (path,) = folder.glob(f"*.{form}")
    return path


@pytest.mark.parametrize("form", ["eval", "json"])
def test_a_log_of_inspect_has_answers(month: Path, tmp_path: Path, form: str) -> None:
    said = [text for split in ("unchanged", "changed") for *_, text in PROBES[split]]
    result = score(inspect_log(tmp_path / "logs", month, said, form), "twiki_probes", month, tmp_path)
    unchanged, changed = (
        100 * sum(EXACT_MATCH[split]) / len(EXACT_MATCH[split]) for split in ("unchanged", "changed")
    )
    assert values(result) == pytest.approx(
        {
            "unchanged/exact_match": unchanged,
            "changed/exact_match": changed,
            "average/exact_match": (unchanged + changed) / 2,
            "unchanged/f1": 100 * sum(F1["unchanged"]) / 3,
            "changed/f1": 100 * sum(F1["changed"]) / 4,
            "average/f1": 100 * (sum(F1["unchanged"]) / 3 + sum(F1["changed"]) / 4) / 2,
        }
    )
    assert (result.manifest.model.name, result.manifest.model.precision) == ("mockllm/model", "unknown")


def test_probes_that_a_log_lacks_are_counted(month: Path, tmp_path: Path) -> None:
    log = inspect_log(tmp_path / "logs", month, ["Easton"] * 2, limit=2)
    result = score(log, "twiki_probes", month, tmp_path)
    assert result.manifest.excluded == {"unchanged: not in the log": 1, "changed: not in the log": 4}
    assert result.manifest.scores["unchanged/exact_match"].items == 2


def test_other_tasks_need_the_model(month: Path, tmp_path: Path) -> None:
    log = inspect_log(tmp_path / "logs", month, ["Easton"] * 7)
    for task in ("multiple_choice", "learned_and_forgotten"):
        with pytest.raises(InputError, match=rf"{task}: .* is a log, which twiki_probes can read"):
            score(log, task, month, tmp_path)


def test_a_log_of_other_probes(month: Path, tmp_path: Path) -> None:
    log = inspect_log(tmp_path / "logs", month, ["Easton"] * 7)
    other = write_probes(tmp_path / "other", changed=[("Weston", "capital", "Nowhere", [], "")])
    with pytest.raises(InputError, match="none of these probes is in it; was it made with other data"):
        score(log, "twiki_probes", other, tmp_path)


SAMPLE = {"doc": {"subject": "A", "relation": "b", "object": "C", "tokens": 3, "object_tokens": 1}}


def test_numbers_of_a_sample(tmp_path: Path) -> None:
    """Whole -5 nats, prompt -2: the object has 3 nats."""
    sample = SAMPLE | {"resps": [[["-5.0", "False"]], [["-2.0", "True"]]]}
    (tmp_path / "samples_twiki_objects_changed_2026.jsonl").write_text(json.dumps(sample) + "\n")
    (found,) = LoggedModel(tmp_path).logged({"changed": [{"subject": "A", "relation": "b", "object": "C"}]}, Counter())
    expected = {"nll": 5, "tokens": 3, "object_nll": 3, "object_tokens": 1, "bytes": len("A b C")}
    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("task", "line", "message"),
    [
        ("probes", "{", "line 2: not a sample of twiki_probes_changed .*; run lm_eval with --log_samples again"),
        ("probes", json.dumps({"doc": {"subject": 1}, "resps": []}), "line 2: not a sample of twiki_probes_changed"),
        ("probes", json.dumps(SAMPLE | {"resps": []}), "line 2: .*log-likelihoods are finite numbers"),
        ("probes", json.dumps(SAMPLE | {"resps": [[["-inf", "False"]]]}), "log-likelihoods are finite numbers"),
        ("probes", json.dumps(SAMPLE | {"resps": [[["nan", "False"]]]}), "log-likelihoods are finite numbers"),
        ("objects", json.dumps(SAMPLE | {"resps": [[["-1", "False"]]]}), "log-likelihoods are finite numbers"),
        ("answers", json.dumps(SAMPLE | {"resps": [[["-1", "False"]]]}), "an answer is a text"),
        ("answers", json.dumps(SAMPLE | {"resps": [["a"], ["b"]]}), "line 2: not a sample of twiki_answers_changed"),
    ],
)
def test_damaged_samples(tmp_path: Path, task: str, line: str, message: str) -> None:
    good = {"probes": [[["-5", "x"]]], "objects": [[["-5", "x"]], [["-2", "x"]]], "answers": [["C"]]}[task]
    path = tmp_path / f"samples_twiki_{task}_changed_2026.jsonl"
    path.write_text(f"{json.dumps(SAMPLE | {'resps': good})}\n{line}\n")
    with pytest.raises(InputError, match=message):
        LoggedModel(tmp_path)


def test_a_damaged_log_of_inspect(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    path.write_bytes(b"PK\x03\x04 not a zip")
    with pytest.raises(InputError, match=r"log\.eval: not a log of inspect-ai"):
        LoggedModel(path)


def test_a_zip_that_grows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("header.json", "{}")
    content = bytearray(path.read_bytes())
    size = content.rindex(b"PK\x01\x02") + 24  # the unpacked size in the directory
    content[size : size + 4] = (3 << 30).to_bytes(4, "little")
    path.write_bytes(content)
    with pytest.raises(InputError, match="larger than 2 GB unpacked"):
        LoggedModel(path)


def test_the_newest_samples_count(tmp_path: Path) -> None:
    for day, said in (("2026-01-02", "new"), ("2026-01-01", "old")):
        sample = SAMPLE | {"resps": [[said]]}
        (tmp_path / f"samples_twiki_answers_changed_{day}.jsonl").write_text(json.dumps(sample) + "\n")
    row = {"subject": "A", "relation": "b", "object": "new"}
    (item,) = LoggedModel(tmp_path).logged({"changed": [row]}, Counter())
    assert item["exact_match"] == 1
