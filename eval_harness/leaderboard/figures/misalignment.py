"""TemporalWiki's figure 4: temporal misalignment, the models of each month scored on every month."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from temporalwiki.eval_harness.leaderboard.figures.plot import Plot
from temporalwiki.eval_harness.leaderboard.figures.style import (
    BLACK,
    BLUE,
    GREY,
    ON_DARK,
    ON_LIGHT,
    VERMILLION,
    WIDTH,
    fitting,
    styled,
)
from temporalwiki.eval_harness.leaderboard.names import short_month
from temporalwiki.eval_harness.leaderboard.rows import Row
from temporalwiki.eval_harness.leaderboard.selection import Board, Line, ScoreName

_CELL, _PANEL = 0.40, 1.35  # inches: side of a cell, width of the narrowest panel
_FURTHEST = math.log(4)  # where the colours end, so that one very bad model does not make all others white
_LEFT, _BELOW, _ABOVE, _SCALE = 0.85, 0.8, 0.28, 0.75  # inches: margins of a panel, height of the colour scale
_COLOURS = LinearSegmentedColormap.from_list("better to worse", [BLUE, "white", VERMILLION], 257)  # odd: 1 is white
_MOST = 12  # most months that are shown
_MISSING = (0.85, 0.85, 0.85, 1.0)

Grid = dict[tuple[int, int], float]  # month trained, month tested -> value relative to Initial


def _drawer(score: ScoreName, what: str) -> Callable[[Sequence[Row]], Figure | None]:
    """Return a function that draws a heat map of a score for each line."""

    @styled
    def draw(rows: Sequence[Row], room: float = WIDTH) -> Figure | None:
        board = Board(rows)
        columns = dict(list(board.months(score).items())[-_MOST:])
        grids = {line: grid for line in board.lines if (grid := _relative(board, line, score, columns))}
        if all(trained == tested for grid in grids.values() for trained, tested in grid):
            return None
        furthest = max(abs(math.log(value)) for grid in grids.values() for value in grid.values())
        end = min(max(furthest, 0.01), _FURTHEST)
        norm = Normalize(-end, end)
        wide = max(_PANEL, len(columns) * _CELL)
        across = min(len(grids), max(1, int(room / (wide + _LEFT))))
        trained = {line: _trained(line, board, grid) for line, grid in grids.items()}
        high = max(map(len, trained.values())) * _CELL + _BELOW + _ABOVE
        down = math.ceil(len(grids) / across)
        width, height = max(across * (wide + _LEFT) + 0.15, room), down * high + _SCALE
        figure = Figure(figsize=(width, height))
        names = fitting([line.label for line in grids], wide, 9)
        for i, (line, grid) in enumerate(grids.items()):
            tall = len(trained[line]) * _CELL
            x = _LEFT + i % across * (width - 0.15) / across
            y = height - i // across * high - _ABOVE - tall
            axes = figure.add_axes((x / width, y / height, len(columns) * _CELL / width, tall / height))
            _heat_map(axes, grid, trained[line], columns, norm)
            axes.set_title(names[line.label], loc="left")
        _scale(figure, norm, furthest > end, what)
        figure.set_label(_finding(grids.values(), what))
        return figure

    return draw


def _relative(board: Board, line: Line, score: ScoreName, months: Collection[int]) -> Grid:
    initial = board.initial_of(line)
    if line.initial or initial is None:
        return {}
    before = {place: row.value for place, row in board.own_month(initial, score).items()}
    grid: Grid = {}
    for row in filter(score.of, line.rows):
        trained, tested = board.place(row.month), board.place(row.tested)
        if row.month is not None and tested in months and min(row.value, before.get(tested, 0)) > 0:
            grid.setdefault((trained, tested), row.value / before[tested])
    shown = sorted({trained for trained, _ in grid})[-_MOST:]
    return {(trained, tested): value for (trained, tested), value in grid.items() if trained in shown}


def _trained(line: Line, board: Board, grid: Grid) -> dict[int, str]:
    """Return position -> name of the months that a line was trained on."""
    named = {board.place(row.month): row.month for row in line.rows if row.month is not None}
    return {place: named[place] for place in sorted({trained for trained, _ in grid})}


def _heat_map(axes: Axes, grid: Grid, trained: Mapping[int, str], tested: Mapping[int, str], norm: Normalize) -> None:
    for y, row in enumerate(trained):
        for x, column in enumerate(tested):
            value = grid.get((row, column))
            colour = _MISSING if value is None else _COLOURS(norm(math.log(value)))
            own = row == column
            axes.add_patch(
                Rectangle(
                    (x + 0.04 * own, y + 0.04 * own),
                    1 - 0.08 * own,
                    1 - 0.08 * own,
                    facecolor=colour,
                    edgecolor=BLACK if own else "white",
                    linewidth=1.6 if own else 0.5,
                )
            )
            text = "–" if value is None else _text(value)
            axes.text(x + 0.5, y + 0.5, text, ha="center", va="center", color=_on(colour))
    axes.set_xlim(0, len(tested))
    axes.set_ylim(len(trained), 0)
    axes.set_xticks(
        [x + 0.5 for x in range(len(tested))], [short_month(month).replace("–", "–\n") for month in tested.values()]
    )
    axes.set_yticks([y + 0.5 for y in range(len(trained))], [short_month(month) for month in trained.values()])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_xlabel("month tested")
    axes.set_ylabel("trained to")


def _text(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.0f}" if value < 1000 else f"{value:.0e}"


def _on(colour: tuple[float, ...]) -> str:
    """Return black or white, the one with more contrast to a colour (WCAG 2, relative luminance)."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour[:3]]
    luminance = sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
    return ON_LIGHT if luminance > 0.179 else ON_DARK


def _scale(figure: Figure, norm: Normalize, cut: bool, what: str) -> None:
    """Draw the colour scale at the bottom; ``cut`` says that there are values beyond its ends."""
    width, height = figure.get_size_inches()
    axes = figure.add_axes(((width / 2 - 1.3) / width, 0.42 / height, 2.6 / width, 0.13 / height))
    steps = 64
    for i in range(steps):
        colour = _COLOURS(i / (steps - 1))
        axes.add_patch(Rectangle((i / steps, 0), 1 / steps, 1, facecolor=colour, edgecolor=colour, linewidth=0.2))
    axes.set_xlim(0, 1)
    least, most = (f"{math.exp(end):.2f}" for end in (norm.vmin, norm.vmax))
    axes.set_xticks([0, 0.5, 1], [f"≤ {least}", "1", f"≥ {most}"] if cut else [least, "1", most])
    axes.set_yticks([])
    axes.spines[:].set_color(GREY)
    axes.set_xlabel(f"{what} ÷ start model's (lower is better)")


def _finding(grids: Iterable[Grid], what: str) -> str:
    """Return how many columns with a model of their own month have their lowest value there."""
    own = []
    for grid in grids:
        for tested in {tested for trained, tested in grid if trained == tested}:
            of_month = {trained: value for (trained, month), value in grid.items() if month == tested}
            if len(of_month) > 1:
                own.append(min(of_month, key=lambda trained: of_month[trained]) == tested)
    return f"In {sum(own)} of {len(own)} cases, the model trained up to a month has the lowest {what} of that month"


_HOW = (
    "Rows: the month that a model was trained up to. Columns: the month that it was tested on. Cells: its {what}, "
    "divided by the initial model's. Blue (below 1): better than before training; orange: worse. Outlined: a model on "
    "its own month. Grey: not measured. At most the newest twelve months are shown. TemporalWiki, figure 4."
)

FACTS = Plot(
    "Temporal misalignment: changed facts",
    _HOW.format(what="zero-shot perplexity of the month's changed facts (TWiki-Probes)"),
    _drawer(ScoreName("twiki_probes", "perplexity", "changed"), "perplexity of changed facts"),
)
TEXT = Plot(
    "Temporal misalignment: new and changed text",
    _HOW.format(what="perplexity of the month's diffset"),
    _drawer(ScoreName("twiki_intrinsic", "perplexity", kind="diffset"), "perplexity of diffset text"),
)
