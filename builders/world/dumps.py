"""Pages and entities written as Wikimedia writes its dumps."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

import numpy as np

from temporalwiki.builders.world.pages import Page

T = TypeVar("T")

_NAMESPACES = {-1: "Special", 0: "", 1: "Talk", 2: "User", 3: "User talk", 4: "Wikipedia", 6: "File", 10: "Template"}
_NAMESPACES |= {12: "Help", 14: "Category", 100: "Portal", 118: "Draft", 828: "Module"}


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
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{wiki}-{date}-pages-articles-multistream"
    with (folder / f"{stem}.xml.bz2").open("wb") as out, bz2.open(folder / f"{stem}-index.txt.bz2", "wb") as index:
        offset = out.write(bz2.compress(header(wiki).encode()))
        for batch in _batches(pages, 100):
            index.write("".join(f"{offset}:{page.id}:{escape(page.title)}\n" for page in batch).encode())
            offset += out.write(bz2.compress("".join(map(page_xml, batch)).encode()))
        out.write(bz2.compress(b"</mediawiki>\n"))


def write_entities(folder: Path, date: str, entities: Iterable[str]) -> None:
    """Write the JSON dump: an array with one entity a line, in many gzip members."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = ((",\n" if number else "[\n") + line for number, line in enumerate(entities))
    with (folder / f"wikidata-{date}-all.json.gz").open("wb") as out:
        for batch in _batches(itertools.chain(lines, ["\n]\n"]), 40):
            out.write(gzip.compress("".join(batch).encode(), 6, mtime=0))


def _batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(items)
    while batch := list(itertools.islice(iterator, size)):
        yield batch
