"""Measure a month's build and the floor, decompressing the same bytes: CPU time and memory.

    python benchmarks/month.py --folder /tmp/bench                       # sizes 1, 4 and 16: about 20 minutes
    python benchmarks/month.py --folder /tmp/bench --sizes 1 --pages 100000 --items 60000      # one size of your own

One run reads generated dumps of several sizes. As in a real month, there are 12 MB of Wikidata's JSON for each MB of
Wikipedia's XML, 5 % of both change, and 10,000 of 6.9 million unchanged articles are sampled. The dumps have their
checksums already, as those that ``fetch`` brings. The tables compare decoders (the fastest for bz2 and for gz are the
floor), builds (cold, and with last month's extracts kept) and stages.

CPU time is user and system time of a command and all its children, the lesser of two runs. Before every run, dumps
and extracts are dropped from the system's cache: those of a real month are many times larger than memory. Builds run
with ``--jobs 1``: more jobs do the same work. Memory is the most that all processes of a command hold together,
sampled 20 times a second. The program needs Linux and ``pip install 'temporalwiki[bench]'``. The folder takes about
7 GB at the default sizes; a later run uses its dumps again, everything else is removed.
"""

import argparse
import contextlib
import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped, unused-ignore]
from load import write_load
from table import Cell, show

from temporalwiki.base.files import digest
from temporalwiki.builders.build import UNCHANGED_PAGES
from temporalwiki.builders.checksums import note, state
from temporalwiki.builders.manifests import read_manifests
from temporalwiki.builders.world import World

ARTICLES = 6_900_000  # in English Wikipedia
DUMPS = {"bz2": "enwiki/*/*-multistream.xml.bz2", "gz": "wikidatawiki/entities/*/*.json.gz"}
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
    """CPU seconds of a command with all its children, the most memory they held together, its output."""

    cpu: float
    peak_mb: float
    output: str


def measure(command: list[str]) -> Measured:
    """Run a command and measure it."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    peak = 0
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    tree = psutil.Process(running.pid)
    while True:
        try:
            output, errors = running.communicate(timeout=0.05)
            break
        except subprocess.TimeoutExpired:
            with contextlib.suppress(psutil.NoSuchProcess):  # the command or one of its children has ended
                peak = max(peak, sum(one.memory_info().rss for one in [tree, *tree.children(recursive=True)]))
    if running.returncode:
        sys.exit(f"failed: {' '.join(command)}\n{errors[-2000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Measured(cpu, peak / 1e6, output)


def forget(files: Iterable[Path]) -> None:
    """Drop files from the system's cache."""
    for path in files:
        with path.open("rb") as file:
            os.fsync(file.fileno())  # only pages that are on the disk can be dropped
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def decode(name: str, form: str, files: list[Path]) -> Measured:
    """Decompress files twice with one decoder; return the run that took less CPU time."""
    imports, opened = DECODERS[form][name]
    command = [sys.executable, "-c", _READ.format(imports=imports, opened=opened), *map(str, files)]
    runs = []
    for _ in range(2):
        forget(files)
        runs.append(measure(command))
    return min(runs, key=lambda took: took.cpu)


def fastest(dumps: dict[str, list[Path]]) -> dict[str, str]:
    """Return the fastest decoder of each format, and print the times of all."""
    best: dict[str, str] = {}
    rows: list[list[Cell]] = []
    for form, contenders in DECODERS.items():
        file = dumps[form][-1]
        found = [name for name, (imports, _) in contenders.items() if find_spec(imports.split()[1])]
        took = {name: decode(name, form, [file]) for name in found}
        best[form] = min(took, key=lambda name: took[name].cpu)
        for name, one in took.items():
            size = int(one.output) / 1e6
            rows.append([f"{form}: {name}", round(size), round(size / one.cpu)])
    show("Decoders", ("decoder", "MB", "MB/s (CPU)"), rows)
    return best


def make(folder: Path, pages: int, items: int) -> Path:
    """Return the folder of dumps with so many pages and items; write them if necessary."""
    dumps = folder / f"dumps-{pages}-{items}"
    if not (dumps / "made").exists():
        shutil.rmtree(dumps, ignore_errors=True)
        write_load(dumps, World(), pages, items)
        (dumps / "made").touch()
    for place in {file.parent for file in dumps.glob("**/*.*z*")}:
        sums = {file: digest(file, "sha1") for file in sorted(place.glob("*.*z*"))}
        (place / "sha1sums.txt").write_text("".join(f"{sha1}  {file.name}\n" for file, sha1 in sums.items()))
        for file, sha1 in sums.items():
            note(file, state(file), sha1)
    return dumps


@dataclass(frozen=True)
class Build:
    """A measured build and the stages of its manifest."""

    took: Measured
    stages: dict[str, Any]


def build(dumps: Path, folder: Path, sampled: int) -> Build:
    """Run a build with the present work folder and a sample of so many unchanged articles."""
    out, work = folder / "temporalwiki", folder / "work"
    shutil.rmtree(out, ignore_errors=True)
    forget(path for place in (dumps, work) for path in place.rglob("*") if path.is_file())
    program = [sys.executable, "-c", _BUILD.format(sampled=sampled)]
    options = ["--dumps", str(dumps), "--out", str(out), "--work", str(work), "--jobs", "1"]
    took = measure([*program, "build", *World().dates, *options])
    [manifest] = read_manifests(out)
    return Build(took, manifest.content["run"]["stages"])


def forget_recent(work: Path) -> None:
    """Leave in the work folder only extracts and checksums of the older snapshot, as a build of last month does."""
    world = World()
    for path in work.glob("checksums/*/reports/*.json"):
        name = Path(json.loads(path.read_text())["file"]).name
        if world.dates[1] in name or world.wikidata_dates[1] in name:
            path.unlink()
    recent = (f"extracts/*{world.dates[1]}*", f"extracts/wikidata-{world.wikidata_dates[1]}*")
    for name in (*recent, f"enwiki-{world.dates[0]}-*"):
        for folder in work.glob(name):
            shutil.rmtree(folder)


@dataclass(frozen=True)
class Measurements:
    """The measurements on dumps of one size: bytes of both snapshots, then the floor and the build of each kind."""

    size: int
    xml: int
    json: int
    floors: dict[str, float]  # CPU seconds
    builds: dict[str, Build]


def measure_size(
    size: int, pages: int, dumps: dict[str, list[Path]], best: dict[str, str], folder: Path
) -> Measurements:
    """Measure floor and builds on dumps with so many pages."""
    both = {form: decode(name, form, dumps[form]) for form, name in best.items()}
    recent = {form: decode(name, form, dumps[form][-1:]) for form, name in best.items()}
    floors = {"cold": sum(one.cpu for one in both.values()), "kept": sum(one.cpu for one in recent.values())}
    work, root = folder / "work", dumps["bz2"][0].parents[2]
    sampled = max(1, pages * UNCHANGED_PAGES // ARTICLES)
    runs: dict[str, list[Build]] = {"cold": [], "kept": []}
    for _ in range(2):
        shutil.rmtree(work, ignore_errors=True)
        runs["cold"].append(build(root, folder, sampled))
        forget_recent(work)
        runs["kept"].append(build(root, folder, sampled))
    shutil.rmtree(work)
    builds = {name: min(of, key=lambda one: one.took.cpu) for name, of in runs.items()}
    return Measurements(size, int(both["bz2"].output), int(both["gz"].output), floors, builds)


def show_sizes(sizes: list[Measurements]) -> None:
    """Print floor and builds at every size, and the stages of the largest."""
    rows: list[list[Cell]] = []
    for one in sizes:
        for name, built in one.builds.items():
            cpu, floor = built.took.cpu, one.floors[name]
            speed = [round(cpu / floor, 2), round((one.xml + one.json) / 1e6 / cpu), round(built.took.peak_mb)]
            mb = [round(one.xml / 1e6), round(one.json / 1e6)]
            rows.append([f"{one.size}, {name}", *mb, round(floor, 1), round(cpu, 1), *speed])
    columns = ("size", "XML MB", "JSON MB", "floor CPU s", "build CPU s", "build : floor", "MB/s (CPU)", "peak MB")
    note = (
        "The floor is the fastest decoder on the same bytes. XML and JSON are of both snapshots; the floor of *kept*, "
        "a build with last month's extracts, is the recent snapshot's."
    )
    show("A month's build and decompressing its dumps", columns, rows, note)
    rows = []
    for name, of in sizes[-1].builds.items():
        for stage, ran in of.stages.items():  # the manifest also counts the tasks of earlier builds
            cpu = ran["cpu_seconds"] * (1 - ran["kept"] / ran["tasks"]) if ran["tasks"] else 0.0
            rows.append([f"{stage}, {name}", ran["tasks"], ran["kept"], round(cpu, 1), round(ran["peak_memory_mb"])])
    columns = (f"stage, size {sizes[-1].size}", "tasks", "of them done before", "CPU s", "peak MB of a task")
    show("Stages of a build", columns, rows)


def main() -> None:
    """Make the dumps if necessary, measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="for dumps and builds")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 4, 16], help="of the dumps, rising")
    parser.add_argument("--pages", type=int, default=5_000, help="pages of size 1, about 9 KB each")
    parser.add_argument("--items", type=int, default=40_000, help="items of size 1, about 15 KB each")
    arguments = parser.parse_args()
    measured, best = [], None
    for size in arguments.sizes:
        root = make(arguments.folder, size * arguments.pages, size * arguments.items)
        dumps = {form: sorted(root.glob(pattern)) for form, pattern in DUMPS.items()}
        best = best or fastest(dumps)
        measured.append(measure_size(size, size * arguments.pages, dumps, best, arguments.folder))
    show_sizes(measured)


if __name__ == "__main__":
    main()
