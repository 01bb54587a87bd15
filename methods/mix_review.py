"""Mix-Review: new data with a share of past data that shrinks epoch by epoch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from temporalwiki.base.errors import UsageError
from temporalwiki.methods.method import Method


@dataclass(frozen=True)
class MixReview(Method):
    """Epoch e adds ratio * decay^e * (size of the new data) examples of past data (He et al. 2021).

    CKL has ratio 4 and decay 0.7, TemporalWiki ratio 2 in its one epoch. The sample is drawn anew each epoch. The
    authors' code keeps one sample that never decays; their papers, and this, do not.
    """

    needs_past: ClassVar[bool] = True

    ratio: float = field(default=2.0, metadata={"help": "past examples a new one in the first epoch"})
    decay: float = field(default=0.7, metadata={"help": "by which the ratio shrinks each epoch"})

    def __post_init__(self) -> None:
        """Refuse what is no mix."""
        if not self.ratio > 0 or not 0 < self.decay <= 1:
            raise UsageError(f"mix_review needs ratio > 0 and 0 < decay <= 1, not {self.ratio:g} and {self.decay:g}")

    def review(self, epoch: int, new: int) -> int:
        """Return how many past examples epoch ``epoch`` (from 0) adds to ``new`` new ones."""
        return round(self.ratio * self.decay**epoch * new)

    def epoch(self, epoch: int, new: int, past: int, draw: np.random.Generator) -> np.ndarray:
        """All new examples and the epoch's sample of the past, shuffled together."""
        return draw.permutation(np.concatenate([np.arange(new), new + sample(self.review(epoch, new), past, draw)]))


def sample(wanted: int, of: int, draw: np.random.Generator) -> np.ndarray:
    """Draw ``wanted`` of ``of`` examples; none twice before each came once."""
    rounds = [draw.permutation(of) for _ in range(wanted // of)]
    return np.concatenate([*rounds, draw.choice(of, wanted % of, replace=False)]).astype(np.int64)
