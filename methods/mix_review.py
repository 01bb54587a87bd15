"""Mix-Review: new data mixed with past data, less of it each epoch."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from temporalwiki.base.options import option
from temporalwiki.methods.method import Method


@dataclass(frozen=True)
class MixReview(Method):
    """Epoch e adds ratio * decay^e * (size of the new data) examples of past data (He et al. 2021).

    CKL uses ratio 4 and decay 0.7; TemporalWiki uses ratio 2 in its single epoch. Each epoch draws a new sample, as in
    the papers. The authors' code differs: it keeps one sample that never shrinks.
    """

    needs_past: ClassVar[bool] = True

    ratio: float = option(2.0, "past examples per new example in the first epoch", above=0)
    decay: float = option(0.7, "factor of the ratio from one epoch to the next", above=0, at_most=1)

    def review(self, epoch: int, new: int) -> int:
        """Return the number of past examples in epoch ``epoch`` (from 0), given ``new`` new ones."""
        return round(self.ratio * self.decay**epoch * new)

    def epoch(self, epoch: int, new: int, past: int, draw: np.random.Generator) -> np.ndarray:
        """Return all new examples and the epoch's sample of past ones, shuffled together."""
        return draw.permutation(np.concatenate([np.arange(new), new + sample(self.review(epoch, new), past, draw)]))


def sample(wanted: int, of: int, draw: np.random.Generator) -> np.ndarray:
    """Draw ``wanted`` of ``of`` examples without replacement; start over when all have been drawn."""
    rounds = [draw.permutation(of) for _ in range(wanted // of)]
    return np.concatenate([*rounds, draw.choice(of, wanted % of, replace=False)]).astype(np.int64)
