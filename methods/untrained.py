"""Untrained, a control: the start model's architecture and tokenizer with random weights."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from temporalwiki.methods.expansion import unwrapped
from temporalwiki.methods.method import Method, Model, Phase


@dataclass(frozen=True)
class Untrained(Method):
    """No training, and no knowledge: the weights are initialised again, with the run's seed."""

    trains: ClassVar[bool] = False

    def prepare(self, model: Model, phase: Phase) -> Model:
        """Return a model of the same configuration with new weights."""
        base = unwrapped(model)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(phase.seed)
            made: Model = type(base)(base.config).to(base.dtype)
        made.requires_grad_(False)
        return made
