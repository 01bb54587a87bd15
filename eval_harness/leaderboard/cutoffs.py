"""The knowledge cutoffs of a leaderboard's models, read from results of ``temporalwiki cutoff``."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from temporalwiki.base.markdown import one_line
from temporalwiki.builders.after_cutoff import CUTOFF_ITEMS, CutoffManifest, cutoff_files, read_cutoff
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
    curve: Mapping[int, float] = field(default_factory=dict)  # month -> the share of its changes that the model knows
    forms: Mapping[str, int] = field(default_factory=dict)  # way of asking -> cutoff, if there are several
    advertised: int | None = None  # as its provider says
    items: str | None = None  # a path in the folder of results


def read_cutoffs(folder: Path) -> list[KnownUpTo]:
    """Return the cutoffs in a folder of results and in its folders, the newest knowledge first.

    Raises InputError for a damaged file.
    """
    found = [_known(read_cutoff(path), path.with_name(CUTOFF_ITEMS), folder) for path in cutoff_files(folder)]
    return sorted(
        found,
        key=lambda one: (_ORDER.index(one.verdict), -(one.cutoff or one.low or one.high or 0), one.model, one.data),
    )


def _known(result: CutoffManifest, items: Path, folder: Path) -> KnownUpTo:
    of, names = result.overall, {"facts": "facts", "text": "sentences", "answers": "answers"}
    curve = {month: point.known for point in result.curve if (month := _counted(point.month)) is not None}
    forms = {name: month for name, one in result.forms.items() if (month := _counted(one.cutoff)) is not None}
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
        first=min(curve, default=None),
        last=max(curve, default=None),
        curve=curve,
        forms={one_line(name): month for name, month in forms.items()} if len(result.forms) > 1 else {},
        advertised=_counted(result.advertised),
        items=items.relative_to(folder).as_posix() if items.is_file() else None,
    )


def _counted(month: str | None) -> int | None:
    return None if month is None else int(month[:4]) * 12 + int(month[5:]) - 1
