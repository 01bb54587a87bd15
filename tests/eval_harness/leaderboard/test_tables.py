"""The papers' tables: the published numbers in the published order, as Markdown and as CSV, whatever a label holds."""

import csv
import io
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalwiki.base.markdown import one_line
from temporalwiki.eval_harness.leaderboard.rows import Row
from temporalwiki.eval_harness.leaderboard.tables import (
    TABLES,
    ScoreTable,
    TableScore,
    column,
    to_csv,
    to_markdown,
    write_tables,
)

from a_row import make_row

TABLE = ScoreTable(
    "A title",
    "A caption.",
    ("method", "parameters", "perplexity"),
    (
        ("initial", None, TableScore(386.1619, 380.0, 1234.5)),
        ("mix_review", 1_234_567, TableScore(0.1 + 0.2, None, None, best=True)),
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
    table = ScoreTable(
        "t", "c", ("FUAR",), ((TableScore(math.inf, 0.5, math.inf),), (TableScore(0.5, 0.25, math.inf),))
    )
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
    markdown = to_markdown(ScoreTable(label, label, (label, "score"), ((label, TableScore(1.0, None, None)),)))
    assert cells(markdown) == [one_line(label), "score", one_line(label), "1.00"]


@pytest.mark.fault("hostile titles", "labels that look like formulas, in CSV tables", "they are escaped")
@pytest.mark.parametrize("label", HOSTILE)
def test_hostile_labels_are_no_formula_in_csv(label: str) -> None:
    ((name, score), (cell, value)) = read(to_csv(ScoreTable(label, label, (label, "score"), ((label, 1),))))
    assert (score, value) == ("score", "1")
    assert cell == name
    assert cell[0] not in "=+-@\t\r＝＋－＠"
    assert cell.removeprefix("'") == one_line(label).removeprefix("'")


@given(st.text())
def test_any_label_is_one_cell(label: str) -> None:
    table = ScoreTable(label, label, (label, "score"), ((label, 1),))
    assert [len(line) for line in read(to_csv(table))] == [2, 2]
    to_csv(table).encode()
    to_markdown(table).encode()
    assert cells(to_markdown(table)) == [one_line(label), "score", one_line(label), "1"]


def test_tables_that_can_be_made_are_written_and_others_removed(tmp_path: Path) -> None:
    folder = tmp_path / "made" / "tables"
    cloze = make_row(
        task="lama", kind="newlama", config="newlama", tested=None, measure="exact_match", higher_is_better=True
    )
    made = write_tables([cloze], folder)
    assert list(made) == ["ckl_table_2"]
    assert sorted(path.name for path in folder.iterdir()) == ["ckl_table_2.csv", "ckl_table_2.md"]
    (folder / "mine.txt").touch()
    made = write_tables([make_row(label='a, "b" é\n😀')], folder)
    assert list(made) == ["temporalwiki_table_3"]
    assert sorted(path.name for path in folder.iterdir()) == [
        "mine.txt",
        "temporalwiki_table_3.csv",
        "temporalwiki_table_3.md",
    ]
    content = (folder / "temporalwiki_table_3.csv").read_bytes()
    assert '"a, ""b"" é 😀"'.encode() in content
    assert b"\r" not in content
    assert write_tables([], tmp_path / "nothing") == {}
    assert not (tmp_path / "nothing").exists()


# TemporalWiki's table 3


TESTS = ("unchanged", "changed", "average")
# TemporalWiki, table 3, month 0809, and a month after it: (label, month trained, month tested) -> its three values
TABLE_3: dict[tuple[str, str | None, str], tuple[float, float, float]] = {
    ("initial", None, "0809"): (386.16, 364.82, 375.49),
    ("initial", None, "0910"): (380.0, 360.0, 370.0),
    ("diff", "0809", "0809"): (409.31, 284.34, 346.83),
    ("diff", "0809", "0910"): (999.0, 999.0, 999.0),
    ("diff", "0910", "0809"): (1.0, 1.0, 1.0),
    ("diff", "0910", "0910"): (420.0, 270.0, 345.0),
    ("mix_review", "0809", "0809"): (337.59, 274.91, 306.25),
    ("recadam", "0809", "0809"): (358.10, 253.07, 305.59),
    ("recadam", "0910", "0910"): (350.0, 290.0, 320.0),
}


def rows_of_table_3(stage: str = "", **changes: Any) -> list[Row]:
    found = []
    for (label, month, tested), values in TABLE_3.items():
        of: dict[str, Any] = {"label": label, "method": label, "month": month, "tested": tested, **changes}
        of |= {"tokens": month and {"0809": 100, "0910": 250}[month], "trainable": month and 7_000}
        of["config"] = f"probes-{tested}"
        for test, value in zip(TESTS, values, strict=True):
            found.append(make_row(test=f"{stage}{test}", value=value, low=value - 1, high=value + 1, **of))
    return found


def test_each_month_is_of_the_models_of_that_month_and_the_best_are_marked() -> None:
    table = TABLES["temporalwiki_table_3"](rows_of_table_3()[::-1])
    assert table is not None
    months = [f"{month} {test}" for month in ("0809", "0910") for test in TESTS]
    assert table.columns == ("method", "trainable parameters", "tokens read", *months)
    values = [[cell.value if isinstance(cell, TableScore) else cell for cell in line] for line in table.lines]
    assert values == [
        ["initial", None, None, 386.16, 364.82, 375.49, 380.0, 360.0, 370.0],
        ["diff", 7_000, 250, 409.31, 284.34, 346.83, 420.0, 270.0, 345.0],
        ["recadam", 7_000, 250, 358.10, 253.07, 305.59, 350.0, 290.0, 320.0],
        ["mix_review", 7_000, 100, 337.59, 274.91, 306.25, None, None, None],
    ]
    best = [
        [cell.value for cell in column if isinstance(cell, TableScore) and cell.best]
        for column in zip(*table.lines, strict=True)
    ]
    assert best[3:] == [[337.59], [253.07], [305.59], [350.0], [270.0], [320.0]]
    assert "| initial |  |  | 386.16 [385.16, 387.16] |" in to_markdown(table)
    assert "| 100 | **337.59** [336.59, 338.59] | 274.91 [273.91, 275.91] |" in to_markdown(table)


@pytest.mark.parametrize(
    ("name", "measure"),
    [("light_tuned_perplexity", "perplexity"), ("light_tuned_exact_match", "exact_match"), ("light_tuned_f1", "f1")],
)
def test_light_tuned_tests_have_tables_of_their_own(name: str, measure: str) -> None:
    rows = rows_of_table_3("light-tuned/", measure=measure, higher_is_better=measure != "perplexity")
    table = TABLES[name](rows)
    assert table is not None
    cells = [line[3] for line in table.lines]
    assert [cell.value for cell in cells if isinstance(cell, TableScore)] == [386.16, 409.31, 358.10, 337.59]
    best = [cell.value for cell in cells if isinstance(cell, TableScore) and cell.best]
    assert best == ([337.59] if measure == "perplexity" else [409.31])
    assert [other for other, make in TABLES.items() if make(rows)] == [name]


@pytest.mark.parametrize("changes", [{"task": "deleted"}, {"measure": "f1"}, {"test": "deleted"}, {"kind": "diffset"}])
def test_without_its_scores_there_is_no_table_3(changes: dict[str, Any]) -> None:
    assert TABLES["temporalwiki_table_3"]([make_row(**changes)]) is None
    assert TABLES["temporalwiki_table_3"]([]) is None


def test_a_column_that_no_model_has_is_left_out() -> None:
    table = TABLES["temporalwiki_table_3"]([make_row()])
    assert table is not None
    assert table.columns == ("method", "trainable parameters", "tokens read", "0910 changed")
    # a model of another month alone is in no column of this one
    assert TABLES["temporalwiki_table_3"]([make_row(month="0809")]) is None


# CKL's table 2


KINDS = ("invariantlama", "updatedlama", "newlama", "newlama-easy")
# CKL, table 2: exact match of the four, FUAR
PUBLISHED = {
    "k_adapter": (19.59, 12.34, 5.03, 18.75, 0.33),
    "initial": (24.17, 1.62, 1.88, 10.32, None),
    "diff": (12.89, 10.17, 3.77, 17.75, 1.08),
    "modular": (20.29, 12.66, 4.65, 19.24, 0.28),
}


def lama(label: str, kind: str, value: float, month: str | None = None, tested: str | None = None) -> Row:
    of = {"label": label, "method": label, "month": month, "kind": kind, "tested": tested, "value": value}
    of |= {"config": f"{kind}-{tested}" if tested else kind, "trainable": 403_000_000 if label != "initial" else None}
    of |= {"parameters": 738_000_000, "higher_is_better": True, "low": None, "high": None}
    return make_row(task="lama", test="train", measure="exact_match", **of)


def fuar(label: str, value: float, month: str | None = None, test: str = "lama") -> Row:
    of = {"label": label, "method": label, "month": month, "tested": month, "test": test, "value": value}
    return make_row(task="fuar", config="newlama", kind="fuar", measure="fuar", low=None, high=None, **of)


CKL_ROWS = [
    lama(label, kind, value)
    for label, values in PUBLISHED.items()
    for kind, value in zip(KINDS, values, strict=False)
    if value is not None
] + [fuar(label, values[4]) for label, values in PUBLISHED.items() if values[4] is not None]


def test_the_published_table() -> None:
    table = TABLES["ckl_table_2"](CKL_ROWS)
    assert table is not None
    header, _, *lines = [line for line in to_markdown(table).splitlines() if line.startswith("|")]
    assert header == (
        "| method | trainable parameters | parameters | InvariantLAMA | UpdatedLAMA | NewLAMA | NewLAMA-Easy | FUAR |"
    )
    assert lines == [
        "| initial |  | 738,000,000 | **24.17** | 1.62 | 1.88 | 10.32 |  |",
        "| diff | 403,000,000 | 738,000,000 | 12.89 | 10.17 | 3.77 | 17.75 | 1.08 |",
        "| k_adapter | 403,000,000 | 738,000,000 | 19.59 | 12.34 | **5.03** | 18.75 | 0.33 |",
        "| modular | 403,000,000 | 738,000,000 | 20.29 | **12.66** | 4.65 | **19.24** | **0.28** |",
    ]


def test_no_gain_is_said_in_words_and_is_never_the_best() -> None:
    table = TABLES["ckl_table_2"]([lama("diff", "newlama", 1.0), fuar("diff", math.inf)])
    assert table is not None
    assert "| no gain |" in to_markdown(table)
    assert to_csv(table).splitlines()[1].endswith("inf,,")


def test_of_several_months_the_newest_model_on_the_newest_config() -> None:
    rows = [
        lama("initial", "newlama", 1.0, None, "0809"),
        lama("initial", "newlama", 2.0, None, "0910"),
        *(
            lama("diff", "newlama", 10.0 * i + j, trained, tested)
            for i, trained in enumerate(("0809", "0910"), 1)
            for j, tested in enumerate(("0809", "0910"), 1)
        ),
        lama("lora", "newlama", 50.0, "0809", "0910"),  # its second month failed
        fuar("diff", 0.1, "0809"),
        fuar("diff", 0.2, "0910"),
        fuar("lora", 0.3, "0809"),
        fuar("lora", 9.9, "0809", "probes"),
    ]
    table = TABLES["ckl_table_2"](rows)
    assert table is not None
    assert table.columns == ("method", "month", "trainable parameters", "parameters", "NewLAMA 0910", "FUAR")
    values = [[cell.value if isinstance(cell, TableScore) else cell for cell in line] for line in table.lines]
    assert [[line[0], line[1], *line[4:]] for line in values] == [
        ["initial", None, 2.0, None],
        ["diff", "0910", 22.0, 0.2],
        ["lora", "0809", 50.0, 0.3],
    ]


def test_fuar_is_that_of_the_checkpoint_in_the_row() -> None:
    rows = [lama("diff", "newlama", 1.0, "0910", "0910"), fuar("diff", 0.5, "0809")]
    table = TABLES["ckl_table_2"](rows)
    assert table is not None
    assert "FUAR" not in table.columns


def test_without_clozes_there_is_no_table() -> None:
    assert TABLES["ckl_table_2"]([]) is None
    assert TABLES["ckl_table_2"]([make_row(), fuar("diff", 0.5, "0910")]) is None
    assert TABLES["ckl_table_2"]([make_row(task="lama", kind="invariantlama", measure="f1")]) is None


# New facts known and old facts known


# label -> new and old facts known of its models of 0809 and 0910, and whether it knows more than by chance
KNOWN = {
    "diff": ((40.0, 50.0), (42.0, 60.0), True),
    "lora": ((35.0, 60.0), (61.0, 70.0), True),
    "random": ((90.0, 90.0), (90.0, 90.0), False),
}


def rows_of_known(**changes: Any) -> list[Row]:
    of: dict[str, Any] = {"task": "learned_and_forgotten", "test": "all", "higher_is_better": True, **changes}
    return [
        make_row(
            label=label, method=label, month=month, tested=month, measure=measure, value=value, competes=fair, **of
        )
        for label, (first, second, fair) in KNOWN.items()
        for month, values in (("0809", first), ("0910", second))
        for measure, value in zip(("new_known", "old_known"), values, strict=True)
    ]


def test_a_line_for_each_method_the_most_known_first_and_the_newest_month_first() -> None:
    table = TABLES["learned_and_forgotten"](rows_of_known())
    assert table is not None
    months = [f"{month} {what} facts known" for month in ("0910", "0809") for what in ("new", "old")]
    assert table.columns == ("method", *months)
    cells = [[cell.value if isinstance(cell, TableScore) else cell for cell in line] for line in table.lines]
    assert cells == [
        ["lora", 61.0, 70.0, 35.0, 60.0],
        ["diff", 42.0, 60.0, 40.0, 50.0],
        ["random", 90.0, 90.0, 90.0, 90.0],
    ]
    best = [[cell.best for cell in line if isinstance(cell, TableScore)] for line in table.lines]
    assert best == [[True, True, False, True], [False, False, True, False], [False] * 4]


def test_the_caption_says_what_the_intervals_hold() -> None:
    one, several = (
        TABLES["learned_and_forgotten"](rows_of_known(**runs)) for runs in ({}, {"runs": 3, "spread": 0.25})
    )
    assert one is not None and several is not None
    assert "One training run for each method: how much runs differ is not known" in one.caption
    assert "Means of 3 training runs; the intervals include the differences between runs." in several.caption


def test_without_the_task_there_is_no_table_of_learned_and_forgotten() -> None:
    assert TABLES["learned_and_forgotten"]([make_row()]) is None


def known(label: str, method: str | None, new: float, tokens: int | None, **of: Any) -> list[Row]:
    of = {"label": label, "method": method, "month": "0910" if tokens else None, "tokens": tokens} | of
    of |= {"task": "learned_and_forgotten", "test": "all", "higher_is_better": True}
    rank = None if of.get("control") or label == "initial" or new <= 20 else 1  # 20 % are known by chance
    new_known = make_row(measure="new_known", value=new, rank_best=rank, **of)
    return [new_known, make_row(measure="old_known", value=70.0, **of)]


def test_the_price_list_divides_what_was_paid_by_the_facts_that_the_start_model_did_not_know() -> None:
    rows = [
        # the start model was trained as well: its price is not the update's
        *known("initial", "initial", 20.0, 1_000, trainable=0, month=None),
        *known("diff", "diff", 60.0, 9_000, trainable=1_000),
        *known("lora", "lora", 20.0, 9_000, trainable=10),
        *known("shuffled", "shuffled", 25.0, 9_000, trainable=10, control=True),
        *known("initial, with evidence", "initial", 90.0, 1_000, month=None, retrieved="evidence", control=True),
    ]
    table = TABLES["prices"](rows)
    assert table is not None
    shown = {
        str(line[0]): [cell.value if isinstance(cell, TableScore) else cell for cell in line] for line in table.lines
    }
    # 40 facts: 40 % of them are 16
    assert shown["diff"] == ["diff", 60.0, 70.0, 8_000, 4_000, 500]
    assert shown["lora"] == ["lora", 20.0, 70.0, 8_000, 40, None]
    assert shown["shuffled"][-1] is None  # a control learned no fact, whatever its number
    assert shown["initial"] == ["initial", 20.0, 70.0, None, None, None]
    assert shown["initial, with evidence"][1] == 90.0


def test_the_facts_of_several_forms_count_once() -> None:
    rows = [*known("initial", "initial", 20.0, None), *known("diff", "diff", 60.0, 8_000, items=120)]
    of = {"task": "learned_and_forgotten", "measure": "new_known", "higher_is_better": True}
    for month, items in (("0809", 27), ("0910", 40)):  # another month has another number of facts
        rows.append(make_row(label="diff", test="name/all", value=60.0, items=items, tested=month, tokens=8_000, **of))
    table = TABLES["prices"](rows)
    assert table is not None
    assert [line[5] for line in table.lines if line[0] == "diff"] == [500]


def test_models_that_read_no_tokens_have_no_price_list() -> None:
    assert TABLES["prices"](known("initial", "initial", 20.0, None)) is None
    assert TABLES["prices"]([]) is None
