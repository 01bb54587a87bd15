"""Parquet files are whole or absent."""

import errno
import gc
import os
import resource
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temporalwiki.base.errors import InputError
from temporalwiki.builders import parquet
from temporalwiki.builders.parquet import KeptFile, ParquetWriter, read_rows, read_table, rows_at_once

SCHEMA = pa.schema({"id": pa.int64(), "text": pa.string()})
ROWS = [{"id": i, "text": "x" * i} for i in range(1, 11)]


def write(path: Path, **limits: int) -> None:
    with ParquetWriter(path, SCHEMA, **limits) as out:
        for row in ROWS:
            out.write(row, size=row["id"])  # type: ignore[arg-type]


def test_rows_come_back_and_groups_end_at_rows_or_size(tmp_path: Path) -> None:
    with ParquetWriter(tmp_path / "f", SCHEMA):
        assert not (tmp_path / "f").exists()
    assert pq.read_schema(tmp_path / "f").names == ["id", "text"]
    assert list(read_rows([tmp_path / "f"])) == []
    for name, limits, groups in (
        ("rows", {"rows": 4}, [(1, 4), (5, 8), (9, 10)]),
        ("size", {"size": 15}, [(1, 5), (6, 8), (9, 10)]),
    ):
        path = tmp_path / name
        write(path, **limits)
        assert list(read_rows([path], batch=3)) == ROWS
        with KeptFile(path) as file:
            assert [file.group_range(group, "id") for group in range(file.num_row_groups)] == groups


def test_a_row_may_be_a_tuple_and_columns_that_hardly_repeat_are_written_plainly(tmp_path: Path) -> None:
    write(tmp_path / "dicts")
    for name, plain in (("tuples", ()), ("plain", ("text",))):
        with ParquetWriter(tmp_path / name, SCHEMA, plain=plain) as out:
            for row in ROWS:
                out.write((row["id"], row["text"]))
    assert (tmp_path / "dicts").read_bytes() == (tmp_path / "tuples").read_bytes()
    assert list(read_rows([tmp_path / "plain"])) == ROWS
    text = pq.read_metadata(tmp_path / "plain").row_group(0).column(1)
    assert not text.has_dictionary_page
    assert not text.is_stats_set
    with KeptFile(tmp_path / "plain") as file:
        assert file.group_range(0, "id") == (1, 10)


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1) | st.integers(0, 9), max_size=200))
def test_integers_come_back_of_their_differences(
    tmp_path_factory: pytest.TempPathFactory, ids: list[int | None]
) -> None:
    path = tmp_path_factory.mktemp("d") / "f"
    rows = [{"id": number, "text": str(number)} for number in ids]
    with ParquetWriter(path, SCHEMA, plain=("id",), deltas=("id",), small=("id",)) as out:
        for row in rows:
            out.write(row)
    assert list(read_rows([path])) == rows
    for column in range(2 if rows else 0):
        found = pq.read_metadata(path).row_group(0).column(column)
        assert ("DELTA_BINARY_PACKED" in found.encodings) == (column == 0)
        assert found.compression == ("SNAPPY", "ZSTD")[column]


def test_nulls_count_as_nought_in_a_groups_range(tmp_path: Path) -> None:
    for ids, expected in (([None, 5, 9], (0, 9)), ([None, None], (0, 0)), ([5, 9], (5, 9)), ([], (0, 0))):
        with ParquetWriter(tmp_path / "f", SCHEMA) as out:
            out.write_table(pa.table({"id": pa.array(ids, pa.int64()), "text": [""] * len(ids)}))
        with KeptFile(tmp_path / "f") as file:
            assert [file.group_range(g, "id") for g in range(file.num_row_groups)] in ([expected], [])


def test_a_file_that_is_one_too_many_is_not_called_damaged(tmp_path: Path) -> None:
    write(tmp_path / "rows")
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.open(tmp_path / "rows", os.O_RDONLY)  # the lowest number that no file has
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, limits[1]))
    try:
        with pytest.raises(InputError, match=r"rows: too many open files; allow more \(ulimit -n\) and go on$"):
            KeptFile(tmp_path / "rows")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.parametrize("method", ["write_table", "close"])
def test_a_write_that_fails_leaves_nothing(tmp_path: Path, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gc.collect()  # a writer of another test would close itself here, and take the error
    works = getattr(pq.ParquetWriter, method)
    failed: list[str] = []

    def full(*given: object, **options: object) -> None:
        if not failed:
            failed.append(method)
            raise OSError(errno.ENOSPC, "No space left on device")
        works(*given, **options)

    monkeypatch.setattr(pq.ParquetWriter, method, full)
    with pytest.raises(InputError, match=r"f\.parquet: no space left on the disk"):
        write(tmp_path / "f.parquet")
    with pytest.raises(ZeroDivisionError), ParquetWriter(tmp_path / "f", SCHEMA) as out:
        out.write(ROWS[0])
        out.write({"id": 1 // 0, "text": ""})
    assert list(tmp_path.iterdir()) == []


def repeated(value: pa.Array, times: int) -> pa.Array:
    return value.take(pa.array([0] * times))


# small files that are large in memory
BOMBS: dict[str, tuple[pa.Table, str]] = {
    "rows": (pa.table({"id": repeated(pa.array(["x"]), 5_001)}), "5,001 rows; no such file has more than 5,000"),
    "a value that repeats": (pa.table({"id": repeated(pa.array(["x" * 10_000]), 5_000)}), "unpacks to more than 1 MB"),
    "numbers of values": (
        pa.table({"id": pa.DictionaryArray.from_arrays(pa.array([0] * 5_000, pa.int8()), ["x" * 10_000])}),
        "column 'id' repeats values by number",
    ),
    "a list": (pa.table({"id": pa.array([[0] * 200_000])}), "unpacks to more than 1 MB"),
    "lists of numbers of values": (
        pa.table({"a": pa.ListArray.from_arrays([0, 2], pa.array(["x", "y"]).dictionary_encode())}),
        "column 'a' repeats values by number",
    ),
}


@pytest.mark.fault(
    "hostile Parquet",
    "leaderboard: the items of a result are small on disk and large in memory",
    "refused in one line, before it takes the memory",
)
@pytest.mark.parametrize("case", BOMBS)
def test_a_table_that_is_too_large_is_refused(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "_UNPACKED", 1 << 20)
    monkeypatch.setattr(parquet, "_TOGETHER", 1 << 19)
    table, said = BOMBS[case]
    path = tmp_path / "bomb.parquet"
    pq.write_table(table, path, compression="zstd")
    assert path.stat().st_size < 10_000
    normal, measured = pa.default_memory_pool(), pa.proxy_memory_pool(pa.default_memory_pool())
    pa.set_memory_pool(measured)
    try:
        with pytest.raises(InputError, match=f"^{path}: .*{said}"):
            read_table(path, 5_000)
    finally:
        pa.set_memory_pool(normal)
    assert measured.max_memory() < 8 << 20


@pytest.mark.fault(
    "hostile Parquet",
    "leaderboard: the footer of a result's items contradicts itself",
    "refused in one line; the process goes on",
)
def test_a_footer_that_contradicts_itself_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "f"
    pq.write_table(pa.table({"cluster": ["Q1", None]}), path)
    optional, required = b"\x25\x02\x18\x07cluster", b"\x25\x00\x18\x07cluster"
    whole = path.read_bytes()
    assert whole.count(optional) == 1
    path.write_bytes(whole.replace(optional, required))  # its histogram counts nulls of a column without nulls
    with pytest.raises((OSError, pa.ArrowException), match="histogram"):
        read_table(path, 2)


def test_a_table_within_bounds_is_read_whole_whatever_its_name(tmp_path: Path) -> None:
    for name in ("a[b]?*", "ab12"):  # characters of patterns stand for themselves
        for table in (pa.table({"id": ["a", name], "l": [[1], []]}), pa.table({"id": pa.array([], pa.string())})):
            pq.write_table(table, tmp_path / name, row_group_size=1)
            assert read_table(tmp_path / name, 2).equals(table)


@given(st.integers(1, 2_000), st.integers(1, 3_000), st.integers(1, 300))
@settings(max_examples=20)
def test_rows_that_are_read_together_fit(
    tmp_path_factory: pytest.TempPathFactory, long: int, many: int, most: int
) -> None:
    path = tmp_path_factory.mktemp("p") / "f"
    pq.write_table(pa.table({"text": repeated(pa.array(["x" * long]), many)}), path)
    with pytest.MonkeyPatch.context() as patch, pq.ParquetFile(path) as file:
        patch.setattr(parquet, "_TOGETHER", 20_000)
        at_once = rows_at_once(path, most)
        assert 1 <= at_once <= most
        assert at_once * long <= 20_000
        # hardly fewer than fit: a header, with copies of the value, counts with each row
        assert at_once == most or at_once * (3 * long + 500) > 10_000
        assert sum(batch.num_rows for batch in file.iter_batches(at_once)) == many
