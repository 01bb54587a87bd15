"""Find names and dates."""

import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalwiki.base.errors import InputError
from temporalwiki.builders.ckl import salient_spans
from temporalwiki.builders.ckl.salient_spans import Pipeline, Rules, finder, sentence_starts


def found(text: str) -> list[str]:
    return [text[start:end] for start, end in Rules()(text)]


# Finding


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        # dates
        ("it ended on 12 March 2021.", ["12 March 2021"]),
        ("it ended on March 12, 2021, at last", ["March 12, 2021"]),
        ("it ended in March 2021 or in Sept. 1998", ["March 2021", "Sept. 1998"]),
        ("on 3rd of May, on May 3 and by the 4th of July 1999", ["3rd of May", "May 3", "4th of July 1999"]),
        ("from 1914 to 1918 (1914–18), in the 1990s", ["1914", "1918", "1914–18", "1990s"]),
        ("in 44 BC and the 19th century", ["44 BC", "19th century"]),
        ("am 12. März 2021, 3 mars 1999, 4 de mayo de 2004", ["12. März 2021", "3 mars 1999", "4 de mayo de 2004"]),
        ("在2021年3月12日, 2021년 3월 12일에", ["2021年3月12日", "2021년 3월 12일"]),
        ("on 2021-03-12 it", ["2021-03-12"]),
        # numbers that are not dates
        ("about 1500 people ran 2000 km for $1999 or 1,999 or 1999.5 or 2000%", []),
        ("999, 2100, 12345 and X1999", []),
        # names
        ("then Albert Einstein met Marie Curie", ["Albert Einstein", "Marie Curie"]),
        ("at the Bank of England and the House of the Arts", ["Bank of England", "House of the Arts"]),
        ("when Charles de Gaulle met Ludwig van Beethoven", ["Charles de Gaulle", "Ludwig van Beethoven"]),
        ("under Alexander the Great in England the queen", ["Alexander the Great", "England"]),
        ("both France and Spain, Italy", ["France", "Spain", "Italy"]),
        ("in New York, for Newton's laws", ["New York", "Newton"]),
        ("with J. R. R. Tolkien, Dr. Smith, O'Hara of St. Lo", ["J. R. R. Tolkien", "Dr. Smith", "O'Hara of St. Lo"]),
        ("by Jean-Paul, AT&T, al-Qaeda and d'Artagnan", ["Jean-Paul", "AT&T", "al-Qaeda", "d'Artagnan"]),
        ("when Apollo 11 flew in World War II", ["Apollo 11", "World War II"]),
        ("the U.S. forces in the U.S. The army", ["U.S.", "U.S."]),
        ("his iPhone said that I am in Москва, Ελλάδα", ["iPhone", "Москва", "Ελλάδα"]),
        ("a French-speaking, anti-American man", ["French", "American"]),
        # the first word of a sentence
        ("Physics is old. However it is. The end", []),
        ("Rain fell. In Paris it fell. Paris slept.", ["Paris", "Paris"]),
        ("Former president Bush. A former Bush. Former Presidents", ["Bush", "Bush", "Presidents"]),
        ("Albert Einstein lived. NASA flew. U.S. forces left.", ["Albert Einstein", "NASA", "U.S."]),
        ("he said: \"Nobody came\" and \"Some Bob\"", ["Bob"]),
        ("Members of Parliament met the members", ["Parliament"]),
        ("he fought in World War I. The war", ["World War I"]),
        ("", []),
    ],
)  # fmt: skip
def test_the_rules_find(text: str, spans: list[str]) -> None:
    assert found(text) == spans


@pytest.mark.parametrize(
    ("text", "starts"),
    [
        ("One. Two! “Three?” Four… Five", ["Two", "“Three", "Four", "Five"]),
        ("St. Louis, J. Doe, no. 5, etc. and 3.5 of it", []),
        ("one. two", []),
        ("A\nb\n\nC", ["b", "C"]),
        ("一。二！三", ["二", "三"]),
        ("One.  ", []),
    ],
)
def test_sentences_begin(text: str, starts: list[str]) -> None:
    at = sentence_starts(text)
    assert [text[start:].startswith(word) for start, word in zip(at, starts, strict=True)] == [True] * len(starts)


HOSTILE = [
    *("A ", "St. ", "1999 ", "A-", "A.", "((", "\n", ". ", "。「", "a", "É́", "12 de ", "12 March ", "A of the "),
    *("U.S. ", '"A ', "al-", "l'", "1999-", "X&", "\u00a0", "<extra_id_0>", '."', "1 "),
]


@given(st.lists(st.sampled_from([*HOSTILE, "Paris", " ", "the ", ". The ", "ſ", "ǅ", "İ", "🙂", "\0"])).map("".join))
def test_whatever_the_text_spans_are_in_order_and_within_it(text: str) -> None:
    spans = Rules()(text)
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
    assert all(text[start:end] == text[start:end].strip() for start, end in spans)


@pytest.mark.parametrize("piece", HOSTILE)
def test_the_rules_take_linear_time(piece: str) -> None:
    def seconds(length: int) -> float:
        text = (piece * length)[:length]
        taken = []
        for _ in range(3):  # the fastest: what else the machine does only adds
            begun = time.process_time()
            Rules()(text)
            taken.append(time.process_time() - begun)
        return min(taken)

    assert seconds(80_000) < max(16 * seconds(10_000), 0.5)  # twice what is linear; the square would be 64 times


def test_a_pipeline_of_spacy_finds(tmp_path: Path) -> None:
    spacy = pytest.importorskip("spacy")
    pipeline = spacy.blank("en")
    ruler = pipeline.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "GPE", "pattern": "Paris"}, {"label": "MONEY", "pattern": "5 francs"}])
    pipeline.to_disk(tmp_path / "small")
    find = finder(str(tmp_path / "small"))
    assert isinstance(find, Pipeline)
    text = "Paris costs 5 francs.\n\nIn Paris too.\n" + "no more " * 9 + "Paris"
    expected = [(at, at + 5) for at in (0, 26, len(text) - 5)]
    assert find(text) == expected
    find._nlp.max_length = 40  # what is longer goes in pieces
    assert find(text) == expected
    assert "".join(text[start:end] for start, end in salient_spans.pieces(text, 40)) == text

    again = finder(str(tmp_path / "small"))
    ruler.add_patterns([{"label": "GPE", "pattern": "Rome"}])
    pipeline.to_disk(tmp_path / "other")
    assert isinstance(again, Pipeline)
    assert again.key == find.key != finder(str(tmp_path / "other")).key != Rules.key


def test_a_pipeline_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    spacy = pytest.importorskip("spacy")
    spacy.blank("en").to_disk(tmp_path / "blank")
    (tmp_path / "other").mkdir()
    for spans, message in (
        ("en_core_web_xxl", "no such spaCy pipeline, nor a folder with one; python -m spacy download en_core_web_xxl"),
        ("ruls", "did you mean rules"),
        (str(tmp_path / "blank"), "finds no entities"),
        (str(tmp_path / "other"), "spaCy cannot load it"),
    ):
        with pytest.raises(InputError, match=message) as raised:
            finder(spans)
        assert "\n" not in str(raised.value)


def test_missing_spacy_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(InputError, match="spaCy is not installed; pip install spacy, or use --spans rules"):
        finder("en_core_web_sm")
    assert isinstance(finder(), Rules)
