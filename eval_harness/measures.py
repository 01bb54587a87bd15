"""Measures. Each turns numbers about the scored facts, clozes or texts into a score: a ratio of two sums over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from temporalwiki.base.errors import InputError
from temporalwiki.eval_harness.statistics import (
    MATCHED,
    MEAN,
    PERCENT,
    PERPLEXITY,
    POSITIVE,
    QUOTIENT,
    Estimate,
    Items,
    Scale,
    estimate,
    value_of,
)

Item = Mapping[str, Any]  # an item's figures, "id" and "cluster"; a figure may be None or missing
Columns = Mapping[str, npt.NDArray[Any]]  # the same of many items: arrays of figures, with nan for None, and of texts

UNCHANGED = "unchanged"  # the facts that some measures compare with
STRICT = "strict/"  # before the names of tests that count only strict facts
_LABELS = ("cluster", "id", "relation")
SUBSETS = ("all", "stated", "strict")  # of changed and unchanged facts: tests of learned_and_forgotten


class Measure(NamedTuple):
    """A ratio of sums: what items add to numerator and denominator."""

    above: Callable[[Columns], Any]
    below: Callable[[Columns], Any] = lambda items: 1.0
    scale: Scale = MEAN
    unit: Callable[[Columns], Any] | None = None  # must be equal for models to be compared; None: ``below``
    sign: str = ""  # shown after the name in a table
    needs: str = ""  # the figure that an item needs to count; "": the one with the measure's name
    higher_is_better: bool | None = True  # None: neither is, so models are not ranked
    of: str | None = None  # in a subset, only this split counts
    compared: bool = False  # whether it compares the facts with unchanged ones


class Composition(NamedTuple):
    """A score and the items that it was computed from, in the form of ``statistics.estimate``."""

    groups: list[Items]
    scale: Scale
    value: float
    asked: tuple[Any, ...]  # equal for two models if they scored the same items in the same units


def _perplexity(nll: str, tokens: str) -> Measure:
    return Measure(lambda items: items[nll], lambda items: items[tokens], PERPLEXITY, None, "", nll, False)


def _bits(nll: str, size: str) -> Measure:
    return Measure(lambda items: items[nll] / np.log(2), lambda items: items[size], MEAN, None, "", nll, False)


def _percent(figure: str, higher_is_better: bool | None = True) -> Measure:
    return Measure(lambda items: 100 * items[figure], scale=PERCENT, sign="%", higher_is_better=higher_is_better)


MEASURES = {
    "learned": Measure(
        lambda items: items["gain"], scale=MATCHED, sign="nats", needs="gain", of="changed", compared=True
    ),
    "forgotten": Measure(
        lambda items: -items["gain"], sign="nats", needs="gain", higher_is_better=False, of=UNCHANGED
    ),
    "let_go": Measure(lambda items: -items["gain"], scale=MATCHED, sign="nats", needs="gain", compared=True),
    "perplexity": _perplexity("nll", "tokens"),
    "perplexity_instance_mean": Measure(
        lambda items: np.exp(items["nll"] / items["tokens"]),
        scale=POSITIVE,
        unit=lambda items: items["tokens"],
        needs="nll",
        higher_is_better=False,
    ),
    "object_perplexity": _perplexity("object_nll", "object_tokens"),
    "bits_per_byte": _bits("nll", "bytes"),
    "proper_noun_perplexity": _perplexity("proper_noun_nll", "proper_noun_tokens"),
    "proper_noun_bits_per_byte": _bits("proper_noun_nll", "proper_noun_bytes"),
    **{name: _percent(name) for name in ("exact_match", "f1", "accuracy", "rouge_l", "acc", "acc_norm")},
    "chance": _percent("chance", None),
    "margin": Measure(lambda items: items["margin"], sign="nats"),
    "old_exact_match": _percent("old_exact_match", None),
    **{name: _percent(name) for name in (f"precision_at_{k}" for k in (1, 5, 10))},
    **{name: _percent(name, name == "new" or None) for name in ("new", "old", "both", "neither", "abstained")},
    "judge_agreement": _percent("judge_agreement", None),
    "over_unchanged": _perplexity("object_nll", "object_tokens")._replace(scale=QUOTIENT, compared=True),
}


def higher_is_better(task: str, measure: str) -> bool | None:
    """Return whether a higher score of a measure is better; None if neither is.

    In the task ``deleted``, only the change since the start model shows that a model let go of facts: a model that
    forgets everything also finds deleted facts unlikely.
    """
    if task == "deleted" and measure != "let_go":
        return None
    return MEASURES[measure].higher_is_better if measure in MEASURES else True


def is_change(measure: str) -> bool:
    """Return whether a measure compares what two groups of facts gained since the start model."""
    return measure in MEASURES and MEASURES[measure].scale.matched


def earned(measure: str, found: Estimate, of_test: Mapping[str, float], made: Sequence[Composition]) -> bool:
    """Return whether a score shows knowledge. A model that knows nothing can reach a score that does not.

    A model must prefer right choices more often than by chance. It must learn more than it forgets, or let go of more:
    a model that forgets everything loses most on the facts that its start model knew best. ``of_test`` are the scores
    of the same test, ``made`` are the items of the score, for each run of the model.
    """
    if measure in ("acc", "acc_norm", "margin"):
        return found.low is not None and found.low > (0.0 if measure == "margin" else of_test.get("chance", 0.0))
    if measure in ("learned", "forgotten"):
        return {"learned", "forgotten"} <= of_test.keys() and of_test["learned"] > of_test["forgotten"]
    if is_change(measure):
        lost = [float(np.asarray(one.groups[1].numerators).mean()) for one in made]
        return bool(lost) and found.value > fmean(lost)
    return True


def scores(tests: Mapping[str, Sequence[Sequence[Item]]], measures: Sequence[str]) -> dict[str, Estimate]:
    """Return "TEST/MEASURE" -> estimate for each test and measure that has items.

    A test is one or more groups of items. Its score is the mean of the scores of its groups; it is left out if a group
    has no items. A measure that compares facts with unchanged ones takes the unchanged ones as its second group.
    """
    found = {}
    for test, groups in tests.items():
        columns = [columns_of(group) for group in groups]
        for name in measures:
            made = _composed(columns, name)
            if made is not None:
                found[f"{test}/{name}"] = estimate(made.groups, made.scale)
    return found


def columns_of(items: Sequence[Item]) -> Columns:
    """Return items as columns; a figure that an item lacks is nan. Raises InputError for an item with nan."""
    names = dict.fromkeys(name for item in items for name in item)
    columns: dict[str, npt.NDArray[Any]] = {}
    for name in names:
        values = [item.get(name) for item in items]
        if all(value is None or isinstance(value, int | float) for value in values) and name not in ("id", "cluster"):
            columns[name] = np.array(values, dtype=np.float64)
            for i in np.flatnonzero(np.isnan(columns[name])).tolist():
                if values[i] is not None:
                    raise InputError(f"item {items[i].get('id')!r}: {name} is not a finite number")
        else:
            columns[name] = np.array([None, *values], dtype=object)[1:]  # numpy makes a list of lists a table
    return columns


def composition(items: Columns, test: str, measure: str) -> Composition | None:
    """Return the score of a test and its items, from all items of a result; None if these have no such score.

    The items of a test have its name as "split"; without that column, all items count. The test
    "average" is the mean of ``unchanged`` and ``changed``. The kinds of deleted facts are in the column "kind". The
    tests of ``learned_and_forgotten`` are subsets of the facts: "all", and others that have a column of their name,
    which is 1 for their facts. A test that begins with ``STRICT`` has only the items whose column "strict" is 1.
    """
    if measure not in MEASURES:
        return None
    if test.startswith(STRICT):
        if "strict" not in items:
            return None
        return composition(_chosen(items, items["strict"] == 1), test.removeprefix(STRICT), measure)
    how = MEASURES[measure]
    stage, _, name = test.rpartition("/")
    split, kind = items.get("split"), items.get("kind")
    if split is None:
        parts = [np.full(len(items["id"]), True)]
    elif how.of is not None:
        subset = np.full(len(split), True) if test == SUBSETS[0] else items.get(test)
        if subset is None:
            return None
        parts = [(split == how.of) & (subset == 1)]
        split = np.where(subset == 1, split, "")
    elif (split == test).any():
        parts = [split == test]
    elif name == "average":
        parts = [split == (f"{stage}/{part}" if stage else part) for part in ("unchanged", "changed")]
    elif kind is not None:
        parts = [(split == "deleted") & (kind == test)]
    else:
        return None
    if how.compared:
        if split is None:
            return None
        parts.append(split == UNCHANGED)
    return _composed([_chosen(items, part) for part in parts], measure)


def _composed(groups: Sequence[Columns], name: str) -> Composition | None:
    """Return the score of groups of items, or None if a group has no item for it, or no two facts can be matched."""
    how, found, asked = MEASURES[name], [], []
    counted = [_with_figure(group, how.needs or name) for group in groups]
    if not counted:
        return None
    if how.scale.matched and all("relation" in group for group in counted):
        shared = list(set.intersection(*(set(group["relation"].tolist()) for group in counted)))
        counted = [_chosen(group, np.isin(group["relation"].astype(str), shared)) for group in counted]
    for group in counted:
        if not len(group["id"]):
            return None
        try:
            above, below = how.above(group), np.broadcast_to(how.below(group), len(group["id"]))
            unit = below if how.unit is None else how.unit(group)
        except KeyError:  # the items lack the column of the denominator
            return None
        clusters, ids, relations = (group[key].tolist() if key in group else [] for key in _LABELS)
        found.append(Items(above, below, clusters, ids, relations))
        asked.append((tuple(ids), tuple(clusters), unit.astype(np.float64).tobytes()))
    if how.scale.matched and not found[0].relations:
        return None
    return Composition(found, how.scale, value_of(found, how.scale), tuple(asked))


def _with_figure(items: Columns, figure: str) -> Columns:
    if figure not in items:
        return {"id": np.array([])}
    return _chosen(items, ~np.isnan(items[figure]))


def _chosen(items: Columns, which: npt.NDArray[np.bool_]) -> Columns:
    return {name: column[which] for name, column in items.items()}
