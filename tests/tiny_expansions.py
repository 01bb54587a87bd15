"""Tiny models with weights so large that no tolerance hides a difference, and what they compute and learn."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM

from temporalwiki.methods.expansion import SPEC

import tiny_models
from a_folder import rewrite

VOCABULARY = 60


def base(kind: str, **changes: Any) -> Any:
    """Return a model of a kind; ``changes`` are of its configuration."""
    tokens = {"bos_token_id": 1, "eos_token_id": None, "pad_token_id": 0}
    return tiny_models.model(kind, VOCABULARY, 1, **{"initializer_range": 0.3, **tokens, **changes}).eval()


def gpt2(**changes: Any) -> Any:
    return base("gpt2", **changes)


def llama(**changes: Any) -> Any:
    return base("llama", **changes)


def t5(**changes: Any) -> Any:
    return base("t5", **changes)


def ids(rows: int = 2, length: int = 9, seed: int = 3) -> torch.Tensor:
    return torch.randint(5, VOCABULARY, (rows, length), generator=torch.Generator().manual_seed(seed))


def batch(model: Any) -> dict[str, torch.Tensor]:
    labels = {"labels": ids(length=5, seed=4)} if model.config.is_encoder_decoder else {"labels": ids()}
    return {"input_ids": ids(), **labels}


@torch.no_grad()
def logits(model: Any) -> torch.Tensor:
    return model.eval()(**batch(model), use_cache=False).logits


def train(model: Any, steps: int = 1, after_step: Callable[[Any], object] = lambda model: None) -> Any:
    """Move all parameters that are trained, and return the model."""
    moved = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(moved, lr=0.02, weight_decay=0.0)
    for _ in range(steps):
        model(**batch(model), use_cache=False).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        after_step(model)
    return model


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
