"""The beginning of the leaderboard: which facts each method knows in each month, and its cost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from temporalwiki.eval_harness.leaderboard.names import listed, method_name, month_name
from temporalwiki.eval_harness.leaderboard.rows import Row
from temporalwiki.eval_harness.leaderboard.selection import ModelBoard, ModelLine, ScoreName

_CONTROLS = ("shuffled", "untrained", "the softened start model", "the ceiling")  # what a board needs
_MOST_LEADERS = 4  # most names in a sentence


class Column(NamedTuple):
    """A score of the table of methods."""

    title: str
    unit: str
    score: ScoreName
    axis: str = ""  # its name in the figure
    higher_is_better: bool = False
    relative: bool = False  # divided by the start model's


NEW = Column(
    "New facts known",
    "%; higher is better",
    ScoreName("learned_and_forgotten", "new_known", "all"),
    "New facts known, %",
    higher_is_better=True,
)
OLD = Column(
    "Old facts known",
    "%; higher is better",
    ScoreName("learned_and_forgotten", "old_known", "all"),
    "Old facts known, %",
    higher_is_better=True,
)
CHANCE = ScoreName("learned_and_forgotten", "chance", "all")
SPELLING = ScoreName("learned_and_forgotten", "new_known", "spelling/all")
# what the table, the figure and the ranks of methods are about; the first one sorts them
MEASURES = (NEW, OLD)
_RATIO = "perplexity ÷ start model’s; below 1 is better"
_TEXTS = tuple(
    Column(title, _RATIO, ScoreName("twiki_intrinsic", "proper_noun_perplexity", kind=kind), relative=True)
    for title, kind in (("New text", "diffset"), ("Old text", "unchanged"))
)
_FACTS = tuple(  # what results without known facts have
    Column(f"{split.capitalize()} facts", _RATIO, ScoreName("twiki_probes", "perplexity", split), relative=True)
    for split in ("changed", "unchanged")
)


class Value(NamedTuple):
    """A value of the table, and the row that it comes from."""

    value: float
    row: Row

    @property
    def low(self) -> float:
        """The lower end of the score's interval; the score itself if the interval is not known."""
        return min(self.row.value if self.row.low is None else self.row.low, self.row.value)

    @property
    def high(self) -> float:
        """The upper end of the score's interval; the score itself if the interval is not known."""
        return max(self.row.value if self.row.high is None else self.row.high, self.row.value)


@dataclass(frozen=True, eq=False)
class Entry:
    """A method's line in the table of a month."""

    line: ModelLine
    values: Mapping[Column, Value]
    row: Row  # one of its scores, which describes the checkpoint

    @property
    def name(self) -> str:
        """The name for people."""
        return method_name(self.line.label)

    @property
    def start(self) -> bool:
        """Whether the methods start from this model."""
        named = self.line.method is not None or self.line.label == "initial"  # else it is a model of one's own
        return self.line.initial and named and not self.line.control


@dataclass(frozen=True, eq=False)
class Month:
    """The entries of one month: the methods that know most new facts first, then the start model and the controls."""

    name: str
    columns: tuple[Column, ...]
    entries: tuple[Entry, ...]
    chance: float | None = None  # the percentage of facts that a model without knowledge knows
    spelling: float | None = None  # the percentage of new facts that can be guessed by their letters

    @property
    def relations(self) -> float | None:
        """As many equal relations would count as much as those of the new facts."""
        counts = (entry.values[NEW].row.relations for entry in self.entries if NEW in entry.values)
        return next((count for count in counts if count is not None), None)

    @property
    def missing(self) -> str:
        """A sentence on the controls that were not run; empty without known facts."""
        rows = [entry.values[NEW].row for entry in self.entries if NEW in entry.values and entry.line.control]
        there = {row.method for row in rows} | {"the ceiling" for row in rows if row.retrieved}
        there |= {"the softened start model" for row in rows if not row.retrieved and row.method in (None, "initial")}
        lacks = [name for name in _CONTROLS if name not in there]
        return f"Controls that were not run: {listed(lacks)}." if lacks and NEW in self.columns else ""

    @property
    def scored(self) -> list[Entry]:
        """All entries with both measures."""
        return [entry for entry in self.entries if all(column in entry.values for column in MEASURES)]

    @property
    def methods(self) -> list[Entry]:
        """The methods with both measures, without the start model and the controls."""
        return [entry for entry in self.scored if not (entry.start or entry.line.control)]

    @property
    def able(self) -> list[Entry]:
        """The methods that know more new facts than by chance, and were not trained on test data."""
        return [entry for entry in self.methods if _able(entry)]

    @property
    def finding(self) -> str:
        """A sentence on who knows most new facts, and how clear that is."""
        able = self.able
        if not able:
            return "No method knows more new facts than by chance" if self.methods else ""
        best = leaders(able, NEW)
        if len(best) == 1:
            first = best[0]
            new, old = (percent(first.values[column].value) for column in (NEW, OLD))
            return f"{first.name} knows {new} of new facts, and {old} of old ones"
        if not any(_told(entry) for entry in able):
            return "One training run each: which method knows most cannot be told"
        low, high = (pick(entry.values[NEW].value for entry in best) for pick in (min, max))
        between = percent(low) if percent(low) == percent(high) else f"{low:.0f} to {percent(high)}"
        return f"{_named(best, able)} know {between} of new facts, with no clear difference"

    @property
    def advice(self) -> str:
        """A sentence on which of the methods that know most new facts keeps most old ones, by paired comparisons."""
        most = leaders(self.able, NEW)
        if len(most) in (0, 1, len(self.able)):
            return ""
        kept = leaders(most, OLD)
        said = f"{kept[0].name} keeps most old ones" if len(kept) == 1 else "none clearly keeps more old ones"
        return f"Among the methods that know most new facts, {said}."


def months(rows: Sequence[Row]) -> list[Month]:
    """Return the months that models were trained up to and tested on, newest first."""
    board = ModelBoard(rows)
    columns = (*MEASURES, *_TEXTS)
    found = _values(board, columns)
    if not any(MEASURES[0] in values for of_month in found.values() for values in of_month.values()):
        columns = (*_FACTS, *_TEXTS)
        found = _values(board, columns)
    names = {board.place(row.tested): row.tested for row in rows}
    made = []
    for place, of_month in sorted(found.items(), reverse=True):
        entries = [Entry(line, values, next(iter(values.values())).row) for line, values in of_month.items()]
        if all(entry.start or entry.line.control for entry in entries):
            continue
        shown = tuple(column for column in columns if any(column in entry.values for entry in entries))
        chance, spelling = (_any(rows, score, names[place]) for score in (CHANCE, SPELLING))
        name = month_name(names[place] or "all data")
        made.append(Month(name, shown, tuple(sorted(entries, key=_place)), chance, spelling))
    return made


def leaders(entries: Sequence[Entry], column: Column) -> list[Entry]:
    """Return the entries that may be the best ones in a column, the best first.

    Paired comparisons decide if the entries have ranks. Otherwise the entries whose intervals overlap the best one's
    are returned.
    """
    sign = 1 if column.higher_is_better else -1
    best_first = sorted(entries, key=lambda entry: -sign * entry.values[column].value)
    rows = [entry.values[column].row for entry in best_first]
    if not rows:
        return []
    ranks = [row.rank_best for row in rows if row.rank_best is not None]
    if ranks:
        return [entry for entry, row in zip(best_first, rows, strict=True) if row.rank_best == min(ranks)]
    best = rows[0]
    worst_of_best = best.low if sign > 0 else best.high

    def reaches(row: Row) -> bool:
        end = row.high if sign > 0 else row.low
        return row is best or end is None or worst_of_best is None or sign * end >= sign * worst_of_best

    return [entry for entry, row in zip(best_first, rows, strict=True) if reaches(row)]


def training_runs(rows: Iterable[Row]) -> str:
    """Return a sentence on the training runs that scores come from."""
    counts = [row.runs for row in rows]
    fewest, most = min(counts), max(counts)
    if most == 1:
        return (
            "One training run for each method: how much runs differ is not known, so no two methods can be told apart."
        )
    if fewest == 1:
        return f"Means of up to {most} training runs; methods with one are compared by the spread of the others' runs."
    how_many = most if fewest == most else f"{fewest} to {most}"
    return f"Means of {how_many} training runs; the intervals include the differences between runs."


def ratio(value: float) -> str:
    """Return a ratio with two digits after the point, or with one significant digit if it is below 0.1."""
    return f"{value:.2f}" if value >= 0.1 else f"{value:.1g}"


def percent(value: float) -> str:
    """Return a percentage without decimals."""
    return f"{value:.0f} %"


def _told(entry: Entry) -> bool:
    """Return whether paired comparisons could rank an entry."""
    row = entry.values[NEW].row
    return row.runs > 1 or row.rank_best != 1


def _any(rows: Sequence[Row], score: ScoreName, month: str | None) -> float | None:
    """Return a score of a month that does not depend on the model."""
    return next((row.value for row in rows if score.of(row) and row.tested == month), None)


def _named(entries: Sequence[Entry], of: Sequence[Entry]) -> str:
    """Return the names of entries, or how many there are."""
    if len(entries) > _MOST_LEADERS:
        return f"{len(entries)} of {len(of)} methods"
    return listed([entry.name for entry in entries])


def _values(board: ModelBoard, columns: Iterable[Column]) -> dict[int, dict[ModelLine, dict[Column, Value]]]:
    """Return place of the month -> line -> column -> value, of checkpoints tested on their own month."""
    found: dict[int, dict[ModelLine, dict[Column, Value]]] = {}
    for line in board.lines:
        for column in columns:
            ratios = board.relative(line, column.score) if column.relative else {}
            for place, row in board.own_month(line, column.score).items():
                value = ratios.get(place) if column.relative else row.value
                if value is not None and math.isfinite(value):
                    found.setdefault(place, {}).setdefault(line, {})[column] = Value(value, row)
    return found


def _able(entry: Entry) -> bool:
    """Return whether a model knows more new facts than by chance, without test data; see ``measures.earned``."""
    row = entry.values[NEW].row if NEW in entry.values else entry.row
    return not entry.line.control and row.competes and not row.trained_on_test


def _place(entry: Entry) -> tuple[bool, bool, bool, float]:
    column, value = next(iter(entry.values.items()))
    by_value = -value.value if column.higher_is_better else value.value
    return entry.line.control, entry.start, not _able(entry), by_value
