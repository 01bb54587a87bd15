"""Initial: the model as it is, to which every method is compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from peft import PeftModel
from transformers import PreTrainedModel

from temporalwiki.methods.method import Method


@dataclass(frozen=True)
class Initial(Method):
    """No training: the model is written as a checkpoint like any other (TemporalWiki section 4.1)."""

    trains: ClassVar[bool] = False

    def prepare(self, model: PreTrainedModel | PeftModel, seed: int) -> PreTrainedModel | PeftModel:
        """Freeze everything."""
        model.requires_grad_(False)
        return model
