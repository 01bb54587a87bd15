"""Cut a generated answer at the end of its first sentence."""

from __future__ import annotations

import re

# A stop before white space ends a sentence, except after a number that begins the answer ("1. FC Köln"), a letter
# ("J. Smith", "D.C.") or a title ("St. Louis"). Even there, it ends one if the next word begins sentences but not
# names: "World War I. The", "D.C. It". Stops of scripts without spaces need no white space after them.
_TITLES = "St Ste Mt Ft Dr Mr Mrs Ms Jr Sr No vs Prof Rev Gen Col Lt Capt Bros".split()  # noqa: SIM905 - readable
_BEGINNINGS = (
    "The|It|Its|He|She|They|We|I|His|Her|Their|This|That|These|Those|There|In|On|At|As|After|Before|During|Since|From"
    "|With|When|While|Although|Because|However|But|And|If"
)
_STOPS = "。！？।"
_IN_NAMES = (r"\b[^\W\d_]", r"\A\d", r"\A\d\d", *(rf"\b{title}" for title in _TITLES))
_NOT_IN_A_NAME = "".join(f"(?<!{ending})" for ending in _IN_NAMES)
_END = re.compile(
    rf"\n|(?:{_NOT_IN_A_NAME}|(?<=\b[Ww]ar I))\.(?=\s)|\.(?=[^\S\n]+(?:{_BEGINNINGS})\s)"
    rf"|[!?](?=\s)|[{_STOPS}]"
)


def answer(continuation: str) -> str:
    """Return the first sentence of a generated text, without the full stop or other mark at its end.

    TemporalWiki's code cuts at the first full stop and so turns "St. Louis" into "St".
    """
    text = continuation.lstrip()
    end = _END.search(f"{text} ")
    return (text[: end.start()] if end else text).rstrip().rstrip(f".!?{_STOPS}").rstrip()


def ended(continuation: str) -> bool:
    """Return whether ``answer(continuation)`` is complete: more text would not change it."""
    return _END.search(continuation.lstrip()) is not None
