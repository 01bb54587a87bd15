"""Bars of CKL's FUAR: how much each method forgot for what it gained."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from temporalwiki.eval_harness.leaderboard.figures.plot import Plot
from temporalwiki.eval_harness.leaderboard.figures.style import (
    BLACK,
    WIDTH,
    Look,
    fitting,
    looks,
    styled,
)
from temporalwiki.eval_harness.leaderboard.names import listed, method_name, short_month
from temporalwiki.eval_harness.leaderboard.rows import Row
from temporalwiki.eval_harness.leaderboard.selection import Board, Line, ScoreName
from temporalwiki.eval_harness.leaderboard.tables.table import number

_TESTS = {"lama": "LAMA (exact match)", "probes": "TWiki-Probes"}
_BAR = 0.24  # inches per bar


@styled
def _draw(rows: Sequence[Row], width: float = WIDTH) -> Figure | None:
    board = Board(rows)
    panels: dict[str, dict[Line, Row]] = {}
    for test, name in _TESTS.items():
        found = {
            line: rows_of_line[0]
            for line in board.lines
            if (rows_of_line := board.newest(line, ScoreName("fuar", "fuar", test)))
        }
        if found:
            panels[name] = found
    if not panels:
        return None
    bars = [len(found) for found in panels.values()]
    figure = Figure(figsize=(width, _BAR * sum(bars) + 0.75 * len(bars)), layout="constrained")
    every = figure.subplots(
        len(panels), 1, squeeze=False, gridspec_kw={"height_ratios": [count + 1 for count in bars]}
    )
    look = looks(board.lines)
    for axes, (name, found) in zip(every[:, 0], panels.items(), strict=True):
        _bars(axes, found, look, 0.35 * width)
        axes.set_title(name, loc="left")
    figure.set_label("; ".join(_best(name, found) for name, found in panels.items()))
    return figure


def _bars(axes: Axes, found: Mapping[Line, Row], look: Mapping[str, Look], room: float) -> None:
    finite = [end for row in found.values() for end in (row.value, row.high) if end is not None and math.isfinite(end)]
    right = 1.08 * max([*finite, 0.1])
    names = fitting([line.label for line in found], room, 8)
    if right > 1:
        axes.axvline(1, color=BLACK, linewidth=0.8, linestyle=(0, (4, 2)), zorder=0)
    months = {row.tested for row in found.values()}
    for y, (line, row) in enumerate(found.items()):
        look_of_line, gained = look[line.label], math.isfinite(row.value)
        axes.barh(
            y,
            row.value if gained else right,
            height=0.7,
            facecolor=look_of_line.colour if gained else "white",
            edgecolor=BLACK,
            linewidth=0.6,
            hatch=None if gained else "////",
        )
        if gained and row.low is not None and row.high is not None:
            ends = [[max(0.0, row.value - row.low)], [max(0.0, min(row.high, right) - row.value)]]
            axes.errorbar(row.value, y, xerr=ends, color=BLACK, linewidth=1, capsize=2.5, linestyle="none")
        # to the right of the axes, where it cannot cover a bar or an interval
        axes.text(1.015, y, number(row.value), transform=axes.get_yaxis_transform(), va="center", ha="left")
    labels = [
        names[line.label] + (f" ({short_month(row.tested, ' ')})" if len(months) > 1 and row.tested else "")
        for line, row in found.items()
    ]
    axes.set_yticks(range(len(found)), labels)
    axes.set_ylim(len(found) - 0.4, -0.6)
    axes.set_xlim(0, right)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("FUAR (lower is better)")


def _best(name: str, found: Mapping[Line, Row]) -> str:
    found = {line: row for line, row in found.items() if line.fair}
    least = min((row.value for row in found.values()), default=math.inf)
    if not math.isfinite(least):
        return f"{name}: no method gained anything"
    best = {line: row for line, row in found.items() if row.value == least}
    names = listed([method_name(line.label) for line in best])
    ends = [math.inf if row.high is None else row.high for row in best.values() if row.low is not None]
    lows = [row.low for line, row in found.items() if line not in best and row.low is not None]
    overlapping = sum(low <= max(ends) for low in lows) if ends else 0
    unclear = f"; intervals of other methods overlap ({overlapping})" if overlapping else ""
    return f"{name}: {names} forgot least for each point gained ({number(least)}){unclear}"


PLOT = Plot(
    "FUAR: forgetting per gain",
    "How many points a method's newest model lost on facts that stay true, for each point that it gained on updated "
    "and new facts. Lower is better; at 1 (dashed) a model forgets as much as it gains. Black lines: 95 % intervals; "
    "a line that reaches the right edge has no upper end. Hatched: the model gained nothing. CKL, section 3.3.",
    _draw,
)
