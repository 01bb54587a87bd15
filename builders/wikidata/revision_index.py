"""Which items an extract has in which revision: two files of integers, sorted by bucket and then by item."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from temporalwiki.base.files import whole_file
from temporalwiki.builders.stages import Report
from temporalwiki.builders.wikidata import buckets
from temporalwiki.builders.wikidata.tables import BUCKETS, ENTITIES, Integers, Mask, bucket_ranges, integers

FOLDER = "revisions"  # in an extract's folder
_AT_ONCE = 2_000_000  # items held in memory
_KEYS, _REVISIONS = "items.bin", "revisions.bin"


def run(items: int, folder: Path) -> Report:
    """Write the index of an extract of so many items to ``folder``, which must be FOLDER in the extract.

    An item without a revision is left out, and so is one with several records: nobody could tell which of its rows
    count. The report has the number of items in the index.
    """
    columns, indexed = ("s", "lastrevid"), 0
    paths = [folder / _KEYS, folder / _REVISIONS]
    with (
        whole_file(paths[0]) as keys_part,
        whole_file(paths[1]) as revisions_part,
        keys_part.open("wb") as keys_file,
        revisions_part.open("wb") as revisions_file,
    ):
        for first, end in bucket_ranges(max(1, min(BUCKETS, items // _AT_ONCE))):
            found = buckets.read(folder.parent, "entities", first, end, columns)
            table = pa.concat_tables([ENTITIES.empty_table().select(columns), *found])
            keys, at, times = np.unique(_keys(integers(table, "s")), return_index=True, return_counts=True)
            revisions = integers(table, "lastrevid")[at]
            wanted = (times == 1) & (revisions > 0)
            keys_file.write(keys[wanted].astype("<i8").tobytes())
            revisions_file.write(revisions[wanted].astype("<i8").tobytes())
            indexed += int(wanted.sum())
    return {"items": {"indexed": indexed}, "wrote": paths}


class RevisionIndex:
    """The index of an extract, which is not empty."""

    def __init__(self, extract: Path) -> None:
        self._keys, self._revisions = (np.memmap(extract / FOLDER / name, "<i8", "r") for name in (_KEYS, _REVISIONS))

    def has(self, items: Integers, revisions: Integers) -> Mask:
        """Return for each item whether the extract has it in this revision."""
        at, found = buckets.find(self._keys, _keys(items))
        same: Mask = self._revisions[at] == revisions
        return found & same


def _keys(items: Integers) -> Integers:
    """Return numbers that ascend by bucket and then by item; an item has at most 18 digits."""
    return (items % BUCKETS << 54) | items // BUCKETS
