"""Count what kinds of things probes are about, by the classes of subjects and objects (TemporalWiki, figure 6)."""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from temporalwiki.builders.wikidata import labels
from temporalwiki.builders.wikidata.probes import Fact

UNKNOWN = "unknown"  # the type of an entity without a class

EntityTypes = dict[str, dict[str, dict[str, int]]]


def count(probes: Mapping[str, Iterable[Fact]], folder: Path) -> EntityTypes:
    """Return how many probes of each split have a subject, and how many an object, of each type.

    An entity's class is the object of its first best-rank P31 statement. Its type is the label of the class, the id
    of a class without a label, or "unknown" without a class. ``folder`` is the folder of stage wikidata-labels. The
    counts of subjects add up to the number of probes, and so do the counts of objects.
    """
    split_facts = {split: list(facts) for split, facts in probes.items()}
    entities = {number for facts in split_facts.values() for fact in facts for number in (fact.s, fact.o)}
    classes = _look_up(folder, "class", entities)
    names = _look_up(folder, "label", set(classes.values()))

    def type_of(entity: int) -> str:
        number = classes.get(entity)
        return UNKNOWN if number is None else names.get(number) or f"Q{number}"

    return {
        split: {
            role: dict(sorted(Counter(map(type_of, entities)).items()))
            for role, entities in (("subject", [fact.s for fact in facts]), ("object", [fact.o for fact in facts]))
        }
        for split, facts in split_facts.items()
    }


def _look_up(folder: Path, column: str, ids: Iterable[int]) -> dict[int, Any]:
    """Return a column of LABELS by entity, without nulls."""
    found, _ = labels.look_up(folder, np.array(sorted(ids), np.int64))
    rows = zip(found["id"].to_pylist(), found[column].to_pylist(), strict=True)
    return {entity: value for entity, value in rows if value is not None}
