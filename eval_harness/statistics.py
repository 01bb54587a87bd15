"""Bootstrap intervals over clusters, paired comparisons and ranks of models, and transfer between months."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from temporalwiki.base.errors import InputError, UsageError

Floats = npt.NDArray[np.float64]
Transform = Callable[[Floats], Floats]
Label = str | int
Matrix = Sequence[Sequence[float | None]]

TAILS = (0.025, 0.975)  # of a 95 % interval
CONFIDENCE = 0.95  # that the ranks of all models are right
FEWEST = 6  # clusters for ranks: with 5, even a model that is better in all has p = 2 / 2**5 > 0.05 (sign test)
CHUNK = 2**18  # clusters drawn at once; bounds the memory


class Items(NamedTuple):
    """The items of one test and a model's scores on them, as columns of equal length.

    ``denominators`` may be one number for all items. ``clusters`` has one label per item, usually its subject. Labels
    and ids are compared as text. Only ``compare`` needs ``ids``.
    """

    numerators: npt.ArrayLike
    denominators: npt.ArrayLike
    clusters: Sequence[Label]
    ids: Sequence[Label] = ()


@dataclass(frozen=True)
class Estimate:
    """A score, its 95 % interval (None if a test has only one cluster), and the number of items and clusters."""

    value: float
    low: float | None
    high: float | None
    items: int
    clusters: int


@dataclass(frozen=True)
class Comparison:
    """The second model's score minus the first's; interval and p-value are None if a test has only one cluster."""

    difference: float
    low: float | None
    high: float | None
    p_value: float | None
    items: int
    clusters: int


class Ranks(NamedTuple):
    """A confidence set of a model's rank, from best to worst; 1 is the best."""

    best: int
    worst: int


@dataclass(frozen=True)
class Transfer:
    """Transfer between months, in the unit of the score; None if no cell that is needed was measured.

    Positive ``backward`` and ``forward`` are good, positive ``forgetting`` is bad.
    """

    backward: float | None
    forward: float | None
    forgetting: float | None


def ratio(
    numerators: npt.ArrayLike,
    denominators: npt.ArrayLike,
    clusters: Sequence[Label],
    transform: Transform | None = None,
    resamples: int = 1000,
    seed: int = 0,
) -> Estimate:
    """Return transform(sum of numerators / sum of denominators) with a 95 % percentile bootstrap interval.

    For perplexity, give NLL and tokens of each item and np.exp; for exact match in percent, 100 * hit and 1.

    The bootstrap draws clusters with replacement, each with all of its items, because facts about one subject are not
    independent. With fewer than about twenty clusters the interval is too narrow, as with every percentile bootstrap.
    If all clusters agree, its width is zero; one cluster gives no interval. The order of the items does not
    change a bit of the result.

    Raises InputError for no items, columns of different lengths, numbers or scores that are not finite, and
    denominators that are not positive: the caller leaves out, and counts, items with nothing to predict.
    """
    return mean_of_ratios([Items(numerators, denominators, clusters)], transform, resamples, seed)


def mean_of_ratios(
    groups: Sequence[Items], transform: Transform | None = None, resamples: int = 1000, seed: int = 0
) -> Estimate:
    """Return the mean of several tests' ``ratio``, such as TemporalWiki's average of unchanged and changed.

    A cluster is drawn with its items in all groups, because groups that share clusters are not independent. A resample
    without items of some group is drawn again. Raises the errors of ``ratio``.
    """
    values, drawn, clusters = _bootstrap(groups, transform, resamples, seed)
    low, high = _interval(drawn.mean(axis=1))
    return Estimate(float(values.mean()), low, high, sum(len(group.clusters) for group in groups), clusters)


def function_of_ratios(
    function: Callable[[Floats], float],
    groups: Sequence[Items],
    transform: Transform | None = None,
    resamples: int = 1000,
    seed: int = 0,
) -> Estimate:
    """Return a function of several tests' ``ratio``, such as FUAR of scores before and after.

    Clusters are drawn, and errors raised, as in ``mean_of_ratios``. The function may return inf, and then an end of
    the interval may be inf: each end is the value of one resample.
    """
    values, drawn, clusters = _bootstrap(groups, transform, resamples, seed)
    of_drawn = np.array([function(row) for row in drawn])
    low, high = np.quantile(of_drawn, TAILS, method="inverted_cdf").tolist() if len(of_drawn) else (None, None)
    return Estimate(function(values), low, high, sum(len(group.clusters) for group in groups), clusters)


def compare(
    first: Sequence[Items],
    second: Sequence[Items],
    transform: Transform | None = None,
    resamples: int = 10_000,
    seed: int = 0,
) -> Comparison:
    """Compare two models on the same items; both get the same clusters in every resample.

    Each side is a sequence of tests, as in ``mean_of_ratios``, with ids. The two-sided p-value is
    2 * (1 + number of resamples at 0 or on its other side) / (1 + number of resamples), and at most 1. It is never 0,
    and below 0.05 if the interval does not contain 0, up to one resample.

    Without a transform, NLLs over tokens give the log of the ratio of the two perplexities.

    Raises the errors of ``ratio``, and InputError if the sides do not have the same items in the same clusters.
    """
    if len(first) != len(second):
        raise InputError(f"{len(first)} tests of one model cannot be compared with {len(second)} of another")
    for one, other in zip(first, second, strict=True):
        _match(one, other)
    values, drawn, clusters = _bootstrap([*first, *second], transform, resamples, seed)
    tests = len(first)
    differences = drawn[:, tests:].mean(axis=1) - drawn[:, :tests].mean(axis=1)
    low, high = _interval(differences)
    p_value = None
    if len(differences):
        tail = int(min(np.count_nonzero(differences <= 0), np.count_nonzero(differences >= 0)))
        p_value = min(1.0, 2 * (1 + tail) / (1 + len(differences)))
    difference = float(values[tests:].mean() - values[:tests].mean())
    return Comparison(difference, low, high, p_value, sum(len(group.clusters) for group in first), clusters)


def ranks(
    groups: Sequence[Items],
    transform: Transform | None = None,
    *,
    higher_is_better: bool,
    resamples: int = 2000,
    seed: int = 0,
) -> list[Ranks] | None:
    """Return a confidence set of each model's rank; all hold together with 95 % (Mogstad et al. 2024, section 3).

    Models are scored as in ``mean_of_ratios``. The numerators of a group are [models, items]: all models have the same
    items, and the same clusters in every resample. With n models, the best possible rank is 1 + the number of models
    that are significantly better, and the worst is n - the number of models that are significantly worse.

    All pairs are tested together, with an error of 5 % for the whole set (single-step max-T, Romano and Wolf 2005): a
    difference, in units of its standard deviation over resamples, is significant if it exceeds the largest error of
    any pair in 95 % of the resamples (see ``_for_few``). So more pairs do not need more resamples. Scores with a
    transform are perplexities and are compared by their logs.

    Models that are equal in every resample do not differ. Models that differ by the same amount in every resample do,
    such as one that is always right and one that is always wrong. The result is None if a group has fewer than six
    clusters. With fewer than about fifty clusters, errors are somewhat more frequent than 5 %.

    The order of models and items does not matter. Raises the errors of ``ratio``, and InputError if numerators are not
    [models, items].
    """
    scores, clusters = _scores_of_models(groups, transform, resamples, seed)
    if clusters < FEWEST:
        return None
    if transform is not None:
        scores = np.log(scores)
    sign = 1 if higher_is_better else -1
    scores = np.ldexp(sign * scores, -np.frexp(abs(scores).max())[1])  # so that squares do not overflow
    models = scores.shape[1]
    better = np.zeros((models, models))  # [i, j]: by how many standard deviations j is better than i
    largest = np.zeros(len(scores) - 1)
    for i in range(models):
        differences = scores - scores[:, [i]]
        found, drawn = differences[0], differences[1:]
        rounding = 1e-9 * np.maximum(abs(scores[0]), abs(scores[0, i]))
        spread = drawn.std(axis=0)
        vary = spread > rounding
        better[i] = np.where(abs(found) > rounding, np.copysign(np.inf, found), 0.0)
        better[i, vary] = found[vary] / spread[vary]
        if vary.any():
            largest = np.maximum(largest, (abs(drawn - found)[:, vary] / spread[vary]).max(axis=1))
    critical = _for_few(float(np.quantile(largest, CONFIDENCE, method="higher")), clusters) * (1 + 1e-9)
    above, below = (better > critical).sum(axis=1), (better < -critical).sum(axis=1)
    return [Ranks(1 + int(more), models - int(less)) for more, less in zip(above, below, strict=True)]


def _for_few(quantile: float, clusters: int) -> float:
    """Correct a quantile of differences, in units of their bootstrap standard deviation, for few clusters.

    That deviation is too small by sqrt((clusters - 1) / clusters), and it varies as in a t distribution. This turns a
    normal quantile into one of the t distribution (Abramowitz and Stegun 1964, 26.7.5).
    """
    z, v = quantile, float(clusters - 1)
    first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return math.sqrt(clusters / v) * (z + first / v + second / v**2 + third / v**3)


def transfer(matrix: Matrix, baseline: Sequence[float | None] | None = None, *, higher_is_better: bool) -> Transfer:
    """Return the transfer between months, from scores R[i][j] after training on month i, on the test of month j.

    ``matrix`` is square, with None for scores that were not measured. ``baseline[j]`` is the score on the test of
    month j before any training. T is the last month. Means are over the terms with both cells.

    - backward: mean over j < T of R[T][j] - R[j][j] (Lopez-Paz & Ranzato 2017, equation 3)
    - forward: mean over j > 0 of R[j-1][j] - baseline[j] (equation 4)
    - forgetting: mean over j < T of the best R[i][j] with i < T, minus R[T][j] (Chaudhry et al. 2018, equation 3)

    If lower is better (perplexity), the differences have the other sign. Raises InputError for a matrix that is empty
    or not square, a baseline of another length, and numbers that are not finite.
    """
    months = len(matrix)
    cells = _cells("the matrix", matrix, (months, months))
    (before,) = _cells("the baseline", [[None] * months if baseline is None else baseline], (1, months))
    sign = 1.0 if higher_is_better else -1.0
    last, diagonal, next_month = cells[-1], np.diag(cells), np.diag(cells, 1)
    best = np.fmax.reduce(sign * cells[:-1, :-1], axis=0, initial=-np.inf)
    return Transfer(
        backward=_mean(sign * (last - diagonal)[:-1]),
        forward=_mean(sign * (next_month - before[1:])),
        forgetting=_mean(best - sign * last[:-1]),
    )


def _bootstrap(
    groups: Sequence[Items], transform: Transform | None, resamples: int, seed: int
) -> tuple[Floats, Floats, int]:
    """Return each group's ratio [groups], the ratios of the resamples [resamples, groups], and the number of clusters.

    A group with only one cluster gets no resamples, because its interval cannot be known.
    """
    place = _places(groups, resamples)
    sums = np.empty((2, len(groups), len(place)))
    for k, (numerators, denominators, labels) in enumerate(map(_columns, groups)):
        at = np.array([place[label] for label in labels])
        order = np.lexsort((denominators, numerators, at))  # a sum of floats depends on their order
        for values, total in ((numerators, sums[0, k]), (denominators, sums[1, k])):
            total[:] = np.bincount(at[order], values[order], len(place))

    single = np.count_nonzero(sums[1], axis=-1).min() < 2
    generator = np.random.default_rng(seed)
    totals = sums.sum(axis=-1)[np.newaxis]
    while (left := 0 if single else 1 + resamples - len(totals)) > 0:
        times = _draw(generator, len(place), left)
        drawn = np.einsum("rgc,nc->nrg", sums, times)  # unlike BLAS, its sums do not depend on the number of threads
        totals = np.concatenate([totals, drawn[drawn[:, 1].all(axis=-1)]])
    ratios = totals[:, 0] / totals[:, 1]
    if transform is not None:
        with np.errstate(all="ignore"):
            ratios = transform(ratios)
    if not np.isfinite(ratios).all():
        raise InputError(f"the score {float(ratios[0].mean())} or one of its resamples is not a finite number")
    return ratios[0], ratios[1:], len(place)


def _places(groups: Sequence[Items], resamples: int) -> dict[str, int]:
    """Return cluster -> position, after a check of the arguments."""
    if not groups:
        raise InputError("no test to score")
    if resamples < 1:
        raise UsageError(f"resamples must be at least 1, not {resamples}")
    return {name: i for i, name in enumerate(sorted({str(label) for group in groups for label in group.clusters}))}


def _draw(generator: np.random.Generator, clusters: int, most: int) -> npt.NDArray[np.int64]:
    """Return the count of each cluster in each resample, [resamples, clusters], for up to ``most`` resamples."""
    draws = generator.integers(clusters, size=(min(most, 1 + CHUNK // clusters), clusters))
    draws += clusters * np.arange(len(draws))[:, np.newaxis]
    return np.bincount(draws.ravel(), minlength=draws.size).reshape(draws.shape)


def _scores_of_models(
    groups: Sequence[Items], transform: Transform | None, resamples: int, seed: int
) -> tuple[Floats, int]:
    """Return scores [1 + resamples, models] and the number of clusters of the smallest group.

    The first row of scores is that of all items. This is ``_bootstrap`` for many models: values are rounded to whole
    numbers of a small unit, so that sums are exact and a matrix product gives the same bits in any order.
    """
    place = _places(groups, resamples)
    above, below, units = [], [], []  # [models, clusters], [clusters], [models]
    for group in groups:
        table = np.asarray(group.numerators, dtype=np.float64)
        if table.ndim != 2 or not len(table):
            raise InputError(f"numerators of the shape {table.shape} are not [models, items]")
        # checking one row also checks the labels, which takes a while
        rows = table[:1] if np.isfinite(table).all() else table
        *_, (_, denominators, labels) = (_columns(group._replace(numerators=row)) for row in rows)
        at = np.array([place[label] for label in labels])
        most = len(place) * np.bincount(at).max()  # items of a resample
        sums = []
        for row in (denominators, *table):
            unit = np.frexp(abs(row).max())[1] + np.frexp(most)[1] - 53
            sums.append((np.bincount(at, np.rint(np.ldexp(row, -unit)), len(place)), unit))
        (divisor, of_divisor), *rest = sums
        below.append(divisor)
        above.append(np.array([sum_ for sum_, _ in rest]))
        units.append(np.array([unit - of_divisor for _, unit in rest]))
    if len({len(table) for table in above}) > 1:
        raise InputError(f"groups of {[len(table) for table in above]} models: each needs a row for every model")
    both = np.concatenate([np.array(below), *above])
    totals = both.sum(axis=1)[np.newaxis]
    generator = np.random.default_rng(seed)
    clusters = int(np.count_nonzero(below, axis=1).min())
    while (left := 0 if clusters < FEWEST else 1 + resamples - len(totals)) > 0:
        drawn = _draw(generator, len(place), left).astype(np.float64) @ both.T
        totals = np.concatenate([totals, drawn[drawn[:, : len(groups)].all(axis=1)]])
    divisors, numerators = totals[:, : len(groups)], totals[:, len(groups) :]
    ratios = numerators.reshape(len(totals), len(groups), -1) / divisors[:, :, np.newaxis]
    ratios = np.ldexp(ratios, np.array(units))
    if transform is not None:
        with np.errstate(all="ignore"):
            ratios = transform(ratios)
    scores: Floats = ratios.mean(axis=1)
    if not np.isfinite(scores).all():
        raise InputError("a model's score or one of its resamples is not a finite number")
    return scores, clusters


def _columns(items: Items) -> tuple[Floats, Floats, list[str]]:
    """Return the checked numerators, denominators and clusters."""
    labels = [str(label) for label in items.clusters]
    if not labels:
        raise InputError("no items to score")
    numerators = np.asarray(items.numerators, dtype=np.float64)
    denominators = np.asarray(items.denominators, dtype=np.float64)
    if denominators.ndim == 0:
        denominators = np.full(len(labels), denominators)
    for name, column in (("numerators", numerators), ("denominators", denominators)):
        if column.shape != (len(labels),):
            raise InputError(f"{len(labels)} items need as many {name}, not an array of the shape {column.shape}")
    bad = np.flatnonzero(~(np.isfinite(numerators) & np.isfinite(denominators) & (denominators > 0)))
    if len(bad):
        i = int(bad[0])
        where = items.ids[i] if i < len(items.ids) else i
        raise InputError(
            f"item {where!r} of cluster {labels[i]!r} has the score {numerators[i]:g} / {denominators[i]:g} "
            f"({len(bad) - 1} more like it): both must be finite and the second above 0; leave such items out"
        )
    return numerators, denominators, labels


def _match(one: Items, other: Items) -> None:
    """Raise InputError unless both sides have the same items in the same clusters."""
    sides = []
    for items in (one, other):
        if len(items.ids) != len(items.clusters):
            raise InputError(f"{len(items.clusters)} items need as many ids to be compared, not {len(items.ids)}")
        side = {str(name): str(label) for name, label in zip(items.ids, items.clusters, strict=True)}
        if len(side) < len(items.ids):
            raise InputError(f"{len(items.ids) - len(side)} items have the id of another item")
        sides.append(side)
    left, right = sides
    if left.keys() != right.keys():
        raise InputError(
            f"the models were not scored on the same items: the first lacks {len(right.keys() - left.keys())}, "
            f"the second {len(left.keys() - right.keys())}, {min(left.keys() ^ right.keys())!r} among them"
        )
    for name, label in left.items():
        if right[name] != label:
            raise InputError(f"item {name!r} is in cluster {label!r} of one model, in {right[name]!r} of the other")


def _interval(values: Floats) -> tuple[float | None, float | None]:
    if not len(values):
        return None, None
    low, high = np.quantile(values, TAILS)
    return float(low), float(high)


def _cells(what: str, rows: Matrix, shape: tuple[int, int]) -> Floats:
    """Return a checked table of scores, with nan for None."""
    if len(rows) != shape[0] or any(len(row) != shape[1] for row in rows) or not shape[1]:
        raise InputError(f"{what} has rows of {[len(row) for row in rows]} cells: {shape[0]} of {shape[1]} are needed")
    cells = np.array(rows, dtype=np.float64)
    for i, j in np.argwhere(~np.isfinite(cells)).tolist():
        if rows[i][j] is not None:
            raise InputError(f"{what} has {rows[i][j]} in row {i}, column {j}: write None for an unknown score")
    return cells


def _mean(terms: Floats) -> float | None:
    known = terms[np.isfinite(terms)]
    return float(known.mean()) if len(known) else None
