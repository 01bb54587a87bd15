"""Result files: one per model, config and task, with what is needed to repeat it, and each item's figures beside."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from temporalwiki.base.errors import InputError, in_one_line
from temporalwiki.base.files import whole_file
from temporalwiki.base.json_files import fingerprint, write_json
from temporalwiki.eval_harness.measures import MEASURES
from temporalwiki.eval_harness.statistics import Estimate

SCHEMA = 1  # of the file
# a model's revision where it is on the Hub, of an adapter with its base's; that of a folder is shorter
COMMIT = re.compile(r"[0-9a-f]{40}(?:\+[0-9a-f]+)*")
_WIDTH = 120  # of a table, in characters
_FIRST = ("unchanged", "changed", "average")  # the order of tests; others come after them, by name


@dataclass(frozen=True)
class Outcome:
    """What a task found."""

    scores: Mapping[str, Estimate]  # such as "unchanged/perplexity"
    items: Sequence[Mapping[str, Any]]  # a row an item; "id" and "cluster" (what the bootstrap resamples) among them
    excluded: Mapping[str, int]  # items that were not scored, by reason


_Count = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]


class _Score(msgspec.Struct, forbid_unknown_fields=True):  # which are read into Estimate
    value: float
    low: float | None
    high: float | None
    items: _Count
    clusters: _Count

    def __post_init__(self) -> None:
        if (self.low is None) != (self.high is None):
            raise ValueError("an interval with one end")


class _Task(msgspec.Struct):
    name: str
    version: _Count
    options: dict[str, Any]


class _Parameters(msgspec.Struct):
    total: _Count | None = None
    trainable: _Count | None = None


class _Model(msgspec.Struct):
    name: str
    revision: str
    precision: str
    label: str | None = None
    method: str | None = None
    trained_on: list[str] = []
    base: str | None = None
    learning_rate: float | None = None
    parameters: _Parameters | None = None
    tokens: _Count | None = None

    def __post_init__(self) -> None:
        if self.learning_rate is not None and not math.isfinite(self.learning_rate):
            raise ValueError("a learning rate without end")


class _Data(msgspec.Struct):
    dataset: str
    config: str
    rows: dict[str, _Count]
    hash: str


class _Run(msgspec.Struct):
    temporalwiki: str | None = None


class _File(msgspec.Struct):
    """What others rely on; a result file has more."""

    task: _Task
    model: _Model
    data: _Data
    scores: dict[str, _Score]
    excluded: dict[str, _Count]
    run: _Run


@dataclass(frozen=True)
class Result:
    """A result file that was read."""

    path: Path
    data: dict[str, Any]

    def items(self) -> list[dict[str, Any]]:
        """Return each item's figures."""
        return list(pq.read_table(self.path.with_suffix(".parquet")).to_pylist())


def path_of(folder: Path, what: Mapping[str, Any]) -> Path:
    """Return where the result of ``what`` belongs: FOLDER/MODEL/CONFIG.TASK.KEY.json.

    The key is of all that the scores depend on, so not of where model and data are.
    """
    task, model, data = what["task"], what["model"], what["data"]
    key = fingerprint(task, model["revision"], model["precision"], data["config"], data["hash"])
    name = f"{_plain(Path(model['name']).resolve().name)}-{fingerprint(model['revision'])[:8]}"
    return folder / name / f"{_plain(data['config'])}.{task['name']}.{key[:8]}.json"


def write_result(path: Path, what: Mapping[str, Any], outcome: Outcome, run: Mapping[str, Any]) -> None:
    """Write the items, then the result, which counts as there when its file is.

    ``run`` is what may differ when the same is done again: time and machine.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = dict.fromkeys(name for item in outcome.items for name in item)  # not every item has all
    with whole_file(path.with_suffix(".parquet")) as part:
        pq.write_table(pa.table({name: [item.get(name) for item in outcome.items] for name in columns}), part)
    scores = {name: asdict(estimate) for name, estimate in outcome.scores.items()}
    excluded = {reason: count for reason, count in sorted(Counter(outcome.excluded).items()) if count}
    write_json(path, {"schema": SCHEMA, **what, "scores": scores, "excluded": excluded, "run": run})


def read_result(path: Path) -> Result:
    """Read a result file; raise InputError where it is none, or of a later schema."""
    try:
        data = json.loads(path.read_text("utf-8"))
        if type(schema := data["schema"]) is not int:
            raise TypeError
        json.dumps(data, ensure_ascii=False).encode()  # half of a character cannot be shown
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise InputError(f"{path}: not a result file of temporalwiki; remove it") from None
    if schema != SCHEMA:
        raise InputError(f"{path}: a result of schema {schema}, this version reads {SCHEMA}; update temporalwiki")
    try:
        read = msgspec.convert(data, _File)
    except msgspec.ValidationError as error:
        what = in_one_line(error)  # a key can hold line ends
        raise InputError(f"{path}: not a result file of temporalwiki ({what}); remove it") from None
    data["scores"] = {name: msgspec.structs.asdict(score) for name, score in read.scores.items()}  # 1 is 1.0
    if read.model.learning_rate is not None:
        data["model"]["learning_rate"] = read.model.learning_rate
    return Result(path, data)


def read_results(folder: Path) -> list[Result]:
    """Read all results below a folder, in the order of their paths.

    Raises InputError where there are none, or one cannot be read.
    """
    found = [read_result(path) for path in sorted(folder.glob("*/*.json"))]
    if not found:
        raise InputError(f"{folder}: no results in it; `temporalwiki evaluate --output {folder}` writes them")
    return found


def table(results: Sequence[Result]) -> str:
    """Return results as text: a row a test, a column a score with its 95 % interval, and what was left out.

    Where there is no room for all columns, they go on below.
    """
    return "\n\n".join(_table(result.data) for result in results)


def _table(data: Mapping[str, Any]) -> str:
    scores: dict[str, Any] = data["scores"]
    tests = sorted({name.rpartition("/")[0] for name in scores}, key=place_of_test)
    measures = sorted({name.rpartition("/")[2] for name in scores}, key=place_of_measure)
    found = {test: [scores.get(f"{test}/{measure}" if test else measure) for measure in measures] for test in tests}
    signs = {name: measure.sign for name, measure in MEASURES.items() if measure.sign}
    rows = [["", *(f"{name} {signs[name]}" if name in signs else name for name in measures), "items"]]
    for test, of in found.items():
        items = max(score["items"] for score in of if score)
        rows.append([test, *(_shown(score) if score else "" for score in of), f"{items:,}"])
    lines = [f"{data['task']['name']} of {data['model']['name']} on {data['data']['config']}"]
    names, *columns = ([cell.rjust(max(map(len, column))) for cell in column] for column in zip(*rows, strict=True))
    names = [name.strip().ljust(len(name)) for name in names]
    while columns:  # as many side by side as there is room for
        part = names
        while columns and (part is names or len(part[0]) + len(columns[0][0]) + 2 <= _WIDTH):
            part = [f"{line}  {cell}" for line, cell in zip(part, columns.pop(0), strict=True)]
        lines += [line.rstrip() for line in part]
    lines += [f"left out, {reason}: {count:,}" for reason, count in data["excluded"].items()]
    return "\n".join(lines)


def place_of_test(test: str) -> tuple[str, int, str]:
    """Return what tests are sorted by: those before light-tuning first, and unchanged, changed and average in each."""
    stage, _, name = test.rpartition("/")
    return stage, _FIRST.index(name) if name in _FIRST else len(_FIRST), test


def place_of_measure(measure: str) -> tuple[int, str]:
    """Return what measures are sorted by."""
    known = list(MEASURES)
    return known.index(measure) if measure in known else len(known), measure


def _shown(score: Mapping[str, Any]) -> str:
    if score["low"] is None:
        return f"{_number(score['value'])} [one subject]"
    return f"{_number(score['value'])} [{_number(score['low'])}, {_number(score['high'])}]"


def _number(value: float) -> str:
    return f"{value:,.2f}" if abs(value) < 1000 else f"{value:,.0f}"


def _plain(name: str) -> str:
    """Return a name that is safe in a path."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-") or "model"
