"""Draw the share of changes that a model knows, by month, with its cutoff."""

import textwrap
from collections.abc import Sequence

from matplotlib.figure import Figure

from temporalwiki.eval_harness.cutoff.estimator import Cutoff, Point
from temporalwiki.eval_harness.leaderboard.figures.style import BLACK, BLUE, SKY, WIDTH, month_ticks, style


def draw(curve: Sequence[Point], found: Cutoff, title: str) -> Figure:
    """Draw the points with their intervals; the fitted step, and the interval of the cutoff as a band."""
    with style():
        figure = Figure(figsize=(WIDTH, 2.6), layout="constrained")
        axes = figure.subplots()
        months = [point.month for point in curve]
        known = [100 * point.known for point in curve]
        below = [100 * max(0.0, point.known - point.low) for point in curve]
        above = [100 * max(0.0, point.high - point.known) for point in curve]
        if found.low is not None or found.high is not None:
            low = months[0] - 0.5 if found.low is None else found.low + 0.5
            high = months[-1] + 0.5 if found.high is None else found.high + 0.5
            axes.axvspan(low - 0.05, high + 0.05, color=SKY, alpha=0.25, linewidth=0)
        axes.errorbar(months, known, yerr=[below, above], fmt="o", color=BLUE, elinewidth=0.8, capsize=1.5)
        if found.cutoff is not None:
            sides = [[point for point in curve if (point.month <= found.cutoff) is before] for before in (True, False)]
            levels = [100 * sum(p.known * p.items for p in side) / sum(p.items for p in side) for side in sides]
            ends = [months[0] - 0.5, found.cutoff + 0.5, found.cutoff + 0.5, months[-1] + 0.5]
            axes.plot(ends, [levels[0], levels[0], levels[1], levels[1]], color=BLACK)
        ticks = month_ticks(months[0], months[-1], WIDTH)
        axes.set_xticks(list(ticks), list(ticks.values()))
        axes.set_xlim(months[0] - 0.5, months[-1] + 0.5)
        axes.set_ylim(0, 100)
        axes.set_ylabel("changes known, %")
        axes.set_xlabel("month of the change")
        axes.grid(axis="y")
        axes.set_axisbelow(True)
        axes.set_title(textwrap.fill(title, 100), loc="left")
    return figure
