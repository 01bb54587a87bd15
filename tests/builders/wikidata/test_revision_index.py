"""RevisionIndex of items, looked up in files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temporalwiki.builders.wikidata import revision_index

LARGEST = 10**18 - 1  # of an item's number


@settings(max_examples=60)
@given(
    known=st.dictionaries(st.integers(1, 60) | st.integers(1, LARGEST), st.integers(0, LARGEST), max_size=40),
    asked=st.lists(st.integers(1, 70) | st.integers(1, LARGEST), max_size=60),
    block=st.integers(1, 5),
    files=st.integers(1, 3),
)
def test_every_item_has_its_revision_and_others_none(
    tmp_path_factory: pytest.TempPathFactory, known: dict[int, int], asked: list[int], block: int, files: int
) -> None:
    """Six buckets, in files of the same number of buckets."""
    folder = tmp_path_factory.mktemp("r")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(revision_index, "_BLOCK", block)
        for first in range(0, 6, 6 // files):
            end = first + 6 // files
            items = sorted(item for item in known if first <= item % 6 < end)
            pairs = np.array([(item, known[item]) for item in items], np.int64).reshape(-1, 2)
            revision_index.write(folder, first, end, pairs[:, 0], pairs[:, 1])
        table = revision_index.RevisionIndex(folder, lambda items: items % 3 == 0)
        for item in [*asked, *known, *reversed(known)]:
            assert table.of(item) == known.get(item, 0)
            assert item in table.cached or item not in known or item % 3 == 0
            assert all(item % 3 and known[item] == revision for item, revision in table.cached.items())


def test_a_file_is_pairs_of_64_bits_by_item(tmp_path: Path) -> None:
    revision_index.write(tmp_path, 3, 4, np.array([3, 67], np.int64), np.array([900, 5], np.int64))
    assert (tmp_path / "revisions-03-04.bin").read_bytes() == b"".join(
        number.to_bytes(8, "little") for number in (3, 900, 67, 5)
    )
