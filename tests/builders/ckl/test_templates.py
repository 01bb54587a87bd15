"""How facts are worded: whatever a label holds, and only where the relation's label reads right."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalwiki.builders.ckl.invariantlama import RELATIONS
from temporalwiki.builders.ckl.templates import _TABLE, Template, template

HOSTILE = [
    "[Y]",
    "[X]",
    "[X] of [Y]",
    r"\1 \g<0>",
    "{0} %s",
    "a\nb",
    '"=cmd()|',
    "</script>",
    "../..",
    "Zoë 🎉",
    "[[Y]]",
]


@pytest.mark.parametrize("subject", HOSTILE)
def test_a_subject_is_put_in_as_it_is(subject: str) -> None:
    how = Template("The mayor of [X] is [Y].", "Who is the mayor of [X]?")
    assert how.statement(subject) == "The mayor of " + subject + " is <extra_id_0>."
    assert how.ask(subject) == "Who is the mayor of " + subject + "?"


@given(st.sampled_from(sorted(_TABLE)), st.text())
def test_every_cloze_has_its_subject_and_its_blank_once_and_the_blank_last(relation: str, subject: str) -> None:
    how = template(relation, "")
    assert how is not None
    before, _, after = how.cloze.partition("[X]")
    assert how.statement(subject) == before + subject + after.replace("[Y]", "<extra_id_0>")
    assert how.statement(subject).endswith(" <extra_id_0>.")
    assert how.cloze.count("[X]") == how.cloze.count("[Y]") == how.question.count("[X]") == 1
    assert how.question[0].isupper()
    assert how.question.endswith("?")
    assert "[Y]" not in how.question


# A relation's label, and the noun in its cloze; none where "The LABEL of Rome is ..." reads wrong.
LABELS = {
    "executive body": True,
    "head of the legislature": True,
    "military unit": True,
    "patron saint": True,
    "source of energy": True,
    "copyright status": True,
    "diagnosis": True,
    "stock in trade": True,
    "located in": False,
    "owned by": False,
    "capital of": False,
    "different from": False,
    "follows": False,
    "depicts": False,
    "has effect": False,
    "subject has role": False,
    "is a list of": False,
    "doctors by duty": False,
    "characters": False,
    "main characters": False,
    "stars of the show": False,
    "employed staff": False,
    "number of speakers": True,
    "including": False,
    "enclave within": False,
    "topic's main category": False,
    "category for people": False,
    "Commons gallery": False,
    "Freebase ID": False,
    "director / manager": False,
    "speed (maximum)": False,
    "mayor [Y]": False,
    "mayor <extra_id_0>": False,
    "mayor\nof": False,
    "mayor  of": False,
    "": False,
    "maire élu": False,
    "one two three four five six seven": False,
}


@pytest.mark.parametrize("label", LABELS)
def test_a_relation_that_is_not_known_is_worded_after_its_label_if_that_reads_right(label: str) -> None:
    how = template("P987654", label)
    expected = Template(f"The {label} of [X] is [Y].", f"What is the {label} of [X]?")
    assert how == (expected if LABELS[label] else None)


# What was true stays true of one who was born, awarded, taught; not of one who governs, lives or plays somewhere.
@pytest.mark.parametrize(
    ("relation", "lasting"),
    [("P19", True), ("P166", True), ("P57", True), ("P69", True), ("P31", True)]
    + [(relation, False) for relation in ("P6", "P54", "P39", "P36", "P131", "P551", "P26", "P106")],
)
def test_relations_that_last(relation: str, lasting: bool) -> None:
    how = template(relation, "")
    assert how is not None
    assert how.lasting is lasting


def test_lamas_templates_word_the_cloze_where_there_is_one() -> None:
    lama = {"P36": "[X] , capital : [Y] .", "P19": "[Y] is where [X] was born ."}
    capital, birth, coach = (template(relation, "", lama) for relation in ("P36", "P19", "P286"))
    assert capital is not None and birth is not None and coach is not None
    assert capital.statement("[Y]") == "[Y] , capital : <extra_id_0> ."
    assert birth.statement("Ann") == "<extra_id_0> is where Ann was born ."
    assert birth.lasting
    assert "born" in birth.question
    assert coach == template("P286", "")


def test_the_relations_of_invariantlama_have_words() -> None:
    assert all(template(relation, "") for relation in RELATIONS)


def test_our_words_are_not_lamas(shared_data: Path) -> None:
    """LAMA's templates are CC BY-NC, ours are not."""
    lama = (json.loads(line) for line in (shared_data / "lama" / "relations.jsonl").open(encoding="utf-8"))
    theirs = {record["template"].replace(" .", ".").casefold() for record in lama}
    assert len(theirs) > 30
    assert theirs.isdisjoint(how.cloze.casefold() for how in _TABLE.values())
