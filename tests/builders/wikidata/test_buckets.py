"""Reading some buckets of an extract: all columns that are asked for, and no record in two tables."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temporalwiki.builders.parquet import ParquetWriter
from temporalwiki.builders.wikidata import buckets, tables


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
