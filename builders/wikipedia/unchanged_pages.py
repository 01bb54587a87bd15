"""What a Wikipedia extract has of the one before it, its base: the text of articles with the same revision.

An extract's own files hold a row for every article. Where the text was not read, the row says of which generation it
is, and the files of that one, which base had, are linked into the extract's folder ``carried``.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa

from temporalwiki.base.errors import InputError
from temporalwiki.base.json_files import write_json
from temporalwiki.builders.incremental import Base, link
from temporalwiki.builders.parquet import KeptFile, byte_strings

_SPANS = "spans.json"  # in an extract's folder: which of its files hold which pages
_CARRIED = "carried"
_ROWS = 1 << 14  # of base held in memory, beside one row group
_LAST = 1 << 62


# An article of base: its revision, the size and SHA-1 of its text, and the generation whose files have that
Known = tuple[int, int, bytes, int]


class BaseArticles:
    """Looks articles up in base, where page ids hardly ever go down; one that base has twice is not found."""

    def __init__(self, folder: Path) -> None:
        self._files = sorted(span for span in _spans(folder) if span[2].parent == folder)
        self._known: dict[int, Known] = {}  # by page
        self._end = 0  # what is known ends before this page

    def find(self, page_id: int, revision_id: int) -> Known | None:
        """The article, if base has it in this revision. Of pages behind the last ones asked for nothing is known."""
        if page_id >= self._end:
            self._read(page_id)
        known = self._known.get(page_id)
        return known if known is not None and known[0] == revision_id > 0 else None

    def _read(self, first: int) -> None:
        """Read the next articles, from ``first`` on."""
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
        of_pages = revisions.tolist(), sizes.tolist(), byte_strings(table["sha1"])[at].tolist(), generations.tolist()
        self._known = dict(zip(pages[chosen].tolist(), zip(*of_pages, strict=True), strict=True))


class CarriedTexts:
    """Finds the texts that an extract has of its base. Asked in page order, it reads every row group at most once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[int, list[tuple[int, int, Path]]] = {}
        for low, high, path in _spans(folder):
            if path.parent != folder:
                self._files.setdefault(int(path.name.split("-")[1]), []).append((low, high, path))
        self._open: dict[Path, _Texts] = {}

    def has(self, generation: int | None) -> bool:
        """Whether texts of a generation lie here, and not in the extract's own files."""
        return generation in self._files

    def packed(self, generation: int, page_id: int, revision_id: int) -> tuple[Path, pa.Buffer]:
        """The text of an article, packed, and the file that has it. Raises InputError if it is not there."""
        for low, high, path in self._files[generation]:
            if not low <= page_id <= high:
                self._open.pop(path, None)
                continue
            if path not in self._open:
                self._open[path] = _Texts(path)
            if (found := self._open[path].find(page_id, revision_id)) is not None:
                return path, found
        raise InputError(f"{self._folder}: the text of page {page_id} is not there; delete the folder and build again")


class _Texts:
    """One file, and one row group of it in memory."""

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


def carry(folder: Path, base: Base | None) -> None:
    """Link base's files into an extract whose own files are there, and note which files hold which pages."""
    own = sorted(folder.glob("articles-*.parquet"))
    spans = {path.name: span for path in own if (span := _span(path)) is not None}
    if base is not None:
        before = folder.parent / base.name
        for low, high, path in _spans(before):
            inherited = path.parent != before
            name = path.name if inherited else path.name.replace("-", f"-{base.generation:02d}-", 1)
            link(path, folder / _CARRIED / name)
            spans[f"{_CARRIED}/{name}"] = low, high
    write_json(folder / _SPANS, spans)


def _span(path: Path) -> tuple[int, int] | None:
    """Smallest and largest page id in a file; None if it is empty."""
    with KeptFile(path) as file:
        spans = [file.group_range(number, "page_id") for number in range(file.num_row_groups)]
    return (min(low for low, _ in spans), max(high for _, high in spans)) if spans else None


def _spans(folder: Path) -> list[tuple[int, int, Path]]:
    """Smallest and largest page id of every file with texts in an extract's folder, those of its base included."""
    path = folder / _SPANS
    if not path.exists():  # only its own files are there, and nobody takes it for a base
        return []
    try:
        return [(low, high, folder / name) for name, (low, high) in json.loads(path.read_text("utf-8")).items()]
    except (ValueError, TypeError, AttributeError):
        raise InputError(f"{path}: damaged; delete {folder} and build again") from None
