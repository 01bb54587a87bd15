"""The end of a generated answer: the end of its first sentence."""

from __future__ import annotations

import re

# The end of a line, or a stop before white space, except after an initial ("J. Smith", "D.C.") or a title
# ("St. Louis"). Stops of scripts without spaces need no white space after them.
_TITLES = ("St", "Mt", "Ft", "Dr", "Mr", "Mrs", "Ms", "Jr", "Sr", "No", "vs")
_STOPS = "。！？।"
_NOT_AFTER = "".join(rf"(?<!\b{title})" for title in _TITLES)
_END = re.compile(rf"\n|{_NOT_AFTER}(?<!\b[^\W\d_])\.(?=\s)|[!?](?=\s)|[{_STOPS}]")


def answer(continuation: str) -> str:
    """Return the first sentence of a generated text, stripped, without its stop.

    TemporalWiki's code cuts at the first full stop and so turns "St. Louis" into "St".
    """
    text = continuation.lstrip()
    end = _END.search(text)
    return (text[: end.start()] if end else text).rstrip().rstrip(f".!?{_STOPS}").rstrip()


def ended(continuation: str) -> bool:
    """Return whether ``answer(continuation)`` is complete: more text would not change it."""
    return _END.search(continuation.lstrip()) is not None
