"""What a build will take, before it runs: tasks, CPU time, wall time and disk of every stage.

A little of each dump is decoded, read and cleaned here and now; that tells how the dump is compressed, what is in it,
and how fast this machine is. The rest are the factors below. Nothing is written.
"""

from __future__ import annotations

import bz2
import contextlib
import functools
import hashlib
import json
import re
import shutil
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from isal.igzip_lib import DECOMP_GZIP, IgzipDecompressor

from temporalwiki.builders import checksums, incremental
from temporalwiki.builders.build import UNCHANGED_PAGES, BuildOptions, Sources, WorkFolder, check_folders
from temporalwiki.builders.inspection import table
from temporalwiki.builders.machine import Machine
from temporalwiki.builders.snapshot import Dump
from temporalwiki.builders.streams import DAMAGE, compression, split
from temporalwiki.builders.wikidata import extract as wikidata_extract
from temporalwiki.builders.wikidata import fact_diff as wikidata_diff
from temporalwiki.builders.wikidata import unchanged_items
from temporalwiki.builders.wikidata.entities import EntityReader, NotAnEntity
from temporalwiki.builders.wikipedia import extract as wiki_extract
from temporalwiki.builders.wikipedia import sentence_diff as wiki_diff
from temporalwiki.builders.wikipedia.plain_text import UnreadablePage
from temporalwiki.builders.wikipedia.sentences import article_sentences
from temporalwiki.builders.wikipedia.xml_dump import read_header, unescape

CHANGED = 0.05  # share of the pages and of the items that a month changes: as good as nothing else is known before

# What is sampled: so many places of a dump, so many compressed bytes of each.
_PLACES = 6
_BYTES = {"bz2": 768 << 10, "gz": 1 << 20, "plain": 4 << 20}
_SEARCHED = 256 << 20  # bytes of a file that was not cut in which other streams are looked for: it may have but one
_MOST = 32 << 20  # decompressed bytes of a place: a bomb shall not hold up a plan
_STEP = 16 << 10
_CLEANED = 1 << 20  # bytes of wikitext that are made into sentences

# CPU time beside what was measured on the sample: of decoding (a), of making sentences of a text (b), of reading JSON
# (c). Fitted to the stages of builds with one job; `python benchmarks/plan.py` prints plans beside builds.
_READ_XML = 0.15  # wiki-extract, of (b)
_SKIM = 0.35  # of that, for pages that did not change
_READ_EXTRACTS = 0.02  # wiki-diff of pages that did not change, of (b)
_COMPARE = 1.2  # wiki-diff of pages that did, and of those whose whole text is written, of (b)
_ALIGN = 0.15  # align, of (b) of the pages that changed
_FIND_LINES = 0.3  # wikidata-extract, of (a)
_WRITE_FACTS = 0.3  # wikidata-extract of items that changed, of (c)
_INDEX = 0.003  # wikidata-index, of (c) of prev
_CARRY = 0.005  # wikidata-carry, of (c) of the items that did not
_LABELS = 0.007  # wikidata-labels, of (c) of both dumps
_JOIN = 0.045  # wikidata-diff, of (c) of both dumps
_TABLE = 20.0  # page-props, of the time of its checksum
_FINISH = 0.14  # finish and install, of (b) of what is written
_START = 0.1  # seconds: what DuckDB, or making the card, takes at least in a task

# Bytes on disk: of a row in an extract, and shares of wikitext as an extract holds it.
_FACT, _ENTITY, _PAGE, _ARTICLE, _KEPT, _REVISION, _SUPERSEDED, _LABEL = 30, 24, 9, 32, 4, 8, 1, 30
_NEW = 0.15  # of the wikitext of pages that changed: the sentences that are new, and those that are gone
_PLAIN = 0.38  # of the wikitext of pages whose whole text is written
_CANDIDATE = 0.1  # bytes a fact in wikidata-diff and align, at the default share of unchanged facts


@dataclass(frozen=True)
class Stage:
    """One stage of a build to come; seconds, and bytes on disk, are of what is left to do."""

    name: str
    tasks: int
    kept: int  # tasks that an earlier build has done
    cpu: float
    longest: float  # seconds of its longest task
    work: float = 0  # bytes that it will write to the work folder
    out: float = 0  # bytes that it will write to the dataset folder
    dump: str = ""  # its date, where the stage reads one
    read: int | None = None  # bytes of dumps, where it reads them: all, whatever is kept

    def wall(self, jobs: int) -> float:
        """Seconds with so many jobs."""
        return max(self.longest, self.cpu / max(1, min(jobs, self.tasks)))


@dataclass(frozen=True)
class Estimate:
    """All stages of a build to come, and where it would write."""

    stages: tuple[Stage, ...]
    jobs: int
    out: Path
    work: Path
    free: Mapping[Path, int]  # bytes, of the disks of both folders
    one_disk: bool

    @property
    def cpu(self) -> float:
        """CPU seconds."""
        return sum(stage.cpu for stage in self.stages)

    @property
    def wall(self) -> float:
        """Seconds."""
        return sum(stage.wall(self.jobs) for stage in self.stages)

    @property
    def bound(self) -> float:
        """Seconds that it takes with any number of jobs: the longest task of every stage."""
        return sum(stage.longest for stage in self.stages)

    def disk(self, folder: Path) -> float:
        """Bytes that will be written to ``work`` or to ``out``. Nothing is deleted on the way, so the peak, too."""
        return sum(stage.work if folder == self.work else stage.out for stage in self.stages)

    @property
    def disks(self) -> list[tuple[str, float, int]]:
        """For each disk what is on it, how many bytes will be written there, and how many are free."""
        work, out = self.disk(self.work), self.disk(self.out)
        if self.one_disk:
            return [(f"{self.work} and {self.out}", work + out, self.free[self.work])]
        return [(str(self.work), work, self.free[self.work]), (str(self.out), out, self.free[self.out])]

    @property
    def lacking(self) -> list[str]:
        """What is on disks that are too small."""
        return [folders for folders, size, free in self.disks if size > free]


def estimate(
    sources: Sources, out: Path, work: Path, options: BuildOptions | None = None, machine: Machine | None = None
) -> Estimate:
    """Reckon what ``build`` with the same arguments would take, what it finds done in ``work`` left out.

    Takes a few CPU seconds and writes nothing. Raises InputError for dumps and folders that cannot be used.
    """
    options, machine = options or BuildOptions(), machine or Machine()
    out, work = check_folders(out, work)
    disks = {folder: next(at for at in (folder, *folder.parents) if at.is_dir()) for folder in (work, out)}
    return Estimate(
        stages=tuple(_stages(sources, work, options)),
        jobs=machine.jobs,
        out=out,
        work=work,
        free={folder: shutil.disk_usage(disk).free for folder, disk in disks.items()},
        one_disk=len({disk.stat().st_dev for disk in disks.values()}) == 1,
    )


def describe_plan(plan: Estimate) -> str:
    """What a build will take, stage by stage, and whether there is room for it."""
    rows: list[Sequence[str]] = [("stage", "dump", "MB", "tasks", "kept", "CPU", "time", "MB in work", "MB in out")]
    for stage in plan.stages:
        read = "" if stage.read is None else f"{stage.read / 1e6:,.1f}"
        counts = (f"{stage.tasks:,}", f"{stage.kept:,}" if stage.kept else "")
        times = (_time(stage.cpu), _time(stage.wall(plan.jobs)))
        disk = tuple(f"{size / 1e6:,.1f}" if size else "" for size in (stage.work, stage.out))
        rows.append((stage.name, stage.dump, read, *counts, *times, *disk))
    disk = (f"{plan.disk(plan.work) / 1e6:,.1f}", f"{plan.disk(plan.out) / 1e6:,.1f}")
    rows.append(("all", "", "", "", "", _time(plan.cpu), _time(plan.wall), *disk))
    longest = max(plan.stages, key=lambda stage: stage.longest)
    lines = [
        *table(rows),
        "",
        f"time: with --jobs {plan.jobs}, if the disks keep up; {_time(plan.bound)} on any number of cores, "
        f"as the longest task of {longest.name} takes {_time(longest.longest)}",
        f"assumed: {CHANGED:.0%} of the pages and of the items have changed; wiki-diff, wikidata-diff and align have "
        "about as many tasks",
    ]
    for folders, size, free in plan.disks:
        lines.append(f"{folders}: {size / 1e6:,.1f} MB are to be written, {free / 1e6:,.1f} MB are free")
    return "\n".join([*lines, *(f"warning: too little room in {folders}" for folders in plan.lacking)])


def _time(seconds: float) -> str:
    """Seconds in a unit that people think in."""
    if seconds < 100:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 100 * 60 else f"{seconds / 3600:.1f} h"


def _stages(sources: Sources, work: Path, options: BuildOptions) -> Iterator[Stage]:
    """All stages in order, by the names that the manifest has for them."""
    hashed = checksums.plan(sources.files)
    reports = checksums.known(work / "checksums", hashed)
    sha1 = {file: reports[task]["sha1"] for file, task in zip(sources.files, hashed, strict=True) if task in reports}
    work_folder = WorkFolder(work, sources, options, sha1)
    interval, truncated = sources.interval, options.allow_truncated
    prev, recent = (
        _look_at_text(wiki_extract.plan(dump, interval.wiki, truncated), interval.language)
        for dump in (sources.prev, sources.recent)
    )
    items_prev, items_recent = (
        _look_at_items(wikidata_extract.plan(dump, interval.wiki, interval.language, truncated))
        for dump in (sources.wikidata_prev, sources.wikidata_recent)
    )

    def place(files: Sequence[Path], find: Callable[[], Path]) -> Path | None:
        """A stage's folder; None as long as it has no name, which checksums make."""
        return find() if sha1.keys() >= set(files) else None

    def stage(
        name: str, tasks: int, folder: Path | None, cpu: float, longest: float, exact: bool = False, **more: Any
    ) -> Stage:
        there = _recorded(folder)
        if there is not None and not exact:
            tasks = there.tasks
        kept = there.done if there is not None and there.tasks == tasks else 0
        left = 1 - kept / max(1, tasks)
        disk = {at: more.pop(at, 0.0) * left for at in ("work", "out")}
        return Stage(name, tasks, kept, cpu * left, longest * bool(left), **disk, **more)

    def extract(name: str, dump: Dump, sizes: Sequence[int], folder: Path | None, cpu: float, work: float) -> Stage:
        longest = cpu * max(sizes) / sum(sizes)
        return stage(name, len(sizes), folder, cpu, longest, exact=True, work=work, dump=dump.date, read=sum(sizes))

    sizes = [task.size for task in hashed]
    left = [task.size for task in hashed if task not in reports]
    a_byte = recent.hash / sum(recent.sizes)
    yield Stage(
        "checksums",
        len(sizes),
        len(sizes) - len(left),
        cpu=a_byte * sum(left),
        longest=a_byte * max(left, default=0),
        read=sum(sizes),
    )
    folder = None
    for side, dump, text in (("prev", sources.prev, prev), ("recent", sources.recent, recent)):
        base = None
        if side == "recent":  # the text of what has the same revision in prev is not read, but linked
            base = incremental.Base("prev", 0, "")
            if folder is not None and incremental.is_finished(folder):
                base = incremental.base_of(folder)
        folder = place(dump.files, functools.partial(work_folder.articles, dump))
        new = 1.0 if base is None else CHANGED
        cpu = _READ_XML * text.clean * text.text / max(1.0, text.wikitext) * (new + (1 - new) * _SKIM)
        disk = text.packed * new + text.pages * _PAGE + text.articles * _ARTICLE
        yield extract(f"wiki-extract {side}", dump, text.sizes, folder, text.decode + cpu, disk)
    folder = None
    for side, dump, items in (
        ("prev", sources.wikidata_prev, items_prev),
        ("recent", sources.wikidata_recent, items_recent),
    ):
        base = None
        if side == "recent":  # what has the same revision in prev is not read, but carried over
            base, within = incremental.Base("prev", 0, ""), folder / "revisions" if folder else None
            if folder is not None and incremental.is_finished(folder):
                base = incremental.base_of(folder)
        if base is not None:
            cpu = _INDEX * items_prev.parse
            count = len(unchanged_items.plan(int(items_prev.items), base))
            yield stage("wikidata-index", count, within, cpu, cpu / count, work=_REVISION * items_prev.items)
            base = base if items_prev.revised else None
        folder = place(dump.files, functools.partial(work_folder.facts, dump))
        if folder is not None:
            base = incremental.finished_with(folder, items.tasks, base)
        carried = (1 - CHANGED) * items.revised if base is not None else 0.0
        cpu = items.decode * (1 + _FIND_LINES) + items.parse * (1 + _WRITE_FACTS) * (1 - carried)
        disk = items.facts * _FACT + items.items * _ENTITY
        read = disk * (1 - carried) + items.items * _KEPT * carried
        yield extract(f"wikidata-extract {side}", dump, items.sizes, folder, cpu, read)
        if base is not None:
            within = folder / "carried" if folder else None
            count = len(unchanged_items.plan(int(items.items), base))
            cpu = _CARRY * items.parse * carried + _START * count  # its files are linked
            yield stage(f"wikidata-carry {side}", count, within, cpu, cpu / count, work=_SUPERSEDED * items.items)
    if sources.page_props is not None:
        size = sources.page_props.stat().st_size
        folder = place([sources.page_props], functools.partial(work_folder.page_items, sources.page_props))
        cpu = a_byte * size * _TABLE
        yield stage("page-props", 1, folder, cpu, cpu, work=size / 4, dump=interval.recent, read=size)

    own = place(sources.files, work_folder.interval)
    folders = {
        name: own / name if own else None for name in ("wiki-diff", "wikidata-labels", "wikidata-diff", "align")
    }
    whole = 1.0 if "wikipedia" in options.include else min(1.0, UNCHANGED_PAGES / max(1.0, recent.articles))
    changed = CHANGED * (prev.clean + recent.clean)
    written = CHANGED * _NEW * (prev.packed + recent.packed) + whole * _PLAIN * recent.packed
    cpu = _READ_EXTRACTS * (prev.clean + recent.clean) + _COMPARE * (changed + whole * recent.clean)
    ranges = max(1, round(recent.wikitext / wiki_diff.RANGE))
    yield stage("wiki-diff", ranges, folders["wiki-diff"], cpu, cpu / ranges, work=written)
    cpu = _LABELS * (items_prev.parse + items_recent.parse)
    buckets = wikidata_diff.count_tasks(int(items_recent.facts))
    yield stage(
        "wikidata-labels", buckets, folders["wikidata-labels"], cpu, cpu / buckets, work=_LABEL * items_recent.items
    )
    cpu = _JOIN * (items_prev.parse + items_recent.parse) + _START * buckets
    disk = _CANDIDATE * items_recent.facts
    yield stage("wikidata-diff", buckets, folders["wikidata-diff"], cpu, cpu / buckets, work=disk)
    yield stage("align", ranges, folders["align"], _ALIGN * changed, _ALIGN * changed / ranges, work=disk)
    cpu = _FINISH * (changed * _NEW + whole * recent.clean) + _START
    yield stage("finish", 1, None, cpu, cpu, work=written + disk)
    yield stage("install", 1, None, _START, _START, out=written + disk)


class _Recorded(NamedTuple):
    tasks: int
    done: int


def _recorded(folder: Path | None) -> _Recorded | None:
    """What is there of a stage that was begun in a folder."""
    if folder is None or not folder.is_dir():
        return None
    try:
        tasks = int(json.loads((folder / "stage.json").read_text("utf-8"))["tasks"])
        return _Recorded(tasks, sum(1 for _ in (folder / "executor" / "completions").iterdir()))
    except (OSError, ValueError, KeyError, TypeError):
        return None


@dataclass
class _Dump:
    """A dump, reckoned from a sample of it; seconds are of the CPU, bytes are of the whole dump."""

    sizes: list[int]  # compressed, by task
    text: float  # decompressed
    decode: float  # seconds to decompress it
    hash: float  # seconds to check its checksum
    samples: list[bytes]
    share: float  # how many times as large as the samples it is


def _look_at(tasks: Sequence[incremental.Task]) -> _Dump:
    """Decompress a little of a dump in several places."""
    sizes = incremental.sizes(tasks)
    picked = [tasks[(2 * i + 1) * len(tasks) // (2 * _PLACES)] for i in range(_PLACES)]
    starts = list(dict.fromkeys((Path(task.file), task.start) for task in picked))
    if len(tasks) == 1 and sizes[0] <= _SEARCHED:
        [(path, _)] = starts
        starts = [(path, at) for at in split(path, max(_BYTES["bz2"], sizes[0] // _PLACES))]
    compressed, rates, hashing = 0, [], 0.0
    samples: list[bytes] = []
    for path, start in starts:
        with path.open("rb") as file:
            file.seek(start)
            data = file.read(_BYTES[compression(path)])
        begun = time.process_time()
        hashlib.sha1(data, usedforsecurity=False)
        middle = time.process_time()
        part = _decompressed(data, compression(path))
        hashing += middle - begun
        rates.append((time.process_time() - middle) / max(1, part.fed))
        compressed += part.used
        samples.append(part.text)
    share = sum(sizes) / max(1, compressed)
    read = sum(map(len, samples))
    # the middle one: what else runs on the machine comes and goes
    return _Dump(sizes, share * read, sum(sizes) * statistics.median(rates), share * hashing, samples, share)


class _Part(NamedTuple):
    fed: int  # compressed bytes that a decoder was given
    used: int  # those of them that came out
    text: bytes


def _decompressed(data: bytes, kind: str) -> _Part:
    """What the start of one or more streams decodes to, as far as it is whole and in bounds."""
    if kind == "plain":
        return _Part(len(data), len(data), data)
    out: list[bytes] = []
    at = used = size = 0
    decoder: Any = None
    with contextlib.suppress(*DAMAGE):  # the build will tell of it
        while size < _MOST and (at < len(data) or (decoder is not None and not decoder.needs_input)):
            decoder = decoder or (bz2.BZ2Decompressor() if kind == "bz2" else IgzipDecompressor(flag=DECOMP_GZIP))
            step = data[at : at + _STEP] if decoder.needs_input else b""
            at += len(step)
            piece = decoder.decompress(step, 1 << 20)
            if decoder.eof:
                at -= len(decoder.unused_data)
                decoder = None
            if piece:  # a block of bz2 comes out when all of it has gone in
                out.append(piece)
                size, used = size + len(piece), at
    return _Part(at, used, b"".join(out))


@dataclass
class _Text(_Dump):
    pages: float = 0
    articles: float = 0
    wikitext: float = 0  # bytes, of articles
    packed: float = 0  # bytes of it as an extract has it
    clean: float = 0  # seconds to make sentences of it


_WIKITEXT = re.compile(rb"<text[^<>]*>([^<]*)</text>")


def _look_at_text(tasks: Sequence[incremental.Task], language: str) -> _Text:
    """What a Wikipedia dump holds."""
    found = _look_at(tasks)
    articles: list[bytes] = []
    pages = 0
    for sample in found.samples:
        _, *starts = sample.split(b"<page>")
        pages += len(starts)
        for page in starts:
            if (
                b"<ns>0</ns>" in page[:2000]
                and b"<redirect " not in page[:4000]
                and (texts := _WIKITEXT.findall(page))
            ):
                articles.append(texts[-1])  # of a history the last
    size = sum(map(len, articles))
    namespaces = read_header(Path(tasks[0].file)).namespaces
    chosen = articles[:: max(1, size // _CLEANED)]
    rates = []
    groups = [chosen[:1], *(chosen[i::_PLACES] for i in range(_PLACES))]  # the first one loads what is needed
    for group in filter(None, groups):
        begun = time.thread_time()  # that of the process moves in ticks while the time limit of a page runs
        for text in group:
            with contextlib.suppress(UnreadablePage, UnicodeDecodeError):  # the build will tell of it
                article_sentences(unescape(text), language, namespaces)
        rates.append((time.thread_time() - begun) / sum(map(len, group)))
    return _Text(
        **vars(found) | {"samples": []},
        pages=found.share * pages,
        articles=found.share * len(articles),
        wikitext=found.share * size,
        packed=found.share * sum(len(wiki_extract.pack(text)) for text in articles),
        clean=found.share * size * statistics.median(rates[1:] or [0.0]),
    )


@dataclass
class _Items(_Dump):
    tasks: list[wikidata_extract.ExtractTask] = field(default_factory=list)
    items: float = 0
    facts: float = 0
    revised: float = 0  # share of the items that have a revision, by which the next dump's are known to be the same
    parse: float = 0  # seconds to read the JSON


def _look_at_items(tasks: list[wikidata_extract.ExtractTask]) -> _Items:
    """What a Wikidata dump holds."""
    found = _look_at(tasks)
    reader = EntityReader(tasks[0].wiki, tasks[0].language)
    items = facts = revised = read = 0
    rates = []
    for sample in found.samples:
        begun, before = time.process_time(), read
        lines = sample.split(b"\n")
        for line in lines[1:-1]:  # whole ones
            read += len(line) + 1
            with contextlib.suppress(NotAnEntity, msgspec.DecodeError):
                entity = reader.read(line.strip().removesuffix(b","))
                items += entity.kind == "item"
                facts += len(entity.statements)
                revised += entity.lastrevid > 0
        if read > before:
            rates.append((time.process_time() - begun) / (read - before))
    share = found.text / max(1, read)
    return _Items(
        **vars(found) | {"samples": []},
        tasks=tasks,
        items=share * items,
        facts=share * facts,
        revised=min(1.0, revised / max(1, items)),
        parse=found.text * statistics.median(rates or [0.0]),
    )
