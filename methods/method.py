"""What a method is: the ways in which it differs from plain continual pretraining."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from peft import PeftModel
from torch import nn
from transformers import PreTrainedModel

from temporalwiki.base.errors import InputError
from temporalwiki.methods.expansion import expansion_of, write_expansion

Batch = Mapping[str, torch.Tensor]
StateDict = Mapping[str, torch.Tensor]


@dataclass(frozen=True)
class Share:
    """What part of an optimizer step a micro-batch is, so that sums over micro-batches come out right."""

    tokens: torch.Tensor  # labels that count, over all micro-batches of the step and all processes
    of_step: float  # 1 / number of micro-batches of the step


# (model, batch, logits, share) -> what is added to the loss; already divided by the share's tokens or times of_step
ExtraLoss = Callable[[nn.Module, Batch, torch.Tensor, Share], torch.Tensor]


@dataclass(frozen=True)
class Method:
    """Plain continual pretraining of all parameters; a method overrides what it does otherwise.

    The fields of a subclass are its options: the command line and the manifest are made from them.
    """

    data: ClassVar[str] = "diffset"  # the configs that it is defined on; others of articles do as well
    defaults: ClassVar[Mapping[str, Any]] = {}  # training options that the method sets otherwise
    needs_past: ClassVar[bool] = False  # whether it reads past data besides the new
    trains: ClassVar[bool] = True
    through_base: ClassVar[bool] = True  # whether gradients flow back through what is not trained
    needs_start: ClassVar[bool] = False  # whether ``finish`` needs the weights that the phase began with
    refuses: ClassVar[str] = ""  # "encoder-decoder" or "decoder-only": the models that it does not fit

    def prepare(self, model: PreTrainedModel | PeftModel, seed: int) -> PreTrainedModel | PeftModel:
        """Return the model with what is trained in this phase, and nothing else, requiring gradients.

        ``model`` is the phase's starting checkpoint, which may be the result of an earlier phase.
        """
        model = whole(model)
        model.requires_grad_(True)
        return model

    def epoch(self, epoch: int, new: int, past: int, draw: np.random.Generator) -> np.ndarray:
        """Return the order in which the examples of epoch ``epoch`` are read.

        Examples 0 .. new-1 are the new data, new .. new+past-1 the past data. Must depend on the arguments alone.
        """
        return draw.permutation(new)

    def optimizer(self, groups: list[dict[str, Any]], **settings: Any) -> torch.optim.Optimizer | None:
        """Return an optimizer of the method's own for parameter ``groups``; None for the one that is asked for."""
        return None

    def extra_loss(
        self, model: PreTrainedModel | PeftModel, examples: Callable[[int], list[Batch]], folder: Path
    ) -> ExtraLoss | None:
        """Return the term that is added to the loss, made before the first step from the starting checkpoint.

        ``examples(n)`` gives up to n examples of the past data (the new where there is none) in micro-batches.
        ``folder`` keeps what a resumed run needs again.
        """
        return None

    def finish(self, trained: StateDict, start: StateDict) -> None:
        """Change the trained weights in place before they are saved; ``start`` are those that the phase began with."""

    def save(self, model: PreTrainedModel | PeftModel, folder: Path, state_dict: StateDict | None = None) -> None:
        """Write the model to ``folder`` as safetensors; ``state_dict`` holds its weights where they were sharded.

        Of a model with layers built in (K-Adapter, Modular), these and all that changed of its base are written.
        """
        if expansion_of(model) is not None:
            write_expansion(model, folder, state_dict)
            return
        model.save_pretrained(folder, state_dict=None if state_dict is None else dict(state_dict))


def whole(model: PreTrainedModel | PeftModel) -> PreTrainedModel:
    """Return a model without wrappers: a peft adapter of an earlier phase is merged into its base.

    Raises InputError for the models of the methods that build layers into the model, which nothing can merge.
    """
    if isinstance(model, PeftModel):
        return model.merge_and_unload()
    if expansion := expansion_of(model):
        raise InputError(f"a checkpoint of {expansion.method} cannot be merged: go on with {expansion.method}")
    return model
