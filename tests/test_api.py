"""``import temporalwiki``: each command is a function with the same numbers and errors, also for objects in memory."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import datasets
import pytest
import torch
import yaml
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments, default_data_collator

import temporalwiki
from temporalwiki.builders.manifests import read_manifests
from temporalwiki.builders.world import World, write_world
from temporalwiki.commands import main
from temporalwiki.commands.cli import function
from temporalwiki.errors import InputError, UsageError
from temporalwiki.eval_harness.tasks import TASKS
from temporalwiki.methods import METHODS

import tiny_models
from a_dataset import write_dataset
from a_folder import contents
from tiny_probes import CHANGED, LIGHT_TUNING, UNCHANGED, rows

pytestmark = pytest.mark.usefixtures("quick")

PROBES = {"unchanged": rows(UNCHANGED), "changed": rows(CHANGED)}
PROBES_1112 = datasets.DatasetDict({split: datasets.Dataset.from_list(of) for split, of in PROBES.items()})
# eight facts of a relation in each split: enough for panels
IN_PANELS = {
    split: [
        {"subject": f"{split} {place}", "relation": "capital", "object": f"Town {split} {i}"}
        for i, place in enumerate(("Nor", "Sud", "East", "West", "Mid", "Far", "Near", "Low"))
    ]
    for split in ("unchanged", "changed")
}
PANELS_1112 = datasets.DatasetDict({split: datasets.Dataset.from_list(of) for split, of in IN_PANELS.items()})
METRIC = Path(__file__).parents[1] / "eval_harness" / "metrics" / "fuar"
TEXTS = [{"title": f"Town {i}", "text": f"Town {i} is in Norland {i}. " * 9} for i in range(6)]
CONFIGS: dict[str, Any] = {
    "probes-1112": PROBES,
    "probes-20211101-20211201": {"changed": [row | {"previous_objects": ["Carl Ito"]} for row in rows(CHANGED)]},
    "lighttuning-1112": {"unchanged": rows(LIGHT_TUNING)},
    "diffset-1112": TEXTS,
}
SHORT: dict[str, Any] = {"batch_size": 2, "micro_batch_size": 2, "sequence_length": 16, "max_steps": 2}


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all that the functions below name."""
    folder = tmp_path_factory.mktemp("there")
    tiny_models.save("gpt2", folder / "gpt2")
    tokenizer = tiny_models.tokenizer("gpt2")
    tiny_models.model("gpt2", len(tokenizer), seed=1).save_pretrained(folder / "other")
    tokenizer.save_pretrained(folder / "other")
    write_dataset(folder / "data", CONFIGS)
    write_dataset(folder / "panels", {"probes-1112": IN_PANELS})
    write_world(folder / "dumps", World(people=30))
    return folder


@pytest.fixture(autouse=True)
def here(there: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Names are those of the folder ``there``, and each test has its own cache of scores."""
    monkeypatch.chdir(there)
    monkeypatch.setattr("temporalwiki.eval_harness.models.cache.cache_folder", lambda: tmp_path / "scores")
    return there


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Callable[[str], Any]:
    """Runs a command with --json; returns what it prints, or the last line of its errors."""

    def command(words: str) -> Any:
        capsys.readouterr()
        status = main([*shlex.split(words), "--json"])
        said = capsys.readouterr()
        return json.loads(said.out) if status == 0 else (status, said.err.splitlines()[-1])

    return command


def load(name: str = "gpt2") -> tuple[Any, Any]:
    return AutoModelForCausalLM.from_pretrained(name), AutoTokenizer.from_pretrained(name)


def adapter() -> Any:
    from peft import LoraConfig, get_peft_model

    return get_peft_model(
        load()[0], LoraConfig(target_modules=["c_attn"], init_lora_weights=False, fan_in_fan_out=True)
    )


# The package


def test_the_import_reads_no_library_that_takes_seconds() -> None:
    code = "import sys; there = {*sys.modules}; import temporalwiki; print(*(sys.modules.keys() - there))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    brought = set(ran.stdout.split())
    assert not {"torch", "transformers", "datasets", "pyarrow", "numpy", "pandas", "tqdm"} & brought
    assert len(brought) < 40  # torch alone brings a thousand


@pytest.mark.parametrize(
    ("chosen", "silent"), [({}, "True False"), ({"HF_HUB_DISABLE_TELEMETRY": "0"}, "False False")]
)
def test_libraries_that_were_imported_before_report_no_use_either(chosen: dict[str, str], silent: str) -> None:
    """They have read the variables by then; who passes a model in memory imports them first."""
    code = (
        "import huggingface_hub.constants as hub, datasets, temporalwiki; temporalwiki.load_dataset; "
        "print(hub.HF_HUB_DISABLE_TELEMETRY, datasets.config.HF_UPDATE_DOWNLOAD_COUNTS)"
    )
    names = ("HF_HUB_DISABLE_TELEMETRY", "DISABLE_TELEMETRY", "HF_UPDATE_DOWNLOAD_COUNTS")
    env = {name: value for name, value in os.environ.items() if name not in names} | chosen
    ran = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert ran.stdout.split() == silent.split()


def test_all_names_of_the_package_are_there() -> None:
    assert (temporalwiki.errors.InputError, temporalwiki.errors.UsageError) == (InputError, UsageError)
    assert set(temporalwiki.__all__) <= set(dir(temporalwiki))
    assert all(getattr(temporalwiki, name) for name in temporalwiki.__all__)
    with pytest.raises(AttributeError, match="no attribute 'evalute'"):
        temporalwiki.evalute  # noqa: B018


# evaluate


def test_scores_are_those_of_the_command(command: Callable[[str], Any], tmp_path: Path) -> None:
    found = temporalwiki.evaluate(model="gpt2", data="data", tasks=["twiki_probes"], output=tmp_path / "python")
    made = command(f"evaluate --model gpt2 --data data --tasks twiki_probes --output {tmp_path / 'shell'}")
    assert json.loads(json.dumps(found.rows)) == made["rows"]
    stored = json.loads(found.path.read_text("utf-8"))["scores"]
    assert found.path.parent.parent == tmp_path / "python"
    assert set(found.scores) == set(stored) >= {"unchanged/perplexity", "light-tuned/average/f1"}
    for name, score in found.scores.items():
        assert (score.value, score.low, score.high) == tuple(stored[name][key] for key in ("value", "low", "high"))
    table = found.to_pandas()
    assert list(table) == ["task", "config", "test", "measure", "value", "low", "high", "items"]
    assert len(table) == len(stored)
    assert "<table" in found._repr_html_()
    assert str(found).startswith("twiki_probes of gpt2 on probes-1112\n")


def test_several_results_have_their_tasks_and_configs_in_the_names(tmp_path: Path) -> None:
    found = temporalwiki.evaluate(
        "gpt2", "panels", "twiki_probes,learned_and_forgotten", start="other", output=tmp_path, light_tuning=False
    )
    assert {"/".join(name.split("/")[:2]) for name in found.scores} == {
        "twiki_probes/probes-1112",
        "learned_and_forgotten/probes-1112",
    }
    assert found.path == tmp_path
    assert len(found.results) == 2


@pytest.mark.parametrize("tokenizer", ["object", "name", "of the model"])
def test_a_model_in_memory_has_the_scores_of_its_folder(tokenizer: str, tmp_path: Path) -> None:
    model, pieces = load()
    model.train()
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    given: dict[str, Any] = {"object": {"tokenizer": pieces}, "name": {"tokenizer": "gpt2"}}.get(tokenizer, {})
    held = temporalwiki.evaluate(model, "data", "twiki_probes", output=tmp_path, **given)
    stored = temporalwiki.evaluate("gpt2", "data", "twiki_probes", output=tmp_path)
    assert held.scores == stored.scores
    assert held.path != stored.path
    assert model.training
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_results_of_other_weights_do_not_collide(tmp_path: Path) -> None:
    model, tokenizer = load()
    options: dict[str, Any] = {"tokenizer": tokenizer, "name": "mine", "output": tmp_path, "light_tuning": False}
    first = temporalwiki.evaluate(model, "data", "twiki_probes", **options)
    again = temporalwiki.evaluate(load()[0], "data", "twiki_probes", **options)
    with torch.no_grad():
        model.transformer.h[0].mlp.c_fc.weight.mul_(2)
    other = temporalwiki.evaluate(model, "data", "twiki_probes", **options)
    assert first.path == again.path != other.path
    assert first.scores != other.scores
    assert [one.path.parent.name[:5] for one in (first, other)] == ["mine-", "mine-"]
    assert other.results[0].manifest.model.name == "mine"


def test_an_adapter_in_memory_is_scored_as_it_is(tmp_path: Path) -> None:
    adapted, tokenizer = adapter(), load()[1]
    assert adapted.name_or_path.endswith("gpt2")
    held = temporalwiki.evaluate(adapted, "data", "twiki_probes", tokenizer=tokenizer, output=tmp_path / "held")
    adapted.merge_and_unload().save_pretrained(tmp_path / "merged")
    tokenizer.save_pretrained(tmp_path / "merged")
    merged = temporalwiki.evaluate(tmp_path / "merged", "data", "twiki_probes", output=tmp_path / "stored")
    for name, score in merged.scores.items():
        assert held.scores[name].value == pytest.approx(score.value, rel=1e-4), name


def test_weights_in_bf16_have_that_precision(tmp_path: Path) -> None:
    model, tokenizer = load()
    options: dict[str, Any] = {"tokenizer": tokenizer, "output": tmp_path, "light_tuning": False}
    found = temporalwiki.evaluate(model.bfloat16(), "data", "twiki_probes", **options)
    assert found.results[0].manifest.model.precision == "bf16"
    with pytest.raises(UsageError, match=r"--precision fp32: .*gpt2 has weights in bfloat16"):
        temporalwiki.evaluate(model, "data", "twiki_probes", precision="fp32", **options)


@pytest.mark.parametrize("config", ["probes-1112", "probes-memory"], ids=["loaded", "made"])
def test_data_in_memory_has_the_scores_of_its_folder(config: str, tmp_path: Path) -> None:
    data = PROBES_1112 if config == "probes-memory" else temporalwiki.load_dataset("data", config)
    held = temporalwiki.evaluate("gpt2", data, "twiki_probes", output=tmp_path, light_tuning=False)
    stored = temporalwiki.evaluate("gpt2", "data", "twiki_probes", output=tmp_path, light_tuning=False)
    assert held.scores == stored.scores
    assert held.results[0].manifest.data.config == config


@pytest.mark.parametrize("data", [datasets.Dataset.from_list(rows(CHANGED)), "changed"])
def test_one_split_in_memory(data: Any, tmp_path: Path) -> None:
    if data == "changed":
        data = temporalwiki.load_dataset("data", "probes-1112", split="changed")
    found = temporalwiki.evaluate("gpt2", data, "twiki_probes", config="probes-mine", output=tmp_path)
    assert {name.split("/")[0] for name in found.scores} == {"changed"}
    assert found.results[0].manifest.data.config == "probes-mine"


def test_a_start_model_in_memory(tmp_path: Path) -> None:
    options: dict[str, Any] = {"tasks": "learned_and_forgotten", "output": tmp_path}
    (model, tokenizer), (start, _) = load(), load("other")
    held = temporalwiki.evaluate(model=model, data="panels", start=start, tokenizer=tokenizer, **options)
    stored = temporalwiki.evaluate(model="gpt2", data="panels", start="other", **options)
    assert held.scores == stored.scores
    assert "all/forgotten" in held.scores


# build, and the other functions


def test_a_build_is_that_of_the_command(command: Callable[[str], Any], tmp_path: Path) -> None:
    options = "--unchanged-fraction 0.5 --caps none --jobs 1"
    made = command(f"build 20211101 20211201 --dumps dumps --out {tmp_path / 'shell' / 'wiki'} {options}")
    built = temporalwiki.build(
        "20211101",
        "2021-12-01",
        dumps="dumps",
        out=tmp_path / "python" / "wiki",
        unchanged_fraction=0.5,
        caps=None,
        jobs=1,
    )
    assert built.path == tmp_path / "python" / "wiki"
    assert built.rows == made["rows"]
    manifest, of_command = (read_manifests(tmp_path / name / "wiki")[0] for name in ("python", "shell"))
    assert built.manifest is not None
    assert built.manifest.counts == manifest.counts == of_command.counts  # type: ignore[union-attr]
    assert contents(tmp_path / "python" / "wiki" / "data") == contents(tmp_path / "shell" / "wiki" / "data")
    table = built.to_pandas()
    loaded = temporalwiki.load_dataset(str(built.path), "probes-1112")
    of_probes = table[(table["short_name"] == "probes-1112")].set_index("split")["rows"]
    assert of_probes.to_dict() == {split: len(of_split) for split, of_split in loaded.items()}
    assert "<table" in built._repr_html_()


def test_a_script_may_build_with_several_processes(tmp_path: Path) -> None:
    """Workers do not run the script, which would build again."""
    script = tmp_path / "script.py"
    call = 'temporalwiki.build("20211101", "20211201", dumps="dumps", out=sys.argv[1], jobs=2)'
    script.write_text(f"import sys, temporalwiki\nprint('begun')\nprint(len({call}.rows))\n", "utf-8")
    words = [sys.executable, script, tmp_path / "wiki"]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert [line.isdigit() for line in ran.stdout.split()] == [False, True]


def test_a_plan_has_a_row_for_each_stage_and_writes_nothing(tmp_path: Path) -> None:
    plan = temporalwiki.build("20211101", "20211201", dumps="dumps", out=tmp_path / "wiki", plan=True)
    assert {"wiki-extract prev", "align", "finish"} <= {row["name"] for row in plan.rows}
    assert plan.manifest is None
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_is_that_of_the_command(command: Callable[[str], Any], tmp_path: Path) -> None:
    words = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in SHORT.items())
    given = f"--method lora --model gpt2 --data data --config diffset-1112 --output {tmp_path / 'shell'}"
    made = command(f"train {given} {words} --rank 2")
    trained = temporalwiki.train(
        method="lora", model="gpt2", data="data", config="diffset-1112", output=tmp_path / "python", rank=2, **SHORT
    )
    assert trained.path == tmp_path / "python"
    assert [row["loss"] for row in trained.rows] == [row["loss"] for row in made["rows"]]
    [manifest] = trained.manifests
    assert manifest == json.loads((tmp_path / "python" / "training.json").read_text("utf-8"))
    weights = "adapter_model.safetensors"
    assert (tmp_path / "python" / weights).read_bytes() == (tmp_path / "shell" / weights).read_bytes()
    assert temporalwiki.evaluate(trained, "data", "twiki_probes", output=tmp_path / "results").scores


def test_a_model_and_data_in_memory_train_the_same_checkpoint(tmp_path: Path) -> None:
    model, tokenizer = load()
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    data = datasets.Dataset.from_list(TEXTS)
    given: dict[str, Any] = {"method": "lora", "config": "diffset-1112", **SHORT}
    held = temporalwiki.train(model=model, tokenizer=tokenizer, data=data, output=tmp_path / "held", **given)
    stored = temporalwiki.train(model="gpt2", data="data", output=tmp_path / "stored", **given)
    weights = "adapter_model.safetensors"
    assert (held.path / weights).read_bytes() == (stored.path / weights).read_bytes()
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())
    again = temporalwiki.train(model=model, tokenizer=tokenizer, data=data, output=tmp_path / "held", **given)
    assert again.manifests == held.manifests
    assert sorted(path.name[:5] for path in tmp_path.iterdir()) == ["data-", "held", "start", "store"]


def test_a_cutoff_is_that_of_the_command(command: Callable[[str], Any], tmp_path: Path) -> None:
    made = command(f"cutoff gpt2 --data data --topics relation --output {tmp_path / 'shell'}")
    model, tokenizer = load()
    found = temporalwiki.cutoff("gpt2", data="data", topics="relation", output=tmp_path / "python")
    held = temporalwiki.cutoff(model, data="data", topics="relation", output=tmp_path / "held", tokenizer=tokenizer)
    assert json.loads(json.dumps(found.rows)) == made["rows"]
    assert found.scores == held.scores
    assert set(found.scores) == {"all", "head of government", "year of birth", "{{mayor}}", "country"}
    assert found.scores["all"].verdict == "cannot tell"
    written = json.loads((found.path / "cutoff.json").read_text("utf-8"))
    assert found.to_pandas().to_dict("records") == written["curve"]


@pytest.fixture
def recipe(here: Path, tmp_path: Path) -> Path:
    experiment = {
        "data": str(here / "data"),
        "months": ["1112"],
        "methods": {"initial": None, "diff": None},
        "tasks": {"twiki_probes": {"answers": False, "light_tuning": False}},
        "output": str(tmp_path / "out"),
    }
    path = tmp_path / "recipe.yaml"
    path.write_text(yaml.safe_dump({"model": str(here / "gpt2"), **SHORT, "experiment": experiment}), "utf-8")
    return path


def test_an_experiment_and_its_leaderboard(command: Callable[[str], Any], recipe: Path, tmp_path: Path) -> None:
    done = temporalwiki.experiment(recipe)
    assert done.path == tmp_path / "out"
    assert {row["state"] for row in done.rows} == {"done"}
    assert command(f"experiment {recipe}")["rows"] == done.rows
    board = temporalwiki.leaderboard(tmp_path / "out" / "results", tmp_path / "board", export=tmp_path / "logs")
    logs = [json.loads(path.read_text("utf-8")) for path in (tmp_path / "logs").rglob("*.json")]
    assert {log["model_info"]["additional_details"]["method"] for log in logs} == {"initial", "diff"}
    made = command(f"leaderboard {tmp_path / 'out' / 'results'} --out {tmp_path / 'shell'}")
    assert board.rows == made["rows"]
    assert (board.path / "index.html").is_file()
    assert {"label", "measure", "value", "low", "high"} <= set(board.to_pandas())


def test_a_dry_run_of_publishing(command: Callable[[str], Any], hub: Any, tmp_path: Path) -> None:
    words = f"publish metric {METRIC} ORG/fuar --dry-run"
    made = temporalwiki.publish("metric", METRIC, "ORG/fuar", dry_run=True)
    assert made.rows == command(words)["rows"]
    assert made.rows
    with pytest.raises(KeyError):
        hub.repo("space", "ORG/fuar")


# ForgettingCallback


def trained_by(folder: Path, callbacks: list[Any], **options: Any) -> Any:
    model, tokenizer = load()
    options |= {"max_steps": 4, "per_device_train_batch_size": 2, "learning_rate": 0.01, "logging_steps": 1}
    options |= {"report_to": [], "save_strategy": "no", "use_cpu": True, "disable_tqdm": True}
    texts = [torch.tensor((tokenizer.encode(f"{s} {r} {o}") * 9)[:12]) for s, r, o in CHANGED]
    rows: Any = [{"input_ids": text, "labels": text} for text in texts]  # four facts
    data = {"train_dataset": rows, "eval_dataset": rows, "data_collator": default_data_collator}
    arguments = TrainingArguments(output_dir=str(folder), **options)
    trainer = Trainer(model, arguments, processing_class=tokenizer, callbacks=callbacks, **data)
    trainer.train()
    return trainer


@pytest.mark.parametrize("data", ["panels", PANELS_1112], ids=["folder", "memory"])
def test_the_callback_measures_what_the_task_measures(data: Any, tmp_path: Path) -> None:
    callback = temporalwiki.ForgettingCallback(data=data, config="probes-1112" if data == "panels" else None, every=2)
    trainer = trained_by(tmp_path / "a", [callback])
    found = {entry["step"]: entry for entry in trainer.state.log_history if "learned" in entry}
    assert list(found) == [2, 4]
    options: dict[str, Any] = {"start": "gpt2", "tokenizer": trainer.processing_class, "output": tmp_path / "results"}
    task = temporalwiki.evaluate(trainer.model, PANELS_1112, "learned_and_forgotten", **options)
    last = {entry["measure"]: entry for entry in callback.history if entry["step"] == 4}
    assert set(last) == {"new_known", "old_known", "learned", "forgotten"}
    for name, entry in last.items():
        score = task.scores[f"all/{name}"]
        assert (entry["value"], entry["low"], entry["high"]) == pytest.approx((score.value, score.low, score.high))
        assert found[4][name] == entry["value"]
    assert list(callback.to_pandas()) == ["step", "measure", "value", "low", "high"]


def test_a_limit_samples_facts_but_keeps_their_panels(tmp_path: Path) -> None:
    callback = temporalwiki.ForgettingCallback(data="panels", limit=3)
    trained_by(tmp_path, [callback])
    assert [entry["value"] % (100 / 3) for entry in callback.history] == pytest.approx([0] * 4, abs=1e-6)


def test_it_measures_at_evaluations_and_leaves_the_training_as_it_is(tmp_path: Path) -> None:
    callback = temporalwiki.ForgettingCallback(data="panels", config="probes-1112")
    watched = trained_by(tmp_path / "a", [callback], eval_strategy="steps", eval_steps=3)
    plain = trained_by(tmp_path / "b", [], eval_strategy="steps", eval_steps=3)
    assert [entry["step"] for entry in callback.history if entry["measure"] == "learned"] == [3, 4]
    weights = plain.model.state_dict()
    assert all(torch.equal(weight, weights[name]) for name, weight in watched.model.state_dict().items())
    losses = [[entry["loss"] for entry in one.state.log_history if "loss" in entry] for one in (watched, plain)]
    assert losses[0] == losses[1]


def test_with_the_trainer_its_trackers_get_the_values(tmp_path: Path) -> None:
    seen: list[dict[str, float]] = []
    callback = temporalwiki.ForgettingCallback(
        data="panels", config="probes-1112", trainer=SimpleNamespace(log=seen.append)
    )
    trainer = trained_by(tmp_path, [callback])
    assert [list(values) for values in seen] == [["new_known", "old_known", "learned", "forgotten"]]
    assert not any("forgotten" in entry for entry in trainer.state.log_history)


# Errors: a function's arguments, and the same for the command

EVALUATE = "evaluate --model gpt2 --data data --tasks twiki_probes "
TRAIN = "train --model gpt2 --data data --config diffset-1112 "
BUILD = "build 20211101 20211201 "
WRONG = {
    "no rows": (EVALUATE + "--limit 0", UsageError),
    "an unknown task": ("evaluate --model gpt2 --data data --tasks twiki_prob", UsageError),
    "no task": ("evaluate --model gpt2 --data data --tasks ,", UsageError),
    "an unknown config": (EVALUATE + "--config probes-1113", UsageError),
    "no beams": (EVALUATE + "--beams 0", UsageError),
    "an unknown precision": (EVALUATE + "--precision fp16", UsageError),
    "no model": ("evaluate --model ./nowhere --data data --tasks twiki_probes", InputError),
    "no data": ("evaluate --model gpt2 --data ./nowhere --tasks twiki_probes", InputError),
    "no date": ("build 1.11.2021 20211201 --dumps dumps", UsageError),
    "no shares": (BUILD + "--dumps dumps --caps few", UsageError),
    "no size": (BUILD + "--dumps dumps --memory much", UsageError),
    "no dumps": (BUILD + "--dumps nowhere", InputError),
    "an unknown method": (TRAIN + "--method lore", UsageError),
    "no method": (TRAIN, UsageError),
    "no step": (TRAIN + "--method diff --max-steps 0", UsageError),
    "no month": ("cutoff gpt2 --data data --from March", UsageError),
    "an unknown topic": ("cutoff gpt2 --data data --topics sport", UsageError),
    "a panel without a month": ("cutoff gpt2 --data data --panel gpt2", UsageError),
    "an unknown recipe": ("experiment ckl-gpt2-larg", UsageError),
    "no jobs": ("experiment demo --jobs 0", UsageError),
    "no results": ("leaderboard nowhere --out board", InputError),
    "an unknown kind": ("publish thing data ORG/x", UsageError),
    "an option of another kind": ("publish dataset data ORG/x --base y", UsageError),
    "nothing to inspect": ("inspect nowhere", InputError),
    "no archive": ("import nowhere", InputError),
    "a path of methods": ("list methods data", UsageError),
    "sources of another config": ("ckl kilt-nq --news x", UsageError),
    "a board of nothing": ("monthly --repo ORG/x --leaderboard ORG/y", UsageError),
}


def called(words: list[str]) -> object:
    """Call the function of a command with these words: an option is a keyword argument of the same name."""
    run = function(words[0])
    names = [*signature(run).parameters]
    given: dict[str, Any] = {}
    while words := words[1:]:
        name, value = names[len(given)], words[0]
        if value.startswith("--"):
            name, value, words = value[2:].replace("-", "_"), words[1], words[1:]
        many = name in ("panel", "paths", "news")
        given["from_" if name == "from" else name] = [value] if many else int(value) if value == "0" else value
    return run(**given)


@pytest.mark.parametrize("case", WRONG)
def test_an_error_has_the_sentence_of_the_command(case: str, command: Callable[[str], Any]) -> None:
    words, kind = WRONG[case]
    with pytest.raises(InputError) as found:
        called(words.split())
    assert type(found.value) is kind
    assert command(words) == (2 if kind is UsageError else 1, f"temporalwiki {words.split()[0]}: {found.value}")


def scored(model: object, **options: Any) -> object:
    return temporalwiki.evaluate(model, "data", "twiki_probes", **options)  # type: ignore[arg-type]


NO_MODEL: dict[str, tuple[Callable[[], object], str]] = {
    "a number as a model": (lambda: scored(3), "a model is a folder"),
    "a list as data": (lambda: temporalwiki.evaluate("gpt2", [], "twiki_probes"), "data is a folder, a Hub id, a Dat"),
    "a model without a tokenizer": (lambda: scored(tiny_models.model("gpt2", 309)), "a model in memory needs its tok"),
    "a name of a model on the disk": (lambda: scored("gpt2", name="x"), "name= is for a model in memory"),
    "an adapter to train": (
        lambda: temporalwiki.train("diff", adapter(), "data", "diffset-1112"),
        "--model: an adapter in memory: merge",
    ),
    "a list to train on": (lambda: temporalwiki.train("diff", "gpt2", [1], "x"), "data is a folder, a Hub id, a Dat"),
    "data in memory for a cutoff": (
        lambda: temporalwiki.cutoff("gpt2", PROBES_1112),
        "a cutoff reads all months of a dataset",  # type: ignore[arg-type]
    ),
    "facts of one split": (
        lambda: temporalwiki.ForgettingCallback(data=datasets.DatasetDict(changed=PROBES_1112["changed"])),
        "data: needs facts in both of its splits",
    ),
    "a callback without probes": (
        lambda: temporalwiki.ForgettingCallback(data="data", config="probes-1113"),
        "data: no config 'probes-1113' (did you mean probes-1112?)",
    ),
    "no steps": (lambda: temporalwiki.ForgettingCallback(data="data", every=0), "every must be at least 1, not 0"),
    "a config that is not there": (
        lambda: temporalwiki.load_dataset("data", "diffset-1113"),
        "data: BuilderConfig 'diffset-1113' not found",
    ),
    "a split that is not there": (
        lambda: temporalwiki.load_dataset("data", "diffset-1112", split="test"),
        'data: Unknown split "test"',
    ),
    "an unknown option": (
        lambda: scored("gpt2", beam=2),
        "twiki_probes: no option 'beam' (did you mean beams?); there are answers, light_tuning",
    ),
    "a tokenizer of another model": (
        lambda: scored(tiny_models.model("gpt2", 200), tokenizer="gpt2"),
        "GPT2LMHeadModel: the tokenizer has 309 tokens",
    ),
}


@pytest.mark.parametrize("case", NO_MODEL)
def test_objects_that_are_no_models_or_data(case: str) -> None:
    call, said = NO_MODEL[case]
    with pytest.raises(InputError, match=f"^{re.escape(said)}"):
        call()


# --json and list


def test_every_command_that_prints_a_table_prints_json(command: Callable[[str], Any], tmp_path: Path) -> None:
    built = temporalwiki.build("20211101", "20211201", dumps="dumps", out=tmp_path / "wiki")
    assert command(f"inspect {tmp_path / 'wiki'}")["rows"] == built.rows
    assert command(f"list configs {tmp_path / 'wiki'}")["rows"] == built.rows
    plan = command(f"build 20211101 20211201 --dumps dumps --out {tmp_path / 'wiki'} --plan")
    assert {row["name"] for row in plan["rows"]} >= {"align", "finish"}
    found = temporalwiki.evaluate("gpt2", "data", "twiki_probes", output=tmp_path / "results", light_tuning=False)
    inspected = command(f"inspect {found.path}")["rows"]
    assert inspected == [{"model": "gpt2", **row} for row in found.rows]
    lines = command("inspect dumps/enwiki/20211101/enwiki-20211101-pages-articles-multistream.xml.bz2")["rows"]
    assert lines[0]["line"].endswith("complete")
    made = command(f"ckl newlama --probes {tmp_path / 'wiki'} --out {tmp_path / 'ckl'}")
    [manifest] = read_manifests(tmp_path / "ckl")
    assert [(row["config"], row["rows"]) for row in made["rows"]] == [
        (name, split.num_examples) for name, config in manifest.configs.items() for split in config.splits.values()
    ]


@pytest.mark.parametrize(("what", "known"), [("methods", METHODS), ("tasks", TASKS)])
def test_lists_name_what_there_is(what: str, known: dict[str, str], command: Callable[[str], Any]) -> None:
    listed = command(f"list {what}")["rows"]
    assert [row["name"] for row in listed] == list(known)
    assert all(row["description"].endswith((".", "?")) and "\n" not in row["description"] for row in listed)


def test_a_list_of_configs_needs_no_manifest(command: Callable[[str], Any]) -> None:
    assert [row["config"] for row in command("list configs data")["rows"]] == list(CONFIGS)
    assert command("list configs nowhere")[0] == 1


def test_lists_are_made_and_a_leaderboard_is_published_without_torch() -> None:
    code = (
        "import sys; sys.modules['torch'] = None; from temporalwiki.commands import main; sys.exit(main(sys.argv[1:]))"
    )
    for words, said in {
        ("list", "methods"): "name description",
        ("list", "recipes"): "name description",
        ("publish", "leaderboard", "nowhere", "ORG/x"): "temporalwiki publish: nowhere: no index.html in it;",
    }.items():
        ran = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)
        assert " ".join((ran.stdout + ran.stderr).splitlines()[0].split()).startswith(said)
