"""The type of figures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from matplotlib.figure import Figure

Source = TypeVar("Source")


class Plot(NamedTuple, Generic[Source]):
    """A figure of the leaderboard's rows or of a dataset; ``draw`` returns None if it lacks what the figure shows."""

    title: str
    caption: str
    draw: Callable[[Source], Figure | None]
