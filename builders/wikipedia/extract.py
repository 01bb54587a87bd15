"""Stage wiki-extract: write the pages of a Wikipedia dump to Parquet, in the order of the dump.

Each task writes two Parquet tables. Table ``articles`` has the pages of namespace 0 that are not redirects, with their
wikitext. Table ``pages`` has all pages: it tells a new article from one that was a redirect or in another namespace
before, and finds the page of a title.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from temporalwiki.base.errors import InputError
from temporalwiki.builders.extracts import DumpTask
from temporalwiki.builders.parquet import ParquetWriter
from temporalwiki.builders.snapshot import Dump
from temporalwiki.builders.stages import Report, total
from temporalwiki.builders.streams import split
from temporalwiki.builders.wikipedia.titles import HASH, title_hash
from temporalwiki.builders.wikipedia.xml_dump import DumpCounts, read_header, read_pages

VERSION = 10  # a new version makes the extracts of earlier builds stale
RANGE = 64 << 20  # compressed bytes a task, if the file can be cut

ARTICLES = pa.schema(
    {
        "page_id": pa.int64(),
        "revision_id": pa.int64(),
        "parent_id": pa.int64(),
        "sha1": pa.binary(20),  # of the wikitext: a dump can lack its own SHA-1, or hash more than the text
        "timestamp": pa.timestamp("s", "UTC"),
        "title": pa.string(),
        "size": pa.int32(),  # bytes of the wikitext
        "packed": pa.binary(),  # the wikitext, compressed by ``pack``
    }
)
_WRITING: dict[str, Any] = {
    "rows": 4096,
    "size": 4 << 20,
    "plain": ("sha1", "timestamp", "title", "size", "packed"),  # their values hardly repeat
    "packed": ("packed",),
}
_CODEC = pa.Codec("lz4_raw")  # zstd packs a quarter smaller, but takes four times as long to unpack
PAGES = pa.schema(
    {
        "page_id": pa.int64(),
        "namespace": pa.int32(),
        "redirect": pa.bool_(),
        "revision_id": pa.int64(),
        "article": pa.bool_(),  # whether table ``articles`` has it
        "title": HASH,  # null outside of namespace 0
    }
)


@dataclass(frozen=True)
class ArticleExtractTask(DumpTask):
    """A range of a Wikipedia dump."""

    cut: str | None
    allow_truncated: bool


def plan(dump: Dump, wiki: str, allow_truncated: bool) -> list[ArticleExtractTask]:
    """Cut a dump into tasks. Raises InputError if a file is a stub dump, or is not a dump of ``wiki``."""
    tasks: list[ArticleExtractTask] = []
    for path in dump.files:
        if "stub-" in path.name:
            raise InputError(f"{path}: a stub dump holds no text; take pages-articles-multistream")
        header = read_header(path)
        if header.wiki not in (None, wiki):
            raise InputError(f"{path}: a dump of {header.wiki}, not of {wiki}")
        offsets = split(path, RANGE)
        for start, end in zip(offsets, [*offsets[1:], None], strict=True):
            tasks.append(ArticleExtractTask(len(tasks), str(path), start, end, dump.cut, allow_truncated))
    return tasks


def run(task: ArticleExtractTask, folder: Path) -> Report:
    """Read one range of a dump, and count in the report what became of each page.

    Raises InputError if there are articles but none of them has text.
    """
    path = Path(task.file)
    header = read_header(path)
    counts = DumpCounts()
    kinds = {"articles": 0, "redirects": 0, "other_namespaces": 0}
    newest = None
    with (
        ParquetWriter(folder / f"articles-{task.index:05d}.parquet", ARTICLES, **_WRITING) as articles,
        ParquetWriter(folder / f"pages-{task.index:05d}.parquet", PAGES, plain=("title",)) as pages,
    ):
        ranged = task.start, task.end, task.cut, task.allow_truncated
        for page in read_pages(path, header, counts, *ranged, listed=task.listed):
            page_id, namespace, title, redirect, revision_id, parent_id, timestamp, text, missing = page
            article = namespace == 0 and not redirect and text is not None
            hashed = title_hash(title) if namespace == 0 else None
            pages.write((page_id, namespace, redirect, revision_id, article, hashed))
            if newest is None or timestamp > newest:
                newest = timestamp
            if namespace != 0:
                kinds["other_namespaces"] += 1
                continue
            if redirect:
                kinds["redirects"] += 1
            elif text is None:
                counts.drop(missing or "no_text")
            else:
                kinds["articles"] += 1
                wikitext = text.encode()
                sha1 = hashlib.sha1(wikitext, usedforsecurity=False).digest()
                packed = pack(wikitext)
                row = page_id, revision_id, parent_id, sha1, timestamp, title, len(wikitext), packed
                articles.write(row, size=len(packed))
    if kinds["articles"] == 0 and counts.dropped.get("no_text", 0) > 0:
        raise InputError(f"{path}: no article in it holds text: is it a stub dump? Take pages-articles-multistream")
    wrote = []
    for file in (articles, pages):
        if file.rows_written:
            wrote.append(file.path)
        else:
            file.path.unlink()
    assert counts.pages == sum(kinds.values()) + sum(counts.dropped.values()), (task, counts, kinds)
    return {
        "pages": {"read": counts.pages, **kinds, "dropped": counts.dropped},
        "bytes": {"xml": counts.bytes},
        "newest": newest and f"{newest:%Y-%m-%dT%H:%M:%SZ}",
        "closed": {path.name: int(counts.complete)},
        "wrote": wrote,
    }


def check(dump: Dump, reports: Sequence[Report], allow_truncated: bool) -> str | None:
    """Return a warning if files were cut off, or None. Raises InputError if that is not allowed."""
    closed = total(reports, "closed")
    cut = [file for file in dump.files if not closed[file.name]]
    if cut and not allow_truncated:
        said = "no </mediawiki> at its end: it was cut off; fetch it again, or use --allow-truncated"
        raise InputError(f"{cut[0]}: {said}")
    return f"no </mediawiki> in {', '.join(file.name for file in cut)}; read as far as it goes" if cut else None


def pack(wikitext: bytes) -> bytes:
    """Compress the wikitext of one page. Most texts are never read again, so each is packed by itself."""
    packed: bytes = _CODEC.compress(wikitext, asbytes=True)
    return packed


def unpack(packed: pa.Buffer, size: int) -> bytes:
    """Return the wikitext, of ``size`` bytes, that was compressed by ``pack``."""
    wikitext: bytes = _CODEC.decompress(packed, size, asbytes=True)
    return wikitext


def files(folder: Path, table: str) -> list[Path]:
    """Return the Parquet files of ``articles`` or ``pages`` of an extract; no file is empty."""
    return sorted(folder.glob(f"{table}-*.parquet"))
