"""What a run reads: configs of a dataset, as examples for the model at hand, in the trainer that reads them."""

from __future__ import annotations

import copy
import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import datasets
import numpy as np
from datasets.exceptions import DatasetsError
from huggingface_hub import HfFileSystem
from transformers import PreTrainedTokenizerBase, TrainingArguments
from trl import SFTConfig

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.base.json_files import fingerprint
from temporalwiki.base.options import did_you_mean
from temporalwiki.builders.ckl.salient_spans import finder
from temporalwiki.builders.loading import check_card, load_dataset
from temporalwiki.methods import checkpoint
from temporalwiki.methods.architecture import is_encoder_decoder
from temporalwiki.methods.light_tuning import LightTuner, LightTuning, facts
from temporalwiki.methods.method import Batch, Method
from temporalwiki.methods.options import TrainOptions
from temporalwiki.methods.packing import PackedBatch, pack_dataset
from temporalwiki.methods.salient_spans import MaskedBatch, mask_dataset
from temporalwiki.methods.trainer import ContinualTrainer, Reading, reading_order, training_arguments

_INTERVAL = re.compile(r"diffset-(?:(?P<prev>\d{8})-\d{8}|(?P<month>\d\d)\d\d)")


@dataclass(frozen=True)
class Material:
    """The examples of a run, new and past, and what is said of them in the manifest."""

    new: datasets.Dataset
    past: datasets.Dataset | None
    described: dict[str, Any]


def read(
    name: str,
    method: Method,
    data: str,
    config: str,
    past: str | None,
    options: TrainOptions,
    model: Any,
    tokenizer: PreTrainedTokenizerBase,
) -> Material:
    """Load what method ``name`` reads and turn it into examples, which are kept in the cache of ``datasets``.

    Raises UsageError for an unknown config, InputError for data without the wanted columns or without text.
    """
    configs = config_names(data)
    check_config(data, config, configs)
    if isinstance(method, LightTuning):
        loaded = load(data, config, None)
        rows = facts(datasets.concatenate_datasets(list(loaded.values())), config)
        return Material(rows, None, {"config": config, "facts": len(rows)})
    _check_length(options, model, tokenizer)
    new, described = _examples(data, config, options, model, tokenizer)
    described = {"new": {"config": config, **described}}
    if not method.needs_past:
        return Material(new, None, described)
    past = past or past_config(name, data, config, configs)
    check_config(data, past, configs)
    old, counts = _examples(data, past, options, model, tokenizer)
    return Material(new, old, {**described, "past": {"config": past, **counts}})


def config_names(data: str) -> list[str]:
    """Return the configs of a dataset folder, a Hub id or ``id@revision``.

    Raises InputError where there is no dataset.
    """
    path, revision = checkpoint.split(data)
    check_card(Path(path))
    try:
        return list(datasets.get_dataset_config_names(path, revision=revision))
    except (OSError, ValueError, RuntimeError) as error:
        raise InputError(f"{data}: no dataset can be loaded from there: {str(error).splitlines()[0]}") from None


def check_config(data: str, config: str, configs: list[str]) -> None:
    """Raise UsageError, with the nearest name, where ``config`` is not one of ``configs``."""
    if config not in configs:
        raise UsageError(f"{data}: no config {config!r}{did_you_mean(config, configs)}; there are {_listed(configs)}")


def _listed(names: list[str]) -> str:
    """Name a few of many."""
    return ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")


def past_config(name: str, data: str, config: str, configs: list[str]) -> str:
    """Return the config that past data comes from when none is named.

    Beside ``diffset-PREV-RECENT``: the snapshot PREV, else what did not change between the two.
    Raises UsageError where there is none.
    """
    if match := _INTERVAL.fullmatch(config):
        candidates = [f"wikipedia-{match['prev'] or match['month']}", config.replace("diffset", "unchanged")]
        for candidate in candidates:
            if candidate in configs:
                return candidate
    raise UsageError(f"{name} needs past data: name a config of {data} with --past, of {_listed(configs)}")


def make_trainer(
    model: Any,
    method: Method,
    material: Material,
    tokenizer: PreTrainedTokenizerBase,
    options: TrainOptions,
    precision: str,
    folder: Path,
    name: str,
) -> Any:
    """Return the trainer that reads ``material`` in its fixed order and keeps its checkpoints in ``folder``.

    Raises UsageError where what is trained cannot be sharded, and is to be.
    """
    past = 0 if material.past is None else len(material.past)
    order = reading_order(method, options, len(material.new), past)
    steps = len(order) // options.batch_size
    arguments: Callable[..., TrainingArguments] = partial(
        training_arguments, options=options, precision=precision, folder=folder, steps=steps, name=name
    )
    if isinstance(method, LightTuning):
        tuner = LightTuner(
            model=model,
            args=arguments(of=SFTConfig, max_length=None, eos_token=tokenizer.eos_token),
            train_dataset=material.new.select(order[order >= 0]),
            processing_class=copy.deepcopy(tokenizer),  # which is given a padding token
        )
        tuner.begin(options, method)
        return tuner
    of_spans = is_encoder_decoder(model)
    collate: Any = MaskedBatch.of(model, tokenizer) if of_spans else PackedBatch.of(tokenizer, options.sequence_length)
    reading = Reading(order, material.new, material.past)
    trainer = ContinualTrainer(
        model=model, args=arguments(of=TrainingArguments), train_dataset=reading, data_collator=collate
    )
    trainer.begin(options, method)
    if trainer.is_fsdp_enabled and (of_spans or options.optimizer == "adafactor"):
        raise UsageError("FSDP shards neither T5, for its shared embedding, nor Adafactor's state: train it with DDP")

    def some(wanted: int) -> list[Batch]:
        source = material.new if material.past is None else material.past
        # one in each of so many equal parts of the data, so that a small sample is not one of its beginning
        chosen = np.unique(np.linspace(0, len(source) - 1, min(wanted, len(source))).astype(int))
        size = trainer.args.per_device_train_batch_size
        at = iter(chosen.tolist())
        batches: list[Batch] = []
        while numbers := list(islice(at, size)):
            batch: Mapping[str, Any] = collate([source[number] for number in numbers])
            batches.append({key: tensor.to(trainer.args.device) for key, tensor in batch.items()})
        return batches

    trainer.extra_loss = method.extra_loss(model, some, folder)
    if trainer.extra_loss is not None and (trainer.is_fsdp_enabled or trainer.is_deepspeed_enabled):
        raise UsageError(f"{name}: its extra loss compares whole weights or models: train it without sharding (DDP)")
    return trainer


def load(data: str, config: str, split: str | None) -> Any:
    """Load a config (``split``: one of its splits alone) as ``datasets`` does. Raises InputError where it cannot be
    loaded.
    """
    path, revision = checkpoint.split(data)
    # the library takes a file for the one that it read before if it has the same name
    files = [
        (str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in sorted(Path(path).rglob("*.parquet"))
    ]
    key = fingerprint(files)
    cache = {"cache_dir": str(Path(datasets.config.HF_DATASETS_CACHE) / "temporalwiki" / key)} if files else {}
    try:
        loaded = load_dataset(path, config, split=split, revision=revision, **cache)
        for rows in loaded.values() if isinstance(loaded, dict) else [loaded]:
            rows._fingerprint = fingerprint(rows._fingerprint, key)
        return loaded
    except (ValueError, DatasetsError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{data}, {config}: {str(error).splitlines()[0]}") from None


def content(data: str, config: str) -> str:
    """Return a key of a config's content: of its files' bytes. A month that is published later changes it nowhere.

    Raises InputError where the dataset lacks it.
    """
    path, revision = checkpoint.split(data)
    check_card(Path(path))
    try:
        builder = datasets.load_dataset_builder(path, config, revision=revision)
    except (OSError, ValueError, RuntimeError) as error:
        raise InputError(f"{data}, {config}: {str(error).splitlines()[0]}") from None
    try:
        files = {
            str(split): [_digest(str(file)) for file in of] for split, of in (builder.config.data_files or {}).items()
        }
    except (OSError, ValueError) as error:
        raise InputError(f"{data}, {config}: {str(error).splitlines()[0]}") from None
    return fingerprint(files)


def _digest(file: str) -> str:
    """Return a hash of a file's bytes; of one on the Hub what git has, whose address has a commit in it."""
    if not Path(file).is_file():
        return str(HfFileSystem().info(file)["blob_id"])
    with Path(file).open("rb") as opened:
        return hashlib.file_digest(opened, "sha1").hexdigest()


def _examples(
    data: str, config: str, options: TrainOptions, model: Any, tokenizer: PreTrainedTokenizerBase
) -> tuple[datasets.Dataset, dict[str, Any]]:
    """Return a config as examples for the model, packed or with its salient spans masked, and their counts."""
    rows = load(data, config, "train")
    cache = Path(datasets.config.HF_DATASETS_CACHE) / "temporalwiki-examples"
    if is_encoder_decoder(model):
        find, rate = finder(options.spans), options.mask_rate
        masked = mask_dataset(rows, config, tokenizer, options.sequence_length, cache, find, rate, options.seed)
        counts = {
            "articles": masked.articles,
            "empty": masked.empty,
            "windows": masked.windows,
            "of": rows._fingerprint,
        }
        return masked.dataset, {**counts, "dropped": masked.dropped}
    packed = pack_dataset(rows, config, tokenizer, options.sequence_length, cache)
    counts = {"articles": packed.articles, "empty": packed.empty, "tokens": packed.tokens, "of": rows._fingerprint}
    return packed.dataset, {**counts, "chunks": len(packed.dataset)}


def _check_length(options: TrainOptions, model: Any, tokenizer: PreTrainedTokenizerBase) -> None:
    config = model.config
    longest = getattr(config, "max_position_embeddings", None)  # GPT-2's n_positions, too; T5 has none
    if longest and options.sequence_length > longest:
        raise UsageError(f"chunks of {options.sequence_length} tokens are too long: the model reads {longest}")
    known = model.get_input_embeddings().weight.shape[0]
    if len(tokenizer) > known:
        raise InputError(f"the tokenizer has {len(tokenizer):,} tokens, the model {known:,}: they are not of one kind")
