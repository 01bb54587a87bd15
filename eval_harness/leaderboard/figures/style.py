"""The style of figures: colours that colour-blind people can distinguish, and markers for print without colour."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from temporalwiki.base.files import whole_file
from temporalwiki.base.markdown import one_line
from temporalwiki.eval_harness.leaderboard.selection import Line
from temporalwiki.methods import METHODS

Drawn = TypeVar("Drawn", bound="Callable[..., Figure | None]")

WIDTH = 7.0  # inches, the text width of a printed page, on which texts have at least 8 points
BLACK, GREY = "#000000", "#8C8C8C"
# the colours of Okabe & Ito (2008); yellow comes last because it is weak on paper
BLUE, VERMILLION, GREEN, PURPLE, SKY, ORANGE, YELLOW = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#E69F00",
    "#F0E442",
)
COLOURS = (BLUE, VERMILLION, GREEN, PURPLE, SKY, ORANGE, YELLOW, GREY)
MARKERS = ("s", "^", "D", "v", "P", "X", "<", ">", "p", "*", "h", "d", "H")
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)), (0, (3, 1, 1, 1, 1, 1)))
HATCHES = ("", "///", "...", "\\\\\\", "xx", "---", "++", "oo", "|||", "OO", "**", "/o", "\\o")
LONGEST, _SHORTEST = 30, 8  # characters per label
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


class Look(NamedTuple):
    """The look of a line of checkpoints."""

    colour: str
    marker: str
    dash: Any
    hatch: str
    hollow: bool  # another line has the same colour


def looks(lines: Sequence[Line]) -> dict[str, Look]:
    """Return label -> look of each line.

    The first line of a method looks the same in every figure. Other lines of the method have its colour and another
    marker. Models without a method get other looks than all methods.
    """
    found: dict[str, Look] = {}
    drawn: set[str | None] = set()
    further = 0
    for line in lines:
        place = _METHODS.index(line.method) if line.method in _METHODS else None
        if line.initial and "initial" not in drawn:
            drawn.add("initial")
            found[line.label] = Look(BLACK, "o", "-", "", False)
            continue
        first = place is not None and line.method not in drawn
        drawn.add(line.method)
        number = place if first and place is not None else len(_METHODS) + further
        found[line.label] = Look(
            BLACK if line.initial else COLOURS[(further if place is None else place) % len(COLOURS)],
            MARKERS[number % len(MARKERS)],
            DASHES[number % len(DASHES)],
            HATCHES[number % len(HATCHES)],
            hollow=not first,
        )
        further += not first
    return found


def month_name(month: str, between: str = " ") -> str:
    """Return the label of a month: the second date of "20211101-20211201" as "2021 12-01", and "1112" unchanged."""
    recent = month[-8:]
    return f"{recent[:4]}{between}{recent[4:6]}-{recent[6:]}" if len(recent) == 8 else month


def shortened(labels: Sequence[str], longest: int = LONGEST) -> dict[str, str]:
    """Return label -> distinct text on one line with at most ``longest`` characters."""
    found: dict[str, str] = {}
    for label in labels:
        text = one_line(label) or "?"
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
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if ratio < 1000 else (1,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.set_minor_formatter(NullFormatter())


def legend(figure: Figure, labels: Sequence[str], handles: Sequence[Any]) -> None:
    """Add a legend at the right. The figure must have the layout "constrained"."""
    figure.legend(handles=handles, labels=list(shortened(labels).values()), loc="outside right upper")
    # high enough for all labels
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, max(height, 0.175 * len(labels) + 0.3))


def save(figure: Figure, path: Path) -> None:
    """Write a figure in the format of the path's suffix, with the same bytes every time."""
    metadata = {"Date": None, "Creator": None} if path.suffix == ".svg" else {"Software": None}
    with style(), whole_file(path) as part:
        dpi = min(_DPI, _PIXELS / max(figure.get_size_inches()))
        figure.savefig(part, format=path.suffix[1:], dpi=dpi, metadata=metadata)
