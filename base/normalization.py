"""SQuAD's normalisation of answers: the one place where it is defined."""

from __future__ import annotations

import re
import string
import unicodedata

_SENTINEL = re.compile(r"<extra_id_[0-9]+>")
_ARTICLE = re.compile(r"\b(a|an|the)\b")


def normalize(text: str) -> str:
    """Return text in lower case, without punctuation and English articles, its words separated by single spaces.

    This is SQuAD's normalisation (Rajpurkar et al. 2016), after T5's `<extra_id_N>` have become spaces. For ASCII text
    the result is identical. In other text, Unicode's punctuation is removed as well (SQuAD keeps it), and composed
    and decomposed letters are equal (NFC).
    """
    text = unicodedata.normalize("NFC", _SENTINEL.sub(" ", text)).lower()
    text = "".join(c for c in text if c not in string.punctuation and not unicodedata.category(c).startswith("P"))
    return " ".join(_ARTICLE.sub(" ", text).split())
