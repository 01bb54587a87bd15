"""Whether a sentence goes on where a segmenter has cut it. sentence_words.yaml has the words of each language."""

import functools
import re
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from temporalwiki.base.json_files import read_yaml
from temporalwiki.builders.wikipedia.words import UNSPACED

CLOSERS = frozenset(")]}.,;:!?'\"”’»」』）】》〉，、；：！？。")
_OPENERS = "([„“\"«‘'"
_NUMERAL = r"(?:\d{1,3}|[IVXLC]+)"
_ORDINAL = re.compile(rf"(?:{_NUMERAL}\.?[/–-])*(?:(\d{{1,3}})|[IVXLC]+)\.")
_ROMAN = re.compile(r"[IVXLC]+\b")
_DOTTED = re.compile(r"[^\s\d.]\.-?[^\s\d.]{1,3}\.\Z")
_BEFORE_NUMBER = re.compile(r"\d+\.(?:\s|$)")
_WORD = re.compile(r"\W*(\w+)")
_ENUMERATION = re.compile(r"(?:[;:]|\bas|; (?:and|or)) \d{1,2}\.$")
_UNSPACED = re.compile(f"[{UNSPACED}]")


class Words(NamedTuple):
    """The words of a language at the ends of sentences, as sentence_words.yaml explains them."""

    goes_on: frozenset[str]
    before_a_number: frozenset[str]
    opens: frozenset[str]
    after_quotation: re.Pattern[str] | None
    largest_ordinal: int | None  # None if ordinals have no full stop
    numbers_begin_none: bool


@functools.cache
def _tables() -> tuple[Mapping[str, Any], dict[str, Mapping[str, Any]]]:
    """Return the file, and the words of each language."""
    file = read_yaml(Path(__file__).with_name("sentence_words.yaml"))
    return file, {code: table for codes, table in file["languages"].items() for code in codes.split()}


@functools.cache
def words_of(language: str) -> Words:
    """Return the words of a language, or of its base language ("de" for "de-at")."""
    file, tables = _tables()
    code = language if language in tables else language.partition("-")[0]
    table, shared = tables.get(code, {}), tables["all"]
    return Words(
        frozenset(table.get("goes_on", ())),
        frozenset(table.get("before_a_number", ())).union(shared["before_a_number"]),
        frozenset(table.get("opens", ())),
        re.compile(table["after_quotation"]) if "after_quotation" in table else None,
        table.get("largest_ordinal", 9) if code in file["ordinals"] else None,
        code in file["numbers_begin_none"],
    )


def abbreviations() -> frozenset[str]:
    """Return the abbreviations of all languages that end no sentence."""
    return frozenset(word for table in _tables()[1].values() for word in table.get("goes_on", ()))


def goes_on(before: str, after: str, words: Words) -> bool:
    """Return whether the sentence that ends with ``before`` goes on with ``after``. Blanks between them are in either.

    The time does not depend on the length of the texts.
    """
    end, first = before.rstrip(), after.lstrip()[0]
    if first.islower() or (first in CLOSERS and (first in "」』），、；：" or CLOSERS.issuperset(after.strip()))):
        return True
    if words.after_quotation and end[-1] in "」』”’》）" and words.after_quotation.match(after):
        return True
    if len(end) == len(before) and after[0] == first and not _may_be_glued(end, after):
        return True
    if end[-1] != ".":
        return False
    if end[-2:-1].isdigit() and _ENUMERATION.search(end[-20:]):
        return True  # "; and 3. Roosevelt", but not "on November 1. Roosevelt"
    word = end[-60:].rsplit(" ", 1)[-1].lstrip(_OPENERS)
    plain = word.lower()
    if plain in words.goes_on or (not word.isascii() and _is_caseless_initial(end, word)):
        return True
    if first.isdigit():
        if plain in words.before_a_number or _DOTTED.search(word):
            return True
        return words.largest_ordinal is not None and word[:-1].isdigit() and _BEFORE_NUMBER.match(after) is not None
    if words.largest_ordinal is None:
        return False
    return _is_ordinal(end, word, after, words.largest_ordinal, words.opens)


def _is_ordinal(end: str, word: str, after: str, largest: int, opens: frozenset[str]) -> bool:
    """Return whether a word is an ordinal, and ``after`` does not begin a sentence."""
    if not (ordinal := _ORDINAL.fullmatch(word)):
        return False
    following = _WORD.match(after[:60])
    if not following or following[1].lower() in opens:
        return False
    if ordinal[1] is None or _ROMAN.fullmatch(following[1]):
        return True
    return int(ordinal[1]) <= largest and not end[: -len(word)].rstrip()[-1:].isdigit()  # not in "130 000."


def _may_be_glued(end: str, after: str) -> bool:
    """Return whether a sentence may end where no blank is: in "It is.Then", but not in "J.-C.", "3.5" or ".NET"."""
    first = after[0]
    if unicodedata.category(first)[0] == "M":
        return False
    if end[-1] != ".":
        return end[-1] not in '"”’»“' or not first.isalpha() or first.isupper() or "\u2e80" <= first < "\uac00"
    opening = after.lstrip("[(„“\"«‘'")[:2]
    if not opening[:1].isalnum():
        return not opening[1:].isalnum()
    if end[-2:-1] in "…)]\"'”’».":
        return opening[0].isupper()
    word = end[-60:-1].rsplit(" ", 1)[-1]
    if opening[0].isalpha() and opening[0].lower() == opening[0].upper():  # a script without capitals
        return len(word) > 3 and "." not in word and not _UNSPACED.match(opening)
    return opening[0].isupper() and not opening[1:].isupper() and word[-2:].isalnum() and not word[-1:].isupper()


def _is_caseless_initial(end: str, word: str) -> bool:
    """Return whether a word is one letter of a script without capitals, with a full stop, and not after a number."""
    if len(word) > 5 or word[0].lower() != word[0].upper() or not word[0].isalpha():
        return False
    marks = all(unicodedata.category(character)[0] == "M" for character in word[1:-1])
    return marks and not _UNSPACED.match(word) and not end[: -len(word)].rstrip()[-1:].isdigit()
