"""The table page -> item, out of an SQL dump."""

import gzip
from pathlib import Path

import pytest

from temporalwiki.base.errors import InputError
from temporalwiki.builders import streams
from temporalwiki.builders.parquet import read_rows
from temporalwiki.builders.wikipedia import page_props

HEAD = "-- MariaDB dump\nDROP TABLE IF EXISTS `page_props`;\nCREATE TABLE `page_props` (\n  `pp_page` int\n);\n"
TAIL = "/*!40000 ALTER TABLE `page_props` ENABLE KEYS */;\n-- Dump completed on 2021-11-01\n"
ROWS = (
    "INSERT INTO `page_props` VALUES (10,'wikibase_item','Q42',NULL),(10,'displaytitle','<i>X</i>',NULL),"
    "(11,'displaytitle','a trap: (99,\\'wikibase_item\\',\\'Q666\\',NULL)',NULL),\n"
    "(12,'page_image_free','A_(b),c.jpg',NULL),(13,'wikibase_item','Q7',NULL);\n"
)


def read(tmp_path: Path, *texts: str) -> list[tuple[int, int]]:
    path = tmp_path / "enwiki-20211101-page_props.sql.gz"
    path.write_bytes(gzip.compress("".join(texts).encode()))
    page_props.run(str(path), tmp_path)
    return [(row["page_id"], row["item"]) for row in read_rows([tmp_path / "page_items.parquet"])]


@pytest.mark.parametrize("out", [16, 50, 1 << 20])
def test_items_are_read_and_strings_are_not_mistaken_for_rows(
    tmp_path: Path, out: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "OUT", out)
    assert read(tmp_path, HEAD, ROWS, TAIL) == [(10, 42), (13, 7)]


def test_a_cut_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Dump completed"):
        read(tmp_path, HEAD, ROWS)


def test_another_table_is_refused(tmp_path: Path, shared_data: Path) -> None:
    [sql] = (shared_data / "odd/sql").glob("*.sql")
    with pytest.raises(InputError, match="not a dump of the table page_props"):
        read(tmp_path, sql.read_text("utf-8"))
