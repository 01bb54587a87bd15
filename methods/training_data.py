"""Load the configs that a run trains on, and turn them into examples for its model."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import datasets
from datasets.exceptions import DatasetsError
from huggingface_hub import HfFileSystem
from transformers import PreTrainedTokenizerBase

from temporalwiki.base.errors import InputError, UsageError, first_line
from temporalwiki.base.files import digest
from temporalwiki.base.json_files import fingerprint
from temporalwiki.base.options import did_you_mean
from temporalwiki.builders.ckl.text_model import OpenModel, no_models
from temporalwiki.builders.configs import TEST_DATA
from temporalwiki.builders.loading import check_card, load_dataset, place_of, split_revision, state_of
from temporalwiki.builders.published import source_of
from temporalwiki.methods.architecture import context_length, is_encoder_decoder, mixes_documents
from temporalwiki.methods.method import Article, Method, TrainingData
from temporalwiki.methods.options import TrainOptions
from temporalwiki.methods.packing import pack_dataset

_INTERVAL = re.compile(r"diffset-(?:(?P<prev>\d{8})-\d{8}|(?P<month>\d\d)\d\d)")


def configs_to_read(
    name: str, method: Method, data: str, config: str, past: str | None, options: TrainOptions, configs: list[str]
) -> list[str]:
    """Return the configs that a run of method ``name`` reads: the new data and, if it reads them, the past data.

    ``configs`` are all configs of the dataset. Raises UsageError for a config that the dataset lacks, and for test
    data unless ``options`` allow it.
    """
    check_config(data, config, configs)
    if not method.trains:
        return []
    reads = [config]
    if method.needs_past:
        reads.append(past or past_config(name, data, config, configs))
        check_config(data, reads[1], configs)
    for facts in facts_config(method, config):
        check_config(data, facts, configs)
    if (found := on_test(reads)) and not options.train_on_test:
        raise UsageError(
            f"{found[0]}: models are scored on these facts, so a training must not read them; name another config, "
            "or add --train-on-test (in a recipe, train_on_test: true), which marks all results of the model"
        )
    return reads


def facts_config(method: Method, config: str) -> list[str]:
    """Return the ``facts-*`` config by which a method changes the text of ``config``, or no config.

    Raises UsageError unless ``config`` is a ``diffset-*``.
    """
    if not method.reads_facts:
        return []
    if not config.startswith("diffset-"):
        raise UsageError(f"{config}: {type(method).__name__.lower()} changes the text of a diffset-* only")
    return [config.replace("diffset-", "facts-", 1)]


def on_test(configs: Iterable[str]) -> list[str]:
    """Return the ``configs`` that models are scored on."""
    return [config for config in configs if config.startswith(TEST_DATA)]


def check_content(data: str, reads: Sequence[str], method: Method, options: TrainOptions) -> None:
    """Raise InputError if the dataset's card lacks needed columns, or if a spaCy pipeline is missing.

    Reads no rows, so that a run that would fail ends at once.
    """
    for config in reads:
        features = _builder(data, config).info.features
        if features is not None:
            method.check_columns(list(features), f"{data}, {config}")
    _finder(options)


def read_training_data(
    method: Method,
    data: str,
    reads: Sequence[str],
    options: TrainOptions,
    model: Any,
    tokenizer: PreTrainedTokenizerBase,
    open_model: OpenModel = no_models,
) -> TrainingData:
    """Return the examples of the configs ``reads``, new data first. Packed and masked examples are cached on the disk.

    ``open_model`` opens a model for methods that let one write.

    Raises InputError for data without the needed columns or without text, and UsageError if it has too few articles to
    hold some out.
    """
    if (own := method.own_data(data, reads[0])) is not None:
        if options.held_out:
            raise UsageError("--held-out: this method has examples of its own, and cannot hold out articles")
        return own
    _check_length(options, model)
    apart = not is_encoder_decoder(model) and mixes_documents(model)
    rows = dict(zip(("new", "past"), (load(data, config, "train") for config in reads), strict=False))
    sources = [source_of(data, config, of) for config, of in zip(reads, rows.values(), strict=True)]
    of = {part: {"config": config, "of": rows[part]._fingerprint} for part, config in zip(rows, reads, strict=True)}
    if options.held_out:
        method.check_columns(rows["new"].column_names, reads[0])
        rows["new"], rows["held_out"] = _held_out(rows["new"], options.held_out, reads[0])
        of["held_out"] = dict(of["new"])
    changed: dict[str, int] = {}
    for facts in facts_config(method, reads[0]):
        rewriter = method.rewriter(
            {split: list(of) for split, of in load(data, facts, None).items()}, sources[0].language or "en", open_model
        )
        rows["new"], changed = _rewritten(rows["new"], f"{method}", *rewriter)
        of["new"]["of"] = rows["new"]._fingerprint
    made, description = {}, {}
    for part, articles in rows.items():
        made[part], counts = _examples(articles, of[part]["config"], options, model, tokenizer, apart)
        description[part] = of[part] | counts
    description["new"] |= {"rewritten": changed} if changed else {}
    return TrainingData(made["new"], made.get("past"), description, sources, made.get("held_out"))


def _rewritten(
    rows: datasets.Dataset, by: str, rewrite: Callable[[Article], list[str]], counts: Counter[str]
) -> tuple[datasets.Dataset, dict[str, int]]:
    """Return the texts that the method ``by`` makes of the articles, and its counts."""
    content = hashlib.sha256()

    def articles(batch: dict[str, list[Any]]) -> dict[str, list[Any]]:
        made = [{**row, "text": text} for row in _rows(batch) for text in rewrite(row)]
        content.update(json.dumps([row["text"] for row in made]).encode())
        return {name: [row[name] for row in made] for name in batch}

    # not from the library's cache, which does not count
    named = fingerprint(rows._fingerprint, by)
    made = rows.map(articles, batched=True, batch_size=64, load_from_cache_file=False, new_fingerprint=named)
    if not len(made):
        raise InputError("no text is left without the objects of changed facts")
    made._fingerprint = fingerprint(rows._fingerprint, content.hexdigest())
    return made, dict(counts)


def _rows(batch: Mapping[str, list[Any]]) -> Iterator[dict[str, Any]]:
    for values in zip(*batch.values(), strict=True):
        yield dict(zip(batch, values, strict=True))


def _held_out(rows: datasets.Dataset, wanted: int, name: str) -> tuple[datasets.Dataset, datasets.Dataset]:
    """Split off ``wanted`` articles; raise UsageError if none would be left.

    They have the lowest hashes of their text, and come in the order of the hashes. So they are the same for every
    method and seed, and for every order of the articles.
    """
    if wanted >= len(rows):
        raise UsageError(f"--held-out {wanted}: {name} has {len(rows):,} articles, and some must be trained on")
    hashes = [hashlib.sha256(str(row["text"] or "").encode()).digest() for row in rows.select_columns(["text"])]
    order = sorted(range(len(rows)), key=lambda at: (hashes[at], at))
    parts = []
    for what, chosen in (("trained on", sorted(order[wanted:])), ("held out", order[:wanted])):
        part = rows.select(chosen)
        part._fingerprint = fingerprint(rows._fingerprint, what, wanted)
        parts.append(part)
    return parts[0], parts[1]


def check_config(data: str, config: str, configs: list[str]) -> None:
    """Raise UsageError, and suggest the nearest name, if ``config`` is not one of ``configs``."""
    if config not in configs:
        raise UsageError(f"{data}: no config {config!r}{did_you_mean(config, configs)}; there are {_listed(configs)}")


def _listed(names: list[str]) -> str:
    """Return the names as text, shortened after the first twelve."""
    return ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")


def past_config(name: str, data: str, config: str, configs: list[str]) -> str:
    """Return the default config of past data for ``config``.

    For ``diffset-PREV-RECENT`` it is ``wikipedia-PREV`` or, if that is missing, ``unchanged-PREV-RECENT``. Raises
    UsageError if both are missing, and for every other config.
    """
    if match := _INTERVAL.fullmatch(config):
        candidates = [f"wikipedia-{match['prev'] or match['month']}", config.replace("diffset", "unchanged")]
        for candidate in candidates:
            if candidate in configs:
                return candidate
    raise UsageError(f"{name} needs past data: name a config of {data} with --past: {_listed(configs)}")


def load(data: str, config: str, split: str | None) -> Any:
    """Load a config, or one ``split`` of it, with ``datasets``; raise InputError if it cannot be loaded."""
    path, revision = split_revision(data)
    with _readable(data, config):
        loaded = load_dataset(path, config, split=split, revision=revision)
    state = state_of(Path(path), config)  # the library's fingerprint goes by name
    for rows in loaded.values() if isinstance(loaded, dict) else [loaded]:
        rows._fingerprint = fingerprint(rows._fingerprint, state)
    return loaded


def content_key(data: str, config: str) -> str:
    """Return a fingerprint of a config's files, which a later month in the same dataset does not change.

    Raises InputError if the dataset has no such config.
    """
    files = _builder(data, config).config.data_files or {}
    with _readable(data, config):
        return fingerprint({str(split): [_digest(str(file)) for file in paths] for split, paths in files.items()})


def _builder(data: str, config: str) -> datasets.DatasetBuilder:
    """Return the builder of a config, which has not read the rows yet."""
    path, revision = split_revision(data)
    check_card(Path(path))
    with _readable(data, config):
        return datasets.load_dataset_builder(place_of(path), config, revision=revision)


@contextmanager
def _readable(data: str, config: str) -> Iterator[None]:
    """Raise InputError, which names the config, for the errors of `datasets`."""
    try:
        yield
    except InputError:
        raise
    except (OSError, ValueError, RuntimeError, DatasetsError) as error:
        raise InputError(f"{data}, {config}: {first_line(error)}") from None


def _digest(file: str) -> str:
    """Return a hash of a file's bytes; for a file on the Hub (at a commit), the hash in its git repository."""
    return digest(Path(file), "sha1") if Path(file).is_file() else str(HfFileSystem().info(file)["blob_id"])


def _examples(
    rows: datasets.Dataset,
    config: str,
    options: TrainOptions,
    model: Any,
    tokenizer: PreTrainedTokenizerBase,
    apart: bool,
) -> tuple[datasets.Dataset, dict[str, Any]]:
    """Return a config's articles as examples for the model (packed, or with masked spans for T5), and their counts."""
    cache = Path(datasets.config.HF_DATASETS_CACHE) / "temporalwiki-examples"
    if is_encoder_decoder(model):
        from temporalwiki.methods.salient_spans import mask_dataset

        find, rate = _finder(options), options.mask_rate
        return mask_dataset(rows, config, tokenizer, options.tokens, cache, find, rate, options.seed)
    return pack_dataset(rows, config, tokenizer, options.tokens, cache, apart)


def _finder(options: TrainOptions) -> Any:
    """Return what finds the spans to mask; raise InputError for a spaCy pipeline that is missing."""
    from temporalwiki.builders.ckl.salient_spans import finder  # only T5 needs it

    return finder(options.spans)


def _check_length(options: TrainOptions, model: Any) -> None:
    longest = context_length(model.config)
    if longest and options.tokens > longest:
        raise UsageError(f"sequences of {options.tokens} tokens are too long: the model reads {longest}")
