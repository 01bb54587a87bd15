"""TemporalWiki's figure 3: the average perplexity of unchanged and changed facts, month after month."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from temporalwiki.eval_harness.leaderboard.figures import over_months
from temporalwiki.eval_harness.leaderboard.figures.plot import Plot
from temporalwiki.eval_harness.leaderboard.figures.style import WIDTH, legend, logarithmic_if_wide, looks, styled
from temporalwiki.eval_harness.leaderboard.names import method_name, month_name
from temporalwiki.eval_harness.leaderboard.rows import Row
from temporalwiki.eval_harness.leaderboard.selection import Board, ScoreName

_SCORE = ScoreName("twiki_probes", "perplexity", "average")


@styled
def _draw(rows: Sequence[Row], width: float = WIDTH) -> Figure | None:
    board = Board(rows)
    series = {line: own for line in board.lines if (own := board.own_month(line, _SCORE))}
    if not series:
        return None
    figure = Figure(figsize=(width, 3.2), layout="constrained")
    axes = figure.subplots()
    points = {
        line.label: {at: (row.value, row.low, row.high) for at, row in own.items()} for line, own in series.items()
    }
    drawn = over_months.draw(axes, board.months(_SCORE), points, looks(board.lines))
    axes.set_ylabel("average perplexity of facts\n(lower is better)")
    logarithmic_if_wide(axes, "y", [row.value for own in series.values() for row in own.values()])
    legend(figure, list(points), drawn)
    newest = max(at for own in series.values() for at in own)
    fair = [line for line, own in series.items() if newest in own and line.fair]
    if not fair:
        return figure
    best = min(fair, key=lambda line: series[line][newest].value)
    value, month = series[best][newest].value, board.months(_SCORE)[newest]
    figure.set_label(
        f"{method_name(best.label)} has the lowest average perplexity on facts of {month_name(month)}: {value:,.3g}"
    )
    return figure


PLOT = Plot(
    "Average perplexity of unchanged and changed facts",
    "The mean of the zero-shot perplexities of each month's unchanged and changed facts (TWiki-Probes), for models "
    "trained up to that month; lower is better. Bars: 95 % intervals over subjects and relations. Overlapping bars "
    "do not mean that two models are equal: see their ranks. TemporalWiki, figure 3.",
    _draw,
)
