"""A frozen model in 4 bits: which methods train on it, what they compute, and what is refused before loading."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from transformers import AutoModelForCausalLM

from temporalwiki.base.errors import InputError
from temporalwiki.commands import main
from temporalwiki.methods import METHODS, checkpoint, find_method, quantization
from temporalwiki.methods import train as train_module
from temporalwiki.methods.architecture import total
from temporalwiki.methods.lora import LoRA
from temporalwiki.methods.method import Phase
from temporalwiki.methods.quantization import quantized

import tiny_training
from tiny_training import losses, record

ADDING = ("lora", "dora", "k_adapter", "o_lora")

pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset and tiny models."""
    return tiny_training.write(tmp_path_factory.mktemp("start"), "llama", "t5")


@pytest.fixture
def bitsandbytes() -> Any:
    return pytest.importorskip("bitsandbytes")


# Trained


@pytest.mark.parametrize("method", ADDING)
def test_months_follow_each_other(method: str, folder: Path, tmp_path: Path, bitsandbytes: Any) -> None:
    start, parameters = folder / "llama", checkpoint.count_parameters(str(folder / "llama"))
    for month in ("a", "b"):
        tiny_training.train(folder, method, start, tmp_path / month, "--quantize", "4bit", "--max-steps", 4)
        first, *_, last = losses(tmp_path / month)
        assert last < first
        start = tmp_path / month
    first, second = (record(tmp_path / month)["parameters"] for month in ("a", "b"))
    assert first["total"] - first["trainable"] == parameters  # counted as numbers, not as bytes
    assert second["trainable"] == first["trainable"]
    # what was trained fits the model that is not quantized
    loaded = checkpoint.load_model(str(start))
    assert {p.dtype for p in loaded.parameters()} == {torch.float32}


def test_adapters_have_the_gradients_of_the_dequantized_model(folder: Path, bitsandbytes: Any) -> None:
    found = quantized(str(folder / "llama")).model
    plain = AutoModelForCausalLM.from_pretrained(folder / "llama", dtype=torch.bfloat16)
    kept = dict(found.named_modules())
    with torch.no_grad():
        for name, module in plain.named_modules():
            if isinstance(kept[name], bitsandbytes.nn.Linear4bit):
                weight = kept[name].weight
                module.weight.copy_(bitsandbytes.functional.dequantize_4bit(weight.data, weight.quant_state))
    gradients = []
    ids = torch.arange(40).reshape(2, 20)
    for model in (found, plain):
        adapted = LoRA(alpha=100).prepare(model, Phase(seed=3))
        with torch.no_grad():
            adapted.eval()(input_ids=ids)  # on some processors, bitsandbytes then packs weights in another way
        logits = adapted.train()(input_ids=ids).logits
        logits.float().square().mean().backward()
        gradients.append({name: p.grad for name, p in adapted.named_parameters() if p.requires_grad})
    expected = gradients[1]
    assert gradients[0].keys() == expected.keys()
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradient, expected[name], rtol=0.05, atol=0.02 * float(expected[name].abs().max()))
    assert any(gradient.any() for gradient in gradients[0].values())


def test_what_a_quantized_weight_takes(folder: Path, bitsandbytes: Any) -> None:
    """4 bits, and per 64 weights a factor in 8 bits; these have a mean and, per 256, a factor in 4 bytes each."""
    model = quantized(str(folder / "llama")).model
    found = {name: module for name, module in model.named_modules() if isinstance(module, nn.Linear)}
    assert [name for name, module in found.items() if not isinstance(module, bitsandbytes.nn.Linear4bit)] == [
        "lm_head"
    ]
    for name, module in found.items():
        if name != "lm_head":
            state, entries = module.weight.quant_state, math.prod(module.weight.quant_state.shape)
            assert module.weight.numel() * module.weight.element_size() == entries / 2
            assert (state.absmax.numel(), state.absmax.dtype) == (math.ceil(entries / 64), torch.uint8)
            assert (state.state2.absmax.numel(), state.state2.absmax.dtype) == (1, torch.float32)
    assert model.lm_head.weight.dtype == model.model.embed_tokens.weight.dtype == torch.bfloat16
    assert total(model) == total(checkpoint.load_model(str(folder / "llama")))


def test_an_adapter_is_not_merged_into_four_bits(
    folder: Path, tmp_path: Path, bitsandbytes: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny_training.train(folder, "lora", folder / "llama", tmp_path / "a", "--quantize", "4bit", "--max-steps", 1)
    words = ("--method", "k_adapter", "--model", tmp_path / "a", "--data", folder / "data", "--config", "new")
    words += ("--sequence-length", 32, "--quantize", "4bit", "--output", tmp_path / "b")
    assert main([str(word) for word in ("train", *words)]) == 1
    assert "an adapter cannot be merged into a model in 4 bits" in capsys.readouterr().err


# Refused


def test_the_methods_that_only_add_weights_are_known() -> None:
    assert {name for name in METHODS if find_method(name).adds_only} == set(ADDING)


def test_a_missing_package_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(quantization.importlib.util, "find_spec", lambda name: None)
    where = ("--model", "nowhere", "--data", "nowhere", "--config", "new", "--output", str(tmp_path / "out"))
    assert main(["train", "--method", "lora", *where, "--quantize", "4bit"]) == 2
    assert "needs the package bitsandbytes: pip install 'temporalwiki[quantize]'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_model_whose_decoder_is_trained_is_refused_before_its_weights_are_read(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(train_module, "check_installed", lambda: None)
    monkeypatch.setattr(checkpoint, "load_model", lambda *_, **__: pytest.fail("it was loaded"))
    words = ("--method", "lora", "--model", folder / "t5", "--data", folder / "data", "--config", "new")
    assert main([str(word) for word in ("train", *words, "--quantize", "4bit", "--output", tmp_path / "out")]) == 2
    assert "lora: trains the decoder of t5, which cannot be in 4 bits" in capsys.readouterr().err


def test_a_gguf_file_is_refused(tmp_path: Path, bitsandbytes: Any) -> None:
    (tmp_path / "model.gguf").touch()
    with pytest.raises(
        InputError, match=r"model\.gguf: a GGUF file is quantized already: train it without --quantize"
    ):
        quantized(str(tmp_path / "model.gguf"))
