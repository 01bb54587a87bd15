"""Perplexity of probes is exp(total NLL / total predicted tokens), independent of batches, padding and order."""

import copy
import math
from pathlib import Path
from typing import Any

import evaluate
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from plain_transformers import load, nlls
from transformers import GPT2Config, GPT2LMHeadModel, GPT2Model

from temporalwiki.eval_harness.metrics.knowledge_perplexity import knowledge_perplexity

import tiny_models
from tiny_models import bigram, words

ROOT = Path(__file__).resolve().parents[3]
KEYS = ["perplexity", "perplexity_instance_mean", "bits_per_byte", "perplexities", "n_tokens"]
FACTS = [
    ("Anna Weber", "was born in", "Norland"),
    ("The capital of Norland", "is", "Easton"),
    ("Anna Weber", "lives in", "Easton, Norland"),
    ("Zürich", "是", "城市 🏙"),
    ("Anna Weber", "was born in", "1961"),
    ("x", "y", "z"),
    ("<|endoftext|>", "is no", "<s>"),  # written by a stranger
    ("Anna Weber", "was born in", "Norland"),  # once more
    ("Long " * 20, "is", "the capital of Norland " * 5 + "Easton"),
]
PROBES = [" ".join(fact) for fact in FACTS]
OBJECTS = [fact[2] for fact in FACTS]
LN2 = math.log(2)

Metric = Any


# Numbers computed from likelihoods

# nats per token of each text, bytes of each text, and the result: perplexity, mean over texts, bits per byte
BY_HAND: dict[str, tuple[list[list[float]], list[int], tuple[float, float, float]]] = {
    "one token": ([[LN2]], [1], (2, 2, 1)),
    "one text": ([[LN2, 3 * LN2]], [8], (4, 4, 0.5)),  # 2 ** (4 / 2)
    # 2 ** ((6 + 2) / 4), (2 ** (6 / 3) + 2 ** 2) / 2
    "a long and a short text": ([[LN2, 2 * LN2, 3 * LN2], [2 * LN2]], [4, 4], (4, 4, 1)),
    # 2 ** (7 / 4): every token counts alike; (2 ** (4 / 1) + 2 ** (3 / 3)) / 2: every text does
    "tokens are not texts": ([[4 * LN2], [LN2] * 3], [3, 11], (2**1.75, 9, 0.5)),
    "certain": ([[0.0, 0.0], [0.0]], [2, 1], (1, 1, 0)),
    "numbers of numpy": ([np.array([LN2, LN2]), np.float32([0])], [np.int64(2), 2], (2 ** (2 / 3), 1.5, 0.5)),  # type: ignore[list-item]
}


@pytest.mark.parametrize(("nlls", "sizes", "expected"), BY_HAND.values(), ids=BY_HAND)
def test_by_hand(nlls: Any, sizes: list[int], expected: tuple[float, ...]) -> None:
    result = knowledge_perplexity(nlls, sizes)
    assert list(result) == KEYS
    assert tuple(result[key] for key in KEYS[:3]) == pytest.approx(expected, rel=1e-12)
    assert result["perplexities"] == pytest.approx([math.exp(np.mean(nll)) for nll in nlls], rel=1e-12)
    assert result["n_tokens"] == sum(len(nll) for nll in nlls)
    assert all(type(value) is float for value in [*(result[key] for key in KEYS[:3]), *result["perplexities"]])


TEXTS = st.lists(
    st.tuples(st.lists(st.floats(0, 100), min_size=1, max_size=5), st.integers(1, 50)), min_size=1, max_size=8
)


@given(TEXTS, st.randoms(use_true_random=False))
def test_order_does_not_matter_and_the_perplexity_lies_among_those_of_the_texts(
    texts: list[tuple[list[float], int]], random: Any
) -> None:
    result = knowledge_perplexity([nll for nll, _ in texts], [size for _, size in texts])
    low, high = min(result["perplexities"]), max(result["perplexities"])
    for key in ("perplexity", "perplexity_instance_mean"):
        assert low * (1 - 1e-12) <= result[key] <= high * (1 + 1e-12)
    shuffled = random.sample(texts, len(texts))
    again = knowledge_perplexity([nll for nll, _ in shuffled], [size for _, size in shuffled])
    assert again | {"perplexities": None} == result | {"perplexities": None}
    assert sorted(again["perplexities"]) == sorted(result["perplexities"])


@pytest.mark.parametrize(
    ("nlls", "sizes", "message"),
    [
        ([], [], "0 lists of likelihoods and 0 sizes"),
        ([[1.0]], [1, 2], "1 lists of likelihoods and 2 sizes"),
        ([[1.0], []], [1, 1], "text 1 has 0 tokens and 1 bytes"),
        ([[1.0], [1.0]], [0, 1], "text 0 has 1 tokens and 0 bytes"),
        ([[1.0], [1.0, math.nan]], [1, 1], "text 1: a likelihood is not finite"),
        ([[math.inf]], [1], "text 0: a likelihood is not finite"),
        ([[1.0], [800.0]], [1, 1], "text 1: its perplexity is too large for a float"),
    ],
)
def test_what_has_no_perplexity_is_refused(nlls: Any, sizes: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        knowledge_perplexity(nlls, sizes)
    assert "\n" not in str(error.value)


# The `evaluate` module


@pytest.fixture
def metric(monkeypatch: pytest.MonkeyPatch) -> Metric:
    monkeypatch.chdir(ROOT)
    return evaluate.load("eval_harness/metrics/knowledge_perplexity")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of tiny models, one of each kind."""
    folder = tmp_path_factory.mktemp("models")
    return {kind: tiny_models.save(kind, folder / kind) for kind in tiny_models.KINDS}


def uniform(size: int) -> Any:
    return bigram([[1 / size] * size] * size)


# <s>, a, b, c: what follows each
HALVES = [
    [1 / 8, 1 / 2, 1 / 4, 1 / 8],  # the first word is a with 1 bit, b with 2, c with 3
    [1 / 2, 1 / 8, 1 / 8, 1 / 4],  # after a: a and b with 3 bits, c with 2
    [1 / 4, 1 / 4, 1 / 4, 1 / 4],
    [1 / 2, 1 / 4, 1 / 8, 1 / 8],  # after c: a with 2 bits, b with 3
]
# predictions, objects, BOS or not, and the result: perplexity, mean over texts, bits per byte, each text, tokens
GOLDEN: dict[str, tuple[list[str], list[str] | None, bool, tuple[float, float, float, list[float], int]]] = {
    # 1 + 3 and 3 bits: 2 ** (7 / 3), (2 ** 2 + 2 ** 3) / 2, 7 bits in 3 + 1 bytes
    "with BOS": (["a b", "c"], None, True, (2 ** (7 / 3), 6, 7 / 4, [4, 8], 3)),
    # 3 and 2 + 2 bits: the first word is not predicted, but its bytes were read
    "without BOS": (["a b", "a c a"], None, False, (2 ** (7 / 3), 6, 7 / 8, [8, 4], 3)),
    # 3 and 2 bits, of one byte each
    "objects alone": (["a b", "c a"], ["b", "a"], True, (2**2.5, 6, 5 / 2, [8, 4], 2)),
    "only objects, without BOS": (["a b", "c a"], ["b", "a"], False, (2**2.5, 6, 5 / 2, [8, 4], 2)),
    # 2 + 2 and 3 bits, in 3 + 1 bytes
    "an object of two words": (["a c a", "c b"], ["c a", "b"], True, (2 ** (7 / 3), 6, 7 / 4, [4, 8], 3)),
}


@pytest.mark.parametrize(("predictions", "objects", "bos", "expected"), GOLDEN.values(), ids=GOLDEN)
def test_a_hand_set_bigram(
    metric: Metric, predictions: list[str], objects: list[str] | None, bos: bool, expected: tuple[Any, ...]
) -> None:
    tokenizer = words("<s>", "a", "b", "c", bos=bos)
    result = metric.compute(predictions=predictions, objects=objects, model=bigram(HALVES), tokenizer=tokenizer)
    assert list(result) == KEYS
    for key, value in zip(KEYS, expected, strict=True):
        assert result[key] == pytest.approx(value, rel=1e-5), key


def expected(nlls: list[list[float]], texts: list[str]) -> dict[str, Any]:
    total, tokens = sum(map(sum, nlls)), sum(map(len, nlls))
    each = [math.exp(sum(nll) / len(nll)) for nll in nlls]
    values = (
        math.exp(total / tokens),
        sum(each) / len(each),
        total / LN2 / sum(len(text.encode()) for text in texts),
        each,
        tokens,
    )
    return dict(zip(KEYS, values, strict=True))


def assert_same(result: dict[str, Any], other: dict[str, Any]) -> None:
    """Compare up to the rounding of float32."""
    assert result.keys() == other.keys()
    for key, value in other.items():
        assert result[key] == pytest.approx(value, rel=2e-5), key


@pytest.mark.parametrize(
    ("kind", "objects"), [("gpt2", None), ("llama", None), *((kind, OBJECTS) for kind in tiny_models.KINDS)]
)
def test_numbers_are_those_of_plain_transformers_one_text_at_a_time(
    metric: Metric, models: dict[str, Path], kind: str, objects: list[str] | None
) -> None:
    """T5 scores the object after <extra_id_0>; other models score the tokens that overlap " OBJECT"."""
    plain = load(models[kind])
    asked = [(f"{s} {r}", f" {o}") if objects else ("", f"{s} {r} {o}") for s, r, o in FACTS]
    wanted = expected([nlls(*plain, *texts) for texts in asked], objects or PROBES)
    for batch_size in (1, 2, 7, None):
        result = metric.compute(predictions=PROBES, objects=objects, model=str(models[kind]), batch_size=batch_size)
        assert_same(result, wanted)


def test_a_path_a_name_and_a_loaded_model_are_the_same(
    metric: Metric, models: dict[str, Path], tmp_path: Path
) -> None:
    folder = models["gpt2"]
    model, tokenizer = load(folder)
    bare = tmp_path / "bare"
    model.save_pretrained(bare)
    result = metric.compute(predictions=PROBES, model=str(folder))
    for same in (
        {"model": folder},
        {"model": folder, "device": "cpu"},
        {"model": model, "tokenizer": tokenizer},
        {"model": model, "tokenizer": tokenizer, "device": "cpu"},
        {"model": bare, "tokenizer": tokenizer},  # a folder without a tokenizer
    ):
        assert_same(metric.compute(predictions=PROBES, **same), result)  # the folder's may be on a GPU


def test_a_loaded_model_is_neither_copied_nor_changed(
    metric: Metric, models: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, tokenizer = load(models["gpt2"])

    def refuse(*args: Any) -> Any:
        raise AssertionError("a large model must not be copied")

    for way in ("__reduce__", "__reduce_ex__", "__getstate__", "__deepcopy__", "__copy__"):
        monkeypatch.setattr(GPT2LMHeadModel, way, refuse, raising=False)
    with pytest.raises(AssertionError):
        copy.deepcopy(model)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    used = []
    model.transformer.register_forward_hook(lambda *args: used.append(1))
    results = []
    for training in (True, False):  # dropout is never used
        model.train(training).transformer.h[1].eval()
        results.append(metric.compute(predictions=PROBES, model=model, tokenizer=tokenizer))
        assert model.training is model.transformer.h[0].training is training
        assert not model.transformer.h[1].training
    assert results[0] == results[1] and used
    assert all(parameter.requires_grad and parameter.grad is None for parameter in model.parameters())
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no predictions": ({"predictions": []}, "no predictions: there is nothing to score"),
    "one string": ({"predictions": "ab"}, "predictions: expected a list of strings, not str"),
    "a number": ({"predictions": ["a", 1961]}, r"predictions\[1\]: expected a string, not int"),
    "bytes": ({"predictions": b"ab"}, "predictions: expected a list of strings, not bytes"),
    "half a character": ({"predictions": ["a", "b\ud83d"]}, r"predictions\[1\]: 'b\\ud83d' is not valid Unicode"),
    "an empty text": ({"predictions": ["a", ""]}, r"predictions\[1\] '' cannot be scored: .* no token to predict"),
    "too long a text": (
        {"predictions": ["a", "9 " * 300]},
        r"predictions\[1\] '9 9 .* longer than the model's context",
    ),
    "objects of another length": ({"objects": ["b"] * 2}, "1 predictions and 2 objects: each text needs one of each"),
    "objects that are one string": ({"objects": "b"}, "objects: expected a list of strings, not str"),
    "another object": ({"objects": ["c"]}, r"predictions\[0\] 'a b' does not end with a space and objects\[0\] 'c'"),
    "an object alone": ({"predictions": ["b"], "objects": ["b"]}, r"predictions\[0\] 'b' does not end with a space"),
    "a precision": ({"precision": "fp16"}, "precision must be fp32 or bf16, not 'fp16'"),
    "no batch": ({"batch_size": 0}, "batch_size must be a whole number from 1, not 0"),
    "no device": ({"device": "abacus"}, "device 'abacus': "),
    "a device that is not there": ({"device": "cuda:99"}, "device 'cuda:99': "),
    "an unknown folder": ({"model": "./no/such/folder"}, "no/such/folder: no such folder"),
    "a folder without a model": ({"model": "tests"}, "tests: the folder holds no checkpoint"),
    "an unknown model": ({"model": "acme/none"}, "acme/none: cannot load a .*"),
    "no such package": ({"model": "package:no-such-gguf"}, "package:no-such-gguf: no such package is installed"),
    "nothing": ({"model": None}, "expected the name of a language model or a loaded one, not NoneType"),
    "a model without a head": (
        {"model": GPT2Model(GPT2Config(n_layer=0, n_embd=4, n_head=1, vocab_size=4, n_positions=4, bos_token_id=0))},
        "expected the name of a language model or a loaded one, not GPT2Model",
    ),
    "no tokenizer": ({"model": uniform(3)}, "a loaded model needs its tokenizer"),
    "nothing to predict": (
        {"model": uniform(3), "tokenizer": words("<s>", "a", "b", bos=False), "predictions": ["a b", "b"]},
        r"predictions\[1\] 'b' cannot be scored: .* no token to predict",
    ),
    "not a tokenizer": ({"model": uniform(3), "tokenizer": "gpt2"}, "str is not a fast tokenizer"),
}


@pytest.mark.parametrize(("inputs", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_wrong_is_said_in_one_line(
    metric: Metric, models: dict[str, Path], inputs: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message) as error:
        metric.compute(**{"predictions": ["a b"], "model": models["gpt2"]} | inputs)
    assert "\n" not in str(error.value)


def test_an_encoder_decoder_model_asks_for_objects(metric: Metric, models: dict[str, Path]) -> None:
    with pytest.raises(ValueError, match=r"an encoder-decoder model needs objects=\[\.\.\.\], the last words"):
        metric.compute(predictions=PROBES, model=models["t5"])


def test_damaged_weights_give_no_number(metric: Metric, models: dict[str, Path]) -> None:
    model, tokenizer = load(models["gpt2"])
    model.train()
    with torch.no_grad():
        model.transformer.h[2].mlp.c_fc.weight[0, 0] = math.nan
    with pytest.raises(ValueError, match="no finite probability for 'Anna"):
        metric.compute(predictions=PROBES[:1], model=model, tokenizer=tokenizer)
    assert model.training


# State of `evaluate` between calls


def test_texts_that_are_added_count_once_and_with_their_objects(metric: Metric, models: dict[str, Path]) -> None:
    model, tokenizer = load(models["t5"])
    inputs = {"objects": OBJECTS, "model": model, "tokenizer": tokenizer}
    result = metric.compute(predictions=PROBES, **inputs)
    metric.add(prediction=PROBES[0])
    metric.add_batch(predictions=np.array(PROBES[1:4]))
    with pytest.raises(ValueError, match=r"predictions\[1\]: expected a string, not float"):
        metric.add_batch(predictions=["a", math.nan])
    metric.add_batch(predictions=iter(PROBES[4:]))
    assert metric.compute(**inputs) == result
    assert metric.compute(predictions=PROBES, **inputs) == result


@pytest.mark.parametrize(
    ("wrong", "in_memory"),
    [
        ({"predictions": ["a", 1]}, False),
        ({"predictions": ["a", ""]}, False),
        ({"predictions": ["a", ""]}, True),
        ({"predictions": []}, True),
        ({"device": "abacus"}, True),
        ({"x": 1}, True),
    ],
)
def test_a_call_that_failed_leaves_no_texts_behind(
    models: dict[str, Path], monkeypatch: pytest.MonkeyPatch, wrong: dict[str, Any], in_memory: bool
) -> None:
    monkeypatch.chdir(ROOT)
    metric = evaluate.load("eval_harness/metrics/knowledge_perplexity", keep_in_memory=in_memory)
    model, tokenizer = load(models["gpt2"])
    inputs = {"predictions": PROBES, "model": model, "tokenizer": tokenizer}
    with pytest.raises((ValueError, TypeError)):
        metric.compute(**inputs | wrong)
    result = metric.compute(**inputs)
    assert len(result["perplexities"]) == len(PROBES)
    assert metric.compute(**inputs) == result
