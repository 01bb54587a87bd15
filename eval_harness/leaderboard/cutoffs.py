"""The knowledge cutoffs of a leaderboard's models, read from results of ``temporalwiki cutoff``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from temporalwiki.base.markdown import one_line
from temporalwiki.builders.after_cutoff import CutoffManifest, cutoff_files, read_cutoff
from temporalwiki.eval_harness.leaderboard.rows import without_path

_ORDER = ("after the data", "found", "before the data", "cannot tell")


@dataclass(frozen=True)
class KnownUpTo:
    """A model, and the months up to which it knows what changed; months are counted, year * 12 + month - 1."""

    model: str
    verdict: str
    cutoff: int | None
    low: int | None
    high: int | None
    evidence: str
    data: str
    first: int | None  # the first and the last month of the data with changes
    last: int | None


def read_cutoffs(folder: Path) -> list[KnownUpTo]:
    """Return the cutoffs in a folder of results and in its folders, the newest knowledge first.

    Raises InputError for a damaged file.
    """
    found = [_known(read_cutoff(path)) for path in cutoff_files(folder)]
    return sorted(
        found,
        key=lambda one: (_ORDER.index(one.verdict), -(one.cutoff or one.low or one.high or 0), one.model, one.data),
    )


def _known(result: CutoffManifest) -> KnownUpTo:
    of, names = result.overall, {"facts": "facts", "text": "sentences", "answers": "answers"}
    months = sorted(month for point in result.curve if (month := _counted(point.month)) is not None)
    return KnownUpTo(
        model=one_line(without_path(result.model)),
        verdict=of.verdict,
        cutoff=_counted(of.cutoff),
        low=_counted(of.low),
        high=_counted(of.high),
        evidence=", ".join(
            f"{result.evidence[name]:,} {what}" for name, what in names.items() if name in result.evidence
        ),
        data=one_line(without_path(result.data)) if result.data else "",
        first=months[0] if months else None,
        last=months[-1] if months else None,
    )


def _counted(month: str | None) -> int | None:
    return None if month is None else int(month[:4]) * 12 + int(month[5:]) - 1
