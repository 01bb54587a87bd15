"""The style of figures: colours that colour-blind people can distinguish, and markers for print without colour."""

import math
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.markers import MarkerStyle
from matplotlib.patheffects import withStroke
from matplotlib.textpath import text_to_path
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from matplotlib.transforms import Bbox

from temporalwiki.base.files import whole_file
from temporalwiki.base.markdown import one_line
from temporalwiki.eval_harness.leaderboard.names import method_name
from temporalwiki.eval_harness.leaderboard.selection import ModelLine
from temporalwiki.methods import METHODS

Drawn = TypeVar("Drawn", bound="Callable[..., Figure | None]")
Point = tuple[float, float]

WIDTH = 7.0  # inches, the text width of a printed page, on which texts have at least 8 points
NARROW = 3.4  # inches, for a phone: its texts are drawn with the same size
BLACK, GREY = "#000000", "#8C8C8C"
# the colours of Okabe & Ito (2008); yellow comes last because it is weak on paper
BLUE, VERMILLION, GREEN, PURPLE, SKY, ORANGE, YELLOW, BROWN = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#E69F00",
    "#F0E442",
    "#9A6A3A",  # not of theirs; grey is for controls
)
COLOURS = (BLUE, VERMILLION, GREEN, PURPLE, SKY, ORANGE, YELLOW, BROWN)
# the last ones are stars with four, six, eight and three points
MARKERS: tuple[Any, ...] = (*"s^DvPX<>p*hdH8", (4, 1, 0), (6, 1, 0), (8, 1, 0), (3, 1, 0))
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)), (0, (3, 1, 1, 1, 1, 1)))
HATCHES = ("", "///")
LONGEST, _SHORTEST = 30, 8  # characters per label
_MONTH_NAME = 0.75  # inches
_DPI = 200
_PIXELS = 2**16 - 1  # matplotlib's limit for a side of a PNG
_WIDE = 10  # times the smallest value: the axis becomes logarithmic

_METHODS = [method for method in METHODS if method != "initial"]
_STYLE = {
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.labelsize": 8,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.parse_math": False,  # a label with two dollar signs is not a formula
    "grid.color": "#D0D0D0",
    "grid.linewidth": 0.5,
    "hatch.linewidth": 0.6,
    "lines.linewidth": 1.3,
    "lines.markersize": 5,
    "svg.hashsalt": "temporalwiki",  # without it, ids are random
    # as paths: text would be drawn in the fonts of each reader's machine, and labels could overlap
    "svg.fonttype": "path",
}

# possible offsets of a point's label, in points; the first free one is used
_BESIDE = tuple(
    ((x * far, y * far), {1: "left", -1: "right", 0: "center"}[x], {1: "bottom", -1: "top", 0: "center"}[y])
    for far in (5, 9, 14, 20, 28)
    for x, y in ((1, 1), (-1, 1), (1, -1), (-1, -1), (0, 1), (0, -1), (1, 0), (-1, 0))
)
# In a dark page or window, these colours replace the ones in the attributes of an SVG, which are for paper.
_DARK = """<style>@media (prefers-color-scheme: dark) {
svg { background: #201f1c; fill: #ebe7df }
[style*="fill: #000000"] { fill: #ebe7df !important }
[style*="stroke: #000000"] { stroke: #ebe7df !important }
[style*="fill: #ffffff"] { fill: #201f1c !important }
[style*="stroke: #ffffff"] { stroke: #201f1c !important }
[style*="stroke: #d0d0d0"] { stroke: #45423c !important }
}</style>"""
# nearly black and nearly white, for text on a colour: they stay as they are in the dark
ON_LIGHT, ON_DARK = "#010101", "#fefefe"


class Plot(NamedTuple):
    """A figure of the leaderboard's rows, of cutoffs or of a dataset.

    ``draw`` takes the source and the width in inches, and returns None if the source lacks what the figure shows. The
    label of the figure is a sentence about its finding.
    """

    title: str
    caption: str
    draw: Callable[..., Figure | None]


class Look(NamedTuple):
    """The look of the line that joins a method's checkpoints in a figure."""

    colour: str
    marker: Any
    dash: Any
    hollow: bool  # another line has the same colour

    def marks(self, bars: bool = True) -> dict[str, Any]:
        """Return matplotlib's options for the points of the line and, with ``bars``, for their intervals."""
        return {
            "color": self.colour,
            "marker": self.marker,
            "markerfacecolor": "white" if self.hollow else self.colour,
            "markeredgecolor": self.colour if self.hollow else BLACK,
            "markeredgewidth": 1.0 if self.hollow else 0.4,
            **({"elinewidth": 0.8, "capsize": 1.5} if bars else {}),
        }


def sign(look: Look) -> dict[str, str]:
    """Return the marker of a look for an SVG: its outline in a box from -1 to 1, its fill and its stroke."""
    drawn = MarkerStyle(look.marker)
    (outline,) = drawn.get_path().transformed(drawn.get_transform()).to_polygons()
    largest = abs(outline).max()
    path = "L".join(f"{x:g} {y:g}" for x, y in np.round(outline[:-1] / (largest, -largest), 2) + 0.0)
    colour = "currentColor" if look.colour == BLACK else look.colour
    return {"path": f"M{path}Z", "fill": "none" if look.hollow else colour, "stroke": colour}


def looks(lines: Sequence[ModelLine]) -> dict[str, Look]:
    """Return label -> look of each line.

    The first line of a method looks the same in every figure. Other lines of the method have its colour and another
    marker. Models without a method look different from all methods.
    """
    found: dict[str, Look] = {}
    drawn: set[str | None] = set()
    further = 0
    for line in lines:
        place = _METHODS.index(line.method) if line.method in _METHODS else None
        if line.control:
            found[line.label] = Look(GREY, MARKERS[-1 - len(found) % len(MARKERS)], DASHES[2], hollow=True)
            continue
        if line.initial and "initial" not in drawn:
            drawn.add("initial")
            found[line.label] = Look(BLACK, "o", "-", hollow=False)
            continue
        first = place is not None and line.method not in drawn
        drawn.add(line.method)
        number = place if first and place is not None else len(_METHODS) + further
        found[line.label] = Look(
            BLACK if line.initial else COLOURS[(further if place is None else place) % len(COLOURS)],
            MARKERS[number % len(MARKERS)],
            DASHES[number % len(DASHES)],
            hollow=not first,
        )
        further += not first
    return found


def shortened(
    labels: Sequence[str], longest: int = LONGEST, name: Callable[[str], str] = method_name
) -> dict[str, str]:
    """Return label -> distinct text, made from its name, on one line with at most ``longest`` characters."""
    found: dict[str, str] = {}
    for label in labels:
        text = one_line(name(label)) or "?"
        if len(text) > longest:
            tail = longest // 3
            text = f"{text[: longest - tail - 1]}…{text[len(text) - tail :]}"
        number, unique = 1, text
        while unique in found.values():
            number += 1
            unique = f"{text[: longest - len(str(number)) - 1]} {number}"
        found[label] = unique
    return found


def fitting(labels: Sequence[str], inches: float, points: float) -> dict[str, str]:
    """Return ``shortened`` labels that are at most ``inches`` wide in a font of ``points``."""
    font = FontProperties(size=points)
    for longest in range(LONGEST, _SHORTEST, -1):
        found = shortened(labels, longest)
        widths = [text_to_path.get_text_width_height_descent(text, font, ismath=False)[0] for text in found.values()]
        if max(widths) <= 72 * inches:
            return found
    return shortened(labels, _SHORTEST)


def month_ticks(first: int, last: int, inches: float) -> dict[int, str]:
    """Return month -> name for an axis of months, counted as year * 12 + month - 1: as many as have room."""
    step = max(1, -(-(last - first + 1) // max(1, int(inches / _MONTH_NAME))))
    return {month: f"{month // 12}-{month % 12 + 1:02}" for month in range(first, last + 1, step)}


def listed_downwards(axes: Axes, labels: Sequence[str]) -> None:
    """Label the bars of horizontal axes, the first at the top."""
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)


@contextmanager
def style() -> Iterator[None]:
    """Use our matplotlib settings within the block, and ignore a matplotlibrc."""
    with matplotlib.rc_context(), warnings.catch_warnings():
        # a label in a script that the font lacks becomes boxes: only this font is the same on every machine
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        yield


def styled(draw: Drawn) -> Drawn:
    """Decorate a function so that it draws in our ``style``."""

    @wraps(draw)
    def drawn(*args: Any, **options: Any) -> Figure | None:
        with style():
            return draw(*args, **options)

    return drawn  # type: ignore[return-value]


def logarithmic_if_wide(axes: Axes, which: str, values: Iterable[float]) -> None:
    """Make the axis "x" or "y" logarithmic if the largest value is more than ten times the smallest."""
    known = list(values)
    ratio = max(known) / min(known)
    if ratio <= _WIDE:
        return
    axes.set(**{f"{which}scale": "log"})
    axis = axes.xaxis if which == "x" else axes.yaxis
    narrow = axes.figure.get_size_inches()[0] < WIDTH
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if ratio < 1000 else (1,), numticks=4 if narrow else None))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.set_minor_formatter(NullFormatter())


def legend(figure: Figure, labels: Sequence[str], handles: Sequence[Any]) -> None:
    """Add a legend: at the right, or below a narrow figure. The figure must have the layout "constrained"."""
    width, height = figure.get_size_inches()
    if width < WIDTH:
        half = fitting(labels, 1.2, 8)
        columns = 2 if half == shortened(labels) else 1
        texts = list((half if columns == 2 else fitting(labels, 2.7, 8)).values())
        figure.legend(handles=handles, labels=texts, loc="outside lower center", ncols=columns)
        figure.set_size_inches(width, height + 0.18 * len(labels) / columns)
    else:
        figure.legend(handles=handles, labels=list(shortened(labels).values()), loc="outside right upper")
        figure.set_size_inches(width, max(height, 0.175 * len(labels) + 0.3))  # high enough for all labels


def annotate(
    figure: Figure, axes: Axes, texts: Iterable[tuple[Point, str]], lines: Iterable[tuple[Point, Point]]
) -> bool:
    """Write texts next to their points without covering other texts, points or ``lines``.

    A text that has no room is left out. Return whether all have room.
    """
    figure.draw_without_rendering()  # computes the layout, and with it the positions of points
    figure.set_layout_engine("none")
    known, radius = list(texts), 0.06 * figure.dpi  # of a marker
    taken = [Bbox(axes.transData.transform(ends)) for ends in (*lines, *((point, point) for point, _ in known))]
    taken = [
        Bbox.from_extents(box.xmin - radius, box.ymin - radius, box.xmax + radius, box.ymax + radius) for box in taken
    ]
    places = {point: axes.transData.transform(point) for point, _ in known}
    written = 0
    for point, text in known:
        for offset, horizontal, vertical in _BESIDE:
            drawn = axes.annotate(text, point, offset, textcoords="offset points", ha=horizontal, va=vertical)
            drawn.set_path_effects([withStroke(linewidth=2, foreground="white")])  # readable on top of lines
            box = drawn.get_window_extent()
            inside = axes.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1 and axes.bbox.y0 <= box.y0
            centre = ((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2)
            nearest = min(places, key=lambda at: math.dist(places[at], centre))
            if inside and nearest == point and not any(box.overlaps(other) for other in taken):
                taken.append(box)
                written += 1
                break
            drawn.remove()
    return written == len(known)


def save(figure: Figure, path: Path, title: str = "") -> None:
    """Write a figure in the format of the path's suffix, with the same bytes every time.

    An SVG has no background, and in a viewer's dark mode it has the colours of ``_DARK``. A PNG can have a title above
    the figure.
    """
    with style(), whole_file(path) as part:
        if path.suffix == ".svg":
            text = StringIO()
            figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
            part.write_text(text.getvalue().replace("</defs>", f"{_DARK}</defs>", 1), "utf-8", newline="\n")
            return
        if title:
            figure.draw_without_rendering()  # computes the layout, which makes room for legends without an anchor
            figure.set_layout_engine("none")
            for of_figure in figure.legends:  # else their anchor is the picture, and the title would be under them
                of_figure.set_bbox_to_anchor((0, 0, 1, 1), transform=figure.transFigure)
            lines = textwrap.fill(one_line(title), int(13 * figure.get_size_inches()[0]))
            figure.text(0.01, 1.01, lines, fontsize=10, fontweight="bold", va="bottom")
        dpi = min(_DPI, _PIXELS / max(figure.get_size_inches()))
        figure.savefig(part, format="png", dpi=dpi, metadata={"Software": None}, bbox_inches="tight")
