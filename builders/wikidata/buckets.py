"""Reading some buckets of an extract, in one pass and with bounded memory.

A footer lists every row group of its file. Large extracts have millions, so each footer is read once a task.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from temporalwiki.builders.parquet import group_range
from temporalwiki.builders.wikidata.extract import files

ROWS = 100_000  # held in memory, beside one row group


def read(folder: Path, table: str, first: int, end: int, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Rows of ``facts`` or ``entities`` in buckets [first, end), in pieces; ``s`` must be among the columns.

    The rows of one reading of an entity are never cut into two pieces.
    """
    held: list[pa.Table] = []
    rows = 0
    for path in files(folder, table):
        with pq.ParquetFile(path) as file:
            groups = sorted((group_range(file, group, "bucket")[0], group) for group in range(file.num_row_groups))
            for bucket, group in groups:  # a reading stands in one bucket of one file, row group after row group
                if not first <= bucket < end:
                    continue
                found = file.read_row_group(group, list(columns), use_threads=False)
                cut = _last_reading(found)
                held.append(found.slice(0, cut))
                rows += cut
                if rows >= ROWS:
                    yield pa.concat_tables(held)
                    held, rows = [], 0
                held.append(found.slice(cut))
                rows += found.num_rows - cut
    if rows:
        yield pa.concat_tables(held)


def _last_reading(rows: pa.Table) -> int:
    """Where the rows of the last subject begin."""
    subjects = rows["s"].to_numpy()
    others = np.flatnonzero(subjects != subjects[-1])
    return int(others[-1]) + 1 if len(others) else 0
