"""Titles and ids of a Wikipedia extract's pages, to be looked up: a few are found in millions that are never read.

Three tables of 64-bit integers a task, in files of sorted columns: ``titles``, hashes of all titles in namespace 0;
``article_titles``, hashes of the titles of articles, and their page ids; ``article_ids``, these alone.
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

HASH = pa.binary(16)  # a column of title_hash's

_Integers = npt.NDArray[np.int64]
_Hashes = npt.NDArray[np.uint64]

_TABLES = {"titles": 1, "article_titles": 3, "article_ids": 1}  # and how many columns they have
_ROWS = 1 << 20  # a file
_NUMBER = "<u8"
_BITS = 20  # by which titles are told apart at first sight
_REST = np.uint64(64 - _BITS)


class TitleWriter:
    """Writes the tables, a file for each _ROWS rows, so that memory stays the same."""

    def __init__(self, folder: Path, task: int) -> None:
        self._folder, self._task = folder, task
        self._rows = {table: bytearray() for table in _TABLES}
        self._files = dict.fromkeys(_TABLES, 0)
        self.wrote: list[Path] = []

    def __enter__(self) -> Self:
        return self

    def add(self, title: str) -> bytes:
        """Note the title of a page in namespace 0, and return its hash for ``add_article``."""
        found = title_hash(title)
        self._add("titles", found[:8])
        return found

    def add_article(self, title_hash: bytes, page_id: int) -> None:
        """Note that the page is an article."""
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
    """Those of ``titles`` that a page in namespace 0 of the extract in ``folder`` has, redirects included."""
    hashes, order = _sorted(b"".join(map(title_hash, titles)))
    there = [order[_equal(hashes[0], known[0])[0]] for known in _files(folder, "titles", len(titles))]
    return {titles[at] for of_file in there for at in of_file.tolist()}


def articles_titled(folder: Path, hashed: pa.FixedSizeBinaryArray) -> tuple[_Integers, _Integers]:
    """The articles of the extract in ``folder`` that have one of the ``hashed`` titles: which it is, and the page id.

    ``hashed`` is an array of HASH without nulls. A title that two articles have, as in made-up dumps, comes twice.
    """
    length = HASH.byte_width
    hashes, order = _sorted(hashed.buffers()[1][hashed.offset * length : (hashed.offset + len(hashed)) * length])
    begin = np.zeros(1 << _BITS, bool)  # tells most others apart, before anything is searched
    begin[hashes[0] >> _REST] = True
    which, page_ids = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for known in _files(folder, "article_titles", len(hashed)):
        near = np.flatnonzero(begin[known[0] >> _REST])
        asked, at = _equal(hashes[0], known[0][near])
        at = near[at]
        same = hashes[1][asked] == known[1][at]
        which.append(order[asked[same]])
        page_ids.append(known[2][at[same]].astype(np.int64))
    return np.concatenate(which), np.concatenate(page_ids)


def are_articles(folder: Path, page_ids: _Integers) -> npt.NDArray[np.bool_]:
    """Which of ``page_ids``, none of them negative, are those of articles of the extract in ``folder``."""
    order = np.argsort(page_ids)
    asked = page_ids[order].astype(np.uint64)
    there = np.zeros(len(page_ids), bool)
    for [known] in _files(folder, "article_ids", len(page_ids)):
        first, end = np.searchsorted(asked, known[0]), np.searchsorted(asked, known[-1], "right")
        found, _ = _equal(asked[first:end], known)
        there[order[first + found]] = True
    return there


def _files(folder: Path, table: str, asked: int) -> Iterator[_Hashes]:
    """The columns of every file of a table, if anything is asked."""
    for path in sorted(folder.glob(f"{table}-*.npy")) if asked else []:
        try:
            yield np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            said = str(error).splitlines()[0]
            raise InputError(f"{path}: damaged or gone ({said}); delete its folder and build again") from None


def title_hash(title: str) -> bytes:
    """128 bits of a title, the same on every machine: as many that nobody makes two titles that share them."""
    return hashlib.blake2b(title.encode(), digest_size=16).digest()


def _sorted(hashed: bytes | pa.Buffer) -> tuple[_Hashes, _Integers]:
    """Both halves of titles' hashes, ascending by the first, and where each title is."""
    hashes = np.frombuffer(hashed, _NUMBER).reshape(-1, 2).T
    order = np.argsort(hashes[0], kind="stable")
    return hashes[:, order], order


def _equal(a: _Hashes, b: _Hashes) -> tuple[_Integers, _Integers]:
    """Where ``a`` and ``b``, which must ascend, have the same value: all pairs."""
    if len(a) > len(b):  # it is quicker to search the shorter in the longer
        of_b, of_a = _equal(b, a)
        return of_a, of_b
    first = np.searchsorted(b, a)
    found = np.flatnonzero(first < len(b))
    found = found[b[first[found]] == a[found]]
    first, times = first[found], np.searchsorted(b, a[found], "right") - first[found]
    nth = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
    return np.repeat(found, times), np.repeat(first, times) + nth
