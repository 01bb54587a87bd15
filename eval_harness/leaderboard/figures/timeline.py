"""Up to which month each model knows what changed: a timeline with a row for each model."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from temporalwiki.eval_harness.cutoff_report import in_words
from temporalwiki.eval_harness.leaderboard.cutoffs import Known
from temporalwiki.eval_harness.leaderboard.figures.plot import Plot
from temporalwiki.eval_harness.leaderboard.figures.style import (
    BLACK,
    BLUE,
    GREY,
    SKY,
    WIDTH,
    month_ticks,
    shortened,
    styled,
)

_ROW = 0.3  # inches
_HALF = 0.5  # of a month: a bar begins with the first day of a month and ends with the last


@styled
def _draw(cutoffs: Sequence[Known], width: float = WIDTH) -> Figure | None:
    if not cutoffs:
        return None
    figure = Figure(figsize=(width, 0.75 + _ROW * len(cutoffs)), layout="constrained")
    axes = figure.subplots()
    known = [month for one in cutoffs for month in (one.first, one.last, one.low, one.high) if month is not None]
    left, right = (min(known) - _HALF, max(known) + _HALF) if known else (0.0, 1.0)
    for row, one in enumerate(cutoffs):
        if one.first is not None and one.last is not None:
            axes.plot([one.first - _HALF, one.last + _HALF], [row, row], color=GREY, linewidth=0.8, zorder=1)
        if one.low is None and one.high is None:
            text = axes.annotate(
                one.verdict, (left, row), (4, 0), textcoords="offset points", va="center", color=BLACK
            )
            text.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1})
            continue
        start = left if one.low is None else one.low - _HALF
        end = right if one.high is None else one.high + _HALF
        axes.barh(row, end - start, 0.5, start, color=SKY, zorder=2)
        at, marker = (one.cutoff, "o") if one.cutoff is not None else (start, "<") if one.low is None else (end, ">")
        axes.plot([at], [row], marker, color=BLUE, clip_on=False, zorder=3)
    names = shortened([str(row) for row in range(len(cutoffs))], int(width * 4), lambda row: cutoffs[int(row)].model)
    axes.set_yticks(range(len(cutoffs)), list(names.values()))
    axes.set_ylim(len(cutoffs) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0, pad=8)
    axes.spines["left"].set_visible(False)
    axes.set_xlim(left, right)
    ticks = month_ticks(round(left + _HALF), round(right - _HALF), 0.7 * width) if known else {}
    axes.set_xticks(list(ticks), list(ticks.values()))
    axes.set_xlabel("month of the change")
    axes.grid(axis="x")
    axes.set_axisbelow(True)
    figure.set_label(_finding(cutoffs))
    return figure


def _finding(cutoffs: Sequence[Known]) -> str:
    months = sorted(one.cutoff for one in cutoffs if one.cutoff is not None)
    if not months:
        return "The data do not show where the knowledge of a model ends"
    first, last = months[0], months[-1]
    end = f"between {in_words(first, last // 12)} and {in_words(last)}" if first < last else f"in {in_words(last)}"
    return f"The knowledge of {len(months)} of {len(cutoffs)} {'models' if cutoffs[1:] else 'model'} ends {end}"


PLOT = Plot(
    "Up to when models know what changed",
    "A dot is the last month whose changes a model knows, the bar its 95 % interval. A triangle: the data end before "
    "the bar does. The thin line shows the months of the data.",
    _draw,
)
