"""From two snapshots to a dataset folder: the six stages of one interval, in order."""

from __future__ import annotations

import functools
import importlib.metadata
import shutil
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from temporalwiki.builders import checksums, dataset_folder, snapshot
from temporalwiki.builders.engine import Report, fingerprint, only_one, run_stage, total
from temporalwiki.builders.errors import UsageError
from temporalwiki.builders.finish import INCLUDE, Finished, finish
from temporalwiki.builders.snapshot import Dump, Interval
from temporalwiki.builders.wikidata import align, entity_types
from temporalwiki.builders.wikidata import diff as wikidata_diff
from temporalwiki.builders.wikidata import extract as wikidata_extract
from temporalwiki.builders.wikipedia import diff as wiki_diff
from temporalwiki.builders.wikipedia import extract as wiki_extract
from temporalwiki.builders.wikipedia import page_props, sentences
from temporalwiki.builders.wikipedia.xml_dump import read_header

LEAST_MEMORY = 768 << 20  # bytes a job
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
class Machine:
    """What a build may use; none of it changes a byte of the result."""

    jobs: int = 1
    memory: int = 8 << 30  # bytes, for all jobs together

    def __post_init__(self) -> None:
        if self.jobs < 1:
            raise UsageError(f"--jobs must be at least 1, not {self.jobs}")
        if self.memory < self.jobs * LEAST_MEMORY:
            raise UsageError(
                f"--memory {self.memory >> 20}MB is too little: at least {LEAST_MEMORY >> 20}MB for each job, so "
                f"{self.jobs * LEAST_MEMORY >> 20}MB for --jobs {self.jobs}"
            )

    @property
    def memory_of_a_task(self) -> int:
        """What DuckDB may take in one task, beside what Python and Arrow hold."""
        return self.memory // self.jobs - LEAST_MEMORY // 2


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


def build(
    sources: Sources,
    out: Path,
    work: Path,
    options: BuildOptions | None = None,
    machine: Machine | None = None,
) -> dataset_folder.Manifest:
    """Build one interval into the dataset folder ``out`` and return its manifest.

    ``work`` keeps what the stages made: a rerun after a kill goes on where it was, the next month finds this
    month's extract, and the bytes of the result are the same whichever way they came about. Nothing is written
    to ``out`` before everything is ready. Raises InputError for dumps that cannot be used.
    """
    options, machine = options or BuildOptions(), machine or Machine()
    out, work = out.resolve(), work.resolve()  # the locks below are on names
    if out == work or work in out.parents:
        raise UsageError(f"{out}: the dataset folder cannot be the work folder or lie in it")
    dataset_folder.check_place(out)
    with only_one(work, "build"), only_one(out, "build"):
        return _Build(sources, out, work, options, machine).run()


class _Build:
    """The state of one build: folders, reports and what was warned about."""

    def __init__(self, sources: Sources, out: Path, work: Path, options: BuildOptions, machine: Machine) -> None:
        self.sources, self.out, self.work = sources, out, work
        self.options, self.machine = options, machine
        self.interval = sources.interval
        self.inputs: list[dict[str, Any]] = []
        self.reports: dict[str, list[Report]] = {}
        self.warnings: list[str] = []

    def run(self) -> dataset_folder.Manifest:
        later = self.sources.wikidata_recent.date
        if later > self.interval.recent:
            self._warn(f"Wikidata is of {later}, after the text of {self.interval.recent}: facts may be ahead of it")
        self.inputs = self._checksums()
        prev = self._extract_wikipedia("wiki-extract prev", self.sources.prev)
        recent = self._extract_wikipedia("wiki-extract recent", self.sources.recent)
        facts_prev = self._extract_wikidata("wikidata-extract prev", self.sources.wikidata_prev)
        facts_recent = self._extract_wikidata("wikidata-extract recent", self.sources.wikidata_recent)
        page_items = self._page_items()
        namespaces = read_header(self.sources.recent.files[0]).namespaces
        place = self._place((prev, recent, facts_prev, facts_recent, page_items))

        diffs = place / "wiki-diff"
        whole = "wikipedia" in self.options.include
        diff_tasks = wiki_diff.plan(
            prev, recent, self.interval.language, namespaces, self.options.seed, UNCHANGED_PAGES, whole
        )
        self._stage("wiki-diff", wiki_diff.run, diff_tasks, diffs)

        candidates = place / "wikidata-diff"
        facts = total(self.reports["wikidata-extract recent"], "statements").get("facts", 0)
        fact_tasks = wikidata_diff.plan(
            facts,
            prev=str(facts_prev),
            recent=str(facts_recent),
            prev_articles=str(prev),
            recent_articles=str(recent),
            page_items=str(page_items) if page_items else None,
            prev_date=int(self.sources.wikidata_prev.date),
            recent_date=int(self.sources.wikidata_recent.date),
            unchanged_fraction=self.options.unchanged_fraction,
            seed=self.options.seed,
        )
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
        return self._finish(diffs, aligned, facts_prev, facts_recent, place / "finish")

    def _place(self, extracts: tuple[Path | None, ...]) -> Path:
        """Folder of this interval's own stages, named after all that decides what they write."""
        names = [extract.name if extract else None for extract in extracts]
        text = (sentences.VERSION, importlib.metadata.version("sentencex"))
        versions = (text, wiki_diff.VERSION, wikidata_diff.VERSION, align.VERSION, UNCHANGED_PAGES)
        interval = f"{self.interval.wiki}-{self.interval.name}"
        place = self.work / f"{interval}-{fingerprint(names, versions, self.options)}"
        for other in self.work.glob(f"{interval}-*"):
            if other != place:  # of other options, dumps or versions
                shutil.rmtree(other)
        return place

    def _stage(self, name: str, run: Any, tasks: list[Any], folder: Path) -> None:
        self.reports[name] = run_stage(name, run, tasks, folder, self.machine.jobs)

    def _checksums(self) -> list[dict[str, Any]]:
        """Size and SHA-1 of every input, compared with the dump's own list where that is beside it."""
        tasks = checksums.plan(self.sources.files)
        folder = self.work / "checksums" / fingerprint(tasks)
        sizes = [task.size for task in tasks]
        reports = run_stage("checksums", checksums.run, tasks, folder, self.machine.jobs, sizes)
        for file, report in zip(self.sources.files, reports, strict=True):
            checksums.compare(file, report["sha1"])
        return [
            {"file": file.relative_to(self.sources.dumps).as_posix(), "size": task.size, "sha1": report["sha1"]}
            for file, task, report in zip(self.sources.files, tasks, reports, strict=True)
        ]

    def _of(self, files: tuple[Path, ...]) -> list[dict[str, Any]]:
        names = {file.relative_to(self.sources.dumps).as_posix() for file in files}
        return [source for source in self.inputs if source["file"] in names]

    def _extract_wikipedia(self, name: str, dump: Dump) -> Path:
        tasks = wiki_extract.plan(dump, self.interval.wiki, self.options.allow_truncated)
        key = fingerprint(wiki_extract.VERSION, self._of(dump.files), dump.cut, self.options.allow_truncated)
        folder = self.work / "extracts" / f"{self.interval.wiki}-{dump.date}-{key}"
        self._extract(name, wiki_extract.run, tasks, folder)
        if problem := wiki_extract.check(dump, self.reports[name], self.options.allow_truncated):
            self._warn(f"{name}: {problem}")
        return folder

    def _extract_wikidata(self, name: str, dump: Dump) -> Path:
        interval, truncated = self.interval, self.options.allow_truncated
        tasks = wikidata_extract.plan(dump, interval.wiki, interval.language, truncated)
        key = fingerprint(wikidata_extract.VERSION, self._of(dump.files), interval.wiki, truncated)
        folder = self.work / "extracts" / f"wikidata-{dump.date}-{interval.wiki}-{key}"
        self._extract(name, wikidata_extract.run, tasks, folder)
        if problem := wikidata_extract.check(dump.files[0], self.reports[name], truncated):
            self._warn(f"{name}: {problem}")
        return folder

    def _extract(self, name: str, run: Any, tasks: list[Any], folder: Path) -> None:
        """Run an extract. Its folder is named after the files' content, so where they lie does not count."""
        size_of = {task.file: Path(task.file).stat().st_size for task in tasks}
        sizes = [(size_of[task.file] if task.end is None else task.end) - task.start for task in tasks]
        plan = [replace(task, file=Path(task.file).name) for task in tasks]
        self.reports[name] = run_stage(name, run, tasks, folder, self.machine.jobs, sizes, plan)

    def _page_items(self) -> Path | None:
        if self.sources.page_props is None:
            return None
        key = fingerprint(page_props.VERSION, self._of((self.sources.page_props,)))
        folder = self.work / "extracts" / f"{self.interval.wiki}-{self.interval.recent}-page_props-{key}"
        self._stage("page-props", page_props.run, [str(self.sources.page_props)], folder)
        return folder / "page_items.parquet"

    def _warn(self, text: str) -> None:
        self.warnings.append(text)
        print(f"warning: {text}", file=sys.stderr)

    def _finish(
        self, diffs: Path, aligned: Path, facts_prev: Path, facts_recent: Path, staged: Path
    ) -> dataset_folder.Manifest:
        shutil.rmtree(staged, ignore_errors=True)
        finished = finish(staged, self.interval, self.options.include, diffs, aligned, self.options.seed)
        for name, config in finished.configs.items():
            for split, written in config["splits"].items():
                if written["num_examples"] == 0:
                    self._warn(f"{name}: no rows in the split {split}; `datasets` will not list it")
        memory = self.machine.memory_of_a_task
        types = entity_types.count(finished.kept, facts_prev, facts_recent, staged, memory)
        manifest = self._manifest(finished, types)
        dataset_folder.install(staged, manifest, self.out)
        return manifest

    def _probe_counts(self, finished: Finished) -> dict[str, Any]:
        """The paper's Table 2: categorisation, alignment, filters, and what each rule dropped."""
        categorised = total(self.reports["wikidata-diff"], "facts")
        for split, aligned in total(self.reports["align"], "facts").items():
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
            for split, aligned in total(self.reports["align"], "facts").items()
        }

    def _manifest(self, finished: Finished, types: entity_types.EntityTypes) -> dataset_folder.Manifest:
        def extracted(stage: str) -> dict[str, Any]:
            reports = self.reports[stage]
            parts = ("pages", "entities", "statements", "bytes")
            return {part: found for part in parts if (found := total(reports, part))}

        diff = self.reports["wiki-diff"]
        pages = total(diff, "pages")
        return {
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
            "inputs": self.inputs,
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
                "jobs": self.machine.jobs,
                "stages": {name: _run_summary(reports) for name, reports in self.reports.items()},
            },
        }


def _sum(value: Any) -> int:
    return sum(map(_sum, value.values())) if isinstance(value, dict) else int(value)


def _run_summary(reports: list[Report]) -> dict[str, Any]:
    runs = [report["run"] for report in reports]
    return {
        "tasks": len(runs),
        "cpu_seconds": round(sum(run["cpu_seconds"] for run in runs), 3),
        "longest_task_seconds": max((run["seconds"] for run in runs), default=0),
        "peak_memory_mb": max((run["peak_memory_mb"] for run in runs), default=0),
    }
