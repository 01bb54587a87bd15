"""Stage wikidata-diff: compare the facts of two dumps with Algorithm 2 of TemporalWiki (section 3.2), in DuckDB.

A subject is *touched* if the two dumps do not both have it in the same revision. Only touched subjects can have new
or deleted facts. So only their statements are loaded into the database, and a sample of the facts of all others.
"""

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from temporalwiki.base.errors import InputError
from temporalwiki.builders.measurement import give_back_memory
from temporalwiki.builders.parquet import ParquetWriter, read_columns
from temporalwiki.builders.sql import database, run_script
from temporalwiki.builders.stages import Report
from temporalwiki.builders.wikidata import buckets, cues, labels, tables
from temporalwiki.builders.wikipedia import extract as wiki_extract
from temporalwiki.builders.wikipedia.extract import PAGES
from temporalwiki.builders.wikipedia.page_props import PAGE_ITEMS
from temporalwiki.builders.wikipedia.titles import HASH

VERSION = 9
FACTS_A_TASK = 4_000_000  # memory grows with it; every task opens a database and all files that have its buckets

# One row for each fact whose subject has an article. Stage align drops and counts facts without a label.
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
        "aliases": pa.list_(pa.string()),
        "objects_before": pa.list_(pa.string()),
        "gone_objects": pa.list_(pa.string()),
        "known_before": pa.bool_(),
        "dead": pa.bool_(),
        "gone_end": pa.timestamp("s", "UTC"),
        "start_time": pa.timestamp("s", "UTC"),
        "end_time": pa.timestamp("s", "UTC"),
        "dated": pa.string(),
        "page_id": pa.int64(),
        "object_title": HASH,  # of the object's page
        "object_aliases": pa.list_(pa.string()),
        "subject_aliases": pa.list_(pa.string()),
    }
)


@dataclass(frozen=True)
class FactDiffTask(labels.LabelsTask):
    """The facts of two extracted Wikidata dumps whose subjects are in buckets [first, end)."""

    labels: str  # the folder of stage wikidata-labels
    prev_articles: str
    recent_articles: str
    page_items: str | None  # a Parquet file of (page_id, item), if the Wikipedia dump has page_props
    prev_date: int  # of the Wikidata dumps
    recent_date: int
    prev_text: int  # of the Wikipedia dumps
    recent_text: int
    unchanged_fraction: float
    seed: int


def count_tasks(facts: int) -> int:
    """Return how many tasks the comparison of ``facts`` facts is divided into."""
    return max(1, min(tables.BUCKETS, math.ceil(facts / FACTS_A_TASK)))


def plan(facts: int, **common: Any) -> list[FactDiffTask]:
    """Group the buckets so that a task has about FACTS_A_TASK facts; ``common`` are the tasks' other fields."""
    ranges = tables.bucket_ranges(count_tasks(facts))
    return [FactDiffTask(i, first=first, end=end, **common) for i, (first, end) in enumerate(ranges)]


_RECORD = ("s", "lastrevid", "title", "seen", "different_facts")
_STATEMENT = ("s", "p", "o", "best", "statement_id", "start_day", "end_day", "point_day")

# Each SQL statement is one step of the algorithm; $-names are values of the task, and "source" are rows of an extract.

# Of several records of an item, the newest one counts.
_ITEMS = """
CREATE TEMP TABLE {side}_items AS
    SELECT *, count(*) OVER (PARTITION BY s) AS records FROM source
    QUALIFY row_number() OVER (PARTITION BY s ORDER BY lastrevid DESC, seen DESC) = 1
"""
_TOUCHED = """
CREATE TEMP TABLE untouched AS FROM recent_items SEMI JOIN prev_items USING (s, lastrevid) WHERE lastrevid > 0;
CREATE TEMP TABLE prev_touched AS FROM prev_items ANTI JOIN untouched USING (s);
CREATE TEMP TABLE recent_touched AS FROM recent_items ANTI JOIN untouched USING (s);
"""
# Articles of prev matter only for subjects whose facts can be gone.
_ARTICLES_THEN = """
CREATE TEMP TABLE articles_then AS
    SELECT s AS id, source.page_id FROM source JOIN prev_touched USING (title) WHERE article
"""
_ARTICLES_NOW = """
CREATE TEMP TABLE articles_now AS
    SELECT page_id, title FROM source WHERE article AND (
        page_id IN (SELECT page_id FROM page_items) OR page_id IN (SELECT page_id FROM articles_then)
        OR title IN (SELECT title FROM recent_items WHERE title IS NOT NULL)
    )
"""
# The article of a subject in recent (is_now), or else in prev, if recent does not have it.
_PAGES = """
CREATE TEMP TABLE pages AS
    WITH pages_now AS (SELECT item AS id, page_id FROM page_items SEMI JOIN articles_now USING (page_id))
    SELECT id, min(page_id) AS page_id, true AS is_now FROM pages_now GROUP BY id
    UNION ALL
    SELECT id, min(page_id), false
    FROM articles_then ANTI JOIN articles_now USING (page_id) ANTI JOIN pages_now USING (id) GROUP BY id
"""
_SAMPLED = "CREATE TEMP TABLE sampled AS SELECT DISTINCT s, p, o FROM source SEMI JOIN untouched USING (s, seen)"
# The statements of sampled subjects without an article do not matter.
_WANTED = """
CREATE TEMP TABLE same_wanted AS
    FROM untouched SEMI JOIN sampled USING (s) WHERE s IN (SELECT id FROM pages);
CREATE TEMP TABLE recent_wanted AS FROM recent_touched UNION ALL FROM same_wanted;
"""
_STATEMENTS = "CREATE TEMP TABLE {table} AS FROM source SEMI JOIN {wanted} USING (s, seen)"

_COMPARED = """
CREATE TEMP TABLE same_statements AS FROM recent_read SEMI JOIN same_wanted USING (s);
CREATE TEMP TABLE recent_statements AS FROM recent_read ANTI JOIN same_wanted USING (s);
-- Every fact of touched subjects once. A fact is in a dump if one of its statements there has the best rank. It is
-- over if all its statements in recent, of any rank, have an end time before recent's date. It ended if it is over
-- now and was not in prev.
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

# The statements of "asked" (s, p), and whether each holds at the date of its dump: it has not ended, and no start time
# says that it has not begun.
_HOLDS = """
    SELECT s, p, o, best, statement_id, start_day, end_day, point_day,
        (end_day IS NULL OR end_day > ${side}_date) AND (start_day IS NULL OR start_day <= ${side}_date) AS holds
    FROM (FROM {side}_statements UNION ALL FROM same_statements) SEMI JOIN asked USING (s, p)
"""

_ASKED = f"""
-- Facts about subjects without an article, which are most, cannot be aligned.
CREATE TEMP TABLE facts AS
    SELECT found.*, page_id FROM found JOIN pages ON id = s WHERE is_now OR split = 'deleted';
CREATE TEMP TABLE replaced_objects AS
    SELECT s, p, o FROM compared WHERE in_prev AND (s, p) IN (SELECT (s, p) FROM facts WHERE kind = 'new_object');
-- Which objects are right now, and which were right at the date of prev.
CREATE TEMP TABLE asked AS SELECT DISTINCT s, p FROM facts;
CREATE TEMP TABLE prev_asked AS {_HOLDS.format(side="prev")};
CREATE TEMP TABLE recent_asked AS {_HOLDS.format(side="recent")};
CREATE TEMP TABLE now AS SELECT DISTINCT s, p, o FROM recent_asked WHERE best AND holds;
CREATE TEMP TABLE before AS SELECT DISTINCT s, p, o FROM prev_asked WHERE best AND holds;
-- The last day that a day can mean: the first of a month or year may be the whole of it.
CREATE TEMP MACRO last_of(day) AS day + CASE WHEN day % 10000 = 101 THEN 1130 WHEN day % 100 = 1 THEN 30 ELSE 0 END;
-- Objects that are no longer right: none of their statements in recent, of any rank, holds. An object that ended
-- before prev was not right then: only the edit is new. Day 0 is an unknown day.
CREATE TEMP TABLE gone_objects AS
    SELECT s, p, o FROM before
    WHERE (s, p, o) NOT IN (SELECT (s, p, o) FROM recent_asked WHERE holds)
        AND (s, p, o) NOT IN (
            SELECT (s, p, o) FROM recent_asked GROUP BY s, p, o
            HAVING max(last_of(coalesce(nullif(end_day, 0), 99999999))) <= $prev_date
        );
-- Subjects with a place, cause or manner of death, or a place of burial.
CREATE TEMP TABLE dead AS
    SELECT DISTINCT s FROM (FROM recent_statements UNION ALL FROM same_statements)
    WHERE best AND p IN (20, 509, 1196, 119);
-- The times of a fact come from a best-rank statement: preferably of recent, then one that holds. A point in time
-- counts as start and end.
CREATE TEMP MACRO day_of(day) AS try_strptime(lpad(CAST(day AS TEXT), 8, '0'), '%Y%m%d');
CREATE TEMP TABLE times AS
    SELECT s, p, o, statement_id, day_of(start_day) AS start_time, day_of(end_day) AS end_time,
        CASE WHEN began BETWEEN $prev_text AND $recent_text OR ended BETWEEN $prev_text AND $recent_text THEN 'within'
             WHEN ended < $prev_text THEN 'over' WHEN began < $prev_text THEN 'before' ELSE 'undated' END AS dated
    FROM (
        SELECT *, nullif(coalesce(start_day, point_day), 0) AS began, coalesce(end_day, point_day) AS ended
        FROM (SELECT 0 AS side, * FROM recent_asked UNION ALL SELECT 1, * FROM prev_asked) WHERE best
        QUALIFY row_number() OVER (PARTITION BY s, p, o ORDER BY side, NOT holds, statement_id, began, ended) = 1
    );
-- The last known end of the objects that are no longer right.
CREATE TEMP TABLE gone_ends AS
    SELECT s, p, day_of(max(end_day)) AS gone_end FROM recent_asked SEMI JOIN gone_objects USING (s, p, o)
    WHERE end_day BETWEEN 1 AND $recent_date GROUP BY s, p;
CREATE TEMP TABLE wanted AS
    SELECT s AS id FROM facts UNION SELECT o FROM facts UNION SELECT o FROM replaced_objects
    UNION SELECT o FROM now UNION SELECT o FROM before;
"""

_NAMES = """
CREATE TEMP TABLE relations AS
    SELECT p, arg_max(label, (side, lastrevid, seen)) AS label FROM (
        SELECT 1 AS side, * FROM recent_properties UNION ALL SELECT 0, * FROM prev_properties
    ) WHERE label IS NOT NULL GROUP BY p;
-- What is no longer right carries the label of its time.
CREATE TEMP TABLE then_known AS
    SELECT id, coalesce(former.label, known.label) AS label, known.recent FROM known LEFT JOIN former USING (id);
CREATE TEMP TABLE previous AS
    SELECT s, p, list(label ORDER BY label, o) FILTER (label IS NOT NULL) AS previous_objects
    FROM replaced_objects JOIN then_known ON o = id GROUP BY s, p;
CREATE TEMP MACRO named(label, o) AS coalesce(label, concat('Q', o));
CREATE TEMP TABLE now_labels AS
    SELECT s, p, list(DISTINCT named(label, o) ORDER BY named(label, o)) AS labels,
        flatten(list(aliases) FILTER (aliases IS NOT NULL)) AS aliases
    FROM now LEFT JOIN known ON o = id GROUP BY s, p;
CREATE TEMP TABLE before_labels AS
    SELECT s, p, list(DISTINCT named(label, o) ORDER BY named(label, o)) AS labels
    FROM before LEFT JOIN known ON o = id GROUP BY s, p;
-- An item that recent does not have was deleted or merged into another, under which the fact may still be right.
CREATE TEMP TABLE gone_labels AS
    SELECT s, p, list(DISTINCT named(label, o) ORDER BY named(label, o)) AS labels
    FROM gone_objects JOIN then_known ON o = id WHERE recent GROUP BY s, p;
"""


def run(task: FactDiffTask, folder: Path, memory: int = 1 << 30) -> Report:
    """Sort the facts of some buckets into splits, and write the candidates for probes with their labels and pages.

    DuckDB takes up to ``memory`` bytes and spills the rest to disk. Raises InputError if that is not enough.
    """
    with database(folder, memory) as db:
        for side, found in zip(("prev", "recent"), _properties(Path(task.prev), Path(task.recent)), strict=True):
            db.register(f"{side}_properties", found)
        values = {name: getattr(task, name) for name in ("prev_date", "recent_date", "prev_text", "recent_text")}
        sample = functools.partial(_sample, task.unchanged_fraction, task.seed)

        def load(
            side: str, table: pa.Schema, columns: Sequence[str], query: str, some: Callable[..., pa.Table] = _all
        ) -> None:
            """Run a query over some rows of an extract in the task's buckets."""
            folder, name = Path(getattr(task, side)), "facts" if table is tables.FACTS else "entities"
            schema = pa.schema([table.field(column) for column in columns])
            _load(db, map(some, buckets.read(folder, name, task.first, task.end, columns)), schema, query)

        for side in ("prev", "recent"):
            load(side, tables.ENTITIES, _RECORD, _ITEMS.format(side=side))
        run_script(db, _TOUCHED, {})
        _find_pages(db, task)
        load("recent", tables.FACTS, ("s", "p", "o", "best", "seen"), _SAMPLED, sample)
        run_script(db, _WANTED, {})
        for side, name, wanted in (("prev", "statements", "prev_touched"), ("recent", "read", "recent_wanted")):
            # nearly all statements are left out here, which is faster than in DuckDB
            some = functools.partial(_about, np.sort(db.sql(f"SELECT s FROM {wanted}").fetchnumpy()["s"]))
            query = _STATEMENTS.format(table=f"{side}_{name}", wanted=wanted)
            load(side, tables.FACTS, (*_STATEMENT, "seen"), query, some)
        give_back_memory()
        run_script(db, _COMPARED, values)
        same = db.sql("SELECT s, p, o, true AS best FROM compared WHERE in_prev AND in_recent AND NOT ended")
        db.register("sample", sample(same.to_arrow_table()))
        db.execute("INSERT INTO sampled SELECT s, p, o FROM sample")
        run_script(db, _FOUND + _ASKED, values)
        wanted = db.sql("FROM wanted").fetchnumpy()["id"]
        known, former = labels.look_up(Path(task.labels), wanted)
        db.register("known", known)
        db.register("former", former)
        run_script(db, _NAMES, {})
        report = _counts(db)
        rows = db.sql(
            """
            SELECT split, kind, f.s, f.p, f.o, times.statement_id,
                subjects.label AS subject, relations.label AS relation,
                objects.label AS object, coalesce(previous_objects, []) AS previous_objects,
                now.s IS NOT NULL AS current,
                coalesce(now_labels.labels, []) AS objects,
                list_sort(list_distinct(coalesce(now_labels.aliases, []))) AS aliases,
                coalesce(before_labels.labels, []) AS objects_before,
                coalesce(gone_labels.labels, []) AS gone_objects,
                (f.s, f.p, f.o) IN (SELECT (s, p, o) FROM prev_asked) AS known_before,
                f.s IN (SELECT s FROM dead) AS dead, gone_end,
                start_time, end_time, coalesce(dated, 'undated') AS dated,
                page_id, objects.title AS object_title, coalesce(objects.aliases, []) AS object_aliases,
                coalesce(subjects.aliases, []) AS subject_aliases
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
            LEFT JOIN gone_ends ON gone_ends.s = f.s AND gone_ends.p = f.p
            ORDER BY page_id, f.s, f.p, f.o, split
            """
        )
        with ParquetWriter(folder / f"candidates-{task.index:05d}.parquet", CANDIDATES, rows=20_000) as out:
            for batch in rows.to_arrow_reader(20_000):
                out.write_table(pa.Table.from_batches([batch]))
    return report | {"wrote": [out.path]}


def _load(db: duckdb.DuckDBPyConnection, source: Iterator[pa.Table], schema: pa.Schema, query: str) -> None:
    """Run a query over ``source``, which is read while it runs.

    Raises InputError if a file is damaged: DuckDB would not verify checksums.
    """
    problems: list[InputError] = []

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            for rows in source:
                yield from rows.to_batches()
        except InputError as problem:
            problems.append(problem)
            raise

    db.register("source", pa.RecordBatchReader.from_batches(schema, batches()))
    try:
        db.execute(query)
    except duckdb.Error:
        if problems:
            raise problems[0] from None
        raise
    finally:
        db.unregister("source")


def _all(rows: pa.Table) -> pa.Table:
    return rows


def _about(subjects: tables.Integers, rows: pa.Table) -> pa.Table:
    """Return the facts about some subjects, which must ascend."""
    return rows.filter(pa.array(buckets.subject_in(rows, subjects)))


def _sample(share: float, seed: int, rows: pa.Table) -> pa.Table:
    """Return a random sample of the facts of best rank, as ``sampled`` draws it."""
    s, p, o, best = (rows[name].to_numpy() for name in ("s", "p", "o", "best"))
    return rows.filter(pa.array(best & sampled(share, seed, s, p, o)))


def sampled(share: float, seed: int, *columns: tables.Integers) -> tables.Mask:
    """Return for each fact whether it is in a random sample. This depends only on the fact, ``share`` and ``seed``.

    The hash is the finalizer of SplitMix64 (Steele, Lea and Flood, 2014) over the seed and one column after another.
    """
    if share >= 1:
        return np.ones(len(columns[0]), bool)
    numbers = np.full(len(columns[0]), seed % 2**64, np.uint64)
    for column in columns:
        numbers ^= column.astype(np.uint64)
        numbers += np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            numbers ^= numbers >> np.uint64(shift)
            numbers *= np.uint64(factor)
        numbers ^= numbers >> np.uint64(31)
    return numbers < np.uint64(share * 2**64)


def _find_pages(db: duckdb.DuckDBPyConnection, task: FactDiffTask) -> None:
    """Make table ``pages``: the article of every subject that has one."""
    db.execute("CREATE TEMP TABLE page_items (page_id BIGINT, item BIGINT)")
    if task.page_items is not None:
        source = read_columns([Path(task.page_items)], PAGE_ITEMS.names)
        wanted = f"item % {tables.BUCKETS} >= {task.first} AND item % {tables.BUCKETS} < {task.end}"
        _load(db, source, PAGE_ITEMS, f"INSERT INTO page_items FROM source WHERE {wanted}")
    columns = pa.schema([PAGES.field(name) for name in ("page_id", "article", "title")])
    for articles, query in ((task.prev_articles, _ARTICLES_THEN), (task.recent_articles, _ARTICLES_NOW)):
        _load(db, read_columns(wiki_extract.files(Path(articles), "pages"), columns.names), columns, query)
    if task.page_items is None:
        db.execute("INSERT INTO page_items SELECT page_id, s FROM articles_now JOIN recent_items USING (title)")
    db.execute(_PAGES)


def _properties(*extracts: Path) -> list[pa.Table]:
    """Return the records of properties in each extract. If all are empty, the built-in table takes the last place.

    DuckDB could read the records, but would not verify checksums.
    """
    found = [tables.property_records(extract) for extract in extracts]
    if not any(table.num_rows for table in found):
        rows = [{"p": p, "lastrevid": 0, "label": label, "seen": 0} for p, label in cues.labels().items()]
        found[-1] = pa.Table.from_pylist(rows, tables.PROPERTIES)
    return found


def _counts(db: duckdb.DuckDBPyConnection) -> Report:
    """Return the report: how many facts there are, and what they were found to be."""
    counts: dict[str, dict[str, int]] = {"changed": {}, "unchanged": {}, "deleted": {}}
    for split, kind, number in db.execute("SELECT split, kind, count(*) FROM found GROUP BY ALL").fetchall():
        counts[split][kind] = number
    [(prev, recent, same, untouched, repeated)] = db.execute(
        """
        SELECT count(*) FILTER (in_prev), count(*) FILTER (in_recent),
            count(*) FILTER (in_prev AND in_recent AND NOT ended),
            (SELECT coalesce(sum(different_facts), 0)::BIGINT FROM untouched),
            (SELECT count(*) FROM (FROM prev_items UNION ALL FROM recent_items) WHERE records > 1)
        FROM compared
        """
    ).fetchall()
    query = "SELECT split, count(*) FROM found ANTI JOIN facts USING (split, s, p, o) GROUP BY split"
    without_article = db.execute(query).fetchall()
    return {
        "facts": {
            "prev": untouched + prev,
            "recent": untouched + recent,
            "changed": counts["changed"],
            "unchanged": untouched + same,
            "unchanged_sampled": counts["unchanged"].get("unchanged", 0),
            "deleted": counts["deleted"],
            "duplicate_entities": repeated,
        },
        # facts that stage align does not get are counted as if it had dropped them
        "alignment": {
            split: {"candidates": number, "not_aligned": {"subject_without_article": number}}
            for split, number in without_article
        },
    }
