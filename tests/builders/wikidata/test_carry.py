"""An extract that copies what the month before has of unchanged items holds what a full reading holds."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temporalwiki.builders.build import BuildOptions, build, find_sources
from temporalwiki.builders.engine import Machine, Report, total
from temporalwiki.builders.errors import InputError
from temporalwiki.builders.snapshot import Dump, Interval
from temporalwiki.builders.wikidata import carry, extract
from temporalwiki.builders.wikidata.revisions import Revisions
from temporalwiki.builders.world import World, write_world

from tiny_dumps import articles_file, item, multistream, page, property_, statement, value, wikidata_file

Json = dict[str, Any]


@pytest.fixture(autouse=True, scope="module")
def no_power_cuts() -> Iterator[None]:
    """Files are not forced to the disk, which takes longer than all else."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _file: None)
        yield


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


def read(path: Path, folder: Path, base: str | None = None) -> list[Report]:
    """Extract a dump; with the name of a base, carry over what that has. Returns the reports of all tasks."""
    (folder / "carried").mkdir(parents=True)
    tasks = extract.plan(Dump("20211101", (path,)), "enwiki", "en", False)
    if base is None:
        return [extract.run(task, folder) for task in tasks]
    for task in carry.plan(0, base):
        carry.index(task, folder.parent / base / "revisions")
    reports = [extract.run(extract.ExtractTask(**{**vars(task), "base": base}), folder) for task in tasks]
    kept = total(reports, "kept")["items"]
    return reports + [carry.run(task, folder / "carried") for task in carry.plan(kept, base)]


def rows(folder: Path, table: str) -> list[Json]:
    """All rows by reading of an item; the statements of a reading stay in their order."""
    found = [row for path in extract.files(folder, table) for row in pq.read_table(path).to_pylist()]
    return sorted(found, key=lambda row: (row.get("s", 0), row["seen"]))


def same(one: Path, other: Path) -> bool:
    return all(rows(one, table) == rows(other, table) for table in ("facts", "entities", "properties"))


STATEMENTS = st.lists(
    st.builds(
        lambda object, rank, id: statement(value(object), rank, id=f"Q1${id}"),
        st.integers(1, 9),
        st.sampled_from(["normal", "preferred", "deprecated"]),
        st.integers(0, 99),
    ),
    max_size=4,
)
# what a revision of an item says: number and revision decide all of it, as in Wikidata
CONTENT = st.tuples(STATEMENTS, st.sampled_from([None, "a", "\\", '","lastrevid":7,"modified":"x"},', "漢"]))
ITEMS = st.lists(st.tuples(st.integers(1, 8), st.integers(0, 3), st.booleans()), max_size=12)


@settings(max_examples=30, deadline=None)
@given(prev=ITEMS, recent=ITEMS, contents=st.lists(CONTENT, min_size=32, max_size=32), per_member=st.integers(1, 9))
def test_it_holds_what_a_full_reading_holds(
    tmp_path_factory: pytest.TempPathFactory,
    prev: list[tuple[int, int, bool]],
    recent: list[tuple[int, int, bool]],
    contents: list[Any],
    per_member: int,
) -> None:
    """Items are new, gone, changed, held twice, redirects or without a revision."""
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
        patch.setattr(carry, "ITEMS_A_TASK", 4)
        patch.setattr(extract, "_CHUNK", 3)
        patch.setattr(extract, "ROWS", 5)
        read(dump("prev", prev), folder / "prev")
        path = dump("recent", recent)
        full, carried = read(path, folder / "full"), read(path, folder / "recent", "prev")
        assert same(folder / "recent", folder / "full")
        for part in ("entities", "statements", "bytes", "closed"):
            assert total(carried, part) == total(full, part)
        assert total(carried, "checked")["differ"] == 0
        newest = dict(sorted((number, revision) for number, revision, redirect in prev if revision or not redirect))
        unchanged = [number for number, revision, _ in recent if revision and newest.get(number) == revision]
        assert total(carried, "kept") == {"items": len(unchanged)}
        # what was carried over is as good a base as what was read
        read(path, folder / "third", "recent")
        assert same(folder / "third", folder / "full")


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
    "a quote inside the tail": (HEAD + TAIL.replace("2021", '\\"2021'), False),
}


@pytest.mark.parametrize("case", LINES)
def test_only_a_line_of_the_usual_shape_is_not_parsed(tmp_path: Path, case: str) -> None:
    line, kept = LINES[case]
    read(write_dump(tmp_path / "prev.json.gz", [HEAD + TAIL]), tmp_path / "prev")
    reports = read(write_dump(tmp_path / "recent.json.gz", [HEAD.replace("Q1", "Q9") + "}", line]),
                   tmp_path / "recent", "prev")  # fmt: skip
    assert total(reports, "kept") == {"items": int(kept)}
    read(tmp_path / "recent.json.gz", tmp_path / "full")
    assert same(tmp_path / "recent", tmp_path / "full")


def test_one_in_so_many_is_parsed_and_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 500 items 10 say another thing in the same revision."""
    monkeypatch.setattr(extract, "CHECKED", 5)

    def lines(changed: int) -> list[str]:
        return [
            line_of(item(n, {"P5": [statement(value(1), id=f"Q{n}$a")] * (1 + (n <= changed))}), n)
            for n in range(1, 501)
        ]

    read(write_dump(tmp_path / "prev.json.gz", lines(0)), tmp_path / "prev")
    found = {}
    for name, changed in (("same.json.gz", 0), ("other.json.gz", 500)):
        reports = read(write_dump(tmp_path / name, lines(changed)), tmp_path / name.split(".")[0], "prev")
        found[name] = total(reports, "checked")
    assert 60 < found["same.json.gz"]["items"] < 140
    assert found["same.json.gz"]["differ"] == 0
    assert found["other.json.gz"]["differ"] == found["other.json.gz"]["items"] > 60


FINISHED: dict[str, tuple[Callable[[Path], object], str | None]] = {
    "nothing": (lambda path: path.unlink(), "wanted"),
    "damaged": (lambda path: path.write_text("{"), "wanted"),
    "no object": (lambda path: path.write_text("[]"), "wanted"),
    "as it was": (lambda path: path.touch(), "before"),
}


@pytest.mark.parametrize("case", FINISHED)
def test_a_finished_extract_says_which_base_it_was_read_with(tmp_path: Path, case: str) -> None:
    spoil, expected = FINISHED[case]
    task = extract.ExtractTask(0, "/a/d.json.gz", 0, None, "enwiki", "en", False)
    carry.finish(tmp_path, [task], "before")
    spoil(tmp_path / "finished.json")
    elsewhere = extract.ExtractTask(0, "/b/d.json.gz", 0, None, "enwiki", "en", False)
    assert carry.finished_with(tmp_path, [elsewhere], "wanted") == expected
    longer = extract.ExtractTask(0, "/a/d.json.gz", 0, 99, "enwiki", "en", False)
    assert carry.finished_with(tmp_path, [longer, task], "wanted") == "wanted"


# Whole builds.

MONTHS = Interval("enwiki", "20211101", "20211201"), Interval("enwiki", "20211201", "20220101")
DATES = ("20211101", "20211129", "20211227")


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    dumps = tmp_path_factory.mktemp("dumps")
    world = World(people=30, dates=("20211101", "20211201", "20220101"), wikidata_dates=DATES)
    write_world(dumps, world)
    return dumps


def built(dumps: Path, out: Path, interval: Interval, work: Path | None = None) -> dict[str, Any]:
    """The files of a build and what its manifest says, but of the run."""
    sources = find_sources(dumps, interval)
    manifest = build(sources, out, work or out.with_name("work"), BuildOptions(unchanged_fraction=1.0), Machine())
    files = {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*.parquet"))}
    return files | {"manifest": {key: manifest[key] for key in manifest if key != "run"}, "run": manifest["run"]}


def without_run(build: dict[str, Any]) -> dict[str, Any]:
    return {key: build[key] for key in build if key != "run"}


@pytest.fixture(scope="module")
def full(dumps: Path, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Builds of both months in which every item is parsed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Revisions, "of", lambda _self, _item: 0)
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
        patch.setattr(carry, "run", killed)
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
        multistream(articles_file(dumps, date), [page(1, "A", "A is here.", revision_id=1)])
        claims = {"P5": [statement(value(2 + month), id="Q1$a")]}
        lines = [line_of(item(1, claims, "A", "A"), 7), line_of(item(2, {}, "B"), 8)]
        write_dump(wikidata_file(dumps, date), lines)
    manifest = build(find_sources(dumps, MONTHS[0]), tmp_path / "out", tmp_path / "work")
    assert "1 items differ in the same revision" in capsys.readouterr().err
    counts = manifest["counts"]["extracts"]["wikidata-extract recent"]
    assert counts["statements"] == {"dropped": {}, "facts": 1, "not_best_rank": 0}
    assert "wikidata-carry recent" not in manifest["run"]["stages"]
    [recent] = (tmp_path / "work" / "extracts").glob("wikidata-20211201-*")
    assert [row["o"] for row in rows(recent, "facts")] == [3]
