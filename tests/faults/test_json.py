"""JSON of strangers: every field replaced by something unexpected, and bytes that are not JSON at all."""

import json
import re
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from temporalwiki.base.errors import InputError
from temporalwiki.base.json_files import write_json
from temporalwiki.builders.after_cutoff import read_after
from temporalwiki.builders.dataset_folder import check_place
from temporalwiki.builders.manifests import read_manifests
from temporalwiki.eval_harness import result_inspection as inspection
from temporalwiki.eval_harness.leaderboard.cutoffs import read_cutoffs
from temporalwiki.eval_harness.leaderboard.fuar_rows import fuar_rows
from temporalwiki.eval_harness.leaderboard.page import write_page
from temporalwiki.eval_harness.leaderboard.rows import rows, write_parquet
from temporalwiki.eval_harness.leaderboard.tables import write_tables
from temporalwiki.eval_harness.models.local import training
from temporalwiki.eval_harness.results import Outcome, read_result, read_results, write_result
from temporalwiki.model_cards.folder_card import folder_card
from temporalwiki.model_cards.space import space_card

import a_result
from a_month import add_month, article
from a_mutation import mutations

Record = Callable[[str, object], None]


def try_mutations(
    path: Path, read: Callable[[], object], keep: Callable[[str], bool] = lambda _what: True, named: str = ""
) -> int:
    """Read each mutation of a file, and return their number. Reading works, or one line names the file."""
    whole, cases = path.read_bytes(), 0
    for what, data in mutations(json.loads(whole)):
        if not keep(what):
            continue
        cases += 1
        path.write_bytes(data)
        try:
            read()
        except InputError as error:
            assert re.search(named or re.escape(path.name), str(error)), what
            assert "\n" not in str(error), what
            assert len(str(error)) < 2000, what
        except Exception as error:
            raise AssertionError(f"{path.name}, {what}: {error!r}") from error
    path.write_bytes(whole)
    return cases


def one_in(many: int, what: str) -> bool:
    """Return whether a slow test tries a case: always the same few."""
    return zlib.crc32(what.encode()) % many == 0 or what.startswith("bytes: ")


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Two models on two months."""
    for name, method in (("base", None), ("lora", "lora")):
        for config in ("probes-1112", "probes-1201"):
            splits = {"unchanged": a_result.facts(1, 2, 3), "changed": a_result.facts(2, 3, 4)}
            known: dict[str, Any] = {"method": method, "trained_on": ["diffset-1112"] if method else []}
            known |= {"learning_rate": 0.1, "parameters": {"total": 2, "trainable": 1}, "tokens": 5}
            a_result.write_probes(tmp_path / "results", config, splits, name=name, **known)
    return tmp_path / "results"


@pytest.mark.fault(
    "hostile JSON",
    "inspect, leaderboard: each field of a result has a wrong type or value",
    "refused in one line, or shown as text",
)
@pytest.mark.parametrize("reader", ["inspect", "leaderboard"])
def test_results(reader: str, results: Path, tmp_path: Path, record_property: Record) -> None:
    def leaderboard() -> None:
        found = read_results(results)
        lines = rows(found, results)
        lines += fuar_rows(found, lines, results)
        write_parquet(lines, tmp_path / "out" / "results.parquet")
        space_card("T", found)
        write_page(lines, {}, {}, tmp_path / "out", results="r")

    read = leaderboard if reader == "leaderboard" else lambda: (inspection.describe(results) or "").encode()
    path = sorted(results.glob("*/*.json"))[0]
    content = read_result(path).data
    newer = {"day": "2021-10-31", "model": "m", "kept": {"changed": 3}, "dropped": {"changed": 1}}
    leak = {"model": "m", "facts": 3, "new": 1}
    passages = {"source": "diffset-1112", "version": 1, "top_k": 5, "hash": "h", "found": {"changed": 3}}
    write_json(path, {**content, "data": {**content["data"], "newer": newer, "retrieved": passages}, "leak": leak})
    cases = try_mutations(path, read, lambda what: reader == "inspect" or one_in(4, what))
    record_property("cases", cases)


@pytest.mark.fault(
    "hostile JSON",
    "leaderboard, evaluate --after-cutoff: each field of a cutoff has a wrong type or value",
    "refused in one line, or shown as text",
)
def test_cutoffs(tmp_path: Path, record_property: Record) -> None:
    path = tmp_path / "results" / "m" / "cutoff.json"
    path.parent.mkdir(parents=True)
    overall = {"verdict": "found", "cutoff": "2021-03", "low": "2021-02", "high": "2021-05"}
    known = {"model": "m", "data": "d", "evidence": {"facts": 3}, "curve": [{"month": "2021-01", "known": 0.5}]}
    write_json(path, {**known, "overall": overall, "topics": {}})

    def read() -> None:
        tables = write_tables([], tmp_path / "tables", read_cutoffs(tmp_path / "results"))
        write_page([], {}, tables, tmp_path / "out")
        read_after(str(path))

    record_property("cases", try_mutations(path, read))


def test_a_result_of_another_schema_says_so(results: Path) -> None:
    path = sorted(results.glob("*/*.json"))[0]
    path.write_text(path.read_text().replace('"schema": 1', '"schema": 2'))
    with pytest.raises(InputError, match="a result of schema 2, this version reads 1; update temporalwiki"):
        read_result(path)


@pytest.mark.fault(
    "hostile JSON",
    "each field of a dataset folder's manifest has a wrong type or value",
    "refused in one line before anything is built into it, or shown as text",
)
def test_manifests(tmp_path: Path, record_property: Record) -> None:
    folder = tmp_path / "temporalwiki"
    add_month(folder, "20211101", "20211201", [article(1)])
    add_month(folder, "20211201", "20220101", [article(1)])

    def read() -> None:
        check_place(folder)  # as a build does before all else
        folder_card(read_manifests(folder)).encode()

    cases = try_mutations(
        folder / "manifests" / "20211101-20211201.json",
        read,
        lambda what: one_in(2, what) and ("configs/" not in what or "configs/diffset" in what),
    )
    record_property("cases", cases)


TRAINED: Mapping[str, Any] = {
    "run": {"method": "lora", "config": "diffset-1112", "model": "base", "data": "data", "learning_rate": 0.1,
            "batch_size": 2, "sequence_length": 16},
    "steps": 3, "parameters": {"total": 2, "trainable": 1}, "architecture": "decoder-only",
}  # fmt: skip


@pytest.mark.fault(
    "hostile JSON",
    "each field of a checkpoint's training.json has a wrong type or value",
    "the correct fields are used, and the result can be read again",
)
def test_what_is_known_of_a_checkpoint(tmp_path: Path, record_property: Record) -> None:
    path = tmp_path / "training.json"
    path.write_text(json.dumps(TRAINED))
    what = {
        "task": {"name": "t", "version": 1, "options": {}},
        "data": {"dataset": "d", "config": "c", "rows": {}, "hash": "h"},
    }

    def read() -> None:
        model = {"name": "m", "revision": "r", "precision": "fp32", **training(str(tmp_path))}
        write_result(tmp_path / "out" / "r.json", {**what, "model": model}, Outcome({}, [{"id": "1"}], {}), {})
        read_result(tmp_path / "out" / "r.json")

    record_property("cases", try_mutations(path, read, named="training.json|File name too long"))
