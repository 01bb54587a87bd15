"""Files with one JSON object a line, as LAMA and KILT are released."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from temporalwiki.builders.errors import InputError

LONGEST_LINE = 64 << 20  # in bytes; what is longer is no line of such a file
_BOM = b"\xef\xbb\xbf"

Record = TypeVar("Record")


def read(path: Path, kind: type[Record]) -> Iterator[tuple[int, Record]]:
    """Yield the number of each line, from 1, and what it holds; empty lines are skipped.

    ``kind`` is a ``msgspec.Struct``: its fields are checked, others of the file are not read. Raises InputError,
    naming file and line, for what is no such object.
    """
    decoder = msgspec.json.Decoder(kind)
    with path.open("rb") as file:
        number = 0
        while line := file.readline(LONGEST_LINE + 1):
            number += 1
            if len(line) > LONGEST_LINE:
                raise InputError(
                    f"{path}: line {number}: more than {LONGEST_LINE >> 20} MB; one record a line is read"
                )
            if number == 1:
                line = line.removeprefix(_BOM)
            if not line.strip():
                continue
            try:
                record = decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                what = str(error) or type(error).__name__
                raise InputError(f"{path}: line {number}: {what}; the file is damaged or of another kind") from None
            yield number, record
