"""An answer is the first sentence of a generated text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalwiki.eval_harness.answers import answer, ended

LONG = ("EE", "ул", "12", "XI", "War ", ". ", ".\n", "St", "Mr", "..", "D.C.", "3.5", "東京", " The ")
PARTS = (*LONG, *"۔．\u2028aBIcé.。\uff1f?!\n \t1")
WORDS = st.lists(st.sampled_from(PARTS), max_size=8).map("".join)


@pytest.mark.parametrize(
    ("continuation", "expected", "over"),
    [
        # texts where a sentence ends
        (" Easton. The", "Easton", True),
        (" Easton.\nThe", "Easton", True),
        (" Easton\nThe", "Easton", True),
        (" Easton\r\nThe", "Easton", True),
        (" Easton, Norland. It", "Easton, Norland", True),
        ("Who? Anna", "Who", True),
        ("Go! Anna", "Go", True),
        ("\n\n Easton\n", "Easton", True),
        (" Easton... The", "Easton", True),
        ("東京。首都", "東京", True),
        ("東京!首都", "東京!首都", False),
        ("東京\uff01首都", "東京", True),  # an exclamation mark of full width
        ("दिल्ली। यह", "दिल्ली", True),
        # texts where it does not end
        ("St. Louis. It", "St. Louis", True),
        ("Mt. Everest", "Mt. Everest", False),
        ("Dr. A. B. Weber", "Dr. A. B. Weber", False),
        ("É. Zola. He", "É. Zola", True),
        ("Washington, D.C. is", "Washington, D.C. is", False),
        ("the U.S. Army. It", "the U.S. Army", True),
        ("at 5 p.m. on", "at 5 p.m. on", False),
        ("3.5 km. It", "3.5 km", True),
        ("No. 5", "No. 5", False),
        ("Bono. He", "Bono", True),  # "no" within a word is not a title
        ("Yahoo!", "Yahoo", False),  # a space may follow, or another letter
        ("example.org is", "example.org is", False),
        # names that end as an initial or a title does, before a word that begins a sentence
        ("World War I. The war", "World War I", True),
        ("World War I. Germany lost", "World War I", True),  # no name has "War I." in it
        ("World War II. Germany lost", "World War II", True),
        ("Elizabeth I. She reigned", "Elizabeth I", True),
        ("Elizabeth I. Mary was", "Elizabeth I. Mary was", False),  # as in "Edward I. Koch was"
        ("Malcolm X. He was", "Malcolm X", True),
        ("Malcolm X. He", "Malcolm X", False),  # "Malcolm X. Hendricks" may follow, but nothing does
        ("Malcolm X. Hendricks", "Malcolm X. Hendricks", False),
        ("Washington, D.C. It is", "Washington, D.C", True),
        ("the U.S. In 1990", "the U.S", True),
        ("12 Main St. They moved", "12 Main St", True),
        ("Sammy Davis Jr. This man", "Sammy Davis Jr", True),
        ("Malcolm X.\nHe was", "Malcolm X", True),
        # names that go on
        ("J. R. R. Tolkien. He", "J. R. R. Tolkien", True),
        ("George W. Bush. In 2000 he", "George W. Bush", True),
        ("Warner Bros. Records. It", "Warner Bros. Records", True),
        ("1. FC Köln. The club", "1. FC Köln", True),
        ("\n1. FC Köln", "1. FC Köln", False),
        ("12. SS-Panzer-Division. It", "12. SS-Panzer-Division", True),
        ("9. The planets", "9", True),
        ("in 1990. FC Köln won", "in 1990", True),
        # full stops and line ends of all scripts
        ("دہلی۔ یہ", "دہلی", True),
        ("አዲስ አበባ። ከተማ", "አዲስ አበባ", True),
        ("Երևան։ Նա", "Երևան", True),
        ("ភ្នំពេញ។ វា", "ភ្នំពេញ", True),
        ("ရန်ကုန်။ ဒါ", "ရန်ကုန်", True),
        ("القاهرة؟ نعم", "القاهرة", True),
        ("東京｡首都", "東京", True),
        ("東京．首都", "東京", True),
        ("काशी॥ यह", "काशी", True),
        ("３．５ km", "３．５ km", False),
        ("東京．", "東京", False),  # a digit may follow
        ("Paris\u2028Le", "Paris", True),
        ("Paris\u2029Le", "Paris", True),
        ("Paris\x85Le", "Paris", True),
        # titles and ordinals of other languages
        ("3. Oktober 1990. Danach", "3. Oktober 1990", True),
        ("am 3. Oktober. Danach", "am 3. Oktober", True),
        ("im 19. Jahrhundert. Er", "im 19. Jahrhundert", True),
        ("den 3. mai 1990. Han", "den 3. mai 1990", True),
        ("XIX. yüzyıl. Bu", "XIX. yüzyıl", True),
        ("v 2. století. Pak", "v 2. století", True),
        ("on page 3. Then he", "on page 3", True),
        ("on page 3. Then", "on page 3", False),
        ("am 3. Okt", "am 3. Okt", False),
        ("he scored 12. Messi ran", "he scored 12", True),
        ("ул. Ленина. Он", "ул. Ленина", True),
        ("собор св. Петра. Он", "собор св. Петра", True),
        ("kościół św. Anny. To", "kościół św. Anny", True),
        ("डॉ. राम। वे", "डॉ. राम", True),
        ("ул.", "ул", False),
        ("Mme. Curie. Elle", "Mme. Curie", True),
        ("los EE. UU. de América. Luego", "los EE. UU. de América", True),
        ("EE. UU. Luego él", "EE. UU", True),
        ("los EE. UU", "los EE. UU", False),
        # texts without an end
        ("Easton", "Easton", False),
        ("Easton.", "Easton", False),
        (" Easton ", "Easton", False),
        ("Easton .", "Easton", False),
        ("", "", False),
        (" \n\t ", "", False),
        ("...", "", False),
        (". Easton", "", True),
    ],
)
def test_the_first_sentence(continuation: str, expected: str, over: bool) -> None:
    assert (answer(continuation), ended(continuation)) == (expected, over)


@given(WORDS, WORDS)
def test_what_follows_an_end_changes_nothing(said: str, more: str) -> None:
    if ended(said):
        assert ended(said + more)
        assert answer(said + more) == answer(said)


@given(WORDS)
def test_an_answer_is_one_stripped_line_of_what_was_said(said: str) -> None:
    found = answer(said)
    assert found in said
    assert found == found.strip()
    assert "\n" not in found
