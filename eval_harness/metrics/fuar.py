"""FUAR: how many points a model forgot for each point that it gained (CKL, ICLR 2022, equation 1)."""

import math
import reprlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from numbers import Real
from typing import Any

TASKS = ("invariant", "updated", "new")
LARGEST = 1e100  # larger scores could make a sum infinite

Scores = dict[str, float | None]


def fuar(predictions: Iterable[Mapping[str, Any]], references: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Return FUAR of a model LM_n that was trained on the corpora D_0 .. D_n, one after the other.

    Row i belongs to the earlier corpus D_i (i = 0 .. n-1). `predictions[i]` has the scores of LM_n and `references[i]`
    the scores of LM_i on three tasks: `invariant` (knowledge of D_i that must not be forgotten), `updated` (knowledge
    that D_n updates), `new` (knowledge that D_n adds). Higher scores are better. None stands for the score of a task
    that is not defined.

        fuar = forgotten / (updated + acquired)

    `forgotten` is the sum over i of max(0, score of LM_i - score of LM_n) on `invariant`. `updated` and `acquired` are
    the sums over i of max(0, score of LM_n - score of LM_i) on `updated` and on `new`.

    A row without an invariant task does not count. An updated or new task that is not defined adds 0. If nothing was
    gained (or too little for a float), `fuar` is inf and `no_gain` is True, even if nothing was forgotten.

    Raises ValueError for rows that are malformed or do not match, and if FUAR is not defined: no row has an invariant
    task, or no such row has an updated or a new task.
    """
    pairs = [
        (after, before) for after, before in read_scores(predictions, references) if after["invariant"] is not None
    ]
    if not pairs:
        raise ValueError("FUAR is not defined: no row has an invariant task")
    if all(after["updated"] is None and after["new"] is None for after, _ in pairs):
        raise ValueError("FUAR is not defined: no row with an invariant task has an updated or a new task")
    forgotten = math.fsum(_gap(before["invariant"], after["invariant"]) for after, before in pairs)
    updated = math.fsum(_gap(after["updated"], before["updated"]) for after, before in pairs)
    acquired = math.fsum(_gap(after["new"], before["new"]) for after, before in pairs)
    gained = updated + acquired
    ratio = forgotten / gained if gained else math.inf
    return {
        "fuar": ratio,
        "no_gain": math.isinf(ratio),
        "forgotten": forgotten,
        "updated": updated,
        "acquired": acquired,
    }


def read_scores(
    predictions: Iterable[Mapping[str, Any]], references: Iterable[Mapping[str, Any]]
) -> list[tuple[Scores, Scores]]:
    """Return checked (after, before) rows. Raises ValueError, which names the first wrong row."""
    after, before = _rows(predictions, "predictions"), _rows(references, "references")
    if len(after) != len(before):
        raise ValueError(f"{len(after)} predictions and {len(before)} references: each corpus needs one of each")
    pairs = list(zip(after, before, strict=True))
    for i, (a, b) in enumerate(pairs):
        for task in TASKS:
            if (a[task] is None) != (b[task] is None):
                raise ValueError(f"{task} is defined in only one of predictions[{i}] and references[{i}]")
    return pairs


def _rows(rows: Iterable[Mapping[str, Any]], name: str) -> list[Scores]:
    if not isinstance(rows, Iterable) or isinstance(rows, str | Mapping):
        raise ValueError(f"{name}: expected a list with one row for each earlier corpus, not {type(rows).__name__}")
    return [_row(row, f"{name}[{i}]") for i, row in enumerate(rows)]


def _row(row: Mapping[str, Any], where: str) -> Scores:
    if not isinstance(row, Mapping) or set(row) != set(TASKS):
        raise ValueError(f"{where}: the keys must be {', '.join(TASKS)}, not {reprlib.repr(row)}")
    return {task: _score(row[task], f"{where}: {task}") for task in TASKS}


def _score(value: object, where: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, Real) and not isinstance(value, bool):
        with suppress(OverflowError):
            score = float(value)
            if abs(score) <= LARGEST:
                return score
    raise ValueError(f"{where} is {reprlib.repr(value)}; it must be a finite number, or None for a task not defined")


def _gap(a: float | None, b: float | None) -> float:
    return 0.0 if a is None or b is None else max(0.0, a - b)
