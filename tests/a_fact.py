"""Make facts by hand, dataset folders with months of them, and live configs from these."""

import json
from pathlib import Path
from typing import Any

from temporalwiki.builders.ckl.config import CklConfig
from temporalwiki.builders.ckl.live import live
from temporalwiki.builders.ckl.schemas import SCHEMAS
from temporalwiki.builders.configs import SPLITS
from temporalwiki.builders.dataset_folder import write_split

from a_month import stage_month

Rows = list[dict[str, Any]]
FIRST, SECOND = "20211001-20211101", "20211101-20211201"


def fact(subject: str = "Norland", obj: str = "Ann Weber", **more: Any) -> dict[str, Any]:
    """A new head of government: one who took the office from Carl Ito within the interval."""
    ids = {"subject_id": "Q1", "relation_id": "P6", "object_id": "Q2", "statement_id": "Q1$a"}
    texts = {"subject": subject, "relation": "head of government", "object": obj, "title": subject, "evidence": "E."}
    row = ids | texts | {"kind": "new_object", "previous_objects": ["Carl Ito"], "page_id": 7, "page_revision_id": 8}
    row |= {"current": True, "objects": [obj], "gone_objects": ["Carl Ito"], "start_time": None, "end_time": None}
    row |= {"aliases": [], "support": "stated", "dated": "within", "respelled": False, "strict": True}
    row |= {"known_before": False, "dead": False, "gone_end": None, "newly_stated": True} | more
    return {"objects_before": row["gone_objects"]} | row


def new(kind: str = "new_relation", **more: Any) -> dict[str, Any]:
    return fact(kind=kind, gone_objects=[], previous_objects=[], **more)


def same(**more: Any) -> dict[str, Any]:
    """A fact that stays, with the same objects at both dates unless ``more`` says otherwise."""
    row: dict[str, Any] = {
        "kind": "unchanged",
        "relation_id": "P36",
        "obj": "Easton",
        "gone_objects": [],
        "previous_objects": [],
    }
    row |= {"objects": [more.get("obj", "Easton")]} | more
    return fact(**{"objects_before": row["objects"]} | row)


def month(
    folder: Path,
    name: str = "20211101-20211201",
    wiki: str = "enwiki",
    language: str = "en",
    fraction: float = 1.0,
    seed: int = 0,
    **splits: Any,
) -> Path:
    """Add a month with these facts to a dataset folder."""
    prev, recent = name.split("-")
    manifest = stage_month(folder, prev, recent, [], [])
    manifest["interval"] |= {"wiki": wiki, "language": language}
    manifest["options"] |= {"unchanged_fraction": fraction, "seed": seed}
    written = {s: vars(write_split(folder, f"facts-{name}", s, splits.get(s, []))) for s in SPLITS["facts"]}
    manifest["configs"][f"facts-{name}"] = {"short_name": f"facts-{prev[4:6]}{recent[4:6]}", "splits": written}
    (folder / "manifests").mkdir(exist_ok=True)
    (folder / "manifests" / f"{name}.json").write_text(json.dumps(manifest), "utf-8")
    return folder


def months(folder: Path, *intervals: str) -> Path:
    for name in intervals:
        month(folder, name, unchanged=[same()], changed=[new()])
    return folder


def made(kind: str, *folders: Path, **options: Any) -> tuple[CklConfig, Rows]:
    """A config and its rows of the split test."""
    config, splits = made_splits(kind, *folders, **options)
    return config, splits["test"]


def made_splits(kind: str, *folders: Path, **options: Any) -> tuple[CklConfig, dict[str, Rows]]:
    """A config and its rows by split; every row that was read is accounted for."""
    [config] = live(kind, list(folders), **options)
    assert list(config.splits) == (["test"] if kind == "invariantlama" else ["test", "backfilled"])
    splits = {split: [dict(row) for row in rows] for split, rows in config.splits.items()}
    rows = [row for of_split in splits.values() for row in of_split]
    counts = config.counts
    assert (counts.kept, counts.read) == (len(rows), len(rows) + sum(counts.dropped.values()))
    assert len({row["id"] for row in rows}) == len(rows)
    assert all(row.keys() == set(SCHEMAS["live"].names) for row in rows)
    return config, splits
