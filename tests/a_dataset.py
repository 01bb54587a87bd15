"""Write dataset folders with a few rows."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Rows = Sequence[Mapping[str, Any]]
Types = dict[str, dict[str, dict[str, int]]]


def write_dataset(folder: Path, configs: Mapping[str, Mapping[str, Rows | pa.Table] | Rows]) -> Path:
    """Write a dataset folder: configs, their splits, and rows; rows without splits are the split ``train``."""
    card = "---\nconfigs:\n"
    for config, splits in configs.items():
        card += f'- config_name: "{config}"\n  data_files:\n'
        for split, rows in (splits if isinstance(splits, Mapping) else {"train": splits}).items():
            path = folder / "data" / config / f"{split}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(list(rows)), path)
            card += f"  - split: {split}\n    path: {path.relative_to(folder)}\n"
    (folder / "README.md").write_text(card + "---\n", "utf-8")
    return folder


def write_probes(
    folder: Path,
    relations: Mapping[str, Mapping[str, Sequence[str]]],
    types: Mapping[str, Types | None] | None = None,
) -> str:
    """Write, for each interval (``20211101-20211201``), a probe for each relation of each split: for figures of data.

    Each config also has a short name. The manifests hold ``types`` by interval, and omit intervals without an entry.
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
        facts = dict.fromkeys(("categorised", "sampled", "aligned", "filtered", "kept"), 0)
        manifest = {
            "interval": {"wiki": "enwiki", "prev": prev, "recent": recent},
            "inputs": [],
            "options": {"seed": 0, "unchanged_fraction": 1.0, "compare": "exact", "caps": [0.01, 0.05, 0.05]},
            "configs": {f"diffset-{interval}": {"short_name": f"diffset-{prev[4:6]}{recent[4:6]}", "splits": {}}},
            "counts": {
                "pages": {"new": 0, "updated": 0},
                "diffset": {"words": 0},
                "probes": dict.fromkeys(("unchanged", "changed", "deleted"), facts),
            }
            | ({} if of is None else {"entity_types": of}),
        }
        path = folder / "manifests" / f"{interval}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(manifest), "utf-8")
    return str(folder)
