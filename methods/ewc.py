"""EWC: keep the parameters that matter for past data close to where they were."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn

from temporalwiki.base.options import option
from temporalwiki.methods.method import Batch, ExtraLoss, Method, Model, Phase, StepShare
from temporalwiki.methods.trainer import cross_entropy, kept


@dataclass(frozen=True)
class EWC(Method):
    """Elastic weight consolidation (Kirkpatrick et al. 2017, equation 3): loss + penalty / 2 * F (theta - theta_0)^2.

    F is the diagonal of the empirical Fisher information per token, estimated on past data before the first step:
    the sum over examples of the squared gradient of an example's log-likelihood, divided by the number of tokens. The
    loss is also a mean over tokens, so ``penalty`` is the weight of the past relative to the new data.
    """

    needs_past: ClassVar[bool] = True
    shardable: ClassVar[bool] = False

    penalty: float = option(10.0, "weight of the past relative to the new data", at_least=0)
    fisher_examples: int = option(256, "past examples from which the Fisher information is estimated", at_least=1)

    def extra_loss(self, model: Model, examples: Callable[..., list[Batch]], phase: Phase) -> ExtraLoss:
        """Return the function for the penalty. An interrupted run left F in the phase's folder."""
        trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
        found = kept(
            phase.folder / "fisher" / "fisher.safetensors",
            lambda: fisher(model, trained, examples(self.fisher_examples)),
        )
        # in the order of the first run: sums of floats depend on it
        information = {name: found[name].to(p.device) for name, p in trained.items()}
        anchor = {name: p.detach().clone() for name, p in trained.items()}

        def penalty(model: nn.Module, batch: Batch, logits: torch.Tensor, share: StepShare) -> torch.Tensor:
            now = {name: p for name, p in model.named_parameters() if p.requires_grad}
            terms = [(f * (now[name] - anchor[name]).float().square()).sum() for name, f in information.items()]
            return 0.5 * self.penalty * share.fraction * torch.stack(terms).sum()

        return penalty


def fisher(model: Model, trained: dict[str, nn.Parameter], batches: list[Batch]) -> dict[str, torch.Tensor]:
    """Return the diagonal of the empirical Fisher information per token of each parameter in ``trained``."""
    information = {name: torch.zeros_like(p, dtype=torch.float32) for name, p in trained.items()}
    tokens = 0
    training = model.training
    model.eval()  # dropout would add noise to the gradients
    for batch in batches:
        for row in range(len(batch["labels"])):
            example = {name: tensor[row : row + 1] for name, tensor in batch.items()}
            labels = example.pop("labels")
            logits = model(**example, use_cache=False).logits
            loss = cross_entropy(logits, labels)
            for (name, _), gradient in zip(
                trained.items(), torch.autograd.grad(loss, list(trained.values()), allow_unused=True), strict=True
            ):
                if gradient is not None:
                    information[name] += gradient.float().square()
            tokens += int((labels != -100).sum())
    model.train(training)
    return {name: f / max(tokens, 1) for name, f in information.items()}
