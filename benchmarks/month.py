"""Measure a month's build, the floor (decompressing the same bytes) and the authors' way: CPU time and memory.

    python benchmarks/month.py --folder /tmp/bench                       # sizes 1, 4 and 16: about 25 minutes
    python benchmarks/month.py --folder /tmp/bench --sizes 1 --pages 100000 --items 60000      # one size of your own

One run reads generated dumps of several sizes. As in a real month, there are 12 MB of Wikidata's JSON for each MB of
Wikipedia's XML, 5 % of both change, and 10,000 of 6.9 million unchanged articles are sampled. The dumps have their
checksums already, as those that ``fetch`` brings. The program prints Markdown tables:

- decoders: all that are installed, on the same dumps; the fastest for bz2 and the fastest for gz are the floor;
- builds: floor and build for every size, cold and with last month's extracts kept, and how both grow;
- stages: CPU time and peak memory at every size;
- the authors' way at the middle size (it takes 20 times longer): their steps (see ``authors_way.py``) and ours.

CPU time is user and system time of a command and all its children, the lesser of two runs. Before every run, dumps
and extracts are dropped from the system's cache: those of a real month are many times larger than memory. Builds run
with ``--jobs 1``: more jobs do the same work. Memory is the most that all processes of a command hold together,
sampled 20 times a second. The program needs Linux and ``pip install 'temporalwiki[bench]'``. The folder takes about
7 GB at the default sizes; a later run uses its dumps again, everything else is removed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped, unused-ignore]
from load import write_load
from performance import Cell, Table, add_option, report

from temporalwiki.base.files import digest
from temporalwiki.builders.build import UNCHANGED_PAGES
from temporalwiki.builders.checksums import note, state
from temporalwiki.builders.manifests import read_manifests
from temporalwiki.builders.world import World

AUTHORS = Path(__file__).parent / "authors_way.py"
ARTICLES = 6_900_000  # in English Wikipedia
EXTRACTION = ("wikidata-extract", "wikidata-index", "wikidata-copy")  # the stages from a Wikidata dump to facts
# Programs that decompress the files named, in pieces of a megabyte, and print how many bytes came out.
_READ = (
    "import sys\n{imports}\nsize = 0\nfor name in sys.argv[1:]:\n    with {opened} as file:\n"
    "        while piece := file.read(1 << 20):\n            size += len(piece)\nprint(size)"
)
_BUILD = (
    "import sys, temporalwiki.builders.build as build\nfrom temporalwiki.commands import main\n"
    "build.UNCHANGED_PAGES = {sampled}\nsys.exit(main())"
)
DECODERS = {
    "bz2": {
        "bz2": ("import bz2", "bz2.open(name)"),
        "indexed_bzip2": ("import indexed_bzip2", "indexed_bzip2.open(name, parallelization=1)"),
        "rapidgzip": ("import rapidgzip", "rapidgzip.IndexedBzip2File(name, parallelization=1)"),
    },
    "gz": {
        "gzip": ("import gzip", "gzip.open(name)"),
        "isal": ("from isal import igzip", "igzip.open(name)"),
        "rapidgzip": ("import rapidgzip", "rapidgzip.open(name, parallelization=1)"),
    },
}


@dataclass(frozen=True)
class Measured:
    """Wall and CPU seconds of a command with all its children, the most memory they held together, its output."""

    wall: float
    cpu: float
    peak_mb: float
    output: str


def cpu_of(stage: dict[str, Any]) -> float:
    """Return the CPU seconds of a stage in this build; the manifest also counts tasks of earlier builds."""
    return float(stage["cpu_seconds"] * (1 - stage["kept"] / stage["tasks"])) if stage["tasks"] else 0.0


@dataclass(frozen=True)
class Build:
    """A build: the measured command, and stages and counts of its manifest."""

    took: Measured
    stages: dict[str, Any]
    counts: dict[str, Any]

    def cpu(self, *names: str) -> float:
        """Return the CPU seconds of the stages whose names begin with one of ``names``."""
        return sum(cpu_of(stage) for name, stage in self.stages.items() if name.startswith(names))


@dataclass(frozen=True)
class Size:
    """The measurements on dumps of one size; ``xml`` and ``json`` are bytes of both snapshots."""

    size: int
    xml: int
    json: int
    json_recent: int
    floor: float
    floor_kept: float
    cold: Build
    kept: Build
    sampled: tuple[int, float]  # how many unchanged articles were sampled, and CPU seconds for each

    def build(self, name: str) -> Build:
        """Return the build ``cold`` or ``kept``."""
        return self.cold if name == "cold" else self.kept

    def floor_of(self, name: str) -> float:
        """Return the CPU seconds to decompress the dumps that a build reads."""
        return self.floor if name == "cold" else self.floor_kept


def measure(command: list[str]) -> Measured:
    """Run a command and measure it."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun, peak = time.perf_counter(), 0
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    tree = psutil.Process(running.pid)
    while True:
        try:
            output, errors = running.communicate(timeout=0.05)
            break
        except subprocess.TimeoutExpired:
            peak = max(peak, _memory(tree))
    if running.returncode:
        sys.exit(f"failed: {' '.join(command)}\n{errors[-2000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Measured(time.perf_counter() - begun, cpu, peak / 1e6, output)


def _memory(tree: psutil.Process) -> int:
    total = 0
    with contextlib.suppress(psutil.NoSuchProcess):  # the command has ended
        for process in [tree, *tree.children(recursive=True)]:
            with contextlib.suppress(psutil.NoSuchProcess):  # this child has ended
                total += process.memory_info().rss
    return total


def table(head: str, rows: list[str]) -> None:
    """Print a Markdown table: the first column is text, the others are numbers."""
    columns = head.count("|") + 1
    print(f"\n| {head} |\n|---{'|---:' * (columns - 1)}|")
    for row in rows:
        print(f"| {row} |", flush=True)


def forget(files: Iterable[Path]) -> None:
    """Drop files from the system's cache."""
    for path in files:
        with path.open("rb") as file:
            os.fsync(file.fileno())  # only pages that are on the disk can be dropped
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def decode(name: str, form: str, files: list[Path]) -> Measured:
    """Decompress files with one decoder."""
    forget(files)
    if name == "bzip2 -dc":
        return measure(["sh", "-c", 'bzip2 -dc "$@" | wc -c', "sh", *map(str, files)])
    imports, opened = DECODERS[form][name]
    return measure([sys.executable, "-c", _READ.format(imports=imports, opened=opened), *map(str, files)])


def best_of_two(name: str, form: str, files: list[Path]) -> Measured:
    """Decompress files twice and return the run that took less CPU time."""
    return min((decode(name, form, files) for _ in range(2)), key=lambda took: took.cpu)


def fastest(dumps: dict[str, list[Path]]) -> dict[str, str]:
    """Return the fastest decoder of each format, and print the times of all."""
    best, rows = {}, []
    for form, contenders in DECODERS.items():
        file = dumps[form][-1]
        found = [name for name, (imports, _) in contenders.items() if find_spec(imports.split()[1])]
        found += ["bzip2 -dc"] if form == "bz2" and shutil.which("bzip2") else []
        took = {name: best_of_two(name, form, [file]) for name in found}
        best[form] = min(took, key=lambda name: took[name].cpu)
        for name, measured in took.items():
            size = int(measured.output)
            ratio = size / file.stat().st_size
            rows.append(f"{form}: {name} | {size / 1e6:.0f} | {ratio:.1f} | {size / 1e6 / measured.cpu:.0f}")
    table("decoder | MB | ratio | MB/s (CPU)", rows)
    return best


def make(folder: Path, pages: int, items: int) -> Path:
    """Return the folder of dumps with so many pages and items; write them if necessary."""
    dumps = folder / f"dumps-{pages}-{items}"
    made = dumps / "made"
    if not made.exists():
        shutil.rmtree(dumps, ignore_errors=True)
        write_load(dumps, World(), pages, items)
        made.touch()
    for folder in {file.parent for file in dumps.glob("**/*.*z*")}:
        sums = {file: digest(file, "sha1") for file in sorted(folder.glob("*.*z*"))}
        (folder / "sha1sums.txt").write_text("".join(f"{sha1}  {file.name}\n" for file, sha1 in sums.items()))
        for file, sha1 in sums.items():
            note(file, state(file), sha1)
    return dumps


def build(dumps: Path, folder: Path, sampled: int) -> Build:
    """Run a build with the present work folder and a sample of so many unchanged articles."""
    out, work = folder / "temporalwiki", folder / "work"
    shutil.rmtree(out, ignore_errors=True)
    forget(path for place in (dumps, work) for path in place.rglob("*") if path.is_file())
    program = [sys.executable, "-c", _BUILD.format(sampled=sampled)]
    options = ["--dumps", str(dumps), "--out", str(out), "--work", str(work), "--jobs", "1"]
    took = measure([*program, "build", *World().dates, *options])
    [manifest] = read_manifests(out)
    return Build(took, manifest.content["run"]["stages"], manifest.content["counts"])


def forget_recent(work: Path) -> None:
    """Leave in the work folder only extracts and checksums of the older snapshot, as a build of last month does."""
    world = World()
    for path in work.glob("checksums/*/reports/*.json"):
        name = Path(json.loads(path.read_text())["file"]).name
        if world.dates[1] in name or world.wikidata_dates[1] in name:
            path.unlink()
    for name in (f"*{world.dates[1]}*", f"wikidata-{world.wikidata_dates[1]}*"):
        for extract in (work / "extracts").glob(name):
            shutil.rmtree(extract)
    for other in work.iterdir():
        if other.name.startswith(f"enwiki-{world.dates[0]}-"):
            shutil.rmtree(other)


def measure_size(size: int, pages: int, dumps: dict[str, list[Path]], best: dict[str, str], folder: Path) -> Size:
    """Measure floor and builds on dumps with so many pages."""
    both = {form: best_of_two(name, form, dumps[form]) for form, name in best.items()}
    recent = {form: best_of_two(name, form, dumps[form][-1:]) for form, name in best.items()}
    work = folder / "work"
    root = dumps["bz2"][0].parents[2]
    few = max(1, pages * UNCHANGED_PAGES // ARTICLES)
    colds, kepts = [], []
    for _ in range(2):
        shutil.rmtree(work, ignore_errors=True)
        colds.append(build(root, folder, few))
        forget_recent(work)
        kepts.append(build(root, folder, few))
    cold, kept = (min(builds, key=lambda one: one.took.cpu) for builds in (colds, kepts))
    many = min(UNCHANGED_PAGES, pages)
    for interval in work.glob("enwiki-*"):
        shutil.rmtree(interval)
    more = build(root, folder, many).cpu("wiki-diff") - kept.cpu("wiki-diff")
    shutil.rmtree(work)
    return Size(
        size, int(both["bz2"].output), int(both["gz"].output), int(recent["gz"].output),
        sum(m.cpu for m in both.values()), sum(m.cpu for m in recent.values()), cold, kept, (few, more / (many - few)),
    )  # fmt: skip


def print_sizes(sizes: list[Size], figures: Path | None) -> None:
    """Print floor and builds at every size, and time and memory of each stage."""
    lines: list[list[Cell]] = []
    for one in sizes:
        for name in ("cold", "kept"):
            took, floor, size = one.build(name).took, one.floor_of(name), (one.xml + one.json) / 1e6
            sizes_mb = [round(one.xml / 1e6), round(one.json / 1e6)]
            speed = [round(took.cpu / floor, 2), round(size / took.cpu), round(took.peak_mb)]
            lines.append([f"{one.size}, {name}", *sizes_mb, round(floor, 1), round(took.cpu, 1), *speed])
    columns = ("size", "XML MB", "JSON MB", "floor CPU s", "build CPU s", "build : floor", "MB/s (CPU)", "peak MB")
    few, cost = sizes[-1].sampled
    note = (
        "The floor is the fastest decoder on the same bytes. XML and JSON are of both snapshots; the floor of *kept*, "
        f"a build with last month's extracts, is the recent snapshot's. Size {sizes[-1].size} samples {few} unchanged "
        f"articles; the 10,000 of a real month take {cost * 10_000:.1f} s."
    )
    report(Table("build_floor", "A month's build and decompressing its dumps", columns, lines, note), figures)
    rows = []
    for stage in sizes[-1].cold.stages:
        found = [one.cold.stages[stage] for one in sizes]
        cells = [f"{each['cpu_seconds']:.1f}" for each in found] + [f"{each['peak_memory_mb']:.0f}" for each in found]
        rows.append(f"{stage} | {' | '.join(cells)}")
    heads = [f"CPU s, {one.size}" for one in sizes] + [f"peak MB, {one.size}" for one in sizes]
    table(" | ".join(["stage, cold", *heads]), rows)
    kept = sizes[-1].kept.stages
    rows = [f"{name} | {stage['tasks']} | {stage['kept']} | {cpu_of(stage):.1f}" for name, stage in kept.items()]
    table(f"stage, last month's extracts kept, size {sizes[-1].size} | tasks | of them done before | CPU s", rows)


@dataclass(frozen=True)
class Part:
    """The authors' Wikidata extraction on some items of both dumps: bytes of JSON, CPU seconds, memory."""

    json: int
    text_cpu: float
    facts_cpu: float
    peak_mb: float


@dataclass(frozen=True)
class Authors:
    """Measurements of the authors' steps."""

    page_text: list[Measured]  # of each dump
    page_diff: Measured
    few: Part
    many: Part
    fact_diff: Measured  # of the larger part

    @property
    def wikipedia(self) -> float:
        """Return the CPU seconds of extract and diff."""
        return sum(took.cpu for took in self.page_text) + self.page_diff.cpu

    def wikidata(self, size: int) -> tuple[float, float]:
        """Return the CPU seconds of gensim and of the search for so many bytes of JSON.

        They follow from the difference between the two parts, which leaves out the time to start.
        """
        times = size / (self.many.json - self.few.json)
        return (self.many.text_cpu - self.few.text_cpu) * times, (self.many.facts_cpu - self.few.facts_cpu) * times


def measure_authors(dumps: dict[str, list[Path]], folder: Path, few: int, many: int) -> Authors:
    """Run the authors' steps on all pages and on two samples of items: every ``few``-th and every ``many``-th."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()

    def step(*arguments: object) -> Measured:
        return measure([sys.executable, str(AUTHORS), *map(str, arguments)])

    texts = [folder / f"text-{number}" for number in range(2)]
    page_text = [step("page-text", dump, text) for dump, text in zip(dumps["bz2"], texts, strict=True)]
    page_diff = step("page-diff", *texts, folder / "pages.csv")
    facts = [folder / f"{number}.facts.json" for number in range(2)]
    parts = []
    for every in (few, many):
        size, made, found = 0, [], []
        for dump, out in zip(dumps["gz"], facts, strict=True):
            xml, text = folder / "items.xml.bz2", folder / "items.json.gz"
            size += json.loads(step("wikidata-xml", dump, xml, "--every", every).output)["json_bytes"]
            made.append(step("entity-text", xml, text))
            found.append(step("entity-facts", text, out))
        peak = max(took.peak_mb for took in made + found)
        parts.append(Part(size, sum(took.cpu for took in made), sum(took.cpu for took in found), peak))
    fact_diff = step("fact-diff", *facts, folder / "facts.json")
    shutil.rmtree(folder)
    return Authors(page_text, page_diff, parts[0], parts[1], fact_diff)


def print_authors(one: Size, theirs: Authors, figures: Path | None) -> None:
    """Print the authors' steps and ours on the same dumps."""
    wikidata, part = sum(theirs.wikidata(one.json)), theirs.many.json / one.json

    def row(name: str, cpu: float, *stages: str) -> list[Cell]:
        return [name, round(cpu, 1), round(one.cold.cpu(*stages), 1), round(one.kept.cpu(*stages), 1)]

    def ratio(name: str, cpu: float, *stages: str) -> list[Cell]:
        return [name, None, round(cpu / one.cold.cpu(*stages), 1), round(cpu / one.kept.cpu(*stages), 1)]

    rows = [
        row("WikiExtractor, both dumps; wiki-extract", sum(took.cpu for took in theirs.page_text), "wiki-extract"),
        row("difflib; wiki-diff", theirs.page_diff.cpu, "wiki-diff"),
        row("gensim and search; wikidata-extract, -index, -copy", wikidata, *EXTRACTION),
        row("comparing the facts; wikidata-diff", theirs.fact_diff.cpu / part, "wikidata-diff"),
        ratio("authors : ours, Wikipedia", theirs.wikipedia, "wiki-extract", "wiki-diff"),
        ratio("authors : ours, Wikidata extraction", wikidata, *EXTRACTION),
    ]
    note = (
        f"Size {one.size}. Their Wikidata steps take time in proportion to the size: they ran on "
        f"{theirs.few.json / 1e6:.0f} and {theirs.many.json / 1e6:.0f} of {one.json / 1e6:,.0f} MB of JSON, and the "
        "time of all follows from the difference. The search is one pass; the released program makes one for each "
        "million items, in each of three modes."
    )
    columns = ("CPU s", "the authors' way", "ours, cold", "ours, kept")
    report(Table("build_authors", "A month's build and the authors' way", columns, rows, note), figures)


def print_ratios(sizes: list[Size]) -> None:
    """Print the ratios of the largest size and their goals.

    The growth between two sizes leaves out costs that do not grow, such as the start of Python.
    """
    last = sizes[-1]
    rows = []
    for name in ("cold", "kept"):
        whole = {one.size: (one.build(name).took.cpu, one.floor_of(name)) for one in sizes}
        ours, floor = whole[last.size]
        rows.append(f"the whole, {name}: CPU of ours : floor | {ours / floor:.2f} | <= 1.5")
        for smaller in sizes[-2:-1]:
            before, floor_before = whole[smaller.size]
            grown = (ours - before) / (floor - floor_before)
            rows.append(f"the same, growth from size {smaller.size} to {last.size} | {grown:.2f} | ")
    parsed = (last.json - last.json_recent) / 1e6 / last.cold.cpu("wikidata-extract prev")
    skipped = last.json_recent / 1e6 / last.kept.cpu(*EXTRACTION)
    rows.append(f"Wikidata gz to facts in Parquet, every item parsed: MB of JSON a CPU second | {parsed:.0f} | >= 150")
    rows.append(
        f"the same, items unchanged since last month skipped: MB of JSON a CPU second | {skipped:.0f} | >= 150"
    )
    table(f"ratio, size {last.size} | measured | goal", rows)


def main() -> None:
    """Make the dumps if necessary, measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="for dumps and builds")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 4, 16], help="of the dumps, rising")
    parser.add_argument("--pages", type=int, default=5_000, help="pages of size 1, about 9 KB each")
    parser.add_argument("--items", type=int, default=40_000, help="items of size 1, about 15 KB each")
    parser.add_argument("--no-authors", action="store_true", help="leave out the authors' way")
    parser.add_argument(
        "--authors-items", type=int, default=2_000, help="about how many items to time their Wikidata extraction on"
    )
    add_option(parser)
    arguments = parser.parse_args()
    folder: Path = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    measured, best, dumps_of = [], None, {}
    for size in arguments.sizes:
        root = make(folder, size * arguments.pages, size * arguments.items)
        dumps = {
            "bz2": sorted(root.glob("enwiki/*/*-multistream.xml.bz2")),
            "gz": sorted(root.glob("wikidatawiki/entities/*/*.json.gz")),
        }
        best = best or fastest(dumps)
        measured.append(measure_size(size, size * arguments.pages, dumps, best, folder))
        dumps_of[size] = dumps
    print_sizes(measured, arguments.figures)
    middle = measured[len(measured) // 2]
    if not arguments.no_authors:
        nth = max(1, middle.size * arguments.items // arguments.authors_items)
        theirs = measure_authors(dumps_of[middle.size], folder / "authors", nth * 4, nth)
        print_authors(middle, theirs, arguments.figures)
    print_ratios(measured)


if __name__ == "__main__":
    main()
