"""Replay keeps a constant share of past data in every batch."""

import math
from fractions import Fraction

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from temporalwiki.methods.options import TrainOptions
from temporalwiki.methods.replay import Replay
from temporalwiki.methods.trainer import EMPTY, example_order


def past_in_batches(percent: int, new: int, batch: int, epochs: int, past: int = 1000) -> list[int]:
    """How many past examples each full batch of a run has."""
    options = TrainOptions(batch_size=batch, epochs=epochs)
    order = example_order(Replay(share=percent / 100), options, new, past)
    batches = order.reshape(-1, batch)
    return [int((b >= new).sum()) for b in batches if EMPTY not in b]


@given(percent=st.integers(1, 99), new=st.integers(1, 300), batch=st.integers(1, 64), epochs=st.integers(1, 4))
@example(percent=25, new=1000, batch=64, epochs=1)
@example(percent=10, new=100, batch=10, epochs=1)
@example(percent=10, new=4, batch=10, epochs=10)
def test_every_batch_has_its_share_of_the_past(percent: int, new: int, batch: int, epochs: int) -> None:
    """No more than a rounding away from it: the floor of share * batch size, or one more if that is fractional."""
    share = Fraction(percent, 100) * batch
    assert set(past_in_batches(percent, new, batch, epochs)) <= {math.floor(share), math.ceil(share)}


@given(percent=st.integers(1, 99), new=st.integers(1, 300), past=st.integers(1, 50), number=st.integers(0, 5))
def test_an_epoch_has_each_new_example_once_and_the_past_evenly(
    percent: int, new: int, past: int, number: int
) -> None:
    order = Replay(share=percent / 100).epoch(number, new, past, np.random.default_rng([0, number]))
    assert sorted(order[order < new]) == list(range(new))
    drawn = order[order >= new] - new
    counts = np.bincount(drawn, minlength=past)
    assert len(counts) == past
    assert counts.max() - counts.min() <= 1
    wanted = Fraction(new) / (1 - Fraction(percent, 100)) - new
    assert abs(len(drawn) - wanted) < 1  # rounded, up or down


def test_the_past_is_drawn_anew_and_the_new_shuffled_anew_each_epoch() -> None:
    orders = [Replay(share=0.5).epoch(n, 100, 10_000, np.random.default_rng([0, n])) for n in (0, 1)]
    first, second = (set(order[order >= 100]) for order in orders)
    assert len(first & second) < 10
    assert list(orders[0][orders[0] < 100]) != list(orders[1][orders[1] < 100])
    again = Replay(share=0.5).epoch(1, 100, 10_000, np.random.default_rng([0, 1]))
    assert list(again) == list(orders[1])
