"""Stages wikidata-index and wikidata-carry: what an extract has of an item that the next dump did not change.

The index tells the revision of every item of a finished extract. The next dump's extract asks it and does not parse
the items that have the same revision; here their rows are copied, so that every extract stands alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from temporalwiki.builders.engine import Report, fingerprint, write_json
from temporalwiki.builders.parquet import ParquetWriter
from temporalwiki.builders.wikidata import buckets, revisions
from temporalwiki.builders.wikidata.entities import DROPPED
from temporalwiki.builders.wikidata.extract import (
    BUCKETS,
    ENTITIES,
    FACTS,
    KEPT,
    PLAIN,
    ROWS,
    Buckets,
    ExtractTask,
    digest,
)
from temporalwiki.builders.wikidata.revisions import Integers

_FINISHED = "finished.json"  # in an extract's folder
ITEMS_A_TASK = 500_000
_STATEMENT = FACTS.names[FACTS.names.index("p") : FACTS.names.index("end_day") + 1]


@dataclass(frozen=True)
class CarryTask:
    """The items in buckets [first, end) of the extract ``base``."""

    index: int
    base: str  # the name of its folder
    first: int
    end: int


def plan(items: int, base: str) -> list[CarryTask]:
    """Group the buckets so that a task has about ITEMS_A_TASK of ``items``."""
    tasks = max(1, min(BUCKETS, items // ITEMS_A_TASK))
    bounds = [BUCKETS * i // tasks for i in range(tasks + 1)]
    return [CarryTask(i, base, first, end) for i, (first, end) in enumerate(pairwise(bounds))]


def index(task: CarryTask, folder: Path) -> Report:
    """Write the revisions of some buckets' items in base to ``folder``, which must be ``revisions`` in base's."""
    items, _, lastrevid = _newest(folder.parent, task)
    revisions.write(folder, task.first, task.end, items, lastrevid)
    return {"items": {"indexed": len(items)}}


def run(task: CarryTask, folder: Path) -> Report:
    """Copy what base has of the kept items in some buckets, as read where the new dump has them.

    ``folder`` must be ``carried`` in the new dump's extract, which lies beside base. The report counts statements as
    if they had been read, and under ``differ`` the items that were parsed all the same and are not what base has:
    then equal revisions mean nothing in these dumps, and all of the new one must be read.
    """
    extract, base = folder.parent, folder.parent.parent / task.base
    kept = pa.concat_tables([KEPT.empty_table(), *buckets.read(extract, "kept", task.first, task.end, KEPT.names)])
    kept = kept.take(pa.array(np.lexsort((_integers(kept, "seen"), _integers(kept, "s")))))
    copies = _Copies(_integers(kept, "s"), _integers(kept, "seen"), *_newest(base, task)[:2])
    checked = {row["s"]: row["digest"] for row in kept.filter(pc.is_valid(kept["digest"])).to_pylist()}
    held: dict[str, list[dict[str, Any]]] = {"entities": [], "facts": []}  # rows of base to compare
    counts = {"rows": 0, "best": 0} | dict.fromkeys(DROPPED, 0)

    def copied(table: str, schema: pa.Schema) -> Iterator[pa.Table]:
        for rows in buckets.read(base, table, task.first, task.end, schema.names):
            newest, copy = copies.of(rows)
            compared = newest & np.isin(_integers(rows, "s"), list(checked))
            held[table] += rows.filter(pa.array(compared)).to_pylist()
            del rows
            if table == "facts":
                counts["rows"] += copy.num_rows
                counts["best"] += copy["best"].to_numpy().sum()
            else:
                for reason in DROPPED:
                    counts[reason] += copy[reason].to_numpy().sum()
            yield copy

    entities = copied("entities", ENTITIES)
    written = _write(folder / f"entities-{task.index:05d}.parquet", ENTITIES, PLAIN["entities"], entities)
    if written != kept.num_rows:
        raise AssertionError(f"{base}: {kept.num_rows} items kept of it, {written} found in it")
    _write(folder / f"facts-{task.index:05d}.parquet", FACTS, PLAIN["facts"], copied("facts", FACTS))
    digests = _digests(held["entities"], held["facts"])
    return {
        "statements": {
            "facts": int(counts["best"]),
            "not_best_rank": int(counts["rows"] - counts["best"]),
            "dropped": {reason: int(counts[reason]) for reason in DROPPED if counts[reason]},
        },
        "checked": {
            "items": len(checked),
            "differ": sum(digests[item] != digest for item, digest in checked.items()),
        },
    }


def finished_with(folder: Path, tasks: list[ExtractTask], base: str | None) -> str | None:
    """The base that a finished extract of ``tasks`` was read with; ``base`` where there is none in ``folder``."""
    try:
        done = json.loads((folder / _FINISHED).read_text("utf-8"))
        return done["base"] if done["plan"] == _key(tasks) else base
    except (OSError, ValueError, KeyError, TypeError):
        return base


def finish(folder: Path, tasks: list[ExtractTask], base: str | None) -> None:
    """Note that all of an extract is there, and with which base it was read: another one need not read it again."""
    write_json(folder / _FINISHED, {"plan": _key(tasks), "base": base})


def _key(tasks: list[ExtractTask]) -> str:
    return fingerprint([replace(task, file=Path(task.file).name, base=None) for task in tasks])


def _newest(base: Path, task: CarryTask) -> tuple[Integers, Integers, Integers]:
    """Items of base, its newest reading of each, and that one's revision, by item."""
    columns = ["s", "seen", "lastrevid"]
    none = pa.schema([ENTITIES.field(name) for name in columns]).empty_table()
    table = pa.concat_tables([none, *buckets.read(base, "entities", task.first, task.end, columns)])
    items, seen, lastrevid = (_integers(table, name) for name in columns)
    order = np.lexsort((seen, lastrevid, items))
    items, seen, lastrevid = items[order], seen[order], lastrevid[order]
    last = np.append(items[1:] != items[:-1], True)[: len(items)]
    return items[last], seen[last], lastrevid[last]


class _Copies:
    """The rows of kept items, once for every line of the new dump that holds the item."""

    def __init__(self, kept: Integers, kept_seen: Integers, items: Integers, newest: Integers) -> None:
        self._kept, self._kept_seen = kept, kept_seen  # by item, then by line
        self._items, self._newest = items, newest

    def of(self, rows: pa.Table) -> tuple[npt.NDArray[np.bool_], pa.Table]:
        """Which of some rows are of an item's newest reading and kept; and their copies."""
        items, seen = _integers(rows, "s"), _integers(rows, "seen")
        place = np.searchsorted(self._items, items)  # every row's item is there
        low, high = (np.searchsorted(self._kept, items, side) for side in ("left", "right"))
        times = np.where(self._newest[place] == seen, high - low, 0)
        which = np.repeat(np.arange(len(items)), times)
        nth = np.arange(len(which)) - np.repeat(np.cumsum(times) - times, times)
        copies = rows.take(pa.array(which))
        column = copies.schema.get_field_index("seen")
        now = self._kept_seen[np.repeat(low, times) + nth]
        return times > 0, copies.set_column(column, "seen", pa.array(now))


def _write(path: Path, schema: pa.Schema, plain: tuple[str, ...], tables: Iterator[pa.Table]) -> int:
    """Write tables, a bucket a row group; the number of rows."""
    with ParquetWriter(path, schema, rows=ROWS, plain=plain) as out:
        rows = Buckets(out)
        for table in tables:
            rows.add_table(table)
        rows.flush()
    return out.rows_written


def _digests(entities: list[dict[str, Any]], facts: list[dict[str, Any]]) -> dict[int, str]:
    statements: dict[int, list[tuple[Any, ...]]] = {}
    for row in facts:
        statements.setdefault(row["s"], []).append(tuple(row[name] for name in _STATEMENT))
    return {
        row["s"]: digest(row["label"], row["title"], [row[name] for name in DROPPED], statements.get(row["s"], []))
        for row in entities
    }


def _integers(table: pa.Table, column: str) -> Integers:
    return np.asarray(table[column].to_numpy(), np.int64)
