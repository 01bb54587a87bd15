"""Merge: train as ever, then average with the checkpoint before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import torch

from temporalwiki.base.errors import UsageError
from temporalwiki.methods.method import Method


@dataclass(frozen=True)
class Merge(Method):
    """theta = (1 - weight) * theta_0 + weight * theta_trained, theta_0 being the phase's starting checkpoint.

    Weight averaging of consecutive checkpoints (WiSE-FT, Wortsman et al. 2022): month after month, each checkpoint
    is the average of the one before and what training makes of it.
    """

    needs_start: ClassVar[bool] = True

    weight: float = field(default=0.5, metadata={"help": "of the trained weights in the average"})

    def __post_init__(self) -> None:
        """Refuse what is no average."""
        if not 0 < self.weight <= 1:
            raise UsageError(f"merge needs a weight above 0 and at most 1, not {self.weight:g}")

    @torch.no_grad()
    def finish(self, trained: Mapping[str, torch.Tensor], start: Mapping[str, torch.Tensor]) -> None:
        """Average in place."""
        for name, before in start.items():
            trained[name].copy_(torch.lerp(before.to(trained[name].device), trained[name], self.weight))
