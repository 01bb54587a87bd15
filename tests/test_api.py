"""``import temporalwiki``: each command is a function with the same numbers and errors, also for objects in memory."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import temporalwiki
from temporalwiki.commands import main
from temporalwiki.errors import InputError, UsageError

import tiny_models
from a_dataset import write_dataset
from tiny_probes import CHANGED, LIGHT_TUNING, UNCHANGED, rows

pytestmark = pytest.mark.usefixtures("quick")

PROBES = {"unchanged": rows(UNCHANGED), "changed": rows(CHANGED)}


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all that the functions below name."""
    folder = tmp_path_factory.mktemp("there")
    tiny_models.save("gpt2", folder / "gpt2")
    tokenizer = tiny_models.tokenizer("gpt2")
    tiny_models.model("gpt2", len(tokenizer), seed=1).save_pretrained(folder / "other")
    tokenizer.save_pretrained(folder / "other")
    write_dataset(folder / "data", {"probes-1112": PROBES, "lighttuning-1112": {"unchanged": rows(LIGHT_TUNING)}})
    return folder


@pytest.fixture(autouse=True)
def here(there: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Names are those of the folder ``there``, and each test has its own cache of scores."""
    monkeypatch.chdir(there)
    monkeypatch.setattr("temporalwiki.eval_harness.score_cache.cache_folder", lambda: tmp_path / "scores")
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


# The package


def test_the_import_reads_no_library_that_takes_seconds() -> None:
    code = "import sys, temporalwiki, temporalwiki.errors; print(len(sys.modules), *sys.modules)"
    ran = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True)
    count, *modules = ran.stdout.split()
    assert not {"torch", "transformers", "datasets", "pyarrow", "numpy", "pandas"} & set(modules)
    assert int(count) < 120  # a bare Python has 30; torch alone brings a thousand


def test_all_names_of_the_package_are_there() -> None:
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
        "gpt2", "data", "twiki_probes,learned_and_forgotten", start="other", output=tmp_path, light_tuning=False
    )
    assert {name.rsplit("/", 2)[0] for name in found.scores} == {
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
    from peft import LoraConfig, get_peft_model

    model, tokenizer = load()
    adapted = get_peft_model(model, LoraConfig(target_modules=["c_attn"], init_lora_weights=False))
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


@pytest.mark.parametrize("kind", ["loaded", "made"])
def test_data_in_memory_has_the_scores_of_its_folder(kind: str, tmp_path: Path) -> None:
    made = {split: datasets.Dataset.from_list(of_split) for split, of_split in PROBES.items()}
    data = temporalwiki.load_dataset("data", "probes-1112") if kind == "loaded" else datasets.DatasetDict(made)
    held = temporalwiki.evaluate("gpt2", data, "twiki_probes", output=tmp_path, light_tuning=False)
    stored = temporalwiki.evaluate("gpt2", "data", "twiki_probes", output=tmp_path, light_tuning=False)
    assert held.scores == stored.scores
    config = {"loaded": "probes-1112", "made": "probes-memory"}[kind]
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
    held = temporalwiki.evaluate(model=model, data="data", start=start, tokenizer=tokenizer, **options)
    stored = temporalwiki.evaluate(model="gpt2", data="data", start="other", **options)
    assert held.scores == stored.scores
    assert "all/forgotten" in held.scores


# Errors: a function's arguments, and the same for the command

EVALUATE = "evaluate --model gpt2 --data data --tasks twiki_probes "
WRONG: dict[str, tuple[str, Callable[[], object], type[InputError]]] = {
    "no rows": (
        EVALUATE + "--limit 0",
        lambda: temporalwiki.evaluate("gpt2", "data", "twiki_probes", limit=0),
        UsageError,
    ),
    "an unknown task": (
        "evaluate --model gpt2 --data data --tasks twiki_prob",
        lambda: temporalwiki.evaluate("gpt2", "data", ["twiki_prob"]),
        UsageError,
    ),
    "no task": (
        "evaluate --model gpt2 --data data --tasks ,",
        lambda: temporalwiki.evaluate("gpt2", "data", []),
        UsageError,
    ),
    "an unknown config": (
        EVALUATE + "--config probes-1113",
        lambda: temporalwiki.evaluate("gpt2", "data", "twiki_probes", config="probes-1113"),
        UsageError,
    ),
    "no beams": (
        EVALUATE + "--beams 0",
        lambda: temporalwiki.evaluate("gpt2", "data", "twiki_probes", beams=0),
        UsageError,
    ),
    "an unknown precision": (
        EVALUATE + "--precision fp16",
        lambda: temporalwiki.evaluate("gpt2", "data", "twiki_probes", precision="fp16"),
        UsageError,
    ),
    "no model": (
        "evaluate --model ./nowhere --data data --tasks twiki_probes",
        lambda: temporalwiki.evaluate("./nowhere", "data", "twiki_probes"),
        InputError,
    ),
    "no data": (
        "evaluate --model gpt2 --data ./nowhere --tasks twiki_probes",
        lambda: temporalwiki.evaluate("gpt2", "./nowhere", "twiki_probes"),
        InputError,
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_an_error_has_the_sentence_of_the_command(case: str, command: Callable[[str], Any]) -> None:
    words, call, kind = WRONG[case]
    with pytest.raises(InputError) as found:
        call()
    assert type(found.value) is kind
    assert command(words) == (2 if kind is UsageError else 1, f"temporalwiki {words.split()[0]}: {found.value}")


NO_MODEL: dict[str, tuple[Callable[[], object], str]] = {
    "a number as a model": (lambda: temporalwiki.evaluate(3, "data", "twiki_probes"), "a model is a folder"),
    "a list as data": (lambda: temporalwiki.evaluate("gpt2", [], "twiki_probes"), "data is a folder, a Hub id, a Dat"),
    "a model without a tokenizer": (
        lambda: temporalwiki.evaluate(tiny_models.model("gpt2", 309), "data", "twiki_probes"),
        "a model in memory needs its tokenizer",
    ),
    "a name of a model on the disk": (
        lambda: temporalwiki.evaluate("gpt2", "data", "twiki_probes", name="x"),
        "name= is for a model in memory",
    ),
    "an unknown option": (
        lambda: temporalwiki.evaluate("gpt2", "data", "twiki_probes", beam=2),
        "twiki_probes: no option 'beam' (did you mean beams?); there are answers, light_tuning",
    ),
    "a tokenizer of another model": (
        lambda: temporalwiki.evaluate(tiny_models.model("gpt2", 200), "data", "twiki_probes", tokenizer="gpt2"),
        "GPT2LMHeadModel: the tokenizer has 309 tokens",
    ),
}


@pytest.mark.parametrize("case", NO_MODEL)
def test_objects_that_are_no_models_or_data(case: str) -> None:
    call, said = NO_MODEL[case]
    with pytest.raises(InputError, match="^" + said.replace("(", r"\(").replace(")", r"\)").replace("?", r"\?")):
        call()
