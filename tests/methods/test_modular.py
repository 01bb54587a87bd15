"""Modular adds a small encoder to T5's, in training and in generation, and leaves all of its names as they are."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    AutoModelForSeq2SeqLM,
    GPT2Config,
    GPT2LMHeadModel,
    MT5Config,
    MT5ForConditionalGeneration,
    T5ForConditionalGeneration,
)
from transformers.models.t5.modeling_t5 import T5Stack

from temporalwiki.base.errors import InputError
from temporalwiki.methods.architecture import total, trainable
from temporalwiki.methods.method import Phase
from temporalwiki.methods.modular import Modular

from tiny_expansions import VOCABULARY, close, ids, t5


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A pretrained T5 smaller than T5-small."""
    folder = tmp_path_factory.mktemp("small")
    t5(d_model=16, d_ff=32, num_layers=2, num_heads=2).save_pretrained(folder)
    return str(folder)


@pytest.fixture
def model(small: str) -> Any:
    return Modular(small=small, scale=1.0).prepare(t5(), Phase()).eval()


# What it computes


def test_the_output_is_the_papers_sum_by_hand(small: str) -> None:
    model = Modular(small=small).prepare(t5(), Phase()).eval()
    pretrained = T5ForConditionalGeneration.from_pretrained(small).eval()
    with torch.no_grad():
        own = t5().encoder(ids()).last_hidden_state
        added = pretrained.encoder(ids()).last_hidden_state @ model.encoder.modular[0].projection.weight.T
        got = model.encoder(ids(), output_hidden_states=True)
    close(got.last_hidden_state, own + 0.05 * added)
    assert (got.last_hidden_state - own).abs().max() > 0.01
    assert len(got.hidden_states) == 5
    assert torch.equal(got.hidden_states[-1], got.last_hidden_state)
    as_tuple = model.encoder(ids(), return_dict=False)
    assert isinstance(as_tuple, tuple)
    close(as_tuple[0], got.last_hidden_state)


def test_the_encoder_is_a_t5_stack_under_its_own_names(model: Any) -> None:
    base = t5().state_dict()
    assert isinstance(model.encoder, T5Stack)
    assert model.get_encoder() is model.encoder
    names = model.state_dict().keys()
    assert set(base) == {name for name in names if not name.startswith("encoder.modular.")}
    assert model.encoder.embed_tokens.weight is model.shared.weight is model.lm_head.weight
    model.resize_token_embeddings(VOCABULARY + 3)
    assert model.encoder.embed_tokens.weight is model.shared.weight


# What is trained


def test_a_new_small_encoder_is_t5_smalls_and_begins_as_the_library_begins_one(tmp_path: Path) -> None:
    t5().save_pretrained(tmp_path)
    base = AutoModelForSeq2SeqLM.from_pretrained(tmp_path)
    encoder = Modular().prepare(base, Phase(seed=3)).encoder.modular[0]
    for name, parameter in encoder.named_parameters():
        part = name.split(".")[-2]
        fan_in = {"q": 512 * 64, "wo": 2048, "embed_tokens": 1}.get(part, 512)
        if parameter.dim() == 1:
            assert torch.equal(parameter, torch.ones_like(parameter)), name
        else:
            assert parameter.std().item() == pytest.approx(fan_in**-0.5, rel=0.2), name


def test_sizes_are_known_without_weights(model: Any, small: str) -> None:
    planned = Modular(small=small).prepare(on_meta(t5), Phase())
    assert (trainable(planned), total(planned)) == (trainable(model), total(model))


# What is refused


def on_meta(make: Callable[[], Any]) -> Any:
    with torch.device("meta"):
        return make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GPT2LMHeadModel(GPT2Config(n_layer=2)), "gpt2: modular works only with T5"),
        (lambda: MT5ForConditionalGeneration(MT5Config(num_layers=2)), "mt5: modular works only with T5"),
    ],
)
def test_models_that_it_is_not_defined_on(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Modular().prepare(on_meta(make), Phase())


def test_small_models_that_do_not_fit(tmp_path: Path) -> None:
    t5(vocab_size=61).save_pretrained(tmp_path / "words")
    GPT2LMHeadModel(GPT2Config(n_layer=1, n_embd=8, n_head=1, vocab_size=9)).save_pretrained(tmp_path / "gpt2")
    (tmp_path / "empty").mkdir()
    for name, message in (
        ("words", "its vocabulary has 61 tokens, the model's 60"),
        ("gpt2", "a gpt2 model, not a T5"),
        ("empty", "holds no checkpoint"),
        ("absent", "no such folder"),
    ):
        model = t5()
        with pytest.raises(InputError, match=message) as caught:
            Modular(small=str(tmp_path / name)).prepare(model, Phase())
        assert "\n" not in str(caught.value)
        assert type(model.encoder) is T5Stack


def test_embeddings_cannot_be_read_by_small_encoders(model: Any) -> None:
    with pytest.raises(InputError, match="token ids, not embeddings"):
        model(inputs_embeds=torch.zeros(1, 3, 32), labels=ids(1, 3))
