"""The figures of the papers, drawn from the leaderboard's rows, and figures of a dataset."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from temporalwiki.eval_harness.leaderboard.cutoffs import KnownUpTo
from temporalwiki.eval_harness.leaderboard.figures import style
from temporalwiki.eval_harness.leaderboard.figures.dataset import DATA_FIGURES
from temporalwiki.eval_harness.leaderboard.figures.models import FIGURES, TIMELINE
from temporalwiki.eval_harness.leaderboard.figures.style import Plot
from temporalwiki.eval_harness.leaderboard.rows import Row

__all__ = ["DATA_FIGURES", "FIGURES", "TIMELINE", "Plot", "write_figures"]


def write_figures(
    rows: Sequence[Row], folder: Path, data: str | None = None, cutoffs: Sequence[KnownUpTo] = ()
) -> dict[str, Plot]:
    """Write the figures that the rows have scores for, and return name -> figure with its finding as title.

    FOLDER/NAME.svg and NAME_narrow.svg, for a phone, are for pages and papers; NAME.png also shows the finding.
    ``DATA_FIGURES`` need ``data``: a folder, a Hub id or id@revision. The timeline needs ``cutoffs``. Files of figures
    that cannot be drawn are removed.
    """
    drawn: dict[str, Plot] = {}
    possible: dict[str, tuple[Plot, Any]] = {name: (plot, rows) for name, plot in FIGURES.items()}
    possible |= {name: (plot, data) for name, plot in DATA_FIGURES.items()}
    possible["cutoffs"] = TIMELINE, cutoffs
    for name, (plot, source) in possible.items():
        figure = None if source is None else plot.draw(source)
        paths = [folder / f"{name}{ending}" for ending in (".svg", ".png", "_narrow.svg")]
        if figure is None:
            for path in paths:
                path.unlink(missing_ok=True)
            continue
        style.save(figure, paths[0])
        style.save(figure, paths[1], title=figure.get_label())
        style.save(plot.draw(source, style.NARROW), paths[2])
        drawn[name] = plot._replace(title=figure.get_label() or plot.title)
    return drawn
