"""Tables as Markdown and CSV: numbers, bold, intervals, and labels with special characters."""

from __future__ import annotations

import csv
import io
import math
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalwiki.base.markdown import one_line
from temporalwiki.eval_harness.leaderboard.tables import Score, Table, to_csv, to_markdown
from temporalwiki.eval_harness.leaderboard.tables.table import column

from a_row import make_row

TABLE = Table(
    "A title",
    "A caption.",
    ("method", "parameters", "perplexity"),
    (
        ("initial", None, Score(386.1619, 380.0, 1234.5)),
        ("mix_review", 1_234_567, Score(0.1 + 0.2, None, None, best=True)),
        ("lora", 0, None),
    ),
)
HOSTILE = [
    "</script><img src=x onerror=alert(1)>",
    "a | b \\| c \\",
    "**bold** _it_ `code` ~~gone~~ [link](javascript:x) ![x](y)",
    "two\nlines\r\n# and a title",
    "&lt;b&gt; &amp; \"quotes\" 'too'",
    "=cmd()",
    "+1",
    "-1",
    "@SUM(A1)",
    "\t=1",
    "＝1",
    "日本語 😀",
    "$x^2$",
]


def read(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


def test_markdown_shows_two_digits_the_best_in_bold_and_the_interval() -> None:
    assert to_markdown(TABLE) == (
        "# A title\n\n"
        "| method | parameters | perplexity |\n"
        "| --- | ---: | ---: |\n"
        "| initial |  | 386.16 [380.00, 1,234] |\n"
        "| mix_review | 1,234,567 | **0.30** |\n"
        "| lora | 0 |  |\n"
        "\nA caption.\n"
    )


def test_csv_has_all_digits_and_the_ends_of_intervals() -> None:
    assert read(to_csv(TABLE)) == [
        ["method", "parameters", "perplexity", "perplexity, low", "perplexity, high"],
        ["initial", "", "386.1619", "380.0", "1234.5"],
        ["mix_review", "1234567", "0.30000000000000004", "", ""],
        ["lora", "0", "", "", ""],
    ]


def test_what_is_no_number_is_said_in_words() -> None:
    table = Table("t", "c", ("FUAR",), ((Score(math.inf, 0.5, math.inf),), (Score(0.5, 0.25, math.inf),)))
    assert "| no gain [0.50, no gain] |\n| 0.50 [0.25, no gain] |" in to_markdown(table)
    assert read(to_csv(table))[1:] == [["inf", "0.5", "inf"], ["0.5", "0.25", "inf"]]


@pytest.mark.parametrize(
    ("values", "higher", "ranks", "best"),
    [
        ([3.0, 1.0, 2.0], False, [None, None, None], [False, True, False]),
        ([3.0, 1.0, 2.0], True, [None, None, None], [True, False, False]),
        ([3.0, 1.0, 2.0], False, [2, 1, 1], [False, True, True]),  # third may be the first
        ([3.0, 1.0, 2.0], False, [3, 2, 2], [False, True, False]),  # the best of all models is not in the table
        ([1.0, 1.0], True, [None, None], [True, True]),
        ([math.inf, math.inf], False, [None, None], [False, False]),
        ([None, 2.0], True, [None, None], [None, True]),
        ([None, None], True, [None, None], [None, None]),
    ],
)
def test_best_are_the_best_value_and_what_its_rank_may_make_first(
    values: list[float | None], higher: bool, ranks: list[int | None], best: list[bool | None]
) -> None:
    rows = [
        None if value is None else make_row(value=value, higher_is_better=higher, rank_best=rank)
        for value, rank in zip(values, ranks, strict=True)
    ]
    assert [None if score is None else score.best for score in column(rows)] == best


def cells(markdown: str) -> list[str]:
    """Return the cells of a page's only table as a Markdown renderer reads them; fail on any other element."""
    parser = (
        pytest.importorskip("markdown_it").MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    )
    tokens: list[Any] = parser.parse(markdown)
    assert [token.type for token in tokens].count("table_open") == 1
    assert not [token for token in tokens if token.type.startswith(("html", "fence", "code"))]
    found = []
    for before, token in pairwise(tokens):
        if token.type == "inline":
            kinds = {child.type for child in token.children} - {"strong_open", "strong_close"}
            assert kinds <= {"text", "text_special"}, token
            if before.type in ("th_open", "td_open"):
                found.append("".join(child.content for child in token.children))
    return found


@pytest.mark.parametrize("label", HOSTILE)
def test_hostile_labels_are_text_in_markdown(label: str) -> None:
    markdown = to_markdown(Table(label, label, (label, "score"), ((label, Score(1.0, None, None)),)))
    assert cells(markdown) == [one_line(label), "score", one_line(label), "1.00"]


@pytest.mark.fault("hostile titles", "labels that look like formulas, in CSV tables", "they are escaped")
@pytest.mark.parametrize("label", HOSTILE)
def test_hostile_labels_are_no_formula_in_csv(label: str) -> None:
    ((name, score), (cell, value)) = read(to_csv(Table(label, label, (label, "score"), ((label, 1),))))
    assert (score, value) == ("score", "1")
    assert cell == name
    assert cell[0] not in "=+-@\t\r＝＋－＠"
    assert cell.removeprefix("'") == one_line(label).removeprefix("'")


@given(st.text())
def test_any_label_is_one_cell(label: str) -> None:
    table = Table(label, label, (label, "score"), ((label, 1),))
    assert [len(line) for line in read(to_csv(table))] == [2, 2]
    to_csv(table).encode()
    to_markdown(table).encode()
    assert cells(to_markdown(table)) == [one_line(label), "score", one_line(label), "1"]
