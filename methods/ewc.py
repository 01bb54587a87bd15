"""EWC: parameters that mattered for past data are held more firmly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import torch
import torch.nn.functional as F
from peft import PeftModel
from safetensors.torch import load_file, save_file
from torch import nn
from transformers import PreTrainedModel

from temporalwiki.base.errors import UsageError
from temporalwiki.base.files import whole_file
from temporalwiki.methods.method import Batch, ExtraLoss, Method, Share


@dataclass(frozen=True)
class EWC(Method):
    """Elastic weight consolidation (Kirkpatrick et al. 2017, equation 3): loss + penalty / 2 * F (theta - theta_0)^2.

    F is the diagonal of the empirical Fisher information per token, estimated on past data before the first step:
    the sum over examples of the squared gradient of an example's log-likelihood, over the number of tokens. With the
    loss, too, averaged over tokens, ``penalty`` is how many past tokens weigh as much as a new one.
    """

    needs_past: ClassVar[bool] = True

    penalty: float = field(default=10.0, metadata={"help": "weight of the past against the new"})
    fisher_examples: int = field(default=256, metadata={"help": "past examples that the Fisher information is of"})

    def __post_init__(self) -> None:
        """Refuse what is no penalty."""
        if self.penalty < 0 or self.fisher_examples < 1:
            raise UsageError("ewc needs penalty >= 0 and at least one example for the Fisher information")

    def extra_loss(
        self, model: PreTrainedModel | PeftModel, examples: Callable[[int], list[Batch]], folder: Path
    ) -> ExtraLoss:
        """Estimate F, or read it where an interrupted run left it, and return the penalty."""
        moved = {name: p for name, p in model.named_parameters() if p.requires_grad}
        kept = folder / "fisher.safetensors"
        if kept.is_file():
            there = load_file(kept)
            # in the same order, as sums round
            information = {name: there[name].to(p.device) for name, p in moved.items()}
        else:
            information = fisher(model, moved, examples(self.fisher_examples))
            with whole_file(kept) as part:
                save_file({name: f.cpu() for name, f in information.items()}, part)
        anchor = {name: p.detach().clone() for name, p in moved.items()}

        def pull(model: nn.Module, batch: Batch, logits: torch.Tensor, share: Share) -> torch.Tensor:
            now = {name: p for name, p in model.named_parameters() if p.requires_grad}
            terms = [(f * (now[name] - anchor[name]).square()).sum() for name, f in information.items()]
            return 0.5 * self.penalty * share.of_step * torch.stack(terms).sum()

        return pull


def fisher(
    model: PreTrainedModel | PeftModel, moved: dict[str, nn.Parameter], batches: list[Batch]
) -> dict[str, torch.Tensor]:
    """Return the diagonal of the empirical Fisher information per token of each parameter in ``moved``."""
    information = {name: torch.zeros_like(p) for name, p in moved.items()}
    tokens = 0
    training = model.training
    model.eval()  # dropout would be noise in the gradients
    for batch in batches:
        for row in range(len(batch["labels"])):
            example = {name: tensor[row : row + 1] for name, tensor in batch.items()}
            labels = example.pop("labels")
            logits = model(**example, use_cache=False).logits
            loss = F.cross_entropy(logits.float().flatten(0, 1), labels.flatten(), ignore_index=-100, reduction="sum")
            for (name, _), gradient in zip(
                moved.items(), torch.autograd.grad(loss, list(moved.values()), allow_unused=True), strict=True
            ):
                if gradient is not None:
                    information[name] += gradient.square()
            tokens += int((labels != -100).sum())
    model.train(training)
    return {name: f / max(tokens, 1) for name, f in information.items()}
