"""Make tiny models for the methods that add layers, with weights so large that no tolerance hides a difference."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
)

from temporalwiki.methods.expansion import SPEC

from a_folder import rewrite

VOCABULARY = 60


def gpt2(**more: Any) -> GPT2LMHeadModel:
    plain = {"n_embd": 32, "n_layer": 4, "n_head": 4, "n_positions": 64, "vocab_size": VOCABULARY}
    tokens = {"bos_token_id": 1, "eos_token_id": None, "pad_token_id": 0}
    torch.manual_seed(1)
    return GPT2LMHeadModel(GPT2Config(**{**plain, "initializer_range": 0.3, **tokens, **more})).eval()


def llama(**more: Any) -> LlamaForCausalLM:
    plain = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 4, "num_attention_heads": 4}
    tokens = {"vocab_size": VOCABULARY, "bos_token_id": 1, "eos_token_id": None, "pad_token_id": 0}
    torch.manual_seed(1)
    plain |= {"initializer_range": 0.3}
    return LlamaForCausalLM(LlamaConfig(**{**plain, "num_key_value_heads": 2, **tokens, **more})).eval()


def t5(**more: Any) -> T5ForConditionalGeneration:
    plain = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 4, "num_heads": 4, "vocab_size": VOCABULARY}
    torch.manual_seed(1)
    config = T5Config(**{**plain, "decoder_start_token_id": 0, "eos_token_id": None, **more})
    return T5ForConditionalGeneration(config).eval()


def ids(rows: int = 2, length: int = 9, seed: int = 3) -> torch.Tensor:
    return torch.randint(5, VOCABULARY, (rows, length), generator=torch.Generator().manual_seed(seed))


def batch(model: Any) -> dict[str, torch.Tensor]:
    labels = {"labels": ids(length=5, seed=4)} if model.config.is_encoder_decoder else {"labels": ids()}
    return {"input_ids": ids(), **labels}


def logits(model: Any) -> torch.Tensor:
    with torch.no_grad():
        return model(**batch(model), use_cache=False).logits


def train(model: Any, steps: int = 1) -> None:
    """Move all parameters that are trained."""
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.5)
    for _ in range(steps):
        model(**batch(model), use_cache=False).loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def spread(module: nn.Module) -> None:
    """Give the matrices of a module large random weights, and its norms a weight of 1."""
    draw = torch.Generator().manual_seed(6)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if parameter.dim() > 1:
                parameter.normal_(std=0.3, generator=draw)
            elif name.endswith("weight"):
                parameter.fill_(1)


def close(got: torch.Tensor, expected: torch.Tensor) -> None:
    """Assert equality except for the order of additions."""
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)


def same_weights(a: nn.Module, b: nn.Module) -> bool:
    first, second = a.state_dict(), b.state_dict()
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def fresh(folder: Path, dtype: torch.dtype = torch.float32) -> Any:
    """Load a base model as a user does."""
    t5_like = "is_encoder_decoder" in (folder / "config.json").read_text("utf-8")
    auto = AutoModelForSeq2SeqLM if t5_like else AutoModelForCausalLM
    return auto.from_pretrained(folder, dtype=dtype).eval()


def spec_with(**changes: Any) -> Callable[[Path], None]:
    """Return a function that changes ``expansion.json``."""
    return lambda folder: rewrite(folder / SPEC, **changes)
