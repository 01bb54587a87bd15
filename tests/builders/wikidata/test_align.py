"""Alignment with text and the filters on single facts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalwiki.builders.wikidata.align import _align, _Text, filtered, says
from temporalwiki.builders.wikidata.cues import cues_of

import reference

SAYS = {
    "whole words": ("He joined Inter Milan in May.", "Inter Milan", True),
    "any case": ("he joined INTER milan", "Inter Milan", True),
    "not inside a word": ("He moved to Romania.", "Roma", False),
    "a later occurrence counts": ("In Romania and in Roma.", "Roma", True),
    "beside punctuation": ("(Roma), he said", "Roma", True),
    "at both ends": ("Roma", "Roma", True),
    "a label that ends in a sign": ("He played for Yahoo! until then", "Yahoo!", True),
    "a label that ends in a sign, glued": ("He wrote C++11", "C++", True),
    "a label that begins with a sign, glued": ("say!Hello", "!Hello", True),
    "a number joins words": ("Roma2 is not", "Roma", False),
    "white space counts": ("New  York", "New York", False),
    "a possessive": ("Roma's striker", "Roma", True),
    "two Unicode forms": ("the Cafe\u0301 Noir", "Caf\u00e9 Noir", True),
    "sharp s": ("in der STRASSE", "Straße", True),
    "an underscore joins words": ("my_Roma", "Roma", False),
    "Korean particles": ("그는 서울은 크다", "서울", True),
    "Japanese without spaces": ("東京都庁で", "東京", True),
    "an empty label": ("text", "", False),
}


@pytest.mark.parametrize("case", SAYS)
def test_a_sentence_says_a_label_as_whole_words(case: str) -> None:
    sentence, label, expected = SAYS[case]
    assert says(sentence, label) is expected


WORDS = st.text("ab Aé_.!-ß\u0301", max_size=12)


@given(WORDS, WORDS.filter(bool))
def test_it_agrees_with_the_reference_where_words_have_spaces(sentence: str, label: str) -> None:
    assert says(sentence, label) == reference.holds(sentence, label)


FILTERED = {
    ("Rome", "Rome metro"): "subject_and_object_overlap",
    ("Rome metro", "rome"): "subject_and_object_overlap",
    ("Ann", "one two three four five"): None,
    ("Ann", "one two three four five six"): "object_longer_than_5_words",
    ("Ann", "Roma"): None,
}


@pytest.mark.parametrize(("subject", "obj"), FILTERED)
def test_filters_1_and_2(subject: str, obj: str) -> None:
    assert filtered(subject, obj) == FILTERED[subject, obj]
    assert (filtered(subject, obj) is None) == reference.passes_filters(subject, obj)


@pytest.mark.parametrize(("place", "support"), [(40, "stated"), (41, "mentioned")])
def test_the_first_40_sentences_that_name_the_object_are_compared(place: int, support: str) -> None:
    sentences = [f"In {year} it rained in Marn." for year in range(1900, 1900 + place - 1)]
    article: Any = SimpleNamespace(links=[], link_texts=frozenset(), places={})
    text = _Text("Ann", 1, [*sentences, "Ann was born in Marn."], article)
    page: Any = SimpleNamespace(texts={"deleted": text}.get, cues=lambda number: cues_of(number, (), "en"))
    labels = {"subject": "Ann", "relation": "place of birth", "object": "Marn"}
    row = labels | {"split": "deleted", "p": 19, "object_title": None, "subject_aliases": [], "current": True}
    assert _align(row, page)["support"] == support
