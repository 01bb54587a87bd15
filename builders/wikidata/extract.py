"""Stage wikidata-extract: a Wikidata JSON dump becomes facts and entities in Parquet, in buckets by subject.

A row group holds one bucket, so that a later task reads only the buckets that are its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
import numpy as np
import pyarrow as pa

from temporalwiki.builders.engine import Report, total
from temporalwiki.builders.errors import InputError
from temporalwiki.builders.parquet import ParquetWriter
from temporalwiki.builders.snapshot import Dump
from temporalwiki.builders.streams import compression, pieces, split
from temporalwiki.builders.wikidata.entities import Entity, EntityReader, NotAnEntity

VERSION = 2
BUCKETS = 64  # the same for every dump, so that two of them can be compared bucket by bucket
RANGE = 64 << 20  # compressed bytes a task
_FLUSH = 200_000  # rows held in memory, about 150 MB
MAX_LINE = 128 << 20

FACTS = pa.schema(
    {
        "bucket": pa.int32(),
        "s": pa.int64(),
        "p": pa.int64(),
        "o": pa.int64(),
        "best": pa.bool_(),
        "rank": pa.string(),
        "statement_id": pa.string(),
        "start": pa.string(),
        "start_day": pa.int32(),
        "end": pa.string(),
        "end_day": pa.int32(),
        "seen": pa.int64(),  # which reading of the entity: dumps can hold one twice
    }
)
ENTITIES = pa.schema(
    {
        "bucket": pa.int32(),
        "s": pa.int64(),
        "lastrevid": pa.int64(),
        "label": pa.string(),
        "title": pa.string(),
        "seen": pa.int64(),
    }
)
PROPERTIES = pa.schema({"p": pa.int64(), "lastrevid": pa.int64(), "label": pa.string(), "seen": pa.int64()})


@dataclass(frozen=True)
class ExtractTask:
    """A compressed byte range of the dump: ``end`` None means to the end of the file."""

    index: int
    file: str
    start: int
    end: int | None
    wiki: str
    language: str
    allow_truncated: bool


def plan(dump: Dump, wiki: str, language: str, allow_truncated: bool) -> list[ExtractTask]:
    """Cut a dump at its compressed streams into tasks."""
    path = dump.files[0]
    offsets = split(path, RANGE)
    return [
        ExtractTask(i, str(path), start, end, wiki, language, allow_truncated)
        for i, (start, end) in enumerate(zip(offsets, [*offsets[1:], None], strict=True))
    ]


def bucket(subject: int) -> int:
    """The bucket of a subject."""
    return subject % BUCKETS


def lines(task: ExtractTask) -> Iterator[tuple[int, bytes]]:
    """Lines that begin in the task's range, with their place in what it decodes to.

    A line that begins exactly at the range's end belongs to it too, and the first (partial) line of every range
    but the file's first to the range before: so each line is read once, wherever streams are cut.
    """
    rest, place, limit = b"", 0, None
    skip = task.start > 0
    for piece in pieces(Path(task.file), task.start, task.allow_truncated):
        if limit is None and task.end is not None and piece.stream >= task.end:
            limit = place + len(rest)
        data = rest + piece.data
        at = 0
        while (end := data.find(b"\n", at)) >= 0:
            if limit is not None and place + at > limit:
                return
            if not skip:
                yield place + at, data[at:end]
            skip, at = False, end + 1
        rest, place = data[at:], place + at
        if limit is not None and place > limit:
            return
        if len(rest) > MAX_LINE:
            raise InputError(
                f"{task.file}: a line longer than {MAX_LINE >> 20} MB at byte {place} of what the stream at byte "
                f"{task.start} decodes to: not a Wikidata JSON dump, or a damaged one"
            )
    if rest and not skip and (limit is None or place <= limit):
        yield place, rest


def run(task: ExtractTask, folder: Path) -> Report:
    """Read one range; every entity and statement is counted, with the reason where it is dropped."""
    reader = EntityReader(task.wiki, task.language)
    counts = {"items": 0, "properties": 0}
    dropped: dict[str, int] = {}
    statements = {"facts": 0, "not_best_rank": 0}
    statements_dropped: dict[str, int] = {}
    size, closed, opened, bad = 0, False, task.start > 0, ""
    name = f"{task.index:05d}.parquet"
    with (
        _Buckets(folder / f"facts-{name}", FACTS) as facts,
        _Buckets(folder / f"entities-{name}", ENTITIES) as entities,
        ParquetWriter(folder / f"properties-{name}", PROPERTIES) as properties_file,
    ):
        for number, (place, line) in enumerate(lines(task)):
            if bad:
                raise InputError(bad)
            size += len(line) + 1
            text = line.strip()
            if not opened and text:
                opened = True
                if not text.startswith((b"[", b"{")):
                    raise InputError(f"{task.file}: not a Wikidata JSON dump: it begins with {text[:30]!r}")
                text = text.removeprefix(b"[")
            if closed and text:
                raise InputError(f"{task.file}: {text[:30]!r} after the closing ]")
            if text == b"]":
                closed = True
                continue
            if text.endswith(b"}]"):  # on the last entity's line
                closed, text = True, text[:-1]
            text = text.removesuffix(b",")
            if not text:
                continue
            try:
                entity = reader.read(text)
            except NotAnEntity as problem:
                dropped[problem.reason] = dropped.get(problem.reason, 0) + 1
                continue
            except msgspec.DecodeError as error:
                bad = (
                    f"{task.file}: line at byte {place} of what the stream at byte {task.start} decodes to: "
                    f"not one entity in JSON: {error}"
                )
                continue
            seen = (task.index << 36) + number
            if entity.kind == "property":
                counts["properties"] += 1
                properties_file.write(
                    {"p": entity.number, "lastrevid": entity.lastrevid, "label": entity.label, "seen": seen}
                )
                continue
            counts["items"] += 1
            _add(entity, seen, facts, entities, statements)
            for reason, count in entity.dropped.items():
                statements_dropped[reason] = statements_dropped.get(reason, 0) + count
    if bad and not (task.allow_truncated and task.end is None):  # only the last line of all can be cut
        raise InputError(bad)
    if bad:
        dropped["cut_line"] = 1
    return {
        "entities": {**counts, "dropped": dropped},
        "statements": {**statements, "dropped": statements_dropped},
        "bytes": {"json": size},
        # the ] may stand at the end of any range, so that all reports together tell whether it was there
        "closed": {"files": int(closed), "excerpt": int(not closed and task.end is None and _one_whole_stream(task))},
    }


def check(path: Path, reports: Sequence[Report], allow_truncated: bool) -> str | None:
    """Raise InputError for a dump that was cut off or holds no entities; what to warn of, or None."""
    entities = total(reports, "entities")
    if not entities["items"] + entities["properties"]:
        raise InputError(f"{path}: no entities in it: not a Wikidata JSON dump")
    closed = total(reports, "closed")
    if closed["files"]:
        return None
    if closed["excerpt"]:
        return f"{path.name} has no closing ]; taken for an excerpt and read to its end"
    if allow_truncated:
        return f"{path.name} has no closing ]; read as far as it goes"
    raise InputError(
        f"{path}: no closing ] at its end: it was cut off; fetch it again, or read what is there with "
        "--allow-truncated"
    )


def _one_whole_stream(task: ExtractTask) -> bool:
    """Whether the file is a single compressed stream that ended well, and its text at the end of a line.

    A transfer that breaks off cuts such a file inside its stream, which fails; a list without its ] was then
    written so, as excerpts are. The build says so and goes on.
    """
    last, streams = b"", set()
    for piece in pieces(Path(task.file), task.start):
        streams.add(piece.stream)
        last = piece.data[-1:] or last
    return task.start == 0 and len(streams) == 1 and last == b"\n" and compression(Path(task.file)) != "plain"


def _add(entity: Entity, seen: int, facts: _Buckets, entities: _Buckets, counts: dict[str, int]) -> None:
    s, b = entity.number, bucket(entity.number)
    entities.add((b, s, entity.lastrevid, entity.label, entity.title, seen))
    for found in entity.statements:  # in the columns' order
        counts["facts" if found.best else "not_best_rank"] += 1
        facts.add((b, s, *found, seen))


class _Buckets:
    """A Parquet file whose row groups hold one bucket each, in dump order; the first column is the bucket."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._schema = schema
        self._file = ParquetWriter(path, schema, rows=_FLUSH)
        self._rows: list[tuple[Any, ...]] = []

    def __enter__(self) -> Self:
        self._file.__enter__()
        return self

    def add(self, row: tuple[Any, ...]) -> None:
        self._rows.append(row)
        if len(self._rows) >= _FLUSH:
            self._flush()

    def _flush(self) -> None:
        if not self._rows:
            return
        columns = zip(*self._rows, strict=True)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, self._schema, strict=True)]
        self._rows.clear()
        table = pa.Table.from_arrays(arrays, schema=self._schema)
        buckets = table.column("bucket").to_numpy()
        order = np.argsort(buckets, kind="stable")
        table = table.take(pa.array(order))
        starts = np.searchsorted(buckets[order], np.arange(BUCKETS + 1))
        for first, end in pairwise(starts.tolist()):
            if end > first:
                self._file.write_table(table.slice(first, end - first))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._flush()
        self._file.__exit__(kind, error, trace)
