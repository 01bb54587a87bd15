"""Algorithm 2 of TemporalWiki (section 3.2), and stage wikidata-diff, which runs it bucket by bucket in DuckDB."""

from __future__ import annotations

import collections
import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from temporalwiki.builders.measurement import give_back_memory
from temporalwiki.builders.parquet import KeptFile, ParquetWriter
from temporalwiki.builders.sql import database, run_script
from temporalwiki.builders.stages import Report
from temporalwiki.builders.wikidata import buckets, item_versions, labels
from temporalwiki.builders.wikidata.extract import BUCKETS, ENTITIES, PROPERTIES, files
from temporalwiki.builders.wikidata.item_versions import Mask
from temporalwiki.builders.wikidata.revision_index import Integers
from temporalwiki.builders.wikipedia.page_props import PAGE_ITEMS
from temporalwiki.builders.wikipedia.titles import are_articles, articles_titled

VERSION = 7
FACTS_A_TASK = 4_000_000  # each opens all files that have its buckets, and a database; memory grows with them
_PAGE_ITEMS = 1_000_000  # looked through at once; 16 MB

# One row a fact whose subject has an article; a null label is a drop that the next stage counts.
CANDIDATES = pa.schema(
    {
        "split": pa.string(),
        "kind": pa.string(),
        "s": pa.int64(),
        "p": pa.int64(),
        "o": pa.int64(),
        "statement_id": pa.string(),
        "subject": pa.string(),
        "relation": pa.string(),
        "object": pa.string(),
        "previous_objects": pa.list_(pa.string()),
        "current": pa.bool_(),
        "objects": pa.list_(pa.string()),
        "objects_before": pa.list_(pa.string()),
        "gone_objects": pa.list_(pa.string()),
        "known_before": pa.bool_(),
        "dead": pa.bool_(),
        "start_time": pa.string(),
        "end_time": pa.string(),
        "page_id": pa.int64(),
    }
)


@dataclass(frozen=True)
class DiffTask:
    """The facts of two extracted Wikidata dumps whose subjects are in buckets [first, end)."""

    index: int
    prev: str
    recent: str
    labels: str  # folder of stage wikidata-labels over both
    prev_articles: str
    recent_articles: str
    page_items: str | None  # Parquet of (page_id, item), where the dump has page_props
    first: int
    end: int
    prev_date: int
    recent_date: int
    unchanged_fraction: float
    seed: int


def count_tasks(facts: int) -> int:
    """How many tasks compare so many facts."""
    return max(1, min(BUCKETS, math.ceil(facts / FACTS_A_TASK)))


def plan(facts: int, **common: Any) -> list[DiffTask]:
    """Group the buckets so that a task has at most FACTS_A_TASK facts, as far as there are buckets."""
    tasks = count_tasks(facts)
    bounds = [BUCKETS * i // tasks for i in range(tasks + 1)]
    return [DiffTask(i, first=first, end=end, **common) for i, (first, end) in enumerate(pairwise(bounds))]


_STATEMENT = ("s", "p", "o", "best", "end_day")
_DETAILED = ("s", "p", "o", "best", "statement_id", "start", "start_day", "end", "end_day")
_HELD = 100_000  # rows on their way into DuckDB

# Each statement is one step of the algorithm; $-names are the task's values. Of subjects that are not touched, both
# sides have the same statements. Details are of subjects with an article alone.
_TABLES = """
CREATE TEMP TABLE sampled (s BIGINT, p BIGINT, o BIGINT);
CREATE TEMP TABLE prev_statements (s BIGINT, p BIGINT, o BIGINT, best BOOL, end_day INT);
CREATE TEMP TABLE recent_statements AS FROM prev_statements;
CREATE TEMP TABLE prev_details (
    s BIGINT, p BIGINT, o BIGINT, best BOOL, statement_id TEXT, "start" TEXT, start_day INT, "end" TEXT, end_day INT
);
CREATE TEMP TABLE recent_details AS FROM prev_details;
CREATE TEMP TABLE same_details AS FROM prev_details;
"""

_COMPARED = """
-- Facts of the touched: best-rank statements, a (subject, relation, object) once. What is over holds no longer: every
-- statement of it that recent has, of whatever rank, has an end time by now. What ended is over, and was open in prev.
CREATE TEMP TABLE compared AS
    SELECT s, p, o, in_prev, in_recent, over, open AND over AS ended FROM (
        SELECT s, p, o,
            coalesce(bool_or(best) FILTER (side = 0), false) AS in_prev,
            coalesce(bool_or(best) FILTER (side = 1), false) AS in_recent,
            coalesce(bool_or(best AND (end_day IS NULL OR end_day > $recent_date)) FILTER (side = 0), false) AS open,
            coalesce(bool_and(end_day IS NOT NULL AND end_day <= $recent_date) FILTER (side = 1), false) AS over
        FROM (SELECT 0 AS side, * FROM prev_statements UNION ALL SELECT 1, * FROM recent_statements)
        GROUP BY s, p, o
    ) WHERE in_prev OR in_recent;
CREATE TEMP TABLE fresh AS SELECT s, p, o, over FROM compared WHERE NOT in_prev;
"""

_FOUND = """
CREATE TEMP TABLE found AS
    SELECT 'changed' AS split, s, p, o,
        CASE WHEN s NOT IN (SELECT s FROM prev_touched) THEN 'new_subject'
             WHEN (s, p) NOT IN (SELECT (s, p) FROM compared SEMI JOIN fresh USING (s, p) WHERE in_prev)
             THEN 'new_relation' ELSE 'new_object' END AS kind
    FROM fresh
    UNION ALL
    SELECT 'deleted', s, p, o,
        CASE WHEN (s, p) IN (SELECT (s, p) FROM fresh WHERE NOT over) THEN 'replaced'
             WHEN ended THEN 'ended' ELSE 'removed' END
    FROM compared WHERE ended OR NOT in_recent
    UNION ALL
    SELECT DISTINCT 'unchanged', s, p, o, 'unchanged' FROM sampled;
"""

# Statements of what is asked, and whether one holds at its dump's own date: begun, as far as one knows, and not ended.
_HOLDS = """
    SELECT s, p, o, best, statement_id, "start", "end", end_day,
        (end_day IS NULL OR end_day > ${side}_date) AND (start_day IS NULL OR start_day <= ${side}_date) AS holds
    FROM (FROM {side}_details UNION ALL FROM same_details) SEMI JOIN asked USING (s, p)
"""

_ASKED = f"""
-- Nothing is said of a subject that has no article: what is left of Wikidata is little.
CREATE TEMP TABLE facts AS
    SELECT found.*, page_id FROM found JOIN pages ON id = s WHERE is_now OR split = 'deleted';
CREATE TEMP TABLE replaced_objects AS
    SELECT s, p, o FROM compared WHERE in_prev AND (s, p) IN (SELECT (s, p) FROM facts WHERE kind = 'new_object');
-- What else is right now, and what was right at the date of prev.
CREATE TEMP TABLE asked AS SELECT DISTINCT s, p FROM facts;
CREATE TEMP TABLE prev_asked AS {_HOLDS.format(side="prev")};
CREATE TEMP TABLE recent_asked AS {_HOLDS.format(side="recent")};
CREATE TEMP TABLE now AS SELECT DISTINCT s, p, o FROM recent_asked WHERE best AND holds;
CREATE TEMP TABLE before AS SELECT DISTINCT s, p, o FROM prev_asked WHERE best AND holds;
-- What is not right any more: no statement of it holds, whatever its rank. One that ended, as recent has it now, more
-- than a year before prev was only written down late; 0 is an unknown day.
CREATE TEMP TABLE gone_objects AS
    SELECT s, p, o FROM before
    WHERE (s, p, o) NOT IN (SELECT (s, p, o) FROM recent_asked WHERE holds)
        AND (s, p, o) NOT IN (
            SELECT (s, p, o) FROM recent_asked GROUP BY s, p, o
            HAVING max(coalesce(nullif(end_day, 0), 99999999)) <= $prev_date - 10000
        );
-- Who has a place, cause or manner of death, or a place of burial.
CREATE TEMP TABLE dead AS
    SELECT DISTINCT s FROM (FROM recent_details UNION ALL FROM same_details)
    WHERE best AND p IN (20, 509, 1196, 119);
-- Times of a fact are those of a best-rank statement, if possible of one that holds; prev's where recent has none.
CREATE TEMP TABLE times AS
    SELECT s, p, o, statement_id, "start" AS start_time, "end" AS end_time FROM (
        SELECT 0 AS side, * FROM recent_asked UNION ALL SELECT 1, * FROM prev_asked
    ) WHERE best
    QUALIFY row_number() OVER (PARTITION BY s, p, o ORDER BY side, NOT holds, statement_id, "start", "end") = 1;
CREATE TEMP TABLE wanted AS
    SELECT s AS id FROM facts UNION SELECT o FROM facts UNION SELECT o FROM replaced_objects
    UNION SELECT o FROM now UNION SELECT o FROM before;
"""

_NAMES = """
CREATE TEMP TABLE relations AS
    SELECT p, arg_max(label, (side, lastrevid, seen)) AS label FROM (
        SELECT 1 AS side, * FROM recent_properties UNION ALL SELECT 0, * FROM prev_properties
    ) WHERE label IS NOT NULL GROUP BY p;
CREATE TEMP TABLE previous AS
    SELECT s, p, list(label ORDER BY label, o) FILTER (label IS NOT NULL) AS previous_objects
    FROM replaced_objects JOIN known ON o = id GROUP BY s, p;
CREATE TEMP MACRO named(label, o) AS coalesce(label, concat('Q', o));
CREATE TEMP TABLE now_labels AS
    SELECT s, p, list(DISTINCT named(label, o) ORDER BY named(label, o)) AS labels
    FROM now LEFT JOIN known ON o = id GROUP BY s, p;
CREATE TEMP TABLE before_labels AS
    SELECT s, p, list(DISTINCT named(label, o) ORDER BY named(label, o)) AS labels
    FROM before LEFT JOIN known ON o = id GROUP BY s, p;
-- An item that recent does not hold was merged into another, or deleted: what was right may still be.
CREATE TEMP TABLE gone_labels AS
    SELECT s, p, list(DISTINCT named(label, o) ORDER BY named(label, o)) AS labels
    FROM gone_objects JOIN known ON o = id WHERE recent GROUP BY s, p;
"""


def run(task: DiffTask, folder: Path, memory: int = 1 << 30) -> Report:
    """Categorise the facts of some buckets and write the candidates with labels and pages.

    DuckDB takes up to ``memory`` bytes; what is more goes to disk. Raises InputError where that does not do.
    """
    with database(folder, memory) as db:
        for side in ("prev", "recent"):
            db.register(f"{side}_properties", _properties(Path(getattr(task, side))))
        values = {
            "prev_date": task.prev_date,
            "recent_date": task.recent_date,
        }
        drawn = functools.partial(item_versions.drawn, task.unchanged_fraction, task.seed)
        sides = _Sides(task)
        give_back_memory()
        pages = _pages(db, task, sides.titles)
        db.register("pages", pages)
        untouched = _read_statements(db, sides, np.sort(pages["id"].to_numpy()), drawn)
        give_back_memory()
        db.register("prev_touched", pa.table({"s": sides.touched["prev"].items}))
        run_script(db, _COMPARED, values)
        same = db.sql("SELECT s, p, o FROM compared WHERE in_prev AND in_recent AND NOT ended").to_arrow_table()
        of_touched = same.filter(pa.array(drawn(*[column.to_numpy() for column in same])))
        _insert(db, {"sampled": [of_touched]})
        run_script(db, _FOUND + _ASKED, values)
        db.register("known", labels.look_up(Path(task.labels), db.sql("FROM wanted").fetchnumpy()["id"]))
        run_script(db, _NAMES, {})
        report = _counts(db, untouched, same.num_rows, sides.twice)
        rows = db.sql(
            """
            SELECT split, kind, f.s, f.p, f.o, times.statement_id,
                subjects.label AS subject, relations.label AS relation,
                objects.label AS object, coalesce(previous_objects, []) AS previous_objects,
                now.s IS NOT NULL AS current,
                coalesce(now_labels.labels, []) AS objects,
                coalesce(before_labels.labels, []) AS objects_before,
                coalesce(gone_labels.labels, []) AS gone_objects,
                (f.s, f.p, f.o) IN (SELECT (s, p, o) FROM prev_asked) AS known_before,
                f.s IN (SELECT s FROM dead) AS dead,
                start_time, end_time, page_id
            FROM facts f
            LEFT JOIN known subjects ON subjects.id = f.s
            LEFT JOIN known objects ON objects.id = f.o
            LEFT JOIN relations ON relations.p = f.p
            LEFT JOIN previous ON previous.s = f.s AND previous.p = f.p AND kind = 'new_object'
            LEFT JOIN now ON now.s = f.s AND now.p = f.p AND now.o = f.o
            LEFT JOIN times ON times.s = f.s AND times.p = f.p AND times.o = f.o
            LEFT JOIN now_labels ON now_labels.s = f.s AND now_labels.p = f.p
            LEFT JOIN before_labels ON before_labels.s = f.s AND before_labels.p = f.p
            LEFT JOIN gone_labels ON gone_labels.s = f.s AND gone_labels.p = f.p
            ORDER BY page_id, f.s, f.p, f.o, split
            """
        )
        with ParquetWriter(folder / f"candidates-{task.index:05d}.parquet", CANDIDATES, rows=20_000) as out:
            for batch in rows.to_arrow_reader(20_000):
                out.write_table(pa.Table.from_batches([batch]))
    return report | {"wrote": [out.path]}


class _Sides:
    """The entities of both extracts in a task's buckets, and their statements."""

    def __init__(self, task: DiffTask) -> None:
        self._task = task
        self._changes = buckets.changes(Path(task.prev), Path(task.recent), task.first, task.end)
        columns = pa.schema([ENTITIES.field(name) for name in buckets.ENTITY])
        found = {side: [columns.empty_table()] for side in ("prev", "recent")}
        titled = {side: [columns.empty_table()] for side in ("prev", "recent")}
        for side, rows, there in self._read("entities", buckets.ENTITY):
            with_title = rows.filter(pa.array(there & rows["title"].is_valid().to_numpy()))
            if side != "both":
                numbers = rows.select(["s", "lastrevid", "seen"])
                found[side].append(numbers if there.all() else numbers.filter(pa.array(there)))
            titled["recent" if side == "both" else side].append(with_title)
        newest = {side: item_versions.newest(tables) for side, tables in found.items()}
        self.twice = sum(len(of_side.twice) for of_side in newest.values())
        prev, recent = item_versions.touched(newest["prev"], newest["recent"])
        self.touched = {"prev": prev, "recent": recent}
        self._newest = newest
        before, now = pa.concat_tables(titled["prev"]), pa.concat_tables(titled["recent"])
        self.titles = {  # of prev's articles only those of subjects whose facts can be gone are asked for
            "prev": before.filter(pa.array(prev.have(before))),
            "recent": now.filter(pa.array(newest["recent"].counting(now))),
        }

    def read_statements(self, with_details: Integers) -> Iterator[tuple[str, pa.Table, Mask]]:
        """Whole readings, and which of their rows are ``prev``'s or ``recent``'s of touched subjects, or the ``same``.

        Those of the other subjects are the same in both, and come once. Only ``with_details`` have all columns.
        """
        columns = (*_STATEMENT, "seen") if self.twice else _STATEMENT
        details = buckets.Details([name for name in _DETAILED if name not in _STATEMENT], with_details)
        for side, rows, there in self._read("facts", columns, details):
            if side == "both":
                yield "same", rows, there
                continue
            touched = self.touched[side].have(rows)
            yield side, rows, there & touched
            if side == "recent":
                yield "same", rows, there & ~touched & self._newest[side].counting(rows)

    def _read(
        self, table: str, columns: Sequence[str], details: buckets.Details | None = None
    ) -> Iterator[tuple[str, pa.Table, Mask]]:
        """All rows of both sides, and which of them the side has; what is known to be the same is of side ``both``."""
        task, changes = self._task, self._changes
        if changes is None:
            for side in ("prev", "recent"):
                folder = Path(getattr(task, side))
                for rows in buckets.read(folder, table, task.first, task.end, columns, details):
                    yield side, rows, np.ones(rows.num_rows, bool)
            return
        for rows in changes.own_entities if table == "entities" else changes.read_own(table, columns, details):
            yield "recent", rows, np.ones(rows.num_rows, bool)
        for rows in changes.read_prev(table, columns, details):
            touched = buckets.are_of(rows, changes.touched)
            yield "both", rows, ~touched
            changed = rows.filter(pa.array(touched))
            yield "prev", changed, np.ones(changed.num_rows, bool)
            yield "recent", changed, ~buckets.are_of(changed, changes.superseded)


def _read_statements(
    db: duckdb.DuckDBPyConnection, sides: _Sides, with_article: Integers, drawn: Callable[..., Mask]
) -> int:
    """Read the statements that can matter; returns how many facts untouched subjects have.

    These are all statements of touched subjects, and of those of which unchanged facts are drawn into the sample.
    """
    run_script(db, _TABLES, {})
    facts = 0
    held: dict[str, list[pa.Table]] = collections.defaultdict(list)
    for kind, rows, wanted in sides.read_statements(with_article):
        if kind == "same":
            of_best = wanted & rows["best"].to_numpy()
            columns = [rows[name].to_numpy() for name in ("s", "p", "o")]
            facts += item_versions.count_facts(columns[0], columns[1], columns[2], of_best)
            sample = _some(rows, of_best & drawn(*columns), ("s", "p", "o"))
            held["sampled"].append(sample)
            asked = np.unique(sample["s"].to_numpy()[buckets.are_of(sample, with_article)])
        else:
            held[f"{kind}_statements"].append(_some(rows, wanted, _STATEMENT))
            asked = with_article
        detailed = wanted & buckets.are_of(rows, asked)
        if detailed.any():
            held[f"{kind}_details"].append(_some(rows, detailed, _DETAILED))
        if sum(piece.num_rows for pieces in held.values() for piece in pieces) >= _HELD:
            _insert(db, held)
    _insert(db, held)
    return facts


def _some(rows: pa.Table, which: Mask, columns: Sequence[str]) -> pa.Table:
    return rows.select(columns).take(pa.array(np.flatnonzero(which)))  # of few rows in many, quicker than a filter


def _insert(db: duckdb.DuckDBPyConnection, held: Mapping[str, list[pa.Table]]) -> None:
    """Move rows into their tables: for a few at a time that takes long."""
    for table, pieces in held.items():
        if pieces:
            db.register("piece", pa.concat_tables(pieces))
            db.execute(f"INSERT INTO {table} FROM piece")
            db.unregister("piece")
            pieces.clear()


def _pages(db: duckdb.DuckDBPyConnection, task: DiffTask, titles: Mapping[str, pa.Table]) -> pa.Table:
    """The article of every subject that has one: in recent (``is_now``), or in prev where recent has it not."""
    recent = Path(task.recent_articles)
    if task.page_items is None:
        items, pages = _titled(recent, titles["recent"])
    else:
        items, pages = _page_items(Path(task.page_items), task.first, task.end)
        there = are_articles(recent, pages)
        items, pages = items[there], pages[there]
    items_then, pages_then = _titled(Path(task.prev_articles), titles["prev"])
    gone = ~are_articles(recent, pages_then)
    db.register("pages_now", pa.table({"id": items, "page_id": pages}))
    db.register("pages_then", pa.table({"id": items_then[gone], "page_id": pages_then[gone]}))
    return db.sql(
        """
        SELECT id, min(page_id) AS page_id, true AS is_now FROM pages_now GROUP BY id
        UNION ALL
        SELECT id, min(page_id), false FROM pages_then ANTI JOIN pages_now USING (id) GROUP BY id
        """
    ).to_arrow_table()


def _titled(articles: Path, subjects: pa.Table) -> tuple[Integers, Integers]:
    """Those of ``subjects`` whose title an article of the extract ``articles`` has, and its page id."""
    which, page_ids = articles_titled(articles, subjects["title"].combine_chunks())
    return subjects["s"].to_numpy()[which], page_ids


def _page_items(path: Path, first: int, end: int) -> tuple[Integers, Integers]:
    """The items in buckets [first, end) of a table of PAGE_ITEMS, and their pages, which need not be articles."""
    found = [PAGE_ITEMS.empty_table()]
    with KeptFile(path) as file:
        for batch in file.iter_batches(_PAGE_ITEMS, columns=PAGE_ITEMS.names, use_threads=False):
            bucket = batch["item"].to_numpy() % BUCKETS
            found.append(pa.Table.from_batches([batch.filter(pa.array((bucket >= first) & (bucket < end)))]))
    rows = pa.concat_tables(found)
    return rows["item"].to_numpy(), rows["page_id"].to_numpy()


def _properties(extract: Path) -> pa.Table:
    """All readings of properties in an extract: DuckDB does not look at the checksums of pages."""
    found = [PROPERTIES.empty_table()]
    for path in files(extract, "properties"):
        with KeptFile(path) as file:
            found.append(file.read(PROPERTIES.names))
    return pa.concat_tables(found)


def _counts(db: duckdb.DuckDBPyConnection, untouched: int, same: int, twice: int) -> Report:
    """Count what was found, beside ``untouched`` and the ``same`` facts of subjects that are touched."""
    counts: dict[str, dict[str, int]] = {"changed": {}, "unchanged": {}, "deleted": {}}
    for split, kind, number in db.execute("SELECT split, kind, count(*) FROM found GROUP BY ALL").fetchall():
        counts[split][kind] = number
    [(prev, recent)] = db.execute(
        "SELECT count(*) FILTER (in_prev), count(*) FILTER (in_recent) FROM compared"
    ).fetchall()
    without_article = db.execute(
        "SELECT split, count(*) FROM found ANTI JOIN facts USING (split, s, p, o) GROUP BY split"
    ).fetchall()
    return {
        "facts": {
            "prev": untouched + prev,
            "recent": untouched + recent,
            "changed": counts["changed"],
            "unchanged": untouched + same,
            "unchanged_sampled": counts["unchanged"].get("unchanged", 0),
            "deleted": counts["deleted"],
            "duplicate_entities": twice,
        },
        # of those that stage align is not given, as if it had dropped them
        "alignment": {
            split: {"candidates": number, "not_aligned": {"subject_without_article": number}}
            for split, number in without_article
        },
    }
