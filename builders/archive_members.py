"""Read files of released archives, loose or in a zip, and the rows of CSV files. Nothing is unpacked to the disk."""

from __future__ import annotations

import contextlib
import csv
import errno
import hashlib
import os
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from temporalwiki.base.errors import InputError

LONGEST_CELL = 16 << 20  # characters; a Wikipedia page has at most 2 million bytes
LONGEST_ROW = 64 << 20  # bytes; a row with a quote that is never closed stays in memory up to here
_LARGEST_RATIO = 200  # of unpacked to packed bytes: text packs to a third, repetitive text to a fiftieth
_SMALL = 64 << 20  # bytes that any member may have
_SHADOWS = "__MACOSX"  # a folder of metadata in zips from macOS, with the same file names


@dataclass(frozen=True)
class Member:
    """A file on the disk, or a file in the zip at ``path``."""

    path: Path
    inside: str | None = None

    @property
    def name(self) -> str:
        """The name without folders; paths in a zip are never used."""
        return self.path.name if self.inside is None else self.inside.replace("\\", "/").rsplit("/", 1)[-1]

    @property
    def where(self) -> str:
        """The place of the file, for a message."""
        return str(self.path) if self.inside is None else f"{self.path}: {printable(self.inside)}"

    @contextlib.contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """Open the file for reading. Raises InputError for a damaged zip and for a zip bomb."""
        if self.inside is None:
            with self.path.open("rb") as file:
                yield file
            return
        with _opened(self.path) as packed:
            size = packed.getinfo(self.inside)
            if size.file_size > max(_SMALL, _LARGEST_RATIO * size.compress_size):
                raise InputError(
                    f"{self.where}: {size.compress_size:,} bytes would be {size.file_size:,} bytes unpacked: refused; "
                    "if that is right, unpack it and import the file"
                )
            try:
                unpacked = packed.open(self.inside)
            except (NotImplementedError, RuntimeError) as error:  # an unknown compression, or a password
                raise InputError(f"{self.where}: {error}; unpack it and import the file") from None
            with unpacked:
                yield unpacked

    def sha256(self) -> str:
        """Return the digest of the content."""
        with self.open() as file:
            return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]


def printable(name: str) -> str:
    """Return a name without control characters, so that a message stays on one line."""
    return name if name.isprintable() else ascii(name)[1:-1]


def members(paths: Sequence[Path]) -> Iterator[Member]:
    """Yield all files at ``paths``, in folders and in zips, sorted by name.

    Pipes and the metadata of macOS are skipped. Raises InputError for a missing path and for a damaged zip.
    """
    for path in paths:
        if path.is_dir():
            for folder, inner, files in os.walk(path):
                inner[:] = sorted(name for name in inner if name != _SHADOWS)
                for file in (Path(folder) / name for name in sorted(files)):
                    if file.is_file():
                        yield from _members_of(file)
        elif path.is_file():
            yield from _members_of(path)
        else:
            raise InputError(f"{path}: {'not a file or folder' if path.exists() else 'no such file or folder'}")


def _members_of(path: Path) -> Iterator[Member]:
    if path.suffix.lower() != ".zip":
        yield Member(path)
        return
    with _opened(path) as packed:
        names = sorted(info.filename for info in packed.infolist() if not info.filename.endswith("/"))
    names = [name for name in names if _SHADOWS not in name.split("/")[:-1]]
    if not all(names) or len(set(names)) < len(names):
        raise InputError(f"{path}: two files have the same name, or one has no name; unpack it and import the files")
    yield from (Member(path, name) for name in names)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(path) as packed:
            yield packed
    except (zipfile.BadZipFile, zlib.error, EOFError, UnicodeDecodeError, NotImplementedError, OSError) as error:
        if isinstance(error, OSError) and error.errno != errno.EINVAL:  # EINVAL: a position outside of the file
            raise
        raise InputError(f"{path}: not a zip, or a damaged one ({error}); download it again") from None


@dataclass(frozen=True)
class CsvFile:
    """A CSV file whose columns are found by name, in any case and order."""

    member: Member
    columns: tuple[str, ...]
    optional: tuple[str, ...] = ()

    def header(self) -> list[str]:
        """Return the known columns that the file has. Raises InputError if one is missing or there twice."""
        with self.member.open() as file:
            return list(self._positions(next(self._records(file, []))))

    def rows(self, warnings: list[str]) -> Iterator[dict[str, str]]:
        """Yield the known columns of each row. Raises InputError, which names the line, for damaged CSV.

        Empty lines are skipped. A last line without an end adds to ``warnings``: the file may be cut off.
        """
        with self.member.open() as file:
            records = self._records(file, warnings)
            positions = self._positions(next(records))
            yield from ({name: record[at] for name, at in positions.items()} for record in records)

    def _positions(self, header: list[str]) -> dict[str, int]:
        found = [name.strip().lower() for name in header]
        wanted = [name for name in (*self.columns, *self.optional) if name in (*self.columns, *found)]
        if wrong := [name for name in wanted if found.count(name) != 1]:
            raise InputError(
                f"{self.member.where}: the column {wrong[0]} is missing or there twice; the file has the columns "
                f"{printable(', '.join(header))[:200]}, and needs {', '.join(self.columns)}"
            )
        return {name: found.index(name) for name in wanted}

    def _records(self, file: IO[bytes], warnings: list[str]) -> Iterator[list[str]]:
        """Yield the header, empty if there is none, and then all records with the same number of cells."""
        lines = size = 0  # of the file, and the bytes of the current record

        def decoded() -> Iterator[str]:
            nonlocal lines, size
            line = b"\n"
            while following := file.readline(LONGEST_ROW + 1):
                line, lines, size = following, lines + 1, size + len(following)
                if size > LONGEST_ROW:
                    raise csv.Error(f"a row of more than {LONGEST_ROW:,} bytes")
                if b"\0" in line:
                    raise csv.Error("a NUL byte")
                yield line.decode("utf-8-sig" if lines == 1 else "utf-8")
            if not line.endswith(b"\n"):
                warnings.append(f"{printable(self.member.name)}: its last line has no end: was the file cut off?")

        csv.field_size_limit(LONGEST_CELL)  # the default of 131,072 is too small for articles
        reader = csv.reader(decoded(), strict=True)
        begun = 1
        try:
            yield (header := next(reader, []))
            while True:
                begun, size = lines + 1, 0
                if (record := next(reader, None)) is None:
                    return
                if record and len(record) != len(header):
                    raise csv.Error(f"{len(record)} cells, but {len(header)} columns in the header")
                if record:
                    yield record
        except (csv.Error, UnicodeDecodeError) as error:
            raise InputError(
                f"{self.member.where}: line {begun}: {error}; is it CSV in UTF-8, with all quotes closed?"
            ) from None
