"""The SQL of page_props: pieces of any size give the same rows, and the file contains each of them."""

import zlib
from pathlib import Path
from unittest import mock

import pyarrow.parquet as pq

from temporalwiki.base.errors import InputError
from temporalwiki.builders import streams
from temporalwiki.builders.wikipedia.page_props import run

from fuzz.files import file, folder

_ROWS = b"(10,'wikibase_item','Q1',NULL),(12,'displaytitle','a \\'(11,\\'wikibase_item\\',\\'Q9\\',NULL',NULL),(13,"
_SQL = (
    b"-- MySQL dump\nCREATE TABLE `page_props` (\n  `pp_page` int\n);\nINSERT INTO `page_props` VALUES "
    + _ROWS
    + b"'wikibase_item','Q3',NULL);\n-- Dump completed on 2021-11-01\n"
)
SEEDS = (_SQL, _SQL[:-40], _SQL.replace(b"page_props", b"page_links"), _SQL.replace(b"Q3", b"Q" + b"9" * 18))
FOUND: tuple[bytes, ...] = (
    _SQL[:-40].replace(b"NULL", b"'-- Dump completed'"),  # cut off, with a value that says that it is not
    _SQL + _SQL[:-40],
)
WORDS = (*b"(1,'wikibase_item','Q2', 'Q9 \\' '' NULL) `page_props`".split(), *(b"-- Dump completed", b"\n", b"9" * 19))


def check(data: bytes) -> None:
    path = file("page_props.sql", data)
    one = _read(path)
    with mock.patch.object(streams, "OUT", 1 + zlib.crc32(data) % 23):
        assert _read(path) == one, "other pieces, other rows"
    for page, item in one if isinstance(one, list) else ():
        assert b",'wikibase_item','Q%d'," % item in data and b"%d" % page in data, "a row that is not there"


def _read(path: Path) -> list[tuple[int, int]] | str:
    try:
        report = run(str(path), folder())
    except InputError as error:
        assert str(path) in str(error) and "\n" not in str(error), f"not one line with the file: {error}"
        return str(error)
    rows = pq.read_table(folder() / "page_items.parquet").to_pylist()
    assert report["page_items"] == {"rows": len(rows)}, "the report counts other rows"
    return [(row["page_id"], row["item"]) for row in rows]
