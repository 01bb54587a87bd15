"""EWC holds each parameter as firmly as the past data say."""

import copy
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from temporalwiki.methods.ewc import EWC, fisher
from temporalwiki.methods.method import Batch, Phase, StepShare

import tiny_models

VOCABULARY = 40


class Coin(nn.Module):
    """Predicts token 0 with probability sigmoid(theta), else token 1, after any input."""

    def __init__(self, theta: float) -> None:
        super().__init__()
        self.theta = nn.Parameter(torch.tensor([theta]))

    def forward(self, input_ids: torch.Tensor, use_cache: bool = True) -> Any:
        assert not use_cache
        return SimpleNamespace(logits=torch.stack([self.theta, torch.zeros(1)], dim=-1).expand(*input_ids.shape, 2))


def coin_batch(*labels: tuple[int, ...]) -> Batch:
    return {"input_ids": torch.zeros(len(labels), len(labels[0]), dtype=torch.int64), "labels": torch.tensor(labels)}


def parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    return {name: p for name, p in model.named_parameters() if p.requires_grad}


def given(*batches: Batch) -> Callable[[int], list[Batch]]:
    return lambda wanted: list(batches)


def share(micro_batches: int = 1) -> StepShare:
    return StepShare(torch.tensor(7), 1 / micro_batches)


# At theta = 0 both tokens have probability 1/2: the gradient of log p is 1/2 for a token 0 and -1/2 for a token 1.
COINS = {
    "one token": ([((0,),)], 0.25),
    # gradients add up within an example, before they are squared: (1/2 + 1/2)^2 over two tokens
    "two alike": ([((0, 0),)], 0.5),
    "two unlike": ([((0, 1),)], 0.0),
    # 1 + 0 + 1/4 over 2 + 2 + 1 tokens: what is -100 does not count
    "three examples": ([((0, 0), (0, 1), (1, -100))], 0.25),
    "in other batches": ([((0, 0),), ((0, 1), (1, -100))], 0.25),
    "of nothing": ([((-100, -100),)], 0.0),
}


@pytest.mark.parametrize(("batches", "expected"), COINS.values(), ids=COINS)
def test_the_information_of_one_parameter_by_hand(batches: Any, expected: float) -> None:
    coin = Coin(0.0)
    information = fisher(coin, parameters(coin), [coin_batch(*rows) for rows in batches])
    assert information["theta"].item() == pytest.approx(expected)


def test_penalty_and_gradient_by_hand(tmp_path: Path) -> None:
    coin = Coin(0.0)
    pull = EWC(penalty=10.0).extra_loss(coin, given(coin_batch((0,))), Phase(folder=tmp_path))  # F = 1/4
    assert pull(coin, {}, torch.empty(0), share()).item() == 0
    with torch.no_grad():
        coin.theta.fill_(0.4)
    loss = pull(coin, {}, torch.empty(0), share())
    assert loss.item() == pytest.approx(10 / 2 * 0.25 * 0.4**2)  # 0.2
    loss.backward()
    assert coin.theta.grad is not None
    assert coin.theta.grad.item() == pytest.approx(10 * 0.25 * 0.4)  # 1


@pytest.mark.parametrize("micro_batches", [1, 2, 3, 8])
def test_the_penalty_of_a_step_is_the_same_in_any_number_of_micro_batches(micro_batches: int, tmp_path: Path) -> None:
    coin = Coin(0.0)
    pull = EWC(penalty=10.0).extra_loss(coin, given(coin_batch((0,))), Phase(folder=tmp_path))
    with torch.no_grad():
        coin.theta.fill_(0.4)
    loss = sum(pull(coin, {}, torch.empty(0), share(micro_batches)) for _ in range(micro_batches))
    assert loss.item() == pytest.approx(0.2)


def language_model_batch(kind: str) -> Batch:
    """Three examples of eight tokens, labels shifted already as ours are; the last two count in part."""
    draw = torch.Generator().manual_seed(5)
    ids = torch.randint(3, VOCABULARY, (3, 9), generator=draw)
    labels = ids[:, 1:].clone()
    labels[1, 5:] = labels[2, :3] = -100
    if kind == "t5":
        return {"input_ids": ids, "decoder_input_ids": ids[:, :-1], "labels": labels}
    return {"input_ids": ids[:, :-1], "position_ids": torch.arange(8).expand(3, 8), "labels": labels}


def independent(model: Any, batch: Batch) -> dict[str, torch.Tensor]:
    """An example at a time, its log-likelihood added up label by label, through .grad, in float64."""
    model = copy.deepcopy(model).double().eval()
    information = {name: torch.zeros_like(p) for name, p in model.named_parameters()}
    for row in range(len(batch["labels"])):
        model.zero_grad()
        inputs = {name: tensor[row][None] for name, tensor in batch.items() if name != "labels"}
        logits = model(**inputs).logits[0]
        likelihood = sum(
            logits[t, label].sub(logits[t].logsumexp(0))
            for t, label in enumerate(batch["labels"][row].tolist())
            if label != -100
        )
        likelihood.backward()
        for name, p in model.named_parameters():
            if p.grad is not None:
                information[name] += p.grad**2
    tokens = sum(label != -100 for row in batch["labels"].tolist() for label in row)
    return {name: f / tokens for name, f in information.items()}


@pytest.mark.parametrize("kind", tiny_models.KINDS)
def test_the_information_of_a_language_model(kind: str) -> None:
    """GPT-2 and T5 have dropout, which must not affect it; the model's mode stays the same."""
    model = tiny_models.model(kind, VOCABULARY)
    batch = language_model_batch(kind)
    expected = independent(model, batch)
    cuts = {"whole": [3], "one at a time": [1, 1, 1], "two and one": [2, 1]}
    for name, sizes in cuts.items():
        model.train(name != "whole")
        parts = {key: tensor.split(sizes) for key, tensor in batch.items()}
        batches = [{key: part[i] for key, part in parts.items()} for i in range(len(sizes))]
        found = fisher(model, parameters(model), batches)
        assert model.training == (name != "whole")
        assert set(found) == set(expected)
        for parameter, f in found.items():
            scale = float(expected[parameter].max())
            torch.testing.assert_close(f.double(), expected[parameter], rtol=1e-3, atol=1e-5 * scale, msg=parameter)
    assert all(p.grad is None for p in model.parameters())
