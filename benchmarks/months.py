"""Measure what many published months cost a reader: the header of the card, and one `load_dataset`.

    pip install -c constraints.txt '.[test]'
    python benchmarks/months.py [--months 1 12 24 60]

publishes synthetic months with a row in each split to the Hub of the tests, and loads configs from it with `datasets`,
each in a new process with an empty cache. It prints the table of docs/publishing.md as Markdown. Columns:

- header, names: size of the card's YAML, and the names of configs in it
- load: seconds of the slowest of three loads: the first month by its full name, by its short name at its own tag, and
  the newest month by its short name. Imports are not counted
- requests: how many requests that load sent
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from temporalwiki.builders.configs import SCHEMAS, SPLITS, names
from temporalwiki.builders.dataset_folder import write_split
from temporalwiki.builders.finish import ALWAYS
from temporalwiki.builders.manifests import BuiltManifest, checked_as
from temporalwiki.builders.snapshot import Interval
from temporalwiki.model_cards.dataset import dataset_card
from temporalwiki.push_scripts.dataset import month_tag

from loopback_hub import LoopbackHub

REPO = "ORG/temporalwiki"
LOAD = """
import json, sys, time
import datasets
started = time.perf_counter()
rows = datasets.load_dataset(sys.argv[1], sys.argv[2], revision=sys.argv[3] if len(sys.argv) > 3 else None)
print(json.dumps([time.perf_counter() - started, {split: rows[split][0] for split in rows}], default=str))
"""


def intervals(count: int) -> Iterator[Interval]:
    """Yield months in a row."""
    dates = [f"{2021 + number // 12}{number % 12 + 1:02}01" for number in range(count + 1)]
    for prev, recent in pairwise(dates):
        yield Interval("enwiki", prev, recent)


def value(kind: pa.DataType, text: str) -> Any:
    """Return a value of a column."""
    if pa.types.is_list(kind):
        return [text]
    if pa.types.is_boolean(kind) or pa.types.is_timestamp(kind):
        return pa.scalar(1, pa.int64()).cast(kind).as_py()
    return text if pa.types.is_string(kind) else int(text.partition("-")[0])


def month(folder: Path, interval: Interval) -> BuiltManifest:
    """Write a month with one row in each split, and return its manifest."""
    configs = {}
    for kind in ALWAYS:
        full, short = names(kind, interval)
        row = {column.name: value(column.type, interval.name) for column in SCHEMAS[kind]}
        splits = {split: vars(write_split(folder, full, split, [row])) for split in SPLITS[kind]}
        configs[full] = {"short_name": short, "splits": splits}
    facts = dict.fromkeys(("categorised", "sampled", "aligned", "filtered", "kept"), 1)
    content = {
        "interval": {"wiki": interval.wiki, "language": "en", "prev": interval.prev, "recent": interval.recent},
        "inputs": [],
        "options": {"seed": 0, "unchanged_fraction": 0.001},
        "counts": {
            "pages": {"new": 1, "updated": 0},
            "diffset": {"words": 1},
            "probes": dict.fromkeys(SPLITS["probes"], facts),
        },
        "configs": configs,
        "tag": month_tag(interval),
    }
    return checked_as(BuiltManifest, content, interval.name)


def publish(hub: LoopbackHub, folder: Path, months: list[BuiltManifest]) -> str:
    """Commit the newest month with the card for all, and return the card's header."""
    newest = months[-1]
    card = dataset_card(months, REPO)
    files = {file.path: (folder / file.path).read_bytes() for file in newest.files}
    files |= {newest.path: json.dumps(newest.content).encode(), "README.md": card.encode()}
    hub.commit("dataset", REPO, files, tag=newest.tag)
    return card.split("---\n")[1]


def load(hub: LoopbackHub, home: Path, name: str, revision: str | None) -> tuple[float, int, str]:
    """Load a config in a new process. Return the seconds, the number of requests, and the interval in its rows."""
    hub.requests.clear()
    arguments = [REPO, name, *([revision] if revision else [])]
    done = hub.python(f"import sys; sys.argv[1:] = {arguments!r}\n{LOAD}", home)
    seconds, rows = json.loads(done.stdout)
    return seconds, len(hub.requests), rows["train"]["title"]


def main() -> None:
    """Publish, load, and print the table."""
    parser = argparse.ArgumentParser(description="Measure what many published months cost a reader.")
    parser.add_argument("--months", type=int, nargs="+", default=[1, 12, 24, 60], help="numbers of months, rising")
    arguments = parser.parse_args()
    print("| months | header KB | names | load s | requests |\n|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as scratch, LoopbackHub() as hub:
        months: list[BuiltManifest] = []
        for interval in intervals(max(arguments.months)):
            folder = Path(scratch, "temporalwiki")
            months.append(month(folder, interval))
            header = publish(hub, folder, months)
            if len(months) not in arguments.months:
                continue
            first = months[0].interval
            (full, short), newest = names("diffset", first), names("diffset", interval)[1]
            cases = [(full, None, first), (short, months[0].tag, first), (newest, None, interval)]
            measured = []
            for number, (name, revision, expected) in enumerate(cases):
                seconds, requests, found = load(hub, Path(scratch, f"home-{len(months)}-{number}"), name, revision)
                if found != expected.name:
                    raise SystemExit(f"{name} at {revision or 'main'} is {found}, not {expected.name}")
                measured.append((seconds, requests))
            seconds, requests = max(measured)
            count, size = len(yaml.safe_load(header)["configs"]), len(header) / 1000
            print(f"| {len(months)} | {size:,.1f} | {count} | {seconds:.2f} | {requests} |", flush=True)


if __name__ == "__main__":
    main()
