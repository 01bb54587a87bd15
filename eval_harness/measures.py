"""Measures. Each turns numbers about the scored facts, clozes or texts into a score: a ratio of two sums over them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from temporalwiki.base.errors import InputError
from temporalwiki.eval_harness.statistics import (
    DIFFERENCE,
    MEAN,
    PERCENT,
    PERPLEXITY,
    POINTS,
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
SUBSETS = ("all", "stated", "strict", "unread")  # of changed and unchanged facts: tests of learned_and_forgotten
WORST = "worst"  # the form with the worst score
NO_FORMS = ("spelling",)  # items in these forms are controls, which count in no other test


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
    return Measure(lambda items: items[nll] / np.log(2), lambda items: items[size], POSITIVE, None, "", nll, False)


def _percent(figure: str, higher_is_better: bool | None = True) -> Measure:
    return Measure(lambda items: 100 * items[figure], scale=PERCENT, sign="%", higher_is_better=higher_is_better)


MEASURES = {
    "new_known": _percent("known")._replace(of="changed", needs="known"),
    "old_known": _percent("known")._replace(of=UNCHANGED, needs="known"),
    "learned": Measure(
        lambda items: 100 * (items["known"] - items["start_known"]), scale=POINTS, needs="start_known", of="changed"
    ),
    "forgotten": Measure(
        lambda items: 100 * (items["start_known"] - items["known"]),
        scale=POINTS,
        needs="start_known",
        higher_is_better=False,
        of=UNCHANGED,
    ),
    "known": _percent("known"),
    "corrected": _percent("corrected")._replace(of="changed"),
    "let_go": Measure(lambda items: 100 * items["let_go"], scale=DIFFERENCE, compared=True),
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


def earned(measure: str, found: Estimate, chance: float) -> bool:
    """Return whether a score shows knowledge. A model that knows nothing can reach a score that does not.

    A model must prefer right choices, and know facts, more often than by chance. It must let go of more deleted facts
    than of unchanged ones. ``chance`` is that of the same test.
    """
    if measure in ("acc", "acc_norm", "margin", "known", "new_known", "old_known"):
        return found.low is not None and found.low > (0.0 if measure == "margin" else chance)
    if measure == "let_go":
        return found.low is not None and found.low > 0
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
    "average" is the mean of ``unchanged`` and ``changed``. The kinds of deleted facts are in the column "kind". A test
    that begins with ``STRICT`` has only the items whose column "strict" is 1. See ``_of_forms`` for facts in panels.
    """
    if measure not in MEASURES:
        return None
    if test.startswith(STRICT):
        if "strict" not in items:
            return None
        return composition(_chosen(items, items["strict"] == 1), test.removeprefix(STRICT), measure)
    how = MEASURES[measure]
    if "form" in items:
        return _of_forms(items, test, measure)
    stage, _, name = test.rpartition("/")
    split, kind = items.get("split"), items.get("kind")
    if split is None:
        parts = [np.full(len(items["id"]), True)]
    elif how.of is not None:  # a version without panels
        return None
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


def _of_forms(items: Columns, test: str, measure: str) -> Composition | None:
    """Return a score of facts in panels, which have the column "form".

    The tests in ``SUBSETS`` have the facts whose column of that name is 1 ("all": all), and the mean over the forms.
    "FORM/all" is one form, and "worst/all" the form with the worst score.
    """
    how = MEASURES[measure]
    form, _, subset = test.rpartition("/")
    forms = [str(one) for one in dict.fromkeys(items["form"].tolist()) if one not in NO_FORMS]
    if form == WORST:
        each = [_of_forms(items, f"{one}/{subset}", measure) for one in forms]
        found = [one for one in each if one is not None]
        return (max if how.higher_is_better is False else min)(found, key=lambda one: one.value, default=None)
    chosen = np.full(len(items["id"]), True) if subset == SUBSETS[0] else items.get(subset, np.array([0.0])) == 1
    if how.of is not None:
        chosen = chosen & (items["split"] == how.of)
    parts = [_chosen(items, chosen & (items["form"] == one)) for one in ([form] if form else forms)]
    return _composed([part for part in parts if len(part["id"])], measure)


def _composed(groups: Sequence[Columns], name: str) -> Composition | None:
    """Return the score of groups of items, or None if a group has no item for it."""
    how, found, asked = MEASURES[name], [], []
    counted = [_with_figure(group, how.needs or name) for group in groups]
    if not counted:
        return None
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
    return Composition(found, how.scale, value_of(found, how.scale), tuple(asked))


def _with_figure(items: Columns, figure: str) -> Columns:
    if figure not in items:
        return {"id": np.array([])}
    return _chosen(items, ~np.isnan(items[figure]))


def _chosen(items: Columns, which: npt.NDArray[np.bool_]) -> Columns:
    return {name: column[which] for name, column in items.items()}
