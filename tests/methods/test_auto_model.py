"""Expanded models in the library's Auto classes: from a folder, from the Hub, and never with code from there."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM

import temporalwiki.methods.auto_model  # noqa: F401 - registers
from temporalwiki.base.errors import InputError
from temporalwiki.methods import find_method
from temporalwiki.methods.method import Phase

from a_folder import model_files, rewrite
from loopback_hub import LoopbackHub
from tiny_expansions import ids, logits, spread

KINDS = [("gpt2", "k_adapter"), ("t5", "k_adapter"), ("t5", "modular")]


def auto(kind: str) -> Any:
    return AutoModelForSeq2SeqLM if kind == "t5" else AutoModelForCausalLM


def expanded(kind: str, method: str, models: dict[str, Path], folder: Path) -> torch.Tensor:
    """Write an expanded model, and return what it says; its base would say something else."""
    base = auto(kind).from_pretrained(models[kind])
    before = logits(base)
    made = find_method(method)(**({"small": str(models["t5"])} if method == "modular" else {}))
    model = made.prepare(base, Phase())
    if method == "k_adapter":
        spread(model.k_adapter)  # new layers start without an effect
    made.save(model, folder)
    said = logits(model)
    assert (said - before).abs().max() > 1e-3
    return said


@pytest.fixture(scope="module")
def adapted(models: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a GPT-2 with K-Adapter's layers."""
    folder = tmp_path_factory.mktemp("adapted")
    expanded("gpt2", "k_adapter", models, folder)
    return folder


@pytest.mark.parametrize(("kind", "method"), KINDS)
def test_it_loads_from_its_folder(kind: str, method: str, models: dict[str, Path], tmp_path: Path) -> None:
    said = expanded(kind, method, models, tmp_path / "out")
    model = auto(kind).from_pretrained(tmp_path / "out")
    assert torch.equal(logits(model), said)
    assert type(model) is type(auto(kind).from_pretrained(models[kind]))


@pytest.mark.parametrize(("kind", "method"), KINDS)
def test_it_loads_from_the_hub(
    kind: str, method: str, models: dict[str, Path], tmp_path: Path, hub: LoopbackHub
) -> None:
    said = expanded(kind, method, models, tmp_path / "out")
    base = hub.commit("model", "ORG/base", model_files(models[kind]))
    commit = hub.commit("model", "ORG/expanded", model_files(tmp_path / "out", base_model=f"ORG/base@{base}"))
    hub.commit("model", "ORG/base", {"model.safetensors": b""})  # what it names is still there
    hub.commit("model", "ORG/expanded", {"expansion.safetensors": b""})
    assert torch.equal(logits(auto(kind).from_pretrained("ORG/expanded", revision=commit)), said)
    with pytest.raises(InputError, match="not a file of tensors"):
        auto(kind).from_pretrained("ORG/expanded")


def test_a_folder_of_a_stranger_downloads_no_base(models: dict[str, Path], tmp_path: Path, hub: LoopbackHub) -> None:
    """As with `temporalwiki`'s own commands, a base on the Hub must be on this machine."""
    said = expanded("gpt2", "k_adapter", models, tmp_path / "out")
    hub.commit("model", "ORG/base", model_files(models["gpt2"]))
    rewrite(tmp_path / "out" / "expansion.json", base_model="ORG/base")
    with pytest.raises(InputError, match="its base model ORG/base is not on this machine, and a local checkpoint"):
        AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    AutoModelForCausalLM.from_pretrained("ORG/base")
    assert torch.equal(logits(AutoModelForCausalLM.from_pretrained(tmp_path / "out")), said)


def test_what_is_asked_of_the_base_is_so_of_all(adapted: Path) -> None:
    model = AutoModelForCausalLM.from_pretrained(
        adapted, dtype=torch.bfloat16, attn_implementation="eager", device_map="cpu"
    )
    assert {parameter.dtype for parameter in model.parameters()} == {torch.bfloat16}
    assert model.config._attn_implementation == "eager"


def test_it_generates_with_its_layers(adapted: Path) -> None:
    model = AutoModelForCausalLM.from_pretrained(adapted)
    said = logits(model)
    told = model.generate(ids(), max_new_tokens=1, do_sample=False, attention_mask=torch.ones_like(ids()))
    assert told[:, -1].tolist() == said[:, -1].argmax(-1).tolist()


def test_its_config_says_nothing_but_its_kind(models: dict[str, Path], tmp_path: Path) -> None:
    expanded("t5", "modular", models, tmp_path / "out")
    config = AutoConfig.from_pretrained(tmp_path / "out")
    assert (config.model_type, config.is_encoder_decoder) == ("temporalwiki_expansion", True)
    assert json.loads((tmp_path / "out" / "config.json").read_text()) == {
        "model_type": "temporalwiki_expansion",
        "is_encoder_decoder": True,
    }


def test_another_auto_class_than_its_own_says_which_is(adapted: Path) -> None:
    with pytest.raises(InputError, match="model type is gpt2; load it with AutoModelForCausalLM"):
        AutoModelForSeq2SeqLM.from_pretrained(adapted)


def test_a_folder_without_layers_says_so(models: dict[str, Path], tmp_path: Path) -> None:
    expanded("gpt2", "k_adapter", models, tmp_path / "out")
    (tmp_path / "out" / "expansion.json").unlink()
    with pytest.raises(InputError, match=r"not an expanded model \(no expansion\.json\)"):
        AutoModelForCausalLM.from_pretrained(tmp_path / "out")


def test_loading_info_is_refused(adapted: Path) -> None:
    with pytest.raises(InputError, match="loading info is not available for expanded models"):
        AutoModelForCausalLM.from_pretrained(adapted, output_loading_info=True)


@pytest.mark.parametrize("trust", [False, True])
def test_no_code_of_a_repository_runs(trust: bool, models: dict[str, Path], tmp_path: Path, hub: LoopbackHub) -> None:
    said = expanded("gpt2", "k_adapter", models, tmp_path / "out")
    ran = tmp_path / "ran"
    code = f"import pathlib\npathlib.Path({str(ran)!r}).touch()\n".encode()
    remote = {"auto_map": {"AutoConfig": "code.C", "AutoModelForCausalLM": "code.M"}}
    base = model_files(models["gpt2"])
    base["config.json"] = json.dumps(json.loads(base["config.json"]) | remote).encode()
    hub.commit("model", "ORG/base", {**base, "code.py": code})
    files = model_files(tmp_path / "out", base_model="ORG/base")
    files["config.json"] = json.dumps(json.loads(files["config.json"]) | remote).encode()
    hub.commit("model", "ORG/expanded", {**files, "code.py": code})
    assert torch.equal(logits(AutoModelForCausalLM.from_pretrained("ORG/expanded", trust_remote_code=trust)), said)
    assert not ran.exists()
