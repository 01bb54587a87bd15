"""One trainer for all methods: the trainer of `transformers`, with a data order that is fixed before the first step.

The order depends only on the method, the options (with the seed) and the sizes of the data. A resumed run skips the
steps that are done, and several processes divide the same global batches. So both compute the same result as one
uninterrupted process, but for rounding.
"""

import contextlib
import errno
import importlib.util
import math
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import datasets
import msgspec
import numpy as np
import torch
import torch.nn.functional as F
from accelerate import PartialState
from peft import PeftModel
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch.optim.lr_scheduler import LambdaLR
from transformers import (
    PreTrainedTokenizerBase,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
    get_scheduler,
    get_wsd_schedule,
)

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.base.files import sync_tree, whole_file
from temporalwiki.base.json_files import read_json, write_json
from temporalwiki.base.progress import Progress
from temporalwiki.base.terminal import say
from temporalwiki.builders.manifests import DataFile
from temporalwiki.methods.architecture import is_encoder_decoder
from temporalwiki.methods.attention import is_flash, one_row
from temporalwiki.methods.master_weights import MasterWeights
from temporalwiki.methods.method import Batch, ExtraLoss, Method, Phase, StepShare, TrainingData
from temporalwiki.methods.options import TrainOptions
from temporalwiki.methods.packing import PackedBatch
from temporalwiki.methods.speed import Speed, peak, work

COMPILER = "inductor"
EMPTY = -1  # an example that is all padding: it fills up the last global batch
_COMPLETE = "complete.json"  # written last: a checkpoint without this file does not count
_TRAINED = "trained.safetensors"
_COOLDOWN = 0.1  # the last part of a phase, where wsd and rsqrt fall to zero


class _Marker(msgspec.Struct):
    """The content of ``complete.json``."""

    files: list[DataFile]


def example_order(method: Method, options: TrainOptions, new: int, past: int) -> np.ndarray:
    """Return the examples of all steps in order, int64 (steps * batch_size,); EMPTY fills up the last step.

    Epochs follow each other without a gap. If ``options.steps`` is given, the data is cut or repeated to fit.
    """
    wanted = None if options.steps is None else options.steps * options.batch_size
    parts: list[np.ndarray] = []
    epoch = size = 0
    while size < wanted if wanted else epoch < options.epochs:
        draw = np.random.default_rng([options.seed, epoch])
        parts.append(method.epoch(epoch, new, past, draw))
        size += len(parts[-1])
        epoch += 1
    order = np.concatenate(parts)[:wanted]
    return np.concatenate([order, np.full(-len(order) % options.batch_size, EMPTY)])


class OrderedExamples(torch.utils.data.Dataset):
    """The examples of a run, in the order that the model reads them."""

    def __init__(self, order: np.ndarray, new: Any, past: Any) -> None:
        """``new`` and ``past`` map a number to an example. The example EMPTY has the same columns, without content."""
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
    """Return the size of a micro-batch and the number of micro-batches of a process in each step.

    Raises UsageError if the batch cannot be divided evenly among the processes.
    """
    if options.batch_size % processes:
        raise UsageError(
            f"a batch of {options.batch_size} sequences cannot be divided among {processes} processes: "
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
    kind: type[TrainingArguments],
    **more: Any,
) -> TrainingArguments:
    """Return the library's arguments, of class ``kind``, for a run that writes its checkpoints under ``folder``.

    Raises UsageError for a tracker that is not installed.
    """
    size, accumulation = micro_batches(options, PartialState().num_processes)
    if missing := [tracker for tracker in options.report_to if importlib.util.find_spec(tracker) is None]:
        raise UsageError(f"--report-to {missing[0]}: not installed: pip install {missing[0]}")
    arguments = kind(
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
        torch_compile=options.compile,
        torch_compile_backend=COMPILER if options.compile else None,
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
    if arguments.n_gpu > 1:
        arguments._n_gpu = 1  # else the library uses DataParallel, which is slower than a process per GPU
    return arguments


class ContinualMixin:
    """What we add to the library's trainers: a fixed data order, atomic checkpoints, and the speed in the log.

    A checkpoint holds the trainable parameters, optimizer, schedule, random state and log; the other parameters are in
    the starting checkpoint. It counts once its last file is written, and only then are earlier ones removed.
    """

    def set_up(self: Any, options: TrainOptions, method: Method, earlier: Sequence[int] = ()) -> None:
        """Set the options, the method, and the steps of each earlier phase. Must be called once before training."""
        self.options, self.method, self.earlier = options, method, earlier
        self.extras: list[torch.Tensor] = []  # the method's own terms of the loss since the last log entry
        self.masters = MasterWeights(self.model)
        processes = self.args.world_size
        self.speed = Speed(
            work(self.model, options.tokens, method.gradients_through_base), peak(self.args.device), processes
        )
        self.remove_callback(PrinterCallback)
        self.add_callback(Display())

    def _get_train_sampler(self: Any, train_dataset: Any = None) -> torch.utils.data.Sampler:
        return torch.utils.data.SequentialSampler(self.train_dataset)

    def create_optimizer(self: Any, model: Any = None) -> Any:
        """Create the method's own optimizer, or the one in the options."""
        if self.optimizer is None:
            model = self.model if model is None else model
            decayed = set(self.get_decay_parameter_names(model))
            trained = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
            groups = [
                {"params": [p for name, p in trained if name in decayed], "weight_decay": self.args.weight_decay},
                {"params": [p for name, p in trained if name not in decayed], "weight_decay": 0.0},
            ]
            made = self.method.optimizer(
                [group for group in groups if group["params"]],
                lr=self.args.learning_rate,
                betas=(self.args.adam_beta1, self.args.adam_beta2),
                eps=self.args.adam_epsilon,
            )
            optimizer = self.optimizer = made or super().create_optimizer(model)  # type: ignore[misc]
            self.masters.give_to(optimizer)
            plain = self.accelerator.unwrap_model(model)
            optimizer.register_step_post_hook(lambda *_: self.method.after_step(plain))
        return self.optimizer

    def create_scheduler(self: Any, num_training_steps: int, optimizer: Any = None) -> Any:
        """Create the learning rate schedule that the options name, unless there is one already."""
        if self.lr_scheduler is None:
            self.lr_scheduler = schedule(self.options, optimizer or self.optimizer, num_training_steps, self.earlier)
            self._created_lr_scheduler = True
        return self.lr_scheduler

    def training_step(self: Any, model: Any, inputs: Batch, num_items_in_batch: torch.Tensor | None = None) -> Any:
        """Count the positions of the micro-batch, then train on it."""
        decoded = "decoder_input_ids" in inputs
        self.speed.add(inputs["input_ids"].numel() if decoded else 0, inputs["labels"].numel())
        return super().training_step(model, inputs, num_items_in_batch)  # type: ignore[misc]

    def log(self: Any, logs: dict[str, float], start_time: float | None = None) -> None:
        """Add the speed to a log entry; raise InputError if the loss is not a finite number."""
        if "loss" in logs:
            if not math.isfinite(logs["loss"]):
                raise InputError(
                    f"step {self.state.global_step}: the loss is {logs['loss']}; lower the learning rate, or use "
                    "another precision"
                )
            logs.update(self.speed.rates())
        super().log(logs, start_time)  # type: ignore[misc]

    def _save(self: Any, output_dir: str, state_dict: Any = None) -> None:
        if self.is_fsdp_enabled or not self.args.should_save:
            return  # FSDP saves the shards together with the optimizer's
        folder = Path(output_dir)
        folder.mkdir(parents=True, exist_ok=True)
        model = self.accelerator.unwrap_model(self.model)
        trained = {name: p for name, p in model.named_parameters() if p.requires_grad} | self.masters.masters
        save_file({name: p.detach().contiguous() for name, p in trained.items()}, folder / _TRAINED)

    def _load_from_checkpoint(self: Any, resume_from_checkpoint: str, model: Any = None) -> None:
        path = Path(resume_from_checkpoint) / _TRAINED
        if path.is_file() == self.is_fsdp_enabled:
            raise InputError(
                f"{resume_from_checkpoint}: its run {'did not shard' if path.is_file() else 'sharded'} parameters; "
                "continue it the same way, or use another --output"
            )
        if self.is_fsdp_enabled:
            super()._load_from_checkpoint(resume_from_checkpoint, model)  # type: ignore[misc]
            return
        model = self.model if model is None else model
        parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
        saved = load_file(path)
        if set(saved) != set(parameters) or any(saved[name].shape != p.shape for name, p in parameters.items()):
            raise InputError(f"{resume_from_checkpoint}: a checkpoint of another model; use another --output")
        with torch.no_grad():
            for name, parameter in parameters.items():
                parameter.copy_(saved[name])
        self.masters.load(saved)

    def _save_checkpoint(self: Any, model: Any, trial: Any) -> None:
        folder = Path(self.args.output_dir)
        with no_space_left(folder):
            super()._save_checkpoint(model, trial)  # type: ignore[misc]
        self.accelerator.wait_for_everyone()
        if self.args.should_save:
            mark_complete(folder / f"checkpoint-{self.state.global_step}")
            for other in checkpoints(folder):
                if other.name != f"checkpoint-{self.state.global_step}":
                    shutil.rmtree(other, ignore_errors=True)


def checkpoints(folder: Path) -> list[Path]:
    """Return the checkpoint folders in ``folder``, complete or not."""
    return sorted(path for path in folder.glob("checkpoint-*") if path.is_dir())


def last_complete(folder: Path) -> Path | None:
    """Return the newest complete checkpoint, or None."""
    complete = [path for path in checkpoints(folder) if (path / _COMPLETE).is_file()]
    return max(complete, key=lambda path: int(path.name.split("-")[1]), default=None)


def undamaged(folder: Path, what: str, state: PartialState) -> Path | None:
    """Return the newest complete checkpoint whose files are as they were written, or None.

    The main process removes damaged ones, and says so in a line that begins with ``what``.
    """
    while state.is_main_process and (newest := last_complete(folder)) is not None and (problem := damage(newest)):
        say(f"{what}: {problem}; this checkpoint is left out")
        shutil.rmtree(newest)
    state.wait_for_everyone()
    return last_complete(folder)


def mark_complete(folder: Path) -> None:
    """Write the marker of a folder whose files are complete. It lists their sizes and hashes."""
    sync_tree(folder)
    # other processes may write the marker, or files with hidden names, at the same time
    written = [path for path in sorted(folder.rglob("[!.]*")) if path.is_file() and path != folder / _COMPLETE]
    files = [DataFile.of(path, folder) for path in written]
    write_json(folder / _COMPLETE, {"files": msgspec.to_builtins(files)})


def damage(folder: Path) -> str | None:
    """Return what is wrong with a folder that ``mark_complete`` marked, or None."""
    try:
        files = read_json(folder / _COMPLETE, _Marker, "a list of files").files
        found = ((file.path, file.problem(folder)) for file in files)
        return next((f"{folder / path}: {problem}" for path, problem in found if problem), None)
    except (InputError, OSError) as error:
        return str(error)


def kept(path: Path, make: Callable[[], dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    """Return the tensors in the file ``path`` if an interrupted run left it undamaged; else ``make`` and keep them."""
    if path.is_file() and damage(path.parent) is None:
        return load_file(path)
    made = make()
    with whole_file(path) as part:
        save_file({name: tensor.cpu() for name, tensor in made.items()}, part)
    mark_complete(path.parent)
    return made


@contextlib.contextmanager
def no_space_left(folder: Path) -> Iterator[None]:
    """Raise InputError if a write fails because the disk is full; the libraries' errors often do not say so."""
    try:
        yield
    except (OSError, RuntimeError, SafetensorError) as error:
        full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT) or "No space left" in str(error)
        # torch's errors do not give the reason
        failed = any(text in str(error) for text in ("file write failed", "iostream error", "unexpected pos"))
        if not full and not (failed and shutil.disk_usage(folder).free < 1 << 26):
            raise
        raise InputError(f"{folder}: no space left on the disk; free some and run the same command again") from None


def schedule(options: TrainOptions, optimizer: Any, steps: int, earlier: Sequence[int] = ()) -> Any:
    """Return the learning rate schedule for ``steps`` steps, which starts with a warm-up.

    one_cycle is TemporalWiki's, linear_to_half CKL's. wsd stays at the highest rate and falls to zero in the last
    tenth. linear, cosine and constant come from `transformers`. cosine_ar and rsqrt continue over phases; ``earlier``
    has the steps of each phase before.
    """
    warmup = min(round(options.warmup_ratio * steps), steps - 1)
    if options.schedule == "one_cycle":
        return LambdaLR(optimizer, lambda step: one_cycle(step, steps, options.warmup_ratio))
    if options.schedule == "linear_to_half":
        return LambdaLR(optimizer, lambda step: linear_to_half(step, steps, warmup))
    if options.schedule == "cosine_ar":
        return LambdaLR(optimizer, lambda step: cosine_ar(step, steps, warmup, sum(earlier)))
    cooldown = min(round(_COOLDOWN * steps), steps - warmup)
    if options.schedule == "wsd":
        return get_wsd_schedule(optimizer, warmup, cooldown, num_training_steps=steps, decay_type="linear")
    if options.schedule == "rsqrt":
        first = round(options.warmup_ratio * earlier[0]) if earlier else warmup
        return LambdaLR(optimizer, lambda step: rsqrt(step, steps, warmup, cooldown, sum(earlier), first))
    name = {"constant": "constant_with_warmup"}.get(options.schedule, options.schedule)
    return get_scheduler(name, optimizer, num_warmup_steps=warmup, num_training_steps=steps)


def one_cycle(step: int, steps: int, warmup_ratio: float) -> float:
    """Return the learning rate at ``step`` (from 0) as a share of the highest one.

    It rises from 1/25 to 1 at the last step of the warm-up, then falls to 1/250,000 at the last step. These are the
    values of torch's OneCycleLR with linear annealing, which divides by zero if the warm-up is one step long.
    """
    last = steps - 1
    top = min(max(warmup_ratio * steps - 1, 0), last)
    step = min(step, last)
    if step < top:
        return 1 / 25 + (1 - 1 / 25) * step / top
    return 1 - (1 - 1 / 250_000) * (step - top) / (last - top) if last > top else 1.0


def linear_to_half(step: int, steps: int, warmup: int) -> float:
    """Return the learning rate at ``step`` as a share of the highest: 0 to 1 in ``warmup`` steps, then down to 1/2."""
    return step / warmup if step < warmup else 1 - 0.5 * (step - warmup) / max(steps - warmup, 1)


def cosine_ar(step: int, steps: int, warmup: int, earlier: int) -> float:
    """Return the learning rate at ``step`` as a share of the highest one of the first phase.

    Draw one cosine over the ``earlier`` steps and the steps of this phase. Its value where this phase begins is the
    highest rate (autoregressive cosine, Roth et al. 2024). From there the rate falls to zero along another cosine.
    """
    highest = 0.5 * (1 + math.cos(math.pi * earlier / (earlier + steps)))
    if step < warmup:
        return highest * step / warmup
    return highest * 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(steps - warmup, 1)))


def rsqrt(step: int, steps: int, warmup: int, cooldown: int, earlier: int, first: int) -> float:
    """Return the learning rate at ``step`` as a share of the highest one.

    It is the square root of ``first`` / (steps of all phases so far), at most 1, where ``first`` is the warm-up of the
    first phase (Zhai et al. 2022). Each phase rises to it and ends at zero, both linearly.
    """
    first = max(first, 1)
    rise = min(1.0, step / warmup) if warmup else 1.0
    fall = min(1.0, max(steps - step, 0) / cooldown) if cooldown else 1.0
    return math.sqrt(first / max(earlier + step, first)) * rise * fall


def cross_entropy(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return the sum of the cross entropy over the tokens that count, whose labels are not -100."""
    return F.cross_entropy(logits.float().flatten(0, 1), labels.flatten(), ignore_index=-100, reduction="sum")


def fuse_loss(model: Any) -> None:
    """Let a decoder-only model compute log-probabilities piece by piece, without keeping logits."""
    from trl.trainer.utils import add_fused_lm_head  # imports much

    add_fused_lm_head(model.get_base_model() if isinstance(model, PeftModel) else model)


class ContinualTrainer(ContinualMixin, Trainer):
    """The library's trainer with a method's optimizer and loss. The loss is a mean over the tokens of a step."""

    extra_loss: ExtraLoss | None = None
    held_out: Callable[[], Iterable[Batch]] | None = None  # examples that are not trained on
    loss_is_scaled_for_ga = True  # else the library divides the loss again for some models (Gemma 3n and 4)

    def get_decay_parameter_names(self, model: Any) -> list[str]:
        """Return the names of the parameters to decay: none with fixed entries, because decay would change these."""
        fixed = {f"{name}.weight" for name, module in model.named_modules() if getattr(module, "fixed", 0)}
        return [name for name in super().get_decay_parameter_names(model) if name not in fixed]

    def _get_num_items_in_batch(self, batch_samples: list[Batch], device: torch.device) -> torch.Tensor:
        tokens = torch.stack([(batch["labels"] != -100).sum() for batch in batch_samples]).sum().to(device)
        return self.accelerator.gather(tokens).sum() if self.args.world_size > 1 else tokens

    def compute_loss(
        self, model: Any, inputs: Batch, return_outputs: bool = False, num_items_in_batch: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return the micro-batch's part of the step's mean cross entropy per token, plus the method's own term.

        A mixture of experts whose configuration asks for it (``output_router_logits``) adds the loss of its router.

        Raises ValueError without the number of tokens in the step.
        """
        if num_items_in_batch is None:
            raise ValueError("the loss is a mean over the tokens of a whole step: pass their number")
        inputs = one_row(inputs) if is_flash(self.model) else inputs
        loss, output = self._text_loss(model, inputs)
        # the gradients of all processes are averaged, but we need their sum: use a process's share of the tokens
        share = StepShare(
            num_items_in_batch / self.accelerator.num_processes, 1 / self.args.gradient_accumulation_steps
        )
        loss = self.method.text_weight * loss / share.tokens
        if (balance := getattr(output, "aux_loss", None)) is not None:
            weight = self.model.config.get_text_config(decoder=True).router_aux_loss_coef
            loss = loss + weight * balance.to(loss.device) * share.fraction
        if self.extra_loss is not None:
            with self.accelerator.autocast():  # a teacher computes in the precision of its student
                logits = getattr(output, "logits", None)
                plain = self.accelerator.unwrap_model(model, keep_torch_compile=False)
                extra = self.extra_loss(plain, inputs, logits, share)
            self.extras.append(extra.detach())
            loss = loss + extra
        return loss

    def _text_loss(self, model: Any, batch: Mapping[str, Any]) -> tuple[torch.Tensor, Any]:
        """Return the sum of the cross entropy over the tokens that count, and the model's output."""
        rest = {name: value for name, value in batch.items() if name != "labels"}
        if self.options.fused_loss:
            output = model(**rest, shift_labels=batch["labels"], fused_lm_head=True)
            return -output.log_probs.sum(), output
        output = model(**rest, use_cache=False)
        return cross_entropy(output.logits, batch["labels"]), output

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Add the method's own part of the loss, which is the mean over the same steps."""
        if "loss" in logs and self.extras:
            steps = len(self.extras) / self.args.gradient_accumulation_steps
            total = self.accelerator.gather(torch.stack(self.extras).sum()).mean().item()
            self.extras.clear()
            logs = {**logs, "extra_loss": total / steps}
        step = self.state.global_step
        if "loss" in logs and self.held_out and (step % self.args.save_steps == 0 or step == self.state.max_steps):
            began = time.perf_counter()
            logs = {**logs, "held_out_loss": self.held_out_loss(self.held_out())}
            self.speed.since += time.perf_counter() - began  # no part of the speed of training
        super().log(logs, start_time)

    @torch.no_grad()
    def held_out_loss(self, batches: Iterable[Batch]) -> float:
        """Return the mean cross entropy per token. Each process computes it alike, on all batches."""
        model, total, tokens = self.model_wrapped, 0.0, 0
        flash = is_flash(self.model)
        model.eval()
        for batch in map(one_row, batches) if flash else batches:
            with self.accelerator.autocast():
                loss, _ = self._text_loss(model, batch)
            total += loss.item()
            tokens += int((batch["labels"] != -100).sum())
        model.train()
        return total / max(tokens, 1)


class Display(TrainerCallback):
    """Show the progress of training, with loss and speed."""

    def on_train_begin(self, args: Any, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Open the display at the step where a resumed run continues."""
        name = args.run_name or "training"
        self.progress = Progress(name, state.max_steps, "step", state.global_step, state.is_world_process_zero)

    def on_step_end(self, args: Any, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Count a step. Log the last step and every step that is saved."""
        self.progress.update()
        # an entry is the mean loss since the entry before; a run resumed here would not know the earlier losses
        if state.global_step == state.max_steps or control.should_save:
            control.should_log = True

    def on_log(self, args: Any, state: TrainerState, control: TrainerControl, logs: Any = None, **kwargs: Any) -> None:
        """Show the newest loss and speed."""
        if "loss" in (logs or {}):
            mfu = f", MFU {logs['mfu']:.1%}" if "mfu" in logs else ""
            self.progress.note(f"loss {logs['loss']:.4f}, {logs['tokens_per_second']:,.0f} tokens/s{mfu}")

    def on_train_end(self, args: Any, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Close the display."""
        self.progress.close()


def make_trainer(
    model: Any,
    method: Method,
    training_data: TrainingData,
    tokenizer: PreTrainedTokenizerBase,
    options: TrainOptions,
    precision: str,
    phase: Phase,
    name: str,
) -> Any:
    """Return the trainer for ``training_data``, with a fixed data order and checkpoints in the phase's folder.

    Raises InputError for a tokenizer that cannot pad.
    """
    if tokenizer.eos_token_id is None and tokenizer.pad_token_id is None:
        raise InputError(
            "the tokenizer has neither an end token nor a padding token; add one to tokenizer_config.json"
        )
    past = 0 if training_data.past is None else len(training_data.past)
    if options.compile:
        torch.compiler.reset()  # else it gives up at the ninth model of a process
    order = example_order(method, options, len(training_data.new), past)
    steps = len(order) // options.batch_size
    arguments: Callable[..., TrainingArguments] = partial(
        training_arguments, options=options, precision=precision, folder=phase.folder, steps=steps, name=name
    )
    own = method.own_trainer(model, training_data, order, tokenizer, arguments)
    if own is not None:
        own.set_up(options, method, phase.earlier)
        return own
    masked = is_encoder_decoder(model)
    if options.fused_loss:
        fuse_loss(model)
    collate: Any = PackedBatch.of(tokenizer, options.tokens, model) if not masked else None
    if masked:
        from temporalwiki.methods.salient_spans import MaskedBatch

        collate = MaskedBatch.of(model, tokenizer)
    examples = OrderedExamples(order, training_data.new, training_data.past)
    trainer = ContinualTrainer(
        model=model, args=arguments(kind=TrainingArguments), train_dataset=examples, data_collator=collate
    )
    trainer.set_up(options, method, phase.earlier)

    def batches(source: datasets.Dataset, numbers: Iterable[int]) -> Iterator[Batch]:
        at = iter(numbers)
        while some := list(islice(at, trainer.args.per_device_train_batch_size)):
            batch: Mapping[str, Any] = collate([source[number] for number in some])
            yield {key: tensor.to(trainer.args.device) for key, tensor in batch.items()}

    def sample_batches(wanted: int, new: bool = False) -> list[Batch]:
        source = training_data.new if new or training_data.past is None else training_data.past
        # evenly spaced, so that a small sample covers all of the data
        chosen = np.unique(np.linspace(0, len(source) - 1, min(wanted, len(source))).astype(int))
        return list(batches(source, chosen.tolist()))

    if (held_out := training_data.held_out) is not None:
        trainer.held_out = lambda: batches(held_out, range(len(held_out)))
    # flash kernels do not compute in the precision of the weights
    with trainer.accelerator.autocast() if is_flash(model) else contextlib.nullcontext():
        trainer.extra_loss = method.extra_loss(model, sample_batches, phase)
    return trainer
