"""Read the free reply of a chat model: which answer does it give to the question about a fact, if any?

The rules know the phrases of English replies. In other languages they find names, and the words that ``asking`` gives
to a model that does not know the answer, but no negation and no other refusal.
"""

# ruff: noqa: E501 - one cue a line

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import regex
import yaml

from temporalwiki.base.normalization import normalize
from temporalwiki.builders.ckl.templates import asking
from temporalwiki.eval_harness.answers import answer as first_sentence
from temporalwiki.eval_harness.references import choices_of, language_of, right_answers

Outcome = Literal["new", "old", "both", "neither", "abstained"]
OUTCOMES: tuple[Outcome, ...] = ("new", "old", "both", "neither", "abstained")


class Reading(NamedTuple):
    """What a reply says: its outcome, and the answer that EM and F1 compare."""

    outcome: Outcome
    answer: str


# -- reasoning, and where the answer stands --

_OPEN = r"<(?:think|thinking|thought|reasoning|reflection|scratchpad)>|\[THINK\]|◁think▷"
_CLOSE = r"</(?:think|thinking|thought|reasoning|reflection|scratchpad)>|\[/THINK\]|◁/think▷"
_CLOSED = re.compile(rf"\A.*(?:{_CLOSE})", re.IGNORECASE | re.DOTALL)  # the beginning may be in the prompt
_UNCLOSED = re.compile(rf"(?:{_OPEN}).*", re.IGNORECASE | re.DOTALL)
_CHANNEL = re.compile(r"\A.*<\|channel\|>final<\|message\|>|<\|channel\|>analysis<\|message\|>.*", re.DOTALL)
_TAG = re.compile(r"<answer>(.*?)(?:</answer>|\Z)", re.IGNORECASE | re.DOTALL)
_BOXED = re.compile(r"\\boxed\s*\{(?:\\(?:text|mathrm|textbf)\s*\{)?([^{}]*)")
_MARK = re.compile(
    r"(?:\b(?:final |correct |short )?answer\b(?: to [^.:\n]{1,80}?)?[\"'*_ ]*(?::|\bis\b:?)|^A:)[\"'*_ ]*\n*(?P<text>[^\n]*)",
    re.IGNORECASE | re.MULTILINE,
)
_PLAIN = re.compile(r"[*_`#>|]+")
_LONGEST = 10_000  # characters of a reply that are read, from its end
_LONGEST_SIDE = 300  # characters of a clause before and after a name: a model that repeats itself ends no sentence
_LINK = re.compile(r"(\]\()[^()\s]*\)")


def without_reasoning(reply: str) -> str:
    """Return the reply without its reasoning. A reply that ends within its reasoning becomes empty."""
    reply = _CHANNEL.sub("", reply)
    return _UNCLOSED.sub("", _CLOSED.sub("", reply)).strip()


def _answer_part(reply: str) -> str:
    """Return the part of a reply that it marks as the answer ("Answer: X", ``\\boxed{X}``), or the whole reply."""
    for pattern in (_TAG, _BOXED):
        if found := pattern.findall(reply):
            return str(found[-1])
    parts = [mark["text"] for mark in _MARK.finditer(reply) if mark["text"].strip("*_ .\"'")]
    return parts[-1] if parts else reply


# -- names --

# scripts that write no space between words, or attach particles to them: each letter counts as a word
_LETTERS = "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORD = re.compile(rf"[{_LETTERS}]|[^\s{_LETTERS}/|—–:;()\[\]<>=]+")
_POSSESSIVE = re.compile(r"['’]s\b[^\w]*$", re.IGNORECASE)
# in which marks, such as vowel signs, are in words
_EDGES = regex.compile(r"(?V1)\A[[\W_]--\p{N}]+(?=[\w\p{N}])|(?<=[\w\p{N}])[[\W_]--\p{N}]+\Z")
# these words before a name, or a name right after it, make it another name
_OTHER_BEFORE = frozenset(
    "new north south east west northern southern eastern western upper lower greater saint st san old little".split()  # noqa: SIM905
)
_NO_NAME = frozenset(
    "is was are were has had the in on at and or as since of for to from until it its he she his her not but now".split()  # noqa: SIM905
)


class _Word(NamedTuple):
    text: str
    start: int
    end: int


@dataclass
class _Mention:
    """A name in a reply."""

    name: str
    sides: frozenset[str]  # "new", "old" or both; empty: the subject
    start: int
    end: int
    level: int = 3  # 3: given as the answer, 2: "it was X", 1: as a former or future one, 0: denied or not known


def _words(text: str) -> list[_Word]:
    """Return the words that ``normalize`` leaves of a text, without "'s", and their places in the text."""
    found = []
    for match in _WORD.finditer(text):
        if word := normalize(_POSSESSIVE.sub("", match[0])).replace(" ", ""):
            bare = _EDGES.sub("", _POSSESSIVE.sub("", match[0]))
            start = match.start() + match[0].index(bare)
            found.append(_Word(word, start, start + len(bare)))
    return found


def _mentions(text: str, names: Mapping[str, tuple[str, frozenset[str]]]) -> list[_Mention]:
    """Return the names in a text, in order. The keys of ``names`` are their joined words. The longest name counts."""
    words, found, i = _words(text), [], 0
    longest = max(map(len, names), default=0)
    while i < len(words):
        joined, match = "", None
        for j in range(i, len(words)):
            joined += words[j].text
            if len(joined) > longest:
                break
            if joined in names:
                match = j
        if match is None:
            i += 1
            continue
        name, sides = names["".join(word.text for word in words[i : match + 1])]
        if not _is_part(text, words, i, match):
            found.append(_Mention(name, sides, words[i].start, words[match].end))
        i = match + 1
    return found


def _is_part(text: str, words: Sequence[_Word], first: int, last: int) -> bool:
    """Return whether the name is a part of a longer name, such as "South Marrow" or "Kestrel City Rollers"."""
    if first and words[first - 1].text in _OTHER_BEFORE and text[words[first - 1].end : words[first].start] == " ":
        return text[words[first - 1].start].isupper()
    if last + 1 == len(words) or text[words[last].end : words[last + 1].start] != " ":
        return False
    after = text[words[last + 1].start : words[last + 1].end]
    return after.istitle() and after.isalpha() and after.lower() not in _NO_NAME


def _names(row: Mapping[str, Any]) -> dict[str, tuple[str, frozenset[str]]]:
    """Return the names of the right and the gone objects and of the subject, by their words."""
    right, gone = right_answers(row), choices_of(row)[1]
    names: dict[str, tuple[str, frozenset[str]]] = {}
    for side, labels in (("", [row["subject"]]), ("new", right), ("old", gone)):
        for label in labels:
            key = "".join(word.text for word in _words(str(label)))
            name, sides = names.get(key, (str(label), frozenset()))
            if key:
                names[key] = (str(label) if side and not sides else name, sides | ({side} - {""}))
    return names


# -- how a sentence speaks of a name: "\x01" stands for the name, "\x02" for others --

_PARTS = {
    "<NAME>": r"[\"“'‘«*_`(\[]*\x01",
    "<FEW>": r"(?:[\w'’-]+:? ){0,4}?",  # words between a cue and the name
    "<YEAR>": r"(?:[12]\d{3})",
    "<TO>": r"\s?(?:-|–|—|to|until|and)\s?",
    "<CANNOT>": r"(?:do not|don't|does not|cannot|can not|can't|could not|couldn't|am unable to|'m unable to|am not able to|unable to|did not|didn't|won't)",
}
_PART = re.compile("|".join(_PARTS))
_CUES: dict[str, list[str]] = {
    kind: [_PART.sub(lambda part: _PARTS[part[0]], cue) for cue in cues]
    for kind, cues in yaml.safe_load(Path(__file__).with_name("reply_cues_en.yaml").read_text("utf-8")).items()
}
_LEVELS = [
    (level, re.compile("|".join(f"(?:{cue})" for cue in cues), re.IGNORECASE))
    for level, cues in enumerate((_CUES["unknown"] + _CUES["denied"], _CUES["former"], _CUES["was"]))
]
_SAME = re.compile(r"[\"”'’»*_`)\]]* (?:and|or|nor|and/or) (?:the )?[\"“'‘«*_`(\[]*", re.IGNORECASE)  # X or Y
_LATER = re.compile(
    r"\b(?:now|currently|current|today|successor|succeeded|replaced|followed by|since)\b", re.IGNORECASE
)
# a sentence, a line, or a part of either that a semicolon, a contrast or a relative clause begins
_CLAUSE = re.compile(
    r"\n|;|(?<![\s.]\w)(?<!\bSt)(?<!\bMr)(?<!\bDr)(?<!\bMrs)[.!?](?=\s)|,?\s(?=but\b(?! (?:it|he|she|they) (?:is|was|are|were)(?:n't| not))|though\b|while\b|whereas\b|and (?:has|is|was|joined|signed)\b|then\b|now\b)|,\s(?=not\b|now\b)",
    re.IGNORECASE,
)
_BOLD = re.compile(r"\*\*(.+?)\*\*|__(.+?)__", re.DOTALL)


def _weigh(text: str, mentions: Sequence[_Mention]) -> None:
    """Set the level of each mention by the clause around it."""
    cuts = [match.start() for match in _CLAUSE.finditer(text)]
    for before, mention in zip([None, *mentions], mentions, strict=False):
        start = max(max((cut for cut in cuts if cut < mention.start), default=0), mention.start - _LONGEST_SIDE)
        end = min(min((cut for cut in cuts if cut >= mention.end), default=len(text)), mention.end + _LONGEST_SIDE)
        parts, at = [], start
        for other in mentions:
            if start <= other.start and other.end <= end:
                parts += [text[at : other.start], "\x01" if other is mention else "\x02"]
                at = other.end
        clause = " ".join("".join([*parts, text[at:end]]).split())
        mention.level = next((level for level, cues in _LEVELS if cues.search(clause)), 3)
        if before is not None and _SAME.fullmatch(text[before.end : mention.start]):
            mention.level = min(mention.level, before.level)


# -- refusals --

_ABSTAINS = re.compile(rf"\b(?:{'|'.join(_CUES['abstains'])})", re.IGNORECASE)
_GUESSES = re.compile(
    r"(?i:\b(?:think|believe|guess|probably|likely|possibly|perhaps|maybe|might be|could be|may be|to my knowledge|as of)\b)"
    r"[^\n]*?\b(?:is|it's|be|was|maybe|perhaps|possibly|probably|likely)\b[^\n]*?\s(?!I\b|\x02)[A-Z]\w+"
)


def read(reply: str, row: Mapping[str, Any]) -> Reading:
    """Return the outcome of a reply to the question about a fact, and the answer in it.

    - ``new``: the reply gives a right answer (``references.right_answers``)
    - ``old``: it gives an object that was right before and no longer is (``references.choices_of``)
    - ``both``: it gives answers of both kinds
    - ``abstained``: it gives no name and refuses, says that it does not know, or is empty
    - ``neither``: it gives another answer

    A name counts if all its words stand in the reply, as words after ``normalize``. In "no longer X, but Y", "Y, who
    succeeded X" or "X until 2021; now Y" only Y counts. A former object counts if the reply gives nothing else. A part
    of a name, such as a surname, is not enough.

    The answer is the name that was found, else the first sentence of the part that the reply marks as its answer.
    """
    part = _answer_part(_LINK.sub(r"\1)", without_reasoning(reply).replace("’", "'"))[-_LONGEST:])
    mentions = _mentions(part, _names(row))
    _weigh(part, mentions)
    plain = first_sentence(_PLAIN.sub(" ", part).strip().strip("\"'“”«»- "))
    masked = part
    for mention in reversed(mentions):
        masked = f"{masked[: mention.start]}\x02{masked[mention.end :]}"
    unknown = asking(language_of(row)).unknown
    abstains = not normalize(part) or _ABSTAINS.search(masked) is not None or unknown.lower() in masked.lower()
    given = [mention for mention in mentions if mention.sides]
    top = max((mention.level for mention in given), default=0)
    if top == 0 or (top == 1 and (abstains or _LATER.search(part))):
        return Reading("abstained" if abstains and not _GUESSES.search(masked) else "neither", plain)
    given = [mention for mention in given if mention.level == top]
    bold = [match.span() for match in _BOLD.finditer(part)]
    given = [mention for mention in given if any(a <= mention.start and mention.end <= b for a, b in bold)] or given
    sides = frozenset().union(*(mention.sides for mention in given))
    if len(sides) > 1:
        return Reading("both", plain)
    return Reading("new" if "new" in sides else "old", given[0].name)


def outcome(reply: str, row: Mapping[str, Any]) -> Outcome:
    """Return the outcome of a reply to the question about a fact; see ``read``."""
    return read(reply, row).outcome
