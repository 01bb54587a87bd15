"""Measure the steps from Wikidata's JSON to facts in Parquet, with all items parsed and with changed ones only.

    python benchmarks/wikidata_extract.py --folder /tmp/bench --sample ../dumps/*/wikidata-*.json.gz --size 500

The sample holds real entities, one in each line (plain, .gz or .bz2). The program repeats them up to the size, with
new ids for items and statements, in the form of the dumps of 2021; a second snapshot has another ``lastrevid`` in 5 %
of them. Without a sample the entities are generated (``load.py``). One process takes all steps, one after another, and
prints a Markdown table of CPU time. Samples differ: the items of a small one are often famous, and thus larger than
others and with more facts.
"""

from __future__ import annotations

import argparse
import bz2
import contextlib
import gzip
import importlib
import json
import random
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from isal import igzip
from load import write_load

from temporalwiki.builders import incremental
from temporalwiki.builders.measurement import measured
from temporalwiki.builders.stages import Report, total
from temporalwiki.builders.streams import pieces
from temporalwiki.builders.wikidata import extract, unchanged_items
from temporalwiki.builders.wikidata.entities import EntityReader, NotAnEntity
from temporalwiki.builders.world import World

CHANGED = 0.05
MEMBER = 4 << 20  # bytes of JSON
_STATEMENT_ID = re.compile(rb"(?<=\$)[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")


def read_sample(paths: list[Path]) -> list[bytes]:
    """Return the items of some files as lines in today's order of keys, without the keys about the page."""
    found = []
    for path in paths:
        unpack = {".gz": gzip.decompress, ".bz2": bz2.decompress}.get(path.suffix, bytes)
        for line in unpack(path.read_bytes()).splitlines():
            text = line.strip().removesuffix(b",")
            entity = json.loads(text) if text.startswith(b"{") else {}
            if entity.get("type") != "item" or "claims" not in entity:
                continue
            keys = ("labels", "descriptions", "aliases", "claims", "sitelinks")
            ordered = {"type": "item", "id": entity["id"], **{key: entity.get(key) or [] for key in keys}}
            found.append(json.dumps(ordered, separators=(",", ":")).encode().replace(b"/", rb"\/"))
    return found


def entities(sample: list[bytes], size: int, month: int) -> Iterator[bytes]:
    """Yield lines of about ``size`` bytes in all: the sample again and again with other ids."""
    templates = []
    for line in sample:
        name = re.match(rb'\{"type":"item","id":"(Q[0-9]+)"', line)
        assert name is not None
        line = line.replace(b'"%s"' % name[1], b'"\0"').replace(b'"%s$' % name[1], b'"\0$')
        templates.append(_STATEMENT_ID.split(line))
    written, number = 0, 0
    while written < size:
        number += 1
        changed = month > 0 and (number * 7919) % 10_000 < CHANGED * 10_000
        parts = templates[number % len(templates)]
        ids = random.Random(number * 2 + changed).randbytes(16 * len(parts)).hex().upper().encode()
        out = bytearray(parts[0])
        for i, part in enumerate(parts[1:]):
            new = ids[32 * i : 32 * i + 32]
            out += b"-".join((new[:8], new[8:12], new[12:16], new[16:20], new[20:]))
            out += part
        line = bytes(out).replace(b"\0", b"Q%d" % number)
        line = line[:-1] + b',"pageid":%d,"ns":0,"title":"Q%d","lastrevid":%d,"modified":"2021-11-%02dT10:00:00Z"}' % (
            number + 200, number, 1_400_000_000 + number + changed * 10**8, 1 + number % 28,
        )  # fmt: skip
        written += len(line) + 2
        yield line


def write_sample(folder: Path, sample: list[bytes], size: int) -> list[Path]:
    """Two snapshots of the sample's entities, as gzip members, if they are not there."""
    made = []
    for month, date in enumerate(("20211101", "20211129")):
        path = folder / f"sample-{size >> 20}" / "wikidatawiki" / "entities" / date / f"wikidata-{date}-all.json.gz"
        made.append(path)
        if path.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.with_suffix(".part").open("wb") as file:
            text, before = bytearray(b"["), b"\n"
            for line in entities(sample, size, month):
                text += before + line
                before = b",\n"
                if len(text) > MEMBER:
                    file.write(igzip.compress(bytes(text), compresslevel=3))
                    text.clear()
            file.write(igzip.compress(bytes(text) + b"\n]\n", compresslevel=3))
        path.with_suffix(".part").replace(path)
    return made


def made_up(folder: Path, size: int) -> list[Path]:
    """Return two generated snapshots; write them if necessary."""
    folder /= f"world-{size >> 20}"
    world = World(people=30)
    if not (folder / "made").exists():
        write_load(folder, world, 0, max(1, size // 15_500))
        (folder / "made").touch()
    return [next(folder.glob(f"wikidatawiki/entities/{date}/*.json.gz")) for date in world.wikidata_dates]


def measure(prev: Path, recent: Path, work: Path) -> None:
    """Take every step and print its time and memory."""
    task = extract.ExtractTask(0, str(prev), 0, None, "enwiki", "en", False)
    later = replace(task, file=str(recent))
    size = sum(len(piece.data) for piece in pieces(prev))
    packed = prev.stat().st_size
    print(f"{size / 1e6:,.0f} MB of JSON, {packed / 1e6:,.0f} MB of gz ({size / packed:.1f} to 1)\n")
    print("| | CPU s | MB of JSON/s | times decompression | peak MB |\n|---|---:|---:|---:|---:|")
    floor = 0.0

    def step(name: str, run: Callable[[], Report | None]) -> Report:
        nonlocal floor
        with measured() as took:
            report = run()
        cpu = took["cpu_seconds"] or 0.001
        floor = floor or cpu
        row = (f"{cpu:.2f}", f"{size / 1e6 / cpu:,.0f}", f"{cpu / floor:.2f}", f"{took['peak_memory_mb']}")
        print(f"| {name} | {' | '.join(row)} |", flush=True)
        return report or {}

    def each_line(act: Callable[[bytes], object]) -> Callable[[], None]:
        def run() -> None:
            for _, line in extract.lines(task):
                text = line.removesuffix(b",")
                if len(text) > 2:
                    act(text)

        return run

    reader = EntityReader("enwiki", "en")

    def read(line: bytes) -> None:
        with contextlib.suppress(NotAnEntity):
            reader.read(line)

    def find_revisions() -> None:
        for _, line in extract.lines(task):
            if extract.ITEM_END.search(line, max(0, len(line) - extract.ITEM_END_LENGTH)):
                extract.ITEM_START.match(line)

    step("decompress", lambda: consume(pieces(prev)))
    step("lines", lambda: consume(extract.lines(task)))
    step("lines, number and `lastrevid` of their items", find_revisions)
    step("lines, entities as the build reads them", each_line(read))
    for module in ("orjson", "json"):
        try:
            loads = importlib.import_module(module).loads
        except ImportError:
            print(f"| {module} | not installed | | | |")
            continue
        step(f"lines, {module}.loads", each_line(loads))
    for name in ("prev", "full", "recent/carried"):
        (work / name).mkdir(parents=True)
    step("wikidata-extract", lambda: extract.run(task, work / "prev"))
    full = step("wikidata-extract of the next snapshot, all read", lambda: extract.run(later, work / "full"))
    incremental.finish(work / "prev", [task], None)
    base = incremental.base_of(work / "prev")
    assert base is not None
    [group] = unchanged_items.plan(0, base)
    index = step("wikidata-index", lambda: unchanged_items.index(group, work / "prev" / "revisions"))
    rest = step(
        "wikidata-extract of the next snapshot, changed items only",
        lambda: extract.run(replace(later, base=base), work / "recent"),
    )
    carried = step("wikidata-carry", lambda: unchanged_items.run(group, work / "recent" / "carried"))
    if total([rest, carried], "statements") != total([full], "statements"):
        raise AssertionError(f"{full}, but {rest} and {carried}")
    facts = full["statements"]["facts"]
    print(f"\n{index['items']['indexed']:,} items, {facts:,} facts; {rest['kept']['items']:,} items not parsed")
    for name in ("full", "recent"):
        files = sum(path.stat().st_size for path in (work / name).rglob("*.parquet"))
        print(f"{name}: {files / 1e6:,.1f} MB of Parquet")


def consume(items: Iterator[object]) -> None:
    """Read an iterator to its end."""
    for _ in items:
        pass


def main() -> None:
    """Make the snapshots if necessary, then measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="for the snapshots and the extracts")
    parser.add_argument("--sample", type=Path, nargs="+", default=[], help="files of real entities, one in each line")
    parser.add_argument("--size", type=int, default=500, help="MB of JSON in each snapshot")
    arguments = parser.parse_args()
    size = arguments.size << 20
    if arguments.sample:
        prev, recent = write_sample(arguments.folder, read_sample(arguments.sample), size)
    else:
        prev, recent = made_up(arguments.folder, size)
    work = arguments.folder / "extracts"
    shutil.rmtree(work, ignore_errors=True)
    try:
        measure(prev, recent, work)
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
