"""The options of a training run, written once: the command line, recipes and manifests are made from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from temporalwiki.base.errors import UsageError
from temporalwiki.base.options import did_you_mean, option

T = TypeVar("T")

SCHEDULES = ("one_cycle", "linear_to_half", "linear", "cosine", "constant")
OPTIMIZERS = ("adamw", "adafactor")
PRECISIONS = ("auto", "fp32", "bf16", "fp16")
TRACKERS = ("trackio", "tensorboard", "wandb")


@dataclass(frozen=True)
class TrainOptions:
    """How to train, whatever the method. The defaults are TemporalWiki's."""

    batch_size: int = option(64, "chunks an optimizer step, over all processes")
    micro_batch_size: int = option(8, "most chunks at once on a device; gradients are accumulated over them")
    sequence_length: int = option(512, "tokens a chunk")
    epochs: int = option(1, "passes over the new data")
    max_steps: int | None = option(None, "stop after so many optimizer steps, or repeat the data until then")
    learning_rate: float = option(1e-4, "the highest")
    schedule: str = option("one_cycle", "of the learning rate", SCHEDULES)
    warmup_ratio: float = option(0.1, "share of the steps in which the learning rate rises")
    optimizer: str = option("adamw", "unless the method has its own", OPTIMIZERS)
    weight_decay: float = option(0.0, "of matrices and embeddings")
    max_grad_norm: float = option(1.0, "to which gradients are clipped; 0: never")
    precision: str = option("auto", "auto: bf16 on GPUs that have it, else fp32", PRECISIONS)
    gradient_checkpointing: bool = option(False, "compute activations twice to need less memory")
    spans: str = option("rules", "what T5 has to fill in: found by rules, or a spaCy pipeline by name or folder")
    mask_rate: float = option(0.15, "share of T5's input tokens that is masked")
    seed: int = option(0, "of order, samples, dropout and new weights")
    save_steps: int = option(500, "steps between the checkpoints that an interrupted run goes on from")
    logging_steps: int = option(10, "steps between two lines of the log")
    report_to: tuple[str, ...] = option((), "trackers: trackio, tensorboard, wandb")

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        for name in ("batch_size", "micro_batch_size", "sequence_length", "epochs", "save_steps", "logging_steps"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.sequence_length < 2:
            raise UsageError("sequence_length must be at least 2: a token is predicted from those before it")
        if self.max_steps is not None and self.max_steps < 1:
            raise UsageError(f"max_steps must be at least 1, not {self.max_steps}")
        if not self.learning_rate > 0:
            raise UsageError(f"learning_rate must be above 0, not {self.learning_rate:g}")
        if not 0 <= self.warmup_ratio < 1 or not 0 < self.mask_rate < 1:
            raise UsageError("warmup_ratio must be at least 0 and below 1, mask_rate between 0 and 1")
        if self.weight_decay < 0 or self.max_grad_norm < 0 or not 0 <= self.seed < 2**32:
            raise UsageError("weight_decay and max_grad_norm must not be negative, seed between 0 and 2**32")
        named = [("schedule", self.schedule, SCHEDULES), ("optimizer", self.optimizer, OPTIMIZERS)]
        named += [("precision", self.precision, PRECISIONS)]
        for name, value, choices in named + [("tracker", tracker, TRACKERS) for tracker in self.report_to]:
            if value not in choices:
                raise UsageError(f"no {name} {value!r}{did_you_mean(value, choices)}; there are {', '.join(choices)}")


# what may differ between a run and its continuation: none of it changes what is computed, but for rounding
MAY_DIFFER = ("micro_batch_size", "save_steps", "logging_steps", "report_to")
