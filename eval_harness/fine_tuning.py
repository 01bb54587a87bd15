"""Fine-tune a model on the examples of a task before it is scored."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import torch
from accelerate.utils import set_seed
from transformers import PreTrainedTokenizerBase, TrainingArguments

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.base.files import discard, only_one, whole_folder
from temporalwiki.base.json_files import fingerprint
from temporalwiki.eval_harness.models.local import CachedModel, default_precision
from temporalwiki.eval_harness.models.model import Model
from temporalwiki.eval_harness.scoring import encoder_inputs, sentinel_of
from temporalwiki.methods.architecture import is_encoder_decoder
from temporalwiki.methods.light_tuning import LightTuning
from temporalwiki.methods.method import Phase
from temporalwiki.methods.options import MAY_DIFFER, TrainOptions
from temporalwiki.methods.packing import IGNORED, Encoder, Ints
from temporalwiki.methods.salient_spans import MaskedBatch
from temporalwiki.methods.trainer import (
    ContinualTrainer,
    OrderedExamples,
    example_order,
    no_space_left,
    training_arguments,
    undamaged,
)

VERSION = 1  # raise it if examples are tokenised differently: older weights are then not used
_TOKENS = 4096  # the most tokens of a micro-batch, with padding
_AT_ONCE = 10_000  # examples that are tokenised at once


@contextmanager
def fine_tuned(model: Model, examples: Sequence[tuple[str, str]], options: TrainOptions, what: str) -> Iterator[Model]:
    """Yield a copy of the model with all parameters trained to answer prompts.

    ``examples`` are (prompt, answer) pairs, tokenised as in ``Model.generate``: a decoder-only model learns the
    answer and EOS after the prompt, an encoder-decoder model learns to fill the prompt's ``<extra_id_0>`` (appended if
    it is missing). ``what`` names the run in the log. ``options.micro_batch_size`` is ignored: the longest
    example decides.

    The weights of the copy are in the cache folder. They are removed at the end of the block, but not after an error,
    so that an interrupted training continues. Raises InputError for a tokenizer without EOS or if another process
    trains the same copy, and UsageError if the parameters would be sharded.
    """
    affecting = {name: value for name, value in asdict(options).items() if name not in MAY_DIFFER}
    folder = model.cache_folder / "fine-tuned" / fingerprint(VERSION, model.revision, list(examples), affecting)
    state = model.state
    with only_one(folder, "fine-tuning") if state.is_main_process else nullcontext():
        if not (folder / "model").is_dir():
            _train(model, examples, options, what, folder)
        state.wait_for_everyone()
        yield CachedModel(str(folder / "model"), model.cache_folder, model.precision)
        state.wait_for_everyone()
        if state.is_main_process:
            discard(folder)


def _train(model: Model, examples: Sequence[tuple[str, str]], options: TrainOptions, what: str, folder: Path) -> None:
    """Train the copy, and write its weights to FOLDER/model at the end."""
    set_seed(options.seed)
    start = model.copied()
    method = LightTuning()  # also trains parameters that a method had frozen or wrapped
    tuned = method.prepare(start.model, Phase(options.seed))
    inputs, labels = _tokens(tuned, start.tokenizer, examples)
    longest = max(len(read) + len(said) for read, said in zip(inputs, labels, strict=True))
    options = replace(options, micro_batch_size=max(1, _TOKENS // longest))
    order = example_order(method, options, len(inputs), 0)
    precision = default_precision() if options.precision == "auto" else options.precision
    checkpoints, steps = folder / "checkpoints", len(order) // options.batch_size
    trainer = ContinualTrainer(
        model=tuned,
        args=training_arguments(options, precision, checkpoints, steps, what, TrainingArguments),
        train_dataset=OrderedExamples(
            order, datasets.Dataset.from_dict({"input_ids": inputs, "labels": labels}), None
        ),
        data_collator=_Batch(tuned, start.tokenizer),
    )
    if trainer.is_fsdp_enabled:
        raise UsageError(f"{what}: an evaluation does not shard models; start it with DDP")
    trainer.set_up(options, method)
    last = undamaged(checkpoints, what, model.state)
    trainer.train(resume_from_checkpoint=None if last is None else str(last))
    if model.state.is_main_process:
        with no_space_left(folder), whole_folder(folder / "model") as part:
            method.save(trainer.accelerator.unwrap_model(trainer.model), part)
            start.tokenizer.save_pretrained(part)
        shutil.rmtree(checkpoints, ignore_errors=True)


def _tokens(
    model: Any, tokenizer: PreTrainedTokenizerBase, examples: Sequence[tuple[str, str]]
) -> tuple[list[Ints], list[Ints]]:
    """Return the input ids and the labels of each example.

    For a decoder-only model both have the same length: label t is the token after input t.
    """
    encoder, eos = Encoder(tokenizer), tokenizer.eos_token_id
    if eos is None:
        raise InputError(
            f"{tokenizer.name_or_path}: no EOS token to end an answer with; set eos_token in tokenizer_config.json"
        )
    bos = [] if tokenizer.bos_token_id is None else [tokenizer.bos_token_id]
    inputs, labels = [], []
    for at in range(0, len(examples), _AT_ONCE):
        prompts, answers = zip(*examples[at : at + _AT_ONCE], strict=True)
        ends = [[*ids.tolist(), eos] for ids in encoder.ids(answers)]
        if is_encoder_decoder(model):
            read = list(encoder_inputs(prompts, tokenizer, encoder))
            said = [[sentinel_of(tokenizer), *end] for end in ends]
        else:
            begins = [[*bos, *ids.tolist()] for ids in encoder.ids(prompts)]
            read = [begin + end[:-1] for begin, end in zip(begins, ends, strict=True)]
            said = [[IGNORED] * (len(begin) - 1) + end for begin, end in zip(begins, ends, strict=True)]
        inputs += [np.array(ids, np.int32) for ids in read]
        labels += [np.array(ids, np.int32) for ids in said]
    return inputs, labels


class _Batch:
    """Collates examples into a batch, padded on the right."""

    def __init__(self, model: Any, tokenizer: PreTrainedTokenizerBase) -> None:
        self._padded = MaskedBatch.of(model, tokenizer)
        self._decoded = is_encoder_decoder(model)

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, torch.Tensor]:
        batch = self._padded(rows)
        return batch if self._decoded else {name: t for name, t in batch.items() if name != "decoder_input_ids"}
