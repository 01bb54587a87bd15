"""Running the tasks of a stage without the machinery of a stage."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from temporalwiki.builders.snapshot import Dump
from temporalwiki.builders.stages import Report, total
from temporalwiki.builders.wikidata import extract, revision_index, unchanged_items
from temporalwiki.builders.wikidata.tables import COPIED

T = TypeVar("T")


def run_tasks(run: Callable[[T, Path], Report], tasks: Sequence[T], folder: Path) -> list[Report]:
    """Run the tasks in this process and return their reports."""
    folder.mkdir(parents=True, exist_ok=True)
    return [run(task, folder) for task in tasks]


def extract_wikidata(path: Path, folder: Path, base: Path | None = None) -> list[Report]:
    """Extract a Wikidata dump, with another extract as its base if it has revisions, and return all reports."""
    tasks = extract.plan(Dump("20211101", (path,)), "enwiki", "en", False)
    before = None
    if base is not None:
        [indexed] = run_tasks(revision_index.run, [8], base / revision_index.FOLDER)
        before = base.name if indexed["items"]["indexed"] else None
    reports = run_tasks(extract.run, [replace(task, base=before) for task in tasks], folder)
    if before is not None:
        plan = unchanged_items.plan(total(reports, "unchanged")["items"], before)
        reports += run_tasks(unchanged_items.run, plan, folder / COPIED)
    return reports
