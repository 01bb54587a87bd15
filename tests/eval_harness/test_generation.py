"""Answers equal those to a single prompt from plain transformers, up to the end of the sentence."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from plain_transformers import continuation
from transformers import GenerationConfig

from temporalwiki.base.errors import InputError
from temporalwiki.eval_harness import generation
from temporalwiki.eval_harness.answers import answer
from temporalwiki.eval_harness.generation import Generator

import tiny_models
from tiny_methods import METHODS, architecture, sharpened, with_method

KINDS = tiny_models.KINDS
TOKENIZERS = {kind: tiny_models.tokenizer(kind) for kind in KINDS}
PROMPTS = [
    "The capital of Norland is",
    "A",
    "Anna Weber was born in",
    "Anna Weber was born in 1961 and lives in Easton, Norland. The capital of Norland is Easton, and Anna lives in",
    "The capital of",
    "the capital of",
    "東京",
    "in <s> and <|endoftext|>",
    "A",
]


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> None:
    torch.set_num_threads(1)


def sharp(model: Any) -> Any:
    """Return a model with varied answers that stops at any of many tokens."""
    model.generation_config = GenerationConfig(eos_token_id=[1, *range(40, 60)], pad_token_id=0)
    return sharpened(model, std=0.4, seed=3)


def made(kind: str) -> Any:
    model = sharp(tiny_models.model(kind, len(TOKENIZERS[kind])))
    if kind == "t5":
        model.generation_config.decoder_start_token_id = 0
    return model


MODELS = {kind: made(kind) for kind in KINDS}


def answers(generator: Generator, prompts: Sequence[str] = PROMPTS) -> list[str | None]:
    pairs = [pair for batch in generator.generate(prompts) for pair in batch]
    assert len(pairs) == len(dict(pairs))
    return [dict(pairs).get(i) for i in range(len(prompts))]


def alone(
    model: Any, tokenizer: Any, new: int = 12, beams: int = 1, prompts: Sequence[str] = PROMPTS
) -> list[str | None]:
    """Return the answers of transformers' own decoding, one prompt at a time."""
    ends = tuple(model.generation_config.eos_token_id)
    return [answer(continuation(model, tokenizer, prompt, new, beams, ends)) for prompt in prompts]


@cache
def of_prompts(kind: str, new: int, beams: int) -> list[str | None]:
    return alone(MODELS[kind], TOKENIZERS[kind], new, beams)


def listen(model: Any) -> list[torch.Tensor]:
    """Records the inputs of the model, or of its decoder, at each step."""
    heard: list[torch.Tensor] = []

    def note(_: Any, _args: Any, inputs: dict[str, Any]) -> None:
        heard.append(inputs["decoder_input_ids" if model.config.is_encoder_decoder else "input_ids"])

    model.register_forward_pre_hook(note, with_kwargs=True)
    return heard


# Answers


@pytest.mark.parametrize("new", [1, 8])
@pytest.mark.parametrize("kind", KINDS)
def test_equal_to_transformers_one_prompt_at_a_time(kind: str, new: int) -> None:
    assert len(set(of_prompts(kind, new, 1))) >= (3 if new == 1 else 5)
    assert answers(Generator(MODELS[kind], TOKENIZERS[kind], new)) == of_prompts(kind, new, 1)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_end_at_different_steps(kind: str) -> None:
    """The models give answers of different lengths, otherwise the tests of batches would show little."""
    model = made(kind)
    heard = listen(model)
    answers(Generator(model, TOKENIZERS[kind], 12))
    rows = [len(step) for step in heard]
    assert rows == sorted(rows, reverse=True)
    assert len(set(rows)) >= 4


@pytest.mark.parametrize(("tokens", "beams"), [(1, 1), (60, 1), (1 << 13, 1), (60, 2)])
@pytest.mark.parametrize("kind", KINDS)
def test_whatever_the_batch(kind: str, tokens: int, beams: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(generation._TOKENS, "cpu", tokens)
    generator = Generator(MODELS[kind], TOKENIZERS[kind], 6, beams)
    expected = of_prompts(kind, 6, beams)
    assert answers(generator) == expected
    assert answers(generator, PROMPTS[::-1]) == expected[::-1]
    parts = [[pair for batch in generator.generate(PROMPTS, (i, 3)) for pair in batch] for i in range(3)]
    assert sorted(parts[0] + parts[1] + parts[2]) == list(enumerate(expected))
    assert answers(generator, []) == []
    rest = [pair for batch in generator.generate(PROMPTS, kept={1, 2}) for pair in batch]
    assert sorted(rest) == [(i, said) for i, said in enumerate(expected) if i not in (1, 2)]


@pytest.mark.parametrize("beams", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_how_a_model_is_used_to_decode_does_not_matter(kind: str, beams: int) -> None:
    """A checkpoint's own generation settings (sampling, penalties, lengths) do not apply, and stay unchanged."""
    model = made(kind)
    ends = model.generation_config.eos_token_id
    mine = {"repetition_penalty": 9.0, "do_sample": True, "temperature": 5.0, "num_beams": 3, "length_penalty": 9.0}
    own = GenerationConfig(eos_token_id=ends, max_length=3, min_new_tokens=5, no_repeat_ngram_size=1, **mine)
    model.generation_config = own
    assert answers(Generator(model, TOKENIZERS[kind], 6, beams)) == of_prompts(kind, 6, beams)
    assert model.generation_config is own


def test_a_model_says_what_its_weights_say() -> None:
    """A bigram model where each letter has one successor."""
    tokenizer = TOKENIZERS["llama"]
    ends = ("e", "</s>"), ("f", "</s>")
    model = bigram("llama", "ax", "xy", "y.", ". ", " c", "c\n", "\na", "de", *ends, "gh", "hg")
    heard = listen(model)
    prompts = ["a", "c", "d", "f", "g"]
    assert answers(Generator(model, tokenizer, 6), prompts) == ["xy", "axy", "e", "", "hghghg"]
    # said: x y . space | newline a x y . space | e EOS | EOS | h g h g h g
    assert [len(step) for step in heard] == [5, 4, 3, 3, 2, 2]
    assert [step.shape[1] for step in heard] == [2, 1, 1, 1, 1, 1]  # BOS and the prompt, then a token a step
    assert (heard[0][:, 0] == tokenizer.bos_token_id).all()
    assert answers(Generator(model, tokenizer, 6, whole=True), prompts) == ["xy. c", "axy.", "e", "", "hghghg"]
    assert answers(Generator(model, tokenizer, 1), prompts) == ["x", "", "e", "", "h"]


@pytest.mark.parametrize("beams", [1, 2])
def test_t5_fills_the_first_sentinel_and_ends_at_the_next(beams: int) -> None:
    """The decoder starts with ``<extra_id_0>``, as in scoring."""
    sentinels = ("<pad>", "x"), ("<extra_id_0>", "a"), ("b", "<extra_id_1>"), ("<extra_id_1>", "c")
    model = bigram("t5", *sentinels, "ab", "cc", "xx")
    heard = listen(model)
    assert answers(Generator(model, TOKENIZERS["t5"], 8, beams), ["in", "is <extra_id_0> in"]) == ["ab", "ab"]
    assert heard[0][0].tolist() == TOKENIZERS["t5"].convert_tokens_to_ids(["<pad>", "<extra_id_0>"])


def bigram(kind: str, *follows: str | tuple[str, str]) -> Any:
    """Return a model with one-hot embeddings and empty layers: its output layer is the table of successors."""
    tokenizer = TOKENIZERS[kind]
    size = len(tokenizer)
    width = size + size % 2
    if kind == "t5":
        shape = {"d_model": width, "num_layers": 1, "num_heads": 1, "d_kv": 8, "d_ff": 8, "decoder_start_token_id": 0}
        t5 = transformers.T5Config(vocab_size=size, **shape)
        model: Any = transformers.T5ForConditionalGeneration(t5)
    else:
        shape = {"hidden_size": width, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
        # the tokenizer's EOS, 1, also ends an answer: a tuned model may use it
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=size, eos_token_id=2, **shape))
    model.lm_head = torch.nn.Linear(width, size, bias=False)  # T5's is its embedding
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.fill_("norm" in name)
        for module in model.modules():
            if isinstance(module, torch.nn.Embedding) and len(module.weight) == size:
                module.weight.copy_(torch.eye(size, width))
        for before, after in follows:
            one, other = (tokenizer.convert_tokens_to_ids(piece(tokenizer, part)) for part in (before, after))
            model.lm_head.weight[other, one] = 1.0
    return model.eval()


def piece(tokenizer: Any, text: str) -> str:
    """Return the single token of a text."""
    if len(text) > 1:
        return text
    return str(tokenizer.tokenize(text)[-1])


# Input


def test_a_prompt_needs_room_for_its_answer() -> None:
    tokenizer = TOKENIZERS["llama"]
    size = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 4}
    config = transformers.LlamaConfig(vocab_size=len(tokenizer), max_position_embeddings=16, **size)
    model = sharp(transformers.LlamaForCausalLM(config))
    prompts = ["x" * 11, "x" * 12, "x" * 200, "x"]  # with BOS, and four tokens more
    assert [said is None for said in answers(Generator(model, tokenizer, 4), prompts)] == [False, True, True, False]


def test_without_bos_nothing_is_no_prompt() -> None:
    tokenizer = tiny_models.tokenizer("llama")
    tokenizer.bos_token = None
    model = MODELS["llama"]
    assert answers(Generator(model, tokenizer, 6)) == alone(model, tokenizer, 6)
    with pytest.raises(InputError, match="nothing to read, and the tokenizer has no BOS"):
        answers(Generator(model, tokenizer, 6), ["A", ""])
    assert answers(Generator(model, TOKENIZERS["llama"], 6), [""]) == alone(model, TOKENIZERS["llama"], 6, 1, [""])


def test_what_answers_depend_on_is_said() -> None:
    policy = Generator(MODELS["t5"], TOKENIZERS["t5"], 6, beams=2).policy
    assert policy | {"max_new_tokens": 6, "beams": 2, "starts_with": "<extra_id_0>", "precision": "fp32"} == policy
    assert Generator(MODELS["llama"], TOKENIZERS["llama"], 6).policy["starts_with"] == "<s>"


# Models


@pytest.mark.parametrize(("method", "kind"), METHODS)
@pytest.mark.parametrize("beams", [1, 2])
def test_models_of_all_methods(method: str, kind: str, beams: int, tmp_path: Path) -> None:
    model, tokenizer = with_method(method, made(kind), kind, tmp_path), TOKENIZERS[kind]
    expected = alone(model, tokenizer, 6, beams, PROMPTS[:6])
    assert answers(Generator(model, tokenizer, 6, beams), PROMPTS[:6]) == expected
    assert expected != of_prompts(kind, 6, beams)[:6]


RECURRENT = ("Mamba", "RecurrentGemma", "Qwen3Next", "Lfm2", "FalconH1")
WITHOUT_POSITIONS = ("Bloom", "Mpt")
WITH_A_WINDOW = ("Mistral", "Gemma2", "GPTNeo")


@pytest.mark.parametrize("name", [*RECURRENT, *WITHOUT_POSITIONS, *WITH_A_WINDOW, "OPT", "GPTNeoX"])
def test_whatever_the_architecture(name: str) -> None:
    tokenizer = TOKENIZERS["llama"]
    model = sharp(architecture(name, len(tokenizer)))
    assert answers(Generator(model, tokenizer, 8), PROMPTS[:6]) == alone(model, tokenizer, 8, 1, PROMPTS[:6])


# Faults


@pytest.mark.parametrize("beams", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_weights_that_are_no_numbers(kind: str, beams: int) -> None:
    model = made(kind)
    with torch.no_grad():
        model.get_output_embeddings().weight[7] = float("nan")
    own = model.generation_config
    with pytest.raises(InputError, match="no finite logits; its weights may be damaged"):
        answers(Generator(model, TOKENIZERS[kind], 6, beams))
    assert model.generation_config is own


@pytest.mark.parametrize("beams", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_where_memory_is_short_batches_are_halved(kind: str, beams: int) -> None:
    model = made(kind)

    def refuse(_: Any, args: tuple[torch.Tensor, ...]) -> None:
        if len(args[0]) > 3:
            raise torch.OutOfMemoryError("CUDA out of memory")

    model.get_output_embeddings().register_forward_pre_hook(refuse)
    assert answers(Generator(model, TOKENIZERS[kind], 6, 1)) == of_prompts(kind, 6, 1)
    model.get_output_embeddings().register_forward_pre_hook(lambda *_: refuse(_, (torch.zeros(9),)))
    with pytest.raises(InputError, match="no memory left on cpu"):
        answers(Generator(model, TOKENIZERS[kind], 6, beams))


def test_ends_that_are_no_tokens_are_ignored() -> None:
    tokenizer = tiny_models.tokenizer("llama")
    model = tiny_models.model("llama", len(tokenizer))
    for named, ends in ((["x", 5, {"a": 1}], [1, 5]), ("x", [1]), ({"a": 1}, [1])):
        model.generation_config = GenerationConfig(pad_token_id=0)
        model.generation_config.eos_token_id = named
        assert Generator(model, tokenizer, 5)._ends == ends
