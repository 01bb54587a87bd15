"""Tables for looking up titles and page ids of a Wikipedia extract without reading the extract.

Every task of stage wiki-extract writes three tables of 64-bit integers, in files of sorted columns:
``titles`` has the hashes of all titles in namespace 0, ``article_titles`` the hashes of the articles' titles with
their page ids, and ``article_ids`` only these page ids.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from temporalwiki.base.errors import InputError
from temporalwiki.base.files import whole_file

HASH = pa.binary(16)  # the type of a column with values of title_hash

_Integers = npt.NDArray[np.int64]
_Hashes = npt.NDArray[np.uint64]

_TABLES = {"titles": 1, "article_titles": 3, "article_ids": 1}  # with their numbers of columns
_ROWS = 1 << 20  # rows of a file, which are held in memory until it is written
_NUMBER = "<u8"
_PREFIX_BITS = 20  # most titles that are not wanted differ from all wanted ones in these bits of their hash
_REST = np.uint64(64 - _PREFIX_BITS)


class TitleWriter:
    """Writes the tables of one task."""

    def __init__(self, folder: Path, task: int) -> None:
        self._folder, self._task = folder, task
        self._rows = {table: bytearray() for table in _TABLES}
        self._files = dict.fromkeys(_TABLES, 0)
        self.wrote: list[Path] = []

    def __enter__(self) -> Self:
        return self

    def add(self, title: str) -> bytes:
        """Add the title of a page in namespace 0, and return its hash for ``add_article``."""
        found = title_hash(title)
        self._add("titles", found[:8])
        return found

    def add_article(self, title_hash: bytes, page_id: int) -> None:
        """Add an article."""
        number = page_id.to_bytes(8, "little")
        self._add("article_titles", title_hash + number)
        self._add("article_ids", number)

    def _add(self, table: str, row: bytes) -> None:
        rows = self._rows[table]
        rows += row
        if len(rows) == _ROWS * len(row):
            self._write(table)

    def _write(self, table: str) -> None:
        rows = np.frombuffer(self._rows[table], _NUMBER).reshape(-1, _TABLES[table])
        path = self._folder / f"{table}-{self._task:05d}-{self._files[table]:03d}.npy"
        with whole_file(path) as part, part.open("wb") as out:
            ascending = rows[np.argsort(rows[:, 0], kind="stable")]
            np.save(out, np.ascontiguousarray(ascending.T), allow_pickle=False)
        self._rows[table], self._files[table] = bytearray(), self._files[table] + 1
        self.wrote.append(path)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for table, rows in self._rows.items():
            if kind is None and rows:
                self._write(table)


def titles_among(folder: Path, titles: Sequence[str]) -> set[str]:
    """Return the ``titles`` that a page in namespace 0 of an extract has, which may be a redirect."""
    hashes, order = _sorted(b"".join(map(title_hash, titles)))
    found = [order[_equal(hashes[0], known[0])[0]] for known in _files(folder, "titles", len(titles))]
    return {titles[at] for in_file in found for at in in_file.tolist()}


def articles_titled(folder: Path, hashed: pa.FixedSizeBinaryArray) -> tuple[_Integers, _Integers]:
    """Return the articles of an extract with one of the ``hashed`` titles: positions in ``hashed``, and page ids.

    ``hashed`` is an array of HASH without nulls. If two articles have the same title, as in made-up dumps, both are
    returned.
    """
    length = HASH.byte_width
    hashes, order = _sorted(hashed.buffers()[1][hashed.offset * length : (hashed.offset + len(hashed)) * length])
    has_prefix = np.zeros(1 << _PREFIX_BITS, bool)
    has_prefix[hashes[0] >> _REST] = True
    positions, page_ids = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for known in _files(folder, "article_titles", len(hashed)):
        candidates = np.flatnonzero(has_prefix[known[0] >> _REST])
        wanted, at = _equal(hashes[0], known[0][candidates])
        at = candidates[at]
        same = hashes[1][wanted] == known[1][at]
        positions.append(order[wanted[same]])
        page_ids.append(known[2][at[same]].astype(np.int64))
    return np.concatenate(positions), np.concatenate(page_ids)


def are_articles(folder: Path, page_ids: _Integers) -> npt.NDArray[np.bool_]:
    """Return for each page id whether an article of an extract has it. No page id may be negative."""
    order = np.argsort(page_ids)
    wanted = page_ids[order].astype(np.uint64)
    result = np.zeros(len(page_ids), bool)
    for [known] in _files(folder, "article_ids", len(page_ids)):
        first, end = np.searchsorted(wanted, known[0]), np.searchsorted(wanted, known[-1], "right")
        found, _ = _equal(wanted[first:end], known)
        result[order[first + found]] = True
    return result


def _files(folder: Path, table: str, wanted: int) -> Iterator[_Hashes]:
    """Yield the columns of every file of a table, or nothing if nothing is wanted."""
    for path in sorted(folder.glob(f"{table}-*.npy")) if wanted else []:
        try:
            yield np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            reason = str(error).splitlines()[0]
            raise InputError(f"{path}: damaged or missing ({reason}); delete its folder and build again") from None


def title_hash(title: str) -> bytes:
    """Return a hash of a title, the same on every machine; nobody can find two titles with the same 128 bits."""
    return hashlib.blake2b(title.encode(), digest_size=16).digest()


def _sorted(hashed: bytes | pa.Buffer) -> tuple[_Hashes, _Integers]:
    """Return both halves of the hashes, sorted by the first half, and the position of each before sorting."""
    hashes = np.frombuffer(hashed, _NUMBER).reshape(-1, 2).T
    order = np.argsort(hashes[0], kind="stable")
    return hashes[:, order], order


def _equal(a: _Hashes, b: _Hashes) -> tuple[_Integers, _Integers]:
    """Return the positions of all pairs of equal values in ``a`` and ``b``, which must ascend."""
    if len(a) > len(b):  # searching the shorter array in the longer one is faster
        in_b, in_a = _equal(b, a)
        return in_a, in_b
    first = np.searchsorted(b, a)
    found = np.flatnonzero(first < len(b))
    found = found[b[first[found]] == a[found]]
    first, times = first[found], np.searchsorted(b, a[found], "right") - first[found]
    nth = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
    return np.repeat(found, times), np.repeat(first, times) + nth
