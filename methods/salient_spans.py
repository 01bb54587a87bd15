"""Salient span masking for encoder-decoder models: the model learns to fill in names and dates.

As in CKL, following Guu et al. 2020. The input is the text with sentinels in place of spans; the labels are the spans,
each after its sentinel: "<extra_id_0> is the capital of <extra_id_1>." and "<extra_id_0> Paris <extra_id_1> France
<extra_id_2>".
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
import torch

from temporalwiki.base.errors import InputError
from temporalwiki.builders.ckl.salient_spans import Find, Rules, Span, sentence_starts
from temporalwiki.methods.packing import (
    IGNORED,
    Counts,
    Encoder,
    Ints,
    Row,
    Tokenizer,
    batches,
    cached_rows,
    identity,
    padding,
    texts,
)

VERSION = 1  # increase it when the content of windows changes, so that cached windows are not used

# Windows


def token_ranges(spans: Sequence[Span], offsets: Ints) -> list[Span]:
    """Return the tokens [from, up to) that each span touches; spans that share a token become one."""
    if not len(offsets) or not len(spans):
        return []
    # pieces of one word may have the same offsets, and may be empty
    begins, ends = offsets[:, 0], np.maximum(offsets[:, 1], offsets[:, 0] + 1)
    wanted = np.asarray(spans, np.int64)
    first = np.searchsorted(np.maximum.accumulate(ends), wanted[:, 0], side="right")
    last = np.searchsorted(np.maximum.accumulate(begins), wanted[:, 1], side="left")
    ranges: list[Span] = []
    for a, b in zip(first.tolist(), last.tolist(), strict=True):
        if a >= b:  # the span has no tokens
            continue
        if ranges and a < ranges[-1][1]:
            ranges[-1] = (ranges[-1][0], max(b, ranges[-1][1]))
        else:
            ranges.append((a, b))
    return ranges


def windows(text: str, offsets: Ints, ranges: Sequence[Span], longest: int) -> Iterator[Span]:
    """Cut all tokens of an article into windows [from, up to) of at most ``longest`` tokens.

    A window ends with a sentence if one ends in its second half, and otherwise with a word. It ends inside one of
    ``ranges`` only if it cannot end elsewhere.
    """
    tokens = len(offsets)
    begins = offsets[:, 0]
    sentences = np.unique(np.searchsorted(begins, sentence_starts(text), side="left")).tolist()
    whole = np.ones(tokens + 1, bool)  # whether a cut before a token splits no range
    for a, b in ranges:
        whole[a + 1 : b] = False

    def word(token: int) -> bool:
        at = int(begins[token])
        return at > begins[token - 1] and (text[at].isspace() or text[at - 1].isspace())

    start = 0
    while tokens - start > longest:
        limit = start + longest
        last = bisect_right(sentences, limit) - 1
        while last >= 0 and sentences[last] > start + longest // 2 and not whole[sentences[last]]:
            last -= 1
        if last >= 0 and sentences[last] > start + longest // 2:
            cut = sentences[last]
        else:
            words = [token for token in range(limit, start, -1) if word(token)]
            cut = next((token for token in words if whole[token]), words[0] if words else limit)
        yield start, cut
        start = cut
    if start < tokens:
        yield start, tokens


def choose(ranges: Sequence[Span], wanted: float, most: int, draw: bytes) -> list[Span]:
    """Return at most ``most`` ranges with about ``wanted`` tokens in all. Adjacent ranges are joined.

    A hash of each range's position, with the key ``draw``, decides which ranges are taken.
    """
    order = sorted(ranges, key=lambda tokens: hashlib.blake2b(b"%d" % tokens[0], digest_size=8, key=draw).digest())
    chosen: list[Span] = []
    masked = 0
    for tokens in order[:most]:
        more = masked + tokens[1] - tokens[0]
        if chosen and abs(more - wanted) > abs(masked - wanted):
            break
        chosen.append(tokens)
        masked = more
    joined: list[Span] = []
    for a, b in sorted(chosen):
        if joined and joined[-1][1] == a:
            joined[-1] = (joined[-1][0], b)
        else:
            joined.append((a, b))
    return joined


# Masking


def sentinels(tokenizer: Tokenizer) -> list[int]:
    """Return the ids of <extra_id_0>, <extra_id_1> and so on; raise InputError if there are fewer than two."""
    vocabulary = tokenizer.get_vocab()
    found: list[int] = []
    while True:
        token = f"<extra_id_{len(found)}>"
        at = vocabulary.get(token, vocabulary.get(f"▁{token}"))  # mT5 has them as ordinary pieces
        if at is None:
            break
        found.append(at)
    if len(found) < 2:
        raise InputError(
            f"{tokenizer.name_or_path or type(tokenizer).__name__}: no sentinels (<extra_id_0>, <extra_id_1> ...) in "
            "its tokenizer; salient spans are for T5 and similar models"
        )
    return found


def mask_windows(
    texts: Iterable[str],
    tokenizer: Tokenizer,
    sequence_length: int,
    find: Callable[[str], Sequence[Span]],
    rate: float = 0.15,
    seed: int = 0,
    counts: Counts | None = None,
) -> Iterator[dict[str, Ints]]:
    """Cut articles into windows, mask salient spans in them, and yield ``input_ids`` and ``labels`` (both int32).

    A window has at most ``sequence_length`` tokens before masking, including EOS. Spans are masked until about the
    share ``rate`` of the window's tokens is masked, but at least one span and fewer spans than there are sentinels.
    Which spans are masked is random, but the same for the same arguments. The whole article is tokenised at once, as
    in T5's pretraining. A sentinel replaces all the tokens that its span touches.

    ``counts`` gets the number of ``windows`` and of those dropped: ``no span``, ``no context`` (nothing but spans).
    Raises InputError for a tokenizer without sentinels or EOS.
    """
    counts = Counter() if counts is None else counts
    encoder, marks = Encoder(tokenizer), np.array(sentinels(tokenizer), np.int32)
    if tokenizer.eos_token_id is None:
        raise InputError(f"{tokenizer.name_or_path or type(tokenizer).__name__}: no EOS token to end an input with")
    end = np.array([tokenizer.eos_token_id], np.int32)
    for batch in batches(texts):
        for text, (ids, offsets) in zip(batch, encoder.with_offsets(batch), strict=True):
            ranges = token_ranges(find(text), offsets)
            draw = hashlib.blake2b(text.encode(), digest_size=16, key=str(seed).encode()).digest()
            at = 0
            for first, last in windows(text, offsets, ranges, sequence_length - 1):
                counts["windows"] += 1
                inside = []
                while at < len(ranges) and ranges[at][1] <= last:
                    if ranges[at][0] >= first:
                        inside.append(ranges[at])
                    at += 1
                chosen = choose(inside, rate * (last - first), len(marks) - 1, draw)
                if not chosen:
                    counts["no span"] += 1
                elif sum(b - a for a, b in chosen) == last - first:
                    counts["no context"] += 1
                else:
                    yield _masked(ids, first, last, chosen, marks, end)


def _masked(ids: Ints, first: int, last: int, chosen: Sequence[Span], marks: Ints, end: Ints) -> dict[str, Ints]:
    inputs, labels = [], []
    at = first
    for number, (a, b) in enumerate(chosen):
        mark = marks[number : number + 1]
        inputs += [ids[at:a], mark]
        labels += [mark, ids[a:b]]
        at = b
    inputs += [ids[at:last], end]
    labels += [marks[len(chosen) : len(chosen) + 1], end]
    return {"input_ids": np.concatenate(inputs), "labels": np.concatenate(labels)}


_MASKED = pa.schema({"input_ids": pa.list_(pa.int32()), "labels": pa.list_(pa.int32())})
_REASONS = ("no span", "no context")


def mask_dataset(
    dataset: datasets.Dataset,
    name: str,
    tokenizer: Tokenizer,
    sequence_length: int,
    cache: Path,
    find: Find | None = None,
    rate: float = 0.15,
    seed: int = 0,
) -> tuple[datasets.Dataset, dict[str, Any]]:
    """Mask spans in a dataset of articles, and keep the windows in the folder ``cache``; see ``mask_windows``.

    Also returns the counts. ``find`` finds the spans; by default, rules do. Windows of an earlier call are used if
    articles, tokenizer and options are the same. Raises InputError, with ``name`` for the dataset, if it holds no text
    or no span.
    """
    finder = Rules() if find is None else find

    def rows(counts: Counts) -> Iterator[Row]:
        articles = texts(dataset, name, counts, "masking")
        yield from mask_windows(articles, tokenizer, sequence_length, finder, rate, seed, counts)

    key = [VERSION, dataset._fingerprint, identity(tokenizer), sequence_length, finder.key, rate, seed]
    made, counts = cached_rows(cache, "masked", key, _MASKED, rows, name)
    dropped = {reason: counts[reason] for reason in _REASONS if counts[reason]}
    return made, {name: counts[name] for name in ("articles", "empty", "windows")} | {"dropped": dropped}


# Batches


@dataclass(frozen=True)
class MaskedBatch:
    """Collates masked windows, padded at the right to the longest, rounded up to a multiple of ``multiple``."""

    pad_token: int
    decoder_start_token: int
    multiple: int = 8

    @classmethod
    def of(cls, model: Any, tokenizer: Tokenizer) -> MaskedBatch:
        """Return the collator for an encoder-decoder model."""
        pad = padding(tokenizer, model)
        start = getattr(model.config, "decoder_start_token_id", None)
        return cls(pad, pad if start is None else start)

    def __call__(self, rows: Sequence[Row]) -> dict[str, torch.Tensor]:
        """Return ``input_ids``, ``attention_mask``, ``labels`` and ``decoder_input_ids``, int64 [rows, length].

        Labels are -100 on padding. The decoder's input is the start token, then the labels shifted by one. A row
        without tokens becomes padding with one token to attend to: a softmax over nothing would be nan.
        """
        inputs, used = self._padded([row["input_ids"] for row in rows], self.pad_token)
        used[:, 0] = True
        labels, learnt = self._padded([row["labels"] for row in rows], IGNORED)
        decoder = np.full(labels.shape, self.pad_token, np.int64)
        decoder[:, 1:] = np.where(learnt, labels, self.pad_token)[:, :-1]
        decoder[:, 0] = self.decoder_start_token
        return {
            "input_ids": torch.from_numpy(inputs),
            "attention_mask": torch.from_numpy(used.astype(np.int64)),
            "labels": torch.from_numpy(labels),
            "decoder_input_ids": torch.from_numpy(decoder),
        }

    def _padded(self, rows: Sequence[Sequence[int]], padding: int) -> tuple[Ints, Ints]:
        """Return the padded rows, and a mask that is False on padding."""
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        width = max(-(-int(lengths.max()) // self.multiple), 1) * self.multiple
        used = np.arange(width) < lengths[:, None]
        values = np.full(used.shape, padding, np.int64)
        values[used] = np.concatenate([np.asarray(row, np.int64) for row in rows])
        return values, used
