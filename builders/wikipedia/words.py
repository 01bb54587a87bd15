"""Sets of words, and the scripts that have no spaces between words."""

from __future__ import annotations

# Scripts without spaces between words: Han, kana and Hangul; Thai, Lao, Khmer, Burmese, Tibetan and Javanese.
UNSPACED = "\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff\u0e00-\u109f\u1780-\u17ff\ua980-\ua9df"


def words(text: str, separator: str | None = None) -> frozenset[str]:
    """Return the words of a text, or the phrases between separators, with single spaces."""
    return frozenset(" ".join(word.split()) for word in text.split(separator))
