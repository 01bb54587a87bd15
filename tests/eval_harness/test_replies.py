"""What chat models reply, and what it means: replies of many styles, and their outcome by hand. Names are invented."""

import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from temporalwiki.eval_harness.metrics.knowledge_match import exact_match
from temporalwiki.eval_harness.references import choices_of, right_answers
from temporalwiki.eval_harness.replies import OUTCOMES, _words, outcome, read, without_reasoning


def fact(subject: str, right: str, gone: str = "", aliases: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    gone_objects = [gone] if gone else []
    return {"subject": subject, "object": right, "aliases": list(aliases), "gone_objects": gone_objects, **more}


FACTS = {
    "head": fact("Ostravia", "Mira Velden", "Jonas Harrow", ("M. Velden", "Mira Anna Velden")),
    "capital": fact("Tavora", "Port Ellis", "Marrow"),
    "team": fact("Danel Roque", "Kestrel United", "Kestrel City", objects=["Kestrel United", "Osk Rangers"]),
    "paris": fact("Lumen Works", "Pariso", "Norwick"),
    "nested": fact("Isle of Brask", "Democratic Republic of Kesh", "Republic of Kesh"),
    "owner": fact("The Daily Lantern", "U.S. Lantern Co.", "Vane & Sons", ("US Lantern",)),
    "river": fact("New Marrow", "Saint-Osk", "Marrow"),
    "stable": fact("Fenwick Brook", "Tavora"),
    "japan": fact("オルサ", "東浜", "西港"),
    "article": fact("Ida Lorn", "The Hollow Crown", "The Hollow"),
}

# style -> (fact, reply, outcome)
REPLIES = yaml.safe_load(Path(__file__).with_name("replies.yaml").read_text("utf-8"))
CASES = [case for cases in REPLIES.values() for case in cases]


def test_the_table_is_large() -> None:
    assert len(CASES) >= 150
    assert len(REPLIES) >= 12
    assert {expected for _, _, expected in CASES} == set(OUTCOMES)


@pytest.mark.parametrize(("name", "reply", "expected"), CASES)
def test_outcomes_by_hand(name: str, reply: str, expected: str) -> None:
    assert outcome(reply, FACTS[name]) == expected


@pytest.mark.parametrize(
    "frame", ["{}", "{}.", "Answer: {}", "The answer is {}.", "**{}**", "{} (as of 2021)", "It is {}."]
)
@pytest.mark.parametrize("row", FACTS.values(), ids=FACTS)
def test_each_right_and_each_gone_name_counts_in_full(row: dict[str, Any], frame: str) -> None:
    for right in right_answers(row):
        found = read(frame.format(right), row)
        assert (found.outcome, exact_match(found.answer, right_answers(row))) == ("new", 1.0)
    for gone in choices_of(row)[1]:
        found = read(frame.format(gone), row)
        assert (found.outcome, exact_match(found.answer, right_answers(row))) == ("old", 0.0)


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("The answer is Mira Velden.", "Mira Velden"),
        ("mira velden leads it", "Mira Velden"),  # the name as the dataset writes it
        ("Answer: Tom Askar. He leads it.", "Tom Askar"),
        ("**Tom Askar**", "Tom Askar"),
        ("<think>Mira Velden</think>Tom Askar", "Tom Askar"),
        ("Mira Velden, Jonas Harrow", "Mira Velden, Jonas Harrow"),  # both: no exact match
        ("<think>Mira", ""),
    ],
)
def test_the_answer_for_exact_match(reply: str, answer: str) -> None:
    assert read(reply, FACTS["head"]).answer == answer


def test_a_name_of_both_sides_is_right() -> None:
    row = fact("Ostravia", "Mira Velden", objects=["Mira Velden", "Jonas Harrow"], previous_objects=["Jonas Harrow"])
    assert outcome("Jonas Harrow", row) == "new"


def test_without_gone_objects_the_previous_ones_are_old() -> None:
    row = fact("Ostravia", "Mira Velden", previous_objects=["Jonas Harrow"]) | {"gone_objects": None}
    assert outcome("Jonas Harrow", row) == "old"


@given(st.text(max_size=300), st.sampled_from(list(FACTS)))
def test_any_reply_has_an_outcome(reply: str, name: str) -> None:
    assert outcome(reply, FACTS[name]) in OUTCOMES


@given(st.text(alphabet="<think/>[THINK]abc \n", max_size=60))
def test_reasoning_is_stripped_once_and_for_all(reply: str) -> None:
    once = without_reasoning(reply)
    assert without_reasoning(once) == once


@pytest.mark.parametrize("loop", ["Osk and ", "was Osk, "])
def test_a_model_that_repeats_a_name_is_read_in_little_time(loop: str) -> None:
    began = time.process_time()
    assert outcome(loop * 2000, fact("Brask", "Osk")) == "new"
    assert time.process_time() - began < 2  # each name was weighed in the whole text: 4.5 s


def test_long_replies_take_little_time() -> None:
    assert outcome("I think Jonas Harrow was not, until " * 20_000 + "Answer: Mira Velden", FACTS["head"]) == "new"


@pytest.mark.parametrize("word", ["पिता", "மதுரை", "ঢাকা", "km²", "Roma"])
def test_a_word_keeps_its_last_sign(word: str) -> None:
    text = f"«{word}»!"
    [found] = _words(text)
    assert text[found.start : found.end] == word
