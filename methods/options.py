"""The options of a training run. The command line, recipes and manifests are made from this dataclass."""

import re
from dataclasses import dataclass

from temporalwiki.base.errors import UsageError
from temporalwiki.base.options import check_options, did_you_mean, option

SCHEDULES = ("one_cycle", "linear_to_half", "linear", "cosine", "constant", "wsd", "cosine_ar", "rsqrt")
OPTIMIZERS = ("adamw", "adafactor")
PRECISIONS = ("auto", "fp32", "bf16", "fp16")
DTYPES = ("fp32", "bf16")
QUANTIZED = ("4bit",)
ATTENTIONS = ("flash_attention_2", "flash_attention_3", "flex_attention")
TRACKERS = ("trackio", "tensorboard", "wandb")
SEQUENCE_LENGTH = 512
ADDED = 4  # bytes of a number that a method changes or adds, in fp32


@dataclass(frozen=True)
class TrainOptions:
    """How to train, for any method. The defaults are TemporalWiki's."""

    batch_size: int = option(64, "sequences per optimizer step, over all processes", at_least=1)
    micro_batch_size: int = option(
        8, "most sequences on a device at once; their gradients are accumulated", at_least=1
    )
    sequence_length: int | None = option(
        None, "tokens per sequence; by default 512, or what the model reads if that is less", at_least=2
    )
    held_out: int | None = option(
        None, "articles to leave out of the training; the log then has their loss", at_least=1
    )
    epochs: int = option(1, "passes over the new data", at_least=1)
    max_steps: int | None = option(
        None, "stop after this many optimizer steps; repeat the data until then", at_least=1
    )
    budget: str | None = option(
        None, "the same for all methods: tokens=N to read in a phase, instead of steps; or bytes=N to add to the model"
    )
    learning_rate: float = option(1e-4, "highest learning rate", above=0)
    schedule: str = option("one_cycle", "schedule of the learning rate", SCHEDULES)
    warmup_ratio: float = option(0.1, "share of the steps during which the learning rate rises", at_least=0, below=1)
    optimizer: str = option("adamw", "optimizer, for methods without their own", OPTIMIZERS)
    weight_decay: float = option(0.0, "weight decay of matrices and embeddings", at_least=0)
    max_grad_norm: float = option(1.0, "clip gradients to this norm; 0 disables clipping", at_least=0)
    precision: str = option(
        "auto", "auto is bf16 on GPUs that support it and on CPUs with amx_bf16 or avx512_bf16, else fp32", PRECISIONS
    )
    dtype: str = option("fp32", "type of the weights; with bf16, the optimizer also keeps fp32 copies", DTYPES)
    quantize: str | None = option(None, "4bit: frozen matrices in 4 bits, the rest as --dtype bf16", QUANTIZED)
    attention: str | None = option(None, "kernels that skip pairs of tokens of two documents; need a GPU", ATTENTIONS)
    compile: bool = option(False, "compile the model with torch.compile before the first step")
    fused_loss: bool = option(False, "save memory: compute the loss in pieces, never all logits of a micro-batch")
    gradient_checkpointing: bool = option(False, "save memory: compute activations again in the backward pass")
    spans: str = option("rules", "how to find the spans that T5 fills in: rules, or a spaCy pipeline by name")
    mask_rate: float = option(0.15, "share of T5's input tokens to mask", above=0, below=1)
    seed: int = option(0, "seed of the data order, samples, dropout and new weights", at_least=0, below=2**32)
    train_on_test: bool = option(False, "train on probes, facts or CKL's clozes; all results of the model are marked")
    save_steps: int = option(
        500, "steps between checkpoints; an interrupted run continues from the last one", at_least=1
    )
    logging_steps: int = option(10, "steps between two entries of the log", at_least=1)
    report_to: tuple[str, ...] = option((), f"experiment trackers: {', '.join(TRACKERS)}")

    def __post_init__(self) -> None:
        """Raise UsageError for a value that an option does not allow."""
        check_options(self)
        for tracker in self.report_to:
            if tracker not in TRACKERS:
                near = did_you_mean(tracker, TRACKERS)
                raise UsageError(f"no tracker {tracker!r}{near}; there are {', '.join(TRACKERS)}")
        self._limit("tokens")
        if self.in_bf16 and self.precision not in ("auto", "bf16"):
            raise UsageError(f"weights in bf16 are trained in bf16: leave out the precision {self.precision}")

    @property
    def tokens(self) -> int:
        """Tokens per sequence."""
        return self.sequence_length or SEQUENCE_LENGTH

    @property
    def steps(self) -> int | None:
        """The number of optimizer steps, if ``max_steps`` or a budget of tokens says it.

        Raises UsageError for a budget that is less than a step.
        """
        tokens = self._limit("tokens")
        if tokens is None:
            return self.max_steps
        step = self.batch_size * self.tokens
        if tokens < step:
            raise UsageError(f"--budget {self.budget}: a step alone reads {step:,} tokens; lower the batch size")
        return tokens // step

    @property
    def most_bytes(self) -> int | None:
        """The bytes that a method may add to the model, or None for any number."""
        return self._limit("bytes")

    def _limit(self, unit: str) -> int | None:
        """Return the budget if it is of this unit; raise UsageError for one that cannot be read."""
        name, _, amount = (self.budget or "").partition("=")
        if self.budget is None:
            return None
        if name not in ("tokens", "bytes") or not re.fullmatch("[1-9][0-9]{0,17}", amount):
            raise UsageError(f"--budget {self.budget}: write tokens=N or bytes=N, with a whole number N")
        if name == "tokens" and self.max_steps is not None:
            raise UsageError(f"--budget {self.budget} says how many steps there are: leave out --max-steps")
        return int(amount) if name == unit else None

    @property
    def in_bf16(self) -> bool:
        """Whether weights that are not quantized are in bf16."""
        return self.dtype == "bf16" or self.quantize is not None


# Options that may change when a run is resumed: they change its result only by rounding, or not at all.
MAY_DIFFER = ("micro_batch_size", "train_on_test", "save_steps", "logging_steps", "report_to")
