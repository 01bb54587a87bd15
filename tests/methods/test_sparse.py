"""Sparse: only the slots that new text accesses more than old text does are trained."""

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from temporalwiki.base.errors import InputError
from temporalwiki.methods import checkpoint
from temporalwiki.methods.architecture import trainable
from temporalwiki.methods.method import Batch, Phase
from temporalwiki.methods.sparse import Sparse, last_matrices

import tiny_models
from tiny_methods import architecture, sharpened

KINDS = ("gpt2", "llama")
Examples = Callable[..., list[Batch]]


def batches(seed: int, first: int, last: int) -> list[Batch]:
    """Two batches of tokens from ``first`` to ``last``; the last four of a row are padding."""
    draw = torch.Generator().manual_seed(seed)
    found = []
    for _ in range(2):
        ids = torch.randint(first, last, (2, 12), generator=draw)
        labels = ids.roll(-1, 1)
        labels[:, -4:] = -100
        found.append({"input_ids": ids, "labels": labels})
    return found


NEW, PAST = batches(1, 5, 30), batches(2, 20, 60)


def examples(wanted: int, new: bool = False) -> list[Batch]:
    return NEW if new else PAST


def prepared(kind: str, models: dict[str, Path], method: Sparse, folder: Path) -> Any:
    model = method.prepare(sharpened(checkpoint.load_model(str(models[kind])), 0.2), Phase())
    assert method.extra_loss(model, examples, Phase(folder=folder)) is None
    return model


def hidden(model: Any, kind: str, layer: int, ids: torch.Tensor) -> torch.Tensor:
    """The activations of a feed-forward layer, computed from its input."""
    seen = []
    mlp = model.transformer.h[layer].mlp if kind == "gpt2" else model.model.layers[layer].mlp
    with mlp.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0])), torch.no_grad():
        model.eval()(input_ids=ids)
    x = seen[0]
    if kind == "gpt2":
        return F.gelu(x @ mlp.c_fc.weight + mlp.c_fc.bias, approximate="tanh")
    return F.silu(x @ mlp.gate_proj.weight.T) * (x @ mlp.up_proj.weight.T)


def best_slots(model: Any, kind: str, layer: int, accessed: int, share: float) -> set[int]:
    """The paper's formula, token by token."""

    def counted(found: list[Batch]) -> tuple[Counter[int], int]:
        counts: Counter[int] = Counter()
        tokens = 0
        for batch in found:
            for row, labels in zip(hidden(model, kind, layer, batch["input_ids"]), batch["labels"], strict=True):
                for token, label in zip(row.tolist(), labels.tolist(), strict=True):
                    if label != -100:
                        tokens += 1
                        counts.update(sorted(range(len(token)), key=lambda i: -abs(token[i]))[:accessed])
        return counts, tokens

    (c, _), (d, n) = counted(NEW), counted(PAST)
    slots = len(hidden(model, kind, layer, NEW[0]["input_ids"])[0, 0])
    score = [c[i] / sum(c.values()) * math.log((n + 1) / (d[i] + 1)) for i in range(slots)]
    return set(sorted(range(slots), key=lambda i: (-score[i], i))[: round(share * slots)])


@pytest.mark.parametrize("kind", KINDS)
def test_one_step_moves_the_slots_of_the_papers_formula_and_nothing_else(
    kind: str, models: dict[str, Path], tmp_path: Path
) -> None:
    method = Sparse(share=0.25, accessed=4)
    model = prepared(kind, models, method, tmp_path)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    expected = {
        f"{name}.weight": best_slots(model, kind, layer, 4, 0.25) for layer, name in enumerate(last_matrices(model))
    }
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=0.1, weight_decay=0.0)
    for _ in range(2):  # the second step has moments of the first
        model(input_ids=NEW[0]["input_ids"], labels=NEW[0]["input_ids"]).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    for name, p in model.named_parameters():
        rows = p if kind == "gpt2" or p.dim() == 1 else p.T
        old = before[name] if kind == "gpt2" or p.dim() == 1 else before[name].T
        moved = {i for i in range(len(rows)) if not torch.equal(rows[i], old[i])}
        assert moved == expected.get(name, set()), name


def test_the_manifest_counts_only_what_can_move(models: dict[str, Path]) -> None:
    model = Sparse(share=0.25).prepare(checkpoint.load_model(str(models["llama"])), Phase())
    matrices = [module.weight for module in last_matrices(model).values()]
    assert trainable(model) == sum(out * round(slots * 0.25) for out, slots in (w.shape for w in matrices))


def test_an_interrupted_run_keeps_its_choice(models: dict[str, Path], tmp_path: Path) -> None:
    def gradient(get: Examples) -> torch.Tensor:
        model = Sparse().prepare(checkpoint.load_model(str(models["llama"])), Phase())
        Sparse().extra_loss(model, get, Phase(folder=tmp_path))
        model(input_ids=NEW[0]["input_ids"], labels=NEW[0]["input_ids"]).loss.backward()
        return next(iter(last_matrices(model).values())).weight.grad

    def none(wanted: int, new: bool = False) -> list[Batch]:
        raise AssertionError("the slots were kept")

    assert torch.equal(gradient(examples), gradient(none))


@pytest.mark.parametrize("name", ["Mamba", "Qwen3Moe"])
def test_a_model_without_such_layers_is_refused_in_one_line(name: str) -> None:
    model = architecture(name, len(tiny_models.tokenizer("llama")))
    with pytest.raises(InputError, match=r"sparse finds no feed-forward layers of a known name$"):
        Sparse().prepare(model, Phase())
