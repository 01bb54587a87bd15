"""The figures of the papers, drawn from the leaderboard's rows, and figures of a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from temporalwiki.eval_harness.leaderboard.figures import (
    average_perplexity,
    entity_types,
    fuar_bars,
    learning_rate,
    misalignment,
    relations,
    relative_perplexity,
    style,
)
from temporalwiki.eval_harness.leaderboard.figures.plot import Plot
from temporalwiki.eval_harness.leaderboard.rows import Row

__all__ = ["DATA_FIGURES", "FIGURES", "Plot", "write_figures"]

FIGURES: dict[str, Plot[Sequence[Row]]] = {
    "relative_perplexity": relative_perplexity.PLOT,
    "average_perplexity": average_perplexity.PLOT,
    "misalignment": misalignment.FACTS,
    "misalignment_text": misalignment.TEXT,
    "fuar": fuar_bars.PLOT,
    "learning_rate": learning_rate.PLOT,
}
DATA_FIGURES: dict[str, Plot[str]] = {"entity_types": entity_types.PLOT, "relations": relations.PLOT}


def write_figures(rows: Sequence[Row], folder: Path, data: str | None = None) -> dict[str, Plot[Any]]:
    """Write the figures that the rows have scores for as FOLDER/NAME.png and NAME.svg, and return name -> figure.

    ``DATA_FIGURES`` need ``data``: a folder, a Hub id or id@revision. Files of figures that cannot be drawn are
    removed.
    """
    drawn: dict[str, Plot[Any]] = {}
    possible: dict[str, tuple[Plot[Any], Any]] = {name: (plot, rows) for name, plot in FIGURES.items()}
    possible |= {name: (plot, data) for name, plot in DATA_FIGURES.items()}
    for name, (plot, source) in possible.items():
        figure = None if source is None else plot.draw(source)
        for ending in ("png", "svg"):
            path = folder / f"{name}.{ending}"
            if figure is None:
                path.unlink(missing_ok=True)
            else:
                style.save(figure, path)
                drawn[name] = plot
    return drawn
