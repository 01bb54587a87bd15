"""Lines of checkpoints and their order, months with two names, and scores relative to Initial."""

import random
from typing import Any

import pytest

from temporalwiki.eval_harness.leaderboard.rows import Row
from temporalwiki.eval_harness.leaderboard.selection import ModelBoard, ModelLine, ScoreName

from a_row import make_row

CHANGED = ScoreName("twiki_probes", "perplexity", "changed", "probes")
INITIAL: dict[str, Any] = {"label": "initial", "month": None, "method": "initial", "learning_rate": None}


def line_of(board: ModelBoard, label: str) -> ModelLine:
    (found,) = [line for line in board.lines if line.label == label]
    return found


def test_runs_that_differ_in_their_worst_form_are_one_line() -> None:
    """Their rows of the test ``worst/all`` cannot be put together, so each run has one."""
    rows = [make_row(test="all", runs=3), *(make_row(test="worst/all", model=f"seed {seed}") for seed in range(3))]
    assert [line.label for line in ModelBoard(rows).lines] == ["diff"]


def test_lines_are_in_the_order_of_the_papers_then_of_labels_whatever_that_of_the_rows() -> None:
    rows = [
        make_row(label="other model", method=None, month="0910"),
        make_row(label="merge", method="merge"),
        make_row(label="k_adapter 3", method="k_adapter"),
        make_row(label="k_adapter 2", method="k_adapter"),
        make_row(label="full", method="full"),
        make_row(**INITIAL),
        make_row(label="a method of tomorrow", method="tomorrow"),
    ]
    for seed in range(5):
        board = ModelBoard(random.Random(seed).sample(rows, len(rows)))
        assert [line.label for line in board.lines] == [
            "initial",
            "full",
            "k_adapter 2",
            "k_adapter 3",
            "merge",
            "a method of tomorrow",
            "other model",
        ]


@pytest.mark.parametrize(
    ("changes", "initial"),
    [
        (INITIAL, True),
        ({"label": "gpt2", "method": None, "month": None}, True),
        ({"label": "gpt2-1112", "method": None, "month": "1112"}, False),
        ({"label": "news", "method": "diff", "month": None}, False),  # trained on a config of no month
        ({"label": "diff", "method": "diff", "month": "0910"}, False),
    ],
)
def test_initial_is_the_model_that_nobody_trained(changes: dict[str, Any], initial: bool) -> None:
    (line,) = ModelBoard([make_row(**changes)]).lines
    assert line.initial is initial


@pytest.mark.parametrize(
    ("changes", "labels"),
    [
        ({}, ["diff"]),  # the same score again, of other data: no reason for two lines
        ({"base": "t5"}, ["diff, base", "diff, t5"]),
        ({"base": ""}, ["diff, base", "diff, unknown base"]),
        ({"learning_rate": 1e-3}, ["diff, learning rate 0.0001", "diff, learning rate 0.001"]),
        ({"revision": "fedcba98" * 2}, ["diff, models/diff-0910 at 01234567", "diff, models/diff-0910 at fedcba98"]),
        ({"month": "1011", "learning_rate": 1e-3}, ["diff"]),  # a line may change it from month to month
    ],
)
def test_checkpoints_of_one_label_that_are_not_one_line_are_told_apart(
    changes: dict[str, Any], labels: list[str]
) -> None:
    rows = [make_row(), make_row(**{"result": "z.json", **changes})]
    assert [line.label for line in ModelBoard(rows).lines] == labels
    assert [line.label for line in ModelBoard(rows[::-1]).lines] == labels


def test_a_line_is_scored_on_each_month_by_its_checkpoint_of_that_month() -> None:
    months = ("1112", "1201", "0102")  # in this order: the longest gap is before November
    rows = [
        make_row(month=trained, tested=tested, config=f"probes-{tested}", value=10.0 * i + j)
        for i, trained in enumerate(months)
        for j, tested in enumerate(months)
    ]
    board = ModelBoard(rows[::-1])
    own = board.own_month(board.lines[0], CHANGED)
    assert [(row.month, row.value) for row in own.values()] == [("1112", 0.0), ("1201", 11.0), ("0102", 22.0)]
    assert list(own) == [0, 1, 2]
    assert board.months(CHANGED) == {0: "1112", 1: "1201", 2: "0102"}
    newest = board.newest(board.lines[0], CHANGED)
    assert sorted((row.month, row.value) for row in newest) == [("0102", 20.0), ("0102", 21.0), ("0102", 22.0)]


def test_a_month_under_its_long_name_is_the_same_month() -> None:
    long = "20211101-20211201"
    board = ModelBoard(
        [
            make_row(month="1112", tested=long, config=f"probes-{long}", value=1.0),
            make_row(month="1112", tested="1112", config="probes-1112", value=2.0),
            make_row(month="0910", tested=long, config=f"probes-{long}", value=3.0),
            make_row(label="lora", method="lora", month=long, tested="1112", config="probes-1112", value=4.0),
        ]
    )
    values = [[row.value for row in board.own_month(line, CHANGED).values()] for line in board.lines]
    assert values == [[2.0], [4.0]]


def test_a_model_of_no_month_is_that_of_every_month() -> None:
    board = ModelBoard([make_row(**INITIAL, tested=month, config=f"probes-{month}") for month in ("0910", "1011")])
    assert [row.tested for row in board.own_month(board.lines[0], CHANGED).values()] == ["0910", "1011"]


def test_of_two_versions_of_a_task_the_later_counts() -> None:
    board = ModelBoard([make_row(version=1, value=1.0, result="z"), make_row(version=2, value=2.0, result="a")])
    assert [row.value for row in board.own_month(board.lines[0], CHANGED).values()] == [2.0]


def relative(rows: list[Row], label: str) -> dict[int, float]:
    board = ModelBoard(rows)
    return board.relative(line_of(board, label), CHANGED)


def test_relative_is_a_score_over_that_of_the_base_it_began_from() -> None:
    rows = [
        make_row(**INITIAL | {"label": "gpt2", "base": "gpt2", "value": 400.0}),
        make_row(**INITIAL | {"label": "t5", "base": "t5", "value": 50.0}),
        make_row(label="a", base="gpt2", value=100.0),
        make_row(label="b", base="t5", value=100.0),
        make_row(label="c", base="neither", value=100.0),
        make_row(label="d", base="t5", value=100.0, month="1011", tested="1011", config="probes-1011"),
    ]
    assert relative(rows, "a") == {0: 0.25}
    assert relative(rows, "b") == {0: 2.0}
    assert relative(rows, "c") == {}  # two possible Initials
    assert relative(rows, "d") == {}  # a month that its Initial was not scored on
    assert relative(rows, "gpt2") == {0: 1.0}


def test_where_there_is_one_initial_a_line_of_an_unknown_base_began_from_it() -> None:
    rows = [make_row(**INITIAL, base="gpt2", value=400.0), make_row(base="", value=100.0)]
    assert relative(rows, "diff") == {0: 0.25}
    assert relative(rows[1:], "diff") == {}


def test_nothing_is_divided_by_0() -> None:
    assert relative([make_row(**INITIAL, value=0.0), make_row()], "diff") == {}
    assert relative([make_row(**INITIAL), make_row(value=0.0)], "diff") == {}
