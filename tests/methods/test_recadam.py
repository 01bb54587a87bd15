"""RecAdam does to every parameter what its formula says, with the penalty that the authors' code left out."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import TrainingArguments

from temporalwiki.methods.options import TrainOptions
from temporalwiki.methods.recadam import RecAdam, RecAdamOptimizer, anneal
from temporalwiki.methods.trainer import ContinualTrainer, training_arguments

import tiny_models

NEVER, ALWAYS = 1e9, -1e9  # t0 with which Adam has no weight yet, or all of it
K3 = math.log(3)  # sigmoid(ln 3 * (t - t0)) is 1/10, 1/4, 1/2, 3/4, 9/10 at t - t0 = -2 .. 2


def scalar(start: float, **options: Any) -> tuple[torch.nn.Parameter, RecAdamOptimizer]:
    parameter = torch.nn.Parameter(torch.tensor(start, dtype=torch.float64))
    return parameter, RecAdamOptimizer([parameter], **{"eps": 0.0, **options})


def step(parameter: torch.nn.Parameter, optimizer: torch.optim.Optimizer, gradient: float) -> float:
    parameter.grad = torch.full_like(parameter, gradient)
    optimizer.step()
    return parameter.item()


def reference(start: float, gradients: list[float], lr: float, gamma: float, t0: float, k: float) -> float:
    """Algorithm 1 of Chen et al. for one number, in the float64 of Python, with the pull bounded at 1."""
    theta, m, v = start, 0.0, 0.0
    for t, g in enumerate(gradients, 1):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        adam = lr * (m / (1 - 0.9**t)) / (math.sqrt(v / (1 - 0.999**t)) + 1e-8)
        weight = (1 + math.tanh(k * (t - t0) / 2)) / 2  # the logistic function, which overflows nowhere in this form
        theta = theta - weight * adam - min(1.0, lr * (1 - weight) * gamma) * (theta - start)
    return theta


# The gradient is always the same, so that each step of Adam is its learning rate, 0.1.
BY_HAND = {
    # lambda = 1/2: 1 - 0.05 = 0.95, there is nothing to be pulled back from yet
    # lambda = 3/4, pull 0.1 * 1/4 * 2 = 0.05: 0.95 - 0.075 + 0.05 * 0.05 = 0.8775
    # lambda = 9/10, pull 0.1 * 1/10 * 2 = 0.02: 0.8775 - 0.09 + 0.02 * 0.1225 = 0.78995
    "t0 is the first step": (1, 2, [0.95, 0.8775, 0.78995]),
    # lambda = 1/4: 1 - 0.025; lambda = 1/2, pull 0.1 * 1/2 * 2 = 0.1: 0.975 - 0.05 + 0.1 * 0.025
    "t0 is the second": (2, 2, [0.975, 0.9275]),
    # no pull at all: 1 - 0.05 - 0.075 - 0.09
    "gamma 0": (1, 0, [0.95, 0.875, 0.785]),
    # 0.1 * 1/4 * 400 = 10 and 0.1 * 1/10 * 400 = 4, both bounded at 1: 1 - 0.075, 1 - 0.09
    "the pull is bounded": (1, 400, [0.95, 0.925, 0.91]),
}


@pytest.mark.parametrize(("t0", "gamma", "expected"), BY_HAND.values(), ids=BY_HAND)
def test_the_first_steps_are_those_of_the_formula(t0: float, gamma: float, expected: list[float]) -> None:
    parameter, optimizer = scalar(1.0, lr=0.1, k=K3, t0=t0, gamma=gamma)
    assert [step(parameter, optimizer, 2.0) for _ in expected] == pytest.approx(expected, rel=1e-12)


def test_lambda_is_a_half_at_t0_and_reaches_its_limits_without_overflow() -> None:
    assert [anneal(t, 0.5, t) for t in (1, 250, 10**6)] == [0.5] * 3
    assert [anneal(t, K3, 10) for t in (8, 9, 11, 12)] == pytest.approx([0.1, 0.25, 0.75, 0.9], rel=1e-12)
    assert anneal(250, 0.5, 250.0) == 0.5
    for far in (1e4, 1e9, 1e300):
        assert anneal(1, 0.5, far) == pytest.approx(0, abs=1e-300)
        assert anneal(1, 0.5, -far) == 1.0
    assert anneal(10**9, 1e9, 0.0) == 1.0
    # the papers' constants at the first step: sigmoid(-124.5) = e^-124.5 to 50 digits
    assert anneal(1, 0.5, 250.0) == pytest.approx(math.exp(-124.5), rel=1e-12)


@given(st.integers(1, 3000), st.floats(0.01, 5), st.floats(-500, 3000))
def test_lambda_rises_and_is_symmetric_about_t0(t: int, k: float, t0: float) -> None:
    assert 0 <= anneal(t, k, t0) <= anneal(t + 1, k, t0) <= 1
    assert anneal(t, k, t0) + anneal(t, -k, t0) == pytest.approx(1)


def test_a_huge_pull_leads_to_where_it_started_and_not_beyond() -> None:
    for gamma in (10.0 / 0.1, 1e9, 1e300):
        parameter, optimizer = scalar(3.0, lr=0.1, k=K3, t0=2, gamma=gamma)
        step(parameter, optimizer, 1.0)
        with torch.no_grad():
            parameter.fill_(1000.0)
        assert step(parameter, optimizer, 1.0) == pytest.approx(3.0 - 0.5 * 0.1, rel=1e-12)


@given(
    gradients=st.lists(st.floats(-10, 10).map(lambda g: g if abs(g) > 1e-3 else 0.0), min_size=1, max_size=25),
    start=st.floats(-5, 5),
    lr=st.floats(1e-5, 0.5),
    gamma=st.floats(0, 1e4),
    t0=st.floats(-5, 30),
    k=st.floats(0.05, 3),
)
def test_it_does_what_a_plain_loop_does(
    gradients: list[float], start: float, lr: float, gamma: float, t0: float, k: float
) -> None:
    parameter, optimizer = scalar(start, lr=lr, gamma=gamma, t0=t0, k=k, eps=1e-8)
    for gradient in gradients:
        step(parameter, optimizer, gradient)
    assert parameter.item() == pytest.approx(reference(start, gradients, lr, gamma, t0, k), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_without_annealing_it_is_adamw(decay: float) -> None:
    torch.manual_seed(0)
    ours = [torch.nn.Parameter(torch.randn(shape)) for shape in ((5, 3), (7,), ())]
    theirs = [torch.nn.Parameter(p.detach().clone()) for p in ours]
    optimizers = (
        RecAdamOptimizer(ours, lr=0.01, weight_decay=decay, gamma=5000, t0=ALWAYS),
        torch.optim.AdamW(theirs, lr=0.01, weight_decay=decay),
    )
    for _ in range(20):
        for a, b in zip(ours, theirs, strict=True):
            a.grad = torch.randn(a.shape)
            b.grad = a.grad.clone()
        for optimizer in optimizers:
            optimizer.step()
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-7)


def test_every_parameter_of_a_model_is_pulled(tmp_path: Path) -> None:
    """Half way: lambda is 0, lr * gamma 1/2, and the gradients are nought. Norms, biases and embeddings as well."""
    model = tiny_models.model("gpt2", 50)
    start = {name: p.detach().clone() for name, p in model.named_parameters()}
    arguments = training_arguments(TrainOptions(), "fp32", tmp_path, 1, "recadam", TrainingArguments)
    trainer = ContinualTrainer(model=model, args=arguments)
    trainer.set_up(TrainOptions(), RecAdam(gamma=5000.0, t0=NEVER))
    optimizer = trainer.create_optimizer()
    assert isinstance(optimizer, RecAdamOptimizer)
    assert {g["lr"] * g["gamma"] for g in optimizer.param_groups} == {0.5}
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    optimizer.step()
    assert all(torch.equal(p, start[name]) for name, p in model.named_parameters())
    with torch.no_grad():
        for p in model.parameters():
            p.add_(1.0)
    optimizer.step()
    kinds = ("wte", "wpe", "ln_1.weight", "ln_1.bias", "c_attn.weight", "c_attn.bias", "mlp.c_fc.weight", "ln_f")
    assert all(any(kind in name for name in start) for kind in kinds)
    for name, p in model.named_parameters():
        torch.testing.assert_close(p, start[name] + 0.5, msg=name)


def test_weights_of_matrices_alone_decay(tmp_path: Path) -> None:
    options = TrainOptions(weight_decay=0.1)
    model = tiny_models.model("gpt2", 50)
    arguments = training_arguments(options, "fp32", tmp_path, 1, "recadam", TrainingArguments)
    trainer = ContinualTrainer(model=model, args=arguments)
    trainer.set_up(options, RecAdam())
    decay = {p: group["weight_decay"] for group in trainer.create_optimizer().param_groups for p in group["params"]}
    assert {name: decay[p] for name, p in model.named_parameters()} == {
        name: 0.1 if p.dim() > 1 else 0.0 for name, p in model.named_parameters()
    }


def test_a_parameter_without_a_gradient_stays_and_begins_at_its_own_first_step() -> None:
    first, second = (torch.nn.Parameter(torch.ones((), dtype=torch.float64)) for _ in range(2))
    optimizer = RecAdamOptimizer([first, second], lr=0.1, eps=0.0, k=K3, t0=1, gamma=2)
    first.grad = torch.ones_like(first)
    optimizer.step()
    assert second.item() == 1.0
    second.grad = torch.ones_like(second)
    optimizer.step()
    assert (first.item(), second.item()) == pytest.approx((0.8775, 0.95), rel=1e-12)  # as in BY_HAND


def test_a_closure_gives_the_loss() -> None:
    parameter, optimizer = scalar(1.0, lr=0.1, k=K3, t0=1, gamma=2)

    def closure() -> float:
        parameter.grad = None
        loss = 2 * parameter
        loss.backward()
        return loss.item()

    assert optimizer.step(closure) == 2.0
    assert parameter.item() == pytest.approx(0.95)


def test_papers_constants_are_the_defaults() -> None:
    group = RecAdam().optimizer([{"params": [torch.nn.Parameter(torch.ones(1))]}], lr=1e-4).param_groups[0]
    assert (group["gamma"], group["t0"], group["k"]) == (5000, 250, 0.5)
