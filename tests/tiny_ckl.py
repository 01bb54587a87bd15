"""Tiny sources of CKL's configs: LAMA, KILT, news, and decisions of annotators."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from temporalwiki.builders.ckl.candidates import CandidateOptions, write_candidates
from temporalwiki.builders.ckl.corpus_index import build_index
from temporalwiki.builders.ckl.invariantlama import RELATIONS
from temporalwiki.builders.ckl.kilt import NAMES
from temporalwiki.builders.ckl.review import ReviewManifest

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
        page = {"url": f"https://news.example/{i}", "title": f"Page {i}", "language": "en"}
        rows.append(page | {"maintext": text, "date_publish": f"{day} 09:00:00"})
    return rows


def write_review(review: Path) -> None:
    """Write candidates from the sixty pages."""
    rows = []
    for row in news():
        day = datetime.fromisoformat(row["date_publish"]).replace(tzinfo=UTC)
        rows.append({"url": row["url"], "title": row["title"], "text": row["maintext"], "published": day})
    make_review(review, rows, "Easton is a town.")


def make_review(review: Path, rows: list[dict[str, Any]], past: str, **options: Any) -> ReviewManifest:
    """Write candidates from rows of news, with a text of the past, and with a model that is never wrong."""
    folder, model = review.with_name("past_of_review"), faithful()
    folder.mkdir()
    (folder / "old.jsonl").write_text(json.dumps({"title": "Easton", "text": past}), "utf-8")
    with build_index([folder / "old.jsonl"], folder) as index:
        return write_candidates(rows, index, review, CandidateOptions(**options), open_model=lambda name: model)


def decide(review: Path, people: int = 1) -> None:
    """Call the first candidate updated and the others new, as this many people."""
    ids = [task["data"]["id"] for task in json.loads((review / "tasks.json").read_text("utf-8"))]
    assert len(ids) > 2
    new = {"valid": "yes", "answer_right": "yes", "past": "none"}
    said = dict.fromkeys(ids, new) | {ids[0]: new | {"past": "other", "old_answers": ["Nobody Else"]}}
    export(review, dict.fromkeys(range(1, people + 1), said))


def export(review: Path, people: Mapping[int, Mapping[str, Mapping[str, Any]]], name: str = "export") -> Path:
    """Write Label Studio's export of a review: what each person said, by candidate and control.

    A person who said None about a candidate skipped it.
    """
    tasks = json.loads((review / "tasks.json").read_text("utf-8"))
    for number, task in enumerate(tasks, 1):
        task |= {"id": 100 + number, "predictions": [], "drafts": [], "meta": {}, "inner_id": number, "project": 1}
        task["annotations"] = [
            {
                "id": 1000 * number + person,
                "completed_by": {"id": person, "email": "a@b.example", "first_name": "Ann", "last_name": ""},
                "result": [_item(*control) for control in (said[task["data"]["id"]] or {}).items()],
                "was_cancelled": said[task["data"]["id"]] is None,
                "ground_truth": False,
                "lead_time": 3.5,
            }
            for person, said in people.items()
            if task["data"]["id"] in said
        ]
    file = review / "annotations" / f"{name}.json"
    file.write_text(json.dumps(tasks), "utf-8")
    return file


def _item(control: str, value: str | list[str]) -> dict[str, Any]:
    kind, key = ("choices", "choices") if control in ("valid", "answer_right", "past") else ("textarea", "text")
    values = [value] if isinstance(value, str) else value
    return {
        "id": "x",
        "from_name": control,
        "to_name": "asked",
        "type": kind,
        "value": {key: values},
        "origin": "manual",
    }


def gold_articles(pages: Path) -> list[dict[str, Any]]:
    """Return the articles of real pages as people wrote them down, one for each page: site, title, text, published."""
    found = []
    for path in sorted(pages.glob("*.json")):
        for gold in json.loads(path.read_text("utf-8")).values():
            sections = [line for part in gold["body"]["sections"] for line in (*part["headline"], *part["paragraphs"])]
            text, day = (
                "\n".join([*gold["body"]["summary"], *sections]),
                datetime.fromisoformat(gold["publishing_date"]),
            )
            found.append({"site": path.stem, "title": gold["title"], "text": text, "published": day})
    return found
