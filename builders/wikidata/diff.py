"""Algorithm 2 of TemporalWiki (section 3.2), and stage wikidata-diff, which runs it bucket by bucket in DuckDB."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from temporalwiki.builders.engine import Report
from temporalwiki.builders.parquet import ParquetWriter
from temporalwiki.builders.sql import database, rows_of, run_script
from temporalwiki.builders.wikidata import buckets, labels
from temporalwiki.builders.wikidata.extract import BUCKETS, files
from temporalwiki.builders.wikidata.revisions import Integers
from temporalwiki.builders.wikipedia.extract import files as wikipedia_files

VERSION = 4
FACTS_A_TASK = 2_000_000

# One row a fact that can become a probe; a null label or page is a drop that the next stage counts.
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


def plan(facts: int, **common: Any) -> list[DiffTask]:
    """Group the buckets so that a task has about FACTS_A_TASK facts."""
    tasks = max(1, min(BUCKETS, facts // FACTS_A_TASK))
    bounds = [BUCKETS * i // tasks for i in range(tasks + 1)]
    return [DiffTask(i, first=first, end=end, **common) for i, (first, end) in enumerate(pairwise(bounds))]


_ENTITY = ("s", "lastrevid", "seen")
_STATEMENT = ("s", "p", "o", "best", "statement_id", "start", "start_day", "end", "end_day", "seen")

# Each statement is one step of the algorithm; $-names are the task's values.
_READINGS = """
-- An entity that a dump holds more than once counts in its newest revision.
CREATE TEMP TABLE {side}_twice AS
    SELECT s, arg_max(seen, (lastrevid, seen)) AS seen FROM {side}_entities
    WHERE s IN (SELECT s FROM {side}_entities GROUP BY s HAVING count(*) > 1) GROUP BY s;
CREATE TEMP TABLE {side}_superseded AS
    SELECT e.s, e.seen FROM {side}_entities e JOIN {side}_twice t ON e.s = t.s AND e.seen <> t.seen;
CREATE TEMP TABLE {side}_items AS
    SELECT s, lastrevid, seen FROM {side}_entities ANTI JOIN {side}_superseded USING (s, seen);
"""

_SAMPLE = ("seed", "limit", "everything")
_IN_SAMPLE = "(md5_number(concat_ws(' ', $seed, s, p, o)) < $limit::UHUGEINT OR $everything)"

# A subject of the same revision in both has the same statements in both: nothing of it is new, gone or ended.
_TOUCHED = """
CREATE TEMP TABLE untouched AS
    SELECT s FROM prev_items JOIN recent_items USING (s, lastrevid) WHERE lastrevid > 0;
CREATE TEMP TABLE prev_touched AS SELECT s, seen FROM prev_items ANTI JOIN untouched USING (s);
CREATE TEMP TABLE recent_touched AS SELECT s, seen FROM recent_items ANTI JOIN untouched USING (s);
DROP TABLE untouched;
CREATE TEMP TABLE sampled (s BIGINT, p BIGINT, o BIGINT);
CREATE TEMP TABLE recent_statements (
    s BIGINT, p BIGINT, o BIGINT, best BOOL, statement_id TEXT, "start" TEXT, start_day INT, "end" TEXT, end_day INT
);
CREATE TEMP TABLE prev_statements AS FROM recent_statements;
"""

# A piece of recent's facts, which holds whole readings: their number, the unchanged facts of untouched subjects that
# are sampled, and all statements of the subjects that anything is asked of.
_COUNT = """
    SELECT count(*) FROM (SELECT DISTINCT s, p, o FROM piece ANTI JOIN recent_superseded USING (s, seen) WHERE best)
"""
_FROM_RECENT = f"""
CREATE OR REPLACE TEMP TABLE drawn AS
    SELECT DISTINCT s, p, o, seen FROM piece
    ANTI JOIN recent_superseded USING (s, seen) ANTI JOIN recent_touched USING (s, seen)
    WHERE best AND {_IN_SAMPLE};
INSERT INTO sampled SELECT s, p, o FROM drawn;
INSERT INTO recent_statements
    SELECT * EXCLUDE (seen) FROM piece SEMI JOIN (
        FROM recent_touched UNION ALL SELECT s, seen FROM drawn
    ) USING (s, seen);
"""
# The same of the rows that both dumps have, each in the one reading of its subject; ``piece`` is of best rank.
_COUNT_SHARED = "SELECT count(*) FROM (SELECT DISTINCT s, p, o FROM piece)"
_DRAWN_SHARED = f"SELECT DISTINCT s, p, o FROM piece WHERE {_IN_SAMPLE}"
_FROM_SHARED = "INSERT INTO recent_statements SELECT * EXCLUDE (seen) FROM piece;"
_FROM_PREV = "INSERT INTO prev_statements SELECT * EXCLUDE (seen) FROM piece SEMI JOIN prev_touched USING (s, seen);"
_OF_SAMPLE = "INSERT INTO prev_statements FROM recent_statements SEMI JOIN sampled USING (s);"

_CATEGORIES = f"""
-- Facts of the touched: best-rank statements, a (subject, relation, object) once.
CREATE TEMP TABLE prev AS
    SELECT s, p, o, bool_or(end_day IS NULL OR end_day > $recent_date) AS open
    FROM prev_statements ANTI JOIN sampled USING (s) WHERE best GROUP BY s, p, o;
CREATE TEMP TABLE recent AS
    SELECT DISTINCT s, p, o FROM recent_statements ANTI JOIN sampled USING (s) WHERE best;
-- What holds no longer: every statement of it that recent has, of whatever rank, has an end time by now.
CREATE TEMP TABLE over AS
    SELECT s, p, o FROM recent_statements ANTI JOIN sampled USING (s)
    WHERE s IN (SELECT s FROM recent_statements WHERE "end" IS NOT NULL)
    GROUP BY s, p, o HAVING bool_and(end_day IS NOT NULL AND end_day <= $recent_date);
CREATE TEMP TABLE ended AS
    SELECT prev.s, prev.p, prev.o FROM prev JOIN over USING (s, p, o) WHERE prev.open;
CREATE TEMP TABLE gone AS
    SELECT s, p, o FROM prev ANTI JOIN recent USING (s, p, o)
    UNION ALL
    FROM ended SEMI JOIN recent USING (s, p, o);
CREATE TEMP TABLE fresh AS
    FROM recent ANTI JOIN prev USING (s, p, o);
CREATE TEMP TABLE changed AS
    SELECT 'changed' AS split, s, p, o,
        CASE WHEN s NOT IN (SELECT s FROM prev_items) THEN 'new_subject'
             WHEN (s, p) NOT IN (SELECT (s, p) FROM prev) THEN 'new_relation'
             ELSE 'new_object' END AS kind
    FROM fresh;
CREATE TEMP TABLE unchanged AS
    SELECT 'unchanged' AS split, s, p, o, 'unchanged' AS kind FROM (
        FROM recent SEMI JOIN prev USING (s, p, o) ANTI JOIN ended USING (s, p, o) WHERE {_IN_SAMPLE}
        UNION ALL FROM sampled
    );
CREATE TEMP TABLE deleted AS
    SELECT 'deleted' AS split, s, p, o,
        CASE WHEN (s, p) IN (SELECT (s, p) FROM fresh ANTI JOIN over USING (s, p, o)) THEN 'replaced'
             WHEN (s, p, o) IN (SELECT (s, p, o) FROM ended) THEN 'ended'
             ELSE 'removed' END AS kind
    FROM gone;
"""

# Statements of what is asked, and whether one holds at its dump's own date: begun, as far as one knows, and not ended.
_HOLDS = """
    SELECT s, p, o, best, statement_id, "start", "end", end_day,
        (end_day IS NULL OR end_day > ${side}_date) AND (start_day IS NULL OR start_day <= ${side}_date) AS holds
    FROM {side}_statements SEMI JOIN asked USING (s, p)
"""

_ASKED = f"""
CREATE TEMP TABLE facts AS SELECT * FROM changed UNION ALL SELECT * FROM unchanged UNION ALL SELECT * FROM deleted;
CREATE TEMP TABLE replaced_objects AS
    SELECT s, p, o FROM prev WHERE (s, p) IN (SELECT (s, p) FROM changed WHERE kind = 'new_object');
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
    SELECT DISTINCT s FROM recent_statements WHERE best AND p IN (20, 509, 1196, 119) AND s IN (SELECT s FROM asked);
-- Times of a fact are those of a best-rank statement, if possible of one that holds; prev's where recent has none.
CREATE TEMP TABLE times AS
    SELECT DISTINCT ON (s, p, o) s, p, o, statement_id, "start" AS start_time, "end" AS end_time FROM (
        SELECT 0 AS side, * FROM recent_asked UNION ALL SELECT 1, * FROM prev_asked
    ) WHERE best ORDER BY s, p, o, side, NOT holds, statement_id, "start", "end";
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
            place = Path(getattr(task, side))
            properties = rows_of(files(place, "properties"), "properties")
            db.execute(f"CREATE TEMP VIEW {side}_properties AS SELECT * FROM {properties}")
            db.execute(f"CREATE TEMP TABLE {side}_entities (s BIGINT, lastrevid BIGINT, seen BIGINT)")
            db.execute(f"CREATE TEMP TABLE {side}_titles (s BIGINT, title TEXT, seen BIGINT)")
        values = {
            "prev_date": task.prev_date,
            "recent_date": task.recent_date,
            "seed": task.seed,
            "limit": min(int(task.unchanged_fraction * 2**128), 2**128 - 1),
            "everything": task.unchanged_fraction >= 1,
        }
        changes = buckets.changes(Path(task.prev), Path(task.recent), task.first, task.end)
        facts = _read_all(db, task, values) if changes is None else _read_changes(db, changes, values)
        for step in (_OF_SAMPLE, _CATEGORIES, _ASKED):
            run_script(db, step, values)
        db.register("known", labels.look_up(Path(task.labels), db.sql("FROM wanted").fetchnumpy()["id"]))
        run_script(db, _NAMES, {})
        _add_titles(db, task, changes)
        _add_pages(db, task)
        report = _counts(db, facts)
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
                start_time, end_time,
                CASE WHEN split = 'deleted' THEN coalesce(n.page_id, b.page_id) ELSE n.page_id END AS page_id
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
            LEFT JOIN page_now n ON n.id = f.s
            LEFT JOIN page_then b ON b.id = f.s
            ORDER BY page_id NULLS FIRST, f.s, f.p, f.o, split
            """
        )
        with ParquetWriter(folder / f"candidates-{task.index:05d}.parquet", CANDIDATES, rows=20_000) as out:
            for batch in rows.to_arrow_reader(20_000):
                out.write_table(pa.Table.from_batches([batch]))
    return report


def _read_all(db: duckdb.DuckDBPyConnection, task: DiffTask, values: dict[str, Any]) -> int:
    """Read the entities and statements that can matter; returns how many facts recent has."""
    extracts = {"prev": Path(task.prev), "recent": Path(task.recent)}
    for side, extract in extracts.items():
        for rows in buckets.read(extract, "entities", task.first, task.end, _ENTITY):
            _run_over(db, rows, f"INSERT INTO {side}_entities FROM piece")
        run_script(db, _READINGS.format(side=side), {})
    run_script(db, _TOUCHED, {})
    facts = 0
    for rows in buckets.read(extracts["recent"], "facts", task.first, task.end, _STATEMENT):
        facts += _add_recent(db, rows, values)
    for rows in buckets.read(extracts["prev"], "facts", task.first, task.end, _STATEMENT):
        _run_over(db, rows, _FROM_PREV)
    return facts


def _read_changes(db: duckdb.DuckDBPyConnection, changes: buckets.Changes, values: dict[str, Any]) -> int:
    """As ``_read_all``, but what both have is read once."""
    for side, rows in changes.read_both("entities", _ENTITY, changes.touched):
        _run_over(db, rows, f"INSERT INTO {side}_entities FROM piece")
    for side in ("prev", "recent"):
        run_script(db, _READINGS.format(side=side), {})
    run_script(db, _TOUCHED, {})
    facts = 0
    for rows in changes.read_own("facts", _STATEMENT):
        facts += _add_recent(db, rows, values)
    held: list[pa.Table] = []  # of the touched, which are few in a piece
    for rows in changes.read_prev("facts", _STATEMENT):
        touched = buckets.are_of(rows, changes.touched)
        db.register("piece", rows.select(["s", "p", "o"]).filter(pc.and_(rows["best"], pa.array(~touched))))
        facts += _number(db, _COUNT_SHARED)
        drawn = db.sql(_DRAWN_SHARED, params={name: values[name] for name in _SAMPLE}).to_arrow_table()
        _run_over(db, drawn, "INSERT INTO sampled FROM piece")
        of_drawn = buckets.are_of(rows, np.unique(drawn["s"].to_numpy()))
        _run_over(db, rows.filter(pa.array(of_drawn & ~touched)), _FROM_SHARED)
        held.append(rows.filter(pa.array(touched)))
        if sum(rows.num_rows for rows in held) >= buckets.ROWS:
            facts += _add_touched(db, changes, held, values)
    return facts + _add_touched(db, changes, held, values)


def _add_touched(
    db: duckdb.DuckDBPyConnection, changes: buckets.Changes, held: list[pa.Table], values: dict[str, Any]
) -> int:
    """Take what matters of whole readings in prev, some of which recent has, too; returns how many facts it has."""
    if not held:
        return 0
    rows = pa.concat_tables(held)
    held.clear()
    _run_over(db, rows, _FROM_PREV)
    return _add_recent(db, changes.of_recent(rows), values)


def _add_recent(db: duckdb.DuckDBPyConnection, rows: pa.Table, values: dict[str, Any]) -> int:
    """Take what matters of whole readings in recent; returns how many facts there are in them."""
    if not rows.num_rows:
        return 0
    _run_over(db, rows, _FROM_RECENT, values)
    return _number(db, _COUNT)


def _run_over(
    db: duckdb.DuckDBPyConnection, rows: pa.Table, script: str, values: dict[str, Any] | None = None
) -> None:
    """Run a script in which some rows are ``piece``."""
    if rows.num_rows:
        db.register("piece", rows)
        run_script(db, script, values or {})


def _subjects(db: duckdb.DuckDBPyConnection, table: str) -> Integers:
    """The subjects of a table, ascending."""
    found = db.sql(f"SELECT DISTINCT s FROM {table}").fetchnumpy()["s"]
    return np.sort(np.asarray(found, np.int64))


def _add_titles(db: duckdb.DuckDBPyConnection, task: DiffTask, changes: buckets.Changes | None) -> None:
    """Tables prev_titles and recent_titles: the articles that the subjects of the facts have by their entities."""
    columns, subjects = ("s", "title", "seen"), _subjects(db, "facts")
    if changes is not None:
        found = changes.read_both("entities", columns, subjects)
    else:
        found = (
            (side, rows.filter(pa.array(buckets.are_of(rows, subjects))))
            for side in ("prev", "recent")
            for rows in buckets.read(Path(getattr(task, side)), "entities", task.first, task.end, columns)
        )
    for side, rows in found:
        _run_over(db, rows, f"INSERT INTO {side}_titles FROM piece")


_TITLES = "SELECT s, title FROM {side}_titles ANTI JOIN {side}_superseded USING (s, seen) WHERE title IS NOT NULL"


def _add_pages(db: duckdb.DuckDBPyConnection, task: DiffTask) -> None:
    """Tables page_now, the subject's article in recent, and page_then, its article in prev that recent has not."""
    now = rows_of(wikipedia_files(Path(task.recent_articles), "articles"), "articles")
    then = rows_of(wikipedia_files(Path(task.prev_articles), "articles"), "articles")
    if task.page_items is not None:
        items = rows_of([Path(task.page_items)], "articles")
        source = f"SELECT item AS id, page_id FROM {items} WHERE page_id IN (SELECT page_id FROM {now})"
    else:
        source = f"SELECT s AS id, page_id FROM ({_TITLES.format(side='recent')}) JOIN {now} articles USING (title)"
    db.execute(
        f"CREATE TEMP TABLE page_now AS SELECT id, min(page_id) AS page_id FROM ({source}) "
        "WHERE id IN (SELECT s FROM facts) GROUP BY id"
    )
    db.execute(
        "CREATE TEMP TABLE page_then AS SELECT s AS id, min(page_id) AS page_id "
        f"FROM ({_TITLES.format(side='prev')}) JOIN {then} articles USING (title) "
        f"WHERE s IN (SELECT s FROM gone) AND page_id NOT IN (SELECT page_id FROM {now}) GROUP BY s"
    )


def _counts(db: duckdb.DuckDBPyConnection, facts: int) -> Report:
    """Count what was found; recent has ``facts`` facts, and prev as many but for those of touched subjects."""

    def by_kind(table: str) -> dict[str, int]:
        return dict(db.execute(f"SELECT kind, count(*) FROM {table} GROUP BY kind ORDER BY kind").fetchall())

    def rows(table: str) -> int:
        return _number(db, f"SELECT count(*) FROM {table}")

    return {
        "facts": {
            "prev": facts - rows("recent") + rows("prev"),
            "recent": facts,
            "changed": by_kind("changed"),
            "unchanged": facts - rows("fresh") - rows("ended SEMI JOIN recent USING (s, p, o)"),
            "unchanged_sampled": rows("unchanged"),
            "deleted": by_kind("deleted"),
            "duplicate_entities": rows("recent_twice") + rows("prev_twice"),
        }
    }


def _number(db: duckdb.DuckDBPyConnection, query: str) -> int:
    [(number,)] = db.execute(query).fetchall()
    return int(number)
