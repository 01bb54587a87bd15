"""What a figure of the leaderboard is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from matplotlib.figure import Figure

from temporalwiki.eval_harness.leaderboard.rows import Row


class Plot(NamedTuple):
    """A figure of rows; ``draw`` returns None where they lack what it shows."""

    title: str
    caption: str
    draw: Callable[[Sequence[Row]], Figure | None]


class DataPlot(NamedTuple):
    """A figure of a dataset; ``draw`` returns None where it lacks what it shows."""

    title: str
    caption: str
    draw: Callable[[str], Figure | None]
