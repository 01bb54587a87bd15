"""The first version of stage wikidata-diff: it joins all facts of both dumps and ignores revisions."""

from __future__ import annotations

import collections
import hashlib
from pathlib import Path

import duckdb
import pyarrow as pa

from temporalwiki.builders.parquet import ParquetWriter
from temporalwiki.builders.sql import database, rows_of, run_script
from temporalwiki.builders.stages import Report
from temporalwiki.builders.wikidata import fact_diff
from temporalwiki.builders.wikidata.tables import files
from temporalwiki.builders.wikipedia.extract import files as article_files

# Each statement is one step of the algorithm; $-names are the task's values.
_STEPS = """
-- An entity that a dump holds more than once counts in its newest revision.
CREATE TEMP TABLE {side}_twice AS
    SELECT s, arg_max(seen, (lastrevid, seen)) AS seen FROM {side}_entities GROUP BY s HAVING count(*) > 1;
CREATE TEMP VIEW {side}_statements AS
    SELECT f.* FROM {side}_facts f LEFT JOIN {side}_twice t ON f.s = t.s WHERE t.s IS NULL OR f.seen = t.seen;
CREATE TEMP VIEW {side}_items AS
    SELECT e.* FROM {side}_entities e LEFT JOIN {side}_twice t ON e.s = t.s WHERE t.s IS NULL OR e.seen = t.seen;
-- Its facts: best-rank statements, a (subject, relation, object) once.
CREATE TEMP TABLE {side} AS
    SELECT s, p, o, min(statement_id) AS statement_id, bool_or(end_day IS NULL OR end_day > {recent_date}) AS open
    FROM {side}_statements WHERE best GROUP BY s, p, o;
"""

_CATEGORIES = """
-- Facts that are over: all their statements in recent, of any rank, have an end time before recent's date.
CREATE TEMP TABLE over AS
    SELECT s, p, o FROM recent_statements
    WHERE s IN (SELECT s FROM recent_statements WHERE "end" IS NOT NULL)
    GROUP BY s, p, o HAVING bool_and(end_day IS NOT NULL AND end_day <= $recent_date);
CREATE TEMP TABLE ended AS
    SELECT prev.s, prev.p, prev.o FROM prev JOIN over USING (s, p, o) WHERE prev.open;
CREATE TEMP TABLE gone AS
    SELECT s, p, o, statement_id FROM prev ANTI JOIN recent USING (s, p, o)
    UNION ALL
    SELECT s, p, o, statement_id FROM prev SEMI JOIN recent USING (s, p, o) SEMI JOIN ended USING (s, p, o);
CREATE TEMP TABLE fresh AS
    SELECT s, p, o, statement_id FROM recent ANTI JOIN prev USING (s, p, o);
CREATE TEMP TABLE changed AS
    SELECT 'changed' AS split, s, p, o, statement_id,
        CASE WHEN s NOT IN (SELECT s FROM prev_items) THEN 'new_subject'
             WHEN (s, p) NOT IN (SELECT (s, p) FROM prev) THEN 'new_relation'
             ELSE 'new_object' END AS kind
    FROM fresh;
CREATE TEMP TABLE unchanged AS
    SELECT 'unchanged' AS split, s, p, o, statement_id, 'unchanged' AS kind
    FROM recent SEMI JOIN prev USING (s, p, o) ANTI JOIN ended USING (s, p, o)
    SEMI JOIN chosen USING (s, p, o);
CREATE TEMP TABLE deleted AS
    SELECT 'deleted' AS split, s, p, o, statement_id,
        CASE WHEN (s, p) IN (SELECT (s, p) FROM fresh ANTI JOIN over USING (s, p, o)) THEN 'replaced'
             WHEN (s, p, o) IN (SELECT (s, p, o) FROM ended) THEN 'ended'
             ELSE 'removed' END AS kind
    FROM gone;
"""

# Labels of the wanted entities: from the recent snapshot, or from prev if recent does not have the entity.
KNOWN = """
CREATE TEMP TABLE recent_known AS
    SELECT s AS id, arg_max(label, (lastrevid, seen)) FILTER (label IS NOT NULL) AS label
    FROM recent_all WHERE s IN (SELECT id FROM wanted) GROUP BY s;
CREATE TEMP TABLE prev_known AS
    SELECT s AS id, arg_max(label, (lastrevid, seen)) FILTER (label IS NOT NULL) AS label
    FROM prev_all WHERE s IN (SELECT id FROM wanted WHERE id NOT IN (SELECT id FROM recent_known)) GROUP BY s;
CREATE TEMP TABLE known AS SELECT * FROM recent_known UNION ALL SELECT * FROM prev_known;
"""

# The statements of "asked", and whether each holds at the date of its dump: it has not ended, and may have begun.
_HOLDS = """
    SELECT s, p, o, best, statement_id, "start", "end", end_day,
        (end_day IS NULL OR end_day > ${side}_date) AND (start_day IS NULL OR start_day <= ${side}_date) AS holds
    FROM {side}_statements SEMI JOIN asked USING (s, p)
"""

_CANDIDATES = f"""
CREATE TEMP TABLE facts AS SELECT * FROM changed UNION ALL SELECT * FROM unchanged UNION ALL SELECT * FROM deleted;
CREATE TEMP TABLE replaced_objects AS
    SELECT s, p, o FROM prev WHERE (s, p) IN (SELECT (s, p) FROM changed WHERE kind = 'new_object');
-- Which objects are right now, and which were right at the date of prev.
CREATE TEMP TABLE asked AS SELECT DISTINCT s, p FROM facts;
CREATE TEMP TABLE prev_asked AS {_HOLDS.format(side="prev")};
CREATE TEMP TABLE recent_asked AS {_HOLDS.format(side="recent")};
CREATE TEMP TABLE now AS SELECT DISTINCT s, p, o FROM recent_asked WHERE best AND holds;
CREATE TEMP TABLE before AS SELECT DISTINCT s, p, o FROM prev_asked WHERE best AND holds;
-- Objects that are no longer right: none of their statements holds. If the end time lies more than a year before
-- prev, only the edit is new. Day 0 is an unknown day.
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
{KNOWN}
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
    FROM gone_objects JOIN recent_known ON o = id GROUP BY s, p;
"""


# Columns of tables that an extract has no file of.
_NONE = {
    "facts": 'bucket INT, s BIGINT, p BIGINT, o BIGINT, best BOOL, statement_id TEXT, "start" TEXT, '
    'start_day INT, "end" TEXT, end_day INT, seen BIGINT, file_row_number BIGINT',
    "entities": "bucket INT, s BIGINT, lastrevid BIGINT, label TEXT, title BLOB, seen BIGINT",
    "properties": "p BIGINT, lastrevid BIGINT, label TEXT, seen BIGINT",
    "articles": "page_id BIGINT, title TEXT",
}


def _rows(paths: list[Path], columns: str) -> str:
    """SQL for the rows of some files, or for an empty table with ``columns``."""
    if paths:
        return rows_of(paths)
    empty = (column.split() for column in columns.split(", "))
    return f"(SELECT {', '.join(f'NULL::{kind} AS {name}' for name, kind in empty)} WHERE false)"


def drawn(fraction: float, seed: int, *fact: int) -> bool:
    """Whether one fact is in the sample."""
    number = seed
    for part in fact:
        number = ((number ^ part) + 0x9E3779B97F4A7C15) % 2**64
        number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        number = (number ^ number >> 27) * 0x94D049BB133111EB % 2**64
        number ^= number >> 31
    return number < fraction * 2**64


def run(task: fact_diff.DiffTask, folder: Path, memory: int = 1 << 30) -> Report:
    """What diff.run does."""
    with database(folder, memory) as db:
        for side in ("prev", "recent"):
            place = Path(getattr(task, side))
            for table, columns in (("facts", "*"), ("entities", "s, lastrevid, seen, title")):
                source = _rows(files(place, table), _NONE[table])
                db.execute(
                    f"CREATE TEMP VIEW {side}_{table} AS SELECT {columns} FROM {source} "
                    f"WHERE bucket >= {task.first} AND bucket < {task.end}"
                )
            db.execute(
                f"CREATE TEMP VIEW {side}_all AS SELECT * FROM {_rows(files(place, 'entities'), _NONE['entities'])}"
            )
            properties = _rows(files(place, "properties"), _NONE["properties"])
            db.execute(f"CREATE TEMP VIEW {side}_properties AS SELECT * FROM {properties}")
            run_script(db, _STEPS.format(side=side, recent_date=task.recent_date), {})
        facts = db.sql("SELECT s, p, o FROM recent").fetchall()
        chosen = [fact for fact in facts if drawn(task.unchanged_fraction, task.seed, *fact)]
        columns = [pa.array([fact[at] for fact in chosen], pa.int64()) for at in range(3)]
        db.register("chosen", pa.table(columns, ["s", "p", "o"]))
        run_script(db, _CATEGORIES, {"recent_date": task.recent_date})
        run_script(db, _CANDIDATES, {"prev_date": task.prev_date, "recent_date": task.recent_date})
        _add_pages(db, task)
        report = _counts(db)
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
        table = rows.to_arrow_table()
    with ParquetWriter(folder / f"candidates-{task.index:05d}.parquet", fact_diff.CANDIDATES) as out:
        out.write_table(table.filter(table["page_id"].is_valid()))
    without = collections.Counter(table.filter(table["page_id"].is_null())["split"].to_pylist())
    report["alignment"] = {
        split: {"candidates": number, "not_aligned": {"subject_without_article": number}}
        for split, number in without.items()
    }
    return report


def _add_pages(db: duckdb.DuckDBPyConnection, task: fact_diff.DiffTask) -> None:
    """Tables page_now, the subject's article in recent, and page_then, its article in prev that recent has not."""
    now = _rows(article_files(Path(task.recent_articles), "articles"), _NONE["articles"])
    then = _rows(article_files(Path(task.prev_articles), "articles"), _NONE["articles"])
    titles = [title for (title,) in db.execute(f"SELECT title FROM {now} UNION SELECT title FROM {then}").fetchall()]
    hashes = [hashlib.blake2b(title.encode(), digest_size=16).digest() for title in titles]
    db.register("hashed", pa.table({"hash": pa.array(hashes, pa.binary()), "title": pa.array(titles, pa.string())}))
    if task.page_items is not None:
        items = rows_of([Path(task.page_items)])
        source = f"SELECT item AS id, page_id FROM {items} WHERE page_id IN (SELECT page_id FROM {now})"
    else:
        source = (
            "SELECT s AS id, page_id FROM recent_items JOIN hashed ON recent_items.title = hash "
            f"JOIN {now} articles ON articles.title = hashed.title"
        )
    db.execute(
        f"CREATE TEMP TABLE page_now AS SELECT id, min(page_id) AS page_id FROM ({source}) "
        "WHERE id IN (SELECT s FROM facts) GROUP BY id"
    )
    db.execute(
        "CREATE TEMP TABLE page_then AS SELECT s AS id, min(page_id) AS page_id "
        "FROM prev_items JOIN hashed ON prev_items.title = hash "
        f"JOIN {then} articles ON articles.title = hashed.title "
        f"WHERE s IN (SELECT s FROM gone) AND page_id NOT IN (SELECT page_id FROM {now}) GROUP BY s"
    )


def _counts(db: duckdb.DuckDBPyConnection) -> Report:
    def one(query: str) -> int:
        [(number,)] = db.execute(query).fetchall()
        return int(number)

    def by_kind(table: str) -> dict[str, int]:
        return dict(db.execute(f"SELECT kind, count(*) FROM {table} GROUP BY kind ORDER BY kind").fetchall())

    recent, fresh = one("SELECT count(*) FROM recent"), one("SELECT count(*) FROM fresh")
    still_there = one("SELECT count(*) FROM recent SEMI JOIN ended USING (s, p, o)")
    return {
        "facts": {
            "prev": one("SELECT count(*) FROM prev"),
            "recent": recent,
            "changed": by_kind("changed"),
            "unchanged": recent - fresh - still_there,
            "unchanged_sampled": one("SELECT count(*) FROM unchanged"),
            "deleted": by_kind("deleted"),
            "duplicate_entities": one("SELECT count(*) FROM recent_twice") + one("SELECT count(*) FROM prev_twice"),
        }
    }
