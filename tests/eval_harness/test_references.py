"""Which answers are right, and which choices are wrong: cases by hand."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalwiki.base.normalization import normalize
from temporalwiki.eval_harness.metrics.knowledge_match import exact_match, f1
from temporalwiki.eval_harness.references import answers_in, choices_of, right_answers


def fact(obj: str, previous: Any = (), **columns: Any) -> dict[str, Any]:
    return {"subject": "Norland", "relation": "leader", "object": obj, "previous_objects": list(previous), **columns}


# columns of a probe, and what is right
RIGHT: dict[str, tuple[dict[str, Any], list[str]]] = {
    "an older dataset": (fact("Ann", ["Bob"]), ["Ann"]),
    "columns without a value": (fact("Ann", objects=None, aliases=None), ["Ann"]),
    "the object first, then all right ones, then their aliases": (
        fact("Cid", ["Bob"], objects=["Ann", "Cid"], aliases=["A. Weber", "Cid"], gone_objects=["Bob"]),
        ["Cid", "Ann", "A. Weber"],
    ),
    "an object that is over already is still what the probe asks for": (
        fact("Ann", objects=["Bob"], aliases=["Bobby"], current=False),
        ["Ann", "Bob", "Bobby"],
    ),
    "an unchanged fact": (fact("Ann", kind="unchanged", objects=["Ann", "Bob"], aliases=[]), ["Ann", "Bob"]),
    "a replaced fact: others are right now": (fact("Bob", kind="replaced", objects=["Ann"], aliases=["A."]), ["Bob"]),
    "an ended fact": (fact("Bob", kind="ended", objects=["Ann"], aliases=[]), ["Bob"]),
    "a removed fact": (fact("Bob", kind="removed", objects=["Ann"], aliases=[]), ["Bob"]),
    # an empty answer would equal them
    "aliases that normalisation makes empty": (fact("Ann", objects=["Ann"], aliases=["!", "The", "", None]), ["Ann"]),
    "an alias that is the subject's name as well": (
        fact("Norland City", aliases=["norland", "N. C."]),
        ["Norland City", "N. C."],
    ),
    "text in place of a list": (fact("Ann", objects="Bob Ito", aliases="Bo"), ["Ann", "Bob Ito", "Bo"]),
}


@pytest.mark.parametrize(("row", "expected"), RIGHT.values(), ids=RIGHT)
def test_what_is_right(row: dict[str, Any], expected: list[str]) -> None:
    assert right_answers(row) == expected


# what a model says to "Norland leader", and its EM and F1: right are Ann Weber ("E. W.") and Bob Ito
SAID = {
    "Ann Weber": (1, 1),
    "the ann weber": (1, 1),
    "e w": (1, 1),
    "Bob Ito": (1, 1),
    "Bob Weber": (0, 1 / 2),  # one of two words of either
    "Cid Bo": (0, 0),
    "": (0, 0),
}


@pytest.mark.parametrize("said", SAID)
def test_scores_of_answers(said: str) -> None:
    names = ["E. W.", "..."]
    right = right_answers(fact("Ann Weber", ["Cid Bo"], objects=["Ann Weber", "Bob Ito"], aliases=names))
    assert (exact_match(said, right), f1(said, right)) == SAID[said]


# columns of a changed probe, its right choices, and the wrong ones
CHOICES: dict[str, tuple[dict[str, Any], list[str], list[str]]] = {
    # an older dataset: as before
    "one": (fact("Ann", ["Bob"]), ["Ann"], ["Bob"]),
    "a previous one with the new one's name": (fact("The Who", ["who", "Bob"]), ["The Who"], ["Bob"]),
    "a previous one twice": (fact("Ann", ["Bob", "bob.", "Bob"]), ["Ann"], ["Bob"]),
    "a previous one without a name": (fact("Ann", ["", "Bob"]), ["Ann"], ["Bob"]),
    "names that normalisation makes empty": (fact("The The", ["!!!", "A", "!!!"]), ["The The"], ["!!!", "A"]),
    "no previous ones": (fact("Ann"), ["Ann"], []),
    "null": (fact("Ann") | {"previous_objects": None}, ["Ann"], []),
    # with the columns
    "replaced": (fact("Ann", ["Bob"], objects=["Ann"], gone_objects=["Bob"], current=True), ["Ann"], ["Bob"]),
    "one more, and the old one is still right": (
        fact("Ann", ["Bob"], objects=["Ann", "Bob"], gone_objects=[]),
        ["Ann", "Bob"],
        [],
    ),
    "one of two was replaced": (
        fact("Ann", ["Bob", "Cid"], objects=["Bob", "Ann"], gone_objects=["Cid"]),
        ["Ann", "Bob"],
        ["Cid"],
    ),
    "one that only lost its rank is not wrong": (fact("Ann", ["Bob"], objects=["Ann"], gone_objects=[]), ["Ann"], []),
    "by the name that it had then": (fact("Ann", ["Kiev"], objects=["Ann"], gone_objects=["Kiev"]), ["Ann"], ["Kiev"]),
    "an alias of what is right": (
        fact("Ann Weber", ["Weber", "Bob"], objects=["Ann Weber"], aliases=["weber!"], gone_objects=["Weber", "Bob"]),
        ["Ann Weber"],
        ["Bob"],
    ),
    "another item with the name of one that is right": (
        fact("Ann", ["bob"], objects=["Ann", "Bob"], gone_objects=["bob"]),
        ["Ann", "Bob"],
        [],
    ),
    "ids stand for objects without a label": (
        fact("Ann", objects=["Ann", "Q42"], gone_objects=["Q7", "Bob"]),
        ["Ann"],
        ["Bob"],
    ),
    "over already": (fact("Ann", ["Bob"], objects=[], gone_objects=["Bob"], current=False), [], []),
}


@pytest.mark.parametrize(("row", "right", "wrong"), CHOICES.values(), ids=CHOICES)
def test_choices(row: dict[str, Any], right: list[str], wrong: list[str]) -> None:
    assert choices_of(row) == (right, wrong)


LABELS = st.lists(st.text("aAbB. ", max_size=4), max_size=5)


@given(st.text("aAbB. ", max_size=4), LABELS, LABELS, LABELS)
def test_no_wrong_choice_is_right_by_any_name(
    obj: str, objects: list[str], aliases: list[str], gone: list[str]
) -> None:
    row = fact(obj + "c", objects=objects, aliases=aliases, gone_objects=gone)
    right, wrong = choices_of(row)
    assert right[0] == obj + "c"
    assert not {normalize(label) for label in wrong if normalize(label)} & set(map(normalize, right_answers(row)))
    assert all(exact_match(label, right_answers(row)) == 1 for label in right if normalize(label))
    assert len({normalize(label) or label for label in right + wrong}) == len(right + wrong)


def test_texts_of_columns() -> None:
    row = {"a": [" Easton ", "Easton", None, "the"], "b": "Weston", "c": None, "d": 0}
    assert answers_in(row, ("a", "b", "c", "d", "e")) == ["Easton", "Weston", "0"]
