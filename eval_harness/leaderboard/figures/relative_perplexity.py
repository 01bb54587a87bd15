"""TemporalWiki's figure 2: perplexity of proper nouns in changed and in unchanged text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from temporalwiki.eval_harness.leaderboard.figures import over_months
from temporalwiki.eval_harness.leaderboard.figures.plot import Plot
from temporalwiki.eval_harness.leaderboard.figures.style import (
    BLACK,
    WIDTH,
    legend,
    logarithmic_if_wide,
    looks,
    styled,
)
from temporalwiki.eval_harness.leaderboard.rows import Row
from temporalwiki.eval_harness.leaderboard.selection import Board, ScoreName

_PANELS = {
    kind: (name, ScoreName("twiki_intrinsic", "proper_noun_perplexity", kind=kind))
    for kind, name in (("diffset", "changed text (diffsets)"), ("unchanged", "unchanged text"))
}


@styled
def _draw(rows: Sequence[Row]) -> Figure | None:
    board = Board(rows)
    lines = [line for line in board.lines if not line.initial]
    panels = {}
    for kind, (name, score) in _PANELS.items():
        series = {line.label: board.relative(line, score) for line in lines}
        if any(series.values()):
            panels[kind] = (name, score, series)
    lines = [line for line in lines if any(series[line.label] for _, _, series in panels.values())]
    if not panels:
        return None
    look = looks(board.lines)
    figure = Figure(figsize=(WIDTH, 2.8), layout="constrained")
    every = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    every[0].set_ylabel("perplexity of proper nouns / Initial's")
    drawn: list[Any] = []
    values = [1.0]
    for axes, (name, score, series) in zip(every, panels.values(), strict=True):
        initial = axes.axhline(1, color=BLACK, linewidth=1.3)
        points = {line.label: {at: (value, None, None) for at, value in series[line.label].items()} for line in lines}
        drawn = [initial, *over_months.draw(axes, board.months(score), points, look, 12 // len(panels))]
        values += [value for of_line in series.values() for value in of_line.values()]
        axes.set_title(name)
    logarithmic_if_wide(every[0], "y", values)
    legend(figure, ["Initial", *(line.label for line in lines)], drawn)
    return figure


PLOT = Plot(
    "Perplexity of proper nouns, relative to Initial",
    "The perplexity of the tokens of proper nouns, divided by the initial model's (the line at 1), in each "
    "month's diffset and in unchanged articles, for models trained up to that month. Below 1, a model predicts the "
    "text better than before its training. TemporalWiki, figure 2.",
    _draw,
)
