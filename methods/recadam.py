"""RecAdam: Adam with a pull to the starting checkpoint that fades during training."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch

from temporalwiki.base.options import option
from temporalwiki.methods.method import Method


def anneal(step: int, k: float, t0: float) -> float:
    """Return lambda(t) = sigmoid(k (t - t0)): 1/2 at t0, near 0 long before it and near 1 long after it."""
    exponent = -k * (step - t0)
    return 1 / (1 + math.exp(exponent)) if exponent < 700 else 0.0


class RecAdamOptimizer(torch.optim.Optimizer):
    """theta <- theta - lambda(t) * adam_step - min(1, lr * (1 - lambda(t)) * gamma) * (theta - theta_0).

    Chen et al. 2020, algorithm 1, over all parameters. theta_0 are the parameters before the first step. They are part
    of the optimizer's state, so that a resumed run has the same theta_0. The pull is at most 1, which moves a
    parameter to theta_0 itself; without this bound, training diverges if lr * gamma * (1 - lambda) exceeds 2. Steps
    count from 1.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        gamma: float = 5000.0,
        t0: float = 250.0,
        k: float = 0.5,
    ) -> None:
        super().__init__(
            params,
            {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "gamma": gamma, "t0": t0, "k": k},
        )

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """Update the parameters."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            moved = [p for p in group["params"] if p.grad is not None]
            for p in moved:
                if not self.state[p]:
                    self.state[p].update(
                        step=torch.zeros((), dtype=torch.float32),
                        exp_avg=torch.zeros_like(p),
                        exp_avg_sq=torch.zeros_like(p),
                        anchor=p.detach().clone(),
                    )
            # parameters may have had their first gradient at different steps
            by_step: dict[int, list[torch.Tensor]] = {}
            for p in moved:
                by_step.setdefault(int(self.state[p]["step"]) + 1, []).append(p)
            for t, params in by_step.items():
                self._update(params, group, t)
        return loss

    def _update(self, params: list[torch.Tensor], group: dict[str, Any], t: int) -> None:
        states = [self.state[p] for p in params]
        grads = [p.grad for p in params]
        first, second = [s["exp_avg"] for s in states], [s["exp_avg_sq"] for s in states]
        beta1, beta2 = group["betas"]
        torch._foreach_add_([s["step"] for s in states], 1)
        torch._foreach_lerp_(first, grads, 1 - beta1)
        torch._foreach_mul_(second, beta2)
        torch._foreach_addcmul_(second, grads, grads, 1 - beta2)
        scale = torch._foreach_sqrt(second)
        torch._foreach_div_(scale, math.sqrt(1 - beta2**t))
        torch._foreach_add_(scale, group["eps"])

        share = anneal(t, group["k"], group["t0"])
        lr = float(group["lr"])
        if group["weight_decay"]:
            torch._foreach_mul_(params, 1 - lr * group["weight_decay"])
        torch._foreach_lerp_(params, [s["anchor"] for s in states], min(1.0, lr * (1 - share) * group["gamma"]))
        torch._foreach_addcdiv_(params, first, scale, -share * lr / (1 - beta1**t))


@dataclass(frozen=True)
class RecAdam(Method):
    """RecAdam with CKL's constants: gamma 5000, t0 250, k 0.5.

    CKL's own code in fact runs plain Adam: it selects the parameters for the penalty by name, but no name ever
    matches.
    """

    gamma: float = option(5000.0, "strength of the pull to the starting checkpoint", at_least=0)
    t0: float = option(250.0, "step at which the pull and Adam have equal weight")
    k: float = option(0.5, "how fast the weight shifts from the pull to Adam", above=0)

    def optimizer(self, groups: list[dict[str, Any]], **settings: Any) -> torch.optim.Optimizer:
        """Return the optimizer. Its theta_0 is the phase's starting checkpoint."""
        return RecAdamOptimizer(groups, **settings, gamma=self.gamma, t0=self.t0, k=self.k)
