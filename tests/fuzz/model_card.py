"""A checkpoint's training.json, and the card made from it: YAML and text with the same content."""

import html
import json
import math
import re
from pathlib import Path
from typing import Any

import yaml
from huggingface_hub import ModelCard

from temporalwiki.base.errors import InputError
from temporalwiki.base.markdown import one_line
from temporalwiki.eval_harness.models.local import training
from temporalwiki.eval_harness.results import Outcome, Result, read_result, write_result
from temporalwiki.model_cards.eval_results import HubDataset
from temporalwiki.model_cards.model import Base, Card, model_card
from temporalwiki.push_scripts.model import read_record

from fuzz import results
from fuzz.files import file, folder
from fuzz.json_text import mutate as mutate

_RUN = {"method": "lora", "model": "gpt2", "data": "ORG/temporalwiki@2021.12", "config": "diffset-1112", "past": None}
_RUN |= {"lora.rank": 4, "lora.targets": ["q", "v"], "learning_rate": 1e-4, "batch_size": 2, "sequence_length": 8}
_TRAINING = {"run": _RUN, "architecture": "decoder-only", "parameters": {"trainable": 1000, "total": 1234567}}
_TRAINING |= {"data": {"new": {"config": "diffset-1112", "articles": 1234, "of": "f1n6"}, "past": {"tokens": 9}}}
_TRAINING |= {"versions": {"torch": "2.13.0"}, "steps": 5000, "precision": "bf16", "processes": 8}
_TRAINING |= {"device": "NVIDIA H100", "loss": {"first": 3.5, "last": 3.25}, "log": [{"step": 1, "loss": 3.5}]}
_ONE_PHASE = {"method": "m", "model": "/a/b", "data": ".", "config": "c"}
# the base's licence on the Hub, a result of the checkpoint, and training.json
_ALL = {"base": {"license": "mit"}, "result": json.loads(results.SEEDS[0]), "training": _TRAINING}
SEEDS = tuple(
    json.dumps(one).encode()
    for one in (
        _ALL,
        _ALL | {"base": {"license": "other", "license_name": "x", "license_link": "https://a.example/"}},
        {"training": _TRAINING | {"run": _RUN | {"data": "x", "method": "full"}, "architecture": "encoder-decoder"}},
        {"training": {"run": _ONE_PHASE, "architecture": "decoder-only"}},
        {"training": {}},
    )
)
FOUND: tuple[bytes, ...] = (
    json.dumps({"training": _TRAINING | {"parameters": 7}}).encode(),  # not a mapping
    json.dumps(
        {"training": _TRAINING | {"run": _RUN | {"model": "x" * 300}}}
    ).encode(),  # too long for the name of a file
)
WORDS = (*results.WORDS, b"\\u0085", b"\\u2028", b"---", b"```", b"$x$", b"|", b"<script>x</script>", b"[a](b)")
LONGEST = 8192
_HUB = {"ORG/d@2021.12": HubDataset("ORG/d", "c" * 40, {})}
_OF_TASK = {"task": {"name": "t", "version": 1, "options": {}}}
_OF_TASK |= {"data": {"dataset": "d", "config": "c", "rows": {}, "hash": "h"}}
_OF_MODEL = {"name": "m", "revision": "r", "precision": "fp32"}
_LICENCE = ("license", "license_name", "license_link")
_ESCAPED = re.compile(r"\\(.)")


def check(data: bytes) -> None:
    try:
        given = json.loads(data)
        said = json.dumps(given["training"]).encode()
    except (ValueError, KeyError, TypeError, RecursionError):
        given, said = {}, data
    place = file("checkpoint/training.json", said).parent
    of_base, result = given.get("base"), given.get("result")
    try:
        history = _history(place)
        record = read_record(place)
        scored = [_result(result)] if result is not None else []
    except InputError as error:
        placed = str(folder()) in str(error) or "cannot look for this file" in str(error)
        assert placed and "\n" not in str(error) and len(str(error)) < 2000 + len(data), f"not one line: {error}"
        return
    base = Base("ORG/gpt2", "b" * 40, _licence(of_base)) if of_base is not None else None
    for kind in ("model", "adapter", "expansion"):
        card = Card("ORG/m", "2021.12", kind, record, history, base, None, ["en"], scored, _HUB)  # type: ignore[arg-type]
        _check_card(card, model_card(card))


def _history(place: Path) -> dict[str, Any]:
    """Return how a checkpoint was trained, without what is wrong: a result that says so can be read again."""
    path, history = folder() / "m" / "r.json", training(str(place))
    write_result(path, _OF_TASK | {"model": _OF_MODEL | history}, Outcome({}, [{"id": "1"}], {}), {})
    try:
        read_result(path)
    except InputError as error:
        raise AssertionError(f"of a model with this record no result can be read: {error}") from None
    return history


def _result(given: Any) -> Result:
    return read_result(file("results-of-a-model/probes.json", json.dumps(given).encode()))


def _licence(given: Any) -> dict[str, str]:
    """Return the texts among the licence's fields: the Hub offers no other values."""
    return {name: given[name] for name in _LICENCE if isinstance(given, dict) and isinstance(given.get(name), str)}


def _check_card(card: Card, text: str) -> None:
    assert text.startswith("---\n") and text.count("\n---\n") >= 1
    block, body = text[4:].split("\n---\n", 1)
    header = yaml.safe_load(block)
    Path(folder() / "README.md").write_text(text, encoding="utf-8")
    read = ModelCard.load(folder() / "README.md")
    assert read.text.strip("\n") == body.strip("\n"), "huggingface_hub reads another text"
    assert read.data.to_dict().keys() == header.keys(), "huggingface_hub reads another header"
    licence = card.base.licence if card.base else {}
    assert {name: header[name] for name in _LICENCE if name in header} == licence, "another licence"
    run = card.training.run
    assert header.get("datasets", [run.data.partition("@")[0]]) == [run.data.partition("@")[0]]
    indexed = header.get("model-index", [{"results": []}])[0]["results"]
    scores = [result.data["scores"] for result in card.results]
    values = sorted(metric["value"] for one in indexed for metric in one["metrics"])
    wanted = sorted(
        score["value"]
        for of in scores
        for name, score in of.items()
        if name.rpartition("/")[2] in ("perplexity", "exact_match", "f1") and math.isfinite(score["value"])
    )
    assert values == wanted, "other scores in the header"
    assert "<script>x" not in body, "markup of a record is markup of the card"
    cells = [re.split(r"(?<!\\) \| ", line[2:-2]) for line in body.splitlines() if re.fullmatch(r"\| .* \|", line)]
    shown = {
        html.unescape(_ESCAPED.sub(r"\1", line[0])): html.unescape(_ESCAPED.sub(r"\1", line[1]))
        for line in cells
        if len(line) == 2
    }
    assert shown["method"] == one_line(run.method), "another method is shown"
    assert shown["data of the last phase"] == one_line(run.data), "other data are shown"
    lines = sum(1 for line in cells if len(line) == 7) - bool(card.results)  # the heading
    assert lines == sum(map(len, scores)), "a score is not shown, or a cell became two"
