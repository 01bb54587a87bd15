"""A diff of an extract and its base, which share rows, is the diff of two full extracts."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temporalwiki.builders import incremental
from temporalwiki.builders.parquet import ParquetWriter, read_rows
from temporalwiki.builders.snapshot import Dump
from temporalwiki.builders.stages import Report
from temporalwiki.builders.wikidata import buckets, extract, fact_diff, labels, tables, unchanged_items
from temporalwiki.builders.wikipedia import extract as wiki_extract
from temporalwiki.builders.wikipedia.page_props import PAGE_ITEMS

from a_stage import extract_wikidata
from tiny_dumps import articles_file, item, multistream, page, property_, statement, time, value

ITEMS = range(1, 9)
Month = list[tuple[int, int]]  # numbers and revisions of items, in a dump's order


def write_dump(path: Path, months_items: Month, contents: dict[tuple[int, int], Any]) -> Path:
    lines = [json.dumps(property_(5, "knows") | {"lastrevid": 9})]
    for at, (number, revision) in enumerate(months_items):
        # without a revision, an item can say another thing every time
        claims, label, titled = contents[number, revision if revision else -(at % 3)]
        end = {"lastrevid": revision, "modified": "2021-10-01T00:00:00Z"}
        lines.append(
            json.dumps(item(number, claims, label, f"T{number}" if titled else None) | end, separators=(",", ":"))
        )
    members = ["[\n", *(f"{line},\n" for line in lines[:-1]), f"{lines[-1]}\n]\n"]
    path.write_bytes(b"".join(gzip.compress(member.encode()) for member in members))
    return path


def compared(
    place: Path,
    prev: Path,
    recent: Path,
    articles: Path,
    fraction: float,
    page_items: Path | None = None,
) -> tuple[list[list[dict[str, Any]]], list[Report], list[bytes]]:
    """Rows and report of every task of stage wikidata-diff, and the files of stage wikidata-labels."""
    [whole] = fact_diff.plan(
        0,
        prev=str(prev),
        recent=str(recent),
        labels=str(place / "labels"),
        prev_articles=str(articles),
        recent_articles=str(articles),
        page_items=str(page_items) if page_items else None,
        prev_date=20211101,
        recent_date=20211129,
        prev_text=20211129,
        recent_text=20211129,
        unchanged_fraction=fraction,
        seed=0,
    )
    tasks = [replace(whole, end=3), replace(whole, index=1, first=3)]
    (place / "labels").mkdir(parents=True)
    for task in labels.plan(tasks):
        labels.run(task, place / "labels")
    reports = [fact_diff.run(task, place / "diff") for task in tasks]
    for report in reports:
        report.pop("wrote", None)
    rows = [list(read_rows([place / "diff" / f"candidates-{task.index:05d}.parquet"])) for task in tasks]
    return rows, reports, [path.read_bytes() for path in sorted((place / "labels").glob("*.arrow"))]


@st.composite
def statements(draw: st.DrawFn) -> dict[str, Any]:
    end = draw(st.sampled_from([None, None, "+2021-11-15T00:00:00Z", "+2020-01-01T00:00:00Z"]))
    qualifiers = {"P582": [time(end)]} if end else {}
    rank = draw(st.sampled_from(["normal", "normal", "preferred", "deprecated"]))
    return statement(value(draw(st.integers(1, 5))), rank, id=f"Q1${draw(st.integers(0, 99))}", **qualifiers)


CLAIMS = st.dictionaries(st.sampled_from(["P5", "P31"]), st.lists(statements(), min_size=1, max_size=3), max_size=2)
# number and revision determine the whole item, as in Wikidata; revisions below 1 are missing ones
CONTENTS = st.fixed_dictionaries(
    {
        (n, revision): st.tuples(CLAIMS, st.sampled_from([None, "a", "b"]), st.booleans())
        for n in ITEMS
        for revision in range(-2, 3)
    }
)
MONTH = st.lists(st.tuples(st.sampled_from(ITEMS), st.integers(0, 2)), max_size=12)


@settings(max_examples=8)
@given(
    months=st.lists(MONTH, min_size=4, max_size=4),
    contents=CONTENTS,
    fraction=st.sampled_from([0.0, 0.3, 1.0]),
    rows=st.sampled_from([1, 4, 100_000]),
    articles_of=st.none() | st.dictionaries(st.integers(1, 3), st.sampled_from(ITEMS), max_size=3),
)
def test_a_diff_of_linked_extracts_is_that_of_full_ones(
    tmp_path_factory: pytest.TempPathFactory,
    months: list[Month],
    contents: dict[tuple[int, int], Any],
    fraction: float,
    rows: int,
    articles_of: dict[int, int] | None,
) -> None:
    """Items are new, gone, back, changed, held twice or without a revision, over three generations.

    Their articles are found by title, or in a table that also has items without a title.
    """
    place = tmp_path_factory.mktemp("m")
    page_items = None
    if articles_of is not None:
        page_items = place / "page_items.parquet"
        with ParquetWriter(page_items, PAGE_ITEMS) as out:
            out.write_table(pa.table([list(articles_of), list(articles_of.values())], schema=PAGE_ITEMS))
    pages = multistream(articles_file(place, "20211101"), [page(i, f"T{i}", "text") for i in (1, 2, 3)])
    for task in wiki_extract.plan(Dump("x", (pages,)), "enwiki", False):
        wiki_extract.run(task, place / "articles")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(extract, "RANGE", 600)
        patch.setattr(extract, "CHECKED", 2)
        patch.setattr(tables, "MAX_ROWS", 5)
        patch.setattr(extract, "_MAX_UNCHANGED", 5)
        patch.setattr(unchanged_items, "ITEMS_A_TASK", 4)
        patch.setattr(buckets, "ROWS", rows)
        full: list[Path] = []
        layered: list[Path] = []
        for month, items in enumerate(months):
            dump = write_dump(place / f"{month}.json.gz", items, contents)
            full.append(place / f"full{month}")
            layered.append(place / str(month))
            extract_wikidata(dump, full[-1])
            extract_wikidata(dump, layered[-1], layered[-2] if month else None)
        for prev, recent in ((1, 2), (2, 3), (1, 3)):
            name = f"{prev}-{recent}"
            with_base = buckets.changes(layered[prev], layered[recent], 0, tables.BUCKETS)
            assert (with_base is not None) == (recent == prev + 1)
            assert buckets.changes(full[prev], full[recent], 0, tables.BUCKETS) is None
            options = (place / "articles", fraction, page_items)
            found = compared(place / f"l{name}", layered[prev], layered[recent], *options)
            twice = compared(place / f"f{name}", full[prev], full[recent], *options)
            assert found == twice


def test_a_base_of_the_last_generation_is_compared_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next dump is read in full, so the two extracts share no files; the diff is the same."""
    monkeypatch.setattr(incremental, "GENERATIONS", 1)
    pages = multistream(articles_file(tmp_path, "20211101"), [page(1, "T1", "text")])
    for task in wiki_extract.plan(Dump("x", (pages,)), "enwiki", False):
        wiki_extract.run(task, tmp_path / "articles")

    def claims(objects: list[int]) -> dict[str, Any]:
        return {"P5": [statement(value(o), "normal", id=f"Q1${o}") for o in objects]}

    months: list[Month] = [[(1, 1), (2, 1), (3, 1)], [(1, 1), (2, 2), (3, 1)], [(1, 2), (2, 2), (3, 1), (4, 1)]]
    contents = {(n, revision): (claims([n, 10 + revision]), f"L{n}", True) for n in range(1, 5) for revision in (1, 2)}
    layered: list[Path] = []
    full: list[Path] = []
    for month, items in enumerate(months):
        dump = write_dump(tmp_path / f"{month}.json.gz", items, contents)
        full.append(tmp_path / f"full{month}")
        layered.append(tmp_path / str(month))
        extract_wikidata(dump, full[-1])
        extract_wikidata(dump, layered[-1], layered[-2] if month else None)
    bases = [incremental.base_of(folder) for folder in layered]
    assert [base.generation if base else None for base in bases] == [0, None, 0]
    with_layers = [buckets.changes(a, b, 0, tables.BUCKETS) is not None for a, b in pairwise(layered)]
    assert with_layers == [True, False]
    for prev, recent in pairwise(range(3)):
        name = f"{prev}{recent}"
        found = compared(tmp_path / f"l{name}", layered[prev], layered[recent], tmp_path / "articles", 1.0)
        assert found == compared(tmp_path / f"f{name}", full[prev], full[recent], tmp_path / "articles", 1.0)
        assert any(found[0])


@settings(max_examples=30)
@given(
    readings=st.lists(st.tuples(st.integers(0, 20), st.integers(1, 3), st.booleans()), min_size=1, max_size=12),
    asked=st.sets(st.integers(0, 20), max_size=4),
    group_rows=st.sampled_from([1, 4, 2000]),
    held=st.integers(1, 12),
)
def test_the_items_asked_for_have_the_extra_columns(
    tmp_path_factory: pytest.TempPathFactory,
    readings: list[tuple[int, int, bool]],
    asked: set[int],
    group_rows: int,
    held: int,
) -> None:
    """Records of (item, rows, untitled): an extra column has the written values, or nulls for other items."""
    folder = tmp_path_factory.mktemp("x")
    written: dict[int, list[str]] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "GROUP_ROWS", group_rows)
        patch.setattr(buckets, "ROWS", held)
        with tables.BucketWriter(folder, "facts", "00000") as out:
            for number, (subject, rows, apart) in enumerate(readings):
                columns = {name: pa.nulls(rows, tables.FACTS.field(name).type) for name in tables.FACTS.names}
                ids = [f"{number}${row}" for row in range(rows)]
                written.setdefault(subject, []).extend(ids)
                columns |= {"statement_id": pa.array(ids), "best": pa.array([True] * rows)}
                out.add(np.full(rows, subject), untitled=np.full(rows, apart), **columns)
        details = buckets.ExtraColumns(("statement_id",), np.array(sorted(asked), np.int64))
        read = pa.concat_tables(buckets.read(folder, "facts", 0, tables.BUCKETS, ("s", "best"), details))
    assert read.column_names == ["s", "best", "statement_id"]
    assert read.num_rows == sum(rows for _, rows, _ in readings)
    for subject, ids in written.items():
        found = set(read.filter(pc.equal(read["s"], subject))["statement_id"].to_pylist())
        assert found == set(ids) or (subject not in asked and found - {None} <= set(ids))


@settings(max_examples=30)
@given(
    readings=st.lists(st.tuples(st.integers(1, 6), st.integers(1, 9)), min_size=1, max_size=12),
    group=st.integers(1, 5),
    held=st.integers(1, 12),
)
def test_no_record_is_split_wherever_row_groups_end(
    tmp_path_factory: pytest.TempPathFactory, readings: list[tuple[int, int]], group: int, held: int
) -> None:
    """Records of (bucket, rows) in one file, whose row groups may end within a record."""
    folder = tmp_path_factory.mktemp("x")
    of_bucket = sorted((bucket, tables.BUCKETS * n + bucket, rows) for n, (bucket, rows) in enumerate(readings))
    rows_of = {subject: rows for _, subject, rows in of_bucket}
    columns = {name: pa.nulls(sum(rows_of.values()), tables.FACTS.field(name).type) for name in tables.FACTS.names}
    columns["bucket"] = pa.array([b for b, _, rows in of_bucket for _ in range(rows)], pa.int32())
    columns["s"] = pa.array([subject for _, subject, rows in of_bucket for _ in range(rows)], pa.int64())
    table = pa.table(columns, schema=tables.FACTS)
    with ParquetWriter(folder / "facts-00000-0.parquet", tables.FACTS, rows=group) as out:
        for number in sorted({bucket for bucket, _ in readings}):
            out.write_table(table.filter(pc.equal(table["bucket"], number)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(buckets, "ROWS", held)
        pieces = [rows["s"].to_pylist() for rows in buckets.read(folder, "facts", 0, tables.BUCKETS, ("s",))]
    assert [s for piece in pieces for s in piece] == columns["s"].to_pylist()
    for piece in pieces:
        assert {s: piece.count(s) for s in piece} == {s: rows_of[s] for s in piece}
