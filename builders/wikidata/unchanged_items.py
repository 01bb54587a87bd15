"""Stage wikidata-copy: copy the rows of unchanged items from last month's extract, the *base*, into a new extract.

Stage wikidata-extract does not parse an item that the base has in the same revision: it writes the item's number to
table ``unchanged``. The rows that this stage copies make the extract complete, so the base can be deleted afterwards.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from temporalwiki.base.errors import InputError
from temporalwiki.base.json_files import read_json, write_json
from temporalwiki.builders import stages
from temporalwiki.builders.stages import Report
from temporalwiki.builders.wikidata import buckets, tables
from temporalwiki.builders.wikidata.entities import DROPPED

ITEMS_A_TASK = 50_000  # all of their rows are held; with more, new memory takes longer than the work on it
_FINISHED = "finished.json"
_COUNTS = ("facts", "not_best_rank", *DROPPED)


@dataclass(frozen=True)
class CopyTask:
    """The items in buckets [first, end) that are unchanged since the extract ``base``, a folder next to this one."""

    index: int
    base: str
    first: int
    end: int


def plan(items: int, base: str) -> list[CopyTask]:
    """Group the buckets so that a task has about ITEMS_A_TASK of ``items``."""
    ranges = tables.bucket_ranges(max(1, min(tables.BUCKETS, items // ITEMS_A_TASK)))
    return [CopyTask(i, base, first, end) for i, (first, end) in enumerate(ranges)]


def run(task: CopyTask, folder: Path) -> Report:
    """Copy the rows of the task's items to ``folder``, which must be COPIED in the new extract.

    The report counts the statements as if the items had been parsed. An item with several lines in the new dump gets
    as many records, with the facts in the newest of them. Raises InputError if the base does not have all items.
    """
    base, name = folder.parent.parent / task.base, f"{task.index:05d}"
    lines = buckets.read(folder.parent, "unchanged", task.first, task.end, ("s",))
    numbers = [np.empty(0, np.int64), *(tables.integers(rows, "s") for rows in lines)]
    items, times = np.unique(np.concatenate(numbers), return_counts=True)
    counts, found = dict.fromkeys(_COUNTS, 0), 0
    with (
        tables.BucketWriter(folder, "facts", name) as facts,
        tables.BucketWriter(folder, "entities", name) as entities,
    ):
        for rows in buckets.read(base, "entities", task.first, task.end, tables.ENTITIES.names):
            records = rows.filter(pa.array(buckets.subject_in(rows, items)))
            if not records.num_rows:
                continue
            found += records.num_rows
            places = buckets.find(items, tables.integers(records, "s"))[0]
            which = np.repeat(np.arange(records.num_rows), times[places])
            nth = np.arange(len(which)) - np.searchsorted(which, which)
            records = _seen(records.take(pa.array(which)), -1 - nth)
            entities.add_table(records)
            for column in _COUNTS:
                counts[column] += pc.sum(records[column]).as_py()
        if found != len(items):
            raise InputError(f"{base}: {found} of {len(items)} items found; delete {folder.parent} and build again")
        for rows in buckets.read(base, "facts", task.first, task.end, tables.FACTS.names):
            rows = rows.filter(pa.array(buckets.subject_in(rows, items)))
            facts.add_table(_seen(rows, np.full(rows.num_rows, -1)))
    return {
        "statements": {
            **{name: counts[name] for name in ("facts", "not_best_rank")},
            "dropped": {reason: counts[reason] for reason in DROPPED if counts[reason]},
        },
        "wrote": [*facts.wrote, *entities.wrote],
    }


def _seen(rows: pa.Table, records: np.typing.NDArray[np.int64]) -> pa.Table:
    """Return the rows with other numbers of records. They are negative: no line that was parsed has such a number."""
    return rows.set_column(rows.column_names.index("seen"), "seen", pa.array(records, pa.int64()))


class Finished(msgspec.Struct):
    """The content of ``finished.json``: the name of the base's folder, which may be gone by now."""

    base: Annotated[str, msgspec.Meta(pattern=r"\A[^./\0][^/\0]*\Z")] | None


def finish(folder: Path, base: str | None) -> None:
    """Write ``finished.json``, after which no build reads this dump again."""
    write_json(folder / _FINISHED, {"base": base})


def finished(folder: Path) -> Finished | None:
    """Return the content of an extract's ``finished.json``, or None if it is missing or damaged."""
    try:
        return read_json(folder / _FINISHED, Finished)
    except InputError:
        return None


def lost(folder: Path) -> Path | None:
    """Return the first file of a finished extract that is missing or has changed, or None."""
    if not (folder / _FINISHED).exists():
        return None
    if (found := finished(folder)) is None:
        return folder / _FINISHED
    return stages.lost(folder) or (stages.lost(folder / tables.COPIED) if found.base is not None else None)
