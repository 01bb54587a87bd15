"""Split an article into paragraphs of sentences, which Algorithm 1 compares.

A paragraph is a list of sentences. All items of a list are one paragraph. A sentence that opens a new line in it
starts with a line break, and a sentence that follows without a blank starts with GLUED. So joining the sentences gives
the text back. Both marks are white space for ``str.strip`` and ``str.split``.
"""

import contextlib
import re
import signal
import threading
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from types import FrameType

import sentencex

from temporalwiki.builders.wikipedia.plain_text import UnreadablePage, paragraphs
from temporalwiki.builders.wikipedia.prose_lines import FORMULA
from temporalwiki.builders.wikipedia.sentence_ends import Words, goes_on, words_of

Paragraph = list[str]
GLUED = "\x1f"
_MARKS = f"\n{GLUED}"
VERSION = 5  # a new version, like another version of sentencex, makes the diffs of earlier builds stale

# CPU time for one page. No page of any dump so far needed a second: this is a safety net.
SECONDS = 60.0

LONGEST_LINE = 20_000  # characters; all paragraphs of the dumps so far are far shorter
LONG_QUOTATION = 200  # characters of a sentence whose quotation is cut into its own sentences
_OPENING = frozenset("\"“'‘„«([¿¡")
QUOTES = frozenset('"“”„«»')
# The segmenter misses these ends of sentences: "(He died.) She lived." and "tea, etc. She drank".
_ENDS_IN_SEGMENT = re.compile(r"(?:(?<=[a-z0-9]{2}[.!?]\))|(?<=\betc\.)) +(?=[\"“]?[A-Z])")
# They end the sentence before them: "in.² Then". A bracket or quotation mark does if no blank is before it.
_RAISED = re.compile(r"[⁰¹²³⁴-⁹]+(?: |$)")
_CLOSING = re.compile(r"[⁰¹²³⁴-⁹)\]\"'”’»]+(?: |$)")
# In some languages it never begins a sentence with a number: "in Berlin. 2018 wurde".
_YEAR_AFTER_STOP = re.compile(r"(?<=[^\W\d_]{3}\.) (?=[12]\d{3}\b(?!\.))")


def article_sentences(wikitext: str, language: str, namespaces: Mapping[str, int] | None = None) -> list[Paragraph]:
    """Return the paragraphs of an article as sentences, in NFC with single spaces.

    Raises UnreadablePage, with a reason, for a page that cannot be read or takes longer than SECONDS.
    """
    with time_limit(SECONDS):
        texts = paragraphs(wikitext, namespaces=namespaces, language=language)
        found = [split_sentences(text, language) for text in texts]
    return [sentences for sentences in found if sentences]


def split_sentences(paragraph: str, language: str) -> Paragraph:
    """Return the sentences of a paragraph in order, except sentences that lost a formula; no other text is lost.

    ``join_sentences`` gives the paragraph back, with single spaces.
    """
    sentences: Paragraph = []
    for line in paragraph.split("\n"):
        opening = "\n" if sentences else ""
        for sentence in _sentences(line, language):
            sentences.append(opening + sentence)
            opening = ""
    if FORMULA in paragraph:
        return some_sentences(sentences, lambda sentence: FORMULA not in sentence)
    return sentences


def some_sentences(sentences: Iterable[str], wanted: Callable[[str], bool]) -> Paragraph:
    """Return the wanted sentences of a paragraph.

    A line break or a blank between two of them stays, also if it was around a sentence between them.
    """
    found: Paragraph = []
    marks = ""  # the first characters of the sentences since the last wanted one
    for sentence in sentences:
        if not wanted(sentence):
            marks += sentence[0]
        elif found and marks:
            marks += sentence[0]
            mark = "\n" if "\n" in marks else GLUED if not marks.strip(GLUED) else ""
            found.append(mark + sentence.lstrip(_MARKS))
            marks = ""
        else:
            found.append(sentence if found else sentence.lstrip(_MARKS))
            marks = ""
    return found


def sentences_without_formula(paragraph: str, language: str) -> int:
    """Return how many sentences of a paragraph lost a formula."""
    if FORMULA not in paragraph:
        return 0
    return sum(FORMULA in s for line in paragraph.split("\n") for s in _sentences(line, language))


def _sentences(line: str, language: str) -> Iterator[str]:
    """Yield the sentences of a line; GLUED begins a sentence that follows without a blank."""
    before = " "
    for piece in _pieces(line, language):
        yield (GLUED if before[-1] != " " != piece[0] else "") + piece.strip()
        before = piece


def _pieces(line: str, language: str) -> Iterator[str]:
    """Yield the sentences of a line with the blanks between them."""
    words = words_of(language)
    for piece in _mended(_segments(line, language), words):
        if len(piece) > LONG_QUOTATION and not QUOTES.isdisjoint(piece):
            yield from _quoted_sentences(piece, language, words)
        else:
            yield piece


def _quoted_sentences(sentence: str, language: str, words: Words) -> Iterator[str]:
    """Yield the sentences of a long quotation, which the segmenter does not cut, with the quotation marks around them.

    The segmenter cuts the text without quotation marks.
    """
    without = "".join(character for character in sentence if character not in QUOTES)
    start = end = 0
    for piece in _mended(_segments(without, language), words):
        if end:
            yield sentence[start:end]
        start, left = end, len(piece) - piece.count(" ")
        while left or (end < len(sentence) and sentence[end] in QUOTES):
            left -= sentence[end] != " " and sentence[end] not in QUOTES
            end += 1
    yield sentence[start:]


def _segments(line: str, language: str) -> Iterator[str]:
    """Yield the segmenter's sentences, and the blanks between them; all white space is a single blank.

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
        yield from sentencex.segment(language, line[start:end])
        start = end


def _mended(segments: Iterable[str], words: Words) -> Iterator[str]:
    """Yield the sentences, corrected where the segmenter cut inside a sentence or missed the end of one."""
    parts: list[str] = []  # of the current sentence; only the last one is examined, so the time stays linear
    for segment in (part for whole in segments for part in _cut_further(whole, words)):
        if parts:
            last = parts[-1].rstrip()
            if last[-1] in _OPENING and last[-2:-1] == " ":  # it opens the next sentence
                parts[-1:], segment = filter(None, [last[:-2]]), parts[-1][len(last) - 2 :] + segment
            elif not segment[0].isalpha() and (closing := (_CLOSING if last == parts[-1] else _RAISED).match(segment)):
                parts[-1], segment = parts[-1] + closing[0], segment[closing.end() :]
            if parts and not segment.strip():
                parts[-1] += segment
                continue
            # a word with full stops may be in several parts
            if parts and not goes_on(parts[-1] if len(parts[-1]) > 9 else "".join(parts[-4:]), segment, words):
                yield "".join(parts)
                parts = []
        parts.append(segment)
    if parts:
        yield "".join(parts)


def _cut_further(segment: str, words: Words) -> Iterable[str]:
    cuts: list[int] = []
    if ") " in segment or "etc. " in segment:  # the pattern is ten times slower than the segmenter
        cuts += [match.end() for match in _ENDS_IN_SEGMENT.finditer(segment)]
    if words.numbers_begin_none and (". 1" in segment or ". 2" in segment):
        cuts += [match.end() for match in _YEAR_AFTER_STOP.finditer(segment)]
    if not cuts:
        return (segment,)
    return [segment[start:end] for start, end in pairwise([0, *sorted(cuts), len(segment)])]


def join_sentences(sentences: Iterable[str]) -> str:
    """Return the text of a paragraph: a blank before each sentence that has no mark."""
    pieces = [sentence if sentence[:1] in ("\n", GLUED) else f" {sentence}" for sentence in sentences]
    return "".join(pieces).replace(GLUED, "").strip()


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
