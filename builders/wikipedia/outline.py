"""The surroundings of the sentences of an article: headings, the lead-ins of lists, and the targets of links."""

import html
import re
import urllib.parse
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import regex

from temporalwiki.base.normalization import INVISIBLE
from temporalwiki.builders.wikipedia.languages import language_of
from temporalwiki.builders.wikipedia.plain_text import marked_lines
from temporalwiki.builders.wikipedia.prose_lines import ASIDE, GONE, NAMES, PAGE_START, read_lines
from temporalwiki.builders.wikipedia.sentences import SECONDS, split_sentences, time_limit

_MARKS = f" \t{GONE}{ASIDE}"
_MARK = re.compile(r"[*#:;]+")
_HEADING = re.compile(r"(={1,6})([^=].*?)=+")
_LINK = regex.compile(r"\[\[:?([^\[\]|{}<>\n#]++)(?:#[^\[\]|\n]*+)?(?:\|([^\[\]|\n]*+))?\]\]([\p{L}\p{M}]*+)")
_BEFORE_LINK = regex.compile(r"(?r)[[\p{Lo}\p{M}]--[\p{Han}\p{Hiragana}\p{Katakana}]]+", regex.V1)


class Place(NamedTuple):
    """Where a sentence stands in its article."""

    headings: tuple[str, ...] = ()  # of its section and the sections around that, outermost first
    lead_in: str = ""  # of a list item: the two items above it and the sentence before the list; else ""
    item: bool = False  # whether it is in a list


class Line(NamedTuple):
    """A paragraph or an item of a list, with its sentences."""

    place: Place
    sentences: list[str]


def outline(wikitext: str, language: str, namespaces: Mapping[str, int] | None = None) -> list[Line]:
    """Return the lines of an article with the sentences of ``article_sentences``, without marks, and their places.

    Raises UnreadablePage as ``article_sentences`` does.
    """
    with time_limit(SECONDS):
        return list(_lines(marked_lines(wikitext, namespaces=namespaces, language=language), language))


def _lines(text: str, language: str) -> Iterator[Line]:
    state, names = PAGE_START, language_of(language).headings
    headings: list[tuple[int, str]] = []
    prose: list[str] = []
    above: list[str] = []  # the items that the current list item is part of, by depth
    lead_in = ""  # the sentence before the list

    def read(lines: str, place: Place) -> Iterator[Line]:
        nonlocal state
        found, state, _ = read_lines(lines, state, names)
        for paragraph in found:
            for line in paragraph.split("\n"):
                if sentences := split_sentences(line, language):
                    yield Line(place, [sentence.strip() for sentence in sentences])

    def here() -> tuple[str, ...]:
        return tuple(title for _, title in headings)

    for line in [*text.split("\n"), ""]:
        bare = line if line[:1] in (" ", "\t") else line.strip(_MARKS)
        mark = _MARK.match(bare)
        heading = _HEADING.fullmatch(bare)
        if not mark and not heading and (bare.strip(_MARKS) or ASIDE in line):
            prose.append(line)
            continue
        if prose:
            for found in read("\n".join(prose), Place(here())):
                lead_in = found.sentences[-1]
                yield found
            prose, above = [], []
        if mark:
            depth = len(mark[0])
            del above[depth - 1 :]
            items = list(read(bare, Place(here(), " ".join([lead_in, *above[-2:]]).strip(), item=True)))
            yield from items
            above += [" ".join(items[0].sentences) if items else ""] * (depth - len(above))
        elif heading:
            list(read(line, Place()))  # the state has to know the heading
            level = len(heading[1])
            headings = [(outer, title) for outer, title in headings if outer < level]
            headings.append((level, NAMES.sub("", heading[2]).strip()))
            lead_in, above = "", []


def links(wikitext: str) -> dict[str, set[str]]:
    """Return, for each link text in an article as readers see it, the titles of the pages that it links to.

    Letters around a link are part of its text. Before it, only those of scripts without capitals are, which write
    articles and prepositions together with a name: ``ב[[נמל]]``.
    """
    found: dict[str, set[str]] = {}
    for match in _LINK.finditer(wikitext):
        target, text, ending = match.groups(default="")
        if "%" in target or "&" in target:
            target = html.unescape(urllib.parse.unquote(target))
        title = " ".join(INVISIBLE.sub("", target).replace("_", " ").split())
        start, before = match.start(), None
        if not wikitext[start - 1 : start].isascii():  # the pattern takes longer than the rest
            before = _BEFORE_LINK.match(wikitext, max(0, start - 9), start)
        shown = html.unescape((before[0] if before else "") + (text or target) + ending)
        shown = " ".join(shown.replace("''", "").split())
        if title and shown:
            found.setdefault(shown, set()).add(title[0].upper() + title[1:])
    return found
