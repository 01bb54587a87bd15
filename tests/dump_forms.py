"""Generated dumps in the other forms that Wikimedia has: in numbered parts, in the newer schema, as bz2."""

import bz2
import gzip
import re
from collections.abc import Sequence
from pathlib import Path

from temporalwiki.builders.world import Snapshot


def write_page_props(dumps: Path, snapshots: Sequence[Snapshot], wiki: str = "enwiki") -> None:
    """Write the SQL tables that map pages to items, among other properties of pages."""
    for snapshot in snapshots:
        rows = ",".join(
            f"({page},'page_image_free','It\\'s_(a)_\"view\",_{page}.jpg',NULL),"
            f"({page},'wikibase-shortdesc','A \\\\ page; ),(1,\\'wikibase_item\\',\\'Q1\\'',NULL),"
            f"({page},'wikibase_item','{article.item}',NULL)"
            for page, article in snapshot.articles.items()
            if article.item is not None
        )
        text = (
            "-- MariaDB dump 10.19\n\nDROP TABLE IF EXISTS `page_props`;\nCREATE TABLE `page_props` (\n"
            "  `pp_page` int(8) unsigned NOT NULL,\n  `pp_propname` varbinary(60) NOT NULL DEFAULT '',\n"
            "  `pp_value` blob NOT NULL,\n  `pp_sortkey` float DEFAULT NULL,\n"
            "  PRIMARY KEY (`pp_page`,`pp_propname`)\n) ENGINE=InnoDB DEFAULT CHARSET=binary;\n\n"
            f"INSERT INTO `page_props` VALUES {rows};\n\n-- Dump completed on 2021-11-02  1:02:03\n"
        )
        path = dumps / wiki / snapshot.date / f"{wiki}-{snapshot.date}-page_props.sql.gz"
        path.write_bytes(gzip.compress(text.encode(), mtime=0))


def split_dump(folder: Path, parts: int, *, newer_schema: bool = False) -> None:
    """Replace the multistream dump in a folder by numbered parts, in schema 0.10 or 0.11."""
    [whole], [index] = folder.glob("*-multistream.xml.bz2"), folder.glob("*-multistream-index.txt.bz2")
    data = whole.read_bytes()
    rows = [line.split(":", 2) for line in bz2.decompress(index.read_bytes()).decode().splitlines()]
    pages = re.findall(r"  <page>.*?</page>\n", bz2.decompress(data).decode(), re.DOTALL)
    head = bz2.BZ2Decompressor().decompress(data).decode()
    if newer_schema:
        head, pages = head.replace("0.10", "0.11"), [_newer(page) for page in pages]
    size, first = -(-len(pages) // parts), 1
    for number in range(parts):
        here, ids = pages[number * size :][:size], rows[number * size :][:size]
        name = f"{number + 1}{{}}-p{first}p{ids[-1][1]}.bz2"
        streams, entries = [bz2.compress(head.encode())], []
        for start in range(0, size, 100):
            offset = sum(map(len, streams))
            streams.append(bz2.compress("".join(here[start : start + 100]).encode()))
            entries += [f"{offset}:{row[1]}:{row[2]}\n" for row in ids[start : start + 100]]
        stem = whole.name.removesuffix(".xml.bz2")
        (folder / f"{stem}{name.format('.xml')}").write_bytes(b"".join([*streams, bz2.compress(b"</mediawiki>\n")]))
        (folder / f"{stem}-index{name.format('.txt')}").write_bytes(bz2.compress("".join(entries).encode()))
        first = int(ids[-1][1]) + 1
    whole.unlink()
    index.unlink()


def _newer(page: str) -> str:
    sha1 = re.findall("<sha1>(.*)</sha1>", page)[0]
    page = page.replace("      <model>", "      <origin>7</origin>\n      <model>")
    return page.replace(' xml:space="preserve">', f' sha1="{sha1}" xml:space="preserve">')


def wikidata_as_bz2(dumps: Path) -> None:
    """Replace Wikidata's gz files by bz2 files of several streams."""
    for path in dumps.glob("wikidatawiki/entities/*/*.json.gz"):
        lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
        streams = (b"".join(lines[i : i + 40]) for i in range(0, len(lines), 40))
        path.with_suffix(".bz2").write_bytes(b"".join(map(bz2.compress, streams)))
        path.unlink()
