"""Parquet files that are whole or absent, and whose bytes depend on nothing but their rows."""

from __future__ import annotations

import contextlib
import errno
import functools
import glob
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import LocalFileSystem

from temporalwiki.base.errors import InputError, first_line
from temporalwiki.base.files import whole_file

# On wikitext, zstd's level 1 takes half the time of level 3 and a seventh more disk: right for files between stages.
_LEVEL = 1
_LEVEL_PUBLISHED = 3
_UNPACKED = 512 << 20  # bytes of a stranger's file in memory
_TOGETHER = 256 << 20  # bytes of its rows that are read together
_LOCAL = LocalFileSystem()  # without it, pyarrow reads the path of a missing file as a URI


class ParquetWriter:
    """Writes rows under a temporary name, then gives the file its own name.

    A row is a dict of the schema's columns, or a tuple in their order.

    Args:
        path: the final name of the file.
        schema: the columns of the rows.
        rows: how many rows a row group may have.
        size: about how many bytes of strings a row group may have.
        published: the file is for users: better compressed, and cut into chunks for the Hub.
        plain: columns whose values hardly repeat and are never searched; they get no dictionary and no statistics.
        packed: columns whose values are compressed already.
        deltas: integer columns in ``plain`` that are written as differences.
        small: columns of few bytes, for which starting zstd on every page would take longer than the page.
    """

    def __init__(
        self,
        path: Path,
        schema: pa.Schema,
        rows: int = 100_000,
        size: int = 16 << 20,
        published: bool = False,
        plain: Sequence[str] = (),
        packed: Sequence[str] = (),
        deltas: Sequence[str] = (),
        small: Sequence[str] = (),
    ) -> None:
        self.path, self.schema = path, schema
        self.rows_written = 0
        self.arrow_bytes = 0
        self._limit_rows, self._limit_size = rows, size
        self._rows: list[tuple[Any, ...]] = []
        self._size = 0
        self._whole = whole_file(path)
        self._published, self._plain, self._deltas = published, plain, deltas
        self._codecs = dict.fromkeys(packed, "none") | dict.fromkeys(small, "snappy")
        self._file: pq.ParquetWriter | None = None

    def __enter__(self) -> Self:
        level = _LEVEL_PUBLISHED if self._published else _LEVEL
        options: dict[str, Any] = {"compression": "zstd", "compression_level": level}
        if not self._published:  # KeptFile verifies them
            options["write_page_checksum"] = True
        if self._codecs:
            by_column = dict.fromkeys(self.schema.names, "zstd") | self._codecs
            levels = {name: level for name, codec in by_column.items() if codec == "zstd"}
            options |= {"compression": by_column, "compression_level": levels}
        if self._plain:
            others = [name for name in self.schema.names if name not in self._plain]
            options |= {"use_dictionary": others, "write_statistics": others}
            options["column_encoding"] = dict.fromkeys(self._deltas, "DELTA_BINARY_PACKED")
        if self._published:
            # content-defined chunks let the Hub store only what a new month changed
            options |= {"use_content_defined_chunking": True, "write_page_index": True}
        self._file = pq.ParquetWriter(self._whole.__enter__(), self.schema, **options)
        return self

    def write(self, row: Mapping[str, Any] | tuple[Any, ...], size: int = 0) -> None:
        """Add a row; ``size`` is the bytes of its strings."""
        self._rows.append(row if isinstance(row, tuple) else tuple(map(row.get, self.schema.names)))
        self._size += size
        if len(self._rows) >= self._limit_rows or self._size >= self._limit_size:
            self.end_group()

    def write_table(self, table: pa.Table) -> None:
        """Add a table as row groups of its own."""
        self.end_group()
        self._write(table.cast(self.schema), self._limit_rows)

    def end_group(self) -> None:
        """Close the current row group."""
        if self._rows:
            columns = zip(*self._rows, strict=True)
            arrays = [pa.array(column, field.type) for column, field in zip(columns, self.schema, strict=True)]
            self._write(pa.table(arrays, schema=self.schema), len(self._rows))
            self._rows, self._size = [], 0

    def _write(self, table: pa.Table, rows: int) -> None:
        assert self._file is not None
        self._file.write_table(table, row_group_size=rows)
        self.rows_written += table.num_rows
        self.arrow_bytes += table.nbytes

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        assert self._file is not None
        with contextlib.ExitStack() as whole:
            whole.push(self._whole)
            if error is not None:
                with contextlib.suppress(OSError):  # the first error matters
                    self._file.close()
                raise error
            self.end_group()
            self._file.close()


class KeptFile(pq.ParquetFile):  # type: ignore[misc]
    """A Parquet file that a stage wrote. Reading raises InputError if the file is missing or damaged."""

    def __init__(self, path: Path, verify: bool = True) -> None:
        self.path = path
        with self._whole():
            # reading ahead helps with slow storage only: here it would wake threads for every few pages
            super().__init__(path, page_checksum_verification=verify, pre_buffer=False, filesystem=_LOCAL)

    @contextlib.contextmanager
    def _whole(self) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowInvalid, OSError) as error:
            if getattr(error, "errno", None) in (errno.EMFILE, errno.ENFILE):
                raise InputError(f"{self.path}: too many open files; allow more (ulimit -n) and go on") from None
            said = first_line(error)
            raise InputError(f"{self.path}: damaged or missing ({said}); delete its folder and build again") from None

    @functools.cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.schema_arrow.names)}

    def group_range(self, group: int, column: str) -> tuple[int, int]:
        """Return the smallest and largest value of an integer column in a row group; nulls count as 0.

        If the group has no statistics of the column, both are 0.
        """
        statistics = self.metadata.row_group(group).column(self._places[column]).statistics
        if statistics is None or not statistics.has_min_max:
            return 0, 0
        low, high = int(statistics.min), int(statistics.max)
        return (min(low, 0), max(high, 0)) if statistics.null_count else (low, high)

    def read(self, columns: Sequence[str], use_threads: bool = False) -> pa.Table:
        """Return columns of all rows."""
        return self.read_row_groups(range(self.num_row_groups), columns, use_threads)

    def read_row_group(self, group: int, columns: Sequence[str], use_threads: bool = False) -> pa.Table:
        """Return columns of a row group."""
        return self.read_row_groups([group], columns, use_threads)

    def read_row_groups(self, groups: Sequence[int], columns: Sequence[str], use_threads: bool = False) -> pa.Table:
        """Return columns of row groups as one table."""
        with self._whole():
            table = super().read_row_groups(list(groups), list(columns), use_threads)
            if table.num_rows != sum(self.metadata.row_group(group).num_rows for group in groups):
                raise pa.ArrowInvalid("another number of rows than it should have")  # no checksum covers it
            return table

    def iter_batches(self, *arguments: Any, **options: Any) -> Iterator[pa.RecordBatch]:
        """Yield rows in batches; takes the arguments of ``pyarrow.parquet.ParquetFile.iter_batches``."""
        with self._whole():
            yield from super().iter_batches(*arguments, **options)


def rows_at_once(path: Path, most: int) -> int:
    """Return how many rows of an untrusted file may be read at once without too much memory, at most ``most``.

    A value that repeats takes hardly any bytes in the file, but its full size in each row that is read. If the footer
    is damaged, or has dates that DuckDB does not know, it is one row.
    """
    try:
        return _at_once(_chunks(path), most)
    except pa.ArrowInvalid:
        return 1


def read_table(path: Path, rows: int) -> pa.Table:
    """Return the table in an untrusted file, without ever taking much more memory than ``_UNPACKED`` bytes.

    Raises InputError for more than ``rows`` rows, for more than ``_UNPACKED`` bytes of values, and for a column of
    Arrow's dictionary type. Errors of pyarrow are not caught.
    """
    with pq.ParquetFile(path) as file:
        if file.metadata.num_rows > rows:
            raise InputError(f"{path}: {file.metadata.num_rows:,} rows; no such file has more than {rows:,}")
        if packed := [field.name for field in file.schema_arrow if "dictionary<" in str(field.type)]:
            raise InputError(f"{path}: the column {packed[0][:100]!a} repeats values by number, as no such file does")
        too_much = InputError(f"{path}: unpacks to more than {_UNPACKED >> 20} MB, as no such file does")
        chunks = _chunks(path)
        if any(values > _UNPACKED // 8 for values, _ in chunks):  # of lists
            raise too_much
        batches, size = [], 0
        for batch in file.iter_batches(_at_once(chunks, 4096), use_threads=False):
            size += batch.nbytes
            if size > _UNPACKED:
                raise too_much
            batches.append(batch)
        return pa.Table.from_batches(batches, file.schema_arrow)


def _at_once(chunks: Sequence[tuple[int, int]], most: int) -> int:
    largest = max((size for _, size in chunks), default=1)
    return max(1, min(most, _TOGETHER // max(1, largest)))


def _chunks(path: Path) -> list[tuple[int, int]]:
    """Return the number of values and the unpacked bytes of each column in each row group.

    pyarrow ends the process if it is asked for them and the footer is damaged, so DuckDB reads them.
    """
    query = "SELECT num_values, total_uncompressed_size FROM parquet_metadata(?)"
    try:
        with _duckdb(os.getpid()).cursor() as cursor:
            return cursor.execute(query, [glob.escape(str(path.absolute()))]).fetchall()
    except (duckdb.Error, UnicodeError) as error:
        raise pa.ArrowInvalid(first_line(error)) from None


@functools.cache  # to connect takes longer than to read the footer of a small file
def _duckdb(_process: int) -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1, "autoload_known_extensions": False})


def read_rows(files: Iterable[Path], columns: list[str] | None = None, batch: int = 4096) -> Iterator[dict[str, Any]]:
    """Yield the rows of several files, with one batch in memory at a time."""
    for path in files:
        with KeptFile(path) as file:
            for records in file.iter_batches(batch, columns=columns, use_threads=False):
                yield from records.to_pylist()


def read_columns(files: Iterable[Path], columns: Sequence[str]) -> Iterator[pa.Table]:
    """Yield columns of several files, a row group at a time."""
    for path in files:
        with KeptFile(path) as file:
            for group in range(file.num_row_groups):
                yield file.read_row_group(group, columns)


def byte_strings(column: pa.ChunkedArray) -> npt.NDArray[np.void]:
    """Return a column of byte strings, all of the same length and none of them null, as an array."""
    values = column.combine_chunks()
    width = values.type.byte_width
    return np.frombuffer(values.buffers()[1], f"V{width}", len(values), width * values.offset)
