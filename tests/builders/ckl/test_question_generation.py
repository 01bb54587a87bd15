"""Questions by rules: right for simple sentences, none for others."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temporalwiki.builders.ckl.question_generation import Passage, finite_verbs, occurrences, occurs, questions
from temporalwiki.builders.ckl.salient_spans import find_spans


def ask(sentence: str, answer: str, context: str = "") -> str | None:
    return questions([Passage(sentence, answer, sentence.index(answer), "", context)])[0]


@pytest.mark.parametrize(
    ("sentence", "answer", "question"),
    [
        # the subject
        ("Anna Weber won the cup in 2021.", "Anna Weber", "Who won the cup in 2021?"),
        ("Anna Weber also won the cup.", "Anna Weber", "Who won the cup?"),
        ("In 2021, Anna Weber won the cup.", "Anna Weber", "Who won the cup in 2021?"),
        ("Senator Weber opened a new bridge.", "Senator Weber", "Who opened a new bridge?"),
        ("The Northland Company opened a plant in Easton.", "Northland Company", "What opened a plant in Easton?"),
        ("Easton is the largest city in Norland.", "Easton", "What is the largest city in Norland?"),
        ("Anna Weber is the president of Norland.", "Anna Weber", "Who is the president of Norland?"),
        ("Weber was arrested in Easton, police said.", "Weber", "Who was arrested in Easton?"),
        ("Anna Weber was born in Easton.", "Anna Weber", "Who was born in Easton?"),
        ("Anna Weber won the cup and the prize.", "Anna Weber", "Who won the cup and the prize?"),
        ("Anna Weber won the cup and lost the other.", "Anna Weber", "Who won the cup and lost the other?"),
        # a date or a place at the end
        ("The bridge was opened in 1961.", "1961", "When was the bridge opened?"),
        (
            "The company signed the contract on 3 March 2021.",
            "3 March 2021",
            "When did the company sign the contract?",
        ),
        (
            "The Northland Company officially opened its plant on May 3, 2021.",
            "May 3, 2021",
            "When did the Northland Company officially open its plant?",
        ),
        ("Anna Weber wrote her first novel in Easton.", "Easton", "Where did Anna Weber write her first novel?"),
        ("Anna Weber has studied law at Easton University.", "Easton University", "Where has Anna Weber studied law?"),
        # who did it
        ("The bridge was designed by Anna Weber.", "Anna Weber", "By whom was the bridge designed?"),
    ],
)
def test_question(sentence: str, answer: str, question: str) -> None:
    assert ask(sentence, answer) == question


@pytest.mark.parametrize(
    ("sentence", "answer"),
    [
        # who or what is not clear
        ("Easton exceeded all expectations last winter.", "Easton"),
        ("The Eastons released another record.", "Eastons"),
        # a subject of two, of a possessive, with words put in
        ("Anna Weber and Otto Lang won the cup.", "Anna Weber"),
        ("Anna Weber's brother won the cup.", "Anna Weber"),
        ("Anna Weber, the mayor, won the cup.", "Anna Weber"),
        # two clauses
        ("Anna Weber won the cup and the town was glad.", "Anna Weber"),
        ("Anna Weber won the cup, but Otto Lang lost it.", "Anna Weber"),
        ("The bridge that was built in Easton was closed in 2021.", "2021"),
        ("The plant closed because the company lost money in 2021.", "2021"),
        # neither a place nor a date of the verb
        ("The company has an interest in Easton.", "Easton"),
        ("The novel was written in English.", "English"),
        ("Easton is the largest city in Norland.", "Norland"),
        # the subject is unclear
        ("He was born in 1961.", "1961"),
        ("Anna Weber told me about the cup.", "Anna Weber"),
        ("Anna Weber is his doctor.", "Anna Weber"),
        # the answer elsewhere in the question
        ("Anna Weber met the Anna Weber Society in Easton.", "Anna Weber"),
        # not a simple sentence
        ("Anna Weber won the cup?", "Anna Weber"),
        ('Anna Weber said "the cup is ours" in Easton.', "Anna Weber"),
        ("Anna Weber won: the cup is hers.", "Anna Weber"),
        ("Cup winner of 1961.", "1961"),
        ("Attached for your review are drafts of the report in Easton.", "Easton"),
    ],
)
def test_no_question(sentence: str, answer: str) -> None:
    assert ask(sentence, answer) is None


def test_what_a_text_says_of_a_person() -> None:
    sentence = "Weber exceeded all expectations."
    assert ask(sentence, "Weber") is None
    assert ask(sentence, "Weber", "Nobody had heard of Mr. Weber before.") == "Who exceeded all expectations?"


def test_an_answer_that_is_not_where_it_is_said_to_be() -> None:
    assert questions([Passage("Anna Weber won the cup.", "Anna Weber", 3)]) == [None]
    assert questions([]) == []


@pytest.mark.parametrize(
    ("sentence", "verbs"),
    [
        ("The company signed it", ["signed"]),
        ("The proposed law was passed", ["was"]),
        ("Anna Weber has never won", ["has"]),
        ("The company's planned merger failed", ["failed"]),
        ("They want to have it", []),
    ],
)
def test_finite_verbs(sentence: str, verbs: list[str]) -> None:
    words = sentence.split()
    assert [words[i] for i in finite_verbs(words)] == verbs


TEXT = (
    "Anna Weber Easton The the a company won was opened by in on at and , that 1961 3 May 2021 said has been who it's "
    "( ) – <extra_id_0> </script> é 東京 . ! ?"
)
WORDS = st.sampled_from([*TEXT.split(), '"', "\n", "\x00"])


@settings(deadline=None)
@given(st.one_of(st.lists(WORDS, max_size=14).map(" ".join), st.text(max_size=80)), st.data())
def test_never_the_answer_in_a_question(text: str, data: st.DataObject) -> None:
    sentence = text + "."
    spans = find_spans(sentence)
    start, end = data.draw(st.sampled_from(spans)) if spans else (0, min(4, len(sentence)))
    question = questions([Passage(sentence, sentence[start:end], start)])[0]
    if question is not None:
        assert not re.search(rf"(?<!\w){re.escape(sentence[start:end].lower())}(?!\w)", question.lower())
        assert question.endswith("?")
        assert question.split()[0] in ("Who", "What", "When", "Where", "By")
        assert set(question[:-1].lower().split()) - {"who", "what", "when", "where", "by", "whom", "did"}


@pytest.mark.parametrize(
    ("answer", "text", "times"),
    [
        ("AI", "the AI-powered agents", 1),
        ("US", "the U.S. army, the US navy", 2),
        ("Easton", "in EASTON's streets", 1),
        ("Anna  Weber", "said Anna Weber.", 1),
        ("Easton", "Eastonia", 0),
        ("art", "the start", 0),
        ("Weber", "web er", 0),
        ("C++", "in C++, too", 1),
        ("(a", "f (a b", 1),
        ("Ada", "Ada, ada and Adam", 2),
        ("e\u0301", "caf\u00e9 \u00e9", 1),
        ("caf", "cafe\u0301 cafe", 0),
        ("The Who", "The Who said who did", 2),
        ("", "a", 0),
    ],
)
def test_how_often_an_answer_stands_in_a_text(answer: str, text: str, times: int) -> None:
    assert occurrences(answer, text) == times
    assert occurs(answer, text) == (times > 0)
