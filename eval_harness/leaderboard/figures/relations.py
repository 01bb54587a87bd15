"""TemporalWiki's figure 7: the relations of unchanged and changed probes."""

from __future__ import annotations

from collections import Counter

from matplotlib.figure import Figure

from temporalwiki.eval_harness.leaderboard.figures.plot import Plot
from temporalwiki.eval_harness.leaderboard.figures.shares import (
    SPLITS,
    draw_shares,
    most_frequent,
    newest_probes,
    shares,
)
from temporalwiki.eval_harness.leaderboard.figures.style import WIDTH, styled
from temporalwiki.eval_harness.task import check_columns
from temporalwiki.methods.training_data import load

MOST = 25  # relations that are shown


@styled
def _draw(data: str, width: float = WIDTH) -> Figure | None:
    """Draw the shares of the most frequent relations among the newest interval's probes.

    ``data`` is a dataset folder, a Hub id or ``id@revision``. Return None if it has no probes. Raises InputError for
    data that cannot be read.
    """
    config = newest_probes(data)
    if config is None:
        return None
    loaded = load(data, config, None)
    for split in loaded:
        check_columns(loaded[split], ("relation",), f"{data}, {config}, {split}")
    counts = {split: Counter(loaded[split]["relation"][:] if split in loaded else ()) for split in SPLITS}
    rows = shares(counts)
    if not rows:
        return None
    figure = Figure(figsize=(width, 1.2 + 0.22 * min(len(rows), MOST)), layout="constrained")
    probes = {split: of_split.total() for split, of_split in counts.items()}
    draw_shares(figure.subplots(), rows[:MOST], probes, longest=int(50 * width / WIDTH))
    most = f": the most frequent {MOST} of {len(rows):,}" if len(rows) > MOST else ""
    figure.suptitle(f"Relations of {config}{most}", fontsize="large")
    figure.set_label(most_frequent("relation", rows))
    figure.legend(loc="outside lower center", ncols=len(SPLITS))
    return figure


PLOT = Plot(
    "Relations of the probes",
    f"The most frequent relations of the newest interval's probes (at most {MOST}), as shares of the unchanged and of "
    "the changed probes. TemporalWiki, figure 7.",
    _draw,
)
