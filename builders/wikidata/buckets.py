"""Reading some buckets of an extract, in one pass and with bounded memory: all that counts in it, and nothing else.

An extract is layers of generations: its own files, and those that it has of its base. Its tables of superseded items
say of an item up to which generation rows of it do not count, because it was read anew or is gone.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from temporalwiki.builders.engine import whole_file
from temporalwiki.builders.parquet import group_range
from temporalwiki.builders.wikidata.extract import files
from temporalwiki.builders.wikidata.revisions import Integers

ROWS = 100_000  # held in memory, beside one row group


def read(folder: Path, table: str, first: int, end: int, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Rows of ``facts`` or ``entities`` in buckets [first, end), in pieces; ``s`` must be among the columns.

    The rows of one reading of an entity come one after another, and are never cut into two pieces.
    """
    held: list[pa.Table] = []
    rows = 0
    place: tuple[Path, int] | None = None  # a reading stands in one bucket of one file, row group after row group
    table_of = functools.cache(functools.partial(superseded, folder))
    for path in files(folder, table):
        # A footer lists every row group of its file. Large extracts have many, so each footer is read once a task.
        with pq.ParquetFile(path) as file:
            groups = sorted((group_range(file, group, "bucket")[0], group) for group in range(file.num_row_groups))
            for bucket, group in groups:
                if not first <= bucket < end:
                    continue
                found = file.read_row_group(group, list(columns), use_threads=False)
                if path.parent != folder:
                    found = _counting(found, generation(path), *table_of(bucket))
                if not found.num_rows:
                    continue
                cut = _last_reading(found)
                if cut or place != (path, bucket):  # what is held ends here or is cut off
                    held.append(found.slice(0, cut))
                    rows += cut
                    if rows >= ROWS:
                        yield pa.concat_tables(held)
                        held, rows = [], 0
                held.append(found.slice(cut))
                rows += found.num_rows - cut
                place = path, bucket
    if rows:
        yield pa.concat_tables(held)


def generation(path: Path) -> int:
    """The generation of a file that an extract has of its base."""
    return int(path.name.split("-")[1])


def superseded(folder: Path, bucket: int) -> tuple[Integers, Integers]:
    """Items of a bucket, ascending, and the generation up to which rows of them do not count."""
    path = _superseded(folder / "carried", bucket)
    items, generations = np.load(path) if path.parent.exists() else np.empty((2, 0), np.int64)
    return items, generations


def write_superseded(folder: Path, bucket: int, items: Integers, generations: Integers) -> None:
    """Write such a table to ``folder``, which must be ``carried`` in an extract's."""
    folder.mkdir(parents=True, exist_ok=True)
    with whole_file(_superseded(folder, bucket)) as part, part.open("wb") as file:
        np.save(file, np.stack([items, generations]))


def _superseded(folder: Path, bucket: int) -> Path:
    return folder / f"superseded-{bucket:02d}.npy"


def _counting(rows: pa.Table, generation: int, items: Integers, generations: Integers) -> pa.Table:
    """Those of a generation's rows that count."""
    if not len(items):
        return rows
    subjects = rows["s"].to_numpy()
    starts = np.flatnonzero(np.append(True, subjects[1:] != subjects[:-1]))  # rows of a subject come together
    at = np.minimum(np.searchsorted(items, subjects[starts]), len(items) - 1)
    count = (items[at] != subjects[starts]) | (generations[at] < generation)
    if count.all():
        return rows
    return rows.filter(pa.array(np.repeat(count, np.diff(np.append(starts, len(subjects))))))


def _last_reading(rows: pa.Table) -> int:
    """Where the rows of the last subject begin."""
    subjects = rows["s"].to_numpy()
    others = np.flatnonzero(subjects != subjects[-1])
    return int(others[-1]) + 1 if len(others) else 0
