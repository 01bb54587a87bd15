"""Packing: articles become a stream of tokens, chunks and batches, and documents do not attend to each other."""

import errno
import json
import logging
import pickle
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
import pytest
import tokenizers
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import models, pre_tokenizers
from transformers import (
    CONFIG_MAPPING,
    AutoModelForCausalLM,
    GPT2Tokenizer,
    PreTrainedTokenizerFast,
    T5Tokenizer,
)

from temporalwiki.base.errors import InputError
from temporalwiki.methods import packing
from temporalwiki.methods.architecture import mixes_documents
from temporalwiki.methods.packing import (
    Encoder,
    PackedBatch,
    cached_rows,
    identity,
    pack,
    pack_dataset,
    texts,
)

import tiny_models
from a_folder import contents
from faults.rows import ONE_LINE
from tiny_methods import sharpened

LETTERS = sorted(pre_tokenizers.ByteLevel.alphabet())


def gpt2() -> Any:
    """One token begins and ends documents."""
    vocabulary = {letter: i for i, letter in enumerate([*LETTERS, "th", "<|endoftext|>"])}
    return GPT2Tokenizer(vocab=vocabulary, merges=[("t", "h")])


def llama(**special: str) -> Any:
    """BOS and EOS differ, or BOS is missing."""
    vocabulary = {letter: i for i, letter in enumerate(["<s>", "</s>", *LETTERS])}
    backend = tokenizers.Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return PreTrainedTokenizerFast(tokenizer_object=backend, **special)


def t5() -> Any:
    """A Unigram model that has its special tokens among its pieces, as T5's has."""
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -2.0)]
    pieces += [(letter, -3.0) for letter in "abcdehilnoprstx_0<>/"] + [("▁the", -2.5), ("<extra_id_0>", 0.0)]
    return T5Tokenizer(vocab=pieces, extra_ids=1)


TOKENIZERS = {
    "one token for both": gpt2(),
    "two tokens": llama(bos_token="<s>", eos_token="</s>"),
    "EOS alone": llama(eos_token="</s>"),
}
styles = st.sampled_from(sorted(TOKENIZERS))
articles = st.lists(st.text("abt h.é語", min_size=1, max_size=12), min_size=1, max_size=8)
lengths = st.integers(2, 9)


def rows_of(given_texts: Sequence[str], tokenizer: Any, length: int) -> list[dict[str, Any]]:
    return [
        {key: value if isinstance(value, int) else value.tolist() for key, value in row.items()}
        for row in pack(given_texts, tokenizer, length)
    ]


def slow_stream(given_texts: Sequence[str], tokenizer: Any) -> list[tuple[int, int]]:
    """Every token of the stream with the number of its document; a separator that is shared begins a document."""
    bos, eos = tokenizer.bos_token_id, tokenizer.eos_token_id
    stream: list[tuple[int, int]] = []
    for number, text in enumerate(given_texts):
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        ids = [eos, *ids] if bos == eos else [*([] if bos is None else [bos]), *ids, eos]
        stream += [(token, number) for token in ids]
    return stream + ([(eos, len(given_texts) - 1)] if bos == eos else [])


# Texts


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"title": ["A"], "text": ["b c."]}, ["A. b c."]),
        ({"text": ["b c."]}, ["b c."]),
        ({"title": ["", None, " "], "text": ["b", "c", "d"]}, ["b", "c", "d"]),
        ({"title": ["A", "B", "C", "D"], "text": ["", None, " \n", "d"]}, ["D. d"]),
        ({"id": [1], "title": ["A"], "text": ["b"], "url": ["u"]}, ["A. b"]),
    ],
)
def test_an_article_is_its_title_and_its_text(columns: dict[str, list[Any]], expected: list[str]) -> None:
    counts: Counter[str] = Counter()
    assert list(texts(datasets.Dataset.from_dict(columns), "diffset", counts, "packing")) == expected
    assert counts["articles"] == len(expected)
    assert counts["empty"] == len(columns["text"]) - len(expected)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"title": ["A"], "texts": ["b"]}, "diffset: no column text among title, texts .did you mean texts.."),
        ({"text": ["a"], "title": [["b"]]}, "diffset: the column title holds"),
    ],
)
def test_a_dataset_without_text_is_refused(columns: dict[str, list[Any]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        list(texts(datasets.Dataset.from_dict(columns), "diffset", Counter(), "packing"))


def test_rows_are_read_in_the_datasets_order_whatever_its_format() -> None:
    dataset = datasets.Dataset.from_dict({"text": [f"t{i}" for i in range(200)], "title": ["T"] * 200})
    shuffled = dataset.shuffle(seed=1).with_format("numpy", columns=["text"])
    assert list(texts(shuffled, "x", Counter(), "packing")) == [f"T. {text}" for text in shuffled["text"]]


# Tokens


@pytest.mark.parametrize(
    ("tokenizer", "text", "spelled"),
    [
        (gpt2(), "a<|endoftext|>b", "a<|endoftext|>b"),
        (llama(bos_token="<s>", eos_token="</s>"), "<s>a</s>", "<s>a</s>"),
        (t5(), "the <extra_id_0> lost </s>", "▁the▁<extra_id_0>▁lost▁</s>"),
        (t5(), "x<extra_id_0>", "▁x<extra_id_0>"),
        (t5(), "<pad>", "▁<pad>"),
    ],
)
def test_a_special_token_that_a_stranger_wrote_is_text(tokenizer: Any, text: str, spelled: str) -> None:
    encoder = Encoder(tokenizer)
    (ids,) = encoder.ids([text])
    ((same, offsets),) = encoder.with_offsets([text])
    special = set(tokenizer.all_special_ids) - {tokenizer.unk_token_id if tokenizer.pad_token else None}
    assert not special & set(ids.tolist())
    assert "".join(tokenizer.convert_ids_to_tokens(ids.tolist())) == spelled
    assert same.tolist() == ids.tolist()
    for token, (start, end) in zip(tokenizer.convert_ids_to_tokens(ids.tolist()), offsets.tolist(), strict=True):
        assert token.strip("▁") in ("", text[start:end])


def test_a_text_is_tokenised_whole_and_without_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    tokenizer = gpt2()
    tokenizer.model_max_length, tokenizer.pad_token = 8, "<|endoftext|>"
    tokenizer("a b c", truncation=True, max_length=2, padding="max_length")  # what a call may leave behind
    before = identity(tokenizer), tokenizer.backend_tokenizer.encode_special_tokens
    with caplog.at_level(logging.WARNING):
        (ids,) = Encoder(tokenizer).ids(["ab" * 50])
    assert len(ids) == 100
    assert not caplog.records
    assert (identity(tokenizer), tokenizer.backend_tokenizer.encode_special_tokens) == before


def test_a_tokenizer_that_cannot_be_used_is_refused() -> None:
    with pytest.raises(InputError, match="no EOS token to put between documents"):
        list(pack(["a"], llama(), 8))
    with pytest.raises(InputError, match="object is not a fast tokenizer"):
        Encoder(object())


# Chunks


# the chunks of "ab" and "c": tokens, where documents begin, and the token that follows
CHUNKS: dict[str, list[tuple[str, list[int], str | None]]] = {
    "one token for both": [("Eab", [0], "E"), ("EcE", [0], None)],  # E a b E c E
    "two tokens": [("Bab", [0], "E"), ("EBc", [1], "E"), ("E", [], None)],  # B a b E B c E
    "EOS alone": [("abE", [0], None), ("cE", [0], None)],  # a b E c E: nothing foretells c
}


@pytest.mark.parametrize("style", CHUNKS)
def test_separators(style: str) -> None:
    tokenizer = TOKENIZERS[style]
    special = {"B": tokenizer.bos_token_id, "E": tokenizer.eos_token_id, None: -1}

    def token(letter: str | None) -> int:
        return int(special[letter] if letter in special else tokenizer.convert_tokens_to_ids(letter))

    assert rows_of(["ab", "c"], tokenizer, 3) == [
        {"input_ids": [*map(token, letters)], "starts": starts, "next_token": token(after)}
        for letters, starts, after in CHUNKS[style]
    ]


@given(articles, styles, lengths)
def test_chunks_are_the_stream(given_texts: list[str], style: str, length: int) -> None:
    tokenizer = TOKENIZERS[style]
    rows, stream = rows_of(given_texts, tokenizer, length), slow_stream(given_texts, tokenizer)
    assert [token for row in rows for token in row["input_ids"]] == [token for token, _ in stream]
    assert [len(row["input_ids"]) for row in rows[:-1]] == [length] * (len(rows) - 1)
    assert 0 < len(rows[-1]["input_ids"]) <= length
    begins = [at for at, (_, number) in enumerate(stream) if at == 0 or stream[at - 1][1] != number]
    assert [i * length + start for i, row in enumerate(rows) for start in row["starts"]] == begins


def test_chunks_do_not_depend_on_what_is_tokenised_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    given_texts = ["the cat", "a", "", "x" * 30, "b c", "d" * 7] * 3
    for tokenizer in TOKENIZERS.values():
        whole = rows_of(given_texts, tokenizer, 5)
        for texts_at_once, characters in ((1, 1 << 20), (1000, 1), (2, 9)):
            with monkeypatch.context() as patch:
                patch.setattr(packing, "_BATCH_TEXTS", texts_at_once)
                patch.setattr(packing, "_BATCH_CHARACTERS", characters)
                assert rows_of(given_texts, tokenizer, 5) == whole


def pairs(rows: Sequence[dict[str, Any]], tokenizer: Any, length: int) -> list[tuple[int, int]]:
    """Return what a model learns from rows: each token, and the one to predict after it."""
    if not rows:
        return []
    batch = PackedBatch.of(tokenizer, length)(rows)
    counts = batch["labels"] != packing.IGNORED
    return list(zip(batch["input_ids"][counts].tolist(), batch["labels"][counts].tolist(), strict=True))


@given(articles, styles, lengths)
def test_documents_that_are_kept_apart_are_packed_one_by_one(given_texts: list[str], style: str, length: int) -> None:
    tokenizer = TOKENIZERS[style]
    rows = list(pack(given_texts, tokenizer, length, apart=True))
    one_by_one = [row for text in given_texts for row in pack([text], tokenizer, length)]
    assert pairs(rows, tokenizer, length) == pairs(one_by_one, tokenizer, length)
    assert all(list(row["starts"]) in ([], [0]) for row in rows)


def test_no_texts_make_no_chunks() -> None:
    assert rows_of([], gpt2(), 4) == rows_of(["", ""], gpt2(), 4) == []


# Batches


@given(articles, styles, lengths)
def test_labels_are_the_next_tokens_and_positions_count_from_nought_in_each_document(
    given_texts: list[str], style: str, length: int
) -> None:
    tokenizer = TOKENIZERS[style]
    shared = style == "one token for both"
    rows, stream = rows_of(given_texts, tokenizer, length), slow_stream(given_texts, tokenizer)
    batch = PackedBatch.of(tokenizer, length)(rows)
    expected = [after[0] if shared or before[1] == after[1] else -100 for before, after in pairwise(stream)]
    flat = batch["labels"].flatten().tolist()
    assert flat[: len(stream)] == [*expected, -100]
    assert set(flat[len(stream) :]) <= {-100}
    assert {key: (value.dtype, value.shape) for key, value in batch.items()} == {
        key: (torch.int64, (len(flat) // length, length)) for key in ("input_ids", "position_ids", "labels")
    }
    documents = [number for _, number in stream] + [-1] * (len(rows) * length - len(stream))  # -1: padding
    positions: list[int] = []
    for at, document in enumerate(documents):
        goes_on = at % length and documents[at - 1] == document
        positions.append(positions[-1] + 1 if goes_on else 0)
    assert batch["position_ids"].flatten().tolist() == positions


def test_a_row_without_tokens_is_padding() -> None:
    empty: dict[str, Any] = {"input_ids": [], "starts": [], "next_token": -1}
    row = {"input_ids": [7, 8], "starts": [0], "next_token": -1}
    for rows, inputs, labels in (
        ([empty], [[9, 9, 9]], [[-100, -100, -100]]),
        ([row, empty], [[7, 8, 9], [9, 9, 9]], [[8, -100, -100], [-100, -100, -100]]),
    ):
        batch = PackedBatch(3, pad_token=9, shared=True)(rows)
        assert batch["input_ids"].tolist() == inputs
        assert batch["labels"].tolist() == labels
        assert batch["position_ids"].tolist()[-1][0] == 0


def test_batches_are_the_same_from_lists_and_arrays_and_the_collator_is_pickled() -> None:
    collate = PackedBatch.of(llama(bos_token="<s>", eos_token="</s>"), 4)
    rows = list(pack(["abc", "de", "f"], llama(bos_token="<s>", eos_token="</s>"), 4))
    lists = rows_of(["abc", "de", "f"], llama(bos_token="<s>", eos_token="</s>"), 4)
    one, other = collate(rows), pickle.loads(pickle.dumps(collate))(lists)  # noqa: S301
    assert all(torch.equal(one[key], other[key]) for key in one)


# with weights as small as they are made, a leak would hardly show
MODELS = {
    (kind, attention): sharpened(tiny_models.model(kind, 300, attn_implementation=attention), 0.2)
    for kind in ("gpt2", "llama")
    for attention in ("sdpa", "eager")
}


@settings(max_examples=25)
@given(articles, styles, st.integers(4, 24), st.sampled_from(sorted(MODELS)))
def test_a_packed_document_is_read_as_if_it_were_alone(
    given_texts: list[str], style: str, length: int, which: tuple[str, str]
) -> None:
    tokenizer, model = TOKENIZERS[style], MODELS[which]
    rows = rows_of(given_texts, tokenizer, length)
    batch = PackedBatch.of(tokenizer, length)(rows)
    with torch.no_grad():
        packed = model(input_ids=batch["input_ids"], position_ids=batch["position_ids"], use_cache=False).logits
        for at, row in enumerate(rows):
            edges = sorted({0, *row["starts"], len(row["input_ids"])})
            for start, end in pairwise(edges):
                alone = model(input_ids=batch["input_ids"][at : at + 1, start:end], use_cache=False).logits[0]
                torch.testing.assert_close(packed[at, start:end], alone, atol=1e-5, rtol=1e-4)


SMALL = {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "pad_token_id": 0}
SMALL |= {"num_key_value_heads": 2, "head_dim": 8, "intermediate_size": 64, "ffn_dim": 64, "word_embed_proj_dim": 32}
SMALL |= {"num_local_experts": 4, "num_experts": 4, "num_experts_per_tok": 2}
MIXES = {
    **dict.fromkeys(("gpt2", "llama", "qwen3", "gemma3_text", "olmo2"), False),
    **dict.fromkeys(("opt", "bloom", "gpt_oss", "falcon_h1", "mamba", "qwen3_next"), True),
}


@pytest.mark.parametrize(("family", "mixes"), MIXES.items())
def test_a_model_that_ignores_where_documents_begin_is_found(family: str, mixes: bool) -> None:
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(CONFIG_MAPPING[family](**SMALL)).train()
    assert mixes_documents(model) is mixes
    assert model.training


@pytest.mark.parametrize("leak", ["mask of ones", "cache"])
def test_why_there_is_no_mask_and_must_be_no_cache(leak: str) -> None:
    model, batch = MODELS["llama", "sdpa"], PackedBatch.of(gpt2(), 12)(rows_of(["abc", "bcd"], gpt2(), 12))
    inputs, more = {key: batch[key] for key in ("input_ids", "position_ids")}, {}
    if leak == "mask of ones":
        more = {"attention_mask": torch.ones_like(batch["input_ids"])}
    with torch.no_grad():
        apart = model(**inputs, use_cache=False).logits
        leaked = model(**inputs, **more, use_cache=leak == "cache").logits
    assert not torch.allclose(apart, leaked, atol=1e-4)


# On disk

ARTICLES = {"title": ["A", "B", "C"], "text": ["the first", "", "and the third"]}


def article_dataset(**changed: list[str]) -> datasets.Dataset:
    return datasets.Dataset.from_dict(ARTICLES | changed)


def test_a_dataset_is_packed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, counts = pack_dataset(article_dataset(), "diffset", gpt2(), 8, tmp_path)
    stream = slow_stream(["A. the first", "C. and the third"], gpt2())
    assert counts == {"articles": 2, "empty": 1, "tokens": len(stream), "chunks": len(made)}
    assert made.to_list() == rows_of(["A. the first", "C. and the third"], gpt2(), 8)
    assert made.cache_files and made.features["input_ids"] == datasets.List(datasets.Value("int32"))
    files = contents(tmp_path)

    with monkeypatch.context() as patch:
        patch.setattr(packing, "pack", None)  # is not called again
        again, same_counts = pack_dataset(article_dataset(), "diffset", gpt2(), 8, tmp_path)
    assert again.to_list() == made.to_list()
    assert again._fingerprint == made._fingerprint
    assert same_counts == counts

    elsewhere = tmp_path / "elsewhere"
    pack_dataset(article_dataset(), "another name", gpt2(), 8, elsewhere)
    assert contents(elsewhere) == files


def test_what_chunks_depend_on_makes_other_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    added = gpt2()
    added.add_tokens(["third"])
    for dataset, tokenizer, length in (
        (article_dataset(), gpt2(), 8),
        (article_dataset(), gpt2(), 9),
        (article_dataset(title=["A", "B", "D"]), gpt2(), 8),
        (article_dataset(), llama(eos_token="</s>"), 8),
        (article_dataset(), llama(bos_token="<s>", eos_token="</s>"), 8),
        (article_dataset(), added, 8),
    ):
        pack_dataset(dataset, "diffset", tokenizer, length, tmp_path)
    monkeypatch.setattr(packing, "VERSION", packing.VERSION + 1)
    pack_dataset(article_dataset(), "diffset", gpt2(), 8, tmp_path)
    assert len(list(tmp_path.glob("*.arrow"))) == len(list(tmp_path.glob("*.json"))) == 7


def test_long_packing_shows_its_progress_in_a_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("temporalwiki.base.progress.LOG_SECONDS", 0.0)
    pack_dataset(article_dataset(), "diffset", gpt2(), 8, tmp_path)
    assert capsys.readouterr().err.splitlines()[-1].startswith("packing diffset: 100% 3/3 [")


SCHEMA = pa.schema({"input_ids": pa.list_(pa.int32()), "next_token": pa.int32()})


def some_rows(counts: Counter[str]) -> Iterator[dict[str, Any]]:
    for number in range(2500):  # more than are written at once
        counts["rows"] += 1
        yield {"input_ids": np.arange(number % 3), "next_token": number}


def test_rows_come_back(tmp_path: Path) -> None:
    dataset, counts = cached_rows(tmp_path, "s", 1, SCHEMA, some_rows, "x")
    assert counts == {"rows": 2500}
    assert dataset.to_list() == [{"input_ids": [0, 1, 2][: n % 3], "next_token": n} for n in range(2500)]


LOSSES: dict[str, Callable[[Path], object]] = {
    "end": lambda path: path.write_bytes(path.read_bytes()[:-100]),
    "all": Path.unlink,
    "counts": lambda path: path.with_suffix(".json").unlink(),
    "counts' end": lambda path: path.with_suffix(".json").write_text('{"counts": {"row'),
}


@pytest.mark.fault(
    "intermediate file missing or damaged",
    "train: prepared text is missing or cut",
    "it is prepared again, with the same bytes",
)
@pytest.mark.parametrize("lost", LOSSES)
def test_rows_that_are_not_whole_are_made_again(tmp_path: Path, lost: str) -> None:
    made, _ = cached_rows(tmp_path, "s", 1, SCHEMA, some_rows, "x")
    (path,) = tmp_path.glob("*.arrow")
    content = path.read_bytes()
    LOSSES[lost](path)
    del made
    cached_rows(tmp_path, "s", 1, SCHEMA, some_rows, "x")
    assert path.read_bytes() == content
    assert json.loads(path.with_suffix(".json").read_text())["counts"] == {"rows": 2500}


@pytest.mark.fault("kill -9", "train: while text is prepared", "the unfinished text is prepared again")
def test_a_process_that_is_killed_leaves_nothing_that_counts(tmp_path: Path) -> None:
    script = f"""
import os, pathlib, signal, pyarrow as pa
from temporalwiki.methods.packing import cached_rows

def rows(counts):
    for number in range(2500):
        if number == 2000:
            os.kill(os.getpid(), signal.SIGKILL)
        yield {{"input_ids": [1], "next_token": number}}
schema = pa.schema({{"input_ids": pa.list_(pa.int32()), "next_token": pa.int32()}})
cached_rows(pathlib.Path({str(tmp_path)!r}), "s", 1, schema, rows, "x")
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -signal.SIGKILL
    assert [path.suffix for path in tmp_path.iterdir() if path.suffix != ".lock"] == [".part"]
    dataset, counts = cached_rows(tmp_path, "s", 1, SCHEMA, some_rows, "x")
    assert (len(dataset), counts["rows"]) == (2500, 2500)
    assert not list(tmp_path.glob(".*.part"))


@pytest.mark.fault("two at once", "two trainings that need the same text", "one prepares it, the others wait")
def test_those_who_want_the_same_rows_at_once_wait_for_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    makers: list[int] = []
    sizes: list[int] = []

    def slow_rows(counts: Counter[str]) -> Iterator[dict[str, Any]]:
        makers.append(1)
        time.sleep(0.3)
        yield from some_rows(counts)

    def want() -> None:
        sizes.append(len(cached_rows(tmp_path, "s", 1, SCHEMA, slow_rows, "x")[0]))

    with ThreadPoolExecutor(3) as pool:
        for _ in range(3):
            pool.submit(want)
    assert (len(makers), sizes) == (1, [2500] * 3)
    assert "waiting for another process to write it" in capsys.readouterr().err


@pytest.mark.fault("full disk", "train: while text is prepared", ONE_LINE)
def test_a_full_disk_is_said_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(packing.pa.ipc, "new_stream", full)
        with pytest.raises(InputError, match=r"s-\w+\.arrow: no space left on the disk"):
            cached_rows(tmp_path, "s", 1, SCHEMA, some_rows, "x")
    assert {path.suffix for path in tmp_path.iterdir()} <= {".lock"}
    assert len(cached_rows(tmp_path, "s", 1, SCHEMA, some_rows, "x")[0]) == 2500
