"""Select rows for tables and figures: lines of checkpoints, in the order of the papers, and their scores by month."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from temporalwiki.eval_harness import misalignment
from temporalwiki.eval_harness.leaderboard.rows import Row
from temporalwiki.eval_harness.measures import WORST
from temporalwiki.methods import METHODS


class ScoreName(NamedTuple):
    """The name of a score; None stands for any test or any kind of config."""

    task: str
    measure: str
    test: str | None = None
    kind: str | None = None

    def of(self, row: Row) -> bool:
        """Return whether a row has this score."""
        return (
            row.task == self.task
            and row.measure == self.measure
            and self.test in (None, row.test)
            and self.kind in (None, row.kind)
        )


@dataclass(frozen=True, eq=False)
class ModelLine:
    """The checkpoints with one label, one for each month."""

    label: str
    method: str | None
    base: str
    learning_rate: float | None
    rows: tuple[Row, ...]

    @property
    def control(self) -> bool:
        """Whether it is a control or the ceiling: it is grey, has no rank, and is never the best."""
        return any(row.control for row in self.rows)

    @property
    def initial(self) -> bool:
        """Whether it is the model before any training, without passages to read."""
        return all(row.month is None and not row.retrieved for row in self.rows) and (
            self.method in (None, "initial") or self.label == "initial"
        )


class ModelBoard:
    """All lines, sorted as the methods in the papers and then by label, and the order of the months.

    If checkpoints with the same label have several base models, each base becomes a line with the base in its label.
    If there are still two scores for the same cell, the learning rate and then the checkpoint are added to the label.
    """

    def __init__(self, rows: Sequence[Row]) -> None:
        named = {month for row in rows for month in (row.month, row.tested) if month}
        self._places = misalignment.places(named)
        # a month can have two names and a task two versions: the first row counts, short name and late version first
        ordered = sorted(rows, key=lambda row: (len(row.config), row.config, row.test, -row.version, row.result))
        by_label: dict[str, list[Row]] = {}
        for row in ordered:
            by_label.setdefault(row.label, []).append(row)
        found = [line for label, of_label in by_label.items() for line in _lines(label, of_label, _APART)]
        place = {method: i for i, method in enumerate(METHODS)}
        self.lines = sorted(
            found,
            key=lambda line: (not line.initial, line.control, place.get(line.method or "", len(place)), line.label),
        )

    def place(self, month: str | None) -> int:
        """Return the position of a month in time, or -1 for None."""
        return -1 if month is None else self._places[month]

    def months(self, score: ScoreName) -> dict[int, str]:
        """Return position -> name of the months that have a score, in order."""
        found: dict[int, str] = {}
        for line in self.lines:
            for row in filter(score.of, line.rows):
                if row.tested is not None:
                    found.setdefault(self.place(row.tested), row.tested)
        return dict(sorted(found.items()))

    def initial_of(self, line: ModelLine) -> ModelLine | None:
        """Return the line of Initial with the same base, or the only line of Initial; None without either."""
        initials = [other for other in self.lines if other.initial]
        own = [other for other in initials if other.base == line.base] or initials[: len(initials) == 1]
        return min(own, key=lambda other: other.method is None, default=None)

    def own_month(self, line: ModelLine, score: ScoreName) -> dict[int, Row]:
        """Return tested month -> the score of the checkpoint that was trained up to that month.

        A checkpoint without a month stands in for all months that have no checkpoint of their own.
        """
        found: dict[int, Row] = {}
        rows = list(filter(score.of, line.rows))
        for same_month in (True, False):
            for row in rows:
                tested = self.place(row.tested)
                if (self.place(row.month) == tested) if same_month else row.month is None:
                    found.setdefault(tested, row)
        return dict(sorted(found.items()))

    def relative(self, line: ModelLine, score: ScoreName) -> dict[int, float]:
        """Return ``own_month`` divided by Initial's score of the same month, if both exist and are above 0."""
        initial = self.initial_of(line)
        if initial is None:
            return {}
        before = self.own_month(initial, score)
        own = self.own_month(line, score)
        return {
            place: row.value / before[place].value
            for place, row in own.items()
            if place in before and row.value > 0 and before[place].value > 0
        }

    def newest(self, line: ModelLine, score: ScoreName) -> list[Row]:
        """Return the rows of a score of the newest checkpoint that has it."""
        rows = list(filter(score.of, line.rows))
        last = max((self.place(row.month) for row in rows), default=-1)
        return [row for row in rows if self.place(row.month) == last]


# added, in this order, to the labels of lines that share a label
_APART: tuple[Callable[[Row], str], ...] = (
    lambda row: row.base or "unknown base",
    lambda row: "no learning rate" if row.learning_rate is None else f"learning rate {row.learning_rate:g}",
    lambda row: f"{row.model} at {row.revision[:8]}",
)


def _lines(label: str, rows: Sequence[Row], apart: Sequence[Callable[[Row], str]]) -> Iterator[ModelLine]:
    scores = [row for row in rows if not row.test.startswith(f"{WORST}/")]  # runs may differ in their worst form
    asked = Counter((row.month, row.task, row.version, row.config, row.test, row.measure) for row in scores)
    if not apart or (max(asked.values(), default=1) == 1 and len({row.base for row in rows}) == 1):
        rates = [row.learning_rate for row in rows if row.learning_rate is not None]
        yield ModelLine(label, rows[0].method, rows[0].base, rates[0] if rates else None, tuple(rows))
        return
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(apart[0](row), []).append(row)
    for name, group in groups.items():
        yield from _lines(label if len(groups) == 1 else f"{label}, {name}", group, apart[1:])
