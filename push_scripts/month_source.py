"""Where the monthly job gets dumps: from a dump server, or from a git repository that a script converts."""

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from temporalwiki.base.errors import InputError
from temporalwiki.base.files import only_one
from temporalwiki.base.terminal import in_line, say
from temporalwiki.builders import fetch
from temporalwiki.builders.build import find_sources
from temporalwiki.builders.fetch.server import Wanted
from temporalwiki.builders.git_history import NoCommit, commits_until, newest_month
from temporalwiki.builders.snapshot import Interval

Dates = tuple[str | None, str | None]  # of Wikidata's dumps; None is the newest one up to the snapshot


class DumpServer(NamedTuple):
    """A dump server and its mirrors. The methods are those of ``builders.fetch``."""

    name: str  # it says which months exist
    mirrors: tuple[str, ...] = ()

    def newest(self, wiki: str) -> tuple[str, str]:
        """Return the newest complete interval of the wiki."""
        return fetch.newest_interval(self.name, wiki)

    def unfinished(self, wiki: str, after: str) -> str | None:
        """Return the date of a dump after ``after`` that is in progress, or None."""
        return fetch.unfinished_dump(self.name, wiki, after)

    def plan(self, interval: Interval, dumps: Path, dates: Dates) -> list[Wanted]:
        """Return the files that the interval needs."""
        return fetch.plan(interval, dumps, (self.name, *self.mirrors), dates)

    def get(self, interval: Interval, dumps: Path, dates: Dates) -> list[Path]:
        """Fetch the interval's dumps, and return their paths."""
        return fetch.fetch(interval, dumps, (self.name, *self.mirrors), dates)


class GitSource(NamedTuple):
    """A clone, and a script that writes its dumps, as those in ``examples``: CONVERTER CLONE DUMPS DATE DATE."""

    name: str  # of the clone's folder
    converter: str

    def newest(self, wiki: str) -> tuple[str, str]:
        """Return the newest complete month: the clone has a later commit."""
        return newest_month(Path(self.name))

    def unfinished(self, wiki: str, after: str) -> str | None:
        """Return None: a commit is always whole."""
        return None

    def plan(self, interval: Interval, dumps: Path, dates: Dates) -> list[Wanted]:
        """Return no files, because none is fetched. Raises NoSuchDump if the repository began later."""
        try:
            next(commits_until(Path(self.name), interval.prev))
        except NoCommit as error:
            raise fetch.NoSuchDump(str(error)) from None
        return []

    def get(self, interval: Interval, dumps: Path, dates: Dates) -> list[Path]:
        """Return the files of a month's dumps, which the converter writes. Raises InputError if it fails."""
        command = [sys.executable, self.converter, self.name, str(dumps), interval.prev, interval.recent]
        with only_one(dumps / "wikidatawiki", "fetch"):
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        lines = done.stdout.decode("utf-8", "replace").splitlines() or ["it says nothing"]
        if done.returncode:
            raise InputError(f"{self.converter}: {in_line(lines[-1])}")
        for line in lines:
            say(in_line(line))
        return find_sources(dumps, interval).files
