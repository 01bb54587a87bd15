"""Alignment with text and the filters on single facts."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalwiki.builders.wikidata.align import _align, _ArticleText, _is_strict, _Page, filtered, says
from temporalwiki.builders.wikidata.cues import cues_of
from temporalwiki.builders.wikidata.support import Names, occurrences
from temporalwiki.builders.wikipedia.titles import title_hash

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
    "a vowel sign after it": ("वह रामायण पढ़ता है", "राम", False),
    "a vowel sign within it": ("वे पीते हैं", "पत", False),
    "a label that ends in a vowel sign": ("मोहन के पिता आए", "पिता", True),
    "a Tamil sign after it": ("அவர் மதுரையில்", "மதுர", False),
    "a Bengali sign after it": ("ঢাকার মানুষ", "ঢাকা", False),
    "a Thai vowel sign after it": ("เมืองที่", "เมืองท", False),
    "an Arabic vowel after it": ("كتبَ", "كتب", False),
    "an invisible mark in the label": ("He was in Newton.", "Newton\u200e", True),
    "a soft hyphen in the text": ("He was in New\u00adton.", "Newton", True),
    "a joiner in the text": ("او در می\u200cخواهم بود", "میخواهم", True),
    "a curly apostrophe": ("the Côte d’Or", "Côte d'Or", True),
    "an okina": ("on Hawaiʻi now", "Hawai'i", True),
    "an Armenian apostrophe": ("the d՚Or", "d’Or", True),
    "a hyphen that does not break": ("in Saint‑Paul", "Saint-Paul", True),
    "a hyphen of its own": ("in Saint‐Paul", "Saint-Paul", True),
    "a minus sign": ("at −5 degrees", "-5", True),
    "blanks between initials": ("by J. R. R. Tolkien", "J.R.R. Tolkien", True),
    "no blanks between initials": ("by J.R.R. Tolkien", "J. R. R. Tolkien", True),
    "initials in another script": ("А. С. Пушкин писал", "А.С. Пушкин", True),
    "a blank that does not break": ("in Port\u00a0Dee", "Port Dee", True),
    "a narrow blank": ("1\u202f000 people", "1 000", True),
    "a version": ("Its version is 3.1 (2026-04-01).", "3.1", True),
    "a version that ends the sentence": ("Its version is 3.1.", "3.1", True),
    "a version that is all": ("1.", "1", True),
    "a part of a version": ("Its version is 3.1.4.", "3.1", False),
    "the end of a version": ("Its version is 2.3.1.", "3.1", False),
    "a longer last number": ("Its version is 3.12.", "3.1", False),
    "a date": ("It ends on 2026-04-01.", "2026-04-01", True),
    "a part of a date": ("It ends on 2026-04-01.", "2026-04", False),
    "a build": ("Its version is 21.0.11+10.", "21.0.11", False),
    "a part of a number": ("It has 1,204 rooms.", "204", False),
    "a year in a span": ("the years 2019–2020", "2020", True),
    "a name before a number": ("In Rome, 3-1 was enough", "Rome", True),
}


@pytest.mark.parametrize(("sentence", "label", "expected"), SAYS.values(), ids=SAYS)
def test_a_sentence_says_a_label_as_whole_words(sentence: str, label: str, expected: bool) -> None:
    assert says(sentence, label) is expected


WORDS = st.text("ab Aé_.!-ß\u0301", max_size=12)


@given(WORDS, WORDS.filter(bool))
def test_it_agrees_with_the_reference_where_words_have_spaces(sentence: str, label: str) -> None:
    assert says(sentence, label) == reference.holds(sentence, label)


PREFIXED = {
    "Hebrew, in": ("he", "היא שוכנת בנמל", "נמל", True),
    "Hebrew, and in the": ("he", "הוא גר ובירושלים נולד", "ירושלים", True),
    "Hebrew, from the": ("he", "הוא בא מהנמל", "נמל", True),
    "Hebrew, another word": ("he", "היא בקרנמל", "נמל", False),
    "Hebrew, a longer word": ("he", "הנמלים", "נמל", False),
    "Hebrew, a short name": ("he", "בגן", "גן", False),
    "Arabic, the": ("ar", "زار القاهرة", "قاهرة", True),
    "Arabic, and": ("ar", "هو ودمشق", "دمشق", True),
    "Arabic, to the": ("ar", "ذهب للقاهرة", "قاهرة", True),
    "Arabic, in the": ("ar", "يسكن بالقاهرة", "قاهرة", True),
    "Arabic, another word": ("ar", "يسكن مدمشق", "دمشق", False),
    "another language": ("fa", "ودمشق", "دمشق", False),
}


@pytest.mark.parametrize("case", PREFIXED)
def test_short_words_before_a_name_are_not_part_of_it(case: str) -> None:
    language, sentence, label, expected = PREFIXED[case]
    assert bool(list(occurrences(sentence, label, language))) is expected
    assert bool(list(Names(label, None, (), language).find(sentence, sentence))) is expected


FILTERED = {
    ("Côte d’Or", "Côte d'Or department"): "subject_and_object_overlap",
    ("Rome", "Rome metro"): "subject_and_object_overlap",
    ("Rome metro", "rome"): "subject_and_object_overlap",
    ("Ann", "one two three four five"): None,
    ("Ann", "one two three four five six"): "object_longer_than_5_words",
    ("Ann", "Roma"): None,
}


@pytest.mark.parametrize(("subject", "obj"), FILTERED)
def test_filters_1_and_2(subject: str, obj: str) -> None:
    assert filtered(subject, obj) == FILTERED[subject, obj]


def aligned(
    sentences: list[str], split: str = "deleted", mentioned_before: bool = False, **more: Any
) -> dict[str, Any]:
    """The fact that Ann was born in Marn, aligned with the sentences of her page."""
    article: Any = SimpleNamespace(links=[], link_texts=frozenset(), places={})
    texts = {split: _ArticleText("Ann", 1, sentences, article)}
    page: Any = SimpleNamespace(
        texts=texts.get,
        cues=lambda number: cues_of(number, (), "en"),
        mentioned_before=lambda _row: mentioned_before,
        language="en",
    )
    row = {"subject": "Ann", "relation": "place of birth", "object": "Marn", "split": split, "p": 19}
    others = {"object_title": None, "subject_aliases": [], "current": True, "dated": "undated", "kind": "new_relation"}
    others |= {"gone_objects": [], "previous_objects": [], "objects": ["Marn"]}
    return _align(row | others | more, page)


BORN, RAIN = "Ann was born in Marn.", "It rained in Marn."


@pytest.mark.parametrize(("place", "support"), [(40, "stated"), (41, "mentioned")])
def test_the_first_40_sentences_that_name_the_object_are_compared(place: int, support: str) -> None:
    sentences = [f"In {year} it rained in Marn." for year in range(1900, 1900 + place - 1)]
    assert aligned([*sentences, BORN])["support"] == support


EVIDENCE = {
    "the first of equals": ([RAIN, "It snowed in Marn."], RAIN),
    "a better one later": ([RAIN, BORN], BORN),
    "the first of the best": ([RAIN, BORN, "Ann was born near Marn."], BORN),
}


@pytest.mark.parametrize(("sentences", "expected"), EVIDENCE.values(), ids=EVIDENCE)
def test_the_evidence_is_the_first_of_the_best_sentences(sentences: list[Any], expected: Any) -> None:
    assert aligned(sentences)["evidence"] == expected


NEWLY_STATED = {  # sentence, split, whether the earlier article mentions the object
    "a changed fact, stated": (BORN, "changed", False, True),
    "a changed fact, mentioned before": (BORN, "changed", True, False),
    "a changed fact that is only mentioned": (RAIN, "changed", False, False),
    "an unchanged fact": (BORN, "unchanged", False, False),
    "a deleted fact": (BORN, "deleted", False, False),
}


@pytest.mark.parametrize("case", NEWLY_STATED)
def test_a_changed_fact_is_newly_stated_if_the_earlier_article_lacks_its_object(case: str) -> None:
    sentence, split, before, expected = NEWLY_STATED[case]
    assert aligned([sentence], split, before)["newly_stated"] is expected


CHANGED = {"split": "changed", "kind": "new_object", "current": True, "dated": "undated", "respelled": False}
CHANGED |= {"gone_objects": ["Oslun"]}
STRICT: dict[str, tuple[dict[str, Any], str, bool, bool]] = {  # row, support, newly stated
    "the old object is gone": ({}, "stated", False, True),
    "as an item of a list": ({}, "list", False, True),
    "only mentioned": ({}, "mentioned", False, False),
    "not right any more": ({"current": False}, "stated", True, False),
    "no object is gone": ({"gone_objects": []}, "stated", False, False),
    "no object is gone, but newly stated": ({"gone_objects": []}, "stated", True, True),
    "no object is gone, but dated within": ({"gone_objects": [], "dated": "within"}, "stated", False, True),
    "the old object is gone, but dated before": ({"dated": "before"}, "stated", False, False),
    "dated before, and newly stated": ({"dated": "before"}, "stated", True, False),
    "dated over": ({"dated": "over"}, "stated", True, False),
    "the gone object respelled": ({"respelled": True}, "stated", True, False),
    "the gone object respelled, and dated within": ({"respelled": True, "dated": "within"}, "stated", True, False),
    "another kind, and an object is gone": ({"kind": "new_relation"}, "stated", False, False),
    "another kind, newly stated": ({"kind": "new_subject", "gone_objects": []}, "stated", True, True),
    "unchanged": ({"split": "unchanged", "kind": "unchanged", "gone_objects": []}, "stated", False, True),
    "unchanged, only mentioned": ({"split": "unchanged", "kind": "unchanged"}, "mentioned", False, False),
    "deleted": ({"split": "deleted", "kind": "replaced", "dated": "within"}, "stated", False, False),
}


@pytest.mark.parametrize("case", STRICT)
def test_a_strict_fact_is_stated_right_and_new(case: str) -> None:
    row, support, newly_stated, expected = STRICT[case]
    assert _is_strict(CHANGED | row | {"support": support}, newly_stated) is expected


RESPELLED = {  # split, gone objects, previous objects, objects
    "a gone object in another spelling": ("changed", ["Maarn"], [], True),
    "another gone object": ("changed", ["Oslun"], [], False),
    "a previous object that is no item any more": ("changed", [], ["Marns"], True),
    "a previous object that is still right": ("changed", [], ["Marn."], False),
    "no object before": ("changed", [], [], False),
    "unchanged": ("unchanged", ["Maarn"], [], False),
}


@pytest.mark.parametrize("case", RESPELLED)
def test_an_object_may_be_a_gone_one_respelled(case: str) -> None:
    split, gone, previous, expected = RESPELLED[case]
    row = aligned([BORN], split, gone_objects=gone, previous_objects=previous, objects=["Marn", "Marn."])
    assert row["respelled"] is expected
    assert row["strict"] is (split == "unchanged" or not expected)


BEFORE = {  # the earlier article, and whether it mentions Marn, whose page is "Marn (town)" and alias "MRN"
    "not at all": ("She lives by the river.", False),
    "no earlier article": (None, False),
    "by label, in any case": ("She lives in MARN.", True),
    "inside a word": ("She reads Marne.", False),
    "in a template": ("{{Infobox|birthplace=Marn}}", True),
    "by alias": ("She lives in MRN.", True),
    "by alias in another case": ("She lives in mrn.", False),
    "by a link with another text": ("She lives in [[Marn (town)|her town]].", True),
    "by label, with an invisible mark": ("She lives in Ma\u00adrn.", True),
    "by an entity": ("She lives in&nbsp;Marn&nbsp;now.", True),
    "by an escaped link": ("She lives in [[Marn%20(town)|her town]].", True),
    "by a link with another blank": ("She lives in [[Marn&nbsp;(town)|her town]].", True),
}


@pytest.mark.parametrize(("wikitext", "expected"), BEFORE.values(), ids=BEFORE)
def test_the_earlier_article_decides_what_was_mentioned_before(wikitext: str | None, expected: bool) -> None:
    prev, recent = (
        SimpleNamespace(find=lambda _page_id, text=text: None if text is None else SimpleNamespace(wikitext=text))
        for text in (wikitext, None if expected else "Marn, MRN, [[Marn (town)]]")
    )
    pages: Any = SimpleNamespace(prev=prev, recent=recent, cues=None, task=SimpleNamespace(language="en"))
    row = {"object": "Marn", "object_aliases": ["MRN"], "object_title": title_hash("Marn (town)")}
    assert _Page(pages, 1).mentioned_before(row) is expected
