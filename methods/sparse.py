"""Sparse: train only the parts of feed-forward layers that new text uses more than old text does."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import torch
from torch import nn
from transformers.pytorch_utils import Conv1D

from temporalwiki.base.errors import InputError
from temporalwiki.base.options import option
from temporalwiki.methods.method import Batch, ExtraLoss, Method, Model, Phase
from temporalwiki.methods.trainer import kept

# names of the last matrix of a feed-forward layer: Llama and most others, GPT-2, GPT-J, GPT-NeoX and Bloom, OPT, LFM2
_LAST = ("down_proj", "c_proj", "fc_out", "dense_4h_to_h", "fc2", "w2")


@dataclass(frozen=True)
class Sparse(Method):
    """Sparse memory fine-tuning (Lin et al. 2025, section 4), with the feed-forward layers as the memory.

    The last matrix of a layer has a vector for each hidden unit: a slot. A token accesses the ``accessed`` slots whose
    units are largest. Slot i, with c(i) accesses in new text and d(i) in n tokens of past text, has the score
    c(i) / sum(c) * log((n + 1) / (d(i) + 1)). The ``share`` of each layer's slots with the highest scores is trained,
    all else is frozen.

    The paper adds a layer with a million slots, ranks them in each batch, and lets d count batches. A layer here has
    few slots, and each of them is in most batches: d counts tokens, and slots are ranked once, before the first step.
    """

    needs_past: ClassVar[bool] = True
    shardable: ClassVar[bool] = False
    unsupported_architecture: ClassVar[str] = "encoder-decoder"

    share: float = option(0.1, "share of each feed-forward layer's slots to train", above=0, at_most=1)
    accessed: int = option(32, "slots that a token accesses: those with the largest activations", at_least=1)
    slot_examples: int = option(256, "examples of new and of past text in which accesses are counted", at_least=1)

    def prepare(self, model: Model, phase: Phase) -> Model:
        """Freeze all but the last matrices of feed-forward layers; raise InputError for a model without any."""
        model = super().prepare(model, phase)
        model.requires_grad_(False)
        for module in last_matrices(model).values():
            module.weight.requires_grad_(True)
            slots = module.weight.shape[_dimension(module)]
            module.fixed = module.weight.numel() // slots * (slots - self._trained(slots))  # it is not decayed either
        return model

    def extra_loss(self, model: Model, examples: Callable[..., list[Batch]], phase: Phase) -> ExtraLoss | None:
        """Choose the slots, or read the choice of an interrupted run from the phase's folder. Adds no loss."""
        modules = last_matrices(model)
        chosen = kept(phase.folder / "slots" / "slots.safetensors", lambda: self._best(model, modules, examples))
        for name, module in modules.items():
            mask = chosen[name].to(module.weight.device)
            module.weight.register_hook(partial(torch.mul, mask if _dimension(module) else mask[:, None]))
        return None

    def _best(self, model: Model, modules: dict[str, Any], examples: Callable[..., list[Batch]]) -> dict[str, Any]:
        """Return which slots of each module have the highest scores."""
        new, _ = accesses(model, modules, examples(self.slot_examples, new=True), self.accessed)
        past, tokens = accesses(model, modules, examples(self.slot_examples), self.accessed)
        chosen = {}
        for name, count in new.items():
            score = count / count.sum().clamp(min=1) * torch.log((tokens + 1) / (past[name] + 1))
            best = score.argsort(descending=True, stable=True)[: self._trained(len(score))]
            chosen[name] = torch.zeros(len(score), dtype=torch.bool).index_fill(0, best, value=True)
        return chosen

    def _trained(self, slots: int) -> int:
        return max(1, round(self.share * slots))


def last_matrices(model: nn.Module) -> dict[str, Any]:
    """Return the last matrices of the feed-forward layers, by name; raise InputError if there are none."""
    found = {
        name: module
        for name, module in model.named_modules()
        if name.rpartition(".")[2] in _LAST and "att" not in name and isinstance(module, nn.Linear | Conv1D)
    }
    if not found:
        raise InputError(f"{model.config.model_type}: sparse finds no feed-forward layers of a known name")
    return found


def accesses(
    model: Model, modules: dict[str, Any], batches: list[Batch], accessed: int
) -> tuple[dict[str, torch.Tensor], int]:
    """Return how many tokens access each slot, by module, and the number of tokens. Padding does not count."""
    counts = {name: torch.zeros(m.weight.shape[_dimension(m)], dtype=torch.float64) for name, m in modules.items()}
    tokens, training = 0, model.training
    model.eval()
    with torch.no_grad():
        for batch in batches:
            read = batch["labels"] != -100
            tokens += int(read.sum())

            def count(module: nn.Module, inputs: Any, name: str, read: torch.Tensor = read) -> None:
                units = inputs[0].flatten(0, -2)  # experts read a part of the batch
                units = units[read.flatten()] if len(units) == read.numel() else units
                largest = units.abs().topk(min(accessed, len(counts[name]))).indices
                counts[name] += torch.bincount(largest.flatten().cpu(), minlength=len(counts[name]))

            hooks = [m.register_forward_pre_hook(partial(count, name=name)) for name, m in modules.items()]
            model(**{name: tensor for name, tensor in batch.items() if name != "labels"}, use_cache=False)
            for hook in hooks:
                hook.remove()
    model.train(training)
    return counts, tokens


def _dimension(module: nn.Module) -> int:
    return 0 if isinstance(module, Conv1D) else 1  # where the weight's slots are
