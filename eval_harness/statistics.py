"""Intervals of scores, paired comparisons and ranks of models, and transfer between months."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from temporalwiki.base.errors import InputError

Floats = npt.NDArray[np.float64]
Label = str | int
Matrix = Sequence[Sequence[float | None]]
Freedom = float | npt.NDArray[np.int_]
Sortable = TypeVar("Sortable", str, tuple[str, str])

ERROR = 0.05  # the error rate of an interval, and of all ranks of a leaderboard together
# Ranks need this many clusters: with 5, even a model that is better in all has p = 2 / 2**5 > 0.05 (sign test).
FEWEST = 6
# A cluster's variance grows with its size to this power: 1 if its items are independent, 2 if they agree. Chosen by
# the simulation in docs/performance.md.
_AGREEMENT = 1.5
_SAME = 1e-9  # a relative difference of two scores up to this one is rounding


class Items(NamedTuple):
    """The items of one test and the scores of one or more models, or runs of a model, on them.

    Numerators are [items] or [models, items], denominators one number or one per item. ``clusters`` has one label per
    item, usually its subject. ``relations`` has the relation of each item, or is empty. Labels and ids are compared as
    text.
    """

    numerators: npt.ArrayLike
    denominators: npt.ArrayLike
    clusters: Sequence[Label]
    ids: Sequence[Label] = ()
    relations: Sequence[Label] = ()


class Scale(NamedTuple):
    """How the ratios of tests (sum of numerators / sum of denominators) become a score.

    ``combine`` turns ratios [..., tests] into a number whose error is roughly symmetric, and ``shown`` turns that
    number into the score.
    """

    combine: Callable[[Floats], Floats]
    shown: Callable[[Floats], Floats] = lambda values: values
    percent: bool = False  # the score lies between 0 and 100
    points: bool = False  # the score is a difference of percentages, between -100 and 100
    least: float = -math.inf  # the number that ``combine`` cannot go below


MEAN = Scale(lambda ratios: ratios.mean(axis=-1))
PERCENT = MEAN._replace(percent=True)
POINTS = MEAN._replace(points=True)
DIFFERENCE = Scale(lambda ratios: ratios[..., 0] - ratios[..., 1], points=True)  # of two percentages
PERPLEXITY = Scale(  # of mean NLLs
    lambda nlls: np.logaddexp.reduce(nlls, axis=-1) - np.log(nlls.shape[-1]), np.exp, least=0.0
)
POSITIVE = Scale(lambda ratios: np.log(ratios.mean(axis=-1)), np.exp)
QUOTIENT = Scale(lambda nlls: nlls[..., 0] - nlls[..., 1], np.exp)  # of two perplexities


@dataclass(frozen=True)
class Estimate:
    """A score, its 95 % interval (None if it is not known), and the number of items and clusters.

    The interval is not known with one cluster, or if so few relations or runs leave it without a finite end.

    ``relations`` says how many relations count: as many relations of equal size would weigh as these do. It is None
    if they are not known.
    """

    value: float
    low: float | None
    high: float | None
    items: int
    clusters: int
    relations: float | None = None


@dataclass(frozen=True)
class Comparison:
    """The second model's score minus the first's; interval and p-value are None if a test has only one cluster.

    ``verdict`` says what follows. If the spread between runs is not known, the interval leaves it out, and there is no
    p-value.
    """

    difference: float
    low: float | None
    high: float | None
    p_value: float | None
    items: int
    clusters: int
    verdict: str


class Spread(NamedTuple):
    """How much the runs of a method differ: the variance of one run's score, on the scale of its errors."""

    variance: float
    freedom: int
    of: str = ""  # the method, for people


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


class _Columns(NamedTuple):
    """Checked items in an order that does not depend on the caller's; numerators are [models, items]."""

    numerators: Floats
    denominators: Floats
    subjects: list[str]
    relations: list[str]


class _Runs(NamedTuple):
    """The variances of models' means over their runs, [models]; unknown for one run without a known spread."""

    variances: Floats
    freedom: npt.NDArray[np.int_]
    unknown: npt.NDArray[np.bool_]
    of: str = ""  # the method whose spread was used


class _Level(NamedTuple):
    """The scores without each cluster, [clusters, models], and the degrees of freedom of their spread."""

    without: Floats
    freedom: float
    effective: float = math.nan  # how many equal clusters would weigh as much


class _Scores(NamedTuple):
    """The scores of models [models] on the scale of their errors, and the same without each cluster.

    ``subjects`` is None if a score is not defined without one of them. ``relations`` and ``both`` (clusters of facts
    with the same subject and relation) are None if relations are not known, or a test has only one.
    """

    values: Floats
    items: int
    clusters: int
    fewest: int  # clusters of a test
    subjects: _Level | None
    relations: _Level | None
    both: _Level | None


def estimate(groups: Sequence[Items], scale: Scale = MEAN) -> Estimate:
    """Return a score with its 95 % interval; several rows of numerators are runs that differ by their seed.

    Facts that share a subject or a relation are not independent. The variance of a score is the jackknife's over
    subjects, plus the excess of the jackknife over relations, if any, plus the variance of the mean of the runs. The
    interval comes from a t distribution with Satterthwaite's degrees of freedom, in which the excess is as uncertain
    as the jackknife over relations; docs/performance.md shows how often it holds. A percentage gets Wilson's interval
    for the number of independent items that has this variance: it stays within 0 and 100, and does not shrink to a
    point if all items agree. The order of the items does not matter.

    Raises InputError for no items, columns of different lengths, numbers or scores that are not finite, and
    denominators that are not positive: the caller leaves out, and counts, items with nothing to predict.
    """
    found = _scores(groups, scale)
    runs = len(found.values)
    mean = _of(found, lambda rows: rows.mean(axis=-1, keepdims=True))
    between = [(found.values.var(ddof=1, keepdims=True) / runs, float(runs - 1))] if runs > 1 else []
    value = float(mean.values[0])
    ends: tuple[float, ...] = ()
    if (errors := _errors(mean, between)) is not None:
        error, freedom = (float(of[0]) for of in errors)
        ends = _ends(value, error, freedom, scale, found.fewest)
    with np.errstate(over="ignore"):
        shown, *limits = scale.shown(np.array([value, *ends])).tolist()
    if not np.isfinite(shown):
        raise InputError(f"the score {shown} is not a finite number")
    if not np.isfinite(limits).all():
        limits = []  # too few relations or runs to say anything
    low, high = limits or (None, None)
    return Estimate(shown, low, high, found.items, found.clusters, found.relations and found.relations.effective)


def value_of(groups: Sequence[Items], scale: Scale = MEAN) -> float:
    """Return the value of ``estimate``, with its errors, but without an interval."""
    return float(scale.shown(_scores(groups, scale, errors=False).values.mean()))


def quotient(groups: Sequence[Items], above: npt.ArrayLike, below: npt.ArrayLike) -> Estimate:
    """Return a weighted sum of the tests' ratios divided by another one, such as FUAR, with Fieller's interval.

    ``above`` and ``below`` are the weights of the tests. Both ends of the interval are at least 0; an end is inf if
    the divisor may be 0. The result spans the interval over subjects and the interval over relations.
    """
    over, under = np.asarray(above, dtype=np.float64), np.asarray(below, dtype=np.float64)
    found = _scores(groups, Scale(lambda ratios: np.concatenate([ratios @ over, ratios @ under], axis=-1)))
    a, b = (float(value) for value in found.values)
    ends = []
    for level in (found.subjects, found.relations):
        if level is not None:
            errors = level.without - found.values
            (aa, ab), (_, bb) = ((1 - 1 / len(errors)) * np.einsum("gi,gj->ij", errors, errors)).tolist()
            ends.append(_fieller(a, b, aa, ab, bb, _quantile(level.freedom)))
    low, high = (min(low for low, _ in ends), max(high for _, high in ends)) if found.subjects else (None, None)
    return Estimate(max(a, 0.0) / b if b > 0 else np.inf, low, high, found.items, found.clusters)


def compare(
    first: Sequence[Items],
    second: Sequence[Items],
    scale: Scale = MEAN,
    *,
    spread: Spread | None = None,
    fixed: Sequence[bool] = (),
) -> Comparison:
    """Compare two models on the same items, item by item.

    Each side is a sequence of tests with ids, whose numerators are [items] or [runs, items]. A side with one run has
    the spread of the other side's runs, else ``spread``, which runs of another method give (``spread_of``). Without
    either, the two cannot be told apart, unless the side is ``fixed``: nobody trained it for this comparison. For
    perplexities, the difference is between their logarithms. The p-value is two-sided and below 0.05 exactly if the
    interval does not contain 0.

    Raises the errors of ``estimate``, and InputError if the sides do not have the same items in the same clusters.
    """
    if len(first) != len(second):
        raise InputError(f"{len(first)} tests of one model cannot be compared with {len(second)} of another")
    counts = [len(np.atleast_2d(np.asarray(side[0].numerators))) for side in (first, second)]
    found = _scores([_together(one, other) for one, other in zip(first, second, strict=True)], scale)
    runs = _runs(found.values, counts, fixed, spread)
    found = _of(found, lambda rows: _means(rows, counts))
    found = _of(found, lambda rows: rows[..., 1:] - rows[..., :1])
    difference = float(found.values[0])
    low = high = p_value = None
    verdict = "too few clusters: cannot be told"
    between = [(runs.variances[[i]], runs.freedom[[i]]) for i in range(2) if counts[i] > 1 or runs.variances[i] > 0]
    if (errors := _errors(found, between)) is not None:
        error, freedom = (float(of[0]) for of in errors)
        half = error * _quantile(freedom)
        low, high = difference - half, difference + half
        verdict = "one run: cannot be told"
        if not runs.unknown.any():
            p_value = float(_p_values(found.values, *errors)[0])
            verdict = "different" if p_value < ERROR else "cannot be told apart"
            verdict += f", by the spread of {runs.of}'s runs" if runs.of else ""
    return Comparison(difference, low, high, p_value, found.items, found.clusters, verdict)


def spread_of(groups: Sequence[Items], scale: Scale = MEAN, of: str = "") -> Spread:
    """Return how much the runs of a method differ; the numerators are [runs, items].

    Raises the errors of ``estimate``, and InputError for a single run.
    """
    values = _scores(groups, scale, errors=False).values
    if len(values) < 2:
        raise InputError(f"the spread between runs needs two or more of them{of and f', and {of} has one'}")
    return Spread(float(values.var(ddof=1)), len(values) - 1, of)


def ranks(
    groups: Sequence[Items],
    scale: Scale = MEAN,
    *,
    higher_is_better: bool,
    runs: Sequence[int] = (),
    fixed: Sequence[bool] = (),
) -> list[Ranks] | None:
    """Return a confidence set of each model's rank; all hold together with 95 % (Mogstad et al. 2024, section 3).

    Models are scored as in ``estimate``. The numerators of a group are [models, items]: all models have the same
    items. With n models, the best possible rank is 1 + the number of models that are significantly better, and the
    worst is n - the number of models that are significantly worse.

    All pairs are tested together, with an error of 5 % for the whole set (Holm 1979). If a model has several rows, one
    for each run, ``runs`` is the number of rows of each model, and two models differ by the means of their runs. A
    model with one run has the spread of the other models' runs. If no model has several, nothing is known of the
    spread, and such a model differs from no other, unless it is ``fixed``: nobody trained it for this comparison. The
    result is None if a group has fewer than six clusters.

    The order of models and items does not matter. Raises the errors of ``estimate``.
    """
    found = _scores(groups, scale)
    if found.fewest < FEWEST or found.subjects is None:
        return None
    counts = list(runs or [1] * len(found.values))
    of_runs = _runs(found.values, counts, fixed if len(fixed) or runs else [True] * len(counts))
    between, freedom, unknown = of_runs.variances, of_runs.freedom, of_runs.unknown
    means = _of(found, lambda rows: _means(rows, counts))
    models = len(means.values)
    p_values = np.ones((models, models))
    for i in range(models):
        apart = _of(means, partial(_minus, model=i))
        errors = _errors(apart, [(between, freedom), (between[[i]], freedom[[i]])])
        if errors is None:
            return None
        size = np.maximum(abs(means.values), abs(means.values[i]))
        p_values[i] = _p_values(np.where(abs(apart.values) > _SAME * size, apart.values, 0), *errors)
    p_values[unknown] = p_values[:, unknown] = 1
    upper = np.triu_indices(models, 1)
    order = np.argsort(p_values[upper], kind="stable")
    steps = ERROR / np.arange(len(order), 0, -1)
    rejected = np.logical_and.accumulate(p_values[upper][order] <= steps)
    differ = np.zeros((models, models), dtype=bool)
    differ[upper[0][order], upper[1][order]] = rejected
    differ |= differ.T
    good = means.values if higher_is_better else -means.values
    above = (differ & (good > good[:, np.newaxis])).sum(axis=1)
    under = (differ & (good < good[:, np.newaxis])).sum(axis=1)
    return [Ranks(1 + int(more), models - int(less)) for more, less in zip(above, under, strict=True)]


def transfer(matrix: Matrix, baseline: Sequence[float | None] | None = None, *, higher_is_better: bool) -> Transfer:
    """Return the transfer between months, from scores on month j after training on month i.

    ``matrix`` is square. ``R[i][j]`` is its cell in row i and column j: the score on the test of month j after
    training on month i, or None if it was not measured. ``baseline[j]`` is the score on the test of month j before any
    training. T is the last month. Means are over the terms with both cells.

    - backward: mean over j < T of ``R[T][j] - R[j][j]`` (Lopez-Paz & Ranzato 2017, equation 3)
    - forward: mean over j > 0 of ``R[j-1][j] - baseline[j]`` (equation 4)
    - forgetting: mean over j < T of the best ``R[i][j]`` with i < T, minus ``R[T][j]`` (Chaudhry et al. 2018,
      equation 3)

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


def _scores(groups: Sequence[Items], scale: Scale, errors: bool = True) -> _Scores:
    """Return the scores of all models, after a check of the arguments; without levels unless ``errors``."""
    if not groups:
        raise InputError("no test to score")
    tests = [_columns(group) for group in groups]
    models = {len(test.numerators) for test in tests}
    if len(models) > 1:
        raise InputError(f"groups of {sorted(models)} models: each needs a row for every model")
    items, subjects = sum(len(test.denominators) for test in tests), [set(test.subjects) for test in tests]
    clusters, fewest = len(set.union(*subjects)), min(map(len, subjects))
    related = all(test.relations for test in tests)

    def level(labels: Callable[[_Columns], Sequence[Sortable]]) -> _Level | None:
        place = _places([label for test in tests for label in labels(test)])
        ratios, shares = [], []
        for test in tests:
            at = np.array([place[label] for label in labels(test)])
            below = np.bincount(at, test.denominators, len(place))
            if np.count_nonzero(below) < 2:
                return None
            above = np.array([np.bincount(at, row, len(place)) for row in test.numerators])
            rest = test.numerators.sum(axis=1, keepdims=True) - above
            ratios.append((rest / (test.denominators.sum() - below)).T)
            shares.append(below / below.sum())
        weights = np.mean(shares, axis=0)
        effective = 1 / float((weights**2).sum())
        return _Level(_combined(scale, np.stack(ratios, axis=-1)), _freedom(weights), effective)

    found = np.stack([test.numerators.sum(axis=1) / test.denominators.sum() for test in tests], axis=-1)
    values = _combined(scale, found)
    if not errors:
        return _Scores(values, items, clusters, fewest, None, None, None)
    if (relations := level(lambda test: test.relations) if related else None) is not None:
        # unequal relations count as fewer, but not by ``_AGREEMENT``, which would make intervals of five too wide
        relations = relations._replace(freedom=max(1.0, relations.effective - 1))
    return _Scores(
        values,
        items,
        clusters,
        fewest,
        level(lambda test: test.subjects),
        relations,
        level(lambda test: list(zip(test.subjects, test.relations, strict=True))) if relations else None,
    )


def _combined(scale: Scale, ratios: Floats) -> Floats:
    with np.errstate(all="ignore"):
        return scale.combine(ratios)


def _places(labels: Iterable[Sortable]) -> dict[Sortable, int]:
    return {label: i for i, label in enumerate(sorted(set(labels)))}


def _freedom(shares: Floats) -> float:
    """Return the degrees of freedom of clusters with these shares of the items.

    For equal shares, this is one less than the number of clusters. Unequal clusters give fewer, because the large
    ones determine the spread.
    """
    variances = (shares / shares.max()) ** _AGREEMENT
    return max(1.0, float(variances.sum() ** 2 / (variances**2).sum()) - 1)


def _of(found: _Scores, change: Callable[[Floats], Floats]) -> _Scores:
    """Return scores after a linear change of their last axis."""
    levels = (found.subjects, found.relations, found.both)
    changed = [level and level._replace(without=change(level.without)) for level in levels]
    return _Scores(change(found.values), found.items, found.clusters, found.fewest, *changed)


def _minus(rows: Floats, model: int) -> Floats:
    difference: Floats = rows - rows[..., [model]]
    return difference


def _variance(found: _Scores, level: _Level) -> Floats:
    """Return the jackknife's variances over the clusters of a level."""
    left: Floats = level.without - found.values
    return (1 - 1 / len(left)) * (left**2).sum(axis=0)


def _errors(found: _Scores, between: Sequence[tuple[Floats, Freedom]] = ()) -> tuple[Floats, Floats] | None:
    """Return the standard errors of scores and their degrees of freedom, or None if they cannot be known.

    ``between`` are variances of means over runs, with their degrees of freedom.
    """
    from scipy.special import stdtridf, stdtrit  # here, as reading results does not need this package

    if found.subjects is None:
        return None
    variance = _variance(found, found.subjects)
    # each part: a variance, the estimate that makes it uncertain, and the degrees of freedom of that estimate
    parts: list[tuple[Floats, Floats, Freedom]] = [(variance, variance, found.subjects.freedom)]
    if found.relations is not None and found.both is not None:
        over = _variance(found, found.relations)
        excess = over - np.minimum(_variance(found, found.both), variance)
        parts.append((np.maximum(excess, 0), over, found.relations.freedom))
    of_facts = sum(part for part, _, _ in parts)
    total = of_facts + sum(part for part, _ in between)
    with np.errstate(invalid="ignore", divide="ignore"):
        freedom = np.asarray(1 / sum((uncertain / of_facts) ** 2 / of for _, uncertain, of in parts))
        freedom = np.where(of_facts > 0, freedom, found.subjects.freedom)
        if between:  # runs are few: the critical value of each part (Cochran and Cox 1957), as one of all
            square = of_facts * stdtrit(freedom, 1 - ERROR / 2) ** 2
            square = square + sum(part * stdtrit(of, 1 - ERROR / 2) ** 2 for part, of in between)
            freedom = np.where(total > 0, stdtridf(1 - ERROR / 2, np.sqrt(square / total)), freedom)
    return np.sqrt(total), freedom


def _quantile(freedom: float) -> float:
    """Return the upper end of the 95 % interval of a standard t distribution."""
    from scipy.special import stdtrit  # here, as reading results does not need this package

    return float(stdtrit(freedom, 1 - ERROR / 2))


def _p_values(values: Floats, errors: Floats, freedom: Floats) -> Floats:
    """Return two-sided p-values of t tests; a value without an error is certain."""
    from scipy.special import stdtr

    with np.errstate(divide="ignore", invalid="ignore"):
        sizes = np.where(values == 0, 0, abs(values) / errors)
    p_values: Floats = 2 * stdtr(freedom, -sizes)
    return p_values


def _means(rows: Floats, counts: Sequence[int]) -> Floats:
    """Return the means over the runs of each model, along the last axis."""
    means: Floats = np.add.reduceat(rows, np.cumsum([0, *counts[:-1]]), axis=-1) / np.array(counts)
    return means


def _runs(values: Floats, counts: Sequence[int], fixed: Sequence[bool], spread: Spread | None = None) -> _Runs:
    """Return the error by runs of each model. Models with one run have the pooled spread of those with several."""
    rows = np.split(values, np.cumsum(counts)[:-1])
    several = [row for row in rows if len(row) > 1]
    still = np.array(fixed if len(fixed) else [False] * len(counts)) & (np.array(counts) == 1)
    alone = ~still & (np.array(counts) == 1)
    shared, freedom, of = 0.0, 1, ""
    if several:
        freedom = sum(len(row) - 1 for row in several)
        shared = float(sum(((row - row.mean()) ** 2).sum() for row in several)) / freedom
    elif spread is not None and alone.any():
        shared, freedom, of = spread
    variances = np.array([float(row.var(ddof=1)) / len(row) if len(row) > 1 else shared for row in rows])
    variances[still] = 0
    each = np.array([len(row) - 1 if len(row) > 1 else freedom for row in rows])
    return _Runs(variances, each, alone & (not several and spread is None), of)


def _ends(value: float, error: float, freedom: float, scale: Scale, clusters: int) -> tuple[float, float]:
    t = _quantile(freedom)
    if scale.points:
        half = t * error
        if error == 0:  # all facts agree: as many facts that differ as Wilson's interval of a share of 0 allows
            square = _quantile(math.inf) ** 2
            half = 100 * square / (clusters + square)
        return max(-100.0, value - half), min(100.0, value + half)
    if not scale.percent:
        return min(value, max(scale.least, value - t * error)), value + t * error
    share, count = value / 100, float(clusters)
    spread = share * (1 - share)
    if error > 0 and spread > 0:
        count = spread / (error / 100) ** 2  # of independent items
    else:  # all clusters agree, so there is no estimated variance
        t = _quantile(math.inf)
    middle, half = share + t**2 / (2 * count), t * math.sqrt(max(spread, 0) / count + t**2 / (4 * count**2))
    low, high = (100 * end / (1 + t**2 / count) for end in (middle - half, middle + half))
    return min(value, max(0.0, low)), max(value, min(100.0, high))  # value: against rounding


def _fieller(a: float, b: float, aa: float, ab: float, bb: float, t: float) -> tuple[float, float]:
    """Return the quotients q >= 0 with |a - q b| <= t * its standard error, from variances and the covariance."""
    square, middle, rest = b * b - t * t * bb, a * b - t * t * ab, a * a - t * t * aa
    root = math.sqrt(max(middle * middle - square * rest, 0.0))
    if square > 0 and b > 0:
        return max(0.0, (middle - root) / square), max(0.0, (middle + root) / square)
    if b <= 0 <= square:  # the divisor is not above 0: there is no such quotient
        return math.inf, math.inf
    return (middle - root) / square if square < 0 < rest and a > 0 else 0.0, math.inf


def _columns(items: Items) -> _Columns:
    subjects, relations = [str(label) for label in items.clusters], [str(label) for label in items.relations]
    if not subjects:
        raise InputError("no items to score")
    numerators = np.atleast_2d(np.asarray(items.numerators, dtype=np.float64))
    denominators = np.asarray(items.denominators, dtype=np.float64)
    if denominators.ndim == 0:
        denominators = np.full(len(subjects), denominators)
    for name, shape in (
        ("numerators", numerators.shape[1:]),
        ("denominators", denominators.shape),
        ("relations", (len(relations or subjects),)),
    ):
        if shape != (len(subjects),):
            raise InputError(f"{len(subjects)} items need as many {name}, not an array of the shape {shape}")
    bad = np.argwhere(~(np.isfinite(numerators) & np.isfinite(denominators) & (denominators > 0)))
    if len(bad):
        row, i = bad[0].tolist()
        where = items.ids[i] if i < len(items.ids) else i
        raise InputError(
            f"item {where!r} of cluster {subjects[i]!r} has the score {numerators[row, i]:g} / {denominators[i]:g} "
            f"({len(bad) - 1} more like it): both must be finite and the second above 0; leave such items out"
        )
    codes = []
    for labels in filter(None, (relations, subjects)):
        place = _places(labels)
        codes.append(np.array([place[label] for label in labels]))
    order = np.lexsort((*numerators, denominators, *codes))  # a sum of floats depends on their order
    return _Columns(
        numerators[:, order],
        denominators[order],
        [subjects[i] for i in order],
        [relations[i] for i in order] if relations else [],
    )


def _together(one: Items, other: Items) -> Items:
    """Combine the scores of two models on the same items into one test. Raises InputError if their items differ."""
    _match(one, other)
    place = {str(name): i for i, name in enumerate(other.ids)}
    order = [place[str(name)] for name in one.ids]
    columns = [np.atleast_2d(np.asarray(side.numerators, dtype=np.float64)) for side in (one, other)]
    rows = [np.broadcast_to(column, (len(column), len(one.ids))) for column in columns]
    return one._replace(numerators=np.concatenate([rows[0], rows[1][:, order]]))


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
