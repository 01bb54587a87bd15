"""Salient spans, the names and dates of a text (Guu et al. 2020), by rules or a spaCy pipeline.

Training of T5 masks them (methods/salient_spans.py), and the news-based configs of CKL ask about them.
"""

import hashlib
import importlib
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import regex

from temporalwiki.base.errors import InputError, in_one_line
from temporalwiki.base.json_files import read_yaml

RULES = "rules"
VERSION = 1  # increase it when the rules change: kept windows of other versions are not used

Span = tuple[int, int]  # start and end in a text, in characters

# Sentences

_WORDS = read_yaml(Path(__file__).with_name("english_words.yaml"))
_ABBREVIATED, _OPENER = (frozenset(_WORDS[name].split()) for name in ("abbreviations", "openers"))
_SENTENCE_END = regex.compile(
    r"""[.!?…]["'”’»)\]]{0,3}+\s++(?!\p{Ll})    # no lower-case letter follows
    |   [。！？]["'”’」』）]{0,3}+
    |   \n\s*+""",
    regex.VERBOSE,
)
_LAST_WORD = regex.compile(r"(?:^|[^\p{L}\p{M}\p{N}])([\p{L}\p{M}\p{N}]{1,7})\.\s*+$")


def sentence_starts(text: str) -> list[int]:
    """Return where the sentences and lines of a text begin, except the first; "St." and initials end no sentence."""
    starts = []
    for match in _SENTENCE_END.finditer(text):
        word = _LAST_WORD.search(text[max(0, match.start() - 9) : match.start() + 1])
        if word and "\n" not in match[0]:
            initial = len(word[1]) == 1 and word[1].isupper()
            if initial or word[1].lower() in _ABBREVIATED:
                continue
        if match.end() < len(text):
            starts.append(match.end())
    return starts


# Spans by rules

_JOINERS = (
    r"of(?:\ the)?|de(?:\ l[ao]s?)?|du|des|dos|da|do|del|dell[ao]|di|van(?:\ de[rn]?)?|von(?:\ de[rnm])?|zu|zur|"
    r"bin|ibn|ben|upon"
)
_EPITHETS = "Great|Elder|Younger|Bold|Conqueror|Terrible|Fat|Wise|Pious|Confessor|Lionheart|Magnificent|Baptist"
_WORD = (
    # "O'Brien", "Jean-Paul", "AT&T", "C++" as "C", "Amazon.com"; not the s of "Newton's"
    r"(?:\b(?:[aA]l-|[dDlL]['’]))?+\p{Lu}[\p{L}\p{M}\p{N}]*+"
    r"(?:(?:['’](?![sS]\b)(?=\p{L})|[-‐‑](?=[\p{Lu}\p{N}])|&(?=\p{Lu})|\.(?=\p{L}))[\p{L}\p{M}\p{N}]++)*+"
)
_INITIAL = r"\p{Lu}\.(?:\p{Lu}\.)*+"
_SHORT = r"(?:St|Mr|Mrs|Ms|Dr|Mt|Ft|Gen|Col|Capt|Lt|Prof|Gov|Sen|Rev|Jr|Sr|Ste)\."
_NOT_OPENER = r"(?!(?:The|In|On|At|It|He|She|They|This|These|That|A|An|For|From|By|After|As|However|Its|His|Her)\b)"
_PART = (
    rf"(?:{_SHORT}(?=[ \u00a0]\p{{Lu}})|{_INITIAL}(?=[ \u00a0]{_NOT_OPENER}\p{{Lu}})|\p{{Lu}}\.(?:\p{{Lu}}\.)++"
    rf"|{_WORD}|[ie]\p{{Lu}}\p{{L}}{{2,}}+)"
)
_NUMBER = r"[0-9]{1,3}(?![0-9.,%][0-9]|[0-9]|%)"  # "Apollo 11"
_SPACE = rf"(?:(?<!\.)[ \u00a0]|(?<=\.)[ \u00a0]{_NOT_OPENER})"  # "in the U.S. The army" is two sentences
_NAME = regex.compile(
    rf"(?<![\p{{L}}\p{{M}}\p{{N}}_@#/]){_PART}"
    rf"(?:{_SPACE}(?:(?:(?:{_JOINERS})[ \u00a0])?+{_PART}|the\ (?:{_EPITHETS})\b|{_NUMBER})){{0,9}}+"
)
_FIRST_WORD = regex.compile(rf"{_PART}(?:[ \u00a0](?:(?:{_JOINERS})[ \u00a0])?+)?")
_QUOTE_BEFORE = regex.compile(r"(?:^|[\s(\[])[\"“«„‘'*•–—-]\s?$|[:•*]\s$")

_MONTH = (
    r"(?:Jan(?:uary|\.)?|Feb(?:ruary|\.)?|Mar(?:ch|\.)|Apr(?:il|\.)?|May|June?|July?|Aug(?:ust|\.)?|"
    r"Sept?(?:ember|\.)?|Oct(?:ober|\.)?|Nov(?:ember|\.)?|Dec(?:ember|\.)?)"
)
_YEAR = r"(?:1[0-9]{3}|20[0-9]{2})(?![0-9])"
_DAY = r"[0-3]?[0-9](?:st|nd|rd|th)?(?![\p{L}\p{N}])"
_COUNTED = f"(?:{'|'.join(_WORDS['counted'].split())})"
_DATE = regex.compile(
    rf"""(?=[0-9JFMASOND])(?:(?<![\p{{L}}\p{{N}}.,/$€£¥+:])(?:
        {_DAY}(?:\ of)?\ {_MONTH}(?:,?\ {_YEAR})?(?!\p{{L}})
    |   {_MONTH}\ {_DAY}(?:,?\ {_YEAR})?(?!\p{{L}})
    |   {_MONTH},?\ (?:of\ )?{_YEAR}
    |   [0-3]?[0-9]\.?\ (?:de\ )?(?!and\b|for\b|und\b|off\b|der\b|the\b)\p{{L}}{{3,12}}+\.?\ (?:de\ )?{_YEAR}
    |   {_YEAR}-[01][0-9]-[0-3][0-9](?![0-9])
    |   [0-9]{{1,4}}\ ?(?:BCE?|AD|CE)\b
    |   [0-9]{{1,2}}(?:st|nd|rd|th)\ (?:century|centuries)\b
    |   {_YEAR}(?:'?s\b|[/–-][0-9]{{2}}(?![0-9]))?
            (?![\p{{L}}\p{{N}}/]|[.,:][0-9]|[ \u00a0-]?{_COUNTED}(?![\p{{L}}\p{{N}}]))
    )
    |   (?<![0-9]){_YEAR}[年년](?:\s?[0-9]{{1,2}}[月월](?:\s?[0-9]{{1,2}}[日일])?)?)
    """,
    regex.VERBOSE,
)


class Rules:
    """Finds dates and names by their form, for English and other languages that capitalise names but not nouns.

    Dates are years from 1000 to 2099, and days and months with or without a year. Names are sequences of capitalised
    words, possibly with words between them ("University of Oxford"). The first word of a sentence belongs to a name if
    it is capitalised inside another sentence, or if a capitalised word follows and the text never has it in lower
    case. The time is linear in the length of the text.
    """

    key = f"rules {VERSION}"

    def __call__(self, text: str) -> list[Span]:
        """Return the spans of a text in order, without overlaps."""
        dates = [match.span() for match in _DATE.finditer(text)]
        openings = {0, *sentence_starts(text)}
        found: list[tuple[Span, bool]] = []
        named: set[str] = set()  # capitalised within sentences
        for match in _NAME.finditer(text):
            opens = _opens(text, match.start(), openings)
            found.append((match.span(), opens))
            words = match[0].split()
            named.update(words[1:] if opens else words)
        lower_case = set(text.split())
        names = [name for span, opens in found if (name := _name(text, span, opens, named, lower_case))]
        return _merged(dates, names)


def _opens(text: str, at: int, openings: set[int]) -> bool:
    """Tell whether a word may be capitalised because it begins a sentence, a quotation or a line."""
    if at in openings:
        return True
    before = text[max(0, at - 3) : at]
    return not before[-2:-1].isalnum() and bool(_QUOTE_BEFORE.search(before))


def _name(text: str, span: Span, opens: bool, named: set[str], lower_case: set[str]) -> Span | None:
    """Return the part of a capitalised sequence that is a name, or None."""
    start, end = span
    while start < end:
        word = text[start:end].split(None, 1)[0]
        lower = word.lower()
        ordinary = lower in _OPENER and (opens or len(word) == 1 or not word.isupper())
        acronym = sum(map(str.isupper, word)) > 1 and lower not in lower_case
        if not ordinary and (not opens or acronym or word in named):
            break
        first = _FIRST_WORD.match(text, start, end)
        if first is None or not (ordinary or first.end() == end or lower in lower_case):
            break
        start, opens = first.end(), False
    if text[end - 1] == "." and text[end - 3] != ".":  # the end of a sentence after an initial, but "U.S."
        end -= 1
    if sum(map(str.isalpha, text[start:end])) < 2:
        return None
    return start, end


def _merged(dates: list[Span], names: list[Span]) -> list[Span]:
    """Return dates and names in order, without names that overlap a date."""
    spans: list[Span] = []
    at = 0
    for name in names:
        while at < len(dates) and dates[at][1] <= name[0]:
            spans.append(dates[at])
            at += 1
        if at == len(dates) or dates[at][0] >= name[1]:
            spans.append(name)
    return spans + dates[at:]


# Spans by spaCy

_LABELS = frozenset(
    ("PERSON", "NORP", "FAC", "ORG", "GPE", "LOC", "PRODUCT", "EVENT", "WORK_OF_ART", "LAW", "LANGUAGE", "DATE")
) | {"PER", "MISC"}  # labels of pipelines for other languages
_PIPES_NOT_NEEDED = ["tagger", "morphologizer", "parser", "senter", "lemmatizer", "trainable_lemmatizer", "textcat"]


def load_pipeline(name: str, exclude: Sequence[str], instead: str, others: Sequence[str] = ()) -> tuple[Any, str]:
    """Return a spaCy pipeline, by name or folder, and a key for its files.

    Raises InputError if spaCy or the pipeline is missing; its message recommends ``instead``, and may suggest one of
    the names in ``others``.
    """
    try:
        spacy = importlib.import_module("spacy")
    except ImportError:
        raise InputError(f"{name}: spaCy is not installed; pip install spacy, or {instead}") from None
    try:
        nlp = spacy.load(name, exclude=exclude)
    except (OSError, ValueError, ImportError) as error:
        near = get_close_matches(name, [*others, *spacy.util.get_installed_models()], n=1)
        if "E050" not in str(error):
            raise InputError(f"{name}: spaCy cannot load it ({in_one_line(error)[:200]})") from None
        raise InputError(
            f"{name}: no such spaCy pipeline, nor a folder with one; "
            + (f"did you mean {near[0]}? Otherwise " if near else "")
            + f"python -m spacy download {name}, or {instead}"
        ) from None
    # a hash of the files: people who train a pipeline seldom change its version
    content = hashlib.blake2b(digest_size=8)
    for path in sorted(path for path in Path(nlp.path).rglob("*") if path.is_file()):
        content.update(path.relative_to(nlp.path).as_posix().encode() + b"\0")
        content.update(hashlib.blake2b(path.read_bytes()).digest())
    return nlp, f"spacy {spacy.__version__} {content.hexdigest()}"


class Pipeline:
    """Finds named entities and dates with a spaCy pipeline, by name or folder."""

    def __init__(self, name: str) -> None:
        """Raise InputError if spaCy or the pipeline is missing, or if the pipeline finds no entities."""
        try:
            self._nlp, self.key = load_pipeline(name, _PIPES_NOT_NEEDED, f"use --spans {RULES}", [RULES])
        except InputError as error:
            raise InputError(f"--spans {error}") from None
        labels = {label for labels in self._nlp.pipe_labels.values() for label in labels}
        if not labels & _LABELS:
            raise InputError(
                f"--spans {name}: this pipeline finds no entities such as PERSON or DATE; "
                f"use one with a named entity recogniser, or --spans {RULES}"
            )

    def __call__(self, text: str) -> list[Span]:
        """Return the spans of a text in order, without overlaps."""
        spans = []
        for start, end in pieces(text, self._nlp.max_length):
            for entity in self._nlp(text[start:end]).ents:
                if entity.label_ in _LABELS and entity.text.strip():
                    spans.append((start + entity.start_char, start + entity.end_char))
        return spans


def pieces(text: str, longest: int) -> Iterator[Span]:
    """Yield pieces of at most ``longest`` characters, cut at the ends of paragraphs, lines or words."""
    start = 0
    while len(text) - start > longest:
        ends = (text.rfind(mark, start, start + longest) + len(mark) for mark in ("\n\n", "\n", " "))
        end = next((end for end in ends if end > start + longest // 2), start + longest)
        yield start, end
        start = end
    yield start, len(text)


Find = Rules | Pipeline


def finder(spans: str = RULES) -> Find:
    """Return the rules or a spaCy pipeline, by name or folder; raise InputError if that pipeline is not installed."""
    return Rules() if spans == RULES else Pipeline(spans)
