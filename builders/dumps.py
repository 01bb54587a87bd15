"""Pages and items written as Wikimedia writes its dumps, so that a build can read any source.

``write_dumps`` writes the two dumps of one date. It also writes the generated world of ``temporalwiki demo``.
"""

import bz2
import gzip
import hashlib
import itertools
import json
import re
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np

from temporalwiki.base.errors import InputError
from temporalwiki.base.files import whole_file
from temporalwiki.builders.snapshot import check_date, check_wiki

T = TypeVar("T")
Json = dict[str, Any]

_NAMESPACES = {-1: "Special", 0: "", 1: "Talk", 2: "User", 3: "User talk", 4: "Wikipedia", 6: "File", 10: "Template"}
_NAMESPACES |= {12: "Help", 14: "Category", 100: "Portal", 118: "Draft", 828: "Module"}
_TIMES = ("P569", "P570", "P580", "P582", "P585")  # properties whose values are days
_ITEM = re.compile(r"Q[1-9][0-9]{0,17}")
_PROPERTY = re.compile(r"P[1-9][0-9]{0,17}")
_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


@dataclass(eq=False)
class Page:
    """A page and its newest revision."""

    id: int  # the same at every date
    title: str
    text: str = ""  # wikitext
    revision: int = 0  # another one whenever the text changes, higher at later dates; 0: a number made from the date
    timestamp: str = ""  # of the revision, as 2021-12-01T08:15:30Z; "": the dump's date
    parent: int | None = None  # the revision before
    ns: int = 0  # the namespace: 0 for articles
    redirect: str | None = None  # the title of its target


@dataclass(eq=False)
class Statement:
    """A statement of an item: a fact with its rank and dates."""

    relation: str  # a property, such as P36
    object: str | None  # an item, such as Q5; None for an unknown value
    start: str | None = None  # YYYY-MM-DD; 2005-00-00 is a year
    end: str | None = None
    rank: Literal["preferred", "normal", "deprecated"] = "normal"
    id: str = ""  # "": made from the item and the statement
    more: Json = field(default_factory=dict)  # other keys of its JSON

    def json(self, item: str) -> Json:
        """Return the statement of an item as Wikidata writes it."""
        data = None if self.object is None else item_value(self.object)
        json: Json = {"mainsnak": snak(self.relation, "wikibase-item", data), "type": "statement"}
        days = {"P580": self.start, "P582": self.end}
        qualifiers = {id: [snak(id, "time", time_value(day))] for id, day in days.items() if day}
        if qualifiers:
            json |= {"qualifiers": qualifiers, "qualifiers-order": list(qualifiers)}
        name = f"{self.relation}|{self.object}|{self.start}|{self.end}"
        return json | {"id": self.id or statement_id(item, name), "rank": self.rank} | self.more


@dataclass(eq=False)
class Item:
    """An item of Wikidata."""

    id: str  # such as Q5; the same at every date
    labels: dict[str, str]  # by language
    statements: list[Statement] = field(default_factory=list)
    sitelinks: dict[str, str] = field(default_factory=dict)  # the title of its page, by wiki: {"enwiki": "Chile"}
    aliases: dict[str, list[str]] = field(default_factory=dict)  # by language
    description: str = ""  # in English
    other_claims: dict[str, list[Json]] = field(default_factory=dict)  # by property: values that are not items
    revision: int = 0  # another one whenever something changes, and higher at later dates; 0: as in a page
    modified: str = ""  # as 2021-12-01T08:15:30Z

    def content(self) -> Json:
        """Return the keys that an edit can change, ordered as in real dumps. PHP writes an empty map as a list."""
        claims: dict[str, list[Json]] = {}
        for statement in self.statements:
            claims.setdefault(statement.relation, []).append(statement.json(self.id))
        return {
            "labels": terms(self.labels),
            "descriptions": terms({"en": self.description} if self.description else {}),
            "aliases": {
                language: [{"language": language, "value": text} for text in texts]
                for language, texts in self.aliases.items()
            }
            or [],
            "claims": claims | self.other_claims or [],
            "sitelinks": {s: {"site": s, "title": t, "badges": []} for s, t in self.sitelinks.items()} or [],
        }

    def json(self) -> Json:
        """Return the item as a line of the dump holds it."""
        numbers = {"pageid": int(self.id[1:]) + 200, "ns": 0, "title": self.id, "lastrevid": self.revision}
        return {"type": "item", "id": self.id} | self.content() | numbers | {"modified": self.modified}


def write_dumps(
    dumps: Path | str,
    date: str,
    pages: Iterable[Page],
    items: Iterable[Item],
    properties: Mapping[str, str],
    *,
    wiki: str = "enwiki",
    wikidata_date: str | None = None,
) -> None:
    """Write the dumps of one date, YYYYMMDD, laid out as Wikimedia does: pages as XML and items as JSON.

    ``properties`` has the label of each property. Equal arguments give equal bytes, and pages may come in any order.
    Raises InputError for what a build could not read or would misread, and UsageError for a wrong date or wiki.
    """
    check_wiki(wiki)
    date, wikidata_date = check_date(date), check_date(wikidata_date or date)
    pages, items = sorted(pages, key=lambda page: page.id), list(items)
    if not pages or not items:
        raise InputError(f"{dumps}: a dump of {date} needs pages and items; there are {len(pages)} and {len(items)}")
    _check_pages(pages)
    _check_items(items, properties)
    midnight = f"{date[:4]}-{date[4:6]}-{date[6:]}T00:00:00Z"
    first = int(date) * 10**9  # a build wants later dumps to have higher revisions
    for number, page in enumerate(pages):
        stamp = page.timestamp or midnight
        pages[number] = replace(page, revision=page.revision or first + number, timestamp=stamp)
    items = [replace(item, revision=item.revision or first + number) for number, item in enumerate(items)]
    write_pages(Path(dumps) / wiki / date, wiki, date, pages)
    lines = entities(items, properties)
    write_entities(Path(dumps) / "wikidatawiki" / "entities" / wikidata_date, wikidata_date, lines)


def wikitext(text: str) -> str:
    """Return a line of plain text as wikitext that shows the same, so that a source can bring no markup.

    Characters that no escape can keep out of wikitext (brackets, braces, bars) become others.
    """
    text = text.translate(str.maketrans("[]{}|~", "()()/-")).replace("''", '"')
    text = re.sub("__+", "_", text)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").lstrip(" *#:;=-!/_")


def stable_number(text: str) -> int:
    """Return a number of at most 15 digits that is always the same for a text: an id for a thing with only a name."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) % (10**15 - 1) + 1


def _check_pages(pages: list[Page]) -> None:
    ids, titles = set[int](), set[str]()
    for page in pages:
        name = f"page {page.id} ({page.title!r})"
        if not 0 < page.id < 10**18 or page.id in ids:
            raise InputError(f"{name}: the id is not above 0, or another page has it; give each page its own")
        if not page.title.strip() or (page.ns == 0 and page.title in titles):
            raise InputError(f"{name}: the title is empty, or another page has it; give each page its own")
        if found := _NOT_XML.search(page.title + page.text):
            raise InputError(f"{name}: XML cannot hold the character U+{ord(found[0]):04X}; remove it")
        if page.timestamp and not _MOMENT.fullmatch(page.timestamp):
            raise InputError(f"{name}: {page.timestamp!r} is not a time written as 2021-12-01T08:15:30Z")
        ids.add(page.id)
        titles.add(page.title)


def _check_items(items: list[Item], properties: Mapping[str, str]) -> None:
    ids = Counter(item.id for item in items)
    for property in properties:
        if not _PROPERTY.fullmatch(property):
            raise InputError(f"property {property!r}: not an id such as P36")
    for item in items:
        if not _ITEM.fullmatch(item.id):
            raise InputError(f"item {item.id!r}: not an id such as Q5")
        if ids[item.id] > 1:
            raise InputError(f"item {item.id}: there are {ids[item.id]} with this id; write one, with all statements")
        for statement in item.statements:
            place = f"item {item.id}: {statement.relation} {statement.object}"
            if statement.relation not in properties:
                raise InputError(f"{place}: {statement.relation} has no label in `properties`; add one")
            if statement.object is not None and statement.object not in ids:
                raise InputError(f"{place}: there is no item {statement.object}; add it with its label")
            if any(day is not None and not _DAY.fullmatch(day) for day in (statement.start, statement.end)):
                raise InputError(f"{place}: {statement.start} or {statement.end} is not a day written YYYY-MM-DD")


def escape(text: str) -> str:
    """Escape text as MediaWiki does in its dumps."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def base36_sha1(data: bytes) -> str:
    """Return the SHA-1 as the dumps write it: in base 36, with 31 digits."""
    return str(np.base_repr(int.from_bytes(hashlib.sha1(data).digest()), 36)).lower().rjust(31, "0")


def header(wiki: str) -> str:
    """Return everything before the first page."""
    schema = "http://www.mediawiki.org/xml/export-0.10"
    language = wiki.removesuffix("wiki")
    namespaces = "\n".join(
        f'      <namespace key="{key}" case="first-letter"' + (f">{name}</namespace>" if name else " />")
        for key, name in _NAMESPACES.items()
    )
    return (
        f'<mediawiki xmlns="{schema}/" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
        f'xsi:schemaLocation="{schema}/ {schema}.xsd" version="0.10" xml:lang="{language}">\n'
        f"  <siteinfo>\n    <sitename>Wikipedia</sitename>\n    <dbname>{wiki}</dbname>\n"
        f"    <base>https://{language}.wikipedia.org/wiki/Main_Page</base>\n"
        "    <generator>MediaWiki 1.38.0-wmf.5</generator>\n    <case>first-letter</case>\n"
        f"    <namespaces>\n{namespaces}\n    </namespaces>\n  </siteinfo>\n"
    )


def page_xml(page: Page) -> str:
    """Return a page with its newest revision."""
    redirect = "" if page.redirect is None else f'    <redirect title="{escape(page.redirect)}" />\n'
    parent = "" if page.parent is None else f"      <parentid>{page.parent}</parentid>\n"
    data = page.text.encode()
    return (
        f"  <page>\n    <title>{escape(page.title)}</title>\n    <ns>{page.ns}</ns>\n    <id>{page.id}</id>\n"
        f"{redirect}    <revision>\n      <id>{page.revision}</id>\n{parent}"
        f"      <timestamp>{page.timestamp}</timestamp>\n      <contributor>\n        <username>Mossback</username>\n"
        "        <id>7</id>\n      </contributor>\n"
        '      <comment>/* Career */ [[WP:CE|copy edit]] &amp; "fixes"</comment>\n'
        f"      <model>wikitext</model>\n      <format>text/x-wiki</format>\n"
        f'      <text bytes="{len(data)}" xml:space="preserve">{escape(page.text)}</text>\n'
        f"      <sha1>{base36_sha1(data)}</sha1>\n    </revision>\n  </page>\n"
    )


def write_pages(folder: Path, wiki: str, date: str, pages: Iterable[Page]) -> None:
    """Write the multistream dump of pages, which are in the order of their ids, and its index."""
    stem = f"{wiki}-{date}-pages-articles-multistream"
    with (
        whole_file(folder / f"{stem}.xml.bz2") as file,
        whole_file(folder / f"{stem}-index.txt.bz2") as named,
        file.open("wb") as out,
        bz2.open(named, "wb") as index,
    ):
        offset = out.write(bz2.compress(header(wiki).encode()))
        for batch in _batches(pages, 100):
            index.write("".join(f"{offset}:{page.id}:{escape(page.title)}\n" for page in batch).encode())
            offset += out.write(bz2.compress("".join(map(page_xml, batch)).encode()))
        out.write(bz2.compress(b"</mediawiki>\n"))


def write_entities(folder: Path, date: str, entities: Iterable[str]) -> None:
    """Write the JSON dump: an array with one entity a line, in many gzip members."""
    lines = ((",\n" if number else "[\n") + line for number, line in enumerate(entities))
    with whole_file(folder / f"wikidata-{date}-all.json.gz") as file, file.open("wb") as out:
        for batch in _batches(itertools.chain(lines, ["\n]\n"]), 40):
            out.write(gzip.compress("".join(batch).encode(), 6, mtime=0))


def entities(items: Iterable[Item], properties: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of Wikidata's dump: items, then properties by id and label."""
    described = (property_json(number, *each) for number, each in enumerate(properties.items()))
    for entity in itertools.chain((item.json() for item in items), described):
        yield json.dumps(entity, separators=(",", ":"))


def property_json(number: int, id: str, label: str) -> Json:
    """Return a property as a line of the dump holds it."""
    head = {"type": "property", "datatype": "time" if id in _TIMES else "wikibase-item", "id": id}
    numbers = {"pageid": 3_900_000 + number, "ns": 120, "title": f"Property:{id}", "lastrevid": 1_500_000 + number}
    return head | {"labels": terms({"en": label}), "descriptions": [], "aliases": [], "claims": []} | numbers


def terms(texts: dict[str, str]) -> Json | list[Any]:
    """Return labels or descriptions by language."""
    return {language: {"language": language, "value": text} for language, text in texts.items()} or []


def snak(id: str, datatype: str, data: Json | None) -> Json:
    """Return the value of a property; None is an unknown value."""
    head = {"snaktype": "somevalue" if data is None else "value", "property": id}
    return head | ({} if data is None else {"datavalue": data}) | {"datatype": datatype}


def item_value(id: str) -> Json:
    """Return a data value that is an item."""
    return {"value": {"entity-type": "item", "numeric-id": int(id[1:]), "id": id}, "type": "wikibase-entityid"}


def time_value(day: str) -> Json:
    """Return a data value that is a day; 2005-00-00 is a year."""
    precision = 9 if day.endswith("-00-00") else 11
    calendar = "http://www.wikidata.org/entity/Q1985727"
    zeros = {"timezone": 0, "before": 0, "after": 0}
    value = {"time": f"+{day}T00:00:00Z"} | zeros | {"precision": precision, "calendarmodel": calendar}
    return {"value": value, "type": "time"}


def statement_id(item: str, name: str) -> str:
    """Return the id of a statement of an item, always the same for a name."""
    return f"{item}${uuid.uuid5(uuid.NAMESPACE_URL, item + name)}".upper()


def _batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(items)
    while batch := list(itertools.islice(iterator, size)):
        yield batch
