"""Mix-Review reads all new examples and a share of past ones that shrinks, with a new sample each epoch."""

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalwiki.methods.diff import Diff
from temporalwiki.methods.mix_review import MixReview, sample
from temporalwiki.methods.options import TrainOptions
from temporalwiki.methods.trainer import EMPTY, OrderedExamples, example_order


def epoch(method: Any, number: int, new: int, past: int, seed: int = 0) -> np.ndarray:
    return method.epoch(number, new, past, np.random.default_rng([seed, number]))


# past examples of each epoch: ratio * decay^epoch * new
LENGTHS = {
    "CKL": (MixReview(ratio=4, decay=0.7), 1000, [4000, 2800, 1960, 1372, 960, 672]),  # 960.4, 672.28
    "CKL, few": (MixReview(ratio=4, decay=0.7), 10, [40, 28, 20, 14, 10, 7]),  # 19.6, 13.72, 9.604, 6.7228
    "TemporalWiki": (MixReview(), 1000, [2000, 1400, 980]),
    "without decay": (MixReview(ratio=0.5, decay=1), 100, [50, 50, 50]),
    "to nothing": (MixReview(ratio=1, decay=0.1), 20, [20, 2, 0, 0]),
}


@pytest.mark.parametrize(("method", "new", "expected"), LENGTHS.values(), ids=LENGTHS)
def test_the_past_shrinks_epoch_by_epoch(method: MixReview, new: int, expected: list[int]) -> None:
    past = 10_000
    orders = [epoch(method, number, new, past) for number in range(len(expected))]
    assert [int((order >= new).sum()) for order in orders] == expected
    assert [method.review(number, new) for number in range(len(expected))] == expected
    for order in orders:
        assert sorted(order[order < new]) == list(range(new))
        assert len(set(order)) == len(order)  # the past is large enough for no example to come twice
        assert order.max() < new + past


def test_the_sample_is_drawn_anew_each_epoch() -> None:
    method = MixReview(ratio=2, decay=1)
    first, second = (set(order[order >= 100]) for order in (epoch(method, n, 100, 10_000) for n in (0, 1)))
    assert len(first) == len(second) == 200
    assert len(first & second) < 20  # 4 are expected of two independent samples


def test_new_and_past_are_mixed() -> None:
    order = epoch(MixReview(ratio=1), 0, 1000, 1000)
    halves = [(half < 1000).mean() for half in np.split(order, 2)]
    assert all(0.4 < share < 0.6 for share in halves)
    assert list(order[order < 1000]) != sorted(order[order < 1000])


@given(wanted=st.integers(0, 200), of=st.integers(1, 40), seed=st.integers(0, 2**32 - 1))
def test_a_smaller_past_is_repeated_evenly(wanted: int, of: int, seed: int) -> None:
    drawn = sample(wanted, of, np.random.default_rng(seed))
    assert len(drawn) == wanted
    assert drawn.dtype == np.int64
    counts = [Counter(drawn.tolist())[example] for example in range(of)]
    assert sum(counts) == wanted  # no example is out of range
    assert max(counts) - min(counts) <= 1


def test_every_past_example_has_the_same_chance() -> None:
    draw = np.random.default_rng(0)
    counts = Counter(int(i) for _ in range(3000) for i in sample(7, 5, draw))
    # each 1.4 times on average, 4,200 in 3,000 samples, with a deviation of sqrt(3000 * 0.4 * 0.6) = 27
    assert all(abs(counts[i] - 4200) < 5 * 27 for i in range(5))


@given(
    new=st.integers(1, 60),
    past=st.integers(1, 60),
    batch=st.integers(1, 20),
    epochs=st.integers(1, 4),
    seed=st.integers(0, 2**32 - 1),
    ratio=st.floats(0.1, 4),
    decay=st.floats(0.1, 1),
)
def test_a_run_is_its_epochs_without_a_gap(
    new: int, past: int, batch: int, epochs: int, seed: int, ratio: float, decay: float
) -> None:
    method = MixReview(ratio=ratio, decay=decay)
    order = example_order(method, TrainOptions(batch_size=batch, epochs=epochs, seed=seed), new, past)
    assert len(order) % batch == 0
    padding = int((order == EMPTY).sum())
    assert padding < batch
    read = order[: len(order) - padding]
    assert (read != EMPTY).all()
    at = 0
    for number in range(epochs):
        size = new + round(ratio * decay**number * new)
        part = read[at : at + size]
        assert sorted(part[part < new]) == list(range(new))
        assert part.max() < new + past
        at += size
    assert at == len(read)


def test_max_steps_cuts_short_or_goes_on_with_further_epochs() -> None:
    method = MixReview(ratio=2, decay=0.5)
    options = TrainOptions(batch_size=4, epochs=3)
    # 4 new ones and 8, 4, 2, 1, 0 (0.5), 0 of the past: epochs of 12, 8, 6, 5, 4, 4 examples
    whole = example_order(method, options, 4, 100)
    assert len(whole) == 28
    assert list(whole[-2:]) == [EMPTY] * 2
    short = example_order(method, replace(options, max_steps=2), 4, 100)
    assert list(short) == list(whole[:8])
    long = example_order(method, replace(options, max_steps=10), 4, 100)
    assert len(long) == 40
    assert EMPTY not in long
    assert list(long[:26]) == list(whole[:26])
    assert [sorted(part[part < 4].tolist()) for part in np.split(long, [12, 20, 26, 31, 35, 39])[:6]] == [
        [0, 1, 2, 3]
    ] * 6
    assert [int((part >= 4).sum()) for part in np.split(long, [12, 20, 26, 31, 35, 39])[:6]] == [8, 4, 2, 1, 0, 0]
    exact = example_order(method, replace(options, epochs=1), 4, 100)
    assert EMPTY not in exact


def test_the_order_is_a_function_of_the_seed_alone() -> None:
    options = TrainOptions(batch_size=8, epochs=2, seed=7)
    order = example_order(MixReview(), options, 50, 70)
    np.random.seed(123)
    for same in (
        options,
        replace(options, micro_batch_size=3, save_steps=2, learning_rate=1.0, schedule="cosine"),
        replace(options, sequence_length=10),
    ):
        assert list(example_order(MixReview(), same, 50, 70)) == list(order)
    assert list(example_order(MixReview(), replace(options, seed=8), 50, 70)) != list(order)
    longer = example_order(MixReview(), replace(options, epochs=3), 50, 70)
    assert list(longer[: 2 * 50 + 100 + 70]) == list(
        order[: 2 * 50 + 100 + 70]
    )  # an epoch more changes no earlier one


def test_a_reading_has_new_past_and_empty_examples_where_the_order_says() -> None:
    new = [{"input_ids": [i], "starts": [0], "next_token": i + 1} for i in range(2)]
    past = [{"input_ids": [10 + i], "starts": [0], "next_token": 11 + i} for i in range(3)]
    reading = OrderedExamples(np.array([1, 2, 4, 0, 3, EMPTY]), new, past)
    assert len(reading) == 6
    assert [reading[i] for i in range(5)] == [new[1], past[0], past[2], new[0], past[1]]
    assert reading[5] == {"input_ids": [], "starts": [], "next_token": -1}


def test_plain_training_reads_the_new_data_alone_in_another_order_each_epoch() -> None:
    order = example_order(Diff(), TrainOptions(batch_size=7, epochs=2), 50, 0)
    first, second = order[:50], order[50:100]
    assert sorted(first) == sorted(second) == list(range(50))
    assert list(first) != list(second)
    assert list(order[100:]) == [EMPTY] * 5
