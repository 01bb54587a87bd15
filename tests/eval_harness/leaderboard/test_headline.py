"""What the page says first: a line for each method, the newest month first, and a sentence that is not too sure."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from temporalwiki.eval_harness.leaderboard.headline import Month, months
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


FIRST, SECOND, THIRD, TIED = (1, 1), (2, 2), (3, 3), (1, 2)

# Methods, and the title.
TITLES: dict[str, tuple[dict[str, Method], str]] = {
    "one is ranked first, although intervals overlap": (
        {"diff": Method(at(61), at(50), (FIRST, None)), "lora": Method(at(60), at(70), (SECOND, FIRST))},
        "Diff knows 61 % of new facts and 50 % of old ones",
    ),
    "ranks do not separate them, although intervals are apart": (
        {
            "diff": Method(at(61), at(50), (TIED, TIED)),
            "mix_review": Method(at(40), at(70), (TIED, FIRST)),
            "lora": Method(at(30), at(88), (THIRD, FIRST)),
        },
        "No clear winner: 2 of 3 methods know 40–61 % of new facts",
    ),
    "all are equal": (
        {name: Method(at(61), at(70), (TIED, TIED)) for name in ("diff", "lora")},
        "No clear winner: 2 of 2 methods know 61 % of new facts",
    ),
    "no ranks": (
        {"diff": Method(at(61), at(70)), "lora": Method(at(30), at(88))},
        "No clear winner: 2 of 2 methods know 30–61 % of new facts",
    ),
    "one has no rank": (
        {"diff": Method(at(61), at(70), (FIRST, FIRST)), "lora": Method(at(80), at(88))},
        "No clear winner: 2 of 2 methods know 61–80 % of new facts",
    ),
    "nobody knows more than by chance": (
        {"diff": Method(at(17), at(50), knows=False), "lora": Method(at(12), at(70), knows=False)},
        "No method clearly knows more new facts than by chance",
    ),
    "one that knows no more than by chance does not lead": (
        {"diff": Method(at(40), at(50)), "random": Method(at(60, 60), at(9), knows=False)},
        "Diff knows 40 % of new facts and 50 % of old ones",
    ),
    "one method": ({"diff": Method(at(61), at(70))}, "Diff knows 61 % of new facts and 70 % of old ones"),
    "a control leads nothing": (
        {"shuffled": Method(at(99), at(99), (FIRST, FIRST)), "diff": Method(at(61), at(25), (SECOND, None))},
        "Diff knows 61 % of new facts and 25 % of old ones",
    ),
}


@pytest.mark.parametrize("case", TITLES)
def test_a_title_of_at_most_twelve_words_names_a_method_only_if_its_rank_does(case: str) -> None:
    methods, title = TITLES[case]
    month = newest(methods)
    assert month.title == title
    assert len(title.replace(" %", "%").split()) <= 12
    assert not months(facts("shuffled", Method(at(99), at(99))))


@pytest.mark.parametrize(
    ("runs", "says"),
    [
        ((1, 1), "One training run for each method: how much runs differ is not known, so no two methods can be told"),
        ((3, 3), "Means of 3 training runs; the intervals include the differences between runs."),
        ((2, 3), "Means of 2 to 3 training runs; the intervals include the differences between runs."),
        ((1, 3), "Means of up to 3 training runs; ranks assume that a method that ran once varies like the others."),
    ],
)
def test_it_says_how_many_training_runs_there_are(runs: tuple[int, int], says: str) -> None:
    methods = {label: Method(at(61), at(50), runs=of) for label, of in zip(("diff", "lora"), runs, strict=True)}
    assert newest(methods).runs.startswith(says)


def test_the_newest_month_and_the_best_method_come_first_and_the_start_model_last() -> None:
    lines = {
        "diff": Method(at(40), at(50)),
        "lora": Method(at(61), at(50)),
        "random": Method(at(9), at(9), knows=False),
    }
    older = "20211001-20211101"
    rows = [row for month in (older, MONTH) for label, method in lines.items() for row in facts(label, method, month)]
    rows += facts("initial", Method(at(4), at(73), knows=False), method="initial", month=None)
    rows += facts("diff", Method(at(1), at(1)), month=older)  # not of its own month
    found = months(rows)
    assert [month.name for month in found] == ["November to December 2021", "October to November 2021"]
    assert [entry.name for entry in found[0].entries] == ["LoRA", "Diff", "random", "Start model"]
    assert [entry.start for entry in found[0].entries] == [False, False, False, True]
    assert [entry.name for entry in found[1].entries] == ["LoRA", "Diff", "random"]


def test_a_model_of_ones_own_is_no_start_model() -> None:
    """It has no method and no month: `temporalwiki evaluate --start` scored it."""
    (month,) = months(facts("acme/model", Method(at(61), at(50)), method=None, month=None))
    assert [(entry.name, entry.start) for entry in month.entries] == [("acme/model", False)]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_has_no_place(value: float) -> None:
    broken = Method((value, value, value), (value, value, value))
    month = newest({"diff": Method(at(40), at(50)), "lora": broken})
    assert [entry.name for entry in month.entries] == ["Diff"]


def test_without_a_trained_model_there_is_nothing() -> None:
    assert months([make_row(label="initial", method="initial", month=None)]) == []
    assert months([make_row(task="lama", kind="updatedlama", measure="exact_match", tested=None, month=None)]) == []
    assert months([]) == []


def test_a_model_that_was_trained_on_test_data_does_not_lead() -> None:
    cheat = facts("lora (trained on test data)", Method(at(99), at(99)), method="lora", trained_on_test=True)
    (month,) = months(facts("diff", Method(at(61), at(70))) + cheat)
    assert month.title == "Diff knows 61 % of new facts and 70 % of old ones"
    assert [entry.name for entry in month.entries] == ["Diff", "LoRA (trained on test data)"]
    found = months([*cheat, *(replace(row, label="other", method="ewc") for row in cheat)])[0].title
    assert found == "No method clearly knows more new facts than by chance"


@pytest.mark.parametrize(
    ("method", "of", "rank"),
    [
        (Method(at(61), at(50), (TIED, None)), {}, "1–2"),
        (Method(at(16), at(50), knows=False), {}, "may be chance"),
        (Method(at(16), at(50), knows=False), {"control": True}, "control"),
        (Method(at(99), at(99)), {"trained_on_test": True}, "saw test data"),
        (Method(at(61), at(50)), {}, "not known"),  # as with too few subjects
    ],
)
def test_without_a_rank_it_says_why(method: Method, of: dict[str, Any], rank: str) -> None:
    rows = facts("diff", Method(at(61), at(50), (FIRST, None))) + facts("lora", method, **of)
    assert {entry.name: entry.rank for entry in months(rows)[0].entries} == {"Diff": "1", "LoRA": rank}


def test_what_chance_and_letters_give_is_known() -> None:
    rows = facts("diff", Method(at(61), at(70)))
    rows += [replace(rows[0], measure="chance", value=17.0), replace(rows[0], test="spelling/all", value=21.0)]
    (month,) = months(rows)
    assert (month.chance, month.spelling) == (17.0, 21.0)
    rows = [replace(row, competes=False) for row in rows]
    assert months(rows)[0].title == "No method clearly knows more new facts than by chance (17 %)"
