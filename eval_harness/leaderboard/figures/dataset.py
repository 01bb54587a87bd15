"""TemporalWiki's figures 6 and 7: the entity types and the relations of the newest interval's probes."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from huggingface_hub import snapshot_download
from matplotlib.figure import Figure

from temporalwiki.base.errors import InputError, first_line
from temporalwiki.builders.loading import config_names
from temporalwiki.builders.manifests import BuiltManifest, read_manifests
from temporalwiki.builders.wikidata.entity_types import UNKNOWN
from temporalwiki.eval_harness import misalignment
from temporalwiki.eval_harness.leaderboard.figures.style import (
    BLUE,
    HATCHES,
    ORANGE,
    WIDTH,
    Plot,
    listed_downwards,
    shortened,
    styled,
)
from temporalwiki.eval_harness.task import check_columns
from temporalwiki.methods.training_data import load

MOST_TYPES = 10  # types of subjects, and of objects, that are shown by name
_MOST_RELATIONS = 25
_SPLITS = ("unchanged", "changed")
_LOOKS = {"unchanged": (BLUE, HATCHES[0]), "changed": (ORANGE, HATCHES[1])}

Share = tuple[str, dict[str, float]]  # a label, and its share of each split in percent


@styled
def _entity_types(data: str, width: float = WIDTH) -> Figure | None:
    """Draw the shares of entity types among the subjects and objects of the newest interval's probes.

    ``data`` is a dataset folder, a Hub id or ``id@revision``. The paper has pies; this figure has bars, because
    lengths are easier to compare than angles. Return None if the manifest has no counts, or the probes are empty.
    Raises InputError for data that cannot be read.
    """
    config = newest_probes(data)
    counts = _counts_of_types(data, config.removeprefix("probes-")) if config else None
    probes = {split: sum(counts[split]["subject"].values()) for split in _SPLITS} if counts else {}
    if counts is None or not any(probes.values()):
        return None
    panels = [_types({split: counts[split][role] for split in _SPLITS}) for role in ("subject", "object")]
    heights = [len(shares) for shares in panels]
    figure = Figure(figsize=(width, 1.5 + 0.22 * sum(heights)), layout="constrained")
    every = figure.subplots(2, 1, sharex=True, height_ratios=heights)
    for axes, role, shares in zip(every, ("subjects", "objects"), panels, strict=True):
        axes.set_title(role, loc="left")
        _draw_shares(axes, shares, probes, longest=int(40 * width / WIDTH))
    every[0].set_xlabel("")
    figure.suptitle(f"Entity types of {config}", fontsize="large")
    figure.set_label(_most_frequent("type of subjects", panels[0]))
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(_SPLITS))
    return figure


@styled
def _relations(data: str, width: float = WIDTH) -> Figure | None:
    """Draw the shares of the most frequent relations among the newest interval's probes; None without probes."""
    config = newest_probes(data)
    if config is None:
        return None
    loaded = load(data, config, None)
    for split in loaded:
        check_columns(loaded[split], ("relation",), f"{data}, {config}, {split}")
    counts = {split: Counter(loaded[split]["relation"][:] if split in loaded else ()) for split in _SPLITS}
    shares = _shares(counts)
    if not shares:
        return None
    figure = Figure(figsize=(width, 1.2 + 0.22 * min(len(shares), _MOST_RELATIONS)), layout="constrained")
    probes = {split: of_split.total() for split, of_split in counts.items()}
    _draw_shares(figure.subplots(), shares[:_MOST_RELATIONS], probes, longest=int(50 * width / WIDTH))
    cut = f": the most frequent {_MOST_RELATIONS} of {len(shares):,}" if len(shares) > _MOST_RELATIONS else ""
    figure.suptitle(f"Relations of {config}{cut}", fontsize="large")
    figure.set_label(_most_frequent("relation", shares))
    figure.legend(loc="outside lower center", ncols=len(_SPLITS))
    return figure


def newest_probes(data: str) -> str | None:
    """Return the config with the newest interval's probes, by its long name if it has one, or None.

    Raises InputError for data that cannot be read.
    """
    months = {misalignment.month_of(config): config for config in config_names(data) if config.startswith("probes-")}
    named = {month: config for month, config in months.items() if month is not None}
    named = {month: config for month, config in named.items() if len(month) > 8} or named
    places = misalignment.places(named)
    return named[max(named, key=lambda month: (places[month], month))] if named else None


def _counts_of_types(data: str, interval: str) -> Any:
    """Return ``counts.entity_types`` of an interval's manifest, or None."""
    folder = Path(data)
    if not folder.is_dir():
        path, _, revision = data.partition("@")
        wanted = f"manifests/{interval}.json"
        try:
            found = snapshot_download(path, repo_type="dataset", revision=revision or None, allow_patterns=wanted)
        except OSError as error:
            raise InputError(f"{data}: {wanted} cannot be fetched: {first_line(error)}") from None
        folder = Path(found)
    for manifest in read_manifests(folder):
        if isinstance(manifest, BuiltManifest) and manifest.name == interval:
            return manifest.counts.entity_types
    return None


def _types(counts: Mapping[str, Mapping[str, int]]) -> list[Share]:
    """Return the most frequent types, then all others together, then the unknown type."""
    shares = _shares(counts)
    known, unknown = [one for one in shares if one[0] != UNKNOWN], [one for one in shares if one[0] == UNKNOWN]
    if others := known[MOST_TYPES:]:
        of_others = {split: sum(share[split] for _, share in others) for split in counts}
        known[MOST_TYPES:] = [(f"{len(others):,} others", of_others)]
    return known + unknown


def _shares(counts: Mapping[str, Mapping[str, int]]) -> list[Share]:
    """Return the share of each name in each split, in percent.

    Names are sorted by the mean of their shares, so that a small split counts as much as a large one.
    """
    totals = {split: sum(of_split.values()) for split, of_split in counts.items()}
    names = sorted({name for of_split in counts.values() for name in of_split})
    shares = [
        (name, {s: 100 * of_split.get(name, 0) / totals[s] if of_split else 0.0 for s, of_split in counts.items()})
        for name in names
    ]
    return sorted(shares, key=lambda share: -sum(share[1].values()))


def _most_frequent(what: str, shares: Sequence[Share]) -> str:
    label, of = shares[0]
    return f"The most frequent {what} is {label}: {' and '.join(f'{of[s]:.0f} % of {s}' for s in _SPLITS)} probes"


def _draw_shares(axes: Any, shares: Sequence[Share], probes: Mapping[str, int], longest: int) -> None:
    """Draw a group of bars for each name, labelled with at most ``longest`` characters; no bars for an empty split."""
    splits = [split for split in _SPLITS if probes[split]]
    height = 0.8 / len(splits)
    for i, split in enumerate(splits):
        colour, hatch = _LOOKS[split]
        axes.barh(
            [place + (i - (len(splits) - 1) / 2) * height for place in range(len(shares))],
            [share[split] for _, share in shares],
            height,
            label=f"{split} ({probes[split]:,} probe{'s' if probes[split] > 1 else ''})",
            color=colour,
            hatch=hatch,
            edgecolor="black",
            linewidth=0.5,
        )
    texts = shortened([label for label, _ in shares], longest, str)
    listed_downwards(axes, [texts[label] for label, _ in shares])
    axes.set_xlim(left=0)
    axes.set_xlabel("% of the probes")
    axes.grid(axis="x")
    axes.set_axisbelow(True)


DATA_FIGURES: dict[str, Plot] = {
    "entity_types": Plot(
        "Entity types of the probes",
        "The types of the subjects and objects in the newest interval's probes, as shares of the unchanged and of the "
        "changed probes. A type is the first class that Wikidata has for an item. TemporalWiki, figure 6.",
        _entity_types,
    ),
    "relations": Plot(
        "Relations of the probes",
        f"The most frequent relations of the newest interval's probes (at most {_MOST_RELATIONS}), as shares of the "
        "unchanged and of the changed probes. TemporalWiki, figure 7.",
        _relations,
    ),
}
