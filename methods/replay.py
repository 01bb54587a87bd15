"""Replay: a constant share of past data in every batch."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np

from temporalwiki.base.errors import UsageError
from temporalwiki.methods.method import Method
from temporalwiki.methods.mix_review import sample


@dataclass(frozen=True)
class Replay(Method):
    """A fixed share of each batch is past data, the baseline to beat in TiC-LM (Li et al. 2025).

    Every new example is read once an epoch; past examples are added to them, and drawn anew each epoch.
    """

    needs_past: ClassVar[bool] = True

    share: float = field(default=0.1, metadata={"help": "of the examples of a batch that is past data"})

    def __post_init__(self) -> None:
        """Refuse what leaves no room for new data."""
        if not 0 < self.share < 1:
            raise UsageError(f"replay needs a share between 0 and 1, not {self.share:g}")

    def epoch(self, epoch: int, new: int, past: int, draw: np.random.Generator) -> np.ndarray:
        """Shuffle both kinds and lay the past ones out evenly, so that each batch has its share, rounded up or down.

        Place i of the whole run, all epochs counted, holds a past example where i * share passes a whole number.
        """
        share = Fraction(self.share).limit_denominator(10**6)
        first, end = (_place(count * new, share) for count in (epoch, epoch + 1))
        passed = np.arange(first, end + 1) * share.numerator // share.denominator
        is_past = np.diff(passed).astype(bool)
        order = np.empty(len(is_past), dtype=np.int64)
        order[is_past] = new + sample(int(is_past.sum()), past, draw)
        order[~is_past] = draw.permutation(new)
        return order


def _place(new: int, share: Fraction) -> int:
    """Return the place in the run of the new example with ``new`` new ones before it."""
    return new * share.denominator // (share.denominator - share.numerator)
