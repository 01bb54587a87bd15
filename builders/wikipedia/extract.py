"""Stage wiki-extract: a Wikipedia dump becomes Parquet, sorted by page id within each task.

Two tables a task: ``articles`` (namespace 0, not a redirect, with wikitext) and ``pages`` (all pages, narrow: it
tells a new article from one that was a redirect or lay in another namespace).
"""

from __future__ import annotations

import glob
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from temporalwiki.builders.engine import Report, total
from temporalwiki.builders.errors import InputError
from temporalwiki.builders.parquet import ParquetWriter
from temporalwiki.builders.snapshot import Dump
from temporalwiki.builders.streams import split
from temporalwiki.builders.wikipedia.xml_dump import Page, Reading, read_header, read_pages

VERSION = 1  # of what this stage writes; a new one makes kept extracts stale
RANGE = 64 << 20  # compressed bytes a task, where the file can be cut

ARTICLES = pa.schema(
    {
        "page_id": pa.int64(),
        "revision_id": pa.int64(),
        "parent_id": pa.int64(),
        "sha1": pa.binary(20),  # of the wikitext itself: old schemas carry none, new ones that of all slots
        "timestamp": pa.timestamp("s", "UTC"),
        "title": pa.string(),
        "wikitext": pa.string(),
    }
)
PAGES = pa.schema({"page_id": pa.int64(), "namespace": pa.int32(), "redirect": pa.bool_(), "revision_id": pa.int64()})


@dataclass(frozen=True)
class ExtractTask:
    """A compressed byte range of one dump file: ``end`` None means to the end of the file."""

    index: int
    file: str
    start: int
    end: int | None
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
    """Read one range; the report counts every page by what became of it."""
    path = Path(task.file)
    header = read_header(path)
    reading = Reading()
    counts = {"articles": 0, "redirects": 0, "other_namespaces": 0}
    written = {"articles": folder / f"articles-{task.index:05d}.parquet"}
    written["pages"] = folder / f"pages-{task.index:05d}.parquet"
    last_id, in_order = -1, True
    with (
        ParquetWriter(written["articles"], ARTICLES, rows=4096) as articles,
        ParquetWriter(written["pages"], PAGES) as pages,
    ):
        for page in read_pages(path, header, reading, task.start, task.end, task.cut, task.allow_truncated):
            in_order, last_id = in_order and page.page_id > last_id, page.page_id
            pages.write(
                {
                    "page_id": page.page_id,
                    "namespace": page.namespace,
                    "redirect": page.redirect,
                    "revision_id": page.revision_id,
                }
            )
            if page.namespace != 0:
                counts["other_namespaces"] += 1
            elif page.redirect:
                counts["redirects"] += 1
            elif page.text is None:
                reading.drop(page.missing or "no_text")
            else:
                counts["articles"] += 1
                row = _article(page, page.text)
                articles.write(row, size=len(page.text))
    if counts["articles"] == 0 and reading.dropped.get("no_text", 0) > 0:
        raise InputError(f"{path}: no article in it holds text: is it a stub dump? Take pages-articles-multistream")
    if not in_order:
        _sort(written["articles"], ARTICLES)
        _sort(written["pages"], PAGES)
    return {
        "pages": {"read": reading.pages, **counts, "dropped": reading.dropped},
        "bytes": {"xml": reading.bytes},
        "closed": {path.name: int(reading.complete)},
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


def _article(page: Page, text: str) -> dict[str, object]:
    return {
        "page_id": page.page_id,
        "revision_id": page.revision_id,
        "parent_id": page.parent_id,
        "sha1": hashlib.sha1(text.encode(), usedforsecurity=False).digest(),
        "timestamp": page.timestamp,
        "title": page.title,
        "wikitext": text,
    }


def _sort(path: Path, schema: pa.Schema) -> None:
    """Put a file in page order: dumps are, but hand-made ones need not be. DuckDB spills what memory lacks."""
    with duckdb.connect(config={"threads": 1, "memory_limit": "1GB", "temp_directory": str(path.parent)}) as db:
        rows = db.sql(
            "SELECT * FROM read_parquet($path) ORDER BY page_id, revision_id", params={"path": glob.escape(str(path))}
        )
        with ParquetWriter(path, schema, rows=4096) as out:
            for batch in rows.to_arrow_reader(4096):
                out.write_table(pa.Table.from_batches([batch]))


def files(folder: Path, table: str) -> list[Path]:
    """The Parquet files of ``articles`` or ``pages`` in an extract's folder that hold rows."""
    return [path for path in sorted(folder.glob(f"{table}-*.parquet")) if pq.read_metadata(path).num_rows]
