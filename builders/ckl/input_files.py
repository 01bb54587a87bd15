"""Files that the user gives, or has in folders: news, an older corpus, and lines of JSON, plain or ``.gz``."""

import gzip
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TypeVar, cast

import msgspec

from temporalwiki.base.errors import InputError

LONGEST_LINE = 256 << 20  # bytes
_BOM = b"\xef\xbb\xbf"

Record = TypeVar("Record")


def input_files(paths: Sequence[Path], fits: Callable[[Path], bool], kind: str) -> tuple[list[Path], list[Path]]:
    """Return the files to read, each once, and the other files of the folders; hidden ones are in neither list.

    Raises InputError for a path that does not exist, for a given file that does not fit, and if nothing is left to
    read. ``kind`` names the wanted files in messages.
    """
    found: dict[Path, Path] = {}  # by the resolved path, as names in the Hub's cache are links
    others: set[Path] = set()
    for path in paths:
        if path.is_dir():
            for file in path.rglob("*"):
                if file.is_file() and not any(part.startswith(".") for part in file.relative_to(path).parts):
                    if fits(file):
                        found.setdefault(file.resolve(), file)
                    else:
                        others.add(file.resolve())
        elif not path.exists():
            raise InputError(f"{path}: no such file or folder")
        elif not fits(path):
            raise InputError(f"{path}: not a file of {kind}")
        else:
            found.setdefault(path.resolve(), path)
    if not found:
        raise InputError(f"{', '.join(map(str, paths)) or 'no path'}: no files of {kind}")
    return sorted(found.values()), sorted(others)


def records(
    path: Path, kind: type[Record], to_do: str = "the file is damaged or of another kind"
) -> Iterator[tuple[int, Record]]:
    """Yield the number of each line, from 1, and its record; empty lines are skipped.

    ``kind`` is a ``msgspec.Struct``: its fields are checked, and other fields of the file ignored. Raises InputError
    with file, line and ``to_do`` for any other line.
    """
    decoder = msgspec.json.Decoder(kind)
    for number, line in lines(path):
        try:
            yield number, decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            what = str(error) or type(error).__name__
            raise InputError(f"{path}: line {number}: {what}; {to_do}") from None


def lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the number and the bytes of each line that is not empty.

    Raises InputError for a line of more than ``LONGEST_LINE`` bytes, and for a ``.gz`` file that is damaged.
    """
    with open_plain(path) as file:
        for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE + 1), b""), 1):
            if len(line) > LONGEST_LINE:
                raise InputError(
                    f"{path}: line {number}: more than {LONGEST_LINE >> 20} MB; a line must be one record"
                )
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
