"""The index of an extract has each item in the revision of its only record."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temporalwiki.builders.wikidata import revision_index, tables
from temporalwiki.builders.wikidata.revision_index import FOLDER, RevisionIndex

LARGEST = 10**18 - 1  # of an item's number
ITEMS = st.integers(1, 130) | st.integers(1, LARGEST) | st.sampled_from([LARGEST, LARGEST - 64])
RECORDS = st.lists(st.tuples(ITEMS, st.integers(0, 3) | st.integers(0, LARGEST)), max_size=40)


@settings(max_examples=40)
@given(records=RECORDS, asked=RECORDS, at_once=st.integers(1, 50))
def test_it_has_the_items_with_one_record_in_their_revision_and_no_others(
    tmp_path_factory: pytest.TempPathFactory,
    records: list[tuple[int, int]],
    asked: list[tuple[int, int]],
    at_once: int,
) -> None:
    extract = tmp_path_factory.mktemp("extract")
    records.append((7 * 64, 5))
    items = np.array([item for item, _ in records], np.int64)
    with tables.BucketWriter(extract, "entities", "00000") as out:
        columns = {field.name: pa.nulls(len(items), field.type) for field in tables.ENTITIES}
        out.add(items, **columns | {"lastrevid": np.array([revision for _, revision in records], np.int64)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(revision_index, "_AT_ONCE", at_once)
        report = revision_index.run(len(items), extract / FOLDER)
    times = Counter(items.tolist())
    known = {item: revision for item, revision in records if times[item] == 1 and revision}
    assert report["items"] == {"indexed": len(known)}
    if known:
        asked = [*asked, *records, *((item, revision + 1) for item, revision in records)]
        found = RevisionIndex(extract).has(*(np.array(column, np.int64) for column in zip(*asked, strict=True)))
        assert found.tolist() == [bool(revision) and known.get(item) == revision for item, revision in asked]
