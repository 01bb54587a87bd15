"""What the page says first: a line for each method, the newest month first, and a sentence that is not too sure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from temporalwiki.eval_harness.leaderboard.headline import FORGOTTEN, LEARNED, Month, months, ratio
from temporalwiki.eval_harness.leaderboard.rows import Row

from a_row import make_row

MONTH = "20211101-20211201"
Interval = tuple[float, float, float]  # low, value, high


class Method(NamedTuple):
    learned: Interval
    forgotten: Interval
    # the best and the worst rank in both
    ranks: tuple[tuple[int, int] | None, tuple[int, int] | None] = (None, None)


def facts(label: str, scores: Method, tested: str = MONTH, **of: Any) -> list[Row]:
    """Rows of learned and forgotten facts of a checkpoint on its own month."""
    what = {"label": label, "method": label, "month": tested, "tested": tested, "config": f"probes-{tested}"}
    what |= {"task": "learned_and_forgotten", "test": "all", "competes": scores.learned[1] > scores.forgotten[1]}
    return [
        make_row(**what | {"measure": measure, "low": low, "value": value, "high": high} | ranks(rank) | of)
        for measure, (low, value, high), rank in (
            ("learned", scores.learned, scores.ranks[0]),
            ("forgotten", scores.forgotten, scores.ranks[1]),
        )
    ]


def ranks(ranks: tuple[int, int] | None) -> dict[str, Any]:
    return dict(zip(("rank_best", "rank_worst"), ranks or (None, None), strict=True))


def newest(methods: Mapping[str, Method]) -> Month:
    return months([row for label, method in methods.items() for row in facts(label, method)])[0]


def at(value: float, arm: float = 0.1) -> Interval:
    return value - arm, value, value + arm


# Methods, the finding, and the advice.
SAID: dict[str, tuple[dict[str, Method], str, str]] = {
    "one leads in both": (
        {"diff": Method(at(1.5), at(0.1)), "lora": Method(at(0.5), at(0.4))},
        "Diff learned most and forgot least",
        "",
    ),
    "one leads in each": (
        {"diff": Method(at(1.5), at(0.4)), "lora": Method(at(0.5), at(-0.2))},
        "Diff learned most; LoRA forgot least",
        "",
    ),
    "intervals overlap": (
        {
            "diff": Method(at(1.5), at(0.4)),
            "mix_review": Method(at(1.4), at(0.1)),
            "lora": Method(at(0.5), at(-0.2)),
        },
        "Diff and Mix-Review learned most, with no clear difference between them; LoRA forgot least",
        "Among the methods that learned most, none clearly forgot less than the others.",
    ),
    "of the methods that learned most, one has better ranks": (
        {
            "diff": Method(at(1.5), at(0.4), ((1, 2), (3, 3))),
            "mix_review": Method(at(1.4), at(0.35), ((1, 2), (2, 2))),
            "lora": Method(at(0.5), at(-0.2), ((3, 3), (1, 1))),
        },
        "Diff and Mix-Review learned most, with no clear difference between them; LoRA forgot least",
        "Among the methods that learned most, Mix-Review forgot least.",
    ),
    "no method that learned most has better ranks, although their intervals are apart": (
        {
            "diff": Method(at(1.5), at(0.4), ((1, 2), (2, 3))),
            "mix_review": Method(at(1.4), at(0.1), ((1, 2), (2, 3))),
            "lora": Method(at(0.5), at(-0.2), ((3, 3), (1, 1))),
        },
        "Diff and Mix-Review learned most, with no clear difference between them; LoRA forgot least",
        "Among the methods that learned most, none clearly forgot less than the others.",
    ),
    "all intervals overlap": (
        {"diff": Method(at(1.5), at(0.4)), "lora": Method(at(1.4), at(0.3))},
        "No method clearly learned more than the others; none clearly forgot less than the others",
        "",
    ),
    "nobody learned": (
        {"diff": Method(at(0.05), at(-0.4)), "lora": Method(at(0.02), at(-0.1, 0.05))},
        "No method clearly learned the changed facts; Diff forgot least",
        "",
    ),
    "many share the lead": (
        {name: Method(at(1.5), at(0.4)) for name in ("diff", "recadam", "mix_review", "full", "ewc")}
        | {"lora": Method(at(0.5), at(-0.2))},
        "5 of 6 methods learned most, with no clear difference between them; LoRA forgot least",
        "Among the methods that learned most, none clearly forgot less than the others.",
    ),
    "ranks decide, because they are of paired comparisons": (
        {
            "diff": Method(at(1.5), at(0.4), ((1, 1), (2, 2))),
            "lora": Method(at(1.4), at(0.35), ((2, 2), (1, 1))),
        },
        "Diff learned most; LoRA forgot least",
        "",
    ),
    "a method that may have learned most did not clearly learn": (
        {
            "diff": Method(at(0.5), at(0.1)),
            "mix_review": Method(at(0.45, 0.5), at(0.1)),
            "lora": Method(at(0.2), at(-0.4)),
        },
        "Diff learned the changed facts, but not clearly more than Mix-Review; LoRA forgot least",
        "",
    ),
    "models that know nothing lead nowhere, and the sentence says why": (
        {
            "diff": Method(at(0.5), at(0.3)),
            "lora": Method(at(0.2), at(-0.1)),
            "random": Method(at(2.0), at(9.0)),  # loses changed facts less than others
            "blank": Method(at(-0.1), at(-0.05)),
        },
        "Among the methods that learned more than they forgot, Diff learned most; LoRA forgot least",
        "",
    ),
    "one method leads in both, of the methods that learned more than they forgot": (
        {"diff": Method(at(0.9), at(0.1)), "lora": Method(at(0.6), at(0.5)), "random": Method(at(2.0), at(9.0))},
        "Among the methods that learned more than they forgot, Diff learned most and forgot least",
        "",
    ),
    "nobody clearly leads, of the methods that learned more than they forgot": (
        {
            "diff": Method(at(0.25), at(0.15)),
            "lora": Method(at(0.22), at(0.12)),
            "blank": Method(at(0.0), at(0.0)),
        },
        "Among the methods that learned more than they forgot, none clearly learned more than the others; none "
        "clearly forgot less than the others",
        "",
    ),
    "a start model that was scored forgets least": (
        {
            "diff": Method(at(0.5), at(0.1), ((1, 1), (2, 2))),
            "lora": Method(at(0.3), at(0.05), ((2, 2), (1, 1))),
            "blank": Method(at(0), at(0)),
        },
        "Among the methods that learned more than they forgot, Diff learned most; LoRA forgot least",
        "",
    ),
    "only one learned more than it forgot": (
        {
            "diff": Method(at(0.5), at(0.1)),
            "random": Method(at(2.0), at(9.0)),
            "blank": Method(at(0.0, 0), at(0.0, 0)),
        },
        "Diff learned 0.50 and forgot 0.10 nats per token; random and blank did not learn more than they forgot",
        "",
    ),
    "nobody learned more than it forgot": (
        {"diff": Method(at(0.5), at(0.6)), "random": Method(at(2.0), at(9.0))},
        "No method learned more than it forgot",
        "",
    ),
    "one method": ({"diff": Method(at(1.48), at(0.05))}, "Diff learned 1.48 and forgot 0.05 nats per token", ""),
    "one method, which forgot nothing": (
        {"diff": Method(at(1.48), at(-0.05))},
        "Diff learned 1.48 nats per token and lost nothing of the unchanged facts (−0.05)",
        "",
    ),
    "one method, whose interval holds zero": (
        {"diff": Method(at(0.08), at(0.05))},
        "Diff did not clearly learn the changed facts and forgot 0.05 nats per token",
        "",
    ),
    "one method, which changed nothing": (
        {"diff": Method(at(0.08), at(-0.05))},
        "Diff did not clearly learn the changed facts and lost nothing of the unchanged ones (−0.05)",
        "",
    ),
}


@pytest.mark.parametrize("case", SAID)
def test_what_is_said_of_a_month(case: str) -> None:
    methods, finding, advice = SAID[case]
    month = newest(methods)
    assert (month.finding, month.advice) == (finding, advice)
    assert "significant" not in month.finding + month.advice


def test_the_newest_month_and_the_best_method_come_first_and_the_start_model_last() -> None:
    lines = {"diff": Method(at(0.5), at(0.1)), "lora": Method(at(1.5), at(0.1)), "random": Method(at(9), at(9.5))}
    older = "20211001-20211101"
    rows = [row for month in (older, MONTH) for label, method in lines.items() for row in facts(label, method, month)]
    text = {"task": "twiki_intrinsic", "kind": "diffset", "test": "train", "measure": "proper_noun_perplexity"}
    rows += [make_row(**text, label="initial", method="initial", month=None, tested=MONTH, value=50.0)]
    rows += [make_row(**text, label="diff", month=MONTH, tested=MONTH, value=40.0)]
    rows += [make_row(**text, label="diff", month=older, tested=MONTH, value=1.0)]  # not of its own month
    found = months(rows)
    assert [month.name for month in found] == ["November to December 2021", "October to November 2021"]
    assert [entry.name for entry in found[0].entries] == ["LoRA", "Diff", "random", "Start model"]
    assert [column.title for column in found[0].columns] == ["Learned", "Forgotten", "New text"]
    new_text = found[0].columns[2]
    values = {entry.name: entry.values[new_text].value for entry in found[0].entries if new_text in entry.values}
    assert values == {"Diff": 0.8, "Start model": 1.0}
    assert [entry.start for entry in found[0].entries] == [False, False, False, True]
    assert [column.title for column in found[1].columns] == ["Learned", "Forgotten"]


def test_a_model_of_ones_own_is_no_start_model() -> None:
    """It has no method and no month: `temporalwiki evaluate --start` scored it."""
    (month,) = months(facts("acme/model", Method(at(1.0), at(0.0)), method=None, month=None))
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
    month = newest({"diff": Method(at(0.5), at(0.1)), "lora": broken})
    assert [entry.name for entry in month.entries] == ["Diff"]


def test_without_a_trained_model_there_is_nothing() -> None:
    assert months([make_row(label="initial", method="initial", month=None)]) == []
    assert months([make_row(task="lama", kind="updatedlama", measure="exact_match", tested=None, month=None)]) == []
    assert months([]) == []


def test_a_missing_interval_does_not_make_a_leader() -> None:
    rows = facts("diff", Method(at(1.5), at(0.1))) + facts("lora", Method(at(0.5), at(0.4)), low=None, high=None)
    assert [row.low for row in rows[2:]] == [None, None]
    (month,) = months(rows)
    assert {LEARNED, FORGOTTEN} == set(month.columns)
    assert month.finding == "No method clearly learned more than the others; none clearly forgot less than the others"


def test_a_score_that_takes_no_knowledge_does_not_lead() -> None:
    lora = facts("lora", Method(at(0.2), at(0.1)))
    rows = facts("diff", Method(at(0.5), at(-0.4))) + lora + facts("other", Method(at(9.0), at(9.5)))
    said = "Among the methods that learned more than they forgot, Diff learned most and forgot least"
    assert months(rows)[0].finding == said


def test_a_model_that_was_trained_on_test_data_does_not_lead() -> None:
    cheat = facts("lora (trained on test data)", Method(at(9.0), at(-1.0)), method="lora", trained_on_test=True)
    (month,) = months(facts("diff", Method(at(0.5), at(-0.4))) + facts("ewc", Method(at(0.2), at(0.1))) + cheat)
    assert month.finding == "Diff learned most and forgot least"
    assert [entry.name for entry in month.entries] == ["Diff", "EWC", "LoRA (trained on test data)"]
    (month,) = months(facts("diff", Method(at(0.5), at(0.4))) + cheat)
    assert month.finding == "Diff learned 0.50 and forgot 0.40 nats per token"
    assert months([*cheat, *(replace(row, label="other", method="ewc") for row in cheat)])[0].finding == ""


@pytest.mark.parametrize(
    ("value", "shown"), [(1.004, "1.00"), (0.1, "0.10"), (0.0538, "0.05"), (0.0062, "0.006"), (12.345, "12.35")]
)
def test_a_small_ratio_keeps_a_digit(value: float, shown: str) -> None:
    assert ratio(value) == shown


def test_controls_come_last_and_lead_nothing() -> None:
    methods = {"shuffled": Method(at(9.0), at(-9.0), ((1, 1), (1, 1))), "diff": Method(at(1.5), at(0.25))}
    month = newest(methods)
    assert [entry.name for entry in month.entries] == ["Diff", "Shuffled"]
    assert [entry.name for entry in month.able] == ["Diff"]
    assert month.finding == "Diff learned 1.50 and forgot 0.25 nats per token"
    assert not months(facts("shuffled", methods["shuffled"]))
