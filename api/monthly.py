"""``temporalwiki monthly``: fetch, build, check and publish the newest month.

Example:

    temporalwiki monthly --wiki enwiki --repo ORG/temporalwiki --dry-run
    temporalwiki monthly --wiki enwiki --repo ORG/temporalwiki --jobs 8
    temporalwiki monthly --wiki enwiki --repo ORG/temporalwiki --status
    temporalwiki monthly --repo ORG/temporalwiki --ckl ORG/ckl
    temporalwiki monthly --repo ORG/temporalwiki --recipe monthly.yaml --leaderboard ORG/temporalwiki-leaderboard

Run the same command again to continue after an interruption. It does nothing unless there is a new month.
docs/publishing.md explains how to schedule it, and what to do when it stops because counts jump.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from temporalwiki.api.arguments import Arg, Count, Flag, Folder
from temporalwiki.api.build import Engine, work_folder
from temporalwiki.api.table import Table, failed, tell
from temporalwiki.base.errors import UsageError
from temporalwiki.builders import fetch as fetcher
from temporalwiki.builders.fetch.connection import check_mirror
from temporalwiki.builders.machine import find_machine
from temporalwiki.push_scripts import monthly as job_of_a_month
from temporalwiki.push_scripts import status as state
from temporalwiki.push_scripts.month_source import DumpServer, GitSource


def monthly(
    *,
    repo: Annotated[str, Arg("REPO_ID")],
    wiki: Annotated[str, Arg()] = "enwiki",
    dry_run: Flag = False,
    status: Flag = False,
    dumps: Folder = "dumps",
    out: Folder = "temporalwiki",
    work: Folder | None = None,
    engine: Engine = "local",
    jobs: Count | None = None,
    memory: Annotated[str | int, Arg("SIZE")] | None = None,
    mirror: Annotated[Sequence[str], Arg("URL", repeat=True)] = (),
    clone: Annotated[str, Arg("DIR")] | None = None,
    converter: Annotated[str, Arg("FILE")] | None = None,
    accept_jump: Flag = False,
    accept_dates: Flag = False,
    recipe: Annotated[str, Arg("RECIPE")] | None = None,
    ckl: Annotated[str, Arg("REPO_ID")] | None = None,
    leaderboard: Annotated[str, Arg("SPACE_ID")] | None = None,
) -> Table:
    """Run the monthly job, and return a row for each step.

    Args:
        repo: dataset repository on the Hub, ORG/NAME.
        wiki: database name of the wiki.
        dry_run: print what would be done; read only listings.
        status: only say which months are published, pending and missing; exit status 1 if the newest is more than 45
            days old, or a month has no changed or no unchanged probes.
        dumps: folder of dumps.
        out: the dataset folder.
        work: the folder that keeps extracts for next month; OUT.work by default.
        engine: where tasks run, as in `build`.
        jobs: tasks at once; by default the cores here or in the Ray cluster, and 100 with slurm.
        memory: memory of all jobs together, such as 16GB; by default 8GB, or 1GB a job if that is more, but no more
            than there is.
        mirror: dump server, as in `fetch`, by default https://dumps.wikimedia.org; the first one determines the newest
            month.
        clone: clone of a git repository to make dumps from, in place of a dump server. The newest complete month is
            the one before its newest commit's. Update the clone yourself (`git fetch`).
        converter: Python script that writes the clone's dumps, such as examples/software/convert.py.
        accept_jump: publish even if counts jump since last month.
        accept_dates: build even if a dump's newest revision does not fit the date of its snapshot, as in `build`.
        recipe: recipe of an experiment on all months since a first one (`since:`).
        ckl: dataset repository for each month's updatedlama, newlama and invariantlama, written to OUT.ckl; not the
            one of --repo.
        leaderboard: Space for the experiment's leaderboard, ORG/NAME.

    Raises UsageError for a leaderboard without a recipe, or a clone without a converter.
    """
    if leaderboard is not None and recipe is None:
        raise UsageError("--leaderboard shows the results of an experiment: name its recipe with --recipe")
    if (clone is None) != (converter is None) or (clone is not None and mirror):
        raise UsageError(
            "a clone needs a script that converts it, and no mirror: give --clone and --converter together"
        )
    first, *others = map(check_mirror, mirror or [fetcher.MIRROR])
    source = GitSource(clone, converter) if clone and converter else DumpServer(first, tuple(others))
    job = job_of_a_month.MonthlyJob(
        wiki=wiki,
        repo_id=repo,
        dumps=Path(dumps),
        out=Path(out),
        work=work_folder(out, work),
        machine=find_machine("local" if dry_run else engine, jobs, memory),  # a dry run needs no cluster
        source=source,
        accept_jump=accept_jump,
        accept_dates=accept_dates,
        recipe=recipe,
        leaderboard=leaderboard,
        ckl=ckl,
    )
    rows: list[dict[str, str]] = []
    try:
        for line in state.status(job) if status else job_of_a_month.monthly(job, dry_run):
            tell(line)
            rows.append({"step": line})
    except BaseException as error:  # --status fails after its last line, and a job that fails has done steps
        if rows:
            failed(error, Table(job.out, rows, ""))
        raise
    return Table(job.out, rows, "\n".join(row["step"] for row in rows))
