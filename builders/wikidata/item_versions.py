"""The newest record of each item, and the items whose revision differs between two extracts.

A dump can hold several records (lines) of one item. Only the newest one counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from temporalwiki.builders.wikidata.buckets import find, subject_in
from temporalwiki.builders.wikidata.tables import Integers, Mask


@dataclass(frozen=True)
class NewestRecords:
    """Item, revision and record number of the newest record of each item, in ascending order of items."""

    items: Integers
    revisions: Integers
    records: Integers
    repeated: Integers  # items with several records

    def contain(self, rows: pa.Table) -> Mask:
        """Return for each row whether it belongs to one of these records. Rows of a record must follow one another.

        ``rows`` needs the column ``seen``, the number of the record, only if there are repeated items.
        """
        if not len(self.repeated) or not len(self.items) or not rows.num_rows:
            return subject_in(rows, self.items)
        subjects, seen = rows["s"].to_numpy(), rows["seen"].to_numpy()
        ends = (subjects[1:] != subjects[:-1]) | (seen[1:] != seen[:-1])
        starts = np.flatnonzero(np.append(True, ends))  # rows of a record follow one another
        at, found = find(self.items, subjects[starts])
        found &= self.records[at] == seen[starts]
        return np.repeat(found, np.diff(np.append(starts, len(subjects))))

    def not_outdated(self, rows: pa.Table) -> Mask:
        """Return whether each row counts: rows of a repeated item count only in its newest record."""
        if not len(self.repeated):
            return np.ones(rows.num_rows, bool)
        return ~subject_in(rows, self.repeated) | self.contain(rows)

    def where(self, mask: Mask) -> NewestRecords:
        """Return the records for which ``mask`` is true."""
        return NewestRecords(self.items[mask], self.revisions[mask], self.records[mask], self.repeated)


def newest(entities: Iterable[pa.Table]) -> NewestRecords:
    """Return the newest records in tables of entities; only the columns ``s``, ``lastrevid`` and ``seen`` are used."""
    columns = [
        [np.asarray(rows[name].to_numpy(), np.int64) for name in ("s", "lastrevid", "seen")] for rows in entities
    ]
    none = np.empty(0, np.int64)
    items, revisions, records = (
        np.concatenate([none, *found]) for found in (zip(*columns, strict=True) if columns else [[]] * 3)
    )
    order = np.argsort(items, kind="stable")
    last = np.append(np.diff(items[order]) != 0, True)[: len(items)]
    repeated = none
    if not last.all():
        order = np.lexsort((records, revisions, items))
        repeated = np.unique(items[order][~last])
    order = order[last]
    return NewestRecords(items[order], revisions[order], records[order], repeated)


def touched(prev: NewestRecords, recent: NewestRecords) -> tuple[NewestRecords, NewestRecords]:
    """Return the records of each side whose item the other side does not have in the same revision.

    An item with the same revision in both has the same statements in both, so none of its facts changed.
    """
    _, before, after = np.intersect1d(prev.items, recent.items, assume_unique=True, return_indices=True)
    same = (prev.revisions[before] == recent.revisions[after]) & (prev.revisions[before] > 0)
    of_prev, of_recent = np.ones(len(prev.items), bool), np.ones(len(recent.items), bool)
    of_prev[before[same]] = of_recent[after[same]] = False
    return prev.where(of_prev), recent.where(of_recent)


def sampled(share: float, seed: int, *columns: Integers) -> Mask:
    """Return for each fact whether it is in a random sample. This depends only on the fact, ``share`` and ``seed``.

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


def count_facts(subjects: Integers, relations: Integers, objects: Integers, mask: Mask) -> int:
    """Return how many different facts a mask selects; the facts of a subject must follow one another."""
    if not mask.any():
        return 0
    number = np.cumsum(np.append(True, subjects[1:] != subjects[:-1]))
    bits = [int(column.max()).bit_length() for column in (number, relations, objects)]
    if sum(bits) > 63:
        return len(np.unique(np.stack([number, relations, objects])[:, mask], axis=1).T)
    keys = ((number << (bits[1] + bits[2])) | (relations << bits[2]) | objects)[mask]
    keys.sort()
    return int(np.count_nonzero(np.diff(keys))) + 1
