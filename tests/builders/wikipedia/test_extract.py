"""Stage wiki-extract: its tables and the look-up of titles."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pyarrow as pa
import pytest

from temporalwiki.builders.parquet import read_rows
from temporalwiki.builders.snapshot import Dump
from temporalwiki.builders.wikipedia import extract
from temporalwiki.builders.wikipedia.extract import files, pack, titles_among, unpack
from temporalwiki.builders.wikipedia.xml_dump import unescape

from a_folder import contents
from tiny_dumps import multistream, page

TEXT = "''A'' & <b> \"c\" é"
PAGES = [
    page(3, "Three", TEXT, revision_id=30, parent=29),
    page(1, "One", "1", revision_id=10),
    page(2, "Alt", "#REDIRECT [[One]]", redirect=True, revision_id=20),
    page(4, "Talk:One", "t", ns=1, revision_id=40),
    page(5, "Lua", "return 1", revision_id=50).replace(">wikitext<", ">Scribunto<"),
    page(3, "Three", "older", revision_id=28),
]


def run(tmp_path: Path, pages: list[str] = PAGES, folder: str = "x") -> tuple[Path, dict[str, object]]:
    dump = Dump("x", (multistream(tmp_path / f"{folder}.xml.bz2", pages),))
    [task] = extract.plan(dump, "enwiki", False)
    (tmp_path / folder).mkdir()
    return tmp_path / folder, extract.run(task, tmp_path / folder)


def test_articles_and_pages_are_written_in_page_order_and_everything_is_counted(tmp_path: Path) -> None:
    folder, report = run(tmp_path)
    articles = list(read_rows(files(folder, "articles")))
    assert [(row["page_id"], row["revision_id"], row["parent_id"]) for row in articles] == [
        (1, 10, None),
        (3, 28, None),
        (3, 30, 29),
    ]
    escaped = unpack(pa.py_buffer(articles[2]["packed"]), articles[2]["size"])
    assert unescape(escaped) == TEXT
    assert articles[2]["sha1"] == hashlib.sha1(escaped).digest()
    assert (articles[2]["title"], str(articles[2]["timestamp"])) == ("Three", "2021-10-01 00:00:00+00:00")
    pages = [tuple(row.values()) for row in read_rows(files(folder, "pages"))]
    assert pages == [
        (1, 0, False, 10),
        (2, 0, True, 20),
        (3, 0, False, 28),
        (3, 0, False, 30),
        (4, 1, False, 40),
        (5, 0, False, 50),
    ]
    counts = {"read": 6, "articles": 3, "redirects": 1, "other_namespaces": 1, "dropped": {"not_wikitext": 1}}
    assert report["pages"] == counts


@pytest.mark.parametrize("text", [b"", b"a", b"ab" * 100_000, bytes(range(256)) * 3])
def test_a_text_comes_back_as_it_was_packed(text: bytes) -> None:
    assert unpack(pa.py_buffer(pack(text)), len(text)) == text


@pytest.mark.parametrize("titles_a_file", [1, 2, 1000])
def test_titles_of_namespace_0_are_found_whatever_the_files(
    tmp_path: Path, titles_a_file: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extract, "_TITLES", titles_a_file)
    folder, _ = run(tmp_path)
    asked = ["One", "Alt", "Three", "Lua", "Talk:One", "Four", "", "one"]
    assert titles_among(folder, asked) == {"One", "Alt", "Three", "Lua"}
    assert titles_among(folder, []) == set()


def test_an_extract_without_pages_in_namespace_0_has_no_titles(tmp_path: Path) -> None:
    folder, _ = run(tmp_path, [page(4, "Talk:One", "t", ns=1)])
    assert titles_among(folder, ["One"]) == set()
    assert files(folder, "articles") == []


def test_the_same_dump_gives_the_same_bytes(tmp_path: Path) -> None:
    made = [run(tmp_path, folder=folder)[0] for folder in ("a", "b")]
    assert contents(made[0]) == contents(made[1])
    assert sorted(contents(made[0])) == ["articles-00000.parquet", "pages-00000.parquet", "titles-00000-000.npy"]
