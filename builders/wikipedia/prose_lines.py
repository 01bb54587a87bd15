"""The last pass over a page's text: lines become sections, paragraphs and clean prose.

Earlier passes leave marks in the text, which this pass removes: where something was dropped, the blanks, commas and
brackets around it must go as well.
"""

import re
import unicodedata
from html.entities import html5
from typing import NamedTuple

from temporalwiki.builders.wikipedia.template_text import END_SOUND, JOINT, SOUND

# Marks that live in the text between passes. No XML document can contain these characters.
GONE = "\x01"  # something was dropped here
ASIDE = "\x02"  # a picture or category was here, which does not interrupt the paragraph
NAMED, END_NAMED = "\x06", "\x07"  # around the name of a dropped template, which ``read_lines`` takes out
FORMULA = "\x08"  # a formula that plain text cannot show; ``split_sentences`` drops its sentence
MARKS = (GONE, ASIDE, SOUND, END_SOUND, JOINT, NAMED, END_NAMED, FORMULA)


class Headings(NamedTuple):
    """The headings of sections of references and links, in lower case."""

    apparatus: frozenset[str] = frozenset()  # any prose in these sections is about sources
    lists_only: frozenset[str] = frozenset()  # in these, lists are references but a paragraph may be about the subject


_QUOTES = re.compile(r"'{2,}")
_ENTITY = re.compile(r"&(#[0-9]{1,8}|#[xX][0-9A-Fa-f]{1,7}|[A-Za-z][A-Za-z0-9]{1,31});")
_INVISIBLE = re.compile(
    "[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\x00\x06\x07\x0e-\x1b\x7f]"
)
NAMES = re.compile(f"{NAMED}([^{NAMED}{END_NAMED}]*){END_NAMED}")
_UNSEEN = f" \t{GONE}{ASIDE}"


class SectionState(NamedTuple):
    """The kind of section that a line is in."""

    lead: bool  # before the first heading
    skipped_level: int  # level of the heading of the apparatus section that the line is in, or 0
    lists_only: bool  # only the lists of that section are apparatus


PAGE_START = SectionState(lead=True, skipped_level=0, lists_only=False)


class Lines(NamedTuple):
    """What ``read_lines`` returns: paragraphs, the state at the end, and the names of templates dropped in prose."""

    paragraphs: list[str]
    state: SectionState
    dropped: list[str]


def read_lines(text: str, state: SectionState, headings: Headings) -> Lines:
    """Return the paragraphs of a text that begins in a section of ``state``, with the state at its end."""
    result: list[str] = []
    prose: list[str] = []
    items: list[str] = []
    dropped: list[str] = []
    lead, skipped_level, lists_only = state

    def clean(text: str) -> str:
        if NAMED not in text:
            return _clean(text, lead)
        if cleaned := _clean(NAMES.sub("", text), lead):
            dropped.extend(NAMES.findall(text))
        return cleaned

    def finish() -> None:
        if prose:
            paragraph = clean(" ".join(prose))
            prose.clear()
            if paragraph:
                result.append(paragraph)
        elif items:
            cleaned = [item for item in (clean(_unquote(item)) for item in items) if item]
            items.clear()
            if cleaned:
                result.append("\n".join(cleaned))

    for line in text.split("\n"):
        first = line[:1]
        if first in _UNSEEN:  # also true for an empty line
            bare = line.strip(_UNSEEN)
            if not bare:
                if ASIDE not in line:
                    finish()
                continue
            if first not in " \t" and bare[0] in "=*#:;":
                line, first = bare, bare[0]
        if first == "=" and (heading := _heading(line)):
            finish()
            lead = False
            level, title = heading
            if not skipped_level or level <= skipped_level:
                lists_only = title in headings.lists_only
                skipped_level = level if lists_only or title in headings.apparatus else 0
            continue
        if skipped_level and (not lists_only or first in "*#:;"):
            finish()
            continue
        if first in "*#:;":
            if prose:
                finish()
            if first == ";" and ":" in line:
                term, _, definition = line.lstrip("*#:; ").partition(":")
                items.append(term)
                items.append(definition)
            else:
                items.append(line.lstrip("*#:; "))
        elif first == "|" or line.startswith("----") or line.isspace():
            finish()
        else:
            if items:
                finish()
            prose.append(_unquote(line))
    finish()
    return Lines(result, SectionState(lead, skipped_level, lists_only), dropped)


def _heading(line: str) -> tuple[int, str] | None:
    line = line.strip(_UNSEEN)
    left = len(line) - len(line.lstrip("="))
    right = len(line) - len(line.rstrip("="))
    level = min(left, right, 6)
    title = line[level : len(line) - level].strip(f"{_UNSEEN}:.'")
    if not level or not title or left == len(line):
        return None
    return level, " ".join(title.split()).lower()


def _rank_as_apostrophe(before: str) -> int:
    if before[-1:] in (" ", ""):
        return 2
    return 0 if len(before) < 2 or before[-2] == " " else 1


def _unquote(line: str) -> str:
    """Remove bold and italic marks as MediaWiki reads them: l'''orage'' keeps its apostrophe."""
    if "'" not in line:
        return line
    if "'''" not in line:
        return line.replace("''", "")
    pieces = _QUOTES.split(line)
    lengths = [len(run) for run in _QUOTES.findall(line)]
    italics = sum(length in (2, 5) or length > 5 for length in lengths)
    bolds = sum(length in (3, 4, 5) or length > 5 for length in lengths)
    literal = [0 if length in (2, 3, 5) else 1 if length == 4 else length - 5 for length in lengths]
    threes = [index for index, length in enumerate(lengths) if length == 3]
    if threes and italics % 2 and bolds % 2:
        # One ''' must be an apostrophe and ''. MediaWiki prefers one after a one-letter word, then one inside a word.
        literal[min(threes, key=lambda index: _rank_as_apostrophe(pieces[index]))] = 1
    return pieces[0] + "".join("'" * count + piece for count, piece in zip(literal, pieces[1:], strict=True))


# These patterns tidy up where templates were removed. The text has single spaces by then, and every repetition is
# bounded, so that no pattern can search far from where it starts.
_GONE_RUN = re.compile(rf"{GONE}(?:(?: ?[,;/:])?(?: or| and)?(?: sometimes| also| locally)? ?{GONE})+")
_AFTER_OPENING = re.compile(rf"([(\[（]) ?{GONE}(?: ?[,;:，、/](?![^ {GONE}])| or(?= )| and(?= )){{0,3}} ?")
_BEFORE_CLOSING = re.compile(
    rf"[ ,;:–—]{{0,3}}(?:\b(?:pronounced|pronunciation|IPA|pron\.)[ :]{{0,2}})?{GONE}[ ,;:]{{0,3}}(?=[)\]）])"
)
_EMPTIED = re.compile(rf" ?[(\[（]{GONE}{{1,3}}[)\]）]")
_BETWEEN_STOPS = re.compile(rf"[,;:] ?{GONE} ?(?=[,;:.])|\. ?{GONE} ?(?=\.(?: |$))")
# Amounts in today's money come from a table outside the article: "$5 ($75 in 2014 dollars)".
_AMOUNT_GONE = re.compile(rf"\([A-Za-z ]{{0,40}}[$£€]{GONE}[^()]{{0,80}}\)")
_BEFORE_STOP = re.compile(rf" ?{GONE} ?(?=[.,;:!?)\]）])")
_BRACKET_GONE = re.compile(rf"([(\[（]){GONE} ?")
# The patterns above can begin with any character and are slow to search for. They can only match where one of these,
# which are fast to search for, matches.
_GONE_CLOSING = re.compile(rf"{GONE}[ ,;:]{{0,3}}[)\]）]")
_GONE_STOP = re.compile(rf"{GONE} ?[.,;:!?)\]）]")
_OPENING_GONE = re.compile(rf"[(\[（] ?{GONE}")
_SOUNDS = re.compile(rf"([()])|{SOUND}([^{SOUND}{END_SOUND}]*){END_SOUND}")
_JOINT_AFTER_DIGIT = re.compile(rf"(?<=[0-9]){JOINT}")
_WORD_CHARACTER = re.compile(r"[^\W_]")
# Normalization takes time that grows with the square of the number of accents on a letter. No language has more than a
# few; this bound is that of Unicode's stream-safe text format.
MAX_ACCENTS = 30
_MANY_ACCENTS = re.compile(rf"[^\w\s]{{{MAX_ACCENTS + 1},}}")


def _clean(line: str, lead: bool) -> str:
    """Return the final form of a line, or "" if it has no letter or digit."""
    if "&" in line:
        line = _ENTITY.sub(_character, line)
    if line.isprintable():  # so it has no marks, and no white space but blanks
        if "  " in line or line[:1] == " " or line[-1:] == " ":
            line = " ".join(line.split())
    else:
        line = line.replace(ASIDE, "")
        if JOINT in line:
            line = _JOINT_AFTER_DIGIT.sub(" ", line).replace(JOINT, "")
        line = " ".join(_INVISIBLE.sub("", line).split())
        if SOUND in line or END_SOUND in line:
            line = _without_sounds(line, lead)
        if GONE in line:
            line = _tidy(line)
    if not _WORD_CHARACTER.search(line):
        return ""
    if unicodedata.is_normalized("NFC", line):
        return line
    return unicodedata.normalize("NFC", _MANY_ACCENTS.sub(_without_most_accents, line))


def _without_most_accents(match: re.Match[str]) -> str:
    kept = []
    count = 0
    for character in match[0]:
        count = count + 1 if unicodedata.category(character)[0] == "M" else 0
        if count <= MAX_ACCENTS:
            kept.append(character)
    return "".join(kept)


def _character(match: re.Match[str]) -> str:
    name = match[1]
    if name[0] != "#":
        return html5.get(name + ";", match[0])
    code = int(name[2:], 16) if name[1] in "xX" else int(name[1:])
    if code < 32 or 0xD800 <= code < 0xE000 or code > 0x10FFFF:
        return " " if code in (9, 10, 13) else ""
    return chr(code)


def _without_sounds(line: str, lead: bool) -> str:
    """Drop pronunciations that are in brackets in the lead, and keep others."""
    depth = 0

    def shown(match: re.Match[str]) -> str:
        nonlocal depth
        if match[1]:
            depth = depth + 1 if match[1] == "(" else max(0, depth - 1)
            return match[1]
        return GONE if depth and lead else match[2]

    line = _SOUNDS.sub(shown, line)
    return " ".join(line.replace(SOUND, "").replace(END_SOUND, "").split())


def _tidy(line: str) -> str:
    if f"${GONE}" in line or f"£{GONE}" in line or f"€{GONE}" in line:
        line = _AMOUNT_GONE.sub(GONE, line)
    for _ in range(2):  # twice, for brackets within brackets
        line = _GONE_RUN.sub(GONE, line)
        if _OPENING_GONE.search(line):
            line = _AFTER_OPENING.sub(rf"\1{GONE}", line)
        if _GONE_CLOSING.search(line):
            line = _BEFORE_CLOSING.sub(GONE, line)
            line = _EMPTIED.sub(GONE, line)
    if _GONE_STOP.search(line):
        line = _BETWEEN_STOPS.sub("", line)
        line = _BEFORE_STOP.sub("", line)
    if _OPENING_GONE.search(line):
        line = _BRACKET_GONE.sub(r"\1", line)
    return " ".join(line.replace(GONE, "").split())
