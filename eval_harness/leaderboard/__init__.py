"""The leaderboard: who wins, on what, and whether the difference is more than chance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from temporalwiki.eval_harness.results import Result


def write_leaderboard(results: Sequence[Result], folder: Path, out: Path, data: str | None = None) -> Iterator[str]:
    """Write the leaderboard of ``results`` (of ``folder``) to ``out`` and yield what to say of it."""
    yield f"{len(results)} results"
