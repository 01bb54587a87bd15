"""Stage wikidata-extract: read a Wikidata JSON dump and write its items, facts and properties to Parquet.

An item that the extract of an earlier dump, the *base*, has in the same revision is not parsed: stage wikidata-copy
(module ``unchanged_items``) copies its rows.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from temporalwiki.base.errors import InputError
from temporalwiki.builders.extracts import DumpTask
from temporalwiki.builders.parquet import ParquetWriter
from temporalwiki.builders.snapshot import Dump
from temporalwiki.builders.stages import Report, total
from temporalwiki.builders.streams import compression, pieces, split
from temporalwiki.builders.wikidata.entities import DROPPED, Entity, EntityReader, ItemStatement, NotAnEntity
from temporalwiki.builders.wikidata.revision_index import RevisionIndex
from temporalwiki.builders.wikidata.tables import PROPERTIES, BucketWriter, Integers
from temporalwiki.builders.wikipedia.titles import title_hash

VERSION = 15
RANGE = 192 << 20  # compressed bytes a task: about 140,000 items and a million statements
MAX_LINE = 128 << 20
INSTANCE_OF = 31
_MAX_UNCHANGED = 50_000  # unchanged items that are written together
_MAX_VALUES = 250_000  # Python objects held in memory, enough for about 28,000 rows
_MAX_LINE_BYTES = 256 << 20  # of the lines whose rows are held

# An item as dumps write it since 2021. No quoted text can contain two quotes without a backslash between them, so
# ITEM_END matches the entity's own keys. A line with other keys, or in another order, is parsed.
ITEM_START = re.compile(rb'\s*\{"type":"item","id":"Q([1-9][0-9]{0,17})",')
ITEM_END = re.compile(rb',"lastrevid":([1-9][0-9]{0,17}),"modified":"[^"\\]*"\},?\s*\Z')
ITEM_END_LENGTH = 100


@dataclass(frozen=True)
class EntityExtractTask(DumpTask):
    """A range of a Wikidata dump."""

    wiki: str
    language: str
    allow_truncated: bool
    base: str | None = field(default=None, kw_only=True)  # the folder of an extract next to this one


def plan(dump: Dump, wiki: str, language: str, allow_truncated: bool) -> list[EntityExtractTask]:
    """Cut a dump at its compressed streams into tasks."""
    path = dump.files[0]
    offsets = split(path, RANGE)
    return [
        EntityExtractTask(i, str(path), start, end, wiki, language, allow_truncated)
        for i, (start, end) in enumerate(zip(offsets, [*offsets[1:], None], strict=True))
    ]


def lines(task: EntityExtractTask) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that begin in the task's range, each with its place in the decompressed bytes of the range.

    A line that begins exactly at the range's end belongs to the range, and the first, partial line to the range
    before. So each line is read once, wherever the dump's streams are cut.
    """
    for place, data, bounds in line_blocks(task):
        for start, end in bounds:
            yield place + start, data[start:end]


def line_blocks(task: EntityExtractTask) -> Iterator[tuple[int, bytes, list[tuple[int, int]]]]:
    """Yield what ``lines`` yields in blocks: the place of a block, its bytes, and the start and end of its lines.

    The bytes are not cut into lines, because most lines are not parsed and copies take as long as decompression.
    Raises InputError for a line longer than ``MAX_LINE`` bytes.
    """
    rest, place = b"", 0  # the start of a line that is not complete yet
    skip = task.start > 0  # the first line
    path = Path(task.file)
    range_end = path.stat().st_size if task.end is None else task.end
    for piece in pieces(path, task.start, task.allow_truncated, range_end, task.listed):
        data = piece.data
        if start := data.find(b"\n") + 1:
            line = rest + data[:start]
            if not skip:
                yield place, line, [(0, len(line) - 1)]
            if task.end is not None and piece.stream >= task.end:
                return
            place, skip = place + len(line) - start, False  # where the piece begins
            bounds: list[tuple[int, int]] = []
            while (end := data.find(b"\n", start)) >= 0:
                bounds.append((start, end))
                start = end + 1
            yield place, data, bounds
            place, rest = place + start, data[start:]
        else:
            rest += data
        if len(rest) > MAX_LINE:
            long = f"a line longer than {MAX_LINE >> 20} MB at {_place(task, place)}"
            raise InputError(f"{task.file}: {long}: not a Wikidata JSON dump, or a damaged one")
    if rest and not skip:
        yield place, rest, [(0, len(rest))]


def _place(task: EntityExtractTask, place: int) -> str:
    return f"decompressed byte {place} of the stream at byte {task.start}"


def run(task: EntityExtractTask, folder: Path) -> Report:
    """Read one range of a dump and count every entity and statement, with the reason if it is dropped.

    Raises InputError for a file that is not a Wikidata dump, and for a line that is not one entity in JSON. The last
    line of the dump may be cut if the task allows it.
    """
    reader = EntityReader(task.wiki, task.language)
    base = RevisionIndex(folder.parent / task.base) if task.base is not None else None
    json_bytes = kept = 0
    record = task.index << 36
    name = f"{task.index:05d}"
    with (
        BucketWriter(folder, "facts", name) as facts,
        BucketWriter(folder, "entities", name) as entities,
        BucketWriter(folder, "unchanged", name) as unchanged,
        ParquetWriter(folder / f"properties-{name}.parquet", PROPERTIES) as properties_file,
    ):
        rows, items = _RowBuffer(facts, entities), array("q")
        parser = _LineParser(task, reader, rows, properties_file)
        for place, data, bounds in line_blocks(task):
            known = _unchanged(data, bounds, base) if base is not None else [0] * len(bounds)
            for (start, end), item in zip(bounds, known, strict=True):
                json_bytes += end - start + 1
                if item and parser.in_list():
                    items.append(item)
                else:
                    parser.parse(data[start:end].strip(), place + start, record)
                    record += 1
            if len(items) >= _MAX_UNCHANGED:
                kept += _write_unchanged(unchanged, items)
        kept += _write_unchanged(unchanged, items)
        rows.write()
    wrote = [*facts.wrote, *entities.wrote, *unchanged.wrote]
    if properties_file.rows_written:
        wrote.append(properties_file.path)
    else:
        properties_file.path.unlink()
    parser.finish()
    counts = parser.counts
    return {
        "entities": {**counts, "items": counts["items"] + kept, "dropped": parser.dropped},
        "statements": {**rows.statements, "dropped": rows.dropped},
        "bytes": {"json": json_bytes},
        "newest": parser.newest,
        "unchanged": {"items": kept},  # stage wikidata-copy reports their statements
        # the closing ] can be in any range, so only all reports together show whether the dump has it
        "closed": {
            "files": int(parser.closed),
            "excerpt": int(not parser.closed and task.end is None and _is_single_stream(task)),
        },
        "wrote": wrote,
    }


def check(path: Path, reports: Sequence[Report], allow_truncated: bool) -> str | None:
    """Return a warning if the dump lacks its closing bracket, else None.

    Raises InputError if the dump holds no entities, or if it was cut off and ``allow_truncated`` is false.
    """
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
    raise InputError(f"{path}: no closing ] at its end: it was cut off; fetch it again, or use --allow-truncated")


def _is_single_stream(task: EntityExtractTask) -> bool:
    """Return whether the file is one complete compressed stream whose text ends with a line.

    A broken download of such a file ends inside the stream, which raises an error. So a list without its closing ]
    was written like this, as excerpts are. The build warns and goes on.
    """
    last, streams = b"", set()
    for piece in pieces(Path(task.file), task.start):
        streams.add(piece.stream)
        last = piece.data[-1:] or last
    return task.start == 0 and len(streams) == 1 and last == b"\n" and compression(Path(task.file)) != "plain"


class _LineParser:
    """Parses the lines of a range in order and counts what they hold."""

    def __init__(
        self, task: EntityExtractTask, reader: EntityReader, rows: _RowBuffer, properties: ParquetWriter
    ) -> None:
        self._task, self._reader, self._rows, self._properties = task, reader, rows, properties
        self.counts = {"items": 0, "properties": 0}
        self.dropped: dict[str, int] = {}
        self.newest = ""  # time of a revision
        self.closed, self._opened, self._error = False, task.start > 0, ""

    def in_list(self) -> bool:
        """Return whether the next line can be an entity."""
        return self._opened and not self.closed and not self._error

    def parse(self, text: bytes, place: int, record: int) -> None:
        """Parse a line without the white space around it."""
        file, size = self._task.file, len(text)
        if self._error:  # only the last line may be bad
            raise InputError(self._error)
        if not self._opened and text:
            self._opened = True
            if not text.startswith((b"[", b"{")):
                raise InputError(f"{file}: not a Wikidata JSON dump: it begins with {text[:30]!r}")
            text = text.removeprefix(b"[")
        if self.closed and text:
            raise InputError(f"{file}: {text[:30]!r} after the closing ]")
        if text == b"]":
            self.closed = True
            return
        if text.endswith(b"}]"):
            self.closed, text = True, text[:-1]
        text = text.removesuffix(b",")
        if not text:
            return
        try:
            entity = self._reader.read(text)
        except NotAnEntity as problem:
            self.dropped[problem.reason] = self.dropped.get(problem.reason, 0) + 1
            return
        except msgspec.DecodeError as error:
            self._error = f"{file}: line at {_place(self._task, place)}: not one entity in JSON: {error}"
            return
        self.newest = max(self.newest, entity.modified)
        if entity.kind == "property":
            self.counts["properties"] += 1
            self._properties.write((entity.number, entity.lastrevid, entity.label, entity.aliases, record))
            return
        self.counts["items"] += 1
        self._rows.add(entity, record, size)

    def finish(self) -> None:
        """Raise InputError if the last line was bad, unless the dump's last line may be cut."""
        if self._error and not (self._task.allow_truncated and self._task.end is None):
            raise InputError(self._error)
        if self._error:
            self.dropped["cut_line"] = 1


def _unchanged(data: bytes, bounds: Sequence[tuple[int, int]], base: RevisionIndex) -> list[int]:
    """Return for each line the number of its item if the base has it in the same revision, else 0."""
    items, revisions = np.zeros(len(bounds), np.int64), np.zeros(len(bounds), np.int64)
    for at, (start, end) in enumerate(bounds):
        tail = ITEM_END.search(data, max(start, end - ITEM_END_LENGTH), end)
        if tail is not None and (head := ITEM_START.match(data, start, end)) is not None:
            items[at], revisions[at] = int(head[1]), int(tail[1])
    found: list[int] = np.where(base.has(items, revisions), items, 0).tolist()
    return found


def _write_unchanged(file: BucketWriter, items: array[int]) -> int:
    """Write and forget the items; return how many there were."""
    count = len(items)
    file.add(np.array(items, np.int64))
    del items[:]
    return count


class _RowBuffer:
    """Collects the rows of parsed items and passes them to the writers as columns."""

    def __init__(self, facts: BucketWriter, entities: BucketWriter) -> None:
        self._facts, self._entities = facts, entities
        self.statements = {"facts": 0, "not_best_rank": 0}
        self.dropped: dict[str, int] = {}
        self._clear()

    def _clear(self) -> None:
        # flat lists of all rows' values: lists of rows would take more memory and time
        self._entity_values: list[Any] = []
        self._fact_values: list[Any] = []
        self._line_bytes = 0

    def add(self, entity: Entity, record: int, size: int) -> None:
        """Add an item that was read from a line of ``size`` bytes."""
        statements = len(entity.values) // len(ItemStatement._fields)
        self._entity_values += (entity.number, entity.lastrevid, entity.label, entity.aliases or None, entity.title)
        self._entity_values += (record, statements, entity.dropped)
        self._fact_values += entity.values
        self._line_bytes += size
        if len(self._entity_values) + len(self._fact_values) >= _MAX_VALUES or self._line_bytes >= _MAX_LINE_BYTES:
            self.write()

    def write(self) -> None:
        """Pass the rows that are held to the writers."""
        items, revisions, labels, aliases, titles, records, lengths, reasons = _columns(self._entity_values, 8)
        relation, target, is_best, *others = _columns(self._fact_values, len(ItemStatement._fields))
        self._clear()
        numbers, seen, counts = _int64(items), _int64(records), _int64(lengths)
        relations, objects, best = _int64(relation), _int64(target), np.array(is_best, bool)
        owners = np.repeat(np.arange(len(numbers)), counts)  # the position of each fact's item
        facts = np.bincount(owners[best], minlength=len(numbers))
        instance_of = best & (relations == INSTANCE_OF)
        with_class, first = np.unique(owners[instance_of], return_index=True)
        classes, no_class = np.zeros(len(numbers), np.int64), np.ones(len(numbers), bool)
        classes[with_class], no_class[with_class] = objects[instance_of][first], False
        self.statements["facts"] += int(facts.sum())
        self.statements["not_best_rank"] += len(best) - int(facts.sum())
        dropped: dict[str, Any] = {reason: [of_item.get(reason, 0) for of_item in reasons] for reason in DROPPED}
        for reason, column in dropped.items():
            if any(column):
                self.dropped[reason] = self.dropped.get(reason, 0) + sum(column)
        self._entities.add(
            numbers,
            lastrevid=revisions,
            label=labels,
            aliases=aliases,
            title=[None if title is None else title_hash(title) for title in titles],
            **{"class": pa.array(classes, mask=no_class)},
            seen=seen,
            facts=facts,
            different_facts=_different(owners[best], relations[best], objects[best], len(numbers)),
            not_best_rank=counts - facts,
            **dropped,
        )
        self._facts.add(
            numbers[owners],
            p=relations,
            o=objects,
            best=best,
            **dict(zip(ItemStatement._fields[3:], others, strict=True)),
            seen=seen[owners],
        )


def _different(owners: Integers, relations: Integers, objects: Integers, items: int) -> Integers:
    """Return how many different facts each of the items has that own the facts."""
    order = np.lexsort((objects, relations, owners))
    sorted_facts = [column[order] for column in (owners, relations, objects)]
    first = np.any([np.append(True, column[1:] != column[:-1])[: len(order)] for column in sorted_facts], axis=0)
    return np.bincount(sorted_facts[0][first], minlength=items)


def _columns(values: list[Any], columns: int) -> list[list[Any]]:
    return [values[column::columns] for column in range(columns)]


def _int64(values: list[int]) -> Integers:
    return np.array(values, np.int64)
