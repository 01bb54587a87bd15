"""Arrays find the same newest records as a loop over rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from temporalwiki.builders.wikidata import item_versions

LARGEST = 2**62  # three of them do not fit into one number
Entity = tuple[int, int, int]  # item, revision, seen
ENTITIES = st.lists(
    st.tuples(st.integers(1, 6), st.integers(0, 2), st.integers(0, 99)), max_size=12, unique_by=lambda row: row[2]
)


def table(entities: list[Entity]) -> pa.Table:
    columns = [pa.array([row[at] for row in entities], pa.int64()) for at in range(3)]
    return pa.table(columns, names=["s", "lastrevid", "seen"])


def newest(entities: list[Entity]) -> dict[int, Entity]:
    return {item: max(row for row in entities if row[0] == item) for item, _, _ in entities}


@given(prev=ENTITIES, recent=ENTITIES)
def test_the_newest_records_and_which_are_touched(prev: list[Entity], recent: list[Entity]) -> None:
    sides = [item_versions.newest([table(side[:3]), table(side[3:])]) for side in (prev, recent)]
    slow = [newest(side) for side in (prev, recent)]
    for found, of_side, entities in zip(sides, slow, (prev, recent), strict=True):
        rows = list(zip(found.items.tolist(), found.revisions.tolist(), found.records.tolist(), strict=True))
        assert rows == sorted(of_side.values())
        held = [item for item, _, _ in entities]
        assert found.repeated.tolist() == sorted({item for item in held if held.count(item) > 1})
        grouped = sorted(entities)
        assert found.contain(table(grouped)).tolist() == [row == of_side[row[0]] for row in grouped]
        assert (
            table(grouped).filter(pa.array(found.not_outdated(table(grouped)))).equals(table(sorted(of_side.values())))
        )
    same = {item for item in slow[0] if item in slow[1] and slow[0][item][1] == slow[1][item][1] > 0}
    for touched, of_side in zip(item_versions.touched(sides[0], sides[1]), slow, strict=True):
        assert touched.items.tolist() == sorted(set(of_side) - same)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([1, 2, LARGEST]),
            st.sampled_from([1, 2, LARGEST]),
            st.sampled_from([1, 2, 3, LARGEST]),
            st.booleans(),
        ),
        max_size=15,
    )
)
def test_a_fact_counts_once(facts: list[tuple[int, int, int, bool]]) -> None:
    facts.sort(key=lambda fact: fact[0])
    columns = [np.array([fact[at] for fact in facts], np.int64) for at in range(3)]
    wanted = np.array([fact[3] for fact in facts], bool)
    assert item_versions.count_facts(columns[0], columns[1], columns[2], wanted) == len(
        {fact[:3] for fact in facts if fact[3]}
    )


def drawn(fraction: float, seed: int, *fact: int) -> bool:
    """Whether one fact is in the sample."""
    number = seed
    for part in fact:
        number = ((number ^ part) + 0x9E3779B97F4A7C15) % 2**64
        number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        number = (number ^ number >> 27) * 0x94D049BB133111EB % 2**64
        number ^= number >> 31
    return number < fraction * 2**64


SHARES = st.sampled_from([0.0, 0.001, 0.3, 0.7, 1.0])
NUMBERS = st.lists(st.tuples(*[st.integers(1, LARGEST)] * 3), max_size=20)


@given(facts=NUMBERS, share=SHARES, seed=st.integers(-(2**70), 2**70))
def test_a_sample_is_drawn_as_said_of_one_fact_at_a_time(
    facts: list[tuple[int, int, int]], share: float, seed: int
) -> None:
    columns = [np.array([fact[at] for fact in facts], np.int64) for at in range(3)]
    expected = [drawn(share, seed % 2**64, *fact) for fact in facts]
    assert item_versions.sampled(share, seed, *columns).tolist() == expected


def test_a_sample_has_its_share_of_facts_that_are_alike() -> None:
    """Within four standard deviations, for each column where the facts differ; another seed draws others."""
    many, same = np.arange(1, 100_001), np.full(100_000, 42)
    for columns in ((many, same, same), (same, many, same), (same, same, many), (many, same, many)):
        of_seeds = [item_versions.sampled(0.1, seed, *columns) for seed in range(3)]
        assert all(abs(int(found.sum()) - 10_000) < 4 * 95 for found in of_seeds)
        assert abs(int((of_seeds[0] & of_seeds[1]).sum()) - 1000) < 4 * 32
        assert not (of_seeds[2] & ~item_versions.sampled(0.2, 2, *columns)).any()
