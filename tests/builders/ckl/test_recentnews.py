"""RecentNews: filters, counts of all pages, and the quality on real pages."""

import datetime
import gzip
import json
import os
import random
import re
import subprocess
import sys
from difflib import SequenceMatcher
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from temporalwiki.base.errors import UsageError
from temporalwiki.builders.ckl import config, news_pages, recentnews
from temporalwiki.builders.ckl.html_page import NewsPage
from temporalwiki.builders.ckl.recentnews import NewsOptions, find_news
from temporalwiki.builders.ckl.schemas import SCHEMAS
from temporalwiki.builders.parquet import read_rows

from tiny_ckl import gold_articles

DAY = datetime.datetime(2020, 10, 20, tzinfo=datetime.UTC)
WORDS = [f"word{number}" for number in range(500)]


def article(number: int, text: str | None = None, **more: Any) -> dict[str, Any]:
    draw = random.Random(number)
    return {
        "id": "",
        "url": f"http://n.example/{number}",
        "title": f"Title {number}",
        "text": " ".join(draw.choices(WORDS, k=60)) if text is None else text,
        "published": DAY + datetime.timedelta(hours=6 * number),
    } | more


def table(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, SCHEMAS["news"]), path)
    return path


def made(paths: list[Path], work: Path, **options: Any) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of all configs; check that each config accounts for its rows."""
    found = {}
    for one in recentnews.recentnews(paths, NewsOptions(**options), work):
        ((split, rows),) = one.splits.items()
        assert split == "train"
        found[one.name] = [dict(row) for row in rows]
        assert one.counts.kept == len(found[one.name])
        assert one.counts.read == one.counts.kept + sum(one.counts.dropped.values())
        assert all(set(row) == set(SCHEMAS[one.kind].names) for row in found[one.name])
    assert list(found) == ["recentnews", "recentnews-small", "recentnews-small-p1", "recentnews-small-p2"]
    return found


def urls(rows: list[dict[str, Any]]) -> list[str]:
    return [row["url"].removeprefix("http://n.example/") for row in rows]


def test_articles_are_in_order_of_time_and_their_parts_are_drawn_by_address(tmp_path: Path) -> None:
    rows = [article(number) for number in range(100)]
    random.Random(1).shuffle(rows)
    files = [table(tmp_path / "news" / f"{part}.parquet", rows[part::3]) for part in range(3)]
    configs = made([tmp_path / "news"], tmp_path / "work", small_share=0.3)
    assert urls(configs["recentnews"]) == list(map(str, range(100)))
    assert len({row["id"] for row in configs["recentnews"]}) == 100
    assert configs["recentnews"][0] == article(0) | {"id": configs["recentnews"][0]["id"]}
    small = urls(configs["recentnews-small"])
    assert 20 <= len(small) <= 40
    # midnight of the first day is in phase two: 12 days after the first article
    assert urls(configs["recentnews-small-p1"]) == [url for url in small if int(url) < 48]
    assert urls(configs["recentnews-small-p2"]) == [url for url in small if int(url) >= 48]
    # the draw depends neither on other files nor on their order
    assert made(files[::-1], tmp_path / "work", small_share=0.3) == configs
    fewer = made(files[:1], tmp_path / "work", small_share=0.3)
    assert urls(fewer["recentnews-small"]) == [url for url in small if url in urls(fewer["recentnews"])]
    assert urls(made(files, tmp_path / "work", small_share=0.3, seed=1)["recentnews-small"]) != small
    assert set(urls(made(files, tmp_path / "work", small_share=0.1)["recentnews-small"])) < set(small)
    assert urls(made(files, tmp_path / "work", small_share=1)["recentnews-small"]) == list(map(str, range(100)))


def test_phases_meet_at_midnight(tmp_path: Path) -> None:
    midnight = datetime.datetime(2020, 11, 1, tzinfo=datetime.UTC)
    second = datetime.timedelta(seconds=1)
    rows = [article(number, published=midnight + second * (number - 1)) for number in range(3)]
    configs = made([table(tmp_path / "a.parquet", rows)], tmp_path / "work", small_share=1)
    assert urls(configs["recentnews-small-p1"]) == ["0"]
    assert urls(configs["recentnews-small-p2"]) == ["1", "2"]


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Five articles, two of them in other languages than English."""
    found = []
    for number, language in enumerate(("en", "de", "", None, "en")):
        row = article(number)
        found.append(NewsPage(row["url"], row["title"], row["text"], int(row["published"].timestamp()), language))
    monkeypatch.setattr(news_pages, "_table", lambda _file: iter(["not HTML", *found]))
    return table(tmp_path / "a.parquet", [])


@pytest.mark.parametrize(
    ("options", "kept", "dropped"),
    [
        ({}, "034", {"other language": 1, "unknown language": 1}),
        ({"language": "de"}, "13", {"other language": 2, "unknown language": 1}),
        ({"since": "2020-10-21"}, "4", {"other language": 1, "unknown language": 1, "other date": 2}),
        ({"until": "2020-10-20"}, "03", {"other language": 1, "unknown language": 1, "other date": 1}),
        ({"since": "2020-10-20", "until": "2020-10-21"}, "034", {"other language": 1, "unknown language": 1}),
        ({"least_words": 61}, "", {"other language": 1, "unknown language": 1, "fewer than 61 words": 3}),
        ({"least_words": 60}, "034", {"other language": 1, "unknown language": 1}),
    ],
)
def test_filters(tmp_path: Path, pages: Path, options: dict[str, Any], kept: str, dropped: dict[str, int]) -> None:
    (whole, *_) = recentnews.recentnews([pages], NewsOptions(**options), tmp_path / "work")
    assert urls([dict(row) for row in whole.splits["train"]]) == list(kept)
    assert whole.counts.dropped == dropped | {"not HTML": 1}
    assert whole.counts.read == 6


def test_of_duplicates_the_first_is_kept(tmp_path: Path) -> None:
    text = article(0)["text"]
    rows = [
        article(1, text),
        article(2, text.upper()),
        article(3, text + " more"),
        article(4, url="http://n.example/1"),
        article(5),
        article(0, "word " * 50, published=DAY + datetime.timedelta(days=9)),
        article(6, text, published=article(1)["published"]),  # at the same time: by address
        article(7, "few words"),
        article(8, "few words"),
    ]
    file = table(tmp_path / "a.parquet", rows)
    (whole, *_) = recentnews.recentnews([file], NewsOptions(), tmp_path / "work")
    assert urls([dict(row) for row in whole.splits["train"]]) == ["1", "5", "0"]
    assert whole.counts.dropped == {
        "fewer than 50 words": 2, "near duplicate": 1, "same address": 1, "same text": 2,
    }  # fmt: skip


def test_they_are_written_and_read_again(tmp_path: Path) -> None:
    rows = [
        article(number, f"</script> \"'=cmd() | --- [X] \U0001f600 {article(number)['text']}") for number in range(30)
    ]
    rows[3]["title"] = "../a: {b} # c\tTitle"
    rows[4]["url"] += "?'\"&<b>"
    file = table(tmp_path / "a.parquet", rows)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "x.txt").touch()
    for one in recentnews.recentnews([file, tmp_path / "notes"], NewsOptions(small_share=0.5), tmp_path / "work"):
        manifest = config.write(one, tmp_path / "ckl")
        assert "1 files of other kinds" in manifest.warnings[0]
        assert str(tmp_path) not in str(manifest)
    folder = tmp_path / "ckl" / "data" / "recentnews"
    written = [row | {"id": ""} for row in read_rows(sorted(folder.glob("*.parquet")))]
    assert written == [row | {"title": " ".join(row["title"].split())} for row in rows]
    again = [dict(row) for row in find_news([folder], NewsOptions(), tmp_path / "work").rows()]
    assert [row | {"id": ""} for row in again] == written


@pytest.mark.slow
def test_the_bytes_depend_on_the_pages_alone(tmp_path: Path) -> None:
    rows = [
        article(number, spans) for number, spans in enumerate(["In Oslo it rained on 3 May 2020. " * 20, None, None])
    ]
    table(tmp_path / "news" / "a.parquet", rows[:2])
    table(tmp_path / "news" / "b.parquet", rows[2:])
    script = (
        "import sys, json; from pathlib import Path\n"
        "from temporalwiki.builders.ckl.recentnews import NewsOptions, recentnews\n"
        "if __name__ == '__main__':\n"
        "    configs = recentnews([Path(path) for path in sys.argv[3:]], NewsOptions(small_share=0.6), "
        "Path(sys.argv[1]), int(sys.argv[2]))\n"
        "    print(json.dumps([[dict(row) for row in one.splits['train']] for one in configs], default=str))\n"
    )
    (tmp_path / "script.py").write_text(script)
    files = [str(tmp_path / "news" / name) for name in ("a.parquet", "b.parquet")]
    command = [sys.executable, str(tmp_path / "script.py"), str(tmp_path / "other work"), "2", *files[::-1]]
    environment = os.environ | {"PYTHONHASHSEED": "7", "LC_ALL": "C", "TZ": "Asia/Kolkata"}
    printed = subprocess.run(command, env=environment, capture_output=True, check=True, text=True).stdout
    configs = made([tmp_path / "news"], tmp_path / "work", small_share=0.6)
    assert printed == json.dumps(list(configs.values()), default=str) + "\n"


def test_what_was_kept_is_not_made_again_and_half_of_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = table(tmp_path / "a.parquet", [article(number) for number in range(10)])
    first = made([file], tmp_path / "work")
    with monkeypatch.context() as patch:
        patch.setattr(recentnews, "_filter", None)
        assert made([file], tmp_path / "work", small_share=0.1, seed=0) == first
    (report,) = (tmp_path / "work").glob("news-*/news.json")
    report.parent.rename(report.parent.with_name(f".{report.parent.name}.1.part"))  # as a kill leaves it
    assert made([file], tmp_path / "work") == first


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"since": "2020-5-1"}, "since '2020-5-1': not a day such as 2020-11-01"),
        ({"until": "yesterday"}, "until 'yesterday': not a day"),
        ({"phase_two": ""}, "phase two '': not a day"),
        ({"since": "2020-06-01", "until": "2020-05-01"}, "the first day is after the last"),
        ({"small_share": 0}, "above 0 and at most 1, not 0"),
        ({"language": "English"}, "'English' is not a language; give two letters, such as en"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        NewsOptions(**options)


# Real pages


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def overlap(found: str, gold: str) -> tuple[float, float]:
    """Return precision and recall of words in common runs."""
    one, other = words(found), words(gold)
    same = sum(block.size for block in SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks())
    return same / len(one), same / len(other)


def test_real_pages_beside_their_gold(tmp_path: Path, shared_data: Path) -> None:
    """Eight pages of five sites, and a mixed crawl without English news; -s prints the table."""
    pages = shared_data / "news" / "pages"
    files = sorted(pages.glob("*.html.gz"))
    crawl = shared_data / "news" / "commoncrawl-2020-34-sample.warc.gz"
    whole, *_ = recentnews.recentnews([*files, crawl], NewsOptions(), tmp_path / "work")
    rows = {row["url"]: row for row in whole.splits["train"]}
    assert len(rows) == len(files) == 8
    assert whole.counts.read == 8 + 16
    right_titles, right_dates, scores = 0, 0, []
    for file in files:
        source = gzip.decompress(file.read_bytes()).decode("utf-8", "replace")
        row = next(row for url, row in rows.items() if f'"{url}"' in source)
        golds = [gold for gold in gold_articles(pages) if gold["site"] == file.name.partition("_")[0]]
        scored = [(overlap(row["text"], gold["text"]), gold["title"], gold["published"]) for gold in golds]
        (precision, recall), gold_title, published = max(scored, key=itemgetter(0))
        scores.append((precision, recall))
        title, date = words(row["title"]) == words(gold_title), row["published"] == published.replace(microsecond=0)
        right_titles, right_dates = right_titles + title, right_dates + date
        print(f"{file.name:36} title {title!s:5} date {date!s:5} body precision {precision:.3f} recall {recall:.3f}")
    assert right_titles >= 7  # one of APNews's pages shows another headline than its metadata
    assert right_dates == 8
    assert min(precision for precision, _ in scores) > 0.9
    f1 = [2 * precision * recall / (precision + recall) for precision, recall in scores]
    assert min(f1) > 0.85  # the Los Angeles Times lacks a quarter
    assert sum(f1) / len(f1) > 0.96


def test_real_records(tmp_path: Path, shared_data: Path) -> None:
    file = shared_data / "news" / "cc_news_newyorker_sample.json"
    (row,) = find_news([file], NewsOptions(), tmp_path / "work").rows()
    assert row["title"] == json.loads(file.read_text("utf-8"))["title"]
    assert row["published"].isoformat() == "2017-08-14T09:00:00+00:00"
    assert len(row["text"].split()) > 900
