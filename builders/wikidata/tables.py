"""The Parquet tables of a Wikidata extract: their columns, their files, and the writer that sorts rows into buckets.

A row's bucket is the number of its subject modulo BUCKETS. A file holds a few buckets; a row group holds one bucket or
several small ones. A later task works on some buckets, and opens only the files and reads only the row groups that
can have them.
"""

import contextlib
import os
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from temporalwiki.builders.parquet import KeptFile, ParquetWriter
from temporalwiki.builders.wikidata.entities import DROPPED
from temporalwiki.builders.wikipedia.titles import HASH

BUCKETS = 64  # the same for every dump, so that two extracts can be compared bucket by bucket
COPIED = "copied"  # in an extract's folder: the rows that stage wikidata-copy took from last month's extract
FILE_BUCKETS = 8  # buckets in a file: to open a file means to read the metadata of all its row groups
SINGLE_FILE_ROWS = 150_000  # a task with fewer rows, as when most items are unchanged, writes one file
GROUP_ROWS = 2000  # small buckets share a row group of at most this size; smaller ones cost more than they save
MAX_ROWS = 1_200_000  # held in memory: nearly always all rows of a task, so that a bucket is one row group
_MAX_BYTES = 112 << 20  # of the rows held in memory

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

FACTS = pa.schema(
    {
        "bucket": pa.int32(),
        "s": pa.int64(),
        "p": pa.int64(),
        "o": pa.int64(),
        "best": pa.bool_(),
        "rank": pa.string(),
        "statement_id": pa.string(),
        "start_day": pa.int32(),  # YYYYMMDD; 0 is an unknown day
        "end_day": pa.int32(),
        "point_day": pa.int32(),
        "seen": pa.int64(),  # number of the record: a dump can hold several records of an item
    }
)
ENTITIES = pa.schema(
    {
        "bucket": pa.int32(),
        "s": pa.int64(),
        "lastrevid": pa.int64(),
        "label": pa.string(),
        "aliases": pa.list_(pa.string()),
        "title": HASH,  # hash of the title of the item's page in the wiki
        "class": pa.int64(),  # object of the first best-rank "instance of" statement
        "seen": pa.int64(),
        "facts": pa.int32(),  # rows of best rank in FACTS
        "different_facts": pa.int32(),  # of these rows, those with another relation or object
        "not_best_rank": pa.int32(),  # its other rows in FACTS
        **{reason: pa.int32() for reason in DROPPED},  # statements that are not in FACTS
    }
)
PROPERTIES = pa.schema(
    {
        "p": pa.int64(),
        "lastrevid": pa.int64(),
        "label": pa.string(),
        "aliases": pa.list_(pa.string()),
        "seen": pa.int64(),
    }
)
# Items that were not parsed because last month's extract has them in the same revision, once for each line.
UNCHANGED = pa.schema({"bucket": pa.int32(), "s": pa.int64()})
# Columns that nobody filters by and whose values hardly repeat: they get no dictionary and no statistics.
PLAIN = {
    "facts": ("s", "o", "statement_id", "seen"),
    "entities": ("s", "lastrevid", "label", "aliases", "title", "class", "seen"),
    "unchanged": ("s",),
}
_SCHEMAS = {"facts": FACTS, "entities": ENTITIES, "unchanged": UNCHANGED}
# Plain columns that are stored as differences and not compressed with zstd: "s", "lastrevid" and "seen" ascend, and
# with "o", zstd takes more time than its saving is worth.
_DELTAS = ("s", "o", "lastrevid", "seen")


def bucket_ranges(tasks: int) -> list[tuple[int, int]]:
    """Divide all buckets among ``tasks`` tasks, and return the buckets [first, end) of each."""
    return list(pairwise(BUCKETS * task // tasks for task in range(tasks + 1)))


def in_buckets(items: Integers, first: int, end: int) -> Mask:
    """Return whether each item is in the buckets [first, end)."""
    buckets = items % BUCKETS
    return (buckets >= first) & (buckets < end)


def integers(table: pa.Table, column: str) -> Integers:
    """Return an integer column as an array."""
    return np.asarray(table[column].to_numpy(), np.int64)


def files(folder: Path, table: str, first: int = 0, end: int = BUCKETS) -> list[Path]:
    """Return the Parquet files of a table of an extract: first what was parsed, then what was copied.

    For tables with buckets, only the files that can have rows of buckets [first, end) are returned. No file is empty.
    """
    found: list[Path] = []
    for place in (folder, folder / COPIED):
        listed = os.listdir(place) if place.is_dir() else []  # noqa: PTH208 - Path objects are slow for thousands
        names = sorted(name for name in listed if name.startswith(f"{table}-") and name.endswith(".parquet"))
        if end - first < BUCKETS:
            names = [name for name in names if _can_have_buckets(name, first, end)]
        found += [place / name for name in names]
    return found


def property_records(extract: Path) -> pa.Table:
    """Return the records of properties in an extract."""
    found = [PROPERTIES.empty_table()]
    for path in files(extract, "properties"):
        with KeptFile(path) as file:
            found.append(file.read(PROPERTIES.names))
    return pa.concat_tables(found)


def properties(*extracts: Path) -> dict[int, list[str]]:
    """Return the label and aliases of each property, from the first extract that has it."""
    found: dict[int, list[str]] = {}
    for extract in reversed(extracts):
        records = property_records(extract).to_pylist()
        for row in sorted(records, key=lambda row: (row["lastrevid"], row["seen"])):
            found[row["p"]] = [phrase for phrase in (row["label"], *row["aliases"]) if phrase]
    return found


def _can_have_buckets(name: str, first: int, end: int) -> bool:
    part = name.removesuffix(".parquet").rpartition("-")[2]
    return part == "all" or (int(part) * FILE_BUCKETS < end and first < (int(part) + 1) * FILE_BUCKETS)


class BucketWriter:
    """Writes rows of a table into Parquet files, sorted by bucket.

    Small buckets share a row group, because each row group takes time to write and to read. Within a bucket, rows keep
    their order. No empty file is written.
    """

    def __init__(self, folder: Path, table: str, name: str) -> None:
        self._stem, self._plain = folder / f"{table}-{name}", PLAIN[table]
        self.schema = _SCHEMAS[table]
        self._files: dict[str, ParquetWriter] = {}
        self._single_file = False
        self._open = contextlib.ExitStack()
        self._held: list[list[pa.Table]] = [[] for _ in range(BUCKETS)]  # by bucket
        self._rows = self._bytes = 0

    @property
    def wrote(self) -> list[Path]:
        """The files that were written."""
        return [file.path for file in self._files.values()]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._open.__exit__(kind, error, trace)
            return
        with self._open:  # an error in _flush reaches the open files, which then vanish
            self._flush()

    def add(self, subjects: Integers, **columns: Any) -> None:
        """Add rows, given as columns."""
        columns |= {"bucket": (subjects % BUCKETS).astype(np.int32), "s": subjects}
        table = pa.table([pa.array(columns[field.name], field.type) for field in self.schema], self.schema)
        self.add_table(table)

    def add_table(self, table: pa.Table) -> None:
        """Add the rows of a table with this writer's schema."""
        places = table["bucket"].to_numpy().astype(np.uint8)
        if (places[1:] < places[:-1]).any():  # rows of another extract are sorted already
            order = np.argsort(places, kind="stable")
            table, places = table.take(pa.array(order)), places[order]
        starts = np.searchsorted(places, np.arange(BUCKETS + 1))
        for held, (first, end) in zip(self._held, pairwise(starts.tolist()), strict=True):
            if end > first:
                held.append(table.slice(first, end - first))
        self._rows += table.num_rows
        self._bytes += table.nbytes
        if self._rows >= MAX_ROWS or self._bytes >= _MAX_BYTES:
            self._flush()

    def _flush(self) -> None:
        if not self._files:
            self._single_file = self._rows < SINGLE_FILE_ROWS
        for first in range(0, BUCKETS, FILE_BUCKETS):
            group: list[pa.Table] = []
            for held in self._held[first : first + FILE_BUCKETS]:
                rows = sum(table.num_rows for table in [*group, *held])
                if group and rows > GROUP_ROWS:
                    self._write(group, first)
                    group = []
                group += held
                held.clear()
            if group:
                self._write(group, first)
        self._rows = self._bytes = 0

    def _write(self, group: list[pa.Table], place: int) -> None:
        part = "all" if self._single_file else f"{place // FILE_BUCKETS}"
        if part not in self._files:
            path = self._stem.with_name(f"{self._stem.name}-{part}.parquet")
            deltas = [name for name in self._plain if name in _DELTAS]
            small = [name for name in self.schema.names if name not in self._plain or name in deltas]
            file = ParquetWriter(path, self.schema, rows=MAX_ROWS, plain=self._plain, deltas=deltas, small=small)
            self._files[part] = self._open.enter_context(file)
        self._files[part].write_table(pa.concat_tables(group).combine_chunks())
