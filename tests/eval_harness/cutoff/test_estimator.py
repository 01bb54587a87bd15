"""The estimator of a knowledge cutoff: what it finds in simulated changes, and when it cannot tell."""

from collections.abc import Sequence

import numpy as np
import pytest

from temporalwiki.eval_harness.cutoff.estimator import (
    FEWEST,
    Belief,
    ChangeEvidence,
    Cutoff,
    Point,
    curve,
    find_cutoff,
    join,
)

JANUARY = 2021 * 12


def changes(
    months: Sequence[int], known: Sequence[float], seed: int = 0, each: int = 40, noise: float = 1.0
) -> list[ChangeEvidence]:
    """Return ``each`` changes a month: a share ``known`` favours the new side, the others the old side."""
    generator = np.random.default_rng(seed)
    items = []
    for month, share in zip(months, known, strict=True):
        for i in range(each):
            side = 1.5 if generator.random() < share else -1.5
            relation = int(generator.integers(6))
            evidence = side + noise * float(generator.standard_t(3)) + 0.3 * relation - 0.75
            items.append(ChangeEvidence(JANUARY + month, f"P{relation}", f"Q{month}-{i // 2}", evidence))
    return items


def step(cutoff: int, months: int = 12, before: float = 0.7, after: float = 0.2) -> list[float]:
    return [before if month <= cutoff else after for month in range(months)]


@pytest.mark.parametrize("cutoff", [1, 3, 6, 9])
def test_a_step_is_found_where_it_is(cutoff: int) -> None:
    found = find_cutoff(changes(range(12), step(cutoff)))
    assert found.verdict == "found"
    assert found.low is not None and found.high is not None and found.cutoff is not None
    assert found.low <= JANUARY + cutoff <= found.high
    assert abs(found.cutoff - JANUARY - cutoff) <= 1


def test_a_ramp_is_cut_at_half_its_height() -> None:
    known = [0.9, 0.9, 0.9, 0.9, 0.75, 0.6, 0.45, 0.3, 0.15, 0.1, 0.1, 0.1]  # half between June and July
    found = find_cutoff(changes(range(12), known, each=150))
    assert found.low is not None and found.high is not None
    assert found.low <= JANUARY + 5 <= found.high
    assert found.high - found.low <= 4


CANNOT_TELL = {
    "no changes": [],
    "fewer changes than it takes": changes(range(3), [1.0, 0.0, 0.0], each=6)[: FEWEST - 1],
    "the same share in all months": changes(range(12), [0.5] * 12),
    "two months": changes(range(2), [0.7, 0.3]),
    "a share that falls all the time": changes(range(12), np.linspace(0.6, 0.4, 12).tolist(), each=20),
    "evidence is not a number": [ChangeEvidence(JANUARY, "P1", f"Q{i}", float("nan")) for i in range(99)],
}


# a share of known changes before the cutoff and after it -> the bounds that some of eight worlds have
BOUNDS = [(0.65, 0.3, {"low", "high"}), (0.5, 0.5, set())]


@pytest.mark.parametrize("case", CANNOT_TELL)
def test_it_says_so_if_it_cannot_tell(case: str) -> None:
    assert find_cutoff(CANNOT_TELL[case]) == Cutoff(None, None, None, "cannot tell")


@pytest.mark.parametrize(("before", "after", "bounds"), BOUNDS)
def test_a_model_without_a_clear_fall_has_bounds_that_hold(before: float, after: float, bounds: set[str]) -> None:
    """Few changes, some of which the model knows: June, the truth, lies within the ends, and they within the data."""
    ends = set()
    for seed in range(8):
        found = find_cutoff(changes(range(12), step(5, before=before, after=after), seed, each=6))
        assert found.verdict != "cannot tell" or found.cutoff is None
        assert found.low is None or JANUARY <= found.low <= JANUARY + 5
        assert found.high is None or JANUARY + 5 <= found.high < JANUARY + 11
        if found.verdict == "cannot tell":
            ends |= {name for name in ("low", "high") if getattr(found, name) is not None}
    assert ends == bounds


# how much less likely each month of the first half of sixty is, as a logarithm -> how many months lie before the bound
HALVES = [
    (0.0, None),  # all are alike, though the first three hold a twentieth
    (2.0, 12),  # the first half holds e^-2 / (1 + e^-2) = 12 %, so a twentieth is 12.6 months
    (4.0, 30),  # 1.8 %
]


@pytest.mark.parametrize(("less", "before"), HALVES)
def test_months_beyond_a_bound_are_unlikely_alone_and_together(less: float, before: int | None) -> None:
    months = JANUARY + np.arange(60)
    belief = Belief(Cutoff(None, None, None, "cannot tell"), months, np.where(months < JANUARY + 30, -less, 0.0))
    joint, _ = join([belief])
    assert joint.high is None
    if before is None or joint.low is None:
        assert joint.low == before
    else:
        assert abs(joint.low - JANUARY - before) <= 1  # forms blur the months by half a month


def test_shuffled_months_and_models_that_know_nothing_have_no_bound() -> None:
    """At most one in twenty gets a wrong bound; these worlds are fixed, so this never varies."""
    wrong = 0
    for seed in range(20):
        items = changes(range(12), step(5), seed, each=10)
        months = np.random.default_rng(seed).permutation([item.month for item in items])
        mixed = find_cutoff([item._replace(month=int(m)) for item, m in zip(items, months, strict=True)])
        wrong += (mixed.low, mixed.high) != (None, None)
        wrong += find_cutoff(changes(range(12), [0.45] * 12, seed, each=10)).low is not None
    assert wrong <= 2


def test_the_same_preference_in_all_months_is_a_bound_too() -> None:
    """Most of its answers are old, but they are too few to say that it knows nothing."""
    found = find_cutoff(answers(known=-1, each=10, abstains=0.2))
    assert found == Cutoff(None, None, JANUARY - 1, "cannot tell")


def test_a_model_that_knows_everything_or_nothing() -> None:
    everything = find_cutoff(changes(range(12), [1.0] * 12, noise=0.2))
    assert everything.verdict == "after the data"
    assert everything.high is everything.cutoff is None
    assert everything.low is not None and JANUARY <= everything.low <= JANUARY + 11
    nothing = find_cutoff(changes(range(12), [0.0] * 12, noise=0.2))
    assert nothing.verdict == "before the data"
    assert nothing.low is nothing.cutoff is None
    assert nothing.high is not None and JANUARY - 1 <= nothing.high < JANUARY + 11


def answers(known: int, months: int = 12, each: int = 20, abstains: float = 0.5) -> list[ChangeEvidence]:
    """Return answers of a model behind an interface: new up to a month, old after it, or neither of them."""
    generator = np.random.default_rng(0)
    items = []
    for month, number in np.ndindex(months, each):
        side = 0.0 if generator.random() < abstains else 1.0 if month <= known else -1.0
        items.append(ChangeEvidence(JANUARY + month, f"P{number % 4}", f"Q{month}-{number}", side))
    return items


@pytest.mark.parametrize(("second", "falls"), [(6, ()), (16, (JANUARY + 6, JANUARY + 16))])
def test_two_falls_are_named_where_there_are_two(second: int, falls: tuple[int, ...]) -> None:
    months = range(24)
    found = find_cutoff(changes(months, [0.9 - 0.35 * (at > 6) - 0.35 * (at > second) for at in months], each=100))
    assert found.falls == falls


def test_answers_have_a_cutoff_as_likelihoods_do() -> None:
    found = find_cutoff(answers(known=6))
    assert (found.verdict, found.cutoff) == ("found", JANUARY + 6)


def test_a_model_that_never_gives_an_old_answer_may_only_be_silent() -> None:
    assert find_cutoff(answers(known=-1, abstains=1.0)).verdict == "cannot tell"
    assert find_cutoff(answers(known=-1, abstains=0.9)).verdict == "cannot tell"
    assert find_cutoff(answers(known=-1, abstains=0.1)).verdict == "before the data"


def test_one_month_is_enough_to_know_everything() -> None:
    assert find_cutoff(changes([0], [1.0], noise=0.2)) == Cutoff(None, JANUARY, None, "after the data")


def test_one_relation_is_not_enough_to_know_everything() -> None:
    """Its new names may be likelier for every model."""
    items = [item._replace(relation="P1") for item in changes(range(12), [1.0] * 12, noise=0.2)]
    assert find_cutoff(items).verdict == "cannot tell"


def test_shuffled_months_have_no_cutoff() -> None:
    """At most one in twenty, by the rate that it promises; these twenty worlds are fixed, so this never varies."""
    found = []
    for seed in range(20):
        items = changes(range(12), step(5), seed)
        months = np.random.default_rng(seed).permutation([item.month for item in items])
        found.append(find_cutoff([item._replace(month=int(m)) for item, m in zip(items, months, strict=True)]))
    assert sum(one.verdict == "found" for one in found) <= 1


def test_neither_the_order_nor_the_unit_of_the_evidence_matters() -> None:
    items = changes(range(12), step(6))
    found = find_cutoff(items)
    assert found.verdict == "found"
    assert find_cutoff(items[::-1]) == found
    assert find_cutoff([item._replace(evidence=1000 * item.evidence) for item in items]) == found


def test_the_answer_lies_between_two_months_of_the_data_if_others_are_missing() -> None:
    found = find_cutoff(changes([0, 3, 6, 9, 12, 15, 18], step(2, 7, 0.9, 0.1), each=80))
    assert found.low is not None and found.high is not None
    assert JANUARY + 6 <= found.low <= found.high <= JANUARY + 8  # known in July, not in October


def test_reference_models_remove_what_makes_some_months_hard() -> None:
    """Names of later months are rare for every model, which looks like a fall."""
    generator = np.random.default_rng(1)
    items = changes(range(12), [0.5] * 12)
    hard = [float(generator.normal()) - 4.0 * (item.month >= JANUARY + 6) for item in items]
    seen = [item._replace(evidence=item.evidence + extra) for item, extra in zip(items, hard, strict=True)]
    assert find_cutoff(seen).cutoff == JANUARY + 5
    known = [item._replace(difficulty=extra) for item, extra in zip(seen, hard, strict=True)]
    assert find_cutoff(known).verdict == "cannot tell"


def test_length_is_no_knowledge() -> None:
    items = changes(range(12), [0.5] * 12)
    generator = np.random.default_rng(1)
    lengths = [float(generator.normal() + (item.month < JANUARY + 6)) for item in items]
    longer = [i._replace(evidence=i.evidence + 3 * size, length=size) for i, size in zip(items, lengths, strict=True)]
    assert find_cutoff([item._replace(length=0.0) for item in longer]).verdict == "found"
    assert find_cutoff(longer).verdict != "found"


def test_the_curve_has_the_share_of_preferred_new_sides() -> None:
    items = [
        *(ChangeEvidence(JANUARY, "P1", f"Q{i}", evidence) for i, evidence in enumerate((2.0, 0.1, 3.0, -1.0))),
        ChangeEvidence(JANUARY + 2, "P1", "Q9", 0.0),  # a tie is not known
    ]
    first, last = curve(items)
    assert (first.month, first.known, first.items) == (JANUARY, 0.75, 4)
    assert 0 < first.low < 0.75 < first.high < 1
    assert last == Point(JANUARY + 2, 0.0, 0.0, 1.0, 1)  # one page says nothing about others
