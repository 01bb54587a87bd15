"""Stages wikidata-index and wikidata-carry: what an extract has of an item that the next dump did not change.

The index tells the revision of every item of a finished extract. The next dump's extract asks it and does not parse
the items that have the same revision; here base's files are linked into it, so that every extract stands alone, and
the items whose rows in them do not count any more are written down. No row is copied.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
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
from temporalwiki.builders.wikidata.extract import BUCKETS, ENTITIES, KEPT, Buckets, files
from temporalwiki.builders.wikidata.revision_index import Integers

ITEMS_A_TASK = 500_000
_OF_INDEX, _OF_KEPT = ("s", "lastrevid"), ("s", "digest")
_COUNTS = ("facts", "not_best_rank", *DROPPED)


@dataclass(frozen=True)
class CarryTask:
    """The items in buckets [first, end) of the extract ``base``."""

    index: int
    base: Base
    first: int
    end: int
    tasks: int  # how many there are


def plan(items: int, base: Base) -> list[CarryTask]:
    """Group the buckets so that a task has about ITEMS_A_TASK of ``items``."""
    tasks = max(1, min(BUCKETS, items // ITEMS_A_TASK))
    bounds = [BUCKETS * i // tasks for i in range(tasks + 1)]
    return [CarryTask(i, base, first, end, tasks) for i, (first, end) in enumerate(pairwise(bounds))]


def index(task: CarryTask, folder: Path) -> Report:
    """Write the revisions of some buckets' items in base to ``folder``, which must be ``revisions`` in base's.

    One that base holds twice has none: it is read again, as there is no telling which of its rows would be kept. The
    report counts those that have one.
    """
    none = pa.schema([ENTITIES.field(name) for name in _OF_INDEX]).empty_table()
    table = pa.concat_tables([none, *buckets.read(folder.parent, "entities", task.first, task.end, _OF_INDEX)])
    items, at, times = np.unique(_integers(table, "s"), return_index=True, return_counts=True)
    found = np.where(times == 1, _integers(table, "lastrevid")[at], 0)
    path = revision_index.write(folder, task.first, task.end, items, found)
    return {"items": {"indexed": int(np.count_nonzero(found))}, "wrote": [path]}


def run(task: CarryTask, folder: Path) -> Report:
    """Link some of base's files, and write down which items' rows in them do not count, for some buckets.

    ``folder`` must be ``carried`` in the new dump's extract, which lies beside base. The report counts statements of
    the kept items as if they had been read, and under ``differ`` the items that were parsed all the same and are not
    what base has: then equal revisions mean nothing in these dumps, and all of the new one must be read. Raises
    InputError where base is not the one any more that the new dump was read with.
    """
    extract, base = folder.parent, folder.parent.parent / task.base.name
    if base_of(base) != task.base:
        raise InputError(f"{base}: gone, or not what {extract} was read with; delete {extract} and build again")
    wrote = _link(base, task, folder)
    lines = _kept(extract, task)
    kept, times = np.unique(_integers(lines, "s"), return_counts=True)
    checked = lines.filter(pc.is_valid(lines["digest"])).to_pylist()
    counts = dict.fromkeys(_COUNTS, 0)
    digests: dict[int, str] = {}
    gone, found = [np.empty(0, np.int64)], 0
    for rows in buckets.read(base, "entities", task.first, task.end, ("s", "digest", *_COUNTS)):
        items = _integers(rows, "s")
        lines_of = _times(items, kept, times)
        gone.append(items[lines_of == 0])
        found += int(np.count_nonzero(lines_of))
        for name in _COUNTS:
            counts[name] += int(_integers(rows, name) @ lines_of)
        with_digest = rows.select(["s", "digest"]).filter(pc.is_valid(rows["digest"]))
        digests |= {row["s"]: row["digest"] for row in with_digest.to_pylist()}
    if found != len(kept):
        raise AssertionError(f"{base}: {len(kept)} items kept of it, {found} found in it")
    wrote += _supersede(base, task, np.unique(np.concatenate(gone)), folder)
    wrote += _write_repeated(base, task, kept[times > 1], times[times > 1] - 1, folder)
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


def _link(base: Path, task: CarryTask, folder: Path) -> list[Path]:
    """Link a share of base's files into ``folder``, under names that say their generation, and return the links.

    What is there already is right: a link is there or not, and base's layers are part of what the stage is made by.
    """
    folder.mkdir(parents=True, exist_ok=True)
    links = []
    for path in [*files(base, "facts"), *files(base, "entities")][task.index :: task.tasks]:
        table, rest = path.name.split("-", 1)
        links.append(folder / (path.name if path.parent != base else f"{table}-{task.base.generation:02d}-{rest}"))
        link(path, links[-1])
    return links


def _supersede(base: Path, task: CarryTask, gone: Integers, folder: Path) -> list[Path]:
    """Write that no row of base counts for the items in ``gone``, and what base itself has so; return the files."""
    of_bucket = gone % BUCKETS
    wrote = []
    for bucket in range(task.first, task.end):
        here = gone[of_bucket == bucket]
        before, generations = buckets.superseded(base, bucket)
        items, at = np.unique(np.concatenate([here, before]), return_index=True)  # the first of equal ones
        generations = np.concatenate([np.full(len(here), task.base.generation), generations])[at]
        wrote.append(buckets.write_superseded(folder, bucket, items, generations))
    return wrote


def _write_repeated(base: Path, task: CarryTask, items: Integers, times: Integers, folder: Path) -> list[Path]:
    """Write readings for further lines of a dump that hold the same kept item: they are counted, and never the newest.

    They have no facts: of several readings the one that has the largest ``seen`` counts.
    """
    if not len(items):
        return []
    with Buckets(folder, "entities", f"{task.base.generation + 1:02d}-again-{task.index:05d}") as again:
        for rows in buckets.read(base, "entities", task.first, task.end, ENTITIES.names):
            lines = _times(_integers(rows, "s"), items, times)
            which = np.repeat(np.arange(len(lines)), lines)
            nth = np.arange(len(which)) - np.repeat(np.cumsum(lines) - lines, lines)
            column = ENTITIES.get_field_index("seen")
            again.add_table(rows.take(pa.array(which)).set_column(column, "seen", pa.array(-1 - nth)))
    return again.wrote


def _times(items: Integers, kept: Integers, times: Integers) -> Integers:
    """How often each of ``items`` was kept."""
    if not len(kept):
        return np.zeros(len(items), np.int64)
    at = np.minimum(np.searchsorted(kept, items), len(kept) - 1)
    return np.where(kept[at] == items, times[at], 0)


def _kept(extract: Path, task: CarryTask) -> pa.Table:
    """The items that were kept of base, and the digests of those that are checked."""
    found = [KEPT.empty_table().select(_OF_KEPT)]
    for path in files(extract, "kept"):
        with KeptFile(path) as file:
            ranges = [file.group_range(group, "bucket") for group in range(file.num_row_groups)]
            groups = [group for group, (low, high) in enumerate(ranges) if low < task.end and task.first <= high]
            lines = file.read_row_groups(groups, _OF_KEPT)
        of_bucket = _integers(lines, "s") % BUCKETS  # a row group has those of other tasks, too
        found.append(lines.filter(pa.array((of_bucket >= task.first) & (of_bucket < task.end))))
    return pa.concat_tables(found)


def _integers(table: pa.Table, column: str) -> Integers:
    return np.asarray(table[column].to_numpy(), np.int64)
