"""The steps of the TemporalWiki authors' released code, as programs whose cost can be measured.

    python benchmarks/authors_way.py wikidata-xml DUMP.json.gz OUT.xml.bz2 --every 10  # the input that they read
    python benchmarks/authors_way.py page-text DUMP.xml.bz2 FOLDER        # WikiExtractor, as they call it
    python benchmarks/authors_way.py page-diff OLD_FOLDER NEW_FOLDER OUT.csv
    python benchmarks/authors_way.py entity-text DUMP.xml.bz2 OUT.json.gz # gensim's segment_wiki, as they call it
    python benchmarks/authors_way.py entity-facts TEXT.json.gz OUT.json
    python benchmarks/authors_way.py fact-diff OLD.json NEW.json OUT.json

Own code, after a reading of github.com/CHLee0801/TemporalWikiDatasets (README, wikipedia_datasets.py and
wikidata_datasets.py). All differences are to their advantage:

- this code reads the facts of a dump in one pass; theirs starts again for each million items;
- it does not tokenize, print, or ask a web service for labels and the pages' items (which takes them most of a day);
- they extract three times, for new, updated and unchanged facts; here it counts once.

WikiExtractor and gensim run with one worker: the comparison is of CPU time, and more workers only add to it.
"""

from __future__ import annotations

import argparse
import bz2
import csv
import gzip
import hashlib
import itertools
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from difflib import Differ
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pandas as pd  # type: ignore[import-untyped, unused-ignore]

Articles = dict[int, tuple[str, str, str]]
Facts = dict[str, list[list[str]]]
_ITEM = re.compile(r'{"type":"item","id":"Q(\d+)"')
_PUNCTUATION = re.compile(r"[^\w\s]")


def write_wikidata_xml(dump: Path, out: Path, every: int = 1) -> dict[str, int]:
    """Write every n-th item (by its number) of a JSON dump as an XML dump, and return how much JSON these are.

    The revision's text is the entity as Wikidata stores it: the main value of a statement with its hash (without
    it, the authors' search finds no property), without datatypes, and without what the JSON dump adds about the page.
    """
    size = items = 0
    with gzip.open(dump, "rt", encoding="utf-8") as lines, bz2.open(out, "wt", encoding="utf-8") as xml:
        xml.write(
            '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.10/" version="0.10" xml:lang="en">\n'
            "  <siteinfo>\n    <sitename>Wikidata</sitename>\n    <dbname>wikidatawiki</dbname>\n  </siteinfo>\n"
        )
        for line in lines:
            number = _ITEM.match(line)
            if number is None or int(number[1]) % every:
                continue
            size += len(line)
            items += 1
            entity = json.loads(line.rstrip().rstrip(","))
            about = {key: entity.pop(key) for key in ("pageid", "ns", "title", "lastrevid", "modified")}
            for statement in itertools.chain.from_iterable(entity["claims"].values() if entity["claims"] else ()):
                _as_stored(statement)
            text = escape(json.dumps(entity, separators=(",", ":")), {'"': "&quot;"})
            xml.write(
                f"  <page>\n    <title>{about['title']}</title>\n    <ns>0</ns>\n    <id>{about['pageid']}</id>\n"
                f"    <revision>\n      <id>{about['lastrevid']}</id>\n"
                f"      <timestamp>{about['modified']}</timestamp>\n      <model>wikibase-item</model>\n"
                f'      <format>application/json</format>\n      <text xml:space="preserve">{text}</text>\n'
                "    </revision>\n  </page>\n"
            )
        xml.write("</mediawiki>\n")
    return {"items": items, "json_bytes": size}


def _as_stored(statement: dict[str, Any]) -> None:
    main = statement["mainsnak"]
    value = {"datavalue": main["datavalue"]} if "datavalue" in main else {}
    digest = hashlib.sha1(json.dumps(main).encode()).hexdigest()
    statement["mainsnak"] = {"snaktype": main["snaktype"], "property": main["property"], "hash": digest, **value}
    groups = [statement.get("qualifiers", {}), *(reference["snaks"] for reference in statement.get("references", []))]
    for snak in itertools.chain.from_iterable(snaks for group in groups for snaks in group.values()):
        snak.pop("datatype", None)


def extract_page_text(dump: Path, folder: Path) -> None:
    """Run WikiExtractor with its defaults (templates collected and expanded) and JSON output."""
    options = [str(dump), "--json", "--output", str(folder), "--processes", "1", "--quiet"]
    subprocess.run([sys.executable, "-m", "wikiextractor.WikiExtractor", *options], check=True)


def extract_entity_text(dump: Path, out: Path) -> None:
    """Run gensim's wiki segmentation with links, on the XML of Wikidata."""
    options = ["--include-interlinks", "--file", str(dump), "--output", str(out), "--workers", "1"]
    subprocess.run([sys.executable, "-m", "gensim.scripts.segment_wiki", *options], check=True)


def read_articles(folder: Path) -> Articles:
    """Return all articles of one dump (the authors also hold them in memory)."""
    articles = {}
    for file in sorted(folder.glob("*/wiki_*")):
        for _, row in pd.read_json(file, lines=True).iterrows():
            articles[row["id"]] = (row["url"], row["title"], row["text"])
    return articles


def _lines(text: str) -> tuple[list[str], list[str]]:
    """Return the lines that are not empty, first unchanged, then without punctuation and case."""
    lines = [line for line in text.split("\n") if line]
    return lines, [_PUNCTUATION.sub("", line).lower() for line in lines]


def new_text(old: str, new: str, differ: Differ) -> str:
    """Return the new lines of an article that stand between old ones.

    Like the authors' code, it ignores new lines before the first old one and after the last.
    """
    old_lines, old_keys = _lines(old)
    new_lines, new_keys = _lines(new)
    anchors, after = [], 0
    for place, key in enumerate(old_keys):
        if key in new_keys[after:]:
            after = new_keys.index(key)
            anchors.append((place, after))
    found = []
    for (old_from, new_from), (old_to, new_to) in itertools.pairwise(anchors):
        if new_from + 1 == new_to:
            continue
        added = ". ".join(new_lines[new_from + 1 : new_to])
        if old_from + 1 != old_to:
            gone = ". ".join(old_lines[old_from + 1 : old_to])
            marked = differ.compare(gone.split("."), added.split("."))
            added = ". ".join(line.replace("+ ", "") for line in marked if "+" in line and line[0] != "?")
        found.append(added)
    return ". ".join(found)


def diff_pages(old_folder: Path, new_folder: Path, out: Path) -> int:
    """Write the CSV of new and changed articles, and return how many there are."""
    new, old = read_articles(new_folder), read_articles(old_folder)
    differ, rows = Differ(), 0
    with out.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(("id", "url", "title", "text"))
        for id, (url, title, text) in new.items():
            found = new_text(old[id][2], text, differ) if id in old else text.replace("\n", "")
            if found:
                rows += 1
                table.writerow((id, url, title, found))
    return rows


def entities(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the entities in gensim's output, with one json.loads for each line, as the authors' library does."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def find_facts(text: str) -> list[list[str]]:
    """Return the [property, object] pairs in an entity's text, found by the places of words, as the authors do."""
    found: list[list[str]] = []
    at = text.find("wikibase-entity")
    while at >= 0:
        before = text[max(0, at - 200) : at]
        relation = before[before.find('"property"') + 12 : before.find("hash") - 3]
        object = before[before.find('"id":"') + 6 : before.find(',"type":') - 2]
        if relation and object:
            pair = [relation, object[:-10] if '"},"type":' in object else object]
            if pair not in found:
                found.append(pair)
        at = text.find("wikibase-entity", at + 1)
    return found


def write_facts(path: Path, out: Path) -> int:
    """Write the facts of all entities as one JSON object, and return their number."""
    facts = {entity["title"]: find_facts(entity["section_texts"][0]) for entity in entities(path)}
    with out.open("w", encoding="utf-8") as file:
        json.dump(facts, file, indent=4)
    return sum(map(len, facts.values()))


def diff_facts(old_path: Path, new_path: Path, out: Path) -> dict[str, int]:
    """Write new, updated and unchanged facts of the entities in both files, and return their numbers."""
    old: Facts = json.loads(old_path.read_text(encoding="utf-8"))
    new: Facts = json.loads(new_path.read_text(encoding="utf-8"))
    groups: dict[str, list[list[str]]] = {"unchanged": [], "new": [], "updated": []}
    for entity in (id for id in old if id in new):
        known: list[str] = []
        for relation, _ in old[entity]:
            if relation not in known:
                known.append(relation)
        for pair in new[entity]:
            if pair in old[entity]:
                groups["unchanged"].append([entity, *pair])
            elif pair[0] in known:
                groups["updated"].append([entity, *pair])
            else:
                groups["new"].append([entity, *pair])
    with out.open("w", encoding="utf-8") as file:
        json.dump(groups, file, indent=4)
    return {name: len(rows) for name, rows in groups.items()}


def main() -> None:
    """Run one step and print its result as one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    steps: dict[str, Callable[..., object]] = {
        "wikidata-xml": write_wikidata_xml, "page-text": extract_page_text, "page-diff": diff_pages,
        "entity-text": extract_entity_text, "entity-facts": write_facts, "fact-diff": diff_facts,
    }  # fmt: skip
    parser.add_argument("step", choices=steps)
    parser.add_argument("paths", type=Path, nargs="+")
    parser.add_argument("--every", type=int, help="wikidata-xml: write only every n-th item")
    arguments = parser.parse_args()
    more = {} if arguments.every is None else {"every": arguments.every}
    print(json.dumps(steps[arguments.step](*arguments.paths, **more)))


if __name__ == "__main__":
    main()
