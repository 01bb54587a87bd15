"""What a model said in another harness, scored by `evaluate` without the model."""

import json
import re
import tracemalloc
import zipfile
from collections import Counter
from collections.abc import Callable
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


DOC = {"subject": "A", "relation": "b", "object": "C", "tokens": 3, "object_tokens": 1}
SETTINGS = {"until": [], "max_gen_toks": 20, "do_sample": False}  # of our task
# what lm_eval asks the model for a sample of each task
ASKED: dict[str, list[tuple[str, Any]]] = {
    "probes": [("", "A b C")],
    "objects": [("", "A b C"), ("", "A b")],
    "answers": [("A b", SETTINGS)],
}


def sample(task: str, resps: list[Any], asked: list[tuple[str, Any]] | None = None) -> dict[str, Any]:
    """A line of lm_eval's samples."""
    of = {f"gen_args_{i}": {"arg_0": a, "arg_1": b} for i, (a, b) in enumerate(asked or ASKED[task])}
    return {"doc": DOC, "resps": resps, "arguments": of}


def write_sample(folder: Path, task: str, *lines: str) -> Path:
    path = folder / f"samples_twiki_{task}_changed_2026.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_numbers_of_a_sample(tmp_path: Path) -> None:
    """Whole -5 nats, prompt -2: the object has 3 nats."""
    write_sample(tmp_path, "objects", json.dumps(sample("objects", [[["-5.0", "False"]], [["-2.0", "True"]]])))
    (found,) = LoggedModel(tmp_path).logged({"changed": [{"subject": "A", "relation": "b", "object": "C"}]}, Counter())
    expected = {"nll": 5, "tokens": 3, "object_nll": 3, "object_tokens": 1, "bytes": len("A b C")}
    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("task", "line", "message"),
    [
        ("probes", "{", "line 2: not a sample of twiki_probes_changed .*; run lm_eval with --log_samples again"),
        ("probes", json.dumps({"doc": {"subject": 1}, "resps": []}), "line 2: not a sample of twiki_probes_changed"),
        ("probes", [], "line 2: .*log-likelihoods are finite numbers"),
        ("probes", [[["-inf", "False"]]], "log-likelihoods are finite numbers"),
        ("probes", [[["nan", "False"]]], "log-likelihoods are finite numbers"),
        ("probes", [[["0.5", "False"]]], "a log-likelihood is above zero"),
        ("objects", [[["-1", "False"]]], "log-likelihoods are finite numbers"),
        ("objects", [[["-1", "False"]], [["-2", "False"]]], "a log-likelihood is above zero"),
        ("answers", [[["-1", "False"]]], "an answer is a text"),
        ("answers", [["a"], ["b"]], "line 2: not a sample of twiki_answers_changed"),
        ("probes", json.dumps(sample("probes", [[["-5", "x"]]]) | {"doc": DOC | {"tokens": -3}}), "`int` >= 0"),
        ("answers", json.dumps(sample("answers", [["C"]]) | {"arguments": None}), "line 2: not a sample"),
    ],
)
def test_damaged_samples(tmp_path: Path, task: str, line: Any, message: str) -> None:
    good = {"probes": [[["-5", "x"]]], "objects": [[["-5", "x"]], [["-2", "x"]]], "answers": [["C"]]}[task]
    line = line if isinstance(line, str) else json.dumps(sample(task, line))
    write_sample(tmp_path, task, json.dumps(sample(task, good)), line)
    with pytest.raises(InputError, match=message):
        LoggedModel(tmp_path)


SYSTEM = "Answer in French.\n\n"
# what else the model may have read, by task
OTHER_PROMPTS: dict[str, tuple[str, list[tuple[str, Any]]]] = {
    "a system instruction": ("answers", [(f"{SYSTEM}A b", SETTINGS)]),
    "examples": ("answers", [("X y Z\n\nA b", SETTINGS)]),
    "a chat template": ("answers", [("<|user|>A b<|assistant|>", SETTINGS)]),
    "a system instruction before a probe": ("probes", [(SYSTEM, "A b C")]),
    "a context that is not scored": ("probes", [("A b", " C")]),
    "a system instruction before one of two texts": ("objects", [("", "A b C"), (SYSTEM, "A b")]),
    "another text": ("objects", [("", "A b C"), ("", "A")]),
    "sampled answers": ("answers", [("A b", SETTINGS | {"do_sample": True, "temperature": 1.0})]),
    "longer answers": ("answers", [("A b", SETTINGS | {"max_gen_toks": 500})]),
    "other stops": ("answers", [("A b", SETTINGS | {"until": ["\n"]})]),
}


OTHER_PROMPT = (
    "misleading input",
    "evaluate: a log of another harness with another prompt, several answers or errors",
    "refused in one line that names the file",
)


@pytest.mark.fault(*OTHER_PROMPT)
@pytest.mark.parametrize("case", OTHER_PROMPTS)
def test_samples_of_another_prompt_are_refused(case: str, tmp_path: Path) -> None:
    task, asked = OTHER_PROMPTS[case]
    resps = {"probes": [[["-5", "x"]]], "objects": [[["-5", "x"]], [["-2", "x"]]], "answers": [["C"]]}[task]
    path = write_sample(tmp_path, task, json.dumps(sample(task, resps, asked)))
    with pytest.raises(
        InputError, match=r"line 1: the (model read|answer was written with) .* run lm_eval without"
    ) as e:
        open_scores(str(tmp_path), tmp_path / "cache", "fp32")
    assert str(path) in str(e.value)


@pytest.fixture(scope="module")
def json_log(month: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    return inspect_log(tmp_path_factory.mktemp("log"), month, ["Easton"] * 7, "json").read_text("utf-8")


def changed_log(path: Path, log: str, change: Callable[[Any], object]) -> Path:
    """Write a log after a change of its content."""
    content = json.loads(log)
    change(content)
    path.write_text(json.dumps(content))
    return path


# what another run of inspect-ai says in its log -> the error
OTHER_RUNS: dict[str, tuple[Callable[[Any], object], str]] = {
    "an error": (lambda log: log.update(status="error"), "its run ended with 'error'; run `inspect eval-retry"),
    "cancelled": (lambda log: log.update(status="cancelled"), "its run ended with 'cancelled'"),
    "an error in a sample": (
        lambda log: log["samples"][2].update(error={"message": "x"}),
        "a sample ended with an err",
    ),
    "epochs": (lambda log: log["samples"].append(log["samples"][0] | {"epoch": 2}), "or answered it more than once"),
    "a system message of the solver": (
        lambda log: log["samples"][1]["messages"].insert(0, {"role": "system", "content": SYSTEM}),
        "the model read more than",
    ),
    "a solver that criticises": (
        lambda log: log["samples"][1]["messages"].extend(log["samples"][1]["messages"]),
        "the model read more than",
    ),
    "a prompt template": (
        lambda log: log["samples"][1]["messages"][0].update(content="Think first. Norland capital"),
        "the model read more than",
    ),
    "no messages": (lambda log: log["samples"][1].update(messages=[]), "the model read more than"),
    "a system message of the settings": (
        lambda log: log["plan"]["config"].update(system_message=SYSTEM),
        "the model read 'Answer in French",
    ),
    "a system message of the model's settings": (
        lambda log: log["eval"]["model_generate_config"].update(system_message=SYSTEM),
        "the model read 'Answer in French",
    ),
    "a chat template": (lambda log: log["eval"]["model_args"].update(chat_template="{{x}}"), "the model read '{{x}}'"),
}


@pytest.mark.fault(*OTHER_PROMPT)
@pytest.mark.parametrize("case", OTHER_RUNS)
def test_logs_of_inspect_with_another_prompt_are_refused(case: str, json_log: str, tmp_path: Path) -> None:
    change, error = OTHER_RUNS[case]
    log = changed_log(tmp_path / "log.json", json_log, change)
    with pytest.raises(InputError, match=re.escape(error)):
        open_scores(str(log), tmp_path / "cache", "fp32")


@pytest.mark.parametrize(("template", "name"), [(None, "hf/model (chat)"), ("bare", "hf/model")])
def test_a_model_in_its_chat_template_has_a_name_that_says_so(
    template: str | None, name: str, json_log: str, tmp_path: Path
) -> None:
    args = {"chat_template": "{{ bos_token }}{{ messages[0].content }}"} if template else {}
    model = {"model": "hf/model", "model_args": args}
    assert (
        LoggedModel(changed_log(tmp_path / "log.json", json_log, lambda log: log["eval"].update(model))).name == name
    )


def test_a_run_that_has_not_ended_is_refused(month: Path, tmp_path: Path) -> None:
    log = inspect_log(tmp_path / "logs", month, ["Easton"] * 7)
    with zipfile.ZipFile(log) as old, zipfile.ZipFile(tmp_path / "cut.eval", "w") as new:
        for name in old.namelist():
            if name != "header.json":
                new.writestr(name, old.read(name))
    with pytest.raises(InputError, match="its run has not ended; run `inspect eval-retry"):
        LoggedModel(tmp_path / "cut.eval")


def test_a_damaged_log_of_inspect(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    path.write_bytes(b"PK\x03\x04 not a zip")
    with pytest.raises(InputError, match=r"log\.eval: not a log of inspect-ai"):
        LoggedModel(path)


@pytest.mark.fault(
    "bomb",
    "evaluate: a log of inspect-ai whose member unpacks to far more than it declares",
    "no more is unpacked than it declares; refused in one line",
)
@pytest.mark.parametrize("bomb", ["header.json", "samples/changed/0_epoch_1.json"])
@pytest.mark.parametrize("kind", [zipfile.ZIP_DEFLATED, 93])
def test_a_member_that_unpacks_beyond_its_size_is_refused(kind: int, bomb: str, json_log: str, tmp_path: Path) -> None:
    log = json.loads(json_log)
    members = {"samples/changed/0_epoch_1.json": log.pop("samples")[0], "header.json": log}
    import inspect_ai.log  # noqa: F401 - teaches zipfile method 93, zstd

    with zipfile.ZipFile(tmp_path / "bomb.eval", "w", kind) as packed:
        for name, content in members.items():
            if name != bomb:
                packed.writestr(name, json.dumps(content))
        with packed.open(bomb, "w") as file:
            for _ in range(64):
                file.write(b" " * (1 << 22))
    content = bytearray((tmp_path / "bomb.eval").read_bytes())
    for sign, size in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):  # the unpacked size at both places
        at = content.rindex(sign) + size
        content[at : at + 4] = (1000).to_bytes(4, "little")
    (tmp_path / "bomb.eval").write_bytes(content)
    tracemalloc.start()
    with pytest.raises(InputError, match=r"bomb\.eval: not a log of inspect-ai"):
        LoggedModel(tmp_path / "bomb.eval")
    assert tracemalloc.get_traced_memory()[1] < 160 << 20  # of 256 MB
    tracemalloc.stop()


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
        path = tmp_path / f"samples_twiki_answers_changed_{day}.jsonl"
        path.write_text(json.dumps(sample("answers", [[said]])) + "\n")
    row = {"subject": "A", "relation": "b", "object": "new"}
    (item,) = LoggedModel(tmp_path).logged({"changed": [row]}, Counter())
    assert item["exact_match"] == 1
