"""Make rows of the leaderboard that differ in a few columns."""

from typing import Any

from temporalwiki.eval_harness.leaderboard.rows import Row

_PLAIN: dict[str, Any] = {
    "label": "diff",
    "month": "0910",
    "method": "diff",
    "base": "base",
    "model": "models/diff-0910",
    "revision": "0123456789abcdef",
    "learning_rate": 1e-4,
    "trainable": 1_000,
    "parameters": 1_000,
    "tokens": 2_048,
    "task": "twiki_probes",
    "version": 1,
    "config": "probes-0910",
    "kind": "probes",
    "tested": "0910",
    "test": "changed",
    "measure": "perplexity",
    "higher_is_better": False,
    "value": 100.0,
    "low": 90.0,
    "high": 110.0,
    "items": 40,
    "clusters": 30,
    "runs": 1,
    "spread": None,
    "competes": True,
    "rank_best": None,
    "rank_worst": None,
    "result": "diff-0910-01234567/probes-0910.twiki_probes.89abcdef.json",
}


def make_row(**changes: Any) -> Row:
    """Return a row: Diff's perplexity on a month's changed facts, with ``changes``."""
    return Row(**_PLAIN | changes)
