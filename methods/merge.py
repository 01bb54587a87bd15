"""Merge: train all parameters, then average them with the starting checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch

from temporalwiki.base.errors import UsageError
from temporalwiki.base.options import option
from temporalwiki.methods.method import Method


@dataclass(frozen=True)
class Merge(Method):
    """theta = (1 - weight) * theta_0 + weight * theta_trained, where theta_0 is the phase's starting checkpoint.

    This averages the weights of consecutive checkpoints (WiSE-FT, Wortsman et al. 2022). Each month's checkpoint is
    the average of the previous one and the result of training it.
    """

    needs_start_weights: ClassVar[bool] = True

    weight: float = option(0.5, "weight of the trained parameters in the average")

    def __post_init__(self) -> None:
        """Raise UsageError for a weight out of range."""
        if not 0 < self.weight <= 1:
            raise UsageError(f"merge needs a weight above 0 and at most 1, not {self.weight:g}")

    @torch.no_grad()
    def finish(self, trained: Mapping[str, torch.Tensor], start: Mapping[str, torch.Tensor]) -> None:
        """Average the trained weights with the starting ones, in place."""
        for name, before in start.items():
            trained[name].copy_(torch.lerp(before.to(trained[name].device), trained[name], self.weight))
