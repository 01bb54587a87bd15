"""Caps and light-tuning sets."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalwiki.builders.wikidata.probes import CAPS, LIGHT_TUNING, Fact, cap, light_tuning, limits

import reference

FACT = st.builds(Fact, st.integers(1, 40), st.integers(1, 30), st.integers(1, 60))
FACTS = st.lists(FACT, max_size=300, unique=True)


@given(FACTS, st.integers(0, 5))
def test_no_subject_relation_or_object_has_more_than_its_share_of_what_is_kept(facts: list[Fact], seed: int) -> None:
    selection = cap(facts, seed, CAPS)
    reference.check_caps([facts[i] for i in selection.kept])
    assert len(selection.kept) + sum(selection.dropped.values()) == len(facts)
    assert bool(selection.kept) == bool(facts)


@given(FACTS, st.randoms())
def test_the_order_of_the_facts_does_not_matter(facts: list[Fact], random: st.randoms) -> None:  # type: ignore[valid-type]
    shuffled = facts.copy()
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert {facts[i] for i in cap(facts, 3, CAPS).kept} == {shuffled[i] for i in cap(shuffled, 3, CAPS).kept}


def test_another_seed_keeps_other_facts_and_all_stay_where_all_shares_are_small() -> None:
    facts = [Fact(s, 1, s) for s in range(1, 500)]
    assert cap(facts, 1, CAPS).kept != cap(facts, 2, CAPS).kept
    facts = [Fact(s, s % 40, s) for s in range(1, 1001)]
    assert cap(facts, 0, CAPS).kept == list(range(1000))


def test_the_fixed_point_of_one_big_relation() -> None:
    """100 relations of 10 facts and one of 1,000: 52 of its facts are at most 5 % of 1,052, and 53 are of 1,053."""
    facts = [Fact(i, 2 + i // 10, i) for i in range(1000)] + [Fact(5_000 + i, 1, 5_000 + i) for i in range(1000)]
    kept = [facts[i] for i in cap(facts, 0, CAPS).kept]
    big = sum(fact.p == 1 for fact in kept)
    assert len(kept) == 1000 + big
    assert big == 1000 * 5 // 95  # the largest n with n <= 5 % of (1,000 + n): 52
    assert big <= limits(len(kept), CAPS).p < big + 2


@given(FACTS, st.integers(0, 3))
def test_light_tuning_shares_no_subject_with_the_probes(facts: list[Fact], seed: int) -> None:
    kept = cap(facts, seed, CAPS).kept
    subjects = {facts[i].s for i in kept}
    chosen = light_tuning(facts, kept, subjects, seed)
    assert subjects.isdisjoint(facts[i].s for i in chosen)
    possible = [f for f in facts if f.s not in subjects]
    assert len(chosen) == min(LIGHT_TUNING, len(possible))
    assert len(set(chosen)) == len(chosen)


LIGHT = {  # the relations of the probes and of the other facts, and how many facts of each relation are chosen
    "in proportion": ([1] * 60 + [2] * 30 + [3] * 10, [1 + i % 4 for i in range(4000)], {1: 300, 2: 150, 3: 50}),
    "166 2/3 for each: the lowest are rounded up": ([1, 2, 3] * 33, [3, 2, 1] * 1000, {1: 167, 2: 167, 3: 166}),
    "what one cannot fill goes to the others": ([1, 2] * 50, [1] * 40 + [2] * 2000, {1: 40, 2: 460}),
}


@pytest.mark.parametrize(("of_probes", "of_pool", "expected"), LIGHT.values(), ids=LIGHT)
def test_light_tuning_has_the_relations_of_the_probes(
    of_probes: list[int], of_pool: list[int], expected: dict[int, int]
) -> None:
    probes = [Fact(s, relation, s) for s, relation in enumerate(of_probes, 1)]
    facts = probes + [Fact(1000 + i, relation, i) for i, relation in enumerate(of_pool)]
    chosen = light_tuning(facts, range(len(probes)), [fact.s for fact in probes], 0)
    assert Counter(facts[i].p for i in chosen) == expected
