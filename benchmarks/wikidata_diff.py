"""Measure the stage wikidata-diff on extracts of millions of facts, and its anti-join done in other ways.

    python benchmarks/wikidata_diff.py --folder /tmp/bench --facts 5 20

The program writes two extracts of N million facts each, as the stage wikidata-extract would: 5 % of the subjects
change, 1 % of the facts have dates. (100 million facts take about 4 GB in each.) It runs the tasks of the stage one
after another in a process of its own and prints a Markdown table. ``--joins`` adds the anti-join by itself, as one
global join in DuckDB and in Polars.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from month import measure

from temporalwiki.builders.parquet import ParquetWriter
from temporalwiki.builders.wikidata import fact_diff, labels, tables
from temporalwiki.builders.wikipedia.titles import HASH, TitleWriter, title_hash

FACTS_A_SUBJECT = 6.25  # as Wikidata: 110 M items have 700 M facts
SUBJECTS_A_FILE = 200_000
CHANGED = 0.05  # of the subjects
DATED = 0.01  # of the facts
WITH_ARTICLE = 0.08  # of the subjects
ARTICLES_A_FILE = 20_000  # about as many as a range of English Wikipedia has
PREV_DATE, RECENT_DATE = 20211101, 20211201
STAGE = "the stage, its tasks one after another"
OTHERS = {"duckdb": "DuckDB, one global join", "polars": "Polars"}
MEMORY = 384 << 20  # for DuckDB, as with the least --memory for each job
Columns = dict[str, Any]


# --- the extracts ---


def write_world(folder: Path, facts: int) -> None:
    """Write two extracts of about ``facts`` facts each, and the titles of both dates."""
    subjects = int(facts / FACTS_A_SUBJECT)
    for number, first in enumerate(range(0, subjects, SUBJECTS_A_FILE)):
        end = min(first + SUBJECTS_A_FILE, subjects)
        with (
            _Side(folder / "prev", number) as prev,
            _Side(folder / "recent", number) as recent,
        ):
            _write_subjects(prev, recent, first, end, subjects)
    for side in ("prev", "recent"):
        properties = {
            "p": np.arange(1, 2001),
            "lastrevid": np.arange(1, 2001),
            "label": [f"relation {p}" for p in range(1, 2001)],
            "seen": np.arange(2000),
        }
        with ParquetWriter(folder / side / "properties-00000.parquet", tables.PROPERTIES) as out:
            out.write_table(pa.table(properties, schema=tables.PROPERTIES))
        articles = int(subjects * WITH_ARTICLE)
        (folder / f"{side}_articles").mkdir()
        for number, before in enumerate(range(0, articles, ARTICLES_A_FILE)):
            with TitleWriter(folder / f"{side}_articles", number) as titles:
                for page_id in range(before + 1, min(before + ARTICLES_A_FILE, articles) + 1):
                    titles.add_article(titles.add(f"Page {page_id}"), page_id)


class _Side:
    """The files of one range of an extract."""

    def __init__(self, folder: Path, number: int) -> None:
        self._seen = number << 36
        self._tables = {name: tables.BucketWriter(folder, name, f"{number:05d}") for name in ("facts", "entities")}

    def __enter__(self) -> _Side:
        for table in self._tables.values():
            table.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        for table in self._tables.values():
            table.__exit__(*error)

    def write(self, **tables: Columns) -> None:
        untitled = tables["entities"]["s"][tables["entities"]["title"].is_null().to_numpy(zero_copy_only=False)]
        for name, columns in tables.items():
            table = self._tables[name]
            columns = columns | {"bucket": columns["s"] % tables.BUCKETS, "seen": columns["s"] + self._seen}
            columns |= {name: np.zeros(len(columns["s"])) for name in table.schema.names if name not in columns}
            rows = pa.table({name: columns[name] for name in table.schema.names}).cast(table.schema)
            table.add_table(rows, np.isin(columns["s"], untitled) if name == "facts" else None)


def _write_subjects(prev: _Side, recent: _Side, first: int, end: int, subjects: int) -> None:
    random = np.random.default_rng(first)
    s = np.arange(first + 1, end + 1)
    entities: Columns = {
        "s": s,
        "lastrevid": random.integers(10**9, 15 * 10**8, len(s)),
        "label": pc.binary_join_element_wise("Name of", pa.array(s * 7919).cast(pa.string()), " "),
        "title": pa.array(
            [title_hash(f"Page {number}") if number <= subjects * WITH_ARTICLE else None for number in s.tolist()],
            HASH,
        ),
    }
    facts = _facts_of(random, np.repeat(s, random.poisson(FACTS_A_SUBJECT, len(s))), subjects)
    prev.write(facts=facts, entities=entities)
    changed = random.random(len(s)) < CHANGED
    of_changed = changed[facts["s"] - first - 1]
    ended = of_changed & (random.random(len(of_changed)) < 0.02)
    day = pc.if_else(pa.array(ended), "+2021-11-15T00:00:00Z", facts["end"])
    number = pc.if_else(pa.array(ended), 20211115, facts["end_day"])
    kept = pa.array(~(of_changed & (random.random(len(of_changed)) < 0.05)))
    after = {name: pa.array(column).filter(kept) for name, column in (facts | {"end": day, "end_day": number}).items()}
    more = _facts_of(random, np.repeat(s[changed], random.poisson(0.5, changed.sum())), subjects)
    both = {name: pa.concat_arrays([after[name], pa.array(more[name])]) for name in after}
    order = np.argsort(both["s"].to_numpy(), kind="stable")
    both = {name: column.take(pa.array(order)) for name, column in both.items()}
    after_entities = entities | {"lastrevid": entities["lastrevid"] + changed * 10**6}
    recent.write(facts=both | {"s": both["s"].to_numpy()}, entities=after_entities)


def _facts_of(random: np.random.Generator, s: np.ndarray[Any, Any], subjects: int) -> Columns:
    """Return facts of these subjects; relations and half of the objects follow a power law."""
    n = len(s)
    relation = np.minimum(random.zipf(1.4, n), 2000)
    popular = np.minimum(random.zipf(1.3, n), subjects)
    dated = pa.array(random.random(n) < DATED)
    return {
        "s": s,
        "p": relation,
        "o": np.where(random.random(n) < 0.5, popular, random.integers(1, subjects + 1, n)),
        "best": random.random(n) < 0.97,
        "rank": pa.array(np.full(n, "normal")),
        "statement_id": _statement_ids(random, s),
        "start": pc.if_else(dated, "+2015-00-00T00:00:00Z", pa.scalar(None, pa.string())),
        "start_day": pc.if_else(dated, 20150000, pa.scalar(None, pa.int64())),
        "end": pc.if_else(dated, "+2019-00-00T00:00:00Z", pa.scalar(None, pa.string())),
        "end_day": pc.if_else(dated, 20190000, pa.scalar(None, pa.int64())),
    }


def _statement_ids(random: np.random.Generator, s: np.ndarray[Any, Any]) -> pa.Array:
    """Return ids such as Q42$F078E5B3-F9A8-480E-B7AC-D97778CBBEF9."""
    digits = np.frombuffer(b"0123456789ABCDEF", np.uint8)[random.integers(0, 16, (len(s), 36), np.uint8)]
    digits[:, [8, 13, 18, 23]] = ord("-")
    ends = np.arange(len(s) + 1, dtype=np.int32) * np.int32(36)
    guids = pa.StringArray.from_buffers(len(s), pa.py_buffer(ends), pa.py_buffer(digits.tobytes()))
    return pc.binary_join_element_wise(pc.binary_join_element_wise("Q", pa.array(s).cast(pa.string()), ""), guids, "$")


# --- the ways, each in a process of its own ---


def run_stages(folder: Path, facts: int) -> dict[str, Any]:
    """Run all tasks of the two stages in this process, one after another."""
    out = folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    extracts = {side: str(folder / side) for side in ("prev", "recent")}
    tasks = fact_diff.plan(
        facts,
        **extracts,
        labels=str(out / "labels"),
        prev_articles=str(folder / "prev_articles"),
        recent_articles=str(folder / "recent_articles"),
        page_items=None,
        prev_date=PREV_DATE,
        recent_date=RECENT_DATE,
        unchanged_fraction=0.001,
        seed=0,
    )
    (out / "labels").mkdir(parents=True)
    cpu = time.process_time()
    for of_labels in labels.plan(tasks):
        labels.run(of_labels, out / "labels")
    cpu_labels, longest = time.process_time() - cpu, 0.0
    for task in tasks:
        begun = time.perf_counter()
        fact_diff.run(task, out, MEMORY)
        longest = max(longest, time.perf_counter() - begun)
    rows = sum(pq.read_metadata(path).num_rows for path in out.glob("candidates-*.parquet"))
    shutil.rmtree(out)
    return {"tasks": len(tasks), "longest": longest, "rows": rows, "labels": cpu_labels}


_ANTI_JOIN = "SELECT count(*) FROM {recent} ANTI JOIN {prev} USING (s, p, o)"


def join_duckdb(folder: Path) -> int:
    """Return the number of new facts, found by one global join."""
    import duckdb

    sides = {side: f"read_parquet('{folder / side / 'facts-*.parquet'}')" for side in ("prev", "recent")}
    with duckdb.connect(config={"threads": 1}) as db:
        [(count,)] = db.execute(_ANTI_JOIN.format(**sides)).fetchall()
    return int(count)


def join_polars(folder: Path) -> int:
    """Return the number of new facts, found by one global join."""
    os.environ["POLARS_MAX_THREADS"] = "1"
    import polars

    prev, recent = (
        polars.scan_parquet(str(folder / side / "facts-*.parquet")).select("s", "p", "o")
        for side in ("prev", "recent")
    )
    joined = recent.join(prev, on=["s", "p", "o"], how="anti").select(polars.len())
    return int(joined.collect(engine="streaming").item())


JOINS = {"duckdb": join_duckdb, "polars": join_polars}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="for the extracts, which are removed at the end")
    parser.add_argument("--facts", type=float, nargs="+", default=[5, 20], help="millions of facts in each extract")
    parser.add_argument("--joins", action="store_true", help="also run the anti-join in other ways")
    parser.add_argument("--keep", action="store_true", help="keep the extracts for a later run")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        facts, folder = int(options.facts[0]), options.folder
        said = run_stages(folder, facts) if options.run == "stage" else {"rows": JOINS[options.run](folder)}
        print(json.dumps(said))
        return
    print("| facts a side | way | tasks | CPU s | s per million | peak MB | longest task s | rows |")
    print("| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for millions in options.facts:
        facts, folder = int(millions * 1e6), options.folder / f"{millions:g}"
        if not (options.keep and (folder / "whole").exists()):
            shutil.rmtree(folder, ignore_errors=True)
            write_world(folder, facts)
            (folder / "whole").touch()
        ways = {"stage": STAGE} | (OTHERS if options.joins else {})
        for what, name in ways.items():
            if what in OTHERS:
                try:
                    name += f" {importlib.metadata.version(what)}"
                except importlib.metadata.PackageNotFoundError:
                    print(f"| {millions:g} M | {name} | not installed | | | | | |")
                    continue
            took = measure([sys.executable, __file__, "--folder", str(folder), "--facts", str(facts), "--run", what])
            found = json.loads(took.output.splitlines()[-1])
            print(
                f"| {millions:g} M | {name} | {found.get('tasks', '')} | {took.cpu:.1f} | "
                f"{took.cpu / millions:.2f} | {took.peak_mb:.0f} | {found.get('longest', 0):.1f} | "
                f"{found['rows']:,} |",
                flush=True,
            )
        if not options.keep:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
