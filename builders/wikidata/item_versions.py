"""Which reading of an item counts, and which items two extracts have in another revision: by arrays of whole tasks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from temporalwiki.builders.wikidata.buckets import are_of
from temporalwiki.builders.wikidata.revision_index import Integers

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Readings:
    """The reading of every item that counts, its newest; ``items`` ascend."""

    items: Integers
    revisions: Integers
    seen: Integers
    twice: Integers  # items that there are several readings of

    def have(self, rows: pa.Table) -> Mask:
        """Whether each row is of such a reading; column ``seen`` is needed only where an item has several."""
        if not len(self.twice) or not len(self.items) or not rows.num_rows:
            return are_of(rows, self.items)
        subjects, seen = rows["s"].to_numpy(), rows["seen"].to_numpy()
        ends = (subjects[1:] != subjects[:-1]) | (seen[1:] != seen[:-1])
        starts = np.flatnonzero(np.append(True, ends))  # rows of a reading come together
        at = np.minimum(np.searchsorted(self.items, subjects[starts]), len(self.items) - 1)
        found = (self.items[at] == subjects[starts]) & (self.seen[at] == seen[starts])
        return np.repeat(found, np.diff(np.append(starts, len(subjects))))

    def counting(self, rows: pa.Table) -> Mask:
        """Whether each row counts: it is of no superseded reading."""
        if not len(self.twice):
            return np.ones(rows.num_rows, bool)
        return ~are_of(rows, self.twice) | self.have(rows)

    def only(self, mask: Mask) -> Readings:
        """Some of them."""
        return Readings(self.items[mask], self.revisions[mask], self.seen[mask], self.twice)


def newest(entities: Iterable[pa.Table]) -> Readings:
    """The readings that count, from the columns ``s``, ``lastrevid`` and ``seen`` of a table of entities."""
    columns = [
        [np.asarray(rows[name].to_numpy(), np.int64) for name in ("s", "lastrevid", "seen")] for rows in entities
    ]
    none = np.empty(0, np.int64)
    items, revisions, seen = (
        np.concatenate([none, *found]) for found in (zip(*columns, strict=True) if columns else [[]] * 3)
    )
    order = np.argsort(items, kind="stable")
    last = np.append(np.diff(items[order]) != 0, True)[: len(items)]
    twice = none
    if not last.all():
        order = np.lexsort((seen, revisions, items))
        twice = np.unique(items[order][~last])
    order = order[last]
    return Readings(items[order], revisions[order], seen[order], twice)


def touched(prev: Readings, recent: Readings) -> tuple[Readings, Readings]:
    """Those of either side that the other has not in the same revision.

    A subject of the same revision in both has the same statements in both: nothing of it is new, gone or ended.
    """
    _, before, after = np.intersect1d(prev.items, recent.items, assume_unique=True, return_indices=True)
    same = (prev.revisions[before] == recent.revisions[after]) & (prev.revisions[before] > 0)
    of_prev, of_recent = np.ones(len(prev.items), bool), np.ones(len(recent.items), bool)
    of_prev[before[same]] = of_recent[after[same]] = False
    return prev.only(of_prev), recent.only(of_recent)


def drawn(share: float, seed: int, *columns: Integers) -> Mask:
    """Whether each fact is in a seeded sample of such a share: by its own hash, so neither order nor workers matter.

    The hash is the finalizer of SplitMix64 (Steele, Lea and Flood, 2014) over the seed and one column after another.
    """
    if share >= 1:
        return np.ones(len(columns[0]), bool)
    numbers = np.full(len(columns[0]), seed % 2**64, np.uint64)
    for column in columns:
        numbers ^= column.astype(np.uint64)
        numbers += np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            numbers ^= numbers >> np.uint64(shift)
            numbers *= np.uint64(factor)
        numbers ^= numbers >> np.uint64(31)
    return numbers < np.uint64(share * 2**64)


def count_facts(subjects: Integers, relations: Integers, objects: Integers, of: Mask) -> int:
    """How many different ones there are in a mask; those of a subject must come together."""
    if not of.any():
        return 0
    number = np.cumsum(np.append(True, subjects[1:] != subjects[:-1]))
    bits = [int(column.max()).bit_length() for column in (number, relations, objects)]
    if sum(bits) > 63:
        return len(np.unique(np.stack([number, relations, objects])[:, of], axis=1).T)
    keys = ((number << (bits[1] + bits[2])) | (relations << bits[2]) | objects)[of]
    keys.sort()
    return int(np.count_nonzero(np.diff(keys))) + 1
