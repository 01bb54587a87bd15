"""The beginning of the leaderboard: what each method learned and forgot in each month, and its cost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from temporalwiki.eval_harness.leaderboard.names import listed, method_name, month_name
from temporalwiki.eval_harness.leaderboard.rows import Row
from temporalwiki.eval_harness.leaderboard.selection import Board, Line, ScoreName

_MOST_LEADERS = 4  # most names in a sentence


class Column(NamedTuple):
    """A score of the table of methods."""

    title: str
    unit: str
    score: ScoreName
    axis: str = ""  # its name in the figure
    higher_is_better: bool = False
    relative: bool = False  # divided by the start model's


LEARNED = Column(
    "Learned",
    "nats per token; higher is better",
    ScoreName("learned_and_forgotten", "learned", "all"),
    "Learned: nats per token of changed facts",
    higher_is_better=True,
)
FORGOTTEN = Column(
    "Forgotten",
    "nats per token; lower is better",
    ScoreName("learned_and_forgotten", "forgotten", "all"),
    "Forgotten: nats per token of unchanged facts",
)
# what the table, the figure and the ranks of methods are about; the first one sorts them
MEASURES = (LEARNED, FORGOTTEN)
_RATIO = "perplexity ÷ start model’s; below 1 is better"
_TEXTS = tuple(
    Column(title, _RATIO, ScoreName("twiki_intrinsic", "proper_noun_perplexity", kind=kind), relative=True)
    for title, kind in (("New text", "diffset"), ("Old text", "unchanged"))
)
_FACTS = tuple(  # what older results have instead of learned and forgotten
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

    line: Line
    values: Mapping[Column, Value]
    row: Row  # one of its scores, which describes the checkpoint

    @property
    def name(self) -> str:
        """The name for people."""
        return method_name(self.line.label)

    @property
    def start(self) -> bool:
        """Whether the methods start from this model."""
        return self.line.initial and not any(column in self.values for column in MEASURES)


@dataclass(frozen=True, eq=False)
class Month:
    """The entries of one month, the method that learned most first and the start model last."""

    name: str
    columns: tuple[Column, ...]
    entries: tuple[Entry, ...]

    @property
    def able(self) -> list[Entry]:
        """The methods that learned more than they forgot; a model that knows nothing is not one of them."""
        return [entry for entry in self.scored if _able(entry)]

    @property
    def finding(self) -> str:
        """A sentence on who learned most and who forgot least, and how clear that is."""
        both, able = [entry for entry in self.scored if not entry.line.control], self.able
        others = [entry for entry in both if entry not in able and not entry.row.trained_on_test]
        if len(both) == 1 or (len(able) == 1 and not others):
            return _alone((able or both)[0])
        if len(able) == 1:
            forgot = "it forgot" if len(others) == 1 else "they forgot"
            return f"{_alone(able[0])}; {_named(others, both)} did not learn more than {forgot}"
        if not able:
            return "No method learned more than it forgot" if both and others == both else ""
        most, least = leaders(able, LEARNED), leaders(able, FORGOTTEN)
        within = "Among the methods that learned more than they forgot, " if others else ""
        if most == least and len(most) == 1 and _learned(most[0]):
            return f"{within}{most[0].name} learned most and forgot least"
        learning = _learning(most, able, "none" if others else "No method")
        none = "none clearly forgot less than the others"
        return f"{within}{learning}; {none if len(least) == len(able) else _led(least, able, 'forgot least')}"

    @property
    def advice(self) -> str:
        """A sentence on which of the methods that learned most forgot least, by the ranks of paired comparisons."""
        most = leaders(self.able, LEARNED)
        if len(most) in (0, 1, len(self.able)) or not all(map(_learned, most)):
            return ""
        least, *others = sorted(most, key=lambda entry: entry.values[FORGOTTEN].value)
        worst = least.values[FORGOTTEN].row.rank_worst
        best = [other.values[FORGOTTEN].row.rank_best for other in others]
        clear = worst is not None and all(rank is not None and worst < rank for rank in best)
        said = f"{least.name} forgot least" if clear else "none clearly forgot less than the others"
        return f"Among the methods that learned most, {said}."

    @property
    def scored(self) -> list[Entry]:
        """The methods with both measures."""
        return [entry for entry in self.entries if all(column in entry.values for column in MEASURES)]


def months(rows: Sequence[Row]) -> list[Month]:
    """Return the months that models were trained up to and tested on, newest first."""
    board = Board(rows)
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
        made.append(Month(month_name(names[place] or "all data"), shown, tuple(sorted(entries, key=_place))))
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
        return "One training run for each method; differences between runs are not included."
    if fewest == 1:
        return f"Means of up to {most} training runs; for methods with one, differences between runs are not included."
    how_many = most if fewest == most else f"{fewest} to {most}"
    return f"Means of {how_many} training runs; the intervals include the differences between runs."


def signed(value: float) -> str:
    """Return nats with two digits and a true minus."""
    return f"{round(value, 2) + 0.0:.2f}".replace("-", "−")  # 0.0: no minus before a zero


def ratio(value: float) -> str:
    """Return a ratio with two digits after the point, or with one significant digit if it is below 0.1."""
    return f"{value:.2f}" if value >= 0.1 else f"{value:.1g}"


def _learned(entry: Entry) -> bool:
    """Return whether a method clearly learned changed facts."""
    return (entry.values[LEARNED].row.low or 0) > 0


def _learning(most: Sequence[Entry], of: Sequence[Entry], nobody: str) -> str:
    """Return a clause on the methods that may have learned most."""
    clear = [entry for entry in most if _learned(entry)]
    if not clear:
        return f"{nobody} clearly learned the changed facts"
    if len(most) == len(of):
        return f"{nobody} clearly learned more than the others"
    if unclear := [entry for entry in most if entry not in clear]:
        return f"{_named(clear, of)} learned the changed facts, but not clearly more than {_named(unclear, of)}"
    return _led(most, of, "learned most")


def _alone(entry: Entry) -> str:
    """Return a sentence on what one method learned and forgot."""
    learned, forgot = (signed(entry.values[column].value) for column in (LEARNED, FORGOTTEN))
    nothing = entry.values[FORGOTTEN].value < 0
    if not _learned(entry):
        lost = f"lost nothing of the unchanged ones ({forgot})" if nothing else f"forgot {forgot} nats per token"
        return f"{entry.name} did not clearly learn the changed facts and {lost}"
    if nothing:
        return f"{entry.name} learned {learned} nats per token and lost nothing of the unchanged facts ({forgot})"
    return f"{entry.name} learned {learned} and forgot {forgot} nats per token"


def _led(first: Sequence[Entry], of: Sequence[Entry], what: str) -> str:
    between = ", with no clear difference between them" if len(first) > 1 else ""
    return f"{_named(first, of)} {what}{between}"


def _named(entries: Sequence[Entry], of: Sequence[Entry]) -> str:
    """Return the names of entries, or how many there are."""
    if len(entries) > _MOST_LEADERS:
        return f"{len(entries)} of {len(of)} methods"
    return listed([entry.name for entry in entries])


def _values(board: Board, columns: Iterable[Column]) -> dict[int, dict[Line, dict[Column, Value]]]:
    """Return place of the month -> line -> column -> value, of checkpoints tested on their own month."""
    found: dict[int, dict[Line, dict[Column, Value]]] = {}
    for line in board.lines:
        for column in columns:
            ratios = board.relative(line, column.score) if column.relative else {}
            for place, row in board.own_month(line, column.score).items():
                value = ratios.get(place) if column.relative else row.value
                if value is not None and math.isfinite(value):
                    found.setdefault(place, {}).setdefault(line, {})[column] = Value(value, row)
    return found


def _able(entry: Entry) -> bool:
    """Return whether a model learned more than it forgot, without test data; see ``measures.earned``."""
    rows = [entry.values[column].row for column in MEASURES if column in entry.values]
    return not entry.line.control and all(row.competes and not row.trained_on_test for row in rows)


def _place(entry: Entry) -> tuple[bool, bool, bool, float]:
    column, value = next(iter(entry.values.items()))
    return entry.start, entry.line.control, not _able(entry), -value.value if column.higher_is_better else value.value
