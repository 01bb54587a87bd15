"""The numbers of the study, from results made by hand: methods, single runs, and differences to `diff`."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from a_result import write_known
from documents import ROOT


@pytest.fixture(scope="module")
def scores() -> ModuleType:
    spec = importlib.util.spec_from_file_location("factbook_scores", ROOT / "examples" / "factbook" / "scores.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture()
def found(tmp_path: Path, scores: ModuleType) -> list[dict[str, Any]]:
    months = {"trained_on": ["diffset-0910"]}
    runs = {"diff": (30, 33, 36), "shuffled": (6, 9, 12)}
    results = [
        write_known(tmp_path, label, seed, known, method=label, **months)
        for label, counts in runs.items()
        for seed, known in enumerate(counts)
    ]
    results.append(write_known(tmp_path, "diff", 0, 3, method="diff", options={"temperature": 1.25}, **months))
    return list(scores.numbers(results, tmp_path))


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


def test_facts_that_a_later_year_changes_again_do_not_last(tmp_path: Path, scores: ModuleType) -> None:
    """0910 changes the facts of Q20 to Q79. Of 0809's facts, those of Q0 to Q19 last."""
    read = {"0809": ["diffset-0809"], "0910": ["diffset-0809", "diffset-0910"]}
    cells = {("0809", "0809"): (30, 0), ("0910", "0809"): (5, 0), ("0910", "0910"): (30, 20)}  # known, subject
    results = [
        write_known(
            tmp_path,
            "diff",
            0,
            known,
            config=f"probes-{asked}",
            subject=subject,
            name=after,
            method="diff",
            trained_on=read[after],
        )
        for (after, asked), (known, subject) in cells.items()
    ]
    results += [
        write_known(
            tmp_path,
            "study",
            0,
            known,
            config=f"probes-{at}",
            subject=subject,
            name=f"study-{at}",
            method="study",
            trained_on=read[at],
        )
        for at, known, subject in (("0809", 36, 0), ("0910", 42, 20))
    ]
    rows = list(scores.numbers(results, tmp_path))
    made = {(row["read"], row["year"]): row for row in rows if row["test"] == "lasting" and row["method"] == "diff"}
    assert {at: (row["value"], row["facts"]) for at, row in made.items()} == {
        ("0809", "0809"): (pytest.approx(100), 20),
        ("0910", "0809"): (pytest.approx(25), 20),
        ("0910", "0910"): (pytest.approx(50), 60),
        ("1 later", "all"): (pytest.approx(75), 20),
    }
    (row,) = (row for row in rows if row["read"] == "just read")  # 60 and 70 %, of diff 50 and 50 %
    assert (row["method"], row["minus"], row["value"]) == ("study", "diff", pytest.approx(15))
