"""Stage wiki-extract: its tables and the look-up of titles."""

import hashlib
import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from temporalwiki.base.errors import InputError
from temporalwiki.builders.parquet import read_rows
from temporalwiki.builders.snapshot import Dump
from temporalwiki.builders.stages import total
from temporalwiki.builders.wikipedia import extract
from temporalwiki.builders.wikipedia.extract import files, unpack
from temporalwiki.builders.wikipedia.sentence_diff import Articles
from temporalwiki.builders.wikipedia.titles import title_hash, titles_among

from a_folder import contents
from tiny_dumps import FOOTER, header, page, write_bz2

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
    path = tmp_path / f"{folder}.xml"
    path.write_text(header() + "".join(pages) + FOOTER, "utf-8")
    dump = Dump("x", (path,))
    [task] = extract.plan(dump, "enwiki", False)
    (tmp_path / folder).mkdir()
    return tmp_path / folder, extract.run(task, tmp_path / folder)


def test_articles_and_pages_are_written_and_everything_is_counted(tmp_path: Path) -> None:
    folder, report = run(tmp_path)
    articles = list(read_rows(files(folder, "articles")))
    numbers = [(row["page_id"], row["revision_id"], row["parent_id"]) for row in articles]
    assert numbers == [(3, 30, 29), (1, 10, None), (3, 28, None)]
    wikitext = unpack(pa.py_buffer(articles[0]["packed"]), articles[0]["size"])
    assert wikitext.decode() == TEXT
    assert articles[0]["sha1"] == hashlib.sha1(wikitext).digest()
    assert (articles[0]["title"], str(articles[0]["timestamp"])) == ("Three", "2021-10-01 00:00:00+00:00")
    pages = [tuple(row.values()) for row in read_rows(files(folder, "pages"))]
    assert pages == [
        (3, 0, False, 30, True, title_hash("Three")),
        (1, 0, False, 10, True, title_hash("One")),
        (2, 0, True, 20, False, title_hash("Alt")),
        (4, 1, False, 40, False, None),
        (5, 0, False, 50, False, title_hash("Lua")),
        (3, 0, False, 28, True, title_hash("Three")),
    ]
    counts = {"read": 6, "articles": 3, "redirects": 1, "other_namespaces": 1, "dropped": {"not_wikitext": 1}}
    assert report["pages"] == counts


@pytest.mark.fault("large page", "pages of 50 kB that are not in page order", "the same articles as in order")
def test_articles_come_in_page_order_whatever_the_order_of_the_dump(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(extract._WRITING, "size", 100_000)
    rng = random.Random(5)
    pages = [page(n, f"T{n}", rng.randbytes(25_000).hex(), revision_id=n) for n in range(1, 25)]
    read = []
    for folder in ("ordered", "shuffled"):
        articles = Articles(run(tmp_path, pages, folder)[0], 1, 30)
        read.append([(articles[at]["title"], articles[at].wikitext) for at in range(len(articles))])
        rng.shuffle(pages)
    assert read[0] == read[1]
    assert [title for title, _ in read[0]] == [f"T{n}" for n in range(1, 25)]


TEN = [page(n, f"T{n}", "text " * 30, revision_id=n) for n in range(1, 11)]
OF_RANGES = {  # the damage, whether --allow-truncated is given, and the error or the drops of ten pages
    "nothing": (("", ""), False, {}),
    "the first page behind a cut": (("<page>\n    <title>T5<", "<pagf>\n    <title>T5<"), False, "unexpected <pagf>"),
    "the last page's end": (("</page>\n</mediawiki>", "</pag>\n</mediawiki>"), False, "not well formed"),
    "the last page's end, and cuts are allowed": (("</page>\n</med", "</pag>\n</med"), True, "not well formed"),
    "all behind the last page": (("</page>\n</mediawiki>\n", ""), True, {"cut_off": 1}),
    "the same, and cuts are not allowed": (("</page>\n</mediawiki>\n", ""), False, "no </mediawiki> at its end"),
}


@pytest.mark.fault(
    "cut dump", "tags of pages are lost where a dump is cut into ranges", "refused, or all pages are counted"
)
@pytest.mark.parametrize("a_range", [200, 64 << 20])
@pytest.mark.parametrize("case", OF_RANGES)
def test_no_page_is_lost_between_ranges(
    tmp_path: Path, case: str, a_range: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    (old, new), allowed, expected = OF_RANGES[case]
    monkeypatch.setattr(extract, "RANGE", a_range)
    text = header() + "".join(TEN) + FOOTER
    assert text.count(old) == 1 or not old
    damaged = text.replace(old, new) if old else text
    streams = [*(damaged[at : at + 550] for at in range(0, len(damaged), 550))]
    dump = Dump("x", (write_bz2(tmp_path / "x.xml.bz2", *streams),))
    tasks = extract.plan(dump, "enwiki", allowed)
    assert (len(tasks) > 3) == (a_range == 200)

    def counted() -> Counter[str]:
        reports = [extract.run(task, tmp_path) for task in tasks]
        extract.check(dump, reports, allowed)
        return Counter(total(reports, "pages"))

    if isinstance(expected, str):
        with pytest.raises(InputError, match=expected):
            counted()
    else:
        found = counted()
        assert (found["read"], found["articles"], found["dropped"]) == (10, 10 - sum(expected.values()), expected)


def test_titles_of_namespace_0_are_found(tmp_path: Path) -> None:
    pages = files(run(tmp_path)[0], "pages")
    asked = ["One", "Alt", "Three", "Lua", "Talk:One", "Four", "", "one"]
    assert titles_among(pages, asked) == {"One", "Alt", "Three", "Lua"}
    assert titles_among(pages, []) == set()


def test_the_same_dump_gives_the_same_bytes(tmp_path: Path) -> None:
    made = [run(tmp_path, folder=folder)[0] for folder in ("a", "b")]
    assert contents(made[0]) == contents(made[1])
    assert contents(made[0]).keys() == {"articles-00000.parquet", "pages-00000.parquet"}
