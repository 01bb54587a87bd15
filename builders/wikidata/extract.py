"""Stage wikidata-extract: a Wikidata JSON dump becomes facts and entities in Parquet, in buckets by subject.

A row group holds one bucket, or some small ones, and a file the row groups of a few, so that a later task opens only
the files and reads only the row groups that have rows of its own. A subject's bucket is its number modulo BUCKETS.
Facts of items that have no title in the wiki, which are most, have row groups of their own: little of them is read.

An item that another extract, the *base*, holds in the same revision is not parsed: module carry links base's files
into this extract, and module buckets reads of them what still counts. So an extract is layers, each of one generation:
what was read here, what base read, what base's base read.
"""

from __future__ import annotations

import contextlib
import os
import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from temporalwiki.base.errors import InputError
from temporalwiki.base.json_files import fingerprint
from temporalwiki.builders.incremental import Task
from temporalwiki.builders.parquet import ParquetWriter
from temporalwiki.builders.snapshot import Dump
from temporalwiki.builders.stages import Report, total
from temporalwiki.builders.streams import compression, pieces, split
from temporalwiki.builders.wikidata.entities import DROPPED, Entity, EntityReader, NotAnEntity, Statement
from temporalwiki.builders.wikidata.revision_index import Revisions
from temporalwiki.builders.wikipedia.titles import HASH, title_hash

VERSION = 10
BUCKETS = 64  # the same for every dump, so that two of them can be compared bucket by bucket
FILE_BUCKETS = 8  # a file: whoever opens it reads what is said of all its row groups
RANGE = 192 << 20  # compressed bytes a task: of Wikidata about 140,000 items and a million statements
FEW = 150_000  # rows that go into one file instead, as of a task that most items were kept of
GROUP_ROWS = 2000  # of several buckets: what fewer save whoever reads one bucket, they cost as row groups of their own
ROWS = 1_200_000  # held in memory: about all of a task, so that a bucket is one row group
_SIZE = 112 << 20  # bytes of them after which fewer do
KEPT_ROWS = 20_000  # of kept items a row group, which takes several buckets
_CHUNK = 250_000  # values held as Python's objects, which take more: about 28,000 rows
_LINES = 256 << 20  # bytes of lines after which fewer do
MAX_LINE = 128 << 20
INSTANCE_OF = 31
CHECKED = 1000  # one in so many items is parsed though base has it, and compared with what base has

# An item as dumps write it since 2021. Between two quotes without a backslash nothing can be quoted text, so that the
# tail is the entity's own; a line with other keys, or in another order, is parsed.
HEAD = re.compile(rb'\s*\{"type":"item","id":"Q([1-9][0-9]{0,17})",')
TAIL = re.compile(rb',"lastrevid":([1-9][0-9]{0,17}),"modified":"[^"\\]*"\},?\s*\Z')
TAIL_LENGTH = 100
# The same without anything that may be otherwise, for a first look at many lines: where each ends and the next begins.
_START = re.compile(rb'\{"type":"item","id":"Q([1-9][0-9]{0,17})",')
_SEAM = re.compile(rb',"lastrevid":([1-9][0-9]{0,17}),"modified":"[0-9T:Z-]{0,20}"\},\n(?:%b|)' % _START.pattern)
_BEFORE, _BEHIND = 67, 43  # the most bytes of it before the end of a line, and from there on

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
        "title": HASH,  # of its page in the wiki; that is looked up among articles, and never read
        "class": pa.int64(),  # the object of its first best-rank INSTANCE_OF statement
        "seen": pa.int64(),
        "facts": pa.int32(),  # its rows in FACTS of best rank
        "not_best_rank": pa.int32(),  # and its others
        **{reason: pa.int32() for reason in DROPPED},  # statements of it that are no facts and not in FACTS
        "digest": pa.string(),  # of the few items that are checked, to be compared
    }
)
PROPERTIES = pa.schema({"p": pa.int64(), "lastrevid": pa.int64(), "label": pa.string(), "seen": pa.int64()})
# Columns that are never searched for by themselves, and whose values hardly repeat.
PLAIN = {
    "facts": ("s", "o", "statement_id", "seen"),
    "entities": ("s", "lastrevid", "label", "title", "class", "seen"),
    "kept": ("s",),
}
# Of them, those that go up, so that their differences take few bytes; and objects: zstd takes longer than it saves.
DELTAS = ("s", "o", "lastrevid", "seen")
# Items that were not taken from the dump, as base has them; those that are checked were parsed, for their digest.
KEPT = pa.schema({"bucket": pa.int32(), "s": pa.int64(), "digest": pa.string()})


@dataclass(frozen=True)
class ExtractTask(Task):
    """A range of a Wikidata dump."""

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


def lines(task: ExtractTask) -> Iterator[tuple[int, bytes]]:
    """Lines that begin in the task's range, with their place in what it decodes to.

    A line that begins exactly at the range's end belongs to it too, and the first (partial) line of every range
    but the file's first to the range before: so each line is read once, wherever streams are cut.
    """
    for place, data, start, end in texts(task):
        for begin, stop in _ends(data, start, end):
            yield place - start + begin, data[begin:stop]


def _ends(data: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Where each line of the part [start, end) of a text begins, and where it ends."""
    while start < end:
        stop = data.index(b"\n", start)
        yield start, stop
        start = stop + 1


def texts(task: ExtractTask) -> Iterator[tuple[int, bytes, int, int]]:
    """The same lines, many at once: the part [start, end) of a text, in which every line has its end.

    Raises InputError for a line longer than ``MAX_LINE`` bytes.
    """
    rest, place = b"", 0  # the beginning of a line, and its place
    skip, is_last = task.start > 0, False  # that line
    path = Path(task.file)
    whole = path.stat().st_size if task.end is None else task.end
    for piece in pieces(path, task.start, task.allow_truncated, whole, task.listed):
        data, begin, start = piece.data, place + len(rest), 0
        is_last = is_last or (task.end is not None and piece.stream >= task.end)
        if rest or skip or is_last:
            start = data.find(b"\n") + 1
            if start and not skip:
                yield place, rest + data[:start], 0, len(rest) + start
            if start and is_last:
                return
        if start or not (rest or skip or is_last):  # a line begins at start
            end = max(start, data.rfind(b"\n") + 1)
            if start < end:
                yield begin + start, data, start, end
            rest, place, skip = data[end:], begin + end, False
        else:
            rest += data
        if len(rest) > MAX_LINE:
            raise InputError(
                f"{task.file}: a line longer than {MAX_LINE >> 20} MB at byte {place} of what the stream at byte "
                f"{task.start} decodes to: not a Wikidata JSON dump, or a damaged one"
            )
    if rest and not skip:
        yield place, rest + b"\n", 0, len(rest) + 1


def run(task: ExtractTask, folder: Path) -> Report:
    """Read one range; every entity and statement is counted, with the reason where it is dropped.

    Raises InputError for what is no Wikidata dump, and for a line that is not one entity in JSON, but where it is the
    last of all and may be cut.
    """
    reader = EntityReader(task.wiki, task.language)
    base = _Base(folder.parent / task.base.name, reader) if task.base is not None else None
    size = 0
    seen = (task.generation << 52) + (task.index << 36)  # no two layers of an extract share one
    name = f"{task.index:05d}"
    with (
        Buckets(folder, "facts", name) as facts,
        Buckets(folder, "entities", name) as entities,
        ParquetWriter(folder / f"kept-{name}.parquet", KEPT, rows=KEPT_ROWS, plain=PLAIN["kept"]) as kept_file,
        ParquetWriter(folder / f"properties-{name}.parquet", PROPERTIES) as properties_file,
    ):
        rows, kept = _Rows(facts, entities), _Kept(kept_file)
        reading = _Reading(task, reader, rows, properties_file)
        for place, data, start, end in texts(task):
            size += end - start
            offset = place - start
            while start < end:
                in_list = reading.in_list()
                unread = (
                    base.others(data, start, end, kept) if base is not None and in_list else _ends(data, start, end)
                )
                start = end
                for begin, stop in unread:
                    reading.read(data[begin:stop].strip(), offset + begin, seen)
                    seen += 1
                    if reading.in_list() != in_list:  # what follows may be of base now, or no more
                        start = stop + 1
                        break
            if len(kept.numbers) + len(kept.digests) >= ROWS:
                kept.write()
        rows.end()
        kept.write()
    wrote = [*facts.wrote, *entities.wrote]
    for file in (kept_file, properties_file):
        if file.rows_written:
            wrote.append(file.path)
        else:
            file.path.unlink()
    reading.end()
    return {
        "entities": {**reading.counts, "items": reading.counts["items"] + kept.items, "dropped": reading.dropped},
        "statements": {**rows.statements, "dropped": rows.dropped},
        "bytes": {"json": size},
        "kept": {"items": kept.items},  # their statements are in the reports of the stage that links base's files
        # the ] may stand at the end of any range, so that all reports together tell whether it was there
        "closed": {
            "files": int(reading.closed),
            "excerpt": int(not reading.closed and task.end is None and _one_whole_stream(task)),
        },
        "wrote": wrote,
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


def files(folder: Path, table: str, first: int = 0, end: int = BUCKETS) -> list[Path]:
    """The Parquet files of a table in an extract's folder: those read first, then those of base, by generation.

    Of ``facts`` and ``entities`` these are the files that can have rows of buckets [first, end). Not all rows count;
    module buckets tells. None of the files is empty.
    """
    found: list[Path] = []
    for place in (folder, folder / "carried"):
        listed = os.listdir(place) if place.is_dir() else []  # noqa: PTH208 - of thousands, paths take far longer
        names = sorted(name for name in listed if name.startswith(f"{table}-") and name.endswith(".parquet"))
        if end - first < BUCKETS:
            names = [name for name in names if has_buckets(name, first, end)]
        found += [place / name for name in names]
    return found


def has_buckets(name: str, first: int, end: int) -> bool:
    """Whether a file of ``facts`` or ``entities`` can have rows of buckets [first, end)."""
    part = name.removesuffix(".parquet").rpartition("-")[2]
    return part == "all" or (int(part) * FILE_BUCKETS < end and first < (int(part) + 1) * FILE_BUCKETS)


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


class _Reading:
    """The lines of a range that must be read, one after another, and what they were."""

    def __init__(self, task: ExtractTask, reader: EntityReader, rows: _Rows, properties: ParquetWriter) -> None:
        self._task, self._reader, self._rows, self._properties = task, reader, rows, properties
        self.counts = {"items": 0, "properties": 0}
        self.dropped: dict[str, int] = {}
        self.closed, self._opened, self._bad = False, task.start > 0, ""

    def in_list(self) -> bool:
        """Whether an entity may come now."""
        return self._opened and not self.closed and not self._bad

    def read(self, text: bytes, place: int, seen: int) -> None:
        """Read a line, without the white space around it."""
        file, size = self._task.file, len(text)
        if self._bad:
            raise InputError(self._bad)
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
        if text.endswith(b"}]"):  # on the last entity's line
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
            self._bad = (
                f"{file}: line at byte {place} of what the stream at byte {self._task.start} decodes to: "
                f"not one entity in JSON: {error}"
            )
            return
        if entity.kind == "property":
            self.counts["properties"] += 1
            self._properties.write(
                {"p": entity.number, "lastrevid": entity.lastrevid, "label": entity.label, "seen": seen}
            )
            return
        self.counts["items"] += 1
        self._rows.add(entity, seen, size)

    def end(self) -> None:
        """There is no more; only the last line of all can be cut."""
        if self._bad and not (self._task.allow_truncated and self._task.end is None):
            raise InputError(self._bad)
        if self._bad:
            self.dropped["cut_line"] = 1


class _Base:
    """What another extract knows of a dump's lines."""

    def __init__(self, folder: Path, reader: EntityReader) -> None:
        self._revisions = Revisions(folder / "revisions", _may_be_checked)
        self._reader = reader

    def others(self, data: bytes, start: int, end: int, kept: _Kept) -> Iterator[tuple[int, int]]:
        """Where each line of the part [start, end) of a text begins and ends whose item is not here.

        The items of the lines before it are noted by then. Lines' ends are looked at together: one after another, each
        with what lies between them, they are more than a processor's cache holds.
        """
        at_hand, add = self._revisions.at_hand.get, kept.numbers.append
        first = _START.match(data, start, end)
        number = int(first[1]) if first is not None else 0
        for stop, (revision, following) in _seams(data, start, end):
            known = at_hand(number) if revision else None
            if known is None:
                if not self._has(data, start, stop, kept):
                    yield start, stop
            elif known == int(revision):
                add(number)
            else:
                yield start, stop
            number, start = int(following or 0), stop + 1

    def _has(self, data: bytes, start: int, end: int, kept: _Kept) -> bool:
        """Whether the item of any one line is here; one that is checked is parsed for its digest."""
        tail = TAIL.search(data, max(start, end - TAIL_LENGTH), end)
        if tail is None or (head := HEAD.match(data, start, end)) is None:
            return False
        number = int(head[1])
        if self._revisions.of(number) != int(tail[1]):
            return False
        if not checked(number):
            kept.numbers.append(number)
            return True
        try:
            entity = self._reader.read(data[start:end].strip().removesuffix(b","))
        except (NotAnEntity, msgspec.DecodeError):
            return False
        kept.digests.append((number, digest(entity)))
        return True


def _seams(data: bytes, start: int, end: int) -> Iterable[tuple[int, tuple[bytes, bytes]]]:
    """Where each line of a part of a text ends, its item's revision and the number of the next one's item.

    They are empty where a line must be looked at more closely.
    """
    find, stops, at = data.find, [], start
    while at < end and (stop := find(b"\n", at)) - at >= _BEFORE:
        stops.append(stop)
        at = stop + 1
    if at == end:  # of lines that long, the end of each is one seam at most, and begins behind the one before
        found = _SEAM.findall(b"".join([data[stop - _BEFORE : stop + _BEHIND] for stop in stops]))
        if len(found) == len(stops):
            return zip(stops, found, strict=True)
    return ((stop, (b"", b"")) for _, stop in _ends(data, start, end))


class _Kept:
    """Items that base has, on their way into a file."""

    def __init__(self, file: ParquetWriter) -> None:
        self._file = file
        self.items = 0
        self.numbers = array("q")
        self.digests: list[tuple[int, str]] = []  # of others, which were parsed

    def write(self) -> None:
        """Pass on what is held."""
        numbers = np.concatenate([np.array(self.numbers), _integers([number for number, _ in self.digests])])
        digests = pa.array((digest for _, digest in self.digests), pa.string())
        buckets = (numbers % BUCKETS).astype(np.int32)
        found = pa.table(
            [buckets, numbers, pa.concat_arrays([pa.nulls(len(self.numbers), pa.string()), digests])], schema=KEPT
        )
        self._file.write_table(found.take(pa.array(np.argsort(buckets.astype(np.uint8), kind="stable"))))
        self.items += len(numbers)
        self.numbers, self.digests = array("q"), []


def checked(number: int) -> bool:
    """Whether an item has a digest: always the same few, whatever the dump."""
    return (number * 0x9E3779B1 >> 8) % CHECKED == 0


def _may_be_checked(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Which of some items can have a digest: those that have one, and those whose numbers are too large to tell."""
    found: npt.NDArray[np.bool_] = ((numbers * 0x9E3779B1 >> 8) % CHECKED == 0) | (numbers >= 1 << 31)
    return found


def digest(entity: Entity) -> str:
    """A short name for all that an extract holds of an item."""
    return fingerprint(entity.label, entity.title, entity.dropped, entity.statements)


class _Rows:
    """Rows on their way into an extract's files."""

    def __init__(self, facts: Buckets, entities: Buckets) -> None:
        self._facts, self._entities = facts, entities
        self.statements = {"facts": 0, "not_best_rank": 0}
        self.dropped: dict[str, int] = {}
        self._start()

    def _start(self) -> None:
        # the values of all rows, one after another: lists of rows would take more memory and longer
        self._of_entities: list[Any] = []
        self._of_facts: list[Any] = []
        self._size = 0

    def add(self, entity: Entity, seen: int, size: int) -> None:
        """An item that was read from a line of ``size`` bytes."""
        statements, number = entity.statements, entity.number
        self._of_entities += (
            number,
            entity.lastrevid,
            entity.label,
            entity.title,
            seen,
            len(statements),
            entity.dropped,
            digest(entity) if checked(number) else None,
        )
        self._of_facts.extend(chain.from_iterable(statements))
        self._size += size
        if len(self._of_entities) + len(self._of_facts) >= _CHUNK or self._size >= _LINES:
            self.end()

    def end(self) -> None:
        """Pass on what is held."""
        items, revisions, labels, titles, readings, lengths, reasons, digests = _columns(self._of_entities, 8)
        of_relation, of_object, of_best, *others = _columns(self._of_facts, len(Statement._fields))
        self._start()
        numbers, seen, counts = _integers(items), _integers(readings), _integers(lengths)
        relations, objects, best = _integers(of_relation), _integers(of_object), np.array(of_best, bool)
        whose = np.repeat(np.arange(len(numbers)), counts)
        untitled = np.array([title is None for title in titles], bool)
        facts = np.bincount(whose[best], minlength=len(numbers))
        classes = best & (relations == INSTANCE_OF)
        of, first = np.unique(whose[classes], return_index=True)
        class_of, unknown = np.zeros(len(numbers), np.int64), np.ones(len(numbers), bool)
        class_of[of], unknown[of] = objects[classes][first], False
        self.statements["facts"] += int(facts.sum())
        self.statements["not_best_rank"] += len(best) - int(facts.sum())
        dropped: dict[str, Any] = {reason: [counts_of.get(reason, 0) for counts_of in reasons] for reason in DROPPED}
        for reason, column in dropped.items():
            if any(column):
                self.dropped[reason] = self.dropped.get(reason, 0) + sum(column)
        self._entities.add(
            numbers,
            lastrevid=revisions,
            label=labels,
            title=[None if title is None else title_hash(title) for title in titles],
            **{"class": pa.array(class_of, mask=unknown)},
            seen=seen,
            facts=facts,
            not_best_rank=counts - facts,
            **dropped,
            digest=digests,
        )
        self._facts.add(
            numbers[whose],
            apart=untitled[whose],
            p=relations,
            o=objects,
            best=best,
            **dict(zip(Statement._fields[3:], others, strict=True)),
            seen=seen[whose],
        )


def _columns(values: list[Any], columns: int) -> list[list[Any]]:
    return [values[column::columns] for column in range(columns)]


def _integers(values: list[int]) -> npt.NDArray[np.int64]:
    return np.array(values, np.int64)


class Buckets:
    """Rows of a table on their way into Parquet files, in whose row groups there are few buckets each.

    Small ones share a row group with their neighbours, as each takes time of its own to write and to read; but rows
    that are ``apart`` have other row groups than those that are not. Within a bucket either stay in the order they
    came. A file is written only if there are rows for it.
    """

    def __init__(self, folder: Path, table: str, name: str) -> None:
        self._stem, self._plain = folder / f"{table}-{name}", PLAIN[table]
        self.schema = {"facts": FACTS, "entities": ENTITIES}[table]
        self._files: dict[str, ParquetWriter] = {}
        self._in_one = False
        self._open = contextlib.ExitStack()
        self._held: list[list[pa.Table]] = [[] for _ in range(2 * BUCKETS)]  # then those apart
        self._rows = self._size = 0

    @property
    def wrote(self) -> list[Path]:
        """The files with rows."""
        return [file.path for file in self._files.values()]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            try:
                self._flush()
            except BaseException as problem:
                self._open.__exit__(type(problem), problem, problem.__traceback__)
                raise
        self._open.__exit__(kind, error, trace)

    def add(self, subjects: npt.NDArray[np.int64], apart: npt.NDArray[np.bool_] | None = None, **columns: Any) -> None:
        """Add rows of these columns."""
        columns |= {"bucket": (subjects % BUCKETS).astype(np.int32), "s": subjects}
        table = pa.table([pa.array(columns[field.name], field.type) for field in self.schema], self.schema)
        self.add_table(table, apart)

    def add_table(self, table: pa.Table, apart: npt.NDArray[np.bool_] | None = None) -> None:
        """Add the rows of a table."""
        places = table["bucket"].to_numpy().astype(np.uint8)
        if apart is not None:
            places += np.uint8(BUCKETS) * apart
        order = np.argsort(places, kind="stable")
        table = table.take(pa.array(order))
        starts = np.searchsorted(places[order], np.arange(2 * BUCKETS + 1))
        for held, (first, end) in zip(self._held, pairwise(starts.tolist()), strict=True):
            if end > first:
                held.append(table.slice(first, end - first))
        self._rows += table.num_rows
        self._size += table.nbytes
        if self._rows >= ROWS or self._size >= _SIZE:
            self._flush()

    def _flush(self) -> None:
        """Write what is held, by bucket."""
        if not self._files:
            self._in_one = self._rows < FEW
        for first in range(0, 2 * BUCKETS, FILE_BUCKETS):
            group: list[pa.Table] = []
            for held in self._held[first : first + FILE_BUCKETS]:
                rows = sum(table.num_rows for table in [*group, *held])
                if group and rows > GROUP_ROWS:
                    self._write(group, first)
                    group = []
                group += held
                held.clear()
            if group:
                self._write(group, first)
        self._rows = self._size = 0

    def _write(self, group: list[pa.Table], place: int) -> None:
        part = "all" if self._in_one else f"{place % BUCKETS // FILE_BUCKETS}"
        if part not in self._files:
            path = self._stem.with_name(f"{self._stem.name}-{part}.parquet")
            deltas = [name for name in self._plain if name in DELTAS]
            small = [name for name in self.schema.names if name not in self._plain or name in deltas]
            file = ParquetWriter(path, self.schema, rows=ROWS, plain=self._plain, deltas=deltas, small=small)
            self._files[part] = self._open.enter_context(file)
        self._files[part].write_table(pa.concat_tables(group).combine_chunks())
