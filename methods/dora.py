"""DoRA: LoRA on the direction of a weight, with its magnitude trained beside it."""

from __future__ import annotations

from dataclasses import dataclass

from peft import PeftModel
from transformers import PreTrainedModel

from temporalwiki.methods.lora import LoRA, check_goes_on, hold, train_adapters
from temporalwiki.methods.method import whole


@dataclass(frozen=True)
class DoRA(LoRA):
    """Weight-decomposed low-rank adaptation (Liu et al. 2024), where LoRA has its adapters.

    A later phase goes on with the same adapters: magnitude and direction are normalised together, so that those of
    an earlier phase cannot be held while others are added. On GPT-2 the magnitudes of the key are trained as well.
    """

    def prepare(self, model: PreTrainedModel | PeftModel, seed: int) -> PeftModel:
        """Add the adapters, or go on with those of an earlier phase."""
        if isinstance(model, PeftModel):
            check_goes_on(model, dora=True)
        else:
            model = self.adapted(whole(model), seed, use_dora=True)
        train_adapters(model)
        hold(model, 0, 0, seed)
        return model
