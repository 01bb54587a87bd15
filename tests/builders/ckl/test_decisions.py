"""Annotators' decisions: files, votes, and the rows that they give."""

from __future__ import annotations

import datetime
import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.builders.ckl.candidates import (
    Candidate,
    CandidateOptions,
    read_candidates,
    read_review,
    write_candidates,
)
from temporalwiki.builders.ckl.corpus_index import Past, build_index
from temporalwiki.builders.ckl.decisions import Decision, configs_from_decisions, read_decisions, row_from_decisions
from temporalwiki.builders.ckl.schemas import SCHEMAS

from a_text_model import faithful

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
    "answers": ([none(answers=["B. Lind", "Bo Lind"])], 1, (["B. Lind", "Bo Lind"], [])),
    "an answer in the statement": ([none(answers=["Bo Lind", "anna weber"])], 1, "the answer stands in the statement"),
    "an answer in the question": ([none(question="Is it Bo Lind?")], 1, "the answer stands in the question"),
    "a statement that says nothing": (
        [none(statement="the <extra_id_0>.")],
        1,
        "nothing in the statement beside the blank",
    ),
    "a question that asks nothing": ([none(question=" ? ")], 1, "no question, or a sentinel in it"),
    "a question with a blank": ([none(question="Who <extra_id_0>?")], 1, "no question, or a sentinel in it"),
    "another sentinel": (
        [none(statement="<extra_id_0> beat <extra_id_1>")],
        1,
        "not exactly one blank in the statement",
    ),
}


@pytest.mark.parametrize(("decisions", "least", "becomes"), VOTES.values(), ids=VOTES)
def test_row_from_decisions(decisions: list[Decision], least: int, becomes: Any) -> None:
    row = row_from_decisions(MAYOR, decisions, least)
    assert (row if isinstance(row, str) else (row["answers"], row["old_answers"])) == becomes


def test_a_row_says_where_it_comes_from() -> None:
    mended = {"statement": "The mayor of  Easton is <extra_id_0>.", "question": "Who is the mayor of Easton?"}
    most = other("Anna Weber", old_evidence=OLD.id, **mended)
    row = row_from_decisions(
        MAYOR, [other("Anna Weber", statement="Easton: <extra_id_0>", old_evidence="I know"), most, most]
    )
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


# Files

GOOD = '{"id": "x", "valid": true, "answer_right": true, "past": "none"}'


def good(**more: Any) -> str:
    return json.dumps(json.loads(GOOD) | more)


BAD = {
    "no JSON": ("yes", "line 1: .*; a decision has the fields id, valid"),
    "no object": ("[1]", "line 1: Expected `object`"),
    "the second line": (f"{GOOD}\n\n{{}}", r"line 3: .*missing required field `id`"),
    "no id": ('{"valid": true}', "missing required field `id`"),
    "no valid": ('{"id": "x"}', "missing required field `valid`"),
    "a word for a truth": ('{"id": "x", "valid": "yes"}', r"Expected `bool \| null`, got `str` - at `\$.valid`"),
    "another past": (GOOD.replace("none", "nothing"), r"Invalid enum value 'nothing' - at `\$.past`"),
    "a field misspelt": (
        GOOD.replace("answer_right", "answer_rigth"),
        "unknown field `answer_rigth`; a decision has the fields id, valid, answer_right",
    ),
    "another field": (GOOD.replace("answer_right", "zzz"), "unknown field `zzz`; a decision has the fields id, valid"),
    "valid, and then nothing": (
        '{"id": "x", "valid": true}',
        "line 1: answer_right: must be true or false if valid is true",
    ),
    "right, and then nothing": (GOOD.replace('"none"', "null"), "past: must be .* if answer_right is true"),
    "another answer, and which?": (GOOD.replace("none", "other"), "old_answers: needed if past is"),
    "an old answer of nothing": (good(past="other", old_answers=["the ."]), "old_answers: needed if past is"),
    "old answers of none": (good(old_answers=["a b"]), 'old_answers: not allowed if past is "none"'),
    "no answers": (good(answers=[]), "answers: empty; null takes"),
    "no blank": (good(statement="a b"), "statement: needs exactly one <extra_id_0>"),
    "two blanks": (good(statement="<extra_id_0> <extra_id_0>"), "exactly one <extra_id_0>"),
    "a blank and nothing else": (good(statement=" <extra_id_0>."), "statement: has no words except"),
    "a question of white space": (good(question=" \n"), "question: empty; null takes"),
    "a blank in the question": (good(question="Who <extra_id_0>?"), "question: contains a sentinel"),
    "not UTF-8": (b'{"id": "\xe9"', "line 1: .*; a decision has the fields id, valid"),
    "nested deep": ('{"id": ' + "[" * 99_999, "line 1: .*; a decision has the fields id, valid"),
    "a huge line": ('{"id": "' + "x" * (1 << 20), "line 1: more than 1 MB; a line must be one record"),
}


@pytest.mark.parametrize(("content", "says"), BAD.values(), ids=BAD)
def test_invalid_decisions(tmp_path: Path, content: str | bytes, says: str) -> None:
    file = tmp_path / "ann.jsonl"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=says) as raised:
        list(read_decisions(file))
    assert str(raised.value).startswith(f"{file}: line ")
    assert "\n" not in str(raised.value)


def test_files_of_any_editor_are_read(tmp_path: Path) -> None:
    (tmp_path / "ann.jsonl").write_bytes(b"\xef\xbb\xbf" + GOOD.encode() + b"\r\n\r\n" + GOOD.encode())
    found = Decision("x", True, True, "none")
    assert list(read_decisions(tmp_path / "ann.jsonl")) == [(1, found), (3, found)]


# A review


@pytest.fixture
def review(tmp_path: Path) -> Path:
    """Three candidates: Bo Lind, Carl Ohm and Dora Pym."""
    (tmp_path / "old.jsonl").write_text(json.dumps({"text": OLD.text}))
    text = " ".join(
        f"Today {name} defeated Anna Weber in the vote for mayor of {town}."
        for name, town in {"Bo Lind": "Easton", "Carl Ohm": "Weston", "Dora Pym": "Norton"}.items()
    ).replace("Today ", "")
    row = {"url": "https://news.example/1", "title": "News", "text": text, "published": DAY}
    index = build_index([tmp_path / "old.jsonl"], tmp_path)
    model = faithful(asks=lambda answer: answer.endswith(("Lind", "Ohm", "Pym")))
    write_candidates([row], index, tmp_path / "r", CandidateOptions(), open_model=lambda name: model)
    return tmp_path / "r"


def decide(review: Path, name: str, **said: str) -> None:
    """Write an annotator's decisions: the past by the last word of a candidate's answer."""
    ids = {candidate.answer.split()[-1]: candidate.id for candidate in read_candidates(review)}
    lines: list[dict[str, Any]] = []
    for answer, past in said.items():
        line: dict[str, Any] = {"id": ids[answer], "valid": past != "invalid"}
        if past != "invalid":
            line |= {"answer_right": True, "past": past, "old_answers": ["Anna Weber"] if past == "other" else []}
        lines.append(line)
    (review / "decisions" / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_every_candidate_is_kept_or_dropped_in_both(review: Path) -> None:
    decide(review, "ann", Lind="other", Ohm="none", Pym="same")
    decide(review, "bob", Lind="other", Ohm="none")
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
    assert new.counts.more == {"decided_by": {"ann": 3, "bob": 2}, "decided_by_several": 2, "of_these_all_agree": 2}
    assert [file.name for file in new.inputs] == ["candidates.jsonl", "candidates.json", "ann.jsonl", "bob.jsonl"]
    assert new.options["annotators"] == ["ann", "bob"]
    assert new.options["candidates"]["options"]["question_model"]["name"] == "faithful"
    json.dumps(new.options)


def test_least_annotators(review: Path) -> None:
    decide(review, "ann", Lind="none", Ohm="none")
    decide(review, "bob", Lind="none")
    _, new = configs_from_decisions(review, least_annotators=2)
    assert [row["answers"] for row in new.splits["test"]] == [["Bo Lind"]]
    assert new.counts.dropped == {"too few annotators": 1, "nobody decided": 1}
    with pytest.raises(UsageError, match="least_annotators must be at least 1"):
        configs_from_decisions(review, 0)


def test_annotators_that_disagree_are_counted(review: Path) -> None:
    decide(review, "ann", Lind="none", Ohm="none", Pym="invalid")
    decide(review, "bob", Lind="none", Ohm="same", Pym="none")
    _, new = configs_from_decisions(review)
    assert new.counts.more == {"decided_by": {"ann": 3, "bob": 3}, "decided_by_several": 3, "of_these_all_agree": 1}
    assert [row["answers"] for row in new.splits["test"]] == [["Bo Lind"]]
    assert new.counts.dropped == {"the annotators disagree": 2}


def test_two_candidates_that_become_the_same_are_one_row(review: Path) -> None:
    decide(review, "ann", Lind="none", Ohm="none")
    file = review / "decisions" / "ann.jsonl"
    mended = {"statement": "In Easton <extra_id_0> is mayor.", "question": "Who is it?"}
    lines = [json.loads(line) | mended for line in file.read_text().splitlines()]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    _, new = configs_from_decisions(review)
    assert len(list(new.splits["test"])) == 1
    assert new.counts.dropped["the same statement and question as another"] == 1


def first_id(review: Path) -> str:
    return next(read_candidates(review)).id


WRONG_FILES: dict[str, tuple[Callable[[Path], str], str]] = {
    "no candidate": (lambda review: GOOD.replace('"x"', '"zz"'), r"line 1: id: no candidate 'zz'; use the ids of"),
    "a wrong digit": (
        lambda review: GOOD.replace('"x"', f'"{first_id(review)[:-1]}z"'),
        r"line 1: id: no candidate '.*'; did you mean [0-9a-f]{16}\?",
    ),
    "twice": (
        lambda review: f"{GOOD}\n\n{GOOD}".replace('"x"', f'"{first_id(review)}"'),
        r"line 3: a second decision on [0-9a-f]{16}, after line 1",
    ),
}


@pytest.mark.parametrize(("content", "says"), WRONG_FILES.values(), ids=WRONG_FILES)
def test_decisions_that_fit_no_candidate(review: Path, content: Callable[[Path], str], says: str) -> None:
    (review / "decisions" / "ann.jsonl").write_text(content(review))
    with pytest.raises(InputError, match=says):
        configs_from_decisions(review)


def test_a_review_without_decisions(review: Path) -> None:
    with pytest.raises(InputError, match="nobody has decided yet"):
        configs_from_decisions(review)


@pytest.mark.parametrize("name", ["bob.JSONL", "bob.jsonl.txt", "bob.csv", "bob", "bob.jsonl~", "sub"])
def test_other_files_beside_decisions_are_refused(review: Path, name: str) -> None:
    decide(review, "ann", Lind="none")
    (review / "decisions" / ".DS_Store").touch()
    assert len(configs_from_decisions(review)) == 2
    path = review / "decisions" / name
    path.mkdir() if name == "sub" else path.touch()
    with pytest.raises(InputError, match=rf"{re.escape(name)}: not a file of decisions; did you mean .*\.jsonl\?"):
        configs_from_decisions(review)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"{}", r"judge-a\.json: not the note of a judge"),
        (b"[", r"judge-a\.json: not the note of a judge"),
        (
            b'{"judge": {"name": "a"}, "version": 1, "candidates": "0", "controls": {}}',
            r"judge-a\.json: a judge's decisions on other candidates; remove both files",
        ),
    ],
)
def test_a_judges_note_must_be_of_these_candidates(review: Path, content: bytes, says: str) -> None:
    decide(review, "judge-a", Lind="none")
    (review / "decisions" / "judge-a.json").write_bytes(content)
    with pytest.raises(InputError, match=says):
        configs_from_decisions(review)
    about = {"judge": {"name": "a"}, "version": 1, "controls": {}}
    note = about | {"candidates": read_review(review).sha256}
    (review / "decisions" / "judge-a.json").write_text(json.dumps(note))
    assert configs_from_decisions(review)[0].options["judges"] == {"judge-a": about}
