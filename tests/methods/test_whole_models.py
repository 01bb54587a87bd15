"""A model that is not whole is refused by the names of its tensors: it would be scored with random weights."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from temporalwiki.base.errors import InputError
from temporalwiki.commands import main
from temporalwiki.methods import checkpoint, modular

import tiny_models
from a_folder import rewrite

WEIGHTS = "model.safetensors"
Weights = dict[str, torch.Tensor]


def without(text: str) -> Callable[[Weights], Weights]:
    return lambda weights: {name: tensor for name, tensor in weights.items() if text not in name}


def wider(name: str) -> Callable[[Weights], Weights]:
    return lambda weights: weights | {name: torch.cat([weights[name], weights[name]])}


NOT_WHOLE: dict[str, tuple[str, Callable[[Weights], Weights], dict[str, Any], str]] = {
    "Llama without a head": ("llama", without("lm_head"), {}, r"1 tensor is missing .*\(lm_head\.weight\)"),
    "GPT-2 without a layer": (
        "gpt2",
        without(".h.1."),
        {},
        r"12 tensors are missing .*\(transformer\.h\.1\..*\.\.\.\)",
    ),
    "T5 without a tensor": (
        "t5",
        without("decoder.block.0.layer.1.EncDecAttention.k"),
        {},
        r"1 tensor is missing .*\(decoder\.block\.0",
    ),
    "fewer layers in the configuration": (
        "llama",
        lambda weights: weights,
        {"num_hidden_layers": 2},
        r"18 tensors are in the weights, but not in the model .*\(model\.layers\.2\.",
    ),
    "more layers in the configuration": (
        "llama",
        lambda weights: weights,
        {"num_hidden_layers": 5},
        r"9 tensors are missing .*\(model\.layers\.4\.",
    ),
    "a tensor of nobody": (
        "gpt2",
        lambda weights: weights | {"transformer.other.weight": torch.zeros(2)},
        {},
        r"1 tensor is in the weights, but not in the model .*\(transformer\.other\.weight\)",
    ),
    "another shape": ("llama", wider("model.norm.weight"), {}, r"model\.norm\.weight|size mismatch|mismatched"),
    "millions of layers": (
        "gpt2",
        lambda weights: weights,
        {"n_layer": 10_000_000},
        "n_layer is 10,000,000, more than 1,000",
    ),
    "more layers than tensors": (
        "gpt2",
        lambda weights: weights,
        {"n_layer": 900},
        r"n_layer is 900, more than [1-9][0-9]$",
    ),
    "a width that is no number of 64 bits": ("gpt2", lambda weights: weights, {"n_embd": 10**30}, "cannot load"),
    "no heads": ("llama", lambda weights: weights, {"num_attention_heads": 0}, "cannot load a language model"),
    "too many heads": (
        "llama",
        lambda weights: weights,
        {"num_attention_heads": 10**9},
        "cannot load a language model",
    ),
    "no words": ("llama", lambda weights: weights, {"vocab_size": 0}, "cannot load a language model"),
    "no type": ("gpt2", lambda weights: weights, {"model_type": []}, "cannot load a language model"),
    "wide layers": ("llama", lambda weights: weights, {"intermediate_size": 10**9}, "cannot load a language model"),
}


def spoil(folder: Path, change: Callable[[Weights], Weights], config: dict[str, Any], file: str = WEIGHTS) -> None:
    save_file(change(load_file(folder / file)), folder / file, metadata={"format": "pt"})
    if config:
        rewrite(folder / "config.json", **config)


@pytest.mark.fault("hostile model folder", "weights without some tensors, or with others than its config", "refused")
@pytest.mark.parametrize("case", NOT_WHOLE)
def test_a_model_that_is_not_whole_is_refused(case: str, tmp_path: Path) -> None:
    kind, change, config, said = NOT_WHOLE[case]
    folder = tiny_models.save(kind, tmp_path / kind)
    spoil(folder, change, config)
    for options in ({}, {"device_map": "meta"}):
        with pytest.raises(InputError, match=said) as error:
            checkpoint.load_model(str(folder), **options)
        assert "\n" not in str(error.value)


def test_tied_weights_and_what_the_library_knows_are_not_missed(tmp_path: Path) -> None:
    llama = tiny_models.save("llama", tmp_path / "llama")
    spoil(llama, without("lm_head"), {"tie_word_embeddings": True})
    model = checkpoint.load_model(str(llama))
    assert torch.equal(model.get_input_embeddings().weight, model.get_output_embeddings().weight)
    gpt2 = tiny_models.save("gpt2", tmp_path / "gpt2")
    mask = torch.ones(1, 1, 4, 4, dtype=torch.bool)
    spoil(gpt2, lambda weights: weights | {"transformer.h.0.attn.bias": mask}, {})  # old checkpoints have it
    checkpoint.load_model(str(gpt2))


@pytest.mark.parametrize("change", [without("lora_B"), lambda weights: weights | {"base_model.x": torch.zeros(1)}])
def test_an_adapter_that_is_not_whole_is_refused(change: Callable[[Weights], Weights], tmp_path: Path) -> None:
    from peft import LoraConfig, get_peft_model

    base = tiny_models.save("llama", tmp_path / "base")
    config = LoraConfig(r=2, target_modules=["q_proj"], base_model_name_or_path=str(base))
    get_peft_model(checkpoint.load_model(str(base)), config).save_pretrained(tmp_path / "adapter")
    checkpoint.load_model(str(tmp_path / "adapter"))
    spoil(tmp_path / "adapter", change, {}, "adapter_model.safetensors")
    with pytest.raises(InputError, match=r"not a whole model: (4 tensors are missing .*lora_B|1 tensor is in .*\.x)"):
        checkpoint.load_model(str(tmp_path / "adapter"))


def test_a_gguf_that_is_not_whole_is_refused(tmp_path: Path) -> None:
    gguf = pytest.importorskip("gguf")
    path = tiny_models.save_gguf(tmp_path)
    checkpoint.load_model(str(path))
    data = path.read_bytes()
    name, other = b"blk.1.attn_norm.weight", b"blk.1.attn_nore.weight"
    assert data.count(name) == 1
    path.write_bytes(data.replace(name, other))
    assert other.decode() in {tensor.name for tensor in gguf.GGUFReader(path).tensors}
    with pytest.raises(InputError, match=r"1 tensor is missing .*model\.layers\.1\.input_layernorm\.weight"):
        checkpoint.load_model(str(path))


def test_the_small_model_of_modular_is_whole(tmp_path: Path) -> None:
    folder = tiny_models.save("t5", tmp_path / "t5")
    spoil(folder, without("encoder.block.0.layer.0.SelfAttention.q"), {})
    size = json.loads((folder / "config.json").read_text("utf-8"))["vocab_size"]
    with pytest.raises(InputError, match=r"1 tensor is missing .*encoder\.block\.0"):
        modular._pretrained(str(folder), size, weights=True)


@pytest.mark.fault("hostile model folder", "a pipe in place of a file", "refused; it would be waited for")
@pytest.mark.parametrize("name", [WEIGHTS, "config.json", "tokenizer.json", "adapter_config.json"])
def test_a_pipe_is_not_waited_for(name: str, tmp_path: Path) -> None:
    folder = tiny_models.save("gpt2", tmp_path / "gpt2")
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    for load in (checkpoint.load_model, checkpoint.load_tokenizer):
        with pytest.raises(InputError, match=rf"{name}: not a regular file"):
            load(str(folder))


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("command", ["train", "evaluate"])
def test_no_command_uses_it(
    command: str, month: Path, models: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "llama"
    shutil.copytree(models["llama"], folder)
    spoil(folder, without("lm_head"), {})
    words = {
        "train": ["train", "--method", "diff", "--max-steps", "1", "--config", "diffset-1112"],
        "evaluate": ["evaluate", "--tasks", "twiki_probes", "--config", "probes-1112"],
    }[command]
    assert main([*words, "--model", str(folder), "--data", str(month), "--output", str(tmp_path / "out")]) == 1
    assert "not a whole model: 1 tensor is missing from the weights (lm_head.weight)" in capsys.readouterr().err
    assert not list(tmp_path.glob("out/**/*.json")) or command == "train"
