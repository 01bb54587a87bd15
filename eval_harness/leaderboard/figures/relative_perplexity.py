"""TemporalWiki's figure 2: perplexity of proper nouns in changed and in unchanged text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from temporalwiki.eval_harness.leaderboard.headline import ratio
from temporalwiki.eval_harness.leaderboard.names import method_name
from temporalwiki.eval_harness.leaderboard.rows import Row
from temporalwiki.eval_harness.leaderboard.selection import Board, ScoreName

_PANELS = {
    kind: (name, ScoreName("twiki_intrinsic", "proper_noun_perplexity", kind=kind))
    for kind, name in (("diffset", "new text (diffsets)"), ("unchanged", "old text (unchanged)"))
}


@styled
def _draw(rows: Sequence[Row], width: float = WIDTH) -> Figure | None:
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
    across = len(panels) if width == WIDTH else 1
    down = len(panels) // across
    figure = Figure(figsize=(width, 2.8 * down), layout="constrained")
    every = figure.subplots(down, across, squeeze=False, sharey=True).ravel()
    figure.supylabel("perplexity of names ÷ start model's", fontsize="medium")
    drawn: list[Any] = []
    values = [1.0]
    for axes, (name, score, series) in zip(every, panels.values(), strict=True):
        initial = axes.axhline(1, color=BLACK, linewidth=1.3)
        points = {line.label: {at: (value, None, None) for at, value in series[line.label].items()} for line in lines}
        drawn = [initial, *over_months.draw(axes, board.months(score), points, look)]
        values += [value for of_line in series.values() for value in of_line.values()]
        axes.set_title(name)
    logarithmic_if_wide(every[0], "y", values)
    legend(figure, ["initial", *(line.label for line in lines)], drawn)
    fair = [line.label for line in lines if line.fair]
    said = "; ".join(filter(None, (_best(name, series, fair) for name, _, series in panels.values())))
    figure.set_label(said[:1].upper() + said[1:])
    return figure


def _best(name: str, series: Mapping[str, Mapping[int, float]], fair: Sequence[str]) -> str:
    newest = max(at for of_line in series.values() for at in of_line)
    values = [(series[label][newest], label) for label in fair if newest in series[label]]
    if not values:
        return ""
    least, label = min(values)
    return f"{name}: {method_name(label)} predicts names best ({ratio(least)} of the start model's perplexity)"


PLOT = Plot(
    "Perplexity of proper nouns, relative to Initial",
    "The perplexity of the tokens of proper nouns, divided by the initial model's (the line at 1), in each "
    "month's diffset and in unchanged articles, for models trained up to that month. Below 1, a model predicts the "
    "text better than before its training. TemporalWiki, figure 2.",
    _draw,
)
