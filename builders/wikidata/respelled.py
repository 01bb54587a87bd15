"""Whether two names are one name in another spelling, form or order of words.

docs/definitions.md has examples, and how often the rule is right.
"""

import re
import unicodedata
from collections.abc import Iterable

import regex
from rapidfuzz.fuzz import ratio

_ALIKE = 75  # percent of the letters that two words of longer names share, in order
_SMALL = re.compile("al?|and|bin|d|d[aeio]|de[lnr]|d[ou]s|du|el?|et|for|in|l[ae]s?|los|o[fr]|the|van|von|y")
# marks are vowels elsewhere; points and hyphens between digits belong to a version or date
_NO_LETTERS = regex.compile(r"(?<=[\p{Latin}\p{Greek}\p{Cyrillic}])\p{M}+|['’‘ʻʼ`]|\.(?!(?<=\d\.)\d)")
_WORD = regex.compile(r"\d+(?:[.-]\d+)+|[\p{L}\p{M}\p{N}]+")
_NUMERAL = re.compile(r"[ivx]{2,}|.*\d.*")
# Letters that one language writes for another's.
_SOUNDS = (("ph", "f"), ("ck", "k"), ("y", "i"), ("c", "k"), ("q", "k"), ("w", "v"), ("h", ""))


def is_respelled(name: str, others: Iterable[str]) -> bool:
    """Return whether ``name`` differs from one of the other names only in spelling, form or order of words.

    Every word of the shorter name needs a partner in the longer one: the same word in another spelling, or, if other
    words are the same, its initial or a word that is alike. Numbers, Roman ones included, must be equal. One word for
    each two of the shorter name may be left over if both names are capitalised, as names of persons and organisations
    are: "Olaf Ek Lund" is "Olaf Lund", but "palm oil products" are not "palm oil".
    """
    return any(_respelled(name, other) for other in others if other != name)


def _respelled(name: str, other: str) -> bool:
    left, right = sorted((_words(name), _words(other)), key=len)
    numerals = [sorted(filter(_NUMERAL.fullmatch, words)) for words in (left, right)]
    if not left or numerals[0] != numerals[1]:
        return False
    if "".join(sorted(left)) == "".join(sorted(right)) or _stem("".join(left)) == _stem("".join(right)) != "":
        return True
    rest, same, alike = list(right), 0, 0
    for word in left:
        partner = max(rest, key=lambda one: _likeness(word, one))
        likeness = _likeness(word, partner)
        if likeness < _ALIKE:
            return False
        same += likeness == 100 and len(word) > 2
        alike += likeness < 100
        rest.remove(partner)
    if not same or alike > same:
        return False
    words = [word for one in (name, other) for word in regex.findall(r"\p{L}{4,}", one)]
    return not rest or (2 * len(rest) <= len(left) and all(word[0].isupper() for word in words))


def _words(name: str) -> list[str]:
    """Return a name's words without case, accents, apostrophes and small words."""
    plain = _NO_LETTERS.sub("", unicodedata.normalize("NFKD", name.casefold()))
    found = _WORD.findall(plain)
    return [word for word in found if not _SMALL.fullmatch(word)] or found


def sound(word: str) -> str:
    """Return what spellings of a word in small letters share: "uyghur" and "uighur"."""
    for letters, instead in _SOUNDS:
        word = word.replace(letters, instead)
    return re.sub(r"(.)\1+", r"\1", word)


def _stem(word: str) -> str:
    return sound(word).removesuffix("s")


def _likeness(word: str, other: str) -> float:
    if word == other or any(map(_NUMERAL.fullmatch, (word, other))):
        return 100.0 * (word == other)
    if 1 in (len(word), len(other)):
        return 99.0 * (word[0] == other[0])
    one, two = _stem(word), _stem(other)
    return 100.0 if one == two else ratio(word, other) * (one[:1] == two[:1])
