"""The whole path on a small generated world: what ``temporalwiki demo`` does and prints."""

from __future__ import annotations

import contextlib
import os
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from temporalwiki.builders.build import BuildOptions, Machine, build, find_sources
from temporalwiki.builders.inspection import describe_manifest
from temporalwiki.builders.snapshot import Interval
from temporalwiki.builders.world import World, write_world

SHOWN = 4  # rows of each kind
FRACTION = 0.2  # of unchanged facts; the default is for worlds of millions of them


def demo(out: Path) -> Iterator[str]:
    """Write two months of a generated world below ``out``, build them, load the result; yields text to print."""
    begun = time.perf_counter()
    world = World()
    interval = Interval(world.wiki, *world.dates)
    yield f"1. Two months of a generated Wikipedia and Wikidata, in the dumps' own formats: {out / 'dumps'}"
    write_world(out / "dumps", world)
    folder = out / "temporalwiki"
    options = f"--dumps {out / 'dumps'} --out {folder} --unchanged-fraction {FRACTION}"
    yield f"2. temporalwiki build {interval.prev} {interval.recent} {options}"
    sources = find_sources(out / "dumps", interval)
    jobs = min(2, os.cpu_count() or 1)
    manifest = build(
        sources, folder, out / "temporalwiki.work", BuildOptions(unchanged_fraction=FRACTION), Machine(jobs=jobs)
    )
    yield describe_manifest(folder, manifest)
    with contextlib.chdir(out):
        yield f'\n3. load_dataset("temporalwiki", "diffset-{interval.short_name}"), in {out}:'
        diffset = _load(f"diffset-{interval.short_name}")["train"]
        yield str(diffset)
        updated = [row for row in diffset if row["kind"] == "updated"]
        for row in updated[:SHOWN]:
            yield _wrapped(f"   {row['title']}: ", row["text"].split("\n\n")[0])
        yield f'\n4. load_dataset("temporalwiki", "probes-{interval.short_name}"): facts that'
        probes = _load(f"probes-{interval.short_name}")
        for split in ("changed", "deleted", "unchanged"):
            yield f"   {split} ({len(probes[split])})"
            for row in probes[split].select(range(min(SHOWN, len(probes[split])))):
                was = f" (was {', '.join(row['previous_objects'])})" if row["previous_objects"] else ""
                yield _wrapped(
                    "     ", f"{row['subject']} | {row['relation']} | {row['object']}{was}: {row['evidence']!r}"
                )
    yield f"\nDone in {time.perf_counter() - begun:.0f} s. The card: {folder / 'README.md'}"


def _load(config: str) -> Any:
    import datasets  # here, as it takes a second

    datasets.disable_progress_bars()
    return datasets.load_dataset("temporalwiki", config)


def _wrapped(head: str, text: str) -> str:
    return textwrap.fill(text, 118, initial_indent=head, subsequent_indent="      ")
