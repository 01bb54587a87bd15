"""Merge saves an average of the trained weights and the phase's starting weights."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from temporalwiki.base.errors import UsageError
from temporalwiki.methods.diff import Diff
from temporalwiki.methods.merge import Merge

import tiny_models


def test_weights_weigh_the_same_unless_told_otherwise() -> None:
    trained = {"a": torch.nn.Parameter(torch.tensor([2.0, -4.0, -1.0]))}  # as they are after training, with a gradient
    start = {"a": torch.tensor([0.0, 4.0, -1.0])}
    there = trained["a"]
    Merge().finish(trained, start)
    assert trained["a"] is there  # in place
    assert there.tolist() == [1.0, 0.0, -1.0]
    assert there.requires_grad
    assert start["a"].tolist() == [0.0, 4.0, -1.0]


def test_what_was_not_trained_is_left_alone() -> None:
    trained = {"a": torch.tensor([2.0]), "frozen": torch.tensor([7.0])}
    Merge().finish(trained, {"a": torch.tensor([0.0])})
    assert {name: tensor.item() for name, tensor in trained.items()} == {"a": 1.0, "frozen": 7.0}


@pytest.mark.parametrize("kind", tiny_models.KINDS)
def test_a_whole_model_is_averaged_with_shared_weights_once(kind: str) -> None:
    """Twice would be three quarters of the way back."""
    model = tiny_models.model(kind, 40)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    with torch.no_grad():
        for p in model.parameters():
            p.add_(1.0)
    method = Merge()
    assert method.needs_start_weights
    assert not Diff().needs_start_weights
    method.finish({name: p for name, p in model.named_parameters() if p.requires_grad}, before)
    for name, p in model.named_parameters():
        torch.testing.assert_close(p, before[name] + 0.5, msg=name)


@given(
    st.floats(0.01, 1),
    st.lists(st.tuples(st.floats(-100, 100), st.floats(-100, 100)), min_size=1, max_size=8),
)
def test_it_lies_between_the_two(weight: float, pairs: list[tuple[float, float]]) -> None:
    start, trained = (torch.tensor(column, dtype=torch.float64) for column in zip(*pairs, strict=True))
    average = {"a": trained.clone()}
    Merge(weight=weight).finish(average, {"a": start})
    expected = [(1 - weight) * a + weight * b for a, b in pairs]
    assert average["a"].tolist() == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_what_is_no_average_is_refused() -> None:
    for bad in (0.0, -0.5, 1.5, float("nan")):
        with pytest.raises(UsageError, match="merge needs a weight above 0 and at most 1"):
            Merge(weight=bad)
