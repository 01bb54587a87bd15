"""Read and write files with one JSON object a line, plain or ``.gz``: LAMA, KILT, C4, news records, review files."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TypeVar, cast

import msgspec

from temporalwiki.base.errors import InputError

LONGEST_LINE = 64 << 20  # bytes
_BOM = b"\xef\xbb\xbf"
_SKIPPED = 1 << 20  # bytes of a line that is too long, skipped at a time

Record = TypeVar("Record")


def read(
    path: Path,
    kind: type[Record],
    longest: int | None = None,
    to_do: str = "the file is damaged or of another kind",
) -> Iterator[tuple[int, Record]]:
    """Yield the number of each line, from 1, and its record; empty lines are skipped.

    ``kind`` is a ``msgspec.Struct``: its fields are checked, and other fields of the file ignored. A line has at most
    ``longest`` bytes (default: ``LONGEST_LINE``). Raises InputError with file, line and ``to_do`` for any other line.
    """
    longest = LONGEST_LINE if longest is None else longest
    decoder = msgspec.json.Decoder(kind)
    for number, line in lines(path, longest):
        if line is None:
            size = f"{longest >> 20} MB" if longest >> 20 else f"{longest} bytes"
            raise InputError(f"{path}: line {number}: more than {size}; a line must be one record")
        try:
            record = decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            what = str(error) or type(error).__name__
            raise InputError(f"{path}: line {number}: {what}; {to_do}") from None
        yield number, record


def lines(path: Path, longest: int) -> Iterator[tuple[int, bytes | None]]:
    """Yield the number and the bytes of each line that is not empty; None instead of more than ``longest`` bytes.

    Raises InputError for a ``.gz`` file that is damaged or cut off.
    """
    with open_plain(path) as file:
        number = 0
        while line := file.readline(longest + 1):
            number += 1
            if len(line) > longest:
                yield number, None
                while line and not line.endswith(b"\n"):
                    line = file.readline(_SKIPPED)
                continue
            if number == 1:
                line = line.removeprefix(_BOM)  # some editors write it
            if line.strip():
                yield number, line


@contextmanager
def open_plain(path: Path) -> Iterator[IO[bytes]]:
    """Open a file, and decompress it if its name ends in ``.gz``; raise InputError if that is damaged or cut off."""
    with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
        try:
            yield cast(IO[bytes], file)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise InputError(f"{path}: damaged or cut off: {error}; fetch it again") from None
