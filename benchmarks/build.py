"""Time and memory of a whole build on a generated world, beside `bzip2 -dc` on the same dumps.

    python benchmarks/build.py --folder /tmp/bench --pages 130000 --items 60000 --jobs 1 2

Prints a Markdown table. 130,000 filler pages are about 1 GB of wikitext a snapshot; 5 % of them change.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from temporalwiki.builders.dataset_folder import read_manifests
from temporalwiki.builders.world import World, write_world


@dataclass(frozen=True)
class Measured:
    """Wall and CPU seconds of a command with all its children, and the most memory they held together."""

    wall: float
    cpu: float
    peak_mb: float


def measure(command: list[str]) -> Measured:
    """Run a command to its end. Memory is sampled: the sum over its processes, what they share counted once each."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun, peak = time.perf_counter(), 0
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    tree = psutil.Process(running.pid)
    while running.poll() is None:
        total = 0
        for process in [tree, *_children(tree)]:
            try:
                total += process.memory_info().rss
            except psutil.Error:
                continue
        peak = max(peak, total)
        time.sleep(0.05)
    if running.returncode:
        sys.exit(f"failed: {' '.join(command)}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Measured(time.perf_counter() - begun, cpu, peak / 1e6)


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.Error:
        return []


def main() -> None:
    """Make the world if it is not there, then measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="for the generated dumps and the builds")
    parser.add_argument("--pages", type=int, default=130_000)
    parser.add_argument("--items", type=int, default=60_000)
    parser.add_argument("--jobs", type=int, nargs="+", default=[1])
    parser.add_argument("--keep-work", action="store_true", help="measure with last month's extracts kept, too")
    arguments = parser.parse_args()
    world = World(filler_pages=arguments.pages, filler_items=arguments.items, compression_level=9)
    dumps = arguments.folder / f"dumps-{arguments.pages}-{arguments.items}"
    if not (dumps / "made").exists():
        write_world(dumps, world)
        (dumps / "made").touch()
    wikipedia = [str(file) for file in sorted(dumps.glob("enwiki/*/*-multistream.xml.bz2"))]
    floor = measure(["bzip2", "-dc", *wikipedia])
    print("| | wall s | CPU s | peak MB | MB of XML and JSON/s (CPU) | CPU, ratio to bzip2 -dc |")
    print("|---|---:|---:|---:|---:|---:|")
    print(f"| bzip2 -dc, both Wikipedia dumps | {floor.wall:.1f} | {floor.cpu:.1f} | {floor.peak_mb:.0f} | | 1.00 |")
    out = arguments.folder / "temporalwiki"
    work = arguments.folder / "work"
    for jobs in arguments.jobs:
        shutil.rmtree(work, ignore_errors=True)
        _build(dumps, out, work, jobs, floor, f"build, --jobs {jobs}")
        if arguments.keep_work:
            for extract in (work / "extracts").glob(f"*{world.dates[1]}*"):
                shutil.rmtree(extract)
            for extract in (work / "extracts").glob(f"wikidata-{world.wikidata_dates[1]}*"):
                shutil.rmtree(extract)
            for interval in work.glob(f"enwiki-{world.dates[0]}-*"):
                shutil.rmtree(interval)
            _build(dumps, out, work, jobs, floor, f"build, --jobs {jobs}, last month's extracts kept", kept=True)
    [manifest] = read_manifests(out)
    print("\n| stage | tasks | CPU s | peak MB of a process |\n|---|---:|---:|---:|")
    for name, stage in manifest["run"]["stages"].items():
        print(f"| {name} | {stage['tasks']} | {stage['cpu_seconds']:.1f} | {stage['peak_memory_mb']} |")
    pages = manifest["counts"]["pages"]
    print("\n" + json.dumps({key: pages[key] for key in ("read", "unchanged", "new", "updated")}))
    print(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}")


def _build(dumps: Path, out: Path, work: Path, jobs: int, floor: Measured, name: str, kept: bool = False) -> None:
    shutil.rmtree(out, ignore_errors=True)
    program = [sys.executable, "-c", "import sys; from temporalwiki.commands import main; sys.exit(main())"]
    options = ["--dumps", str(dumps), "--out", str(out), "--work", str(work), "--jobs", str(jobs)]
    world = World()
    took = measure([*program, "build", *world.dates, *options])
    [manifest] = read_manifests(out)
    size = sum(sum(extract["bytes"].values()) for extract in manifest["counts"]["extracts"].values()) / 1e6
    cpu = took.cpu
    if jobs > 1:  # worker processes are not children of the command, so the system does not add them: reports do
        cpu += sum(stage["cpu_seconds"] for stage in manifest["run"]["stages"].values())
    if jobs > 1 and kept:  # but those of kept tasks are of the run before
        print(f"| {name} | {took.wall:.1f} | | {took.peak_mb:.0f} | | |", flush=True)
        return
    print(
        f"| {name} | {took.wall:.1f} | {cpu:.1f} | {took.peak_mb:.0f} | {size / cpu:.0f} | {cpu / floor.cpu:.2f} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
