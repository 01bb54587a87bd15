"""The load of the benchmarks: it is as dense as real dumps, and a month changes the share that it names."""

import bz2
import gzip
import json
import re
import subprocess
import sys
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
PAGES, ITEMS = 400, 2000
CODE = """
import sys
from pathlib import Path
from temporalwiki.builders.world import World
from load import write_load
if __name__ == "__main__":
    write_load(Path(sys.argv[1]), World(people=30), int(sys.argv[2]), int(sys.argv[3]))
"""


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("load")
    (folder / "write.py").write_text(f"import sys; sys.path.insert(0, {str(BENCHMARKS)!r})\n{CODE}")
    subprocess.run([sys.executable, folder / "write.py", folder, str(PAGES), str(ITEMS)], check=True)
    return folder


def items(dumps: Path, date: str) -> dict[str, str]:
    """The load's items of a month by id, as lines."""
    path = dumps / "wikidatawiki" / "entities" / date / f"wikidata-{date}-all.json.gz"
    lines = [line.rstrip(",") for line in gzip.decompress(path.read_bytes()).decode().splitlines()]
    found = {re.findall('"id":"([A-Z0-9]+)"', line)[0]: line for line in lines if line.startswith('{"type":"item"')}
    return {id: line for id, line in found.items() if int(id[1:]) >= 50_000_000}


def pages(dumps: Path, date: str) -> dict[str, str]:
    """The load's pages of a month by title."""
    path = dumps / "enwiki" / date / f"enwiki-{date}-pages-articles-multistream.xml.bz2"
    found = re.findall("  <page>.*?</page>\n", bz2.decompress(path.read_bytes()).decode(), re.DOTALL)
    titles = {re.findall("<title>(.*)</title>", page)[0]: page for page in found}
    return {title: page for title, page in titles.items() if re.fullmatch(r"Place \d+", title)}


def test_items_are_like_those_of_wikidata(dumps: Path) -> None:
    lines = list(items(dumps, "20211101").values())
    raw = ",\n".join(lines).encode()
    assert len(lines) == ITEMS
    assert 9 < len(raw) / len(zlib.compress(raw, 6)) < 11.5  # 7.4 to 10 in real samples, about 12 in whole dumps
    assert 11_000 < len(raw) / len(lines) < 16_500
    found: list[Any] = [json.loads(line) for line in lines]
    assert all(list(item)[-4:] == ["ns", "title", "lastrevid", "modified"] for item in found)
    statements = [s for item in found for group in item["claims"].values() for s in group]
    ids = [s["id"] for s in statements]
    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(r"Q\d+\$[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}", id) for id in ids)
    forms = Counter(s["mainsnak"]["datatype"] for s in statements)
    assert 0.4 < forms["wikibase-item"] / len(ids) < 0.6
    assert 12 < len(ids) / len(found) < 18
    assert forms.keys() >= {"external-id", "time", "globe-coordinate", "quantity", "string", "url", "commonsMedia"}


def test_pages_pack_about_as_well_as_those_of_wikipedia(dumps: Path) -> None:
    found = pages(dumps, "20211101")
    raw = "".join(found.values()).encode()
    assert len(found) == PAGES
    assert 4 < len(raw) / len(bz2.compress(raw)) < 5.2  # 3.6 in a real sample of long articles, 4.5 in whole dumps


def test_a_month_changes_one_in_twenty(dumps: Path) -> None:
    before, after = items(dumps, "20211101"), items(dumps, "20211129")
    changed = [id for id in before if before[id] != after[id]]
    assert 0.04 < len(changed) / ITEMS < 0.06
    for id in changed:
        old, new = json.loads(before[id]), json.loads(after[id])
        assert old["lastrevid"] < new["lastrevid"]
        assert {r for r in old["claims"] if old["claims"][r] != new["claims"][r]} == {"P54"}
    prev, recent = pages(dumps, "20211101"), pages(dumps, "20211201")
    edited = [title for title in prev if prev[title] != recent[title]]
    assert 0.03 < len(edited) / PAGES < 0.07
    for title in edited:
        lines = [Counter(line for line in text.split("\n") if line) for text in (prev[title], recent[title])]
        assert any(line.startswith("| population") for line in lines[0] - lines[1])
        assert any("in its edition 1." in line for line in lines[1] - lines[0])
