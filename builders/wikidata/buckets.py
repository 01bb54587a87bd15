"""Read some buckets of a Wikidata extract in one pass, with bounded memory, and leave out outdated rows.

An extract has files of its own and files linked from its base (see module ``extract``). If an item was read again or
deleted since the base was made, its rows in the linked files no longer count. Tables of *superseded* items say up to
which generation the rows of an item are void.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from temporalwiki.base.files import whole_file
from temporalwiki.builders.incremental import Base, base_of, made_with
from temporalwiki.builders.parquet import KeptFile
from temporalwiki.builders.wikidata.tables import FACTS, Integers, Mask, files, in_buckets

ENTITY = ("s", "lastrevid", "title", "seen")  # the columns with which entities are compared
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
    above: int = -1,
) -> Iterator[pa.Table]:
    """Yield the rows of ``facts`` or ``entities`` in buckets [first, end), in tables of about ROWS rows.

    Superseded rows are left out. ``columns`` must include ``s``. The rows of one record of an item follow one another,
    and are never split between two tables. Linked files are read only if their generation is greater than ``above``.
    """
    held: list[pa.Table] = []
    rows = 0
    place: tuple[Path, int] | None = None  # the file and last bucket of the row group before: a record stays in both
    void = None
    for path in files(folder, table, first, end):
        if path.parent != folder and generation(path) <= above:
            continue
        with KeptFile(path) as file:
            for groups in _group_batches(file, first, end):
                numbers = [group for group, _, _ in groups]
                found = file.read_row_groups(numbers, columns)
                if extra is not None:
                    found = _add_columns(file, numbers, found, extra)
                if any(low < first or high >= end for _, low, high in groups):
                    found = found.filter(pa.array(in_buckets(found["s"].to_numpy(), first, end)))
                if path.parent != folder:
                    void = void or superseded(folder, first, end)
                    found = _without_superseded(found, generation(path), *void)
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


def generation(path: Path) -> int:
    """Return the generation of a linked file, which is part of its name."""
    return int(path.name.split("-")[1])


def superseded(folder: Path, first: int, end: int) -> tuple[Integers, Integers]:
    """Return the superseded items of buckets [first, end), ascending, and the last generation whose rows are void."""
    paths = [_superseded_file(folder / "carried", bucket) for bucket in range(first, end)]
    tables = [np.load(path) for path in paths if path.parent.exists()]
    items, generations = np.concatenate([np.empty((2, 0), np.int64), *tables], axis=1)
    order = np.argsort(items)
    return items[order], generations[order]


def write_superseded(folder: Path, bucket: int, items: Integers, generations: Integers) -> Path:
    """Write the superseded items of a bucket to ``folder``, the folder ``carried`` of an extract; return the file."""
    path = _superseded_file(folder, bucket)
    with whole_file(path) as part, part.open("wb") as file:
        np.save(file, np.stack([items, generations]))
    return path


def _superseded_file(folder: Path, bucket: int) -> Path:
    return folder / f"superseded-{bucket:02d}.npy"


def _without_superseded(rows: pa.Table, generation: int, items: Integers, generations: Integers) -> pa.Table:
    if not len(items):
        return rows
    void = subject_in(rows, items[generations >= generation])
    return rows.filter(pa.array(~void)) if void.any() else rows


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


class Changes:
    """What changed, in buckets [first, end), between an extract (prev) and one that was built on it (recent).

    An item that is not ``touched`` has one record in each of them, with the same revision and the same rows.
    """

    def __init__(self, prev: Path, base: Base, recent: Path, first: int, end: int) -> None:
        self._prev, self._recent, self._first, self._end = prev, recent, first, end
        self._generation = base.generation
        items, generations = superseded(recent, first, end)
        self.superseded = items[generations == base.generation]  # no row of prev counts for them in recent

    @functools.cached_property
    def own_entities(self) -> list[pa.Table]:
        """The rows of table ``entities`` that recent has from its own dump, not from prev."""
        return list(self.read_own("entities", ENTITY))

    @functools.cached_property
    def touched(self) -> Integers:
        """The items that are not the same in both extracts, ascending."""
        return np.unique(np.concatenate([self.superseded, *(rows["s"].to_numpy() for rows in self.own_entities)]))

    def read_own(self, table: str, columns: Sequence[str], extra: ExtraColumns | None = None) -> Iterator[pa.Table]:
        """Yield the rows that recent has from its own dump, not from prev."""
        return read(self._recent, table, self._first, self._end, columns, extra, self._generation)

    def read_prev(self, table: str, columns: Sequence[str], extra: ExtraColumns | None = None) -> Iterator[pa.Table]:
        """Yield the rows of prev."""
        return read(self._prev, table, self._first, self._end, columns, extra)


def changes(prev: Path, recent: Path, first: int, end: int) -> Changes | None:
    """Return what changed from ``prev`` to ``recent``, or None if ``recent`` was not built on ``prev``."""
    base = base_of(prev)
    if base is None or not made_with(recent, base):
        return None
    return Changes(prev, base, recent, first, end)
