"""From articles to chunks of equal length for decoder-only models, and from chunks to batches.

Articles are joined into one stream of tokens and cut every ``sequence_length`` tokens; a chunk knows where documents
begin in it, and a batch tells the model by ``position_ids`` alone. A model sees documents apart only where it is
called without ``attention_mask`` and with ``use_cache=False``: with a mask of ones, or with a cache, transformers
does not look at ``position_ids``, and documents leak into one another without a word.
"""

from __future__ import annotations

import contextlib
import copy
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import chain
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
import torch
from filelock import FileLock, Timeout
from tqdm import tqdm

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.base.files import whole_file
from temporalwiki.base.json_files import fingerprint, write_json

VERSION = 1  # of the chunks that are made of a text; a new one makes kept chunks stale
IGNORED = -100  # the label that no loss counts

Tokenizer = Any  # a fast tokenizer of transformers
Ints = np.ndarray[Any, np.dtype[Any]]
Row = Mapping[str, Any]
Counts = Counter[str]

_BATCH_TEXTS, _BATCH_CHARACTERS = 1000, 1 << 20  # what is tokenised at once
_BATCH_ROWS = 1000  # what is written at once
_LINE_EVERY = 60.0  # seconds between lines where there is no terminal


# Texts


def texts(dataset: datasets.Dataset, name: str, counts: Counts | None = None) -> Iterator[str]:
    """Yield each article as "title. text", or its text where it has no title; rows without text are left out.

    ``counts`` takes the number of ``articles`` yielded and of ``empty`` ones left out. Raises InputError, which calls
    the dataset ``name``, where there is no column ``text`` of strings.
    """
    counts = Counter() if counts is None else counts
    columns = list(dataset.column_names)
    if "text" not in columns:
        near = get_close_matches("text", columns, n=1, cutoff=0.5)
        raise InputError(
            f"{name}: no column text among {', '.join(columns) or 'none'}; take a config of articles"
            + (f", or rename {near[0]}" if near else "")
        )
    wanted = ["title", "text"] if "title" in columns else ["text"]
    for column in wanted:
        if getattr(dataset.features[column], "dtype", None) not in ("string", "large_string"):
            raise InputError(f"{name}: the column {column} holds {dataset.features[column]}; it must hold strings")
    for batch in dataset.with_format(None).select_columns(wanted).iter(batch_size=64):
        for title, text in zip(batch.get("title", [None] * len(batch["text"])), batch["text"], strict=True):
            if not (text and text.strip()):
                counts["empty"] += 1
                continue
            counts["articles"] += 1
            yield article(title, text)


def article(title: str | None, text: str) -> str:
    """Return an article as models read it: "title. text", or its text where it has no title."""
    return f"{title}. {text}" if title and title.strip() else text


class Encoder:
    """Turns texts into the token ids that they are within a document: nothing added, nothing cut off.

    What looks like a special token in a text ("<|endoftext|>", written by a stranger) is spelled like other text.
    Works on a copy of the tokenizer's backend, so that neither sees the other's settings.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        if not getattr(tokenizer, "is_fast", False):
            raise InputError(
                f"{type(tokenizer).__name__} is not a fast tokenizer; take a model that has a tokenizer.json"
            )
        self._backend = copy.deepcopy(tokenizer.backend_tokenizer)
        self._backend.no_truncation()
        self._backend.no_padding()
        self._backend.encode_special_tokens = True  # spelled, not matched
        added = tokenizer.added_tokens_decoder
        special = {*tokenizer.all_special_ids, *(token for token, how in added.items() if how.special)}
        self._unknown: int | None = tokenizer.unk_token_id
        if self._unknown in (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id):
            self._unknown = None  # GPT-2 declares its separator unknown: better nothing than a document's end
        special.discard(self._unknown)
        self._special = np.zeros(max([self._backend.get_vocab_size(), *special]) + 1, bool)
        self._special[sorted(special)] = True

    def ids(self, texts: Sequence[str]) -> Iterator[Ints]:
        """Yield the ids of each text, int32."""
        for text, encoding in zip(
            texts, self._backend.encode_batch_fast(texts, add_special_tokens=False), strict=True
        ):
            ids = np.array(encoding.ids, np.int32)
            yield self._spelled(text)[0] if self._special[ids].any() else ids

    def with_offsets(self, texts: Sequence[str]) -> Iterator[tuple[Ints, Ints]]:
        """Yield the ids of each text (int32) and where in it each token begins and ends, [tokens, 2] characters."""
        for text, encoding in zip(texts, self._backend.encode_batch(texts, add_special_tokens=False), strict=True):
            ids = np.array(encoding.ids, np.int32)
            if self._special[ids].any():
                yield self._spelled(text)
            else:
                yield ids, np.array(encoding.offsets, np.int64).reshape(-1, 2)

    def _spelled(self, text: str) -> tuple[Ints, Ints]:
        """Encode a text in which the tokenizer's model, and not its list of special tokens, finds a special token.

        A Unigram model does: T5's has the sentinels among its pieces. They are spelled character by character.
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
    """Group texts for the tokenizer, a bounded number of characters at once unless one text alone has more."""
    batch: list[str] = []
    size = 0
    for text in texts:
        if batch and (len(batch) == _BATCH_TEXTS or size + len(text) > _BATCH_CHARACTERS):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text)
    if batch:
        yield batch


# Chunks


@dataclass(frozen=True)
class Separators:
    """The tokens around each document, and what ends the stream."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    last: tuple[int, ...]
    shared: bool  # one token ends a document and begins the next, which is then learnt like any other token

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> Separators:
        """Choose them for a tokenizer; raise InputError for one without EOS."""
        bos, eos = tokenizer.bos_token_id, tokenizer.eos_token_id
        if eos is None:
            raise InputError(
                f"{tokenizer.name_or_path or type(tokenizer).__name__}: no EOS token to put between documents; "
                "set eos_token in its tokenizer_config.json"
            )
        if bos == eos:
            return cls((eos,), (), (eos,), shared=True)
        return cls(() if bos is None else (bos,), (eos,), (), shared=False)


def pack(texts: Iterable[str], tokenizer: Tokenizer, sequence_length: int) -> Iterator[dict[str, Any]]:
    """Join documents into one stream of tokens and yield it in chunks of ``sequence_length``, the last one shorter.

    A chunk has ``input_ids`` (int32), ``starts`` (int32: where in it documents begin, which is not where an earlier
    document goes on) and ``next_token``: the token that its last one is to predict, -1 where there is none, which is
    at the end of the stream and where a document begins that the chunk's last token does not introduce.
    Raises UsageError for a length below 2 and InputError for a tokenizer without EOS.
    """
    check_length(sequence_length)
    around, encoder = Separators.of(tokenizer), Encoder(tokenizer)
    before, after = np.array(around.before, np.int32), np.array(around.after, np.int32)
    stream, starts = np.empty(0, np.int32), np.empty(0, np.int64)  # not cut yet
    for batch in batches(texts):
        parts, begins = [stream], [starts]
        size = len(stream)
        for ids in encoder.ids(batch):
            if len(ids):
                parts += [before, ids, after]
                begins.append(np.array([size]))
                size += len(before) + len(ids) + len(after)
        stream, starts = np.concatenate(parts), np.concatenate(begins)
        # a chunk is cut when the token after it is known
        whole = max(len(stream) - 1, 0) // sequence_length
        yield from _chunks(stream, starts, whole, sequence_length, around.shared)
        stream = stream[whole * sequence_length :]
        starts = starts[np.searchsorted(starts, whole * sequence_length) :] - whole * sequence_length
    if len(stream):
        stream = np.concatenate([stream, np.array(around.last, np.int32)])
        yield from _chunks(stream, starts, -(-len(stream) // sequence_length), sequence_length, around.shared)


def _chunks(stream: Ints, starts: Ints, chunks: int, length: int, shared: bool) -> Iterator[dict[str, Any]]:
    """Cut the first ``chunks`` chunks; the token after the last of them must be in the stream, or be none."""
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


def check_length(sequence_length: int) -> None:
    """Raise UsageError for a length in which nothing can be predicted."""
    if sequence_length < 2:
        raise UsageError(f"--sequence-length {sequence_length}: must be at least 2 tokens")


@dataclass(frozen=True)
class Packed:
    """Chunks on disk, and what they were made of."""

    dataset: datasets.Dataset
    articles: int
    empty: int  # articles without text, which are in no chunk
    tokens: int  # of the chunks, separators included


_PACKED = pa.schema(
    {"input_ids": pa.list_(pa.int32()), "starts": pa.list_(pa.int32()), "next_token": pa.int32()},
)


def pack_dataset(
    dataset: datasets.Dataset, name: str, tokenizer: Tokenizer, sequence_length: int, cache: Path
) -> Packed:
    """Pack a dataset of articles into chunks that lie in the folder ``cache``; see ``pack``.

    What was packed before with the same articles, tokenizer and length is taken from there. Raises InputError, which
    calls the dataset ``name``, where there is no text.
    """
    check_length(sequence_length)

    def rows(counts: Counts) -> Iterator[Row]:
        with progress(f"packing {name}", len(dataset), counts) as watch:
            for row in pack(watch(texts(dataset, name, counts)), tokenizer, sequence_length):
                counts["tokens"] += len(row["input_ids"])
                yield row

    key = [VERSION, dataset._fingerprint, identity(tokenizer), sequence_length]
    chunks, counts = made_once(cache, "packed", key, _PACKED, rows, name)
    return Packed(chunks, counts["articles"], counts["empty"], counts["tokens"])


# Rows that are made once


def identity(tokenizer: Tokenizer) -> str:
    """Return a name for how a tokenizer tokenises; settings that a call leaves behind do not count."""
    backend = json.loads(tokenizer.backend_tokenizer.to_str())
    backend.pop("truncation", None)
    backend.pop("padding", None)
    special = {role: str(token) for role, token in tokenizer.special_tokens_map.items()}
    return fingerprint(backend, special)


def made_once(
    cache: Path, step: str, key: Any, schema: pa.Schema, rows: Callable[[Counts], Iterable[Row]], name: str
) -> tuple[datasets.Dataset, Counts]:
    """Return a memory-mapped dataset of rows, and counts, made now or by an earlier call with the same ``key``.

    ``rows(counts)`` makes the rows and fills ``counts``. The rows lie in ``cache`` in an Arrow file; the counts go
    beside it when it is whole, and without them it does not count. Processes that want the same rows at once wait
    for the one that makes them. Raises InputError, which calls the input ``name``, where there are no rows, and where
    the disk is full.
    """
    key = fingerprint(step, key, [str(field) for field in schema])
    path = cache / f"{step}-{key}.arrow"
    cache.mkdir(parents=True, exist_ok=True)
    counts = _counts(path)
    if counts is None:
        with _alone(path):
            counts = _counts(path)  # another process may have made them meanwhile
            if counts is None:
                for part in cache.glob(f".{path.name}.*.part"):  # of a run that was killed
                    part.unlink(missing_ok=True)
                counts = Counter()
                size = _write(path, schema, key, rows(counts), name)
                write_json(path.with_suffix(".json"), {"counts": counts, "bytes": size})
    return datasets.Dataset.from_file(str(path)), counts


def _counts(path: Path) -> Counts | None:
    """Read the counts of a file of rows that is whole; None where it is not there, or not whole."""
    try:
        beside = json.loads(path.with_suffix(".json").read_text("utf-8"))
        return Counter(beside["counts"]) if path.stat().st_size == beside["bytes"] else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    lock = FileLock(path.with_name(f".{path.name}.lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        print(f"{path}: another process is making it; waiting", file=sys.stderr)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _write(path: Path, schema: pa.Schema, key: str, rows: Iterable[Row], name: str) -> int:
    """Write rows to an Arrow file, whole or not at all; return its size in bytes."""
    # the dataset's own fingerprint: what is made of these rows can be found again as well
    schema = schema.with_metadata({"huggingface": json.dumps({"fingerprint": key})})
    rows = iter(rows)
    first = next(rows, None)
    if first is None:
        raise InputError(f"{name}: no training examples in it; take a config that has articles with text")
    # ArrowWriter of datasets is not used: it swallows what goes wrong when it closes the file
    with whole_file(path) as part:
        with part.open("wb") as file, pa.ipc.new_stream(file, schema) as writer:
            batch: list[Row] = []
            for row in chain([first], rows):
                batch.append(row)
                if len(batch) == _BATCH_ROWS:
                    writer.write_batch(_record_batch(batch, schema))
                    batch = []
            if batch:
                writer.write_batch(_record_batch(batch, schema))
        return part.stat().st_size


def _record_batch(rows: Sequence[Row], schema: pa.Schema) -> pa.RecordBatch:
    columns = []
    for field in schema:
        values = [row[field.name] for row in rows]
        if pa.types.is_list(field.type):
            offsets = np.cumsum([0, *map(len, values)], dtype=np.int32)
            flat = pa.array(np.concatenate(values), field.type.value_type)
            columns.append(pa.ListArray.from_arrays(offsets, flat))
        else:
            columns.append(pa.array(values, field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


@contextlib.contextmanager
def progress(what: str, total: int, counts: Counts) -> Iterator[Callable[[Iterable[str]], Iterator[str]]]:
    """Give a function that passes articles on and shows how far they are, until the block ends.

    On a terminal a bar, elsewhere a plain line a minute and one at the end. ``counts`` are those of ``texts``;
    ``total`` is the number of rows that it reads.
    """
    begun = time.perf_counter()
    with tqdm(desc=what, total=total, unit="article", disable=not sys.stderr.isatty()) as bar:

        def watch(articles: Iterable[str]) -> Iterator[str]:
            said = begun
            for article in articles:
                done = counts["articles"] + counts["empty"]
                bar.update(done - bar.n)
                if bar.disable and time.perf_counter() - said > _LINE_EVERY:
                    said = time.perf_counter()
                    left = (said - begun) * (total - done) / done
                    print(f"{what}: {done} of {total} articles, {left:.0f} s left", file=sys.stderr)
                yield article

        yield watch
        bar.update(total - bar.n)
    if bar.disable:
        print(f"{what}: {total} articles, {time.perf_counter() - begun:.1f} s", file=sys.stderr)


# Batches


@dataclass(frozen=True)
class PackedBatch:
    """Makes batches of chunks; see ``collate_packed``."""

    sequence_length: int
    pad_token: int
    shared: bool

    @classmethod
    def of(cls, tokenizer: Tokenizer, sequence_length: int) -> PackedBatch:
        """Make the one for chunks that ``pack`` made with this tokenizer and length."""
        pad = tokenizer.eos_token_id if tokenizer.pad_token_id is None else tokenizer.pad_token_id
        return cls(sequence_length, pad, Separators.of(tokenizer).shared)

    def __call__(self, rows: Sequence[Row]) -> dict[str, torch.Tensor]:
        return collate_packed(rows, self.sequence_length, self.pad_token, self.shared)


def collate_packed(rows: Sequence[Row], sequence_length: int, pad_token: int, shared: bool) -> dict[str, torch.Tensor]:
    """Make a batch of chunks: ``input_ids``, ``position_ids`` and ``labels``, each int64 [rows, sequence_length].

    Positions count from 0 in each document, in what a chunk has of a document that began earlier, and in the padding
    after a short chunk. ``labels[t]`` is the token after input t (they are shifted already), -100 on padding and,
    unless documents have one ``shared`` separator, where the next token begins another document. A row without
    tokens becomes padding. There is no attention mask, on purpose: see the top of this file.
    """
    lengths = np.fromiter((len(row["input_ids"]) for row in rows), np.int64, len(rows))
    columns = np.arange(sequence_length)
    used = columns < lengths[:, None]
    inputs = np.full(used.shape, pad_token, np.int64)
    inputs[used] = _flat(rows, "input_ids")

    starts = _flat(rows, "starts")
    of_row = np.repeat(np.arange(len(rows)), [len(row["starts"]) for row in rows])
    begin = np.zeros(used.shape, np.int64)
    begin[of_row, starts] = starts
    short = np.flatnonzero(lengths < sequence_length)
    begin[short, lengths[short]] = lengths[short]
    positions = columns - np.maximum.accumulate(begin, axis=1)

    labels = np.full(used.shape, IGNORED, np.int64)
    labels[:, :-1][used[:, 1:]] = inputs[:, 1:][used[:, 1:]]
    if not shared:
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


def _flat(rows: Sequence[Row], column: str) -> Ints:
    return np.concatenate([np.empty(0, np.int64), *(np.asarray(row[column], np.int64) for row in rows)])
