"""The generated world: formats, determinism, and its truth against slow and obvious recomputation."""

from __future__ import annotations

import bz2
import gzip
import html
import itertools
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from temporalwiki.builders.world import ArticleTruth, Fact, FillerTruth, Truth, World, write_world
from temporalwiki.builders.world.dumps import base36_sha1, filler_xml
from temporalwiki.builders.world.filler import FIRST_ITEM, FIRST_PAGE, Filler
from temporalwiki.builders.world.relations import HOSTILE, RELATIONS

from a_folder import contents

Json = dict[str, Any]
DATES = ("20211101", "20211201", "20220101")
WIKIDATA_DATES = ("20211101", "20211129", "20211227")


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("dumps")


@pytest.fixture(scope="module")
def truth(dumps: Path) -> Truth:
    return write_world(dumps, World(dates=DATES, wikidata_dates=WIKIDATA_DATES))


def dump(folder: Path, date: str) -> Path:
    return folder / "enwiki" / date / f"enwiki-{date}-pages-articles-multistream.xml.bz2"


def entities(folder: Path, date: str) -> list[Json]:
    path = folder / "wikidatawiki" / "entities" / date / f"wikidata-{date}-all.json.gz"
    lines = gzip.decompress(path.read_bytes()).decode().split("\n")
    assert lines[0] == "[" and lines[-2:] == ["]", ""]
    assert all(line.endswith(",") for line in lines[1:-3]) and not lines[-3].endswith(",")
    return [json.loads(line.rstrip(",")) for line in lines[1:-2]]


def pages(path: Path) -> dict[int, Json]:
    """Every page of a dump by id, in the dump's order."""
    root = ET.fromstring(bz2.decompress(path.read_bytes()))
    namespace = root.tag.removesuffix("mediawiki")
    found = {}
    for page in root.iter(f"{namespace}page"):
        flat = {child.tag.removeprefix(namespace): child for child in page}
        revision = {child.tag.removeprefix(namespace): child for child in flat["revision"]}
        found[int(flat["id"].text or 0)] = {
            "title": flat["title"].text,
            "ns": int(flat["ns"].text or 0),
            "redirect": flat["redirect"].get("title") if "redirect" in flat else None,
            "revision": int(revision["id"].text or 0),
            "parent": int(revision["parentid"].text or 0) if "parentid" in revision else None,
            "timestamp": revision["timestamp"].text,
            "sha1": revision["sha1"].text,
            "text": revision["text"].text or "",
            "bytes": int(revision["text"].get("bytes") or -1),
            "order": [*flat, *revision],
        }
    return found


# ---- bytes


def test_equal_worlds_give_equal_bytes_whatever_the_hash_seed_and_locale(tmp_path: Path) -> None:
    world = "World(people=40, filler_pages=250, filler_items=30)"
    code = (
        "import sys; from pathlib import Path; from temporalwiki.builders.world import World, write_world; "
        f"write_world(Path(sys.argv[1]), {world})"
    )
    for name, seed, locale in (("a", "1", "C"), ("b", "2", "C.UTF-8")):
        env = {**os.environ, "PYTHONHASHSEED": seed, "LC_ALL": locale, "PYTHONUTF8": "0"}
        subprocess.run([sys.executable, "-c", code, str(tmp_path / name)], check=True, env=env)
    write_world(tmp_path / "c", World(people=40, filler_pages=250, filler_items=30))
    assert contents(tmp_path / "a") == contents(tmp_path / "b") == contents(tmp_path / "c")
    write_world(tmp_path / "d", World(people=40, filler_pages=250, filler_items=30, seed=1))
    assert not set(contents(tmp_path / "a").values()) & set(contents(tmp_path / "d").values())


@pytest.mark.parametrize("date", DATES)
def test_streams_are_where_the_index_says(dumps: Path, truth: Truth, date: str) -> None:
    path = dump(dumps, date)
    data = path.read_bytes()
    index = bz2.decompress((path.parent / path.name.replace(".xml.bz2", "-index.txt.bz2")).read_bytes()).decode()
    rows = [line.split(":", 2) for line in index.splitlines()]
    assert len(rows) == truth.snapshot(date).pages
    for offset in dict.fromkeys(int(row[0]) for row in rows):
        one = bz2.BZ2Decompressor().decompress(data[offset:])
        ids = [row[1] for row in rows if int(row[0]) == offset]
        titles = [row[2] for row in rows if int(row[0]) == offset]
        assert len(ids) <= 100
        root = ET.fromstring(b"<mediawiki>" + one + b"</mediawiki>")
        assert [page.findtext("id") for page in root] == ids
        assert [page.findtext("title") for page in root] == [html.unescape(title) for title in titles]
    first = bz2.BZ2Decompressor()
    assert first.decompress(data).rstrip().endswith(b"</siteinfo>") and first.unused_data
    assert bz2.decompress(data).endswith(b"</page>\n</mediawiki>\n")


def test_gzip_has_many_members_that_hold_whole_lines(dumps: Path, truth: Truth) -> None:
    data = (dumps / "wikidatawiki/entities/20211129/wikidata-20211129-all.json.gz").read_bytes()
    members = 0
    while data:
        one = zlib.decompressobj(wbits=31)
        assert one.decompress(data).endswith(b"\n")
        members, data = members + 1, one.unused_data
    assert members > 10


@pytest.mark.parametrize("schema", ["0.10", "0.11"])
def test_pages_are_as_in_real_dumps(tmp_path: Path, schema: Any) -> None:
    write_world(tmp_path, World(people=30, schema=schema))
    for page in pages(dump(tmp_path, "20211201")).values():
        assert page["sha1"] == base36_sha1(page["text"].encode())
        assert page["bytes"] == len(page["text"].encode())
        optional = {"redirect", "parentid", "minor", "comment"}
        assert [name for name in page["order"] if name not in optional] == [
            "title", "ns", "id", "revision", "id", "timestamp", "contributor",
            *(["origin"] if schema == "0.11" else []), "model", "format", "text", "sha1",
        ]  # fmt: skip
    assert base36_sha1(b"") == "phoiac9h4m842xq45sp7s6u21eteeq1"  # as in the dump of aawiki


def test_numbered_parts_hold_the_same_pages(tmp_path: Path) -> None:
    whole, split = World(people=30, filler_pages=200), World(people=30, filler_pages=200, parts=3)
    write_world(tmp_path / "whole", whole)
    write_world(tmp_path / "split", split)
    parts = sorted((tmp_path / "split/enwiki/20211201").glob("*.xml-p*.bz2"))
    assert len(parts) == 3
    found: dict[int, Json] = {}
    for part in parts:
        first, last = part.name.removesuffix(".bz2").split("xml-p")[1].split("p")
        here = pages(part)
        assert all(int(first) <= id <= int(last) for id in here)
        found |= here
    assert found == pages(dump(tmp_path / "whole", "20211201"))
    assert list(found) == sorted(found)


def test_wikidata_as_bz2(tmp_path: Path) -> None:
    write_world(tmp_path, World(people=30, wikidata_compression="bz2"))
    data = (tmp_path / "wikidatawiki/entities/20211101/wikidata-20211101-all.json.bz2").read_bytes()
    assert len(json.loads(bz2.decompress(data))) > 100


def test_page_props_map_articles_to_items(tmp_path: Path) -> None:
    snapshot = write_world(tmp_path, World(people=30, page_props=True)).snapshots[1]
    path = tmp_path / "enwiki/20211201/enwiki-20211201-page_props.sql.gz"
    text = gzip.decompress(path.read_bytes()).decode()
    rows = re.findall(r"\((\d+),'(\w[^']*)','((?:[^'\\\\]|\\\\.)*)',NULL\)", text)
    items = {int(page): value for page, name, value in rows if name == "wikibase_item"}
    assert items == {id: article.item for id, article in snapshot.articles.items() if article.item}


# ---- the truth, recomputed slowly


def facts_of(entity: Json) -> set[Fact]:
    """Best-rank, item-valued main snaks, by the obvious code."""
    found = set()
    for relation, statements in (entity["claims"] or {}).items():
        preferred = [s for s in statements if s["rank"] == "preferred"]
        for statement in preferred or [s for s in statements if s["rank"] == "normal"]:
            snak = statement["mainsnak"]
            if snak["snaktype"] != "value" or snak["datatype"] != "wikibase-item":
                continue
            found.add(Fact(entity["id"], relation, snak["datavalue"]["value"]["id"]))
    return found


def ends_of(entity: Json) -> dict[Fact, str]:
    ends = {}
    for relation, statements in (entity["claims"] or {}).items():
        for statement in statements:
            value = statement["mainsnak"].get("datavalue", {}).get("value")
            for end in statement.get("qualifiers", {}).get("P582", []):
                ends[Fact(entity["id"], relation, value["id"])] = end["datavalue"]["value"]["time"][1:11]
    return ends


@pytest.mark.parametrize("date", DATES)
def test_facts_and_labels_are_those_of_the_json(dumps: Path, truth: Truth, date: str) -> None:
    snapshot = truth.snapshot(date)
    every = entities(dumps, snapshot.wikidata_date)
    items = [entity for entity in every if entity["type"] == "item"]
    facts = {fact for item in items for fact in facts_of(item)}
    assert facts == snapshot.facts
    ends = {fact: end for item in items for fact, end in ends_of(item).items() if fact in facts}
    assert ends == snapshot.ended
    labels = {
        entity["id"]: next(
            entity["labels"][code]["value"] for code in ("en", "mul", "en-gb") if code in entity["labels"]
        )
        for entity in every
        if entity["labels"]
    }
    assert labels == snapshot.labels
    links = {e["id"]: e["sitelinks"]["enwiki"]["title"] for e in items if "enwiki" in (e["sitelinks"] or {})}
    assert links == {item: title for item, title in snapshot.items.items() if item in {e["id"] for e in items}}
    ids = [entity["id"] for entity in every]
    assert len(ids) == len(set(ids))


def test_fact_changes_are_those_between_the_snapshots(truth: Truth) -> None:
    for interval in truth.intervals:
        prev, recent = truth.snapshot(interval.prev), truth.snapshot(interval.recent)
        subjects = {fact.subject for fact in prev.facts}
        slots: dict[tuple[str, str], set[str]] = {}
        for fact in prev.facts:
            slots.setdefault(fact[:2], set()).add(fact.object)
        today = f"{recent.wikidata_date[:4]}-{recent.wikidata_date[4:6]}-{recent.wikidata_date[6:]}"
        changed = {
            fact: "new_subject" if fact.subject not in subjects
            else "new_relation" if fact[:2] not in slots
            else "new_object"
            for fact in recent.facts - prev.facts
        }  # fmt: skip
        assert changed == interval.changed
        assert interval.previous_objects == {fact: tuple(sorted(slots.get(fact[:2], ()))) for fact in changed}
        ended = {
            fact
            for fact, end in recent.ended.items()
            if fact in prev.facts and fact not in prev.ended and end <= today
        }
        gone = (prev.facts - recent.facts) | ended
        new_here = {fact[:2] for fact in changed if fact not in recent.ended}
        assert interval.deleted == {
            fact: "replaced" if fact[:2] in new_here else "ended" if fact in ended else "removed" for fact in gone
        }
        assert interval.unchanged == (prev.facts & recent.facts) - gone


def flat(paragraphs: list[list[str]]) -> list[str]:
    return [sentence for paragraph in paragraphs for sentence in paragraph]


def gone_from(one: ArticleTruth, other: ArticleTruth | None) -> list[list[str]]:
    """Algorithm 1, as the design words it."""
    known = set(flat(other.paragraphs)) if other is not None else set()
    kept = [[sentence for sentence in paragraph if sentence not in known] for paragraph in one.paragraphs]
    return [paragraph for paragraph in kept if paragraph]


def test_page_changes_are_those_between_the_snapshots(truth: Truth) -> None:
    for interval in truth.intervals:
        prev, recent = truth.snapshot(interval.prev), truth.snapshot(interval.recent)
        seen = set()
        for id, article in recent.articles.items():
            before = prev.articles.get(id)
            new = gone_from(article, before)
            old = gone_from(before, article) if before is not None else []
            if not new and not old:
                assert before is not None and id in interval.same and id not in interval.pages
                assert (interval.same[id] == "same revision") == (before.revision_id == article.revision_id)
                continue
            diff = interval.pages[id]
            assert (diff.paragraphs, diff.deleted) == (new, old), diff.edits
            assert diff.kind == ("new" if id > max(prev.articles) else "updated")
            assert diff.revision_id == article.revision_id and diff.title == article.title
            seen.add(id)
        for id in prev.articles.keys() - recent.articles.keys():
            diff = interval.pages[id]
            assert (diff.kind, diff.revision_id) == ("deleted", None)
            assert diff.deleted == prev.articles[id].paragraphs and not diff.paragraphs
            seen.add(id)
        assert seen == interval.pages.keys()


def read(text: str) -> list[str]:
    """Paragraphs as a reader sees them: enough for the markup that the generated world uses."""
    text = re.sub(r"^{{Infobox.*?^}}|^{\|.*?^\|}|<gallery>.*?</gallery>", "\n\n", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"<!--.*?-->|<ref[^>]*/>|<ref.*?</ref>", "", text, flags=re.DOTALL)
    text = re.sub(r"{{nowrap\|(.*?)}}", r"\1", re.sub(r"{{convert\|(.*?)\|km\|.*?}}", r"\1 kilometres", text))
    text = re.sub(r"{{[^{}]*({{[^{}]*}}[^{}]*)*}}", "", text)
    text = re.sub(r"\[\[(?!File:|Category:)([^\[\]|]*\|)?([^\[\]|]*)\]\]", r"\2", text)
    text = re.sub(r"\[\[.*?\]\]|'{2,}|^==.*==$", "", text, flags=re.MULTILINE)
    blocks = [
        " ".join(re.sub(r"^\* ", "", html.unescape(b.strip()), flags=re.MULTILINE).split()) for b in text.split("\n\n")
    ]
    return [block for block in blocks if block]


def test_articles_are_those_of_the_xml(dumps: Path, truth: Truth) -> None:
    for snapshot in truth.snapshots:
        found = pages(dump(dumps, snapshot.date))
        assert list(found) == sorted(found) and len(found) == snapshot.pages
        articles = {id: page for id, page in found.items() if page["ns"] == 0 and page["redirect"] is None}
        assert articles.keys() == snapshot.articles.keys()
        assert {id: page["redirect"] for id, page in found.items() if page["redirect"]} == snapshot.redirects
        assert len({page["title"] for page in found.values()}) == len(found)
        for id, page in articles.items():
            assert (page["title"], page["revision"]) == (
                snapshot.articles[id].title,
                snapshot.articles[id].revision_id,
            )
            assert page["timestamp"][:10].replace("-", "") <= snapshot.date
            assert read(page["text"]) == [" ".join(p) for p in snapshot.articles[id].paragraphs], page["title"]


def test_sentences_are_unique_within_an_article(truth: Truth) -> None:
    for snapshot in truth.snapshots:
        for article in snapshot.articles.values():
            sentences = flat(article.paragraphs)
            assert len(sentences) == len(set(sentences))
            assert all(sentence == " ".join(sentence.split()) for sentence in sentences)


def test_previous_revision_ids(dumps: Path, truth: Truth) -> None:
    for interval in truth.intervals:
        prev, recent = pages(dump(dumps, interval.prev)), pages(dump(dumps, interval.recent))
        for id, diff in interval.pages.items():
            assert diff.previous_revision_id == (prev[id]["revision"] if id in prev else None)
            if "undelete" in diff.edits:
                assert id not in prev and id < max(prev) and recent[id]["parent"] and diff.kind == "updated"
            if "from_redirect" in diff.edits:
                assert prev[id]["redirect"] and diff.kind == "updated" and not diff.deleted
            if diff.kind == "new":
                assert id > max(prev)


def test_told_facts_name_their_object(truth: Truth) -> None:
    for interval in truth.intervals:
        recent = truth.snapshot(interval.recent)
        ids = {item: id for id, article in recent.articles.items() if (item := article.item) is not None}
        assert interval.stated.keys() <= interval.changed.keys()
        for fact, sentence in interval.stated.items():
            assert recent.labels[fact.object] in sentence
            assert sentence in flat(interval.pages[ids[fact.subject]].paragraphs)
        for fact, sentence in recent.told.items():
            assert fact in recent.facts and recent.labels[fact.object] in sentence
            assert sentence in flat(recent.articles[ids[fact.subject]].paragraphs)


# ---- coverage

FACT_EVENTS = [
    "add",
    "change_qualifier",
    "change_reference",
    "choose_one",
    "correct_end",
    "delete_item",
    "deprecate",
    "end",
    "end_in_future",
    "flip_rank",
    "former_resurfaces",
    "level_ranks",
    "make_unknown",
    "new_relation",
    "new_subject",
    "remove",
    "rename",
    "replace",
    "replace_demoted",
    "replace_kept",
    "told_elsewhere",
    "told_known",
    "touch_item",
    "untold",
]
PAGE_EVENTS = [
    "append_sentence",
    "delete_page",
    "delete_paragraph",
    "delete_sentence",
    "edit_first",
    "edit_last",
    "edit_list",
    "from_draft",
    "from_redirect",
    "infobox",
    "insert_sentence",
    "left_behind",
    "markup",
    "move_page",
    "move_sentence",
    "new_page",
    "new_paragraph",
    "null_edit",
    "other_namespace",
    "revert",
    "rewrite_all",
    "rewrite_and_move",
    "rewrite_sentence",
    "split_paragraph",
    "swap_paragraphs",
    "to_redirect",
    "undelete",
    "whitespace",
]


def test_every_event_occurs_every_month(truth: Truth) -> None:
    for interval in truth.intervals:
        assert sorted(interval.fact_events) == FACT_EVENTS
        later = set() if interval is truth.intervals[0] else {"restore_sentence"}  # gone in an earlier month
        assert set(interval.page_events) == {*PAGE_EVENTS, *later}
        assert set(interval.changed.values()) == {"new_subject", "new_relation", "new_object"}
        assert set(interval.deleted.values()) == {"replaced", "ended", "removed"}
        reasons = {"same revision", "revert", "null_edit", "markup", "whitespace", "infobox", "move_sentence"}
        assert set(interval.same.values()) >= reasons | {"swap_paragraphs", "split_paragraph", "move_page"}


def test_hostile_names_and_odd_statements_occur(dumps: Path, truth: Truth) -> None:
    labels = set(truth.snapshots[0].labels.values())
    assert labels >= {label for group in HOSTILE.values() for label in group}
    every = entities(dumps, "20211101")
    assert any(entity[key] == [] for entity in every for key in ("labels", "aliases"))
    statements = [s for e in every for group in (e["claims"] or {}).values() for s in group]
    kinds = Counter(s["mainsnak"]["snaktype"] for s in statements)
    assert kinds["somevalue"] and kinds["novalue"]
    assert {s["rank"] for s in statements} == {"preferred", "normal", "deprecated"}
    assert any("references" in s for s in statements) and any("P642" in s.get("qualifiers", {}) for s in statements)
    assert any(s["mainsnak"]["datatype"] == "wikibase-hologram" for s in statements)


def filtered(facts: list[Fact], labels: dict[str, str]) -> Counter[str]:
    """Filters and caps of DESIGN 5.6, dropping the last facts of what is over its cap: counts by rule, and kept."""
    counts: Counter[str] = Counter()
    kept = []
    for fact in facts:
        subject, object = labels[fact.subject].lower(), labels[fact.object].lower()
        rule = "substring" if subject in object or object in subject else "long" if len(object.split()) > 5 else ""
        if rule:
            counts[rule] += 1
        else:
            kept.append(fact)
    size = -1
    while size != len(kept):
        size = len(kept)
        for key, share in (("subject", 0.01), ("relation", 0.05), ("object", 0.05)):
            seen: Counter[str] = Counter()
            left = []
            for fact in kept:
                seen[getattr(fact, key)] += 1
                if seen[getattr(fact, key)] <= max(1, int(share * size)):
                    left.append(fact)
            counts[key] += len(kept) - len(left)
            kept = left
    return counts + Counter(kept=len(kept))


def test_a_hundred_facts_survive_filters_and_caps_and_each_rule_drops_some(truth: Truth) -> None:
    assert len(RELATIONS) >= 35
    for interval in truth.intervals:
        labels = truth.snapshot(interval.recent).labels
        told = truth.snapshot(interval.recent).told.keys()
        changed = filtered(sorted(interval.stated), labels)
        unchanged = filtered(sorted(interval.unchanged & told), labels)
        for counts in (changed, unchanged):
            assert counts["kept"] >= 100 and counts["substring"] and counts["long"] and counts["relation"]
        assert changed["subject"] and unchanged["object"]
    assert filtered(sorted(truth.intervals[0].stated), truth.snapshots[1].labels)["object"]


# ---- filler


def test_filler_changes_what_it_says(tmp_path: Path) -> None:
    world = World(people=30, filler_pages=400, filler_items=300, compression_level=1)
    filler = write_world(tmp_path, world).filler
    assert isinstance(filler, FillerTruth)
    prev, recent = (pages(dump(tmp_path, date)) for date in world.dates)
    changed = [id for id in range(FIRST_PAGE, FIRST_PAGE + 400) if prev[id] != recent[id]]
    assert changed == filler.changed_pages(1) and 10 <= len(changed) <= 30
    assert all(prev[id]["revision"] != recent[id]["revision"] for id in changed)
    for id in changed:
        old, new = filler.sentence(id, 0), filler.sentence(id, 1)
        lines = [Counter(line for line in page["text"].split("\n") if line) for page in (prev[id], recent[id])]
        gone, come = lines[0] - lines[1], lines[1] - lines[0]  # infobox, opening, and perhaps a paragraph more
        assert len(gone) == 2 and len(come) in (2, 3) and old != new
        assert sum(old in line for line in gone) == sum(new in line for line in come) == 1
        assert sum(line.startswith("| population") for line in gone) == 1
    before, after = (
        {e["id"]: e for e in entities(tmp_path, date)} for date in world.wikidata_dates
    )  # fmt: skip
    numbers = range(FIRST_ITEM, FIRST_ITEM + 300)
    assert [n for n in numbers if before[f"Q{n}"] != after[f"Q{n}"]] == filler.changed_items(1)
    for number in filler.changed_items(1):
        assert Fact(f"Q{number}", "P54", filler.object(number, 1)) in facts_of(after[f"Q{number}"])
        assert filler.object(number, 0) != filler.object(number, 1)
    assert after[f"Q{FIRST_ITEM}"]["labels"]["en"]["value"] == filler.label(FIRST_ITEM)


def test_a_new_lastrevid_means_a_change_and_the_other_way_round(dumps: Path, tmp_path: Path, truth: Truth) -> None:
    world = World(people=30, filler_items=200, filler_changed=0.2)
    write_world(tmp_path, world)
    for folder, dates in ((dumps, WIKIDATA_DATES), (tmp_path, world.wikidata_dates)):
        for prev, recent in itertools.pairwise(dates):
            before, after = ({e["id"]: e for e in entities(folder, date)} for date in (prev, recent))
            both = before.keys() & after.keys()
            changed = {id for id in both if before[id] != after[id]}
            assert changed and changed == {id for id in both if before[id]["lastrevid"] != after[id]["lastrevid"]}
            assert all(before[id]["lastrevid"] < after[id]["lastrevid"] for id in changed)


def test_filler_items_are_like_those_of_wikidata() -> None:
    lines = list(Filler(World(filler_items=2000)).items(0))
    raw = ",\n".join(lines).encode()
    assert 9 < len(raw) / len(zlib.compress(raw, 6)) < 11.5  # 7.4 to 10 in real samples, about 12 in whole dumps
    assert 11_000 < len(raw) / len(lines) < 16_000
    items = [json.loads(line) for line in lines]
    assert all(
        list(item)[-6:] == ["sitelinks", "pageid", "ns", "title", "lastrevid", "modified"] and item["claims"]["P54"]
        for item in items
    )
    statements = [[s for group in item["claims"].values() for s in group] for item in items]
    ids = [s["id"] for group in statements for s in group]
    assert len(ids) == len(set(ids)) and all(
        re.fullmatch(r"Q\d+\$[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}", i) for i in ids
    )
    forms = Counter(s["mainsnak"]["datatype"] for group in statements for s in group)
    assert 0.4 < forms["wikibase-item"] / len(ids) < 0.6 and 12 < len(ids) / len(items) < 18
    assert forms.keys() >= {"external-id", "time", "globe-coordinate", "quantity", "string", "url", "commonsMedia"}
    hashes = [r["hash"] for group in statements for s in group for r in s.get("references", [])]
    assert all(re.fullmatch("[0-9a-f]{40}", digest) for digest in hashes) and len(set(hashes)) > len(hashes) / 3


def test_filler_pages_pack_about_as_well_as_those_of_wikipedia() -> None:
    filler = Filler(World(filler_pages=300))
    raw = "".join(page.xml for page in filler_xml(filler, 0)).encode()
    assert 4 < len(raw) / len(bz2.compress(raw)) < 5.2  # 3.6 in the real sample of long articles, 4.5 in whole dumps


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
    with pytest.raises(ValueError, match=r"world|date|story"):
        World(**wrong)
