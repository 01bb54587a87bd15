"""``temporalwiki publish``: a dataset, a model, a metric or a leaderboard to the Hub."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from temporalwiki.methods import needs

_EXAMPLE = """\
example:
  temporalwiki publish dataset temporalwiki ORG/temporalwiki --dry-run
  temporalwiki publish dataset temporalwiki ORG/temporalwiki             # a commit and a tag an interval: 2021.12
  temporalwiki publish dataset ckl ORG/ckl --accept-noncommercial        # all its configs, LAMA's among them
  temporalwiki publish model runs/lora-diffset-1112 ORG/lora-1112 --base openai-community/gpt2-large --results results
  temporalwiki publish metric eval_harness/metrics/fuar ORG/fuar
  temporalwiki publish leaderboard leaderboard ORG/leaderboard

The token is that of `hf auth login`, HF_TOKEN, or a trusted publisher's (docs/publishing.md).
"""
_KINDS = ("dataset", "model", "metric", "leaderboard")


def add_arguments(parser: argparse.ArgumentParser, argv: list[str]) -> None:
    """Add the subcommand's arguments."""
    parser.epilog = _EXAMPLE
    parser.add_argument("kind", choices=_KINDS, metavar="KIND", help=", ".join(_KINDS))
    parser.add_argument("path", type=Path, metavar="PATH", help="the folder to publish")
    parser.add_argument("repo_id", metavar="REPO_ID", help="the repository: ORG/NAME, created if it is not there")
    parser.add_argument("--tag", metavar="TAG", help="of the commit (default: a dataset's month, 2021.12; else none)")
    parser.add_argument("--dry-run", action="store_true", help="say exactly what would be done; send nothing")
    dataset = parser.add_argument_group("of a dataset")
    dataset.add_argument("--accept-jump", action="store_true", help="publish though counts jump since last month")
    dataset.add_argument(
        "--replace", action="store_true", help="put a mended interval in its place, under a new --tag"
    )
    dataset.add_argument(
        "--accept-noncommercial", action="store_true", help="publish configs whose licence is like LAMA's: CC BY-NC"
    )
    model = parser.add_argument_group("of a model")
    model.add_argument("--base", metavar="ID", help="where the Hub has the model that an adapter was trained on")
    model.add_argument("--results", type=Path, metavar="DIR", help="results of `temporalwiki evaluate`, for the card")


def run(arguments: argparse.Namespace) -> None:
    """Publish, and say what is done."""
    of_a_dataset = dict.fromkeys(("accept_jump", "replace", "accept_noncommercial"), "dataset")
    for name, kind in (of_a_dataset | {"base": "model", "results": "model"}).items():
        if getattr(arguments, name) and arguments.kind != kind:
            arguments.parser.error(f"--{name.replace('_', '-')} is of a {kind}, not of a {arguments.kind}")
    with needs("eval"):
        for line in _publish(arguments):
            print(line, flush=True)


def _publish(arguments: argparse.Namespace) -> Iterator[str]:
    path, repo_id, tag, dry_run = arguments.path, arguments.repo_id, arguments.tag, arguments.dry_run
    if arguments.kind == "dataset":
        from temporalwiki.push_scripts.dataset import publish_dataset

        return publish_dataset(
            path,
            repo_id,
            tag=tag,
            accept_jump=arguments.accept_jump,
            replace=arguments.replace,
            accept_noncommercial=arguments.accept_noncommercial,
            dry_run=dry_run,
        )
    if arguments.kind == "model":
        from temporalwiki.push_scripts.model import publish_model

        base, results = arguments.base, arguments.results
        return publish_model(path, repo_id, tag=tag, base=base, results=results, dry_run=dry_run)
    if arguments.kind == "metric":
        from temporalwiki.push_scripts.metric import publish_metric

        return publish_metric(path, repo_id, tag=tag, dry_run=dry_run)
    from temporalwiki.push_scripts.leaderboard import publish_leaderboard

    return publish_leaderboard(path, repo_id, tag=tag, dry_run=dry_run)
