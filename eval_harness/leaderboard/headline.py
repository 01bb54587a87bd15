"""What the leaderboard opens with: for each month, what each method learned and forgot, and what it cost."""

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
    higher_is_better: bool = False
    relative: bool = False  # divided by the start model's


LEARNED = Column(
    "Learned",
    "nats per token; higher is better",
    ScoreName("learned_and_forgotten", "learned", "all"),
    higher_is_better=True,
)
FORGOTTEN = Column(
    "Forgotten",
    "nats per token; lower is better",
    ScoreName("learned_and_forgotten", "forgotten", "all"),
)
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
        return self.line.initial and LEARNED not in self.values and FORGOTTEN not in self.values


@dataclass(frozen=True, eq=False)
class Month:
    """The entries of one month, the method that learned most first and the start model last."""

    name: str
    columns: tuple[Column, ...]
    entries: tuple[Entry, ...]

    @property
    def finding(self) -> str:
        """A sentence on who learned most and who forgot least, and how clear that is."""
        both = self._scored
        if not both:
            return ""
        if len(both) == 1:
            learned, forgot = (both[0].values[column].value for column in (LEARNED, FORGOTTEN))
            return f"{both[0].name} learned {signed(learned)} and forgot {signed(forgot)} nats per token"
        most, least = self._learners, leaders(both, FORGOTTEN)
        if not most:
            learning = "No method clearly learned the changed facts"
        elif most == least and len(most) == 1:
            return f"{most[0].name} learned most and forgot least"
        else:
            learning = _led(most, both, "learned most", "No method clearly learned more than the others")
        return f"{learning}; {_led(least, both, 'forgot least', 'none clearly forgot less than the others')}"

    @property
    def _scored(self) -> list[Entry]:
        return [entry for entry in self.entries if LEARNED in entry.values and FORGOTTEN in entry.values]

    @property
    def _learners(self) -> list[Entry]:
        """The methods that learned most; none if no one clearly learned anything."""
        found = leaders(self._scored, LEARNED)
        return found if any((entry.values[LEARNED].row.low or 0) > 0 for entry in found) else []

    @property
    def advice(self) -> str:
        """A sentence on the methods that learned most: which of them forgot least, if one clearly did."""
        most = self._learners
        least = leaders(most, FORGOTTEN, ranked=False)
        if len(most) < 2 or len(least) > 1:
            return ""
        return f"Of the methods that learned most, {least[0].name} forgot least."


def months(rows: Sequence[Row]) -> list[Month]:
    """Return the months that methods were trained to and tested on, newest first."""
    board = Board(rows)
    columns = (LEARNED, FORGOTTEN, *_TEXTS)
    found = _values(board, columns)
    if not any(LEARNED in values for of_month in found.values() for values in of_month.values()):
        columns = (*_FACTS, *_TEXTS)
        found = _values(board, columns)
    names = {board.place(row.tested): row.tested for row in rows}
    made = []
    for place, of_month in sorted(found.items(), reverse=True):
        entries = [Entry(line, values, next(iter(values.values())).row) for line, values in of_month.items()]
        if all(entry.start for entry in entries):
            continue
        shown = tuple(column for column in columns if any(column in entry.values for entry in entries))
        made.append(Month(month_name(names[place] or "all data"), shown, tuple(sorted(entries, key=_place))))
    return made


def leaders(entries: Sequence[Entry], column: Column, *, ranked: bool = True) -> list[Entry]:
    """Return the entries that may be the best ones in a column, the best first.

    A model that forgot as much as it learned, such as one with random weights, is never one of them.
    Paired comparisons decide if all entries of the month are given (``ranked``) and have ranks. Otherwise the entries
    whose intervals overlap the best one's are returned.
    """
    sign = 1 if column.higher_is_better else -1
    able = [entry for entry in entries if _able(entry)]
    best_first = sorted(able, key=lambda entry: -sign * entry.values[column].value)
    rows = [entry.values[column].row for entry in best_first]
    if not rows:
        return []
    ranks = [row.rank_best for row in rows if row.rank_best is not None]
    if ranked and ranks:
        return [entry for entry, row in zip(best_first, rows, strict=True) if row.rank_best == min(ranks)]
    best = rows[0]
    worst_of_best = best.low if sign > 0 else best.high

    def reaches(row: Row) -> bool:
        end = row.high if sign > 0 else row.low
        return row is best or end is None or worst_of_best is None or sign * end >= sign * worst_of_best

    return [entry for entry, row in zip(best_first, rows, strict=True) if reaches(row)]


def signed(value: float) -> str:
    """Return nats with two digits and a true minus."""
    return f"{value:.2f}".replace("-", "−")


def _led(first: Sequence[Entry], of: Sequence[Entry], what: str, nobody: str) -> str:
    if len(first) in (0, len(of)):
        return nobody
    if len(first) > _MOST_LEADERS:
        return f"{len(first)} of {len(of)} methods {what}, with no clear difference between them"
    between = ", with no clear difference between them" if len(first) > 1 else ""
    return f"{listed([entry.name for entry in first])} {what}{between}"


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
    """Return whether a model learned more than it forgot; one that knows nothing could have its scores otherwise."""
    both = [entry.values[column] for column in (LEARNED, FORGOTTEN) if column in entry.values]
    fair = all(value.row.competes and not value.row.trained_on_test for value in both)
    return fair and (len(both) < 2 or both[0].value > both[1].value)


def _place(entry: Entry) -> tuple[bool, bool, float]:
    column, value = next(iter(entry.values.items()))
    return entry.start, not _able(entry), -value.value if column.higher_is_better else value.value
