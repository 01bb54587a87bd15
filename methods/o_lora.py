"""O-LoRA: LoRA whose new adapters stay orthogonal to earlier ones."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from peft.tuners.lora import LoraLayer
from torch import nn

from temporalwiki.base.options import option
from temporalwiki.methods.lora import LoRA, adapters, is_fused
from temporalwiki.methods.method import Batch, ExtraLoss, Model, Phase, StepShare


@dataclass(frozen=True)
class OLoRA(LoRA):
    """Orthogonal low-rank adaptation (Wang et al. 2023): loss + weight * the sum of all squared entries of A_i A_t^T.

    A_t is the first matrix of a new adapter, and A_i the first matrix of the same weight's adapter in phase i < t. The
    rows of A are the directions of the input that an adapter reads. The first phase is LoRA, and a LoRA checkpoint can
    be continued. The authors' code sums absolute values, not squares.
    """

    shardable: ClassVar[bool] = False

    weight: float = option(0.5, "weight of the overlap with the adapters of earlier phases", at_least=0)

    def extra_loss(self, model: Model, examples: Callable[..., list[Batch]], phase: Phase) -> ExtraLoss | None:
        """Return the function for the overlap, or None in a first phase."""
        fused = is_fused(model)
        pairs = [pair for layer in adapters(model) for pair in _pairs(layer, fused)]
        if not pairs:
            return None

        def overlap(model: nn.Module, batch: Batch, logits: torch.Tensor, share: StepShare) -> torch.Tensor:
            terms = [(pair.earlier @ pair.matrix[pair.new].T).square().sum() for pair in pairs]
            return self.weight * share.fraction * torch.stack(terms).sum()

        return overlap


class _Pair(NamedTuple):
    """The adapters of one weight: the rows of A from earlier phases, and the numbers of this phase's rows."""

    earlier: torch.Tensor  # (ranks, inputs)
    matrix: nn.Parameter  # (ranks of all phases, inputs)
    new: torch.Tensor


def _pairs(layer: LoraLayer, fused: bool) -> Iterator[_Pair]:
    """Return the old and new directions of each weight that a layer adapts: if ``fused``, of query and value."""
    (name,) = layer.active_adapters
    a, b = layer.lora_A[name], layer.lora_B[name]
    third = len(b.weight) // 3
    new = a.trained.any(1)
    for part in (slice(third), slice(2 * third, None)) if fused else (slice(None),):
        # the columns of B tell which weight a rank is for: the rest of a column is zero
        earlier = ~new & b.weight[part].any(0)
        if earlier.any():
            yield _Pair(a.weight[earlier].detach(), a.weight, (new & b.trained[part].any(0)).nonzero().flatten())
