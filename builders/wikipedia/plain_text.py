"""Turn wikitext into paragraphs of prose.

A page goes through a fixed number of passes in MediaWiki's own order: verbatim tags, templates, tables, links, HTML,
lines. Each pass finds its tokens with one regular expression that cannot backtrack, and pairs them with an explicit
stack. So the time is proportional to the length of any page, and nothing recurses.

docs/wikitext.md explains which text is kept and why. Module ``template_text`` has the text of each template,
and module ``prose_lines`` the last pass.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from itertools import pairwise
from pathlib import Path

from temporalwiki.base.json_files import read_yaml
from temporalwiki.builders.wikipedia import prose_lines
from temporalwiki.builders.wikipedia.formulas import plain_formula
from temporalwiki.builders.wikipedia.languages import is_redirect, language_of, mediawiki_names
from temporalwiki.builders.wikipedia.template_text import Rules, template_name, template_text
from temporalwiki.builders.wikipedia.variants import convert
from temporalwiki.builders.wikipedia.words import words

MAX_CHARACTERS = 4_000_000
MAX_DEPTH = 200

FILE, CATEGORY = 6, 14


class UnreadablePage(ValueError):
    """Raised for a page outside the fixed bounds of this parser, or outside the time limit in ``sentences``.

    ``reason`` is the key under which the build counts the page: "too_long", "nested_too_deep" or "takes_too_long",
    followed by "_in_prev" if ``read_versions`` cannot read the previous version.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def paragraphs(wikitext: str, *, namespaces: Mapping[str, int] | None = None, language: str = "en") -> list[str]:
    """Return the prose paragraphs of a page in reading order.

    A list is one paragraph whose items are separated by newlines; every other paragraph is one line. All text is in
    NFC with single spaces. ``namespaces`` maps the wiki's own namespace names, from the dump's siteinfo, to their
    numbers, so that files (6) and categories (14) are recognised by every name. ``language`` decides the text of
    templates. A mark, FORMULA, stands for a formula that plain text cannot show.

    Raises UnreadablePage if the page is longer than MAX_CHARACTERS, or nests deeper than MAX_DEPTH.
    """
    return read_page(wikitext, namespaces=namespaces, language=language).paragraphs


def read_page(
    wikitext: str, *, namespaces: Mapping[str, int] | None = None, language: str = "en"
) -> prose_lines.Lines:
    """Return the ``paragraphs`` of a page, and the names of the templates that were dropped inside prose."""
    text = _normalized(wikitext)
    if text[:40].lstrip().lower().startswith("#redirect") or is_redirect(text):
        return prose_lines.Lines([], prose_lines.PAGE_START, [])
    wiki = _Wiki(namespaces, language)
    return prose_lines.read_lines(_lines(text, wiki), prose_lines.PAGE_START, wiki.language.headings)


def read_versions(
    previous: str, recent: str, *, namespaces: Mapping[str, int] | None = None, language: str = "en"
) -> tuple[prose_lines.Lines, prose_lines.Lines]:
    """Return what ``read_page`` returns of two versions of a page.

    Raises UnreadablePage. If the previous version cannot be read, the reason ends in "_in_prev".
    """
    after = read_page(recent, namespaces=namespaces, language=language)
    try:
        return read_page(previous, namespaces=namespaces, language=language), after
    except UnreadablePage as problem:
        raise UnreadablePage(f"{problem.reason}_in_prev") from None


def _normalized(text: str) -> str:
    if len(text) > MAX_CHARACTERS:
        raise UnreadablePage("too_long")
    for mark in prose_lines.MARKS:
        if mark in text:  # searching is faster than replacing
            text = text.replace(mark, "")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text


class _Wiki:
    """What decides how the pages of a wiki read: its names for files, its templates and its headings."""

    def __init__(self, namespaces: Mapping[str, int] | None, language: str) -> None:
        self.language = language_of(language)
        self.hidden = hidden_prefixes(tuple(namespaces.items()) if namespaces else (), language)

    def replace_template(self, inside: Frame, before: str, after: str) -> tuple[str, str]:
        """Return what replaces a template, and the text after it."""
        for index in range(1, len(inside), 2):
            if prose_lines.NAMED in inside[index]:
                inside[index] = prose_lines.NAMES.sub("", inside[index])
        rules = self.language.templates
        shown = template_text(inside, rules, self.language.writing)
        if not shown:
            shown = _named(inside[0], before, rules) + (prose_lines.GONE if before[-1:] in _BEFORE_GONE else "")
        if inside[0][:1] == "{" and after[:1] == "}":  # {{{a parameter}}}
            after = after[1:]
        return shown, after


def marked_lines(wikitext: str, *, namespaces: Mapping[str, int] | None = None, language: str = "en") -> str:
    """Return a page after all passes but the last: its headings and the marks of its lists are still there.

    Raises UnreadablePage as ``paragraphs`` does.
    """
    return _lines(_normalized(wikitext), _Wiki(namespaces, language))


def _lines(text: str, wiki: _Wiki) -> str:
    text = _without_verbatim(text)
    if wiki.language.variant and "-{" in text:
        text = convert(text, wiki.language.variant)
    text = _expand_templates(text, wiki)
    text = _without_tables(text)
    text = _unlink(text, wiki.hidden)
    text = _without_html(text)
    return _without_switches(text, wiki.language.switches)


# ---------------------------------------------------------------------------------------------------
# Pass 1: comments, references and the tags whose content is not wikitext.

_NOT_PROSE = (
    "ref|math|ce|chem|gallery|timeline|syntaxhighlight|source|score|hiero|imagemap|inputbox|templatedata|graph|mapframe"
    "|maplink|categorytree|charinsert|templatestyles|indicator|pre|includeonly|references|section|listing|rss|phonos"
    "|dynamicpagelist|languages|nowiki"
)
# Without (?a:, this would also match <nowıki> and <ſource>, which are not tags.
_VERBATIM = re.compile(rf"<(?:!--|((?a:{_NOT_PROSE}))(?=[\s/>])([^<>]*)>)", re.IGNORECASE)
_VERBATIM_END = {name: re.compile(rf"</(?a:{name})\s*>", re.IGNORECASE) for name in _NOT_PROSE.split("|")}
# This matches every opening tag of a reference that _VERBATIM matches: so no text is searched twice.
_NEXT_REF = re.compile(r"<(?:(/ref)\s*>|ref(?=[\s/>])[^<>]*(?<!/)>)", re.IGNORECASE)
_REST_OF_LINE = re.compile(r"[ \t]*+\n")
_BLANK_LINE = re.compile(r"\n[ \t]*+\n|\n=")
_INLINE_CODE = re.compile(r"\binline\b|enclose\s*=\s*[\"']?none", re.IGNORECASE)
# These have no special meaning in kept content; written as entities, they pass through the later passes.
_INERT = {ord(character): f"&#{ord(character)};" for character in "[]{}|'<>=*#:;_"}
_BEFORE_GONE = " (;,/\n[“\"$£€'"


def _without_verbatim(text: str) -> str:
    """Return the text without comments, references and verbatim tags."""
    match = _VERBATIM.search(text)
    if not match:
        return text
    kept: list[str] = []
    position = 0
    line_start = True
    never_closed: set[str] = set()
    while match:
        start, end = match.span()
        before = text[position:start]
        left = ""
        if match[1] is None:
            close = text.find("-->", end)
            end = len(text) if close < 0 else close + 3
            # A comment on a line of its own is removed with its line, which would otherwise split the paragraph.
            indent = before.rstrip(" \t")
            line_start = indent[-1:] == "\n" or (line_start and not indent)
            if line_start and (line_end := _REST_OF_LINE.match(text, end)):
                before = indent
                end = line_end.end()
            elif before[-1:] == " ":
                left = prose_lines.GONE
        else:
            line_start = False
            name = match[1].lower()
            if match[2].endswith("/"):
                pass  # the tag has no content
            elif name == "ref":
                end = _end_of_reference(text, end)
            elif name in never_closed:
                pass  # an earlier search found no closing tag in the rest of the page
            elif close_tag := _VERBATIM_END[name].search(text, end):
                left = _kept_content(name, match[2], text[end : close_tag.start()])
                end = close_tag.end()
            else:
                never_closed.add(name)
            if not left and before[-1:] in _BEFORE_GONE:
                left = prose_lines.GONE
        kept += (before, left)
        position = end
        match = _VERBATIM.search(text, position)
    kept.append(text[position:])
    return "".join(kept)


def _end_of_reference(text: str, start: int) -> int:
    """Return where the reference ends whose opening tag ends at ``start``.

    References do not nest. If another one opens first, this one was never closed: it ends with its paragraph at the
    latest.
    """
    following = _NEXT_REF.search(text, start)
    if following and following[1]:
        return following.end()
    limit = following.start() if following else len(text)
    blank = _BLANK_LINE.search(text, start, limit)
    return blank.start() if blank else limit


def _kept_content(tag: str, attributes: str, content: str) -> str:
    if tag in ("math", "chem", "ce"):
        if (formula := plain_formula(content, chemical=tag != "math")) is not None:
            return formula.translate(_INERT)
        stop = content.rstrip()[-1:]  # the sentence's punctuation, inside the formula
        return prose_lines.FORMULA + (stop if stop in (".", ",", ";") else "")
    if tag in ("source", "syntaxhighlight") and _INLINE_CODE.search(attributes) and "\n" not in content:
        return content.translate(_INERT)
    return content.translate(_INERT) if tag == "nowiki" else ""


# ---------------------------------------------------------------------------------------------------
# Pairs that nest: templates and links.

# The text between two tokens of a pair: raw, child, raw, child, ... raw. Children are finished and never examined
# again, which keeps the time linear.
Frame = list[str]
# Given the frame of a pair and the text before and after it, returns what replaces the pair, and the text after it.
Replacement = Callable[[Frame, str, str], tuple[str, str]]


def _without_pairs(text: str, opening: str, closing: str, replacement: Replacement) -> list[Frame]:
    """Return the text with every pair of tokens replaced, innermost first.

    The result is one frame, and one more for each opening token that is never closed. A closing token that was never
    opened stays in the text. Raises UnreadablePage if pairs are nested deeper than MAX_DEPTH.
    """
    # The two tokens have no character in common, so the text can be split at one and then at the other.
    head, *pieces = text.split(opening)
    first, *strays = head.split(closing)
    frame: Frame = [first]
    for after in strays:
        frame += ("", closing + after)
    depth = 0
    open_frames: list[tuple[Frame, int]] = []
    for piece in pieces:
        parts = piece.split(closing)
        if len(parts) == 1:
            open_frames.append((frame, depth))
            frame, depth = parts, 0
            continue
        # a pair without another one inside, as most are
        frame += replacement(parts[:1], frame[-1], parts[1])
        depth = depth or 1
        for after in parts[2:]:
            if not open_frames:
                frame += ("", closing + after)
                continue
            inside, inside_depth = frame, depth + 1
            if inside_depth > MAX_DEPTH:
                raise UnreadablePage("nested_too_deep")
            frame, depth = open_frames.pop()
            depth = max(depth, inside_depth)
            frame += replacement(inside, frame[-1], after)
    return [*(outer for outer, _ in open_frames), frame]


# ---------------------------------------------------------------------------------------------------
# Pass 2: templates.


def _expand_templates(text: str, wiki: _Wiki) -> str:
    if "{{" not in text:
        return text
    frames = _without_pairs(text, "{{", "}}", wiki.replace_template)
    # MediaWiki shows braces that are never closed.
    return "{{".join("".join(frame) for frame in frames)


_NAME = re.compile(r"[\w .\-/()]{1,60}")


def _named(start: str, before: str, rules: Rules) -> str:
    """Return a mark with the name of a dropped template that may carry text, or "" at the start of a line."""
    if before[-1:] in ("", "\n"):
        return ""
    name = template_name(start)
    if name in rules or name.startswith("cite ") or not _NAME.fullmatch(name):
        return ""
    return f"{prose_lines.NAMED}{name}{prose_lines.END_NAMED}"


# ---------------------------------------------------------------------------------------------------
# Pass 3: tables.

_TABLE = re.compile(
    rf"\n[ \t:*#;{prose_lines.GONE}]*+(?:(\{{\|)|\|\}}(?!\}}))|<(?:(table)\b[^<>]*|/table\s*)>", re.IGNORECASE
)
_HEADING_LINE = re.compile(r"\n=")


_LONE_TEMPLATE = re.compile(rf"\n[ \t]*+{prose_lines.GONE}[ \t{prose_lines.GONE}]*+(?=\n|\Z)")


def _end_of_rows(text: str, start: int, end: int) -> int:
    """Return where a template stands on a line of its own below the last row of tables in a section, or its end."""
    row = max(text.rfind("\n|", start, end), text.rfind("\n!", start, end), start)
    closing = _LONE_TEMPLATE.search(text, row, end)
    return closing.end() if closing else end


def _without_tables(text: str) -> str:
    if "{|" not in text and not ("!" in text and "|}" in text) and "<table" not in text.lower():
        return text
    text = "\n" + text
    spans: list[tuple[int, int]] = []
    opened: list[int] = []
    before = 0
    for match in _TABLE.finditer(text):
        if match[1] or match[2]:
            opened.append(match.start())
        elif opened:
            spans.append((opened.pop(), match.end()))
        else:
            section = max(before, text.rfind("\n=", before, match.start()))
            if (start := text.find(f"\n{prose_lines.GONE}\n!", section, match.start())) >= 0:
                spans.append((start, match.end()))  # a template opened it
        before = match.end()
    if opened:
        # A table that is never closed ends with its section, or with a template below its last row.
        headings = [match.start() for match in _HEADING_LINE.finditer(text)]
        ends = [_end_of_rows(text, *section) for section in pairwise([0, *headings, len(text)])]
        sections = list(zip([*headings, len(text)], ends, strict=True))
        sections.reverse()
        for start in opened:
            while sections[-1][0] < start:
                sections.pop()
            section, rows = sections[-1]
            spans.append((start, rows if rows > start else section))
    kept: list[str] = []
    position = 0
    for start, end in sorted(spans):
        if start >= position:
            kept.append(text[position:start])
            kept.append("\n\n")
        position = max(position, end)
    kept.append(text[position:])
    return "".join(kept)


# ---------------------------------------------------------------------------------------------------
# Pass 4: links.

# A link without another one in it. The groups, which nearly all links have: its target, and its text if it has one.
_LINK = re.compile(r"\[\[(?:([^\[\]|:\n]*+)(?:\|([^\[\]|\s][^\[\]]*+))?+\]\]|[^\[\]]*+\]\])")
_EXTERNAL = re.compile(
    r"\[(?:(?:https?|ftps?|ircs?|gopher|news|sftp|git|svn|telnet|nntp|worldwind|mms|rtsp)://|//|mailto:|urn:|tel:)"
    r"[^\s\[\]<>\"]*+([^\[\]\n]*+(?:\[[^\[\]\n]*+\][^\[\]\n]*+)*+)\]",
    re.IGNORECASE,
)
# Tried only where a run of blanks begins, not at each blank.
_QUALIFIER = re.compile(r"(?<![ _])[ _]*+(?:\([^()]*\)|（[^（）]*）)\Z|,[^,]*\Z")

# Names of the namespaces of large wikis, which their editors also write on others.
_COPIED = frozenset(read_yaml(Path(__file__).with_name("link_prefixes.yaml")))


@functools.lru_cache(maxsize=16)  # every page of a wiki has the same
def hidden_prefixes(namespaces: tuple[tuple[str, int], ...], language: str) -> AbstractSet[str]:
    """Return the prefixes of links whose text is no part of the sentence: files, categories, other editions."""
    own = (name.replace(" ", "_").lower() for name, key in namespaces if key in (FILE, CATEGORY))
    return _COPIED.union(language_of(language).files_and_categories, mediawiki_names()["editions"], own)


def _unlink(text: str, hidden: AbstractSet[str]) -> str:
    if "[" not in text:
        return text
    first, *never_closed = _without_links(text, hidden)
    pieces = list(first)
    for frame in never_closed:
        if _prefix(frame[0]) in hidden:  # a picture or category that is never closed ends with its line
            pieces.append("\n" + frame[0].partition("\n")[2])
        else:
            pieces += ("[[", frame[0])
        pieces += frame[1:]
    return _without_external("".join(pieces))


def _without_links(text: str, hidden: AbstractSet[str]) -> list[Frame]:
    """Return the text with every link replaced, in frames as ``_without_pairs`` returns them."""

    def shown(match: re.Match[str]) -> str:
        target, text = match.groups()
        return text or (_shown_text([match[0][2:-2]], hidden) if target is None else target.strip())

    # faster, and enough if no link contains another one and all are closed
    flat = text if "[[[" in text else _LINK.sub(shown, text)
    # searching for one character is faster than for two
    if not ("[" in flat and "[[" in flat) and not ("]" in flat and "]]" in flat):
        return [[flat]]
    return _without_pairs(text, "[[", "]]", lambda inside, _, after: (_shown_text(inside, hidden), after))


def _without_external(text: str) -> str:
    if "[" not in text:
        return text
    return _EXTERNAL.sub(lambda match: match[1].strip() or prose_lines.GONE, text)


def _prefix(target: str) -> str | None:
    """Return the text before the colon of a link's target, written like a namespace; None without a colon."""
    prefix, colon, _ = target.partition(":")
    return prefix.strip().replace(" ", "_").lower() if colon else None


def _shown_text(inside: Frame, hidden: AbstractSet[str]) -> str:
    """Return the text that a reader sees for [[...]]; ASIDE for pictures, categories and links to other languages."""
    target, bar, text = inside[0].partition("|")
    if ":" in target:
        prefix = _prefix(target)
        if prefix in hidden:
            return prose_lines.ASIDE
        if not prefix:
            target = target.lstrip(" :")
    if len(inside) > 1:
        # A link inside a link: MediaWiki does not link the outer one, but shows its text.
        children = "".join(inside[1:])
        return text + children if bar else target + children
    if not bar:
        return target.strip() if "\n" not in target else f"[[{target}]]"
    if text.strip():
        return text
    # The pipe trick: [[Help:Pipe (trick)|]] -> Pipe
    name = target.rpartition(":")[2]
    return _QUALIFIER.sub("", name).strip() or target


# ---------------------------------------------------------------------------------------------------
# Pass 5: HTML.

_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9]*)\b[^<>]*>")
_BROKEN_REF = re.compile(r"</?ref\b[^<>\n]*+>?", re.IGNORECASE)
_RAISED = re.compile(r"<sup[^<>]*>[ ]?([+\-−–]?\d{1,9}[+\-−–]?|[+\-−–])[ ]?</sup\s*>", re.IGNORECASE)
# Only after a number, where plain digits would give another number: 20<sub>16</sub>, but not H<sub>2</sub>O.
_LOWERED = re.compile(r"\b(\d[0-9A-F]{0,15})<sub[^<>]*>[ ]?(\d{1,3})[ ]?</sub\s*>", re.IGNORECASE)
_LOWERED_DIGITS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_RAISED_SIGNS = str.maketrans("–-−+0123456789", "⁻⁻⁻⁺⁰¹²³⁴⁵⁶⁷⁸⁹")
_BREAKS = re.compile(r"<br\b[^<>]*>(?:\s*+<br\b[^<>]*>)++", re.IGNORECASE)
_BLOCK_TAGS = words(
    "p div blockquote center hr ul ol dl table tr td th caption tbody thead h1 h2 h3 h4 h5 h6 section poem"
)
_INLINE_TAGS = words(_NOT_PROSE, "|") | words("""
    a abbr b bdi bdo big br cite code data del dfn em font i ins kbd mark noinclude nobr onlyinclude q rb rp rt rtc
    ruby s samp small span strike strong sub sup time tt u var wbr
""")


def _without_html(text: str) -> str:
    if "<" not in text:
        return text
    if "<sup" in text:
        text = _RAISED.sub(lambda match: match[1].translate(_RAISED_SIGNS), text)
    if "<sub" in text:
        text = _LOWERED.sub(lambda match: match[1] + match[2].translate(_LOWERED_DIGITS), text)
    if "<poem" in text:
        text = _with_lines_of_verse(text)
    text = _BREAKS.sub("\n\n", text)
    text = _TAG.sub(_shown_tag, text)
    if "ref" in text:
        text = _BROKEN_REF.sub("", text)
    return text


def _shown_tag(match: re.Match[str]) -> str:
    name = match[2].lower()
    if name in _BLOCK_TAGS:
        return "\n\n"
    if name in ("li", "dd", "dt"):
        return "\n" if match[1] else "\n* "
    if name == "br":
        return " "
    return "" if name in _INLINE_TAGS else match[0]


def _with_lines_of_verse(text: str) -> str:
    """Turn each line of a <poem> into a list item, so that the poem is one paragraph of lines."""
    pieces: list[str] = []
    position = 0
    while (start := text.find("<poem", position)) >= 0 and (end := text.find("</poem", start)) >= 0:
        pieces.append(text[position:start])
        verse = text[start:end].partition(">")[2].strip()
        pieces.append("\n:" + verse.replace("\n", "\n:") + "\n")
        position = end
    pieces.append(text[position:])
    return "".join(pieces)


# __NOTOC__ and the like. A word in capital letters, or in a script without them, can also be one of an extension.
_SWITCH = re.compile(r"(?:__|＿＿)([^\s_＿]{1,60}+(?:_[^\s_＿]{1,60}+){0,8}+)(?:__|＿＿)")
_CAPITALS = re.compile(r"[^\W\d_a-z]{2,40}+(?:_[^\W\d_a-z]{1,40}+)*+")


def _without_switches(text: str, switches: AbstractSet[str]) -> str:
    if not ("_" in text and "__" in text) and "＿" not in text:  # searching for one character is faster
        return text

    def shown(match: re.Match[str]) -> str:
        word = match[1]
        return "" if word in switches or word.lower() in switches or _CAPITALS.fullmatch(word) else match[0]

    return _SWITCH.sub(shown, text)
