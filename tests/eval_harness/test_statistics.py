"""Intervals have their coverage, comparisons are paired, and transfer follows the papers' equations."""

from __future__ import annotations

import itertools
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.eval_harness import statistics
from temporalwiki.eval_harness.statistics import (
    Estimate,
    Items,
    Ranks,
    Transfer,
    compare,
    function_of_ratios,
    mean_of_ratios,
    ranks,
    ratio,
    transfer,
)


def clustered(generator: np.random.Generator, clusters: int, shared: float, mean: float = 0.0) -> Items:
    """Return clusters of one to five items with variance 1, a share ``shared`` of it common to a cluster."""
    sizes = generator.integers(1, 6, size=clusters)
    common = np.repeat(generator.normal(size=clusters), sizes)
    values = mean + np.sqrt(shared) * common + np.sqrt(1 - shared) * generator.normal(size=sizes.sum())
    labels = np.repeat(np.arange(clusters), sizes).tolist()
    return Items(values, 1, labels, range(len(labels)))


def width(result: Any) -> float:
    return float(result.high - result.low)


# The score


def test_ratio_of_sums_by_hand() -> None:
    """3 of 4 hits; NLLs of 2 + 4 nats on 1 + 2 tokens: exp(6 / 3), not the mean of exp(2) and exp(2) of the items."""
    hits = ratio([100, 100, 0, 100], 1, ["a", "b", "b", "c"])
    assert (hits.value, hits.items, hits.clusters) == (75.0, 4, 3)
    assert ratio([2, 4], [1, 2], ["a", "b"], np.exp).value == pytest.approx(math.exp(2))
    assert ratio([1, 4], [1, 3], ["a", "b"], np.exp).value == pytest.approx(math.exp(5 / 4))


def test_an_estimate_is_plain_json() -> None:
    known, unknown = ratio([1, 2], [1, 1], ["a", "b"]), ratio([1, 2], [1, 1], ["a", "a"])
    assert Estimate(**json.loads(json.dumps(asdict(known), allow_nan=False))) == known
    assert json.loads(json.dumps(asdict(unknown)))["low"] is None


def test_one_cluster_has_no_interval_and_agreeing_clusters_one_without_width() -> None:
    assert ratio([1, 3], 1, ["a", "a"]) == Estimate(2.0, None, None, items=2, clusters=1)
    assert ratio([1, 1], 1, ["a", "b"]) == Estimate(1.0, 1.0, 1.0, items=2, clusters=2)


# The interval


def enumerated(clusters: list[list[tuple[float, float]]]) -> list[float]:
    """Return the sorted ratios of all possible resamples."""
    resamples = itertools.product(clusters, repeat=len(clusters))
    items = ([item for cluster in drawn for item in cluster] for drawn in resamples)
    return sorted(math.fsum(n for n, _ in drawn) / math.fsum(d for _, d in drawn) for drawn in items)


def test_interval_is_that_of_all_possible_resamples() -> None:
    """Five clusters have 3,125 resamples: the ends lie where 2.5 % of them are below, and above."""
    clusters = [
        [(0.0, 1.0), (2.0, 3.0)],
        [(5.0, 2.0)],
        [(1.0, 4.0)],
        [(3.0, 1.0), (3.0, 2.0), (0.0, 1.0)],
        [(9.0, 5.0)],
    ]
    every = enumerated(clusters)
    flat = [(n, d, label) for label, cluster in enumerate(clusters) for n, d in cluster]
    drawn = 20_000
    estimate = ratio(*zip(*flat, strict=True), resamples=drawn)
    assert estimate.low is not None and estimate.high is not None
    off = 4 * math.sqrt(0.025 * 0.975 / drawn)  # four standard errors of the share below an end
    for end, share in ((estimate.low, 0.025), (estimate.high, 0.975)):
        below = sum(value < end - 1e-9 for value in every) / len(every)
        up_to = sum(value <= end + 1e-9 for value in every) / len(every)
        assert below - off <= share <= up_to + off
        assert below > 0.005 and up_to < 0.995  # a bound that can fail


def test_interval_covers_the_truth_as_often_as_it_says_only_if_it_knows_the_clusters() -> None:
    """300 times 60 clusters whose items agree. Three standard errors of a share of 300 are 4 points."""
    generator = np.random.default_rng(1)
    covered = {"clustered": 0, "naive": 0}
    for seed in range(300):
        items = clustered(generator, 60, shared=0.9, mean=2.0)
        for name, labels in (("clustered", items.clusters), ("naive", range(len(items.clusters)))):
            estimate = ratio(items.numerators, 1, labels, resamples=200, seed=seed)
            assert estimate.low is not None and estimate.high is not None
            covered[name] += estimate.low <= 2.0 <= estimate.high
    assert 0.90 <= covered["clustered"] / 300 <= 0.98
    assert covered["naive"] / 300 < 0.85


def test_thousands_of_items_take_a_moment() -> None:
    generator = np.random.default_rng(4)
    labels = [f"Q{i}" for i in range(8000)] + [f"Q{i}" for i in range(1000)]
    begun = time.process_time()
    estimate = ratio(generator.random(9000), generator.integers(1, 9, 9000), labels, np.exp)
    assert time.process_time() - begun < 2  # takes 0.15 s of CPU time
    assert (estimate.items, estimate.clusters) == (9000, 8000)


# Order and labels of the items

VALUES = st.floats(-100, 100).map(lambda x: round(x, 3))
ITEMS = st.lists(st.tuples(VALUES, st.integers(1, 9), st.integers(0, 12)), min_size=1, max_size=40)


def few(items: Sequence[tuple[float, float, Any]], transform: Any = None, seed: int = 0) -> Estimate:
    return ratio(*zip(*items, strict=True), transform=transform, resamples=60, seed=seed)


def close(left: Estimate, value: float, low: float | None, high: float | None) -> bool:
    pairs = ((left.value, value), (left.low, low), (left.high, high))
    return all(a == b or a == pytest.approx(b, rel=1e-9, abs=1e-9) for a, b in pairs)


@given(ITEMS, st.randoms(use_true_random=False))
def test_order_of_items_and_type_of_labels_do_not_matter(items: list[tuple[float, int, int]], random: Any) -> None:
    shuffled = random.sample(items, len(items))
    estimate = few(items)
    assert estimate == few(shuffled)
    assert estimate == few([(n, d, str(c)) for n, d, c in shuffled])
    assert estimate == few([(n, d, np.int64(c)) for n, d, c in shuffled])


@given(ITEMS)
def test_only_the_sums_of_a_cluster_matter(items: list[tuple[float, int, int]]) -> None:
    sums = {
        c: (math.fsum(n for n, _, k in items if k == c), sum(d for _, d, k in items if k == c), c) for _, _, c in items
    }
    estimate = few(items)
    assert close(few(list(sums.values())), estimate.value, estimate.low, estimate.high)


@given(ITEMS)
def test_interval_has_two_ends_and_stays_within_the_clusters_own_ratios(items: list[tuple[float, int, int]]) -> None:
    estimate = few(items)
    clusters = {c for *_, c in items}
    assert estimate.clusters == len(clusters) and estimate.items == len(items)
    if len(clusters) == 1:
        assert (estimate.low, estimate.high) == (None, None)
        return
    ratios = [few([item for item in items if item[2] == c]).value for c in clusters]
    assert estimate.low is not None and estimate.high is not None
    assert estimate.low <= estimate.high
    assert min(ratios) - 1e-9 <= estimate.low and estimate.high <= max(ratios) + 1e-9


@given(ITEMS, VALUES, VALUES.filter(lambda x: abs(x) > 0.01))
def test_scores_that_are_shifted_and_scaled_shift_and_scale_the_interval(
    items: list[tuple[float, int, int]], shift: float, scale: float
) -> None:
    estimate = few(items)
    assume(estimate.low is not None)
    moved = few([(scale * n + shift * d, d, c) for n, d, c in items])
    ends = [scale * end + shift for end in (estimate.low, estimate.high)]
    assert close(moved, scale * estimate.value + shift, min(ends), max(ends))
    transformed = few(items, lambda x: scale * x + shift)
    assert close(transformed, moved.value, moved.low, moved.high)


def test_seed_is_what_is_drawn_and_nothing_else() -> None:
    items = clustered(np.random.default_rng(6), 30, 0.5)
    one, again, other = (ratio(items.numerators, 1, items.clusters, seed=seed) for seed in (0, 0, 1))
    assert one == again and one.value == other.value and one.low != other.low


def test_hash_seed_does_not_matter() -> None:
    code = (
        "from temporalwiki.eval_harness.statistics import ratio\n"
        "print(ratio([i * i / 7 for i in range(50)], 1, [f'Q{i % 17}' for i in range(50)]))"
    )
    command = [sys.executable, "-c", code]
    outputs = {
        subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1 and b"clusters=17" in outputs.pop()


NO_SCORE = {
    "no items": (([], [], []), "no items to score"),
    "a column too short": (([1, 2], [1], ["a", "b"]), r"2 items need as many denominators, not an array of .* \(1,\)"),
    "a column too long": (([1, 2, 3], 1, ["a", "b"]), "2 items need as many numerators"),
    "a table": (([[1], [2]], 1, ["a", "b"]), "2 items need as many numerators"),
    "nan": (([1, math.nan], 1, ["a", "b"]), r"item 1 of cluster 'b' has the score nan / 1 \(0 more"),
    "none": (([1, None], 1, ["a", "b"]), "item 1 of cluster 'b' has the score nan / 1"),
    "infinite": (([1, 2], [1, math.inf], ["a", "b"]), "item 1 of cluster 'b' has the score 2 / inf"),
    "nothing to predict": (([0, 0, 1], [0, 0, 1], ["a", "b", "c"]), r"item 0 of cluster 'a' .* 0 / 0 \(1 more"),
    "negative": (([1], [-1], ["a"]), "item 0 of cluster 'a' has the score 1 / -1"),
    "too much": (([800, 800], 1, ["a", "b"]), "the score inf or one of its resamples is not a finite number"),
}


# The mean of several tests


def test_average_is_the_mean_of_the_perplexities_not_that_of_all_items() -> None:
    unchanged, changed = Items([2, 4, 3], 1, ["a", "b", "c"]), Items([5], 1, ["a"])
    average = mean_of_ratios([unchanged, changed], np.exp)
    assert average == Estimate(pytest.approx((math.exp(3) + math.exp(5)) / 2), None, None, items=4, clusters=3)


def test_average_of_one_test_is_that_test_and_of_a_test_with_itself_too() -> None:
    items = clustered(np.random.default_rng(7), 40, 0.5)
    alone = ratio(items.numerators, 1, items.clusters, np.exp)
    assert mean_of_ratios([items], np.exp) == alone
    twice = mean_of_ratios([items, items], np.exp)
    assert (twice.value, twice.low, twice.high) == pytest.approx((alone.value, alone.low, alone.high))
    assert (twice.items, twice.clusters) == (2 * alone.items, alone.clusters)


def test_average_knows_which_clusters_the_tests_share() -> None:
    """Two equal tests vary like one of them; tests about other subjects vary less, by the root of 2."""
    items = clustered(np.random.default_rng(8), 1000, 0.5)
    elsewhere = items._replace(clusters=[f"other {label}" for label in items.clusters])
    together, apart = mean_of_ratios([items, items]), mean_of_ratios([items, elsewhere])
    assert width(apart) / width(together) == pytest.approx(1 / math.sqrt(2), rel=0.1)
    assert apart.clusters == 2 * together.clusters


def test_a_resample_without_items_of_a_test_is_drawn_again() -> None:
    """Two of 102 clusters hold the second test: every seventh resample has neither, and both have the ratio 1."""
    first, second = Items([1] * 100, 1, range(100)), Items([1, 1], 1, ["x", "y"])
    assert mean_of_ratios([first, second]) == Estimate(1.0, 1.0, 1.0, items=102, clusters=102)


# A function of several tests


def test_the_mean_is_a_function_of_ratios() -> None:
    groups = [clustered(np.random.default_rng(seed), 300, 0.5) for seed in (40, 41)]
    mean, found = mean_of_ratios(groups, np.exp), function_of_ratios(lambda row: float(row.mean()), groups, np.exp)
    assert (found.value, found.items, found.clusters) == (mean.value, mean.items, mean.clusters)
    assert (found.low, found.high) == pytest.approx((mean.low, mean.high), abs=0.02 * width(mean))


def test_an_end_may_be_infinite() -> None:
    """Two clusters have four equally likely resamples: 1 / 0, 1 / 1 twice, and 1 / 2."""
    ones, some = Items([1, 1], 1, ["a", "b"]), Items([0, 2], 1, ["a", "b"])

    def function(row: Any) -> float:
        return float(row[0] / row[1]) if row[1] else math.inf

    assert function_of_ratios(function, [ones, some]) == Estimate(1.0, 0.5, math.inf, items=4, clusters=2)
    assert function_of_ratios(lambda row: math.inf, [ones]) == Estimate(math.inf, math.inf, math.inf, 2, 2)
    alone = Items([1], 1, ["a"])
    assert function_of_ratios(lambda row: math.inf, [alone, ones]) == Estimate(math.inf, None, None, 3, 2)


# Two models


def two_models(generator: np.random.Generator, clusters: int, gain: float) -> tuple[Items, Items]:
    """Return two models; the second is better by ``gain``, on items that are hard or easy for both."""
    first = clustered(generator, clusters, 0.5)
    values = np.asarray(first.numerators)
    return first, first._replace(numerators=values + gain + 0.3 * generator.normal(size=len(values)))


def test_difference_by_hand() -> None:
    """Exact match 25 and 75 %. Of two clusters the mixed resample gains 50, the others 0 and 100."""
    first = Items([0, 100, 0, 0], 1, ["a", "a", "b", "b"], "wxyz")
    second = Items([0, 100, 100, 100], 1, ["a", "a", "b", "b"], "wxyz")
    result = compare([first], [second])
    assert (result.difference, result.low, result.high) == (50.0, 0.0, 100.0)
    assert (result.items, result.clusters) == (4, 2)
    assert result.p_value == pytest.approx(2 * 0.25, abs=0.03)


def test_a_model_compared_with_itself_differs_by_nothing() -> None:
    items = clustered(np.random.default_rng(9), 50, 0.5)
    result = compare([items], [items], np.exp)
    assert (result.difference, result.low, result.high, result.p_value) == (0, 0, 0, 1)


def test_swapped_models_have_the_opposite_difference_and_the_same_p_value() -> None:
    one, other = two_models(np.random.default_rng(10), 50, 0.05)
    there, back = compare([one], [other], np.exp), compare([other], [one], np.exp)
    assert (back.difference, back.low, back.high) == pytest.approx((-there.difference, -there.high, -there.low))
    assert there.p_value == back.p_value


def test_paired_interval_is_narrower_than_two_separate_ones() -> None:
    one, other = two_models(np.random.default_rng(11), 300, 0.1)
    separate = math.hypot(*(width(ratio(items.numerators, 1, items.clusters)) for items in (one, other)))
    paired = compare([one], [other])
    assert width(paired) < separate / 3
    assert paired.low is not None and paired.low > 0
    assert repr(paired.p_value) == repr(2 / 10_001)  # no resample is on the other side; the p-value is never 0


def test_difference_is_that_of_the_estimates_also_of_averages_and_perplexities() -> None:
    generator = np.random.default_rng(12)
    (a, c), (b, d) = two_models(generator, 30, 0.2), two_models(generator, 20, -0.3)
    result = compare([a, b], [c, d], np.exp, resamples=100)
    before, after = (mean_of_ratios(side, np.exp) for side in ([a, b], [c, d]))
    assert result.difference == pytest.approx(after.value - before.value)
    assert (result.items, result.clusters) == (before.items, before.clusters)


def test_without_a_transform_it_is_the_log_of_the_perplexities_ratio() -> None:
    one, other = two_models(np.random.default_rng(13), 40, 0.2)
    perplexities = [ratio(items.numerators, 1, items.clusters, np.exp).value for items in (one, other)]
    assert math.exp(compare([one], [other], resamples=1).difference) == pytest.approx(
        perplexities[1] / perplexities[0]
    )


def test_items_are_matched_by_id_in_any_order() -> None:
    one, other = two_models(np.random.default_rng(14), 40, 0.1)
    order = np.random.default_rng(0).permutation(len(other.ids)).tolist()
    shuffled = Items(
        np.asarray(other.numerators)[order], 1, [other.clusters[i] for i in order], [str(other.ids[i]) for i in order]
    )
    assert compare([one], [shuffled], resamples=100) == compare([one], [other], resamples=100)


def test_p_value_is_below_a_level_as_often_as_the_level_says_if_models_are_equal() -> None:
    """300 times 60 clusters, no gain: of p < 0.05, 15 are expected, and 15 +- 12 are three standard errors."""
    generator = np.random.default_rng(15)
    results = [compare(*([side] for side in two_models(generator, 60, 0.0)), resamples=199) for _ in range(300)]
    assert 4 <= sum(result.p_value is not None and result.p_value < 0.05 for result in results) <= 30
    assert 110 <= sum(result.p_value is not None and result.p_value < 0.5 for result in results) <= 190


@pytest.mark.parametrize("gain", [0.0, 0.04, 0.06, 0.08, 0.2])
def test_p_value_agrees_with_the_interval(gain: float) -> None:
    result = compare(*([side] for side in two_models(np.random.default_rng(16), 60, gain)), resamples=999)
    assert result.low is not None and result.high is not None and result.p_value is not None
    if not 0.048 < result.p_value < 0.052:
        assert (result.p_value < 0.05) == (result.low > 0 or result.high < 0)


def test_one_cluster_has_neither_interval_nor_p_value() -> None:
    result = compare([Items([1, 2], 1, "aa", "xy")], [Items([2, 3], 1, "aa", "xy")])
    assert (result.difference, result.low, result.high, result.p_value) == (1, None, None, None)


PAIR = Items([1, 2], 1, ["a", "b"], ["x", "y"])
UNLIKE = {
    "other items": (PAIR._replace(ids=["y", "z"]), "same items: the first lacks 1, the second 1, 'x' among them"),
    "fewer": (Items([1], 1, ["a"], ["x"]), "same items: the first lacks 0, the second 1, 'y' among them"),
    "more": (Items([1, 2, 3], 1, "abc", "xyz"), "same items: the first lacks 1, the second 0, 'z' among them"),
    "no ids": (PAIR._replace(ids=()), "2 items need as many ids to be compared, not 0"),
    "an id twice": (PAIR._replace(ids=["x", "x"]), "1 items have the id of another item"),
    "other clusters": (
        PAIR._replace(clusters=["a", "c"]),
        "item 'y' is in cluster 'b' of one model, in 'c' of the oth",
    ),
    "nan": (PAIR._replace(numerators=[1, math.nan]), "item 'y' of cluster 'b' has the score nan / 1"),
}


# Ranks


def side_by_side(*models: Any, clusters: Any = None, denominators: Any = 1) -> Items:
    """Return the ranks of models on the same items; each item is a cluster by default."""
    return Items(np.array(models, dtype=float), denominators, clusters or range(len(models[0])))


def three_models(generator: np.random.Generator, clusters: int) -> Items:
    """The second is a little better than the first on items that are hard or easy for all, the third much worse."""
    first, second = two_models(generator, clusters, 0.3)
    values = np.asarray(first.numerators)
    third = values - 2 + 0.3 * generator.normal(size=len(values))
    return side_by_side(values, second.numerators, third, clusters=first.clusters)


def test_ranks_of_three_models_by_hand() -> None:
    items = three_models(np.random.default_rng(20), 100)
    assert ranks([items], higher_is_better=True) == [Ranks(2, 2), Ranks(1, 1), Ranks(3, 3)]
    assert ranks([items], higher_is_better=False) == [Ranks(2, 2), Ranks(3, 3), Ranks(1, 1)]


def test_who_is_not_told_apart_from_others_has_their_ranks_too() -> None:
    """The middle model differs from neither of the others: 40 clusters, noise of 2, differences of 0.5 and 1."""
    generator = np.random.default_rng(21)
    noise = [2 * generator.permutation(np.linspace(-1, 1, 40)) for _ in range(3)]
    found = ranks([side_by_side(noise[0], noise[1] + 0.5, noise[2] + 1)], higher_is_better=True)
    assert found == [Ranks(2, 3), Ranks(1, 3), Ranks(1, 2)]


@given(st.integers(1, 6), st.booleans())
def test_models_that_are_the_same_share_all_ranks(models: int, higher: bool) -> None:
    values = np.random.default_rng(22).normal(size=30)
    found = ranks([side_by_side(*[values] * models)], np.exp, higher_is_better=higher, resamples=50)
    assert found == [Ranks(1, models)] * models


def test_one_that_is_as_much_better_everywhere_is_better() -> None:
    """All resamples have the same difference, except for rounding."""
    values = np.random.default_rng(23).normal(size=30)
    tokens = np.random.default_rng(24).integers(1, 9, 30)
    for step in (1e-3, 1.0, 7.3):
        items = side_by_side(values, values - step * tokens, values, denominators=tokens)
        assert ranks([items], np.exp, higher_is_better=False) == [Ranks(2, 3), Ranks(1, 1), Ranks(2, 3)]
    hits = side_by_side([100] * 8, [0] * 8, [0] * 8)
    assert ranks([hits], higher_is_better=True) == [Ranks(1, 1), Ranks(2, 3), Ranks(2, 3)]


MODELS = st.lists(
    st.lists(st.integers(0, 3).map(float), min_size=8, max_size=8), min_size=2, max_size=5
)  # in eight clusters


@given(MODELS, st.booleans(), st.randoms(use_true_random=False))
def test_the_order_of_models_and_items_does_not_matter(models: Any, higher: bool, random: Any) -> None:
    found = ranks([side_by_side(*models)], higher_is_better=higher, resamples=60)
    assert found is not None
    order = random.sample(range(len(models)), len(models))
    items = random.sample(range(8), 8)
    shuffled = side_by_side(*([models[i][k] for k in items] for i in order), clusters=items)
    again = ranks([shuffled], higher_is_better=higher, resamples=60)
    assert again == [found[i] for i in order]


@given(MODELS)
def test_ranks_are_a_set_around_the_order_of_the_scores(models: Any) -> None:
    found = ranks([side_by_side(*models)], higher_is_better=True, resamples=60)
    assert found is not None
    means = [sum(values) for values in models]
    for own, mean in zip(found, means, strict=True):
        assert 1 <= own.best <= 1 + sum(other > mean for other in means)
        assert len(means) - sum(other < mean for other in means) <= own.worst <= len(means)
    backwards = ranks([side_by_side(*models)], higher_is_better=False, resamples=60)
    assert backwards == [Ranks(len(means) + 1 - own.worst, len(means) + 1 - own.best) for own in found]


@given(MODELS)
def test_one_that_is_better_in_every_cluster_is_first(models: Any) -> None:
    best = [max(values) + 1.0 for values in zip(*models, strict=True)]
    found = ranks([side_by_side(*models, best)], higher_is_better=True, resamples=60)
    assert found is not None
    means = [sum(values) for values in models]
    assert found[-1].best == 1
    if sum(best) - max(means) > 24:  # by more than what eight clusters may differ in
        assert found[-1] == Ranks(1, 1)


@pytest.mark.parametrize(("models", "clusters"), [(2, 100), (10, 100), (10, 20)])
def test_of_equal_models_none_is_told_apart_as_often_as_the_level_says(models: int, clusters: int) -> None:
    """400 times: 20 are expected. Three standard errors are 13; 20 clusters are few, and cost 12 more."""
    generator = np.random.default_rng(25)
    wrong = 0
    for seed in range(400):
        values = generator.normal(size=clusters) + generator.normal(size=(models, clusters))
        found = ranks([side_by_side(*values)], higher_is_better=True, resamples=300, seed=seed)
        wrong += found != [Ranks(1, models)] * models
    assert 6 <= wrong <= (33 if clusters > 50 else 45)


def test_two_models_are_told_apart_where_compare_says_so() -> None:
    """p-values far from 0.05 agree with ``compare``; near 0.05 the two tests may differ."""
    generator = np.random.default_rng(26)
    agree = 0
    for gain in np.linspace(0, 0.12, 12):
        one, other = two_models(generator, 200, float(gain))
        p_value = compare([one], [other], resamples=2000).p_value
        assert p_value is not None
        if not 0.03 < p_value < 0.07:
            both = side_by_side(one.numerators, other.numerators, clusters=one.clusters)
            found = ranks([both], higher_is_better=True)
            assert found == ([Ranks(2, 2), Ranks(1, 1)] if p_value < 0.05 else [Ranks(1, 2)] * 2)
            agree += 1
    assert agree > 6


def test_a_bad_model_beside_them_does_not_hide_that_two_differ() -> None:
    """Each difference is measured in its own deviation, so a wild one does not stand out."""
    items = three_models(np.random.default_rng(27), 100)
    wild = 1e6 * np.random.default_rng(28).normal(size=len(items.clusters))
    found = ranks([items._replace(numerators=[*np.asarray(items.numerators), wild])], higher_is_better=True)
    assert found is not None
    assert (found[0].best, found[1].best) == (2, 1)


def test_averages_are_ranked_by_the_mean_of_their_tests() -> None:
    """Models that are best in one test and worst in the other are equal on average."""
    generator = np.random.default_rng(29)
    noise = generator.normal(size=(2, 50)) / 10
    up, down = side_by_side(noise[0], noise[0] + 1), side_by_side(noise[1] + 1, noise[1])
    assert ranks([up], higher_is_better=True) == [Ranks(2, 2), Ranks(1, 1)]
    assert ranks([down], higher_is_better=True) == [Ranks(1, 1), Ranks(2, 2)]
    assert ranks([up, down], higher_is_better=True) == [Ranks(1, 2), Ranks(1, 2)]
    assert ranks([up, up], higher_is_better=True) == [Ranks(2, 2), Ranks(1, 1)]


def test_of_few_clusters_there_are_no_ranks() -> None:
    """With five clusters, one model is better in all by chance in 2 of 32 cases, which is more than 5 %."""
    assert ranks([side_by_side([0] * 5, [1] * 5)], higher_is_better=True) is None
    assert ranks([side_by_side([0] * 6, [1] * 6)], higher_is_better=True) == [Ranks(2, 2), Ranks(1, 1)]
    two_groups = [side_by_side([0] * 9, [1] * 9), side_by_side([0] * 9, [1] * 9, clusters=[0, 1, 2, 3, 4, 4, 4, 4, 4])]
    assert ranks(two_groups, higher_is_better=True) is None


def test_numbers_of_any_size_are_ranked() -> None:
    values = np.random.default_rng(30).normal(size=40)
    for size in (1e-290, 1e-9, 1e9, 1e290):
        items = side_by_side(size * values, size * (values + 1), size * (values + 1.5))
        assert ranks([items], higher_is_better=True) == [Ranks(3, 3), Ranks(2, 2), Ranks(1, 1)]
    assert ranks([side_by_side([0] * 9, [0] * 9)], higher_is_better=True) == [Ranks(1, 2)] * 2


def test_ranks_of_many_models_and_facts_take_a_moment() -> None:
    """60 models on 7,000 facts of 5,000 subjects, all pairs of them, in bounded memory."""
    generator = np.random.default_rng(31)
    values = generator.normal(size=7000) + 0.1 * generator.normal(size=(60, 7000)) + np.linspace(0, 0.5, 60)[:, None]
    items = side_by_side(*values, clusters=generator.integers(0, 5000, 7000).tolist())
    begun = time.process_time()
    found = ranks([items], higher_is_better=True)
    assert time.process_time() - begun < 5  # takes 0.2 s of CPU time
    assert found is not None and found[0].worst == 60 and found[-1].best == 1


NOT_RANKED = {
    "a column": ([Items([1, 2], 1, "ab")], r"numerators of the shape \(2,\) are not \[models, items\]"),
    "no models": ([Items(np.empty((0, 2)), 1, "ab")], r"shape \(0, 2\) are not"),
    "no tests": ([], "no test to score"),
    "too few items": ([side_by_side([1, 2], [1, 2], clusters="abc")], "3 items need as many numerators"),
    "nan": ([side_by_side([1, 2], [1, math.nan], clusters="ab")], "item 1 of cluster 'b' has the score nan / 1"),
    "no items": ([Items([[]], 1, [])], "no items to score"),
    "other models": (
        [side_by_side([1], [2], clusters="a"), side_by_side([1], clusters="a")],
        r"groups of \[2, 1\] models: each needs a row for every model",
    ),
    "too much": ([side_by_side(*[[800] * 9] * 2)], "a model's score or one of its resamples is not a finite number"),
}


def test_the_correction_for_few_clusters_is_the_t_distributions() -> None:
    """Published quantiles, two-sided 5 %: 1.96 is 2.571 of 5, 2.228 of 10 and 2.045 of 29 degrees of freedom."""
    for degrees, quantile in ((5, 2.571), (10, 2.228), (29, 2.045)):
        expected = quantile * math.sqrt((degrees + 1) / degrees)
        assert statistics._for_few(1.959964, degrees + 1) == pytest.approx(expected, rel=2e-3)
    assert statistics._for_few(1.959964, 10**7) == pytest.approx(1.959964, rel=1e-5)


# Months

SCORES = [  # after month i on the test of month j
    [50.0, 20.0, 10.0],
    [40.0, 60.0, 30.0],
    [44.0, 48.0, 70.0],
]


def test_transfer_by_hand() -> None:
    """Backward 44 - 50 and 48 - 60: -9. Forward 20 - 5 and 30 - 9: 18. Forgotten 6 and 12."""
    assert transfer(SCORES, [1, 5, 9], higher_is_better=True) == Transfer(-9.0, 18.0, 9.0)


def test_of_perplexities_lower_is_better() -> None:
    """The same matrix: backward and forward turn; the best before the end are 40 and 20, so 4 and 28 are forgotten."""
    assert transfer(SCORES, [1, 5, 9], higher_is_better=False) == Transfer(9.0, -18.0, 16.0)


def test_the_best_before_the_end_may_come_after_the_month_itself() -> None:
    assert transfer([[1, 0, 0], [5, 1, 0], [2, 3, 0]], higher_is_better=True).forgetting == ((5 - 2) + (1 - 3)) / 2


def test_months_that_are_missing_are_left_out() -> None:
    matrix = [[50.0, None, 10.0], [40.0, 60.0, 30.0], [None, 48.0, 70.0]]
    result = transfer(matrix, [1, 5, None], higher_is_better=True)
    assert result == Transfer(-12.0, None, 12.0)


def test_one_month_transfers_nothing_and_unmeasured_months_have_no_mean() -> None:
    assert transfer([[3.0]], [1.0], higher_is_better=True) == Transfer(None, None, None)
    assert transfer([[None, None], [None, None]], higher_is_better=True) == Transfer(None, None, None)


CELLS = st.none() | st.integers(-50, 50)


@given(
    st.integers(1, 5).flatmap(
        lambda n: st.lists(st.lists(CELLS, min_size=n, max_size=n), min_size=n + 1, max_size=n + 1)
    )
)
def test_transfer_of_negated_scores_is_that_of_lower_is_better(rows: list[list[int | None]]) -> None:
    *matrix, baseline = rows
    *negated, before = [[None if cell is None else -cell for cell in row] for row in rows]
    result, mirror = (
        transfer(matrix, baseline, higher_is_better=True),
        transfer(negated, before, higher_is_better=False),
    )
    assert mirror == result
    assert json.dumps(asdict(result), allow_nan=False)


NO_MATRIX = {
    "empty": ([], None, "the matrix has rows of"),
    "not square": ([[1, 2]], None, r"the matrix has rows of \[2\] cells: 1 of 1 are needed"),
    "ragged": ([[1, 2], [1]], None, r"the matrix has rows of \[2, 1\] cells: 2 of 2 are needed"),
    "nan": ([[1, 2], [math.nan, 1]], None, "the matrix has nan in row 1, column 0: write None"),
    "a short baseline": ([[1, 2], [3, 4]], [1], r"the baseline has rows of \[1\] cells: 1 of 2 are needed"),
    "infinite": ([[1, 2], [3, 4]], [1, math.inf], "the baseline has inf in row 0, column 1"),
}

# What is refused

CALLS: dict[str, tuple[Callable[[], Any], str]] = {
    **{f"score of {case}": (partial(ratio, *columns, np.exp), said) for case, (columns, said) in NO_SCORE.items()},
    "mean of no tests": (partial(mean_of_ratios, []), "no test to score"),
    "score of no resamples": (partial(ratio, [1], [1], ["a"], resamples=0), "resamples must be at least 1, not 0"),
    **{f"comparison with {case}": (partial(compare, [PAIR], [other]), said) for case, (other, said) in UNLIKE.items()},
    "comparison with more tests": (
        partial(compare, [PAIR], [PAIR, PAIR]),
        "1 tests of one model cannot be compared with 2 of another",
    ),
    **{
        f"ranks of {case}": (partial(ranks, groups, np.exp, higher_is_better=True), said)
        for case, (groups, said) in NOT_RANKED.items()
    },
    "ranks of no resamples": (
        partial(ranks, [side_by_side([1], [2])], higher_is_better=True, resamples=0),
        "resamples must be at least 1, not 0",
    ),
    **{
        f"transfer of {case}": (partial(transfer, matrix, baseline, higher_is_better=True), said)
        for case, (matrix, baseline, said) in NO_MATRIX.items()
    },
}


@pytest.mark.parametrize("case", CALLS)
def test_what_cannot_be_computed_is_refused_in_one_line(case: str) -> None:
    call, said = CALLS[case]
    with pytest.raises(InputError, match=said) as caught:
        call()
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, UsageError) is ("resamples must" in said)
