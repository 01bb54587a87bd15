"""An independent, slow and simple reference of the two algorithms, written only from DESIGN.

Nothing here uses the production code. Everything is read into memory and worked out with plain sets, lists and loops,
so that each function can be compared with the sentence of DESIGN that it implements. Tests compare the builders with
it on real dumps, generated worlds and random inputs.

Where DESIGN leaves something open, the choice is marked with "Choice:".
"""

import bz2
import gzip
import json
import re
import unicodedata
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

Paragraphs = list[list[str]]
"""A text: paragraphs, each a list of sentences."""

Fact = tuple[str, str, str]
"""(subject, relation, object), as ids: ("Q42", "P19", "Q350")."""


def read_bytes(path: Path | str) -> bytes:
    """The whole content of a plain, .bz2 or .gz file (DESIGN 3; multistream: many streams in one)."""
    content = Path(path).read_bytes()
    decompress = {".bz2": bz2.decompress, ".gz": gzip.decompress}.get(Path(path).suffix)
    return decompress(content) if decompress else content


# ---------------------------------------------------------------------------------------------------------
# Wikipedia dumps (DESIGN 3 and 4.1)


@dataclass(frozen=True)
class RefPage:
    """One page at one date: DESIGN 4.1, "page id, title, revision id, timestamp, ..., wikitext"."""

    page_id: int
    title: str
    namespace: int
    redirect: bool
    revision_id: int
    parent_id: int | None
    timestamp: datetime
    text: str


def read_articles(path: Path | str) -> dict[int, RefPage]:
    """Return all pages of a dump by page id, each with its newest revision.

    The newest revision has the greatest timestamp, and of equal timestamps the greatest revision id.
    """
    pages: dict[int, RefPage] = {}
    for page in ElementTree.fromstring(read_bytes(path)).iterfind("{*}page"):
        revisions = [
            RefPage(
                page_id=int(child(page, "id")),
                title=child(page, "title"),
                namespace=int(child(page, "ns")),
                redirect=page.find("{*}redirect") is not None,
                revision_id=int(child(revision, "id")),
                parent_id=int(revision.findtext("{*}parentid") or 0) or None,
                timestamp=datetime.strptime(child(revision, "timestamp"), "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC),
                text=revision.findtext("{*}text") or "",
            )
            for revision in page.iterfind("{*}revision")
        ]
        newest = max(revisions, key=lambda revision: (revision.timestamp, revision.revision_id))
        pages[newest.page_id] = newest
    return pages


def child(element: ElementTree.Element, name: str) -> str:
    """The text of a child element that must be there."""
    text = element.findtext("{*}" + name)
    if text is None:
        raise ValueError(f"{element.tag} without {name}")
    return text


def articles(pages: Mapping[int, RefPage]) -> dict[int, RefPage]:
    """DESIGN 4.1: "Namespace 0, not a redirect"."""
    return {page_id: page for page_id, page in pages.items() if page.namespace == 0 and not page.redirect}


# ---------------------------------------------------------------------------------------------------------
# Algorithm 1 (DESIGN 4.4)


def comparable(sentence: str) -> str:
    """DESIGN 4.4: "Sentences are compared after Unicode NFC and white-space folding".

    Choice: white space is what str.split takes for it (no-break spaces too); at either end it goes.
    """
    return " ".join(unicodedata.normalize("NFC", sentence).split())


QUOTES, DASHES, SYMBOLS = "’‘ʻʼʾʿ´`", "−–—‒‑‐", "%‰&#@"


def folded(sentence: str) -> str:
    """DESIGN 4.6: "equal after folding case, punctuation, quotes, dashes and white space".

    Choices: words and numbers stay apart. A full stop or apostrophe in a word goes ("U.S." is "US"), and so does the
    blank between two initials; any other punctuation separates. Points and the like between digits, a sign before a
    number, and symbols stay: 1.5 is not 15, -5 is not 5. Chinese, Japanese, Thai and their like have no blanks. If
    nothing is left, the sentence itself.
    """
    text = comparable(sentence).casefold()
    for character in QUOTES:
        text = text.replace(character, "'")
    for character in DASHES:
        text = text.replace(character, "-")
    text = text.replace("…", " ").replace("..", " ")

    def letter(at: int) -> bool:
        return 0 <= at < len(text) and unicodedata.category(text[at])[0] in "LM"

    def digit(at: int) -> bool:
        return 0 <= at < len(text) and text[at].isdecimal()

    initials = [
        letter(at) and not letter(at - 1) and letter(at + 3) and text[at + 1 : at + 3] + text[at + 4 : at + 5] == ". ."
        for at in range(len(text))
    ]
    text = "".join(
        character
        for at, character in enumerate(text)
        if not (at >= 1 and initials[at - 1]) and not (at >= 2 and initials[at - 2])
    )
    text = "".join(
        character
        for at, character in enumerate(text)
        if not (character == "." and (letter(at - 1) or not digit(at + 1)))
        and not (character == "'" and not digit(at + 1))
    )
    tokens, at = [], 0
    while at < len(text):
        start = at
        if digit(at) or (text[at] == "." and digit(at + 1)):
            at += 1
            while digit(at) or (at < len(text) and text[at] in ".,:/" and digit(at - 1) and digit(at + 1)):
                at += 1
            signed = text[at + 1 : at + 2] == "-"
            if text[at : at + 1] == "e" and digit(at + 1 + signed):
                at += 1 + signed
                while digit(at):
                    at += 1
        elif letter(at):
            while letter(at):
                at += 1
        elif text[at] == "-":
            at += 1
            amount = at + (text[at : at + 1] in ("$", "€", "£"))
            joined = start > 0 and unicodedata.category(text[start - 1])[0] in "LMN"
            if joined or not digit(amount + (text[amount : amount + 1] == ".")):
                continue
        else:
            at += 1
            if unicodedata.category(text[start])[0] not in "NS" and text[start] not in SYMBOLS:
                continue
        tokens.append(text[start:at])
    key = ""
    for token in tokens:
        blank = key and not unspaced(key[-1]) and not unspaced(token[0])
        key += f" {token}" if blank else token
    return key or comparable(sentence)


def unspaced(character: str) -> bool:
    """Whether a character is of a script that writes no blanks between words."""
    scripts = ("CJK UNIFIED", "HIRAGANA", "KATAKANA LETTER", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN")
    return unicodedata.name(character, "").startswith(scripts)


def alike(one: str, other: str) -> bool:
    """DESIGN 4.6: "at least .6 alike": the characters of their longest common subsequence, among those of both.

    The length of the subsequence comes bit by bit: bit i of ``row`` turns 0 where it grows at ``one[i]``.
    """
    one, other = comparable(one), comparable(other)
    if 20 * min(len(one), len(other)) < 6 * (len(one) + len(other)):
        return False
    places: dict[str, int] = {}
    for at, character in enumerate(one):
        places[character] = places.get(character, 0) | 1 << at
    full = row = (1 << len(one)) - 1
    for character in other:
        same = row & places.get(character, 0)
        row = ((row + same) | (row - same)) & full
    common = len(one) - row.bit_count()
    return 20 * common >= 6 * (len(one) + len(other))


def words_new_and_reworded(changed: Paragraphs, other: Paragraphs | None) -> tuple[int, int]:
    """DESIGN 4.6: a changed sentence that is alike to one of the other version is reworded, any other new.

    Choice: white space separates words, in every script.
    """
    new = reworded = 0
    others = [sentence for paragraph in other or [] for sentence in paragraph]
    for paragraph in changed:
        for sentence in paragraph:
            if any(alike(sentence, one) for one in others):
                reworded += len(sentence.split())
            else:
                new += len(sentence.split())
    return new, reworded


def diff_article(
    previous: Paragraphs | None, recent: Paragraphs, same: Callable[[str], str] = comparable
) -> Paragraphs:
    """Algorithm 1 for one article: the diffset's paragraphs, each with its sentences as they are in recent.

    DESIGN 4.4: "a page id that is not in prev: every paragraph; else, for each paragraph of recent: if none
    of its sentences occurs in the previous article, the whole paragraph; if some do and some do not, the
    sentences that do not; else nothing." Sentences without any character, and paragraphs without any
    sentence, are not prose and are left out. ``same`` gives equal texts for sentences that count as the same.
    """
    recent = [[sentence for sentence in paragraph if comparable(sentence)] for paragraph in recent]
    recent = [paragraph for paragraph in recent if paragraph]
    if previous is None:
        return recent
    known = {same(sentence) for paragraph in previous for sentence in paragraph}
    new = [[sentence for sentence in paragraph if same(sentence) not in known] for paragraph in recent]
    return [paragraph for paragraph in new if paragraph]


def deleted_sentences(
    previous: Paragraphs, recent: Paragraphs | None, same: Callable[[str], str] = comparable
) -> Paragraphs:
    """DESIGN 4.4: "the mirror image, sentences of prev that are gone"; None: the page vanished."""
    return diff_article(recent, previous, same)


@dataclass(frozen=True)
class RefRow:
    """One row of `diffset-*` or `deletions-*` (DESIGN 4, columns)."""

    kind: str
    paragraphs: Paragraphs
    revision_id: int | None
    previous_revision_id: int | None
    other: Paragraphs | None  # the article in the other snapshot


def diffset(
    prev_pages: Mapping[int, RefPage],
    recent_pages: Mapping[int, RefPage],
    split: Callable[[str], Paragraphs],
    same: Callable[[str], str] = folded,
) -> dict[int, RefRow]:
    """The diffset's rows by page id, from all pages of two snapshots.

    DESIGN 4.4 for the text; DESIGN 8 for the kind: an article that prev lacks is "missing in prev", not new, if it has
    a parent revision and an id below prev's largest. Pages with an equal revision (DESIGN 4.2) need no rule here: the
    same text gives no row. Pages without prose give no row either.
    """
    prev_articles = articles(prev_pages)
    largest_prev_id = max(prev_pages, default=0)
    prev_titles = {page.title for page in prev_pages.values()}
    rows: dict[int, RefRow] = {}
    for page_id, page in articles(recent_pages).items():
        before = split(prev_articles[page_id].text) if page_id in prev_articles else None
        # "kind is 'new' only for ids or titles that are"; prev can have the id as a redirect or in another namespace
        missing_in_prev = page.parent_id is not None and page_id < largest_prev_id
        is_old = page_id in prev_pages or missing_in_prev or page.title in prev_titles
        previous_revision_id = prev_pages[page_id].revision_id if page_id in prev_pages else None
        if paragraphs := diff_article(before, split(page.text), same):
            kind = "updated" if is_old else "new"
            rows[page_id] = RefRow(kind, paragraphs, page.revision_id, previous_revision_id, before)
    return rows


def deletions(
    prev_pages: Mapping[int, RefPage],
    recent_pages: Mapping[int, RefPage],
    split: Callable[[str], Paragraphs],
    same: Callable[[str], str] = folded,
) -> dict[int, RefRow]:
    """The rows of `deletions-*` by page id.

    DESIGN 4, columns: `text` has the removed sentences, and a page that vanished has `kind` "deleted" and a null
    `revision_id`. A page vanished if it is an article in prev but not in recent (gone, a redirect, or moved out of
    namespace 0).
    """
    recent_articles = articles(recent_pages)
    rows: dict[int, RefRow] = {}
    for page_id, page in articles(prev_pages).items():
        if page_id in recent_articles:
            recent = recent_articles[page_id]
            after = split(recent.text)
            paragraphs = deleted_sentences(split(page.text), after, same)
            row = RefRow("updated", paragraphs, recent.revision_id, page.revision_id, after)
        else:
            paragraphs = deleted_sentences(split(page.text), None)
            row = RefRow("deleted", paragraphs, None, page.revision_id, None)
        if paragraphs:
            rows[page_id] = row
    return rows


# ---------------------------------------------------------------------------------------------------------
# Wikidata dumps (DESIGN 5.1)


@dataclass(frozen=True)
class RefTime:
    """One value of a P582 qualifier: `snaktype` "value" (with a time), "somevalue" or "novalue"."""

    snaktype: str
    time: str | None = None
    precision: int | None = None


@dataclass(frozen=True)
class RefStatement:
    """One statement that is not deprecated and whose main snak is an item; `best`: of best rank."""

    fact: Fact
    best: bool
    end: tuple[RefTime, ...]


@dataclass
class RefWikidata:
    """The content of a Wikidata dump that DESIGN 5 needs."""

    items: set[str] = field(default_factory=set)
    statements: list[RefStatement] = field(default_factory=list)
    labels: dict[str, dict[str, str]] = field(default_factory=dict)
    sitelinks: dict[str, str] = field(default_factory=dict)

    def facts(self) -> set[Fact]:
        """DESIGN 5.1: the facts are the item-valued main snaks of best-rank statements."""
        return {statement.fact for statement in self.statements if statement.best}


def read_facts(path: Path | str, wiki: str = "enwiki") -> RefWikidata:
    """DESIGN 5.1: facts, ranks, times, labels and sitelinks of a Wikidata JSON dump.

    "Unknown datatypes, `[]` for `{}`, entities without `id` in their value (2014: `numeric-id` only),
    lexemes and redirects are read or dropped by reason, never fatal." An entity that occurs more than once
    counts once: the one with the largest lastrevid, on ties (or without any) the later line.
    """
    result = RefWikidata()
    newest: dict[str, dict[str, Any]] = {}
    for line in read_bytes(path).decode("utf-8").split("\n"):
        line = line.strip().lstrip("[").rstrip("],").strip()
        if not line:
            continue
        entity = json.loads(line)
        if "missing" in entity or "redirect" in entity or entity.get("type") not in ("item", "property"):
            continue
        entity_id = entity["id"]
        if entity_id not in newest or lastrevid(entity) >= lastrevid(newest[entity_id]):
            newest[entity_id] = entity

    for entity_id, entity in newest.items():
        result.labels[entity_id] = {
            language: label["value"] for language, label in mapping(entity.get("labels")).items()
        }
        if entity["type"] != "item":
            continue
        result.items.add(entity_id)
        sitelinks = mapping(entity.get("sitelinks"))
        if wiki in sitelinks:
            result.sitelinks[entity_id] = sitelinks[wiki]["title"]
        for relation, statements in mapping(entity.get("claims")).items():
            result.statements.extend(statements_of(entity_id, relation, statements))
    return result


def lastrevid(entity: Mapping[str, Any]) -> int:
    """An entity's revision, or 0 in dumps of 2014, which lack it."""
    return int(entity.get("lastrevid") or 0)


def mapping(value: Any) -> dict[str, Any]:
    """PHP writes an empty map as `[]`."""
    return value if isinstance(value, dict) else {}


def statements_of(subject: str, relation: str, statements: Sequence[dict[str, Any]]) -> list[RefStatement]:
    """The item-valued statements of one (subject, relation) that are not deprecated.

    DESIGN 5.1: "best-rank statements (preferred if any, else normal; never deprecated) with a value that is
    an item". Choice: the best rank is that of all the statements of the property, as Wikidata has it, so a
    preferred "no value" leaves no fact.
    """
    ranks = {rank_of(statement) for statement in statements}
    best_rank = "preferred" if "preferred" in ranks else "normal"
    return [
        RefStatement(
            fact=(subject, relation, item),
            best=rank_of(statement) == best_rank,
            end=times_of(mapping(statement.get("qualifiers")).get("P582", [])),
        )
        for statement in statements
        if rank_of(statement) != "deprecated" and (item := item_of(statement["mainsnak"])) is not None
    ]


def rank_of(statement: Mapping[str, Any]) -> str:
    """A statement's rank; normal if it is missing."""
    return str(statement.get("rank", "normal"))


def item_of(snak: Mapping[str, Any]) -> str | None:
    """The item that a snak has as value. DESIGN 5.1: "somevalue/novalue are not facts"."""
    if snak["snaktype"] != "value" or snak["datavalue"]["type"] != "wikibase-entityid":
        return None
    value = snak["datavalue"]["value"]
    entity_id = value.get("id")
    if entity_id is None and value.get("entity-type") == "item":
        entity_id = f"Q{value['numeric-id']}"
    return entity_id if entity_id is not None and re.fullmatch("Q[0-9]+", entity_id) else None


def times_of(snaks: Iterable[Mapping[str, Any]]) -> tuple[RefTime, ...]:
    """The values of a time qualifier, unchanged; values that are not times are left out."""
    result = []
    for snak in snaks:
        if snak["snaktype"] != "value":
            result.append(RefTime(snak["snaktype"]))
        elif snak["datavalue"]["type"] == "time":
            value = snak["datavalue"]["value"]
            result.append(RefTime("value", value["time"], value.get("precision")))
    return tuple(result)


# ---------------------------------------------------------------------------------------------------------
# Algorithm 2 (DESIGN 5.2)


def earliest_day(time: str, precision: int | None = None) -> tuple[int, int, int] | None:
    """The first day, as (year, month, day), of the period that a Wikidata time stands for.

    "+2014-00-00T00:00:00Z" is a year, "+2014-05-00T00:00:00Z" a month; dumps of 2014 write a year as
    "+00000002014-01-01T00:00:00Z" with precision 9. Choice: the precision, where it is given, tells how much
    of the time counts (9: the year, 8: the decade, 7: the century, 6: the millennium, where the 20th century
    starts with 1901); a string that is not a time gives None.
    """
    match = re.match(r"([+-]?)(\d+)-(\d\d)-(\d\d)T", time)
    if match is None:
        return None
    year, month, day = int(match[2]), int(match[3]), int(match[4])
    if match[1] == "-":
        return -year, 1, 1  # in the past, whatever the day
    if precision is not None and precision <= 10:
        day = 1
    if precision is not None and precision <= 9:
        month = 1
    if precision == 8:
        year = year // 10 * 10
    if precision == 7:
        year = (year - 1) // 100 * 100 + 1
    if precision == 6:
        year = (year - 1) // 1000 * 1000 + 1
    return year, max(month, 1), max(day, 1)


def has_end(statement: RefStatement, recent_date: str) -> bool:
    """Whether a statement has an end time by `recent_date` ("YYYYMMDD").

    An end is a P582 qualifier with a value at or before that date, or with an unknown value; "no value"
    means no end. Choice: of several P582, one is enough.
    """
    limit = int(recent_date[:4]), int(recent_date[4:6]), int(recent_date[6:8])
    for end in statement.end:
        if end.snaktype == "somevalue":
            return True
        if end.snaktype == "value" and end.time is not None:
            day = earliest_day(end.time, end.precision)
            if day is not None and day <= limit:
                return True
    return False


@dataclass
class RefCategories:
    """What Algorithm 2 makes of two snapshots' facts."""

    changed: dict[Fact, str] = field(default_factory=dict)
    unchanged: set[Fact] = field(default_factory=set)
    deleted: dict[Fact, str] = field(default_factory=dict)


def algorithm_2(prev: RefWikidata, recent: RefWikidata, recent_date: str) -> RefCategories:
    """DESIGN 5.2, on sets of facts.

    "subject not in prev -> changed ('new_subject'); relation new for it -> changed ('new_relation'); same
    (relation, object) in prev -> unchanged; else changed ('new_object', with the previous objects). Facts of
    prev that are gone -> `deleted`, split into 'replaced', 'ended' (an end time was added) and 'removed'."

    A fact ended if prev has a best-rank statement of it without an end, and recent has statements of it that
    are not deprecated (of any rank), all with an end; it counts as gone. Choice: an end is judged at
    `recent_date` on both sides, for only then was it added in the interval.
    """
    facts_prev = prev.facts()
    facts_recent = recent.facts()
    in_prev: dict[Fact, list[RefStatement]] = {}
    for statement in prev.statements:
        if statement.best:
            in_prev.setdefault(statement.fact, []).append(statement)
    in_recent: dict[Fact, list[RefStatement]] = {}
    for statement in recent.statements:
        in_recent.setdefault(statement.fact, []).append(statement)
    relations_prev = {(subject, relation) for subject, relation, _ in facts_prev}

    def is_over(fact: Fact) -> bool:
        """Every statement of the fact in recent has an end."""
        statements = in_recent.get(fact, [])
        return bool(statements) and all(has_end(statement, recent_date) for statement in statements)

    ended = {
        fact
        for fact in facts_prev
        if any(not has_end(statement, recent_date) for statement in in_prev[fact]) and is_over(fact)
    }
    # The (subject, relation) that have got another object, which still holds.
    superseded = {
        (subject, relation)
        for subject, relation, item in facts_recent - facts_prev
        if not is_over((subject, relation, item))
    }

    result = RefCategories()
    result.unchanged = (facts_prev & facts_recent) - ended
    for fact in facts_recent - facts_prev:
        subject, relation, _ = fact
        if subject not in prev.items:
            result.changed[fact] = "new_subject"
        else:
            result.changed[fact] = "new_object" if (subject, relation) in relations_prev else "new_relation"
    for fact in (facts_prev - facts_recent) | ended:
        subject, relation, _ = fact
        if (subject, relation) in superseded:
            result.deleted[fact] = "replaced"
        elif fact in ended:
            result.deleted[fact] = "ended"
        else:
            result.deleted[fact] = "removed"
    return result


# ---------------------------------------------------------------------------------------------------------
# Labels, alignment and filters (DESIGN 5.4 to 5.6)


def label(labels: Mapping[str, str], language: str) -> str | None:
    """DESIGN 5.4: "language of the wiki, with fallbacks": itself, its base, mul, en, and for English en-*.

    Choice: a variety of English ("en-gb") counts as English.
    """
    base = language.split("-")[0]
    order = [language, base, "mul", "en", *(["en-gb", "en-us", "en-ca"] if base == "en" else [])]
    return next((labels[code] for code in order if labels.get(code)), None)


def subject_pages(wikidata: RefWikidata, pages: Mapping[int, RefPage]) -> dict[str, int]:
    """DESIGN 5.5: "the subject maps to a page", by its sitelink; the page must be an article."""
    ids = {page.title: page_id for page_id, page in articles(pages).items()}
    return {item: ids[title] for item, title in wikidata.sitelinks.items() if title in ids}


def deleted_subject_pages(
    prev: RefWikidata, prev_pages: Mapping[int, RefPage], recent_pages: Mapping[int, RefPage]
) -> dict[str, int]:
    """The pages, by prev's sitelinks, of subjects whose article is deleted: none in recent any more."""
    recent_articles = articles(recent_pages)
    return {
        item: page_id for item, page_id in subject_pages(prev, prev_pages).items() if page_id not in recent_articles
    }


def is_mark(character: str) -> bool:
    """Whether it is a combining mark, which belongs to the character before it."""
    return unicodedata.category(character or " ").startswith("M")


def is_word(character: str) -> bool:
    return re.fullmatch(r"\w", character) is not None or is_mark(character)


def holds(sentence: str, text: str) -> bool:
    """Whether a sentence holds a label.

    DESIGN 5.5: "Match on word boundaries, case-insensitively, after NFC". No word character may stand
    directly before or after the label, where the label itself begins or ends with one.
    """
    sentence = unicodedata.normalize("NFC", sentence).casefold()
    text = unicodedata.normalize("NFC", text).casefold()
    if not text:
        return False
    for start in range(len(sentence) - len(text) + 1):
        end = start + len(text)
        if sentence[start:end] != text:
            continue
        before, after = sentence[max(0, start - 1) : start], sentence[end : end + 1]
        glued = (is_word(before) and is_word(text[0])) or (is_word(text[-1]) and is_word(after)) or is_mark(after)
        if not glued:
            return True
    return False


def is_strict(
    split: str,
    kind: str,
    support: str,
    current: bool,
    dated: str,
    respelled: bool,
    gone: Sequence[str],
    mentioned_before: bool,
) -> bool:
    """DESIGN 5, columns: `strict`."""
    if split == "deleted" or support == "mentioned" or not current:
        return False
    if split == "unchanged":
        return True
    replaces = kind == "new_object" and bool(gone)
    is_new = dated == "within" or (dated == "undated" and (replaces or not mentioned_before))
    return is_new and not respelled


def passes_filters(subject_label: str, object_label: str) -> bool:
    """DESIGN 5.6: "(1) neither of subject and object is a substring of the other (case-insensitive);
    (2) object of at most 5 words"."""
    one = unicodedata.normalize("NFC", subject_label).casefold()
    other = unicodedata.normalize("NFC", object_label).casefold()
    return one not in other and other not in one and len(object_label.split()) <= 5


@dataclass(frozen=True)
class RefProbe:
    """A candidate for `probes-*`: a fact that is aligned with a page and passes the filters but the caps."""

    fact: Fact
    kind: str
    page_id: int
    evidence: str
    support: str


@dataclass
class RefCandidates:
    """The candidates before the caps, each list sorted by fact."""

    changed: list[RefProbe] = field(default_factory=list)
    unchanged: list[RefProbe] = field(default_factory=list)
    deleted: list[RefProbe] = field(default_factory=list)


Evidence = Callable[[str, Fact, int], tuple[str, str] | None]
"""Takes a split, a fact and a page. Returns the sentence that supports the fact best, and its support, or None."""


def align_and_filter(
    categories: RefCategories,
    labels: Mapping[str, str | None],
    pages: Mapping[str, int],
    deleted_pages: Mapping[str, int],
    evidence: Evidence,
) -> RefCandidates:
    """DESIGN 5.5 and the first two filters of 5.6.

    "changed facts need that page in the diffset" and the object named in "the page's *diffset text*; unchanged facts
    need the page in the recent snapshot" and the object in its text; deleted facts need it in the deletion text.
    `pages`: subject -> page id of the recent article; `deleted_pages`: subject -> page id of an article that is
    deleted, for subjects which have no recent article.

    Choice: a fact without a label for its subject, relation or object is not aligned.
    """

    def candidates(split: str, facts: Mapping[Fact, str]) -> list[RefProbe]:
        kept = []
        for fact, kind in sorted(facts.items()):
            subject_label, relation_label, object_label = (labels.get(part) for part in fact)
            page_id = pages.get(fact[0])
            if page_id is None and split == "deleted":
                page_id = deleted_pages.get(fact[0])
            if page_id is None or not subject_label or not relation_label or not object_label:
                continue
            best = evidence(split, fact, page_id)
            if best is not None and passes_filters(subject_label, object_label):
                kept.append(RefProbe(fact, kind, page_id, *best))
        return kept

    return RefCandidates(
        changed=candidates("changed", categories.changed),
        unchanged=candidates("unchanged", dict.fromkeys(categories.unchanged, "unchanged")),
        deleted=candidates("deleted", categories.deleted),
    )


def check_caps(rows: Sequence[tuple[str, str, str]]) -> None:
    """DESIGN 5.6 (3): one subject has at most 1 %, one relation at most 5 %, one object at most 5 % of the
    final set, but at least 1 each. In whole numbers: n // 100 is floor(n * 1 %), without rounding."""
    total = len(rows)
    for position, name, percent in ((0, "subject", 1), (1, "relation", 5), (2, "object", 5)):
        most = max(1, total * percent // 100)
        for value, count in Counter(row[position] for row in rows).items():
            assert count <= most, f"{name} {value!r}: {count} of {total} rows, at most {most} are allowed"
