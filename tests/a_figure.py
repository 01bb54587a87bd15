"""Inspect a figure: its bars, and whether its texts overlap or leave it."""

from itertools import combinations
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from temporalwiki.eval_harness.leaderboard.figures.style import style

Bars = dict[str, dict[str, float]]


def bars(axes: Any) -> Bars:
    """The lengths of horizontal bars, by the labels of their series and of their places, from top to bottom."""
    labels = {round(at): label.get_text() for at, label in zip(axes.get_yticks(), axes.get_yticklabels(), strict=True)}
    return {
        container.get_label(): {
            labels[round(bar.get_y() + bar.get_height() / 2)]: bar.get_width() for bar in container
        }
        for container in axes.containers
    }


def check_texts(figure: Figure) -> list[str]:
    """Return the figure's texts. Fails where two overlap, or one is cut off at the figure's edge."""
    with style():
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        unused = _labels_out_of_view(figure)
        shown = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]
        shown = [text for text in shown if text not in unused]
        boxes = [(text.get_text(), text.get_window_extent(canvas.get_renderer())) for text in shown]
    for text, box in boxes:
        assert figure.bbox.x0 <= box.x0 <= box.x1 <= figure.bbox.x1, f"{text!r} is cut off"
        assert figure.bbox.y0 <= box.y0 <= box.y1 <= figure.bbox.y1, f"{text!r} is cut off"
    for (one, a), (other, b) in combinations(boxes, 2):
        assert not a.overlaps(b), f"{one!r} and {other!r} overlap"
    return [text for text, _ in boxes]


def _labels_out_of_view(figure: Figure) -> set[Any]:
    """Matplotlib keeps labels for ticks beyond an axis's ends and does not draw them."""
    axes = [axis for of in figure.axes for axis in (of.xaxis, of.yaxis)]
    return {
        label
        for axis in axes
        for tick in axis.get_major_ticks()
        if not min(axis.get_view_interval()) <= tick.get_loc() <= max(axis.get_view_interval())
        for label in (tick.label1, tick.label2)
    }
