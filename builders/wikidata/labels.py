"""Stage wikidata-labels: write names, pages and classes of all items of two dumps, sorted for quick look-ups.

The object of a fact can be any item. Without these files, every task of stage wikidata-diff would have to read all
entities of both extracts to find a few labels.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from temporalwiki.base.files import whole_file
from temporalwiki.builders.stages import Report
from temporalwiki.builders.wikidata import buckets
from temporalwiki.builders.wikidata.tables import ENTITIES, Integers, in_buckets
from temporalwiki.builders.wikipedia.titles import HASH

VERSION = 3
_COLUMNS = ("s", "label", "aliases", "title", "class", "lastrevid", "seen")
LABELS = pa.schema(
    {
        "id": pa.int64(),
        "label": pa.large_string(),
        "aliases": pa.large_list(pa.large_string()),
        "title": HASH,  # hash of the title of its page
        "class": pa.int64(),
        "recent": pa.bool_(),  # whether the recent dump has the item; null in former rows, see ``look_up``
    }
)


@dataclass(frozen=True)
class LabelsTask:
    """The items of two extracts in buckets [first, end)."""

    index: int
    prev: str
    recent: str
    first: int
    end: int


def plan(tasks: Sequence[LabelsTask]) -> list[LabelsTask]:
    """Return one task for each task of stage wikidata-diff."""
    return [LabelsTask(task.index, task.prev, task.recent, task.first, task.end) for task in tasks]


def run(task: LabelsTask, folder: Path) -> Report:
    """Write the items of some buckets as the recent dump has them, or else as the previous dump has them.

    An item whose label has changed also gets a row from the previous dump, a former row (see ``look_up``). If a dump
    has several records of an item, the label comes from the newest one that has a label, and everything else from the
    newest one.
    """
    path = folder / f"labels-{task.first:02d}-{task.end:02d}.arrow"
    with whole_file(path) as part, pa.ipc.new_file(part, LABELS) as out:
        recent = _newest(buckets.read(Path(task.recent), "entities", task.first, task.end, _COLUMNS))
        _write(out, recent, in_recent=True)
        recent_ids, recent_labels = recent["id"].to_numpy(), recent["label"]
        del recent
        prev = _newest(buckets.read(Path(task.prev), "entities", task.first, task.end, _COLUMNS))
        prev_ids = prev["id"].to_numpy()
        in_recent = np.isin(prev_ids, recent_ids, assume_unique=True)
        gone = prev.filter(pa.array(~in_recent))
        _write(out, gone, in_recent=False)
        labels = recent_labels.take(pa.array(np.searchsorted(recent_ids, prev_ids[in_recent])))
        kept = prev.filter(pa.array(in_recent))
        renamed = pc.fill_null(pc.not_equal(kept["label"].cast(LABELS.field("label").type), labels), False)
        _write(out, kept.filter(renamed), in_recent=None)
    return {"labels": {"items": len(recent_ids), "gone_items": gone.num_rows}, "wrote": [path]}


def _newest(entities: Iterable[pa.Table]) -> pa.Table:
    """Return all columns of LABELS but ``recent`` for every item once, sorted by id."""
    records = pa.concat_tables([ENTITIES.empty_table().select(_COLUMNS), *entities])
    records = records.rename_columns(["id", *_COLUMNS[1:]])
    ids = records["id"].to_numpy()
    newest = labelled = np.argsort(ids, kind="stable")
    if (np.diff(ids[newest]) == 0).any():
        keys = [records[name].to_numpy() for name in ("seen", "lastrevid")]
        last = np.append(np.diff(ids[newest]) != 0, True)
        newest = np.lexsort((*keys, ids))[last]
        labelled = np.lexsort((*keys, records["label"].is_valid().to_numpy(), ids))[last]
    items = records.select(["id", "aliases", "title", "class"]).take(pa.array(newest))
    return items.add_column(1, "label", records["label"].take(pa.array(labelled)))


def _write(out: pa.ipc.RecordBatchFileWriter, items: pa.Table, in_recent: bool | None) -> None:
    """Write items as a single batch, which ``look_up`` can search by bisection."""
    if items.num_rows:
        items = items.append_column("recent", pa.repeat(pa.scalar(in_recent, pa.bool_()), items.num_rows))
        out.write_table(items.cast(LABELS).combine_chunks())


def look_up(folder: Path, ids: Integers) -> tuple[pa.Table, pa.Table]:
    """Return the rows of LABELS for those ``ids`` that are in either dump, and the former rows.

    A former row is the previous dump's, of an item that has another label in the recent one.
    """
    paths = sorted(folder.glob("labels-*.arrow"))
    found = pa.concat_tables([LABELS.empty_table(), *(_look_up_in(path, ids) for path in paths)])
    return found.filter(found["recent"].is_valid()), found.filter(found["recent"].is_null())


def _look_up_in(path: Path, ids: Integers) -> pa.Table:
    first, end = map(int, path.stem.split("-")[1:])
    wanted = np.sort(ids[in_buckets(ids, first, end)])
    found = [LABELS.empty_table()]
    with pa.memory_map(str(path)) as source:  # closed before the next file is mapped, which keeps memory low
        file = pa.ipc.open_file(source)
        for number in range(file.num_record_batches if len(wanted) else 0):
            batch = file.get_batch(number)
            at, in_batch = buckets.find(batch["id"].to_numpy(), wanted)
            found.append(pa.Table.from_batches([batch.take(pa.array(at[in_batch]))]))
    return pa.concat_tables(found)
