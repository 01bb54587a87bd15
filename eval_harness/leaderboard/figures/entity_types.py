"""TemporalWiki's figure 6: the entity types of subjects and objects in unchanged and changed probes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from huggingface_hub import snapshot_download
from matplotlib.figure import Figure

from temporalwiki.base.errors import InputError
from temporalwiki.builders.manifests import BuiltManifest, read_manifests
from temporalwiki.builders.wikidata.entity_types import UNKNOWN
from temporalwiki.eval_harness.leaderboard.figures.plot import Plot
from temporalwiki.eval_harness.leaderboard.figures.shares import (
    SPLITS,
    Row,
    draw_shares,
    most_frequent,
    newest_probes,
    shares,
)
from temporalwiki.eval_harness.leaderboard.figures.style import WIDTH, styled

MOST = 10  # types of subjects, and of objects, that are shown by name


@styled
def _draw(data: str, width: float = WIDTH) -> Figure | None:
    """Draw the shares of entity types among the subjects and objects of the newest interval's probes.

    ``data`` is a dataset folder, a Hub id or ``id@revision``. The paper has pies; this figure has bars, because
    lengths are easier to compare than angles. The counts are ``counts.entity_types`` of the manifest. Return None if
    they are missing, as in folders of earlier versions, or if the probes are empty. Raises InputError for data that
    cannot be read.
    """
    config = newest_probes(data)
    counts = _counts(data, config.removeprefix("probes-")) if config else None
    probes = {split: sum(counts[split]["subject"].values()) for split in SPLITS} if counts else {}
    if counts is None or not any(probes.values()):
        return None
    panels = [_rows({split: counts[split][role] for split in SPLITS}) for role in ("subject", "object")]
    heights = [len(rows) for rows in panels]
    figure = Figure(figsize=(width, 1.5 + 0.22 * sum(heights)), layout="constrained")
    every = figure.subplots(2, 1, sharex=True, height_ratios=heights)
    for axes, role, rows in zip(every, ("subjects", "objects"), panels, strict=True):
        axes.set_title(role, loc="left")
        draw_shares(axes, rows, probes, longest=int(40 * width / WIDTH))
    every[0].set_xlabel("")
    figure.suptitle(f"Entity types of {config}", fontsize="large")
    figure.set_label(most_frequent("type of subjects", panels[0]))
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(SPLITS))
    return figure


def _rows(counts: Mapping[str, Mapping[str, int]]) -> list[Row]:
    """Return the most frequent types, then all others together, then the unknown type."""
    rows = shares(counts)
    known, unknown = [row for row in rows if row[0] != UNKNOWN], [row for row in rows if row[0] == UNKNOWN]
    if others := known[MOST:]:
        known[MOST:] = [(f"{len(others):,} others", {split: sum(row[split] for _, row in others) for split in counts})]
    return known + unknown


def _counts(data: str, interval: str) -> Any:
    """Return ``counts.entity_types`` of an interval's manifest, or None."""
    folder = Path(data)
    if not folder.is_dir():
        path, _, revision = data.partition("@")
        wanted = f"manifests/{interval}.json"
        try:
            folder = Path(
                snapshot_download(path, repo_type="dataset", revision=revision or None, allow_patterns=wanted)
            )
        except OSError as error:
            raise InputError(f"{data}: {wanted} cannot be fetched: {str(error).splitlines()[0]}") from None
    for manifest in read_manifests(folder):
        if isinstance(manifest, BuiltManifest) and manifest.name == interval:
            return manifest.counts.entity_types
    return None


PLOT = Plot(
    "Entity types of the probes",
    "The types of the subjects and objects in the newest interval's probes, as shares of the unchanged and of the "
    "changed probes. A type is the first class that Wikidata has for an item. TemporalWiki, figure 6.",
    _draw,
)
