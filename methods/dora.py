"""DoRA: LoRA on the direction of each weight, and a separate trainable magnitude."""

from dataclasses import dataclass
from pathlib import Path

from peft import PeftModel
from safetensors.torch import load_file, save_file

from temporalwiki.base.files import whole_file
from temporalwiki.methods.checkpoint import ADAPTER_WEIGHTS
from temporalwiki.methods.expansion import unwrapped
from temporalwiki.methods.lora import LoRA, check_can_continue, extend_adapters, train_adapters
from temporalwiki.methods.method import Model, Phase, StateDict

_MAGNITUDE = ".lora_magnitude_vector"


@dataclass(frozen=True)
class DoRA(LoRA):
    """Weight-decomposed low-rank adaptation (Liu et al. 2024) of the same layers as LoRA.

    A later phase continues to train the same adapters. DoRA normalises magnitude and direction together, so it cannot
    freeze earlier adapters and add new ones. On GPT-2 it also trains the magnitudes of the key.
    """

    def prepare(self, model: Model, phase: Phase) -> PeftModel:
        """Add adapters, or continue to train the adapters of an earlier phase."""
        if isinstance(model, PeftModel):
            check_can_continue(model, dora=True)
            self._check_target(model)
        else:
            model = self.adapted(unwrapped(model), phase.seed, use_dora=True)
        train_adapters(model)
        extend_adapters(model, 0, 0, phase.seed)
        return model

    def save(self, model: Model, folder: Path, state_dict: StateDict | None = None) -> None:
        """Write a peft adapter."""
        super().save(model, folder, state_dict)
        # peft omits ".weight" from the names of magnitudes. transformers 5.23 needs it: without it, it silently loads
        # new magnitudes.
        weights = load_file(folder / ADAPTER_WEIGHTS)
        named = {f"{name}.weight" if name.endswith(_MAGNITUDE) else name: weight for name, weight in weights.items()}
        with whole_file(folder / ADAPTER_WEIGHTS) as part:
            save_file(named, part, metadata={"format": "pt"})
