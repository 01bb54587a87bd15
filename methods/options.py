"""The options of a training run. The command line, recipes and manifests are made from this dataclass."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from temporalwiki.base.errors import UsageError
from temporalwiki.base.options import did_you_mean, option

SCHEDULES = ("one_cycle", "linear_to_half", "linear", "cosine", "constant", "wsd", "cosine_ar", "rsqrt")
OPTIMIZERS = ("adamw", "adafactor")
PRECISIONS = ("auto", "fp32", "bf16", "fp16")
DTYPES = ("fp32", "bf16")
QUANTIZED = ("4bit",)
ATTENTIONS = ("flash_attention_2", "flash_attention_3", "flex_attention")
TRACKERS = ("trackio", "tensorboard", "wandb")


@dataclass(frozen=True)
class TrainOptions:
    """How to train, for any method. The defaults are TemporalWiki's."""

    batch_size: int = option(64, "sequences per optimizer step, over all processes")
    micro_batch_size: int = option(8, "most sequences on a device at once; their gradients are accumulated")
    sequence_length: int = option(512, "tokens per sequence")
    held_out: int | None = option(None, "articles to leave out of the training; the log then has their loss")
    epochs: int = option(1, "passes over the new data")
    max_steps: int | None = option(None, "stop after this many optimizer steps; repeat the data until then")
    learning_rate: float = option(1e-4, "highest learning rate")
    schedule: str = option("one_cycle", "schedule of the learning rate", SCHEDULES)
    warmup_ratio: float = option(0.1, "share of the steps during which the learning rate rises")
    optimizer: str = option("adamw", "optimizer, for methods without their own", OPTIMIZERS)
    weight_decay: float = option(0.0, "weight decay of matrices and embeddings")
    max_grad_norm: float = option(1.0, "clip gradients to this norm; 0 disables clipping")
    precision: str = option("auto", "auto is bf16 on GPUs that support it, else fp32", PRECISIONS)
    dtype: str = option("fp32", "type of the weights; with bf16, the optimizer also keeps fp32 copies", DTYPES)
    quantize: str | None = option(None, "4bit: frozen matrices in 4 bits, the rest as --dtype bf16", QUANTIZED)
    attention: str | None = option(None, "kernels that skip pairs of tokens of two documents; need a GPU", ATTENTIONS)
    compile: bool = option(False, "compile the model with torch.compile before the first step")
    fused_loss: bool = option(False, "save memory: compute the loss in pieces, never all logits of a micro-batch")
    gradient_checkpointing: bool = option(False, "save memory: compute activations again in the backward pass")
    spans: str = option("rules", "how to find the spans that T5 fills in: rules, or a spaCy pipeline by name")
    mask_rate: float = option(0.15, "share of T5's input tokens to mask")
    seed: int = option(0, "seed of the data order, samples, dropout and new weights")
    train_on_test: bool = option(False, "train on probes, facts or CKL's clozes; all results of the model are marked")
    save_steps: int = option(500, "steps between checkpoints; an interrupted run continues from the last one")
    logging_steps: int = option(10, "steps between two entries of the log")
    report_to: tuple[str, ...] = option((), f"experiment trackers: {', '.join(TRACKERS)}")

    def __post_init__(self) -> None:
        """Raise UsageError for a value out of range."""
        for name in ("batch_size", "micro_batch_size", "sequence_length", "epochs", "save_steps", "logging_steps"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.sequence_length < 2:
            raise UsageError("sequence_length must be at least 2: the model predicts a token from earlier ones")
        if self.max_steps is not None and self.max_steps < 1:
            raise UsageError(f"max_steps must be at least 1, not {self.max_steps}")
        if self.held_out is not None and self.held_out < 1:
            raise UsageError(f"held_out must be at least 1, not {self.held_out}")
        if not self.learning_rate > 0:
            raise UsageError(f"learning_rate must be above 0, not {self.learning_rate:g}")
        if not 0 <= self.warmup_ratio < 1 or not 0 < self.mask_rate < 1:
            raise UsageError("warmup_ratio must be at least 0 and below 1, mask_rate between 0 and 1")
        if self.weight_decay < 0 or self.max_grad_norm < 0 or not 0 <= self.seed < 2**32:
            raise UsageError("weight_decay and max_grad_norm must not be negative, seed between 0 and 2**32")
        named = [("schedule", self.schedule, SCHEDULES), ("optimizer", self.optimizer, OPTIMIZERS)]
        named += [("precision", self.precision, PRECISIONS), ("dtype", self.dtype, DTYPES)]
        named += [] if self.quantize is None else [("value of quantize", self.quantize, QUANTIZED)]
        named += [] if self.attention is None else [("attention", self.attention, ATTENTIONS)]
        for name, value, choices in named + [("tracker", tracker, TRACKERS) for tracker in self.report_to]:
            if value not in choices:
                raise UsageError(f"no {name} {value!r}{did_you_mean(value, choices)}; there are {', '.join(choices)}")
        if self.in_bf16 and self.precision not in ("auto", "bf16"):
            raise UsageError(f"weights in bf16 are trained in bf16: leave out the precision {self.precision}")

    @property
    def in_bf16(self) -> bool:
        """Whether weights that are not quantized are in bf16."""
        return self.dtype == "bf16" or self.quantize is not None


# Options that may change when a run is resumed: they change its result only by rounding, or not at all.
MAY_DIFFER = ("micro_batch_size", "train_on_test", "save_steps", "logging_steps", "report_to")

# the values that older runs had, which do not record these options
_NEWER = {
    "held_out": None,
    "target": None,
    "dtype": "fp32",
    "quantize": None,
    "attention": None,
    "compile": False,
    "fused_loss": False,
}


def recorded(options: Any) -> dict[str, Any]:
    """Return the options of a run or a method by name, the newer ones only if they are used.

    So a run that began before they existed is still the same run.
    """
    return {name: value for name, value in asdict(options).items() if name not in _NEWER or value != _NEWER[name]}
