"""The judge: its rules, how it reads a model's answers, and how it continues after a kill."""

import datetime
import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalwiki.base.errors import InputError
from temporalwiki.builders.ckl import judge as module
from temporalwiki.builders.ckl.corpus_index import Past
from temporalwiki.builders.ckl.decisions import configs_from_decisions
from temporalwiki.builders.ckl.judge import judge
from temporalwiki.builders.ckl.review import Candidate, Decision, is_complete, read_candidates, read_decisions
from temporalwiki.eval_harness import text_model
from temporalwiki.eval_harness.models.local import CachedModel
from temporalwiki.eval_harness.text_model import open_model

import tiny_models
from a_text_model import ScriptedModel
from tiny_ckl import gold_articles, make_review

DAY = datetime.datetime(2021, 5, 1, 12, tzinfo=datetime.UTC)


def candidate(
    *past: str, question: str = "Who is the mayor of Easton?", sentence: str = "", id: str = "c"
) -> Candidate:
    return Candidate(
        id=id,
        question=question,
        answer="Bo Lind",
        statement="The mayor of Easton is <extra_id_0>.",
        sentence=sentence or "The mayor of Easton is Bo Lind.",
        title="News",
        url="u",
        published=DAY,
        prediction=None,
        past_evidence=[Past(f"p{n}", "", text, 1.0, "Bo Lind" in text) for n, text in enumerate(past)],
    )


# By rules


def same(evidence: str) -> Decision:
    return Decision("c", True, True, "same", old_evidence=evidence)


def other(answer: str, evidence: str) -> Decision:
    return Decision("c", True, True, "other", [answer], evidence)


NOTHING = Decision("c", None, note="past: nothing found")
ANNA = "The mayor of Easton is Anna (Ann) Weber."
RULES = {
    "nothing is known": (candidate(), NOTHING),
    "something else is known": (candidate("Bo Lind lives in Weston."), NOTHING),
    "the same": (candidate("Trees grow.", "There is a mayor. In Easton, Bo Lind is the mayor."), same("p1")),
    "far from it": (candidate("Mayor of Easton. It is far. Trees grow. Bo Lind."), NOTHING),
    "another": (candidate(f"It rains. {ANNA} It snows."), other("Anna (Ann) Weber", ANNA)),
    "another spelling": (candidate("The mayor of Easton is Bo Linde."), same("p0")),
    "a part of it": (candidate("The mayor of Easton is Lind."), same("p0")),
    "another, but in other words": (candidate("Easton's mayor is Anna Weber."), NOTHING),
    "a whole sentence": (candidate("The mayor of Easton is a man of whom many think that he is tall."), NOTHING),
    "no question": (candidate(question="The mayor."), Decision("c", False, note="no question mark at the end")),
    "not in the sentence": (candidate(sentence="Bo Lindt."), Decision("c", True, False)),
}


@pytest.mark.parametrize(("given_one", "decision"), RULES.values(), ids=RULES)
def test_rules(given_one: Candidate, decision: Decision) -> None:
    assert module._decide_by_rules(given_one, "en") == decision


WORDS = st.lists(st.sampled_from(["mayor", "is", "(Easton)", "the", "1961", "–"]), min_size=1, max_size=5).map(
    " ".join
)
FILLING = st.lists(st.sampled_from(["Anna", "O'Neill", "Weber", "d'Or"]), min_size=1, max_size=8).map(" ".join)


@given(WORDS, WORDS, FILLING)
def test_the_filling_of_a_blank_is_found(before: str, after: str, filling: str) -> None:
    sentence = f"{before} {filling}, {after}."
    said = f"{before} {after}".replace("–", "").replace("the", "").split()
    found = module._filling(f"{before.upper()} <extra_id_0> {after}", sentence)
    assert found == (filling if said else None)  # only punctuation and articles around the blank
    assert module._filling(f"{before} <extra_id_0> {after} still", sentence) is None


# By a model


def says(texts: dict[str, str | None]) -> ScriptedModel:
    """Return a model with one answer to all prompts of a kind."""
    return ScriptedModel(lambda prompts, what: [texts[what.removeprefix("judge: ")] for _ in prompts])


PAST = candidate("Anna Weber is the mayor.", "Trees.", "Grass.", "Rain.", "Bo Lind is a poet.")
UNDECIDED = Decision("c", None)
YES = {"valid": "Yes", "right": "Yes"}
SAID: dict[str, tuple[dict[str, str | None], Decision]] = {
    "another": ({"valid": "Yes.", "right": "yes, it is", "past": "Anna Weber."}, other("Anna Weber", "p0")),
    "the same": ({**YES, "past": '"Bo Lind"'}, same("p4")),
    "a part of it": ({**YES, "past": "Lind"}, same("p4")),
    "none": ({**YES, "past": "None."}, Decision("c", True, True, "none")),
    "none, at length": ({**YES, "past": "none of them"}, Decision("c", True, True, "none")),
    "invalid": ({"valid": "No, who?"}, Decision("c", False)),
    "wrong": ({"valid": "Yes", "right": "No"}, Decision("c", True, False)),
    "made up": ({**YES, "past": "Eva Pym"}, Decision("c", None, note="past: 'Eva Pym'")),
    "in a passage that it was not shown": ({**YES, "past": "Rain"}, Decision("c", None, note="past: 'Rain'")),
    "too long": ({**YES, "past": "Anna " * 9}, Decision("c", None, note=f"past: {'Anna ' * 9!r}")),
    "nothing": ({**YES, "past": None}, Decision("c", None, note="past: nothing")),
    "no yes": ({"valid": "I think yes"}, Decision("c", None, note="valid: 'I think yes'")),
    "nothing at all": ({"valid": None}, Decision("c", None, note="valid: nothing")),
    "no no": ({"valid": "Yes", "right": "Nobody knows"}, Decision("c", None, note="right: 'Nobody knows'")),
}


@pytest.mark.parametrize(("said", "decision"), SAID.values(), ids=SAID)
def test_answers_of_a_model_are_read_strictly(said: dict[str, str | None], decision: Decision) -> None:
    fake = says(said)
    (found,) = module._decide([PAST], fake)
    assert found == decision
    assert is_complete(found)
    assert len(fake.prompts) == len(said)  # decided candidates are not asked about again
    assert PAST.question in fake.prompts[0]
    assert all(text in fake.prompts[-1] for text in ("Anna Weber is", "Trees.", "Bo Lind is a")) == ("past" in said)


def test_without_evidence_a_model_is_not_asked_for_the_past() -> None:
    model = says({"valid": "yes", "right": "yes"})
    assert module._decide([candidate()], model) == [Decision("c", True, True, "none")]


# A review


@pytest.fixture
def review(tmp_path: Path) -> Path:
    """Twelve candidates; the past knows the same about one, and another answer about another."""
    letters = "ABCDEFGHIJKL"
    won = "won the vote for the {} seat of the council."
    old = f"Boa Bond {won.format('bth')} Eva Pym {won.format('cth')}"
    text = " ".join(f"B{x.lower()}a Bond {won.format(f'{x.lower()}th')}" for x in letters)
    text = text.replace("Bba Bond", "Boa Bond")
    row = {"url": "u", "title": "News", "text": text, "published": DAY}
    make_review(tmp_path / "r", [row], old, per_page=12)
    return tmp_path / "r"


def test_from_candidates_to_rows(review: Path) -> None:
    file = judge(review)
    assert file == review / "annotations" / "judge-rules.json"
    updated, new = configs_from_decisions(review)
    (row,) = updated.splits["test"]
    assert (row["answers"], row["old_answers"]) == (["Bca Bond"], ["Eva Pym"])
    assert row["old_evidence"] == "Eva Pym won the vote for the cth seat of the council."
    assert list(new.splits["test"]) == []
    assert updated.counts.dropped == {"nobody decided": 10, "no news: the past has the same answer": 1}


def test_the_file_of_another_judge_is_kept(review: Path) -> None:
    file = judge(review)
    other = file.read_bytes().replace(b"rules 0", b"tales 0")
    file.write_bytes(other)
    with pytest.raises(InputError, match=r"judge-rules\.json: the decisions of another judge; remove it"):
        judge(review)
    assert file.read_bytes() == other


def test_label_studio_reads_the_decisions_as_predictions(review: Path) -> None:
    [task] = [task for task in json.loads(judge(review).read_bytes()) if task["data"]["answer"] == "Bca Bond"]
    (prediction,) = task["predictions"]
    assert prediction["model_version"] == "rules 0 (temporalwiki's judge 2)"
    assert [(item["from_name"], item["to_name"], item["type"], item["value"]) for item in prediction["result"]] == [
        ("valid", "asked", "choices", {"choices": ["yes"]}),
        ("answer_right", "asked", "choices", {"choices": ["yes"]}),
        ("past", "asked", "choices", {"choices": ["other"]}),
        ("old_answers", "asked", "textarea", {"text": ["Eva Pym"]}),
        ("old_evidence", "asked", "textarea", {"text": ["Eva Pym won the vote for the cth seat of the council."]}),
    ]


def test_the_name_of_a_model_is_not_a_path(review: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_decide", lambda some, _model: [Decision(one.id, None) for one in some])
    names = {"../../x": "x-abcdef01", "a b\0c": "a-b-c-abcdef01", "..": "abcdef01", "o/m@v1": "m-v1-abcdef01"}
    for name, shown in names.items():
        file = review / "annotations" / f"judge-{shown}.json"
        assert judge(review, ScriptedModel(agrees, name, "abcdef0123456789")) == file


@pytest.mark.fault("kill -9", "ckl: while a judge decides", "its earlier decisions are not asked for again")
def test_a_real_model_decides_once_or_does_not(review: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_model, "cache_folder", lambda: tmp_path / "scores")
    folder = tiny_models.save("gpt2", tmp_path / "tiny")
    file = judge(review, open_model(str(folder)))
    assert re.fullmatch(r"judge-tiny-[0-9a-f]{8}\.json", file.name)
    said = list(read_decisions(file))
    assert [one.decision.id for one in said] == [one.id for one in read_candidates(review)]
    assert {one.who.split()[0] for one in said} == {"tiny"}
    before = file.read_bytes()
    file.unlink()
    monkeypatch.setattr(CachedModel, "loaded", property(lambda self: pytest.fail("loaded")))
    assert judge(review, open_model(str(folder))).read_bytes() == before


def test_real_news_and_a_real_past(shared_data: Path, tmp_path: Path) -> None:
    """Build newlama from the gold JSON of real pages, with older weblogs and mails as the past."""
    rows = [
        {"url": f"{gold['site']}/{n}", "title": gold["title"], "text": gold["text"], "published": gold["published"]}
        for n, gold in enumerate(gold_articles(shared_data / "news" / "pages"))
    ]
    older = (shared_data / "ud" / "en_ewt-ud-dev.conllu").read_text("utf-8").splitlines()
    sentences = (line.removeprefix("# text = ") for line in older if line.startswith("# text = "))
    about = make_review(tmp_path / "r", rows, "\n".join(sentences))
    judge(tmp_path / "r", ScriptedModel(agrees))
    _, new = configs_from_decisions(tmp_path / "r")
    found = {row["id"]: row for row in new.splits["test"]}
    asked = {one.id: one for one in read_candidates(tmp_path / "r")}
    assert about.counts.kept == len(asked) == len(found) >= 12
    assert new.counts.read == new.counts.kept + sum(new.counts.dropped.values()) == len(asked)
    texts = {row["url"]: " ".join(row["text"].split()) for row in rows}
    for row in found.values():
        assert row["evidence"] in texts[row["url"]]
        assert row["statement"].replace("<extra_id_0>", row["answers"][0]) == row["evidence"]
        assert row["question"].endswith("?")
        assert len(asked[row["id"]].past_evidence) >= 1


def agrees(prompts: Sequence[str], what: str) -> list[str | None]:
    """Call each question valid, each answer right, and nothing known in the past."""
    return ["none" if what.endswith("past") else "yes" for _ in prompts]
