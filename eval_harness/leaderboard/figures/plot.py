"""The types of figures: of the leaderboard's rows, and of a dataset."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from matplotlib.figure import Figure

from temporalwiki.eval_harness.leaderboard.rows import Row


class Plot(NamedTuple):
    """A figure of rows; ``draw`` returns None if they lack the scores for it."""

    title: str
    caption: str
    draw: Callable[[Sequence[Row]], Figure | None]


class DataPlot(NamedTuple):
    """A figure of a dataset; ``draw`` returns None if the dataset lacks the data for it."""

    title: str
    caption: str
    draw: Callable[[str], Figure | None]
