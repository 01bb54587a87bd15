"""Stage wikidata-labels: labels and classes of all items of two dumps, in files where a few can be looked up.

A fact's object can be any item. Were its label only in the extracts, every task of wikidata-diff would read all of
them; here it reads the pages of the files that hold what it asks for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from temporalwiki.base.files import whole_file
from temporalwiki.builders.stages import Report
from temporalwiki.builders.wikidata import buckets
from temporalwiki.builders.wikidata.extract import BUCKETS, ENTITIES

if TYPE_CHECKING:
    from temporalwiki.builders.wikidata.fact_diff import DiffTask

VERSION = 2
_COLUMNS = ("s", "label", "class", "lastrevid", "seen")
LABELS = pa.schema({"id": pa.int64(), "label": pa.large_string(), "class": pa.int64(), "recent": pa.bool_()})


@dataclass(frozen=True)
class LabelsTask:
    """The items of two extracts in buckets [first, end)."""

    index: int
    prev: str
    recent: str
    first: int
    end: int


def plan(tasks: Sequence[DiffTask]) -> list[LabelsTask]:
    """A task for each of stage wikidata-diff."""
    return [LabelsTask(task.index, task.prev, task.recent, task.first, task.end) for task in tasks]


def run(task: LabelsTask, folder: Path) -> Report:
    """Write the items of some buckets in the order of their numbers.

    The label of an item is that of its newest reading that has one, its class that of its newest reading: recent's;
    prev's if recent does not hold the item.
    """
    path = folder / f"labels-{task.first:02d}-{task.end:02d}.arrow"
    with whole_file(path) as part, pa.ipc.new_file(part, LABELS) as out:
        changes = buckets.changes(Path(task.prev), Path(task.recent), task.first, task.end)
        recent = _newest(buckets.read(Path(task.recent), "entities", task.first, task.end, _COLUMNS))
        _write(out, recent, in_recent=True)
        known = recent["id"].to_numpy()
        del recent
        if changes is None:
            prev = _newest(buckets.read(Path(task.prev), "entities", task.first, task.end, _COLUMNS))
        else:  # all others are in recent
            found = changes.read_prev("entities", _COLUMNS)
            prev = _newest(rows.filter(pa.array(buckets.are_of(rows, changes.superseded))) for rows in found)
        gone = prev.filter(pa.array(~np.isin(prev["id"].to_numpy(), known, assume_unique=True)))
        _write(out, gone, in_recent=False)
    return {"labels": {"items": len(known), "gone_items": gone.num_rows}, "wrote": [path]}


def _newest(entities: Iterable[pa.Table]) -> pa.Table:
    """``id``, ``label`` and ``class`` of every item once, sorted."""
    readings = pa.concat_tables([ENTITIES.empty_table().select(_COLUMNS), *entities])
    readings = readings.rename_columns(["id", *_COLUMNS[1:]])
    ids = readings["id"].to_numpy()
    newest = labelled = np.argsort(ids, kind="stable")
    if (np.diff(ids[newest]) == 0).any():
        keys = [readings[name].to_numpy() for name in ("seen", "lastrevid")]
        last = np.append(np.diff(ids[newest]) != 0, True)
        newest = np.lexsort((*keys, ids))[last]
        labelled = np.lexsort((*keys, readings["label"].is_valid().to_numpy(), ids))[last]
    items = readings.select(["id", "class"]).take(pa.array(newest))
    return items.add_column(1, "label", readings["label"].take(pa.array(labelled)))


def _write(out: pa.ipc.RecordBatchFileWriter, items: pa.Table, in_recent: bool) -> None:
    """One batch of its own: it is searched by halves."""
    if items.num_rows:
        items = items.append_column("recent", pa.repeat(in_recent, items.num_rows))
        out.write_table(items.cast(LABELS).combine_chunks())


def look_up(folder: Path, ids: npt.NDArray[np.int64]) -> pa.Table:
    """The rows of LABELS of those of ``ids`` that a dump holds."""
    paths = sorted(folder.glob("labels-*.arrow"))
    return pa.concat_tables([LABELS.empty_table(), *(_look_up_in(path, ids) for path in paths)])


def _look_up_in(path: Path, ids: npt.NDArray[np.int64]) -> pa.Table:
    """One file is mapped into memory at a time, so that what was read of the others need not stay there."""
    first, end = map(int, path.stem.split("-")[1:])
    bucket = ids % BUCKETS
    asked = np.sort(ids[(bucket >= first) & (bucket < end)])
    found = [LABELS.empty_table()]
    with pa.memory_map(str(path)) as source:
        file = pa.ipc.open_file(source)
        for number in range(file.num_record_batches if len(asked) else 0):
            batch = file.get_batch(number)
            known = batch["id"].to_numpy()
            at = np.searchsorted(known, asked)
            at = at[at < len(known)]
            at = at[known[at] == asked[: len(at)]]
            found.append(pa.Table.from_batches([batch.take(pa.array(at))]))
    return pa.concat_tables(found)
