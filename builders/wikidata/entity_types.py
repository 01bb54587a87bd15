"""What kinds of things probes are about: the classes of their subjects and objects (TemporalWiki's figure 6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow as pa

from temporalwiki.builders.sql import database, rows_of, run_script
from temporalwiki.builders.wikidata.extract import files
from temporalwiki.builders.wikidata.probes import Fact

INSTANCE_OF = 31
UNKNOWN = "unknown"  # of an entity without a class

EntityTypes = dict[str, dict[str, dict[str, int]]]

# An entity that recent does not hold is what it was in prev. A file's rows are in the order of the statements.
_CLASSES = f"""
CREATE TEMP TABLE recent_reading AS
    SELECT s, arg_max(seen, (lastrevid, seen)) AS seen FROM recent_all
    WHERE s IN (SELECT id FROM asked) GROUP BY s;
CREATE TEMP TABLE prev_reading AS
    SELECT s, arg_max(seen, (lastrevid, seen)) AS seen FROM prev_all
    WHERE s IN (SELECT id FROM asked WHERE id NOT IN (SELECT s FROM recent_reading)) GROUP BY s;
CREATE TEMP TABLE classes AS
    SELECT s AS id, arg_min(o, file_row_number) AS class FROM recent_facts JOIN recent_reading USING (s, seen)
    WHERE p = {INSTANCE_OF} AND best GROUP BY s
    UNION ALL
    SELECT s, arg_min(o, file_row_number) FROM prev_facts JOIN prev_reading USING (s, seen)
    WHERE p = {INSTANCE_OF} AND best GROUP BY s;
CREATE TEMP TABLE wanted AS SELECT DISTINCT class AS id FROM classes;
-- Labels: those of the recent snapshot; of prev only for an entity that recent does not hold.
CREATE TEMP TABLE recent_known AS
    SELECT s AS id, arg_max(label, (lastrevid, seen)) FILTER (label IS NOT NULL) AS label
    FROM recent_all WHERE s IN (SELECT id FROM wanted) GROUP BY s;
CREATE TEMP TABLE prev_known AS
    SELECT s AS id, arg_max(label, (lastrevid, seen)) FILTER (label IS NOT NULL) AS label
    FROM prev_all WHERE s IN (SELECT id FROM wanted WHERE id NOT IN (SELECT id FROM recent_known)) GROUP BY s;
CREATE TEMP TABLE known AS SELECT * FROM recent_known UNION ALL SELECT * FROM prev_known;
"""


def count(probes: Mapping[str, Iterable[Fact]], prev: Path, recent: Path, folder: Path, memory: int) -> EntityTypes:
    """Count the probes of each split by the type of their subject and of their object.

    An entity's type is the label of its class, the object of its first best-rank P31 statement in the extract
    ``recent``; the class's id where it has no label; "unknown" without a class. Every probe counts once a role, so the
    counts add up to the number of probes. DuckDB takes up to ``memory`` bytes, and disk in ``folder``. Raises
    InputError where that does not do.
    """
    split_facts = {split: list(facts) for split, facts in probes.items()}
    ids = sorted({number for facts in split_facts.values() for fact in facts for number in (fact.s, fact.o)})
    with database(folder, memory) as db:
        db.register("asked", pa.table({"id": pa.array(ids, pa.int64())}))
        for side, place in (("prev", prev), ("recent", recent)):
            facts, entities = (rows_of(files(place, table), table) for table in ("facts", "entities"))
            db.execute(f"CREATE TEMP VIEW {side}_facts AS SELECT s, p, o, best, seen, file_row_number FROM {facts}")
            db.execute(f"CREATE TEMP VIEW {side}_all AS SELECT * FROM {entities}")
        run_script(db, _CLASSES, {})
        found = db.sql("SELECT classes.id, class, label FROM classes LEFT JOIN known ON known.id = class").fetchall()
    types = {entity: label or f"Q{of_class}" for entity, of_class, label in found}
    return {
        split: {
            role: dict(sorted(Counter(types.get(number, UNKNOWN) for number in numbers).items()))
            for role, numbers in (("subject", [fact.s for fact in facts]), ("object", [fact.o for fact in facts]))
        }
        for split, facts in split_facts.items()
    }
