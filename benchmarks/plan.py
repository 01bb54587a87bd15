"""What `temporalwiki build --plan` says, beside what the build then takes.

    python benchmarks/plan.py --folder /tmp/bench --pages 2000 8000 --items 4000 16000
    python benchmarks/plan.py --folder /tmp/bench --dumps dumps 20141106 20160501 --wikidata 20141201 20170330

Of generated worlds of some sizes, or of dumps that are there. Prints a Markdown table for each; builds with one job,
so that its CPU time is one process's. The factors in builders/estimate.py are fitted to these tables.
"""

from __future__ import annotations

import argparse
import shutil
import time
from pathlib import Path

from temporalwiki.builders.build import Sources, build, find_sources
from temporalwiki.builders.estimate import estimate
from temporalwiki.builders.snapshot import Interval
from temporalwiki.builders.world import World, write_world


def compare(sources: Sources, folder: Path, title: str) -> None:
    """Plan, build, and print both."""
    out, work = folder / ".plan-out", folder / ".plan-work"  # names that nothing else has: they are deleted
    for place in (out, work):
        shutil.rmtree(place, ignore_errors=True)
    begun = time.process_time()
    plan = estimate(sources, out, work)
    took = time.process_time() - begun
    before = time.process_time()
    stages = build(sources, out, work).content["run"]["stages"]
    cpu = time.process_time() - before
    print(f"\n{title}; the plan took {took:.1f} s of CPU\n")
    print("| stage | MB read | tasks, plan | tasks, build | CPU s, plan | CPU s, build | plan / build |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for stage in plan.stages:
        ran = stages.pop(stage.name)
        rate = f"{stage.cpu / ran['cpu_seconds']:.2f}" if ran["cpu_seconds"] > 0.05 else ""
        read = "" if stage.read is None else f"{stage.read / 1e6:,.1f}"
        print(
            f"| {stage.name} | {read} | {stage.tasks} | {ran['tasks']} | {stage.cpu:.2f} | {ran['cpu_seconds']:.2f} "
            f"| {rate} |"
        )
    assert not stages, f"not in the plan: {', '.join(stages)}"
    print(f"| all | | | | {plan.cpu:.2f} | {cpu:.2f} | {plan.cpu / cpu:.2f} |")
    print("\n| on disk | MB, plan | MB, build | plan / build |\n|---|---:|---:|---:|")
    for name, place, planned in (("work", work, plan.disk(plan.work)), ("out", out, plan.disk(plan.out))):
        files = [file.stat() for file in place.rglob("*") if file.is_file()]
        written = sum({file.st_ino: file.st_size for file in files}.values())  # extracts share files by links
        print(f"| {name} | {planned / 1e6:.1f} | {written / 1e6:.1f} | {planned / written:.2f} |", flush=True)
        shutil.rmtree(place)


def main() -> None:
    """Make the worlds that are not there, then compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="for generated dumps and for builds")
    parser.add_argument("--pages", type=int, nargs="+", default=[2000, 8000], help="of a world each")
    parser.add_argument("--items", type=int, nargs="+", default=[4000, 16000])
    parser.add_argument("--dumps", type=Path, help="of these instead of generated worlds")
    parser.add_argument("--wikidata", nargs=2)
    parser.add_argument("dates", nargs="*", help="PREV RECENT, with --dumps")
    arguments = parser.parse_args()
    if arguments.dumps:
        prev, recent = arguments.dates
        wikidata = tuple(arguments.wikidata) if arguments.wikidata else None
        sources = find_sources(arguments.dumps, Interval("enwiki", prev, recent), wikidata)
        compare(sources, arguments.folder, f"{arguments.dumps}, {prev} to {recent}")
        return
    for pages, items in zip(arguments.pages, arguments.items, strict=True):
        world = World(filler_pages=pages, filler_items=items)
        dumps = arguments.folder / f"dumps-{pages}-{items}"
        if not (dumps / "made").exists():
            write_world(dumps, world)
            (dumps / "made").touch()
        sources = find_sources(dumps, Interval("enwiki", *world.dates))
        compare(sources, arguments.folder, f"{pages} pages and {items} items of filler")


if __name__ == "__main__":
    main()
