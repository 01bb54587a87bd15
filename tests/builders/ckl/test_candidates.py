"""Candidates from the news: questions, dropped spans, and the files of a review."""

import datetime
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from temporalwiki.base.errors import InputError
from temporalwiki.builders.ckl import candidates as module
from temporalwiki.builders.ckl.candidates import CandidateOptions, write_candidates
from temporalwiki.builders.ckl.corpus_index import CorpusIndex, build_index
from temporalwiki.builders.ckl.review import Candidate, read_candidates, read_review
from temporalwiki.builders.ckl.templates import SENTINEL
from temporalwiki.builders.ckl.text_model import OpenModel
from temporalwiki.builders.ckl.text_steps import Passage

from a_text_model import ScriptedModel, always

DAY = datetime.datetime(2021, 5, 1, 12, tzinfo=datetime.UTC)


def page(text: str, url: str = "https://news.example/1", title: str = "News of the day") -> dict[str, Any]:
    return {"id": "1", "url": url, "title": title, "text": text, "published": DAY}


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> CorpusIndex:
    folder = tmp_path_factory.mktemp("past")
    text = "Anna Weber is the mayor of Easton since 1961."
    (folder / "old.jsonl").write_text(json.dumps({"text": text, "title": "Easton", "url": "https://past.example"}))
    return build_index([folder / "old.jsonl"], folder)


@pytest.fixture
def asks_all(monkeypatch: pytest.MonkeyPatch) -> list[Passage]:
    """Replace the model by a question for every span; collect the passages."""
    asked: list[Passage] = []

    def questions(items: Sequence[Passage], model: object) -> list[str | None]:
        asked.extend(items)
        return [f"Which word is at {item.start} in {len(item.sentence)} letters?" for item in items]

    monkeypatch.setattr(module, "questions", questions)
    return asked


def made(
    rows: list[dict[str, Any]],
    past: CorpusIndex,
    review: Path,
    open_model: OpenModel = lambda name: ScriptedModel(),
    **options: Any,
) -> list[Candidate]:
    write_candidates(rows, past, review, CandidateOptions(**options), open_model=open_model)
    return read_candidates(review)


def test_a_candidate_has_all_that_it_takes_to_decide(tmp_path: Path, past: CorpusIndex) -> None:
    text = "It was a long day.\n\nBo Lind won the vote for mayor and thanked all voters. Few came."
    question = "Who won the vote for mayor of Easton?"
    (one,) = made([page(text)], past, tmp_path / "r", lambda name: always(question))
    (passage,) = one.past_evidence
    assert one == Candidate(
        id=one.id,
        question=question,
        answer="Bo Lind",
        statement=f"{SENTINEL} won the vote for mayor and thanked all voters.",
        sentence="Bo Lind won the vote for mayor and thanked all voters.",
        title="News of the day",
        url="https://news.example/1",
        published=DAY,
        prediction=None,
        past_evidence=[passage],
    )
    assert (passage.title, passage.text) == ("Easton", "Anna Weber is the mayor of Easton since 1961.")
    about = read_review(tmp_path / "r")
    assert about.counts.as_json() == {"read": 3, "kept": 1, "dropped": {"too short": 2}}
    assert about.past["passages"] == 1
    assert (tmp_path / "r" / "annotations").is_dir()


def test_a_question_that_tells_the_answer_or_was_asked_is_left_out(
    tmp_path: Path, past: CorpusIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = {"Easton": "Is it easton?", "Weston": "Where do they go?", "Norton": "Where  do they GO?", "Upton": None}
    said |= {"Sutton": "What else?"}

    def questions(items: Sequence[Passage], model: object) -> list[str | None]:
        return [said[item.answer] for item in items]

    monkeypatch.setattr(module, "questions", questions)
    rows = [page(f"On most days they go to {name} by the train.", f"https://news.example/{name}") for name in said]
    assert [one.answer for one in made(rows, past, tmp_path / "r")] == ["Norton", "Sutton"]
    assert read_review(tmp_path / "r").counts.as_json() == {
        "read": 5,
        "kept": 2,
        "dropped": {"the answer in the question": 1, "asked before": 1, "no question": 1},
    }


TOWNS = ["Easton", "Weston", "Norton", "Sutton", "Upton", "Aston", "Boston", "Preston"]


HOSTILE = ["</script>", "=cmd()", "a|b", "🙂", "\u0000", "\ud800", "{{x}}", "---", "[X]", "../..", "\u2028", "'; DROP"]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_titles_and_addresses_are_text(
    tmp_path: Path, past: CorpusIndex, asks_all: list[Passage], hostile: str
) -> None:
    rows = [page("They came by the train to Easton on that day.", f"u{hostile}", hostile)]
    (one,) = made(rows, past, tmp_path / "r")
    assert one.title == ("?" if hostile == "\ud800" else hostile.replace("\0", " "))
    assert one.answer == "Easton"
    assert len((tmp_path / "r" / "tasks.json").read_text("utf-8").split("\n")) == 4  # [, the task, ], nothing


# A model of the past


def test_answers_known_to_the_model_of_the_past_are_dropped(
    tmp_path: Path, past: CorpusIndex, asks_all: list[Passage]
) -> None:
    model = ScriptedModel(lambda prompts, what: ["the  easton.", "Norton", None], "past")
    rows = [
        page(f"They came{' far' * n} to {town} by the train again today.", f"u{n}") for n, town in enumerate(TOWNS[:3])
    ]
    found = made(rows, past, tmp_path / "r", lambda reference: model, answer_model="past")
    assert [(one.answer, one.prediction) for one in found] == [("Weston", "Norton"), ("Norton", None)]
    about = read_review(tmp_path / "r")
    assert about.counts.dropped == {"the model of the past knows the answer": 1}
    assert about.options["answer_model"] == {"name": "past", "revision": "1"}


# The files


def test_decisions_are_never_left_without_their_candidates(
    tmp_path: Path, past: CorpusIndex, asks_all: list[Passage]
) -> None:
    rows = [page("They came to Easton by the train again today.")]
    review = tmp_path / "r"
    made(rows, past, review)
    before = (review / "tasks.json").read_bytes()
    (review / "annotations" / "ann.json").write_text("")
    made(rows, past, review)  # the same
    with pytest.raises(InputError, match=r"ann\.json: has decisions on other candidates"):
        made([page("They came to Weston by the train again today.")], past, review)
    assert (review / "tasks.json").read_bytes() == before
    assert read_review(review).counts.kept == 1
    assert {path.name for path in review.iterdir()} == {"tasks.json", "review.json", "labels.xml", "annotations"}


def test_the_same_candidates_are_the_same_after_a_kill_between_the_files(
    tmp_path: Path, past: CorpusIndex, asks_all: list[Passage]
) -> None:
    rows, review = [page("They came to Easton by the train again today.")], tmp_path / "r"
    made(rows, past, review)
    whole = (review / "review.json").read_bytes()
    (review / "annotations" / "ann.json").write_text("")
    for left in (None, b"{", whole.replace(b'"sha256": "', b'"sha256": "0')):
        (review / "review.json").unlink()
        if left is not None:
            (review / "review.json").write_bytes(left)
        made(rows, past, review)
        assert (review / "review.json").read_bytes() == whole
        (review / "review.json").write_bytes(left or b"")
        with pytest.raises(InputError, match=r"ann\.json: has decisions on other candidates"):
            made([page("They came to Weston by the train again today.")], past, review)


def test_nothing_to_ask_is_an_error_that_says_why(tmp_path: Path, past: CorpusIndex) -> None:
    with pytest.raises(InputError, match="no candidates in 1 sentences: 1 too short"):
        made([page("In Easton.")], past, tmp_path / "r")
    assert not (tmp_path / "r" / "tasks.json").exists()


def spoiled(file: str, spoil: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    return lambda review: (review / file).write_bytes(spoil((review / file).read_bytes())) and None


WHOLE = "review.json: not the whole manifest of a review"
SPOILED: dict[str, tuple[Callable[[Path], None], str]] = {
    "no manifest": (lambda review: (review / "review.json").unlink(), WHOLE),
    "half a manifest": (spoiled("review.json", lambda raw: raw[:9]), WHOLE),
    "another manifest": (spoiled("review.json", lambda raw: b"[]"), WHOLE),
    "no candidates": (lambda review: (review / "tasks.json").unlink(), "not a review: it has no tasks.json"),
}


@pytest.mark.parametrize(("spoil", "says"), SPOILED.values(), ids=SPOILED)
def test_a_review_that_is_not_as_it_was_written(
    tmp_path: Path, past: CorpusIndex, asks_all: list[Passage], spoil: Callable[[Path], None], says: str
) -> None:
    made([page("They came to Easton by the train again today.")], past, tmp_path / "r")
    spoil(tmp_path / "r")
    with pytest.raises(InputError, match=says):
        read_review(tmp_path / "r")
