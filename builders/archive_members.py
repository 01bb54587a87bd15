"""Read the files of released archives, unpacked or in a zip, and their CSV rows. Nothing is unpacked to the disk."""

import contextlib
import csv
import errno
import hashlib
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from temporalwiki.base.errors import InputError
from temporalwiki.base.files import leads_out

LONGEST_CELL = 16 << 20  # characters; a Wikipedia page has at most 2 million bytes
LONGEST_ROW = 64 << 20  # bytes; a row with a quote that is never closed stays in memory up to here
_LARGEST_RATIO = 200  # of unpacked to packed bytes: text packs to a third, repetitive text to a fiftieth
_SMALL = 64 << 20  # bytes that any member may have
_SHADOWS = "__MACOSX"  # a folder of metadata in zips from macOS, with the same file names


@dataclass(frozen=True)
class Member:
    """A file on the disk at ``path``, or the file ``inside`` the zip at ``path``."""

    path: Path
    inside: str | None = None

    @property
    def name(self) -> str:
        """The file's name, without the folders on the disk or in the zip."""
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
        with _zip(self.path) as packed:
            info = packed.getinfo(self.inside)
            if info.file_size > max(_SMALL, _LARGEST_RATIO * info.compress_size):
                sizes = f"{info.compress_size:,} bytes would be {info.file_size:,} bytes unpacked"
                raise InputError(f"{self.where}: {sizes}: refused; if that is right, unpack it and import the file")
            with packed.open(info) as unpacked:
                yield unpacked

    def sha256(self) -> str:
        """Return the digest of the content."""
        with self.open() as file:
            return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]


def printable(name: str) -> str:
    """Return a name without control characters, so that a message stays on one line."""
    return name if name.isprintable() else ascii(name)[1:-1]


def members(paths: Sequence[Path]) -> Iterator[Member]:
    """Yield all files at ``paths``, in folders and in zips, without the metadata of macOS and without pipes.

    Raises InputError for a path without a file or folder, for a link out of a folder, and for a damaged zip.
    """
    for path in paths:
        if not path.is_dir() and not path.is_file():
            raise InputError(f"{path}: {'not a file or folder' if path.exists() else 'no such file or folder'}")
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if not file.is_file() or _SHADOWS in file.relative_to(path).parts[:-1]:
                continue
            if path.is_dir() and leads_out(file, path):
                raise InputError(f"{file}: is a link out of the folder; replace it by what it points to")
            if file.suffix.lower() != ".zip":
                yield Member(file)
                continue
            with _zip(file) as packed:
                names = sorted(name for name in packed.namelist() if not name.endswith("/"))
            names = [name for name in names if _SHADOWS not in name.split("/")[:-1]]
            if not all(names) or len(set(names)) < len(names):
                raise InputError(f"{file}: two files have the same name, or one has no name; import unpacked files")
            yield from (Member(file, name) for name in names)


@contextlib.contextmanager
def _zip(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(path) as packed:
            yield packed
    except (zipfile.BadZipFile, zlib.error, EOFError, UnicodeDecodeError, RuntimeError, OSError) as error:
        if isinstance(error, OSError) and error.errno != errno.EINVAL:  # EINVAL: a position outside of the file
            raise
        # RuntimeError: a password, or an unknown compression
        raise InputError(f"{path}: cannot be unpacked ({error}); fetch it again, or import unpacked files") from None


def read_csv(
    member: Member, columns: Sequence[str], optional: Sequence[str] = (), warnings: list[str] | None = None
) -> Iterator[dict[str, str]]:
    """Yield a dict of the wanted columns for the header, and then one for each row that is not empty.

    These are all ``columns``, and the ``optional`` ones that the file has, in any case and order. Raises InputError
    for damaged CSV and for a missing column. If the last line has no line break, the file may be cut off: that adds a
    text to ``warnings``.
    """
    lines = size = 0  # of the file, and the bytes of the current row
    begun, complete = 1, True

    def decoded(file: IO[bytes]) -> Iterator[str]:
        nonlocal lines, size, complete
        while line := file.readline(LONGEST_ROW + 1):
            lines, size, complete = lines + 1, size + len(line), line.endswith(b"\n")
            if size > LONGEST_ROW or b"\0" in line:
                raise csv.Error("a NUL byte" if b"\0" in line else f"a row of more than {LONGEST_ROW:,} bytes")
            yield line.decode("utf-8-sig" if lines == 1 else "utf-8")

    csv.field_size_limit(LONGEST_CELL)  # the default of 131,072 is too small for articles
    with member.open() as file:
        try:
            reader = csv.reader(decoded(file), strict=True)
            header = next(reader, [])
            found = [name.strip().lower() for name in header]
            wanted = [*columns, *(name for name in optional if name in found)]
            if wrong := [name for name in wanted if found.count(name) != 1]:
                raise InputError(
                    f"{member.where}: the column {wrong[0]} is missing or there twice; the file has the columns "
                    f"{printable(', '.join(header))[:200]}, and needs {', '.join(columns)}"
                )
            yield {name: name for name in wanted}
            begun, size = lines + 1, 0
            for row in reader:
                if row and len(row) != len(header):
                    raise csv.Error(f"{len(row)} cells, but {len(header)} columns in the header")
                if row:
                    yield {name: row[found.index(name)] for name in wanted}
                begun, size = lines + 1, 0
        except (csv.Error, UnicodeDecodeError) as error:
            said = f"line {begun}: {error}; is it CSV in UTF-8, with all quotes closed?"
            raise InputError(f"{member.where}: {said}") from None
    if warnings is not None and not complete:
        warnings.append(f"{printable(member.name)}: its last line has no end: was the file cut off?")
