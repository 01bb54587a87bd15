"""Words that express a relation: labels of the property in the dump, and the table for the most frequent ones."""

import functools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self

import regex

from temporalwiki.base.json_files import read_yaml
from temporalwiki.builders.wikipedia.words import UNSPACED, plain, words

DATA = read_yaml(Path(__file__).with_name("cues_en.yaml"))
_TABLE = {number: [phrase.strip() for phrase in text.split("|")] for number, text in DATA["phrases"].items()}
_GENERIC, _WEAK = words(DATA["generic"]), words(DATA["weak"])
_LETTER = rf"[[\p{{L}}\p{{M}}\p{{N}}]--[{UNSPACED}]]"
_WORD = regex.compile(rf"(?V1)[{UNSPACED}]|{_LETTER}+(?:['’]{_LETTER}+)?")
_UNSPACED = regex.compile(f"[{UNSPACED}]")


class Cue(tuple[str, ...]):
    """The stems of a phrase's words; ``tight`` if they must follow one another."""

    tight: bool

    def __new__(cls, stems: Iterable[str], tight: bool = False) -> Self:
        """Return a cue."""
        cue = super().__new__(cls, stems)
        cue.tight = tight
        return cue


def stems(text: str) -> list[tuple[str, int, int]]:
    """Return the stem of each word of a text, and where the word begins and ends.

    In scripts without spaces between words, each character counts as a word.
    """
    return [(stem(match[0]), *match.span()) for match in _WORD.finditer(text)]


@functools.lru_cache(1 << 16)
def stem(word: str) -> str:
    """Return a word in lower case without its ending, so that "bordered" is like "borders"."""
    word = word.casefold().removesuffix("'s").removesuffix("’s")
    if len(word) > 4 and word.isascii():
        for ending in ("ings", "ing", "ies", "ed", "es", "s", "e", "y"):
            if word.endswith(ending) and len(word) - len(ending) >= 3:
                word = word[: -len(ending)]
                break
        if len(word) > 4 and word[-1] == word[-2]:
            word = word[:-1]
    return word


def cues_of(number: int, phrases: Iterable[str], language: str) -> list[Cue]:
    """Return the cues for a property: ``phrases`` (its label and aliases); for English, the table adds more."""
    found = dict.fromkeys(map(cue_of, (*phrases, *(table(number) if language == "en" else ()))))
    return [cue for cue in found if len(cue) > cue.tight]  # a word that says little is not a cue by itself


def cue_of(phrase: str) -> Cue:
    """Return the cue for a phrase; it is empty if the phrase has no words."""
    whole = [word for word, *_ in stems(plain(phrase))]
    core = [word for word in whole if word not in _GENERIC_STEMS]
    # "works at": "works" says little, so both words must stand together
    if all(word in _WEAK_STEMS for word in core) or _UNSPACED.search(phrase):
        return Cue(whole, tight=True)
    return Cue(core)


def table(number: int) -> Sequence[str]:
    """Return the table's phrases for a property."""
    return _TABLE.get(number, ())


def labels() -> dict[int, str]:
    """Return the English labels of the most frequent properties."""
    return {number: phrases[0] for number, phrases in _TABLE.items()}


_GENERIC_STEMS = frozenset(map(stem, _GENERIC)) | _GENERIC
_WEAK_STEMS = frozenset(map(stem, _WEAK))
