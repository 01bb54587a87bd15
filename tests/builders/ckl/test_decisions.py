"""Annotators' decisions: files, votes, and the rows that they give."""

import datetime
import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.builders.ckl.corpus_index import Past
from temporalwiki.builders.ckl.decisions import configs_from_decisions, row_from_decisions
from temporalwiki.builders.ckl.review import (
    LABELS,
    Candidate,
    Decision,
    judged,
    read_candidates,
    read_decisions,
)
from temporalwiki.builders.ckl.schemas import SCHEMAS

from tiny_ckl import export, make_review

DAY = datetime.datetime(2021, 5, 1, 12, tzinfo=datetime.UTC)
OLD = Past("https://past.example#0", "Easton", "Anna Weber is the mayor of Easton since 1961.", 3.5, False)
MAYOR = Candidate(
    id="0123456789abcdef",
    question="Who defeated Anna Weber in the vote for mayor of Easton?",
    answer="Bo Lind",
    statement="<extra_id_0> defeated Anna Weber in the vote for mayor of Easton.",
    sentence="Bo Lind defeated Anna Weber in the vote for mayor of Easton.",
    title="News",
    url="https://news.example/1",
    published=DAY,
    prediction=None,
    past_evidence=[OLD],
)


def other(*old: str, **more: Any) -> Decision:
    return Decision(MAYOR.id, True, True, "other", list(old), **more)


def none(**more: Any) -> Decision:
    return Decision(MAYOR.id, True, True, "none", **more)


NONE = none()
SAME = Decision(MAYOR.id, True, True, "same")
WRONG = Decision(MAYOR.id, True, False)
INVALID = Decision(MAYOR.id, False)
UNDECIDED = Decision(MAYOR.id, None)
INCOMPLETE = Decision(MAYOR.id, None, note="incomplete")

BLANKS, EMPTY = "not exactly one blank in the statement", "nothing in the statement except the blank"
# decisions, least annotators, and the result: a reason to drop the candidate, or (answers, old answers)
VOTES: dict[str, tuple[list[Decision], int, Any]] = {
    "new": ([NONE], 1, (["Bo Lind"], [])),
    "updated": ([other("Anna Weber")], 1, (["Bo Lind"], ["Anna Weber"])),
    "nobody": ([], 1, "nobody decided"),
    "nobody could": ([UNDECIDED, UNDECIDED], 1, "nobody decided"),
    "too few": ([NONE, UNDECIDED], 2, "too few annotators"),
    "enough": ([NONE, UNDECIDED, NONE], 2, (["Bo Lind"], [])),
    "not valid": ([INVALID, INVALID, NONE], 1, "the question is not valid"),
    "valid to one of two": ([INVALID, NONE], 1, "the annotators disagree"),
    "valid to most": ([INVALID, NONE, NONE], 1, (["Bo Lind"], [])),
    "not right": ([WRONG, WRONG, NONE], 1, "the answer is not right"),
    "right to one of two": ([WRONG, NONE], 1, "the annotators disagree"),
    "who finds it invalid says nothing of the answer": ([INVALID, INVALID, NONE, NONE, WRONG], 1, (["Bo Lind"], [])),
    "same": ([SAME, SAME, NONE], 1, "no news: the past has the same answer"),
    "no two alike": ([SAME, NONE, other("Anna Weber")], 1, "the annotators disagree"),
    "half do not make a majority": ([SAME, NONE, NONE, other("Anna Weber")], 1, "the annotators disagree"),
    "the old answer is the new one": ([other("the Bo LIND.")], 1, "the old answer is the new one"),
    "some of the old answers are": ([other("bo lind", "A. Weber")], 1, (["Bo Lind"], ["A. Weber"])),
    "old answers, the frequent first": (
        [other("Ann Weber"), other("Anna  Weber"), other("Weber", "anna weber")],
        1,
        (["Bo Lind"], ["Anna Weber", "Ann Weber", "Weber"]),
    ),
    "old answers of the others do not count": ([NONE, NONE, other("Anna Weber")], 1, (["Bo Lind"], [])),
    "old answers that stayed when somebody changed their mind": ([none(old_answers=["A"])], 1, (["Bo Lind"], [])),
    "answers": ([none(answers=["B. Lind", "Bo Lind"])], 1, (["B. Lind", "Bo Lind"], [])),
    "no answers": ([none(answers=[])], 1, (["Bo Lind"], [])),
    "answers of no words": ([none(answers=["the ."])], 1, (["Bo Lind"], [])),
    "a statement without a blank": ([none(statement="a b")], 1, BLANKS),
    "a statement of blanks": ([none(statement="<extra_id_0> <extra_id_0>")], 1, BLANKS),
    "a question of white space": ([none(question=" \n")], 1, "no question, or a sentinel in it"),
    "an answer in the statement": ([none(answers=["Bo Lind", "anna weber"])], 1, "the answer stands in the statement"),
    "an answer in the question": ([none(question="Is it Bo Lind?")], 1, "the answer stands in the question"),
    "a statement that says nothing": ([none(statement="the <extra_id_0>.")], 1, EMPTY),
    "a question that asks nothing": ([none(question=" ? ")], 1, "no question, or a sentinel in it"),
    "a question with a blank": ([none(question="Who <extra_id_0>?")], 1, "no question, or a sentinel in it"),
    "another sentinel": ([none(statement="<extra_id_0> beat <extra_id_1>")], 1, BLANKS),
}


@pytest.mark.parametrize(("decisions", "least", "becomes"), VOTES.values(), ids=VOTES)
def test_row_from_decisions(decisions: list[Decision], least: int, becomes: Any) -> None:
    row = row_from_decisions(MAYOR, decisions, least)
    assert (row if isinstance(row, str) else (row["answers"], row["old_answers"])) == becomes


def test_a_row_says_where_it_comes_from() -> None:
    mended = {"statement": "The mayor of  Easton is <extra_id_0>.", "question": "Who is the mayor of Easton?"}
    most = other("Anna Weber", old_evidence=OLD.id, **mended)
    one = other("Anna Weber", statement="Easton: <extra_id_0>", old_evidence="I know")
    row = row_from_decisions(MAYOR, [one, most, most])
    assert row == {
        "id": MAYOR.id,
        "statement": "The mayor of Easton is <extra_id_0>.",
        "question": "Who is the mayor of Easton?",
        "answers": ["Bo Lind"],
        "old_answers": ["Anna Weber"],
        "evidence": MAYOR.sentence,
        "old_evidence": OLD.text,
        "title": "News",
        "url": "https://news.example/1",
        "published": DAY,
    }
    assert pa.Table.from_pylist([row], schema=SCHEMAS["annotated"]).to_pylist() == [row]


def test_of_equals_the_mended_text_of_the_first_file_is_taken() -> None:
    one, other_one = ({"statement": f"The mayor of {town} is <extra_id_0>."} for town in ("Aton", "Bton"))
    first, second = none(**one), none(**other_one)
    for decisions, town in (([first, second], "Aton"), ([second, first], "Bton"), ([first, second, second], "Bton")):
        row = row_from_decisions(MAYOR, decisions)
        assert not isinstance(row, str)
        assert row["statement"] == f"The mayor of {town} is <extra_id_0>."


def test_evidence_of_the_past_is_kept_only_where_the_past_had_another_answer() -> None:
    row = row_from_decisions(MAYOR, [none(old_evidence=OLD.id)])
    assert not isinstance(row, str)
    assert (row["old_answers"], row["old_evidence"]) == ([], None)


DECISIONS = st.sampled_from([NONE, SAME, WRONG, INVALID, UNDECIDED, other("Anna Weber")])


@given(st.lists(DECISIONS, max_size=9), st.integers(1, 3))
def test_a_majority_of_each_step_decides(decisions: list[Decision], least: int) -> None:
    """Compare with an independent count of the majority in each step."""
    votes = Counter(
        "-" if d.valid is None else "invalid" if not d.valid else "wrong" if not d.answer_right else d.past
        for d in decisions
    )
    n = len(decisions) - votes["-"]
    valid = n - votes["invalid"]
    right = valid - votes["wrong"]
    updated = n >= least and 2 * valid > n and 2 * right > valid and 2 * votes["other"] > right
    new = n >= least and 2 * valid > n and 2 * right > valid and 2 * votes["none"] > right
    row = row_from_decisions(MAYOR, decisions, least)
    assert (not isinstance(row, str) and bool(row["old_answers"])) == updated
    assert (not isinstance(row, str) and not row["old_answers"]) == new


# Label Studio's format

NEW = {"valid": "yes", "answer_right": "yes", "past": "none"}


def exported(folder: Path, **said: Any) -> Path:
    """Write an export where annotator 7 says this about MAYOR."""
    (folder / "annotations").mkdir()
    (folder / "tasks.json").write_bytes(msgspec.json.encode([{"data": MAYOR}]))
    return export(folder, {7: {MAYOR.id: said}})


SAID: dict[str, tuple[dict[str, Any], Decision]] = {
    "new": (NEW, NONE),
    "updated": (
        {**NEW, "past": "other", "old_answers": ["Anna Weber", "A. Weber"], "old_evidence": [OLD.id]},
        other("Anna Weber", "A. Weber", old_evidence=OLD.id),
    ),
    "corrected": (
        {**NEW, "statement": ["<extra_id_0> won."], "question": ["Who won?"], "answers": ["Lind"], "note": ["?"]},
        none(statement="<extra_id_0> won.", question="Who won?", answers=["Lind"], note="?"),
    ),
    "a text, not a list": ({**NEW, "note": "?"}, none(note="?")),
    "not valid": ({"valid": "no"}, INVALID),
    "not right": ({"valid": "yes", "answer_right": "no"}, WRONG),
    "nothing": ({}, UNDECIDED),
    "only a note": ({"note": "who is he?"}, Decision(MAYOR.id, None, note="who is he?")),
    "valid, and then nothing": ({"valid": "yes"}, INCOMPLETE),
    "right, and then nothing": ({"valid": "yes", "answer_right": "yes"}, INCOMPLETE),
    "another answer, and which?": ({**NEW, "past": "other"}, INCOMPLETE),
    "an old answer of nothing": ({**NEW, "past": "other", "old_answers": ["the ."]}, INCOMPLETE),
}


@pytest.mark.parametrize(("said", "decision"), SAID.values(), ids=SAID)
def test_an_annotation_is_a_decision(tmp_path: Path, said: dict[str, Any], decision: Decision) -> None:
    (found,) = read_decisions(exported(tmp_path, **said))
    assert (found.who, found.judge, found.candidate, found.decision) == ("annotator 7", False, MAYOR, decision)


def test_what_a_judge_writes_is_read_back(tmp_path: Path) -> None:
    for said, decision in SAID.values():
        (tmp_path / "judge.json").write_bytes(msgspec.json.encode([judged(MAYOR, decision, "m 1")]))
        (found,) = read_decisions(tmp_path / "judge.json")
        assert (found.who, found.judge, found.decision) == ("m 1", True, decision), said


def test_other_forms_of_an_export(tmp_path: Path) -> None:
    """A skipped task, an annotator given by number only, and predictions given by number only."""
    file = exported(tmp_path, **NEW)
    (task,) = json.loads(file.read_text())
    skipped = task["annotations"][0] | {"completed_by": 8, "was_cancelled": True}
    file.write_text(json.dumps([task | {"annotations": [*task["annotations"], skipped], "predictions": [4]}]))
    said = [(one.who, one.decision) for one in read_decisions(file)]
    assert said == [("annotator 7", NONE), ("annotator 8", UNDECIDED)]


def test_the_labelling_interface_has_the_controls_of_a_decision() -> None:
    view = ElementTree.parse(LABELS).getroot()
    controls = {tag.get("name"): tag for tag in view.iter() if tag.get("toName")}
    assert set(controls) == set(Decision.__struct_fields__) - {"id"}
    assert {tag.get("toName") for tag in controls.values()} == {"asked"}
    choices = {name: [choice.get("value") for choice in tag] for name, tag in controls.items() if tag.tag == "Choices"}
    assert choices == {"valid": ["yes", "no"], "answer_right": ["yes", "no"], "past": ["other", "same", "none"]}
    shown = {tag.get("value", "").removeprefix("$") for tag in view.iter() if tag.get("value", "").startswith("$")}
    assert shown < set(Candidate.__struct_fields__)


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no such choice": ({"valid": "perhaps"}, r"Expected `bool \| null`, got `str` - at `\$.valid`"),
    "another past": ({**NEW, "past": "nothing"}, r"Invalid enum value 'nothing' - at `\$.past`"),
    "two choices": ({**NEW, "past": ["none", "same"]}, "past: needs one value, not 2"),
    "no choice": ({"valid": []}, "valid: needs one value, not 0"),
    "another control": ({"sentiment": ["good"]}, "has no control 'sentiment'; use labels.xml"),
}


@pytest.mark.parametrize(("said", "problem"), BAD.values(), ids=BAD)
def test_invalid_decisions(tmp_path: Path, said: dict[str, Any], problem: str) -> None:
    file = exported(tmp_path, **said)
    with pytest.raises(InputError, match=problem) as raised:
        list(read_decisions(file))
    assert str(raised.value).startswith(f"{file}: task 1: annotator 7: ")
    assert "\n" not in str(raised.value)


DAMAGED: dict[str, bytes] = {
    "no JSON": b"yes",
    "no list": b"{}",
    "no task": b"[1]",
    "no data": b'[{"id": 1}]',
    "another project": b'[{"data": {"image": "a.png"}}]',
    "no annotator": b'[{"data": %b, "annotations": [{"result": []}]}]' % msgspec.json.encode(MAYOR),
    "not UTF-8": b'[{"data": "\xe9"}]',
    "nested deep": b"[" * 99_999,
    "cut off": b'[{"data": ',
    "empty": b"",
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_files_that_are_no_export(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(InputError, match=r"a\.json: not tasks of a review \(.*\); export the project") as raised:
        list(read_decisions(tmp_path / "a.json"))
    assert "\n" not in str(raised.value)


# A review


@pytest.fixture
def review(tmp_path: Path) -> Path:
    """Three candidates: Bo Lind, Carl Ohm and Dora Pym."""
    text = " ".join(
        f"{name} won the vote for the {place} seat of the council."
        for name, place in {"Bo Lind": "first", "Carl Ohm": "second", "Dora Pym": "third"}.items()
    )
    row = {"url": "https://news.example/1", "title": "News", "text": text, "published": DAY}
    make_review(tmp_path / "r", [row], OLD.text)
    return tmp_path / "r"


def decide(review: Path, *people: dict[str, str], name: str = "export", **more: str) -> Path:
    """Export what each person said: the past, or invalid, by the last word of a candidate's answer."""
    ids = {candidate.answer.split()[-1]: candidate.id for candidate in read_candidates(review)}
    old = {"old_answers": ["Anna Weber"]}
    said = {"invalid": {"valid": "no"}, "other": {**NEW, "past": "other", **old}, "same": {**NEW, "past": "same"}}
    return export(
        review,
        {
            number: {ids[word]: {**said.get(past, NEW), **more} for word, past in by.items()}
            for number, by in enumerate(people, 1)
        },
        name,
    )


def test_every_candidate_is_kept_or_dropped_in_both(review: Path) -> None:
    file = decide(review, {"Lind": "other", "Ohm": "none", "Pym": "same"}, {"Lind": "other", "Ohm": "none"})
    updated, new = configs_from_decisions(review)
    rows = {config.name: list(config.splits["test"]) for config in (updated, new)}
    assert {name: [row["answers"] for row in found] for name, found in rows.items()} == {
        "updatedlama": [["Bo Lind"]],
        "newlama": [["Carl Ohm"]],
    }
    assert rows["updatedlama"][0]["old_answers"] == ["Anna Weber"]
    same = "no news: the past has the same answer"
    assert (updated.counts.read, updated.counts.kept) == (new.counts.read, new.counts.kept) == (3, 1)
    assert updated.counts.dropped == {"new: in newlama": 1, same: 1}
    assert new.counts.dropped == {"updated: in updatedlama": 1, same: 1}
    by = {"annotator 1": 3, "annotator 2": 2}
    assert new.counts.more == {"decided_by": by, "decided_by_several": 2, "of_these_all_agree": 2}
    assert [file.name for file in new.inputs] == ["tasks.json", "review.json", "export.json"]
    assert new.options["annotators"] == ["annotator 1", "annotator 2"]
    assert new.options["candidates"]["options"]["question_model"]["name"] == "faithful"
    # nobody's name or address gets into a config
    assert "a@b.example" in file.read_text()
    told = json.dumps([[one.options, one.counts.more] for one in (updated, new)]) + json.dumps(rows, default=str)
    assert "a@b.example" not in told and 'Ann"' not in told


def test_least_annotators(review: Path) -> None:
    decide(review, {"Lind": "none", "Ohm": "none"}, {"Lind": "none"})
    _, new = configs_from_decisions(review, least_annotators=2)
    assert [row["answers"] for row in new.splits["test"]] == [["Bo Lind"]]
    assert new.counts.dropped == {"too few annotators": 1, "nobody decided": 1}
    with pytest.raises(UsageError, match="least_annotators must be at least 1"):
        configs_from_decisions(review, 0)


def test_a_later_export_has_the_decisions_of_an_earlier_one(review: Path) -> None:
    decide(review, {"Lind": "none"}, name="monday")
    decide(review, {"Lind": "none", "Ohm": "none"}, name="tuesday")
    _, new = configs_from_decisions(review, least_annotators=1)
    assert new.counts.more["decided_by"] == {"annotator 1": 2}
    assert new.counts.more["decided_by_several"] == 0


def test_annotators_that_disagree_are_counted(review: Path) -> None:
    decide(review, {"Lind": "none", "Ohm": "none", "Pym": "invalid"}, {"Lind": "none", "Ohm": "same", "Pym": "none"})
    _, new = configs_from_decisions(review)
    by = {"annotator 1": 3, "annotator 2": 3}
    assert new.counts.more == {"decided_by": by, "decided_by_several": 3, "of_these_all_agree": 1}
    assert [row["answers"] for row in new.splits["test"]] == [["Bo Lind"]]
    assert new.counts.dropped == {"the annotators disagree": 2}


def test_people_and_a_judge_decide_together(review: Path) -> None:
    decide(review, {"Lind": "none", "Ohm": "other"})
    tasks = [judged(one, Decision(one.id, True, True, "none"), "model 1") for one in read_candidates(review)]
    (review / "annotations" / "judge-model.json").write_bytes(msgspec.json.encode(tasks))
    _, new = configs_from_decisions(review)
    assert new.counts.more["decided_by"] == {"annotator 1": 2, "model 1": 3}
    assert new.options["judges"] == ["model 1"]
    assert sorted(row["answers"] for row in new.splits["test"]) == [["Bo Lind"], ["Dora Pym"]]


def test_two_candidates_that_become_the_same_are_one_row(review: Path) -> None:
    mended = {"statement": "In Easton <extra_id_0> is mayor.", "question": "Who is it?"}
    decide(review, {"Lind": "none", "Ohm": "none"}, **mended)
    _, new = configs_from_decisions(review)
    assert len(list(new.splits["test"])) == 1
    assert new.counts.dropped["the same statement and question as another"] == 1


def with_data(**changed: str) -> Callable[[list[Any]], list[Any]]:
    return lambda tasks: [{**task, "data": {**task["data"], **changed}} for task in tasks[:1]]


WRONG_FILES: dict[str, tuple[Callable[[list[Any]], list[Any]], str]] = {
    "no candidate": (with_data(id="zz"), r"task 1: annotator 1: no candidate 'zz'$"),
    "another question": (with_data(question="Who?"), r"annotator 1: the task is not as in tasks.json; import that"),
    "twice": (
        lambda tasks: [*tasks, {**tasks[0], "annotations": [{**tasks[0]["annotations"][0], "result": []}]}],
        r"task 4: annotator 1: a second decision on [0-9a-f]{16}, which differs from the first; keep one of them",
    ),
}


@pytest.mark.parametrize(("change", "says"), WRONG_FILES.values(), ids=WRONG_FILES)
def test_decisions_that_fit_no_candidate(review: Path, change: Callable[[list[Any]], list[Any]], says: str) -> None:
    file = decide(review, {"Lind": "none", "Ohm": "none", "Pym": "none"})
    file.write_text(json.dumps(change(json.loads(file.read_text()))))
    with pytest.raises(InputError, match=says):
        configs_from_decisions(review)


def test_a_review_without_decisions(review: Path) -> None:
    with pytest.raises(InputError, match="nobody has decided yet; put Label Studio's export here, as JSON"):
        configs_from_decisions(review)


@pytest.mark.parametrize("name", ["bob.JSON", "bob.json.txt", "bob.csv", "bob", "bob.json~", "sub"])
def test_other_files_beside_exports_are_refused(review: Path, name: str) -> None:
    decide(review, {"Lind": "none"})
    (review / "annotations" / ".DS_Store").touch()
    assert len(configs_from_decisions(review)) == 2
    path = review / "annotations" / name
    path.mkdir() if name == "sub" else path.touch()
    with pytest.raises(InputError, match=rf"{re.escape(name)}: not an export of Label Studio as JSON"):
        configs_from_decisions(review)
