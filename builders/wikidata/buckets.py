"""Reading some buckets of an extract, in one pass and with bounded memory: all that counts in it, and nothing else.

An extract is layers of generations: its own files, and those that it has of its base. Its tables of superseded items
say of an item up to which generation rows of it do not count, because it was read anew or is gone.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from temporalwiki.base.files import whole_file
from temporalwiki.builders.incremental import Base, base_of, made_with
from temporalwiki.builders.parquet import KeptFile
from temporalwiki.builders.wikidata.extract import BUCKETS, FACTS, files
from temporalwiki.builders.wikidata.revision_index import Integers

ENTITY = ("s", "lastrevid", "title", "seen")  # the columns by which entities are compared
ROWS = 50_000  # held in memory, beside one row group; with more, arrays do not stay in the processor's caches


@dataclass(frozen=True)
class Details:
    """Columns that are read for some items, which must ascend; in rows of others they may be null."""

    columns: Sequence[str]
    items: Integers


def read(
    folder: Path,
    table: str,
    first: int,
    end: int,
    columns: Sequence[str],
    details: Details | None = None,
    above: int = -1,
) -> Iterator[pa.Table]:
    """Rows of ``facts`` or ``entities`` in buckets [first, end), in pieces; ``s`` must be among the columns.

    The rows of one reading of an entity come one after another, and are never cut into two pieces. What the extract
    has of its base is left out up to the generation ``above``.
    """
    held: list[pa.Table] = []
    rows = 0
    place: tuple[Path, int] | None = None  # a reading stands in one bucket of one file, row group after row group
    gone = None
    for path in files(folder, table, first, end):
        if path.parent != folder and generation(path) <= above:
            continue
        with KeptFile(path) as file:
            for groups in _together(file, first, end):
                numbers = [group for group, _, _ in groups]
                found = file.read_row_groups(numbers, columns)
                if details is not None:
                    found = _with_details(file, numbers, found, details)
                if any(low < first or high >= end for _, low, high in groups):
                    of_bucket = found["s"].to_numpy() % BUCKETS
                    found = found.filter(pa.array((of_bucket >= first) & (of_bucket < end)))
                if path.parent != folder:
                    gone = gone or superseded(folder, first, end)
                    found = _counting(found, generation(path), *gone)
                if not found.num_rows:
                    continue
                cut = _last_reading(found)
                if cut or place != (path, groups[0][1]):  # what is held ends here or is cut off
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


def _with_details(file: KeptFile, groups: list[int], rows: pa.Table, details: Details) -> pa.Table:
    """The rows of some row groups with further columns: these are read where any row is of an item that has them."""
    if are_of(rows, details.items).any():
        columns = file.read_row_groups(groups, details.columns).columns
    else:
        columns = [pa.nulls(rows.num_rows, FACTS.field(name).type) for name in details.columns]
    return pa.table([*rows.columns, *columns], [*rows.column_names, *details.columns])


def _together(file: KeptFile, first: int, end: int) -> Iterator[list[tuple[int, int, int]]]:
    """Row groups and their buckets, in lists of some that are read at once: small ones take longer one by one."""
    groups: list[tuple[int, int, int]] = []
    rows = 0
    for group in range(file.num_row_groups):
        of = file.metadata.row_group(group)
        buckets = of.column(0).statistics  # the first column of all tables
        if buckets.min < end and first <= buckets.max:
            if groups and rows + of.num_rows > ROWS // 2:
                yield groups
                groups, rows = [], 0
            groups.append((group, buckets.min, buckets.max))
            rows += of.num_rows
    if groups:
        yield groups


def generation(path: Path) -> int:
    """The generation of a file that an extract has of its base."""
    return int(path.name.split("-")[1])


def superseded(folder: Path, first: int, end: int | None = None) -> tuple[Integers, Integers]:
    """Items of buckets [first, end), ascending, and the generation up to which rows of them do not count.

    Without ``end``, of one bucket.
    """
    paths = [_superseded(folder / "carried", bucket) for bucket in range(first, end or first + 1)]
    tables = [np.load(path) for path in paths if path.parent.exists()]
    items, generations = np.concatenate([np.empty((2, 0), np.int64), *tables], axis=1)
    order = np.argsort(items)
    return items[order], generations[order]


def write_superseded(folder: Path, bucket: int, items: Integers, generations: Integers) -> Path:
    """Write such a table to ``folder``, which must be ``carried`` in an extract's, and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = _superseded(folder, bucket)
    with whole_file(path) as part, part.open("wb") as file:
        np.save(file, np.stack([items, generations]))
    return path


def _superseded(folder: Path, bucket: int) -> Path:
    return folder / f"superseded-{bucket:02d}.npy"


def _counting(rows: pa.Table, generation: int, items: Integers, generations: Integers) -> pa.Table:
    """Those of a generation's rows that count."""
    if not len(items):
        return rows
    gone = are_of(rows, items[generations >= generation])
    return rows.filter(pa.array(~gone)) if gone.any() else rows


def are_of(rows: pa.Table, items: Integers) -> npt.NDArray[np.bool_]:
    """Whether each row is one of ``items``, which must ascend."""
    subjects = rows["s"].to_numpy()
    if not len(items) or not len(subjects):
        return np.zeros(len(subjects), bool)
    starts = np.flatnonzero(np.append(True, subjects[1:] != subjects[:-1]))  # rows of a subject come together
    at = np.minimum(np.searchsorted(items, subjects[starts]), len(items) - 1)
    return np.repeat(items[at] == subjects[starts], np.diff(np.append(starts, len(subjects))))


def _last_reading(rows: pa.Table) -> int:
    """Where the rows of the last subject begin."""
    subjects = rows["s"].to_numpy()
    others = np.flatnonzero(subjects != subjects[-1])
    return int(others[-1]) + 1 if len(others) else 0


class Changes:
    """What differs, in buckets [first, end), between two extracts of which the second was read with the first as base.

    An item that is not ``touched`` stands once in either, in the same revision, and its rows are the same ones.
    """

    def __init__(self, prev: Path, base: Base, recent: Path, first: int, end: int) -> None:
        self._prev, self._recent, self._first, self._end = prev, recent, first, end
        self._generation = base.generation
        items, generations = superseded(recent, first, end)
        self.superseded = items[generations == base.generation]  # of which no row of prev counts in recent

    @functools.cached_property
    def own_entities(self) -> list[pa.Table]:
        """The rows of table ``entities`` that recent does not have of prev."""
        return list(self.read_own("entities", ENTITY))

    @functools.cached_property
    def touched(self) -> Integers:
        """Items that are not the same in both, ascending."""
        return np.unique(np.concatenate([self.superseded, *(rows["s"].to_numpy() for rows in self.own_entities)]))

    def read_own(self, table: str, columns: Sequence[str], details: Details | None = None) -> Iterator[pa.Table]:
        """Rows that recent does not have of prev."""
        return read(self._recent, table, self._first, self._end, columns, details, self._generation)

    def read_prev(self, table: str, columns: Sequence[str], details: Details | None = None) -> Iterator[pa.Table]:
        """Rows of prev."""
        return read(self._prev, table, self._first, self._end, columns, details)


def changes(prev: Path, recent: Path, first: int, end: int) -> Changes | None:
    """What differs between two extracts; None where that is not known, as the second was not read with the first."""
    base = base_of(prev)
    if base is None or not made_with(recent, base):
        return None
    return Changes(prev, base, recent, first, end)
