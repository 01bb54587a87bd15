"""Download one file with resume, check it, and only then give it its name.

Until the file is complete, its bytes are in ``.NAME.SHA1.part``, where SHA1 is the one of the dump's list. The bytes
may come from several servers; if the whole has another SHA-1, it is thrown away and fetched once more.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import httpx2

from temporalwiki.base.errors import InputError
from temporalwiki.base.files import make_folder, room_for, sync
from temporalwiki.base.progress import Progress
from temporalwiki.builders.fetch.connection import (
    LEAST_RATE,
    READ,
    TRIES_OF_A_FILE,
    Broken,
    Connection,
    Failed,
    Patience,
    Stopped,
)

_PROGRESS = 1 << 16  # bytes; a server that gives fewer per try, or gives them too slowly, is given up


def download(
    connection: Connection,
    urls: Sequence[str],
    target: Path,
    size: int,
    sha1: str,
    progress: Progress,
) -> None:
    """Fetch ``target`` from the first of ``urls`` that gives ``size`` bytes with that SHA-1.

    Raises InputError if no server gives the file or the disk is full, and Stopped if all downloads are to end.
    """
    make_folder(target.parent)
    failures = []
    with room_for(target):
        part = _Part(connection, target, size, sha1, progress)
        for url in urls:
            try:
                _fetch(connection, url, part)
                part.finish()
                return
            except Failed as failure:
                failures.append(f"{url} {failure}")
    raise InputError(f"{target.name}: {'; '.join(failures)}")


def _fetch(connection: Connection, url: str, part: _Part) -> None:
    """Download the missing bytes from one server. Raises Failed."""
    patience, furthest, seconds = Patience(connection, url, TRIES_OF_A_FILE), part.length, 0.0
    for last in (False, True):
        while part.length < part.size:
            begun = time.monotonic()
            try:
                _ask(connection, url, part)
            except Broken as problem:
                if part.length == part.size:
                    break
                seconds += time.monotonic() - begun
                if part.length >= furthest + max(_PROGRESS, LEAST_RATE * seconds):
                    furthest, seconds = part.length, 0.0
                    patience.progress()
                patience.wait(problem)
        found = part.sha1()
        if found == part.listed:
            return
        part.throw_away()
        furthest = 0
        if not last:
            connection.say(f"{url}: its SHA-1 differs from the list; trying once more")
    raise Failed(f"gave wrong bytes twice: SHA-1 {found}, not {part.listed}")


def _ask(connection: Connection, url: str, part: _Part) -> None:
    """Request the missing bytes once. Raises Broken if some are still missing."""
    headers = {"Range": f"bytes={part.length}-"} if part.length else {}
    with connection.ask(url, headers) as (response, body):
        _check_answer(response, part)
        if response.status_code == 200:
            part.throw_away()
        with part.path.open("ab") as file:
            for chunk in body:  # larger pieces would be lost if the connection breaks
                if part.length == part.size:
                    return
                part.write(file.write, chunk)
    if part.length < part.size:
        raise Broken(f"ends after {part.length:,} of {part.size:,} bytes")


def _check_answer(response: httpx2.Response, part: _Part) -> None:
    """Raise Broken or Failed for an answer that does not continue the listed file."""
    if response.status_code == 416:
        after = part.length
        part.throw_away()
        raise Broken(f"has nothing after {after:,} bytes")
    if response.status_code == 206:
        given = re.fullmatch(r"bytes (\d{1,18})-\d{1,18}/(\d{1,18}|\*)", response.headers.get("Content-Range", ""))
        if not given or int(given[1]) != part.length:
            part.throw_away()
            raise Broken("gave a wrong range of bytes")
        total = given[2]
    else:
        total = response.headers.get("Content-Length", "*")
    if total.isascii() and total.isdigit() and int(total) != part.size:
        raise Failed(
            f"has {int(total):,} bytes, but the list of the dump says {part.size:,}: "
            "another version, or an incomplete copy"
        )


class _Part:
    """The downloaded bytes of a file, and their hash."""

    def __init__(self, connection: Connection, target: Path, size: int, listed: str, progress: Progress) -> None:
        self.target, self.size, self.listed, self.progress = target, size, listed, progress
        self.path = part_of(target, listed)
        self.length, self._hash = 0, hashlib.sha1()
        for other in target.parent.glob(f".{target.name}.*.part"):
            if other != self.path or other.stat().st_size > size:
                other.unlink()
        if self.path.exists():
            with self.path.open("rb") as file:
                while chunk := file.read(READ):
                    if connection.stopped.is_set():
                        raise Stopped
                    self._count(chunk)
        progress.update(self.length)

    def _count(self, chunk: bytes) -> None:
        self._hash.update(chunk)
        self.length += len(chunk)

    def sha1(self) -> str:
        return self._hash.hexdigest()

    def write(self, write: Callable[[bytes], object], chunk: bytes) -> None:
        chunk = chunk[: self.size - self.length]
        write(chunk)
        self._count(chunk)
        self.progress.update(len(chunk))

    def throw_away(self) -> None:
        self.path.unlink(missing_ok=True)
        self.progress.update(-self.length)
        self.length, self._hash = 0, hashlib.sha1()

    def finish(self) -> None:
        sync(self.path)
        self.path.replace(self.target)
        sync(self.target.parent)


def part_of(target: Path, sha1: str) -> Path:
    """Return the name of a file while it is incomplete. It has the listed SHA-1, so no other version is continued."""
    return target.with_name(f".{target.name}.{sha1}.part")
