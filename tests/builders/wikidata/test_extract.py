"""A Wikidata dump as Parquet: the same rows however it is compressed and cut, in buckets."""

import bz2
import gzip
import hashlib
import json
import random
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from temporalwiki.builders.snapshot import Dump
from temporalwiki.builders.stages import Report, total
from temporalwiki.builders.wikidata import buckets, extract, tables

from tiny_dumps import item, property_, statement, time, value

ENTITIES = [
    *(
        item(
            number,
            {
                "P31": [statement(value(5), id=f"Q{number}$a"), statement(value(6), "preferred", id=f"Q{number}$b")],
                "P54": [statement(value(number + 1), id=f"Q{number}$c", P582=[time("+2015-07-04T00:00:00Z")])],
                "P569": [statement(time("+1990-01-01T00:00:00Z"))],
            },
            f"Item {number} é漢",
            f"Page {number}" if number % 4 else None,
            lastrevid=number * 3,
        )
        for number in range(1, 150)
    ),
    property_(54, "member of"),
    {"type": "lexeme", "id": "L1"},
    {"id": "Q6", "missing": ""},
]
TEXT = ("[\n" + ",\n".join(json.dumps(entity, ensure_ascii=False) for entity in ENTITIES) + "\n]\n").encode()
COMPRESS: dict[str, Callable[[bytes], bytes]] = {"gz": gzip.compress, "bz2": bz2.compress}


def run_all(path: Path, folder: Path) -> list[Report]:
    dump = Dump("20211101", (path,))
    folder.mkdir()
    return [extract.run(task, folder) for task in extract.plan(dump, "enwiki", "en", False)]


def rows(folder: Path, table: str) -> pa.Table:
    """All rows of a table, by bucket and then in the order of the dump, without ``seen``."""
    found = pa.concat_tables([pq.read_table(path) for path in tables.files(folder, table)])
    if "bucket" in found.column_names:
        order = sorted(range(found.num_rows), key=found["bucket"].to_pylist().__getitem__)
        found = found.take(pa.array(order))
    return found.drop_columns("seen").combine_chunks()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Report]]:
    folder = tmp_path_factory.mktemp("whole")
    path = folder / "d.json.gz"
    path.write_bytes(gzip.compress(TEXT))
    return folder / "out", run_all(path, folder / "out")


def test_the_rows_of_an_item(whole: tuple[Path, list[Report]]) -> None:
    folder, reports = whole
    facts = pq.read_table(tables.files(folder, "facts")[0]).to_pylist()
    common: dict[str, Any] = {"bucket": 2, "s": 66, "start_day": None, "point_day": None, "seen": 66}
    end, no_end = {"end_day": 20150704}, {"end_day": None}
    assert [row for row in facts if row["s"] == 66] == [
        common | no_end | {"p": 31, "o": 5, "best": False, "rank": "normal", "statement_id": "Q66$a"},
        common | no_end | {"p": 31, "o": 6, "best": True, "rank": "preferred", "statement_id": "Q66$b"},
        common | end | {"p": 54, "o": 67, "best": True, "rank": "normal", "statement_id": "Q66$c"},
    ]
    title = hashlib.blake2b(b"Page 66", digest_size=16).digest()
    [entity] = [r for r in pq.read_table(tables.files(folder, "entities")[0]).to_pylist() if r["s"] == 66]
    dropped = dict.fromkeys(("bad_property", "deprecated", "no_value", "unexpected_structure", "unknown_rank"), 0)
    assert entity == {
        "bucket": 2, "s": 66, "lastrevid": 198, "label": "Item 66 é漢", "aliases": None, "title": title,
        "class": 6, "seen": 66,
        "facts": 2, "different_facts": 2, "not_best_rank": 1, "not_an_item": 1, **dropped,
    }  # fmt: skip
    assert total(reports, "entities") == {"dropped": {"lexeme": 1, "missing": 1}, "items": 149, "properties": 1}
    assert total(reports, "statements") == {"dropped": {"not_an_item": 149}, "facts": 298, "not_best_rank": 149}
    assert total(reports, "bytes") == {"json": len(TEXT)}


@pytest.mark.parametrize("kind", COMPRESS)
@pytest.mark.parametrize("streams", [1, 2, 40])
def test_compression_and_cuts_change_no_row(
    whole: tuple[Path, list[Report]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, streams: int
) -> None:
    """Streams end in the middle of lines, and of characters."""
    bounds = [0, *sorted(random.Random(streams).sample(range(1, len(TEXT)), streams - 1)), len(TEXT)]
    path = tmp_path / f"d.json.{kind}"
    path.write_bytes(b"".join(COMPRESS[kind](TEXT[a:b]) for a, b in pairwise(bounds)))
    monkeypatch.setattr(extract, "RANGE", 100)
    reports = run_all(path, tmp_path / "out")
    assert len(reports) == streams
    for table in ("facts", "entities", "properties"):
        assert rows(tmp_path / "out", table) == rows(whole[0], table)
    for part in ("entities", "statements", "bytes", "closed"):
        assert total(reports, part) == total(whole[1], part)


@pytest.mark.parametrize("cuts", [(), (3,), (6,), (10,), (3, 8, 10), (7, 8, 9, 10), range(1, 15)])
def test_each_line_is_read_once_with_its_place(tmp_path: Path, cuts: Sequence[int]) -> None:
    """A line that begins in a range, or exactly at its end, belongs to it. Places count from its start."""
    text = b"[\nab\n\ncdefghi\n]"
    starts, ends = [0, *cuts], [*cuts, len(text)]
    streams = [gzip.compress(text[start:end]) for start, end in zip(starts, ends, strict=True)]
    (path := tmp_path / "d.json.gz").write_bytes(b"".join(streams))
    offsets = list(accumulate(map(len, streams), initial=0))
    found = []
    for at, start in enumerate(starts):
        end = None if at == len(cuts) else offsets[at + 1]
        task = extract.EntityExtractTask(at, str(path), offsets[at], end, "enwiki", "en", False)
        found += [(start + place, line) for place, line in extract.lines(task)]
    assert found == [(0, b"["), (2, b"ab"), (5, b""), (6, b"cdefghi"), (14, b"]")]


@pytest.mark.parametrize(("chunk", "held"), [(1, 1), (7, 50), (50, 7)])
def test_how_much_is_held_in_memory_changes_no_row(
    whole: tuple[Path, list[Report]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int, held: int
) -> None:
    monkeypatch.setattr(extract, "_MAX_VALUES", chunk)
    monkeypatch.setattr(tables, "MAX_ROWS", held)
    (tmp_path / "d.json.gz").write_bytes(gzip.compress(TEXT))
    assert total(run_all(tmp_path / "d.json.gz", tmp_path / "out"), "statements") == total(whole[1], "statements")
    for table in ("facts", "entities", "properties"):
        assert rows(tmp_path / "out", table) == rows(whole[0], table)


@pytest.mark.parametrize(("group_rows", "few"), [(1, 0), (14, 0), (14, 1000), (2000, 1000)])
def test_a_row_group_says_which_buckets_it_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group_rows: int, few: int
) -> None:
    """A row group has one bucket or some small ones, and reading any buckets gives each of their rows once."""
    monkeypatch.setattr(tables, "GROUP_ROWS", group_rows)
    monkeypatch.setattr(tables, "SINGLE_FILE_ROWS", few)
    (tmp_path / "d.json.gz").write_bytes(gzip.compress(TEXT))
    run_all(tmp_path / "d.json.gz", tmp_path / "out")
    for table in ("facts", "entities"):
        paths = tables.files(tmp_path / "out", table)
        assert len(paths) == (1 if few else tables.BUCKETS // tables.FILE_BUCKETS)
        found: list[int] = []
        for path in paths:
            file = pq.ParquetFile(path)
            column = file.schema_arrow.get_field_index("bucket")
            for group in range(file.num_row_groups):
                statistics = file.metadata.row_group(group).column(column).statistics
                held = sorted(set(file.read_row_group(group)["s"].to_numpy() % tables.BUCKETS))
                assert (statistics.min, statistics.max) == (held[0], held[-1])
                assert len(held) == 1 or file.metadata.row_group(group).num_rows <= group_rows
                assert all(tables._can_have_buckets(path.name, bucket, bucket + 1) for bucket in held)
                found += held
        assert sorted(found) == list(range(tables.BUCKETS))
        everything = pa.concat_tables([pq.read_table(path) for path in paths])
        for first, end in ((0, 64), (0, 3), (3, 11), (7, 8), (8, 9), (62, 64)):
            read = [*buckets.read(tmp_path / "out", table, first, end, everything.column_names)]
            of_bucket = everything["bucket"].to_numpy()
            assert pa.concat_tables(read) == everything.filter(pa.array((of_bucket >= first) & (of_bucket < end)))


def test_files_are_those_parsed_and_those_copied(tmp_path: Path) -> None:
    schema = pa.schema({"s": pa.int64()})
    for name, count in (("b-00001", 1), ("b-00000", 2), ("copied/b-00000", 1), ("copied/c-0", 1)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        pq.write_table(pa.table({"s": [1] * count}, schema), tmp_path / f"{name}.parquet")
    (tmp_path / ".b-00003.parquet.1.part").write_bytes(b"")
    names = [str(path.relative_to(tmp_path)) for path in tables.files(tmp_path, "b")]
    assert names == ["b-00000.parquet", "b-00001.parquet", "copied/b-00000.parquet"]
