"""Which sentences of two versions of an article count as the same, and which are alike.

docs/definitions.md has examples.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

import regex
from rapidfuzz.fuzz import ratio
from rapidfuzz.process import extractOne

from temporalwiki.builders.wikipedia.sentences import sentence_key

ALIKE = 60  # percent of the characters of two sentences that are the same, in order; `Indel` misses exactly .6
# Bound of the work on a page: characters of one side times characters of the other. Two texts of 140,000
# characters without a common sentence have it; it takes about half a second.
MOST_CELLS = 20_000_000_000

_PLAIN = tuple(zip("’‘ʻʼʾʿ´−–—‒‑‐“”„«»…", ["'"] * 7 + ["-"] * 6 + ['"'] * 5 + [" "], strict=True))


def _patterns(module: Any, letter: str, number: str, symbol: str) -> tuple[Any, Any, Any]:
    """Return three patterns: blanks between initials, stops and apostrophes to remove, and tokens."""
    return (
        # The stop and the blank after an initial before another one: J. R. Smith.
        module.compile(rf"(?<=(?<!{letter}){letter})\. (?={letter}\.)"),
        # Full stops and apostrophes, but not in 1.5, .5 or 6'2.
        module.compile(rf"\.(?!\d)|(?<={letter})\.|'(?!\d)"),
        # A dash before a number is its sign, unless it joins the number to what is before it.
        module.compile(
            rf"(?<!{letter}|{number})-(?=[$€£]?\.?\d)|\.?\d+(?:[.,:/]\d+)*(?:e-?\d+)?|{letter}+|{number}|{symbol}"
        ),
    )


_ASCII = _patterns(re, "[a-z]", r"\d", r"[$+<=>|~^%&#@]")
_ANY = _patterns(regex, r"[\p{L}\p{M}]", r"\p{N}", r"[\p{S}%‰&#@]")
_UNSPACED = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}]"
_SPACES_OF_UNSPACED = regex.compile(rf"(?<={_UNSPACED}) | (?={_UNSPACED})")


def folded_key(sentence: str) -> str:
    """Return a key that is the same for sentences that differ only in case, punctuation, dashes and white space.

    It is the words, numbers and symbols of the sentence, with spaces between them. Characters that are part of a
    number stay, as in -1.5. If nothing is left, the sentence is its own key.
    """
    exact = sentence_key(sentence)
    text = exact.casefold().replace("`", "'")
    if not text.isascii():
        for character, plain in _PLAIN:
            if character in text:
                text = text.replace(character, plain)
    initials, in_words, tokens = _ASCII if text.isascii() else _ANY
    if "." in text:
        text = initials.sub("", text.replace("..", " "))
    if "." in text or "'" in text:
        text = in_words.sub("", text)
    key = " ".join(tokens.findall(text))
    if not key.isascii():
        key = _SPACES_OF_UNSPACED.sub("", key)
    return key or exact


# The rules of --compare: sentences with the same key are the same.
Key = Callable[[str], str]
COMPARISONS: dict[str, Key] = {"folded": folded_key, "exact": sentence_key}


def letters(text: str) -> bytes:
    """Return the letters a to z and the digits of a text, which are the same in sentences with the same key."""
    return text.casefold().encode().translate(None, _OTHERS)


_OTHERS = bytes(set(range(256)).difference(b"abcdefghijklmnopqrstuvwxyz0123456789"))


def not_alike(sentences: Sequence[str], others: Sequence[str]) -> list[str]:
    """Return the sentences that are less similar than ALIKE to each of ``others``.

    If there are more than MOST_CELLS pairs of characters to compare, each sentence is only compared with some of the
    others: those at about the same place in their text. The longer the texts, the fewer they are.
    """
    cells = sum(map(len, sentences)) * sum(map(len, others))
    nearest = len(others) if cells <= MOST_CELLS else max(1, len(others) * MOST_CELLS // cells)
    found = []
    for number, sentence in enumerate(sentences):
        first = min(max(0, number * len(others) // len(sentences) - nearest // 2), len(others) - nearest)
        some = others[first : first + nearest] if nearest < len(others) else others
        if extractOne(sentence, some, scorer=ratio, score_cutoff=ALIKE) is None:
            found.append(sentence)
    return found
