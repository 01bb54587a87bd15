"""What kinds of things probes are about: the classes of their subjects and objects (TemporalWiki's figure 6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from temporalwiki.builders.wikidata import labels
from temporalwiki.builders.wikidata.probes import Fact

UNKNOWN = "unknown"  # of an entity without a class

EntityTypes = dict[str, dict[str, dict[str, int]]]


def count(probes: Mapping[str, Iterable[Fact]], folder: Path) -> EntityTypes:
    """Count the probes of each split by the type of their subject and of their object.

    An entity's type is the label of its class, the object of its first best-rank P31 statement, both as stage
    wikidata-labels has them in ``folder``; the class's id where it has no label; "unknown" without a class. Every
    probe counts once a role, so the counts add up to the number of probes.
    """
    split_facts = {split: list(facts) for split, facts in probes.items()}
    classes = _look_up(
        folder, "class", {n for facts in split_facts.values() for fact in facts for n in (fact.s, fact.o)}
    )
    names = _look_up(folder, "label", set(classes.values()))

    def type_of(entity: int) -> str:
        of = classes.get(entity)
        return UNKNOWN if of is None else names.get(of) or f"Q{of}"

    return {
        split: {
            role: dict(sorted(Counter(map(type_of, entities)).items()))
            for role, entities in (("subject", [fact.s for fact in facts]), ("object", [fact.o for fact in facts]))
        }
        for split, facts in split_facts.items()
    }


def _look_up(folder: Path, column: str, ids: Iterable[int]) -> dict[int, Any]:
    """A column of those entities that have a value there."""
    found = labels.look_up(folder, np.array(sorted(ids), np.int64))
    rows = zip(found["id"].to_pylist(), found[column].to_pylist(), strict=True)
    return {entity: value for entity, value in rows if value is not None}
