"""From the dumps of two snapshots to a dataset folder: the six stages of one interval, in order."""

import contextlib
import functools
import importlib.metadata
import math
import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.base.files import only_one
from temporalwiki.base.json_files import FINGERPRINT, write_json
from temporalwiki.base.terminal import say
from temporalwiki.builders import checksums, dataset_folder, seal
from temporalwiki.builders.extracts import sizes
from temporalwiki.builders.finish import FinishedConfigs, finish
from temporalwiki.builders.machine import Machine
from temporalwiki.builders.manifests import BuiltManifest, checked_as, read_intervals
from temporalwiki.builders.measurement import measured
from temporalwiki.builders.snapshot import Dump, Interval
from temporalwiki.builders.sources import UNCHANGED_PAGES, BuildOptions, Sources, WorkFolder, find_sources
from temporalwiki.builders.stages import Report, remove, run_stage, total
from temporalwiki.builders.wikidata import align, cues, entity_types, labels, revision_index, unchanged_items
from temporalwiki.builders.wikidata import extract as wikidata_extract
from temporalwiki.builders.wikidata import fact_diff as wikidata_diff
from temporalwiki.builders.wikidata.tables import COPIED
from temporalwiki.builders.wikipedia import extract as wiki_extract
from temporalwiki.builders.wikipedia import page_props
from temporalwiki.builders.wikipedia import sentence_diff as wiki_diff
from temporalwiki.builders.wikipedia.languages import lacking
from temporalwiki.builders.wikipedia.xml_dump import read_header

__all__ = ["UNCHANGED_PAGES", "BuildOptions", "Sources", "WorkFolder", "build", "check_folders", "find_sources"]

OLDEST_WIKIDATA = 45  # days between a Wikidata dump and its snapshot, beyond which a build warns
_FEW = 30  # facts, below which a score says little
_LIBRARIES = ("pyarrow", "duckdb", "sentencex", "rapidfuzz", "datatrove")  # the manifest has their versions
DROPPED_TEMPLATES = 50  # the manifest names this many
_SIDES = ("prev", "recent")
OLDEST_TEXT = 90  # days between the newest revision of a snapshot and its date, beyond which a build is refused


def check_folders(out: Path, work: Path, wiki: str) -> tuple[Path, Path]:
    """Return both folders as absolute paths; raise UsageError or InputError if a build of ``wiki`` cannot use them."""
    out, work = out.resolve(), work.resolve()
    if out == work or work in out.parents:
        raise UsageError(f"{out}: the dataset folder cannot be the work folder or lie in it")
    dataset_folder.check_place(out, wiki)
    return out, work


def build(
    sources: Sources,
    out: Path,
    work: Path,
    options: BuildOptions | None = None,
    machine: Machine | None = None,
    card: dataset_folder.Card | None = None,
    accept_dates: bool = False,
    remarks: Sequence[str] = (),
) -> BuiltManifest:
    """Build one interval into the dataset folder ``out`` and return its manifest.

    ``work`` keeps the results of stages: a rerun after a kill continues there, and next month's build reuses this
    month's extracts. The bytes of the dataset are the same either way. Nothing is written to ``out`` before everything
    is ready. ``card`` makes the text of README.md; without a card, `datasets` cannot load the folder. ``remarks`` are
    more warnings for the manifest and the card. Raises InputError for dumps that cannot be used, and, unless
    ``accept_dates`` is true, for a dump whose newest revision does not fit the date of its snapshot.
    """
    options, machine = options or BuildOptions(), machine or Machine()
    language = options.language(sources.interval)
    out, work = check_folders(out, work, sources.interval.wiki)  # the locks have the names of the folders
    with only_one(work, "build"), only_one(out, "build"):
        dataset_folder.finish_install(out)
        dataset_folder.warn_of_damage(out, sources.interval.name)
        return _Build(sources, out, work, options, language, machine, card, accept_dates, list(remarks)).run()


@dataclass
class _Build:
    """One build: ``run`` has its six stages in order, and below it each stage has a method."""

    sources: Sources
    out: Path
    work: Path
    options: BuildOptions
    language: str  # or its variant
    machine: Machine
    card: dataset_folder.Card | None
    accept_dates: bool
    warnings: list[str]
    reports: dict[str, list[Report]] = field(default_factory=dict)  # by stage
    costs: dict[str, dict[str, Any]] = field(default_factory=dict)  # by stage, for the manifest
    hashed: dict[str, checksums.ChecksumTask] = field(default_factory=dict)  # each input's state when it was hashed
    extracts: dict[str, Path] = field(default_factory=dict)  # folders, by wiki and side

    def run(self) -> BuiltManifest:
        self._warn_of_old_facts()
        if lacked := lacking(self.language):
            tables = f"{' and '.join(lacked)} of {self.language} are not known, so the English ones serve"
            self._warn(f"{tables}; docs/how_to/add_a_language.md says how to add them")
        self.folders = WorkFolder(self.work, self.sources, self.options, self._checksums())
        self._extract()
        folder = self._interval_folder()
        pages = self._diff_pages(folder / "wiki-diff")
        self._diff_facts(folder / "wikidata-labels", folder / "wikidata-diff")
        self._align(pages, folder / "wikidata-diff", folder / "align")
        return self._finish(folder)

    @property
    def interval(self) -> Interval:
        return self.sources.interval

    @property
    def dates(self) -> dict[str, tuple[str, str]]:
        """The dates of both snapshots and of both Wikidata dumps."""
        sources = self.sources
        wikidata = sources.wikidata_prev.date, sources.wikidata_recent.date
        return {"wiki": (self.interval.prev, self.interval.recent), "wikidata": wikidata}

    def _warn_of_old_facts(self) -> None:
        """Warn if the Wikidata dumps are of another time than the text."""
        for text, items in zip(self.dates["wiki"], self.dates["wikidata"], strict=True):
            days = (date.fromisoformat(text) - date.fromisoformat(items)).days
            if days > OLDEST_WIKIDATA:
                self._warn(f"Wikidata is of {items}, {days} days before the text of {text}: facts may be out of date")
        if days < 0:
            self._warn(f"Wikidata is of {items}, after the text of {text}: facts may be ahead of it")

    # Stage 1: checksums of the dumps

    def _checksums(self) -> dict[Path, str]:
        """Return the SHA-1 of every input, compared with its publisher's list if that lies next to it.

        Files that ``fetch`` or an earlier build has hashed are not read again.
        """
        tasks = checksums.plan(self.sources.files)
        clock, found = _Clock(), checksums.compute(tasks, self.work / "checksums", self.machine)
        runs = [found[task]["run"] for task in tasks]
        read = [task.size for task, run in zip(tasks, runs, strict=True) if "began" in run]  # not by ``fetch``
        self.costs["checksums"] = clock.cost(runs, read)
        sums: dict[Path, str] = {}
        for file, task in zip(self.sources.files, tasks, strict=True):
            sums[file], self.hashed[str(file)] = found[task]["sha1"], task
            checksums.compare(file, found[task])
        for prev, recent in (
            (self.sources.prev, self.sources.recent),
            (self.sources.wikidata_prev, self.sources.wikidata_recent),
        ):
            of_prev = {sums[file]: file for file in prev.files}
            for file in recent.files:
                if sums[file] in of_prev and prev.cut == recent.cut:
                    raise InputError(f"{of_prev[sums[file]]} and {file} are the same file: fetch the right ones")
        return sums

    # Stage 2: the pages, items and facts of each dump

    def _extract(self) -> None:
        sources = self.sources
        self._extract_wikipedia("wiki-extract prev", sources.prev)
        self._extract_wikipedia("wiki-extract recent", sources.recent)
        self._check_dates("wiki")
        self._extract_wikidata("wikidata-extract prev", sources.wikidata_prev)
        previous = self.extracts["wikidata-extract prev"]
        self._extract_wikidata("wikidata-extract recent", sources.wikidata_recent, previous)
        self._check_dates("wikidata")
        if not any(self._extracted(f"wikidata-extract {side}", "entities")["properties"] for side in _SIDES):
            self._warn(
                "no properties in the Wikidata dumps: relations get their names and cue words from a built-in table "
                f"of {len(cues.labels())} properties"
            )
        if (table := sources.page_props) is not None:
            folder = self.extracts["page-props"] = self.folders.page_items(table)
            self._stage("page-props", self._checked(page_props.run), [str(table)], folder, [table.stat().st_size])

    def _extract_wikipedia(self, name: str, dump: Dump) -> None:
        folder = self.extracts[name] = self.folders.articles(dump)
        tasks = wiki_extract.plan(dump, self.interval.wiki, self.options.allow_truncated)
        self._read_dump(name, wiki_extract.run, tasks, folder)
        if problem := wiki_extract.check(dump, self.reports[name], self.options.allow_truncated):
            self._warn(f"{name}: {problem}")

    def _check_dates(self, what: str) -> None:
        """Raise InputError if the newest revisions are in another order than the dumps, or do not fit a wiki's dates.

        Not all dumps have the times of revisions.
        """
        if self.accept_dates:
            return
        name = self.interval.wiki if what == "wiki" else what
        reports = [self.reports[f"{what}-extract {side}"] for side in _SIDES]
        newest = [max(filter(None, (report["newest"] for report in each)), default="") for each in reports]
        for day, found in zip(self.dates[what], newest, strict=True):
            days = (date.fromisoformat(day) - date.fromisoformat(found[:10])).days if found else 0
            if what == "wiki" and abs(days) > OLDEST_TEXT:
                of = f"{name} of {day}: its newest revision is of {found}"
                side = "before" if days > 0 else "after"
                raise InputError(f"{of}, {abs(days)} days {side}: is this another dump? If not, use --accept-dates")
        if all(newest) and newest[1] < newest[0]:
            prev, recent = self.dates[what]
            of = f"{name} of {recent}: its newest revision is of {newest[1]}, but {prev} has {newest[0]}"
            raise InputError(f"{of}: are the dumps swapped? If not, use --accept-dates")

    def _extract_wikidata(self, name: str, dump: Dump, previous: Path | None = None) -> None:
        """Extract a Wikidata dump. Items that ``previous`` has in the same revision are not parsed but copied."""
        folder = self.extracts[name] = self.folders.facts(dump)
        tasks = wikidata_extract.plan(dump, self.interval.wiki, self.language, self.options.allow_truncated)
        if (lost := unchanged_items.lost(folder)) is not None:
            say(f"{name}: {lost} is missing or has changed; the dump is read again")
            remove(folder)
        finished, indexed = unchanged_items.finished(folder), self._indexed(previous)
        base = indexed if finished is None else finished.base
        self._read_dump(name, wikidata_extract.run, [replace(task, base=base) for task in tasks], folder)
        if problem := wikidata_extract.check(dump.files[0], self.reports[name], self.options.allow_truncated):
            self._warn(f"{name}: {problem}")
        if base is not None:
            items = total(self.reports[name], "unchanged")["items"]
            self._stage(_copy(name), unchanged_items.run, unchanged_items.plan(items, base), folder / COPIED)
        if finished is None:
            unchanged_items.finish(folder, base)

    def _indexed(self, extract: Path | None) -> str | None:
        """Index the revisions of the earlier extract and return its name. Return None if it has no revisions."""
        if extract is None:
            return None
        items = self._extracted("wikidata-extract prev", "entities")["items"]
        self._stage("wikidata-index", revision_index.run, [items], extract / revision_index.FOLDER)
        return extract.name if total(self.reports["wikidata-index"], "items")["indexed"] else None

    def _read_dump(self, name: str, run: Any, tasks: list[Any], folder: Path) -> None:
        """Run the tasks of an extract. Its plan has no paths: the folder's name depends on the files' content."""
        plan = [replace(task, file=Path(task.file).name) for task in tasks]
        tasks = [replace(task, listed=checksums.is_listed(Path(task.file))) for task in tasks]
        self._stage(name, self._checked(run), tasks, folder, sizes(tasks), plan)

    def _checked(self, run: Any) -> Any:
        """Return ``run`` with a check that its input file did not change since it was hashed."""
        return functools.partial(_run_checked, run=run, hashed=self.hashed)

    def _extracted(self, name: str, part: str) -> dict[str, Any]:
        """Return the counts of an extract, with the items that were copied."""
        return total([*self.reports[name], *self.reports.get(_copy(name), [])], part)

    # Stages 3 to 5: changed pages, changed facts, and the sentences that state them

    def _interval_folder(self) -> Path:
        """Return the folder for stages 3 to 5, and delete folders of other options, dumps or versions."""
        folder = self.folders.interval()
        ours = re.compile(rf"{self.interval.wiki}-{self.interval.name}-{FINGERPRINT}")
        for other in list(self.work.iterdir()):
            if other != folder and ours.fullmatch(other.name):
                remove(other)
        return folder

    def _diff_pages(self, folder: Path) -> list[wiki_diff.SentenceDiffTask]:
        """Run stage wiki-diff and return its tasks, whose page ranges stage align uses as well."""
        first = self.sources.recent.files[0]
        namespaces = read_header(first).namespaces
        checksums.check_unchanged(first, self.hashed[str(first)])
        whole = "wikipedia" in self.options.include
        seed, compare = self.options.seed, self.options.compare
        prev, recent = (self.extracts[f"wiki-extract {side}"] for side in _SIDES)
        tasks = wiki_diff.plan(prev, recent, self.language, namespaces, seed, UNCHANGED_PAGES, whole, compare)
        self._stage("wiki-diff", wiki_diff.run, tasks, folder)
        for side in _SIDES:
            articles = self._extracted(f"wiki-extract {side}", "pages")["articles"]
            found = total(self.reports["wiki-diff"], "found")[side]
            if found != articles:
                remove(folder)
                extract = self.extracts[f"wiki-extract {side}"]
                raise InputError(f"{extract}: {found} of {articles} articles found; delete it and build again")
        return tasks

    def _diff_facts(self, known: Path, folder: Path) -> None:
        page_items = self.extracts.get("page-props")
        tasks = wikidata_diff.plan(
            self._extracted("wikidata-extract recent", "statements").get("facts", 0),
            prev=str(self.extracts["wikidata-extract prev"]),
            recent=str(self.extracts["wikidata-extract recent"]),
            labels=str(known),
            prev_articles=str(self.extracts["wiki-extract prev"]),
            recent_articles=str(self.extracts["wiki-extract recent"]),
            page_items=str(page_items / page_props.FILE) if page_items else None,
            prev_date=int(self.sources.wikidata_prev.date),
            recent_date=int(self.sources.wikidata_recent.date),
            prev_text=int(self.interval.prev),
            recent_text=int(self.interval.recent),
            unchanged_fraction=self.options.unchanged_fraction,
            seed=self.options.seed,
        )
        self._stage("wikidata-labels", labels.run, labels.plan(tasks), known)
        categorise = functools.partial(wikidata_diff.run, memory=self.machine.memory_of_a_task)
        self._stage("wikidata-diff", categorise, tasks, folder)

    def _align(self, pages: list[wiki_diff.SentenceDiffTask], candidates: Path, folder: Path) -> None:
        wikidata = tuple(str(self.extracts[f"wikidata-extract {side}"]) for side in reversed(_SIDES))
        self._stage("align", align.run, align.plan(pages, candidates, folder.parent / "wiki-diff", wikidata), folder)

    # Stage 6: the configs and the manifest, moved into the dataset folder

    def _finish(self, folder: Path) -> BuiltManifest:
        staged = folder / "finish"
        shutil.rmtree(staged, ignore_errors=True)
        texts, facts, seed = folder / "wiki-diff", folder / "align", self.options.seed
        with self._timed("finish"):
            finished = finish(staged, self.interval, self.options.include, texts, facts, seed, self.options.caps)
            types = entity_types.count(finished.kept, folder / "wikidata-labels")
        for name, config in finished.configs.items():
            for split, written in config["splits"].items():
                light_tuning = self.options.caps is None and name.startswith("lighttuning")  # all facts are probes
                if written["num_examples"] == 0 and not light_tuning:
                    self._warn(f"{name}: no rows in the split {split}; only temporalwiki.load_dataset lists it")
        sizes = {split: (len(kept), sum(finished.capped[split].values())) for split, kept in finished.kept.items()}
        few = [f"{k:,} of {k + dropped:,} {split} facts" for split, (k, dropped) in sizes.items() if k * 4 < dropped]
        if few:
            caps = ",".join(map(str, self.options.caps or ()))
            self._warn(f"the caps of {caps} leave {', '.join(few)}; --caps none keeps all, or give larger shares")
        unchanged, share = sizes["unchanged"][0], self.options.unchanged_fraction
        if unchanged < _FEW and share < 1:
            more = f"--unchanged-fraction 1 samples all, not {share:g}"
            self._warn(f"only {unchanged:,} unchanged facts can be asked for; {more}")
        with self._timed("install"):
            dataset_folder.install(staged, self._manifest(finished, types), self.out, self.card)
        # write the manifest again with the time that installing took; it is complete without that
        manifest = self._manifest(finished, types)
        with contextlib.suppress(InputError):
            write_json(self.out / manifest.path, manifest.content)
        self._say_short_name()
        return manifest

    @contextlib.contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        """Measure the block as a stage with one task."""
        clock = _Clock()
        with measured() as cost:
            yield
        self.costs[name] = clock.cost([cost])

    def _say_short_name(self) -> None:
        """Say which interval has the short name, if another one in the folder would have the same."""
        short = self.interval.short_name
        same = [one.interval for one in read_intervals(self.out) if one.interval.short_name == short]
        if len(same) > 1:
            others = ", ".join(f"diffset-{interval.name}" for interval in same[:-1])
            say(f"diffset-{short} is short for diffset-{same[-1].name}; use the full name for {others}")

    def _probe_counts(self, finished: FinishedConfigs) -> dict[str, Any]:
        """Return the paper's Table 2: facts categorised, aligned and filtered, and how many each rule dropped."""
        categorised = total(self.reports["wikidata-diff"], "facts")
        alignment = total([*self.reports["wikidata-diff"], *self.reports["align"]], "alignment")
        for split, aligned in alignment.items():
            written = _sum(categorised["unchanged_sampled" if split == "unchanged" else split])
            assert written == aligned["candidates"], (split, written, aligned)
        return {
            split: {
                "categorised": _sum(categorised[split]),
                "sampled": aligned["candidates"],
                "aligned": aligned["aligned"],
                "filtered": aligned["kept"],
                "kept": len(finished.kept[split]),
                **finished.grades[split],
                "dropped": {
                    "alignment": aligned["not_aligned"],
                    "filters": aligned["filtered"],
                    "caps": finished.capped[split],
                },
            }
            for split, aligned in alignment.items()
        }

    def _manifest(self, finished: FinishedConfigs, types: entity_types.EntityTypes) -> BuiltManifest:
        def extracted(stage: str) -> dict[str, Any]:
            parts = ("pages", "entities", "statements", "bytes")
            return {part: found for part in parts if (found := self._extracted(stage, part))}

        diff = self.reports["wiki-diff"]
        pages = total(diff, "pages")
        content = {
            "format": 1,
            "made_by": f"temporalwiki {importlib.metadata.version('temporalwiki')}",
            "code": seal.code(),
            "interval": {
                **{key: getattr(self.interval, key) for key in ("wiki", "language", "prev", "recent")},
                "wikidata_prev": self.dates["wikidata"][0],
                "wikidata_recent": self.dates["wikidata"][1],
            },
            "inputs": self.folders.inputs(self.sources.files),
            "options": asdict(self.options) | {"unchanged_pages": UNCHANGED_PAGES},
            "libraries": {name: importlib.metadata.version(name) for name in _LIBRARIES},
            "counts": {
                "extracts": {name: extracted(name) for name in self.reports if "extract" in name},
                "pages": pages,
                "prev_pages": total(diff, "prev_pages"),
                "diffset": {"articles": pages["new"] + pages["updated"], **total(diff, "diffset")},
                "dropped_templates": [
                    {"name": name, "times": times}
                    for name, times in wiki_diff.most_frequent(total(diff, "templates"), DROPPED_TEMPLATES)
                ],
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
                "stages": self.costs,
            },
        }
        return checked_as(BuiltManifest, content, self.interval.name)

    # What all stages use

    def _stage(
        self, name: str, run: Any, tasks: list[Any], folder: Path, of_tasks: list[int] | None = None, plan: Any = None
    ) -> None:
        """Run a stage and keep its reports and its cost; ``of_tasks`` are the bytes of a dump that each task reads."""
        clock = _Clock()
        self.reports[name] = run_stage(name, run, tasks, folder, self.machine, of_tasks, plan)
        self.costs[name] = clock.cost([report["run"] for report in self.reports[name]], of_tasks)

    def _warn(self, text: str) -> None:
        self.warnings.append(text)
        say(f"warning: {text}")


def _run_checked(task: Any, folder: Path, *, run: Any, hashed: Mapping[str, checksums.ChecksumTask]) -> Report:
    """Run a task that reads an input file. Raises InputError if the file changed since it was hashed."""
    report: Report = run(task, folder)
    file = task if isinstance(task, str) else task.file
    checksums.check_unchanged(Path(file), hashed[file])
    return report


def _copy(name: str) -> str:
    """Return the name of the stage that copies unchanged items to an extract."""
    return name.replace("-extract ", "-copy ")


def _sum(value: Any) -> int:
    return sum(map(_sum, value.values())) if isinstance(value, dict) else int(value)


class _Clock:
    """Measures a stage from the moment when it is created."""

    def __init__(self) -> None:
        self._began, self._clock = math.floor(time.time() * 1000) / 1000, time.perf_counter()

    def cost(self, runs: Sequence[Mapping[str, Any]], sizes: Sequence[int] | None = None) -> dict[str, Any]:
        """Return a stage's cost for the manifest. All numbers but ``seconds`` include the tasks of earlier runs."""
        cpu = sum(run["cpu_seconds"] for run in runs)
        cost = {
            "tasks": len(runs),
            "kept": sum(run.get("kept", False) for run in runs),
            "began": self._began,
            "seconds": round(time.perf_counter() - self._clock, 3),
            "cpu_seconds": round(cpu, 3),
            "longest_task_seconds": max((run["seconds"] for run in runs), default=0),
            "peak_memory_mb": max((run["peak_memory_mb"] for run in runs), default=0),
        }
        if sizes is not None:
            cost["mb"] = round(sum(sizes) / 1e6, 3)
            cost["mb_per_cpu_second"] = round(sum(sizes) / 1e6 / cpu, 1) if cpu else None
        return cost
