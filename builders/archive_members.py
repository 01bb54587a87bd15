"""Files of released archives, loose or in a zip, and the rows of those that are CSV: streamed, nothing unpacked.

A zip is someone else's: its members are found by their base names alone, so that no path of it is ever used, and one
that would grow beyond all measure is refused.
"""

from __future__ import annotations

import contextlib
import csv
import errno
import hashlib
import os
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from temporalwiki.base.errors import InputError

LONGEST_CELL = 16 << 20  # characters; a page of Wikipedia has 2 million bytes at most
LONGEST_ROW = 64 << 20  # bytes: what stays in memory of a file whose quote is never closed
_BOMB = 200  # times what a member is packed: text is packed to a third, and what repeats itself to a fiftieth
_SMALL = 64 << 20  # bytes that no member is too large for
# What zipfile raises on a list of files that is damaged, besides OSError.
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, UnicodeDecodeError, NotImplementedError)
_BOM = b"\xef\xbb\xbf"
_SHADOWS = "__MACOSX"  # the folder of a zip made on macOS with what files have besides their bytes, by the same names


@dataclass(frozen=True)
class Member:
    """One file that can be read: a file on the disk, or one in a zip."""

    path: Path
    inside: str | None = None  # the name within the zip at ``path``

    @property
    def name(self) -> str:
        """The base name, without any folder, in whatever system the zip was made."""
        return self.path.name if self.inside is None else self.inside.replace("\\", "/").rsplit("/", 1)[-1]

    @property
    def where(self) -> str:
        """What to call it in a message."""
        return str(self.path) if self.inside is None else f"{self.path}: {shown(self.inside)}"

    def same(self, other: Member) -> bool:
        """Tell whether two are one file, or copies of it."""
        if self.inside == other.inside and self.path.samefile(other.path):
            return True
        with self.open() as one, other.open() as two:
            return hashlib.file_digest(one, "sha256").digest() == hashlib.file_digest(two, "sha256").digest()  # type: ignore[arg-type]

    @contextlib.contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """Open it for reading. Raises InputError for a zip that cannot be read, and for what is too large in it."""
        if self.inside is None:
            with self.path.open("rb") as file:
                yield file
            return
        with _readable(self.path), zipfile.ZipFile(self.path) as packed:
            size = packed.getinfo(self.inside)
            if size.file_size > max(_SMALL, _BOMB * size.compress_size):
                raise InputError(
                    f"{self.where}: would be {size.file_size:,} bytes unpacked, from {size.compress_size:,}: refused; "
                    "if that is right, unpack it and import the file"
                )
            try:
                unpacked = packed.open(self.inside)
            except (NotImplementedError, RuntimeError) as error:  # a method that is not read, or a password
                raise InputError(f"{self.where}: {error}; unpack it and import the file") from None
            with unpacked:
                yield unpacked

    def read(self, limit: int) -> bytes:
        """Return all its bytes; raise InputError if there are more than ``limit``."""
        with self.open() as file:
            data = file.read(limit + 1)
        if len(data) > limit:
            raise InputError(f"{self.where}: larger than {limit:,} bytes; it cannot be what its name says")
        return data


def shown(name: str) -> str:
    """Return a name for a message: whatever it holds, it stays on one line."""
    return name if name.isprintable() else ascii(name)[1:-1]


def members(paths: Sequence[Path]) -> Iterator[Member]:
    """Yield every file at ``paths``, in folders at any depth and in zips, in the order of names.

    What is no regular file (a pipe would be waited for) and the shadows that macOS packs beside files are passed by.
    Raises InputError for a path that is no file or folder and a zip that cannot be read.
    """
    for path in paths:
        if path.is_dir():
            for folder, inner, files in os.walk(path):
                inner[:] = sorted(name for name in inner if name != _SHADOWS)
                for name in sorted(files):
                    if (Path(folder) / name).is_file():
                        yield from _of_file(Path(folder) / name)
        elif path.is_file():
            yield from _of_file(path)
        else:
            what = "neither a file nor a folder" if path.exists() else "no such file or folder"
            raise InputError(f"{path}: {what}")


def _of_file(path: Path) -> Iterator[Member]:
    if path.suffix.lower() != ".zip":
        yield Member(path)
        return
    with _readable(path), zipfile.ZipFile(path) as packed:
        if not all(info.filename for info in packed.infolist()):
            raise zipfile.BadZipFile("a file without a name")
        names = [info.filename for info in packed.infolist() if not info.is_dir()]
    names = [name for name in names if _SHADOWS not in name.split("/")[:-1]]
    for name, times in sorted(Counter(names).items()):
        if times > 1:
            raise InputError(f"{path}: holds {shown(name)} twice; unpack it and import the one that is meant")
        yield Member(path, name)


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Say of what goes wrong in a zip which file it is."""
    try:
        yield
    except (*_DAMAGE, OSError) as error:
        if isinstance(error, OSError) and error.errno != errno.EINVAL:  # which a place outside of the file gives
            raise
        raise InputError(f"{path}: a damaged zip, or none ({error}); fetch it again") from None


@dataclass(frozen=True)
class CsvFile:
    """A CSV file with a header, whose columns are read by their names, in whatever case and order."""

    member: Member
    columns: tuple[str, ...]  # that must be there
    optional: tuple[str, ...] = ()  # that are read where they are there

    def header(self) -> tuple[str, ...]:
        """Return which of the columns are there. Raises InputError where one that must be is not, or is twice."""
        with self.member.open() as file:
            return tuple(self._places(_Records(self.member, file).header))

    def rows(self, warnings: list[str]) -> Iterator[dict[str, str]]:
        """Yield the rows: the cells of the columns that are there, as they stand in the file.

        A line with nothing on it is no row. A last line without an end, which is what a file that was cut off within
        its last cell has, adds to ``warnings``. Raises InputError, naming file and line, for what is no CSV.
        """
        with self.member.open() as file:
            records = _Records(self.member, file)
            places = self._places(records.header)
            for record in records:
                yield {name: record[place] for name, place in places.items()}
        if not records.ended:
            warnings.append(f"{shown(self.member.name)}: its last line has no end: was the file cut off?")

    def _places(self, header: Sequence[str]) -> dict[str, int]:
        found = [name.strip().lower() for name in header]
        lacking = [name for name in self.columns if name not in found]
        if lacking:
            said = shown(", ".join(header))
            raise InputError(
                f"{self.member.where}: no column {', '.join(lacking)}: its columns are {said[:200]}; a file of this "
                f"name has {', '.join(self.columns)}"
            )
        wanted = [name for name in (*self.columns, *self.optional) if name in found]
        for name in wanted:
            if found.count(name) > 1:
                raise InputError(f"{self.member.where}: has the column {name} twice; take one away")
        return {name: found.index(name) for name in wanted}


class _Records:
    """The header of a CSV file, and then its records, each of as many cells."""

    def __init__(self, member: Member, file: IO[bytes]) -> None:
        self._where, self._file = member.where, file
        self._line = 0  # the number of the last line that was read
        self._bytes = 0  # of this record, so far
        self.ended = True  # whether the last line that was read has an end
        csv.field_size_limit(LONGEST_CELL)  # of the process; the default is 131,072, and articles are longer
        self._reader = csv.reader(self._lines(), strict=True)
        self.header = self._next() or []
        if not any(map(str.strip, self.header)):
            raise InputError(f"{self._where}: no header in its first line: an empty file?")

    def __iter__(self) -> Iterator[list[str]]:
        while True:
            begun = self._line + 1
            record = self._next()
            if record is None:
                return
            if not record:
                continue
            if len(record) != len(self.header):
                raise InputError(
                    f"{self._where}: line {begun}: {len(record)} cells, and {len(self.header)} columns in the header; "
                    "a comma that is not in quotes, or a file that was cut off?"
                )
            yield record

    def _next(self) -> list[str] | None:
        begun, self._bytes = self._line + 1, 0
        try:
            return next(self._reader, None)
        except csv.Error as error:
            what = str(error)
        if "unexpected end of data" in what:
            what = "a quote that is opened in this row is never closed, or the file was cut off"
        elif "field limit" in what:
            what = (
                f"a cell of more than {LONGEST_CELL:,} characters in this row: is there a quote that is never closed?"
            )
        elif "new-line character" in what:
            begun, what = self._line, "a carriage return outside of quotes; lines end with \\n or \\r\\n"
        else:
            begun = self._line
        raise InputError(f"{self._where}: line {begun}: {what}")

    def _lines(self) -> Iterator[str]:
        while line := self._file.readline(LONGEST_ROW + 1):
            self._line += 1
            self.ended = line.endswith(b"\n")
            self._bytes += len(line)
            if self._bytes > LONGEST_ROW:
                raise InputError(
                    f"{self._where}: line {self._line}: a row of more than {LONGEST_ROW >> 20} MB: is there a quote "
                    "that is never closed?"
                )
            if self._line == 1:
                line = line.removeprefix(_BOM)
            if b"\0" in line:
                raise InputError(
                    f"{self._where}: line {self._line}: a NUL byte: damaged, or in UTF-16; CSV in UTF-8 is read"
                )
            try:
                yield line.decode()
            except UnicodeDecodeError as error:
                raise InputError(
                    f"{self._where}: line {self._line}: not UTF-8: byte 0x{line[error.start]:02x} at its byte "
                    f"{error.start + 1}; save it in UTF-8"
                ) from None
