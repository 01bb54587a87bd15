"""The month up to which a model knows what changed, from how much it prefers the new side of dated changes.

An item is one change: a month, a relation, a cluster (its page or subject) and a number, the evidence. The evidence
is above 0 if the model prefers the new side. From likelihoods, it is a difference in NLL per token; from answers, it
is 1, 0 or -1. The estimator sees nothing else.

1. The evidence is scaled, and extreme values are cut. The effects of the relation and of the length are removed. If
   there are reference models that do not know the change, their preference is removed instead of the length.
2. The means of the months are fitted with a trend, which is not knowledge (new names get rarer), a random effect of
   each month, and a fall: at once, or over several months. Their errors come from resampled pages and relations.
3. The fall must be larger than what the same fit finds in simulated months without a fall. The cutoff is the median
   of its posterior, the last month with at least half of the height of the fall. Without a fall, the model knows
   everything, nothing, or too little to tell: only a very uneven share of preferred sides decides.
4. A model for which this does not tell has bounds if the first or the last months are improbable together, and each
   is much less likely than the likeliest one. Here the side that the model prefers counts, also if it is the same in
   all months.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from operator import itemgetter
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp, ndtr

from temporalwiki.eval_harness.statistics import PERCENT, Estimate, Items, estimate

FEWEST = 20  # a verdict needs this many items
FEWEST_MONTHS = 5  # a fall needs this many months, because its fit has three numbers
_FEWEST_RELATIONS = 3  # a verdict without a fall needs this many relations
CLEAR = 2 / 3  # a model that knows all changes, or none, prefers the same side in more than this share of them

_ERROR = 0.03  # the probability of finding a fall in a mere trend; chosen by simulations, docs/cutoff.md
_RESAMPLES = 200
_SIMULATIONS = 400
_EXTREME = 3.0  # evidence is cut at this many standard deviations from the median of its relation
_RELATIONS = 40  # at most this many relations have an effect of their own
_RARE = 5  # a relation with fewer items shares its effect with other rare ones
# Prior standard deviations of the fall and of the trend over all months; an item has 1.
_FALL, _TREND = 1.0, 0.5
_PRIOR = np.array([1e-6, _TREND**-2, _FALL**-2])  # precisions of the level, the trend and the fall
_WIDTHS = (1, 3, 5, 9)  # months over which knowledge may fall
# Bounds: the standard deviation of the evidence without knowledge, over models and data; the logarithm of how much
# less likely than the likeliest month each month beyond a bound is (half of a 95 % quantile of chi square); the
# largest probability of all months beyond a bound together; and the largest p-value of a fall with which a bound may
# lie among the months.
_LEVEL, _UNLIKELY, _BEYOND, _PERHAPS = 0.4, 1.92, 0.05, 0.3
_TWICE, _APART = 2.0, 4  # two falls: how much likelier they must be than one, as a logarithm; months between them
_FOUND = 5.0  # a fall of this many standard errors is found in about four of five cases
TYPICAL = 0.3  # a fall in the share of known changes
# Forms of one question: standard deviations of their cutoffs in months, and the scale of the prior. It was chosen on
# fifteen models that were asked in two forms (docs/cutoff.md).
_SPREADS, _SPREAD = np.array([0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 9.0]), 0.5
_MONTH = np.array([0.0, 0.03, 0.06, 0.12, 0.2, 0.3, 0.45, 0.7, 1.0])  # possible sizes of a month's effect

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Verdict = Literal["found", "before the data", "after the data", "cannot tell"]


class ChangeEvidence(NamedTuple):
    """A change, and how much the model prefers its new side."""

    month: int  # of the change, counted: year * 12 + month - 1
    relation: str
    cluster: str
    evidence: float
    length: float = 0.0  # how much longer the new side is, such as the logarithm of the ratio of tokens
    difficulty: float | None = None  # the mean evidence of reference models that do not know the change


@dataclass(frozen=True)
class Cutoff:
    """The last month whose changes a model knows, with the ends of its 95 % interval; months are counted as in Item.

    Before the data, only ``high`` is known, and after the data, only ``low``. If a cutoff cannot be told, one end or
    both may be known.
    """

    cutoff: int | None
    low: int | None
    high: int | None
    verdict: Verdict
    likely: tuple[tuple[int, float], ...] = field(
        default=(), compare=False
    )  # the likeliest months, with probabilities
    falls: tuple[int, ...] = field(default=(), compare=False)  # the last months before each fall, if there are several
    # the smallest fall in the share of known changes that would be found, and changes a month that would show TYPICAL
    shown: tuple[float, int | None] | None = field(default=None, compare=False)


class Point(NamedTuple):
    """The share of a month's changes whose new side the model prefers, with its 95 % interval."""

    month: int
    known: float
    low: float
    high: float
    items: int


class _Months(NamedTuple):
    """The months with items, the adjusted mean of each, and the variance of its error."""

    at: Ints
    means: Floats
    variances: Floats
    level: float  # the variance of the error that all means share


class _Fit(NamedTuple):
    """The log posterior weights of a fall after each month and of no fall, for each effect of months."""

    cutoffs: Ints
    fall: Floats  # [series, effects, cutoffs]
    none: Floats  # [series, effects]

    @property
    def odds(self) -> Floats:
        """How much likelier a fall is than none, as a logarithm."""
        return np.asarray(logsumexp(self.fall, axis=(1, 2)) - logsumexp(self.none, axis=1))


class Belief(NamedTuple):
    """A cutoff, and the log weights of each month in which it may lie. Without weights, there are too few items."""

    cutoff: Cutoff
    months: Ints
    weights: Floats
    error: float = 1.0  # the probability that a mere trend looks as much like a fall

    @classmethod
    def of(cls, items: Sequence[ChangeEvidence], seed: int = 0) -> Belief:
        """Return up to which month the model knows what changed. The order of the items does not matter."""
        unknown = cls(Cutoff(None, None, None, "cannot tell"), np.empty(0, np.int64), np.empty(0))
        items = sorted((item for item in items if np.isfinite(item.evidence)), key=repr)
        if len(items) < FEWEST:
            return unknown
        generator = np.random.default_rng(seed)
        months = _adjusted(items, generator)
        first, last = int(months.at[0]), int(months.at[-1])
        fit, error = None, 1.0
        if len(months.at) >= FEWEST_MONTHS:
            fit = _fit(months, months.means[None])
            weights = np.asarray(logsumexp(fit.fall[0], axis=0))
            low, middle, high = _quantiles(fit.cutoffs, weights)
            # a model that also prefers the new side of most later changes has no cutoff there
            later = share_known([item for item in items if item.month > middle]).value
            error = _p_value(months, fit, generator)
            shown, falls = _could_show(months, fit, len(items)), _falls(months, fit)
            unknown = unknown._replace(cutoff=replace(unknown.cutoff, shown=shown, falls=falls))
            if later < 100 * CLEAR and error < _ERROR:
                found = replace(unknown.cutoff, cutoff=middle, low=low, high=high, verdict="found")
                return cls(found, fit.cutoffs, weights, error)
        level = _level(items)
        bound = unknown if fit is None else _bounds(months)
        least, most = bound.cutoff.low, bound.cutoff.high
        if level is None:
            whole = least == last or most == first - 1  # the same in all months
            if whole or unknown.cutoff.falls or error < _PERHAPS:
                return bound._replace(cutoff=replace(unknown.cutoff, low=least, high=most))
            return unknown
        if fit is None:
            bound = cls(unknown.cutoff, np.array([last if level else first - 1]), np.zeros(1))
        if level:
            least, most = int(bound.months[0]) if least is None else least, None
        else:
            least, most = None, int(bound.months[-1]) if most is None else most
        verdict: Verdict = "after the data" if level else "before the data"
        return bound._replace(cutoff=replace(unknown.cutoff, low=least, high=most, verdict=verdict))


def find_cutoff(items: Sequence[ChangeEvidence], seed: int = 0) -> Cutoff:
    """Return up to which month the model knows what changed. The order of the items does not matter."""
    return Belief.of(items, seed).cutoff


def join(forms: Sequence[Belief], share: float = 1.0) -> tuple[Cutoff, list[Cutoff]]:
    """Return the cutoff that holds for any form of asking, and the cutoff of each form, widened by what forms do.

    ``share`` is the number of different events over that of all questions: forms that ask the same events tell less.

    The cutoffs of the forms lie around a common one, by a spread with a half-normal prior of _SPREAD months. The
    interval of a form reaches to the joint median, because another form would have moved it there. Forms without
    weights are left out.
    """
    told = [form for form in forms if len(form.months)]
    share = min(1.0, share * len(forms) / max(1, len(told)))
    verdicts = {form.cutoff.verdict for form in told}
    if not told:
        return forms[0].cutoff, [form.cutoff for form in forms]
    months = np.arange(min(form.months[0] for form in told), max(form.months[-1] for form in told) + 1)
    weights = np.full(len(months), -np.inf)
    for spread, step in zip(_SPREADS, np.gradient(_SPREADS), strict=True):
        there = np.full(len(months), np.log(step) - (spread / _SPREAD) ** 2 / 2)
        for form in told:
            away = form.months[None] - months[:, None]
            at = logsumexp(form.weights - logsumexp(form.weights) - (away / spread) ** 2 / 2, axis=1)
            there += share * (at - np.log(spread))
        weights = np.logaddexp(weights, there)
    low, middle, high = _quantiles(months, weights)
    errors = enumerate(sorted(form.error for form in told), 1)
    if any(error * len(forms) / rank < _ERROR for rank, error in errors):  # each form is a chance to be wrong (Simes)
        joint = Cutoff(middle, low, high, "found")
    elif "found" in verdicts or {"before the data", "after the data"} <= verdicts:
        return Cutoff(None, None, None, "cannot tell"), [form.cutoff for form in forms]
    elif "after the data" in verdicts:
        joint = Cutoff(None, low, None, "after the data")
    elif "before the data" in verdicts:
        joint = Cutoff(None, None, high, "before the data")
    else:
        joint = _likely(months, weights)
    shares = np.exp(weights - logsumexp(weights))
    joint = replace(
        joint,
        likely=tuple((int(months[i]), round(float(shares[i]), 3)) for i in np.argsort(-shares, kind="stable")[:3]),
        falls=told[0].cutoff.falls if len(forms) == 1 else (),
        shown=min((form.cutoff.shown for form in told if form.cutoff.shown), default=None, key=itemgetter(0)),
    )
    return joint, [_reaching(form.cutoff, middle) for form in forms]


def _reaching(found: Cutoff, month: int) -> Cutoff:
    """Return a cutoff whose interval reaches to a month."""
    low = None if found.low is None else min(found.low, month)
    return replace(found, low=low, high=None if found.high is None else max(found.high, month))


def curve(items: Sequence[ChangeEvidence]) -> list[Point]:
    """Return the share of changes known by month."""
    months = sorted({item.month for item in items})
    points = []
    for month in months:
        there = [item for item in items if item.month == month]
        share = share_known(there)
        low, high = (0.0, 100.0) if share.low is None or share.high is None else (share.low, share.high)
        points.append(Point(month, share.value / 100, low / 100, high / 100, len(there)))
    return points


def share_known(items: Sequence[ChangeEvidence]) -> Estimate:
    """Return the percentage of changes whose new side the model prefers."""
    hits = [100.0 * (item.evidence > 0) for item in items]
    relations = [item.relation for item in items]
    return estimate([Items(hits, 1.0, [item.cluster for item in items], relations=relations)], PERCENT)


def _level(items: Sequence[ChangeEvidence]) -> bool | None:
    """Return True if the model clearly prefers the new side, False if the old one, and None if neither."""
    share = share_known(items)
    # the names of one relation, or the style of text, can make the new side likelier without any knowledge
    few = len({item.relation for item in items}) < _FEWEST_RELATIONS
    if few or share.low is None or share.high is None:
        return None
    months = sorted({item.month for item in items})
    third = max(1, len(months) // 3)
    if share.low > 100 * CLEAR and share_known([i for i in items if i.month in months[-third:]]).value > 100 * CLEAR:
        return True
    # not 100 minus the share of the new side: a model that abstains prefers neither
    turned = [item._replace(evidence=-item.evidence) for item in items]
    old = share_known(turned)
    if old.low is None or old.low <= 100 * CLEAR:
        return None
    return False if share_known([i for i in turned if i.month in months[:third]]).value > 100 * CLEAR else None


# The means of months


def _adjusted(items: Sequence[ChangeEvidence], generator: np.random.Generator) -> _Months:
    """Return the mean of each month, without the effects of the relation and of the length or reference models."""
    at, month = np.unique([item.month for item in items], return_inverse=True)
    relation = _codes(_common([item.relation for item in items]))
    cluster = _codes([item.cluster for item in items])
    evidence = _scaled(np.array([item.evidence for item in items]), relation)
    difficulties = [item.difficulty for item in items if item.difficulty is not None]
    known = len(difficulties) == len(items)
    other = np.array(difficulties if known else [item.length for item in items], dtype=np.float64)
    if known:
        other = _scaled(other, relation)
    shape = len(at), int(relation.max()) + 1
    cell = month * shape[1] + relation
    ones = np.ones(len(items))
    # the slope within months and relations, so that knowledge does not count as difficulty
    residuals = [column - _predicted(column, ones, cell, shape) for column in (evidence, other)]
    if (size := residuals[1] @ residuals[1]) > 1e-9 * len(items):
        evidence = evidence - other * (residuals[0] @ residuals[1]) / size
    means, _ = _two_way(evidence, ones, cell, shape)
    noise = max((evidence - _predicted(evidence, ones, cell, shape)).var(), 1e-6) / np.bincount(month)
    of_pages, by_page = _variances(evidence, cluster, cell, shape, generator)
    of_relations, by_relation = (
        _variances(evidence, relation, cell, shape, generator) if shape[1] > 1 else (noise, 0.0)
    )
    if len({item.relation for item in items}) < _FEWEST_RELATIONS:  # too few to tell what a model prefers in general
        by_relation = 1 / _PRIOR[0]
    # both variances contain the noise of the items
    variances = np.maximum(of_pages, noise) + np.maximum(of_relations - noise, 0)
    return _Months(at, means, variances, max(by_page, by_relation))


def _variances(
    values: Floats, groups: Ints, cell: Ints, shape: tuple[int, int], generator: np.random.Generator
) -> tuple[Floats, float]:
    """Return the variance of the mean of each month over resamples (with exponential weights) of groups of items.

    Only differences between months count there, so a shift of all months is taken out. Its variance comes second.
    """
    resampled = np.empty((_RESAMPLES, shape[0]))
    for row in resampled:
        weights = generator.exponential(size=int(groups.max()) + 1)[groups]
        row[:] = _two_way(values, weights, cell, shape)[0]
    shift = resampled.mean(axis=1, keepdims=True)
    return np.asarray((resampled - shift).var(axis=0)), float(shift.var())


def _common(relations: Sequence[str]) -> list[str]:
    counts = Counter(relations)
    kept = {name for name, count in counts.most_common(_RELATIONS) if count >= _RARE}
    return [name if name in kept else "" for name in relations]


def _codes(names: Sequence[str]) -> Ints:
    return np.unique(names, return_inverse=True)[1].astype(np.int64)


def _scaled(values: Floats, groups: Ints) -> Floats:
    """Return values in robust standard deviations of their group, cut at extremes."""
    scaled = np.empty_like(values)
    for group in range(int(groups.max()) + 1):
        own = values[groups == group]
        middle = np.median(own)
        size = 1.4826 * np.median(abs(own - middle)) or own.std() or 1.0
        scaled[groups == group] = np.clip(own, middle - _EXTREME * size, middle + _EXTREME * size) / size
    return scaled


def _two_way(values: Floats, weights: Floats, cell: Ints, shape: tuple[int, int]) -> tuple[Floats, Floats]:
    """Return the effects of months and relations. Relations have random effects, as large as an item's noise."""
    size = shape[0] * shape[1]
    counts = np.bincount(cell, weights, size).reshape(shape)
    sums = np.bincount(cell, weights * values, size).reshape(shape)
    per_month = np.maximum(counts.sum(axis=1), 1e-12)
    share = counts / per_month[:, None]
    left = np.diag(counts.sum(axis=0) + 1.0) - counts.T @ share
    effects = np.linalg.solve(left, sums.sum(axis=0) - share.T @ sums.sum(axis=1))
    return sums.sum(axis=1) / per_month - share @ effects, effects


def _predicted(values: Floats, weights: Floats, cell: Ints, shape: tuple[int, int]) -> Floats:
    months, relations = _two_way(values, weights, cell, shape)
    return months[cell // shape[1]] + relations[cell % shape[1]]


# The fall


def _fit(months: _Months, series: Floats, prior: Floats = _PRIOR, outside: int = 0) -> _Fit:
    """Fit all falls to each series of monthly means, [series, months], also ``outside`` months beyond the data."""
    cutoffs = np.arange(months.at[0] - outside, months.at[-1] + outside)
    span = int(months.at[-1] - months.at[0])
    widths = [width for width in _WIDTHS if width <= max(1, span // 2)]
    shares = np.log([1.0] if len(widths) == 1 else [0.5, *[0.5 / (len(widths) - 1)] * (len(widths) - 1)])
    fall = np.full((len(series), len(_MONTH), len(cutoffs)), -np.inf)
    none = np.empty((len(series), len(_MONTH)))
    line = _line(months)
    for i, effect in enumerate(_MONTH):
        precision = 1 / (months.variances + effect**2)
        none[:, i] = _evidence(line, precision, series, prior)
        for j, cutoff in enumerate(cutoffs):
            for width, share in zip(widths, shares, strict=True):
                known = np.clip((cutoff + 0.5 + width / 2 - months.at) / width, 0, 1) - 0.5
                found = _evidence(np.vstack([line, known]), precision, series, prior) + share
                fall[:, i, j] = np.logaddexp(fall[:, i, j], found)
    return _Fit(cutoffs, fall - np.log(len(cutoffs)), none)


def _line(months: _Months) -> Floats:
    """Return the columns of a level and a trend."""
    return np.stack([np.ones(len(months.at)), (months.at - months.at.mean()) / (months.at[-1] - months.at[0])])


def _evidence(columns: Floats, precision: Floats, series: Floats, prior: Floats) -> Floats:
    """Return the log marginal likelihood of each series; a third column has a positive effect."""
    prior = prior[: len(columns)]
    inverse = np.linalg.inv((columns * precision) @ columns.T + np.diag(prior))
    projected = (series * precision) @ columns.T
    effects = projected @ inverse
    squares = (series**2) @ precision - (projected * effects).sum(axis=1)
    found = 0.5 * (np.log(precision).sum() + np.log(prior).sum() + np.linalg.slogdet(inverse)[1] - squares)
    if len(columns) == len(_PRIOR):
        found = found + np.log(2 * np.maximum(ndtr(effects[:, -1] / np.sqrt(inverse[-1, -1])), 1e-300))
    return np.asarray(found)


def _p_value(months: _Months, fit: _Fit, generator: np.random.Generator) -> float:
    """Return how often simulated months with a trend and without a fall look as much like a fall."""
    columns, prior = _line(months), np.diag(_PRIOR[:-1])
    precisions = 1 / (months.variances + _MONTH[:, None] ** 2)
    lines = [
        np.linalg.solve((columns * of) @ columns.T + prior, (columns * of) @ months.means) @ columns
        for of in precisions
    ]
    # The size of the months' effects is drawn from fits with and without a fall. Else a fall would count as noise.
    weights = np.logaddexp(logsumexp(fit.fall[0], axis=1), fit.none[0])
    drawn = generator.choice(len(_MONTH), _SIMULATIONS, p=np.exp(weights - logsumexp(weights)))
    noise = generator.standard_normal((_SIMULATIONS, len(months.at))) / np.sqrt(precisions[drawn])
    simulated = _fit(months, np.array(lines)[drawn] + noise)
    return float(1 + (simulated.odds >= fit.odds[0]).sum()) / (1 + _SIMULATIONS)


def _effect(fit: _Fit) -> float:
    """Return the variance of the effects of months, as the fits with and without a fall have it."""
    weights = np.logaddexp(logsumexp(fit.fall[0], axis=1), fit.none[0])
    return float(np.exp(weights - logsumexp(weights)) @ _MONTH**2)


def _falls(months: _Months, fit: _Fit) -> tuple[int, ...]:
    """Return the last months before two falls if these are clearly likelier than one, or than a mere trend."""
    precision, line, cutoffs = 1 / (months.variances + _effect(fit)), _line(months), fit.cutoffs

    def likelihood(known: Floats) -> float:
        return float(_evidence(np.vstack([line, known - 0.5]), precision, months.means[None], _PRIOR)[0])

    after = cutoffs[:, None] + 0.5 - months.at
    none = float(_evidence(line, precision, months.means[None], _PRIOR)[0])
    one = max(likelihood(np.clip(0.5 + of / width, 0, 1)) for of in after for width in _WIDTHS)
    two = [
        (likelihood(share * (after[i] > 0) + (1 - share) * (after[j] > 0)), int(cutoffs[i]), int(cutoffs[j]))
        for i, j in combinations(range(len(cutoffs)), 2)
        if j - i >= _APART
        for share in (1 / 3, 1 / 2, 2 / 3)
    ]
    best, *falls = max(two, default=(-np.inf,))
    return tuple(map(int, falls)) if best > max(one, none) + _TWICE else ()


def _could_show(months: _Months, fit: _Fit, items: int) -> tuple[float, int | None]:
    """Return the smallest fall in the middle that these items would show, and how many a month a typical one takes."""
    columns = np.vstack([_line(months), (months.at <= months.at.mean()) - 0.5])

    def smallest(times: float) -> float:
        precision = 1 / (months.variances / times + _effect(fit))
        error = np.linalg.inv((columns * precision) @ columns.T + np.diag([*_PRIOR[:2], 0]))[-1, -1] ** 0.5
        return float(2 * ndtr(_FOUND * error / 2) - 1)

    enough = [times for times in 2.0 ** np.arange(-4, 8, 0.5) if smallest(times) <= TYPICAL]
    return round(smallest(1), 3), int(np.ceil(enough[0] * items / len(months.at))) if enough else None


def _bounds(months: _Months) -> Belief:
    """Return a cutoff that cannot be told, with bounds, from months without a clear fall."""
    level = 1 / (_LEVEL**2 + months.level)
    fit = _fit(months, months.means[None], np.array([level, *_PRIOR[1:]]), outside=1)
    weights = np.asarray(logsumexp(fit.fall[0], axis=0)) + np.log(len(fit.cutoffs))
    weights[0] = max(weights[0], logsumexp(fit.none[0]))  # a model that knows nothing has its cutoff before the data
    return Belief(_likely(fit.cutoffs, weights), fit.cutoffs, weights)


def _likely(cutoffs: Ints, weights: Floats) -> Cutoff:
    """Return bounds of a cutoff: the first and the last month that is not unlikely, if they say anything.

    The months beyond a bound must also be improbable together: where there are many, each one is.
    """
    likely = cutoffs[weights > weights.max() - _UNLIKELY]
    low, _, high = _quantiles(cutoffs, weights, _BEYOND)
    low, high = min(low, int(likely[0])), max(high, int(likely[-1]))
    return Cutoff(None, low if low > cutoffs[0] else None, high if high < cutoffs[-1] else None, "cannot tell")


def _quantiles(cutoffs: Ints, weights: Floats, beyond: float = 0.025) -> tuple[int, int, int]:
    """Return the median of a posterior between the ends beyond which this share of it lies: low, median, high."""
    below = np.cumsum(np.exp(weights - logsumexp(weights)))
    places = [min(int(np.searchsorted(below, share)), len(cutoffs) - 1) for share in (beyond, 0.5, 1 - beyond)]
    low, middle, high = (int(cutoffs[place]) for place in places)
    return low, middle, high
