"""The base class of all methods: what a method can change about plain continual pretraining."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import datasets
import numpy as np
import torch
from peft import PeftModel
from torch import nn
from transformers import PreTrainedModel

from temporalwiki.base.options import check_options
from temporalwiki.builders.ckl.text_model import OpenModel, no_models
from temporalwiki.builders.published import DataSource
from temporalwiki.methods.architecture import train_text
from temporalwiki.methods.expansion import expansion_of, unwrapped, write_expansion
from temporalwiki.methods.packing import check_columns

Model: TypeAlias = PreTrainedModel | PeftModel
Batch = Mapping[str, torch.Tensor]
StateDict = Mapping[str, torch.Tensor]
Article = Mapping[str, Any]  # a row of a config with text
Fact = Mapping[str, Any]  # a row of ``facts-*``
# article -> the texts to train on instead, and what it counts, for the manifest
Rewriter = tuple[Callable[[Article], list[str]], Counter[str]]


@dataclass(frozen=True)
class StepShare:
    """The divisor or the factor of a micro-batch's loss, with which the losses of a step add up to a mean."""

    tokens: torch.Tensor  # labels that the loss counts, over all micro-batches of the step and all processes
    fraction: float  # 1 / number of micro-batches in the step


# (model, batch, logits, share) -> a term of the loss, already divided by share.tokens or multiplied by share.fraction;
# with --fused-loss there are no logits
ExtraLoss = Callable[[nn.Module, Batch, torch.Tensor, StepShare], torch.Tensor]


@dataclass(frozen=True)
class TrainingData:
    """The examples of a run, and their description for the manifest."""

    new: datasets.Dataset
    past: datasets.Dataset | None
    description: dict[str, Any]
    sources: list[DataSource]  # of the configs that were read
    held_out: datasets.Dataset | None = None  # examples of new data that are not trained on


def _not_on_disk() -> Model:
    raise TypeError("this phase has no checkpoint to load")


@dataclass(frozen=True)
class Phase:
    """Where a phase starts. Without arguments, it is the first one of a model in memory."""

    seed: int = 0
    folder: Path = Path()  # keeps what a resumed run needs
    index: int = 0  # number of phases of the same method right before this one
    earlier: tuple[int, ...] = ()  # the optimizer steps of each phase before, of any method
    previous: Callable[[], Model] = _not_on_disk  # loads the starting checkpoint, as it is before ``prepare``
    base: Callable[[], Model] = _not_on_disk  # loads the model that the first of the ``index`` phases started from


@dataclass(frozen=True)
class Method:
    """Plain continual pretraining of all parameters. A method overrides the parts that it changes.

    The fields of a subclass are its options: the command line and the manifest are made from them.
    """

    data: ClassVar[str] = "diffset"  # the configs that the method is defined on; it trains on others, with a note
    defaults: ClassVar[Mapping[str, Any]] = {}  # training options for which the method has its own default
    needs_past: ClassVar[bool] = False  # whether the method also reads past data
    reads_facts: ClassVar[bool] = False  # whether ``rewriter`` reads ``facts-*`` of the same months
    trains: ClassVar[bool] = True
    least_steps: ClassVar[int] = 0  # a run with fewer optimizer steps gets a note
    gradients_through_base: ClassVar[bool] = True  # whether gradients flow back through frozen layers
    adds_only: ClassVar[bool] = False  # whether it trains only new weights, next to a decoder-only model
    reads_logits: ClassVar[bool] = False  # whether its extra loss reads the logits
    shardable: ClassVar[bool] = True  # whether its extra loss and hooks work on weights that FSDP shards
    unsupported_architecture: ClassVar[str] = ""  # "encoder-decoder", "decoder-only" or "" (it supports both)

    @property
    def text_weight(self) -> float:
        """The weight of the text's cross entropy in the loss."""
        return 1.0

    def __post_init__(self) -> None:
        """Raise UsageError for a value that an option does not allow."""
        check_options(self, f"{type(self).__module__.rpartition('.')[2]}: ")

    def prepare(self, model: Model, phase: Phase) -> Model:
        """Return the model, with gradients required for exactly the parameters that this phase trains.

        ``model`` is the phase's starting checkpoint, which may be the result of an earlier phase.
        """
        model = unwrapped(model)
        train_text(model)
        return model

    def check_columns(self, columns: Collection[str], name: str) -> None:
        """Raise InputError if ``columns``, the columns of config ``name``, lack one that the method reads."""
        check_columns(columns, name)

    def rewriter(
        self, facts: Mapping[str, Sequence[Fact]], language: str, open_model: OpenModel = no_models
    ) -> Rewriter:
        """Return a function that changes the text to train on, and its counts; only for methods that read facts.

        ``facts`` are the facts of the month by split, ``language`` is that of the text, and ``open_model`` opens a
        model that writes text.
        """
        raise TypeError(f"{type(self).__name__} reads the text as it is")

    def own_data(self, data: str, config: str) -> TrainingData | None:
        """Return the method's own examples of a config, or None to train on its text."""
        return None

    def own_trainer(
        self, model: Model, data: TrainingData, order: np.ndarray, tokenizer: Any, arguments: Callable[..., Any]
    ) -> Any:
        """Return the method's own trainer, or None for the trainer of all methods.

        It inherits from ``ContinualMixin``, reads the examples of ``data`` in this ``order`` (see ``example_order``),
        and takes the arguments that ``arguments(kind=CLASS, ...)`` makes.
        """
        return None

    def epoch(self, epoch: int, new: int, past: int, draw: np.random.Generator) -> np.ndarray:
        """Return the order of the examples in epoch ``epoch``.

        Examples 0 .. new-1 are the new data, new .. new+past-1 the past data. The result must depend only on the
        arguments.
        """
        return draw.permutation(new)

    def optimizer(self, groups: list[dict[str, Any]], **settings: Any) -> torch.optim.Optimizer | None:
        """Return the method's own optimizer for the parameter ``groups``, or None to use the one in the options."""
        return None

    def extra_loss(self, model: Model, examples: Callable[..., list[Batch]], phase: Phase) -> ExtraLoss | None:
        """Return a function for a term to add to the loss, or None. Called before the first step of training.

        ``examples(n)`` returns up to n examples of the past data, in micro-batches (of the new data for methods that
        read no past data), and ``examples(n, new=True)`` of the new data.
        """
        return None

    def after_step(self, model: Model) -> None:
        """Change the weights after an optimizer step."""

    def finish(self, trained: StateDict, phase: Phase) -> None:
        """Change the trained weights in place before they are saved."""

    def save(self, model: Model, folder: Path, state_dict: StateDict | None = None) -> None:
        """Write the model to ``folder`` as safetensors, in the type that its configuration names.

        ``state_dict`` holds its weights if they were sharded. For a model with built-in layers (K-Adapter, Modular)
        only these layers and the changed parameters of its base are written, in the type that they have.
        """
        if expansion_of(model) is not None:
            write_expansion(model, folder, state_dict)
            return
        dtype = model.config.dtype or model.dtype
        weights = None if state_dict is None else {name: weight.to(dtype) for name, weight in state_dict.items()}
        model.to(dtype).save_pretrained(folder, state_dict=weights)
