"""Train weights in bf16 by fp32 copies."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn


class MasterWeights:
    """fp32 copies of the bf16 weights that a run trains. The optimizer trains the copies.

    A number in bf16 has 8 significant bits, so most steps of a training are too small to change it. After each step,
    the model's weights are the copies, rounded. Other weights, such as the adapters of peft, have no copy.
    """

    def __init__(self, model: nn.Module) -> None:
        """Copy the trained bf16 weights of ``model``."""
        trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
        self.rounded = {name: p for name, p in trained.items() if p.dtype == torch.bfloat16}
        self.masters = {name: nn.Parameter(p.detach().float()) for name, p in self.rounded.items()}

    def give_to(self, optimizer: torch.optim.Optimizer) -> None:
        """Make ``optimizer``, which has not done a step, train the copies in place of the weights."""
        master_of = {self.rounded[name]: master for name, master in self.masters.items()}
        for group in optimizer.param_groups:
            group["params"] = [master_of.get(p, p) for p in group["params"]]
        if not self.masters:
            return
        optimizer.register_step_pre_hook(self._move_gradients)
        optimizer.register_step_post_hook(self._round)

    def _move_gradients(self, *_: Any) -> None:
        for name, p in self.rounded.items():
            self.masters[name].grad = None if p.grad is None else p.grad.float()
            p.grad = None

    @torch.no_grad()
    def _round(self, *_: Any) -> None:
        torch._foreach_copy_(list(self.rounded.values()), list(self.masters.values()))
        for master in self.masters.values():
            master.grad = None

    @torch.no_grad()
    def load(self, saved: Mapping[str, torch.Tensor]) -> None:
        """Set the copies to ``saved``, which may have other names as well."""
        for name, master in self.masters.items():
            master.copy_(saved[name])

    def unround(self) -> None:
        """Make the copies the model's weights, when the training is done."""
        for name, p in self.rounded.items():
            p.data = self.masters[name].data
