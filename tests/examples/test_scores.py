"""The numbers of the study, from results made by hand: methods, single runs, and differences to `diff`."""

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from a_result import write_known
from a_row import make_row
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


def test_the_price_of_a_learned_fact_ends_where_the_interval_of_what_was_learned_ends(
    tmp_path: Path, scores: ModuleType
) -> None:
    """40 facts in three forms; the start model's own tokens are not the update's."""
    of: dict[str, Any] = {"task": "learned_and_forgotten", "measure": "learned", "tested": "0910"}
    rows = [make_row(label="initial", method="initial", month=None, tokens=1_000, **(of | {"measure": "new_known"}))]
    for label, weights, points in (("diff", 1_000, (40, 20, 50)), ("lora", 10, (-5, -10, 10))):
        value, low, high = points
        own = {"label": label, "method": label, "month": "0910", "tokens": 9_000, "trainable": weights}
        made = of | own | {"value": value, "low": low, "high": high}
        rows += [make_row(test=test, items=items, **made) for test, items in (("all", 120), ("name/all", 40))]
    cells = tmp_path / "cells.csv"
    cells.write_text(
        "cell,state,seconds,why\ndiff-seed0/0910,done,12.5,\ndiff-seed1/0910,done,10.0,\n"
        "diff-seed0/0910/learned_and_forgotten/probes-0910,done,3.0,\nlora/0910,failed,1.0,no memory\n"
    )
    found = {(row["method"], row["measure"]): row for row in scores.prices(rows, cells)}
    assert {at: (row["value"], row["low"], row["high"]) for at, row in found.items()} == {
        ("diff", "thousand_tokens"): (8, None, None),
        ("diff", "kilobytes"): (4, None, None),
        ("diff", "seconds"): (10, None, None),
        ("diff", "thousand_tokens_per_fact"): (0.5, 0.4, 1.0),  # 16, 20 and 8 facts
        ("lora", "thousand_tokens"): (8, None, None),
        ("lora", "kilobytes"): (0.04, None, None),
        ("lora", "thousand_tokens_per_fact"): (None, 2, None),  # at best 4 facts
    }


def test_a_method_is_also_compared_with_diff_at_its_own_budget(tmp_path: Path, scores: ModuleType) -> None:
    known = {"diff": 30, "diff-2x": 36, "study-2x": 45}
    results = [
        write_known(tmp_path, label, seed, count, method=label.partition("-")[0], trained_on=["diffset-0910"])
        for label, count in known.items()
        for seed in (0, 1)
    ]
    made = [row for row in scores.numbers(results, tmp_path) if (row["measure"], row["test"]) == ("new_known", "all")]
    apart = {(row["method"], row["minus"]): row["value"] for row in made if row["minus"]}
    assert apart == {
        ("diff-2x", "diff"): pytest.approx(10),  # 6 of 60
        ("study-2x", "diff"): pytest.approx(25),
        ("study-2x", "diff-2x"): pytest.approx(15),
    }
