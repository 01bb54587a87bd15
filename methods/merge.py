"""Merge: train, then merge the trained weights with the starting checkpoint, so that months are merged over time."""

from dataclasses import dataclass
from pathlib import Path

import torch
from peft import PeftModel
from peft.utils.merge_utils import ties

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.base.options import option
from temporalwiki.methods.architecture import is_encoder_decoder
from temporalwiki.methods.expansion import unwrapped
from temporalwiki.methods.lora import LoRA, check_can_continue, extend_adapters, train_adapters
from temporalwiki.methods.method import Method, Model, Phase, StateDict

HOW = ("average", "ties")


@dataclass(frozen=True)
class Merge(Method):
    """Merge the trained weights theta with theta_0, the phase's starting checkpoint.

    - average: (1 - weight) * theta_0 + weight * theta (WiSE-FT, Wortsman et al. 2022)
    - ties: base plus a merge of the updates theta_0 - base and theta - base (TIES, Yadav et al. 2023, as in peft). The
      base is the model that the first phase of this method started from. Each tensor of an update keeps its largest
      entries, the share ``density``. An entry with one sign in both updates is averaged; if the signs differ, the
      larger one counts. The factors of the updates are 2 (1 - weight) and 2 weight. In the first phase it only trims

    With a ``rank``, one LoRA adapter is trained further in each phase and its matrices A and B are merged separately,
    as peft merges adapters; their base is 0.
    """

    weight: float = option(0.5, "weight of the trained parameters", above=0, at_most=1)
    how: str = option("average", "average or ties", HOW)
    density: float = option(0.2, "ties: share of the entries of an update that is kept", above=0, below=1)
    rank: int = option(0, "rank of LoRA adapters to train and merge; 0: all parameters", at_least=0)

    def prepare(self, model: Model, phase: Phase) -> Model:
        """Make all parameters trainable, or add an adapter, or continue to train the adapter of an earlier phase.

        Raises UsageError for an adapter of an encoder-decoder model, and InputError if TIES lacks its base.
        """
        if not self.rank:
            model = super().prepare(model, phase)
            self._base(model, phase)  # an error comes now, not after the training
            return model
        if is_encoder_decoder(model):
            raise UsageError("merge: adapters of an encoder-decoder model are trained with its decoder; use rank 0")
        if isinstance(model, PeftModel):
            check_can_continue(model, dora=False)
        else:
            model = LoRA(rank=self.rank).adapted(unwrapped(model), phase.seed)
        train_adapters(model)
        extend_adapters(model, 0, 0, phase.seed)
        return model

    @torch.no_grad()
    def finish(self, trained: StateDict, phase: Phase) -> None:
        """Merge the trained weights with the starting ones, in place."""
        start = self.prepare(phase.previous(), phase)
        base = self._base(start, phase)
        for name, before in start.named_parameters():
            if before.requires_grad:
                after = trained[name]
                origin = base[name].to(after.device) if base else None
                after.copy_(self.merged(before.to(after.device), after, origin))

    def merged(self, before: torch.Tensor, after: torch.Tensor, base: torch.Tensor | None = None) -> torch.Tensor:
        """Return the merge of a weight ``before`` and ``after`` the training. TIES without a ``base`` starts at 0."""
        if self.how == "average":
            return torch.lerp(before, after, self.weight)
        base = torch.zeros_like(before) if base is None else base
        weights = torch.tensor([2 * (1 - self.weight), 2 * self.weight]).to(before)
        updates: torch.Tensor = ties([before - base, after - base], weights, self.density)
        return base + updates

    def _base(self, model: Model, phase: Phase) -> StateDict:
        """Return the weights of the base of TIES, else none; raise InputError if they do not fit the ``model``."""
        if self.how == "average" or self.rank:
            return {}
        base = dict((unwrapped(phase.base()) if phase.index else model).named_parameters())
        for name, weight in model.named_parameters():
            if name not in base or base[name].shape != weight.shape:
                raise InputError(f"merge: the model before the first phase has no {name} of the checkpoint's shape")
        return base

    def save(self, model: Model, folder: Path, state_dict: StateDict | None = None) -> None:
        """Write the model, or a peft adapter."""
        if isinstance(model, PeftModel):
            LoRA().save(model, folder, state_dict)
        else:
            super().save(model, folder, state_dict)
