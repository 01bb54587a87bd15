"""One trainer for all methods: the library's, with an order of reading that is fixed before the first step.

What each step reads is a pure function of the seed and the sizes of the data. A resumed run skips what was read, and
any number of processes divides the same global batches, so that both compute what one run in one process does.
"""

from __future__ import annotations

import contextlib
import errno
import importlib.util
import math
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from accelerate import PartialState
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch.optim.lr_scheduler import LambdaLR
from tqdm import tqdm
from transformers import (
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
    get_scheduler,
)

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.base.json_files import write_json
from temporalwiki.methods.method import Batch, ExtraLoss, Method, Share
from temporalwiki.methods.options import TrainOptions
from temporalwiki.methods.speed import Speed, peak, work

EMPTY = -1  # an example of padding alone, which fills the last global batch
_COMPLETE = "complete.json"  # written last into a checkpoint
_TRAINED = "trained.safetensors"
_LINE_EVERY = 60.0  # seconds between lines where there is no terminal, if the log has none


def reading_order(method: Method, options: TrainOptions, new: int, past: int) -> np.ndarray:
    """Return which example each step reads, (steps * batch_size,) int64: EMPTY fills up the last step.

    Epochs follow each other without a gap. ``options.max_steps`` cuts them short, or repeats them until then.
    """
    wanted = None if options.max_steps is None else options.max_steps * options.batch_size
    parts: list[np.ndarray] = []
    epoch = size = 0
    while size < wanted if wanted else epoch < options.epochs:
        draw = np.random.default_rng([options.seed, epoch])
        parts.append(method.epoch(epoch, new, past, draw))
        size += len(parts[-1])
        epoch += 1
    order = np.concatenate(parts)[:wanted]
    return np.concatenate([order, np.full(-len(order) % options.batch_size, EMPTY)])


class Reading(torch.utils.data.Dataset):
    """The examples of a run in the order in which they are read."""

    def __init__(self, order: np.ndarray, new: Any, past: Any) -> None:
        """``new`` and ``past`` are indexed by number; the example EMPTY has their columns with nothing in them."""
        self.order, self.new, self.past = order, new, past
        self.empty: dict[str, Any] = {name: [] if isinstance(value, list) else -1 for name, value in new[0].items()}

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, position: int) -> Mapping[str, Any]:
        example = int(self.order[position])
        if example == EMPTY:
            return self.empty
        source, at = (self.new, example) if example < len(self.new) else (self.past, example - len(self.new))
        row: Mapping[str, Any] = source[at]
        return row


def micro_batches(options: TrainOptions, processes: int) -> tuple[int, int]:
    """Return the size of a micro-batch on a device and how many of them a process takes for a step.

    Raises UsageError where a batch cannot be divided so.
    """
    if options.batch_size % processes:
        raise UsageError(
            f"a batch of {options.batch_size} chunks cannot be divided among {processes} processes: "
            f"use --batch-size {options.batch_size + -options.batch_size % processes}"
        )
    each = options.batch_size // processes
    size = next(size for size in range(min(options.micro_batch_size, each), 0, -1) if each % size == 0)
    return size, each // size


def training_arguments(
    options: TrainOptions,
    precision: str,
    folder: Path,
    steps: int,
    name: str,
    of: type[TrainingArguments],
    **more: Any,
) -> TrainingArguments:
    """Return the library's arguments, of class ``of``, for a run that writes its checkpoints under ``folder``.

    Raises UsageError for a tracker that is not installed.
    """
    size, accumulation = micro_batches(options, PartialState().num_processes)
    if missing := [tracker for tracker in options.report_to if importlib.util.find_spec(tracker) is None]:
        raise UsageError(f"--report-to {missing[0]}: it is not installed: pip install {missing[0]}")
    made = of(
        output_dir=str(folder),
        run_name=name,
        per_device_train_batch_size=size,
        gradient_accumulation_steps=accumulation,
        max_steps=steps,
        learning_rate=options.learning_rate,
        optim="adafactor" if options.optimizer == "adafactor" else "adamw_torch_fused",
        weight_decay=options.weight_decay,
        max_grad_norm=options.max_grad_norm,
        bf16=precision == "bf16",
        use_cpu=precision == "bf16" and not torch.cuda.is_available(),
        fp16=precision == "fp16",
        activation_checkpointing=options.gradient_checkpointing,
        activation_checkpointing_kwargs={"use_reentrant": False} if options.gradient_checkpointing else None,
        dataloader_pin_memory=torch.cuda.is_available(),
        seed=options.seed,
        data_seed=options.seed,
        save_strategy="steps",
        save_steps=options.save_steps,
        logging_steps=options.logging_steps,
        logging_first_step=True,
        logging_nan_inf_filter=False,
        report_to=list(options.report_to),
        project="temporalwiki",
        remove_unused_columns=False,
        disable_tqdm=True,
        ddp_find_unused_parameters=False,
        **more,
    )
    if made.n_gpu > 1:
        made._n_gpu = 1  # else the library splits batches over GPUs in one process, which nobody should want today
    return made


class Continual:
    """What the library's trainers get from us: their data in a fixed order, checkpoints to go on from, and speed.

    A checkpoint holds what training moves (the rest is in the starting checkpoint), optimizer, schedule, random state
    and log. It counts only with the file that is written last, and earlier ones are removed only then.
    """

    def begin(self: Any, options: TrainOptions, method: Method) -> None:
        """Say how to train; called before anything else."""
        self.options, self.method = options, method
        processes = self.args.world_size
        self.speed = Speed(
            work(self.model, options.sequence_length, method.through_base), peak(self.args.device), processes
        )
        self.remove_callback(PrinterCallback)
        self.add_callback(Display())

    def _get_train_sampler(self: Any, train_dataset: Any = None) -> torch.utils.data.Sampler:
        return torch.utils.data.SequentialSampler(self.train_dataset)

    def create_scheduler(self: Any, num_training_steps: int, optimizer: Any = None) -> Any:
        """Make the schedule that the options name."""
        if self.lr_scheduler is None:
            self.lr_scheduler = schedule(self.options, optimizer or self.optimizer, num_training_steps)
            self._created_lr_scheduler = True
        return self.lr_scheduler

    def training_step(self: Any, model: Any, inputs: Batch, num_items_in_batch: torch.Tensor | None = None) -> Any:
        """Count the positions of a micro-batch."""
        decoded = "decoder_input_ids" in inputs
        self.speed.add(inputs["input_ids"].numel() if decoded else 0, inputs["labels"].numel())
        return super().training_step(model, inputs, num_items_in_batch)  # type: ignore[misc]

    def log(self: Any, logs: dict[str, float], start_time: float | None = None) -> None:
        """Add the speed to a line of the log; raise InputError where the loss is no number."""
        if "loss" in logs:
            if not math.isfinite(logs["loss"]):
                raise InputError(
                    f"step {self.state.global_step}: the loss is {logs['loss']}; lower the learning rate, or train in "
                    "another precision"
                )
            logs.update(self.speed.look())
        super().log(logs, start_time)  # type: ignore[misc]

    def _save(self: Any, output_dir: str, state_dict: Any = None) -> None:
        if self.is_fsdp_enabled or self.is_deepspeed_enabled or not self.args.should_save:
            return  # both write their shards beside the optimizer's
        folder = Path(output_dir)
        folder.mkdir(parents=True, exist_ok=True)
        model = self.accelerator.unwrap_model(self.model)
        moved = {name: p.detach().contiguous() for name, p in model.named_parameters() if p.requires_grad}
        save_file(moved, folder / _TRAINED)

    def _load_from_checkpoint(self: Any, resume_from_checkpoint: str, model: Any = None) -> None:
        whole = Path(resume_from_checkpoint) / _TRAINED
        if whole.is_file() == self.is_fsdp_enabled:
            raise InputError(
                f"{resume_from_checkpoint}: {'not ' if whole.is_file() else ''}written by a run that shards its "
                "parameters; go on as it was begun, or use another --output"
            )
        if self.is_fsdp_enabled:
            super()._load_from_checkpoint(resume_from_checkpoint, model)  # type: ignore[misc]
            return
        model = self.model if model is None else model
        parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
        kept = load_file(whole)
        if set(kept) != set(parameters) or any(kept[name].shape != p.shape for name, p in parameters.items()):
            raise InputError(f"{resume_from_checkpoint}: a checkpoint of another model; use another --output")
        with torch.no_grad():
            for name, parameter in parameters.items():
                parameter.copy_(kept[name])

    def _save_checkpoint(self: Any, model: Any, trial: Any) -> None:
        folder = Path(self.args.output_dir)
        with no_space_left(folder):
            super()._save_checkpoint(model, trial)  # type: ignore[misc]
        self.accelerator.wait_for_everyone()
        if self.args.should_save:
            write_json(folder / f"checkpoint-{self.state.global_step}" / _COMPLETE, {"step": self.state.global_step})
            for other in checkpoints(folder):
                if other.name != f"checkpoint-{self.state.global_step}":
                    shutil.rmtree(other, ignore_errors=True)


def checkpoints(folder: Path) -> list[Path]:
    """Return the checkpoint folders in ``folder``, whole or not."""
    return sorted(path for path in folder.glob("checkpoint-*") if path.is_dir())


def last_complete(folder: Path) -> Path | None:
    """Return the newest whole checkpoint."""
    whole = [path for path in checkpoints(folder) if (path / _COMPLETE).is_file()]
    return max(whole, key=lambda path: int(path.name.split("-")[1]), default=None)


@contextlib.contextmanager
def no_space_left(folder: Path) -> Iterator[None]:
    """Say that the disk is full where a library's own error about it says less."""
    try:
        yield
    except (OSError, RuntimeError, SafetensorError) as error:
        full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT) or "No space left" in str(error)
        failed = any(said in str(error) for said in ("file write failed", "iostream error", "unexpected pos"))
        if not full and not (failed and shutil.disk_usage(folder).free < 1 << 26):
            raise  # torch does not say why it could not write
        raise InputError(f"{folder}: no space left on the disk; free some and run the same command again") from None


def schedule(options: TrainOptions, optimizer: Any, steps: int) -> Any:
    """Return the learning rate's schedule over ``steps`` steps, with its rise over the first share of them.

    one_cycle (TemporalWiki): up to the highest rate and down to nearly nothing, both linear. linear_to_half (CKL): up,
    then down to half of it.
    """
    rise = min(round(options.warmup_ratio * steps), steps - 1)
    if options.schedule == "one_cycle":
        return LambdaLR(optimizer, lambda step: one_cycle(step, steps, options.warmup_ratio))
    if options.schedule == "linear_to_half":
        return LambdaLR(optimizer, lambda step: linear_to_half(step, steps, rise))
    name = {"constant": "constant_with_warmup"}.get(options.schedule, options.schedule)
    return get_scheduler(name, optimizer, num_warmup_steps=rise, num_training_steps=steps)


def one_cycle(step: int, steps: int, warmup_ratio: float) -> float:
    """Return the share of the highest learning rate at ``step``, from 0.

    From 1/25 to 1 at the last step of the first ``warmup_ratio``, then to 1/250,000 at the last of all: torch's
    OneCycleLR with its defaults and a linear anneal, which divides by zero where the rise is one step long.
    """
    last = steps - 1
    top = min(max(warmup_ratio * steps - 1, 0), last)
    at = min(step, last)
    if at < top:
        return 1 / 25 + (1 - 1 / 25) * at / top
    return 1 - (1 - 1 / 250_000) * (at - top) / (last - top) if last > top else 1.0


def linear_to_half(step: int, steps: int, rise: int) -> float:
    """Return the share of the highest learning rate at ``step``: 0 to 1 in ``rise`` steps, then to 1/2 at the end."""
    return step / rise if step < rise else 1 - 0.5 * (step - rise) / max(steps - rise, 1)


class ContinualTrainer(Continual, Trainer):
    """The library's trainer, with a method's optimizer and loss, which is averaged over the tokens of a step."""

    extra_loss: ExtraLoss | None = None
    optimizer: torch.optim.Optimizer | None
    loss_is_scaled_for_ga = True  # or the library divides it once more for models of some kinds (Gemma 3n and 4)

    def get_decay_parameter_names(self, model: Any) -> list[str]:
        """Leave out matrices of which entries have to stay as they are: decay would move those, too."""
        held = {f"{name}.weight" for name, module in model.named_modules() if getattr(module, "fixed", 0)}
        return [name for name in super().get_decay_parameter_names(model) if name not in held]

    def create_optimizer(self, model: Any = None) -> torch.optim.Optimizer:
        """Make the method's own optimizer, or the one that is asked for."""
        if self.optimizer is None:
            model = self.model if model is None else model
            decayed = set(self.get_decay_parameter_names(model))
            moved = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
            groups = [
                {"params": [p for name, p in moved if name in decayed], "weight_decay": self.args.weight_decay},
                {"params": [p for name, p in moved if name not in decayed], "weight_decay": 0.0},
            ]
            self.optimizer = self.method.optimizer(
                [group for group in groups if group["params"]],
                lr=self.args.learning_rate,
                betas=(self.args.adam_beta1, self.args.adam_beta2),
                eps=self.args.adam_epsilon,
            )
        return self.optimizer or super().create_optimizer(model)

    def _get_num_items_in_batch(self, batch_samples: list[Batch], device: torch.device) -> torch.Tensor:
        tokens = torch.stack([(batch["labels"] != -100).sum() for batch in batch_samples]).sum().to(device)
        return self.accelerator.gather(tokens).sum() if self.args.world_size > 1 else tokens

    def compute_loss(
        self, model: Any, inputs: Batch, return_outputs: bool = False, num_items_in_batch: torch.Tensor | None = None
    ) -> torch.Tensor:
        """The cross entropy averaged over the tokens of the whole step, plus the method's own term.

        Raises ValueError without the step's number of tokens.
        """
        if num_items_in_batch is None:
            raise ValueError("the loss is averaged over the tokens of a whole step, of which there is none here")
        labels = inputs["labels"]
        rest = {name: tensor for name, tensor in inputs.items() if name != "labels"}
        logits = model(**rest, use_cache=False).logits
        # gradients are averaged over processes: a sum over all tokens has to be as many times larger
        share = Share(num_items_in_batch / self.accelerator.num_processes, 1 / self.args.gradient_accumulation_steps)
        loss = F.cross_entropy(logits.float().flatten(0, 1), labels.flatten(), ignore_index=-100, reduction="sum")
        loss = loss / share.tokens
        if self.extra_loss is not None:
            loss = loss + self.extra_loss(self.accelerator.unwrap_model(model), inputs, logits, share)
        return loss


class Display(TrainerCallback):
    """A bar with loss, rate and time left on a terminal, plain lines elsewhere."""

    def on_train_begin(self, args: Any, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Begin where the run goes on."""
        self.begun = self.said = time.perf_counter()
        self.first = state.global_step
        shown = state.is_local_process_zero and sys.stderr.isatty()
        self.bar = tqdm(desc="train", total=state.max_steps, initial=state.global_step, unit="step", disable=not shown)

    def on_step_end(self, args: Any, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Count a step; the last one is always logged, and so is one that is saved."""
        self.bar.update(1)
        # a run that goes on from there does not know the losses before, of which the next line is the mean
        if state.global_step == state.max_steps or control.should_save:
            control.should_log = True
        if not control.should_log and time.perf_counter() - self.said > _LINE_EVERY:
            self._say(state)

    def on_log(self, args: Any, state: TrainerState, control: TrainerControl, logs: Any = None, **kwargs: Any) -> None:
        """Show a line of the log."""
        if "loss" not in (logs or {}):
            return
        rate = f"{logs['tokens_per_second']:,.0f} tokens/s" + (f", MFU {logs['mfu']:.1%}" if "mfu" in logs else "")
        if not self.bar.disable:
            self.bar.set_postfix_str(f"loss {logs['loss']:.4f}, {rate}")
        self._say(state, f"loss {logs['loss']:.4f}, learning rate {logs['learning_rate']:.2e}, {rate}, ")

    def _say(self, state: TrainerState, what: str = "") -> None:
        """Print how far the run is, where no bar shows it."""
        if not self.bar.disable or not state.is_world_process_zero:
            return
        self.said = time.perf_counter()
        done = max(state.global_step - self.first, 1)
        left = (self.said - self.begun) / done * (state.max_steps - state.global_step)
        text = f"train: step {state.global_step}/{state.max_steps}, {what}{left:.0f} s left"
        print(text, file=sys.stderr, flush=True)

    def on_train_end(self, args: Any, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Leave the bar."""
        self.bar.close()
