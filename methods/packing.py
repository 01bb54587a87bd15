"""Pack articles into chunks of equal length for decoder-only models, and chunks into batches.

Articles are joined into one stream of tokens, which is cut every ``sequence_length`` tokens. A chunk knows where
documents begin in it, and ``position_ids`` pass this on to the model. The model must be called without an
``attention_mask`` and with ``use_cache=False``: otherwise transformers ignores document boundaries in
``position_ids``, without a warning, and tokens attend to other documents. For models that ignore the boundaries even
so, each chunk holds one document, or a part of it.
"""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import datasets
import msgspec
import numpy as np
import pyarrow as pa
import torch
from filelock import FileLock, Timeout

from temporalwiki.base.errors import InputError
from temporalwiki.base.files import make_folder, whole_file
from temporalwiki.base.json_files import fingerprint, read_json, write_json
from temporalwiki.base.options import did_you_mean
from temporalwiki.base.progress import Progress
from temporalwiki.base.terminal import say

VERSION = 1  # increase it when the content of chunks changes, so that cached chunks are not used
IGNORED = -100  # label of a token that does not count in the loss

Tokenizer = Any  # a fast tokenizer of transformers
Ints = np.ndarray[Any, np.dtype[Any]]
Row = Mapping[str, Any]
Counts = Counter[str]

_BATCH_TEXTS, _BATCH_CHARACTERS = 1000, 1 << 20  # tokenised at once
_BATCH_ROWS = 1000  # written at once


# Texts


def texts(dataset: datasets.Dataset, name: str, counts: Counts, step: str) -> Iterator[str]:
    """Yield each article as "title. text", or only its text if it has no title. Rows without text are skipped.

    The progress of ``step`` is shown. ``counts`` gets the number of ``articles`` and of ``empty`` rows. Raises
    InputError, with ``name`` for the dataset, if it lacks a column ``text`` of strings.
    """
    columns = list(dataset.column_names)
    check_columns(columns, name)
    wanted = ["title", "text"] if "title" in columns else ["text"]
    for column in wanted:
        if getattr(dataset.features[column], "dtype", None) not in ("string", "large_string"):
            raise InputError(f"{name}: the column {column} holds {dataset.features[column]}; it must hold strings")
    with Progress(f"{step} {name}", len(dataset), "article") as progress:
        for batch in dataset.with_format(None).select_columns(wanted).iter(batch_size=64):
            for title, text in zip(batch.get("title", [None] * len(batch["text"])), batch["text"], strict=True):
                progress.update()
                if text and text.strip():
                    counts["articles"] += 1
                    yield article(title, text)
                else:
                    counts["empty"] += 1


def check_columns(columns: Collection[str], name: str) -> None:
    """Raise InputError if config ``name`` has no column ``text`` among its ``columns``."""
    if "text" not in columns:
        raise InputError(
            f"{name}: no column text among {', '.join(columns) or 'none'}{did_you_mean('text', columns)}; "
            "use a config of articles"
        )


def article(title: str | None, text: str) -> str:
    """Return an article as models read it: "title. text", or only its text if it has no title."""
    return f"{title}. {text}" if title and title.strip() else text


class Encoder:
    """Encode texts without adding special tokens or truncating.

    If a text spells out a special token, such as "<|endoftext|>", this is encoded like other text. The encoder works
    on a copy of the tokenizer's backend, so that neither changes the settings of the other.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        if not getattr(tokenizer, "is_fast", False):
            raise InputError(
                f"{type(tokenizer).__name__} is not a fast tokenizer; use a model that has a tokenizer.json"
            )
        self._backend = copy.deepcopy(tokenizer.backend_tokenizer)
        self._backend.no_truncation()
        self._backend.no_padding()
        self._backend.encode_special_tokens = True  # as ordinary text
        added = tokenizer.added_tokens_decoder
        special = {*tokenizer.all_special_ids, *(token for token, how in added.items() if how.special)}
        self._unknown: int | None = tokenizer.unk_token_id
        if self._unknown in (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id):
            self._unknown = None  # GPT-2's unknown token is also its separator, which must not end a document here
        special.discard(self._unknown)
        self._special = np.zeros(max([self._backend.get_vocab_size(), *special]) + 1, bool)
        self._special[sorted(special)] = True

    def ids(self, texts: Sequence[str]) -> Iterator[Ints]:
        """Yield the token ids of each text (int32)."""
        for text, encoding in zip(
            texts, self._backend.encode_batch_fast(texts, add_special_tokens=False), strict=True
        ):
            ids = np.array(encoding.ids, np.int32)
            yield self._encode_special(text)[0] if self._special[ids].any() else ids

    def with_offsets(self, texts: Sequence[str]) -> Iterator[tuple[Ints, Ints]]:
        """Yield the token ids of each text (int32), and where its tokens begin and end, in characters [tokens, 2]."""
        for text, encoding in zip(texts, self._backend.encode_batch(texts, add_special_tokens=False), strict=True):
            ids = np.array(encoding.ids, np.int32)
            if self._special[ids].any():
                yield self._encode_special(text)
            else:
                yield ids, np.array(encoding.offsets, np.int64).reshape(-1, 2)

    def _encode_special(self, text: str) -> tuple[Ints, Ints]:
        """Encode a text character by character wherever it contains a special token.

        Needed for tokenizers that have special tokens among their pieces, such as the sentinels in T5's Unigram model.
        """
        encoding = self._backend.encode(text, add_special_tokens=False)
        ids: list[int] = []
        offsets: list[tuple[int, int]] = []
        for token, (start, end) in zip(encoding.ids, encoding.offsets, strict=True):
            if not self._special[token]:
                ids.append(token)
                offsets.append((start, end))
                continue
            for at in range(start, end):
                letter = self._backend.token_to_id(text[at])
                letter = self._unknown if letter is None or self._special[letter] else letter
                if letter is not None:
                    ids.append(letter)
                    offsets.append((at, at + 1))
        return np.array(ids, np.int32), np.array(offsets, np.int64).reshape(-1, 2)


def batches(texts: Iterable[str]) -> Iterator[list[str]]:
    """Group texts into batches for the tokenizer, each with a limited number of texts and characters."""
    batch: list[str] = []
    size = 0
    for text in texts:
        batch.append(text)
        size += len(text)
        if len(batch) == _BATCH_TEXTS or size > _BATCH_CHARACTERS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


# Chunks


@dataclass(frozen=True)
class Separators:
    """The special tokens before and after each document."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    last: tuple[int, ...]  # at the end of the stream
    shared: bool  # one token ends a document and begins the next; the model learns to predict it

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> Separators:
        """Return the separators for a tokenizer; raise InputError if it has no EOS token."""
        bos, eos = tokenizer.bos_token_id, tokenizer.eos_token_id
        if eos is None:
            raise InputError(
                f"{tokenizer.name_or_path or type(tokenizer).__name__}: no EOS token to put between documents; "
                "set eos_token in its tokenizer_config.json"
            )
        if bos == eos:
            return cls((eos,), (), (eos,), shared=True)
        return cls(() if bos is None else (bos,), (eos,), (), shared=False)


def pack(
    texts: Iterable[str], tokenizer: Tokenizer, sequence_length: int, apart: bool = False
) -> Iterator[dict[str, Any]]:
    """Join documents into one stream of tokens and yield chunks of ``sequence_length``. The last one may be shorter.

    If ``apart``, each document is a stream of its own, so no chunk has tokens of two.

    A chunk has ``input_ids`` (int32), ``starts`` (int32: the positions where documents begin) and ``next_token``: the
    token that follows the chunk, which its last token predicts. ``next_token`` is -1 at the end of the stream. It is
    also -1 if the next chunk begins with a new document, unless the separator is shared (see ``Separators``). Raises
    InputError for a tokenizer without EOS.
    """
    around, encoder = Separators.of(tokenizer), Encoder(tokenizer)
    before, after = np.array(around.before, np.int32), np.array(around.after, np.int32)
    stream, starts = np.empty(0, np.int32), np.empty(0, np.int64)  # tokens that are in no chunk yet
    for batch in batches(texts):
        parts, begins = [stream], [starts]
        size = len(stream)
        for ids in encoder.ids(batch):
            if len(ids) and apart:
                document = np.concatenate([before, ids, after, np.array(around.last, np.int32)])
                chunks = -(-(len(document) - 1) // sequence_length)  # nothing follows the last token
                yield from _chunks(document, np.zeros(1, np.int64), chunks, sequence_length, around.shared)
            elif len(ids):
                parts += [before, ids, after]
                begins.append(np.array([size]))
                size += len(before) + len(ids) + len(after)
        stream, starts = np.concatenate(parts), np.concatenate(begins)
        # a chunk is complete when the token after it is known
        complete = max(len(stream) - 1, 0) // sequence_length
        yield from _chunks(stream, starts, complete, sequence_length, around.shared)
        stream = stream[complete * sequence_length :]
        starts = starts[np.searchsorted(starts, complete * sequence_length) :] - complete * sequence_length
    if len(stream):
        stream = np.concatenate([stream, np.array(around.last, np.int32)])
        yield from _chunks(stream, starts, -(-len(stream) // sequence_length), sequence_length, around.shared)


def _chunks(stream: Ints, starts: Ints, chunks: int, length: int, shared: bool) -> Iterator[dict[str, Any]]:
    """Yield the first ``chunks`` chunks of the stream."""
    edges = np.searchsorted(starts, np.arange(chunks + 1) * length)
    for chunk in range(chunks):
        at = chunk * length
        end = at + length
        inside, following = starts[edges[chunk] : edges[chunk + 1]], starts[edges[chunk + 1] :][:1]
        learnt = end < len(stream) and (shared or not (len(following) and following[0] == end))
        yield {
            "input_ids": stream[at:end],
            "starts": (inside - at).astype(np.int32),
            "next_token": int(stream[end]) if learnt else -1,
        }


_PACKED = pa.schema({"input_ids": pa.list_(pa.int32()), "starts": pa.list_(pa.int32()), "next_token": pa.int32()})


def pack_dataset(
    dataset: datasets.Dataset, name: str, tokenizer: Tokenizer, sequence_length: int, cache: Path, apart: bool = False
) -> tuple[datasets.Dataset, dict[str, int]]:
    """Pack a dataset of articles into chunks in the folder ``cache``, and count what they contain; see ``pack``.

    Chunks of an earlier call are used if articles, tokenizer and length are the same. Raises InputError, with ``name``
    for the dataset, if all its texts are empty.
    """

    def rows(counts: Counts) -> Iterator[Row]:
        for row in pack(texts(dataset, name, counts, "packing"), tokenizer, sequence_length, apart):
            counts["tokens"] += len(row["input_ids"])
            yield row

    key = [VERSION, dataset._fingerprint, identity(tokenizer), sequence_length, *(["apart"] if apart else [])]
    chunks, counts = cached_rows(cache, "packed", key, _PACKED, rows, name)
    found = {name: counts[name] for name in ("articles", "empty", "tokens")} | {"chunks": len(chunks)}
    return chunks, found | ({"one_document_a_row": True} if apart else {})


# Cached rows


def identity(tokenizer: Tokenizer) -> str:
    """Return a fingerprint of how a tokenizer encodes text. It ignores truncation and padding, which calls change."""
    backend = json.loads(tokenizer.backend_tokenizer.to_str())
    backend.pop("truncation", None)
    backend.pop("padding", None)
    special = {role: str(token) for role, token in tokenizer.special_tokens_map.items()}
    return fingerprint(backend, special)


def cached_rows(
    cache: Path, step: str, key: Any, schema: pa.Schema, rows: Callable[[Counts], Iterable[Row]], name: str
) -> tuple[datasets.Dataset, Counts]:
    """Return a memory-mapped dataset of rows and their counts, from the cache or made by ``rows(counts)``.

    The rows are an Arrow file in the folder ``cache``. When it is complete, the counts are written next to it; a file
    without counts is not used. If several processes need the same rows, one makes them and the others wait. Raises
    InputError, with ``name`` for the input, if there are zero rows or the disk is full.
    """
    key = fingerprint(step, key, [str(field) for field in schema])
    path = cache / f"{step}-{key}.arrow"
    make_folder(cache)
    with _locked(path):  # another process may be making them
        counts = _cached_counts(path)
        if counts is None:
            for part in cache.glob(f".{path.name}.*.part"):  # left by a killed run
                part.unlink(missing_ok=True)
            counts = Counter()
            size = _write(path, schema, key, rows(counts), name)
            write_json(path.with_suffix(".json"), {"counts": counts, "bytes": size})
    return datasets.Dataset.from_file(str(path)), counts


class _RowsFile(msgspec.Struct):
    """The description of a complete file of rows."""

    counts: dict[str, int]
    bytes: int


def _cached_counts(path: Path) -> Counts | None:
    """Return the counts of a file of rows, or None if it is missing or incomplete."""
    try:
        described = read_json(path.with_suffix(".json"), _RowsFile)
        return Counter(described.counts) if path.stat().st_size == described.bytes else None
    except (OSError, InputError):
        return None


def _locked(path: Path) -> Any:
    """Return a context in which no other process writes ``path``."""
    lock = FileLock(path.with_name(f".{path.name}.lock"))
    try:
        return lock.acquire(timeout=0)
    except Timeout:
        say(f"{path}: waiting for another process to write it")
        return lock.acquire()


def _write(path: Path, schema: pa.Schema, key: str, rows: Iterable[Row], name: str) -> int:
    """Write rows to an Arrow file, whole or not at all; return its size in bytes."""
    # with this fingerprint, results that `datasets` caches for these rows are found again
    schema = schema.with_metadata({"huggingface": json.dumps({"fingerprint": key})})
    rows = iter(rows)
    first = next(rows, None)
    if first is None:
        raise InputError(f"{name}: no training examples; use a config that has articles with text")
    # not the ArrowWriter of datasets, which ignores errors when it closes the file
    with whole_file(path) as part:
        with part.open("wb") as file, pa.ipc.new_stream(file, schema) as writer:
            rows = chain([first], rows)
            while batch := list(islice(rows, _BATCH_ROWS)):
                writer.write_batch(pa.RecordBatch.from_pylist(batch, schema))
        return part.stat().st_size


# Batches


@dataclass(frozen=True)
class PackedBatch:
    """A data collator for chunks.

    A batch has ``input_ids``, ``position_ids`` and ``labels``, each int64 [rows, sequence_length]. Positions count
    from 0 in each document, in the rest of a document from an earlier chunk, and in padding. ``labels[t]`` is the
    token after input t, so the labels are already shifted. They are -100 on padding and, unless documents have a
    ``shared`` separator, where the next token begins another document. A row without tokens becomes padding. There is
    deliberately no attention mask: see the top of this file.
    """

    sequence_length: int
    pad_token: int
    shared: bool

    @classmethod
    def of(cls, tokenizer: Tokenizer, sequence_length: int, model: Any = None) -> PackedBatch:
        """Return the collator for chunks that ``pack`` made with this tokenizer and length."""
        return cls(sequence_length, padding(tokenizer, model), Separators.of(tokenizer).shared)

    def __call__(self, rows: Sequence[Row]) -> dict[str, torch.Tensor]:
        lengths = np.fromiter((len(row["input_ids"]) for row in rows), np.int64, len(rows))
        columns = np.arange(self.sequence_length)
        used = columns < lengths[:, None]
        inputs = np.full(used.shape, self.pad_token, np.int64)
        inputs[used] = _flat(rows, "input_ids")

        starts = _flat(rows, "starts")
        of_row = np.repeat(np.arange(len(rows)), [len(row["starts"]) for row in rows])
        begin = np.zeros(used.shape, np.int64)
        begin[of_row, starts] = starts
        short = np.flatnonzero(lengths < self.sequence_length)
        begin[short, lengths[short]] = lengths[short]
        positions = columns - np.maximum.accumulate(begin, axis=1)

        labels = np.full(used.shape, IGNORED, np.int64)
        labels[:, :-1][used[:, 1:]] = inputs[:, 1:][used[:, 1:]]
        if not self.shared:
            inner = starts > 0
            labels[of_row[inner], starts[inner] - 1] = IGNORED
        following = np.fromiter((row["next_token"] for row in rows), np.int64, len(rows))
        known = np.flatnonzero((following >= 0) & (lengths > 0))
        labels[known, lengths[known] - 1] = following[known]
        return {
            "input_ids": torch.from_numpy(inputs),
            "position_ids": torch.from_numpy(positions),
            "labels": torch.from_numpy(labels),
        }


def padding(tokenizer: Tokenizer, model: Any = None) -> int:
    """Return the padding token, or the end token if there is none or ``model`` has no embedding for it."""
    pad: int = tokenizer.pad_token_id
    if pad is None or (model is not None and pad >= model.get_input_embeddings().weight.shape[0]):
        pad = tokenizer.eos_token_id
    return pad


def _flat(rows: Sequence[Row], column: str) -> Ints:
    return np.concatenate([np.empty(0, np.int64), *(np.asarray(row[column], np.int64) for row in rows)])
