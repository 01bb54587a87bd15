"""From what was found of each item to a test's scores: every measure is a ratio of sums over items."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from temporalwiki.eval_harness.statistics import Estimate, Items, Transform, mean_of_ratios

Item = Mapping[str, Any]  # an item's figures, with its "id" and "cluster"; one that is None or absent does not count
Columns = Mapping[str, npt.NDArray[Any]]  # of many items: figures, nan where there is none, and texts


class Measure(NamedTuple):
    """What an item, or each in columns, adds above and below the line, and what is done with the ratio."""

    above: Callable[[Item | Columns], Any]
    below: Callable[[Item | Columns], Any] = lambda item: 1.0
    transform: Transform | None = None
    unit: Callable[[Item | Columns], Any] | None = None  # what models must agree in to be compared, unless ``below``
    sign: str = ""  # what a table writes beside its name


class Composition(NamedTuple):
    """What a score was made of, as ``statistics.mean_of_ratios`` takes it, and the score."""

    groups: list[Items]
    transform: Transform | None
    value: float
    asked: tuple[Any, ...]  # equal where scores of two models can be compared: the same items in the same units


def _percent(figure: str) -> Measure:
    return Measure(lambda item: 100 * item[figure], sign="%")


MEASURES = {
    "perplexity": Measure(lambda item: item["nll"], lambda item: item["tokens"], np.exp),
    "perplexity_instance_mean": Measure(
        lambda item: np.exp(item["nll"] / item["tokens"]), unit=lambda item: item["tokens"]
    ),
    "object_perplexity": Measure(lambda item: item["object_nll"], lambda item: item["object_tokens"], np.exp),
    "bits_per_byte": Measure(lambda item: item["nll"] / np.log(2), lambda item: item["bytes"]),
    "proper_noun_perplexity": Measure(
        lambda item: item["proper_noun_nll"], lambda item: item["proper_noun_tokens"], np.exp
    ),
    "proper_noun_bits_per_byte": Measure(
        lambda item: item["proper_noun_nll"] / np.log(2), lambda item: item["proper_noun_bytes"]
    ),
    "exact_match": _percent("exact_match"),
    "f1": _percent("f1"),
    "accuracy": _percent("accuracy"),
    "rouge_l": _percent("rouge_l"),
    "acc": _percent("acc"),
    "acc_norm": _percent("acc_norm"),
    "chance": _percent("chance"),
    "margin": Measure(lambda item: item["margin"], sign="nats"),
    "old_exact_match": _percent("old_exact_match"),
    "precision_at_1": _percent("precision_at_1"),
    "precision_at_5": _percent("precision_at_5"),
    "precision_at_10": _percent("precision_at_10"),
}
OVER_UNCHANGED = "over_unchanged"  # of tests, not of items
_GONE = Measure(lambda item: 2 * item["object_nll"], lambda item: item["object_tokens"])
_KEPT = Measure(lambda item: -2 * item["object_nll"], lambda item: item["object_tokens"])
# the figure without which an item does not count for a measure
_NEEDS = {
    "perplexity": "nll",
    "perplexity_instance_mean": "nll",
    "object_perplexity": "object_nll",
    "bits_per_byte": "nll",
    "proper_noun_perplexity": "proper_noun_nll",
    "proper_noun_bits_per_byte": "proper_noun_nll",
}
# of all tasks but ``deleted``
_LOWER_IS_BETTER = (
    "perplexity",
    "perplexity_instance_mean",
    "object_perplexity",
    "bits_per_byte",
    "proper_noun_perplexity",
    "proper_noun_bits_per_byte",
    "old_exact_match",
)


def higher_is_better(task: str, measure: str) -> bool:
    """Tell whether a model is the better the higher its score is.

    The facts of ``deleted`` are no longer so: a model that lets go of them finds them unlikely.
    """
    return task == "deleted" or measure not in _LOWER_IS_BETTER


def scores(tests: Mapping[str, Sequence[Sequence[Item]]], measures: Sequence[str]) -> dict[str, Estimate]:
    """Return "TEST/MEASURE" -> estimate for each test and measure that has items.

    A test is one or more groups of items; the score of several is the mean of theirs, and is left out where one of
    them has no items. Intervals are drawn over the items' clusters.
    """
    found = {}
    for test, groups in tests.items():
        for name in measures:
            measure, needed = MEASURES[name], _NEEDS.get(name, name)
            counted = [[item for item in group if item.get(needed) is not None] for group in groups]
            if counted and all(counted):
                found[f"{test}/{name}"] = mean_of_ratios(
                    [_columns(items, measure) for items in counted], measure.transform
                )
    return found


def over_unchanged(facts: Sequence[Item], control: Sequence[Item]) -> Estimate:
    """Return exp(a - b), a and b being the mean NLL of an object's token: the ratio of two perplexities.

    The interval is that of a - b, which is the mean of 2a and -2b, with a subject drawn in both.
    """
    log = mean_of_ratios([_columns(facts, _GONE), _columns(control, _KEPT)])
    low, high = (None if end is None else math.exp(end) for end in (log.low, log.high))
    return Estimate(math.exp(log.value), low, high, len(facts), len({item["cluster"] for item in facts}))


def composition(items: Columns, test: str, measure: str) -> Composition | None:
    """Return what the score of a test was made of, out of a result's items by id; None where that is not known.

    A test has the items whose "split" is its name, and all where items have none. An average is that of ``unchanged``
    and ``changed``; the kinds of deleted facts are in the column "kind".
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
        of: tuple[Measure, ...] = (_GONE, _KEPT)
        needed = "object_nll"
        parts.append(split == "unchanged")
    elif measure in MEASURES:
        of, needed = (MEASURES[measure],) * len(parts), _NEEDS.get(measure, measure)
    else:
        return None
    if needed not in items:
        return None
    groups, ratios, asked = [], [], []
    for part, how in zip(parts, of, strict=True):
        at = np.flatnonzero(part & ~np.isnan(items[needed]))
        if not len(at):
            return None
        those = {name: column[at] for name, column in items.items()}
        try:
            above, below = how.above(those), np.broadcast_to(how.below(those), len(at))
            unit = below if how.unit is None else how.unit(those)
        except KeyError:  # no column of what is divided by
            return None
        clusters, ids = those["cluster"].tolist(), those["id"].tolist()
        groups.append(Items(above, below, clusters, ids))
        asked.append((tuple(ids), tuple(clusters), unit.astype(np.float64).tobytes()))
        ratios.append(above.sum() / below.sum())
    transform = of[0].transform
    value = float(np.mean(ratios if transform is None else transform(np.array(ratios))))
    return Composition(groups, transform, math.exp(value) if measure == OVER_UNCHANGED else value, tuple(asked))


def _columns(items: Sequence[Item], measure: Measure) -> Items:
    return Items(
        [measure.above(item) for item in items],
        [measure.below(item) for item in items],
        [item["cluster"] for item in items],
        [item["id"] for item in items],
    )
