"""Replay: a constant share of past data in every batch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from temporalwiki.builders.errors import UsageError
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

    def epoch(self, epoch: int, new: int, past: int, batch_size: int, draw: np.random.Generator) -> np.ndarray:
        """Shuffle both kinds and lay the past ones out evenly, so that no batch has one more than its share."""
        size = round(new / (1 - self.share))
        review = size - new
        order = np.empty(size, dtype=np.int64)
        # position i holds a past example where the running share passes a whole number
        is_past = np.diff(np.arange(size + 1) * review // size).astype(bool)
        order[is_past] = new + sample(review, past, draw)
        order[~is_past] = draw.permutation(new)
        return order
