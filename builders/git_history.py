"""The main line of a git repository, read from its objects: nothing is checked out, and links are not followed."""

import datetime
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from temporalwiki.base.errors import InputError
from temporalwiki.base.terminal import in_line


class Commit(NamedTuple):
    """A commit and its day (UTC), as 2026-08-01."""

    id: str
    day: str


class NoCommit(InputError):
    """The repository has no commit that early."""


def git(clone: Path, *words: str) -> bytes:
    """Return what a git command prints. Raises InputError if it fails."""
    done = subprocess.run(["git", "-C", str(clone), *words], capture_output=True, env=os.environ | {"TZ": "UTC"})
    if done.returncode:
        raise InputError(f"{clone}: git {words[0]}: {in_line(done.stderr.decode('utf-8', 'replace').strip())}")
    return done.stdout


def main_line(clone: Path) -> list[Commit]:
    """Return the commits of the main line, oldest first, without those of merged branches.

    A commit whose clock was behind has the day of the commit before it, so that a later state is never taken for an
    earlier one. Raises InputError for a folder without a repository.
    """
    words = ("log", "--first-parent", "--reverse", "--date=format-local:%Y-%m-%d", "--format=%H %cd", "HEAD")
    found: list[Commit] = []
    for line in git(clone, *words).decode().splitlines():
        id, _, day = line.partition(" ")
        found.append(Commit(id, max(day, found[-1].day if found else "")))
    return found


def commits_until(clone: Path, date: str) -> Iterator[Commit]:
    """Yield the commits of the main line up to the end of a day, YYYYMMDD (UTC), newest first.

    Raises NoCommit if it has no commit that early, or InputError if the clone is too shallow to have one.
    """
    commits, last = main_line(clone), f"{date[:4]}-{date[4:6]}-{date[6:]}"
    found = [commit for commit in commits if commit.day <= last]
    if not found:
        if git(clone, "rev-parse", "--is-shallow-repository").strip() == b"true":
            first = f"{clone}: a shallow clone, whose first commit is of {commits[0].day}"
            raise InputError(f"{first}: {date} needs `git fetch --unshallow`")
        raise NoCommit(f"{clone}: its first commit is of {commits[0].day}; name a later date than {date}")
    yield from reversed(found)


def files(
    clone: Path, commit: str, pattern: re.Pattern[str], largest: int, problems: list[str]
) -> Iterator[tuple[str, bytes]]:
    """Yield the path and content of each file of a commit whose whole path matches ``pattern``.

    Links and files of more than ``largest`` bytes are ``problems``, one line each.
    """
    for entry in git(clone, "ls-tree", "-r", "-l", "-z", commit).decode("utf-8", "replace").split("\0"):
        head, _, path = entry.partition("\t")
        if pattern.fullmatch(path):
            mode, kind, blob, size = head.split()
            if kind == "blob" and mode.startswith("100") and int(size) <= largest:
                yield path, git(clone, "cat-file", "blob", blob)
            else:
                problems.append(f"{path}: a link, or larger than {largest >> 20} MB")


def newest_month(clone: Path) -> tuple[str, str]:
    """Return the first days, YYYYMMDD, of the newest complete month and of the month after it.

    A month is complete if a commit is later than the first day of the next one: no later commit changes that state.
    """
    newest = main_line(clone)[-1].day
    recent = (datetime.date.fromisoformat(newest) - datetime.timedelta(days=1)).replace(day=1)
    return f"{month_before(recent):%Y%m%d}", f"{recent:%Y%m%d}"


def month_before(day: datetime.date) -> datetime.date:
    """Return the same day of the month before, or its last day."""
    last = day.replace(day=1) - datetime.timedelta(days=1)
    return last.replace(day=min(day.day, last.day))
