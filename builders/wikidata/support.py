"""How well a sentence supports a fact: does it name the object, and does it express the relation?"""

import functools
import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple, Self

from temporalwiki.builders.configs import SUPPORT
from temporalwiki.builders.wikidata.cues import DATA, Cue, cue_of, stem, stems
from temporalwiki.builders.wikipedia.outline import Place
from temporalwiki.builders.wikipedia.titles import title_hash
from temporalwiki.builders.wikipedia.words import UNSPACED, in_word, is_mark, plain, words

# Hebrew and Arabic write these before a word without a blank: and, in, like, to, from, that, the.
PREFIXES = {"he": re.compile(r"(?<!\w)[והבכלמש]{1,3}\Z"), "ar": re.compile(r"(?<!\w)[وف]?(?:[بكل]|[بك]?ال|لل)?\Z")}
SHORTEST_WITH_PREFIX = 3  # characters of a name: a shorter one may be a part of another word
LONGEST_LABEL = 250  # characters; Wikidata does not allow more
STATED, LIST, MENTIONED = SUPPORT
BEST = 3  # the rank of a sentence that expresses the relation
_SPAN = 3  # other words between the words of a cue
_FAR = 14  # words between a cue and the object after it
_NEAR = 7  # words between the object and a cue after it
_REACH = 1500  # characters between a cue and the object
_MOST_SPANS = 8  # names of the object in a sentence that are examined
_UNSPACED = re.compile(f"[{UNSPACED}]")
_JOINTS = (".", ",", "-", "+")  # within a number
_CAPITAL = "[A-ZÀ-ÖØ-ÞΑ-ΩА-Я]"


def fold(text: str) -> str:
    """Return a text, which must be ``plain``, without case but of the same length, so that positions stay the same."""
    folded = text.casefold()
    if len(folded) == len(text):
        return folded
    return "".join(low if len(low := character.casefold()) == 1 else character for character in text)


def occurrences(text: str, part: str, language: str = "") -> Iterator[tuple[int, int]]:
    """Yield where ``part`` occurs in ``text`` as whole words. To ignore case, the caller folds both.

    If the part begins or ends in a script without spaces between words, no word boundary is needed there. In Hebrew
    and Arabic, the article and short words may be written together with the part. A number is
    whole with its points and hyphens: "3.1" is not in "3.1.4", and "2026-04" not in "2026-04-01". A part longer than
    LONGEST_LABEL is never found, because the search could take for ever.
    """
    prefixes = PREFIXES.get(language) if len(part) >= SHORTEST_WITH_PREFIX else None
    at = text.find(part) if 0 < len(part) <= LONGEST_LABEL else -1
    while at >= 0:
        end = at + len(part)
        begins = _boundary(text[at - 1 : at], part[0]) or (prefixes and prefixes.search(text, max(0, at - 5), at))
        ends = _boundary(text[end : end + 1], part[-1]) and not is_mark(text[end : end + 1])
        if begins and ends and not in_number(text, at, end):
            yield at, end
        at = text.find(part, at + 1)


def in_number(text: str, at: int, end: int) -> bool:
    """Return whether a place is only a part of a number, version or date: it begins or ends in a digit, and so on."""
    if at > 1 and text[at].isdecimal() and text[at - 1] in _JOINTS and text[at - 2].isdecimal():
        return True
    return text[end - 1].isdecimal() and text[end : end + 1] in _JOINTS and text[end + 1 : end + 2].isdecimal()


def _boundary(outside: str, inside: str) -> bool:
    return not (in_word(outside) and in_word(inside)) or bool(_UNSPACED.match(inside))


# ---------------------------------------------------------------------------------------------------
# Naming the object.

_TITLES, _FUNCTION, _KINDS_OF_STATE, _WORDS_THAT_DENY, _VERBS = (
    words(DATA[name]) for name in ("titles", "function", "kinds_of_state", "denials", "verbs")
)
_BEFORE = re.compile(r"([^\W\d_][\w.'’-]*)( (?:of|of the|of The) | |-)\Z")
_AFTER = re.compile(r"(?: |-|–)([^\W\d_][\w'’-]*)")


class LinkText(NamedTuple):
    """The folded text of some links of an article, and the titles of the pages to which they lead."""

    text: str
    titles: Collection[str]
    hashes: frozenset[bytes]  # of the titles

    @classmethod
    def of(cls, text: str, titles: Collection[str]) -> Self:
        """Return the links with this text."""
        return cls(fold(plain(text)), titles, frozenset(map(title_hash, titles)))


class Names:
    """The texts under which an article names an object."""

    def __init__(self, label: str, title: bytes | None, links: Iterable[LinkText], language: str = "") -> None:
        self.label, self._language = fold(plain(label)), language
        self.linked: list[str] = []  # texts of links to the object's page
        others = []
        for link in links:
            if title in link.hashes:
                self.linked.append(link.text)
            else:
                others.append(link)
        # texts of links to other pages that contain the label or such a text
        self.others = [
            text
            for text, titles, _ in others
            if any(name in text and name != text for name in (self.label, *self.linked))
            or (text == self.label and any(_is_another(fold(plain(to)), text) for to in titles))
        ]

    def find(self, sentence: str, folded: str) -> Iterator[tuple[int, int]]:
        """Yield where ``sentence`` names the object; ``folded`` is the same sentence after ``fold``."""
        covered = [span for other in self.others for span in occurrences(folded, other)]
        for text in dict.fromkeys((*self.linked, self.label)):
            for at, end in occurrences(folded, text, self._language):
                if any(first <= at and end <= last for first, last in covered):
                    continue
                if text in self.linked or not _in_longer_name(sentence, at, end):
                    yield at, end


def _is_another(title: str, label: str) -> bool:
    """Return whether a title says that its page is about another thing of that name: "Georgia (U.S. state)"."""
    return title.startswith((f"{label} (", f"{label}, "))


def _in_longer_name(sentence: str, at: int, end: int) -> bool:
    """Return whether the name at a place is part of a longer capitalised name."""
    if not sentence[at].isupper():
        return False
    after = _AFTER.match(sentence, end)
    if after and after[1][0].isupper() and sentence[end - 1] != ".":
        return True
    before = _BEFORE.search(sentence, max(0, at - 60), at)
    if not before or not before[1][0].isupper():
        return False
    word = before[1].casefold()
    if before[2].strip() in ("of", "of the", "of The"):
        return word.rstrip(".") not in _TITLES and word not in _KINDS_OF_STATE and not _opens(sentence, before.start())
    if word in _FUNCTION or word.rstrip(".") in _TITLES:
        return False
    return not (word.endswith(".") and word not in ("st.", "mt.", "u.s."))


def _opens(sentence: str, at: int) -> bool:
    """Return whether a word at this place opens a sentence or a part of it."""
    before = sentence[:at].rstrip()
    return not before or before[-1] in '.!?:;–—"“('


# ---------------------------------------------------------------------------------------------------
# Expressing the relation.

_CLAUSE = re.compile(rf"[;。；]|\b(?:but|while|whereas|although|though)\b|[.!?] (?={_CAPITAL})")
_OF_ANOTHER = re.compile(rf"(?:'s|’s)? of (?:the )?(?={_CAPITAL})")
_NAME = re.compile(rf"{_CAPITAL}[\w'’-]*(?: (?:of |the |and )*{_CAPITAL}[\w'’-]*)*")
_LIST_GOES_ON = re.compile(r"(?:, [^,.;:]{1,60}){0,20},? (?:and|or) ")
_OF_A_RELATIVE = re.compile(
    r"\b(?:[Hh]is|[Hh]er|[Tt]heir|[Ii]ts|[Ww]hose|['’]s) (?:\w+ ){0,2}(?:wife|husband|father|mother|parents?|sons?|"
    r"daughters?|brothers?|sisters?|children|child|friends?|uncle|aunt|cousin|grandfather|grandmother|partner|family)"
    r"(?:,? [^,;.]{1,40},?)? (?:was|were|is|are|had been|has been)(?: \w+ly| then)? ?\Z"
)


_NOUN_AFTER = re.compile(r"[ -]([a-z]{3,})\b")
_NOUN_BEFORE = re.compile(r"\b([a-z]{3,})[ -]\Z")
# "(24 July 1830, Vienna – 23 March 1900, Budapest)"
_LIFE = re.compile(r"\(([^()]{0,90}\b\d{3,4}\b[^()]{0,90}?) ?[–—-] ?([^()]{0,90}\b\d{3,4}\b[^()]{0,90})\)")
_BIRTH, _DEATH = 19, 20  # properties: place of birth, place of death


_AND_ITS = re.compile(r" and (?:his|her|its|their) ")
_OWNER = re.compile(rf"\b({_CAPITAL}[\w-]*)['’]s (?:\w+ ){{0,2}}\Z")
_OPENING = re.compile(rf"({_CAPITAL}[\w.'’-]*(?: (?:of |the )*{_CAPITAL}[\w.'’-]*)*),? (\w+)")
_NO_NAMES = _FUNCTION | _TITLES


class Subject(NamedTuple):
    """The stems of the words that name an article's subject, and the texts of its links to other articles."""

    words: frozenset[str]
    others: Collection[str] = ()

    @classmethod
    def of(cls, *names: str, others: Collection[str] = ()) -> Self:
        """Return the subject with these names."""
        return cls(frozenset(word for name in names for word, *_ in stems(plain(name))) - _FUNCTION, others)


class _Match(NamedTuple):
    """Where the words of a cue are in a sentence."""

    spans: list[tuple[int, int]]

    @property
    def start(self) -> int:
        return self.spans[0][0]

    @property
    def end(self) -> int:
        return self.spans[-1][1]


def express(text: str, cues: Sequence[Cue]) -> bool:
    """Return whether a heading or lead-in expresses a relation."""
    return any(True for _ in _matches(text, cues))


def _is_title(heading: str, label: str, subject: Subject) -> bool:
    """Return whether a heading is the property's label, but for words that say little."""
    said = {word for word, *_ in stems(heading)} - subject.words - _FUNCTION
    return bool(said) and said == set(cue_of(label)) - _FUNCTION


def _matches(text: str, cues: Sequence[Cue]) -> Iterator[_Match]:
    found, places = _indexed(text)
    for cue in cues:
        if not all(word in places for word in cue):
            continue
        for at in places[cue[0]]:
            if cue.tight:
                chosen = [at + n for n in range(len(cue)) if at + n in places[cue[n]]]
            else:
                closest = [_closest(places[word], at) for word in cue[1:]]
                chosen = [at, *(n for n in closest if abs(n - at) < len(cue) + _SPAN)]
            if len(chosen) == len(cue):
                yield _Match(sorted(found[n][1:] for n in chosen))


def _closest(numbers: Sequence[int], number: int) -> int:
    """Return the element of ``numbers``, which ascend, that is closest to a number."""
    at = bisect_left(numbers, number)
    return min(numbers[max(0, at - 1) : at + 1], key=lambda n: abs(n - number))


@functools.lru_cache(1024)
def _indexed(text: str) -> tuple[list[tuple[str, int, int]], dict[str, list[int]]]:
    """Return the stems of a text, and where each of them is among them. Many facts ask for the same sentence."""
    found = stems(text)
    places: dict[str, list[int]] = {}
    for number, (word, _, _) in enumerate(found):
        places.setdefault(word, []).append(number)
    return found, places


def states(sentence: str, at: int, end: int, cues: Sequence[Cue], subject: Subject) -> bool:
    """Return whether a sentence that names the object from ``at`` to ``end`` expresses the relation."""
    return any(_relates(sentence, match, at, end, subject) for match in _matches(sentence, cues))


def _relates(sentence: str, match: _Match, at: int, end: int, subject: Subject) -> bool:
    if at - match.end > _REACH or match.start - end > _REACH:
        return False
    if any(first < end and at < last for first, last in match.spans):
        return False  # words of the object's own name
    if _of_another_owner(sentence, match.start, at, end, subject) or _opens_with_another(sentence, match, at, subject):
        return False
    if match.end <= at:
        between = sentence[match.end : at]
        if ":" in between and _in_compound(sentence, at, end):
            return False
        if between[:1] == ")" and sentence[match.spans[-1][0] - 1] == "(":
            return False  # "French (official), German"
        far = _FAR if "," not in between else 10 * _FAR
    elif end <= match.start:
        between = sentence[end : match.start]
        far = _NEAR
        if _AND_ITS.fullmatch(between):
            return False
    else:  # "Languages: French (official)"
        between = sentence[end : next(first for first, _ in match.spans if first >= end)]
        far = 1
        if "," in between:
            return False
    if _CLAUSE.search(between) or len(between.split()) > far:
        return False
    clause = sentence[max(0, min(match.start, at) - 30) : max(match.end, end)]
    if any(word in _WORDS_THAT_DENY for word in clause.casefold().split()):
        return False
    if _OF_A_RELATIVE.search(sentence, max(0, match.start - 100), match.start):
        return False
    return not _of_another(sentence, match.end, at, end, subject)


def _of_another_owner(sentence: str, cue_start: int, at: int, end: int, subject: Subject) -> bool:
    """Return whether what the cue says belongs to another thing: "Norland's capital"."""
    owner = _OWNER.search(sentence, max(0, cue_start - 60), cue_start)
    return owner is not None and not at <= owner.start() < end and stem(owner[1]) not in subject.words


def _opens_with_another(sentence: str, match: _Match, at: int, subject: Subject) -> bool:
    """Return whether the sentence begins with the name of another thing, and is about that thing."""
    opening = _OPENING.match(sentence)
    if opening is None or at < opening.end(1) or match.start < opening.end(1):
        return False
    name, verb = opening.groups()
    if any(word in subject.words for word, *_ in stems(name)) or fold(name.split(" ", 1)[0]) in _NO_NAMES:
        return False
    known = " " in name or fold(name) in subject.others
    return known and (verb in _VERBS or match.start <= opening.start(2) < match.end)


def _in_compound(sentence: str, at: int, end: int) -> bool:
    """Return whether a common noun is part of a longer one: "iron" in "iron ore, gold"."""
    after, before = _NOUN_AFTER.match(sentence, end), _NOUN_BEFORE.search(sentence, max(0, at - 60), at)
    if after and after[1] not in _FUNCTION:
        return True
    return before is not None and sentence[at].islower() and before[1] not in _FUNCTION


def _of_another(sentence: str, cue_end: int, at: int, end: int, subject: Subject) -> bool:
    """Return whether a cue is followed by the name of another thing: "the capital of Georgia"."""
    of = _OF_ANOTHER.match(sentence, cue_end)
    if of is None or at <= of.end() < end:
        return False
    name = _NAME.match(sentence, of.end())
    assert name is not None
    if any(word in subject.words for word, *_ in stems(name[0])):
        return False
    # "a member of A, the object and B" is a list
    return not (name.end() <= at and _LIST_GOES_ON.match(sentence, end))


def _in_life_dates(relation: int, sentence: str, at: int, end: int) -> bool:
    """Return whether a place stands with the date of birth or death behind the subject's name."""
    life = _LIFE.search(sentence) if relation in (_BIRTH, _DEATH) else None
    if life is None:
        return False
    first, last = life.span(1 if relation == _BIRTH else 2)
    return first <= at and end <= last


def support(
    relation: int,
    label: str,
    sentence: str,
    spans: Sequence[tuple[int, int]],
    place: Place,
    cues: Sequence[Cue],
    subject: Subject,
) -> tuple[int, str]:
    """Return how well a sentence supports a fact, as a rank up to BEST and a word.

    ``relation`` and ``label`` are the property's number and label.
    """
    for at, end in spans[:_MOST_SPANS]:
        if states(sentence, at, end, cues, subject) or _in_life_dates(relation, sentence, at, end):
            return BEST, STATED
    heading = place.headings[-1] if place.headings else ""
    if place.item:
        if express(place.lead_in, cues) or express(heading, cues):
            return 1, LIST
    elif _is_title(heading, label, subject):
        return 2, STATED
    return 0, MENTIONED
