"""LwF: learn the new data, but stay close to the starting checkpoint's predictions on it."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from temporalwiki.base.options import option
from temporalwiki.methods.method import Batch, ExtraLoss, Method, Model, Phase, StepShare

_TOKENS_AT_ONCE = 1024  # bounds memory: two distributions over the vocabulary for each token


@dataclass(frozen=True)
class LwF(Method):
    """Learning without forgetting (Li and Hoiem 2016): distillation from the starting checkpoint on the new data.

    loss + weight * T^2 * KL(p_teacher || p_student), both at temperature T, averaged over the same tokens as the loss.
    """

    reads_logits: ClassVar[bool] = True
    shardable: ClassVar[bool] = False

    weight: float = option(1.0, "weight of the distillation relative to the loss", at_least=0)
    temperature: float = option(2.0, "temperature that softens both distributions", above=0)

    def extra_loss(self, model: Model, examples: Callable[..., list[Batch]], phase: Phase) -> ExtraLoss:
        """Return the function for the distillation term. The teacher is a frozen copy of the starting checkpoint."""
        teacher = copy.deepcopy(model).eval().requires_grad_(False)

        def distil(model: nn.Module, batch: Batch, logits: torch.Tensor, share: StepShare) -> torch.Tensor:
            inputs = {name: tensor for name, tensor in batch.items() if name != "labels"}
            with torch.no_grad():
                wanted = teacher(**inputs, use_cache=False).logits
            counts = batch["labels"] != -100
            student, wanted = logits[counts], wanted[counts]
            pieces = [
                checkpoint(_divergence, s, w, self.temperature, use_reentrant=False)
                for s, w in zip(student.split(_TOKENS_AT_ONCE), wanted.split(_TOKENS_AT_ONCE), strict=True)
            ]
            return self.weight * self.temperature**2 * torch.stack(pieces).sum() / share.tokens

        return distil


def _divergence(student: torch.Tensor, teacher: torch.Tensor, temperature: float) -> torch.Tensor:
    """Return KL(teacher || student) at ``temperature``, summed over tokens. Logits are (tokens, vocabulary)."""
    return F.kl_div(
        F.log_softmax(student.float() / temperature, dim=-1),
        F.log_softmax(teacher.float() / temperature, dim=-1),
        reduction="sum",
        log_target=True,
    )
