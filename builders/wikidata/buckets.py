"""Read some buckets of a Wikidata extract in one pass, with bounded memory."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from temporalwiki.builders.parquet import KeptFile
from temporalwiki.builders.wikidata.tables import Integers, Mask, files, in_buckets

ROWS = 50_000  # read together; larger arrays do not fit into the processor's caches


def read(folder: Path, table: str, first: int, end: int, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Yield the rows of a table in buckets [first, end), in tables of about ROWS rows; ``columns`` include ``s``."""
    for path in files(folder, table, first, end):
        with KeptFile(path) as file:
            for groups in _group_batches(file, first, end):
                rows = file.read_row_groups(groups, columns)
                wanted = in_buckets(rows["s"].to_numpy(), first, end)
                if wanted.any():
                    yield rows if wanted.all() else rows.filter(pa.array(wanted))


def _group_batches(file: KeptFile, first: int, end: int) -> Iterator[list[int]]:
    """Yield row groups that can have rows of some buckets: small row groups are faster to read together."""
    groups: list[int] = []
    rows = 0
    for number in range(file.num_row_groups):
        group = file.metadata.row_group(number)
        buckets = group.column(0).statistics  # the first column of all tables
        if buckets.min < end and first <= buckets.max:
            if groups and rows + group.num_rows > ROWS:
                yield groups
                groups, rows = [], 0
            groups.append(number)
            rows += group.num_rows
    if groups:
        yield groups


def find(items: Integers, values: Integers) -> tuple[Integers, Mask]:
    """Return where each value is in ``items``, which must ascend and not be empty, and whether it is in there."""
    at = np.minimum(np.searchsorted(items, values), len(items) - 1)
    return at, items[at] == values


def subject_in(rows: pa.Table, items: Integers) -> Mask:
    """Return for each row whether its subject is one of ``items``, which must ascend."""
    subjects = rows["s"].to_numpy()
    return find(items, subjects)[1] if len(items) else np.zeros(len(subjects), bool)
