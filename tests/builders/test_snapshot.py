"""Intervals, and finding their dumps."""

from pathlib import Path

import pytest

from temporalwiki.base.errors import InputError
from temporalwiki.builders import snapshot


def touch(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"x")
    return root


def test_an_interval_has_the_papers_short_name() -> None:
    interval = snapshot.Interval("enwiki", "20211101", "20211201")
    assert (interval.name, interval.short_name) == ("20211101-20211201", "1112")
    assert snapshot.Interval("enwiki", "20141106", "20160501").short_name == "1105"


@pytest.mark.parametrize(
    ("wiki", "language", "site"),
    [
        ("enwiki", "en", "https://en.wikipedia.org/wiki/"),
        ("simplewiki", "en", "https://simple.wikipedia.org/wiki/"),
        ("kowiki", "ko", "https://ko.wikipedia.org/wiki/"),
        ("nowiki", "nb", "https://no.wikipedia.org/wiki/"),
        ("zh_yuewiki", "yue", "https://zh-yue.wikipedia.org/wiki/"),
        ("roa_tarawiki", "roa-tara", "https://roa-tara.wikipedia.org/wiki/"),
    ],
)
def test_a_wiki_has_a_language_and_a_site(wiki: str, language: str, site: str) -> None:
    interval = snapshot.Interval(wiki, "20211101", "20211201")
    assert (interval.language, interval.site) == (language, site)


@pytest.mark.parametrize(
    ("wiki", "prev", "recent", "said"),
    [
        ("enwiki", "20211201", "20211101", "forward in time"),
        ("enwiki", "20211101", "20211101", "forward in time"),
        ("enwiki", "2021-11-01", "20211201", "YYYYMMDD"),
        ("enwiki", "20211301", "20211401", "YYYYMMDD"),
        ("enwiki", "20210230", "20211201", "YYYYMMDD"),
        ("../etc", "20211101", "20211201", "database name"),
        ("en", "20211101", "20211201", "database name"),
    ],
)
def test_a_wrong_interval_is_refused(wiki: str, prev: str, recent: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        snapshot.Interval(wiki, prev, recent)


E = "enwiki/20211101/enwiki-20211101-"
CURRENT = "other/mediawiki_content_current/enwiki/2021-11-01/xml/bzip2/enwiki-2021-11-01-"
HISTORY = "other/mediawiki_content_history/enwiki/2021-12-01/xml/bzip2/enwiki-2021-12-01-"
FOUND = {
    "whole multistream": ([f"{E}pages-articles-multistream.xml.bz2"], [0], None),
    "multistream before plain": ([f"{E}pages-articles.xml.bz2", f"{E}pages-articles-multistream.xml.bz2"], [1], None),
    "numbered parts by page, not by name": (
        [
            f"{E}pages-articles-multistream10.xml-p301p900.bz2",
            f"{E}pages-articles-multistream1.xml-p1p41.bz2",
            f"{E}pages-articles-multistream2.xml-p42p300.bz2",
        ],
        [1, 2, 0],
        None,
    ),
    "plain parts": ([f"{E}pages-articles1.xml-p1p41.bz2", f"{E}pages-articles2.xml-p42p60.bz2"], [0, 1], None),
    "the content export": ([f"{CURRENT}p10p99.xml.bz2", f"{CURRENT}p100p200.xml.bz2"], [0, 1], None),
    "a history of that date": ([f"{E}pages-meta-history1.xml-p1p9.bz2"], [0], "20211101"),
    "a later history": (["enwiki/20220101/enwiki-20220101-pages-meta-history.xml.bz2"], [0], "20211101"),
    "a later content history": ([f"{HISTORY}p1p9.xml.bz2"], [0], "20211101"),
}


@pytest.mark.parametrize(("names", "order", "cut"), FOUND.values(), ids=FOUND)
def test_wikipedia_dumps_are_found(tmp_path: Path, names: list[str], order: list[int], cut: str | None) -> None:
    touch(tmp_path, *names, f"{E}pages-articles-multistream-index.txt.bz2", f"{E}stub-articles.xml.gz")
    dump = snapshot.wikipedia_dump(tmp_path, "enwiki", "20211101")
    assert [str(file.relative_to(tmp_path)) for file in dump.files] == [names[i] for i in order]
    assert dump.cut == cut


NOT_FOUND = {
    "nothing": ([], "no dumps of enwiki, which lie in folders such as enwiki/20211101; found nothing$"),
    "no folders": (["enwiki-20211101-pages-articles.xml.bz2"], "found enwiki-20211101-pages-articles.xml.bz2$"),
    "no folder of the date": (["enwiki/a.xml.bz2", "wikidatawiki/x"], "enwiki: no dumps of .* found a.xml.bz2$"),
    "another wiki": (["dewiki/20211101/x"], "no dumps of enwiki, .* found dewiki$"),
    "another date": (["enwiki/20211020/x"], "there are 20211020"),
    "only stubs": ([f"{E}stub-articles.xml.gz"], "stub-articles"),
}


@pytest.mark.parametrize(("names", "said"), NOT_FOUND.values(), ids=NOT_FOUND)
def test_a_missing_dump_is_named_with_what_is_there(tmp_path: Path, names: list[str], said: str) -> None:
    touch(tmp_path, *names)
    with pytest.raises(InputError, match=said):
        snapshot.wikipedia_dump(tmp_path, "enwiki", "20211101")


def test_a_missing_last_part_is_noticed(tmp_path: Path) -> None:
    """The parts that are left look complete; the missing pages would count as deleted."""
    parts = "pages-articles-multistream1.xml-p1p41.bz2", "pages-articles-multistream2.xml-p42p300.bz2"
    recent = "enwiki/20211201/enwiki-20211201-"
    touch(tmp_path, *(f"{E}{part}" for part in parts), f"{recent}{parts[0]}")
    prev = snapshot.wikipedia_dump(tmp_path, "enwiki", "20211101")
    with pytest.raises(InputError, match="the last part is missing: the pages end at 41, and in 20211101 at 300"):
        snapshot.check_parts(prev, snapshot.wikipedia_dump(tmp_path, "enwiki", "20211201"))
    touch(tmp_path, f"{recent}pages-articles-multistream-index2.txt-p42p300.bz2")
    with pytest.raises(InputError, match=r"pages 42 to 300 is missing; .*-index2\.txt"):
        snapshot.wikipedia_dump(tmp_path, "enwiki", "20211201")


def test_of_wikidata_the_newest_dump_at_or_before_the_date_is_taken(tmp_path: Path) -> None:
    w = "wikidatawiki/entities/{0}/wikidata-{0}-all.json.{1}"
    dumps = (("20211025", "bz2"), ("20211101", "bz2"), ("20211101", "gz"), ("20211108", "gz"))
    touch(tmp_path, *(w.format(*dump) for dump in dumps))
    assert snapshot.wikidata_dump(tmp_path, "20211101").files[0].name == "wikidata-20211101-all.json.gz"
    assert snapshot.wikidata_dump(tmp_path, "20211107").date == "20211101"
    assert snapshot.wikidata_dump(tmp_path, "20211031").files[0].suffix == ".bz2"
    assert snapshot.wikidata_dump(tmp_path, "20211108", exact=True).date == "20211108"
    with pytest.raises(InputError, match="at or before 20210101"):
        snapshot.wikidata_dump(tmp_path, "20210101")
    with pytest.raises(InputError, match=r"of 20211107.*there are 20211025"):
        snapshot.wikidata_dump(tmp_path, "20211107", exact=True)


def test_the_same_dump_on_both_sides_is_refused(tmp_path: Path) -> None:
    touch(tmp_path, "wikidatawiki/entities/20211101/wikidata-20211101-all.json.gz")
    dump = snapshot.wikidata_dump(tmp_path, "20211101")
    with pytest.raises(InputError, match="both sides are"):
        snapshot.check_pair(dump, snapshot.wikidata_dump(tmp_path, "20211201"), "wikidata")


def test_page_props_is_optional(tmp_path: Path) -> None:
    assert snapshot.page_props_file(tmp_path, "enwiki", "20211101") is None
    touch(tmp_path, f"{E}page_props.sql.gz")
    assert snapshot.page_props_file(tmp_path, "enwiki", "20211101") == tmp_path / f"{E}page_props.sql.gz"
