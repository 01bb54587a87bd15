"""An extract that reuses unchanged items of the month before has the content of a full extract."""

from __future__ import annotations

import errno
import gzip
import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from odd_world import write_odd_world

from temporalwiki.base.errors import InputError
from temporalwiki.builders import incremental
from temporalwiki.builders.build import BuildOptions, build, find_sources
from temporalwiki.builders.machine import Machine
from temporalwiki.builders.parquet import ParquetWriter
from temporalwiki.builders.snapshot import Dump, Interval
from temporalwiki.builders.stages import Report, total
from temporalwiki.builders.wikidata import buckets, extract, revision_index, tables, unchanged_items
from temporalwiki.builders.wikidata.entities import EntityReader
from temporalwiki.builders.wikidata.revision_index import RevisionIndex
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
    rows_of: dict[str, list[Json]] = {
        table: [
            row
            for rows in buckets.read(folder, table, 0, tables.BUCKETS, getattr(tables, table.upper()).names)
            for row in rows.to_pylist()
        ]
        for table in ("entities", "facts")
    }
    entities: dict[int, list[Json]] = {}
    for row in rows_of["entities"]:
        entities.setdefault(row["s"], []).append(row)
    assert all(len({row["seen"] for row in readings}) == len(readings) for readings in entities.values())
    newest = {s: max(readings, key=lambda row: (row["lastrevid"], row["seen"])) for s, readings in entities.items()}
    facts: dict[int, list[Json]] = {}
    for row in rows_of["facts"]:
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
    links=st.booleans(),
    few=st.sampled_from([0, 5, 1000]),
)
def test_it_has_the_content_of_a_full_extract(
    tmp_path_factory: pytest.TempPathFactory,
    months: list[list[tuple[int, int, bool]]],
    contents: list[Any],
    per_member: int,
    links: bool,
    few: int,
) -> None:
    """Items are new, gone, changed, changed back, held twice, redirects or without a revision, month after month.

    An extract is complete without its base, which is deleted, even on a disk without hard links.
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
        patch.setattr(extract, "CHECKED", 2)
        patch.setattr(unchanged_items, "ITEMS_A_TASK", 4)
        patch.setattr(extract, "_MAX_VALUES", 3)
        patch.setattr(tables, "MAX_ROWS", 5)
        patch.setattr(extract, "_MAX_UNCHANGED", 5)
        patch.setattr(tables, "SINGLE_FILE_ROWS", few)  # one file of a task, or several
        patch.setattr(tables, "GROUP_ROWS", 4)
        patch.setattr(extract, "_UNCHANGED_GROUP_ROWS", 3)
        patch.setattr(buckets, "ROWS", 4)
        if not links:
            patch.setattr(os, "link", no_links)
        extract_wikidata(dump("0", months[0]), folder / "0")
        for month in range(1, 4):
            path = dump(str(month), months[month])
            full = extract_wikidata(path, folder / f"full{month}")
            carried = extract_wikidata(path, folder / str(month), folder / str(month - 1))
            shutil.rmtree(folder / str(month - 1))
            assert holds(folder / str(month)) == holds(folder / f"full{month}")
            for part in ("entities", "statements", "bytes", "closed"):
                assert total(carried, part) == total(full, part)
            assert total(carried, "checked")["differ"] == 0
            before = [(number, revision) for number, revision, gone in months[month - 1] if revision or not gone]
            held = Counter(number for number, _ in before)
            once = {number: revision for number, revision in before if held[number] == 1}
            unchanged = [number for number, revision, _ in months[month] if revision and once.get(number) == revision]
            assert total(carried, "kept") == {"items": len(unchanged)}


def no_links(_source: Path, _target: Path) -> None:
    raise OSError(errno.EPERM, "no hard links here")


def entity(number: int, revision: int, *objects: int) -> str:
    return line_of(item(number, {"P5": [statement(value(o), id=f"Q{number}${o}") for o in objects]}), revision)


def facts(folder: Path) -> list[tuple[int, int, int]]:
    """Subject, object and file of the rows that count."""
    found = buckets.read(folder, "facts", 0, tables.BUCKETS, ("s", "o", "seen"))
    rows = [row for table in found for row in table.to_pylist()]
    return sorted((row["s"], row["o"], row["seen"] >> 52) for row in rows)


def test_layers_by_hand(tmp_path: Path) -> None:
    """Q1 stays, Q2 changes, Q3 goes and comes back as it was, Q4 comes."""
    extracted(tmp_path, "a", [entity(1, 11, 7), entity(2, 12, 7), entity(3, 13, 7)])
    extracted(tmp_path, "b", [entity(1, 11, 7), entity(2, 22, 8), entity(4, 14, 7)], "a")
    last = [entity(1, 11, 7), entity(2, 22, 8), entity(3, 13, 7), entity(4, 24, 9)]
    reports = extracted(tmp_path, "c", last, "b")
    assert facts(tmp_path / "a") == [(1, 7, 0), (2, 7, 0), (3, 7, 0)]
    assert facts(tmp_path / "b") == [(1, 7, 0), (2, 8, 1), (4, 7, 1)]
    assert facts(tmp_path / "c") == [(1, 7, 0), (2, 8, 1), (3, 7, 2), (4, 9, 2)]
    assert total(reports, "kept") == {"items": 2}
    assert {tuple(column.tolist()) for b in (2, 3, 4) for column in buckets.superseded(tmp_path / "c", b, b + 1)} == {
        (2,), (0,), (3,), (4,), (1,),
    }  # fmt: skip
    names = [f"{table}-{generation:02d}-00000-all.parquet" for table in ("entities", "facts") for generation in (0, 1)]
    assert sorted(path.name for path in (tmp_path / "c" / "carried").glob("*.parquet")) == names
    assert (tmp_path / "c" / "carried" / names[2]).samefile(tmp_path / "a" / "facts-00000-all.parquet")


def test_what_a_killed_stage_left_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stage is killed at every link or file that it makes, and each time run again."""
    extracted(tmp_path, "a", [entity(n, n, 7) for n in range(1, 9)])
    path = write_dump(tmp_path / "b.gz", [entity(n, n + (n == 3), 8 - (n != 3)) for n in range(1, 9)], 2)
    extract_wikidata(path, tmp_path / "full")
    base = incremental.base_of(tmp_path / "a")
    assert base is not None
    unchanged_items.index(unchanged_items.plan(0, base)[0], tmp_path / "a" / "revisions")
    [task] = extract.plan(Dump("20211101", (path,)), "enwiki", "en", False)
    extract.run(replace(task, base=base), tmp_path / "b")
    link, write, calls = os.link, np.save, [0, 0]  # made, allowed

    def counted(make: Callable[..., None]) -> Callable[..., None]:
        def call(*arguments: Any) -> None:
            calls[0] += 1
            if calls[0] > calls[1]:
                raise KeyboardInterrupt
            make(*arguments)

        return call

    monkeypatch.setattr(os, "link", counted(link))
    monkeypatch.setattr(np, "save", counted(write))
    [group] = unchanged_items.plan(0, base)
    killed = 0
    while True:
        calls[0] = 0
        try:
            unchanged_items.run(group, tmp_path / "b" / "carried")
            break
        except KeyboardInterrupt:
            calls[1] += 7
            killed += 1
    assert killed >= 9
    assert holds(tmp_path / "b") == holds(tmp_path / "full")


def test_nothing_is_carried_over_of_another_base_than_the_dump_was_read_with(tmp_path: Path) -> None:
    """It has the same name, and is made of other layers by now, or is gone."""
    months = [
        write_dump(tmp_path / f"{n}.gz", [entity(1, 11 + (n == 2), 7 + (n == 2)), entity(2, 12, 8)]) for n in range(3)
    ]
    extract_wikidata(months[1], tmp_path / "b")
    base = incremental.base_of(tmp_path / "b")
    assert base is not None
    extract_wikidata(months[2], tmp_path / "c", tmp_path / "b")
    shutil.rmtree(tmp_path / "b")
    extract_wikidata(months[0], tmp_path / "a")
    extract_wikidata(months[1], tmp_path / "b", tmp_path / "a")
    [group] = unchanged_items.plan(0, base)
    for _ in range(2):
        with pytest.raises(InputError, match=f"{tmp_path / 'b'}: missing, or not what {tmp_path / 'c'} was read with"):
            unchanged_items.run(group, tmp_path / "c" / "carried")
        shutil.rmtree(tmp_path / "b", ignore_errors=True)


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


@pytest.mark.parametrize("case", LINES)
def test_only_a_line_of_the_usual_shape_is_not_parsed(tmp_path: Path, case: str) -> None:
    line, kept = LINES[case]
    extracted(tmp_path, "prev", [HEAD + TAIL])
    recent = write_dump(tmp_path / "recent.json.gz", [HEAD.replace("Q1", "Q9") + "}", line])
    reports = extract_wikidata(recent, tmp_path / "recent", tmp_path / "prev")
    assert total(reports, "kept") == {"items": int(kept)}
    extract_wikidata(recent, tmp_path / "full")
    assert holds(tmp_path / "recent") == holds(tmp_path / "full")


# Parts of lines, usual and not, and what can be before, between and after the items of a list.
PARTS = [
    *(f'{{"type":"item","id":"Q{number}",' for number in (1, 2, 3, 4, 10**18 - 1, 10**18, 0, "01", "1_0", "+1", "")),
    *(f',"lastrevid":{revision},"modified":"' for revision in (1, 2, 10**18 - 1, 10**18, 0, "01", "1_0", "")),
    *(
        '"labels":{}',
        "2021-10-01T00:00:00Z",
        "x" * 40,
        "x" * 41,
        "x" * 70,
        '"},',
        '"}',
        "\\",
        " ",
        "\r",
        "\n",
        "é",
        "]",
    ),
]


def long_line(number: object, revision: object, modified: str, end: str) -> str:
    middle = '"labels":{"en":{"language":"en","value":"long enough for a quick look"}}'
    return f'{{"type":"item","id":"Q{number}",{middle},"lastrevid":{revision},"modified":"{modified}"{end}'


NUMBERS = st.sampled_from([1, 2, 3, 4, 9, 10**18 - 1])
REVISIONS = st.sampled_from([1, 1, 1, 2, 10**18 - 1])
DATES_OF_LINES = st.sampled_from(["20211001T10:00:00Z", "2021-10-01T00:00:00Z"])
USUAL = st.builds(long_line, NUMBERS, REVISIONS, DATES_OF_LINES, st.just("},\n"))
# All but one of a line's parts usual; or its end that of another line, cut so that what lies before may complete it.
ODD = st.one_of(
    st.builds(long_line, st.sampled_from([10**18, 0, "01", "1_0", ""]), REVISIONS, DATES_OF_LINES, st.just("},\n")),
    st.builds(long_line, NUMBERS, st.sampled_from([10**18, 0, "01", "1_0", ""]), DATES_OF_LINES, st.just("},\n")),
    st.builds(long_line, NUMBERS, REVISIONS, st.text('Z"\\x', max_size=40), st.just("},\n")),
    st.builds(
        long_line, NUMBERS, REVISIONS, DATES_OF_LINES, st.sampled_from(["}\n", "},\r\n", "}},\n", " },\n", ",\n"])
    ),
    st.builds(lambda line, at: line[at:], USUAL, st.integers(0, 120)),
    USUAL.map(lambda line: line[:-2]),
    st.builds(lambda line, at: line[:at] + "\n", USUAL, st.integers(0, 200)),
)


@settings(max_examples=300)
@example(lines=[long_line(1, 1, "", "},\n"), '{"type":"item","id":"Q2",\n'])  # so short that both ends are A's
@example(lines=[PARTS[11], 'x"},\n', line_of({"type": "item", "id": "Q2"}, 1, ",\n"), PARTS[0], '"labels":{}},\n'])
@given(lines=st.lists(USUAL | USUAL | ODD, max_size=9) | st.lists(USUAL | ODD | st.sampled_from(PARTS), max_size=14))
def test_where_lines_are_as_usual_none_is_kept_that_would_not_be_otherwise(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str]
) -> None:
    """A quick look at several lines gives the same result as a close look at each of them."""
    folder = tmp_path_factory.mktemp("b")
    items = np.array([1, 2, 3, 4, 10**18 - 1], np.int64)
    revision_index.write(folder / "revisions", 0, tables.BUCKETS, items, np.array([1, 1, 2, 1, 1], np.int64))
    text = "".join(lines).removesuffix("\n").encode() + b"\n"
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(extract, "CHECKED", 2)
        for seam in (extract._LINE_BREAK, re.compile(rb"(?!)()()")):
            patch.setattr(extract, "_LINE_BREAK", seam)
            base = extract._UnchangedFilter(folder, EntityReader("enwiki", "en"))
            with ParquetWriter(folder / "kept.parquet", tables.UNCHANGED) as file:
                kept = extract._UnchangedBuffer(file)
                for _ in range(2):  # the second time, with what the first has left at hand
                    others = list(base.changed_lines(text, 0, len(text), kept))
                kept.write()
            found.append((others, pq.read_table(folder / "kept.parquet").to_pylist()))
    assert found[0] == found[1]


def test_one_in_so_many_is_parsed_and_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten of 500 items have other content in the same revision."""
    monkeypatch.setattr(extract, "CHECKED", 5)

    def lines(changed: int) -> list[str]:
        return [
            line_of(item(n, {"P5": [statement(value(1), id=f"Q{n}$a")] * (1 + (n <= changed))}), n)
            for n in range(1, 501)
        ]

    extracted(tmp_path, "prev", lines(0))
    found = {}
    for name, changed in (("same", 0), ("other", 500)):
        found[name] = total(extracted(tmp_path, name, lines(changed), "prev"), "checked")
    assert 60 < found["same"]["items"] < 140
    assert found["same"]["differ"] == 0
    assert found["other"]["differ"] == found["other"]["items"] > 60


BEFORE, WANTED = incremental.Base("before", 2, "x"), incremental.Base("wanted", 0, "y")
FINISHED: dict[str, tuple[Callable[[Path], object], incremental.Base, int | None]] = {
    "nothing": (lambda path: path.unlink(), WANTED, None),
    "damaged": (lambda path: path.write_text("{"), WANTED, None),
    "no object": (lambda path: path.write_text("[]"), WANTED, None),
    "of another shape": (lambda path: path.write_text('{"plan": 1, "base": "before"}'), WANTED, None),
    "as it was": (lambda path: path.touch(), BEFORE, 3),
}


@pytest.mark.parametrize("case", FINISHED)
def test_a_finished_extract_says_which_base_it_was_read_with(tmp_path: Path, case: str) -> None:
    spoil, expected, generation = FINISHED[case]
    task = extract.ExtractTask(0, "/a/d.json.gz", 0, None, "enwiki", "en", False)
    incremental.finish(tmp_path, [task], BEFORE)
    spoil(tmp_path / "finished.json")
    elsewhere = extract.ExtractTask(0, "/b/d.json.gz", 0, None, "enwiki", "en", False)
    assert incremental.finished_with(tmp_path, [elsewhere], WANTED) == expected
    longer = extract.ExtractTask(0, "/a/d.json.gz", 0, 99, "enwiki", "en", False)
    assert incremental.finished_with(tmp_path, [longer, task], WANTED) == WANTED
    base = incremental.base_of(tmp_path)
    assert (base.generation if base else None) == generation


def test_after_some_generations_all_is_read_anew(tmp_path: Path) -> None:
    task = extract.ExtractTask(0, "/a/d.json.gz", 0, None, "enwiki", "en", False)
    base: incremental.Base | None = None
    made = []
    while True:
        incremental.finish(tmp_path, [task], base)
        base = incremental.base_of(tmp_path)
        if base is None:
            break
        made.append(base.made)
    assert len(made) == len(set(made)) == incremental.GENERATIONS
    incremental.finish(tmp_path, [task], None)
    base = incremental.base_of(tmp_path)
    assert base is not None and base.made == made[0]  # the same whenever it is made


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
    sources = find_sources(dumps, interval)
    manifest = build(
        sources, out, work or out.with_name("work"), BuildOptions(unchanged_fraction=1.0), Machine()
    ).content
    lasting = {key: manifest[key] for key in manifest if key != "run"}
    return contents(out, "*.parquet") | {"manifest": lasting, "run": manifest["run"]}


def without_run(build: dict[str, Any]) -> dict[str, Any]:
    return {key: build[key] for key in build if key != "run"}


@pytest.fixture(scope="module")
def full(dumps: Path, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Builds of both months that parse every item."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RevisionIndex, "of", lambda _self, _item: 0)
        folders = [tmp_path_factory.mktemp("full") for _ in MONTHS]
        return [
            without_run(built(dumps, folder / "out", month)) for folder, month in zip(folders, MONTHS, strict=True)
        ]


def test_a_build_gives_the_same_bytes_whatever_was_carried_over(
    dumps: Path, full: list[dict[str, Any]], tmp_path: Path
) -> None:
    first = built(dumps, tmp_path / "first", MONTHS[0])
    assert "wikidata-carry recent" in first["run"]["stages"]
    assert without_run(first) == full[0]
    second = built(dumps, tmp_path / "second", MONTHS[1])  # on what the first carried over
    assert {"wikidata-carry prev", "wikidata-carry recent"} <= second["run"]["stages"].keys()
    assert without_run(second) == full[1]
    # on a finished extract, though the one it was read with is gone, and with it every way to read it so again
    [gone] = (tmp_path / "work" / "extracts").glob(f"wikidata-{DATES[0]}-*")
    shutil.rmtree(gone)
    shutil.rmtree(next((tmp_path / "work").glob(f"enwiki-{MONTHS[1].name}-*")))
    assert without_run(built(dumps, tmp_path / "third", MONTHS[1])) == full[1]


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
    assert "wikidata-carry recent" not in again["run"]["stages"]
    assert without_run(again) == full[0]


def test_where_one_revision_says_two_things_all_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(extract, "CHECKED", 1)
    dumps = tmp_path / "dumps"
    for month, date in enumerate(("20211101", "20211201")):
        multistream(articles_file(dumps, date), [page(1, "A", "A is here.", revision_id=1 + month)])
        claims = {"P5": [statement(value(2 + month), id="Q1$a")]}
        lines = [line_of(item(1, claims, "A", "A"), 7), line_of(item(2, {}, "B"), 8)]
        write_dump(wikidata_file(dumps, date), lines)
    manifest = build(find_sources(dumps, MONTHS[0]), tmp_path / "out", tmp_path / "work").content
    assert "1 items differ in the same revision" in capsys.readouterr().err
    counts = manifest["counts"]["extracts"]["wikidata-extract recent"]
    assert counts["statements"] == {"dropped": {}, "facts": 1, "not_best_rank": 0}
    assert "wikidata-carry recent" not in manifest["run"]["stages"]
    [recent] = (tmp_path / "work" / "extracts").glob("wikidata-20211201-*")
    assert facts(recent) == [(1, 3, 0)]


def test_a_base_that_is_made_anew_in_other_layers_changes_nothing(
    dumps: Path, full: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last month's extract is made of the one before, which is then lost, and made of the first month's."""
    work = tmp_path / "work"
    assert without_run(built(dumps, tmp_path / "last", MONTHS[1])) == full[1]
    [middle] = (work / "extracts").glob(f"wikidata-{DATES[1]}-*")
    shutil.rmtree(middle)
    assert without_run(built(dumps, tmp_path / "first", MONTHS[0])) == full[0]
    for sizes in ({}, {"RANGE": 9000, "_MAX_UNCHANGED": 50}):  # in other ranges, all is read again
        shutil.rmtree(next(work.glob(f"enwiki-{MONTHS[1].name}-*")))
        for name, size in sizes.items():
            monkeypatch.setattr(extract, name, size)
        again = built(dumps, tmp_path / f"again{len(sizes)}", MONTHS[1])
        assert without_run(again) == full[1]
        extracted = again["run"]["stages"]["wikidata-extract recent"]
        assert (extracted["kept"] == extracted["tasks"]) == (not sizes)
        assert (extracted["tasks"] > 1) == bool(sizes)


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
    """None of its items could be reused, and every month would link all files of the months before."""
    stages = of_two_months(tmp_path / "none", lambda _number, _month: 0)
    assert {"wikidata-index", "wikidata-extract recent"} <= stages.keys()
    assert "wikidata-carry recent" not in stages
    assert not list((tmp_path / "none" / "work" / "extracts").glob("wikidata-*/carried"))
    assert "wikidata-carry recent" in of_two_months(
        tmp_path / "one", lambda number, month: (number == 1) * (8 + month)
    )


def test_the_more_items_the_more_tasks_though_none_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task also holds the numbers of the base's items that changed."""
    monkeypatch.setattr(unchanged_items, "ITEMS_A_TASK", 1)
    stages = of_two_months(tmp_path, lambda number, month: number + 10 * month)
    assert [stages[name]["tasks"] for name in ("wikidata-index", "wikidata-carry recent")] == [5, 5]
