"""The options of a training run, written once: the command line, recipes and manifests are made from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from temporalwiki.builders.errors import UsageError

T = TypeVar("T")

SCHEDULES = ("one_cycle", "linear_to_half", "linear", "cosine", "constant")
OPTIMIZERS = ("adamw", "adafactor")
PRECISIONS = ("auto", "fp32", "bf16", "fp16")
TRACKERS = ("trackio", "tensorboard", "wandb")


def option(default: Any, help: str, choices: tuple[str, ...] = ()) -> Any:
    """Return a field with its help text."""
    return field(default=default, metadata={"help": help, "choices": choices})


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


def did_you_mean(wrong: str, names: Any) -> str:
    """Return " (did you mean X?)", or nothing where no name is near."""
    near = get_close_matches(wrong, list(names), n=1)
    return f" (did you mean {near[0]}?)" if near else ""


def from_mapping(of: type[T], values: Mapping[str, Any], where: str) -> T:
    """Make the dataclass ``of`` from plain values, as a recipe or the command line gives them.

    Raises UsageError, which begins with ``where``, for an unknown name or a value of another type.
    """
    known = {f.name: f for f in fields(of)}  # type: ignore[arg-type]
    hints = get_type_hints(of)
    given = {}
    for name, value in values.items():
        plain = name.replace("-", "_")
        if plain not in known:
            raise UsageError(f"{where}no option {name!r}{did_you_mean(plain, known)}; there are {', '.join(known)}")
        given[plain] = _convert(value, hints[plain], f"{where}{name}")
    return of(**given)


def element(hint: Any) -> tuple[Any, bool]:
    """Return the type of a field's values, without None, and whether the field is a list of them."""
    kinds = [kind for kind in get_args(hint) if kind is not NoneType] if isinstance(hint, UnionType) else [hint]
    (kind,) = kinds
    return (get_args(kind)[0], True) if get_origin(kind) is tuple else (kind, False)


def _convert(value: Any, hint: Any, where: str) -> Any:
    kind, many = element(hint)
    if value is None and isinstance(hint, UnionType):
        return None
    if many:
        if isinstance(value, str):
            value = [part for part in value.split(",") if part]
        if not isinstance(value, list | tuple):
            raise UsageError(f"{where} must be a list, not {value!r}")
        return tuple(_convert(part, kind, where) for part in value)
    if kind is bool and isinstance(value, bool):
        return value
    if kind is str and isinstance(value, str):
        return value
    if kind in (int, float) and isinstance(value, int | float | str) and not isinstance(value, bool):
        try:
            number = float(value)
        except (ValueError, OverflowError):
            number = float("nan")
        if number == number and abs(number) != float("inf") and (kind is float or number == int(number)):
            return kind(number)
    names = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
    raise UsageError(f"{where} must be {names[kind]}, not {value!r}")
