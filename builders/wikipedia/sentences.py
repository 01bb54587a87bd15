"""Split an article into paragraphs of sentences, which Algorithm 1 compares.

A paragraph is a list of sentences. All items of a list are one paragraph. A sentence that opens a new line in it
starts with a line break, so that joining the sentences restores the lines.
"""

from __future__ import annotations

import contextlib
import re
import signal
import threading
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import FrameType

import sentencex

from temporalwiki.builders.wikipedia.plain_text import UnreadablePage, paragraphs
from temporalwiki.builders.wikipedia.prose_lines import FORMULA

Paragraph = list[str]
VERSION = 4  # a new version, like another version of sentencex, makes the diffs of earlier builds stale

# CPU time for one page. No page of any dump so far needed a second: this is a safety net.
SECONDS = 60.0

LONGEST_LINE = 20_000  # characters; all paragraphs of the dumps so far are far shorter
LONG_QUOTATION = 200  # characters of a sentence whose quotation is cut into its own sentences
QUOTES = frozenset('"“”„«»')
CLOSERS = frozenset(")]}.,;:!?'\"”’»」』）】》〉")
# The segmenter misses these ends of sentences: "(He died.) She lived." and "tea, etc. She drank".
_ENDS_IN_SEGMENT = re.compile(r"(?:(?<=[a-z0-9]{2}[.!?]\))|(?<=\betc\.)) +(?=[\"“]?[A-Z])")
_RAISED_AFTER_STOP = re.compile(r"([⁰¹²³⁴-⁹]+)(?: |$)")
_ENUMERATION = re.compile(r"(?:[;:]|\bas|; (?:and|or)) \d{1,2}\.$")
BEFORE_A_NUMBER = frozenset({"a.m.", "p.m.", "approx.", "art.", "c.", "ca.", "ch.", "fig.", "no.", "nos.", "nr."})
BEFORE_A_NUMBER |= {"op.", "p.", "pp.", "sec.", "vol.", "vols."}


def article_sentences(
    wikitext: str,
    language: str,
    namespaces: Mapping[str, int] | None = None,
) -> list[Paragraph]:
    """Return the paragraphs of an article as sentences, in NFC with single spaces.

    Raises UnreadablePage, with a reason, for a page that cannot be read or takes longer than SECONDS.
    """
    with time_limit(SECONDS):
        texts = paragraphs(wikitext, namespaces=namespaces, language=language)
        found = [split_sentences(text, language) for text in texts]
    return [sentences for sentences in found if sentences]


def split_sentences(paragraph: str, language: str) -> Paragraph:
    """Return the sentences of a paragraph in order, except sentences that lost a formula; no other text is lost."""
    sentences: Paragraph = []
    for number, line in enumerate(paragraph.split("\n")):
        opening = "\n" if number and sentences else ""
        for sentence in _sentences(line, language):
            if FORMULA not in sentence:
                sentences.append(opening + sentence)
                opening = ""
    return sentences


def sentences_without_formula(paragraph: str, language: str) -> int:
    """Return how many sentences of a paragraph lost a formula."""
    if FORMULA not in paragraph:
        return 0
    return sum(FORMULA in s for line in paragraph.split("\n") for s in _sentences(line, language))


def _sentences(line: str, language: str) -> Iterator[str]:
    for sentence in _mended(_segments(line, language)):
        if len(sentence) > LONG_QUOTATION and not QUOTES.isdisjoint(sentence):
            yield from _quoted_sentences(sentence, language)
        else:
            yield sentence


def _quoted_sentences(sentence: str, language: str) -> Iterator[str]:
    """Yield the sentences of a long quotation, which the segmenter does not cut, with the quotation marks around them.

    The segmenter cuts the text without quotation marks.
    """
    without = "".join(character for character in sentence if character not in QUOTES)
    start = end = 0
    for piece in _mended(_segments(without, language)):
        if end:
            yield sentence[start:end].strip()
        start, left = end, len(piece) - piece.count(" ")
        while left or (end < len(sentence) and sentence[end] in QUOTES):
            left -= sentence[end] != " " and sentence[end] not in QUOTES
            end += 1
    yield sentence[start:].strip()


def _segments(line: str, language: str) -> Iterator[str]:
    """Yield the segmenter's sentences with single spaces.

    The segmenter cannot be interrupted, and on runs of opening quotes its time grows with the square of the length: so
    very long lines are cut. White space beyond ASCII can make it panic (a letter, a no-break space, a full stop): so
    all white space becomes single spaces first.
    """
    line = " ".join(line.split())
    start = 0
    while start < len(line):
        end = start + LONGEST_LINE
        if end < len(line):
            end = max(line.rfind(" ", start + 1, end), start) if " " in line[start + 1 : end] else end
        for sentence in sentencex.segment(language, line[start:end]):
            if folded := " ".join(sentence.split()):
                yield folded
        start = end


def _mended(segments: Iterable[str]) -> Iterator[str]:
    """Yield the sentences, corrected where the segmenter cut inside a sentence or missed the end of one."""
    parts: list[str] = []  # of the current sentence; only the last one is examined, so the time stays linear
    for segment in (part for whole in segments for part in _cut_further(whole)):
        if parts and parts[-1][-2:] in (' "', " “"):  # the quote opens the next sentence
            parts[-1], segment = parts[-1][:-2], parts[-1][-1] + segment
        elif parts and (raised := _RAISED_AFTER_STOP.match(segment)):  # "in.²": it ends the sentence before
            parts[-1], segment = parts[-1] + raised[1], segment[raised.end() :]
        if not segment:
            continue
        if parts and _goes_on(parts[-1], segment):
            parts.append(segment if segment[0] in CLOSERS else f" {segment}")
            continue
        if parts:
            yield "".join(parts)
        parts = [segment]
    if parts:
        yield "".join(parts)


def _cut_further(segment: str) -> list[str]:
    if ") " in segment or "etc. " in segment:  # the pattern is ten times slower than the segmenter
        return _ENDS_IN_SEGMENT.split(segment)
    return [segment]


def _goes_on(before: str, after: str) -> bool:
    if after[0].islower() or after[0] in "」』）" or all(character in CLOSERS for character in after):
        return True
    if before[-2:-1].isdigit() and _ENUMERATION.search(
        before[-20:]
    ):  # "; and 3. Roosevelt", but not "on November 1. Roosevelt"
        return True
    return after[0].isdigit() and before.rsplit(" ", 1)[-1].lstrip("([").lower() in BEFORE_A_NUMBER


def join_sentences(sentences: Sequence[str]) -> str:
    """Return the text of a paragraph: sentences joined by spaces, lines of a list by line breaks.

    No space follows a sentence that ends in Chinese or Japanese writing.
    """
    pieces = [sentence if _unspaced_end(sentence) else f"{sentence} " for sentence in sentences]
    return "".join(pieces).replace(" \n", "\n").strip()


def _unspaced_end(sentence: str) -> bool:
    """Return whether the last character is wide, as in Chinese and Japanese writing. Korean has spaces."""
    last = sentence[-1:]
    return last > "\u2fff" and unicodedata.east_asian_width(last) in ("W", "F") and not "가" <= last <= "힣"


def join_paragraphs(paragraphs: Sequence[Paragraph]) -> str:
    """Return the text of an article: paragraphs joined by blank lines."""
    return "\n\n".join(join_sentences(sentences) for sentences in paragraphs)


def count_words(sentences: Iterable[str]) -> int:
    """Return the number of words. White space separates them, so a sentence in Chinese or Thai is often one word."""
    return sum(len(sentence.split()) for sentence in sentences)


def sentence_key(sentence: str) -> str:
    """Return a sentence in NFC with single spaces; equal sentences have equal keys."""
    return " ".join(unicodedata.normalize("NFC", sentence).split())


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise UnreadablePage if the block takes more CPU time than ``seconds``. Only the main thread has this limit.

    Wall time would drop a page because the machine slept while it was read.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread gets signals
        return

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise UnreadablePage("takes_too_long")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
