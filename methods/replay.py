"""Replay: the same share of past data in every batch."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from temporalwiki.base.options import option
from temporalwiki.methods.method import Method
from temporalwiki.methods.mix_review import sample


@dataclass(frozen=True)
class Replay(Method):
    """A fixed share of each batch is past data, as in the strongest baseline of TiC-LM (Li et al. 2025).

    An epoch reads every new example once, and a new sample of past examples.
    """

    needs_past: ClassVar[bool] = True

    share: float = option(0.1, "share of past data in each batch", above=0, below=1)

    def epoch(self, epoch: int, new: int, past: int, draw: np.random.Generator) -> np.ndarray:
        """Return both kinds of examples, each shuffled, with the past ones spread evenly over the batches.

        Positions are counted over all epochs of the run. Position i holds a past example if there is a whole number
        above i * share and up to (i + 1) * share.
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
    """Return the position of a new example in the mixed run, given how many new examples come before it."""
    return new * share.denominator // (share.denominator - share.numerator)
