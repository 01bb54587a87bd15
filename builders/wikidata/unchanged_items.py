"""Stages wikidata-index and wikidata-carry: reuse what the last dump's extract, the base, has of unchanged items.

Stage wikidata-index writes the revision of every item of the base. With this index, the next dump's extract skips the
items that have the same revision. Stage wikidata-carry then links the base's files into the new extract, so that it
is complete without the base, and writes down whose rows in these files no longer count. No row is copied.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from temporalwiki.base.errors import InputError
from temporalwiki.builders.incremental import Base, base_of, link
from temporalwiki.builders.parquet import KeptFile
from temporalwiki.builders.stages import Report
from temporalwiki.builders.wikidata import buckets, revision_index
from temporalwiki.builders.wikidata.entities import DROPPED
from temporalwiki.builders.wikidata.tables import (
    BUCKETS,
    ENTITIES,
    UNCHANGED,
    BucketWriter,
    Integers,
    bucket_ranges,
    files,
    in_buckets,
    integers,
)

ITEMS_A_TASK = 500_000
_COUNTS = ("facts", "not_best_rank", *DROPPED)


@dataclass(frozen=True)
class BucketTask:
    """The items in buckets [first, end) of the extract ``base``."""

    index: int
    base: Base
    first: int
    end: int
    tasks: int  # how many there are


def plan(items: int, base: Base) -> list[BucketTask]:
    """Group the buckets so that a task has about ITEMS_A_TASK of ``items``."""
    ranges = bucket_ranges(max(1, min(BUCKETS, items // ITEMS_A_TASK)))
    return [BucketTask(i, base, first, end, len(ranges)) for i, (first, end) in enumerate(ranges)]


def index(task: BucketTask, folder: Path) -> Report:
    """Write the revisions of the base's items in some buckets to ``folder``, which must be ``revisions`` in the base.

    An item with several records in the base gets no revision and is read again, because nobody could tell which of
    its rows to reuse. The report counts the items with a revision.
    """
    columns = ("s", "lastrevid")
    none = ENTITIES.empty_table().select(columns)
    table = pa.concat_tables([none, *buckets.read(folder.parent, "entities", task.first, task.end, columns)])
    items, at, times = np.unique(integers(table, "s"), return_index=True, return_counts=True)
    revisions = np.where(times == 1, integers(table, "lastrevid")[at], 0)
    path = revision_index.write(folder, task.first, task.end, items, revisions)
    return {"items": {"indexed": int(np.count_nonzero(revisions))}, "wrote": [path]}


def run(task: BucketTask, folder: Path) -> Report:
    """Link a share of the base's files, and write down the superseded items of some buckets.

    ``folder`` must be ``carried`` in the new extract, which lies next to the base. The report counts the statements
    of unchanged items as if they had been read. Its counter ``differ`` counts the checked items that have the same
    revision as in the base, but other content. If there is any, revisions prove nothing in these dumps, and the whole
    new dump must be read. Raises InputError if the base is missing or has changed since the new dump was read.
    """
    extract, base = folder.parent, folder.parent.parent / task.base.name
    if base_of(base) != task.base:
        raise InputError(f"{base}: missing, or not what {extract} was read with; delete {extract} and build again")
    wrote = _link_files(base, task, folder)
    lines = _unchanged(extract, task)
    unchanged, times = np.unique(integers(lines, "s"), return_counts=True)
    checked = lines.filter(pc.is_valid(lines["digest"])).to_pylist()
    counts = dict.fromkeys(_COUNTS, 0)
    digests: dict[int, str] = {}
    superseded, found = [np.empty(0, np.int64)], 0
    for rows in buckets.read(base, "entities", task.first, task.end, ("s", "digest", *_COUNTS)):
        items = integers(rows, "s")
        lines_of = _count_lines(items, unchanged, times)
        superseded.append(items[lines_of == 0])
        found += int(np.count_nonzero(lines_of))
        for name in _COUNTS:
            counts[name] += int(integers(rows, name) @ lines_of)
        with_digest = rows.select(["s", "digest"]).filter(pc.is_valid(rows["digest"]))
        digests |= {row["s"]: row["digest"] for row in with_digest.to_pylist()}
    if found != len(unchanged):
        raise AssertionError(f"{base}: {len(unchanged)} items are unchanged, {found} of them found")
    wrote += _write_superseded(base, task, np.unique(np.concatenate(superseded)), folder)
    wrote += _write_repeated(base, task, unchanged[times > 1], times[times > 1] - 1, folder)
    return {
        "statements": {
            "facts": counts["facts"],
            "not_best_rank": counts["not_best_rank"],
            "dropped": {reason: counts[reason] for reason in DROPPED if counts[reason]},
        },
        "checked": {
            "items": len(checked),
            "differ": sum(digests.get(row["s"]) != row["digest"] for row in checked),
        },
        "wrote": wrote,
    }


def _link_files(base: Path, task: BucketTask, folder: Path) -> list[Path]:
    """Link this task's share of the base's files into ``folder``, under names with their generation."""
    folder.mkdir(parents=True, exist_ok=True)
    links = []
    for path in [*files(base, "facts"), *files(base, "entities")][task.index :: task.tasks]:
        table, rest = path.name.split("-", 1)
        links.append(folder / (path.name if path.parent != base else f"{table}-{task.base.generation:02d}-{rest}"))
        link(path, links[-1])
    return links


def _write_superseded(base: Path, task: BucketTask, items: Integers, folder: Path) -> list[Path]:
    """Write that no row of the base counts for ``items``, and the items that the base itself has superseded."""
    bucket_of = items % BUCKETS
    wrote = []
    for bucket in range(task.first, task.end):
        here = items[bucket_of == bucket]
        before, generations = buckets.superseded(base, bucket, bucket + 1)
        both, at = np.unique(np.concatenate([here, before]), return_index=True)  # prefers ``here``
        generations = np.concatenate([np.full(len(here), task.base.generation), generations])[at]
        wrote.append(buckets.write_superseded(folder, bucket, both, generations))
    return wrote


def _write_repeated(base: Path, task: BucketTask, items: Integers, times: Integers, folder: Path) -> list[Path]:
    """Write a record for each line of the new dump that repeats an unchanged item, after the item's first line.

    The report counts these records as duplicates, but nothing else uses them: they have no facts, and of an item's
    records with the same revision the one with the largest ``seen`` is used. Theirs is negative.
    """
    if not len(items):
        return []
    with BucketWriter(folder, "entities", f"{task.base.generation + 1:02d}-again-{task.index:05d}") as writer:
        for rows in buckets.read(base, "entities", task.first, task.end, ENTITIES.names):
            lines = _count_lines(integers(rows, "s"), items, times)
            which = np.repeat(np.arange(len(lines)), lines)
            nth = np.arange(len(which)) - np.repeat(np.cumsum(lines) - lines, lines)
            column = ENTITIES.get_field_index("seen")
            writer.add_table(rows.take(pa.array(which)).set_column(column, "seen", pa.array(-1 - nth)))
    return writer.wrote


def _count_lines(items: Integers, unchanged: Integers, times: Integers) -> Integers:
    """Return in how many lines of the new dump each item is unchanged."""
    if not len(unchanged):
        return np.zeros(len(items), np.int64)
    at, found = buckets.find(unchanged, items)
    return np.where(found, times[at], 0)


def _unchanged(extract: Path, task: BucketTask) -> pa.Table:
    """Return the task's unchanged items of the new extract, with digests if they are checked."""
    columns = ("s", "digest")
    found = [UNCHANGED.empty_table().select(columns)]
    for path in files(extract, "kept"):
        with KeptFile(path) as file:
            ranges = [file.group_range(group, "bucket") for group in range(file.num_row_groups)]
            groups = [group for group, (low, high) in enumerate(ranges) if low < task.end and task.first <= high]
            lines = file.read_row_groups(groups, columns)
        found.append(lines.filter(pa.array(in_buckets(integers(lines, "s"), task.first, task.end))))
    return pa.concat_tables(found)
