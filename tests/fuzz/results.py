"""Fuzz a result file: it is refused in one line, or all readers of results can show it."""

import json
import math
from dataclasses import asdict
from typing import Any

import yaml

from temporalwiki.base.errors import InputError
from temporalwiki.eval_harness.leaderboard.fuar_rows import fuar_rows
from temporalwiki.eval_harness.leaderboard.page import write_page
from temporalwiki.eval_harness.leaderboard.rows import Row, read_parquet, rows, write_parquet
from temporalwiki.eval_harness.leaderboard.tables import write_tables
from temporalwiki.eval_harness.result_inspection import describe
from temporalwiki.eval_harness.results import Result, read_result, table
from temporalwiki.model_cards.eval_results import HubDataset, eval_results
from temporalwiki.model_cards.space import space_card

from fuzz.files import file, folder
from fuzz.json_text import mutate as mutate

_SCORE = {"value": 30.5, "low": 28.0, "high": 33.25, "items": 9, "clusters": 8}
_MODEL = {"base": "gpt2", "label": "lora, rank 4", "learning_rate": 0.001, "method": "lora", "name": "ORG/lora-1112"}
_MODEL |= {"parameters": {"total": 100, "trainable": 10}, "precision": "fp32", "revision": "a" * 40, "tokens": 1000}
_RESULT: dict[str, Any] = {
    "data": {
        "config": "probes-1112",
        "dataset": "ORG/d@2021.12",
        "hash": "h1",
        "rows": {"changed": 9, "unchanged": 9},
    },
    "excluded": {"too long": 2},
    "model": _MODEL | {"trained_on": ["diffset-1011", "diffset-20211101-20211201"]},
    "run": {"temporalwiki": "0.1"},
    "schema": 1,
    "scores": {"changed/perplexity": _SCORE, "changed/exact_match": _SCORE | {"low": None, "high": None}}
    | {"light-tuned/average/f1": _SCORE},
    "task": {"name": "twiki_probes", "options": {"beams": 1}, "version": 1},
}
_NEWER = {"day": "2021-10-31", "model": "m", "kept": {"changed": 3}, "dropped": {"changed": 1}}
_PASSAGES = {"source": "diffset-1112", "version": 1, "top_k": 5, "hash": "h", "found": {"changed": 3}}
_MORE = {"data": _RESULT["data"] | {"newer": _NEWER, "retrieved": _PASSAGES}}
_MORE |= {"leak": {"model": "m", "facts": 3, "new": 1}}
_LAMA = {"task": {"name": "lama", "version": 1, "options": {}}, "scores": {"exact_match": _SCORE}}
_BASE = {"name": "base", "revision": "r", "precision": "bf16", "method": None, "trained_on": [], "base": None}
SEEDS = (
    json.dumps(_RESULT).encode(),
    json.dumps(_RESULT | {"model": _BASE, "excluded": {}, "run": {}}).encode(),
    json.dumps(_RESULT | _LAMA).encode(),
    json.dumps(_RESULT | _MORE).encode(),
    json.dumps(_RESULT | {"scores": {"f1": {"value": "1"}}}).encode(),
    b'{"schema": 2, "task": {}, "model": {}, "data": {}, "scores": {}, "excluded": {}}',
)
FOUND = (
    # an integer too large for the leaderboard's Parquet file
    json.dumps(_RESULT | {"scores": {"exact_match": _SCORE | {"value": -(1 << 63) - 1}}}).encode(),
    # an error message of several lines
    json.dumps(_RESULT | {"scores": {"exact_match": _SCORE | {"---\n": 1}}}).encode(),
)
WORDS = (*b"NaN -Infinity 1e400 \\ud800 null true \x00".split(),
         *(b"9" * 20, b"9" * 5000, b"[" * 1200, b'{"":' * 1200))  # fmt: skip
LONGEST = 8192


def check(data: bytes) -> None:
    path = file("results-of-a-model/probes.json", data)
    try:
        result = read_result(path)
    except InputError as error:
        assert str(error).startswith(f"{path}: ") and "\n" not in str(error), f"not one line with the file: {error}"
        return
    for other in (None, read_result(file("results-of-a-model/other.json", SEEDS[0]))):
        try:
            _show([result] if other is None else [result, other])
        except InputError as error:
            assert str(folder()) in str(error) and "\n" not in str(error), f"not one line with a place: {error}"


def _show(results: list[Result]) -> None:
    where = folder()
    table(results)
    describe(where / "results-of-a-model")
    found = rows(results, where)
    assert len(found) == sum(len(result.data["scores"]) for result in results), "a score is lost"
    found += fuar_rows(results, found, where)
    write_parquet(found, where / "rows.parquet")
    same = read_parquet(where / "rows.parquet")
    assert all(map(_same, same, found)) and len(same) == len(found), "other rows read than written"
    for text in write_tables(found, where / "tables").values():
        str(text)
    page = write_page(found, {}, {}, where, results=".").read_text("utf-8")
    assert "<script>x" not in page, "what a result says is part of the page's code"
    header = space_card("Board", results).split("---\n")[1]
    assert yaml.safe_load(header)["title"] == "Board"
    hub = {str(result.data["data"]["dataset"]): HubDataset("ORG/d", None, {}) for result in results}
    text = eval_results(results, hub)
    for entry in yaml.safe_load(text) if text else ():
        assert math.isfinite(entry["value"])


def _same(one: Row, other: Row) -> bool:
    """Return whether two rows are equal, with NaN equal to NaN."""
    pairs = zip(asdict(one).values(), asdict(other).values(), strict=True)
    return all(left == right or (left != left and right != right) for left, right in pairs)
