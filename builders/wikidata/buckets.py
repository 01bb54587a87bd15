"""Read some buckets of a Wikidata extract in one pass, with bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from temporalwiki.builders.parquet import KeptFile
from temporalwiki.builders.wikidata.tables import FACTS, Integers, Mask, files, in_buckets

ROWS = 50_000  # held in memory, plus one row group; larger arrays do not fit into the processor's caches


@dataclass(frozen=True)
class ExtraColumns:
    """``columns`` that are needed only for ``items``, which must ascend. They may be null in rows of other items."""

    columns: Sequence[str]
    items: Integers


def read(
    folder: Path,
    table: str,
    first: int,
    end: int,
    columns: Sequence[str],
    extra: ExtraColumns | None = None,
) -> Iterator[pa.Table]:
    """Yield the rows of a table in buckets [first, end), in tables of about ROWS rows.

    ``columns`` must include ``s``. The rows of one record of an item follow one another, and are never split between
    two tables.
    """
    held: list[pa.Table] = []
    rows = 0
    place: tuple[Path, int] | None = None  # the file and last bucket of the row group before: a record stays in both
    for path in files(folder, table, first, end):
        with KeptFile(path) as file:
            for groups in _group_batches(file, first, end):
                numbers = [group for group, _, _ in groups]
                found = file.read_row_groups(numbers, columns)
                if extra is not None:
                    found = _add_columns(file, numbers, found, extra)
                if any(low < first or high >= end for _, low, high in groups):
                    found = found.filter(pa.array(in_buckets(found["s"].to_numpy(), first, end)))
                if not found.num_rows:
                    continue
                cut = _start_of_last_subject(found)
                if cut or place != (path, groups[0][1]):  # the record that is held last is complete
                    held.append(found.slice(0, cut))
                    rows += cut
                    if rows >= ROWS:
                        yield pa.concat_tables(held)
                        held, rows = [], 0
                held.append(found.slice(cut))
                rows += found.num_rows - cut
                place = path, groups[-1][2]
    if rows:
        yield pa.concat_tables(held)


def _add_columns(file: KeptFile, groups: list[int], rows: pa.Table, extra: ExtraColumns) -> pa.Table:
    """Add the extra columns to the rows of some row groups: nulls if none of the rows needs them."""
    if subject_in(rows, extra.items).any():
        columns = file.read_row_groups(groups, extra.columns).columns
    else:
        columns = [pa.nulls(rows.num_rows, FACTS.field(name).type) for name in extra.columns]
    return pa.table([*rows.columns, *columns], [*rows.column_names, *extra.columns])


def _group_batches(file: KeptFile, first: int, end: int) -> Iterator[list[tuple[int, int, int]]]:
    """Yield lists of (row group, smallest bucket, largest bucket): small row groups are faster to read together."""
    groups: list[tuple[int, int, int]] = []
    rows = 0
    for number in range(file.num_row_groups):
        group = file.metadata.row_group(number)
        buckets = group.column(0).statistics  # the first column of all tables
        if buckets.min < end and first <= buckets.max:
            if groups and rows + group.num_rows > ROWS // 2:
                yield groups
                groups, rows = [], 0
            groups.append((number, buckets.min, buckets.max))
            rows += group.num_rows
    if groups:
        yield groups


def find(items: Integers, values: Integers) -> tuple[Integers, Mask]:
    """Return where each value is in ``items``, which must ascend and not be empty, and whether it is in there."""
    at = np.minimum(np.searchsorted(items, values), len(items) - 1)
    return at, items[at] == values


def subject_in(rows: pa.Table, items: Integers) -> Mask:
    """Return for each row whether its subject is one of ``items``, which must ascend.

    The rows of a subject must follow one another.
    """
    subjects = rows["s"].to_numpy()
    if not len(items) or not len(subjects):
        return np.zeros(len(subjects), bool)
    starts = np.flatnonzero(np.append(True, subjects[1:] != subjects[:-1]))  # rows of a subject follow one another
    return np.repeat(find(items, subjects[starts])[1], np.diff(np.append(starts, len(subjects))))


def _start_of_last_subject(rows: pa.Table) -> int:
    subjects = rows["s"].to_numpy()
    others = np.flatnonzero(subjects != subjects[-1])
    return int(others[-1]) + 1 if len(others) else 0
