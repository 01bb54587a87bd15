"""A score depends only on model and text, not on batches, layout, padding or splits."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import plain_transformers
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from peft import PromptTuningConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

from temporalwiki.base.errors import InputError
from temporalwiki.eval_harness import scoring
from temporalwiki.eval_harness.scoring import Scorer, Text, TokenScores

import tiny_models
from tiny_methods import ARCHITECTURES, METHODS, architecture, sharpened, with_method

DECODERS = ("gpt2", "llama")
KINDS = tiny_models.KINDS
TOKENIZERS = {kind: tiny_models.tokenizer(kind) for kind in KINDS}

PROBES = [
    Text("", "The capital of Norland is Easton"),
    Text("", "The capital of Norland was Weston"),
    Text("The capital of Norland is", " Easton"),
    Text("The capital of Norland is", " W"),
    Text("", "Anna Weber was born in Zürich, 東京"),
    Text("Anna Weber was born in", " 東京"),
    Text("Anna", " "),
    Text("", "x"),
    Text("The capital", " of Norland is Easton. Anna Weber was born in 1961 and lives in Easton"),
]


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> None:
    torch.set_num_threads(1)


sharp = partial(sharpened, std=0.3)
MODELS = {kind: sharp(tiny_models.model(kind, len(TOKENIZERS[kind]))) for kind in KINDS}
SHARED = {kind: Scorer(MODELS[kind], TOKENIZERS[kind]) for kind in KINDS}
TREES = Scorer(MODELS["llama"], TOKENIZERS["llama"])
TREES._layouts = (64,)


def llama(vocabulary: int, **more: Any) -> LlamaForCausalLM:
    size = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
    return sharp(LlamaForCausalLM(LlamaConfig(vocab_size=vocabulary, **{**size, "bos_token_id": 0, **more})))


def without_bos() -> Any:
    tokenizer = tiny_models.tokenizer("llama")
    tokenizer.bos_token = None
    return tokenizer


def scores(scorer: Scorer, texts: list[Text]) -> list[TokenScores | None]:
    pairs = [pair for batch in scorer.score(texts) for pair in batch]
    assert len(pairs) == len(dict(pairs))
    return [dict(pairs).get(i) for i in range(len(texts))]


def found(scorer: Scorer, texts: Sequence[Text] = PROBES) -> list[np.ndarray]:
    return [score.nll for score in scores(scorer, list(texts)) if score is not None]


def nlls(model: Any, tokenizer: Any, texts: Sequence[Text] = PROBES, precision: str = "fp32") -> list[np.ndarray]:
    return found(Scorer(model, tokenizer, precision), texts)


def expected(model: Any, tokenizer: Any, texts: Sequence[Text] = PROBES) -> list[np.ndarray]:
    """Return the scores of texts that can be scored (T5 has no token for a space)."""
    return [
        np.array(nll)
        for text in texts
        if (nll := plain_transformers.nlls(model, tokenizer, text.context, text.target))
    ]


@cache
def of_probes(kind: str) -> list[np.ndarray]:
    return expected(MODELS[kind], TOKENIZERS[kind])


def listen(model: Any, hear: Callable[[torch.Tensor], None]) -> Any:
    """Call ``hear`` with the inputs of the model; return the hook."""

    def note(_: Any, _args: Any, inputs: dict[str, Any]) -> None:
        for name in ("input_ids", "decoder_input_ids"):
            if name in inputs:
                hear(inputs[name])

    return model.register_forward_pre_hook(note, with_kwargs=True)


def same(got: list[np.ndarray], exact: list[np.ndarray], tolerance: float = 1e-5) -> None:
    assert [len(nll) for nll in got] == [len(nll) for nll in exact]
    for nll, other in zip(got, exact, strict=True):
        np.testing.assert_allclose(nll, other, rtol=tolerance, atol=tolerance)


# Definition of a score


@pytest.mark.parametrize("kind", KINDS)
def test_equal_to_plain_transformers_one_text_at_a_time(kind: str) -> None:
    assert np.ptp(np.concatenate(of_probes(kind))) > 1
    same(nlls(MODELS[kind], TOKENIZERS[kind]), of_probes(kind))


def test_probabilities_set_by_hand() -> None:
    follows = [[1 / 8, 1 / 2, 1 / 4, 1 / 8], [1 / 4] * 4, [1 / 16, 3 / 4, 1 / 8, 1 / 16], [1 / 4] * 4]  # <s>, x, y, z
    expected = {
        ("", "x"): [1 / 2],
        ("", "y x"): [1 / 4, 3 / 4],
        ("", "y y z"): [1 / 4, 1 / 8, 1 / 16],
        ("y", " x"): [3 / 4],
        ("x y", " x z"): [3 / 4, 1 / 4],
    }
    tokenizer = tiny_models.words("<s>", "x", "y", "z", bos=True)
    got = nlls(tiny_models.bigram(follows), tokenizer, [Text(*text) for text in expected])
    same([np.exp(-nll) for nll in got], [np.array(p) for p in expected.values()], 1e-6)


@pytest.mark.parametrize(
    ("context", "target", "offsets"),
    [
        ("Anna", " Weber", [(4, 10)]),
        ("Anna ", "Weber", [(4, 10)]),  # its token begins with the context's last character, and counts
        ("Anna W", "eber", [(4, 10)]),
        ("", "Anna", [(0, 2), (2, 4)]),
        ("A b", " c", [(3, 4), (4, 5)]),
        ("A b", "c", [(3, 4)]),
        ("A", " ", [(1, 2)]),
        ("A", " 東", [(1, 2), (2, 3), (2, 3), (2, 3)]),  # a character of three bytes; each byte is a token
        ("東", "京", [(1, 2)] * 3),
    ],
)
def test_the_tokens_of_a_target_are_those_that_overlap_it(
    context: str, target: str, offsets: list[tuple[int, int]]
) -> None:
    [score] = scores(SHARED["gpt2"], [Text(context, target)])
    assert score is not None
    assert [tuple(pair) for pair in score.offsets.tolist()] == offsets
    assert len(score.nll) == len(offsets)


@settings(max_examples=25)
@given(st.text("aé東🜚 ", min_size=1, max_size=8), st.data())
def test_a_split_moves_tokens_between_context_and_target_and_changes_none(whole: str, data: Any) -> None:
    scorer, cut = SHARED["llama"], data.draw(st.integers(0, len(whole)))
    everything, target = scores(scorer, [Text("", whole), Text(whole[:cut], whole[cut:])])
    assert everything is not None
    in_context = everything.offsets[:, 1] <= cut
    if target is None:
        assert in_context.all()
    else:
        assert (target.offsets == everything.offsets[~in_context]).all()
        assert target.nll.sum() + everything.nll[in_context].sum() == pytest.approx(everything.nll.sum(), rel=1e-5)


def test_without_bos_the_first_token_is_read_and_not_scored() -> None:
    model, tokenizer = MODELS["llama"], without_bos()
    texts = [Text("", "Anna"), Text("", "x"), Text("A", "nna"), Text("An", "na"), Text("", "")]
    assert [len(tokenizer(text.context + text.target).input_ids) for text in texts] == [2, 1, 2, 2, 0]
    got = scores(Scorer(model, tokenizer), texts)
    assert [score and score.offsets.tolist() for score in got] == [[[2, 4]], None, [[2, 4]], [[2, 4]], None]
    same([score.nll for score in got if score], expected(model, tokenizer, texts[:1]) * 3)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_said_of_nothing(kind: str) -> None:
    texts = [Text("", ""), Text("Anna", ""), Text("Anna", " was")]
    assert [score is None for score in scores(Scorer(MODELS[kind], TOKENIZERS[kind]), texts)] == [True, True, False]
    assert list(Scorer(MODELS[kind], TOKENIZERS[kind]).score([])) == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("hostile", ["<|endoftext|>", "<s>", "</s>", "<extra_id_5>", "<pad>"])
def test_what_looks_like_a_special_token_is_spelled(kind: str, hostile: str) -> None:
    """A special token within a text is read as plain letters, in context and target."""
    scorer, tokenizer = SHARED[kind], TOKENIZERS[kind]
    read: list[int] = []

    def times(text: Text) -> int:
        """Count how often the model reads the special token instead of its letters."""
        read.clear()
        list(scorer.score([text]))
        return read.count(tokenizer.convert_tokens_to_ids(hostile))

    hook = listen(scorer.model, lambda ids: read.extend(ids.flatten().tolist()))
    for context, target in [("Anna", " is {} is"), ("Anna {}", " is"), ("", "{} is")]:
        texts = [Text(context.format(word), target.format(word)) for word in (hostile, "xx")]
        assert times(texts[0]) == times(texts[1]), texts[0]
    hook.remove()
    [score] = scores(scorer, [Text("", hostile)])
    assert score is not None
    assert len(score.nll) > len(hostile) / 2


# Encoder-decoder models


def test_t5_reads_the_context_with_one_sentinel_in_it() -> None:
    model, tokenizer = MODELS["t5"], TOKENIZERS["t5"]
    texts = [
        Text("<extra_id_0> is the capital of Norland", "Easton"),
        Text("The capital of Norland is <extra_id_0> .", "Easton"),
        Text("The capital of Norland is", "Easton"),
        Text("The capital of Norland is <extra_id_0>", "Easton"),
        Text("The capital of Norland is  ", "Easton"),
    ]
    got = nlls(model, tokenizer, texts)
    same(got, expected(model, tokenizer, texts))
    same(got[3:], [got[2]] * 2)
    assert abs(got[0].sum() - got[1].sum()) > 0.1
    [score] = scores(Scorer(model, tokenizer), texts[:1])
    assert score is not None
    assert score.offsets[-1].tolist() == [5, 6]


def test_an_encoder_decoder_model_needs_a_sentinel() -> None:
    scorer = Scorer(MODELS["t5"], TOKENIZERS["llama"])
    with pytest.raises(InputError, match="the tokenizer has no <extra_id_0>"):
        list(scorer.score(PROBES))


# Independence of batches and layout


def reversed_order(scorer: Scorer) -> list[np.ndarray]:
    return found(scorer, PROBES[::-1])[::-1]


def one_by_one(scorer: Scorer) -> list[np.ndarray]:
    return [nll for text in PROBES for nll in found(scorer, [text])]


def among_others(scorer: Scorer) -> list[np.ndarray]:
    others = [Text("", f"The capital of {name} is Easton and was born" * times) for name in "ab" for times in (1, 4)]
    return found(scorer, [*others, *PROBES])[4:]


def twice(scorer: Scorer) -> list[np.ndarray]:
    got = found(scorer, PROBES * 2)
    same(got[: len(got) // 2], got[len(got) // 2 :])
    return got[: len(got) // 2]


def by_three_processes(scorer: Scorer) -> list[np.ndarray]:
    parts = [[pair for batch in scorer.score(PROBES, (i, 3)) for pair in batch] for i in range(3)]
    got = dict(parts[0] + parts[1] + parts[2])
    assert len(got) == sum(map(len, parts))
    return [got[i].nll for i in sorted(got)]


def without_those_kept(scorer: Scorer) -> list[np.ndarray]:
    got = {}
    for kept in ({0, 3, 6}, {1, 2, 4, 5, 7, 8, 9}):
        part = dict(pair for batch in scorer.score(PROBES, kept=kept) for pair in batch)
        assert not kept & part.keys()
        got |= part
    return [got[i].nll for i in sorted(got)]


def of_a_model_in_training(scorer: Scorer) -> list[np.ndarray]:
    return nlls(scorer.model.train(), scorer.tokenizer)


WAYS = (
    reversed_order,
    one_by_one,
    among_others,
    twice,
    by_three_processes,
    without_those_kept,
    of_a_model_in_training,
)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_not_on_what_else_is_scored(kind: str, way: Callable[[Scorer], list[np.ndarray]]) -> None:
    same(way(Scorer(MODELS[kind], TOKENIZERS[kind])), of_probes(kind))


@pytest.mark.parametrize(
    ("kind", "layout", "batch"),
    [
        ("gpt2", 8, 1),
        ("gpt2", 8, 64),
        ("llama", 40, 4096),  # several rows at once, as a GPU gets them
        ("llama", 0, 1),
        ("gpt2", 0, 100),
        ("llama", 0, 4096),
        ("t5", 0, 1),
        ("t5", 0, 100),
        ("t5", 0, 4096),
    ],
)
def test_not_on_rows_batches_and_trees(kind: str, layout: int, batch: int) -> None:
    scorer = Scorer(MODELS[kind], TOKENIZERS[kind])
    scorer.__dict__.update(_layouts=(layout,), _batch=batch)
    same(found(scorer), of_probes(kind))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("side", ["left", "right"])
def test_not_on_the_tokenizers_padding_and_truncation(kind: str, side: str) -> None:
    tokenizer = tiny_models.tokenizer(kind)
    tokenizer.padding_side = tokenizer.truncation_side = side
    tokenizer.model_max_length = 4
    tokenizer(["Anna", "Anna Weber was born"], padding=tokenizer.pad_token is not None, truncation=True)
    same(nlls(MODELS[kind], tokenizer), of_probes(kind))


@settings(max_examples=25)
@given(st.lists(st.tuples(st.text("ab ", max_size=6), st.text("abé", max_size=6)), min_size=1, max_size=8))
def test_texts_that_begin_alike_score_in_a_tree_as_alone(pairs: list[tuple[str, str]]) -> None:
    texts = [Text(*pair) for pair in pairs]
    same(found(TREES, texts), expected(MODELS["llama"], TOKENIZERS["llama"], texts))


@pytest.mark.parametrize("kind", DECODERS)
def test_sixty_candidates_of_a_prompt_are_read_and_the_prompt_once(kind: str) -> None:
    model, tokenizer = MODELS[kind], TOKENIZERS[kind]
    prompt = "Anna Weber was born in Norland and lives in Easton, the capital of"
    names = ["Norland", "Nor", *(a + b for a in "abcdefgh" for b in "ijklmno")]
    texts = [Text(prompt, f" {name}") for name in [*names, *names[:2]]]
    assert len(texts) == 60
    scorer = SHARED[kind]
    found(scorer, texts)  # the first call tests how the model reads trees
    read, asked = [], []
    hooks = [
        listen(model, lambda ids: read.append(ids.numel())),
        model.get_output_embeddings().register_forward_hook(lambda _, args, out: asked.append(out.shape[:-1].numel())),
    ]
    got = found(scorer, texts)
    for hook in hooks:
        hook.remove()
    same(got, expected(model, tokenizer, texts))
    ids = [(0, *tokenizer(text.context + text.target, add_special_tokens=False).input_ids) for text in texts]
    before = len(tokenizer(prompt, add_special_tokens=False).input_ids)
    assert sum(read) == len({one[:n] for one in ids for n in range(1, len(one))})
    assert sum(asked) == len({one[:n] for one in ids for n in range(before + 1, len(one))})


NAMES = [a + b for a in "abcdefghijklmnopqrst" for b in "abcdefghijklmno"]
LAYOUTS = {
    "one text": ([Text("", "Anna Weber was born in Norland")], 0),
    "a few texts share less than a trial reads": (PROBES, 0),
    "many short texts share little": ([Text("", f"{name} was born in {name[::-1]}") for name in NAMES], 64),
    "many texts share long prompts": (
        [Text(f"{i} {'x' * 150} is", f" {name}") for i in range(9) for name in NAMES[:100]],
        256,
    ),
}


@pytest.mark.parametrize("case", LAYOUTS)
def test_the_layout_follows_from_what_texts_share(case: str) -> None:
    """A trial reads at most three times as many tokens as a row; one text a row needs none."""
    texts, layout = LAYOUTS[case]
    tokenizer = TOKENIZERS["llama"]
    scorer = Scorer(llama(len(tokenizer), max_position_embeddings=1024), tokenizer)
    read: list[int] = []
    listen(scorer.model, lambda ids: read.append(ids.numel()))
    tokens = {i: made for i, made in enumerate(scorer._tokens(texts)) if made is not None}
    assert scorer._layout(tokens) == layout
    assert (sum(read) > 0) == (layout > 0)
    assert sum(read) <= 3 * layout


# Lengths


def test_a_text_may_be_as_long_as_the_context_and_no_longer() -> None:
    """A text may be one token longer than the context, because its last token is only predicted."""
    tokenizer = TOKENIZERS["gpt2"]
    model = llama(len(tokenizer), max_position_embeddings=16)
    texts = [Text("", "x" * 16), Text("", "x" * 17), Text("x" * 14, "yz"), Text("x" * 15, "yz"), Text("", "y")]
    got = scores(Scorer(model, tokenizer), texts)
    assert [score is None for score in got] == [False, True, False, True, False]
    same([score.nll for score in got if score], expected(model, tokenizer, [texts[i] for i in (0, 2, 4)]))
    got = scores(Scorer(model, without_bos()), [Text("", "x" * 17), Text("", "x" * 18)])
    assert [score is None for score in got] == [False, True]


def test_texts_longer_than_a_row() -> None:
    tokenizer = TOKENIZERS["gpt2"]
    model = llama(len(tokenizer), max_position_embeddings=1024)
    long = "".join(np.random.default_rng(0).choice(list("abcdefgh "), 700))
    texts = [Text("", long), Text(long, "xy"), Text(long[:600], "z"), Text(long[:3], "z"), Text(long[:-5], long[-5:])]
    same(nlls(model, tokenizer, texts), expected(model, tokenizer, texts), 2e-5)


# Precision, memory, faults


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("kind", KINDS)
def test_bf16_is_close(kind: str, attention: str) -> None:
    model = sharp(tiny_models.model(kind, len(TOKENIZERS[kind])))
    model.set_attn_implementation(attention)
    got = np.array([nll.sum() for nll in nlls(model, TOKENIZERS[kind], precision="bf16")])
    exact = np.array([nll.sum() for nll in of_probes(kind)])
    np.testing.assert_allclose(got, exact, rtol=2e-2)
    assert abs(got - exact).max() > 1e-3
    assert next(model.parameters()).dtype == torch.float32


@pytest.mark.parametrize("kind", KINDS)
def test_weights_in_bf16_are_close(kind: str) -> None:
    model = sharp(tiny_models.model(kind, len(TOKENIZERS[kind]))).to(torch.bfloat16)
    got = [nll.sum() for nll in nlls(model, TOKENIZERS[kind])]
    np.testing.assert_allclose(got, [nll.sum() for nll in of_probes(kind)], rtol=3e-2)


def broken(kind: str, error: BaseException, most: int) -> Scorer:
    """Make a model raise an error if it reads more tokens than this."""
    model = tiny_models.model(kind, len(TOKENIZERS[kind]))
    model.load_state_dict(MODELS[kind].state_dict())

    def refuse(ids: torch.Tensor) -> None:
        if ids.numel() > most:
            raise error

    listen(model, refuse)
    scorer = Scorer(model, TOKENIZERS[kind])
    layout = 0 if kind == "t5" else 30
    scorer.__dict__.update(_layouts=(layout,), _reads={layout: True}, _batch=4096)
    return scorer


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.fault("too little memory", "evaluate: a batch is too large", "it is halved, and the scores are the same")
def test_where_memory_is_short_batches_are_halved(kind: str) -> None:
    scorer = broken(kind, torch.OutOfMemoryError("CUDA out of memory"), 80)
    same(found(scorer), of_probes(kind))
    with pytest.raises(InputError, match="no memory left on cpu"):
        list(scorer.score([Text("", "x" * 90)]))


@pytest.mark.parametrize("error", [KeyError("a fault"), KeyboardInterrupt()])
@pytest.mark.parametrize("kind", KINDS)
def test_the_output_layer_is_left_as_it_was(kind: str, error: BaseException) -> None:
    scorer = broken(kind, error, 80)
    output = scorer.model.get_output_embeddings()
    for texts in (PROBES[:1], [Text("", "x" * 90)]):
        with suppress(type(error)):
            list(scorer.score(texts))
        assert not output._forward_pre_hooks
    with pytest.raises(type(error)):
        list(scorer.score(texts))


@pytest.mark.parametrize("kind", KINDS)
def test_a_score_that_is_no_number_is_an_error_that_names_the_text(kind: str) -> None:
    tokenizer = TOKENIZERS[kind]
    model = sharp(tiny_models.model(kind, len(tokenizer)))
    bad = tokenizer("7", add_special_tokens=False).input_ids[-1]
    with torch.no_grad():
        model.get_input_embeddings().weight[bad] = float("nan")
    with pytest.raises(InputError, match="no finite probability for 'Anna was born in 1977'") as caught:
        list(Scorer(model, tokenizer).score([Text("Anna was born in", " 1977")]))
    assert "\n" not in str(caught.value)


# Models


@pytest.mark.parametrize(("method", "kind"), METHODS)
def test_models_of_all_methods(method: str, kind: str, tmp_path: Path) -> None:
    tokenizer = TOKENIZERS[kind]
    model = with_method(method, sharp(tiny_models.model(kind, len(tokenizer))), kind, tmp_path)
    exact = expected(model, tokenizer)
    assert max(abs(nll - plainly).max() for nll, plainly in zip(exact, of_probes(kind), strict=True)) > 0.1
    scorer = Scorer(model, tokenizer)
    same(found(scorer), exact)
    for layout in scorer._layouts[:2]:
        assert scorer._can_read(layout)


def test_prompt_tuning_is_refused() -> None:
    model = get_peft_model(
        tiny_models.model("llama", 400), PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=4)
    )
    with pytest.raises(InputError, match="PROMPT_TUNING adds tokens to the text"):
        Scorer(model, TOKENIZERS["llama"])


WITH_TREES = {"OPT", "GPTNeoX", "GPTJ", "Qwen3", "Qwen3Moe", "Cohere"}


@pytest.mark.parametrize("name", [name for name in ARCHITECTURES if name != "RecurrentGemma"])
def test_whatever_the_architecture(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Models that support prefix trees are detected, independent of the first text."""
    tokenizer = TOKENIZERS["gpt2"]
    model = sharp(architecture(name, len(tokenizer)))
    long = "The capital of Norland is Easton, qx zj kv wq"
    texts = [*PROBES[:7], Text("", long), Text(long, " and"), Text(long[:9], " was"), Text("The capital", "x" * 40)]
    scorer = Scorer(model, tokenizer)
    monkeypatch.setattr(scoring, "_cost", lambda _, layout: -layout)  # trees wherever the model reads them
    same(found(scorer, texts[:1]) + found(scorer, texts[1:]), expected(model, tokenizer, texts))
    assert scorer._can_read(64) == (name in WITH_TREES)


def test_texts_beyond_a_sliding_window_are_never_in_a_row_that_branches() -> None:
    """With a sliding window of a row's length, short texts share rows, and long texts use the model's mask."""
    tokenizer = TOKENIZERS["gpt2"]
    model = sharp(architecture("Mistral", len(tokenizer), sliding_window=32))
    long = "".join(np.random.default_rng(0).choice(list("abcdefgh"), 60))
    texts = [Text("", long), Text(long, "x"), Text(long[:50], "xy"), *(Text(long[:n], "x") for n in range(31))]
    scorer = Scorer(model, tokenizer)
    scorer.__dict__.update(_layouts=(32,), _batch=4096)
    same(found(scorer, texts), expected(model, tokenizer, texts))
    texts = [Text(long[:20], "!!"), Text("", long)]  # in this order, and with room for the first alone
    same(found(scorer, texts), expected(model, tokenizer, texts))


def test_what_numbers_depend_on_is_said() -> None:
    assert SHARED["llama"].policy == {"scoring": 1, "starts_with": "<s>", "precision": "fp32"}
    assert Scorer(MODELS["llama"], without_bos(), "bf16").policy == {
        "scoring": 1,
        "starts_with": None,
        "precision": "bf16",
    }
    assert SHARED["t5"].policy["starts_with"] == "<extra_id_0>"
