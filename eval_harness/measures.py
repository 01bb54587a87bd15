"""Measures: each turns the figures of items into a score, as a ratio of sums over the items."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from temporalwiki.eval_harness.statistics import Estimate, Items, Transform, mean_of_ratios

Item = Mapping[str, Any]  # an item's figures, "id" and "cluster"; a figure may be None or missing
Columns = Mapping[str, npt.NDArray[Any]]  # the same of many items: arrays of figures, with nan for None, and of texts


class Measure(NamedTuple):
    """A ratio of sums: what an item (or each item of columns) adds to numerator and denominator."""

    above: Callable[[Item | Columns], Any]
    below: Callable[[Item | Columns], Any] = lambda item: 1.0
    transform: Transform | None = None  # of the ratio
    unit: Callable[[Item | Columns], Any] | None = None  # must be equal for models to be compared; None: ``below``
    sign: str = ""  # shown after the name in a table
    needs: str = ""  # the figure that an item needs to count; "": the one with the measure's name
    lower_is_better: bool = False


class Composition(NamedTuple):
    """A score and the items that it was computed from, in the form of ``statistics.mean_of_ratios``."""

    groups: list[Items]
    transform: Transform | None
    value: float
    asked: tuple[Any, ...]  # equal for two models if they scored the same items in the same units


def _perplexity(nll: str, tokens: str) -> Measure:
    return Measure(lambda item: item[nll], lambda item: item[tokens], np.exp, needs=nll, lower_is_better=True)


def _bits(nll: str, size: str) -> Measure:
    return Measure(lambda item: item[nll] / np.log(2), lambda item: item[size], needs=nll, lower_is_better=True)


def _percent(figure: str) -> Measure:
    return Measure(lambda item: 100 * item[figure], sign="%", lower_is_better=figure == "old_exact_match")


MEASURES = {
    "perplexity": _perplexity("nll", "tokens"),
    "perplexity_instance_mean": Measure(
        lambda item: np.exp(item["nll"] / item["tokens"]),
        unit=lambda item: item["tokens"],
        needs="nll",
        lower_is_better=True,
    ),
    "object_perplexity": _perplexity("object_nll", "object_tokens"),
    "bits_per_byte": _bits("nll", "bytes"),
    "proper_noun_perplexity": _perplexity("proper_noun_nll", "proper_noun_tokens"),
    "proper_noun_bits_per_byte": _bits("proper_noun_nll", "proper_noun_bytes"),
    **{name: _percent(name) for name in ("exact_match", "f1", "accuracy", "rouge_l", "acc", "acc_norm", "chance")},
    "margin": Measure(lambda item: item["margin"], sign="nats"),
    **{name: _percent(name) for name in ("old_exact_match", *(f"precision_at_{k}" for k in (1, 5, 10)))},
}
OVER_UNCHANGED = "over_unchanged"  # compares two tests, so it is not in MEASURES
_DELETED = Measure(lambda item: 2 * item["object_nll"], lambda item: item["object_tokens"])
_UNCHANGED = Measure(lambda item: -2 * item["object_nll"], lambda item: item["object_tokens"])


def higher_is_better(task: str, measure: str) -> bool:
    """Return whether a higher score of a measure is better.

    In the task ``deleted`` it always is: a model that lets go of deleted facts finds them unlikely.
    """
    return task == "deleted" or measure not in MEASURES or not MEASURES[measure].lower_is_better


def scores(tests: Mapping[str, Sequence[Sequence[Item]]], measures: Sequence[str]) -> dict[str, Estimate]:
    """Return "TEST/MEASURE" -> estimate for each test and measure that has items.

    A test is one or more groups of items. Its score is the mean of the scores of its groups; it is left out if a group
    has no items. Intervals are bootstrapped over the clusters of the items.
    """
    found = {}
    for test, groups in tests.items():
        for name in measures:
            measure = MEASURES[name]
            counted = [[item for item in group if item.get(measure.needs or name) is not None] for group in groups]
            if counted and all(counted):
                found[f"{test}/{name}"] = mean_of_ratios(
                    [_columns(items, measure) for items in counted], measure.transform
                )
    return found


def over_unchanged(facts: Sequence[Item], control: Sequence[Item]) -> Estimate:
    """Return the object perplexity of ``facts`` divided by that of ``control``.

    This is exp(a - b) with the mean NLL per object token of each. Its interval is that of a - b, computed as the mean
    of 2a and -2b, so that a subject with facts in both groups is resampled in both.
    """
    log = mean_of_ratios([_columns(facts, _DELETED), _columns(control, _UNCHANGED)])
    low, high = (None if end is None else math.exp(end) for end in (log.low, log.high))
    return Estimate(math.exp(log.value), low, high, len(facts), len({item["cluster"] for item in facts}))


def composition(items: Columns, test: str, measure: str) -> Composition | None:
    """Return the score of a test with its items, computed from all items of a result; None if that is not known.

    The items of a test have its name as "split"; without that column, all items count. The test
    "average" is the mean of ``unchanged`` and ``changed``. The kinds of deleted facts are in the column "kind".
    """
    stage, _, name = test.rpartition("/")
    split, kind = items.get("split"), items.get("kind")
    if split is None:
        parts = [np.full(len(items["id"]), True)]
    elif (split == test).any():
        parts = [split == test]
    elif name == "average":
        parts = [split == (f"{stage}/{part}" if stage else part) for part in ("unchanged", "changed")]
    elif kind is not None:
        parts = [(split == "deleted") & (kind == test)]
    else:
        return None
    if measure == OVER_UNCHANGED and split is not None:
        measures: tuple[Measure, ...] = (_DELETED, _UNCHANGED)
        needed = "object_nll"
        parts.append(split == "unchanged")
    elif measure in MEASURES:
        measures, needed = (MEASURES[measure],) * len(parts), MEASURES[measure].needs or measure
    else:
        return None
    if needed not in items:
        return None
    groups, ratios, asked = [], [], []
    for part, how in zip(parts, measures, strict=True):
        at = np.flatnonzero(part & ~np.isnan(items[needed]))
        if not len(at):
            return None
        chosen = {name: column[at] for name, column in items.items()}
        try:
            above, below = how.above(chosen), np.broadcast_to(how.below(chosen), len(at))
            unit = below if how.unit is None else how.unit(chosen)
        except KeyError:  # the items lack the column of the denominator
            return None
        clusters, ids = chosen["cluster"].tolist(), chosen["id"].tolist()
        groups.append(Items(above, below, clusters, ids))
        asked.append((tuple(ids), tuple(clusters), unit.astype(np.float64).tobytes()))
        ratios.append(above.sum() / below.sum())
    transform = measures[0].transform
    value = float(np.mean(ratios if transform is None else transform(np.array(ratios))))
    return Composition(groups, transform, math.exp(value) if measure == OVER_UNCHANGED else value, tuple(asked))


def _columns(items: Sequence[Item], measure: Measure) -> Items:
    return Items(
        [measure.above(item) for item in items],
        [measure.below(item) for item in items],
        [item["cluster"] for item in items],
        [item["id"] for item in items],
    )
