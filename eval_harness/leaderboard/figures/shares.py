"""Helpers of the figures about probes: the newest interval, shares in percent, and bars of shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from temporalwiki.eval_harness import misalignment
from temporalwiki.eval_harness.leaderboard.figures.style import BLUE, HATCHES, ORANGE, shortened
from temporalwiki.methods.training_data import config_names

SPLITS = ("unchanged", "changed")
_LOOKS = {"unchanged": (BLUE, HATCHES[0]), "changed": (ORANGE, HATCHES[1])}

Row = tuple[str, dict[str, float]]  # a label, and its share of each split in percent


def newest_probes(data: str) -> str | None:
    """Return the config with the newest interval's probes, by its long name if it has one, or None.

    Raises InputError for data that cannot be read.
    """
    months = {misalignment.month_of(config): config for config in config_names(data) if config.startswith("probes-")}
    named = {month: config for month, config in months.items() if month is not None}
    named = {month: config for month, config in named.items() if len(month) > 8} or named
    places = misalignment.places(named)
    return named[max(named, key=lambda month: (places[month], month))] if named else None


def shares(counts: Mapping[str, Mapping[str, int]]) -> list[Row]:
    """Return the share of each name in each split, in percent.

    Names are sorted by the mean of their shares, so that a small split counts as much as a large one.
    """
    totals = {split: sum(of_split.values()) for split, of_split in counts.items()}
    names = sorted({name for of_split in counts.values() for name in of_split})
    rows = [
        (name, {s: 100 * of_split.get(name, 0) / totals[s] if of_split else 0.0 for s, of_split in counts.items()})
        for name in names
    ]
    return sorted(rows, key=lambda row: -sum(row[1].values()))


def most_frequent(what: str, rows: Sequence[Row]) -> str:
    """Return a sentence on the most frequent ``what``, which is the first of the sorted ``rows``."""
    label, of = rows[0]
    return f"The most frequent {what} is {label}: {' and '.join(f'{of[s]:.0f} % of {s}' for s in SPLITS)} probes"


def draw_shares(axes: Any, rows: Sequence[Row], probes: Mapping[str, int], longest: int) -> None:
    """Draw a group of bars for each row, the first at the top; labels are cut to ``longest`` characters.

    A split without probes has no bars.
    """
    splits = [split for split in SPLITS if probes[split]]
    height = 0.8 / len(splits)
    for number, split in enumerate(splits):
        colour, hatch = _LOOKS[split]
        axes.barh(
            [place + (number - (len(splits) - 1) / 2) * height for place in range(len(rows))],
            [row[split] for _, row in rows],
            height,
            label=f"{split} ({probes[split]:,} probe{'s' if probes[split] > 1 else ''})",
            color=colour,
            hatch=hatch,
            edgecolor="black",
            linewidth=0.5,
        )
    texts = shortened([label for label, _ in rows], longest, str)
    axes.set_yticks(range(len(rows)), [texts[label] for label, _ in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(left=0)
    axes.set_xlabel("% of the probes")
    axes.grid(axis="x")
    axes.set_axisbelow(True)
