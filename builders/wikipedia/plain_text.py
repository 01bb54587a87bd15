"""Wikitext to paragraphs of prose.

`paragraphs` is what the rest of the build uses. The page goes through a fixed number of passes, in MediaWiki's own
order (verbatim tags, templates, tables, links, HTML, lines). Each pass cuts the text at its tokens with one regular
expression that cannot backtrack and pairs the tokens with an explicit stack, so the time is proportional to the
length of the page whatever is in it, and nothing recurses.

What is kept and what is dropped, and why: docs/wikitext.md. What each template says: template_text.py.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from html.entities import html5
from itertools import pairwise
from typing import NamedTuple

from temporalwiki.builders.wikipedia.template_text import END_SOUND, JOINT, SOUND, template_text

MAX_CHARACTERS = 4_000_000
MAX_DEPTH = 200
MAX_BLOCKS = 10_000  # between blank lines, that are compared one by one; no real page has as many

FILE, CATEGORY = 6, 14

# Marks that live in the text between passes. No XML document can hold these characters.
GONE = "\x01"  # something was dropped here: whoever comes last tidies what it left behind
BESIDE = "\x02"  # a picture or category stood here: it does not interrupt the paragraph
MARKS = (GONE, BESIDE, SOUND, END_SOUND, JOINT)


def _words(text: str, separator: str | None = None) -> frozenset[str]:
    return frozenset(" ".join(word.split()) for word in text.split(separator))


class UnreadablePage(ValueError):
    """The page is outside the fixed bounds of this parser.

    `reason` is a short name under which the build counts the drop: "too_long" or "nested_too_deep".
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def paragraphs(wikitext: str, *, namespaces: Mapping[str, int] | None = None) -> list[str]:
    """The prose paragraphs of a page in reading order.

    A list is one paragraph whose items are separated by a newline; every other paragraph is one line. All text is
    NFC with single spaces. `namespaces` maps the wiki's own namespace names to their numbers (from the dump's
    siteinfo), so that its files (6) and categories (14) are known under every name.

    Raises UnreadablePage if the page has over MAX_CHARACTERS characters or constructs nested deeper than MAX_DEPTH.
    """
    _check_length(wikitext)
    return _read(_legible(wikitext), [], _hidden_prefixes(namespaces), {})


def both_paragraphs(
    previous: str, recent: str, *, namespaces: Mapping[str, int] | None = None
) -> tuple[list[str], list[str]]:
    """The ``paragraphs`` of two versions of a page. What both have is read once.

    Raises UnreadablePage; where it is the previous version that cannot be read, the reason ends in "_in_prev".
    """
    hidden = _hidden_prefixes(namespaces)
    known: Known = {}
    _check_length(recent)
    before, after = _legible(previous), _legible(recent)
    blocks_before, blocks = before.split("\n\n", MAX_BLOCKS), after.split("\n\n", MAX_BLOCKS)
    said = _read(after, _cut(blocks, blocks_before), hidden, known)
    try:
        _check_length(previous)
        return _read(before, _cut(blocks_before, blocks), hidden, known), said
    except UnreadablePage as problem:
        raise UnreadablePage(f"{problem.reason}_in_prev") from None


def _check_length(wikitext: str) -> None:
    if len(wikitext) > MAX_CHARACTERS:
        raise UnreadablePage("too_long")


def _legible(text: str) -> str:
    for mark in MARKS:
        if mark in text:  # found faster than replaced
            text = text.replace(mark, "")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text


def _read(text: str, cut: Iterable[list[Part]], hidden: AbstractSet[str], known: Known) -> list[str]:
    """The paragraphs of a page, read in parts as it is `cut`, unless something reaches over every such cut."""
    if text[:40].lstrip().lower().startswith("#redirect"):
        return []
    for parts in cut:
        if (found := _read_parts(parts, hidden, known)) is not None:
            return found
    text, _ = _without_verbatim(text)
    text = _expand_templates(text)
    text = _without_tables(text)
    text = _unlink(text, hidden)
    text = _without_html(text)
    return _read_lines(text, BEGINNING)[0]


# ---------------------------------------------------------------------------------------------------
# Pass 1: comments, references and the tags whose content is not wikitext.

_NOT_PROSE = (
    "ref|math|ce|chem|gallery|timeline|syntaxhighlight|source|score|hiero|imagemap|inputbox|templatedata|graph|mapframe"
    "|maplink|categorytree|charinsert|templatestyles|indicator|pre|includeonly|references|section|listing|rss|phonos"
    "|dynamicpagelist|languages|nowiki"
)
# (?a: or else <nowıki> and <ſource>, which are no tags, would be matched as well.
_VERBATIM = re.compile(rf"<(?:!--|((?a:{_NOT_PROSE}))(?=[\s/>])([^<>]*)>)", re.IGNORECASE)
_VERBATIM_END = {name: re.compile(rf"</(?a:{name})\s*>", re.IGNORECASE) for name in _NOT_PROSE.split("|")}
# Every opening tag that _VERBATIM takes for a reference is one here too: no stretch is searched twice.
_NEXT_REF = re.compile(r"<(?:(/ref)\s*>|ref(?=[\s/>])[^<>]*(?<!/)>)", re.IGNORECASE)
_REST_OF_LINE = re.compile(r"[ \t]*+\n")
_BLANK_LINE = re.compile(r"\n[ \t]*+\n|\n=")
# A formula in which no character has a meaning to TeX is what a reader sees: <math>m</math>.
_PLAIN_FORMULA = re.compile(r"[^\\{}^_~&%$#]*")
_INLINE_CODE = re.compile(r"\binline\b|enclose\s*=\s*[\"']?none", re.IGNORECASE)
# In kept content these are letters like any other; as entities they pass through the later passes.
_INERT = {ord(character): f"&#{ord(character)};" for character in "[]{}|'<>=*#:;_"}
_BEFORE_GONE = ' (;,/\n[“"$£€'


def _without_verbatim(text: str) -> tuple[str, bool]:
    """The text without them, and whether all that open in it close in it."""
    match = _VERBATIM.search(text)
    if not match:
        return text, True
    closed = True
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
            closed = closed and close >= 0
            end = len(text) if close < 0 else close + 3
            # A comment that has a line for itself goes with its line, or it would split the paragraph.
            indent = before.rstrip(" \t")
            line_start = indent[-1:] == "\n" or (line_start and not indent)
            if line_start and (line_end := _REST_OF_LINE.match(text, end)):
                before = indent
                end = line_end.end()
            elif before[-1:] == " ":
                left = GONE
        else:
            line_start = False
            name = match[1].lower()
            if match[2].endswith("/"):
                pass  # it has no content
            elif name == "ref":
                end, ends = _end_of_reference(text, end)
                closed = closed and ends
            elif name in never_closed:
                pass  # its end was looked for before, up to the end of the page
            elif close_tag := _VERBATIM_END[name].search(text, end):
                left = _kept_content(name, match[2], text[end : close_tag.start()])
                end = close_tag.end()
            else:
                never_closed.add(name)
                closed = False
            if not left and before[-1:] in _BEFORE_GONE:
                left = GONE
        kept += (before, left)
        position = end
        match = _VERBATIM.search(text, position)
    kept.append(text[position:])
    return "".join(kept), closed


def _end_of_reference(text: str, start: int) -> tuple[int, bool]:
    """Where the reference ends whose opening tag ends at `start`, and whether that depends on nothing after the text.

    References do not nest: if another one opens first, this one was never closed, and takes at most the rest of its
    paragraph with it.
    """
    following = _NEXT_REF.search(text, start)
    if following and following[1]:
        return following.end(), True
    limit = following.start() if following else len(text)
    blank = _BLANK_LINE.search(text, start, limit)
    return blank.start() if blank else limit, following is not None


def _kept_content(tag: str, attributes: str, content: str) -> str:
    if tag == "math" and _PLAIN_FORMULA.fullmatch(content):
        return " ".join(content.split()).translate(_INERT)
    if tag == "math" and (stop := content.rstrip()[-1:]) in (".", ",", ";"):
        return GONE + stop  # of the sentence, not of the formula
    if tag in ("source", "syntaxhighlight") and _INLINE_CODE.search(attributes) and "\n" not in content:
        return content.translate(_INERT)
    return content.translate(_INERT) if tag == "nowiki" else ""


# ---------------------------------------------------------------------------------------------------
# What nests: templates and links.

# The text between two tokens of a pair: raw, child, raw, child, ... raw. Children are finished and are never looked
# into again, which keeps nesting linear.
Frame = list[str]
# What is left of a pair, and of the text after it, given its frame and the text before and after.
Replacement = Callable[[Frame, str, str], tuple[str, str]]


def _without_pairs(text: str, opening: str, closing: str, replacement: Replacement) -> list[Frame]:
    """The text with every pair of tokens replaced, innermost first.

    Gives one frame, and another for each opening token that is never closed. A closing token that was never opened
    stays. Raises UnreadablePage if pairs are nested deeper than MAX_DEPTH.
    """
    # The two tokens have no character in common, so cutting at one and then at the other finds both.
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
        # most pairs have none inside
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


def _expand_templates(text: str) -> str:
    if "{{" not in text:
        return text
    frames = _without_pairs(text, "{{", "}}", _said_by_template)
    # What was never closed: MediaWiki shows the braces.
    return "{{".join("".join(frame) for frame in frames)


def _said_by_template(inside: Frame, before: str, after: str) -> tuple[str, str]:
    said = template_text(inside)
    if not said and before[-1:] in _BEFORE_GONE:
        said = GONE
    if inside[0][:1] == "{" and after[:1] == "}":  # {{{a parameter}}}
        after = after[1:]
    return said, after


# ---------------------------------------------------------------------------------------------------
# Pass 3: tables.

_TABLE = re.compile(rf"\n[ \t:*#;{GONE}]*+(?:(\{{\|)|\|\}}(?!\}}))|<(?:(table)\b[^<>]*|/table\s*)>", re.IGNORECASE)
_HEADING_LINE = re.compile(r"\n=")


def _without_tables(text: str) -> str:
    if "{|" not in text and "<table" not in text.lower():
        return text
    text = "\n" + text
    spans: list[tuple[int, int]] = []
    opened: list[int] = []
    for match in _TABLE.finditer(text):
        if match[1] or match[2]:
            opened.append(match.start())
        elif opened:
            spans.append((opened.pop(), match.end()))
    if opened:
        # A table that is never closed ends with its section.
        headings = [match.start() for match in _HEADING_LINE.finditer(text)]
        headings.append(len(text))
        headings.reverse()
        for start in opened:
            while headings[-1] < start:
                headings.pop()
            spans.append((start, headings[-1]))
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

# A link without another one in it. The groups of nearly all: its target, and its text if that is another.
_LINK = re.compile(r"\[\[(?:([^\[\]|:\n]*+)(?:\|([^\[\]|\s][^\[\]]*+))?+\]\]|[^\[\]]*+\]\])")
_EXTERNAL = re.compile(
    r"\[(?:(?:https?|ftps?|ircs?|gopher|news|sftp|git|svn|telnet|nntp|worldwind|mms|rtsp)://|//|mailto:|urn:|tel:)"
    r"[^\s\[\]<>\"]*+([^\[\]\n]*+(?:\[[^\[\]\n]*+\][^\[\]\n]*+)*+)\]",
    re.IGNORECASE,
)
# Tried only where a run of blanks begins, not at each of them.
_QUALIFIER = re.compile(r"(?<![ _])[ _]*+(?:\([^()]*\)|（[^（）]*）)\Z|,[^,]*\Z")

# Names of the file and category namespaces that any wiki understands, and those of some larger wikis. A wiki's own
# names come from its siteinfo.
FILES_AND_CATEGORIES = _words("""
    file image datei bild fichier archivo imagen immagine bestand afbeelding ficheiro imagem arquivo fil plik grafika
    файл изображение зображення ファイル 画像 파일 그림 文件 檔案 图像 ملف صورة پرونده tập_tin hình dosya resim
    tiedosto kuva soubor fájl kép fișier imagine berkas gambar קובץ תמונה चित्र
    category kategorie catégorie categoría categoria categorie kategoria kategori категория категорія カテゴリ 분류
    分类 分類 تصنيف رده thể_loại luokka kategória קטגוריה श्रेणी
""")
# Prefixes of the other language editions: [[de:Wort]] is shown beside the page, not in it.
INTERLANGUAGE = _words("""
    ab ace ady af ak als alt am an ang ar arc ary arz as ast atj av avk awa ay az azb ba ban bar bat-smg bcl be
    be-tarask be-x-old bg bh bi bjn bm bn bo bpy br bs bug bxr ca cbk-zam cdo ce ceb ch cho chr chy ckb co cr crh
    cs csb cu cv cy da de din diq dsb dty dv dz ee el eml en eo es et eu ext fa ff fi fiu-vro fj fo fr frp frr fur
    fy ga gag gan gcr gd gl glk gn gom gor got gu gv ha hak haw he hi hif ho hr hsb ht hu hy hyw hz ia id ie ig ii
    ik ilo inh io is it iu ja jam jbo jv ka kaa kab kbd kbp kg ki kj kk kl km kn ko koi kr krc ks ksh ku kv kw ky
    la lad lb lbe lez lfn lg li lij lld lmo ln lo lrc lt ltg lv mai map-bms mdf mg mh mhr mi min mk ml mn mnw mo mr
    mrj ms mt mus mwl my myv mzn na nah nap nds nds-nl ne new ng nl nn no nov nqo nrm nso nv ny oc olo om or os pa
    pag pam pap pcd pdc pfl pi pih pl pms pnb pnt ps pt qu rm rmy rn ro roa-rup roa-tara ru rue rw sa sah sat sc
    scn sco sd se sg sh shi shn si simple sk sl sm sn so sq sr srn ss st stq su sv sw szl ta tcy te tet tg th ti tk
    tl tn to tpi tr ts tt tum tw ty tyv udm ug uk ur uz ve vec vep vi vls vo wa war wo wuu xal xh xmf yi yo za zea
    zh zh-classical zh-min-nan zh-yue zu
""")


def _hidden_prefixes(namespaces: Mapping[str, int] | None) -> AbstractSet[str]:
    """Prefixes of links that are shown elsewhere than in the sentence, and whose text is not of the sentence."""
    return _with_own_names(tuple(namespaces.items())) if namespaces else FILES_AND_CATEGORIES


@functools.lru_cache(maxsize=16)  # it is the same for every page of a wiki
def _with_own_names(namespaces: tuple[tuple[str, int], ...]) -> AbstractSet[str]:
    own = (name for name, key in namespaces if key in (FILE, CATEGORY))
    return FILES_AND_CATEGORIES.union(name.replace(" ", "_").lower() for name in own)


def _unlink(text: str, hidden: AbstractSet[str]) -> str:
    if "[" not in text:
        return text
    first, *never_closed = _without_links(text, hidden)
    pieces = list(first)
    for frame in never_closed:
        if _prefix(frame[0]) in hidden:  # a picture takes the rest of its line with it
            pieces.append("\n" + frame[0].partition("\n")[2])
        else:
            pieces += ("[[", frame[0])
        pieces += frame[1:]
    return _without_external("".join(pieces))


def _without_links(text: str, hidden: AbstractSet[str]) -> list[Frame]:
    """The text with every link replaced, as `_without_pairs` gives it."""

    def shown(match: re.Match[str]) -> str:
        target, text = match.groups()
        return text or (_shown_text([match[0][2:-2]], hidden) if target is None else target.strip())

    flat = text if "[[[" in text else _LINK.sub(shown, text)  # quicker; enough if no link is in another, or not closed
    # a character is found faster than two
    if not ("[" in flat and "[[" in flat) and not ("]" in flat and "]]" in flat):
        return [[flat]]
    return _without_pairs(text, "[[", "]]", lambda inside, _, after: (_shown_text(inside, hidden), after))


def _without_external(text: str) -> str:
    if "[" not in text:
        return text
    return _EXTERNAL.sub(lambda match: match[1].strip() or GONE, text)


def _prefix(target: str) -> str | None:
    """What stands before the colon of a link's target, as a namespace is written; None if there is no colon."""
    prefix, colon, _ = target.partition(":")
    return prefix.strip().replace(" ", "_").lower() if colon else None


def _shown_text(inside: Frame, hidden: AbstractSet[str]) -> str:
    """What a reader sees of [[...]]; BESIDE for pictures, categories and links to other languages."""
    target, bar, text = inside[0].partition("|")
    if ":" in target:
        prefix = _prefix(target)
        if prefix in hidden or prefix in INTERLANGUAGE:
            return BESIDE
        if not prefix:
            target = target.lstrip(" :")
    if len(inside) > 1:
        # A link inside a link: MediaWiki makes no link of the outer one. Its text is what counts.
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
# Only after a number, where plain digits would make another number of it: 20<sub>16</sub>, but H<sub>2</sub>O.
_LOWERED = re.compile(r"\b(\d[0-9A-F]{0,15})<sub[^<>]*>[ ]?(\d{1,3})[ ]?</sub\s*>", re.IGNORECASE)
_LOWERED_DIGITS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_RAISED_SIGNS = str.maketrans("–-−+0123456789", "⁻⁻⁻⁺⁰¹²³⁴⁵⁶⁷⁸⁹")
_BREAKS = re.compile(r"<br\b[^<>]*>(?:\s*+<br\b[^<>]*>)++", re.IGNORECASE)
_BLOCK_TAGS = _words(
    "p div blockquote center hr ul ol dl table tr td th caption tbody thead h1 h2 h3 h4 h5 h6 section poem"
)
_INLINE_TAGS = _words(_NOT_PROSE, "|") | _words("""
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
    """Each line of a <poem> becomes an item, so that a poem is one paragraph of lines."""
    pieces: list[str] = []
    position = 0
    while (start := text.find("<poem", position)) >= 0 and (end := text.find("</poem", start)) >= 0:
        pieces.append(text[position:start])
        verse = text[start:end].partition(">")[2].strip()
        pieces.append("\n:" + verse.replace("\n", "\n:") + "\n")
        position = end
    pieces.append(text[position:])
    return "".join(pieces)


# ---------------------------------------------------------------------------------------------------
# Pass 6: lines, sections and paragraphs.

# Sections that hold apparatus and lists of links; their prose, where there is any, is about sources.
APPARATUS = _words("""
    references|external links|external link|see also|further reading|notes and references|external sources
    |references and notes|references and sources|sources and references|citations and references|general references
    |footnotes and references|references and further reading|cited sources|works cited|see also and references
    |further reading and external links|related articles|web links|weblinks|links|reference literature
    |secondary references
""", "|")  # fmt: skip
# In these the lists are apparatus but a paragraph may be about the subject.
LISTS_ARE_APPARATUS = _words(
    "notes|footnotes|endnotes|citations|sources|bibliography|notes and citations|notes and sources|gallery", "|"
)
_SWITCH = re.compile(r"__[^\W\d_a-z]{2,40}+(?:_[^\W\d_a-z]{1,40}+)*+__")
_QUOTES = re.compile(r"'{2,}")
_ENTITY = re.compile(r"&(#[0-9]{1,8}|#[xX][0-9A-Fa-f]{1,7}|[A-Za-z][A-Za-z0-9]{1,31});")
_INVISIBLE = re.compile(
    "[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\x00\x06-\x08\x0e-\x1b\x7f]"
)
_UNSEEN = f" \t{GONE}{BESIDE}"


class Place(NamedTuple):
    """Where in a page a line stands: what the headings above it have said."""

    lead: bool
    skipped_level: int  # of the heading of the apparatus that it is part of; 0: it is in none
    lists_only: bool  # the lists of that section are apparatus, its prose is not


BEGINNING = Place(lead=True, skipped_level=0, lists_only=False)


def _read_lines(text: str, place: Place) -> tuple[list[str], Place]:
    """The paragraphs of a text that begins in `place`, and where it ends."""
    if "_" in text:
        text = _SWITCH.sub("", text)
    result: list[str] = []
    prose: list[str] = []
    items: list[str] = []
    lead, skipped_level, lists_only = place

    def finish() -> None:
        if prose:
            paragraph = _clean(" ".join(prose), lead)
            prose.clear()
            if paragraph:
                result.append(paragraph)
        elif items:
            cleaned = [item for item in (_clean(_unquote(item), lead) for item in items) if item]
            items.clear()
            if cleaned:
                result.append("\n".join(cleaned))

    for line in text.split("\n"):
        first = line[:1]
        if first in _UNSEEN:  # true of an empty line as well
            bare = line.strip(_UNSEEN)
            if not bare:
                if BESIDE not in line:
                    finish()
                continue
            if first not in " \t" and bare[0] in "=*#:;":
                line, first = bare, bare[0]
        if first == "=" and (heading := _heading(line)):
            finish()
            lead = False
            level, title = heading
            if not skipped_level or level <= skipped_level:
                lists_only = title in LISTS_ARE_APPARATUS
                skipped_level = level if lists_only or title in APPARATUS else 0
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
    return result, Place(lead, skipped_level, lists_only)


# ---------------------------------------------------------------------------------------------------
# A page part by part.

# By its text and the place where it begins: the paragraphs of a part and the place where it ends; None for one that
# cannot be read by itself.
Part = tuple[str, ...]  # what is between blank lines
Known = dict[tuple[Part, Place], tuple[list[str], Place] | None]

_OPEN_TAG = re.compile(r"<[^<>\s\d=][^<>]*+(?:<|\Z)")  # it may end in the next part
# `_without_html` looks at the whole page: whether it has <sup or <sub in small letters anywhere, where a poem ends,
# and whether a <br is the first of several.
_READS_ELSEWHERE = re.compile(r"<(?:(?!su[bp])(?i:su[bp])|poem)|\A\s*+<(?i:br)")


def _cut(blocks: Sequence[str], others: Sequence[str]) -> Iterator[list[Part]]:
    """The parts of a page, of the `blocks` between blank lines, cut where another version, of `others`, may differ.

    What stands beside each other in both stays together, and so does what only this version has. If something in it
    reaches over such a cut, as a table does, the next try is to cut at the headings before and after it.
    """

    def parts(cuts: Iterable[int]) -> list[Part]:
        return [tuple(blocks[start:end]) for start, end in pairwise([0, *cuts, len(blocks)])]

    new = set(pairwise(blocks)).difference(pairwise(others))
    there = set(others) if new else frozenset()
    cuts = [
        at for at, pair in enumerate(pairwise(blocks), 1) if pair in new and (pair[0] in there or pair[1] in there)
    ]
    yield parts(cuts)
    headings = [at for at, block in enumerate(blocks) if at and block[:1] == "="]
    beside = {at for cut in cuts for at in (bisect_right(headings, cut) - 1, bisect_left(headings, cut))}
    if cuts:
        yield parts(headings[at] for at in sorted(beside) if 0 <= at < len(headings))


def _read_parts(parts: Sequence[Part], hidden: AbstractSet[str], known: Known) -> list[str] | None:
    """All passes over one part after another; None where that might not be the same as over the whole page.

    It is the same if nothing of a part reaches beyond it: whatever opens in it closes in it, and `_read_lines` ends
    every paragraph at the blank line between two of them.
    """
    result: list[str] = []
    place = BEGINNING
    for part in parts:
        key = part, place
        if key not in known:
            known[key] = _read_part("\n\n".join(part), hidden, place)
        if (found := known[key]) is None:
            return None
        said, place = found
        result += said
    return result


def _read_part(text: str, hidden: AbstractSet[str], place: Place) -> tuple[list[str], Place] | None:
    text, closed = _without_verbatim(text)
    if not closed or ("<" in text and _OPEN_TAG.search(text)):
        return None
    if "{{" in text:
        frames = _without_pairs(text, "{{", "}}", _said_by_template)
        if len(frames) > 1:
            return None
        text = "".join(frames[0])
        if "<" in text and _OPEN_TAG.search(text):
            return None
    if ("{" in text and "{|" in text) or ("<" in text and "<table" in text.lower()):
        opened = 0
        for match in _TABLE.finditer("\n" + text):
            opened = opened + 1 if match[1] or match[2] else max(0, opened - 1)
        if opened:
            return None
        text = _without_tables(text)
    if "[" in text:
        frames = _without_links(text, hidden)
        if len(frames) > 1:
            return None
        text = _without_external("".join(frames[0]))
    if "<" in text:
        if _OPEN_TAG.search(text) or _READS_ELSEWHERE.search(text):
            return None
        text = _without_html(text)
    return _read_lines(text, place)


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
    """Bold and italic marks taken away as MediaWiki reads them: l'''orage'' keeps its apostrophe."""
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
        # One ''' must be an apostrophe and ''. Best after a one-letter word, then inside a word.
        literal[min(threes, key=lambda index: _rank_as_apostrophe(pieces[index]))] = 1
    return pieces[0] + "".join("'" * count + piece for count, piece in zip(literal, pieces[1:], strict=True))


# What dropped templates leave behind. The text is folded to single spaces before, and every repetition is bounded, so
# that no pattern can look far from where it starts.
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
# What the patterns above cannot do without. They may begin with nothing in particular and are tried at every letter;
# these are found at once.
_GONE_CLOSING = re.compile(rf"{GONE}[ ,;:]{{0,3}}[)\]）]")
_GONE_STOP = re.compile(rf"{GONE} ?[.,;:!?)\]）]")
_OPENING_GONE = re.compile(rf"[(\[（] ?{GONE}")
_SOUNDS = re.compile(rf"([()])|{SOUND}([^{SOUND}{END_SOUND}]*){END_SOUND}")
_JOINT_AFTER_DIGIT = re.compile(rf"(?<=[0-9]){JOINT}")
_WORD_CHARACTER = re.compile(r"[^\W_]")
# Normalization sorts the accents of a letter, in a time that grows with the square of their number. No language has
# more than a few; the bound is that of Unicode's stream-safe text.
MAX_ACCENTS = 30
_MANY_ACCENTS = re.compile(rf"[^\w\s]{{{MAX_ACCENTS + 1},}}")


def _clean(line: str, lead: bool) -> str:
    """One line as it is emitted; "" if no letter or digit is left."""
    if "&" in line:
        line = _ENTITY.sub(_character, line)
    if line.isprintable():  # so there are no marks in it, and no white space but blanks
        if "  " in line or line[:1] == " " or line[-1:] == " ":
            line = " ".join(line.split())
    else:
        line = line.replace(BESIDE, "")
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
    """Pronunciations dropped from the brackets that follow the name in the lead, kept elsewhere."""
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
