"""Which sentences count as the same, and which are alike."""

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from temporalwiki.builders.wikipedia import novelty
from temporalwiki.builders.wikipedia.novelty import COMPARISONS, folded_key, letters, not_alike
from temporalwiki.builders.wikipedia.sentences import sentence_key

import reference

SAME = {
    "full stops in a word": ("The U.S. won.", "The US won"),
    "initials": ("J. R. R. Tolkien wrote it.", "J.R.R. Tolkien wrote it."),
    "initials with and without a blank": ("Washington, D. C., is old.", "Washington, DC is old."),
    "dashes": ("In 2019–20 it rose.", "In 2019-20 it rose."),
    "a dash for a blank": ("A well-known man.", "A well known man."),
    "a dash between words": ("It rose—again.", "It rose – again."),
    "quotes": ("“Hello”, he said.", '"Hello," he said.'),
    "single quotes": ("He said 'yes'.", "He said yes."),
    "apostrophes": ("It’s Hawaiʻi.", "It's Hawai'i."),
    "case": ("Sergeant Doe of the STRASSE.", "sergeant doe of the straße."),
    "a blank before a unit": ("It is 10 km long.", "It is 10km long."),
    "a blank after a comma": ("Red,green.", "Red, green."),
    "a blank before a percent sign": ("It is 5 %.", "It is 5%."),
    "an ellipsis": ("Wait...what", "Wait… what"),
    "minus signs": ("It is −5 °C.", "It is –5 °C."),
    "decades": ("The '90s and the 1960's.", "The 90s and the 1960s."),
    "brackets": ("Alpha (or beta).", "Alpha, or beta."),
    "Japanese punctuation": ("「東京」は、大きい。", "東京は大きい"),
    "blanks around the dash of a range": ("It ran 1990–95.", "It ran 1990 - 95."),
}
DIFFERENT = {
    "another year": ("It fell in 2019.", "It fell in 2020."),
    "a decimal point": ("It is 1.5 high.", "It is 15 high."),
    "a decimal comma": ("It is 1,5 high.", "It is 15 high."),
    "a leading point": ("It is .5 high.", "It is 5 high."),
    "a sign": ("It is -5 there.", "It is 5 there."),
    "a sign before a currency": ("It made −$5 a day.", "It made $5 a day."),
    "a ratio": ("They are 1:3 there.", "They are 13 there."),
    "a score": ("They won 5–3 there.", "They won 53 there."),
    "two numbers": ("It has 2 1 of it.", "It has 21 of it."),
    "an exponent": ("It is 10⁶ high.", "It is 106 high."),
    "an exponent's sign": ("It is 1e-5 high.", "It is 1e5 high."),
    "a percent sign": ("It is 5% there.", "It is 5 there."),
    "a currency": ("It is $5 there.", "It is 5 there."),
    "a plus or sharp sign": ("He uses C++ there.", "He uses C# there."),
    "a word that a dash keeps apart": ("He re-signed.", "He resigned."),
    "an accent": ("The résumé.", "The resume."),
    "a vowel sign": ("यह कि है", "यह की है"),
    "a word": ("He won it.", "She won it."),
}


@pytest.mark.parametrize(("one", "other"), SAME.values(), ids=SAME)
def test_typography_is_no_change(one: str, other: str) -> None:
    assert folded_key(one) == folded_key(other)
    assert sentence_key(one) != sentence_key(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT.values(), ids=DIFFERENT)
def test_what_a_sentence_says_is_a_change(one: str, other: str) -> None:
    assert folded_key(one) != folded_key(other)


@pytest.mark.parametrize("sentence", ["...", "?!", "„…“ —", "—"])
def test_a_sentence_of_punctuation_is_only_the_same_as_itself(sentence: str) -> None:
    assert folded_key(f" {sentence}\n") == sentence


PIECES = (
    "a Bé 三 あ ก क \u093f \u0301 ß İ e J. U.S. 1 ½ ² ⁶ 1.5 .5 -5 -$.5 e5 e- 1e-5 10⁶"
    " . .. ... , : / - – − ‒ ' ’ ʻ ` ´ “ ( $ € % & # ^ + ° ⁻ \u00a0 \n"
)
TEXTS = st.lists(st.sampled_from([*PIECES.split(" "), " ", " ", " "]), max_size=12).map("".join)


@given(TEXTS)
@example("a. b. c. d")
@example("x .5e-3e")
@example("J.“J.")
def test_folding_agrees_with_the_reference(text: str) -> None:
    assert folded_key(text) == reference.folded(text)


@given(TEXTS, TEXTS)
def test_equal_sentences_have_equal_letters(one: str, other: str) -> None:
    """The quick check before a comparison leaves out no sentence."""
    for key in COMPARISONS.values():
        if key(one) == key(other):
            assert letters(one) == letters(other)


SENTENCES = st.lists(st.text("abc ", max_size=12), max_size=6)


@given(SENTENCES, SENTENCES)
@example(["abc def", "x" * 10], ["abd", "x" * 6])
@example(["aaabbbbb"], ["aaaccccb ba"])
def test_alike_sentences_are_those_of_the_reference(sentences: list[str], others: list[str]) -> None:
    sentences, others = ([key for one in texts if (key := sentence_key(one))] for texts in (sentences, others))
    expected = [one for one in sentences if not any(reference.alike(one, other) for other in others)]
    assert not_alike(sentences, others) == expected


def test_alike_begins_at_six_of_ten_characters() -> None:
    assert not_alike(["abcdef1234"], ["abcdef5678"]) == []
    assert not_alike(["abcde12345"], ["abcde67890"]) == ["abcde12345"]


def test_of_very_many_sentences_each_is_compared_with_its_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    letters = "abcdefghijklmnopqrstuvwxyz"
    before = [one * 10 + other * 10 for one in letters for other in letters if one != other]
    after = [text[:-1] + "!" for text in before]
    compared: list[int] = []
    real = novelty.extractOne

    def counted(sentence: str, some: list[str], **options: object) -> object:
        compared.append(len(sentence) * sum(map(len, some)))
        return real(sentence, some, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(novelty, "extractOne", counted)
    monkeypatch.setattr(novelty, "MOST_CELLS", 1_000_000)
    assert not_alike(after, before) == []
    assert sum(compared) <= 1_000_000
    # the first is compared with others at the beginning, and not with the last
    assert not_alike(["zzzzzzzzzzyyyyyyyyy!", *after[1:]], before) == ["zzzzzzzzzzyyyyyyyyy!"]


@pytest.mark.fault("large page", "thousands of changed sentences on both sides", "compared in bounded time")
def test_comparing_takes_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(novelty, "MOST_CELLS", novelty.MOST_CELLS // 10)
    sides = [[f"{side * 40}{number} {side * 30}" for number in range(10_000)] for side in "ab"]
    began = time.process_time()
    assert not_alike(*sides) == sides[0]
    assert time.process_time() - began < 2
