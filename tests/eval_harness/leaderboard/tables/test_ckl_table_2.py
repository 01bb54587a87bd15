"""CKL's table 2: the published numbers in the published order, with one phase or several months."""

from __future__ import annotations

import math

from temporalwiki.eval_harness.leaderboard.rows import Row
from temporalwiki.eval_harness.leaderboard.tables import TABLES, Score, to_csv, to_markdown

from a_row import make_row

KINDS = ("invariantlama", "updatedlama", "newlama", "newlama-easy")
# CKL, table 2: exact match of the four, FUAR
PUBLISHED = {
    "k_adapter": (19.59, 12.34, 5.03, 18.75, 0.33),
    "initial": (24.17, 1.62, 1.88, 10.32, None),
    "diff": (12.89, 10.17, 3.77, 17.75, 1.08),
    "modular": (20.29, 12.66, 4.65, 19.24, 0.28),
}


def lama(label: str, kind: str, value: float, month: str | None = None, tested: str | None = None) -> Row:
    trained = label != "initial"
    return make_row(
        label=label,
        method=label,
        month=month,
        task="lama",
        config=f"{kind}-{tested}" if tested else kind,
        kind=kind,
        tested=tested,
        test="train",
        measure="exact_match",
        higher_is_better=True,
        value=value,
        low=None,
        high=None,
        trainable=403_000_000 if trained else None,
        parameters=738_000_000,
    )


def fuar(label: str, value: float, month: str | None = None, test: str = "lama") -> Row:
    return make_row(
        label=label,
        method=label,
        month=month,
        task="fuar",
        config="newlama",
        kind="fuar",
        tested=month,
        test=test,
        measure="fuar",
        value=value,
        low=None,
        high=None,
    )


ROWS = [
    lama(label, kind, value)
    for label, values in PUBLISHED.items()
    for kind, value in zip(KINDS, values, strict=False)
    if value is not None
] + [fuar(label, values[4]) for label, values in PUBLISHED.items() if values[4] is not None]


def test_the_published_table() -> None:
    table = TABLES["ckl_table_2"](ROWS)
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
    values = [[cell.value if isinstance(cell, Score) else cell for cell in line] for line in table.lines]
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
