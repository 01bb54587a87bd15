"""Make months of a dataset folder without dumps: rows, manifests and data files."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

from temporalwiki.builders.dataset_folder import install, write_split
from temporalwiki.builders.manifests import checked
from temporalwiki.model_cards.folder_card import folder_card

NOON = datetime.datetime(2021, 11, 20, 12, tzinfo=datetime.UTC)


def article(i: int, title: str = "T", text: str = "Text.") -> dict[str, Any]:
    return {
        "id": i,
        "title": title,
        "url": "https://en.wikipedia.org/wiki/T",
        "text": text,
        "kind": "new",
        "revision_id": 10 + i,
        "previous_revision_id": None,
        "timestamp": NOON,
        "paragraphs": 1,
        "words_new": 1,
        "words_reworded": 0,
    }


def probe(i: int, label: str = "Ann") -> dict[str, Any]:
    numbers = {"subject_id": f"Q{i}", "relation_id": "P54", "object_id": "Q5", "page_id": i, "page_revision_id": 7}
    texts = {"subject": label, "relation": "member of sports team", "object": "Roma", "kind": "new_object"}
    more = {"previous_objects": ["Lazio"], "statement_id": "Q1$x", "title": label, "evidence": f"{label} left."}
    right = {"objects": ["Roma"], "aliases": ["AS Roma"], "gone_objects": [], "current": True}
    return (
        numbers
        | texts
        | more
        | right
        | {
            "support": "stated",
            "start_time": NOON,
            "end_time": None,
            "dated": "within",
            "respelled": False,
            "strict": True,
        }
    )


def stage_month(
    folder: Path,
    prev: str,
    recent: str,
    rows: list[dict[str, Any]],
    probes: list[dict[str, Any]],
    wikidata: str = "",
    wiki: str = "enwiki",
) -> dict[str, Any]:
    """Stage one interval as a build does."""
    name, short = f"{prev}-{recent}", prev[4:6] + recent[4:6]
    splits = {"changed": probes, "unchanged": probes[:1], "deleted": []}
    deletions, whole = f"deletions-{name}", f"wikipedia-{recent}"
    configs: dict[str, Any] = {
        f"deletions-{name}": {
            "short_name": f"deletions-{short}",
            "splits": {"train": vars(write_split(folder, deletions, "train", rows))},
        },
        f"wikipedia-{recent}": {
            "short_name": f"wikipedia-{short[2:]}",
            "splits": {"train": vars(write_split(folder, whole, "train", (_whole(row) for row in rows)))},
        },
        f"diffset-{name}": {
            "short_name": f"diffset-{short}",
            "splits": {"train": vars(write_split(folder, f"diffset-{name}", "train", rows))},
        },
        f"probes-{name}": {
            "short_name": f"probes-{short}",
            "splits": {s: vars(write_split(folder, f"probes-{name}", s, r)) for s, r in splits.items()},
        },
    }
    counts = dict.fromkeys(("categorised", "sampled", "aligned", "filtered", "kept"), 1)
    return {
        "interval": {"wiki": wiki, "language": wiki[:2], "prev": prev, "recent": recent, "wikidata_recent": wikidata},
        "inputs": [{"file": "enwiki/a.bz2", "size": 5, "sha1": "x"}],
        "options": {"seed": 0, "unchanged_fraction": 0.001, "compare": "exact", "caps": [0.01, 0.05, 0.05]},
        "warnings": ["no closing ]"],
        "counts": {
            "pages": {"new": len(rows), "updated": 0},
            "diffset": {"words": 7},
            "probes": {"unchanged": counts, "changed": counts, "deleted": counts},
        },
        "configs": configs,
    }


def _whole(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in ("id", "title", "url", "text", "revision_id", "timestamp")}


def add_month(
    folder: Path,
    prev: str,
    recent: str,
    rows: list[Any],
    probes: list[Any] | None = None,
    wikidata: str = "",
    wiki: str = "enwiki",
) -> dict[str, Any]:
    staged = folder.parent / f"staged-{prev}-{recent}-{len(rows)}"
    manifest = stage_month(staged, prev, recent, rows, [probe(1)] if probes is None else probes, wikidata, wiki)
    install(staged, checked(manifest, "month"), folder, folder_card)
    return manifest
