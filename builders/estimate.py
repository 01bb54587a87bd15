"""Estimate what a build takes: tasks, CPU time, wall time and disk space of its stages. Nothing is written.

CPU times come from the newest manifest in the dataset folder that has the same configs, scaled by the size of the
dumps, or else from the rates below. The text of the dumps is not read. Two short stages, which reuse unchanged items,
are left out.
"""

import contextlib
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from temporalwiki.base.terminal import table
from temporalwiki.builders import checksums, extracts
from temporalwiki.builders.build import UNCHANGED_PAGES, BuildOptions, Sources, WorkFolder, check_folders
from temporalwiki.builders.machine import Machine
from temporalwiki.builders.manifests import BuiltManifest, StageRun, read_manifests
from temporalwiki.builders.stages import progress
from temporalwiki.builders.wikidata import extract as wikidata_extract
from temporalwiki.builders.wikipedia import extract as wiki_extract

# CPU seconds, MB in the work folder and MB in the dataset folder per compressed MB of the dump that decides the cost.
# They hold for a month that changes 5 % of the pages and items.
_RATES: dict[str, tuple[float, float, float]] = {
    "checksums": (0.0007, 0, 0),
    "wiki-extract prev": (0.33, 2, 0),
    "wiki-extract recent": (0.28, 0.2, 0),
    "wikidata-extract prev": (0.1, 0.2, 0),
    "wikidata-extract recent": (0.03, 0.1, 0),
    "page-props": (0.015, 0.25, 0),
    "wiki-diff": (0.06, 0.03, 0),
    "wikidata-labels": (0.002, 0.001, 0),
    "wikidata-diff": (0.01, 0.002, 0),
    "align": (0.01, 0.001, 0),
    "finish": (0.01, 0.03, 0),
    "install": (0.001, 0, 0.03),
}
_WHOLE = {"wiki-diff": (0.6, 0.8, 0.0), "finish": (0.08, 0.8, 0.0), "install": (0.002, 0.0, 0.8)}  # for unchanged text
# articles per compressed MB; more CPU seconds per MB of a Wikidata dump in bz2; MB for each task after the extracts
_ARTICLES, _BZ2, _TASK = 325, 0.4, 64


@dataclass(frozen=True)
class Stage:
    """One stage of a build that has not run; CPU seconds and disk space count only the tasks still to do."""

    name: str
    tasks: int
    kept: int  # tasks that an earlier build has done
    cpu: float
    work: float = 0  # MB that it writes to the work folder
    out: float = 0  # MB that it writes to the dataset folder
    read: float | None = None  # MB of the dump that it reads

    def wall(self, jobs: int) -> float:
        """Return the seconds that the stage takes if ``jobs`` tasks run at once."""
        return self.cpu / max(1, min(jobs, self.tasks - self.kept))


def estimate(sources: Sources, out: Path, work: Path, options: BuildOptions | None = None) -> list[Stage]:
    """Estimate the stages of ``build`` with the same arguments, without the tasks that ``work`` has done.

    Raises InputError for dumps and folders that cannot be used.
    """
    options, (out, work) = options or BuildOptions(), check_folders(out, work, sources.interval.wiki)
    built = [manifest for manifest in read_manifests(out) if isinstance(manifest, BuiltManifest)]
    same = [manifest for manifest in built if manifest.content["options"].get("include") == list(options.include)]
    return list(_stages(sources, work, options, same[-1].run.stages if same else {}))


def describe_plan(stages: Sequence[Stage], machine: Machine, out: Path, work: Path) -> str:
    """Return the plan as a table of stages, with the time and the disk space of the whole build."""
    rows: list[Sequence[str]] = [("stage", "MB", "tasks", "kept", "CPU", "time", "MB in work", "MB in out")]
    for of in stages:
        numbers = ("" if of.read is None else f"{of.read:,.1f}", f"{of.tasks:,}", f"{of.kept:,}" if of.kept else "")
        disk = (f"{mb:,.1f}" if mb else "" for mb in (of.work, of.out))
        rows.append((of.name, *numbers, _time(of.cpu), _time(of.wall(machine.jobs)), *disk))
    cpu, wall = sum(of.cpu for of in stages), sum(of.wall(machine.jobs) for of in stages)
    written = {str(work): sum(of.work for of in stages), str(out): sum(of.out for of in stages)}  # MB
    rows.append(("all", "", "", "", _time(cpu), _time(wall), *(f"{mb:,.1f}" for mb in written.values())))
    lines = [*table(rows), "", f"time: with --jobs {machine.jobs}, if the disks keep up and 5 % of the pages change"]
    disks: dict[int, dict[str, float]] = {}  # by device: the free MB of each folder
    for folder in (work, out):
        place = next(at for at in (folder, *folder.absolute().parents) if at.is_dir())
        disks.setdefault(place.stat().st_dev, {})[str(folder)] = shutil.disk_usage(place).free / 1e6
    for free in disks.values():
        names, needed, room = " and ".join(free), sum(written[name] for name in free), min(free.values())
        lines.append(f"{names}: {needed:,.1f} MB will be written, {room:,.1f} MB are free")
        lines += [f"warning: too little room in {names}"] if needed > room else []
    return "\n".join(lines)


def _time(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 100 * 60 else f"{seconds / 3600:.1f} h"


def _stages(sources: Sources, work: Path, options: BuildOptions, last: Mapping[str, StageRun]) -> Iterator[Stage]:
    """Yield the stages in order, named as in the manifest; ``last`` has the costs of the last build."""
    wiki, truncated = sources.interval.wiki, options.allow_truncated
    language = options.language(sources.interval)
    hashed = checksums.plan(sources.files)
    known = checksums.known(work / "checksums", hashed)
    sha1 = {file: known[task]["sha1"] for file, task in zip(sources.files, hashed, strict=True) if task in known}
    at = WorkFolder(work, sources, options, sha1)
    tasks: dict[str, Sequence[extracts.DumpTask]] = {
        "wiki-extract prev": wiki_extract.plan(sources.prev, wiki, truncated),
        "wiki-extract recent": wiki_extract.plan(sources.recent, wiki, truncated),
        "wikidata-extract prev": wikidata_extract.plan(sources.wikidata_prev, wiki, language, truncated),
        "wikidata-extract recent": wikidata_extract.plan(sources.wikidata_recent, wiki, language, truncated),
    }
    mb = {name: sum(extracts.sizes(of)) / 1e6 for name, of in tasks.items()}
    text, facts = "wiki-extract recent", "wikidata-extract recent"  # the stages whose dumps decide other stages' costs
    whole = 1.0 if "wikipedia" in options.include else min(1.0, UNCHANGED_PAGES / _ARTICLES / mb[text])

    def stage(name: str, of: float, find: Callable[[], Path] | None = None, count: int = 0) -> Stage:
        """Estimate a stage from the MB that decide its cost, its folder, and its number of tasks if that is known."""
        rates = [a + whole * b for a, b in zip(_RATES[name], _WHOLE.get(name, (0, 0, 0)), strict=True)]
        rates[0] += _BZ2 if name.startswith("wikidata-extract") and tasks[name][0].file.endswith(".bz2") else 0
        driver = facts if "wikidata" in name else text
        cpu, in_work, in_out = (rate * of for rate in rates)
        if name in last and driver in last and (before := last[driver].mb):
            cpu = last[name].cpu_seconds * mb[driver] / before
        begun = done = 0
        with contextlib.suppress(KeyError):  # the folder has no name yet: a checksum in it is not known
            begun, done = progress(find()) if find else (0, 0)
        count = count or begun or max(1, round(of / _TASK))
        done = done if begun == count else 0
        left = 1 - done / count
        return Stage(name, count, done, cpu * left, in_work * left, in_out * left, of if name in tasks else None)

    new = [task for task in hashed if task not in known]
    read, unread = (sum(task.size for task in of) / 1e6 for of in (hashed, new))
    yield Stage("checksums", len(hashed), len(hashed) - len(new), unread * _RATES["checksums"][0], read=read)
    for name, dump in (("wiki-extract prev", sources.prev), (text, sources.recent)):
        yield stage(name, mb[name], partial(at.articles, dump), len(tasks[name]))
    for name, dump in (("wikidata-extract prev", sources.wikidata_prev), (facts, sources.wikidata_recent)):
        yield stage(name, mb[name], partial(at.facts, dump), len(tasks[name]))
    if (props := sources.page_props) is not None:
        yield stage("page-props", props.stat().st_size / 1e6, partial(at.page_items, props), 1)
    for name, driver in (("wiki-diff", text), ("wikidata-labels", facts), ("wikidata-diff", facts), ("align", text)):
        yield stage(name, mb[driver], lambda name=name: at.interval() / name)  # type: ignore[misc]
    for name in ("finish", "install"):
        yield stage(name, mb[text], count=1)
