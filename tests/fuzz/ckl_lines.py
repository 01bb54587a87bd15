"""Lines of KILT, LAMA and TriviaQA, and exports of Label Studio: each is kept, dropped for a reason, or refused."""

import json
import shutil
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any
from unittest import mock

from temporalwiki.base.errors import InputError
from temporalwiki.builders.ckl import invariantlama
from temporalwiki.builders.ckl.config import CklConfig, Row
from temporalwiki.builders.ckl.config import _staged as staged
from temporalwiki.builders.ckl.decisions import configs_from_decisions
from temporalwiki.builders.ckl.invariantlama import invariantlama as lama
from temporalwiki.builders.ckl.invariantlama import table
from temporalwiki.builders.ckl.kilt import kilt
from temporalwiki.builders.ckl.review import ABOUT, ANNOTATIONS, TASKS

from fuzz.files import file, folder
from fuzz.json_text import mutate as mutate


def _lines(*objects: Any) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in objects)


_BETWEEN = b"\0"  # files
_OUTPUT = [{"answer": "b"}, {"answer": "b "}, {"provenance": []}, {"answer": None}]
_NQ = [{"id": 1, "input": "a?", "output": _OUTPUT, "meta": {}}, {"id": "2", "input": " ", "output": []}]
_IDS = [{"id": "t1", "output": [{"answer": "x"}]}, {"id": "t2", "output": [{"answer": "y"}], "input": None}]
_QUESTIONS = {"Data": [{"QuestionId": "t1", "Question": "q?"}], "Domain": "Web"}
_RELATIONS = [{"relation": "P19", "template": "[X] was born in [Y] .", "label": "born"}]
_FACTS = [
    {"predicate_id": "P19", "uuid": "u", "sub_label": "Ann  Lee", "obj_label": "Rome"},
    {"predicate_id": "P19", "uuid": "u", "sub_label": "Ann Lee", "obj_label": "Rome"},
    {"predicate_id": "P19", "sub_label": "Bo", "obj_label": "bonn"},
    {"predicate_id": "P19", "sub_label": "<extra_id_0>", "obj_label": "A\u202eb"},
    {"predicate_id": "P19", "sub_label": "Rome Lee", "obj_label": "Rome"},
    {"predicate_id": "P19"},
]
_CANDIDATE = {
    "id": "c1",
    "question": "Who is mayor?",
    "answer": "Ann",
    "statement": "The mayor is <extra_id_0>.",
    "sentence": "The mayor is Ann.",
    "title": "T",
    "url": "https://a.example/",
    "published": "2020-05-01T00:00:00Z",
    "prediction": None,
    "past_evidence": [{"id": "p1", "title": "T", "text": "Bo is mayor.", "score": 1.5, "has_answer": False}],
}


def _task(id: str, by: Any = 1, **said: str | list[str]) -> dict[str, Any]:
    values = {name: {"choices": [one]} if isinstance(one, str) else {"text": one} for name, one in said.items()}
    result = [{"from_name": name, "value": value} for name, value in values.items()]
    return {"data": _CANDIDATE | {"id": id}, "annotations": [{"completed_by": by, "result": result}]}


_RIGHT = {"valid": "yes", "answer_right": "yes"}
_OTHER = {**_RIGHT, "past": "other", "old_answers": ["Bo"], "old_evidence": ["p1"]}
_NEW = {**_RIGHT, "past": "none", "statement": ["<extra_id_0> rules."], "answers": ["Ann", "A."]}
_DECISIONS = [_task("c1", **_OTHER), _task("c2", {"id": 2}, **_NEW), _task("c3", note=["?"])]
_JUDGED = [{"data": _CANDIDATE, "predictions": [7, {"model_version": "m", "score": 0.5, "result": []}]}]
_CANDIDATES = [{"data": _CANDIDATE | {"id": f"c{number}"}} for number in (1, 2, 3)]
# the first byte names the format; the files follow
SEEDS = (
    b"k" + _lines(*_NQ) + _BETWEEN + _lines(_NQ[0]) + _BETWEEN + _lines(*_NQ),
    b"k\xef\xbb\xbf" + _lines(_NQ[0]).replace(b"\n", b"\r\n\n") + _BETWEEN + _lines(*_NQ)[:-9],
    b"t" + _lines(*_IDS) + _BETWEEN + json.dumps(_QUESTIONS).encode(),
    b"l" + _lines(*_RELATIONS) + _BETWEEN + _lines(*_FACTS),
    b"l" + _lines(*_RELATIONS, *_RELATIONS),
    b"d" + _BETWEEN.join(json.dumps(one).encode() for one in (_CANDIDATES, _DECISIONS, [_task("c2", 3, valid="no")])),
    b"d" + _BETWEEN.join(json.dumps(one).encode() for one in (_CANDIDATES, _JUDGED, [_task("c9", valid="yes")])),
)
WORDS = (_BETWEEN, b"\n", b"\r\n", b"\xef\xbb\xbf", b'"id":', b'"output":[{"answer":', b'"input":', b"\\ud800",
         b"[X]", b"[Y]", b"<extra_id_0>", b"<extra_id_1>", b'"from_name":"past"', b"9" * 20, b"[" * 1200,
         b'"value":{"choices":["same"]}', b"\\u202e", b"\\u0000", b'"QuestionId":', b'"statement":"',
         b'"predictions":[{"model_version":"m"}]')  # fmt: skip
LONGEST = 8192


def check(data: bytes) -> None:
    shutil.rmtree(folder() / "lines", ignore_errors=True)
    source, files = _SOURCES.get(data[:1]), data[1:].split(_BETWEEN)
    if source is None:
        return
    try:
        configs = source(files)
        for config in configs:
            _account(config)
    except InputError as error:
        assert str(folder()) in str(error) and "\n" not in str(error), f"not one line with the file: {error}"


def _kilt(files: Sequence[bytes]) -> list[CklConfig]:
    for part, data in zip(("train", "dev", "test_without_answers"), [*files, b"", b""], strict=False):
        file(f"lines/nq-{part}-kilt.jsonl", data)
    return kilt(folder() / "lines", "nq")


def _trivia(files: Sequence[bytes]) -> list[CklConfig]:
    ids, questions, *_ = [*files, b"", b""]
    for part in ("train_id", "dev_id", "test_id_without_answers"):
        file(f"lines/triviaqa-{part}-kilt.jsonl", ids)
    for part in ("train", "dev", "test-without-answers"):
        file(f"lines/triviaqa-rc/qa/wikipedia-{part}.json", questions)
    return kilt(folder() / "lines", "triviaqa_support_only")


def _lama(files: Sequence[bytes]) -> list[CklConfig]:
    relations, facts, *_ = [*files, b""]
    file("lines/relations.jsonl", relations)
    file("lines/TREx/P19.jsonl", facts)
    with mock.patch.object(invariantlama, "RELATIONS", ("P19",)):  # the other 27 are read in the same way
        config = lama(folder() / "lines")
    rows = list(config.splits["test"])
    assert "\n| P19 |" in table(config.counts.more)
    assert len({(row["subject"], row["object"]) for row in rows}) == len(rows), "a fact twice"
    assert all(row["statement"].count("<extra_id_0>") == 1 for row in rows), "not one blank"
    config.splits = {"test": iter(rows)}
    return [config]


def _decided(files: Sequence[bytes]) -> list[CklConfig]:
    candidates, *exports = files
    review = folder() / "lines"
    file(f"lines/{TASKS}", candidates)
    counts = {"read": 3, "kept": 3, "dropped": {}}
    about = {"made_by": "", "options": {}, "inputs": [], "past": {}, "counts": counts}
    file(f"lines/{ABOUT}", json.dumps(about).encode())
    for number, data in enumerate(exports[:3]):
        file(f"lines/{ANNOTATIONS}/{'abc'[number]}.json", data)
    return configs_from_decisions(review, 1 + zlib.crc32(candidates) % 2)


_Source = Callable[[Sequence[bytes]], list[CklConfig]]
_SOURCES: dict[bytes, _Source] = {b"k": _kilt, b"t": _trivia, b"l": _lama, b"d": _decided}


def _account(config: CklConfig) -> None:
    """Check rows and counts with ``staged``, as for a dataset folder."""
    rows: list[Row] = []
    config.splits = {split: _noted(of, rows) for split, of in config.splits.items()}
    staged(config, folder() / "lines" / "out")
    if config.kind != "kilt":
        assert len({row["id"] for row in rows}) == len(rows), "an id twice"
    for row in rows:
        answers = row.get("answers", [])
        assert all(answers) and len(set(answers)) == len(answers), "an answer without text, or twice"
        assert config.kind != "annotated" or row["statement"].count("<extra_id_0>") == 1, "not one blank"


def _noted(rows: Iterable[Row], into: list[Row]) -> Iterator[Row]:
    for row in rows:
        into.append(row)
        yield row
