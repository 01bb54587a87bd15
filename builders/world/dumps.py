"""Pages and entities written as Wikimedia writes its dumps. Equal worlds give equal bytes."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import itertools
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from temporalwiki.builders.world.filler import FIRST_ITEM, FIRST_PAGE, Filler
from temporalwiki.builders.world.pages import Page

if TYPE_CHECKING:
    from temporalwiki.builders.world import World
    from temporalwiki.builders.world.story import Story

T = TypeVar("T")

_PAGES_A_STREAM = 100
_ENTITIES_A_MEMBER = 40
_NAMESPACES = {
    -2: "Media", -1: "Special", 0: "", 1: "Talk", 2: "User", 3: "User talk", 4: "Wikipedia",
    5: "Wikipedia talk", 6: "File", 7: "File talk", 8: "MediaWiki", 9: "MediaWiki talk", 10: "Template",
    11: "Template talk", 12: "Help", 13: "Help talk", 14: "Category", 15: "Category talk", 100: "Portal",
    101: "Portal talk", 118: "Draft", 119: "Draft talk", 710: "TimedText", 711: "TimedText talk",
    828: "Module", 829: "Module talk", 2300: "Gadget", 2301: "Gadget talk", 2302: "Gadget definition",
    2303: "Gadget definition talk",
}  # fmt: skip
_FOOTER = b"</mediawiki>\n"


@dataclass(frozen=True)
class PageXml:
    """A page ready to be written; the title is escaped, as the index has it too."""

    id: int
    title: str
    xml: str


def escape(text: str) -> str:
    """As MediaWiki escapes text in its dumps."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def base36_sha1(data: bytes) -> str:
    """SHA-1 in base 36 with 31 digits, the dumps' form."""
    number, digits = int.from_bytes(hashlib.sha1(data).digest()), ""
    while number:
        number, digit = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + digits
    return digits.rjust(31, "0")


def header(world: World) -> str:
    """Everything before the first page."""
    schema = f"http://www.mediawiki.org/xml/export-{world.schema}"
    lines = "\n".join(
        f'      <namespace key="{key}" case="{"case-sensitive" if key in (2302, 2303) else "first-letter"}"'
        + (f">{name}</namespace>" if name else " />")
        for key, name in _NAMESPACES.items()
    )
    language = world.wiki.removesuffix("wiki")
    return (
        f'<mediawiki xmlns="{schema}/" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
        f'xsi:schemaLocation="{schema}/ {schema}.xsd" version="{world.schema}" xml:lang="{language}">\n'
        f"  <siteinfo>\n    <sitename>Wikipedia</sitename>\n    <dbname>{world.wiki}</dbname>\n"
        f"    <base>https://{language}.wikipedia.org/wiki/Main_Page</base>\n"
        "    <generator>MediaWiki 1.38.0-wmf.5</generator>\n    <case>first-letter</case>\n"
        f"    <namespaces>\n{lines}\n    </namespaces>\n  </siteinfo>\n"
    )


def page_xml(page: Page, schema: str) -> PageXml:
    """A story page."""
    title = escape(page.title)
    redirect = "" if page.redirect is None else f'    <redirect title="{escape(page.redirect)}" />\n'
    if page.user is None:
        user = '      <contributor deleted="deleted" />\n'
    elif page.user[0].isdigit():
        user = f"      <contributor>\n        <ip>{page.user}</ip>\n      </contributor>\n"
    else:
        user_id = int(hashlib.sha1(page.user.encode()).hexdigest()[:6], 16)
        user = f"      <contributor>\n        <username>{page.user}</username>\n        <id>{user_id}</id>\n"
        user += "      </contributor>\n"
    comment = {None: "", "": '      <comment deleted="deleted" />\n'}.get(page.comment)
    if comment is None:
        comment = f"      <comment>{escape(str(page.comment))}</comment>\n"
    parent = "" if page.parent is None else f"      <parentid>{page.parent}</parentid>\n"
    minor = "      <minor />\n" if page.minor else ""
    body = _revision(page.revision, parent, page.timestamp, user + minor + comment, page.text, schema)
    return _page(page.id, page.ns, title, redirect + body)


def _page(id: int, ns: int, title: str, rest: str) -> PageXml:
    head = f"  <page>\n    <title>{title}</title>\n    <ns>{ns}</ns>\n    <id>{id}</id>\n"
    return PageXml(id, title, head + rest)


def _revision(id: int, parent: str, timestamp: str, about: str, text: str, schema: str) -> str:
    data = text.encode()
    digest = base36_sha1(data)
    newer = schema != "0.10"
    return (
        f"    <revision>\n      <id>{id}</id>\n{parent}      <timestamp>{timestamp}</timestamp>\n{about}"
        + (f"      <origin>{id}</origin>\n" if newer else "")
        + "      <model>wikitext</model>\n      <format>text/x-wiki</format>\n"
        + f'      <text bytes="{len(data)}"'
        + (f' sha1="{digest}"' if newer else "")
        + f' xml:space="preserve">{escape(text)}</text>\n'
        + f"      <sha1>{digest}</sha1>\n    </revision>\n  </page>\n"
    )


def filler_xml(filler: Filler, month: int) -> Iterator[PageXml]:
    """Filler pages with a plain revision each."""
    world = filler.world
    user = "      <contributor>\n        <username>Load</username>\n        <id>7</id>\n      </contributor>\n"
    for page_id, text, changed in filler.texts(month):
        revision = 900_000_000 + changed * 30_000_000 + page_id - FIRST_PAGE
        day = world.dates[changed - 1] if changed else "20200101"
        stamp = f"{day[:4]}-{day[4:6]}-{day[6:]}T12:00:00Z"
        title = f"Place {page_id - FIRST_PAGE}"
        body = _revision(revision, f"      <parentid>{revision - 1}</parentid>\n", stamp, user, text, world.schema)
        yield _page(page_id, 0, title, body)


def snapshot_xml(story: Story, filler: Filler) -> Iterator[PageXml]:
    """All pages of the snapshot by page id: old story pages, filler, story pages that came later."""
    pages = story.dump_pages()
    schema = story.world.schema
    yield from (page_xml(page, schema) for page in pages if page.id < FIRST_PAGE)
    yield from filler_xml(filler, story.month)
    yield from (page_xml(page, schema) for page in pages if page.id >= FIRST_PAGE)


def write_pages(folder: Path, story: Story, filler: Filler) -> None:
    """The multistream dump and its index, whole or in numbered parts by page id."""
    world = story.world
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{world.wiki}-{world.dates[story.month]}-pages-articles-multistream"
    pages = snapshot_xml(story, filler)
    if world.parts == 1:
        _write_multistream(folder / f"{stem}.xml.bz2", folder / f"{stem}-index.txt.bz2", pages, world)
        return
    ids = sorted([*(p.id for p in story.dump_pages()), *range(FIRST_PAGE, FIRST_PAGE + world.filler_pages)])
    size = -(-len(ids) // world.parts)
    lasts = [chunk[-1] for chunk in (ids[i : i + size] for i in range(0, len(ids), size))]
    rest, first = deque[PageXml](), 1
    for part, last in enumerate(lasts, 1):
        name = f"p{first}p{last}.bz2"
        _write_multistream(
            folder / f"{stem}{part}.xml-{name}",
            folder / f"{stem}-index{part}.txt-{name}",
            _up_to(last, pages, rest),
            world,
        )
        first = last + 1


def _up_to(last: int, pages: Iterator[PageXml], rest: deque[PageXml]) -> Iterator[PageXml]:
    """Pages up to an id; the first page beyond waits in ``rest`` for the next part."""
    while rest:
        yield rest.popleft()
    for page in pages:
        if page.id > last:
            rest.append(page)
            return
        yield page


def _write_multistream(path: Path, index_path: Path, pages: Iterator[PageXml], world: World) -> None:
    def stream(batch: list[PageXml]) -> bytes:
        return bz2.compress("".join(page.xml for page in batch).encode(), world.compression_level)

    with path.open("wb") as out, bz2.open(index_path, "wb", compresslevel=9) as index:
        offset = out.write(bz2.compress(header(world).encode(), 9))
        for batch, packed in _compressed(_batches(pages, _PAGES_A_STREAM), stream):
            index.write("".join(f"{offset}:{page.id}:{page.title}\n" for page in batch).encode())
            offset += out.write(packed)
        out.write(bz2.compress(_FOOTER, 9))


def write_page_props(folder: Path, story: Story, filler: Filler) -> None:
    """The SQL dump of the table that maps pages to items (among other properties of pages)."""
    world = story.world
    rows = [
        row
        for page in story.dump_pages()
        if page.item is not None and page.is_article and story.by_id[page.item].sitelink == page.title
        for row in (
            f"({page.id},'page_image_free','It\\'s_(a)_\"view\",_{page.id}.jpg',NULL)",
            f"({page.id},'wikibase-shortdesc','A \\\\ page; ),(1,\\'wikibase_item\\',\\'Q1\\'',NULL)",
            f"({page.id},'wikibase_item','{page.item}',NULL)",
        )
    ]
    rows += [f"({FIRST_PAGE + k},'wikibase_item','Q{FIRST_ITEM + k}',NULL)" for k in range(world.filler_items)]
    inserts = "".join(
        f"INSERT INTO `page_props` VALUES {','.join(rows[i : i + 500])};\n" for i in range(0, len(rows), 500)
    )
    text = (
        f"-- MariaDB dump 10.19\n--\n-- Host: db    Database: {world.wiki}\n\n"
        "/*!40101 SET NAMES utf8mb4 */;\n\n"
        "DROP TABLE IF EXISTS `page_props`;\nCREATE TABLE `page_props` (\n"
        "  `pp_page` int(8) unsigned NOT NULL,\n  `pp_propname` varbinary(60) NOT NULL DEFAULT '',\n"
        "  `pp_value` blob NOT NULL,\n  `pp_sortkey` float DEFAULT NULL,\n"
        "  PRIMARY KEY (`pp_page`,`pp_propname`)\n) ENGINE=InnoDB DEFAULT CHARSET=binary;\n\n"
        "/*!40000 ALTER TABLE `page_props` DISABLE KEYS */;\n"
        f"{inserts}/*!40000 ALTER TABLE `page_props` ENABLE KEYS */;\n\n"
        "-- Dump completed on 2021-11-02  1:02:03\n"
    )
    name = f"{world.wiki}-{world.dates[story.month]}-page_props.sql.gz"
    (folder / name).write_bytes(gzip.compress(text.encode(), world.compression_level, mtime=0))


def write_entities(folder: Path, story: Story, filler: Filler) -> None:
    """The JSON dump: an array with one entity a line, in many members."""
    world = story.world
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"wikidata-{world.wikidata_dates[story.month]}-all.json.{world.wikidata_compression}"

    def member(batch: list[str]) -> bytes:
        data = "".join(batch).encode()
        if world.wikidata_compression == "bz2":
            return bz2.compress(data, world.compression_level)
        return gzip.compress(data, world.compression_level, mtime=0)

    lines = itertools.chain(
        (json.dumps(entity, separators=(",", ":")) for entity in story.entities()), filler.items(story.month)
    )
    with path.open("wb") as out:
        for _, packed in _compressed(_batches(_array(lines), _ENTITIES_A_MEMBER), member):
            out.write(packed)


def _array(lines: Iterable[str]) -> Iterator[str]:
    """Lines as a JSON array: the comma ends a line that another one follows."""
    yield "[\n"
    last: str | None = None
    for line in lines:
        if last is not None:
            yield last + ",\n"
        last = line
    if last is not None:
        yield last + "\n"
    yield "]\n"


def _batches(items: Iterator[T], size: int) -> Iterator[list[T]]:
    while batch := list(itertools.islice(items, size)):
        yield batch


def _compressed(batches: Iterator[list[T]], compress: Callable[[list[T]], bytes]) -> Iterator[tuple[list[T], bytes]]:
    """Batches with their compressed bytes, in order.

    Compression leaves the interpreter's lock, so threads help; the window bounds the memory.
    """
    with ThreadPoolExecutor(4) as pool:
        window: deque[tuple[list[T], Future[bytes]]] = deque()
        for batch in batches:
            window.append((batch, pool.submit(compress, batch)))
            if len(window) >= 12:
                first, future = window.popleft()
                yield first, future.result()
        for first, future in window:
            yield first, future.result()
