"""Tiny sources of CKL's configs: LAMA, KILT, news, and decisions of annotators."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from temporalwiki.builders.ckl.candidates import CandidateOptions, write_candidates
from temporalwiki.builders.ckl.corpus_index import build_index
from temporalwiki.builders.ckl.invariantlama import RELATIONS
from temporalwiki.builders.ckl.kilt import NAMES

from a_text_model import faithful

PLACES = ("Easton", "Weston", "Norton", "Sutton", "Milton", "Dalton", "Hilton", "Walton", "Preston", "Bolton")
PEOPLE = ("Weber", "Lind", "Moreau", "Rossi", "Novak", "Silva", "Kim", "Okafor", "Haas", "Duarte")


def write_lama(folder: Path) -> None:
    """LAMA's files: three facts for each of the 28 relations; one of the three passes."""
    (folder / "TREx").mkdir(parents=True)
    rows = [{"relation": relation, "template": f"[X] {relation} [Y] ."} for relation in RELATIONS]
    (folder / "relations.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    for relation in RELATIONS:
        facts = [("Ann", "Oslo"), ("Oslo Airport", "Oslo"), ("Bo", "painter")]
        lines = [
            json.dumps({"uuid": f"{relation}-{i}", "predicate_id": relation, "sub_label": s, "obj_label": o})
            for i, (s, o) in enumerate(facts)
        ]
        (folder / "TREx" / f"{relation}.jsonl").write_text("\n".join(lines) + "\n", "utf-8")


def write_kilt(folder: Path) -> None:
    """Write one row of each split of each dataset of KILT."""
    folder.mkdir(parents=True)
    for name in NAMES:
        for split in ("train", "dev", "test_without_answers"):
            file = name.removesuffix("_support_only")  # KILT's script adds the questions to TriviaQA's own files
            if split == "train" and name in ("wned", "cweb"):
                continue
            row: dict[str, Any] = {"id": f"{split}-1", "input": f"Which {name}?"}
            if split != "test_without_answers":
                row["output"] = [{"answer": "SUPPORTS" if name == "fever" else "Oslo"}]
            (folder / f"{file}-{split}-kilt.jsonl").write_text(json.dumps(row) + "\n", "utf-8")


def write_news(path: Path) -> None:
    """Write sixty pages as news-please does."""
    path.write_text("".join(json.dumps(row) + "\n" for row in news()), "utf-8")


def news() -> list[dict[str, Any]]:
    """Return sixty pages with different words, from both of CKL's phases."""
    rows = []
    for i in range(60):
        person, place = f"{PEOPLE[i % 10]}-{PEOPLE[i // 10]}", PLACES[i * 7 % 10]
        other = " ".join(f"word{i}x{k}" for k in range(50))
        text = f"Maria {person} opened the new library of the town in {place}. The rest is {other}."
        day = "2020-06-01" if i % 2 else "2021-01-15"
        rows.append(
            {
                "url": f"https://news.example/{i}",
                "title": f"Page {i}",
                "maintext": text,
                "date_publish": f"{day} 09:00:00",
                "language": "en",
            }
        )
    return rows


def write_review(review: Path) -> None:
    """Write candidates from the sixty pages."""
    past = review.with_name("past_of_review")
    past.mkdir()
    (past / "old.jsonl").write_text(json.dumps({"title": "Easton", "text": "Easton is a town."}), "utf-8")
    rows = [
        {
            "url": row["url"],
            "title": row["title"],
            "text": row["maintext"],
            "published": datetime.fromisoformat(row["date_publish"]).replace(tzinfo=UTC),
        }
        for row in news()
    ]
    model = faithful()
    with build_index([past / "old.jsonl"], past) as index:
        write_candidates(rows, index, review, CandidateOptions(), open_model=lambda name: model)


def decide(review: Path, annotators: tuple[str, ...] = ("ann",)) -> None:
    """Call the first candidate updated and the others new."""
    ids = [json.loads(line)["id"] for line in (review / "candidates.jsonl").read_text("utf-8").splitlines()]
    assert len(ids) > 2
    lines = [{"id": id, "valid": True, "answer_right": True, "past": "none"} for id in ids]
    lines[0] |= {"past": "other", "old_answers": ["Nobody Else"]}
    for name in annotators:
        path = review / "decisions" / f"{name}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
