"""The generated worlds of the demo and of the tests: formats, equal bytes, and what they say is true."""

import bz2
import gzip
import html
import itertools
import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from odd_world import FACT_EVENTS, HOSTILE, PAGE_EVENTS, OddStory, write_odd_world
from oracle import changes

from temporalwiki.builders.dumps import base36_sha1
from temporalwiki.builders.world import Snapshot, Story, World, write_world

from a_folder import contents

Json = dict[str, Any]
DATES = ("20211101", "20211201", "20220101")
WORLD = World(people=120, dates=DATES, wikidata_dates=("20211101", "20211129", "20211227"))


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("dumps")


@pytest.fixture(scope="module")
def snapshots(dumps: Path) -> list[Snapshot]:
    """What is true in each month of an odd world, whose dumps are written."""
    return write_odd_world(dumps, WORLD)


def dump(folder: Path, date: str) -> Path:
    return folder / "enwiki" / date / f"enwiki-{date}-pages-articles-multistream.xml.bz2"


def entities(folder: Path, date: str) -> list[Json]:
    path = folder / "wikidatawiki" / "entities" / date / f"wikidata-{date}-all.json.gz"
    lines = gzip.decompress(path.read_bytes()).decode().split("\n")
    assert lines[0] == "[" and lines[-2:] == ["]", ""]
    assert all(line.endswith(",") for line in lines[1:-3]) and not lines[-3].endswith(",")
    return [json.loads(line.rstrip(",")) for line in lines[1:-2]]


def test_equal_worlds_give_equal_bytes_whatever_the_hash_seed_and_locale(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from temporalwiki.builders.world import World, write_world; "
        "write_world(Path(sys.argv[1]), World(people=40))"
    )
    for name, seed, locale in (("a", "1", "C"), ("b", "2", "C.UTF-8")):
        env = {**os.environ, "PYTHONHASHSEED": seed, "LC_ALL": locale, "PYTHONUTF8": "0"}
        subprocess.run([sys.executable, "-c", code, str(tmp_path / name)], check=True, env=env)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    write_world(tmp_path / "c", World(people=40, seed=1))
    assert not set(contents(tmp_path / "a").values()) & set(contents(tmp_path / "c").values())


@pytest.mark.parametrize("date", DATES)
def test_streams_are_where_the_index_says(dumps: Path, snapshots: list[Snapshot], date: str) -> None:
    path = dump(dumps, date)
    data = path.read_bytes()
    index = bz2.decompress((path.parent / path.name.replace(".xml.bz2", "-index.txt.bz2")).read_bytes()).decode()
    rows = [line.split(":", 2) for line in index.splitlines()]
    assert [int(row[1]) for row in rows] == sorted(snapshots[DATES.index(date)].revisions)
    for offset in dict.fromkeys(int(row[0]) for row in rows):
        one = bz2.BZ2Decompressor().decompress(data[offset:])
        here = [row for row in rows if int(row[0]) == offset]
        assert len(here) <= 100
        root = ET.fromstring(b"<mediawiki>" + one + b"</mediawiki>")
        assert [page.findtext("id") for page in root] == [row[1] for row in here]
        assert [page.findtext("title") for page in root] == [html.unescape(row[2]) for row in here]
    first = bz2.BZ2Decompressor()
    assert first.decompress(data).rstrip().endswith(b"</siteinfo>")
    assert first.unused_data
    assert bz2.decompress(data).endswith(b"</page>\n</mediawiki>\n")


def test_pages_are_as_in_real_dumps(dumps: Path, snapshots: list[Snapshot]) -> None:
    """Builds of the world, in test_build.py, show that titles, texts and facts are those of its snapshots."""
    for page in ET.fromstring(bz2.decompress(dump(dumps, "20211201").read_bytes())).iterfind("{*}page"):
        of_page, of_revision = ([child.tag.partition("}")[2] for child in of] for of in (page, page[-1]))
        assert [name for name in (*of_page, *of_revision) if name not in ("redirect", "parentid")] == [
            "title", "ns", "id", "revision", "id", "timestamp", "contributor", "comment", "model", "format", "text",
            "sha1",
        ]  # fmt: skip
        text = page.find("{*}revision/{*}text")
        assert text is not None
        data = (text.text or "").encode()
        assert (text.get("bytes"), page.findtext("{*}revision/{*}sha1")) == (str(len(data)), base36_sha1(data))
        assert str(page.findtext("{*}revision/{*}timestamp"))[:10].replace("-", "") <= "20211201"
    assert base36_sha1(b"") == "phoiac9h4m842xq45sp7s6u21eteeq1"  # as in the dump of aawiki


def test_wikidata_is_an_array_in_many_pieces(tmp_path: Path) -> None:
    write_world(tmp_path, World(people=30))
    data = (tmp_path / "wikidatawiki/entities/20211101/wikidata-20211101-all.json.gz").read_bytes()
    members, rest = 0, data
    while rest:
        one = zlib.decompressobj(wbits=31)
        one.decompress(rest)
        members, rest = members + 1, one.unused_data
    assert members > 5


@pytest.mark.parametrize("wordings", [1, 2, 3])
def test_an_article_states_a_fact_in_several_wordings_until_it_changes(wordings: int) -> None:
    story = Story(World(people=30, wordings=wordings))
    for month in range(2):
        if month:
            story.next_month()
        counts: Counter[int] = Counter()
        for page in story.pages:
            told = {sentence.plain for of in page.told.values() for sentence in of}
            about = [sentence.plain for block in page.blocks for sentence in block.sentences]
            assert told <= set(about)
            for (_, object), sentences in page.told.items():
                assert all(story.by_id[object].name in sentence.plain for sentence in sentences)
                counts[len(sentences)] += 1
            assert all(text in told for text in about if "The almanac lists" in text)  # none is left of an old fact
        assert max(counts, key=counts.__getitem__) == max(counts) == wordings


def test_every_event_occurs_every_month() -> None:
    story = OddStory(WORLD)
    before = story.snapshot()
    for _ in range(2):
        story.next_month()
        now = story.snapshot()
        found = changes(before, now)
        assert story.fact_events == FACT_EVENTS.keys()
        assert set(story.page_events.values()) == {*PAGE_EVENTS, "from_draft", "undelete"}
        assert {page.kind for page in found.pages.values()} == {"new", "updated", "deleted"}
        assert set(found.changed.values()) == {"new_subject", "new_relation", "new_object"}
        assert set(found.deleted.values()) == {"replaced", "ended", "removed"}
        looks_edited = {story.page_events.get(id) for id, edited in found.same.items() if edited}
        of_layout = {"move_sentence", "split_paragraph", "swap_paragraphs"}
        assert looks_edited >= of_layout | {"markup", "null_edit", "move_page"}
        before = now


def test_hostile_names_and_odd_statements_occur(dumps: Path, snapshots: list[Snapshot]) -> None:
    labels = set(snapshots[0].labels.values())
    assert labels >= {label for group in HOSTILE.values() for label in group}
    every = entities(dumps, "20211101")
    assert any(entity["labels"] == [] for entity in every)
    statements = [s for e in every for group in (e["claims"] or {}).values() for s in group]
    kinds = Counter(s["mainsnak"]["snaktype"] for s in statements)
    assert kinds["somevalue"]
    assert kinds["novalue"]
    assert {s["rank"] for s in statements} == {"preferred", "normal", "deprecated"}
    assert any("references" in s for s in statements)
    assert any(s["mainsnak"]["datatype"] == "wikibase-hologram" for s in statements)


def test_a_new_lastrevid_means_a_change_and_the_other_way_round(dumps: Path, snapshots: list[Snapshot]) -> None:
    for prev, recent in itertools.pairwise(WORLD.wikidata_dates):
        before, after = ({e["id"]: e for e in entities(dumps, date)} for date in (prev, recent))
        both = before.keys() & after.keys()
        changed = {id for id in both if before[id] != after[id]}
        assert changed
        assert changed == {id for id in both if before[id]["lastrevid"] != after[id]["lastrevid"]}
        assert all(before[id]["lastrevid"] < after[id]["lastrevid"] for id in changed)


@pytest.mark.parametrize(
    "wrong",
    [
        {"dates": ("20211101",), "wikidata_dates": ("20211101",)},
        {"wikidata_dates": ("20211101", "20211202")},
        {"dates": ("20211201", "20211101"), "wikidata_dates": ("20211101", "20211101")},
        {"people": 3},
    ],
)
def test_impossible_worlds(wrong: Json) -> None:
    with pytest.raises(ValueError, match="a world needs"):
        World(**wrong)
