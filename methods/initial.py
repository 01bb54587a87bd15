"""Initial: the untrained starting checkpoint, the baseline of all comparisons."""

from dataclasses import dataclass
from typing import ClassVar

from temporalwiki.methods.method import Method, Model, Phase


@dataclass(frozen=True)
class Initial(Method):
    """No training: write the model unchanged as a checkpoint (TemporalWiki section 4.1)."""

    trains: ClassVar[bool] = False

    def prepare(self, model: Model, phase: Phase) -> Model:
        """Freeze all parameters."""
        model.requires_grad_(False)
        return model
