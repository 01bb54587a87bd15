"""``temporalwiki inspect``: show the content of a dataset folder, a dump or a result file.

Example:

    temporalwiki inspect temporalwiki
    temporalwiki inspect ORG/temporalwiki@2021.12   # downloads and loads each config of this month
    temporalwiki inspect dumps/enwiki/20211101/enwiki-20211101-pages-articles-multistream.xml.bz2
    temporalwiki inspect results                    # scores by month, and what models kept and learned
"""

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from temporalwiki.api.arguments import Arg
from temporalwiki.api.build import split_rows
from temporalwiki.api.evaluate import score_rows
from temporalwiki.api.table import Table, failed
from temporalwiki.base.errors import InputError
from temporalwiki.builders.inspection import describe, describe_problems
from temporalwiki.builders.manifests import read_manifests
from temporalwiki.builders.seal import proofs
from temporalwiki.eval_harness import result_inspection as results
from temporalwiki.eval_harness.results import read_result, result_files

_ON_HUB = re.compile(r"([\w.-]+/[\w.-]+)@([\w.-]+)", re.ASCII)


def inspect(path: Annotated[str | os.PathLike[str], Arg("PATH", positional=True)]) -> Table:
    """Describe what a path holds.

    Args:
        path: a dataset folder, a dump file, a result file, a folder of results, or a dataset on the Hub: ORG/NAME@TAG
            (of a month) or ORG/NAME@main (all months).

    Raises InputError if a dataset does not match its manifests; the command prints the description before.
    """
    where = Path(path)
    if (named := _ON_HUB.fullmatch(str(where))) and not where.exists():
        return _published(where, named[1], named[2])
    if (text := results.describe(where)) is not None:
        of_results = [
            {"model": result.manifest.model.name, **row}
            for result in map(read_result, result_files(where))
            for row in score_rows(result)
        ]
        return Table(where, of_results, text)
    text = describe(where)
    rows = [row for manifest in read_manifests(where) for row in split_rows(manifest)] if where.is_dir() else []
    found = Table(where, rows or [{"line": line} for line in text.splitlines()], text)
    problems = describe_problems(where)
    seals = [] if problems or not where.is_dir() else list(proofs(where))  # they read the files
    if problems := problems or [reason for _, reasons in seals for reason in reasons]:
        raise failed(InputError(f"{where}: {'; '.join(problems)}"), found)
    said = "\n".join([*(line for line, _ in seals), "all files are as the manifests say"])
    return replace(found, text=f"{text}\n\n{said}") if where.is_dir() else found


def _published(path: Path, repo_id: str, revision: str) -> Table:
    # imported here: importing datasets takes seconds, and local files need no Hub
    from temporalwiki.push_scripts.inspection import inspect_published

    inspected = inspect_published(repo_id, revision)
    found = Table(path, [row for manifest in inspected.manifests for row in split_rows(manifest)], inspected.text)
    if inspected.problems:
        raise failed(InputError(f"{path}: {'; '.join(inspected.problems)}"), found)
    return found
