"""Known facts: does a model tie an object to its subject, and not merely to the relation or to the month?

Facts of one relation are compared in panels of six to ten. ``L[i, j]`` is the log-likelihood of object j after subject
i. Fact i is known if its subject prefers its own object to each other one by more than the other subjects do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from temporalwiki.base.json_files import fingerprint
from temporalwiki.base.normalization import normalize

Row = Mapping[str, Any]
Matrix = npt.NDArray[np.float64]

MOST = 10  # facts of a panel
FEWEST = 6
SCORED = "scored"  # a row's column: False for a fact that --limit or --after-cutoff leaves out
_TIE = 1e-9  # differences up to this one are rounding


@dataclass(frozen=True)
class PanelFact:
    """A fact in a panel, with the normalised names that decide which facts may stand next to it."""

    id: str
    split: str
    row: Row
    subject: str
    names: frozenset[str]  # of its right objects
    ever: frozenset[str]  # of all objects that are or were right for it
    scored: bool = True  # False: it only stands in a panel

    @classmethod
    def of(cls, id: str, subject: str, split: str, row: Row) -> PanelFact:
        """Read the names of a fact's objects from the columns of the probes; only ``object`` is needed."""
        own, right = _names([row["object"]]), _names([*(row.get("objects") or ()), *(row.get("aliases") or ())])
        gone = row.get("gone_objects")
        gone = _names(row.get("previous_objects") or () if gone is None else gone)
        # the right objects of a deleted fact are those of today
        names = own if split == "deleted" else own | right
        return cls(id, split, row, subject, frozenset(names), frozenset(own | right | gone), row.get(SCORED, True))


@dataclass
class Panel:
    """Facts of one relation with different subjects; no object of one is or was right for the subject of another."""

    name: str
    split: str  # of the facts that are scored; the others only fill the panel
    room: int
    facts: list[PanelFact] = field(default_factory=list)

    def fits(self, fact: PanelFact) -> bool:
        """Return whether the fact may stand in this panel."""
        return all(
            fact.subject != other.subject and other.ever.isdisjoint(fact.names) and other.names.isdisjoint(fact.ever)
            for other in self.facts
        )

    @property
    def scored(self) -> list[int]:
        """The places of the facts that are scored."""
        return [i for i, fact in enumerate(self.facts) if fact.split == self.split and fact.scored]


def panels(facts: Iterable[PanelFact], relation: str, left_out: Counter[str], seed: int = 0) -> list[Panel]:
    """Return the panels of one relation's facts, in a fixed order that depends on nothing but the facts and the seed.

    The n facts of a split make ceil(n / 10) panels of sizes as equal as possible. Each fact goes into the first one
    with room that it fits, else into a new one. A panel below six is filled to six with facts of other splits.
    ``left_out`` counts the facts of panels that stay below six, by split.
    """
    ordered = sorted(facts, key=lambda fact: fingerprint(seed, fact.id))
    made: list[Panel] = []
    for split in dict.fromkeys(fact.split for fact in sorted(ordered, key=lambda fact: fact.split)):
        own = [fact for fact in ordered if fact.split == split]
        count = -(-len(own) // MOST)
        sizes = [len(own) // count + (i < len(own) % count) for i in range(count)]
        of_split = [Panel(f"{relation}/{split}/{i}", split, size) for i, size in enumerate(sizes)]
        for fact in own:
            chosen = next((p for p in of_split if len(p.facts) < p.room and p.fits(fact)), None)
            if chosen is None:
                chosen = Panel(f"{relation}/{split}/{len(of_split)}", split, MOST)
                of_split.append(chosen)
            chosen.facts.append(fact)
        others = [fact for fact in ordered if fact.split != split]
        for panel in filter(lambda panel: panel.facts, of_split):
            for filler in others:
                if len(panel.facts) >= FEWEST:
                    break
                if panel.fits(filler):
                    panel.facts.append(filler)
            if len(panel.facts) < FEWEST:
                left_out[f"{split}: in a panel of fewer than {FEWEST} facts of the relation"] += len(panel.scored)
            else:
                made.append(panel)
    return made


def complete_places(cells: Matrix) -> list[int]:
    """Return the places of a panel that stay if a cell (nan) could not be scored: its row and column leave.

    The place with the most missing cells leaves first, so that one bad object costs one fact.
    """
    kept = list(range(len(cells)))
    while len(kept):
        missing = np.isnan(cells[np.ix_(kept, kept)])
        if not missing.any():
            break
        kept.pop(int(np.argmax(missing.sum(axis=0) + missing.sum(axis=1))))
    return kept


def margins(cells: Matrix) -> Matrix:
    """Return how much more subject i prefers object i to object j than the other subjects do, in nats: [i, j].

    ``cells`` is [n, n] with n of at least 3. The mean over the other subjects leaves out both i and j: a fact that is
    known raises its own column. The diagonal is nan.
    """
    n = len(cells)
    own = np.diag(cells)
    total = cells.sum(axis=0)
    of_own = (total[:, None] - own[:, None] - cells.T) / (n - 2)  # mean over k of L[k, i]
    of_other = (total[None, :] - own[None, :] - cells) / (n - 2)  # mean over k of L[k, j]
    found = (own[:, None] - cells) - (of_own - of_other)
    np.fill_diagonal(found, np.nan)
    return found


def known(cells: Matrix) -> npt.NDArray[np.bool_]:
    """Return which facts of a panel are known; a tie is not known."""
    found: npt.NDArray[np.bool_] = np.nanmin(margins(cells), axis=1) > _tie(cells)
    return found


def binding(cells: Matrix) -> Matrix:
    """Return the mean margin of each fact, in nats. A sharper model raises it, so it ranks nothing."""
    found: Matrix = np.nanmean(margins(cells), axis=1)
    return found


def corrected(cells: Matrix, place: int, gone: Matrix, compared: npt.NDArray[np.bool_]) -> bool | None:
    """Return whether fact ``place`` is preferred to each of its gone objects by more than other subjects do.

    ``gone[k, g]`` is the log-likelihood of gone object g after subject k. ``compared[k, g]`` is False where object g
    is or was right for subject k, or was not scored: these rows are left out of the mean. None if no row is left.
    """
    wins = []
    for g in range(gone.shape[1]):
        rows = [k for k in range(len(cells)) if k != place and compared[k, g]]
        if not rows or np.isnan(gone[place, g]):
            return None
        others = float(np.mean(cells[rows, place] - gone[rows, g]))
        wins.append(cells[place, place] - gone[place, g] - others > _tie(cells))
    return all(wins) if wins else None


def by_spelling(panel: Sequence[PanelFact]) -> Matrix:
    """Return the control without a model: the number of character trigrams that subject i and object j share."""
    subjects, objects = ([_trigrams(str(fact.row[column])) for fact in panel] for column in ("subject", "object"))
    return np.array([[len(subject & object) for object in objects] for subject in subjects], dtype=np.float64)


def _names(labels: Iterable[str]) -> set[str]:
    return {normalize(label) or label for label in labels}


def _trigrams(text: str) -> set[str]:
    text = normalize(text)
    return {text[i : i + 3] for i in range(len(text) - 2)}


def _tie(cells: Matrix) -> float:
    return _TIE * max(1.0, float(np.abs(cells).max()))
