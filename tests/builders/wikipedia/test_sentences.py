"""Sentences: what Algorithm 1 compares."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from multiprocessing.connection import Connection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalwiki.builders.wikipedia import sentences
from temporalwiki.builders.wikipedia.plain_text import UnreadablePage
from temporalwiki.builders.wikipedia.sentences import (
    article_sentences,
    join_paragraphs,
    join_sentences,
    sentence_key,
    sentences_without_formula,
    split_sentences,
)

SPLITS = {
    "two sentences": ("He came. He saw.", ["He came.", "He saw."]),
    "decimals": ("It is 3.5 million. It grows.", ["It is 3.5 million.", "It grows."]),
    "initials": ("J. R. Smith wrote it. He died.", ["J. R. Smith wrote it.", "He died."]),
    "St. and U.S.": ("St. Anne's in the U.S. is old. It stands.", ["St. Anne's in the U.S. is old.", "It stands."]),
    "a number after an abbreviation": ("It weighs approx. 3.5 tonnes.", ["It weighs approx. 3.5 tonnes."]),
    "volumes": ("See vol. 7 (no. 3). It says so.", ["See vol. 7 (no. 3).", "It says so."]),
    "a title with a question mark": ("Do Androids Dream? and others.", ["Do Androids Dream? and others."]),
    "questions": ("Who? Nobody knows.", ["Who?", "Nobody knows."]),
    "brackets around a sentence": (
        "(He died.) She lived (until 1818.) The farm stood.",
        ["(He died.)", "She lived (until 1818.)", "The farm stood."],
    ),
    "brackets inside one": ("He died (in 1818.) and she lived.", ["He died (in 1818.) and she lived."]),
    "etc. at an end": (
        "They drank tea, etc. She drank milk, etc. in bed.",
        ["They drank tea, etc.", "She drank milk, etc. in bed."],
    ),
    "a quotation after a sentence": (
        'It rose. "On average we find it." He left.',
        ["It rose.", '"On average we find it."', "He left."],
    ),
    "an enumeration in a sentence": (
        "Ranked as 1. Lincoln; 2. Washington; and 3. Roosevelt, he said.",
        ["Ranked as 1. Lincoln; 2. Washington; and 3. Roosevelt, he said."],
    ),
    "a number at an end": ("It stood with 8 and 9. This led to it.", ["It stood with 8 and 9.", "This led to it."]),
    "a day of a month": ("It was November 1. Roosevelt left.", ["It was November 1.", "Roosevelt left."]),
    "the time of day": ("At 12:30 a.m. 365 days a year. Always.", ["At 12:30 a.m. 365 days a year.", "Always."]),
    "a raised digit after a unit": ("It bears 300 lbf/in.² Adobe is old.", ["It bears 300 lbf/in.²", "Adobe is old."]),
    "a court case": ("Roe v. Wade was a case.", ["Roe v. Wade was a case."]),
    "a list keeps its lines": ("One item\nTwo items. Two sentences", ["One item", "\nTwo items.", "Two sentences"]),
    "white space is folded": ("  He   came.  \t He saw. ", ["He came.", "He saw."]),
    "a long quotation": (
        'The man said: "It was an old house that nobody wished to buy in many years. It was cold in all of its rooms '
        'and halls. Nobody at all came to see us there. We took the long road home at once," and left them. “It was '
        "late, and so we went on to the end of it. We were all tired, and yet nobody complained. At last we saw the "
        "lights of a village in the dark. There was still a light in the inn, and so we knocked. It was the end.” He "
        "died.",
        [
            'The man said: "It was an old house that nobody wished to buy in many years.',
            "It was cold in all of its rooms and halls.",
            "Nobody at all came to see us there.",
            'We took the long road home at once," and left them.',
            "“It was late, and so we went on to the end of it.",
            "We were all tired, and yet nobody complained.",
            "At last we saw the lights of a village in the dark.",
            "There was still a light in the inn, and so we knocked.",
            "It was the end.”",
            "He died.",
        ],
    ),
    "a short quotation": ('He said: "It is. It was." He left.', ['He said: "It is. It was."', "He left."]),
    "a formula that plain text cannot show": (
        "It holds. Let \x08 be one. It is\nwhere \x08 is one\nTwo \x08. Three",
        ["It holds.", "It is", "\nThree"],
    ),
    "nothing": ("  ", []),
}


@pytest.mark.parametrize("case", SPLITS)
def test_a_paragraph_is_split_into_sentences(case: str) -> None:
    paragraph, expected = SPLITS[case]
    assert split_sentences(paragraph, "en") == expected


JOINED = {
    "spaces": (["A b.", "C d."], "A b. C d."),
    "lines of a list": (["A b.", "\nC d.", "E."], "A b.\nC d. E."),
    "Japanese": (["東京は大きい。", "2020年に「はい」", "次。"], "東京は大きい。2020年に「はい」次。"),
    "Chinese": (["北京很大。", "\n人口很多。", "好。"], "北京很大。\n人口很多。好。"),
    "Japanese after Latin letters": (["It is Foo Inc.", "東京。", "It is."], "It is Foo Inc. 東京。It is."),
    "Korean has spaces": (["서울은 크다", "사람이 많다.", "다음"], "서울은 크다 사람이 많다. 다음"),
    "Thai has spaces between sentences": (["กรุงเทพ", "ใหญ่"], "กรุงเทพ ใหญ่"),
}


@pytest.mark.parametrize("case", JOINED)
def test_sentences_are_joined_as_their_script_has_it(case: str) -> None:
    sentences, expected = JOINED[case]
    assert join_sentences(sentences) == expected


def test_a_quotation_mark_in_japanese_ends_a_sentence() -> None:
    assert split_sentences("『日本は古い。寒い。』と言った。次の文。", "ja")[-1] == "次の文。"
    assert not any(sentence.startswith("』") for sentence in split_sentences("『古い。寒い。』と言った。次。", "ja"))


def test_sentences_that_lost_a_formula_are_counted() -> None:
    assert sentences_without_formula("It holds. Let \x08 be \x08.\nIt is\nTwo \x08.", "en") == 2
    assert sentences_without_formula("It holds.", "en") == 0


@given(st.text("abA.?! ()\"'“”«»3\né漢", max_size=400))
def test_nothing_but_white_space_is_lost(paragraph: str) -> None:
    split = split_sentences(paragraph, "en")
    assert "".join("".join(split).split()) == "".join(paragraph.split())
    assert all(sentence.strip() for sentence in split)
    assert "".join(join_sentences(split).split()) == "".join(paragraph.split())


@given(st.text("ab“ «.", min_size=1, max_size=200), st.integers(1, 50))
def test_a_line_of_any_length_is_cut_where_it_must_be(line: str, longest: int) -> None:
    before, sentences.LONGEST_LINE = sentences.LONGEST_LINE, longest
    try:
        split = split_sentences(line, "en")
    finally:
        sentences.LONGEST_LINE = before
    assert "".join("".join(split).split()) == "".join(line.split())


@pytest.mark.parametrize("space", ["\x85", "\xa0", "\u2028", "\u3000"])
def test_white_space_that_makes_the_segmenter_panic_is_white_space(space: str) -> None:
    sentences = split_sentences(f"It{space}was in 1999. He was R{space}.", "en")
    assert sentences == ["It was in 1999.", "He was R ."]


def test_a_line_that_the_segmenter_is_slow_on_is_split_in_pieces() -> None:
    split = split_sentences("“" * 400_000, "en")
    assert sum(map(len, split)) == 400_000


def test_a_sentence_that_goes_on_a_million_times_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every cut of the segmenter is mended; what is joined is not copied again for each."""
    monkeypatch.setattr(sentences.sentencex, "segment", lambda _language, line: line.split(" "))
    assert split_sentences("He " + "went. " * 1_000_000, "en") == ["He " + " ".join(["went."] * 1_000_000)]


def test_lines_and_paragraphs_come_back_when_joined() -> None:
    article = "Some prose. And more.\n\n* one\n* two. three\n\nLast."
    paragraphs = article_sentences(article, "en")
    assert paragraphs == [["Some prose.", "And more."], ["one", "\ntwo. three"], ["Last."]]
    assert join_paragraphs(paragraphs) == "Some prose. And more.\n\none\ntwo. three\n\nLast."
    assert join_paragraphs([["\ntwo. three"]]) == "two. three"


def test_equal_sentences_have_equal_keys() -> None:
    assert sentence_key("\nCafe\u0301  Noir ") == sentence_key("Caf\u00e9\u00a0Noir") == "Caf\u00e9 Noir"


@pytest.mark.fault("large page", "a page that takes more than a minute", "dropped by reason")
def test_a_page_that_takes_too_long_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    def forever(wikitext: str, **_options: object) -> list[str]:
        while True:
            wikitext += ""

    monkeypatch.setattr(sentences, "paragraphs", forever)
    monkeypatch.setattr(sentences, "SECONDS", 0.05)
    with pytest.raises(UnreadablePage) as problem:
        article_sentences("x", "en")
    assert problem.value.reason == "takes_too_long"
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)


def _read_slowly(connection: Connection) -> None:
    with sentences.time_limit(0.3):
        connection.send("begun")
        connection.recv()
    connection.send("read")


@pytest.mark.fault(
    "large page", "a build is paused for longer than the time limit of a page, then continued", "the page is read"
)
def test_a_page_at_which_the_process_was_stopped_is_read() -> None:
    """A laptop that sleeps, Ctrl-Z: what counts is the time of the processor."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_read_slowly, args=(theirs,))
    process.start()
    assert ours.recv() == "begun"
    assert process.pid is not None
    os.kill(process.pid, signal.SIGSTOP)
    time.sleep(0.5)
    os.kill(process.pid, signal.SIGCONT)
    ours.send("go on")
    theirs.close()
    process.join()
    assert process.exitcode == 0
    assert ours.recv() == "read"
