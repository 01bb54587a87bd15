"""The targets on their corpora and on what fuzzing found, without a fuzzer; and that they notice broken promises."""

import importlib
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import fields, make_dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
import pytest

from temporalwiki.eval_harness.leaderboard.rows import Row
from temporalwiki.eval_harness.statistics import Items, Ranks

from fuzz import TARGETS

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent


def _module(target: str) -> Any:
    if target == "news_page":
        pytest.importorskip("trafilatura")
    return importlib.import_module(f"fuzz.{target}")


def found(module: Any) -> tuple[bytes, ...]:
    """Return the inputs that broke a promise of a target once."""
    return getattr(module, "FOUND", ())


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_known_breaks_no_promise(target: str) -> None:
    module = _module(target)
    assert sum(map(len, module.SEEDS)) < 24_000, "a corpus is tiny"
    for data in (*module.SEEDS, *found(module), b""):
        try:
            module.check(data)
        except Exception as error:
            error.add_note(f"in fuzz/{target}.py, with {data!r}")
            raise


def _third_of_two(groups: Sequence[Items], *_: Any, runs: Sequence[int], **__: Any) -> list[Ranks]:
    return [Ranks(1, 3)] * len(runs)


_UNTYPED = make_dataclass("Row", [(of.name, Any) for of in fields(Row)])

# A fault in the code, and the target that must see it in its corpus.
PLANTED: dict[str, tuple[str, Any]] = {
    "archives": ("builders.ckl.config.RowCounts.drop", lambda _self, _reason, _number=1: None),
    "cards": ("model_cards.dataset.loadable", lambda _configs: {}),
    "ckl_lines": ("builders.ckl.kilt.RowCounts.drop", lambda _self, _reason: None),
    "compressed": ("builders.streams._decodes", lambda *_: True),
    "cutoffs": ("eval_harness.leaderboard.cutoffs._counted", int),
    "experiment": ("eval_harness.experiment.recipe._checked", lambda value, _kind, _where: value),
    "model_card": ("model_cards.model._tests", lambda _result: []),
    "model_folders": ("methods.checkpoint._check_safetensors", lambda _name, _where: None),
    "news_files": ("builders.ckl.news_pages._missing_bytes", lambda _stream: 0),
    "news_page": ("builders.ckl.html_page.web_address", lambda url: url and "ftp://a.example/"),
    "page_props": ("builders.wikipedia.page_props._ROW", re.compile(rb"(\d)(\d)")),
    "plans": ("builders.dataset_folder._InstallPlan", msgspec.defstruct("_InstallPlan", [("ends", list[str])])),
    "result_items": ("eval_harness.leaderboard.rows.ranks", _third_of_two),
    "result_parquet": ("eval_harness.leaderboard.rows.Row", _UNTYPED),
    "results": ("eval_harness.results.msgspec.convert", lambda data, _kind: data),
    "sentence_diff": ("builders.wikipedia.sentence_diff.some_sentences", lambda paragraph, _wanted: paragraph),
    "server_answers": ("builders.fetch.server._SHA1", re.compile(".*")),
    "terminal": ("base.terminal._UNSAFE", re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")),
    "wikidata_dump": ("builders.wikidata.extract._RowBuffer.add", lambda _self, _entity, _record, _size: None),
    "wikidata_json": ("builders.wikidata.entities._add_statements", lambda _entity, _relation, _statements: None),
    "wikitext": ("builders.wikipedia.prose_lines._without_sounds", lambda line, _lead: line),
    "xml_dump": (
        "builders.wikipedia.xml_dump._PageReader._text",
        lambda reader, text: reader._chunks.append(text.upper()),
    ),
    "xml_ranges": ("builders.wikipedia.xml_dump._PAGE", re.compile(b"<title")),
}


@pytest.mark.parametrize("target", TARGETS)
def test_a_fault_is_seen(target: str) -> None:
    module, (place, fault) = _module(target), PLANTED[target]
    broken = []
    with mock.patch(f"temporalwiki.{place}", fault):
        for data in (*module.SEEDS, *found(module)):
            try:
                module.check(data)
            except Exception as error:  # noqa: BLE001  # any: that it comes out is the finding
                broken.append(error)
    assert broken, f"{target} did not see it"


def test_a_run_is_logged(tmp_path: Path) -> None:
    """With atheris, which the plain tests do not need: the extra "fuzz" has it."""
    pytest.importorskip("atheris")
    command = [sys.executable, "-m", "fuzz", "wikidata_json", "--seconds", "2", "--out", str(tmp_path)]
    subprocess.run(command, cwd=HERE.parent, check=True, capture_output=True)
    [line] = (tmp_path / "log.jsonl").read_text().splitlines()
    told = json.loads(line)
    assert told["target"] == "wikidata_json" and told["exit"] == 0 and told["found"] == []
    assert told["inputs"] > 100 and told["coverage"] > 50 and told["kept"] > 0
