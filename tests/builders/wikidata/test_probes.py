"""Caps and light-tuning sets."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from temporalwiki.builders.wikidata.probes import CAPS, LIGHT_TUNING, Fact, cap, light_tuning, limits

import reference

FACTS = st.lists(
    st.builds(Fact, st.integers(1, 40), st.integers(1, 30), st.integers(1, 60)), max_size=300, unique=True
)


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


def test_another_seed_keeps_other_facts() -> None:
    facts = [Fact(s, 1, s) for s in range(1, 500)]
    assert cap(facts, 1, CAPS).kept != cap(facts, 2, CAPS).kept


def test_nothing_is_dropped_where_all_shares_are_small() -> None:
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


def test_light_tuning_has_the_probes_relations_in_proportion() -> None:
    probes = [Fact(s, 1 if s <= 60 else 2 if s <= 90 else 3, s) for s in range(1, 101)]  # 60, 30, 10
    pool = [Fact(1000 + i, 1 + i % 4, i) for i in range(4000)]
    facts = probes + pool
    chosen = light_tuning(facts, range(100), [f.s for f in probes], 0)
    assert Counter(facts[i].p for i in chosen) == {1: 300, 2: 150, 3: 50}


def test_of_equal_remainders_the_lowest_relations_are_rounded_up() -> None:
    probes = [Fact(s, 1 + s % 3, s) for s in range(1, 100)]  # 33 each: 500 is 166 2/3 for each
    pool = [Fact(1000 + i, 3 - i % 3, i) for i in range(3000)]
    facts = probes + pool
    chosen = light_tuning(facts, range(99), [f.s for f in probes], 0)
    assert Counter(facts[i].p for i in chosen) == {1: 167, 2: 167, 3: 166}


def test_what_a_relation_cannot_fill_goes_to_the_others() -> None:
    probes = [Fact(s, 1 + s % 2, s) for s in range(1, 101)]  # 50, 50
    pool = [Fact(1000 + i, 1, i) for i in range(40)] + [Fact(3000 + i, 2, i) for i in range(2000)]
    facts = probes + pool
    chosen = light_tuning(facts, range(100), [f.s for f in probes], 0)
    assert Counter(facts[i].p for i in chosen) == {1: 40, 2: 460}
