"""The wording of facts: with any label of a subject, and with labels of relations."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalwiki.builders.ckl.invariantlama import RELATIONS
from temporalwiki.builders.ckl.templates import (
    LANGUAGES,
    RelationTemplate,
    asking,
    fill,
    find_template,
    one_line,
    templates,
    unsafe_label,
)


def worded(relation: str, label: str = "", **more: Any) -> RelationTemplate:
    """Return the template of a relation that has one."""
    how = find_template(relation, label, **more)
    assert how is not None
    return how


HOSTILE = ["[Y]", "[X]", "[X] of [Y]", r"\1 \g<0>", "{0} %s", "a\nb", '"=cmd()|', "</script>", "../..", "Zoë 🎉"]


@pytest.mark.parametrize("subject", HOSTILE)
def test_a_subject_is_put_in_as_it_is(subject: str) -> None:
    how = RelationTemplate("The mayor of [X] is [Y].", "Who is the mayor of [X]?")
    assert how.statement(subject) == "The mayor of " + subject + " is <extra_id_0>."
    assert how.ask(subject) == "Who is the mayor of " + subject + "?"


@given(st.text(), st.sampled_from(LANGUAGES))
def test_what_is_put_in_is_not_read_again(value: str, language: str) -> None:
    words = asking(language)
    blanks = {
        "question": "[X] [relation]",
        "dated": "[date] [question]",
        "prompt": "[question] [unknown]",
        "unknown": "",
    }
    for part, names in blanks.items():
        text = getattr(words, part)
        assert sorted(re.findall(r"\[\w+\]", text)) == sorted(names.split())
        for name in names.split():
            before, _, after = text.partition(name)
            assert fill(text, {name: value}) == before + value + after


def test_there_are_two_languages_with_the_same_relations() -> None:
    assert LANGUAGES == ("de", "en")
    assert templates("de").keys() == templates("en").keys()


@given(st.sampled_from(LANGUAGES), st.sampled_from(sorted(templates("en"))), st.text())
def test_every_cloze_has_its_subject_and_its_blank_once_and_the_blank_last(
    language: str, relation: str, subject: str
) -> None:
    how = worded(relation, language=language)
    before, _, after = how.cloze.partition("[X]")
    assert how.statement(subject) == before + subject + after.replace("[Y]", "<extra_id_0>")
    assert how.statement(subject).endswith(" <extra_id_0>.")
    assert how.cloze.count("[X]") == how.cloze.count("[Y]") == how.question.count("[X]") == 1
    assert how.question[0].isupper()
    assert how.question.endswith("?")
    assert "[Y]" not in how.question


# Labels of relations that fit into "The LABEL of Rome is ...", and labels that do not
FITTING = re.split(
    "[|]",
    "executive body|head of the legislature|military unit|patron saint|source of energy|copyright status|diagnosis|"
    "stock in trade|number of speakers|speed|top speed|honorific suffix|headset|main building contractor",
)
OTHERS = re.split(
    "[|]",
    "located in|owned by|capital of|different from|follows|depicts|has effect|subject has role|is a list of|"
    "doctors by duty|characters|main characters|stars of the show|employed staff|including|enclave within|"
    "topic's main category|category for people|Commons gallery|Freebase ID|director / manager|speed (maximum)|"
    "mayor [Y]|mayor <extra_id_0>|mayor\nof|mayor  of|maire élu|one two three four five six seven|record held|"
    "diplomatic mission sent|office held by head of state|reason for lake lost|product made|shown with features|"
    "set in period|permanent duplicated item|history of topic|topic of history|see also|list of works|"
    "reason for deprecation|discography",
)


@pytest.mark.parametrize("label", [*FITTING, *OTHERS, ""])
def test_a_relation_that_is_not_known_is_worded_after_its_label_if_that_reads_right(label: str) -> None:
    how = find_template("P987654", label)
    # unknown whether it can change: a new value is not an update
    expected = RelationTemplate(f"The {label} of [X] is [Y].", f"What is the {label} of [X]?", lasting=True)
    assert how == (expected if label in FITTING else None)


def test_what_is_true_of_a_relation_is_true_in_every_language() -> None:
    for relation, how in templates("en").items():
        german = templates("de")[relation]
        assert (german.lasting, german.ends_with_life) == (how.lasting, how.ends_with_life), relation


def test_no_label_words_a_relation_in_german() -> None:
    """In German, "The LABEL of" needs the gender of the label."""
    assert find_template("P987654", "Bürgermeister", language="de") is None
    assert find_template("P734", "Familienname", language="de") is None
    how = worded("P36", "Hauptstadt", language="de")
    assert how.statement("Hessen") == "Die Hauptstadt von Hessen ist <extra_id_0>."
    assert how.ask("Hessen") == "Was ist die Hauptstadt von Hessen?"


# Relations about the subject's own name, and about other statements
NEVER = re.split(
    "[|]",
    "P734 family name|P735 given name|P1950 second family name in Spanish name|P2358 Roman praenomen|"
    "P2359 Roman nomen gentilicium|P2365 Roman cognomen|P2366 Roman agnomen|P91 sexual orientation|P172 ethnic group|"
    "P1050 medical condition|P453 character role|P459 determination method|P517 interaction|"
    "P654 direction relative to location|P1534 end cause|P1642 acquisition transaction|P1643 departure transaction|"
    "P1906 office held by head of state|P2241 reason for deprecation",
)


@pytest.mark.parametrize(("relation", "label"), [one.split(" ", 1) for one in NEVER])
def test_what_is_never_asked_whatever_the_words(relation: str, label: str) -> None:
    assert find_template(relation, label) is None
    assert find_template(relation, "mayor") is None
    assert find_template(relation, "mayor", {relation: "[X] has [Y] ."}) is None


def test_who_where_the_value_is_one_of_us() -> None:
    assert worded("P655", "translator").question == "Who is the translator of [X]?"
    assert worded("P85", "anthem").question == "What is the anthem of [X]?"


# The present tense would be wrong about people who left or died
TENSED = re.compile(
    r"\[X\] (?:is married|holds|plays|works|serves|uses|coaches|competes|represents|belongs|lives)"
    r"|does \[X\] (?:hold|play|work|serve|use|coach|compete|represent|belong|live)|is \[X\] (?:married|a citizen)"
)
ABOUT_PEOPLE = re.findall(
    r"P\d+",
    "P26 P27 P39 P53 P54 P97 P101 P102 P106 P108 P118 P140 P241 P264 P410 P413 P451 P463 P551 P611 P937 "
    "P1303 P1327 P1412 P1416 P1532 P2416 P2632 P6087",
)


@pytest.mark.parametrize("relation", ABOUT_PEOPLE)
def test_of_people_no_verb_says_when(relation: str) -> None:
    how = worded(relation)
    assert not TENSED.search(f"{how.cloze} {how.question}")


@pytest.mark.parametrize("relation", re.findall(r"P\d+", "P39 P54 P106 P108 P136 P140 P264 P407 P463 P551 P1412"))
def test_of_several_values_one_is_not_the_value(relation: str) -> None:
    how = worded(relation)
    assert how.cloze.startswith(("A ", "An "))
    assert " the " not in how.question.partition("[X]")[0]


IN_LIFE = {*re.findall(r"P\d+", "P26 P39 P54 P102 P108 P118 P413 P463 P551 P937 P1532 P4100 P6087")}


def test_what_ends_with_life() -> None:
    others = {"P19", "P20", "P27", "P106", "P140", "P410", "P1412", "P166"}
    assert {of for of in IN_LIFE | others if worded(of, "parliamentary group").ends_with_life} == IN_LIFE
    assert worded("P54", lama={"P54": "[X] plays with [Y] ."}).ends_with_life


# Births, awards and education never change; governments, homes and teams do
@pytest.mark.parametrize(
    ("relation", "lasting"),
    [(relation, True) for relation in ("P19", "P166", "P57", "P69", "P31", "P40", "P1038", "P53", "P30", "P206")]
    + [(relation, False) for relation in ("P6", "P54", "P39", "P36", "P131", "P551", "P26", "P106", "P505", "P163")],
)
def test_relations_that_last(relation: str, lasting: bool) -> None:
    assert worded(relation, "flag").lasting is lasting


def test_lamas_templates_word_the_cloze_where_there_is_one() -> None:
    lama = {"P36": "[X] , capital : [Y] .", "P19": "[Y] is where [X] was born ."}
    capital, birth, coach = (worded(relation, lama=lama) for relation in ("P36", "P19", "P286"))
    assert capital.statement("[Y]") == "[Y] , capital : <extra_id_0> ."
    assert birth.statement("Ann") == "<extra_id_0> is where Ann was born ."
    assert birth.lasting
    assert "born" in birth.question
    assert coach == find_template("P286", "")


def test_the_relations_of_invariantlama_have_words() -> None:
    assert all(find_template(relation, "") for relation in RELATIONS)


def test_our_words_are_not_lamas(shared_data: Path) -> None:
    """LAMA's templates are CC BY-NC, ours are not."""
    lama = (json.loads(line) for line in (shared_data / "lama" / "relations.jsonl").open(encoding="utf-8"))
    theirs = {record["template"].replace(" .", ".").casefold() for record in lama}
    assert len(theirs) > 30
    assert theirs.isdisjoint(how.cloze.casefold() for how in templates("en").values())


@pytest.mark.parametrize(
    ("label", "reason"),
    [
        ("Ann [X] </script> 🎉", None),
        ("<extra_id_> <extra_id_x>", None),
        ("a <extra_id_0> b", "label_with_sentinel"),
        ("<extra_id_123>", "label_with_sentinel"),
        *((label, "label_with_control_character") for label in ("a\0b", "a\x1b[0m", "a\x7f", "a\x85", "\u200fa")),
        *((f"a{chr(c)}b", "label_with_control_character") for c in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))),
        ("a\u200db", None),  # a joiner, which emoji and many scripts need
    ],
)
def test_labels_that_no_cloze_can_hold(label: str, reason: str | None) -> None:
    assert unsafe_label(label) == reason


@pytest.mark.parametrize("space", [" ", "  ", "\t", "\r\n", "\u00a0", "\u2028", "\u2029", "\u3000", "\x85", "\v"])
def test_white_space_of_any_kind_is_one_space(space: str) -> None:
    assert one_line(f"{space}a{space}b{space}") == "a b"
