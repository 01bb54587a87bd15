"""What every method promises on every family: how it starts, what moves, what is saved, and how a phase goes on."""

from pathlib import Path
from typing import Any

import pytest
import torch

from temporalwiki.methods import METHODS, checkpoint, find_method
from temporalwiki.methods.method import Phase

import tiny_models
from tiny_expansions import logits, train

FREE_START = ("modular",)  # its new encoder adds something from the first step on
CONTINUED = ("dora",)  # a later phase trains the same adapters
CASES = [
    (kind, name)
    for kind in tiny_models.KINDS
    for name in METHODS
    if find_method(name).unsupported_architecture != ("encoder-decoder" if kind == "t5" else "decoder-only")
]
TRAINED = [(kind, name) for kind, name in CASES if find_method(name).trains]


def start(kind: str, name: str, models: dict[str, Path], seed: int = 0) -> Any:
    """Return the method, and a model that it has prepared from the start of its kind."""
    method = find_method(name)(**({"small": str(models["t5"])} if name == "modular" else {}))
    return method, method.prepare(checkpoint.load_model(str(models[kind])), Phase(seed=seed))


def fit(model: Any, method: Any) -> None:
    train(model, 5, method.after_step)  # of K-Adapter, the norm moves first, then the last projections, then the rest


def state(model: Any) -> dict[str, torch.Tensor]:
    return {name: p.detach().clone() for name, p in model.named_parameters()}


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_a_method_starts_as_the_model_that_it_was(kind: str, name: str, models: dict[str, Path]) -> None:
    before = logits(checkpoint.load_model(str(models[kind])))
    _, model = start(kind, name, models)
    torch.testing.assert_close(logits(model), before, rtol=1e-4, atol=1e-5 if name not in FREE_START else 0.2)


@pytest.mark.parametrize(("kind", "name"), TRAINED)
def test_nothing_frozen_moves_and_all_that_is_trained_does(kind: str, name: str, models: dict[str, Path]) -> None:
    method, model = start(kind, name, models)
    before = state(model)
    fit(model, method)
    unread = ("wpe",)  # rows of positions beyond the batch
    for parameter, p in model.named_parameters():
        assert torch.equal(p, before[parameter]) != p.requires_grad or parameter.endswith(unread), parameter


@pytest.mark.parametrize(("kind", "name"), TRAINED)
def test_the_seed_alone_decides_the_start(kind: str, name: str, models: dict[str, Path]) -> None:
    states = []
    for seed in (5, 5, 6):
        torch.manual_seed(len(states))
        undisturbed = torch.get_rng_state()
        states.append(state(start(kind, name, models, seed)[1]))
        assert torch.equal(torch.get_rng_state(), undisturbed)  # and it draws nothing that others draw from
    assert all(torch.equal(tensor, states[1][parameter]) for parameter, tensor in states[0].items())
    adds = name in ("lora", "dora", "o_lora", "k_adapter", "modular")
    assert adds <= any(not torch.equal(tensor, states[2][parameter]) for parameter, tensor in states[0].items())


@pytest.mark.parametrize(("kind", "name"), TRAINED)
def test_what_is_saved_is_what_is_loaded_and_a_second_phase_starts_there(
    kind: str, name: str, models: dict[str, Path], tmp_path: Path
) -> None:
    method, model = start(kind, name, models)
    fit(model, method)
    trained = {parameter: tensor for parameter, tensor in state(model).items() if not parameter.startswith("decoder.")}
    expected = logits(model)
    method.save(model, tmp_path)
    torch.testing.assert_close(logits(checkpoint.load_model(str(tmp_path))), expected, rtol=1e-4, atol=1e-4)
    assert not torch.allclose(expected, logits(checkpoint.load_model(str(models[kind]))), atol=1e-3)
    second = method.prepare(checkpoint.load_model(str(tmp_path)), Phase(seed=1, index=1))
    torch.testing.assert_close(logits(second), expected, rtol=1e-4, atol=1e-4 if name not in FREE_START else 0.2)
    if name in ("k_adapter", "modular"):  # the layers of the first phase are frozen
        before = {parameter: p for parameter, p in second.named_parameters() if not p.requires_grad}
        assert any(parameter in trained for parameter in before)
        fit(second, method)
        assert all(torch.equal(p, trained.get(parameter, p)) for parameter, p in before.items())
