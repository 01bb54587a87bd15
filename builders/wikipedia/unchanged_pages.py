"""Reuse the texts of unchanged articles from the extract of the last dump, the *base*.

An extract has a row for every article in its own files. If the row has no text, the text is in a file that is linked
from the base into the extract's folder ``carried``, and the row names the *generation* of that file. The base may have
linked files itself, from its own base; each file keeps the generation of the extract that wrote it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from temporalwiki.base.errors import InputError
from temporalwiki.base.json_files import read_json, write_json
from temporalwiki.builders.incremental import Base, link
from temporalwiki.builders.parquet import KeptFile, byte_strings
from temporalwiki.builders.stages import FileName

_PAGE_RANGES = "spans.json"  # in an extract's folder: the smallest and largest page id of each of its files
_LINKED = "carried"  # the subfolder with the files that are linked from the base
_ROWS = 1 << 14  # of the base held in memory, plus one row group
_LAST = 1 << 62

# An article of the base: its revision, the size and SHA-1 of its text, and the generation of the text
KnownArticle = tuple[int, int, bytes, int]


class BaseArticles:
    """Finds articles of the base. Pages should be asked for in ascending order, because only some are in memory.

    An article may not be found if a larger page id was asked for before it. Pages with two rows in the base are
    never found.
    """

    def __init__(self, folder: Path) -> None:
        self._files = sorted(entry for entry in _page_ranges(folder) if entry[2].parent == folder)
        self._known: dict[int, KnownArticle] = {}  # by page
        self._end = 0  # pages from here on have not been read yet

    def find(self, page_id: int, revision_id: int) -> KnownArticle | None:
        """Return the article if the base has it in this revision, else None."""
        if page_id >= self._end:
            self._read(page_id)
        known = self._known.get(page_id)
        return known if known is not None and known[0] == revision_id > 0 else None

    def _read(self, first: int) -> None:
        """Read about _ROWS articles, from page ``first`` on."""
        groups: list[tuple[int, int, int, KeptFile]] = []
        end, rows = _LAST, 0
        for low, high, path in self._files:
            if rows >= _ROWS and low > first:
                end = low
                break
            if high >= first:
                file = KeptFile(path)
                for number in range(file.num_row_groups):
                    lowest, highest = file.group_range(number, "page_id")
                    if highest >= first:
                        groups.append((lowest, number, file.metadata.row_group(number).num_rows, file))
                        rows += groups[-1][2]
        groups.sort(key=lambda group: group[0])
        tables, rows = [], 0
        for low, number, size, file in groups:
            if rows >= _ROWS and low > first:
                end = min(end, low)
                break
            rows += size
            columns = ["page_id", "revision_id", "size", "sha1", "generation"]
            tables.append(file.read_row_group(number, columns=columns, use_threads=False))
        self._known, self._end = {}, end
        if not tables:
            return
        table = pa.concat_tables(tables)
        pages, at, times = np.unique(table["page_id"].to_numpy(), return_index=True, return_counts=True)
        chosen = (pages >= first) & (pages < end) & (times == 1)
        at = at[chosen]
        revisions, sizes, generations = (table[name].to_numpy()[at] for name in ("revision_id", "size", "generation"))
        values = revisions.tolist(), sizes.tolist(), byte_strings(table["sha1"])[at].tolist(), generations.tolist()
        self._known = dict(zip(pages[chosen].tolist(), zip(*values, strict=True), strict=True))


class LinkedTexts:
    """Finds texts in an extract's linked files; each row group is read once if pages are asked for in order."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[int, list[tuple[int, int, Path]]] = {}
        for low, high, path in _page_ranges(folder):
            if path.parent != folder:
                self._files.setdefault(int(path.name.split("-")[1]), []).append((low, high, path))
        self._open: dict[Path, _TextFile] = {}

    def has(self, generation: int | None) -> bool:
        """Return whether the texts of a generation are in files linked from an earlier extract; never for None."""
        return generation in self._files

    def packed(self, generation: int, page_id: int, revision_id: int) -> tuple[Path, pa.Buffer]:
        """Return the packed text of an article and the file that has it. Raises InputError if it is missing."""
        for low, high, path in self._files[generation]:
            if not low <= page_id <= high:
                self._open.pop(path, None)
                continue
            if path not in self._open:
                self._open[path] = _TextFile(path)
            if (found := self._open[path].find(page_id, revision_id)) is not None:
                return path, found
        raise InputError(f"{self._folder}: the text of page {page_id} is missing; delete the folder and build again")


class _TextFile:
    """A file of articles, with one row group in memory."""

    def __init__(self, path: Path) -> None:
        self._file = KeptFile(path)
        self._groups = [self._file.group_range(number, "page_id") for number in range(self._file.num_row_groups)]
        self._group = -1

    def find(self, page_id: int, revision_id: int) -> pa.Buffer | None:
        for number, (low, high) in enumerate(self._groups):
            if low <= page_id <= high:
                self._load(number)
                first, end = np.searchsorted(self._pages, [page_id, page_id + 1])
                for row in range(first, end):
                    if self._revisions[row] == revision_id and self._packed[row].is_valid:
                        return self._packed[row].as_buffer()
        return None

    def _load(self, number: int) -> None:
        if number == self._group:
            return
        table = self._file.read_row_group(number, columns=["page_id", "revision_id"], use_threads=False)
        self._pages, self._revisions = table["page_id"].to_numpy(), table["revision_id"].to_numpy()
        self._packed = self._file.unverified.read_row_group(number, columns=["packed"], use_threads=False)["packed"]
        self._group = number


def link_base(folder: Path, base: Base | None) -> None:
    """Link the base's files into an extract that is otherwise complete, and note the page ids that each file spans."""
    ranges = {path.name: _page_range(path) for path in sorted(folder.glob("articles-*.parquet"))}
    if base is not None:
        before = folder.parent / base.name
        for low, high, path in _page_ranges(before):
            is_link = path.parent != before
            name = path.name if is_link else path.name.replace("-", f"-{base.generation:02d}-", 1)
            link(path, folder / _LINKED / name)
            ranges[f"{_LINKED}/{name}"] = low, high
    write_json(folder / _PAGE_RANGES, ranges)


def _page_range(path: Path) -> tuple[int, int]:
    """Return the smallest and largest page id in a file, which is never empty."""
    with KeptFile(path) as file:
        ranges = [file.group_range(number, "page_id") for number in range(file.num_row_groups)]
    return min(low for low, _ in ranges), max(high for _, high in ranges)


def _page_ranges(folder: Path) -> list[tuple[int, int, Path]]:
    """Return the smallest and largest page id and the path of each of an extract's files, linked ones included."""
    path = folder / _PAGE_RANGES
    if not path.exists():  # the extract is not finished: it has no linked files, and is nobody's base
        return []
    what = f"a list of page ranges: delete {folder} and build again"
    ranges = read_json(path, dict[FileName, tuple[int, int]], what)
    return [(low, high, folder / name) for name, (low, high) in ranges.items()]
