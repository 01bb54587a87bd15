"""Sets of words and phrases, written as text."""

from __future__ import annotations


def words(text: str, separator: str | None = None) -> frozenset[str]:
    """Return the words of a text, or the phrases between separators, with single spaces."""
    return frozenset(" ".join(word.split()) for word in text.split(separator))
