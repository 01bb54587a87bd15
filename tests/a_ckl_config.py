"""Write configs with a few rows to a CKL dataset folder."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from temporalwiki.builders.ckl.config import CklConfig, RowCounts, write
from temporalwiki.builders.manifests import CklManifest
from temporalwiki.model_cards.folder_card import folder_card

RELATIONS = {"P19": {"raw": 3, "kept": 2, "dropped": {"object_in_subject": 1}}}


def cloze(i: int, subject: str = "Ann") -> dict[str, Any]:
    return {
        "id": str(i),
        "relation_id": "P19",
        "subject": subject,
        "object": "Oslo",
        "statement": f"{subject} was born in <extra_id_0>.",
        "template": "[X] was born in [Y].",
    }


def live(i: int, subject: str = "Ann") -> dict[str, Any]:
    texts = ("relation", "subject_id", "object_id", "object", "question", "template", "kind", "evidence", "title")
    return {
        **dict.fromkeys((*texts, "start_time", "end_time", "statement_id")),
        "id": str(i),
        "relation_id": "P54",
        "subject": subject,
        "statement": f"{subject} plays for <extra_id_0>.",
        "answers": ["Roma"],
        "old_answers": ["Lazio"],
        "page_id": i,
        "page_revision_id": 7,
    }


def config(
    name: str,
    rows: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
    kind: str = "live",
    licences: tuple[str, ...] = ("cc0-1.0", "cc-by-sa-4.0"),
    **fields: Any,
) -> CklConfig:
    """Return a config with a row dropped, of one live row in the split test unless ``rows`` are given."""
    rows = {"test": [live(1)]} if rows is None else rows
    kept = sum(map(len, rows.values()))
    counts = RowCounts(read=kept + 1, kept=kept, dropped={"no answer": 1})
    said: dict[str, Any] = {"about": "a fact", "source": "Wikidata", "inputs": [], "options": {"seed": 0}}
    return CklConfig(name, kind, rows, licences=licences, counts=counts, **(said | fields))


def invariantlama(rows: Sequence[Mapping[str, Any]] = (cloze(1), cloze(2, "Bo"))) -> CklConfig:
    counts = RowCounts(len(rows) + 1, len(rows), {"object_in_subject": 1}, {"relations": RELATIONS})
    return CklConfig(
        "invariantlama", "invariant", {"test": rows}, "a cloze", ("cc-by-nc-4.0",), "LAMA", [], {}, counts
    )


def add(folder: Path, *configs: CklConfig) -> list[CklManifest]:
    return [write(one, folder, folder_card) for one in configs]
