"""The Parquet files of results: items and the leaderboard's rows; refused in one line, or shown whole."""

import io
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from temporalwiki.base.errors import InputError
from temporalwiki.eval_harness.leaderboard.page import write_page
from temporalwiki.eval_harness.leaderboard.rows import Row, read_items, read_parquet, rows
from temporalwiki.eval_harness.leaderboard.tables import write_tables
from temporalwiki.eval_harness.results import read_result

from fuzz import results
from fuzz.files import file, folder
from fuzz.json_text import mutate as _mutate_json

_ITEMS: dict[str, list[Any]] = {"id": ["a", "b"], "cluster": ["Q1", None], "exact_match": [0, 1], "f1": [0.5, None]}


def _rows() -> dict[str, list[Any]]:
    found = rows([read_result(file("results-of-a-model/probes.json", results.SEEDS[0]))], folder())
    return {name: [asdict(row)[name] for row in found[:2]] for name in get_type_hints(Row)}


def _parquet(columns: dict[str, list[Any]]) -> bytes:
    made = io.BytesIO()
    pq.write_table(pa.table(columns), made, compression="none")
    return made.getvalue()


# columns as JSON, or the file itself
SEEDS = (
    json.dumps({"rows": _rows(), "items": _ITEMS}).encode(),
    json.dumps({"rows": {name: values[:1] for name, values in _rows().items()}, "items": {"id": []}}).encode(),
    json.dumps({"rows": _rows() | {"value": ["30.5", "x"], "items": [None, 1]}, "items": _ITEMS}).encode(),
    json.dumps({"rows": _rows() | {"month": ["%s", None]}, "items": _ITEMS}).encode(),
    _parquet(_ITEMS),
    _parquet(_ITEMS | {"name": [1, 2]}).replace(b"\x04name", b"\x04n\xf2me"),
    _parquet({name: values for name, values in _rows().items() if any(values)}),
    b"PAR1PAR1",
)
FOUND = (
    b'{"rows": [], "items": {"id": "-0"}}',  # a board without rows: the error names the page's folder
    b'{"rows": {}, "items": {"id": "ab", "cluster": "ab", "x": [0, 9007199254740993]}}',  # no float64 has this value
)
WORDS = (*results.WORDS, *b'PAR1 "rows": "items": "value": "id": [null]'.split(), b"\x15\x00", b"\xff\xff\x7f")
LONGEST = 16384


def mutate(data: bytes, longest: int, seed: int, plain: Any) -> bytes:
    """Mutate columns by their structure, a file as ``plain`` does."""
    changed: bytes = plain(data, longest) if data.startswith(b"PAR1") else _mutate_json(data, longest, seed, plain)
    return changed


def check(data: bytes) -> None:
    if data.startswith(b"PAR1"):
        columns = {"rows": data, "items": data}
    else:
        try:
            given = json.loads(data)
            columns = {name: _parquet(dict(given[name])) for name in ("rows", "items")}
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError, pa.ArrowException):
            return
    file("items/probes.json", results.SEEDS[0])
    result = read_result(folder() / "items/probes.json")
    path = file("items/probes.parquet", columns["items"])
    try:
        items = read_items(result)
    except InputError as error:
        _one_line(error, path)
    else:
        assert items is not None and len({len(values) for values in items.values()}) <= 1
        assert all(values.dtype in (np.dtype(object), np.dtype(float)) for values in items.values())
        assert all(isinstance(value, str) for values in items.values() if values.dtype == object for value in values)
    path = file("board/results.parquet", columns["rows"])
    try:
        found = read_parquet(path)
        for row in found:
            for name, kind in get_type_hints(Row).items():
                assert isinstance(getattr(row, name), kind), f"{name} is {getattr(row, name)!a}"
        write_tables(found, folder() / "tables")
        write_page(found, {}, {}, folder() / "page", results=".")
    except InputError as error:
        _one_line(error, path, folder() / "page")


def _one_line(error: InputError, *places: Path) -> None:
    named = any(str(error).startswith(f"{place}: ") for place in places)
    assert named and "\n" not in str(error), f"not one line with the place: {error}"
