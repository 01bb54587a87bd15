"""FUAR is equation 1 of the CKL paper: forgotten / (updated + acquired)."""

import math
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalwiki.eval_harness.metrics import fuar as module
from temporalwiki.eval_harness.metrics.fuar import fuar

Row = dict[str, Any]


def row(invariant: Any, updated: Any, new: Any) -> Row:
    return {"invariant": invariant, "updated": updated, "new": new}


# Table 2 of the paper: EM on InvariantLAMA, UpdatedLAMA and NewLAMA, and the printed FUAR.
INITIAL = row(24.17, 1.62, 1.88)
TABLE_2 = {
    "Vanilla": (12.89, 10.17, 3.77, 1.08),
    "RecAdam": (13.20, 12.55, 4.02, 0.84),
    "Mix-Review": (13.92, 6.49, 2.89, 1.74),
    "LoRA": (16.58, 12.77, 4.52, 0.55),
    "K-Adapter, k=2": (19.59, 12.34, 5.03, 0.33),
    "K-Adapter, k=3": (19.76, 12.66, 4.02, 0.33),
    "Modular": (20.29, 12.66, 4.65, 0.28),
}


@pytest.mark.parametrize(("invariant", "updated", "new", "printed"), TABLE_2.values(), ids=TABLE_2)
def test_table_2_of_the_paper(invariant: float, updated: float, new: float, printed: float) -> None:
    result = fuar([row(invariant, updated, new)], [INITIAL])
    assert abs(result["fuar"] - printed) <= 0.005
    assert result["no_gain"] is False


# predictions, references, and the result: fuar, forgotten, updated, acquired
BY_HAND: dict[str, tuple[list[Row], list[Row], tuple[float, float, float, float]]] = {
    # the paper's two phases: FUAR((IL, n.d.), n.d., NewLAMA-Easy) = 6 / 4
    "two phases": ([row(18, None, 6), row(None, None, 6)], [row(24, None, 2), row(None, None, 5)], (1.5, 6, 0, 4)),
    "no gain": ([row(18, 2, 1)], [row(24, 2, 2)], (math.inf, 6, 0, 0)),
    "negatives of perplexities": ([row(-6, -1, -4)], [row(-2, -5, -4)], (1, 4, 4, 0)),
    "a gain that the ratio cannot be told of": ([row(0, 5e-324, 0)], [row(1e99, 0, 0)], (math.inf, 1e99, 5e-324, 0)),
    "numbers of numpy": ([row(np.float32(18), np.int64(10), np.float64(6))], [row(24, 2, 2)], (0.5, 6, 8, 4)),
}


@pytest.mark.parametrize(("predictions", "references", "expected"), BY_HAND.values(), ids=BY_HAND)
def test_by_hand(predictions: list[Row], references: list[Row], expected: tuple[float, ...]) -> None:
    result = fuar(predictions, references)
    assert (result["fuar"], result["forgotten"], result["updated"], result["acquired"]) == expected
    assert result["no_gain"] is (result["fuar"] == math.inf)
    assert list(result) == ["fuar", "no_gain", "forgotten", "updated", "acquired"]
    assert all(type(value) is float for name, value in result.items() if name != "no_gain")


@pytest.mark.parametrize("task", ["updated", "new"])
def test_sums_are_rounded_once(task: str) -> None:
    before = row(1, 0, 0)
    assert 0.1 + 0.2 + 0.3 > 0.6  # one by one
    result = fuar([before | {task: gain} for gain in (0.1, 0.2, 0.3)], [before] * 3)
    assert result["updated" if task == "updated" else "acquired"] == 0.6


GOOD = [row(1, 2, 3)]
NUMBER = "it must be a finite number, or None for a task not defined"
KEYS = "the keys must be invariant, updated, new, not"
REFUSED: dict[str, tuple[Any, Any, str]] = {
    "nothing": ([], [], "FUAR is not defined: no row has an invariant task"),
    "no invariant task": ([row(None, 1, 1)] * 2, [row(None, 0, 0)] * 2, "not defined: no row has an invariant task"),
    "no task that can gain": (
        [row(1, None, None), row(None, 1, 1)],
        [row(2, None, None), row(None, 0, 0)],
        "FUAR is not defined: no row with an invariant task has an updated or a new task",
    ),
    "NaN": ([row(1, 2, math.nan)], GOOD, rf"predictions\[0\]: new is nan; {NUMBER}"),
    "infinite": (GOOD * 2, [*GOOD, row(-math.inf, 2, 3)], rf"references\[1\]: invariant is -inf; {NUMBER}"),
    "beyond any float": ([row(10**400, 2, 3)], GOOD, rf"predictions\[0\]: invariant is 1000+\.\.\.0+; {NUMBER}"),
    "so large that sums overflow": ([row(1, 2, 1e308)], GOOD, rf"new is 1e\+308; {NUMBER}"),
    "text": ([row(1, "2", 3)], GOOD, rf"predictions\[0\]: updated is '2'; {NUMBER}"),
    "truth value": ([row(1, 2, True)], GOOD, f"new is True; {NUMBER}"),
    "a key is missing": (
        [{"invariant": 1, "new": 2}],
        GOOD,
        rf"predictions\[0\]: {KEYS} {{'invariant': 1, 'new': 2}}",
    ),
    "a key too many": ([row(1, 2, 3) | {"nwe": 1}], GOOD, rf"predictions\[0\]: {KEYS}"),
    "a row is not a dict": ([(1, 2, 3)], GOOD, rf"predictions\[0\]: {KEYS} \(1, 2, 3\)"),
    "a row is missing": ([None], GOOD, rf"predictions\[0\]: {KEYS} None"),
    "a row instead of rows": (row(1, 2, 3), GOOD, "predictions: expected a list with one row for each .*, not dict"),
    "no references": (GOOD, None, "references: expected a list with one row for each .*, not NoneType"),
    "other lengths": (GOOD, GOOD * 2, "1 predictions and 2 references"),
    "defined before alone": ([row(1, None, 3)], GOOD, r"updated .* only one of predictions\[0\] and references\[0\]"),
    "defined after alone": (GOOD * 2, [*GOOD, row(None, 2, 3)], r"invariant .* only one of predictions\[1\]"),
}


@pytest.mark.parametrize(("predictions", "references", "message"), REFUSED.values(), ids=REFUSED)
def test_what_has_no_fuar_is_refused_in_one_line(predictions: Any, references: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        fuar(predictions, references)
    assert "\n" not in str(error.value)


SCORE = st.integers(0, 10_000).map(lambda hundredths: hundredths / 100)


@st.composite
def scores(draw: st.DrawFn) -> tuple[list[Row], list[Row]]:
    """A strategy for rows of both sides; at least the first row has all three tasks."""
    after, before = [row(*(draw(SCORE) for _ in range(3)))], [row(*(draw(SCORE) for _ in range(3)))]
    for _ in range(draw(st.integers(0, 4))):
        defined = [draw(st.booleans()) for _ in range(3)]
        after.append(row(*(draw(SCORE) if d else None for d in defined)))
        before.append(row(*(draw(SCORE) if d else None for d in defined)))
    return after, before


def reference(after: list[Row], before: list[Row]) -> tuple[Fraction, Fraction]:
    """Return numerator and denominator of equation 1 as exact numbers."""
    above = below = Fraction(0)
    for n, i in zip(after, before, strict=True):
        if i["invariant"] is None:
            continue
        above += max(0, Fraction(i["invariant"]) - Fraction(n["invariant"]))
        for task in ("updated", "new"):
            if i[task] is not None:
                below += max(0, Fraction(n[task]) - Fraction(i[task]))
    return above, below


@given(scores())
def test_it_is_the_equation(rows: tuple[list[Row], list[Row]]) -> None:
    result, (above, below) = fuar(*rows), reference(*rows)
    assert result["forgotten"] == pytest.approx(float(above))
    assert result["updated"] + result["acquired"] == pytest.approx(float(below))
    assert result["fuar"] == (pytest.approx(float(above / below)) if below else math.inf)


def test_it_is_one_file_that_needs_the_standard_library_alone() -> None:
    path = Path(module.__file__)
    assert path.name == "fuar.py" and path.parent.name == "metrics"
    subprocess.run([sys.executable, "-I", "-S", str(path)], check=True)
