"""Estimate what a build takes: tasks, CPU time, wall time and disk space of every stage. Nothing is written.

A small sample of each dump tells how it is compressed and what is in it. CPU times come from the newest manifest in
the dataset folder, scaled by the size of the dumps, or from the rates below.
"""

from __future__ import annotations

import bz2
import contextlib
import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from isal.igzip_lib import DECOMP_GZIP, IgzipDecompressor

from temporalwiki.base.errors import InputError
from temporalwiki.base.json_files import read_json
from temporalwiki.builders import checksums, incremental
from temporalwiki.builders.build import UNCHANGED_PAGES, BuildOptions, Sources, WorkFolder, check_folders
from temporalwiki.builders.inspection import table
from temporalwiki.builders.machine import Machine
from temporalwiki.builders.manifests import BuiltManifest, StageRun, read_manifests
from temporalwiki.builders.streams import DAMAGE, compression
from temporalwiki.builders.wikidata import extract as wikidata_extract
from temporalwiki.builders.wikidata import fact_diff, unchanged_items
from temporalwiki.builders.wikipedia import extract as wiki_extract
from temporalwiki.builders.wikipedia import sentence_diff

_REVISED = re.compile(rb'"lastrevid":\s*[1-9]')
CHANGED = 0.05  # share of pages and items that a month changes; nothing better is known before the build

_PLACES, _SAMPLE, _LARGEST = 6, 1 << 20, 32 << 20  # samples of a dump, and bytes of one: compressed, decompressed

# CPU seconds per decompressed byte, without decompression
_READ_XML, _SKIM_XML, _CLEAN, _FINISH = 1.5e-8, 5e-9, 6e-8, 8e-9
_READ_JSON, _JOIN = 3e-9, 1.2e-9
_HASH = 7e-10  # per compressed byte
_START = 0.1  # CPU seconds that a stage with a database takes at least

# bytes on disk per fact, item and page, and the share of an article's text that a changed page and a whole page take
_FACT, _ITEM, _PAGE, _NEW, _PLAIN = 30, 24, 32, 0.15, 0.38


@dataclass(frozen=True)
class Stage:
    """One stage of a build to come; CPU seconds and disk space are of the tasks that are not done yet."""

    name: str
    tasks: int
    kept: int  # tasks that an earlier build has done
    cpu: float
    longest: float  # seconds of the longest task
    work: float = 0  # bytes that it writes to the work folder
    out: float = 0  # bytes that it writes to the dataset folder
    dump: str = ""  # the date of the dump that it reads
    read: int | None = None  # bytes of that dump

    def wall(self, jobs: int) -> float:
        """Return the seconds that the stage takes with so many jobs."""
        return max(self.longest, self.cpu / max(1, min(jobs, self.tasks)))


@dataclass(frozen=True)
class Estimate:
    """All stages of a build to come, and the space on its disks."""

    stages: tuple[Stage, ...]
    jobs: int
    out: Path
    work: Path
    free: Mapping[Path, int]  # bytes, by folder
    one_disk: bool

    def total(self, field: str) -> float:
        """Return the sum of a field over all stages: CPU seconds, bytes in ``work`` or in ``out``."""
        return float(sum(getattr(stage, field) for stage in self.stages))

    @property
    def wall(self) -> float:
        """The seconds that the build takes."""
        return sum(stage.wall(self.jobs) for stage in self.stages)

    @property
    def disks(self) -> list[tuple[str, float, int]]:
        """The folders, the bytes to be written and the free bytes of each disk."""
        work, out = self.total("work"), self.total("out")
        if self.one_disk:
            return [(f"{self.work} and {self.out}", work + out, self.free[self.work])]
        return [(str(self.work), work, self.free[self.work]), (str(self.out), out, self.free[self.out])]


def estimate(
    sources: Sources, out: Path, work: Path, options: BuildOptions | None = None, machine: Machine | None = None
) -> Estimate:
    """Estimate what ``build`` with the same arguments takes, without the tasks that ``work`` has done.

    Takes a few CPU seconds. Raises InputError for dumps and folders that cannot be used.
    """
    options, machine = options or BuildOptions(), machine or Machine()
    out, work = check_folders(out, work)
    disks = {folder: next(at for at in (folder, *folder.parents) if at.is_dir()) for folder in (work, out)}
    return Estimate(
        stages=tuple(_stages(sources, work, options, _last_run(out, options))),
        jobs=machine.jobs,
        out=out,
        work=work,
        free={folder: shutil.disk_usage(disk).free for folder, disk in disks.items()},
        one_disk=len({disk.stat().st_dev for disk in disks.values()}) == 1,
    )


def describe_plan(plan: Estimate) -> str:
    """Return the plan as a table of stages, with the time and the disk space of the whole build."""
    rows: list[Sequence[str]] = [("stage", "dump", "MB", "tasks", "kept", "CPU", "time", "MB in work", "MB in out")]
    for stage in plan.stages:
        read, kept = "" if stage.read is None else _mb(stage.read), f"{stage.kept:,}" if stage.kept else ""
        times = (_time(stage.cpu), _time(stage.wall(plan.jobs)))
        disk = (_mb(size) if size else "" for size in (stage.work, stage.out))
        rows.append((stage.name, stage.dump, read, f"{stage.tasks:,}", kept, *times, *disk))
    sums = (_time(plan.total("cpu")), _time(plan.wall), _mb(plan.total("work")), _mb(plan.total("out")))
    rows.append(("all", "", "", "", "", *sums))
    lines = [
        *table(rows),
        "",
        f"time: with --jobs {plan.jobs}, if the disks keep up; {_time(plan.total('longest'))} on any number of cores",
        f"assumed: {CHANGED:.0%} of the pages and of the items have changed",
    ]
    for folders, size, free in plan.disks:
        lines.append(f"{folders}: {_mb(size)} MB will be written, {_mb(free)} MB are free")
    lacking = [folders for folders, size, free in plan.disks if size > free]
    return "\n".join([*lines, *(f"warning: too little room in {folders}" for folders in lacking)])


def _mb(size: float) -> str:
    return f"{size / 1e6:,.1f}"


def _time(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 100 * 60 else f"{seconds / 3600:.1f} h"


def _last_run(out: Path, options: BuildOptions) -> Mapping[str, StageRun]:
    """Return the cost of each stage of the folder's newest build with the same configs, or nothing."""
    for manifest in reversed(read_manifests(out)):
        if isinstance(manifest, BuiltManifest) and manifest.content["options"].get("include") == list(options.include):
            return manifest.run.stages
    return {}


class _Begun(msgspec.Struct):
    tasks: int


def _stages(sources: Sources, work: Path, options: BuildOptions, last: Mapping[str, StageRun]) -> Iterator[Stage]:
    """Yield all stages in order, with the names that the manifest has for them."""
    interval, truncated = sources.interval, options.allow_truncated
    hashed = checksums.plan(sources.files)
    known = checksums.known(work / "checksums", hashed)
    sha1 = {file: known[task]["sha1"] for file, task in zip(sources.files, hashed, strict=True) if task in known}
    work_folder = WorkFolder(work, sources, options, sha1)

    def place(files: Sequence[Path], find: Any, *arguments: Any) -> Path | None:
        """Return a stage's folder, or None while its name is unknown, because a checksum in it is missing."""
        return find(*arguments) if sha1.keys() >= set(files) else None

    def stage(
        name: str,
        tasks: int,
        folder: Path | None,
        cpu: float,
        dump: str = "",
        sizes: Sequence[int] = (),
        **disk: float,
    ) -> Stage:
        extract = "wikidata-extract recent" if "wikidata" in name else "wiki-extract recent"
        before, driver = last.get(name), last.get(extract)
        if before is not None and driver is not None and driver.mb:
            cpu = before.cpu_seconds * sum(of_dump[extract]) / 1e6 / driver.mb
        done = 0
        with contextlib.suppress(InputError, OSError):
            if folder is not None:
                begun = read_json(folder / "stage.json", _Begun).tasks
                tasks = tasks if sizes else begun
                done = sum(1 for _ in (folder / "executor" / "completions").iterdir()) if begun == tasks else 0
        left = 1 - done / tasks
        longest = cpu * (max(sizes) / sum(sizes) if sizes else 1 / tasks) * bool(left)
        written = {at: size * left for at, size in disk.items()}
        return Stage(name, tasks, done, cpu * left, longest, **written, dump=dump, read=sum(sizes) if sizes else None)

    dumps = {
        "wiki-extract prev": sources.prev,
        "wiki-extract recent": sources.recent,
        "wikidata-extract prev": sources.wikidata_prev,
        "wikidata-extract recent": sources.wikidata_recent,
    }
    of_dump, samples = dict[str, list[int]](), dict[str, _Sample]()
    for name, dump in dumps.items():
        tasks: Sequence[incremental.Task] = (
            wiki_extract.plan(dump, interval.wiki, truncated)
            if name.startswith("wiki-")
            else wikidata_extract.plan(dump, interval.wiki, interval.language, truncated)
        )
        of_dump[name], samples[name] = incremental.sizes(tasks), _sample(tasks)
    left = [task.size for task in hashed if task not in known]
    read = sum(task.size for task in hashed)
    cpus = _HASH * sum(left), _HASH * max(left, default=0)
    yield Stage("checksums", len(hashed), len(hashed) - len(left), *cpus, read=read)
    for side in ("prev", "recent"):
        name = f"wiki-extract {side}"
        text, folder = samples[name], place(dumps[name].files, work_folder.articles, dumps[name])
        new = 1.0 if side == "prev" else CHANGED  # unchanged articles are linked
        cpu = text.decode + text.size * (_READ_XML * new + _SKIM_XML * (1 - new))
        disk = text.packed * new + text.articles * _PAGE
        yield stage(name, len(of_dump[name]), folder, cpu, dumps[name].date, of_dump[name], work=disk)
    base: incremental.Base | None = None
    for side in ("prev", "recent"):
        name = f"wikidata-extract {side}"
        items, before = samples[name], samples["wikidata-extract prev"]
        if side == "recent":  # items with an unchanged revision are linked
            base = incremental.Base("prev", 0, "")
            if folder is not None and incremental.is_finished(folder):
                base = incremental.base_of(folder)
        if base is not None:
            count = len(unchanged_items.plan(int(before.items), base))
            yield stage("wikidata-index", count, folder and folder / "revisions", 0.0, work=8 * before.items)
            base = base if before.revised else None
        folder = place(dumps[name].files, work_folder.facts, dumps[name])
        if folder is not None:
            tasks = wikidata_extract.plan(dumps[name], interval.wiki, interval.language, truncated)
            base = incremental.finished_with(folder, tasks, base)
        new = 1.0 if base is None or not items.revised else CHANGED
        cpu = items.decode + items.size * _READ_JSON * new
        disk = (items.facts * _FACT + items.items * _ITEM) * new
        yield stage(name, len(of_dump[name]), folder, cpu, dumps[name].date, of_dump[name], work=disk)
        if base is not None:
            count = len(unchanged_items.plan(int(items.items), base))
            yield stage(f"wikidata-carry {side}", count, folder and folder / "carried", _START, work=items.items)
    if sources.page_props is not None:
        size = sources.page_props.stat().st_size
        folder = place([sources.page_props], work_folder.page_items, sources.page_props)
        yield stage("page-props", 1, folder, 20 * _HASH * size, interval.recent, [size], work=size / 4)

    own = place(sources.files, work_folder.interval)
    text, items = samples["wiki-extract recent"], samples["wikidata-extract recent"]
    whole = 1.0 if "wikipedia" in options.include else min(1.0, UNCHANGED_PAGES / max(1.0, text.articles))
    written = (2 * CHANGED * _NEW + whole * _PLAIN) * text.packed
    ranges, buckets = max(1, round(text.text / sentence_diff.RANGE)), fact_diff.count_tasks(int(items.facts))
    found = items.facts * 0.1  # candidates, at the usual share of unchanged facts
    for name, count, cpu, disk in (
        ("wiki-diff", ranges, _CLEAN * text.text * (2 * CHANGED + whole), written),
        ("wikidata-labels", buckets, _JOIN * items.size / 6, 30 * items.items),
        ("wikidata-diff", buckets, _JOIN * items.size, found),
        ("align", ranges, _CLEAN * text.text * CHANGED / 3, found),
    ):
        yield stage(name, count, own and own / name, cpu, work=disk)
    yield stage("finish", 1, None, _FINISH * text.text * (CHANGED + whole) + _START, work=written + found)
    yield stage("install", 1, None, _START, out=written + found)


@dataclass
class _Sample:
    """The estimated content of a dump, from samples of a few places."""

    decode: float = 0  # CPU seconds to decompress all of it
    size: float = 0  # decompressed bytes
    articles: float = 0
    text: float = 0  # bytes of articles
    packed: float = 0  # bytes of articles in an extract
    items: float = 0
    facts: float = 0
    revised: float = 0  # items with a revision


def _sample(tasks: Sequence[incremental.Task]) -> _Sample:
    found, used = _Sample(), 0
    picked = {tasks[(2 * i + 1) * len(tasks) // (2 * _PLACES)] for i in range(_PLACES)}
    for task in sorted(picked, key=lambda task: task.index):
        path = Path(task.file)
        with path.open("rb") as file:
            file.seek(task.start)
            data = file.read(_SAMPLE if task.end is None else min(_SAMPLE, task.end - task.start))
        begun = time.process_time()
        size, text = decompressed(data, compression(path))
        found.decode += time.process_time() - begun
        used, found.size = used + size, found.size + len(text)
        found.items += text.count(b'"type":"item"')
        found.facts += text.count(b'"mainsnak"')
        found.revised += len(_REVISED.findall(text))
        for page in text.split(b"<page>")[1:]:
            if b"<ns>0</ns>" in page[:2000] and b"<redirect " not in page[:4000]:
                found.articles += 1
                found.text += len(page)
                found.packed += len(wiki_extract.pack(page))
    share = sum(incremental.sizes(tasks)) / max(1, used)
    return _Sample(**{name: value * share for name, value in vars(found).items()})


def decompressed(data: bytes, kind: str) -> tuple[int, bytes]:
    """Decompress the start of a dump; return how many bytes that took, and the text, which may end in a block."""
    if kind == "plain":
        return len(data), data
    out: list[bytes] = []
    at = used = size = 0
    decoder: Any = None
    with contextlib.suppress(*DAMAGE):  # the build reports it
        while size < _LARGEST and (at < len(data) or (decoder is not None and not decoder.needs_input)):
            decoder = decoder or (bz2.BZ2Decompressor() if kind == "bz2" else IgzipDecompressor(flag=DECOMP_GZIP))
            step = data[at : at + (16 << 10)] if decoder.needs_input else b""
            at += len(step)
            piece = decoder.decompress(step, 1 << 20)
            if decoder.eof:
                at -= len(decoder.unused_data)
                decoder = None
            if piece:  # a bz2 block comes out when all of it has been read
                out.append(piece)
                size, used = size + len(piece), at
    return used, b"".join(out)
