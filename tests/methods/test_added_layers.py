"""K-Adapter and Modular add layers to a model that trains, copies, saves and loads like any other."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model
from torch import nn

from temporalwiki.methods import k_adapter, modular
from temporalwiki.methods.architecture import stack, trainable
from temporalwiki.methods.expansion import SPEC, WEIGHTS
from temporalwiki.methods.k_adapter import KAdapter
from temporalwiki.methods.method import Method, Phase
from temporalwiki.methods.modular import Modular

from tiny_expansions import batch, close, fresh, gpt2, ids, llama, logits, same_weights, spread, t5, train

MODELS: dict[str, Callable[..., Any]] = {"gpt2": gpt2, "llama": llama, "t5": t5, "modular": t5}
T5_DECODER = ("decoder.block.", "decoder.final_layer_norm.")


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(params=MODELS)
def kind(request: pytest.FixtureRequest) -> str:
    """K-Adapter on each model, and Modular on T5."""
    return str(request.param)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("small")
    t5(d_model=16, d_ff=32, num_layers=2, num_heads=2, dropout_rate=0.0).save_pretrained(folder)
    return str(folder)


@pytest.fixture
def method(kind: str, small: str) -> Callable[..., Method]:
    """Makes the method with a scale that shows."""

    def make(**options: Any) -> Method:
        return Modular(small=small, scale=1.0) if kind == "modular" else KAdapter(**{"scale": 2.0, **options})

    return make


@pytest.fixture
def model(kind: str, method: Callable[..., Method]) -> Any:
    """A model with new layers whose weights are large."""
    made = method().prepare(MODELS[kind](), Phase(seed=5)).eval()
    spread(new_layers(made))
    return made


def new_layers(model: Any) -> Any:
    return model.k_adapter if hasattr(model, "k_adapter") else model.encoder.modular


def parts(model: Any) -> Any:
    """The modules of the phases, each with its own scale."""
    return model.k_adapter.phases if hasattr(model, "k_adapter") else model.encoder.modular


def learn(model: Any) -> None:
    """Train until layers that start without an effect have a clear one."""
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=0.05)
    for _ in range(8):
        model(**batch(model), use_cache=False).loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def attach(kind: str, model: Any, folder: Path | str) -> Any:
    return (modular if kind == "modular" else k_adapter).attach(model, folder)


def test_a_deep_copy_is_a_model_of_its_own(model: Any) -> None:
    before = logits(model)
    twin = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in new_layers(model).parameters():
            parameter.zero_()
    close(logits(twin), before)
    assert not torch.equal(logits(model), before)


def test_it_runs_in_bf16_and_under_autocast(kind: str, method: Callable[..., Method]) -> None:
    model = method(scale=0.1).prepare(MODELS[kind](), Phase(seed=5)).eval()
    train(model)  # K-Adapter starts without an effect
    full = logits(model)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = model(**batch(model), use_cache=False)
        mixed.loss.backward()
    assert all(p.grad is not None for p in new_layers(model).parameters())
    halved = model.to(torch.bfloat16)
    assert {p.dtype for p in halved.parameters()} == {torch.bfloat16}
    for other in (mixed.logits, logits(halved)):
        assert (other.float() - full).abs().max() < 0.1 * full.abs().max()


@pytest.mark.parametrize("reentrant", [False, True])
def test_gradient_checkpointing_gives_the_same_gradients(
    kind: str, method: Callable[..., Method], reentrant: bool
) -> None:
    dropout = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0} if kind == "gpt2" else {"dropout_rate": 0.0}
    model = method().prepare(MODELS[kind](**({} if kind == "llama" else dropout)), Phase(seed=5))
    spread(new_layers(model))
    model.train()
    gradients = []
    for checkpointed in (False, True):
        if checkpointed:
            model.activation_checkpointing_enable(activation_checkpointing_kwargs={"use_reentrant": reentrant})
        model.zero_grad()
        model(**batch(model)).loss.backward()
        gradients.append({name: p.grad for name, p in model.named_parameters() if p.grad is not None})
    assert gradients[0].keys() == gradients[1].keys() != set()
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradients[1][name], gradient, rtol=1e-4, atol=1e-6)


def test_nothing_is_computed_backwards_through_a_frozen_model(model: Any) -> None:
    model.train().enable_input_require_grads()  # what gradient checkpointing does
    passed: list[int] = []
    stack(model).layers[1].register_full_backward_hook(lambda *_: passed.append(1))
    model(**batch(model), use_cache=False).loss.backward()
    assert passed == []
    model.requires_grad_(True)  # light-tuning trains everything
    model(**batch(model), use_cache=False).loss.backward()
    assert passed == [1]


def test_a_second_phase_freezes_the_first_and_adds_to_it(kind: str, method: Callable[..., Method]) -> None:
    model = method(scale=0.5).prepare(MODELS[kind](), Phase())
    learn(model.train())
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    model = method(scale=0.25, k=1).prepare(model, Phase(seed=1))
    learn(model.train())
    moved = {name for name, p in model.named_parameters() if name in before and not torch.equal(p, before[name])}
    assert moved == {name for name in before if name.startswith(T5_DECODER)}  # the other models have none

    run = model.eval().get_encoder() if MODELS[kind] is t5 else model.eval().base_model
    out = []
    for scales in ((0.0, 0.0), (0.5, 0.0), (0.0, 0.25), (0.5, 0.25)):
        parts(model)[0].scale, parts(model)[1].scale = scales
        with torch.no_grad():
            out.append(run(ids()).last_hidden_state)
    base, first, second, both = out
    assert min((first - base).abs().max(), (second - base).abs().max()) > 0.05  # both phases add something
    close(both - base, (first - base) + (second - base))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_saved_model_comes_back_on_a_fresh_base(
    kind: str, method: Callable[..., Method], dtype: torch.dtype, tmp_path: Path
) -> None:
    base, out = tmp_path / "base", tmp_path / "out"
    MODELS[kind]().save_pretrained(base)
    model = fresh(base, dtype)
    for phase, options in enumerate(({"gate": True}, {"k": 1, "scale": 0.5})):
        made = method(**options)
        model = made.prepare(model, Phase(seed=phase))
        train(model.train(), steps=2)
        made.save(model, out)
        assert sorted(path.name for path in out.iterdir()) == ["config.json", SPEC, WEIGHTS]
        again = attach(kind, fresh(base, dtype), out)
        assert same_weights(again, model)
        close(logits(again), logits(model.eval()))
        assert {p.dtype for p in again.parameters()} == {dtype}
        assert trainable(again) == 0
        model = attach(kind, fresh(base, dtype), str(out))
    assert json.loads((out / SPEC).read_text())["base_model"] == str(base)
    if MODELS[kind] is not t5:
        assert (out / WEIGHTS).stat().st_size < (base / "model.safetensors").stat().st_size


def lora(model: Any, target: str) -> Any:
    config = LoraConfig(target_modules=[target], init_lora_weights=False, fan_in_fan_out=target == "c_attn")
    return get_peft_model(model, config)


def unfrozen(model: nn.Module) -> Any:
    train(model.requires_grad_(True))
    return model


def test_what_an_adapter_or_light_tuning_changed_is_saved(
    kind: str, method: Callable[..., Method], tmp_path: Path
) -> None:
    MODELS[kind]().save_pretrained(tmp_path / "base")
    target = {"gpt2": "c_attn", "llama": "q_proj"}.get(kind, "q")
    merged = method().prepare(lora(fresh(tmp_path / "base"), target), Phase())
    tuned = unfrozen(method().prepare(fresh(tmp_path / "base"), Phase()))
    for name, model in {"merged": merged, "tuned": tuned}.items():
        method().save(model, tmp_path / name)
        again = attach(kind, fresh(tmp_path / "base"), tmp_path / name)
        assert same_weights(again, model)
        close(logits(again), logits(model.eval()))
