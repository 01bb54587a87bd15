"""DoRA: adapters where LoRA has them, with magnitudes, that later phases go on with."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import PeftModel

from temporalwiki.base.errors import InputError
from temporalwiki.methods.checkpoint import load_model
from temporalwiki.methods.dora import DoRA
from temporalwiki.methods.lora import LoRA, adapters
from temporalwiki.methods.method import Method, Phase

import tiny_models
from tiny_expansions import base, logits, train

KINDS = tiny_models.KINDS


def saved(method: Method, model: Any, folder: Path) -> Path:
    method.save(model, folder)
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_where_lora_is_with_a_magnitude_for_each_output(kind: str) -> None:
    names = {
        method: {name for name, p in method().prepare(base(kind), Phase()).named_parameters() if p.requires_grad}
        for method in (LoRA, DoRA)
    }
    more = {name for name in names[DoRA] if "lora_magnitude_vector" in name}
    assert names[DoRA] - more == names[LoRA]
    assert {name.split(".lora_")[0] for name in more} == {n.split(".lora_")[0] for n in names[LoRA] if ".lora_" in n}
    magnitudes = [p.numel() for n, p in DoRA().prepare(base(kind), Phase()).named_parameters() if "magnitude" in n]
    # four layers: GPT-2's query, key and value are 96 outputs; two of Llama's four heads have values
    assert magnitudes == {"gpt2": [96] * 4, "llama": [32, 16] * 4, "t5": [32, 32] * 4}[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_a_second_phase_goes_on_with_the_same_rank(kind: str, tmp_path: Path) -> None:
    method = DoRA()
    model = train(method.prepare(base(kind), Phase()), 3)
    loaded = PeftModel.from_pretrained(base(kind), saved(method, model, tmp_path / "1"))
    second = train(method.prepare(loaded, Phase()), 3)
    assert [name for name, p in second.named_parameters() if p.requires_grad] == [
        name for name, p in model.named_parameters() if p.requires_grad
    ]
    again = PeftModel.from_pretrained(base(kind), saved(method, second, tmp_path / "2"))
    torch.testing.assert_close(logits(again), logits(second), rtol=1e-5, atol=1e-6)
    one, two = (json.loads((tmp_path / phase / "adapter_config.json").read_text()) for phase in "12")
    assert (two["r"], two["lora_alpha"]) == (one["r"], one["lora_alpha"])
    assert one["r"] == (8 if kind == "gpt2" else 4)


def test_gpt2s_key_gets_no_low_rank_change() -> None:
    model = train(DoRA().prepare(base("gpt2"), Phase()), steps=10)
    for layer in adapters(model):
        b = layer.lora_B["default"].weight
        assert not b[32:64].any()
        assert b[:32, :4].any()
        assert b[64:, 4:].any()


CHANGES = {"lora, then dora": (LoRA, DoRA), "dora, then lora": (DoRA, LoRA)}


@pytest.mark.parametrize(("first", "second"), CHANGES.values(), ids=CHANGES)
def test_a_phase_of_the_other_kind_is_refused(first: type[LoRA], second: type[LoRA], tmp_path: Path) -> None:
    """The first adapter would be merged into a base model that users of the second checkpoint do not have."""
    base("llama").save_pretrained(tmp_path / "base")
    saved(first(), first().prepare(load_model(str(tmp_path / "base")), Phase()), tmp_path / "1")
    with pytest.raises(InputError, match=f"a checkpoint of {first.__name__.lower()}: .* merge it"):
        second().prepare(load_model(str(tmp_path / "1")), Phase())
