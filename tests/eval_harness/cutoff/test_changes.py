"""The dated changes of a dataset: which facts and sentences count, and in which month."""

import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from an_interface import client

from temporalwiki.base.errors import InputError
from temporalwiki.eval_harness.cutoff.changes import Change, evidence, masked_dates, read_changes
from temporalwiki.eval_harness.facts import score_facts
from temporalwiki.eval_harness.models.local import CachedModel
from temporalwiki.eval_harness.models.server import InterfaceModel
from temporalwiki.eval_harness.scoring import Text

import tiny_models
from a_dataset import write_dataset
from a_month import add_month, article, probe

FEBRUARY = 2021 * 12 + 1


def fact(**changed: Any) -> dict[str, Any]:
    """Return a changed fact: Norland's capital was Easton, and is Weston since February 2021."""
    return {
        "subject": "Norland",
        "relation": "capital",
        "object": "Weston",
        "subject_id": "Q1",
        "relation_id": "P36",
        "object_id": "Q2",
        "previous_objects": ["Easton"],
        "gone_objects": ["Easton"],
        "objects": ["Weston"],
        "aliases": [],
        "page_id": 7,
        "start_time": None,
        "dated": "undated",
        "current": True,
        "strict": True,
    } | changed


def page(text: str, id: int = 7) -> dict[str, Any]:
    return {"id": id, "title": "Norland", "url": "https://en.wikipedia.org/wiki/Norland", "text": text}


def data(folder: Path, facts: list[dict[str, Any]], more: Mapping[str, Any] | None = None) -> str:
    """Write a dataset of one interval, February 2021, under its long and its short name."""
    probes = {"changed": facts} if facts else {"unchanged": [fact()]}
    names = ("probes-20210201-20210301", "probes-0203")
    return str(write_dataset(folder / "data", {**dict.fromkeys(names, probes), **(more or {})}))


def on(year: int, month: int) -> datetime.datetime:
    return datetime.datetime(year, month, 17, tzinfo=datetime.UTC)


# The fact, and the month and old objects of its change; None: it is no change

FACTS: dict[str, tuple[dict[str, Any], tuple[int, tuple[str, ...]] | None]] = {
    "an undated fact changed in the last month of its interval": (fact(), (FEBRUARY, ("Easton",))),
    "a fact that began within the interval": (
        fact(start_time=on(2021, 1), dated="within"),
        (FEBRUARY - 1, ("Easton",)),
    ),
    "a fact that began long before": (fact(start_time=on(1990, 1), dated="before"), (FEBRUARY, ("Easton",))),
    "two objects are gone": (fact(gone_objects=["Easton", "Sutton"]), (FEBRUARY, ("Easton", "Sutton"))),
    "nothing is gone": (fact(gone_objects=[]), None),
    "what is gone has the name of what is right": (fact(gone_objects=["weston"]), None),
    "not right any more": (fact(current=False), None),
    "no object": (fact(object=None), None),
    "no subject": (fact(subject=" "), None),
}


@pytest.mark.parametrize("case", FACTS)
def test_which_facts_are_changes(case: str, tmp_path: Path) -> None:
    row, expected = FACTS[case]
    other = fact(subject="Sudland", subject_id="Q9", page_id=9)
    found = read_changes(data(tmp_path, [row, other]))
    known = [(one.month, one.old) for one in found if one.cluster == "page 7"]
    assert known == ([] if expected is None else [expected])
    assert len(found) == len(known) + 1  # the other fact, and nothing twice: an interval has two names


def test_strict_facts_are_preferred_if_there_are_enough(tmp_path: Path) -> None:
    rows = [fact(subject=f"Town {i}", page_id=i, strict=i < 200) for i in range(210)]
    assert len(read_changes(data(tmp_path / "many", rows))) == 200
    assert len(read_changes(data(tmp_path / "few", rows[20:]))) == 190


def test_topics(tmp_path: Path) -> None:
    rows = [fact(), fact(subject="Sudland", subject_id="Q9", page_id=9)]
    rows.append(fact(relation="instance of", relation_id="P31", object="country", gone_objects=[]))
    more = {
        "diffset-20210201-20210301": [page("The country has about three million people.")],
        "deletions-20210201-20210301": [page("The country has about two million people.")],
    }
    folder = data(tmp_path, rows, more)
    assert sorted(one.topic for one in read_changes(folder, "relation")) == ["capital", "capital", "text"]
    assert sorted(one.topic for one in read_changes(folder, "class")) == ["country", "country", "other"]
    assert {one.topic for one in read_changes(folder)} == {""}


@pytest.mark.parametrize(
    ("sentence", "masked"),
    [
        ("It closed in 2021.", "It closed in …."),
        ("It closed on 3 March 2021 for good.", "It closed on … for good."),
        ("It closed on March 3, 2021, for good.", "It closed on …, for good."),
        ("From Jan. to Sept it may march.", "From … to Sept it may march."),
        ("It began on 2021-03-04.", "It began on …."),
        ("It has 12345 people, 300 of them old.", "It has 12345 people, 300 of them old."),
    ],
)
def test_dates_and_names_of_months_are_masked(sentence: str, masked: str) -> None:
    assert masked_dates(sentence) == masked


OTHER_LANGUAGES = [
    ("Sie schloss am 3. Dezember 2021.", "Sie schloss am …."),
    ("Cerró el 3 de diciembre de 2021 sin más.", "Cerró el … sin más."),
    ("Elle a fermé le 3 déc. 2021.", "Elle a fermé le …."),
    ("Im März 2021 kamen 12 Boote.", "Im März … kamen 12 Boote."),
    ("2021年12月3日に閉店した。", "…に閉店した。"),
    ("2021년 12월에 문을 닫았다.", "…에 문을 닫았다."),
    ("Sie hat 12345 Einwohner, 300 davon alt.", "Sie hat 12345 Einwohner, 300 davon alt."),
]


@pytest.mark.parametrize(("sentence", "masked"), OTHER_LANGUAGES)
def test_dates_are_masked_in_other_languages(sentence: str, masked: str) -> None:
    assert masked_dates(sentence, "de") == masked


# Removed text, new text, and the pair

TEXTS = {
    "the most similar sentences": (
        "It has a big harbour with cranes. The capital of the country is Easton.",
        "Nobody was ever there before. The capital of the country is Weston.",
        ("The capital of the country is Easton.", "The capital of the country is Weston."),
    ),
    "only a date differs": ("It had ten cities in March 2020.", "It had ten cities in May 2021.", None),
    "nothing similar": ("The capital of the country is Easton.", "Fish swim very far in winter nights.", None),
    "a script without spaces": (
        "この国の首都は東市です。",
        "この国の首都は西市です。",
        ("この国の首都は東市です。", "この国の首都は西市です。"),
    ),
    "too short": ("Capital: Easton.", "Capital: Weston.", None),
}


@pytest.mark.parametrize("case", TEXTS)
def test_which_sentences_are_a_pair(case: str, tmp_path: Path) -> None:
    before, after, pair = TEXTS[case]
    more = {
        "deletions-20210201-20210301": [page(before), page("Gone is all that stood here.", 8)],
        "diffset-20210201-20210301": [page(after)],
    }
    found = [one for one in read_changes(data(tmp_path, [fact()], more)) if one.relation == "text"]
    assert found == (
        [] if pair is None else [Change(FEBRUARY, "text", "page 7", "", "Norland. ", pair[1], (pair[0],))]
    )


def test_months_that_are_left_out(tmp_path: Path) -> None:
    folder = data(tmp_path, [fact()])
    assert len(read_changes(folder, first=FEBRUARY, last=FEBRUARY)) == 1
    for first, last in ((FEBRUARY + 1, None), (None, FEBRUARY - 1)):
        with pytest.raises(InputError, match="in these months"):
            read_changes(folder, first=first, last=last)


def test_a_dataset_without_dated_changes(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no config such as probes-20211101-20211201"):
        read_changes(str(write_dataset(tmp_path, {"probes-0203": {"changed": [fact()]}})))


@pytest.mark.parametrize("kind", tiny_models.KINDS)
def test_evidence_is_the_difference_of_nll_per_token(kind: str, tmp_path: Path) -> None:
    tiny_models.save(kind, tmp_path / kind)
    model = CachedModel(str(tmp_path / kind), tmp_path / "scores")
    changes = [
        Change(FEBRUARY, "P36", "page 7", "", "Norland capital", "Weston", ("Easton", "Anna Weber")),
        Change(FEBRUARY, "text", "page 7", "", "Norland. ", "It is in Weston.", ("It is in Easton.",)),
    ]
    of_fact, of_text = evidence(model, changes)
    new, *old = score_facts(model, [("Norland capital", side) for side in ("Weston", "Easton", "Anna Weber")], "x")
    per_token = [one.object_nll / one.object_tokens for one in (new, *old) if one is not None]
    assert of_fact.evidence == pytest.approx(min(per_token[1:]) - per_token[0])
    sides = model.score([Text("Norland. ", f"It is in {name}.") for name in ("Easton", "Weston")], "x")
    first, second = (float(one.nll.mean()) for one in sides if one is not None)
    assert of_text.evidence == pytest.approx(first - second)
    assert (of_fact.month, of_fact.relation, of_fact.cluster) == (FEBRUARY, "P36", "page 7")


SAID = {
    "the new one": ("Weston", 1),
    "an old one": ("It is Easton.", -1),
    "both": ("Easton or Weston", 0),
    "neither": ("Sutton", 0),
    "nothing": ("I don't know", 0),
}


def test_facts_are_asked_in_the_language_of_the_wiki(tmp_path: Path) -> None:
    row = probe(1) | {"relation": "Hauptstadt", "relation_id": "P36", "object": "Weston", "gone_objects": ["Easton"]}
    add_month(tmp_path / "data", "20210201", "20210301", [article(1)], [row], wiki="dewiki")
    asked: list[str] = []
    model = InterfaceModel("mockllm/model", tmp_path / "scores")
    model.__dict__["_model"] = client(lambda prompt: asked.append(prompt) or "Das weiß ich nicht.")
    evidence(model, read_changes(str(tmp_path / "data")))
    assert asked == [
        f"Was ist die Hauptstadt von {row['subject']}?\nAntworte nur mit einem Namen, ohne Erklärung. "
        "Wenn du die Antwort nicht weißt, antworte „Das weiß ich nicht“."
    ]


@pytest.mark.parametrize("case", SAID)
def test_a_model_without_likelihoods_is_asked_the_facts(case: str, tmp_path: Path) -> None:
    said, expected = SAID[case]
    more = {
        "diffset-20210201-20210301": [page("The country has about three million people.")],
        "deletions-20210201-20210301": [page("The country has about two million people.")],
    }
    changes = read_changes(data(tmp_path, [fact()], more))
    assert len(changes) == 2
    model = InterfaceModel("mockllm/model", tmp_path / "scores")
    model.__dict__["_model"] = client(lambda _: said)
    (item,) = evidence(model, changes)
    assert (item.month, item.relation, item.cluster, item.evidence) == (FEBRUARY, "P36", "page 7", expected)
    with pytest.raises(InputError, match="mockllm/model: gives no likelihoods, and the data has only sentences"):
        evidence(model, [change for change in changes if change.relation == "text"])


def test_a_panel_tells_the_difficulty_of_what_it_cannot_know(tmp_path: Path) -> None:
    names = ("gpt2", "llama", "t5")
    for name in names:
        tiny_models.save(name, tmp_path / name)
    model, *panel = (CachedModel(str(tmp_path / name), tmp_path / "scores") for name in names)
    changes = [
        Change(FEBRUARY + late, "P36", f"page {late}", "", "Norland capital", new, ("Easton",))
        for late, new in enumerate(("Weston", "Sutton", "Anna Weber"))
    ]
    plain = evidence(model, changes)
    first, second = ([item.evidence for item in evidence(one, changes)] for one in panel)
    found = evidence(model, changes, [(panel[0], FEBRUARY), (panel[1], FEBRUARY + 1)])
    expected = [first[1], (first[2] + second[2]) / 2]  # both may know the change of February
    assert [item.difficulty for item in found] == pytest.approx(expected)
    assert [item._replace(difficulty=None) for item in found] == plain[1:]
