"""Up to which month each model knows what changed, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from temporalwiki.eval_harness.cutoff_report import written
from temporalwiki.eval_harness.leaderboard.cutoffs import Known
from temporalwiki.eval_harness.leaderboard.tables.table import Table


def cutoffs_table(cutoffs: Sequence[Known]) -> Table | None:
    """Return a table with a line for each cutoff, or None without cutoffs."""
    if not cutoffs:
        return None
    lines = [
        (
            one.model,
            written(one.cutoff) or one.verdict,
            _interval(one),
            one.evidence,
            one.data,
            _span(one.first, one.last),
        )
        for one in cutoffs
    ]
    return Table(
        "Knowledge cutoffs",
        "The last month whose changes a model knows, with its 95 % interval, by temporalwiki cutoff. A cutoff before "
        "or after the data has one end. “Cannot tell” is the answer for a model that knows too little.",
        ("model", "cutoff", "95 % interval", "evidence", "data", "months of the data"),
        tuple(lines),
    )


def _interval(one: Known) -> str:
    if one.low is None or one.high is None:
        ends = {"from": one.low, "up to": one.high}
        return "".join(f"{word} {written(month)}" for word, month in ends.items() if month is not None)
    return _span(one.low, one.high)


def _span(first: int | None, last: int | None) -> str:
    return " to ".join(dict.fromkeys(written(month) or "" for month in (first, last) if month is not None))
