"""Dataset folders of one interval or more for figures of the data: probes, and a manifest with their types."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tiny_probes import write_dataset

Types = dict[str, dict[str, dict[str, int]]]


def write_probes(
    folder: Path,
    relations: Mapping[str, Mapping[str, Sequence[str]]],
    types: Mapping[str, Types | None] | None = None,
) -> str:
    """Write, for each interval (``20211101-20211201``), a probe for each relation of each split.

    Each has a short name, too. The manifests hold ``types``, by interval; there is none of an interval that it lacks.
    """
    configs: dict[str, Any] = {}
    for interval, splits in relations.items():
        rows = {
            split: [{"subject": "s", "relation": relation, "object": "o"} for relation in of]
            for split, of in splits.items()
            if of
        }
        configs[f"probes-{interval}"] = rows
        configs[f"probes-{interval[4:6]}{interval[13:15]}"] = rows
    write_dataset(folder, configs)
    for interval, of in (types or {}).items():
        prev, recent = interval.split("-")
        manifest = {
            "interval": {"wiki": "enwiki", "prev": prev, "recent": recent},
            "configs": {},
            "counts": {} if of is None else {"entity_types": of},
        }
        path = folder / "manifests" / f"{interval}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(manifest), "utf-8")
    return str(folder)
