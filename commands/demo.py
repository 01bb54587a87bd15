"""``temporalwiki demo``: the whole path on a small generated world."""

from __future__ import annotations

import argparse
from pathlib import Path

from temporalwiki.builders.demo import demo

_EXAMPLE = """\
example:
  temporalwiki demo --out demo
"""


def add_arguments(parser: argparse.ArgumentParser, argv: list[str]) -> None:
    """Add the subcommand's arguments."""
    parser.epilog = _EXAMPLE
    parser.add_argument("--out", type=Path, default=Path("demo"), metavar="DIR", help="folder to write to")


def run(arguments: argparse.Namespace) -> None:
    """Run the demo, printing what it finds."""
    for text in demo(arguments.out):
        print(text, flush=True)
