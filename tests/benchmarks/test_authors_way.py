"""The benchmark's version of the authors' steps does what their code does, on small inputs and a generated world."""

from __future__ import annotations

import bz2
import csv
import gzip
import importlib.util
import json
import xml.etree.ElementTree as ET
from difflib import Differ
from pathlib import Path

import pytest

from temporalwiki.builders.world import World, write_world

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "authors_way.py"
spec = importlib.util.spec_from_file_location("authors_way", PROGRAM)
assert spec is not None and spec.loader is not None
authors = importlib.util.module_from_spec(spec)
spec.loader.exec_module(authors)


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("a\nb", "a\nb", ""),
        ("a\nb", "a\nX\nb", "X"),
        ("a\n\nb", "a\nX\n\nY\nb", "X. Y"),
        ("a\nb", "a\nb\nX", ""),  # text after the last known line is lost
        ("a\nb", "X\na\nb", ""),  # text before the first one is lost
        ("a\nb", "A!\nX\nb.", "X"),  # punctuation and case do not count
        ("a\nIt was. It is\nb", "a\nIt was. It will be\nb", " It will be"),
        ("a\nGone\nb", "a\nb", ""),
    ],
)
def test_new_text(old: str, new: str, found: str) -> None:
    assert authors.new_text(old, new, Differ()) == found


def test_pages_are_compared_by_id(tmp_path: Path) -> None:
    for name, texts in (("old", {1: "a\nb", 2: "c"}), ("new", {1: "a\nX\nb", 2: "c", 3: "all\nnew"})):
        (tmp_path / name / "AA").mkdir(parents=True)
        rows = [json.dumps({"id": str(i), "url": f"u{i}", "title": f"T{i}", "text": t}) for i, t in texts.items()]
        (tmp_path / name / "AA" / "wiki_00").write_text("\n".join(rows))
    assert authors.diff_pages(tmp_path / "old", tmp_path / "new", tmp_path / "out.csv") == 2
    written = list(csv.reader((tmp_path / "out.csv").read_text().splitlines()))
    assert written == [["id", "url", "title", "text"], ["1", "u1", "T1", "X"], ["3", "u3", "T3", "allnew"]]


def test_facts_are_compared_by_entity(tmp_path: Path) -> None:
    old = {"Q1": [["P1", "Q5"], ["P2", "Q6"]], "Q2": [["P1", "Q5"]]}
    new = {"Q1": [["P1", "Q5"], ["P2", "Q7"], ["P3", "Q8"]], "Q3": [["P1", "Q5"]]}
    (tmp_path / "old").write_text(json.dumps(old))
    (tmp_path / "new").write_text(json.dumps(new))
    counts = authors.diff_facts(tmp_path / "old", tmp_path / "new", tmp_path / "out")
    assert counts == {"unchanged": 1, "new": 1, "updated": 1}
    assert json.loads((tmp_path / "out").read_text()) == {
        "unchanged": [["Q1", "P1", "Q5"]],
        "new": [["Q1", "P3", "Q8"]],
        "updated": [["Q1", "P2", "Q7"]],
    }


def test_the_search_finds_the_items_that_statements_name(tmp_path: Path) -> None:
    world = World(people=30)
    write_world(tmp_path, world)
    date = world.wikidata_dates[0]
    dump = tmp_path / "wikidatawiki" / "entities" / date / f"wikidata-{date}-all.json.gz"
    made = authors.write_wikidata_xml(dump, tmp_path / "x.xml.bz2", every=2)
    root = ET.fromstring(bz2.decompress((tmp_path / "x.xml.bz2").read_bytes()))
    pages = {page.findtext("{*}title"): page.findtext("{*}revision/{*}text") for page in root.findall("{*}page")}
    lines = gzip.decompress(dump.read_bytes()).decode().splitlines()
    items = [json.loads(line.rstrip(",")) for line in lines if line.startswith('{"type":"item"')]
    items = [item for item in items if int(item["id"][1:]) % 2 == 0]
    assert made["items"] == len(pages) == len(items)
    for item in items:
        said = {
            (relation, statement["mainsnak"]["datavalue"]["value"]["id"])
            for relation, group in (item["claims"] or {}).items()
            for statement in group
            if statement["mainsnak"].get("datavalue", {}).get("type") == "wikibase-entityid"
        }
        found = {tuple(pair) for pair in authors.find_facts(pages[item["id"]])}
        assert said <= found  # the search also finds items of qualifiers and references
