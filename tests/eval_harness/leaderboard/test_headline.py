"""What the page says first: a line for each method, the newest month first, and a sentence that is not too sure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from temporalwiki.eval_harness.leaderboard.headline import NEW, OLD, Month, months, ratio
from temporalwiki.eval_harness.leaderboard.rows import Row
from temporalwiki.methods import CONTROLS

from a_row import make_row

MONTH = "20211101-20211201"
Interval = tuple[float, float, float]  # low, value, high


class Method(NamedTuple):
    new: Interval
    old: Interval
    # the best and the worst rank in both
    ranks: tuple[tuple[int, int] | None, tuple[int, int] | None] = (None, None)
    runs: int = 3
    knows: bool = True  # more new facts than by chance


def facts(label: str, scores: Method, tested: str = MONTH, **of: Any) -> list[Row]:
    """Rows of known facts of a checkpoint on its own month."""
    what = {"label": label, "method": label, "month": tested, "tested": tested, "config": f"probes-{tested}"}
    what |= {"task": "learned_and_forgotten", "test": "all", "competes": scores.knows, "runs": scores.runs}
    what |= {"higher_is_better": True, "control": label in CONTROLS}
    return [
        make_row(**what | {"measure": measure, "low": low, "value": value, "high": high} | ranks(rank) | of)
        for measure, (low, value, high), rank in (
            ("new_known", scores.new, scores.ranks[0]),
            ("old_known", scores.old, scores.ranks[1]),
        )
    ]


def ranks(ranks: tuple[int, int] | None) -> dict[str, Any]:
    return dict(zip(("rank_best", "rank_worst"), ranks or (None, None), strict=True))


def newest(methods: Mapping[str, Method]) -> Month:
    return months([row for label, method in methods.items() for row in facts(label, method)])[0]


def at(value: float, arm: float = 5) -> Interval:
    return value - arm, value, value + arm


# Methods, the finding, and the advice.
SAID: dict[str, tuple[dict[str, Method], str, str]] = {
    "one leads": (
        {"diff": Method(at(61), at(70)), "lora": Method(at(30), at(88))},
        "Diff knows 61 % of new facts, and 70 % of old ones",
        "",
    ),
    "intervals overlap, and one of the two keeps more": (
        {"diff": Method(at(61), at(50)), "mix_review": Method(at(60), at(70)), "lora": Method(at(30), at(88))},
        "Diff and Mix-Review know 60 to 61 % of new facts, with no clear difference",
        "Among the methods that know most new facts, Mix-Review keeps most old ones.",
    ),
    "paired comparisons decide, although intervals are apart": (
        {
            "diff": Method(at(61), at(50), ((1, 2), (2, 3))),
            "mix_review": Method(at(40), at(70), ((1, 2), (2, 3))),
            "lora": Method(at(30), at(88), ((3, 3), (1, 1))),
        },
        "Diff and Mix-Review know 40 to 61 % of new facts, with no clear difference",
        "Among the methods that know most new facts, none clearly keeps more old ones.",
    ),
    "paired comparisons decide, although intervals overlap": (
        {
            "diff": Method(at(61), at(50), ((1, 1), (2, 2))),
            "lora": Method(at(60), at(70), ((2, 2), (1, 1))),
        },
        "Diff knows 61 % of new facts, and 50 % of old ones",
        "",
    ),
    "nobody knows more than by chance": (
        {"diff": Method(at(17), at(50), knows=False), "lora": Method(at(12), at(70), knows=False)},
        "No method knows more new facts than by chance",
        "",
    ),
    "one that knows no more than by chance does not lead": (
        {"diff": Method(at(40), at(50)), "random": Method(at(60, 60), at(9), knows=False)},
        "Diff knows 40 % of new facts, and 50 % of old ones",
        "",
    ),
    "one run each": (
        {
            "diff": Method(at(61), at(50), ((1, 2), (1, 2)), runs=1),
            "lora": Method(at(30), at(70), ((1, 2), (1, 2)), runs=1),
        },
        "One training run each: which method knows most cannot be told",
        "",
    ),
    "many share the lead": (
        {name: Method(at(61), at(70)) for name in ("diff", "recadam", "mix_review", "full", "ewc")}
        | {"lora": Method(at(30), at(88))},
        "5 of 6 methods know 61 % of new facts, with no clear difference",
        "Among the methods that know most new facts, none clearly keeps more old ones.",
    ),
    "one method": ({"diff": Method(at(61), at(70))}, "Diff knows 61 % of new facts, and 70 % of old ones", ""),
}


@pytest.mark.parametrize("case", SAID)
def test_what_is_said_of_a_month(case: str) -> None:
    methods, finding, advice = SAID[case]
    month = newest(methods)
    assert (month.finding, month.advice) == (finding, advice)
    assert "significant" not in month.finding + month.advice


def test_the_newest_month_and_the_best_method_come_first_and_the_start_model_last() -> None:
    lines = {
        "diff": Method(at(40), at(50)),
        "lora": Method(at(61), at(50)),
        "random": Method(at(9), at(9), knows=False),
    }
    older = "20211001-20211101"
    rows = [row for month in (older, MONTH) for label, method in lines.items() for row in facts(label, method, month)]
    text = {"task": "twiki_intrinsic", "kind": "diffset", "test": "train", "measure": "proper_noun_perplexity"}
    rows += [make_row(**text, label="initial", method="initial", month=None, tested=MONTH, value=50.0)]
    rows += [make_row(**text, label="diff", month=MONTH, tested=MONTH, value=40.0)]
    rows += [make_row(**text, label="diff", month=older, tested=MONTH, value=1.0)]  # not of its own month
    found = months(rows)
    assert [month.name for month in found] == ["November to December 2021", "October to November 2021"]
    assert [entry.name for entry in found[0].entries] == ["LoRA", "Diff", "random", "Start model"]
    assert [column.title for column in found[0].columns] == ["New facts known", "Old facts known", "New text"]
    new_text = found[0].columns[2]
    values = {entry.name: entry.values[new_text].value for entry in found[0].entries if new_text in entry.values}
    assert values == {"Diff": 0.8, "Start model": 1.0}
    assert [entry.start for entry in found[0].entries] == [False, False, False, True]
    assert [column.title for column in found[1].columns] == ["New facts known", "Old facts known"]


def test_a_model_of_ones_own_is_no_start_model() -> None:
    """It has no method and no month: `temporalwiki evaluate --start` scored it."""
    (month,) = months(facts("acme/model", Method(at(61), at(50)), method=None, month=None))
    assert [(entry.name, entry.start) for entry in month.entries] == [("acme/model", False)]


def test_older_results_show_changed_and_unchanged_facts_instead() -> None:
    rows = []
    for label, month, values in (("initial", None, (100.0, 50.0)), ("diff", MONTH, (80.0, 60.0))):
        for test, value in zip(("changed", "unchanged"), values, strict=True):
            rows.append(make_row(label=label, method=label, month=month, tested=MONTH, test=test, value=value))
    (month,) = months(rows)
    assert [column.title for column in month.columns] == ["Changed facts", "Unchanged facts"]
    diff, start = month.entries
    assert [value.value for value in diff.values.values()] == [0.8, 1.2]
    assert start.start and month.finding == month.advice == ""


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_has_no_place(value: float) -> None:
    broken = Method((value, value, value), (value, value, value))
    month = newest({"diff": Method(at(40), at(50)), "lora": broken})
    assert [entry.name for entry in month.entries] == ["Diff"]


def test_without_a_trained_model_there_is_nothing() -> None:
    assert months([make_row(label="initial", method="initial", month=None)]) == []
    assert months([make_row(task="lama", kind="updatedlama", measure="exact_match", tested=None, month=None)]) == []
    assert months([]) == []


def test_a_missing_interval_does_not_make_a_leader() -> None:
    rows = facts("diff", Method(at(61), at(50))) + facts("lora", Method(at(30), at(50)), low=None, high=None)
    assert [row.low for row in rows[2:]] == [None, None]
    (month,) = months(rows)
    assert {NEW, OLD} == set(month.columns)
    assert month.finding == "Diff and LoRA know 30 to 61 % of new facts, with no clear difference"


def test_a_model_that_was_trained_on_test_data_does_not_lead() -> None:
    cheat = facts("lora (trained on test data)", Method(at(99), at(99)), method="lora", trained_on_test=True)
    (month,) = months(facts("diff", Method(at(61), at(70))) + facts("ewc", Method(at(30), at(50))) + cheat)
    assert month.finding == "Diff knows 61 % of new facts, and 70 % of old ones"
    assert [entry.name for entry in month.entries] == ["Diff", "EWC", "LoRA (trained on test data)"]
    found = months([*cheat, *(replace(row, label="other", method="ewc") for row in cheat)])[0].finding
    assert found == "No method knows more new facts than by chance"


def test_what_chance_and_letters_give_is_known() -> None:
    rows = facts("diff", Method(at(61), at(70)))
    rows += [replace(rows[0], measure="chance", value=17.0), replace(rows[0], test="spelling/all", value=21.0)]
    (month,) = months(rows)
    assert (month.chance, month.spelling) == (17.0, 21.0)


@pytest.mark.parametrize(
    ("value", "shown"), [(1.004, "1.00"), (0.1, "0.10"), (0.0538, "0.05"), (0.0062, "0.006"), (12.345, "12.35")]
)
def test_a_small_ratio_keeps_a_digit(value: float, shown: str) -> None:
    assert ratio(value) == shown


def test_controls_come_last_and_lead_nothing() -> None:
    methods = {"shuffled": Method(at(99), at(99), ((1, 1), (1, 1))), "diff": Method(at(61), at(25))}
    month = newest(methods)
    assert [entry.name for entry in month.entries] == ["Diff", "Shuffled"]
    assert [entry.name for entry in month.able] == ["Diff"]
    assert month.finding == "Diff knows 61 % of new facts, and 25 % of old ones"
    assert not months(facts("shuffled", methods["shuffled"]))
