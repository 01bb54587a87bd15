"""The tables of the papers, made from the leaderboard's rows, as Markdown and as CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from temporalwiki.base.files import whole_file
from temporalwiki.base.markdown import escaped, spreadsheet_cell, table_row
from temporalwiki.eval_harness.cutoff.report import written
from temporalwiki.eval_harness.leaderboard.cutoffs import KnownUpTo
from temporalwiki.eval_harness.leaderboard.headline import MEASURES, NEW, training_runs
from temporalwiki.eval_harness.leaderboard.names import month_name
from temporalwiki.eval_harness.leaderboard.rows import Row
from temporalwiki.eval_harness.leaderboard.selection import ModelBoard, ModelLine, ScoreName
from temporalwiki.methods.options import ADDED

_CLOZES = {
    "invariantlama": "InvariantLAMA",
    "updatedlama": "UpdatedLAMA",
    "newlama": "NewLAMA",
    "newlama-easy": "NewLAMA-Easy",
}
_FUAR = ScoreName("fuar", "fuar", "lama")


@dataclass(frozen=True)
class TableScore:
    """A value with its 95 % interval; ``best`` values are bold."""

    value: float
    low: float | None
    high: float | None
    best: bool = False


Cell = str | int | TableScore | None  # None: not measured or not known
_Columns = list[tuple[str, Sequence[Cell]]]  # name, cells


@dataclass(frozen=True)
class ScoreTable:
    """A table; each line has one cell for each column."""

    title: str
    caption: str
    columns: tuple[str, ...]
    lines: tuple[tuple[Cell, ...], ...]

    @classmethod
    def of(cls, title: str, caption: str, columns: _Columns) -> ScoreTable:
        """Return a table made of its columns."""
        cells = (cells for _, cells in columns)
        return cls(title, caption, tuple(name for name, _ in columns), tuple(zip(*cells, strict=True)))


def learned_and_forgotten(rows: Sequence[Row]) -> ScoreTable | None:
    """Return which facts each method knows, or None if no method has these scores.

    It has one line for each method and two columns for each month, the newest month first. The method that knows most
    new facts of the newest month comes first.
    """
    scores = {column.title.lower(): column.score for column in MEASURES}
    board = ModelBoard([row for row in rows if any(score.of(row) for score in scores.values())])
    own = {line: {name: board.own_month(line, score) for name, score in scores.items()} for line in board.lines}
    tested = {place: month for score in scores.values() for place, month in board.months(score).items()}
    shown = sorted({place for of in own.values() for by_month in of.values() for place in by_month}, reverse=True)
    if not shown:
        return None

    def place(line: ModelLine) -> tuple[bool, float]:
        row = own[line][MEASURES[0].title.lower()].get(shown[0])
        return (False, -row.value) if row and row.competes else (True, 0.0)

    lines = sorted(board.lines, key=place)
    columns: _Columns = [("method", [line.label for line in lines])]
    for at in shown:
        for name in scores:
            columns.append((f"{tested[at]} {name}", column([own[line][name].get(at) for line in lines])))
    cells = [row for of in own.values() for by_month in of.values() for row in by_month.values()]
    return ScoreTable.of(
        "New facts known and old facts known",
        "The percentage of changed and of unchanged facts that a model ties to their subject; higher is better. The "
        "columns of a month show the models that were trained up to that month. In brackets: 95 % intervals over "
        f"facts. {training_runs(cells)} Bold: the best value of a column, and models whose rank may be 1. Controls, "
        "and models that know no more than by chance, have no rank.",
        columns,
    )


def prices(rows: Sequence[Row]) -> ScoreTable | None:
    """Return what each method's model of the newest month knows, and what it cost; None without tokens."""
    board = ModelBoard([row for row in rows if row.task == NEW.score.task])
    own = {line: [board.own_month(line, of.score) for of in MEASURES] for line in board.lines}
    newest = max((place for new, _ in own.values() for place in new), default=-1)
    lines = [line for line, (new, _) in own.items() if newest in new]
    new, old = ([own[line][i].get(newest) for line in lines] for i in range(2))
    found = [row for row in new if row is not None]
    costs = [paid(board, line, row) for line, row in zip(lines, found, strict=True)]
    if not any(costs):
        return None
    learned = [_learned(board, line, row) for line, row in zip(lines, found, strict=True)]
    columns: _Columns = [
        ("method", [line.label for line in lines]),
        ("new facts known", column(new)),
        ("old facts known", column(old)),
        ("tokens read", costs),
        ("bytes added", [ADDED * row.trainable if row.trainable else None for row in found]),
        ("tokens per learned fact", [_each(tokens, facts) for tokens, facts in zip(costs, learned, strict=True)]),
    ]
    return ScoreTable.of(
        f"What an update costs, {found[0].tested or 'all data'}",
        "Each method's model of the newest month. Tokens are those of all months up to it, without those of the start "
        "model, what a teacher reads or a model draws. Bytes: four for each number that the newest month changed or "
        "added. A learned fact: a new fact known above the start model's number. The ceiling is the start model with "
        "the evidence to read. Seconds differ from run to run: cells.csv of the experiment has them.",
        columns,
    )


def paid(board: ModelBoard, line: ModelLine, row: Row) -> int | None:
    """Return the tokens of a model's training since its start model; None for none or unknown."""
    start = board.initial_of(line)
    since = (row.tokens or 0) - (start.rows[0].tokens or 0 if start else 0)
    return since if since > 0 else None


def _learned(board: ModelBoard, line: ModelLine, row: Row) -> float:
    """Return how many more new facts a model knows than its start model; nan if that is not known.

    A control learned nothing, and of a model without a rank, that cannot be told.
    """
    start = None if line.initial or line.control or row.rank_best is None else board.initial_of(line)
    before = [one for one in start.rows if NEW.score.of(one) and one.tested == row.tested] if start else []
    same = [one for one in line.rows if (one.measure, one.tested) == (row.measure, row.tested)]
    named = [one.items for one in same if one.test == "name/all"]
    return (row.value - before[0].value) / 100 * (named or [row.items])[0] if before else math.nan


def _each(cost: float | None, facts: float) -> Cell:
    return round(cost / facts) if cost and facts > 0 else None


def temporalwiki_table_3(title: str, how: str, stage: str, measure: str, rows: Sequence[Row]) -> ScoreTable | None:
    """Return TemporalWiki's table 3: unchanged and changed facts, for the models trained up to each month.

    ``how`` is a sentence on how to read the values; ``stage`` is a prefix of the tests ("light-tuned/").
    """
    board = ModelBoard(rows)
    scores = {
        test: ScoreName("twiki_probes", measure, stage + test, "probes")
        for test in ("unchanged", "changed", "average")
    }
    lines = [line for line in board.lines if any(board.own_month(line, score) for score in scores.values())]
    if not lines:
        return None
    newest = [next(row for score in scores.values() for row in board.newest(line, score)) for line in lines]
    columns: _Columns = [
        ("method", [line.label for line in lines]),
        ("trainable parameters", [row.trainable for row in newest]),
        ("tokens read", [row.tokens for row in newest]),
    ]
    months = {place: month for score in scores.values() for place, month in board.months(score).items()}
    for place, month in sorted(months.items()):
        for test, score in scores.items():
            cells = column([board.own_month(line, score).get(place) for line in lines])
            if any(cells):
                columns.append((f"{month} {test}", cells))
    return ScoreTable.of(
        title,
        f"{how} The columns of a month show the models that were trained up to that month, and the same initial "
        "model. In brackets: 95 % intervals over subjects and relations. Bold: the best value of a column, and "
        "models whose rank may be 1 with 95 % confidence. Parameters and tokens belong to a method's newest "
        "model.",
        columns,
    )


def ckl_table_2(rows: Sequence[Row]) -> ScoreTable | None:
    """Return CKL's table 2: each line's newest checkpoint on the newest config of each kind, and its FUAR."""
    board = ModelBoard([row for row in rows if row.task == "lama" or _FUAR.of(row)])
    scores = {kind: ScoreName("lama", "exact_match", kind=kind) for kind in _CLOZES}
    newest: dict[ModelLine, Row] = {}
    for line in board.lines:
        if found := [row for score in scores.values() for row in board.newest(line, score)]:
            newest[line] = max(found, key=lambda row: board.place(row.month))
    if not newest:
        return None

    def of_newest(score: ScoreName, tested: int | None) -> list[TableScore | None]:
        """Return a score of each line's newest checkpoint on the month ``tested``, or on any month."""
        found = []
        for line, checkpoint in newest.items():
            same = [row for row in board.newest(line, score) if row.month == checkpoint.month]
            found.append(next((row for row in same if tested is None or board.place(row.tested) == tested), None))
        return column(found)

    months: Sequence[Cell] = [row.month for row in newest.values()]
    columns: _Columns = [
        ("method", [line.label for line in newest]),
        *([("month", months)] if any(months) else []),
        ("trainable parameters", [row.trainable for row in newest.values()]),
        ("parameters", [row.parameters for row in newest.values()]),
    ]
    scored: _Columns = []
    for kind, score in scores.items():
        asked = board.months(score)
        last = max(asked, default=-1)
        scored.append((f"{_CLOZES[kind]} {asked.get(last, '')}".strip(), of_newest(score, last)))
    scored.append(("FUAR", of_newest(_FUAR, None)))
    return ScoreTable.of(
        "CKL, table 2: exact match, and forgetting per gain (FUAR)",
        "Exact match of each method's newest model in percent; higher is better. FUAR is the points forgotten "
        'for each point updated or acquired; lower is better, and "no gain" means no such points. In brackets: '
        "95 % intervals. Bold: the best value of a column, and models whose rank may be 1 with 95 % confidence.",
        [*columns, *((name, cells) for name, cells in scored if any(cells))],
    )


def cutoffs_table(cutoffs: Sequence[KnownUpTo]) -> ScoreTable | None:
    """Return a table with a line for each knowledge cutoff, or None without cutoffs."""
    if not cutoffs:
        return None

    def span(first: int | None, last: int | None) -> str:
        return " to ".join(dict.fromkeys(written(month) or "" for month in (first, last) if month is not None))

    def interval(one: KnownUpTo) -> str:
        if one.low is not None and one.high is not None:
            return span(one.low, one.high)
        ends = {"from": one.low, "up to": one.high}
        return "".join(f"{word} {written(month)}" for word, month in ends.items() if month is not None)

    forms = dict.fromkeys(form for one in cutoffs for form in one.forms)
    by_form = [(form, [written(one.forms.get(form)) or "" for one in cutoffs]) for form in list(forms)[:4]]
    advertised = [written(one.advertised) or "" for one in cutoffs]
    return ScoreTable.of(
        "Knowledge cutoffs",
        "The last month whose changes a model knows, with its 95 % interval, by temporalwiki cutoff. A cutoff before "
        "or after the data has one end. “Cannot tell”: the model knows too little, though it may have bounds.",
        [
            ("model", [one.model for one in cutoffs]),
            ("cutoff", [written(one.cutoff) or one.verdict for one in cutoffs]),
            ("95 % interval", [interval(one) for one in cutoffs]),
            *by_form,
            *([("advertised", advertised)] if any(advertised) else []),
            ("evidence", [one.evidence for one in cutoffs]),
            ("data", [one.data for one in cutoffs]),
            ("months of the data", [span(one.first, one.last) for one in cutoffs]),
        ],
    )


def reported_by_others(rows: Sequence[Row]) -> ScoreTable | None:
    """Return a table with a line for each score that other people put on the Hub, or None without such scores."""
    found = [row for row in rows if row.reported]
    if not found:
        return None
    return ScoreTable.of(
        "Reported by others",
        "Zero-shot exact match of TWiki-Probes in percent, from the .eval_results of models on the Hub; higher is "
        "better. Others ran these models. We have not checked their scores, so they have no interval and no rank. "
        "Verified: by the Hub, as it says.",
        [
            ("model", [row.model for row in found]),
            ("facts", [f"{row.test}, {month_name(row.tested or '')}" for row in found]),
            ("exact match", [number(row.value) for row in found]),
            ("verified", ["yes" if row.verified else "no" for row in found]),
            ("source", [row.reported for row in found]),
        ],
    )


_TUNED = "TWiki-Probes after light-tuning"
_LOWER, _HIGHER = "Lower is better.", "In percent, higher is better."
# name -> function that makes the table, or None if the rows lack its scores
TABLES: dict[str, Callable[[Sequence[Row]], ScoreTable | None]] = {
    "learned_and_forgotten": learned_and_forgotten,
    "prices": prices,
    "temporalwiki_table_3": partial(
        temporalwiki_table_3, "TemporalWiki, table 3: zero-shot perplexity of TWiki-Probes", _LOWER, "", "perplexity"
    ),
    "light_tuned_perplexity": partial(
        temporalwiki_table_3, f"{_TUNED}: perplexity", _LOWER, "light-tuned/", "perplexity"
    ),
    "light_tuned_exact_match": partial(
        temporalwiki_table_3, f"{_TUNED}: exact match", _HIGHER, "light-tuned/", "exact_match"
    ),
    "light_tuned_f1": partial(temporalwiki_table_3, f"{_TUNED}: F1", _HIGHER, "light-tuned/", "f1"),
    "ckl_table_2": ckl_table_2,
}


def write_tables(rows: Sequence[Row], folder: Path, cutoffs: Sequence[KnownUpTo] = ()) -> dict[str, ScoreTable]:
    """Write the tables that the rows have scores for as FOLDER/NAME.md and NAME.csv, and return name -> table.

    Files of tables that cannot be made are removed.
    """
    own = [row for row in rows if not row.reported]
    tables = {name: make(own) for name, make in TABLES.items()}
    tables |= {"cutoffs": cutoffs_table(cutoffs), "reported_by_others": reported_by_others(rows)}
    for name, table in tables.items():
        for ending, text in (("md", to_markdown), ("csv", to_csv)):
            path = folder / f"{name}.{ending}"
            if table is None:
                path.unlink(missing_ok=True)
                continue
            with whole_file(path) as part:
                part.write_text(text(table), encoding="utf-8", newline="\n")
    return {name: table for name, table in tables.items() if table is not None}


def column(rows: Sequence[Row | None]) -> list[TableScore | None]:
    """Return the cells of one column; the best value, and values whose rank may be 1, are marked as best.

    Ranks are among all models that were asked the same questions, which may be more than the table shows. A model that
    was trained on test data is never the best.
    """

    def good(row: Row) -> float:
        return row.value if row.higher_is_better else -row.value

    fair = [row for row in rows if row and row.competes and not row.trained_on_test and math.isfinite(row.value)]
    best = max(map(good, fair), default=-math.inf)
    marked = [row for row in fair if row.rank_best == 1 or good(row) == best]
    return [TableScore(row.value, row.low, row.high, row in marked) if row else None for row in rows]


def to_markdown(table: ScoreTable) -> str:
    """Return a table as GitHub Markdown, with title and caption."""
    numeric = [any(isinstance(cell, TableScore | int) for cell in cells) for cells in zip(*table.lines, strict=True)]
    lines = [[escaped(name) for name in table.columns], ["---:" if is_number else "---" for is_number in numeric]]
    lines += [[_shown(cell) for cell in line] for line in table.lines]
    body = "\n".join(table_row(*line) for line in lines)
    return f"# {escaped(table.title)}\n\n{body}\n\n{escaped(table.caption)}\n"


def to_csv(table: ScoreTable) -> str:
    """Return a table as CSV with all digits; two columns with the ends of the interval follow each column of scores.

    A text that a spreadsheet would read as a formula gets an apostrophe in front.
    """
    scores = [any(isinstance(cell, TableScore) for cell in cells) for cells in zip(*table.lines, strict=True)]
    lines: list[list[str | float | None]] = [[]]
    for name, scored in zip(table.columns, scores, strict=True):
        lines[0] += [
            spreadsheet_cell(name),
            *((spreadsheet_cell(f"{name}, {end}") for end in ("low", "high")) if scored else ()),
        ]
    for line in table.lines:
        values: list[str | float | None] = []
        for cell, scored in zip(line, scores, strict=True):
            if isinstance(cell, TableScore):
                values += [cell.value, cell.low, cell.high]
            else:
                values += [None] * 3 if scored else [spreadsheet_cell(cell) if isinstance(cell, str) else cell]
        lines.append(values)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue()


def number(value: float) -> str:
    """Return a score as text for people."""
    if not math.isfinite(value):
        return "no gain"
    if abs(value) < 1000:
        return f"{round(value, 2) + 0.0:.2f}"  # 0.0: no minus before a zero
    return f"{value:,.0f}" if abs(value) < 1e6 else f"{value:.2e}"


def _shown(cell: Cell) -> str:
    if not isinstance(cell, TableScore):
        return "" if cell is None else escaped(cell) if isinstance(cell, str) else f"{cell:,}"
    value = f"**{number(cell.value)}**" if cell.best else number(cell.value)
    return value if cell.low is None or cell.high is None else f"{value} [{number(cell.low)}, {number(cell.high)}]"
