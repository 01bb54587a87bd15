"""Make months of a dataset folder without dumps: rows, manifests and data files."""

import datetime
from pathlib import Path
from typing import Any

from temporalwiki.builders.dataset_folder import install, write_split
from temporalwiki.builders.manifests import checked
from temporalwiki.model_cards.folder_card import folder_card

NOON = datetime.datetime(2021, 11, 20, 12, tzinfo=datetime.UTC)


def article(i: int, title: str = "T", text: str = "Text.") -> dict[str, Any]:
    revision = {"kind": "new", "revision_id": 10 + i, "previous_revision_id": None, "timestamp": NOON}
    counts = {"paragraphs": 1, "words_new": 1, "words_reworded": 0}
    return {"id": i, "title": title, "url": "https://en.wikipedia.org/wiki/T", "text": text} | revision | counts


def probe(i: int, label: str = "Ann") -> dict[str, Any]:
    numbers = {"subject_id": f"Q{i}", "relation_id": "P54", "object_id": "Q5", "page_id": i, "page_revision_id": 7}
    texts = {"subject": label, "relation": "member of sports team", "object": "Roma", "kind": "new_object"}
    more = {"previous_objects": ["Lazio"], "statement_id": "Q1$x", "title": label, "evidence": f"{label} left."}
    right = {"objects": ["Roma"], "aliases": ["AS Roma"], "gone_objects": [], "current": True}
    dates = {"start_time": NOON, "end_time": None, "dated": "within"}
    return numbers | texts | more | right | dates | {"support": "stated", "respelled": False, "strict": True}


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
    probe_splits = {"changed": probes, "unchanged": probes[:1], "deleted": []}

    def config(full: str, alias: str, splits: dict[str, Any]) -> dict[str, Any]:
        written = {split: vars(write_split(folder, full, split, of)) for split, of in splits.items()}
        return {full: {"short_name": alias, "splits": written}}

    configs = config(f"deletions-{name}", f"deletions-{short}", {"train": rows})
    configs |= config(f"wikipedia-{recent}", f"wikipedia-{short[2:]}", {"train": (_whole(row) for row in rows)})
    configs |= config(f"diffset-{name}", f"diffset-{short}", {"train": rows})
    configs |= config(f"probes-{name}", f"probes-{short}", probe_splits)
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
