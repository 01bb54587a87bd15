"""Cut a generated answer at the end of its first sentence."""

import functools
import re

from temporalwiki.builders.wikipedia.sentence_ends import abbreviations
from temporalwiki.builders.wikipedia.words import words

# A stop before white space ends a sentence, except after a number that begins the answer ("1. FC Köln"), a letter
# ("J. Smith", "D.C.") or a title ("St. Louis"). Even there, it ends one if the next word begins sentences but not
# names: "World War I. The", "D.C. It". Stops of scripts without spaces need no white space after them.
_TITLES = "St Ste Mt Ft Dr Mr Mrs Ms Jr Sr No vs Prof Rev Gen Col Lt Capt Bros".split()  # noqa: SIM905 - readable
# Titles and abbreviations of other languages, but not those that are English words too. sentence_words.yaml has more,
# with letters beyond ASCII.
_OTHER_TITLES = words(
    "av. bd. bzw. ca. dhr. doc. dott. dra. hl. hr. ing. m.in. mag. mevr. mgr. mlle. mme. msgr. nr. np. prof. sf. sig. "
    "sra. srta. ssa. str. sv. tzv. tzw. ul. zgn."
)
_BEGINNINGS = (
    "The|It|Its|He|She|They|We|I|His|Her|Their|This|That|These|Those|There|In|On|At|As|After|Before|During|Since|From"
    "|With|When|While|Although|Because|However|But|And|If"
)
# After a number with a full stop, German goes on with these words; other languages go on with a small letter.
_AFTER_ORDINAL = re.compile(
    "Jan|Feb|März|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez|Jänner|Jahr|Weltkrieg|Welt|Liga|Bundes|Platz|Auflage|Tag|Klasse|FC"
)
_LINE_ENDS = "\n\x85\u2028\u2029"
_STOPS = "。！？।॥｡؟።፧។៕။᠃"
_STOPS_BUT_IN_NUMBERS = "．۔։"
_IN_NAMES = (r"\b[^\W\d_]", r"\A\d", r"\A\d\d", *(rf"\b{title}" for title in _TITLES))
_NOT_IN_A_NAME = "".join(f"(?<!{ending})" for ending in _IN_NAMES)
_END = re.compile(
    rf"[{_LINE_ENDS}]|(?:{_NOT_IN_A_NAME}|(?<=\b[Ww]ar I))\.(?=\s)"
    rf"|\.(?=[^\S{_LINE_ENDS}]+(?:{_BEGINNINGS})\s)|[!?](?=\s)|[{_STOPS}]|[{_STOPS_BUT_IN_NUMBERS}](?=\D)"
)
_NUMBER = re.compile(r"(?<![^\s(–/-])(?:\d{1,2}|[IVX]+)\Z")
_TWICE, _TWICE_MORE = re.compile(r"(?<!\w)([A-Z])\1\Z"), re.compile(r"([A-Z])\1(?!\w)")  # "EE. UU."
_NEXT = re.compile(rf"\.[^\S{_LINE_ENDS}]+(\S+)(?=\s)|\.[^\S{_LINE_ENDS}]+(\S*)\Z")


def answer(continuation: str) -> str:
    """Return the first sentence of a generated text, without the full stop or other mark at its end.

    TemporalWiki's code cuts at the first full stop and so turns "St. Louis" into "St".
    """
    text = continuation.lstrip()
    end = _end(f"{text} ")
    return (text if end is None else text[:end]).rstrip().rstrip(f".!?{_STOPS}{_STOPS_BUT_IN_NUMBERS}").rstrip()


def ended(continuation: str) -> bool:
    """Return whether ``answer(continuation)`` is complete: more text would not change it."""
    return _end(continuation.lstrip()) is not None


def _end(text: str) -> int | None:
    """Return where the first sentence ends, or None."""
    return next((end.start() for end in _END.finditer(text) if end[0] != "." or not _goes_on(text, end.start())), None)


def _goes_on(text: str, at: int) -> bool:
    """Return whether a full stop belongs to an abbreviation or an ordinal of a language other than English.

    While the next word is not complete, a sentence may go on.
    """
    before = text[max(0, at - 20) : at]
    word = before.split()[-1].lower() + "." if before.strip() and not before[-1].isspace() else ""
    if word in _known_abbreviations():
        return True
    number, twice = _NUMBER.search(before), _TWICE.search(before)
    if not number and not twice:
        return False
    following = _NEXT.match(text, at)
    if following is None:
        return False  # the line ends
    if following[1] is None:
        return True
    if following[1][0].islower():
        return True
    return (_TWICE_MORE if twice else _AFTER_ORDINAL).match(following[1]) is not None


@functools.cache
def _known_abbreviations() -> frozenset[str]:
    return _OTHER_TITLES | {word for word in abbreviations() if not word.isascii() and len(word) > 2}
