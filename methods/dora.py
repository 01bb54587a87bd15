"""DoRA: LoRA on the direction of a weight, with its magnitude trained beside it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from peft import PeftModel
from safetensors.torch import load_file, save_file
from transformers import PreTrainedModel

from temporalwiki.base.files import whole_file
from temporalwiki.methods.checkpoint import ADAPTER_WEIGHTS
from temporalwiki.methods.lora import LoRA, check_goes_on, hold, train_adapters
from temporalwiki.methods.method import StateDict, whole

_MAGNITUDE = ".lora_magnitude_vector"


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

    def save(self, model: PreTrainedModel | PeftModel, folder: Path, state_dict: StateDict | None = None) -> None:
        """Write a peft adapter."""
        super().save(model, folder, state_dict)
        # peft leaves out the end of the magnitudes' names and finds them without it, but where `transformers` loads
        # an adapter (5.23) it does not, and makes new ones
        weights = load_file(folder / ADAPTER_WEIGHTS)
        named = {f"{name}.weight" if name.endswith(_MAGNITUDE) else name: weight for name, weight in weights.items()}
        with whole_file(folder / ADAPTER_WEIGHTS) as part:
            save_file(named, part, metadata={"format": "pt"})
