"""The figures of the papers, and of what models know, drawn from the leaderboard's rows."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from temporalwiki.eval_harness.cutoff.report import in_words
from temporalwiki.eval_harness.leaderboard.cutoffs import KnownUpTo
from temporalwiki.eval_harness.leaderboard.figures import style as of_style
from temporalwiki.eval_harness.leaderboard.figures.style import (
    BLACK,
    BLUE,
    GREY,
    MARKERS,
    SKY,
    VERMILLION,
    WIDTH,
    Look,
    Plot,
    annotate,
    fitting,
    legend,
    listed_downwards,
    logarithmic_if_wide,
    looks,
    month_ticks,
    shortened,
    styled,
)
from temporalwiki.eval_harness.leaderboard.headline import MEASURES, NEW, Month, months
from temporalwiki.eval_harness.leaderboard.names import short_month
from temporalwiki.eval_harness.leaderboard.rows import Row
from temporalwiki.eval_harness.leaderboard.selection import ModelBoard, ModelLine, ScoreName
from temporalwiki.eval_harness.leaderboard.tables import number, paid

Value = tuple[float, float | None, float | None]  # with its interval
Grid = dict[tuple[int, int], float]  # month trained, month tested -> how much worse than Initial; see _Scale

_MONTH = 0.7  # inches for the name of a month
_SPREAD = 0.6  # share of a month's width over which the points of its lines are spread
_NOTHING: Value = (math.nan, None, None)  # a missing month interrupts a line
_BAR = 0.24  # inches per bar
_CELL, _PANEL = 0.40, 1.35  # inches: side of a cell, width of the narrowest panel
_LEFT, _BELOW, _ABOVE, _SCALE = 0.85, 0.8, 0.28, 0.75  # inches: margins of a panel, height of the colour scale
_KNOWN = LinearSegmentedColormap.from_list("known", ["#f1f1f1", SKY, BLUE])
_COLOURS = LinearSegmentedColormap.from_list("better to worse", [BLUE, "white", VERMILLION], 257)  # odd: 1 is white
_MISSING = (0.85, 0.85, 0.85, 1.0)
_MOST = 12  # most months of a heat map
_HALF = 0.5  # of a month: a bar begins with the first day of a month and ends with the last


class _Scale(NamedTuple):
    """The unit of a heat map's cells. Below 0 is better than Initial."""

    worse: Callable[[float, float], float]  # from a model's score and Initial's
    text: Callable[[float], str]
    least: float  # where the colours end at least, so that noise is white
    most: float  # where the colours end at most, so that one very bad model does not make all others white
    label: str


_RATIO = _Scale(
    lambda value, before: math.log(value / before),
    lambda worse: _in_cell(math.exp(worse)),
    0.01,
    math.log(4),
    "{} ÷ start model's (lower is better)",
)
_POINTS = _Scale(
    lambda value, before: before - value,
    lambda worse: f"{round(-worse):+}".replace("-", "−"),
    1.0,
    50.0,
    "{} − start model's, in points (higher is better)",
)
_NAMES_OF_TEXT = {
    name: ScoreName("twiki_intrinsic", "proper_noun_perplexity", kind=kind)
    for kind, name in (("diffset", "new text (diffsets)"), ("unchanged", "old text (unchanged)"))
}
_AVERAGE = ScoreName("twiki_probes", "perplexity", "average")
_FUAR = {"lama": "LAMA (exact match)", "known": "Known facts", "probes": "TWiki-Probes"}
# (score of unchanged, score of changed) facts or text; the figure of learning rates shows the first that has scores
_KEPT_AND_CHANGED = {
    "facts": [ScoreName("twiki_probes", "perplexity", split) for split in ("unchanged", "changed")],
    "text": [ScoreName("twiki_intrinsic", "perplexity", kind=kind) for kind in ("unchanged", "diffset")],
}


def draw_lines(
    axes: Axes, by_month: Mapping[int, str], series: Mapping[str, Mapping[int, Value]], look: Mapping[str, Look]
) -> list[Any]:
    """Draw the values of each label over the months, and return the artists.

    The points of a month are drawn side by side, so that none hides another.
    """
    step = _SPREAD / max(len(series), 8)
    drawn = []
    for i, (label, points) in enumerate(series.items()):
        shift = (i - (len(series) - 1) / 2) * step
        values = [points.get(place, _NOTHING) for place in by_month]
        known = any(low is not None and high is not None for _, low, high in values)
        drawn.append(
            axes.errorbar(
                [x + shift for x in range(len(values))],
                [value for value, _, _ in values],
                yerr=_lengths(values) if known else None,
                linestyle=look[label].dash,
                **look[label].marks(),
            )
        )
    names = [short_month(month) for month in by_month.values()]
    width = axes.figure.get_size_inches()[0] / axes.get_subplotspec().get_gridspec().ncols
    every = -(-len(names) // max(1, int(width / _MONTH)))
    axes.set_xticks(range(0, len(names), every), names[::every])
    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.set_xlabel("month")
    axes.grid(axis="y")
    axes.set_axisbelow(True)
    return drawn


def draw_bars(axes: Axes, found: Mapping[ModelLine, Row], look: Mapping[str, Look], room: float) -> None:
    """Draw a bar with its interval for each line, its name at most ``room`` inches wide; infinite bars are hatched."""
    finite = [end for row in found.values() for end in (row.value, row.high) if end is not None and math.isfinite(end)]
    right = 1.08 * max([*finite, 0.1])
    if right > 1:
        axes.axvline(1, color=BLACK, linewidth=0.8, linestyle=(0, (4, 2)), zorder=0)
    for y, (line, row) in enumerate(found.items()):
        known = math.isfinite(row.value)
        axes.barh(
            y,
            row.value if known else right,
            height=0.7,
            facecolor=look[line.label].colour if known else "white",
            edgecolor=BLACK,
            linewidth=0.6,
            hatch=None if known else "////",
        )
        if known and row.low is not None and row.high is not None:
            ends = _lengths([(row.value, row.low, min(row.high, right))])
            axes.errorbar(row.value, y, xerr=ends, color=BLACK, linewidth=1, capsize=2.5, linestyle="none")
        # to the right of the axes, where it cannot cover a bar or an interval
        axes.text(1.015, y, number(row.value), transform=axes.get_yaxis_transform(), va="center", ha="left")
    names = fitting([line.label for line in found], room, 8)
    several = len({row.tested for row in found.values()}) > 1
    months_of = [f" ({short_month(row.tested, ' ')})" if several and row.tested else "" for row in found.values()]
    listed_downwards(axes, [names[line.label] + month for line, month in zip(found, months_of, strict=True)])
    axes.set_xlim(0, right)


def draw_heat_map(
    axes: Axes,
    grid: Grid,
    trained: Mapping[int, str],
    tested: Mapping[int, str],
    norm: Normalize,
    in_cell: Callable[[float], str],
) -> None:
    """Draw a cell for each month trained and tested, with an outline where both are the same."""
    for y, row in enumerate(trained):
        for x, column in enumerate(tested):
            value, own = grid.get((row, column)), row == column
            colour = _MISSING if value is None else _COLOURS(norm(value))
            margin, edge = (0.04, (BLACK, 1.6)) if own else (0.0, ("white", 0.5))
            corner, side = (x + margin, y + margin), 1 - 2 * margin
            axes.add_patch(Rectangle(corner, side, side, facecolor=colour, edgecolor=edge[0], linewidth=edge[1]))
            text = "–" if value is None else in_cell(value)
            axes.text(x + 0.5, y + 0.5, text, ha="center", va="center", color=_on(colour))
    axes.set_xlim(0, len(tested))
    axes.set_ylim(len(trained), 0)
    names = [short_month(month).replace("–", "–\n") for month in tested.values()]
    axes.set_xticks([x + 0.5 for x in range(len(tested))], names)
    axes.set_yticks([y + 0.5 for y in range(len(trained))], [short_month(month) for month in trained.values()])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_xlabel("month tested")
    axes.set_ylabel("trained to")


def _lengths(values: Sequence[Value]) -> Any:
    """Return the lengths of the intervals below and above the values; a percentile interval may exclude its value."""
    ends = [(value, value if low is None else low, value if high is None else high) for value, low, high in values]
    return [[max(0.0, value - low) for value, low, _ in ends], [max(0.0, high - value) for value, _, high in ends]]


def _in_cell(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.0f}" if value < 1000 else f"{value:.0e}"


def _on(colour: tuple[float, ...]) -> str:
    """Return black or white, the one with more contrast to a colour (WCAG 2, relative luminance)."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour[:3]]
    luminance = sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
    return of_style.ON_LIGHT if luminance > 0.179 else of_style.ON_DARK


def _grown(axes: Axes, margin: float, near: float) -> None:
    """Finish axes with points: small differences around ``near`` must not look large."""
    axes.margins(margin)
    axes.update_datalim([(near - 0.02, near - 0.02), (near + 0.02, near + 0.02)])
    axes.autoscale_view()
    axes.grid(visible=True)
    axes.set_axisbelow(True)


# What models know


@styled
def _learned_and_forgotten(rows: Sequence[Row], width: float = WIDTH) -> Figure | None:
    newest = next((month for month in months(rows) if month.scored), None)
    if newest is None:
        return None
    look = looks(ModelBoard(rows).lines)
    return _scattered(newest, look, width, legended=False) or _scattered(newest, look, width, legended=True)


def _scattered(newest: Month, look: Mapping[str, Look], width: float, *, legended: bool) -> Figure | None:
    """Return the figure with names at the points, or with a legend; None if the points leave no room for a name."""
    figure = Figure(figsize=(width, 3.5), layout="constrained")
    axes = figure.subplots()
    if newest.chance is not None:
        for at in (axes.axhline, axes.axvline):
            at(newest.chance, color=GREY, linewidth=0.8, linestyle=":")
    texts: list[tuple[tuple[float, float], str]] = []
    lines = []
    drawn: list[Any] = []
    labels = [entry.line.label for entry in newest.scored]
    names = fitting(labels, 0.4 * width, 8)
    for entry in newest.scored:
        y, x = (entry.values[measure] for measure in MEASURES)
        (below, above), (left, right) = errors = [_lengths([(row.value, row.low, row.high)]) for row in (y, x)]
        marks = look[entry.line.label].marks() | {"markersize": 7, "capsize": 2}
        drawn.append(axes.errorbar(x.value, y.value, *errors, **marks))
        texts.append(((x.value, y.value), names[entry.line.label]))
        lines.append(((x.value - left[0], y.value), (x.value + right[0], y.value)))
        lines.append(((x.value, y.value - below[0]), (x.value, y.value + above[0])))
    axes.margins(0.14)
    axes.grid(visible=True)
    axes.set_axisbelow(True)
    axes.set_ylabel(f"{MEASURES[0].title}, %")
    axes.set_xlabel(f"{MEASURES[1].title}, %")
    axes.set_title("better ↗", loc="right", color=GREY)
    figure.set_label(f"{newest.name}: {newest.title}")
    right = axes.get_xlim()[1]
    if legended:
        legend(figure, labels, drawn)
        if newest.chance is not None:
            axes.text(right, newest.chance, "chance", ha="right", va="bottom")
        return figure
    if newest.chance is not None:
        texts.append(((right, newest.chance), "chance"))
    return figure if annotate(figure, axes, texts, lines) else None


@styled
def _prices(rows: Sequence[Row], width: float = WIDTH) -> Figure | None:
    board = ModelBoard([row for row in rows if NEW.score.of(row)])
    newest = {line: list(board.own_month(line, NEW.score).values())[-1:] for line in board.lines}
    own = {line: row[0] for line, row in newest.items() if row}
    points = {line: (tokens, row.value) for line, row in own.items() if (tokens := paid(board, line, row))}
    if not points:
        return None
    groups, look = _by_method(points, lambda line: points[line][0]), looks(board.lines)
    figure = Figure(figsize=(width, 3.6), layout="constrained")
    axes = figure.subplots()
    drawn: list[Any] = []
    for group in groups:
        xs, ys = zip(*(points[line] for line in group), strict=True)
        drawn += axes.plot(xs, ys, linestyle=look[group[0].label].dash, **look[group[0].label].marks(bars=False))
    for line, row in own.items():
        if line not in points and (row.retrieved or (line.initial and not line.control)):
            dash = "-" if line.initial or line.control else "--"
            color = GREY if line.control else BLACK
            drawn.append(axes.axhline(row.value, color=color, linestyle=dash, linewidth=0.8, zorder=0))
            groups.append([line])
    axes.set_xlabel("tokens read in training")
    axes.set_ylabel(f"{NEW.title}, %")
    logarithmic_if_wide(axes, "x", [x for x, _ in points.values()])
    axes.grid(axis="y")
    legend(figure, _names_of_groups(groups), drawn)
    return figure


@styled
def _learning_rate(rows: Sequence[Row], width: float = WIDTH) -> Figure | None:
    board = ModelBoard(rows)
    found = {what: _kept_and_changed(board, *scores) for what, scores in _KEPT_AND_CHANGED.items()}
    what = next((what for what, points in found.items() if points), None)
    if what is None:
        return None
    points, look = found[what], looks(board.lines)
    groups = _by_method(points, lambda line: line.learning_rate)
    figure = Figure(figsize=(width, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    axes.axvline(1, color=BLACK, linewidth=0.8)
    axes.axhline(1, color=BLACK, linewidth=0.8)
    drawn = axes.plot([1], [1], color=BLACK, marker="o", linestyle="none", markersize=7)
    for group in groups:
        of_group = min((look[line.label] for line in group), key=lambda one: one.hollow)
        marks = of_group.marks(bars=False) | {"markersize": 7}
        xs, ys = zip(*(points[line] for line in group), strict=True)
        drawn += axes.plot(xs, ys, linestyle=of_group.dash, **marks)
    axes.set_xlabel(f"unchanged {what}: perplexity ÷ start model's\n(right of 1: forgets)")
    axes.set_ylabel(f"changed {what}: perplexity ÷ start model's\n(below 1: learns)")
    logarithmic_if_wide(axes, "x", [1, *(x for x, _ in points.values())])
    logarithmic_if_wide(axes, "y", [1, *(y for _, y in points.values())])
    _grown(axes, 0.12, 1)
    legend(figure, ["initial", *_names_of_groups(groups)], drawn)
    rates = [(points[line], _rate(line.learning_rate or 0)) for group in groups if len(group) > 1 for line in group]
    annotate(figure, axes, rates, [(point, point) for point in ((1.0, 1.0), *points.values())])
    return figure


def _kept_and_changed(board: ModelBoard, kept: ScoreName, changed: ScoreName) -> dict[ModelLine, tuple[float, float]]:
    """Return line -> (unchanged, changed) score relative to Initial, in its newest month that has both."""
    found = {}
    for line in board.lines:
        x, y = board.relative(line, kept), board.relative(line, changed)
        if not line.initial and (both := x.keys() & y.keys()):
            found[line] = x[max(both)], y[max(both)]
    return found


def _by_method(lines: Iterable[ModelLine], what: Callable[[ModelLine], float | None]) -> list[list[ModelLine]]:
    """Group lines of one method and base that differ in a number, such as their learning rate, sorted by it."""
    found: dict[tuple[str | None, str, str], list[ModelLine]] = {}
    for line in lines:
        found.setdefault((line.method, line.base, line.rows[0].retrieved), []).append(line)
    groups = []
    for (method, _, _), of_method in found.items():
        rates = [what(line) for line in of_method]
        if method is None or None in rates or len(set(rates)) < len(rates):
            groups += [[line] for line in of_method]
        else:
            groups.append(sorted(of_method, key=lambda line: what(line) or 0))
    return groups


def _names_of_groups(groups: Sequence[Sequence[ModelLine]]) -> list[str]:
    names = [group[0].method if len(group) > 1 and group[0].method else group[0].label for group in groups]
    named = zip(names, groups, strict=True)
    return [f"{name}, {group[0].base}" if names.count(name) > 1 else name for name, group in named]


def _rate(value: float) -> str:
    """Return a learning rate as text, such as 1e-4."""
    digits, _, exponent = f"{value:.2e}".partition("e")
    return f"{float(digits):g}e{int(exponent)}"


# TemporalWiki's figures 2, 3 and 4


@styled
def _relative_perplexity(rows: Sequence[Row], width: float = WIDTH) -> Figure | None:
    board = ModelBoard(rows)
    trained = [line for line in board.lines if not line.initial]
    panels = {
        name: series
        for name, score in _NAMES_OF_TEXT.items()
        if any((series := {line.label: board.relative(line, score) for line in trained}).values())
    }
    if not panels:
        return None
    lines = [line for line in trained if any(series[line.label] for series in panels.values())]
    across = len(panels) if width == WIDTH else 1
    down = len(panels) // across
    figure = Figure(figsize=(width, 2.8 * down), layout="constrained")
    every = figure.subplots(down, across, squeeze=False, sharey=True).ravel()
    figure.supylabel("perplexity of names ÷ start model's", fontsize="medium")
    drawn: list[Any] = []
    for axes, (name, series) in zip(every, panels.items(), strict=True):
        initial = axes.axhline(1, color=BLACK, linewidth=1.3)
        points: dict[str, dict[int, Value]] = {
            line.label: {at: (value, None, None) for at, value in series[line.label].items()} for line in lines
        }
        drawn = [initial, *draw_lines(axes, board.months(_NAMES_OF_TEXT[name]), points, looks(board.lines))]
        axes.set_title(name)
    values = [value for series in panels.values() for of_line in series.values() for value in of_line.values()]
    logarithmic_if_wide(every[0], "y", [1.0, *values])
    legend(figure, ["initial", *(line.label for line in lines)], drawn)
    return figure


@styled
def _average_perplexity(rows: Sequence[Row], width: float = WIDTH) -> Figure | None:
    board = ModelBoard(rows)
    series = {line: own for line in board.lines if (own := board.own_month(line, _AVERAGE))}
    if not series:
        return None
    figure = Figure(figsize=(width, 3.2), layout="constrained")
    axes = figure.subplots()
    points: dict[str, dict[int, Value]] = {
        line.label: {at: (row.value, row.low, row.high) for at, row in own.items()} for line, own in series.items()
    }
    drawn = draw_lines(axes, board.months(_AVERAGE), points, looks(board.lines))
    axes.set_ylabel("average perplexity of facts\n(lower is better)")
    logarithmic_if_wide(axes, "y", [row.value for own in series.values() for row in own.values()])
    legend(figure, list(points), drawn)
    return figure


def _misalignment(score: ScoreName, what: str, best: str, scale: _Scale = _RATIO) -> Callable[..., Figure | None]:
    """Return a function that draws a heat map of a score for each line; ``best`` says what the best model does."""

    @styled
    def draw(rows: Sequence[Row], room: float = WIDTH) -> Figure | None:
        board = ModelBoard(rows)
        columns = dict(list(board.months(score).items())[-_MOST:])
        grids = {line: grid for line in board.lines if (grid := _grid(board, line, score, columns, scale))}
        own = {line: {trained for trained, tested in grid if trained == tested} for line, grid in grids.items()}
        grids = {line: grid for line, grid in grids.items() if own[line] or not line.control}
        if all(trained == tested for grid in grids.values() for trained, tested in grid):
            return None
        furthest = max(abs(value) for grid in grids.values() for value in grid.values())
        end = min(max(furthest, scale.least), scale.most)
        norm = Normalize(-end, end)
        wide = max(_PANEL, len(columns) * _CELL)
        across = min(len(grids), max(1, int(room / (wide + _LEFT))))
        trained = {}
        for line, grid in grids.items():
            named = {board.place(row.month): row.month for row in line.rows if row.month is not None}
            trained[line] = {place: named[place] for place in sorted({place for place, _ in grid})}
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
            draw_heat_map(axes, grid, trained[line], columns, norm, scale.text)
            axes.set_title(names[line.label], loc="left")
        _colour_scale(figure, norm, furthest > end, what, scale)
        most = [
            min(of_month, key=lambda trained: of_month[trained]) == tested
            for line, grid in grids.items()
            for tested in (() if line.control else own[line])
            if len(of_month := {trained: value for (trained, month), value in grid.items() if month == tested}) > 1
        ]
        figure.set_label(f"In {sum(most)} of {len(most)} cases, the model trained up to a month {best} of that month")
        return figure

    return draw


def _grid(board: ModelBoard, line: ModelLine, score: ScoreName, shown: Collection[int], scale: _Scale) -> Grid:
    initial = board.initial_of(line)
    if line.initial or initial is None:
        return {}
    before = {place: row.value for place, row in board.own_month(initial, score).items()}
    grid: Grid = {}
    for row in filter(score.of, line.rows):
        trained, tested = board.place(row.month), board.place(row.tested)
        defined = scale is _POINTS or min(row.value, before.get(tested, 0)) > 0
        if row.month is not None and tested in shown and tested in before and defined:
            grid.setdefault((trained, tested), scale.worse(row.value, before[tested]))
    newest = sorted({trained for trained, _ in grid})[-_MOST:]
    return {(trained, tested): value for (trained, tested), value in grid.items() if trained in newest}


def _colour_scale(figure: Figure, norm: Normalize, cut: bool, what: str, scale: _Scale) -> None:
    """Draw the colour scale at the bottom; ``cut`` says that there are values beyond its ends."""
    width, height = figure.get_size_inches()
    axes = figure.add_axes(((width / 2 - 1.3) / width, 0.42 / height, 2.6 / width, 0.13 / height))
    steps = 64
    for i in range(steps):
        colour = _COLOURS(i / (steps - 1))
        axes.add_patch(Rectangle((i / steps, 0), 1 / steps, 1, facecolor=colour, edgecolor=colour, linewidth=0.2))
    axes.set_xlim(0, 1)
    signs = ("≤ ", "≥ ") if scale is _RATIO else ("≥ ", "≤ ")  # the left end is the best
    left, middle, right = (scale.text(end) for end in (norm.vmin, 0.0, norm.vmax))
    axes.set_xticks([0, 0.5, 1], [signs[0] + left, middle, signs[1] + right] if cut else [left, middle, right])
    axes.set_yticks([])
    axes.spines[:].set_color(GREY)
    axes.set_xlabel(scale.label.format(what))


# CKL's FUAR


@styled
def _fuar(rows: Sequence[Row], width: float = WIDTH) -> Figure | None:
    board = ModelBoard(rows)
    panels: dict[str, dict[ModelLine, Row]] = {}
    for test, name in _FUAR.items():
        newest = {line: board.newest(line, ScoreName("fuar", "fuar", test)) for line in board.lines}
        if found := {line: of_line[0] for line, of_line in newest.items() if of_line}:
            panels[name] = found
    if not panels:
        return None
    bars = [len(found) for found in panels.values()]
    figure = Figure(figsize=(width, _BAR * sum(bars) + 0.75 * len(bars)), layout="constrained")
    every = figure.subplots(len(panels), 1, squeeze=False, height_ratios=[count + 1 for count in bars])
    for axes, (name, found) in zip(every[:, 0], panels.items(), strict=True):
        draw_bars(axes, found, looks(board.lines), 0.35 * width)
        axes.set_xlabel("FUAR (lower is better)")
        axes.set_title(name, loc="left")
    return figure


# Knowledge cutoffs


@styled
def _timeline(cutoffs: Sequence[KnownUpTo], width: float = WIDTH) -> Figure | None:
    if not cutoffs:
        return None
    figure = Figure(figsize=(width, 0.75 + 0.3 * len(cutoffs)), layout="constrained")
    axes = figure.subplots()
    spans = [(one.first, one.last, one.low, one.high, one.advertised, *one.forms.values()) for one in cutoffs]
    known = [month for of in spans for month in of if month is not None]
    left, right = (min(known) - _HALF, max(known) + _HALF) if known else (0.0, 1.0)
    forms = dict(zip(dict.fromkeys(form for one in cutoffs for form in one.forms), MARKERS, strict=False))
    drawn: dict[str, Any] = {}
    for row, one in enumerate(cutoffs):
        cells = [(month - _HALF, 1.0) for month in one.curve]
        axes.broken_barh(cells, (row - 0.45, 0.9), color=[_KNOWN(share) for share in one.curve.values()], zorder=0)
        edge: dict[str, Any] = {"edgecolors": BLACK, "linewidths": 0.6, "zorder": 4}
        for form, month in one.forms.items():
            marker = forms.get(form, "x")
            drawn[form] = axes.scatter([month], [row + 0.3], 16, color="white", marker=marker, **edge)
        if one.advertised is not None:
            drawn["advertised"] = axes.scatter([one.advertised], [row], 20, color=VERMILLION, marker="D", **edge)
        if one.low is None and one.high is None:
            beside = {"textcoords": "offset points", "va": "center", "color": BLACK}
            text = axes.annotate(one.verdict, (left, row), (4, 0), **beside)
            text.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1})
            continue
        start = left if one.low is None else one.low - _HALF
        end = right if one.high is None else one.high + _HALF
        axes.barh(row, end - start, 0.16, start, color=BLACK, edgecolor="white", linewidth=0.5, zorder=2)
        at, marker = (one.cutoff, "o") if one.cutoff is not None else (start, "<") if one.low is None else (end, ">")
        axes.plot([at], [row], marker, color=BLACK, markeredgecolor="white", clip_on=False, zorder=3)
    names = shortened([str(row) for row in range(len(cutoffs))], int(width * 4), lambda row: cutoffs[int(row)].model)
    listed_downwards(axes, list(names.values()))
    axes.set_ylim(len(cutoffs) - 0.5, -0.5)
    axes.tick_params(axis="y", pad=8)
    axes.spines["left"].set_visible(False)
    axes.set_xlim(left, right)
    ticks = month_ticks(round(left + _HALF), round(right - _HALF), 0.7 * width) if known else {}
    axes.set_xticks(list(ticks), list(ticks.values()))
    axes.set_xlabel("month of the change")
    if drawn:
        legend(figure, list(drawn), list(drawn.values()))
    ends = sorted(one.cutoff for one in cutoffs if one.cutoff is not None)
    if not ends:
        figure.set_label("The data do not show where the knowledge of a model ends")
        return figure
    first, last = ends[0], ends[-1]
    when = f"between {in_words(first, last // 12)} and {in_words(last)}" if first < last else f"in {in_words(last)}"
    models = "models" if cutoffs[1:] else "model"
    figure.set_label(f"The knowledge of {len(ends)} of {len(cutoffs)} {models} ends {when}")
    return figure


_OF_NAMES = "It is not what ranks methods, whose order may differ: it also falls for a model that {}. "
_IN_USE, _IN_TEXT = map(
    _OF_NAMES.format, ("learns which names are in use, not whose they are", "learns names of no fact")
)
_ON_MONTHS = (
    "Rows: the month that a model was trained up to. Columns: the month that it was tested on. Cells: its {what}, "
    "{to} the initial model's. Blue: better than before training; orange: worse. Outlined: a model on "
    "its own month. Grey: not measured. At most the newest twelve months are shown. {why}TemporalWiki, figure 4."
)
FIGURES: dict[str, Plot] = {
    "learned_and_forgotten": Plot(
        "New facts known against old facts known",
        "The percentage of changed facts and of unchanged facts that each method's newest model knows. Lines: 95 % "
        "intervals. Dotted: chance. Grey: controls, which must not know the new facts, and the ceiling. Further up "
        "and to the right is better.",
        _learned_and_forgotten,
    ),
    "prices": Plot(
        "What an update costs",
        "New facts known by each method's newest model, against the tokens that its training read since the start "
        "model, past data included. Lines join models of one method with several budgets. Horizontal: the start "
        "model, also with passages to read, and the ceiling, which reads the evidence. Further up and to the left is "
        "better.",
        _prices,
    ),
    "relative_perplexity": Plot(
        "Perplexity of proper nouns, relative to Initial",
        "The perplexity of the tokens of proper nouns, divided by the initial model's (the line at 1), in each "
        "month's diffset and in unchanged articles, for models trained up to that month. Below 1, a model predicts "
        f"the text better than before its training. {_IN_TEXT}TemporalWiki, figure 2.",
        _relative_perplexity,
    ),
    "average_perplexity": Plot(
        "Average perplexity of unchanged and changed facts",
        "The mean of the zero-shot perplexities of each month's unchanged and changed facts (TWiki-Probes), for "
        "models trained up to that month; lower is better. Bars: 95 % intervals over subjects and relations. "
        f"{_IN_USE}TemporalWiki, figure 3.",
        _average_perplexity,
    ),
    "known_by_month": Plot(
        "Does a fact that was read once stay?",
        _ON_MONTHS.format(what="percentage of the month's new facts that it knows", to="minus", why=""),
        _misalignment(NEW.score, "new facts known", "knows most new facts", _POINTS),
    ),
    "misalignment": Plot(
        "Temporal misalignment: changed facts",
        _ON_MONTHS.format(
            what="zero-shot perplexity of the month's changed facts (TWiki-Probes)", to="divided by", why=_IN_USE
        ),
        _misalignment(
            ScoreName("twiki_probes", "perplexity", "changed"),
            "perplexity of changed facts",
            "has the lowest perplexity of changed facts",
        ),
    ),
    "misalignment_text": Plot(
        "Temporal misalignment: new and changed text",
        _ON_MONTHS.format(what="perplexity of the month's diffset", to="divided by", why=_IN_TEXT),
        _misalignment(
            ScoreName("twiki_intrinsic", "perplexity", kind="diffset"),
            "perplexity of diffset text",
            "has the lowest perplexity of diffset text",
        ),
    ),
    "fuar": Plot(
        "FUAR: forgetting per gain",
        "How many points a method's newest model lost on facts that stay true, for each point that it gained on "
        "updated and new facts. Lower is better; at 1 (dashed) a model forgets as much as it gains. Black lines: "
        "95 % intervals; a line that reaches the right edge has no upper end. Hatched: the model gained nothing. "
        "It is not what ranks methods, whose order may differ: it is a ratio, in which a small gain weighs much. CKL, "
        "section 3.3.",
        _fuar,
    ),
    "learning_rate": Plot(
        "Learning against forgetting",
        "Perplexity of changed and of unchanged facts (or text), divided by the initial model's, for each method's "
        "newest model on its own month. Lower: it learned more. Further left: it forgot less. Lines join models of "
        f"one method that differ in the learning rate, which is written next to each. {_IN_USE}".strip(),
        _learning_rate,
    ),
}
TIMELINE = Plot(
    "Up to when models know what changed",
    "The darker a month, the more of its changes a model knows. A dot is the last month whose changes it knows, the "
    "bar its 95 % interval. A triangle: the data end before the bar does. Small marks: ways of asking. Red: what the "
    "provider says.",
    _timeline,
)
