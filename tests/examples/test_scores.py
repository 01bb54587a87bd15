"""The numbers of the study, from results made by hand: methods, single runs, and differences to `diff`."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from a_result import write_known
from documents import ROOT


@pytest.fixture()
def found(tmp_path: Path) -> list[dict[str, Any]]:
    spec = importlib.util.spec_from_file_location("factbook_scores", ROOT / "examples" / "factbook" / "scores.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    months = {"trained_on": ["diffset-0910"]}
    runs = {"diff": (30, 33, 36), "shuffled": (6, 9, 12)}
    results = [
        write_known(tmp_path, label, seed, known, method=label, **months)
        for label, counts in runs.items()
        for seed, known in enumerate(counts)
    ]
    results.append(write_known(tmp_path, "diff", 0, 3, method="diff", options={"temperature": 1.25}, **months))
    return list(module.numbers(results, tmp_path))


@pytest.mark.parametrize(
    ("method", "minus", "runs", "value"),
    [
        ("diff", "", 3, 55),  # 30, 33 and 36 of 60
        ("shuffled", "", 3, 15),
        ("diff, seed 0", "", 1, 50),
        ("shuffled, seed 2", "", 1, 20),
        ("shuffled", "diff", 3, -40),
    ],
)
def test_a_number_of_new_facts_known(
    found: list[dict[str, Any]], method: str, minus: str, runs: int, value: float
) -> None:
    wanted = {"measure": "new_known", "test": "all", "method": method, "minus": minus}
    (row,) = (row for row in found if wanted.items() <= row.items())
    assert (row["runs"], row["facts"]) == (runs, 60)
    assert row["value"] == pytest.approx(value)
    assert row["low"] < value < row["high"]


def test_old_facts_that_all_runs_know_alike_do_not_differ(found: list[dict[str, Any]]) -> None:
    (row,) = (row for row in found if (row["measure"], row["minus"]) == ("old_known", "diff"))
    assert row["value"] == pytest.approx(0)
