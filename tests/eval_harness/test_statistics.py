"""Intervals have their coverage, comparisons are paired, and transfer follows the papers' equations."""

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
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from temporalwiki.base.errors import InputError
from temporalwiki.eval_harness.statistics import (
    DIFFERENCE,
    MEAN,
    PERCENT,
    PERPLEXITY,
    POINTS,
    QUOTIENT,
    Estimate,
    Items,
    Ranks,
    Scale,
    Transfer,
    compare,
    estimate,
    quotient,
    ranks,
    spread_of,
    transfer,
    value_of,
)


def clustered(generator: np.random.Generator, clusters: int, shared: float, mean: float = 0.0) -> Items:
    """Return clusters of one to five items with variance 1, a share ``shared`` of it common to a cluster."""
    sizes = generator.integers(1, 6, size=clusters)
    common = np.repeat(generator.normal(size=clusters), sizes)
    values = mean + np.sqrt(shared) * common + np.sqrt(1 - shared) * generator.normal(size=sizes.sum())
    labels = np.repeat(np.arange(clusters), sizes).tolist()
    return Items(values, 1, labels, range(len(labels)))


def related(generator: np.random.Generator, subjects: int, relations: int, effect: float) -> Items:
    """Return three facts about each subject, with effects of subjects, and of relations with this deviation."""
    subject, relation = np.repeat(np.arange(subjects), 3), generator.integers(0, relations, 3 * subjects)
    values = generator.normal(size=3 * subjects) + generator.normal(size=subjects)[subject]
    values += effect * generator.normal(size=relations)[relation]
    return Items(values, 1, subject.tolist(), range(3 * subjects), relation.tolist())


def width(result: Any) -> float:
    return float(result.high - result.low)


# The score


def test_ratio_of_sums_by_hand() -> None:
    """3 of 4 hits; NLLs of 2 + 4 nats on 1 + 2 tokens: exp(6 / 3), not the mean of exp(2) and exp(2) of the items."""
    hits = estimate([Items([100, 100, 0, 100], 1, ["a", "b", "b", "c"])], PERCENT)
    assert (hits.value, hits.items, hits.clusters) == (75.0, 4, 3)
    assert estimate([Items([2, 4], [1, 2], ["a", "b"])], PERPLEXITY).value == pytest.approx(math.exp(2))
    assert estimate([Items([1, 4], [1, 3], ["a", "b"])], PERPLEXITY).value == pytest.approx(math.exp(5 / 4))


def test_an_estimate_is_plain_json() -> None:
    known, unknown = estimate([Items([1, 2], [1, 1], ["a", "b"])]), estimate([Items([1, 2], [1, 1], ["a", "a"])])
    assert Estimate(**json.loads(json.dumps(asdict(known), allow_nan=False))) == known
    assert json.loads(json.dumps(asdict(unknown)))["low"] is None


def test_one_cluster_has_no_interval_and_agreeing_clusters_one_without_width() -> None:
    assert estimate([Items([1, 3], 1, ["a", "a"])]) == Estimate(2.0, None, None, items=2, clusters=1)
    assert estimate([Items([1, 1], 1, ["a", "b"])]) == Estimate(1.0, 1.0, 1.0, items=2, clusters=2)


def test_average_is_the_mean_of_the_perplexities_not_that_of_all_items() -> None:
    unchanged, changed = Items([2, 4, 3], 1, ["a", "b", "c"]), Items([5], 1, ["a"])
    average = estimate([unchanged, changed], PERPLEXITY)
    assert average == Estimate(pytest.approx((math.exp(3) + math.exp(5)) / 2), None, None, items=4, clusters=3)
    assert average.value == value_of([unchanged, changed], PERPLEXITY)


def test_average_knows_which_clusters_the_tests_share() -> None:
    """Two equal tests vary like one of them; tests about other subjects vary less, by the root of 2."""
    items = clustered(np.random.default_rng(8), 1000, 0.5)
    elsewhere = items._replace(clusters=[f"other {label}" for label in items.clusters])
    together, apart = estimate([items, items]), estimate([items, elsewhere])
    assert width(together) == pytest.approx(width(estimate([items])))
    assert width(apart) / width(together) == pytest.approx(1 / math.sqrt(2), rel=0.01)
    assert apart.clusters == 2 * together.clusters


# The interval


def equal(generator: np.random.Generator, clusters: int, models: int = 1) -> tuple[Any, Items]:
    """Return the means of clusters of three items [models, clusters], and the items."""
    values = generator.normal(size=(models, clusters, 3)) + generator.normal(size=clusters)[:, np.newaxis]
    labels = np.repeat(np.arange(clusters), 3).tolist()
    return values.mean(axis=-1), Items(values.reshape(models, -1), 1, labels, range(len(labels)))


@pytest.mark.parametrize("clusters", [2, 5, 40])
def test_with_equal_clusters_it_is_the_t_interval_of_their_means(clusters: int) -> None:
    (means,), items = equal(np.random.default_rng(1), clusters)
    expected = stats.ttest_1samp(means, 0).confidence_interval()
    found = estimate([items])
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    perplexity = estimate([items], PERPLEXITY)
    low = min(found.value, max(0.0, expected.low))  # a perplexity is at least 1
    assert (perplexity.low, perplexity.high) == pytest.approx((math.exp(low), math.exp(expected.high)))


def without(items: Items, labels: Sequence[Any]) -> list[float]:
    """Return the means of the items without each label."""
    values = np.asarray(items.numerators)
    return [float(np.mean([v for v, own in zip(values, labels, strict=True) if own != one])) for one in set(labels)]


def jackknife(means: Sequence[float], value: float) -> float:
    return (len(means) - 1) / len(means) * sum((mean - value) ** 2 for mean in means)


def freedom(shares: Any) -> float:
    """Return the degrees of freedom of clusters with these shares of the items."""
    variances = np.asarray(shares, float) ** 1.5
    return float(variances.sum() ** 2 / (variances**2).sum() - 1)


@pytest.mark.parametrize("effect", [0.0, 1.0])
def test_what_relations_vary_more_than_subjects_is_added(effect: float) -> None:
    """The variance is that over subjects, plus that over relations in excess of facts with the same of both."""
    items = related(np.random.default_rng(3), 40, 6, effect)
    both = list(zip(items.clusters, items.relations, strict=True))
    value = float(np.mean(items.numerators))
    of_subjects, of_relations, of_both = (
        jackknife(without(items, labels), value) for labels in (items.clusters, items.relations, both)
    )
    excess = max(of_relations - min(of_both, of_subjects), 0)
    sizes = np.unique(items.relations, return_counts=True)[1]
    of_relation = sizes.sum() ** 2 / (sizes**2).sum() - 1
    variance = of_subjects + excess
    of_all = variance**2 / (of_subjects**2 / (40 - 1) + of_relations**2 / of_relation)  # the excess is as uncertain
    half = stats.t.ppf(0.975, of_all) * math.sqrt(variance)
    found = estimate([items])
    assert (found.low, found.high) == pytest.approx((value - half, value + half))
    plain = estimate([items._replace(relations=())])
    assert width(found) >= width(plain)
    assert (width(found) > 1.5 * width(plain)) == (effect > 0)


def test_a_single_relation_says_nothing_of_others() -> None:
    items = related(np.random.default_rng(4), 20, 1, 1.0)
    assert estimate([items]) == estimate([items._replace(relations=())])


@pytest.mark.parametrize(("subjects", "relations", "effect"), [(10, 10, 0.0), (10, 10, 0.7), (50, 20, 0.7)])
def test_it_covers_the_truth_as_often_as_it_says(subjects: int, relations: int, effect: float) -> None:
    """400 times; three standard errors of a share are 3.3 points. docs/performance.md has more cases."""
    generator = np.random.default_rng(5)
    found = [estimate([related(generator, subjects, relations, effect)]) for _ in range(400)]
    covered = sum(one.low is not None and one.high is not None and one.low <= 0 <= one.high for one in found)
    assert 0.92 <= covered / 400 <= 0.985


# hits of items that are their own clusters -> Wilson's interval (Wilson 1927), with z = 1.96
AT_THE_END = {(0, 10): (0.0, 27.75), (10, 10): (72.25, 100.0), (0, 100): (0.0, 3.70), (1, 1000): None}


@pytest.mark.parametrize("case", AT_THE_END)
def test_a_percentage_stays_within_its_bounds_and_has_a_width(case: tuple[int, int]) -> None:
    hits, count = case
    found = estimate([Items([100] * hits + [0] * (count - hits), 1, range(count))], PERCENT)
    assert found.low is not None and found.high is not None
    assert 0 <= found.low <= found.value <= found.high <= 100 and found.low < found.high
    if (expected := AT_THE_END[case]) is not None:
        assert (found.low, found.high) == pytest.approx(expected, abs=0.01)


def test_a_percentage_is_wilsons_for_the_number_of_independent_items() -> None:
    """40 clusters of three equal items are worth about 40 items, not 120."""
    hits = [100.0] * 12 + [0.0] * 28
    thrice = estimate([Items(np.repeat(hits, 3), 1, np.repeat(range(40), 3).tolist())], PERCENT)
    share, count, t = 0.3, 39.0, stats.t.ppf(0.975, 39)  # the jackknife divides by one less
    middle, half = share + t**2 / 2 / count, t * math.sqrt(share * (1 - share) / count + t**2 / 4 / count**2)
    assert thrice.low == pytest.approx(100 * (middle - half) / (1 + t**2 / count))
    assert thrice.high == pytest.approx(100 * (middle + half) / (1 + t**2 / count))


# Runs with other seeds


def test_the_spread_of_runs_is_in_the_interval() -> None:
    """Three runs with the means -1, 0 and 1 on items that hardly vary: 0 and t(2) times the root of 1 / 3."""
    noise = np.random.default_rng(7).normal(size=200) / 1e6
    found = estimate([Items([noise - 1, noise, noise + 1], 1, range(200))])
    assert (found.value, found.high) == pytest.approx((0, stats.t.ppf(0.975, 2) * math.sqrt(1 / 3)), abs=1e-4)
    assert (found.items, found.clusters) == (200, 200)


def test_runs_that_agree_are_one_run() -> None:
    items = related(np.random.default_rng(8), 30, 5, 0.5)
    thrice = estimate([items._replace(numerators=[items.numerators] * 3)])
    one = estimate([items])
    assert (thrice.value, thrice.low, thrice.high) == pytest.approx((one.value, one.low, one.high))


def test_models_whose_runs_overlap_are_not_told_apart() -> None:
    """One run of each differs clearly on these items; the means of three runs do not."""
    noise = np.random.default_rng(9).normal(size=100) / 10
    rows = [noise + level for level in (0, 1, 2, 0.5, 1.5, 2.5)]
    assert ranks([Items([rows[0], rows[3]], 1, range(100))], higher_is_better=True) == [Ranks(2, 2), Ranks(1, 1)]
    assert ranks([Items(rows, 1, range(100))], higher_is_better=True, runs=[3, 3]) == [Ranks(1, 2)] * 2
    far = [*rows[:3], *(row + 10 for row in rows[3:])]
    assert ranks([Items(far, 1, range(100))], higher_is_better=True, runs=[3, 3]) == [Ranks(2, 2), Ranks(1, 1)]


# The difference of two tests within relations


def facts(generator: np.random.Generator, count: int, relations: str, level: float) -> Items:
    names = generator.choice(list(relations), count).tolist()
    values = level + generator.normal(size=count) + np.array([ord(name) - ord("a") for name in names])
    return Items(values, 1, generator.integers(0, 30, count).tolist(), (), names)


def test_points_stay_between_minus_and_plus_100() -> None:
    """Facts that were lost, kept and gained: -100, 0 and 100. The interval is the t interval, cut at the ends."""
    gains = [100.0, 100.0, 0.0, 100.0, 100.0, 100.0]
    found = estimate([Items(gains, 1, "uvwxyz")], POINTS)
    half = stats.t.ppf(0.975, 5) * np.std(gains, ddof=1) / math.sqrt(6)
    assert (found.value, found.low, found.high) == pytest.approx((500 / 6, 500 / 6 - half, 100))


@pytest.mark.parametrize(("all", "count"), [(0.0, 9), (100.0, 9), (-100.0, 400)])
def test_points_that_agree_keep_the_interval_of_a_share_of_0(all: float, count: int) -> None:
    found = estimate([Items([all] * count, 1, range(count))], POINTS)
    square = stats.norm.ppf(0.975) ** 2
    reach = 100 * square / (count + square)  # the upper end of Wilson's interval of 0 out of count
    assert (found.low, found.high) == pytest.approx((max(-100, all - reach), min(100, all + reach)))


def test_a_difference_of_two_percentages_by_hand() -> None:
    deleted, unchanged = Items([100, 100, 0, 0], 1, "abcd"), Items([100, 0, 0, 0], 1, "efgh")
    assert estimate([deleted, unchanged], DIFFERENCE).value == 25


def test_a_perplexity_never_lies_below_1() -> None:
    found = estimate([Items([0.01, 0.0, 3.0], 1, "abc")], PERPLEXITY)
    assert found.low == 1.0 < found.value


# A quotient of sums of tests


def test_fieller_by_its_definition() -> None:
    """At both ends q, the t value of a - q b is the t quantile."""
    generator = np.random.default_rng(12)
    above, below = generator.normal(3, 1, 50), generator.normal(2, 1, 50)
    found = quotient([Items(above, 1, range(50)), Items(below, 1, range(50))], [1, 0], [0, 1])
    assert found.value == pytest.approx(above.mean() / below.mean())
    for end in (found.low, found.high):
        assert end is not None
        assert abs(stats.ttest_1samp(above - end * below, 0).statistic) == pytest.approx(stats.t.ppf(0.975, 49))


def test_a_divisor_that_may_be_0_has_no_upper_end() -> None:
    generator = np.random.default_rng(13)
    one, noise = Items(1 + generator.normal(size=50) / 9, 1, range(50)), Items(generator.normal(size=50), 1, range(50))
    found = quotient([one, noise._replace(numerators=np.asarray(noise.numerators) + 0.1)], [1, 0], [0, 1])
    assert found.high == math.inf and found.low is not None and 0 < found.low < found.value
    lost = quotient([one, one], [1, 0], [0, -1])
    assert (lost.value, lost.low, lost.high) == (math.inf, math.inf, math.inf)
    kept = quotient([one, one], [-1, 0], [0, 1])
    assert (kept.value, kept.low, kept.high) == (0, 0, 0)
    assert quotient([Items([1], 1, "a"), Items([1, 1], 1, "ab")], [1, 0], [0, 1]).low is None


# Order and labels of the items

VALUES = st.floats(-100, 100).map(lambda x: round(x, 3))
ITEMS = st.lists(st.tuples(VALUES, st.integers(1, 9), st.integers(0, 12), st.integers(0, 3)), min_size=1, max_size=40)


def few(items: Sequence[tuple[float, int, Any, Any]], scale: Scale = MEAN) -> Estimate:
    above, below, subjects, relations = zip(*items, strict=True)
    return estimate([Items(above, below, subjects, (), relations)], scale)


@given(ITEMS, st.randoms(use_true_random=False))
def test_order_of_items_and_type_of_labels_do_not_matter(items: list[Any], random: Any) -> None:
    found = few(items)
    assert found == few(random.sample(items, len(items)))
    assert found == few([(n, d, str(c), r) for n, d, c, r in items])
    assert found == few([(n, d, np.int64(c), r) for n, d, c, r in items])


@given(ITEMS)
def test_interval_has_two_ends_around_the_value_or_none(items: list[Any]) -> None:
    found = few(items)
    subjects = {c for _, _, c, _ in items}
    assert found.clusters == len(subjects) and found.items == len(items)
    assert (found.low is None) == (found.high is None) == (len(subjects) == 1)
    if found.low is not None and found.high is not None:
        assert found.low <= found.value <= found.high


@given(ITEMS, VALUES, VALUES.filter(lambda x: abs(x) > 0.01))
def test_scores_that_are_shifted_and_scaled_shift_and_scale_the_interval(
    items: list[Any], shift: float, scale: float
) -> None:
    found, moved = few(items), few([(scale * n + shift * d, d, c, r) for n, d, c, r in items])
    if found.low is None or found.high is None or moved.low is None or moved.high is None:
        assert (found.low, moved.low) == (None, None)
        return
    close = partial(pytest.approx, rel=1e-6, abs=1e-6 * (1 + abs(scale)))
    assert moved.value == close(scale * found.value + shift)
    if width(found) < 1e6:  # a few clusters of very unequal size
        assert width(moved) == close(abs(scale) * width(found))


def test_hash_seed_does_not_matter() -> None:
    code = (
        "from temporalwiki.eval_harness.statistics import Items, estimate\n"
        "print(estimate([Items([i * i / 7 for i in range(50)], 1, [f'Q{i % 17}' for i in range(50)])]))"
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
    "too much": (([800, 800], 1, ["a", "b"]), "the score inf is not a finite number"),
}


# Two models

compare_fixed = partial(compare, fixed=(True, True))  # models that nobody trained, such as two from the Hub


def two_models(generator: np.random.Generator, clusters: int, gain: float) -> tuple[Items, Items]:
    """Return two models; the second is better by ``gain``, on items that are hard or easy for both."""
    first = clustered(generator, clusters, 0.5)
    values = np.asarray(first.numerators)
    return first, first._replace(numerators=values + gain + 0.3 * generator.normal(size=len(values)))


def test_with_equal_clusters_it_is_the_paired_t_test() -> None:
    means, items = equal(np.random.default_rng(14), 12, models=2)
    expected = stats.ttest_rel(means[1], means[0])
    sides = [items._replace(numerators=row) for row in np.asarray(items.numerators)]
    found = compare_fixed([sides[0]], [sides[1]])
    interval = expected.confidence_interval()
    assert (found.low, found.high, found.p_value) == pytest.approx((interval.low, interval.high, expected.pvalue))
    assert (found.difference, found.items, found.clusters) == (
        pytest.approx(float(np.diff(means.mean(axis=1))[0])),
        36,
        12,
    )


def test_a_model_compared_with_itself_differs_by_nothing() -> None:
    items = clustered(np.random.default_rng(9), 50, 0.5)
    result = compare_fixed([items], [items], PERPLEXITY)
    assert (result.difference, result.low, result.high, result.p_value) == (0, 0, 0, 1)


def test_swapped_models_have_the_opposite_difference_and_the_same_p_value() -> None:
    one, other = two_models(np.random.default_rng(10), 50, 0.05)
    there, back = compare_fixed([one], [other], PERPLEXITY), compare_fixed([other], [one], PERPLEXITY)
    assert (back.difference, back.low, back.high) == pytest.approx((-there.difference, -there.high, -there.low))
    assert there.p_value == pytest.approx(back.p_value)


def test_difference_of_perplexities_is_that_of_their_logs() -> None:
    generator = np.random.default_rng(12)
    (a, c), (b, d) = two_models(generator, 30, 0.2), two_models(generator, 20, -0.3)
    result = compare_fixed([a, b], [c, d], PERPLEXITY)
    before, after = (estimate(side, PERPLEXITY) for side in ([a, b], [c, d]))
    assert math.exp(result.difference) == pytest.approx(after.value / before.value)
    assert (result.items, result.clusters) == (before.items, before.clusters)
    quotient_of_them = estimate([c, a], QUOTIENT)
    assert quotient_of_them.value == pytest.approx(math.exp(compare_fixed([a], [c], PERPLEXITY).difference))


def test_items_are_matched_by_id_in_any_order() -> None:
    one, other = two_models(np.random.default_rng(14), 40, 0.1)
    order = np.random.default_rng(0).permutation(len(other.ids)).tolist()
    shuffled = Items(
        np.asarray(other.numerators)[order], 1, [other.clusters[i] for i in order], [str(other.ids[i]) for i in order]
    )
    assert compare_fixed([one], [shuffled]) == compare_fixed([one], [other])


def test_one_cluster_has_neither_interval_nor_p_value() -> None:
    result = compare_fixed([Items([1, 2], 1, "aa", "xy")], [Items([2, 3], 1, "aa", "xy")])
    assert (result.difference, result.low, result.high, result.p_value) == (1, None, None, None)


RUNS = np.array([[50.0, 54, 46], [60, 61, 59]])  # percent that three runs of two methods know, in every cluster


def of_runs(values: Sequence[float], clusters: int = 30) -> Items:
    """Return runs that score the same in each cluster but for noise that all runs share."""
    noise = np.random.default_rng(40).normal(size=clusters)
    labels = [str(i) for i in range(clusters)]
    return Items([value + noise for value in values], 1, labels, labels)


def test_runs_are_compared_by_hand() -> None:
    """All runs share the noise of the facts, so only the runs' spread is left, with two degrees of freedom each."""
    found = compare([of_runs(RUNS[0])], [of_runs(RUNS[1])])
    error = math.sqrt((16 + 1) / 3)
    half = stats.t.ppf(0.975, 2) * error
    assert (found.low, found.high) == pytest.approx((10 - half, 10 + half))
    assert (found.difference, found.p_value) == (pytest.approx(10), pytest.approx(2 * stats.t.sf(10 / error, 2)))
    assert found.verdict == "cannot be told apart"


def test_few_runs_weigh_by_their_own_critical_value() -> None:
    """The square of the half width adds that of the facts and that of the runs (Cochran and Cox 1957)."""
    means, items = equal(np.random.default_rng(41), 12)
    values = np.asarray(items.numerators)
    runs = items._replace(numerators=np.array([values[0] - 0.3, values[0], values[0] + 0.3]))
    of_facts = stats.t.ppf(0.975, 11) * stats.sem(means[0])
    half = math.hypot(of_facts, stats.t.ppf(0.975, 2) * 0.3 / math.sqrt(3))
    found = estimate([runs])
    assert (found.low, found.high) == pytest.approx((found.value - half, found.value + half))


ONE_RUN: dict[str, tuple[Sequence[float], Sequence[float], dict[str, Any], str]] = {
    "one run each": ([50], [60], {}, "one run: cannot be told"),
    "one run, and a model that nobody trained": ([50], [60], {"fixed": (True, False)}, "one run: cannot be told"),
    "the other has runs that differ little": ([50], [59.5, 60, 60.5], {}, "different"),
    "the other has runs that differ much": ([50], [40, 60, 80], {}, "cannot be told apart"),
    "two that nobody trained": ([50], [60], {"fixed": (True, True)}, "different"),
    "runs of a third that differ little": (
        [50],
        [60],
        {"spread": [1, 2, 3]},
        "different, by the spread of EWC's runs",
    ),
    "runs of a third that differ much": (
        [50],
        [60],
        {"spread": [1, 20, 40]},
        "cannot be told apart, by the spread of EWC's runs",
    ),
    "runs of its own come first": ([49, 50, 51], [59, 60, 61], {"spread": [1, 20, 40]}, "different"),
}


@pytest.mark.parametrize("case", ONE_RUN)
def test_one_run_is_told_apart_only_by_a_known_spread(case: str) -> None:
    first, second, options, verdict = ONE_RUN[case]
    if "spread" in options:
        options = {"spread": spread_of([of_runs(options["spread"])], of="EWC")}
    found = compare([of_runs(first)], [of_runs(second)], **options)
    assert found.verdict == verdict
    assert (found.p_value is None) == verdict.startswith("one run")


def test_an_interval_without_a_finite_end_is_not_known() -> None:
    """Two relations have one degree of freedom: the upper end would be exp(3 + 12.7 * 100)."""
    values, relations = [-97, -97, 103, 103], ["a", "a", "b", "b"]
    found = estimate([Items(values, 1, "wxyz", (), relations)], PERPLEXITY)
    assert (found.value, found.low, found.high) == (pytest.approx(math.exp(3)), None, None)


@pytest.mark.parametrize(("sizes", "effective"), [([5, 5, 5], 3), ([8, 1, 1], 100 / 66), ([10], None)])
def test_an_estimate_says_how_many_relations_count(sizes: Sequence[int], effective: float | None) -> None:
    relations = np.repeat(np.arange(len(sizes)), sizes).tolist()
    found = estimate([Items(np.arange(len(relations)), 1, range(len(relations)), (), relations)])
    assert found.relations == (effective and pytest.approx(effective))


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


@pytest.mark.parametrize(("apart", "told"), [(0.17, False), (0.22, True)], ids=["p 0.09", "p 0.03"])
def test_pairs_are_tested_step_by_step(apart: float, told: bool) -> None:
    """Holm compares the largest of three p-values with 5 %; Bonferroni would compare each with a third of that."""
    sign = np.tile([1.0, -1.0], 50)
    found = ranks([side_by_side(0 * sign, apart + sign, 10 + sign)], higher_is_better=True)
    assert found == ([Ranks(3, 3), Ranks(2, 2), Ranks(1, 1)] if told else [Ranks(2, 3), Ranks(2, 3), Ranks(1, 1)])


def test_who_is_not_told_apart_from_others_has_their_ranks_too() -> None:
    """The middle model differs from neither of the others: 40 clusters, noise of 2, differences of 0.5 and 1."""
    generator = np.random.default_rng(21)
    noise = [2 * generator.permutation(np.linspace(-1, 1, 40)) for _ in range(3)]
    found = ranks([side_by_side(noise[0], noise[1] + 0.5, noise[2] + 1)], higher_is_better=True)
    assert found == [Ranks(2, 3), Ranks(1, 3), Ranks(1, 2)]


@given(st.integers(1, 6), st.booleans())
def test_models_that_are_the_same_share_all_ranks(models: int, higher: bool) -> None:
    values = np.random.default_rng(22).normal(size=30)
    found = ranks([side_by_side(*[values] * models)], PERPLEXITY, higher_is_better=higher)
    assert found == [Ranks(1, models)] * models


def test_one_that_is_as_much_better_everywhere_is_better() -> None:
    """All resamples have the same difference, except for rounding."""
    values = np.random.default_rng(23).normal(size=30)
    tokens = np.random.default_rng(24).integers(1, 9, 30)
    for step in (1e-3, 1.0, 7.3):
        items = side_by_side(values, values - step * tokens, values, denominators=tokens)
        assert ranks([items], PERPLEXITY, higher_is_better=False) == [Ranks(2, 3), Ranks(1, 1), Ranks(2, 3)]
    hits = side_by_side([100] * 8, [0] * 8, [0] * 8)
    assert ranks([hits], higher_is_better=True) == [Ranks(1, 1), Ranks(2, 3), Ranks(2, 3)]


MODELS = st.lists(
    st.lists(st.integers(0, 3).map(float), min_size=8, max_size=8), min_size=2, max_size=5
)  # in eight clusters


@given(MODELS, st.booleans(), st.randoms(use_true_random=False))
def test_the_order_of_models_and_items_does_not_matter(models: Any, higher: bool, random: Any) -> None:
    found = ranks([side_by_side(*models)], higher_is_better=higher)
    assert found is not None
    order = random.sample(range(len(models)), len(models))
    items = random.sample(range(8), 8)
    shuffled = side_by_side(*([models[i][k] for k in items] for i in order), clusters=items)
    again = ranks([shuffled], higher_is_better=higher)
    assert again == [found[i] for i in order]


@given(MODELS)
def test_ranks_are_a_set_around_the_order_of_the_scores(models: Any) -> None:
    found = ranks([side_by_side(*models)], higher_is_better=True)
    assert found is not None
    means = [sum(values) for values in models]
    for own, mean in zip(found, means, strict=True):
        assert 1 <= own.best <= 1 + sum(other > mean for other in means)
        assert len(means) - sum(other < mean for other in means) <= own.worst <= len(means)
    backwards = ranks([side_by_side(*models)], higher_is_better=False)
    assert backwards == [Ranks(len(means) + 1 - own.worst, len(means) + 1 - own.best) for own in found]


@pytest.mark.parametrize(("models", "clusters"), [(2, 100), (10, 100), (10, 20)])
def test_of_equal_models_none_is_told_apart_as_often_as_the_level_says(models: int, clusters: int) -> None:
    """400 times: 20 are expected. Three standard errors are 13; 20 clusters are few, and cost 12 more."""
    generator = np.random.default_rng(25)
    wrong = 0
    for _ in range(400):
        values = generator.normal(size=clusters) + generator.normal(size=(models, clusters))
        found = ranks([side_by_side(*values)], higher_is_better=True)
        wrong += found != [Ranks(1, models)] * models
    assert 6 <= wrong <= (33 if clusters > 50 else 45)


def test_two_models_are_told_apart_where_compare_says_so() -> None:
    """p-values far from 0.05 agree with ``compare``; near 0.05 the two tests may differ."""
    generator = np.random.default_rng(26)
    agree = 0
    for gain in np.linspace(0, 0.12, 12):
        one, other = two_models(generator, 200, float(gain))
        p_value = compare_fixed([one], [other]).p_value
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
    """Any but those above 1e154 or below 1e-154, whose squares are infinite or 0; no score is."""
    values = np.random.default_rng(30).normal(size=40)
    for size in (1e-100, 1e-9, 1e9, 1e100):
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
    "no tests": ([], "no test to score"),
    "too few items": ([side_by_side([1, 2], [1, 2], clusters="abc")], "3 items need as many numerators"),
    "nan": ([side_by_side([1, 2], [1, math.nan], clusters="ab")], "item 1 of cluster 'b' has the score nan / 1"),
    "no items": ([Items([[]], 1, [])], "no items to score"),
    "other models": (
        [side_by_side([1], [2], clusters="a"), side_by_side([1], clusters="a")],
        r"groups of \[1, 2\] models: each needs a row for every model",
    ),
}


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
    **{
        f"score of {case}": (partial(estimate, [Items(*columns)], PERPLEXITY), said)
        for case, (columns, said) in NO_SCORE.items()
    },
    "score of no tests": (partial(estimate, []), "no test to score"),
    "spread of one run": (partial(spread_of, [of_runs([50])], of="EWC"), "two or more of them, and EWC has one"),
    **{f"comparison with {case}": (partial(compare, [PAIR], [other]), said) for case, (other, said) in UNLIKE.items()},
    "comparison with more tests": (
        partial(compare, [PAIR], [PAIR, PAIR]),
        "1 tests of one model cannot be compared with 2 of another",
    ),
    **{
        f"ranks of {case}": (partial(ranks, groups, PERPLEXITY, higher_is_better=True), said)
        for case, (groups, said) in NOT_RANKED.items()
    },
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
