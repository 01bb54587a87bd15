"""Fuzz the items of results: they are ranked and shown, or refused with the name of their file."""

import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from temporalwiki.base.errors import InputError
from temporalwiki.eval_harness.leaderboard.fuar_rows import fuar_rows
from temporalwiki.eval_harness.leaderboard.rows import read_parquet, rows, write_parquet
from temporalwiki.eval_harness.leaderboard.tables import write_tables
from temporalwiki.eval_harness.results import read_result

from fuzz import results
from fuzz.files import file, folder
from fuzz.json_text import mutate as mutate

_ITEMS: dict[str, list[Any]] = {
    "id": ["a", "b", "c", "d"],
    "cluster": ["Q1", "Q1", "Q2", "Q3"],
    "prediction": ["x", "y", None, ""],
    "split": ["changed", "changed", "unchanged", "unchanged"],
    "nll": [1.5, 2.5, 3.5, None],
    "tokens": [1, 2, 3, 4],
    "object_nll": [1.0, 1.0, 2.0, 2.0],
    "object_tokens": [1, 1, 1, 2],
    "exact_match": [0, 1, 1, 0],
    "f1": [0.5, 1.0, 0.0, 0.25],
}
_SCORES = {
    "changed/exact_match": [50.0, 2, 1],
    "unchanged/exact_match": [50.0, 2, 2],
    "average/f1": [43.75, 4, 3],
    "changed/perplexity": [3.7936678946831774, 2, 1],  # exp(4 / 3)
    "changed/over_unchanged": [0.7165313105737893, 2, 1],  # exp(1 - 4 / 3)
}
_KINDS = {"id": ["a", "b"], "cluster": [1, 2], "split": ["deleted"] * 2, "kind": ["x", "y"], "accuracy": [True, False]}
_ONE = {"id": ["a"], "cluster": ["Q1"], "exact_match": [1]}
# columns of items of two models, and their scores as (value, items, clusters)
SEEDS = tuple(
    json.dumps(one).encode()
    for one in (
        {"a": _ITEMS, "b": _ITEMS | {"exact_match": [1, 1, 1, 1]}, "scores": _SCORES},
        {"a": _ITEMS, "b": _ONE, "scores": {"exact_match": [100.0, 1, 1]}},
        {"a": _KINDS, "b": _KINDS, "scores": {"x/accuracy": [100.0, 1, 1], "y/accuracy": [0.0, 1, 1]}},
        {"a": {"id": []}, "b": {}, "scores": {"f1": [0.0, 0, 0]}},
    )
)
_NO_TOKENS = {name: of for name, of in _ITEMS.items() if "tokens" not in name}
FOUND: tuple[bytes, ...] = (
    json.dumps({"a": _ITEMS, "b": _NO_TOKENS, "scores": _SCORES}).encode(),  # nothing to divide by
)
WORDS = (*results.WORDS, b'"id":', b'"cluster":', b'"split":', b'"kind":', b'"tokens":', b"[null]", b"0.0", b"true")
LONGEST = 8192


def check(data: bytes) -> None:
    try:
        given = json.loads(data)
        tables = {name: _table(given[name]) for name in ("a", "b")}
        scores = {name: _score(*score) for name, score in given["scores"].items()}
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError, pa.ArrowException):
        return
    found = []
    base = json.loads(results.SEEDS[0])
    for name, table in tables.items():
        model = base["model"] | {"name": f"ORG/{name}"}
        pq.write_table(table, file(f"ranked/{name}/probes.parquet", b""))
        path = file(f"ranked/{name}/probes.json", json.dumps(base | {"model": model, "scores": scores}).encode())
        try:
            found.append(read_result(path))
        except InputError:  # the target results is about it
            return
    where = folder() / "ranked"
    try:
        made = rows(found, where)
        assert len(made) == 2 * len(scores), "a score is lost"
        for row in made:
            ranks = row.rank_best, row.rank_worst
            assert ranks == (None, None) or (ranks[0] and ranks[1] and 1 <= ranks[0] <= ranks[1] <= 2), ranks
        assert rows(found[::-1], where) == made, "in another order, other rows"
        made += fuar_rows(found, made, where)
    except InputError as error:
        assert str(folder()) in str(error) and "\n" not in str(error), f"not one line with the file: {error}"
        return
    write_parquet(made, where / "rows.parquet")
    assert len(read_parquet(where / "rows.parquet")) == len(made)
    write_tables(made, where / "tables")


def _table(columns: Any) -> pa.Table:
    return pa.table({str(name): pa.array(values) for name, values in columns.items()})


def _score(value: Any, items: Any, clusters: Any) -> dict[str, Any]:
    return {"value": value, "low": None, "high": None, "items": items, "clusters": clusters}
