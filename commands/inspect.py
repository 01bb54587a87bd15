"""``temporalwiki inspect``: what a dataset folder, a published dataset, a dump or a result file holds."""

from __future__ import annotations

import argparse
import re
from dataclasses import replace
from pathlib import Path

from temporalwiki.api.build import split_rows
from temporalwiki.api.evaluate import score_rows
from temporalwiki.api.table import Table, show
from temporalwiki.base.errors import InputError
from temporalwiki.builders.inspection import describe, describe_problems
from temporalwiki.builders.manifests import read_manifests
from temporalwiki.eval_harness import inspection as results
from temporalwiki.eval_harness.results import read_result, result_files

_EXAMPLE = """\
example:
  temporalwiki inspect temporalwiki
  temporalwiki inspect ORG/temporalwiki@2021.12   # downloads and loads each config of this month
  temporalwiki inspect dumps/enwiki/20211101/enwiki-20211101-pages-articles-multistream.xml.bz2
  temporalwiki inspect results                    # scores by month, and what models kept and learned
"""
_ON_HUB = re.compile(r"([\w.-]+/[\w.-]+)@([\w.-]+)", re.ASCII)


def add_arguments(parser: argparse.ArgumentParser, argv: list[str]) -> None:
    """Add the subcommand's arguments."""
    parser.epilog = _EXAMPLE
    parser.add_argument(
        "path",
        type=Path,
        metavar="PATH",
        help="a dataset folder, a dump file, a result file, a folder of results, or a dataset on the Hub: "
        "ORG/NAME@TAG (of a month) or ORG/NAME@main (all months)",
    )


def run(arguments: argparse.Namespace) -> Table:
    """Describe the path. Raises InputError, after the description, if a dataset does not match its manifests."""
    path = arguments.path
    if (named := _ON_HUB.fullmatch(str(path))) and not path.exists():
        return _published(path, named[1], named[2], arguments.json)
    if (text := results.describe(path)) is not None:
        files = result_files(path) if arguments.json else []
        of_results = [
            {"model": result.manifest.model.name, **row}
            for result in map(read_result, files)
            for row in score_rows(result)
        ]
        return Table(path, of_results, text)
    text = describe(path)
    rows = [row for manifest in read_manifests(path) for row in split_rows(manifest)] if path.is_dir() else []
    found = Table(path, rows or [{"line": line} for line in text.splitlines()], text)
    if problems := describe_problems(path):
        show(found, arguments.json)
        raise InputError(f"{path}: {'; '.join(problems)}")
    return replace(found, text=f"{text}\n\nall files are as the manifests say") if path.is_dir() else found


def _published(path: Path, repo_id: str, revision: str, as_json: bool) -> Table:
    # imported here: importing datasets takes seconds, and local files need no Hub
    from temporalwiki.push_scripts.inspection import inspect_published

    inspected = inspect_published(repo_id, revision)
    found = Table(path, [row for manifest in inspected.manifests for row in split_rows(manifest)], inspected.text)
    if inspected.problems:
        show(found, as_json)
        raise InputError(f"{path}: {'; '.join(inspected.problems)}")
    return found
