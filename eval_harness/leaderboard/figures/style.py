"""How figures look: colours that the colour-blind tell apart, and marks that are left when there is no colour."""

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

WIDTH = 7.0  # inches, of a printed page between its margins; texts have at least 8 points there
BLACK, GREY = "#000000", "#8C8C8C"
# Okabe & Ito (2008), the colours for lines; yellow, the weakest on paper, is late
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
LONGEST, _SHORTEST = 30, 8  # characters of a label
_DPI = 200
_PIXELS = 2**16 - 1  # most that a PNG of matplotlib has on a side
_WIDE = 10  # times the least value

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
    "text.parse_math": False,  # a label with two dollar signs is no formula
    "grid.color": "#D0D0D0",
    "grid.linewidth": 0.5,
    "hatch.linewidth": 0.6,
    "lines.linewidth": 1.3,
    "lines.markersize": 5,
    "svg.hashsalt": "temporalwiki",  # else ids are random
    # as paths: with text as text a page would look as the fonts of each reader's machine make it, and labels overlap
    "svg.fonttype": "path",
}


class Look(NamedTuple):
    """How a line of checkpoints is drawn."""

    colour: str
    marker: str
    dash: Any
    hatch: str
    hollow: bool  # its colour is another's, too


def looks(lines: Sequence[Line]) -> dict[str, Look]:
    """Return how each line is drawn, by label.

    The first line of a method is drawn the same in every figure. Others have the method's colour and a mark of their
    own; models of no method come after all methods.
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
    """Return a month as it is drawn: of two dates, such as "20211101-20211201", the second, "2021 12-01"."""
    recent = month[-8:]
    return f"{recent[:4]}{between}{recent[4:6]}-{recent[6:]}" if len(recent) == 8 else month


def shortened(labels: Sequence[str], longest: int = LONGEST) -> dict[str, str]:
    """Return each label, on one line, in at most ``longest`` characters; two are never the same."""
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
    """Return ``shortened`` labels of which none is wider in letters of so many points."""
    font = FontProperties(size=points)
    for longest in range(LONGEST, _SHORTEST, -1):
        found = shortened(labels, longest)
        widths = [text_to_path.get_text_width_height_descent(text, font, ismath=False)[0] for text in found.values()]
        if max(widths) <= 72 * inches:
            return found
    return shortened(labels, _SHORTEST)


@contextmanager
def style() -> Iterator[None]:
    """Draw and save with the settings of the house, whatever a matplotlibrc says."""
    with matplotlib.rc_context(), warnings.catch_warnings():
        # a label in a script that the font lacks is drawn as boxes; no other font is the same on every machine
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        yield


def styled(draw: Drawn) -> Drawn:
    """Make a function draw in the style of the house."""

    @wraps(draw)
    def drawn(*args: Any, **options: Any) -> Figure | None:
        with style():
            return draw(*args, **options)

    return drawn  # type: ignore[return-value]


def logarithmic_if_wide(axes: Axes, which: str, values: Iterable[float]) -> None:
    """Make the axis "x" or "y" logarithmic where the least of positive values would be lost beside the greatest."""
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
    """Name what was drawn, right of everything; the figure's layout must be constrained."""
    figure.legend(handles=handles, labels=list(shortened(labels).values()), loc="outside right upper")
    # as high as the names need, with space above and below
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, max(height, 0.175 * len(labels) + 0.3))


def save(figure: Figure, path: Path) -> None:
    """Write a figure in the format that the path ends with: the same bytes every time."""
    metadata = {"Date": None, "Creator": None} if path.suffix == ".svg" else {"Software": None}
    with style(), whole_file(path) as part:
        dpi = min(_DPI, _PIXELS / max(figure.get_size_inches()))
        figure.savefig(part, format=path.suffix[1:], dpi=dpi, metadata=metadata)
