"""From two snapshots to a dataset folder: the six stages of one interval, in order."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import math
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.base.files import only_one
from temporalwiki.base.json_files import fingerprint, write_json
from temporalwiki.builders import checksums, dataset_folder, incremental, snapshot
from temporalwiki.builders.finish import INCLUDE, Finished, finish
from temporalwiki.builders.machine import Machine
from temporalwiki.builders.manifests import BuiltManifest, checked_as
from temporalwiki.builders.measurement import measured
from temporalwiki.builders.snapshot import Dump, Interval
from temporalwiki.builders.stages import Report, remove, run_stage, total
from temporalwiki.builders.wikidata import align, entity_types, labels, unchanged_items
from temporalwiki.builders.wikidata import extract as wikidata_extract
from temporalwiki.builders.wikidata import fact_diff as wikidata_diff
from temporalwiki.builders.wikipedia import extract as wiki_extract
from temporalwiki.builders.wikipedia import page_props, sentences, unchanged_pages
from temporalwiki.builders.wikipedia import sentence_diff as wiki_diff
from temporalwiki.builders.wikipedia.xml_dump import read_header

UNCHANGED_PAGES = 10_000  # articles whose text outside the diffset is sampled, for intrinsic evaluation


@dataclass(frozen=True)
class BuildOptions:
    """What decides the bytes of a build, beside the dumps."""

    include: tuple[str, ...] = ()
    seed: int = 0
    unchanged_fraction: float = 0.001
    allow_truncated: bool = False

    def __post_init__(self) -> None:
        for name in self.include:
            if name not in INCLUDE:
                raise UsageError(f"there is no config {name!r} to include; there are {', '.join(INCLUDE)}")
        if not 0 <= self.unchanged_fraction <= 1:
            raise UsageError(f"the fraction of unchanged facts must be from 0 to 1, not {self.unchanged_fraction}")


@dataclass(frozen=True)
class Sources:
    """The dumps of one interval."""

    interval: Interval
    dumps: Path
    prev: Dump
    recent: Dump
    wikidata_prev: Dump
    wikidata_recent: Dump
    page_props: Path | None

    @property
    def files(self) -> list[Path]:
        """Every input file once, in order."""
        dumps = (self.prev, self.recent, self.wikidata_prev, self.wikidata_recent)
        files = [file for dump in dumps for file in dump.files]
        return list(dict.fromkeys([*files, *([self.page_props] if self.page_props else [])]))


def find_sources(dumps: Path, interval: Interval, wikidata: tuple[str, str] | None = None) -> Sources:
    """Find the four dumps of an interval. Raises InputError where one is missing or both sides are the same."""
    dumps = dumps.absolute()  # tasks run on machines that have another current folder
    prev = snapshot.wikipedia_dump(dumps, interval.wiki, interval.prev)
    recent = snapshot.wikipedia_dump(dumps, interval.wiki, interval.recent)
    exact = wikidata is not None
    dates = wikidata or (interval.prev, interval.recent)
    wikidata_prev = snapshot.wikidata_dump(dumps, snapshot.check_date(dates[0]), exact)
    wikidata_recent = snapshot.wikidata_dump(dumps, snapshot.check_date(dates[1]), exact)
    snapshot.check_pair(prev, recent, interval.wiki)
    snapshot.check_parts(prev, recent)
    snapshot.check_pair(wikidata_prev, wikidata_recent, "wikidata")
    if wikidata_prev.date > wikidata_recent.date:
        raise UsageError(f"the Wikidata dumps go back in time: {wikidata_prev.date}, then {wikidata_recent.date}")
    props = snapshot.page_props_file(dumps, interval.wiki, interval.recent)
    return Sources(interval, dumps, prev, recent, wikidata_prev, wikidata_recent, props)


@dataclass(frozen=True)
class Places:
    """Where a build keeps what its stages make: folders named after all that decides what is in them."""

    work: Path
    sources: Sources
    options: BuildOptions
    sha1: Mapping[Path, str]  # of the sources' files; a KeyError is raised for what is asked of any other

    def inputs(self, files: Sequence[Path]) -> list[dict[str, Any]]:
        """Name, size and SHA-1 of some of the sources' files, as the manifest has them."""
        names = {file: file.relative_to(self.sources.dumps).as_posix() for file in files}
        return [{"file": names[file], "size": file.stat().st_size, "sha1": self.sha1[file]} for file in files]

    def articles(self, dump: Dump) -> Path:
        """The extract of a Wikipedia dump."""
        key = fingerprint(wiki_extract.VERSION, self.inputs(dump.files), dump.cut, self.options.allow_truncated)
        return self.work / "extracts" / f"{self.sources.interval.wiki}-{dump.date}-{key}"

    def facts(self, dump: Dump) -> Path:
        """The extract of a Wikidata dump."""
        wiki = self.sources.interval.wiki
        key = fingerprint(wikidata_extract.VERSION, self.inputs(dump.files), wiki, self.options.allow_truncated)
        return self.work / "extracts" / f"wikidata-{dump.date}-{wiki}-{key}"

    def page_items(self, table: Path) -> Path:
        """The extract of the table of page properties."""
        interval = self.sources.interval
        key = fingerprint(page_props.VERSION, self.inputs((table,)))
        return self.work / "extracts" / f"{interval.wiki}-{interval.recent}-page_props-{key}"

    def interval(self) -> Path:
        """What is of this interval alone: all stages after the extracts."""
        interval, sources = self.sources.interval, self.sources
        names = [self.articles(sources.prev).name, self.articles(sources.recent).name]
        names += [self.facts(sources.wikidata_prev).name, self.facts(sources.wikidata_recent).name]
        names += [self.page_items(sources.page_props).name] if sources.page_props else []
        text = (sentences.VERSION, importlib.metadata.version("sentencex"))
        versions = (text, wiki_diff.VERSION, labels.VERSION, wikidata_diff.VERSION, align.VERSION, UNCHANGED_PAGES)
        return self.work / f"{interval.wiki}-{interval.name}-{fingerprint(names, versions, self.options)}"


def check_folders(out: Path, work: Path) -> tuple[Path, Path]:
    """The dataset folder and the work folder in full. Raises UsageError or InputError if they cannot be used so."""
    out, work = out.resolve(), work.resolve()
    if out == work or work in out.parents:
        raise UsageError(f"{out}: the dataset folder cannot be the work folder or lie in it")
    dataset_folder.check_place(out)
    return out, work


def build(
    sources: Sources,
    out: Path,
    work: Path,
    options: BuildOptions | None = None,
    machine: Machine | None = None,
    card: dataset_folder.Card | None = None,
) -> BuiltManifest:
    """Build one interval into the dataset folder ``out`` and return its manifest.

    ``work`` keeps what the stages made: a rerun after a kill goes on where it was, the next month finds this
    month's extract, and the bytes of the result are the same whichever way they came about. Nothing is written
    to ``out`` before everything is ready. ``card`` makes the text of README.md; without it there is no card, and
    `datasets` cannot load the folder. Raises InputError for dumps that cannot be used.
    """
    options, machine = options or BuildOptions(), machine or Machine()
    out, work = check_folders(out, work)  # the locks below are on names
    with only_one(work, "build"), only_one(out, "build"):
        return _Build(sources, out, work, options, machine, card).run()


class _Build:
    """The state of one build: folders, reports and what was warned about."""

    def __init__(
        self,
        sources: Sources,
        out: Path,
        work: Path,
        options: BuildOptions,
        machine: Machine,
        card: dataset_folder.Card | None,
    ) -> None:
        self.sources, self.out, self.work = sources, out, work
        self.options, self.machine, self.card = options, machine, card
        self.interval = sources.interval
        self.reports: dict[str, list[Report]] = {}
        self.stages: dict[str, dict[str, Any]] = {}  # what each took, for the manifest
        self.warnings: list[str] = []
        self.read: dict[str, checksums.ChecksumTask] = {}  # what the inputs were when their checksums were made

    def run(self) -> BuiltManifest:
        later = self.sources.wikidata_recent.date
        if later > self.interval.recent:
            self._warn(f"Wikidata is of {later}, after the text of {self.interval.recent}: facts may be ahead of it")
        self.places = Places(self.work, self.sources, self.options, self._checksums())
        prev = self._extract_wikipedia("wiki-extract prev", self.sources.prev)
        recent = self._extract_wikipedia("wiki-extract recent", self.sources.recent, prev)
        facts_prev = self._extract_wikidata("wikidata-extract prev", self.sources.wikidata_prev)
        facts_recent = self._extract_wikidata("wikidata-extract recent", self.sources.wikidata_recent, facts_prev)
        page_items = self._page_items()
        namespaces = self._namespaces()
        place = self._place()

        diffs = place / "wiki-diff"
        whole = "wikipedia" in self.options.include
        diff_tasks = wiki_diff.plan(
            prev, recent, self.interval.language, namespaces, self.options.seed, UNCHANGED_PAGES, whole
        )
        self._stage("wiki-diff", wiki_diff.run, diff_tasks, diffs)
        for side, extract in (("prev", prev), ("recent", recent)):
            self._compare(f"wiki-extract {side}", extract, total(self.reports["wiki-diff"], "found")[side], diffs)

        candidates, known = place / "wikidata-diff", place / "wikidata-labels"
        facts = self._extracted("wikidata-extract recent", "statements").get("facts", 0)
        fact_tasks = wikidata_diff.plan(
            facts,
            prev=str(facts_prev),
            recent=str(facts_recent),
            labels=str(known),
            prev_articles=str(prev),
            recent_articles=str(recent),
            page_items=str(page_items) if page_items else None,
            prev_date=int(self.sources.wikidata_prev.date),
            recent_date=int(self.sources.wikidata_recent.date),
            unchanged_fraction=self.options.unchanged_fraction,
            seed=self.options.seed,
        )
        self._stage("wikidata-labels", labels.run, labels.plan(fact_tasks), known)
        categorise = functools.partial(wikidata_diff.run, memory=self.machine.memory_of_a_task)
        self._stage("wikidata-diff", categorise, fact_tasks, candidates)

        aligned = place / "align"
        align_tasks = [
            align.AlignTask(
                t.index, str(candidates), str(diffs), str(recent), t.first, t.end, t.language, t.namespaces
            )
            for t in diff_tasks
        ]
        self._stage("align", align.run, align_tasks, aligned)
        return self._finish(diffs, aligned, known, place / "finish")

    def _namespaces(self) -> dict[str, int]:
        first = self.sources.recent.files[0]
        namespaces = read_header(first).namespaces
        checksums.check_unchanged(first, self.read[str(first)])
        return namespaces

    def _compare(self, name: str, extract: Path, found: int, diffs: Path) -> None:
        """Raise InputError unless the next stage found all articles of an extract."""
        articles = self._extracted(name, "pages")["articles"]
        if found != articles:
            remove(diffs)
            raise InputError(f"{extract}: {articles} articles, of which {found} are there; delete it and build again")

    def _place(self) -> Path:
        """Folder of this interval's own stages; those of other options, dumps or versions are deleted."""
        place = self.places.interval()
        for other in self.work.glob(f"{self.interval.wiki}-{self.interval.name}-*"):
            if other != place:
                remove(other)
        return place

    def _stage(
        self,
        name: str,
        run: Any,
        tasks: list[Any],
        folder: Path,
        sizes: list[int] | None = None,
        plan: list[Any] | None = None,
    ) -> list[Report]:
        """Run a stage and note what it took; ``sizes`` are the bytes of its dumps, as they lie on disk, by task."""
        clock = _Clock()
        reports = run_stage(name, run, tasks, folder, self.machine, sizes, plan)
        self.stages[name] = clock.took([report["run"] for report in reports], sizes)
        self.reports[name] = reports
        return reports

    def _checksums(self) -> dict[Path, str]:
        """SHA-1 of every input, compared with the dump's own list where that is beside it.

        What an earlier build or ``fetch`` has read is not read again.
        """
        tasks = checksums.plan(self.sources.files)
        clock, before = _Clock(), checksums.known(self.work / "checksums", tasks)
        new = [task for task in tasks if task not in before]
        folder = self.work / "checksums" / fingerprint(new)
        made = run_stage("checksums", checksums.run, new, folder, self.machine, [task.size for task in new])
        found = before | dict(zip(new, made, strict=True))
        runs = [found[task]["run"] for task in tasks]
        read = [task.size for task, run in zip(tasks, runs, strict=True) if "began" in run]  # by a build, not by fetch
        self.stages["checksums"] = clock.took(runs, read)
        sums: dict[Path, str] = {}
        for file, task in zip(self.sources.files, tasks, strict=True):
            sums[file], self.read[str(file)] = found[task]["sha1"], task
            checksums.compare(file, found[task])
        return sums

    def _extract_wikipedia(self, name: str, dump: Dump, base: Path | None = None) -> Path:
        """Run an extract; the text of an article that ``base`` has in the same revision is not read, but linked.

        A finished one is taken as it is, whichever way it came about: there is the same in it.
        """
        tasks = wiki_extract.plan(dump, self.interval.wiki, self.options.allow_truncated)
        folder = self._kept(name, self.places.articles(dump))
        before = incremental.base_of(base) if base is not None else None
        with_base = incremental.finished_with(folder, tasks, before)
        self._extract(name, wiki_extract.run, [replace(task, base=with_base) for task in tasks], folder)
        if problem := wiki_extract.check(dump, self.reports[name], self.options.allow_truncated):
            self._warn(f"{name}: {problem}")
        if not incremental.is_finished(folder):
            unchanged_pages.carry(folder, with_base)
            incremental.finish(folder, tasks, with_base)
        return folder

    def _extract_wikidata(self, name: str, dump: Dump, base: Path | None = None) -> Path:
        """Run an extract; what ``base`` has in the same revision is not parsed, but linked.

        A finished one is taken as it is, whichever way it came about: there is the same in it.
        """
        interval, truncated = self.interval, self.options.allow_truncated
        folder = self._kept(name, self.places.facts(dump))
        tasks = wikidata_extract.plan(dump, interval.wiki, interval.language, truncated)
        before = incremental.base_of(base) if base is not None else None
        if base is not None and before is not None:
            items = self._extracted("wikidata-extract prev", "entities")["items"]
            self._stage(
                "wikidata-index", unchanged_items.index, unchanged_items.plan(items, before), base / "revisions"
            )
            if not total(self.reports["wikidata-index"], "items")["indexed"]:
                before = None  # nothing would be kept of it, and all of it be linked, and read with every diff
        with_base = incremental.finished_with(folder, tasks, before)
        problem = self._read_wikidata(name, dump, tasks, folder, with_base)
        if differ := total(self.reports.get(_carried(name), []), "checked").get("differ"):
            print(f"{name}: {differ} items differ in the same revision; all are read", file=sys.stderr)
            with_base = None
            problem = self._read_wikidata(name, dump, tasks, folder, with_base)
        if not incremental.is_finished(folder):
            incremental.finish(folder, tasks, with_base)
        if problem:
            self._warn(f"{name}: {problem}")
        return folder

    def _read_wikidata(
        self,
        name: str,
        dump: Dump,
        tasks: list[wikidata_extract.ExtractTask],
        folder: Path,
        base: incremental.Base | None,
    ) -> str | None:
        """Read a dump and carry over what ``base`` has of it; what to warn of."""
        self.reports.pop(_carried(name), None)
        self.stages.pop(_carried(name), None)
        self._extract(name, wikidata_extract.run, [replace(task, base=base) for task in tasks], folder)
        problem = wikidata_extract.check(dump.files[0], self.reports[name], self.options.allow_truncated)
        if base is not None:
            items = total(self.reports[name], "entities")["items"]  # all: what is not kept of base is held, too
            self._stage(_carried(name), unchanged_items.run, unchanged_items.plan(items, base), folder / "carried")
        return problem

    def _kept(self, name: str, folder: Path) -> Path:
        """The folder of an extract; what an earlier build left there is deleted if it has lost something since."""
        if (lost := incremental.lost(folder)) is not None:
            print(f"{name}: {lost} is missing or has changed; the dump is read again", file=sys.stderr)
            remove(folder)
        return folder

    def _extracted(self, name: str, part: str) -> dict[str, Any]:
        """Counts of an extract, those of what was carried over included."""
        return total([*self.reports[name], *self.reports.get(_carried(name), [])], part)

    def _extract(self, name: str, run: Any, tasks: list[Any], folder: Path) -> None:
        """Run an extract. Its folder is named after the files' content, so where they lie does not count."""
        plan = [replace(task, file=Path(task.file).name) for task in tasks]
        tasks = [replace(task, listed=checksums.is_listed(Path(task.file))) for task in tasks]
        self._stage(name, self._of_known_files(run), tasks, folder, incremental.sizes(tasks), plan)

    def _of_known_files(self, run: Any) -> Any:
        return functools.partial(_of_known_files, run=run, known=self.read)

    def _page_items(self) -> Path | None:
        if self.sources.page_props is None:
            return None
        folder = self.places.page_items(self.sources.page_props)
        sizes = [self.sources.page_props.stat().st_size]
        run = self._of_known_files(page_props.run)
        self._stage("page-props", run, [str(self.sources.page_props)], folder, sizes)
        return folder / "page_items.parquet"

    def _warn(self, text: str) -> None:
        self.warnings.append(text)
        print(f"warning: {text}", file=sys.stderr)

    def _finish(self, diffs: Path, aligned: Path, known: Path, staged: Path) -> BuiltManifest:
        shutil.rmtree(staged, ignore_errors=True)
        clock = _Clock()
        with measured() as took:
            finished = finish(staged, self.interval, self.options.include, diffs, aligned, self.options.seed)
            types = entity_types.count(finished.kept, known)
        self.stages["finish"] = clock.took([took])
        for name, config in finished.configs.items():
            for split, written in config["splits"].items():
                if written["num_examples"] == 0:
                    self._warn(f"{name}: no rows in the split {split}; `datasets` will not list it")
        manifest = self._manifest(finished, types)
        clock = _Clock()
        with measured() as took:
            dataset_folder.install(staged, manifest, self.out, self.card)
        self.stages["install"] = clock.took([took])
        # write the manifest again with the time that installing took; it is complete without that
        manifest = self._manifest(finished, types)
        with contextlib.suppress(InputError):
            write_json(self.out / manifest.path, manifest.content)
        return manifest

    def _probe_counts(self, finished: Finished) -> dict[str, Any]:
        """The paper's Table 2: categorisation, alignment, filters, and what each rule dropped."""
        categorised = total(self.reports["wikidata-diff"], "facts")
        alignment = total([*self.reports["wikidata-diff"], *self.reports["align"]], "alignment")
        for split, aligned in alignment.items():
            written = _sum(categorised["unchanged_sampled" if split == "unchanged" else split])
            if written != aligned["candidates"]:
                raise AssertionError(f"{written} {split} facts to align, {aligned['candidates']} accounted for")
        return {
            split: {
                "categorised": _sum(categorised[split]),
                "sampled": aligned["candidates"],
                "aligned": aligned["aligned"],
                "filtered": aligned["kept"],
                "kept": len(finished.kept[split]),
                "dropped": {
                    "alignment": aligned["not_aligned"],
                    "filters": aligned["filtered"],
                    "caps": finished.capped[split],
                },
            }
            for split, aligned in alignment.items()
        }

    def _manifest(self, finished: Finished, types: entity_types.EntityTypes) -> BuiltManifest:
        def extracted(stage: str) -> dict[str, Any]:
            parts = ("pages", "entities", "statements", "bytes")
            return {part: found for part in parts if (found := self._extracted(stage, part))}

        diff = self.reports["wiki-diff"]
        pages = total(diff, "pages")
        content = {
            "format": 1,
            "made_by": f"temporalwiki {importlib.metadata.version('temporalwiki')}",
            "interval": {
                "wiki": self.interval.wiki,
                "language": self.interval.language,
                "prev": self.interval.prev,
                "recent": self.interval.recent,
                "wikidata_prev": self.sources.wikidata_prev.date,
                "wikidata_recent": self.sources.wikidata_recent.date,
            },
            "inputs": self.places.inputs(self.sources.files),
            "options": asdict(self.options) | {"unchanged_pages": UNCHANGED_PAGES},
            "libraries": {
                name: importlib.metadata.version(name) for name in ("pyarrow", "duckdb", "sentencex", "datatrove")
            },
            "counts": {
                "extracts": {name: extracted(name) for name in self.reports if "extract" in name},
                "pages": pages,
                "prev_pages": total(diff, "prev_pages"),
                "diffset": {"articles": pages["new"] + pages["updated"], **total(diff, "diffset")},
                "facts": total(self.reports["wikidata-diff"], "facts"),
                "probes": self._probe_counts(finished),
                "entity_types": types,
            },
            "warnings": self.warnings,
            "configs": finished.configs,
            "run": {
                "engine": self.machine.engine,
                "jobs": self.machine.jobs,
                "memory_mb": self.machine.memory >> 20,
                "stages": self.stages,
            },
        }
        return checked_as(BuiltManifest, content, self.interval.name)


def _of_known_files(task: Any, folder: Path, *, run: Any, known: Mapping[str, checksums.ChecksumTask]) -> Report:
    """Run a task that reads an input; raise InputError if that is not the file any more whose checksum is known."""
    report: Report = run(task, folder)
    file = task if isinstance(task, str) else task.file
    checksums.check_unchanged(Path(file), known[file])
    return report


def _carried(name: str) -> str:
    """The stage that completes an extract."""
    return name.replace("-extract ", "-carry ")


def _sum(value: Any) -> int:
    return sum(map(_sum, value.values())) if isinstance(value, dict) else int(value)


class _Clock:
    """Tells what a stage that begins now took."""

    def __init__(self) -> None:
        self._began, self._clock = math.floor(time.time() * 1000) / 1000, time.perf_counter()

    def took(self, runs: Sequence[Mapping[str, Any]], sizes: Sequence[int] | None = None) -> dict[str, Any]:
        """What the manifest says of a stage: all but ``seconds`` is of all its tasks, those of an earlier run, too."""
        cpu = sum(run["cpu_seconds"] for run in runs)
        took = {
            "tasks": len(runs),
            "kept": sum(run.get("kept", False) for run in runs),
            "began": self._began,
            "seconds": round(time.perf_counter() - self._clock, 3),
            "cpu_seconds": round(cpu, 3),
            "longest_task_seconds": max((run["seconds"] for run in runs), default=0),
            "peak_memory_mb": max((run["peak_memory_mb"] for run in runs), default=0),
        }
        if sizes is not None:
            took["mb"] = round(sum(sizes) / 1e6, 3)
            took["mb_per_cpu_second"] = round(sum(sizes) / 1e6 / cpu, 1) if cpu else None
        return took
