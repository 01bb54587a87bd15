"""An article's wikitext as paragraphs of sentences: what Algorithm 1 compares.

A paragraph is a list of sentences. The items of a list are one paragraph; a sentence that opens a new line of it
carries that line break in front, so that joining gives the lines back.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType

import sentencex

from temporalwiki.builders.wikipedia.plain_text import UnreadablePage, paragraphs

Paragraph = list[str]

# No page of any dump read so far needed a second. The text step is linear and bounded by its own rules, so this
# is only the net under them.
SECONDS = 60.0


def article_sentences(wikitext: str, language: str, namespaces: Mapping[str, int] | None = None) -> list[Paragraph]:
    """Paragraphs of sentences of an article, NFC, white space folded.

    Raises UnreadablePage with a reason for a page that cannot be read or takes longer than SECONDS.
    """
    with _time_limit(SECONDS):
        split = [split_sentences(paragraph, language) for paragraph in paragraphs(wikitext, namespaces=namespaces)]
    return [sentences for sentences in split if sentences]


def split_sentences(paragraph: str, language: str) -> Paragraph:
    """Sentences of one paragraph, in order; nothing but white space is lost."""
    sentences: Paragraph = []
    for number, line in enumerate(paragraph.split("\n")):
        opening = "\n" if number and sentences else ""
        for sentence in sentencex.segment(language, line):
            if folded := " ".join(sentence.split()):
                sentences.append(opening + folded)
                opening = ""
    return sentences


def join_sentences(sentences: Sequence[str]) -> str:
    """Text of a paragraph: sentences joined by one space, lines of a list by a line break."""
    return " ".join(sentences).replace(" \n", "\n").strip()


def join_paragraphs(paragraphs: Sequence[Paragraph]) -> str:
    """Text of an article: paragraphs joined by a blank line."""
    return "\n\n".join(join_sentences(sentences) for sentences in paragraphs)


def sentence_key(sentence: str) -> str:
    """What two equal sentences have in common: NFC, white space folded."""
    return " ".join(unicodedata.normalize("NFC", sentence).split())


@contextlib.contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # signals reach the main thread only; the text step's own bounds still hold
        return

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise UnreadablePage("takes_too_long")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
