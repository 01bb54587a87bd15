"""The beginning of the leaderboard: which facts each method knows in each month, and whether that ranks methods."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from temporalwiki.eval_harness.leaderboard.names import listed, method_name, month_name
from temporalwiki.eval_harness.leaderboard.rows import Row, shown_rank
from temporalwiki.eval_harness.leaderboard.selection import ModelBoard, ModelLine, ScoreName

_CONTROLS = ("shuffled", "untrained", "the softened start model", "the ceiling")  # what a board needs
UNDECIDED = (
    "No result says which facts a model knows, so nothing is ranked: add learned_and_forgotten to the tasks, "
    "and run the command again."
)


class KnownMeasure(NamedTuple):
    """A percentage of facts; higher is better."""

    title: str
    score: ScoreName


NEW = KnownMeasure("New facts known", ScoreName("learned_and_forgotten", "new_known", "all"))
OLD = KnownMeasure("Old facts known", ScoreName("learned_and_forgotten", "old_known", "all"))
CHANCE = ScoreName("learned_and_forgotten", "chance", "all")
SPELLING = ScoreName("learned_and_forgotten", "new_known", "spelling/all")
# what the table, the figure and the ranks of methods are about; the first one decides
MEASURES = (NEW, OLD)


@dataclass(frozen=True, eq=False)
class Entry:
    """A method's line in the table of a month."""

    line: ModelLine
    values: Mapping[KnownMeasure, Row]

    @property
    def name(self) -> str:
        """The name for people."""
        return method_name(self.line.label)

    @property
    def row(self) -> Row:
        """The deciding score if there is one, else the other."""
        return next(iter(self.values.values()))

    @property
    def start(self) -> bool:
        """Whether the methods start from this model."""
        named = self.line.method is not None or self.line.label == "initial"  # else it is a model of one's own
        return self.line.initial and named and not self.line.control

    @property
    def able(self) -> bool:
        """Whether it knows more new facts than by chance, and saw no test data; see ``measures.earned``."""
        return not self.line.control and self.row.competes and not self.row.trained_on_test

    @property
    def rank(self) -> str:
        """The range of its rank by new facts known, such as 1–3, or why there is no rank."""
        why = "control" if self.line.control else "not known" if self.able else "may be chance"
        return shown_rank(self.values.get(NEW)) or ("saw test data" if self.row.trained_on_test else why)


@dataclass(frozen=True, eq=False)
class Month:
    """The entries of one month: the methods that know most new facts first, then the start model and the controls."""

    name: str
    entries: tuple[Entry, ...]
    chance: float | None = None  # the percentage of facts that a model without knowledge knows
    spelling: float | None = None  # the percentage of new facts that can be guessed by their letters

    @property
    def relations(self) -> float | None:
        """As many equal relations would count as much as those of the new facts."""
        counts = (entry.values[NEW].relations for entry in self.entries if NEW in entry.values)
        return next((count for count in counts if count is not None), None)

    @property
    def missing(self) -> str:
        """A sentence on the controls that were not run."""
        rows = [entry.values[NEW] for entry in self.entries if NEW in entry.values and entry.line.control]
        there = {row.method for row in rows} | {"the ceiling" for row in rows if row.retrieved}
        there |= {"the softened start model" for row in rows if not row.retrieved and row.method in (None, "initial")}
        lacks = [name for name in _CONTROLS if name not in there]
        return f"Controls that were not run: {listed(lacks)}." if lacks else ""

    @property
    def scored(self) -> list[Entry]:
        """All entries with both measures."""
        return [entry for entry in self.entries if all(measure in entry.values for measure in MEASURES)]

    @property
    def methods(self) -> list[Entry]:
        """The methods with both measures, without the start model and the controls."""
        return [entry for entry in self.scored if not (entry.start or entry.line.control)]

    @property
    def able(self) -> list[Entry]:
        """The methods that know more new facts than by chance, and were not trained on test data."""
        return [entry for entry in self.methods if entry.able]

    @property
    def title(self) -> str:
        """At most twelve words, with numbers, on who knows most new facts. It names a method only if ranks do."""
        able, methods = self.able, len(self.methods)
        if not able:
            by = "" if self.chance is None else f" ({percent(self.chance)})"
            return f"No method clearly knows more new facts than by chance{by}" if methods else ""
        best = leaders(able)
        new, old = ([entry.values[measure].value for entry in best] for measure in MEASURES)
        if len(best) == 1:
            return f"{best[0].name} knows {percent(new[0])} of new facts and {percent(old[0])} of old ones"
        low, high = percent(min(new)), percent(max(new))
        between = low if low == high else f"{low.removesuffix(' %')}–{high}"
        return f"No clear winner: {len(best)} of {methods} methods know {between} of new facts"

    @property
    def runs(self) -> str:
        """A sentence on the training runs that the scores come from."""
        return training_runs(entry.row for entry in self.entries if not entry.start)


def months(rows: Sequence[Row]) -> list[Month]:
    """Return the months that models were trained up to and asked which facts they know, newest first."""
    board = ModelBoard(rows)
    found: dict[int, dict[ModelLine, dict[KnownMeasure, Row]]] = {}
    for line in board.lines:
        for measure in MEASURES:
            for place, row in board.own_month(line, measure.score).items():
                if math.isfinite(row.value):
                    found.setdefault(place, {}).setdefault(line, {})[measure] = row
    names = {board.place(row.tested): row.tested for row in rows}
    made = []
    for place, of_month in sorted(found.items(), reverse=True):
        entries = [Entry(line, values) for line, values in of_month.items()]
        if all(entry.start or entry.line.control for entry in entries):
            continue
        chance, spelling = (_any(rows, score, names[place]) for score in (CHANCE, SPELLING))
        name = month_name(names[place] or "all data")
        made.append(Month(name, tuple(sorted(entries, key=_place)), chance, spelling))
    return made


def leaders(entries: Sequence[Entry]) -> list[Entry]:
    """Return the entries that may know most new facts, the best first: all of them, unless each one has a rank."""
    best_first = sorted(entries, key=lambda entry: -entry.values[NEW].value)
    ranks = [entry.values[NEW].rank_best for entry in best_first]
    first = min((rank for rank in ranks if rank is not None), default=None)
    return [entry for entry, rank in zip(best_first, ranks, strict=True) if None in ranks or rank == first]


def training_runs(rows: Iterable[Row]) -> str:
    """Return a sentence on the training runs that scores come from."""
    counts = [row.runs for row in rows]
    fewest, most = min(counts), max(counts)
    if most == 1:
        return (
            "One training run for each method: how much runs differ is not known, so no two methods can be told apart."
        )
    if fewest == 1:
        return f"Means of up to {most} training runs; ranks assume that a method that ran once varies like the others."
    how_many = most if fewest == most else f"{fewest} to {most}"
    return f"Means of {how_many} training runs; the intervals include the differences between runs."


def percent(value: float) -> str:
    """Return a percentage without decimals."""
    return f"{value:.0f} %"


def _any(rows: Sequence[Row], score: ScoreName, month: str | None) -> float | None:
    """Return a score of a month that does not depend on the model."""
    return next((row.value for row in rows if score.of(row) and row.tested == month), None)


def _place(entry: Entry) -> tuple[bool, bool, bool, bool, float]:
    return entry.line.control, entry.start, not entry.able, NEW not in entry.values, -entry.row.value
