"""Learning against forgetting: perplexity of changed facts and of unchanged facts, by learning rate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from temporalwiki.eval_harness.leaderboard.figures.plot import Plot
from temporalwiki.eval_harness.leaderboard.figures.style import (
    BLACK,
    WIDTH,
    annotate,
    legend,
    logarithmic_if_wide,
    looks,
    styled,
)
from temporalwiki.eval_harness.leaderboard.names import method_name
from temporalwiki.eval_harness.leaderboard.rows import Row
from temporalwiki.eval_harness.leaderboard.selection import Board, Line, ScoreName

# (score of unchanged, score of changed) facts or text; the figure shows the first that has scores
_READ = {
    "facts": (
        ScoreName("twiki_probes", "perplexity", "unchanged"),
        ScoreName("twiki_probes", "perplexity", "changed"),
    ),
    "text": (
        ScoreName("twiki_intrinsic", "perplexity", kind="unchanged"),
        ScoreName("twiki_intrinsic", "perplexity", kind="diffset"),
    ),
}
Point = tuple[float, float]


@styled
def _draw(rows: Sequence[Row], width: float = WIDTH) -> Figure | None:
    board = Board(rows)
    found = {what: _points(board, kept, changed) for what, (kept, changed) in _READ.items()}
    what = next((what for what, points in found.items() if points), None)
    if what is None:
        return None
    points, groups, look = found[what], _groups(found[what]), looks(board.lines)
    figure = Figure(figsize=(width, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    axes.axvline(1, color=BLACK, linewidth=0.8)
    axes.axhline(1, color=BLACK, linewidth=0.8)
    drawn = axes.plot([1], [1], color=BLACK, marker="o", linestyle="none", markersize=7)
    for group in groups:
        style = min((look[line.label] for line in group), key=lambda style: style.hollow)
        drawn += axes.plot(
            [points[line][0] for line in group],
            [points[line][1] for line in group],
            color=style.colour,
            marker=style.marker,
            linestyle=style.dash,
            markersize=7,
            markerfacecolor="white" if style.hollow else style.colour,
            markeredgecolor=style.colour if style.hollow else BLACK,
            markeredgewidth=1.2 if style.hollow else 0.5,
        )
    axes.set_xlabel(f"unchanged {what}: perplexity ÷ start model's\n(right of 1: forgets)")
    axes.set_ylabel(f"changed {what}: perplexity ÷ start model's\n(below 1: learns)")
    logarithmic_if_wide(axes, "x", [1, *(x for x, _ in points.values())])
    logarithmic_if_wide(axes, "y", [1, *(y for _, y in points.values())])
    axes.margins(0.12)
    axes.update_datalim([(0.98, 0.98), (1.02, 1.02)])  # small differences must not look large
    axes.autoscale_view()
    axes.grid(visible=True)
    axes.set_axisbelow(True)
    legend(figure, ["initial", *_names(groups)], drawn)
    rates = [(points[line], _rate(line.learning_rate or 0)) for group in groups if len(group) > 1 for line in group]
    annotate(figure, axes, rates, [(point, point) for point in ((1.0, 1.0), *points.values())])
    fair = [line for line in points if line.fair]
    if not fair:
        return figure
    least, most = (min(fair, key=lambda line: points[line][at]) for at in (0, 1))
    figure.set_label(
        f"{method_name(most.label)} has the lowest perplexity of changed {what} ({points[most][1]:.2f} of the start "
        f"model's), {method_name(least.label)} of unchanged {what} ({points[least][0]:.2f})"
    )
    return figure


def _points(board: Board, kept: ScoreName, changed: ScoreName) -> dict[Line, Point]:
    """Return line -> (unchanged, changed) score relative to Initial, in its newest month that has both."""
    found = {}
    for line in board.lines:
        x, y = board.relative(line, kept), board.relative(line, changed)
        if not line.initial and (both := x.keys() & y.keys()):
            found[line] = x[max(both)], y[max(both)]
    return found


def _groups(lines: Iterable[Line]) -> list[list[Line]]:
    """Group lines of one method and base that differ only in their learning rate, sorted by it."""
    found: dict[tuple[str | None, str, str], list[Line]] = {}
    for line in lines:
        found.setdefault((line.method, line.base, line.rows[0].retrieved), []).append(line)
    groups = []
    for (method, _, _), of_method in found.items():
        rates = [line.learning_rate for line in of_method]
        if method is None or None in rates or len(set(rates)) < len(rates):
            groups += [[line] for line in of_method]
        else:
            groups.append(sorted(of_method, key=lambda line: line.learning_rate or 0))
    return groups


def _names(groups: Sequence[Sequence[Line]]) -> list[str]:
    names = [group[0].method if len(group) > 1 and group[0].method else group[0].label for group in groups]
    return [
        f"{name}, {group[0].base}" if names.count(name) > 1 else name
        for name, group in zip(names, groups, strict=True)
    ]


def _rate(value: float) -> str:
    """Return a learning rate as text, such as 1e-4."""
    digits, _, exponent = f"{value:.2e}".partition("e")
    return f"{float(digits):g}e{int(exponent)}"


PLOT = Plot(
    "Learning against forgetting",
    "Perplexity of changed and of unchanged facts (or text), divided by the initial model's, for each method's newest "
    "model on its own month. Lower: it learned more. Further left: it forgot less. Lines join models of one method "
    "that differ in the learning rate, which is written next to each.",
    _draw,
)
