"""Stage wiki-extract: a Wikipedia dump becomes Parquet, sorted by page id within each task.

Two tables a task: ``articles`` (namespace 0, not a redirect, with wikitext) and ``pages`` (all pages, narrow: it
tells a new article from one that was a redirect or lay in another namespace). And beside them what module titles
looks up: which titles there are, and the articles that have them.

An article that another extract, the *base*, has in the same revision has no text here: see module carried.
"""

from __future__ import annotations

import glob
import hashlib
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from temporalwiki.base.errors import InputError
from temporalwiki.builders.incremental import Task
from temporalwiki.builders.parquet import KeptFile, ParquetWriter
from temporalwiki.builders.snapshot import Dump
from temporalwiki.builders.stages import Report, total
from temporalwiki.builders.streams import split
from temporalwiki.builders.wikipedia.titles import TitleWriter
from temporalwiki.builders.wikipedia.unchanged_pages import BaseArticles, Known
from temporalwiki.builders.wikipedia.xml_dump import KNOWN, Reading, read_header, read_pages

VERSION = 6  # of what this stage writes; a new one makes kept extracts stale
RANGE = 64 << 20  # compressed bytes a task, where the file can be cut

ARTICLES = pa.schema(
    {
        "page_id": pa.int64(),
        "revision_id": pa.int64(),
        "parent_id": pa.int64(),
        "sha1": pa.binary(20),  # of the escaped wikitext itself: old schemas carry none, new ones that of all slots
        "timestamp": pa.timestamp("s", "UTC"),
        "title": pa.string(),
        "size": pa.int32(),  # of the wikitext as dumps have it, escaped, in bytes
        "packed": pa.binary(),  # the same by ``pack``: each by itself, as most of it is never looked at; null: base's
        "generation": pa.int8(),  # of the extract that read the text
    }
)
_HARDLY_REPEAT = ("sha1", "timestamp", "title", "size", "packed")
# zstd makes it a quarter smaller, and takes four times as long to unpack
_CODEC = pa.Codec("lz4_raw")
_SORTED = 64 << 20  # bytes of wikitext that are put in page order at a time
PAGES = pa.schema({"page_id": pa.int64(), "namespace": pa.int32(), "redirect": pa.bool_(), "revision_id": pa.int64()})


@dataclass(frozen=True)
class ExtractTask(Task):
    """A range of a Wikipedia dump."""

    cut: str | None
    allow_truncated: bool


def plan(dump: Dump, wiki: str, allow_truncated: bool) -> list[ExtractTask]:
    """Cut a dump into tasks. Raises InputError where a file is not a dump of ``wiki`` or holds no text."""
    tasks: list[ExtractTask] = []
    for path in dump.files:
        if "stub-" in path.name:
            raise InputError(f"{path}: a stub dump holds no text; take pages-articles-multistream")
        header = read_header(path)
        if header.wiki not in (None, wiki):
            raise InputError(f"{path}: a dump of {header.wiki}, not of {wiki}")
        offsets = split(path, RANGE)
        for start, end in zip(offsets, [*offsets[1:], None], strict=True):
            tasks.append(ExtractTask(len(tasks), str(path), start, end, dump.cut, allow_truncated))
    return tasks


def run(task: ExtractTask, folder: Path) -> Report:
    """Read one range; the report counts every page by what became of it.

    Raises InputError where there are articles and none of them holds text: a dump of stubs.
    """
    path = Path(task.file)
    header = read_header(path)
    reading = Reading()
    base = BaseArticles(folder.parent / task.base.name) if task.base is not None else None
    known: Known | None = None

    def size_in_base(page_id: int, revision_id: int) -> int | None:
        nonlocal known
        assert base is not None
        known = base.find(page_id, revision_id)
        return known[1] if known is not None else None

    counts, kept, read = {"articles": 0, "redirects": 0, "other_namespaces": 0}, 0, 0
    cut, asked = task.cut, size_in_base if base is not None else None
    last_id, in_order = -1, True
    with (
        _articles(folder / f"articles-{task.index:05d}.parquet") as articles,
        ParquetWriter(folder / f"pages-{task.index:05d}.parquet", PAGES) as pages,
        TitleWriter(folder, task.index) as titles,
    ):
        for page in read_pages(
            path, header, reading, task.start, task.end, cut, task.allow_truncated, asked, task.listed
        ):
            page_id, namespace, title, redirect, revision_id, parent_id, timestamp, escaped, missing = page
            in_order, last_id = in_order and page_id > last_id, page_id
            pages.write((page_id, namespace, redirect, revision_id))
            if namespace != 0:
                counts["other_namespaces"] += 1
                continue
            title_hash = titles.add(title)
            if redirect:
                counts["redirects"] += 1
            elif missing == KNOWN:
                assert known is not None
                kept += 1
                _, size, sha1, generation = known
                articles.write((page_id, revision_id, parent_id, sha1, timestamp, title, size, None, generation))
                titles.add_article(title_hash, page_id)
            elif escaped is None:
                reading.drop(missing or "no_text")
            else:
                read += 1
                sha1 = hashlib.sha1(escaped, usedforsecurity=False).digest()
                packed, size = pack(escaped), len(escaped)
                row = page_id, revision_id, parent_id, sha1, timestamp, title, size, packed, task.generation
                articles.write(row, size=len(packed))
                titles.add_article(title_hash, page_id)
    counts["articles"] = kept + read
    if counts["articles"] == 0 and reading.dropped.get("no_text", 0) > 0:
        raise InputError(f"{path}: no article in it holds text: is it a stub dump? Take pages-articles-multistream")
    if not in_order:
        _sort_articles(articles.path)
        _sort_pages(pages.path)
    wrote = titles.wrote
    for file in (articles, pages):
        if file.rows_written:
            wrote.append(file.path)
        else:
            file.path.unlink()
    assert reading.pages == sum(counts.values()) + sum(reading.dropped.values()), (task, reading, counts)
    return {
        "pages": {"read": reading.pages, **counts, "dropped": reading.dropped},
        "bytes": {"xml": reading.bytes},
        "kept": {"articles": kept},  # without their text, which base has
        "closed": {path.name: int(reading.complete)},
        "wrote": wrote,
    }


def check(dump: Dump, reports: Sequence[Report], allow_truncated: bool) -> str | None:
    """Raise InputError for a file that was cut off; what to warn of where that is allowed, or None."""
    closed = total(reports, "closed")
    cut = [file for file in dump.files if not closed[file.name]]
    if cut and not allow_truncated:
        raise InputError(
            f"{cut[0]}: no </mediawiki> at its end: it was cut off; fetch it again, or read what is there with "
            "--allow-truncated"
        )
    return f"no </mediawiki> in {', '.join(file.name for file in cut)}; read as far as it goes" if cut else None


def _articles(path: Path) -> ParquetWriter:
    return ParquetWriter(path, ARTICLES, rows=4096, size=4 << 20, plain=_HARDLY_REPEAT, packed=("packed",))


def pack(escaped: bytes) -> bytes:
    """A page's wikitext as extracts hold it."""
    packed: bytes = _CODEC.compress(escaped, asbytes=True)
    return packed


def unpack(packed: pa.Buffer, size: int) -> bytes:
    """The wikitext of ``size`` bytes that ``pack`` made ``packed`` of."""
    escaped: bytes = _CODEC.decompress(packed, size, asbytes=True)
    return escaped


def _sort_pages(path: Path) -> None:
    """Put a file of pages in page order: dumps are, but hand-made ones need not be."""
    with ParquetWriter(path, PAGES) as out:
        for row in _by_page(path, "* EXCLUDE (file_row_number)"):
            out.write(row)


def _sort_articles(path: Path) -> None:
    """Put a file of articles in page order: first their numbers, then the rows, _SORTED bytes of text at a time."""
    with KeptFile(path) as file, _articles(path) as out:
        groups = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
        starts = np.cumsum([0, *groups])
        for numbers in _parts(_by_page(path, "file_row_number, size")):
            among = np.array(numbers)
            rows: dict[int, dict[str, Any]] = {}
            for group in np.unique(np.searchsorted(starts, among, side="right") - 1):
                first, end = starts[group], starts[group + 1]
                chosen = among[(first <= among) & (among < end)]
                found = file.read_row_group(group, ARTICLES.names).take(chosen - first)
                rows.update(zip(chosen.tolist(), found.to_pylist(), strict=True))
            for number in numbers:
                row = rows.pop(number)
                out.write(row, size=len(row["packed"] or b""))


def _parts(rows: Iterator[dict[str, Any]]) -> Iterator[list[int]]:
    """The numbers of ``rows``, about _SORTED bytes of text a list."""
    numbers: list[int] = []
    size = 0
    for row in rows:
        numbers.append(row["file_row_number"])
        size += row["size"]
        if size >= _SORTED:
            yield numbers
            numbers, size = [], 0
    if numbers:
        yield numbers


def _by_page(path: Path, columns: str) -> Iterator[dict[str, Any]]:
    """``columns`` of a file in page order. DuckDB spills what memory lacks, if it is narrow: texts are too long."""
    query = (
        f"SELECT {columns} FROM read_parquet($path, file_row_number = true) "
        "ORDER BY page_id, revision_id, file_row_number"
    )
    with (
        tempfile.TemporaryDirectory(prefix=".", suffix=".part", dir=path.parent) as spilled,
        duckdb.connect(config={"threads": 1, "memory_limit": "256MB", "temp_directory": spilled}) as db,
    ):
        for batch in db.sql(query, params={"path": glob.escape(str(path))}).to_arrow_reader(4096):
            yield from batch.to_pylist()


def files(folder: Path, table: str) -> list[Path]:
    """The Parquet files of ``articles`` or ``pages`` in an extract's folder. None of them is empty."""
    return sorted(folder.glob(f"{table}-*.parquet"))
