"""``temporalwiki publish``: publish a dataset, model, metric or leaderboard on the Hub."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from temporalwiki.base.terminal import print_result
from temporalwiki.methods import needs

_EXAMPLE = """\
example:
  temporalwiki publish dataset temporalwiki ORG/temporalwiki --dry-run
  temporalwiki publish dataset temporalwiki ORG/temporalwiki             # a commit and a tag (2021.12) per interval
  temporalwiki publish dataset ckl ORG/ckl --accept-noncommercial        # all its configs, including LAMA's
  temporalwiki publish model runs/lora-diffset-1112 ORG/lora-1112 --base openai-community/gpt2-large --results results
  temporalwiki publish metric eval_harness/metrics/fuar ORG/fuar
  temporalwiki publish leaderboard leaderboard ORG/leaderboard

The token comes from `hf auth login`, HF_TOKEN or a trusted publisher (docs/publishing.md).
"""
_KINDS = ("dataset", "model", "metric", "leaderboard")


def add_arguments(parser: argparse.ArgumentParser, argv: list[str]) -> None:
    """Add the subcommand's arguments."""
    parser.epilog = _EXAMPLE
    parser.add_argument("kind", choices=_KINDS, metavar="KIND", help=f"what to publish: {', '.join(_KINDS)}")
    parser.add_argument("path", type=Path, metavar="PATH", help="folder to publish")
    parser.add_argument("repo_id", metavar="REPO_ID", help="repository: ORG/NAME; created if it does not exist")
    parser.add_argument("--tag", metavar="TAG", help="tag of the commit (default for datasets: the month, 2021.12)")
    parser.add_argument("--dry-run", action="store_true", help="print what would be done; send nothing")
    dataset = parser.add_argument_group("options for datasets")
    dataset.add_argument("--accept-jump", action="store_true", help="publish even if counts jump since last month")
    dataset.add_argument("--replace", action="store_true", help="replace an interval, under a new --tag")
    dataset.add_argument(
        "--accept-noncommercial", action="store_true", help="publish configs with a licence like LAMA's (CC BY-NC)"
    )
    model = parser.add_argument_group("options for models")
    model.add_argument("--base", metavar="ID", help="Hub id of the model that an adapter was trained on")
    model.add_argument(
        "--results", type=Path, metavar="DIR", help="folder with results of `temporalwiki evaluate`, for the card"
    )


def run(arguments: argparse.Namespace) -> None:
    """Publish and print the steps."""
    dataset_options = dict.fromkeys(("accept_jump", "replace", "accept_noncommercial"), "dataset")
    for name, kind in (dataset_options | {"base": "model", "results": "model"}).items():
        if getattr(arguments, name) and arguments.kind != kind:
            arguments.parser.error(f"--{name.replace('_', '-')} is an option for a {kind}, not a {arguments.kind}")
    with needs("eval"):
        for line in _publish(arguments):
            print_result(line)


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
