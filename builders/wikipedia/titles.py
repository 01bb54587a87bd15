"""Files for looking up titles and page ids of a Wikipedia extract without reading the extract.

Every task of stage wiki-extract writes three columns of 64-bit integers, a row for each page in namespace 0: the two
halves of its title's hash, and its key, the page id times two, plus one if it is an article. The keys ascend.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from temporalwiki.base.errors import InputError, first_line
from temporalwiki.base.files import whole_file

HASH = pa.binary(16)  # the type of a column with values of title_hash

_Integers = npt.NDArray[np.int64]
_Columns = npt.NDArray[np.uint64]

_ROWS = 1 << 20  # rows of a file, which are held in memory until it is written
_NUMBER = "<u8"
_PREFIX_BITS = 20  # most titles that are not wanted differ from all wanted ones in these bits of their hash
_REST = np.uint64(64 - _PREFIX_BITS)


class TitleWriter:
    """Writes the files of one task."""

    def __init__(self, folder: Path, task: int) -> None:
        self._folder, self._task = folder, task
        self._rows = bytearray()
        self.wrote: list[Path] = []

    def __enter__(self) -> Self:
        return self

    def add(self, title: str, page_id: int, is_article: bool) -> None:
        """Add a page in namespace 0."""
        row = title_hash(title) + (page_id << 1 | is_article).to_bytes(8, "little")
        self._rows += row
        if len(self._rows) == _ROWS * len(row):
            self._write()

    def _write(self) -> None:
        rows = np.frombuffer(self._rows, _NUMBER).reshape(-1, 3)
        path = self._folder / f"titles-{self._task:05d}-{len(self.wrote):03d}.npy"
        with whole_file(path) as part, part.open("wb") as out:
            ascending = rows[np.argsort(rows[:, 2], kind="stable")]
            np.save(out, np.ascontiguousarray(ascending.T), allow_pickle=False)
        self._rows = bytearray()
        self.wrote.append(path)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and self._rows:
            self._write()


def titles_among(folder: Path, titles: Sequence[str]) -> set[str]:
    """Return the ``titles`` that a page in namespace 0 of an extract has, which may be a redirect."""
    positions, _ = _titled(folder, b"".join(map(title_hash, titles)), np.uint64(0))
    return {titles[at] for at in positions.tolist()}


def articles_titled(folder: Path, hashed: pa.FixedSizeBinaryArray) -> tuple[_Integers, _Integers]:
    """Return the articles of an extract with one of the ``hashed`` titles: positions in ``hashed``, and page ids.

    ``hashed`` is an array of HASH without nulls. If two articles have the same title, as in made-up dumps, both are
    returned.
    """
    length = HASH.byte_width
    whole = hashed.buffers()[1][hashed.offset * length : (hashed.offset + len(hashed)) * length]
    positions, keys = _titled(folder, whole, np.uint64(1))
    return positions, (keys >> 1).astype(np.int64)


def are_articles(folder: Path, page_ids: _Integers) -> npt.NDArray[np.bool_]:
    """Return for each page id whether an article of an extract has it. No page id may be negative."""
    order = np.argsort(page_ids)
    wanted = page_ids[order].astype(np.uint64) * 2 + 1
    result = np.zeros(len(page_ids), bool)
    for _, _, keys in _files(folder) if len(page_ids) else ():
        first, end = np.searchsorted(wanted, keys[0]), np.searchsorted(wanted, keys[-1], "right")
        result[order[first:end]] |= keys[np.searchsorted(keys, wanted[first:end])] == wanted[first:end]
    return result


def title_hash(title: str) -> bytes:
    """Return a hash of a title, the same on every machine; nobody can find two titles with the same 128 bits."""
    return hashlib.blake2b(title.encode(), digest_size=16).digest()


def _files(folder: Path) -> Iterator[_Columns]:
    """Yield the columns of every file, none of which is empty."""
    for path in sorted(folder.glob("titles-*.npy")):
        try:
            yield np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            reason = first_line(error)
            raise InputError(f"{path}: damaged or missing ({reason}); delete its folder and build again") from None


def _titled(folder: Path, hashed: bytes | pa.Buffer, flag: np.uint64) -> tuple[_Integers, _Columns]:
    """Return the pages with a wanted title whose key has ``flag`` set: positions in ``hashed``, and keys."""
    wanted = np.frombuffer(hashed, _NUMBER).reshape(-1, 2).T
    order = np.argsort(wanted[0], kind="stable")
    wanted = wanted[:, order]
    has_prefix = np.zeros(1 << _PREFIX_BITS, bool)
    has_prefix[wanted[0] >> _REST] = True
    positions, found = [np.empty(0, np.int64)], [np.empty(0, np.uint64)]
    for columns in _files(folder) if len(order) else ():
        some = columns[:, has_prefix[columns[0] >> _REST] & (columns[2] & flag == flag)]
        first, end = (np.searchsorted(wanted[0], some[0], side) for side in ("left", "right"))
        of = np.repeat(np.arange(some.shape[1]), end - first)  # each candidate for every wanted title like it
        at = np.arange(len(of)) - np.repeat(np.cumsum(end - first) - end, end - first)
        same = wanted[1][at] == some[1][of]
        positions.append(order[at[same]])
        found.append(some[2][of[same]])
    return np.concatenate(positions), np.concatenate(found)
