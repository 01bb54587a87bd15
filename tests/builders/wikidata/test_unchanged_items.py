"""An extract whose unchanged items are copied from last month's extract has the content of a full extract."""

import gzip
import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from odd_world import write_odd_world

from temporalwiki.base.errors import InputError
from temporalwiki.builders.build import BuildOptions, build, find_sources
from temporalwiki.builders.machine import Machine
from temporalwiki.builders.snapshot import Interval
from temporalwiki.builders.stages import Report, total
from temporalwiki.builders.wikidata import buckets, extract, revision_index, tables, unchanged_items
from temporalwiki.builders.world import World

from a_folder import contents
from a_stage import extract_wikidata
from tiny_dumps import articles_file, item, multistream, page, property_, statement, value, wikidata_file

Json = dict[str, Any]


def line_of(entity: Json, lastrevid: int, tail: str = "") -> str:
    """An entity as a line of a dump of 2021."""
    end = {"pageid": 1, "ns": 0, "title": entity.get("id"), "lastrevid": lastrevid, "modified": "2021-10-01T00:00:00Z"}
    return json.dumps(entity | end, separators=(",", ":")) + tail


def write_dump(path: Path, lines: list[str], per_member: int = 3) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = ["[\n", *(line + ",\n" for line in lines[:-1]), *(line + "\n" for line in lines[-1:]), "]\n"]
    groups = ["".join(text[i : i + per_member]) for i in range(0, len(text), per_member)]
    path.write_bytes(b"".join(gzip.compress(group.encode()) for group in groups))
    return path


def extracted(place: Path, name: str, lines: list[str], base: str | None = None) -> list[Report]:
    """Extract a dump of these lines into folder ``name``, reusing the extract ``base`` next to it."""
    path = write_dump(place / f"{name}.json.gz", lines)
    return extract_wikidata(path, place / name, place / base if base is not None else None)


def holds(folder: Path) -> dict[str, Any]:
    """All that counts in an extract: the newest record of each item, and the revisions of all its records."""

    def rows_of(table: str) -> list[Json]:
        read = buckets.read(folder, table, 0, tables.BUCKETS, getattr(tables, table.upper()).names)
        return [row for rows in read for row in rows.to_pylist()]

    entities: dict[int, list[Json]] = {}
    for row in rows_of("entities"):
        entities.setdefault(row["s"], []).append(row)
    assert all(len({row["seen"] for row in readings}) == len(readings) for readings in entities.values())
    newest = {s: max(readings, key=lambda row: (row["lastrevid"], row["seen"])) for s, readings in entities.items()}
    facts: dict[int, list[Json]] = {}
    for row in rows_of("facts"):
        if row["seen"] == newest[row["s"]]["seen"]:
            facts.setdefault(row["s"], []).append(row | {"seen": None})
    properties = [row for path in tables.files(folder, "properties") for row in pq.read_table(path).to_pylist()]
    return {
        "readings": {s: sorted(row["lastrevid"] for row in readings) for s, readings in entities.items()},
        "newest": {s: row | {"seen": None} for s, row in newest.items()},
        "facts": facts,
        "properties": sorted((row["p"], row["lastrevid"], row["label"]) for row in properties),
    }


STATEMENTS = st.lists(
    st.builds(
        lambda object, rank, id: statement(value(object), rank, id=f"Q1${id}"),
        st.integers(1, 9),
        st.sampled_from(["normal", "preferred", "deprecated"]),
        st.integers(0, 99),
    ),
    max_size=4,
)
# content of a revision of an item: number and revision determine it, as in Wikidata
CONTENT = st.tuples(STATEMENTS, st.sampled_from([None, "a", "\\", '","lastrevid":7,"modified":"x"},', "漢"]))
ITEMS = st.lists(st.tuples(st.integers(1, 8), st.integers(0, 3), st.booleans()), max_size=12)


@settings(max_examples=20)
@given(
    months=st.lists(ITEMS, min_size=4, max_size=4),
    contents=st.lists(CONTENT, min_size=32, max_size=32),
    per_member=st.integers(1, 9),
    few=st.sampled_from([0, 5, 1000]),
)
def test_it_has_the_content_of_a_full_extract(
    tmp_path_factory: pytest.TempPathFactory,
    months: list[list[tuple[int, int, bool]]],
    contents: list[Any],
    per_member: int,
    few: int,
) -> None:
    """Items are new, gone, changed, changed back, held twice, redirects or without a revision, month after month.

    An extract is complete without its base, which is deleted.
    """
    folder = tmp_path_factory.mktemp("c")

    def dump(name: str, items: list[tuple[int, int, bool]]) -> Path:
        lines = [line_of(property_(5, "knows"), 9)]
        for number, revision, redirect in items:
            statements, label = contents[number * 4 + revision - 4]
            if redirect and revision == 0:
                lines.append(json.dumps({"entity": f"Q{number}", "redirect": "Q1"}))
            else:
                lines.append(line_of(item(number, {"P5": statements}, label), revision))
        return write_dump(folder / f"{name}.json.gz", lines, per_member)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(extract, "RANGE", 300)
        patch.setattr(unchanged_items, "ITEMS_A_TASK", 4)
        patch.setattr(extract, "_MAX_VALUES", 3)
        patch.setattr(tables, "MAX_ROWS", 5)
        patch.setattr(extract, "_MAX_UNCHANGED", 5)
        patch.setattr(tables, "SINGLE_FILE_ROWS", few)  # one file of a task, or several
        patch.setattr(tables, "GROUP_ROWS", 4)
        patch.setattr(buckets, "ROWS", 4)
        patch.setattr(revision_index, "_AT_ONCE", 3)
        extract_wikidata(dump("0", months[0]), folder / "0")
        for month in range(1, 4):
            path = dump(str(month), months[month])
            full = extract_wikidata(path, folder / f"full{month}")
            copied = extract_wikidata(path, folder / str(month), folder / str(month - 1))
            shutil.rmtree(folder / str(month - 1))
            assert holds(folder / str(month)) == holds(folder / f"full{month}")
            for part in ("entities", "statements", "bytes", "closed"):
                assert total(copied, part) == total(full, part)
            before = [(number, revision) for number, revision, gone in months[month - 1] if revision or not gone]
            held = Counter(number for number, _ in before)
            once = {number: revision for number, revision in before if held[number] == 1}
            unchanged = [number for number, revision, _ in months[month] if revision and once.get(number) == revision]
            assert total(copied, "unchanged") == {"items": len(unchanged)}


def entity(number: int, revision: int, *objects: int) -> str:
    return line_of(item(number, {"P5": [statement(value(o), id=f"Q{number}${o}") for o in objects]}), revision)


def facts(folder: Path) -> list[tuple[int, int, bool]]:
    """Subject, object and whether the row was copied."""
    found = buckets.read(folder, "facts", 0, tables.BUCKETS, ("s", "o", "seen"))
    return sorted((row["s"], row["o"], row["seen"] < 0) for table in found for row in table.to_pylist())


def test_three_months_by_hand(tmp_path: Path) -> None:
    """Q1 stays, Q2 changes, Q3 goes and comes back as it was, Q4 comes."""
    extracted(tmp_path, "a", [entity(1, 11, 7), entity(2, 12, 7), entity(3, 13, 7)])
    extracted(tmp_path, "b", [entity(1, 11, 7), entity(2, 22, 8), entity(4, 14, 7)], "a")
    last = [entity(1, 11, 7), entity(2, 22, 8), entity(3, 13, 7), entity(4, 24, 9)]
    reports = extracted(tmp_path, "c", last, "b")
    assert facts(tmp_path / "a") == [(1, 7, False), (2, 7, False), (3, 7, False)]
    assert facts(tmp_path / "b") == [(1, 7, True), (2, 8, False), (4, 7, False)]
    assert facts(tmp_path / "c") == [(1, 7, True), (2, 8, True), (3, 7, False), (4, 9, False)]
    assert total(reports, "unchanged") == {"items": 2}


def test_items_that_the_base_has_lost_are_an_error(tmp_path: Path) -> None:
    extracted(tmp_path, "a", [entity(1, 11, 7)])
    extracted(tmp_path, "b", [entity(1, 11, 7)], "a")
    for path in (tmp_path / "a").glob("entities-*"):
        path.unlink()
    [task] = unchanged_items.plan(1, "a")
    with pytest.raises(InputError, match=f"{tmp_path / 'a'}: 0 of 1 items found; delete {tmp_path / 'b'} and build"):
        unchanged_items.run(task, tmp_path / "b" / tables.COPIED)


TAIL = ',"pageid":1,"ns":0,"title":"Q1","lastrevid":7,"modified":"2021-10-01T00:00:00Z"}'
HEAD = '{"type":"item","id":"Q1","labels":{"en":{"language":"en","value":"x"}},"claims":{},"sitelinks":{}'
LINES = {
    "as in 2021": (HEAD + TAIL, True),
    "with white space behind it": (HEAD + TAIL + " \r", True),
    "another revision": (HEAD + TAIL.replace("7", "8"), False),
    "no revision": (HEAD + TAIL.replace('"lastrevid":7,', ""), False),
    "revision 0": (HEAD + TAIL.replace(":7", ":0"), False),
    "another item": (HEAD.replace("Q1", "Q2") + TAIL, False),
    "a property": (HEAD.replace('"item"', '"property"').replace("Q1", "P1") + TAIL, False),
    "the keys in another order": (HEAD + TAIL.replace('"lastrevid":7,', "").replace("}", ',"lastrevid":7}'), False),
    "the id later": (HEAD.replace('"id":"Q1",', "") + ',"id":"Q1"' + TAIL, False),
    "blanks between": (HEAD.replace(",", ", ") + TAIL.replace(",", ", "), False),
    "a revision inside another member": (HEAD + ',"x":{"y":1' + TAIL + "}", False),
    "a list that begins there": ("[" + HEAD + TAIL, False),
    "a bracket before it": ("[" + HEAD + TAIL, False),
    "a quote inside the tail": (HEAD + TAIL.replace("2021", '\\"2021'), False),
}


@pytest.mark.parametrize(("line", "kept"), LINES.values(), ids=LINES)
def test_only_a_line_of_the_usual_shape_is_not_parsed(tmp_path: Path, line: Any, kept: bool) -> None:
    extracted(tmp_path, "prev", [HEAD + TAIL])
    recent = write_dump(tmp_path / "recent.json.gz", [HEAD.replace("Q1", "Q9") + "}", line])
    reports = extract_wikidata(recent, tmp_path / "recent", tmp_path / "prev")
    assert total(reports, "unchanged") == {"items": int(kept)}
    extract_wikidata(recent, tmp_path / "full")
    assert holds(tmp_path / "recent") == holds(tmp_path / "full")


# Whole builds.

MONTHS = Interval("enwiki", "20211101", "20211201"), Interval("enwiki", "20211201", "20220101")
DATES = ("20211101", "20211129", "20211227")


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    dumps = tmp_path_factory.mktemp("dumps")
    world = World(people=30, dates=("20211101", "20211201", "20220101"), wikidata_dates=DATES)
    write_odd_world(dumps, world)
    return dumps


def built(dumps: Path, out: Path, interval: Interval, work: Path | None = None) -> dict[str, Any]:
    """The files of a build and its manifest, with the entry "run" apart."""
    options, place = BuildOptions(unchanged_fraction=1.0), work or out.with_name("work")
    manifest = build(find_sources(dumps, interval), out, place, options, Machine()).content
    lasting = {key: manifest[key] for key in manifest if key != "run"}
    return contents(out, "*.parquet") | {"manifest": lasting, "run": manifest["run"]}


def without_run(build: dict[str, Any]) -> dict[str, Any]:
    return {key: build[key] for key in build if key != "run"}


@pytest.fixture(scope="module")
def full(dumps: Path, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Builds of both months that parse every item."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(extract, "_unchanged", lambda _data, bounds, _base: [0] * len(bounds))
        return [without_run(built(dumps, tmp_path_factory.mktemp("full") / "out", month)) for month in MONTHS]


def test_a_build_gives_the_same_bytes_whatever_was_copied(
    dumps: Path, full: list[dict[str, Any]], tmp_path: Path
) -> None:
    first = built(dumps, tmp_path / "first", MONTHS[0])
    assert "wikidata-copy recent" in first["run"]["stages"]
    assert without_run(first) == full[0]
    second = built(dumps, tmp_path / "second", MONTHS[1])  # on what the first copied
    assert {"wikidata-copy prev", "wikidata-copy recent"} <= second["run"]["stages"].keys()
    assert without_run(second) == full[1]
    # on a finished extract, though its base is gone
    [gone] = (tmp_path / "work" / "extracts").glob(f"wikidata-{DATES[0]}-*")
    shutil.rmtree(gone)
    shutil.rmtree(next((tmp_path / "work").glob(f"enwiki-{MONTHS[1].name}-*")))
    assert without_run(built(dumps, tmp_path / "third", MONTHS[1])) == full[1]
    # and once more where the base is lost, made again of its dump, and then the first month is built on it
    [middle] = (tmp_path / "work" / "extracts").glob(f"wikidata-{DATES[1]}-*")
    shutil.rmtree(middle)
    assert without_run(built(dumps, tmp_path / "fourth", MONTHS[1])) == full[1]
    assert without_run(built(dumps, tmp_path / "fifth", MONTHS[0])) == full[0]


def test_a_build_that_was_killed_goes_on_with_another_base(
    dumps: Path, full: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """November's extract is half made on October's when a build asks for it that has no base for it."""

    def killed(_task: object, _folder: Path) -> Report:
        raise InputError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(unchanged_items, "run", killed)
        with pytest.raises(InputError, match="killed"):
            built(dumps, tmp_path / "out", MONTHS[0])
    assert without_run(built(dumps, tmp_path / "next", MONTHS[1])) == full[1]
    # and the other way round: it is finished now, without a base
    again = built(dumps, tmp_path / "out", MONTHS[0])
    assert "wikidata-copy recent" not in again["run"]["stages"]
    assert without_run(again) == full[0]


def of_two_months(dumps: Path, revision: Callable[[int, int], int]) -> dict[str, Any]:
    """The stages of a build of five items, each with another fact and with ``revision(item, month)`` every month."""
    for month, date in enumerate(("20211101", "20211201")):
        multistream(articles_file(dumps, date), [page(1, "A", "A is here.", revision_id=1 + month)])
        lines = [entity(number, revision(number, month), 10 + month) for number in range(1, 6)]
        write_dump(wikidata_file(dumps, date), lines)
    manifest = build(find_sources(dumps, MONTHS[0]), dumps / "out", dumps / "work").content
    assert manifest["counts"]["facts"]["changed"] == {"new_object": 5}
    stages: dict[str, Any] = manifest["run"]["stages"]
    return stages


def test_an_extract_without_revisions_is_no_base(tmp_path: Path) -> None:
    """As in dumps of 2014: none of its items could be copied."""
    stages = of_two_months(tmp_path / "none", lambda _number, _month: 0)
    assert {"wikidata-index", "wikidata-extract recent"} <= stages.keys()
    assert "wikidata-copy recent" not in stages
    stages = of_two_months(tmp_path / "one", lambda number, month: (number == 1) * (8 + month))
    assert "wikidata-copy recent" in stages
