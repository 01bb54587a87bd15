"""What a word is, when two names are equal, and the scripts that have no spaces between words."""

import re
import unicodedata

from temporalwiki.base.normalization import APOSTROPHES, HYPHENS, INVISIBLE

# Scripts without spaces between words: Han, kana and Hangul; Thai, Lao, Khmer, Burmese, Tibetan and Javanese.
UNSPACED = "\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff\u0e00-\u109f\u1780-\u17ff\ua980-\ua9df"
_INITIALS = re.compile(r"(?<![^\W\d_])([^\W\d_]\.) (?=[^\W\d_]\.)")
_LOOK_ALIKE = re.compile(rf"[{APOSTROPHES}{HYPHENS}]|[^\S\n ]")
_PLAIN = dict.fromkeys(APOSTROPHES, "'") | dict.fromkeys(HYPHENS, "-")


def words(text: str, separator: str | None = None) -> frozenset[str]:
    """Return the words of a text, or the phrases between separators, with single spaces."""
    return frozenset(" ".join(word.split()) for word in text.split(separator))


def in_word(character: str) -> bool:
    """Return whether a character belongs to a word: a letter, a mark on one (such as a vowel sign), a digit or "_"."""
    return character.isalnum() or character == "_" or is_mark(character)


def is_mark(character: str) -> bool:
    """Return whether a character is a combining mark."""
    return character > "\u02ff" and unicodedata.category(character)[0] == "M"


def plain(text: str) -> str:
    """Return a text in the form in which names are compared, apart from case.

    It is in NFC, has no invisible characters, one kind of apostrophe, hyphen and blank, and no blank between initials
    ("J.R. Smith").
    """
    if not text.isascii():
        text = INVISIBLE.sub("", unicodedata.normalize("NFC", text))
        text = _LOOK_ALIKE.sub(lambda match: _PLAIN.get(match[0], " "), text)
    return _INITIALS.sub(r"\1", text) if ". " in text else text
