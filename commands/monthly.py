"""``temporalwiki monthly``: fetch, build, check and publish the newest month."""

from __future__ import annotations

import argparse
from pathlib import Path

from temporalwiki.api.build import work_folder
from temporalwiki.api.table import Table, show, tell
from temporalwiki.base.errors import UsageError
from temporalwiki.builders.fetch import MIRROR
from temporalwiki.builders.machine import find_machine
from temporalwiki.commands.build import add_folders, add_machine
from temporalwiki.push_scripts.monthly import Job, monthly
from temporalwiki.push_scripts.status import OLDEST, status

_EXAMPLE = """\
example:
  temporalwiki monthly --wiki enwiki --repo ORG/temporalwiki --dry-run
  temporalwiki monthly --wiki enwiki --repo ORG/temporalwiki --jobs 8
  temporalwiki monthly --wiki enwiki --repo ORG/temporalwiki --status
  temporalwiki monthly --repo ORG/temporalwiki --ckl ORG/ckl
  temporalwiki monthly --repo ORG/temporalwiki --recipe monthly.yaml --leaderboard ORG/temporalwiki-leaderboard

Run the same command again to continue after an interruption. It does nothing unless there is a new month.
docs/publishing.md explains how to schedule it, and what to do when it stops because counts jump.
"""


def add_arguments(parser: argparse.ArgumentParser, argv: list[str]) -> None:
    """Add the subcommand's arguments."""
    parser.epilog = _EXAMPLE
    parser.add_argument("--wiki", default="enwiki", help="database name of the wiki (default: %(default)s)")
    parser.add_argument("--repo", required=True, metavar="REPO_ID", help="dataset repository on the Hub: ORG/NAME")
    parser.add_argument("--dry-run", action="store_true", help="print what would be done; read only listings")
    parser.add_argument(
        "--status",
        action="store_true",
        help="only say which months are published, pending and missing; exit status 1 if the newest is more than "
        f"{OLDEST} days old, or a month has no changed or no unchanged probes",
    )
    parser.add_argument(
        "--dumps", type=Path, default=Path("dumps"), metavar="DIR", help="folder of dumps (default: %(default)s)"
    )
    add_folders(parser, "temporalwiki", "the folder that keeps extracts for next month")
    add_machine(parser)
    parser.add_argument(
        "--mirror",
        action="append",
        metavar="URL",
        help=f"dump server, as in `fetch`; the first one determines the newest month (default: {MIRROR})",
    )
    parser.add_argument("--accept-jump", action="store_true", help="publish even if counts jump since last month")
    parser.add_argument(
        "--recipe", metavar="RECIPE", help="recipe of an experiment on all months since a first one (`since:`)"
    )
    parser.add_argument(
        "--ckl",
        metavar="REPO_ID",
        help="dataset repository for each month's updatedlama, newlama and invariantlama, written to OUT.ckl; "
        "not the one of --repo",
    )
    parser.add_argument("--leaderboard", metavar="SPACE_ID", help="Space for the experiment's leaderboard: ORG/NAME")


def run(arguments: argparse.Namespace) -> None:
    """Run the monthly job, or print its steps with --dry-run or its state with --status.

    With --json, the lines become rows: {"step": line}. Raises UsageError for a leaderboard without a recipe.
    """
    if arguments.leaderboard is not None and arguments.recipe is None:
        raise UsageError("--leaderboard shows the results of an experiment: name its recipe with --recipe")
    job = Job(
        wiki=arguments.wiki,
        repo_id=arguments.repo,
        dumps=arguments.dumps,
        out=arguments.out,
        work=work_folder(arguments.out, arguments.work),
        # a dry run needs no cluster
        machine=find_machine("local" if arguments.dry_run else arguments.engine, arguments.jobs, arguments.memory),
        mirrors=tuple(arguments.mirror or [MIRROR]),
        accept_jump=arguments.accept_jump,
        recipe=arguments.recipe,
        leaderboard=arguments.leaderboard,
        ckl=arguments.ckl,
    )
    rows: list[dict[str, str]] = []
    try:
        for line in status(job) if arguments.status else monthly(job, arguments.dry_run):
            tell(line, arguments.json)
            rows.append({"step": line})
    finally:  # a job that fails has done steps, and --status fails after its last line
        if arguments.json and rows:
            show(Table(job.out, rows, ""), as_json=True)
