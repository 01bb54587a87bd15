"""Measure a training step of our trainer, a bare PyTorch loop and the plain Trainer on the same model and data.

    python benchmarks/train.py steps --model DIR --sequence-length 512 --batch-size 1
    python benchmarks/train.py speed --config gpt2-large --precision bf16 --batch-size 64 --micro-batch-size 8    # GPU

``steps`` takes turns between the three in one process and prints the median time of a step and its ratio to the bare
loop's. ``speed`` prints tokens/s, MFU and peak memory of a model with random weights, and adds the options for a GPU
one by one.
"""

import argparse
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from table import Cell, show
from transformers import AutoConfig, AutoModelForCausalLM, GPT2Config, Trainer, TrainerCallback, TrainingArguments
from transformers.utils import logging

from temporalwiki.base.errors import UsageError
from temporalwiki.methods import find_method
from temporalwiki.methods.attention import check_kernels, set_attention
from temporalwiki.methods.method import Phase
from temporalwiki.methods.options import TrainOptions
from temporalwiki.methods.packing import PackedBatch
from temporalwiki.methods.speed import peak, work
from temporalwiki.methods.trainer import ContinualTrainer, OrderedExamples, fuse_loss, training_arguments

CONFIGS = {"gpt2-large": GPT2Config(n_embd=1280, n_layer=36, n_head=20), "gpt2": GPT2Config()}
SPEED_OPTIONS: dict[str, dict[str, Any]] = {
    "none": {},
    "--attention flash_attention_2": {"attention": "flash_attention_2"},
    "--fused-loss": {"fused_loss": True},
    "--compile": {"compile": True},
}
CLOCK = time.perf_counter if torch.cuda.is_available() else time.process_time
DOCUMENT = 200  # tokens, about as many as an article in a diffset


class Clock(TrainerCallback):
    """Measures each step from the end of the step before, so that reading and logging count."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        _wait()
        self.last = CLOCK()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        _wait()
        now = CLOCK()
        self.seconds.append(now - self.last)
        self.last = now


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def rows(count: int, length: int, vocabulary: int) -> list[dict[str, Any]]:
    """Return packed chunks of random tokens."""
    draw, starts = np.random.default_rng(0), list(range(0, length, DOCUMENT))
    chunks = [draw.integers(0, vocabulary, length).tolist() for _ in range(count)]
    return [{"input_ids": chunk, "starts": starts, "next_token": 0} for chunk in chunks]


def bare(model: Any, data: list[Any], collate: Any, batch: int, precision: str, rate: float) -> list[float]:
    """Return the seconds of each step of a loop without a trainer; fetching the batch counts."""
    device = next(model.parameters()).device
    moved = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(moved, lr=rate, weight_decay=0.0, fused=True)
    model.train()
    seconds = []
    for at in range(0, len(data), batch):
        _wait()
        begun = CLOCK()
        inputs = {name: tensor.to(device) for name, tensor in collate(data[at : at + batch]).items()}
        labels = inputs.pop("labels")
        with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16"):
            logits = model(**inputs, use_cache=False).logits
            loss = F.cross_entropy(logits.float().flatten(0, 1), labels.flatten(), ignore_index=-100)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(moved, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        _wait()
        seconds.append(CLOCK() - begun)
    return seconds


def ours(model: Any, method: Any, data: list[Any], collate: Any, options: TrainOptions, precision: str) -> list[float]:
    """Return the seconds of each step of our trainer."""
    steps = len(data) // options.batch_size
    if options.fused_loss:
        fuse_loss(model)
    with tempfile.TemporaryDirectory() as folder:
        arguments = training_arguments(options, precision, Path(folder), steps, "bench", TrainingArguments)
        arguments.save_strategy = "no"
        trainer = ContinualTrainer(
            model=model,
            args=arguments,
            train_dataset=OrderedExamples(np.arange(len(data)), data, None),
            data_collator=collate,
        )
        trainer.set_up(options, method)
        batches = [{n: t.to(arguments.device) for n, t in collate(data[:1]).items()}]
        trainer.extra_loss = method.extra_loss(model, lambda n: batches, Phase(folder=Path(folder)))
        clock = Clock()
        trainer.add_callback(clock)
        trainer.train()
    return clock.seconds


def plain(model: Any, data: list[Any], collate: Any, options: TrainOptions, precision: str) -> list[float]:
    """Return the seconds of each step of the library's Trainer, with the model's own loss."""

    def with_own_shift(chunk: list[Any]) -> dict[str, torch.Tensor]:
        batch = collate(chunk)
        return {"input_ids": batch["input_ids"], "position_ids": batch["position_ids"], "labels": batch["input_ids"]}

    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=options.batch_size,
            max_steps=len(data) // options.batch_size,
            learning_rate=options.learning_rate,
            bf16=precision == "bf16",
            report_to=[],
            save_strategy="no",
            disable_tqdm=True,
            remove_unused_columns=False,
            logging_steps=options.logging_steps,
            dataloader_pin_memory=torch.cuda.is_available(),
        )
        model.config.use_cache = False
        clock = Clock()
        Trainer(
            model=model, args=arguments, train_dataset=data, data_collator=with_own_shift, callbacks=[clock]
        ).train()
    return clock.seconds


def compare_steps(arguments: argparse.Namespace) -> None:
    """Print the median step of each way; the ways take turns."""
    model = _model(arguments)
    options = replace(_options(arguments), micro_batch_size=arguments.batch_size, learning_rate=1e-6, logging_steps=10)
    collate = PackedBatch(arguments.sequence_length, 0, shared=True)
    data = rows(arguments.steps * arguments.batch_size, arguments.sequence_length, model.config.vocab_size)
    diff = find_method("diff")()
    seconds: dict[str, list[float]] = {"bare loop": [], "ours": [], "plain Trainer": []}
    for _ in range(arguments.rounds):
        seconds["bare loop"] += bare(model, data, collate, arguments.batch_size, arguments.precision, 1e-6)[1:]
        seconds["ours"] += ours(model, diff, data, collate, options, arguments.precision)[1:]
        seconds["plain Trainer"] += plain(model, data, collate, options, arguments.precision)[1:]
    floor = statistics.median(seconds["bare loop"])
    lines: list[list[Cell]] = []
    for name, times in seconds.items():
        middle, least = statistics.median(times), min(times)
        ratio, best = middle / floor, least / min(seconds["bare loop"])
        lines.append([name, round(middle, 4), round(least, 4), round(ratio, 3), round(best, 3)])
    note = f"{_setting(arguments)}. Seconds are of the processor, or of the clock if there is a GPU."
    columns = ("a training step", "median s", "fastest s", "median : bare loop's", "fastest : bare loop's")
    show("Training steps", columns, lines, note)


def compare_speed(arguments: argparse.Namespace) -> None:
    """Print the speed with each of the options for a GPU, one added after the other."""
    diff, options, lines, left_out = find_method("diff")(), _options(arguments), [], []
    for name, more in SPEED_OPTIONS.items():
        model = diff.prepare(_model(arguments), Phase())
        try:
            if attention := more.get("attention"):
                check_kernels(attention, arguments.precision)
                set_attention(model, attention)
        except UsageError as error:
            left_out.append(f"{name} is left out: {error}.")
            continue
        options = replace(options, **more)
        lines.append(_measured(name, model, diff, options, arguments))
    note = f"{_setting(arguments)}. Each line adds an option to the line above. {' '.join(left_out)}"
    columns = ("options", "step s", "tokens/s", "TFLOP/s", "MFU %", "peak GB")
    show("Training on a GPU", columns, lines, note)


def _measured(name: str, model: Any, method: Any, options: TrainOptions, arguments: argparse.Namespace) -> list[Cell]:
    """Return a line: the median step, rates of a second, and the most memory on the GPU. MFU counts all pairs."""
    length, size, on_gpu = options.sequence_length, options.batch_size, torch.cuda.is_available()
    data = rows(arguments.steps * size, length, model.config.vocab_size)
    if on_gpu:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    times = ours(model, method, data, PackedBatch(length, 0, shared=True), options, arguments.precision)[3:]
    step = statistics.median(times)
    tokens = size * length / step
    flops = tokens * work(model, length, method.gradients_through_base).decoder
    most = peak(next(model.parameters()).device)
    mfu = round(100 * flops / most, 1) if most else None
    memory = round(torch.cuda.max_memory_allocated() / 1e9, 1) if on_gpu else None
    return [name, round(step, 4), round(tokens), round(flops / 1e12, 2), mfu, memory]


def _options(arguments: argparse.Namespace) -> TrainOptions:
    return TrainOptions(
        batch_size=arguments.batch_size,
        micro_batch_size=arguments.micro_batch_size or arguments.batch_size,
        sequence_length=arguments.sequence_length,
        schedule="constant",
        warmup_ratio=0.0,
        logging_steps=1000,
    )


def _setting(arguments: argparse.Namespace) -> str:
    """Return what was trained, and on what."""
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else f"{torch.get_num_threads()} threads"
    return (
        f"{arguments.model or arguments.config} in {arguments.precision}, {arguments.batch_size} x "
        f"{arguments.sequence_length} tokens a step, documents of {DOCUMENT} tokens; "
        f"torch {torch.__version__}, {device}"
    )


def _model(arguments: argparse.Namespace) -> Any:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if arguments.model:
        return AutoModelForCausalLM.from_pretrained(arguments.model, dtype=torch.float32).to(device)
    torch.manual_seed(0)
    with torch.device(device):
        return AutoModelForCausalLM.from_config(AutoConfig.for_model(**CONFIGS[arguments.config].to_dict()))


COMPARISONS = {"steps": compare_steps, "speed": compare_speed}


def main() -> None:
    """Run one of the comparisons."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=COMPARISONS)
    parser.add_argument("--model", help="folder of a checkpoint; else a model of --config with random weights")
    parser.add_argument("--config", choices=CONFIGS, default="gpt2")
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--sequence-length", type=int, default=512)
    parser.add_argument("--batch-size", type=int, default=1)
    parser.add_argument("--micro-batch-size", type=int, help="sequences at once (default: the batch)")
    parser.add_argument("--steps", type=int, default=8, help="a round; the first are left out")
    parser.add_argument("--rounds", type=int, default=4)
    logging.set_verbosity_error()
    arguments = parser.parse_args()
    COMPARISONS[arguments.what](arguments)


if __name__ == "__main__":
    main()
