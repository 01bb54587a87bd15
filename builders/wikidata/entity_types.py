"""What kinds of things probes are about: the classes of their subjects and objects (TemporalWiki's figure 6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from temporalwiki.builders.sql import database, run_script
from temporalwiki.builders.wikidata import buckets
from temporalwiki.builders.wikidata.extract import BUCKETS, ENTITIES, FACTS
from temporalwiki.builders.wikidata.probes import Fact
from temporalwiki.builders.wikidata.revisions import Integers

INSTANCE_OF = 31
UNKNOWN = "unknown"  # of an entity without a class

EntityTypes = dict[str, dict[str, dict[str, int]]]

# An entity that recent does not hold is what it was in prev. ``place`` is the order of the statements.
_CLASSES = """
CREATE TEMP TABLE recent_reading AS
    SELECT s, arg_max(seen, (lastrevid, seen)) AS seen FROM recent_asked GROUP BY s;
CREATE TEMP TABLE prev_reading AS
    SELECT s, arg_max(seen, (lastrevid, seen)) AS seen FROM prev_asked
    WHERE s NOT IN (SELECT s FROM recent_reading) GROUP BY s;
CREATE TEMP TABLE classes AS
    SELECT s AS id, arg_min(o, place) AS class FROM recent_facts JOIN recent_reading USING (s, seen) GROUP BY s
    UNION ALL
    SELECT s, arg_min(o, place) FROM prev_facts JOIN prev_reading USING (s, seen) GROUP BY s;
"""
# Labels: those of the recent snapshot; of prev only for an entity that recent does not hold.
_LABELS = """
CREATE TEMP TABLE recent_known AS
    SELECT s AS id, arg_max(label, (lastrevid, seen)) FILTER (label IS NOT NULL) AS label
    FROM recent_classes GROUP BY s;
CREATE TEMP TABLE prev_known AS
    SELECT s AS id, arg_max(label, (lastrevid, seen)) FILTER (label IS NOT NULL) AS label
    FROM prev_classes WHERE s NOT IN (SELECT id FROM recent_known) GROUP BY s;
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
    ids = np.array(
        sorted({number for facts in split_facts.values() for fact in facts for number in (fact.s, fact.o)}), np.int64
    )
    with database(folder, memory) as db:
        for side, place in (("prev", prev), ("recent", recent)):
            db.register(f"{side}_asked", _entities(place, ids))
            db.register(f"{side}_facts", _classes(place, ids))
        run_script(db, _CLASSES, {})
        wanted = db.sql("SELECT DISTINCT class FROM classes").fetchnumpy()["class"].astype(np.int64)
        for side, place in (("prev", prev), ("recent", recent)):
            db.register(f"{side}_classes", _entities(place, np.sort(wanted)))
        run_script(db, _LABELS, {})
        found = db.sql("SELECT classes.id, class, label FROM classes LEFT JOIN known ON known.id = class").fetchall()
    types = {entity: label or f"Q{of_class}" for entity, of_class, label in found}
    return {
        split: {
            role: dict(sorted(Counter(types.get(number, UNKNOWN) for number in numbers).items()))
            for role, numbers in (("subject", [fact.s for fact in facts]), ("object", [fact.o for fact in facts]))
        }
        for split, facts in split_facts.items()
    }


def _entities(extract: Path, ids: Integers) -> pa.Table:
    """What an extract holds of some entities; ``ids`` must ascend."""
    columns = ("s", "label", "lastrevid", "seen")
    found = [ENTITIES.empty_table().select(columns)]
    for rows in buckets.read(extract, "entities", 0, BUCKETS, columns):
        found.append(_of(rows, ids))
    return pa.concat_tables(found)


def _classes(extract: Path, ids: Integers) -> pa.Table:
    """The best-rank classes of some entities; ``place`` orders those of a reading."""
    columns = ("s", "p", "o", "best", "seen")
    found = [FACTS.empty_table().select(columns)]
    for rows in buckets.read(extract, "facts", 0, BUCKETS, columns):
        classes = rows.filter(pc.and_(pc.equal(rows["p"], INSTANCE_OF), rows["best"]))
        found.append(_of(classes, ids))
    table = pa.concat_tables(found)
    return table.append_column("place", pa.array(np.arange(table.num_rows)))


def _of(rows: pa.Table, ids: Integers) -> pa.Table:
    """The rows of some entities."""
    return rows.filter(pa.array(buckets.are_of(rows, ids)))
