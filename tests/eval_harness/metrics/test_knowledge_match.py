"""Exact match, F1 and P@k, compared with an independent implementation of SQuAD's definitions."""

import re
import string
import unicodedata
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalwiki.base.normalization import normalize
from temporalwiki.eval_harness.metrics.knowledge_match import exact_match, f1, knowledge_match

NORMALIZED = {
    "<extra_id_0> Paris<extra_id_1>": "paris",
    "Paris<extra_id_1>London": "paris london",
    "<extra_id_>": "extraid",
    "T.h.e": "",  # the article appears when the full stops are gone, and goes with them, as in SQuAD's script
    # beyond ASCII
    "„Straße“": "strasse",
    "1990–91": "199091",
    "Côte d’Ivoire": "côte divoire",
    "東京。": "東京",
    "«Война и мир»": "война и мир",
    "a\u0301guila": "águila",  # decomposed; without NFC its a would be an article
    "5 € + 3 £": "5 € 3 £",  # SQuAD removes the + of ASCII; Unicode's currency signs are not punctuation
    "New\u00a0York\u3000City": "new york city",
}


@pytest.mark.parametrize(("text", "expected"), NORMALIZED.items())
def test_what_is_compared(text: str, expected: str) -> None:
    assert normalize(text) == expected


def squad_normalize(text: str) -> str:
    """Lower case, then no punctuation of ASCII, then a space for each article, then single spaces."""
    kept = [c for c in text.lower() if c not in set(string.punctuation)]
    return " ".join(re.split(r"\s+", re.sub(r"\b(?:a|an|the)\b", " ", "".join(kept)))).strip()


def squad_f1(prediction: str, gold: str) -> float:
    """F1 by precision and recall of the words; both answers empty is 1, as in SQuAD 2.0."""
    predicted, right = squad_normalize(prediction).split(), squad_normalize(gold).split()
    if not predicted or not right:
        return 1.0 if predicted == right else 0.0
    rest, same = Counter(right), 0
    for word in predicted:
        if rest[word] > 0:
            rest[word] -= 1
            same += 1
    if same == 0:
        return 0.0
    precision, recall = same / len(predicted), same / len(right)
    return 2 * precision * recall / (precision + recall)


WORDS = st.lists(
    st.sampled_from(["the", "The", "a", "an", "An", "cat", "Cat's", "sat.", "U.S.", "-", "  ", "theory", "1990"])
).map(" ".join)
ASCII = st.one_of(WORDS, st.text(st.characters(codec="ascii")))
ANY = st.one_of(ASCII, st.text())


EQUAL = {  # answers that are one answer
    "invisible characters": ["Newton", "New\u200bton", "New\u00adton\u200e", "\ufeffNewton\u2060"],
    "joiners": ["میخواهم", "می\u200cخواهم"],
    "apostrophes": ["Hawaiʻi", "Hawaiʼi", "Hawai'i", "Hawai’i", "Hawai`i", "Hawaii"],
    "full width": ["ＮＡＴＯ", "NATO", "nato"],
    "half width": ["ﾄﾖﾀ", "トヨタ"],
    "digits of full width": ["２０１８年", "2018年"],
    "a minus sign": ["−5", "-5", "–5"],
    "ligatures": ["ﬁnal oﬃce", "final office"],
    "Armenian ligatures": ["ﬓ", "մն"],
    "a dotted capital": ["İstanbul", "istanbul", "I\u0307stanbul", "Istanbul"],
    "sharp s": ["Voß", "VOSS", "VOẞ"],
    "a final sigma": ["Οδυσσεύς", "ΟΔΥΣΣΕΎΣ"],
    "Arabic forms": ["ﻣﺼﺮ", "مصر"],
}


@pytest.mark.parametrize("case", EQUAL)
def test_other_forms_of_an_answer_are_equal(case: str) -> None:
    assert len(set(map(normalize, EQUAL[case]))) == 1


@given(ASCII)
def test_of_ascii_it_is_squads(text: str) -> None:
    assert normalize(text) == squad_normalize(text)


@given(ASCII, st.lists(ASCII, min_size=1, max_size=4))
def test_exact_match_and_f1_are_squads_with_the_best_reference(prediction: str, references: list[str]) -> None:
    assert exact_match(prediction, references) == max(
        float(squad_normalize(prediction) == squad_normalize(gold)) for gold in references
    )
    assert f1(prediction, references) == pytest.approx(max(squad_f1(prediction, gold) for gold in references))


@given(ANY)
def test_nothing_is_left_that_should_go(text: str) -> None:
    words = normalize(text).split(" ")
    assert not {"a", "an", "the"} & set(words)
    assert words == [""] or "" not in words
    assert not [c for c in normalize(text) if c in string.punctuation or unicodedata.category(c)[0] == "P"]


@given(ANY, ANY)
def test_f1_is_symmetric_between_0_and_1_and_1_for_a_match(a: str, b: str) -> None:
    assert f1(a, [b]) == f1(b, [a])
    assert exact_match(a, [b]) <= f1(a, [b]) <= 1
    assert exact_match(a, [a]) == f1(a, [a]) == 1
    assert f1(f"<extra_id_0> {a}<extra_id_1>", [b]) == f1(a, [b])


# prediction, references, exact match, F1
PAIRS: dict[str, tuple[str, list[str], float, float]] = {
    "nothing left of either": ("<extra_id_0>.", ["The The"], 1, 1),
    "no spaces between words: one word": ("東京都", ["東京"], 0, 0),
}


@pytest.mark.parametrize(("prediction", "references", "match", "overlap"), PAIRS.values(), ids=PAIRS)
def test_one_question(prediction: str, references: list[str], match: float, overlap: float) -> None:
    assert exact_match(prediction, references) == match
    assert f1(prediction, references) == pytest.approx(overlap)


def test_all_questions_in_percent() -> None:
    result = knowledge_match(
        ["<extra_id_0> The Beatles", "in Paris", "Rome", ""], ["Beatles", ["Lutetia", "Paris"], "Oslo", "Oslo"]
    )
    # (1 + 0 + 0 + 0) / 4 and (1 + 2/3 + 0 + 0) / 4
    assert result == {"exact_match": 25, "f1": pytest.approx(125 / 3), "precision_at_k": {1: 25}}


def test_a_ranking_hits_at_k_if_one_of_its_first_k_answers_is_right() -> None:
    other = ["x"] * 49
    rankings: list[Any] = [
        ["The Oslo.", "x"],  # right at 1
        ["x", "x", "x", "x", "Lutetia"],  # at 5
        [*other[:5], "Oslo"],  # at 6
        [*other, "Oslo"],  # at 50
        "Oslo",  # an answer is a ranking of one
        ["x", "Rome", "Rome"],  # never
    ]
    result = knowledge_match(rankings, ["Oslo", ["Paris", "Lutetia"], "Oslo", "Oslo", ["Oslo"], "Oslo"])
    assert result["precision_at_k"] == pytest.approx({1: 200 / 6, 5: 300 / 6, 10: 400 / 6, 50: 500 / 6})
    assert result["exact_match"] == result["f1"] == result["precision_at_k"][1]


@pytest.mark.parametrize(
    ("lengths", "ks"), [([1, 1], [1]), ([4], [1]), ([5, 1], [1, 5]), ([49, 10], [1, 5, 10]), ([60], [1, 5, 10, 50])]
)
def test_k_goes_up_to_the_longest_ranking(lengths: list[int], ks: list[int]) -> None:
    result = knowledge_match([["x"] * n for n in lengths], ["y"] * len(lengths))
    assert result["precision_at_k"] == dict.fromkeys(ks, 0.0)


ANSWERS = st.lists(WORDS, min_size=1, max_size=6)
QUESTIONS = st.lists(st.tuples(ANSWERS, ANSWERS), min_size=1, max_size=5)


@given(QUESTIONS, st.randoms(use_true_random=False))
def test_p_at_k_starts_at_exact_match_and_never_falls_and_order_does_not_matter(
    questions: list[tuple[list[str], list[str]]], random: Any
) -> None:
    result = knowledge_match([p for p, _ in questions], [r for _, r in questions])
    percents = list(result["precision_at_k"].values())
    assert percents == sorted(percents)
    assert percents[0] == result["exact_match"] <= result["f1"] <= 100
    random.shuffle(questions)
    assert knowledge_match([p for p, _ in questions], [r for _, r in questions]) == result


def test_columns_of_numpy_and_generators_are_read() -> None:
    expected = {"exact_match": 50, "f1": 50, "precision_at_k": {1: 50}}
    assert knowledge_match(np.array(["x", "y"]), (answer for answer in ("X", ("z", "w")))) == expected


REFUSED: dict[str, tuple[Any, Any, str]] = {
    "no questions": ([], [], "no predictions: there is nothing to score"),
    "other lengths": (["x"], ["x", "y"], "1 predictions and 2 references"),
    "an empty ranking": (["x", []], ["x", "y"], r"predictions\[1\]: the list is empty; it needs at least one string"),
    "no right answer": (["x"], [[]], r"references\[0\]: the list is empty"),
    "None": ([None], ["x"], r"predictions\[0\]: expected a string or a list of strings, not NoneType"),
    "NaN": (["x"], [float("nan")], r"references\[0\]: expected a string or a list of strings, not float"),
    "a set, which has no order": (
        [{"x"}],
        ["x"],
        r"predictions\[0\]: expected a string or a list of strings, not set",
    ),
    "a number in a ranking": ([["x", 1990]], ["x"], r"predictions\[0\]: expected a string, not int"),
    "bytes": (["x"], [b"x"], r"references\[0\]: expected a string, not int"),
    "a list too deep": ([[["x"]]], ["x"], r"predictions\[0\]: expected a string, not list"),
    "one string for all": ("xy", ["x", "y"], "predictions: expected a list with one entry for each question, not str"),
    "a dict": (["x"], {"x": "y"}, "references: expected a list with one entry for each question, not dict"),
    "no references": (["x"], None, "references: expected a list with one entry for each question, not NoneType"),
}


@pytest.mark.parametrize(("predictions", "references", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_scored_is_refused_in_one_line(predictions: Any, references: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        knowledge_match(predictions, references)
    assert "\n" not in str(error.value)


def test_one_right_answer_need_not_be_a_list() -> None:
    assert exact_match("Paris", "paris") == f1("Paris", "paris") == 1
    assert exact_match("p", "paris") == f1("p", "paris") == 0  # not the letters of the answer
    with pytest.raises(ValueError, match="references: the list is empty"):
        f1("Paris", [])
