"""K-Adapter adds to a frozen model exactly what the papers describe, however the model is called."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import (
    DynamicCache,
    Gemma2Config,
    Gemma2ForCausalLM,
    StaticCache,
)

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.methods.architecture import total, trainable
from temporalwiki.methods.expansion import WEIGHTS
from temporalwiki.methods.k_adapter import KAdapter, attach
from temporalwiki.methods.method import Phase

from tiny_expansions import VOCABULARY, close, fresh, gpt2, ids, llama, logits, spread, t5, train

Make = Callable[..., Any]


def gemma() -> Gemma2ForCausalLM:
    """Its norms multiply by 1 + their weight."""
    size = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 4, "head_dim": 8, "sliding_window": 4}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "initializer_range": 0.3, "vocab_size": VOCABULARY}
    torch.manual_seed(1)
    return Gemma2ForCausalLM(Gemma2Config(**size, **heads)).eval()


DECODERS = [pytest.param(make, id=make.__name__) for make in (gpt2, llama)]
ALL = [*DECODERS, pytest.param(t5, id="t5")]


def strong(model: Any, **options: Any) -> Any:
    """A model with adapters whose contribution no tolerance could hide: far from their small beginnings."""
    model = KAdapter(**{"k": 2, "scale": 2.0, **options}).prepare(model, Phase(seed=5)).eval()
    spread(model.k_adapter)
    return model


# What it computes


@pytest.mark.parametrize("make", ALL)
def test_the_output_is_the_sum_of_the_papers_by_hand(make: Make) -> None:
    base = make(attn_implementation="eager")
    model = strong(copy.deepcopy(base), layers=(1, 3), scale=0.1)
    phase = model.k_adapter.phases[0]
    x = ids()
    with torch.no_grad():
        owner = base.get_encoder() if make is t5 else base
        outputs = owner(x, output_hidden_states=True, **({} if make is t5 else {"use_cache": False}))
        h = outputs.hidden_states  # h[0]: embeddings, h[4]: after the final norm
        causal = torch.full((9, 9), torch.finfo().min).triu(1)[None, None]
        if make is t5:
            bias = base.encoder.block[0].layer[0].SelfAttention.compute_bias(9, 9)
            first = phase.layers[0](h[1], None, bias)[0]
            second = phase.layers[1](h[3] + first, None, bias)[0]
            got = model.get_encoder()(x).last_hidden_state
        else:
            positions = torch.arange(9)[None]
            more = {"position_embeddings": base.model.rotary_emb(h[0], positions)} if make is llama else {}
            first = phase.layers[0](h[1], attention_mask=causal, **more)
            second = phase.layers[1](h[3] + first, attention_mask=causal, **more)
            got = model.base_model(x, use_cache=False).last_hidden_state
        expected = h[4] + 0.1 * phase.norm(second)
    close(got, expected)
    assert (got - h[4]).abs().max() > 0.05


@pytest.mark.parametrize("make", ALL)
def test_hidden_states_are_still_the_models_own_but_for_the_last(make: Make) -> None:
    base = make()
    model = strong(copy.deepcopy(base))
    if make is t5:
        base, model = base.get_encoder(), model.get_encoder()
    before, after = (m(ids(), output_hidden_states=True).hidden_states for m in (base, model))
    assert len(before) == len(after) == 5
    for h, same in zip(before[:-1], after[:-1], strict=True):
        close(same, h)
    assert (after[-1] - before[-1]).abs().max() > 0.5


@pytest.mark.parametrize("gate", [False, True])
@pytest.mark.parametrize("make", [*ALL, pytest.param(gemma, id="gemma")])
def test_a_phase_starts_as_the_identity_and_learns(make: Make, gate: bool) -> None:
    base = make()
    model = KAdapter(gate=gate).prepare(copy.deepcopy(base), Phase()).eval()
    close(logits(model), logits(base))
    phase = model.k_adapter.phases[0]
    matrices = [parameter for parameter in phase.layers[-1].parameters() if parameter.dim() > 1]
    assert [bool(matrix.any()) for matrix in matrices].count(False) == 1
    train(model, steps=2)  # at first the gate or the norm alone, then the last projections as well
    assert all(matrix.any() for matrix in matrices)
    assert not gate or phase.gate.item() != 0
    assert not torch.equal(logits(model), logits(base))


POSITIONS = [  # k, layers of the model, positions
    *((2, 36, (1, 11)), (3, 36, (1, 11, 34)), (3, 24, (1, 11, 22)), (2, 14, (1, 11)), (3, 14, (1, 11, 12))),
    *((2, 13, (1, 12)), (3, 12, (1, 6, 11)), (1, 12, (6,)), (1, 2, (1,)), (4, 36, (1, 12, 23, 35)), (3, 4, (1, 2, 3))),
]


@pytest.mark.parametrize(("k", "n_layers", "expected"), POSITIONS)
def test_the_layers_read_are_those_of_the_papers_or_spread(k: int, n_layers: int, expected: tuple[int, ...]) -> None:
    assert KAdapter(k=k).positions(n_layers) == expected


# How the model may be called


def step_by_step(model: Any, x: torch.Tensor, cache: Any) -> torch.Tensor:
    """Logits of each position, from a prefix of three tokens and then single ones."""
    out = []
    with torch.no_grad():
        for piece in (x[:, :3], *x[:, 3:].split(1, dim=1)):
            result = model(piece, past_key_values=cache, use_cache=True)
            cache = result.past_key_values
            out.append(result.logits)
    return torch.cat(out, dim=1)


@pytest.mark.parametrize("phases", [1, 2])
@pytest.mark.parametrize("make", DECODERS)
def test_cached_decoding_equals_the_full_pass(make: Make, phases: int) -> None:
    model = make()
    for seed in range(phases):
        model = KAdapter(scale=2.0, layers=(1, 2) if seed else None).prepare(model, Phase(seed=seed)).eval()
    spread(model.k_adapter)
    x = ids()
    full = logits(model)
    caches = [
        None,  # the model makes one
        DynamicCache(),  # grows by itself
        DynamicCache(config=model.config),  # has room for the base model's layers
        StaticCache(config=model.config, max_cache_len=16),
    ]
    for cache in caches:
        close(step_by_step(model, x, cache), full)
    cache = DynamicCache(config=model.config)
    step_by_step(model, x, cache)
    assert [layer.get_seq_length() for layer in cache.layers] == [9] * (4 + 2 * phases)


def test_a_new_layer_attends_as_far_as_the_one_whose_input_it_reads() -> None:
    model = strong(gemma(), layers=(1, 2))
    assert model.config.layer_types[1:3] == ["full_attention", "sliding_attention"]
    cache = DynamicCache(config=model.config)
    close(step_by_step(model, ids(), cache), logits(model))
    assert cache.is_sliding == [True, False, True, False, False, True]


@pytest.mark.parametrize("make", DECODERS)
def test_a_cropped_cache_goes_on_as_if_nothing_had_been_beyond(make: Make) -> None:
    model = strong(make())
    x, cache = ids(), DynamicCache(config=model.config)
    with torch.no_grad():
        model(torch.cat([x[:, :6], ids(length=3, seed=9)], dim=1), past_key_values=cache, use_cache=True)
        cache.crop(-3)
        rest = model(x[:, 6:], past_key_values=cache, use_cache=True).logits
    close(rest, logits(model)[:, 6:])


def test_a_cache_that_the_base_has_filled_is_refused() -> None:
    base = llama()
    model, cache = strong(copy.deepcopy(base)), DynamicCache(config=base.config)
    base(ids(), past_key_values=cache, use_cache=True)
    with pytest.raises(InputError, match="filled by a model without the new layers"):
        model(ids(), past_key_values=cache, use_cache=True)


@pytest.mark.parametrize("make", DECODERS)
def test_padding_does_not_leak(make: Make) -> None:
    model = strong(make())
    long, short = ids(1, 9), ids(1, 5, seed=7)
    rows = torch.cat([long, torch.cat([torch.zeros(1, 4, dtype=torch.long), short], dim=1)])
    mask = torch.ones_like(rows)
    mask[1, :4] = 0
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    with torch.no_grad():
        both = model(rows, attention_mask=mask, position_ids=positions, use_cache=False).logits
        close(both[:1], model(long, use_cache=False).logits)
        close(both[1:, 4:], model(short, use_cache=False).logits)
    alone = model.generate(short, max_new_tokens=5, do_sample=False)[:, 5:]
    batched = model.generate(rows, attention_mask=mask, max_new_tokens=5, do_sample=False)[1:, 9:]
    assert alone.tolist() == batched.tolist()


@pytest.mark.parametrize("make", DECODERS)
def test_packed_documents_do_not_see_each_other(make: Make) -> None:
    model = strong(make())
    first, second = ids(1, 4), ids(1, 6, seed=7)
    positions = torch.cat([torch.arange(4), torch.arange(6)])[None]
    with torch.no_grad():
        packed = model(torch.cat([first, second], dim=1), position_ids=positions, use_cache=False).logits
        apart = [model(document, use_cache=False).logits for document in (first, second)]
    close(packed, torch.cat(apart, dim=1))


# What is trained


WIDE: dict[Make, dict[str, Any]] = {  # models of width 64
    gpt2: {"n_embd": 64, "initializer_range": 0.02},
    llama: {"hidden_size": 64, "intermediate_size": 96, "initializer_range": 0.02},
    t5: {"d_model": 64, "d_kv": 16},
}
SILENT = (".norm.", "mlp.c_proj", "down_proj", "DenseReluDense.wo")  # so that a phase starts as the identity


@pytest.mark.parametrize("make", ALL)
def test_new_layers_begin_as_the_library_begins_layers(make: Make, tmp_path: Path) -> None:
    make(**WIDE[make]).save_pretrained(tmp_path)
    model = KAdapter().prepare(fresh(tmp_path), Phase(seed=3))
    for name, parameter in model.k_adapter.named_parameters():
        if any(part in name for part in SILENT):
            assert not parameter.any(), name
        elif parameter.dim() == 1:
            assert torch.equal(parameter, torch.full_like(parameter, float("weight" in name))), name
        else:
            # GPT-2 divides the deviation of layers that write to the residual by the root of their number
            expected = 0.02 / 8**0.5 if name.endswith("c_proj.weight") else 0.02
            if make is t5:
                expected = 64**-0.5 * (16**-0.5 if name.endswith(".q.weight") else 1)
            assert parameter.std().item() == pytest.approx(expected, rel=0.1), name


# Phases


@pytest.mark.parametrize("make", ALL)
def test_once_trains_the_first_phases_layers_in_each_later_phase(make: Make, tmp_path: Path) -> None:
    method = KAdapter(once=True)
    make().save_pretrained(tmp_path / "base")
    model = fresh(tmp_path / "base")
    first = trainable(method.prepare(model, Phase()))
    spread(model.k_adapter)  # else some weights would have no gradient yet
    for month in ("0809", "0910"):
        train(model.train())
        method.save(model, tmp_path / month)
        before = copy.deepcopy(model.k_adapter.state_dict())
        model = attach(fresh(tmp_path / "base"), tmp_path / month)
        assert trainable(method.prepare(model, Phase())) == first
        assert all(torch.equal(tensor, before[name]) for name, tensor in model.k_adapter.state_dict().items())
    train(model.train())
    assert not any(torch.equal(tensor, before[name]) for name, tensor in model.k_adapter.state_dict().items())
    assert len(model.k_adapter.phases) == 1


def test_once_changes_only_the_newest_layers_of_a_model_that_grew() -> None:
    model = KAdapter(once=True).prepare(KAdapter().prepare(KAdapter().prepare(gpt2(), Phase()), Phase()), Phase())
    assert [any(p.requires_grad for p in phase.parameters()) for phase in model.k_adapter.phases] == [False, True]


@pytest.mark.parametrize("other", [{"k": 1}, {"scale": 0.5}, {"layers": (1, 2)}, {"gate": True}], ids=str)
def test_once_refuses_layers_with_other_options(other: dict[str, Any]) -> None:
    model = KAdapter().prepare(gpt2(), Phase())
    with pytest.raises(InputError, match=r"--once trains the layers that are there, with .*, not "):
        KAdapter(once=True, **other).prepare(model, Phase())


# Checkpoints


def test_weights_that_were_sharded_are_saved_as_given(tmp_path: Path) -> None:
    model = KAdapter().prepare(t5(), Phase())
    weights = {name: tensor + 1 for name, tensor in model.state_dict().items()}
    KAdapter().save(model, tmp_path, weights)
    saved = load_file(tmp_path / WEIGHTS)
    assert {name.split(".")[0] for name in saved} == {"k_adapter", "decoder"}
    assert all(torch.equal(saved[name], weights[name]) for name in saved)


# What is refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layers": (1, 2, 3)}, "k = 2 new layers, but 3"),
        ({"layers": (2, 1)}, "rising order, not 2, 1"),
        ({"layers": (1, 1)}, "rising order"),
    ],
)
def test_options_that_no_model_could_have(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        KAdapter(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layers": (0, 2)}, "4 layers lacks layer 0; use 1 to 3"),
        ({"layers": (1, 4)}, "4 layers lacks layer 4; use 1 to 3"),
        ({"k": 4}, "k = 4 needs more than 4 layers, the model has 4"),
    ],
)
def test_layers_that_a_model_does_not_have(options: dict[str, Any], message: str) -> None:
    model = gpt2()
    with pytest.raises(InputError, match=message):
        KAdapter(**options).prepare(model, Phase())
    assert trainable(model) == total(model)
