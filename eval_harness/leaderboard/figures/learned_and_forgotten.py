"""What each method learned of the newest month's changed facts, and what it forgot of the unchanged ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from temporalwiki.eval_harness.leaderboard.figures.plot import Plot
from temporalwiki.eval_harness.leaderboard.figures.style import (
    BLACK,
    GREY,
    WIDTH,
    Look,
    annotate,
    fitting,
    legend,
    looks,
    styled,
)
from temporalwiki.eval_harness.leaderboard.headline import FORGOTTEN, LEARNED, Month, months
from temporalwiki.eval_harness.leaderboard.rows import Row
from temporalwiki.eval_harness.leaderboard.selection import Board


@styled
def _draw(rows: Sequence[Row], width: float = WIDTH) -> Figure | None:
    newest = _newest(rows)
    if newest is None:
        return None
    look = looks(Board(rows).lines)
    return _figure(newest, look, width, legended=False) or _figure(newest, look, width, legended=True)


def _figure(newest: Month, look: Mapping[str, Look], width: float, *, legended: bool) -> Figure | None:
    """Return the figure with names at the points, or with a legend; None if the points leave no room for a name."""
    figure = Figure(figsize=(width, 3.5), layout="constrained")
    axes = figure.subplots()
    for at in (axes.axhline, axes.axvline):
        at(0, color=GREY, linewidth=0.8)
    texts = [((0.0, 0.0), "Start model")]
    lines = []
    drawn: list[Any] = axes.plot([0], [0], color=BLACK, marker="o", linestyle="none", markersize=6)
    shown = [entry for entry in newest.entries if LEARNED in entry.values and FORGOTTEN in entry.values]
    labels = [entry.line.label for entry in shown]
    names = fitting(labels, 0.4 * width, 8)
    for entry in shown:
        x, y = entry.values[FORGOTTEN], entry.values[LEARNED]
        style = look[entry.line.label]
        bars = axes.errorbar(
            x.value,
            y.value,
            xerr=[[x.value - x.low], [x.high - x.value]],
            yerr=[[y.value - y.low], [y.high - y.value]],
            color=style.colour,
            marker=style.marker,
            markersize=7,
            markerfacecolor="white" if style.hollow else style.colour,
            elinewidth=1,
            capsize=2,
        )
        drawn.append(bars)
        texts.append(((x.value, y.value), names[entry.line.label]))
        lines += [((x.low, y.value), (x.high, y.value)), ((x.value, y.low), (x.value, y.high))]
    axes.margins(0.14)
    axes.update_datalim([(-0.02, -0.02), (0.02, 0.02)])  # small differences must not look large
    axes.autoscale_view()
    axes.grid(visible=True)
    axes.set_axisbelow(True)
    axes.set_xlabel("Forgotten: nats per token of unchanged facts")
    axes.set_ylabel("Learned: nats per token of changed facts")
    axes.set_title("↖ better", loc="left", color=GREY)
    figure.set_label(f"{newest.name}: {newest.finding}")
    if legended:
        legend(figure, ["initial", *labels], drawn)
    elif not annotate(figure, axes, texts, lines):
        return None
    return figure


def _newest(rows: Sequence[Row]) -> Month | None:
    """Return the newest month with a method that has both scores."""
    for month in months(rows):
        if any(LEARNED in entry.values and FORGOTTEN in entry.values for entry in month.entries):
            return month
    return None


PLOT = Plot(
    "Learned against forgotten",
    "How much more likely each method's newest model finds the objects of changed facts (learned) and how much less "
    "likely those of unchanged facts (forgotten) than the start model does. A change of 0.69 nats per token means "
    "that a token became, on average, twice (or half) as likely. Lines: 95 % intervals. Further up and to the left is "
    "better.",
    _draw,
)
