"""Spans are masked in windows that lose nothing, and put into batches for T5."""

import pickle
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import GPT2Tokenizer, T5Config, T5ForConditionalGeneration, T5Tokenizer

from temporalwiki.base.errors import InputError
from temporalwiki.builders.ckl.salient_spans import Rules
from temporalwiki.methods import salient_spans
from temporalwiki.methods.packing import Encoder
from temporalwiki.methods.salient_spans import (
    MaskedBatch,
    mask_dataset,
    mask_windows,
    sentinels,
    token_ranges,
    windows,
)

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,()<>_/'"


def t5(extra: int = 100) -> Any:
    """Some words whole, other text letter by letter; the sentinels are among the pieces, as in T5's own."""
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -2.0)]
    pieces += [(letter, -5.0) for letter in LETTERS]
    words = ("the", "of", "in", "capital", "is", "Paris", "(P", "France", "1998", "and", "was")
    pieces += [(f"▁{word}", -6.0) for word in words]
    pieces += [(f"<extra_id_{i}>", 0.0) for i in reversed(range(extra))]
    return T5Tokenizer(vocab=pieces, extra_ids=extra)


T5 = t5()
PARIS = "Paris is the capital of France. It was the capital in 1998 and Paris is in the north of France."


# Masking


def decoded(tokenizer: Any, ids: Any) -> str:
    return "".join(tokenizer.convert_ids_to_tokens(np.asarray(ids).tolist())).replace("▁", " ")


def spans_of(*words: str) -> Any:
    """A finder of these words, wherever they are."""

    def find(text: str) -> list[tuple[int, int]]:
        places = []
        for word in words:
            at = text.find(word)
            while at >= 0:
                places.append((at, at + len(word)))
                at = text.find(word, at + 1)
        return sorted(places)

    return find


@pytest.mark.parametrize(
    ("text", "find", "inputs", "labels"),
    [
        (
            "Paris is the capital of France.",
            spans_of("Paris", "France"),
            "<extra_id_0> is the capital of<extra_id_1>.</s>",
            "<extra_id_0> Paris<extra_id_1> France<extra_id_2></s>",
        ),
        ("in (Paris), 1998", spans_of("1998"), " in (Paris),<extra_id_0></s>", "<extra_id_0> 1998<extra_id_1></s>"),
        # "▁(P" is one token
        ("in (Paris)", spans_of("Paris"), " in<extra_id_0>)</s>", "<extra_id_0> (Paris<extra_id_1></s>"),
        # the space before a word without a piece is a separate token
        ("in Rome is", spans_of("Rome"), " in<extra_id_0> is</s>", "<extra_id_0> Rome<extra_id_1></s>"),
        # touching spans become one
        ("in 19981998 is", spans_of("1998"), " in<extra_id_0> is</s>", "<extra_id_0> 19981998<extra_id_1></s>"),
        (
            "<extra_id_0> is Paris</s>",
            spans_of("Paris"),
            " <extra_id_0> is<extra_id_0></s></s>",
            "<extra_id_0> Paris<extra_id_1></s>",
        ),
        # unknown letters
        ("in 北京 is", spans_of("北京"), " in<extra_id_0> is</s>", "<extra_id_0> <unk><extra_id_1></s>"),
    ],
)
def test_masked(text: str, find: Any, inputs: str, labels: str) -> None:
    (row,) = mask_windows([text], T5, 64, find, rate=0.9)
    assert decoded(T5, row["input_ids"]) == inputs
    assert decoded(T5, row["labels"]) == labels
    assert {value.dtype for value in row.values()} == {np.dtype(np.int32)}


def filled(row: dict[str, Any], tokenizer: Any) -> list[int]:
    """Put the spans of the labels back where their sentinels are; EOS is taken off."""
    marks = {mark: i for i, mark in enumerate(sentinels(tokenizer))}
    *labels, end = row["labels"].tolist()
    *inputs, also_end = row["input_ids"].tolist()
    assert end == also_end == tokenizer.eos_token_id
    spans: dict[int, list[int]] = {}
    for token in labels:
        if token in marks:
            spans[token] = []
            assert marks[token] == len(spans) - 1
        else:
            spans[list(spans)[-1]].append(token)
    assert spans.pop(list(spans)[-1]) == []  # the last sentinel ends the labels
    assert all(spans.values())
    assert [token for token in inputs if token in marks] == list(spans)
    return [part for token in inputs for part in spans.get(token, [token])]


WORDS = ["the ", "of ", "Paris ", "France. ", "1998 ", "(Paris) ", "<extra_id_0>", "x" * 9 + " ", "\n", "Rome", "é"]
texts_of_words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=60).map("".join)


@given(texts_of_words, st.integers(3, 40), st.sampled_from([0.05, 0.15, 0.5]), st.integers(0, 3))
def test_masked_windows_filled_in_again_are_the_article(text: str, length: int, rate: float, seed: int) -> None:
    ((ids, offsets),) = Encoder(T5).with_offsets([text])
    find = spans_of("Paris", "1998", "France", "Rome")
    cut = list(windows(text, offsets, token_ranges(find(text), offsets), length - 1))
    assert [token for start, end in cut for token in ids[start:end].tolist()] == ids.tolist()
    assert all(0 < end - start < length for start, end in cut)

    counts: Counter[str] = Counter()
    rows = [filled(row, T5) for row in mask_windows([text], T5, length, find, rate, seed, counts)]
    whole = [ids[start:end].tolist() for start, end in cut]
    assert counts["windows"] == len(whole) == len(rows) + counts["no span"] + counts["no context"]
    left = iter(whole)
    assert all(row in left for row in rows)  # in this order


@pytest.mark.parametrize(
    ("text", "find", "length", "expected"),
    [
        # sentences
        ("of the of. The of the", spans_of(), 8, [" of the of.", " The of the"]),
        # words, where the sentence ends in the first half
        ("a. The of the of the of the", spans_of(), 12, [" a. The of the of the", " of the"]),
        # never within a span
        ("of the of Paris in France of", spans_of("Paris in France"), 6, [" of the of", " Paris in France of"]),
        # unless it is longer than a window
        ("Paris in France in Paris", spans_of("Paris in France in Paris"), 4, [" Paris in France", " in Paris"]),
        # and words only where they are longer
        ("xxxxxxxxxx of", spans_of(), 6, [" xxxx", "xxxxx", "x of"]),
        ("a b c d", spans_of(), 4, [" a", " b", " c", " d"]),
        ("", spans_of(), 4, []),
        (" \n ", spans_of(), 4, []),
    ],
)
def test_windows_end_where_sentences_or_words_do(text: str, find: Any, length: int, expected: list[str]) -> None:
    ((ids, offsets),) = Encoder(T5).with_offsets([text])
    cut = windows(text, offsets, token_ranges(find(text), offsets), length - 1)
    assert [decoded(T5, ids[start:end]) for start, end in cut] == expected


def test_about_a_share_of_the_tokens_is_masked() -> None:
    text = " ".join(["Paris of the is"] * 400)
    for rate in (0.05, 0.15, 0.2):
        rows = list(mask_windows([text], T5, 128, spans_of("Paris"), rate))
        masked = sum(len(row["labels"]) - 2 - np.isin(row["labels"], sentinels(T5)).sum() + 1 for row in rows)
        assert masked / 1600 == pytest.approx(rate, abs=0.01)


def test_at_least_one_span_is_masked_and_no_more_than_there_are_sentinels() -> None:
    (row,) = mask_windows(["of the of the Rome " + "of " * 8], T5, 64, spans_of("Rome"), rate=0.01)
    assert decoded(T5, row["labels"]) == "<extra_id_0> Rome<extra_id_1></s>"
    few = t5(extra=4)
    (row,) = mask_windows(["Paris of " * 20], few, 64, spans_of("Paris"), rate=0.5)
    assert [token for token in row["labels"].tolist() if token in sentinels(few)] == sentinels(few)
    (row,) = mask_windows(["Paris of " * 200], T5, 512, spans_of("Paris"), rate=0.5)
    assert np.isin(row["input_ids"], sentinels(T5)).sum() == 99


def test_windows_that_teach_nothing_are_dropped_by_reason() -> None:
    counts: Counter[str] = Counter()
    assert list(mask_windows(["of the", "Paris", ""], T5, 64, spans_of("Paris"), counts=counts)) == []
    assert counts == {"windows": 2, "no span": 1, "no context": 1}


def test_what_is_masked_depends_on_the_article_and_the_seed_alone() -> None:
    given_texts = [f"{PARIS} {i}. {PARIS}" for i in range(30)]

    def masked(some: Sequence[str], seed: int = 0) -> dict[bytes, list[bytes]]:
        rows = {text: list(mask_windows([text], T5, 40, Rules(), seed=seed)) for text in some}
        together = list(mask_windows(some, T5, 40, Rules(), seed=seed))
        flat = [row for text in some for row in rows[text]]
        assert [row["input_ids"].tobytes() for row in together] == [row["input_ids"].tobytes() for row in flat]
        return {text.encode(): [row["labels"].tobytes() for row in rows[text]] for text in some}

    shuffled = random.Random(1).sample(given_texts, len(given_texts))
    assert masked(given_texts) == masked(shuffled)
    assert masked(given_texts) != masked(given_texts, seed=1)


def test_a_tokenizer_without_sentinels_is_refused() -> None:
    vocabulary = {"a": 0, "<|endoftext|>": 1}
    for tokenizer in (GPT2Tokenizer(vocab=vocabulary, merges=[]), t5(extra=1)):
        with pytest.raises(InputError, match=r"no sentinels .*salient spans are for T5"):
            list(mask_windows(["a"], tokenizer, 8, Rules()))


# On disk


def test_a_dataset_is_masked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = datasets.Dataset.from_dict({"title": ["Paris", "B", "C"], "text": [PARIS, "", "of the"]})
    made, counts = mask_dataset(dataset, "diffset", T5, 64, tmp_path)
    assert counts == {"articles": 2, "empty": 1, "windows": len(made) + 1, "dropped": {"no span": 1}}
    rows = mask_windows([f"Paris. {PARIS}", "C. of the"], T5, 64, Rules())
    assert made.to_list() == [{key: value.tolist() for key, value in row.items()} for row in rows]
    with monkeypatch.context() as patch:
        patch.setattr(salient_spans, "mask_windows", None)  # is not called again
        assert mask_dataset(dataset, "diffset", T5, 64, tmp_path, find=Rules())[1] == counts
    same = {"dataset": dataset, "name": "x", "tokenizer": T5, "sequence_length": 64, "cache": tmp_path}
    for other in ({"seed": 1}, {"rate": 0.3}, {"sequence_length": 32}, {"tokenizer": t5(50)}):
        mask_dataset(**same | other)
    assert len(list(tmp_path.glob("masked-*.arrow"))) == 5


def test_a_dataset_without_spans_is_refused_by_name(tmp_path: Path) -> None:
    dataset = datasets.Dataset.from_dict({"text": ["of the"]})
    with pytest.raises(InputError, match="diffset-0809: no training examples"):
        mask_dataset(dataset, "diffset-0809", T5, 64, tmp_path)


# Batches


def test_batches_are_padded_and_the_decoder_reads_the_labels_one_place_later() -> None:
    rows = [{"input_ids": [5, 6, 7, 1], "labels": [9, 5, 1]}, {"input_ids": [5, 1], "labels": [9, 1]}]
    batch = MaskedBatch(pad_token=0, decoder_start_token=2, multiple=4)(rows)
    assert {key: value.tolist() for key, value in batch.items()} == {
        "input_ids": [[5, 6, 7, 1], [5, 1, 0, 0]],
        "attention_mask": [[1, 1, 1, 1], [1, 1, 0, 0]],
        "labels": [[9, 5, 1, -100], [9, 1, -100, -100]],
        "decoder_input_ids": [[2, 9, 5, 1], [2, 9, 1, 0]],
    }
    assert {value.dtype for value in batch.values()} == {torch.int64}


@pytest.mark.parametrize("lengths", [(1, 8), (8, 8), (9, 16), (0, 8)])
def test_lengths_are_multiples_of_eight(lengths: tuple[int, int]) -> None:
    length, padded = lengths
    batch = pickle.loads(pickle.dumps(MaskedBatch(0, 0)))([{"input_ids": [3] * length, "labels": [3] * length}])  # noqa: S301
    assert {value.shape for value in batch.values()} == {(1, padded)}


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_a_row_without_tokens_teaches_nothing_and_breaks_nothing(attention: str) -> None:
    torch.manual_seed(0)
    size = {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 1, "num_heads": 2}
    config = T5Config(vocab_size=len(T5), dropout_rate=0, decoder_start_token_id=0, **size)
    model = T5ForConditionalGeneration._from_config(config, attn_implementation=attention)
    (row,) = mask_windows(["Paris is the capital of France."], T5, 64, Rules())
    empty: dict[str, list[int]] = {"input_ids": [], "labels": []}
    collate = MaskedBatch(T5.pad_token_id, config.decoder_start_token_id)
    assert set(collate([empty])["labels"].flatten().tolist()) == {-100}

    def gradients(rows: list[Any]) -> tuple[torch.Tensor, torch.Tensor]:
        model.zero_grad()
        loss = model(**collate(rows)).loss
        loss.backward()
        return loss.detach(), torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])

    for alone, padded in zip(gradients([row]), gradients([row, empty]), strict=True):
        assert alone.isfinite().all()
        torch.testing.assert_close(alone, padded)
