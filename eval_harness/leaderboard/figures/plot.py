"""The type of figures."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from matplotlib.figure import Figure


class Plot(NamedTuple):
    """A figure of the leaderboard's rows or of a dataset.

    ``draw`` takes the source and the width in inches, and returns None if the source lacks what the figure shows. The
    label of the figure is a sentence about its finding.
    """

    title: str
    caption: str
    draw: Callable[..., Figure | None]
