"""An article's wikitext as paragraphs of sentences: what Algorithm 1 compares.

A paragraph is a list of sentences. The items of a list are one paragraph; a sentence that opens a new line of it
carries that line break in front, so that joining gives the lines back.
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

Paragraph = list[str]
VERSION = 2  # of the text of an article; a new one, like another sentencex, makes kept diffs stale

# No page of any dump read so far needed a second. The text step is linear and bounded by its own rules, so this
# is only the net under them.
SECONDS = 60.0  # of CPU time

LONGEST_LINE = 20_000  # characters; no paragraph of the dumps read so far comes near
CLOSERS = frozenset(")]}.,;:!?'\"”’»")
# "(He died.) She lived." and "tea, etc. She drank" end sentences, which the segmenter does not see.
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
    """Paragraphs of sentences of an article, NFC, white space folded.

    Raises UnreadablePage with a reason for a page that cannot be read or takes longer than SECONDS.
    """
    with time_limit(SECONDS):
        found = [split_sentences(text, language) for text in paragraphs(wikitext, namespaces=namespaces)]
    return [sentences for sentences in found if sentences]


def split_sentences(paragraph: str, language: str) -> Paragraph:
    """Sentences of one paragraph, in order; nothing but white space is lost."""
    sentences: Paragraph = []
    for number, line in enumerate(paragraph.split("\n")):
        opening = "\n" if number and sentences else ""
        for sentence in _mended(_segments(line, language)):
            sentences.append(opening + sentence)
            opening = ""
    return sentences


def _segments(line: str, language: str) -> Iterator[str]:
    """The segmenter's sentences, white space folded; a line of unheard-of length goes in pieces.

    On runs of opening quotes its time grows with the square of the length, and it cannot be interrupted. White space
    beyond ASCII makes it panic: a letter, a no-break space, a full stop.
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
    """Join what the segmenter cut although the sentence goes on, and cut what it left although one ends."""
    parts: list[str] = []  # of the current sentence; only the last one is looked at, so the time stays linear
    for segment in (part for whole in segments for part in _cut_further(whole)):
        if parts and parts[-1][-2:] in (' "', " “"):  # it belongs to the sentence after it
            parts[-1], segment = parts[-1][:-2], parts[-1][-1] + segment
        elif parts and (raised := _RAISED_AFTER_STOP.match(segment)):  # in.², of the sentence before it
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
    if ") " in segment or "etc. " in segment:  # the pattern costs ten times the segmenter
        return _ENDS_IN_SEGMENT.split(segment)
    return [segment]


def _goes_on(before: str, after: str) -> bool:
    if after[0].islower() or all(character in CLOSERS for character in after):
        return True
    if before[-2:-1].isdigit() and _ENUMERATION.search(
        before[-20:]
    ):  # "; and 3. Roosevelt", but not "on November 1. Roosevelt"
        return True
    return after[0].isdigit() and before.rsplit(" ", 1)[-1].lstrip("([").lower() in BEFORE_A_NUMBER


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
def time_limit(seconds: float) -> Iterator[None]:
    """Raise UnreadablePage where what is done in it takes more CPU time; in the main thread only.

    On the clock, a page at which the machine slept, or the process was stopped, would be dropped.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signals reach the main thread only; the text step's own bounds still hold
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
