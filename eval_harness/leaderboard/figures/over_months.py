"""Draw the scores of several lines of checkpoints over the months."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer

from temporalwiki.eval_harness.leaderboard.figures.style import Look
from temporalwiki.eval_harness.leaderboard.names import short_month

_NAME = 0.7  # inches for the name of a month
_SPREAD = 0.6  # share of a month's width over which the points of its lines are spread

Point = tuple[float, float | None, float | None]  # value and interval
_NONE: Point = (math.nan, None, None)  # a missing month interrupts a line


def draw(
    axes: Axes,
    months: Mapping[int, str],
    series: Mapping[str, Mapping[int, Point]],
    look: Mapping[str, Look],
) -> list[ErrorbarContainer]:
    """Draw the points of each label, and return the artists.

    The points of a month are drawn side by side, so that none hides another.
    """
    step = _SPREAD / max(len(series), 8)
    drawn = []
    for i, (label, points) in enumerate(series.items()):
        shift = (i - (len(series) - 1) / 2) * step
        look_of_line = look[label]
        values = [points.get(place, _NONE) for place in months]
        drawn.append(
            axes.errorbar(
                [x + shift for x in range(len(values))],
                [value for value, _, _ in values],
                yerr=_errors(values),
                color=look_of_line.colour,
                marker=look_of_line.marker,
                linestyle=look_of_line.dash,
                markerfacecolor="white" if look_of_line.hollow else look_of_line.colour,
                markeredgecolor=look_of_line.colour if look_of_line.hollow else "black",
                markeredgewidth=1.0 if look_of_line.hollow else 0.4,
                elinewidth=0.8,
                capsize=1.5,
            )
        )
    names = [short_month(month) for month in months.values()]
    width = axes.figure.get_size_inches()[0] / axes.get_subplotspec().get_gridspec().ncols
    every = -(-len(names) // max(1, int(width / _NAME)))
    axes.set_xticks(range(0, len(names), every), names[::every])
    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.set_xlabel("month")
    axes.grid(axis="y")
    axes.set_axisbelow(True)
    return drawn


def _errors(points: Sequence[Point]) -> Any:
    """Return the lengths of the intervals below and above the values, or None without intervals."""
    if all(low is None or high is None for _, low, high in points):
        return None
    known = [(value, value if low is None else low, value if high is None else high) for value, low, high in points]
    # a percentile interval may exclude its value
    return [[max(0.0, value - low) for value, low, _ in known], [max(0.0, high - value) for value, _, high in known]]
