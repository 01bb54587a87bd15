"""Download one file with resume, check it, and only then give it its name.

Until the file is complete, its bytes are in ``.NAME.SHA1.part``, where SHA1 is the one of the dump's list. The bytes
may come from several servers; if the whole has another SHA-1, it is thrown away and fetched once more.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import httpx2

from temporalwiki.base.errors import InputError
from temporalwiki.base.files import make_folder, room_for, sync
from temporalwiki.base.progress import Progress
from temporalwiki.builders.fetch.connection import LEAST_RATE, Broken, Connection, Failed, Patience

TRIES_OF_A_FILE = 10  # without progress, about four minutes
_PROGRESS = 1 << 16  # bytes; a server that gives fewer per try, or gives them too slowly, is given up


class _WrongBytesError(Exception):
    """A server gave another file than the listed one."""


async def download(
    connection: Connection, urls: Sequence[str], target: Path, size: int, sha1: str, progress: Progress
) -> None:
    """Fetch ``target`` from the first of ``urls`` that gives ``size`` bytes with that SHA-1.

    Raises InputError if no server gives the file or the disk is full.
    """
    make_folder(target.parent)
    failures = []
    with room_for(target):
        part = _Part(target, size, sha1, progress)
        await part.read()
        for url in urls:
            try:
                await _fetch(connection, url, part)
                part.finish()
                return
            except Failed as failure:
                failures.append(f"{url} {failure}")
    raise InputError(f"{target.name}: {'; '.join(failures)}")


async def _fetch(connection: Connection, url: str, part: _Part) -> None:
    """Complete a file from one server. Raises Failed, also if the server gives the wrong bytes twice."""
    patience, furthest, seconds, wrong = Patience(connection, url, TRIES_OF_A_FILE), part.length, 0.0, False
    while True:
        begun = time.monotonic()
        try:
            await _ask(connection, url, part)
            part.check()
            return
        except _WrongBytesError as problem:
            if wrong:
                raise Failed(f"gave wrong bytes twice: {problem}") from None
            wrong, furthest = True, part.length
            connection.say(f"{url}: gave wrong bytes: {problem}; trying once more")
        except Broken as problem:
            seconds += time.monotonic() - begun
            if part.length >= furthest + max(_PROGRESS, LEAST_RATE * seconds):
                furthest, seconds = part.length, 0.0
                patience.progress()
            await patience.wait(problem)


async def _ask(connection: Connection, url: str, part: _Part) -> None:
    """Request the missing bytes once. Raises Broken if some are still missing."""
    try:
        if part.length < part.size:
            headers = {"Range": f"bytes={part.length}-"} if part.length else {}
            async with connection.ask(url, headers) as (response, body):
                _check_answer(response, part)
                await part.write_all(body)
            if part.length < part.size:
                raise Broken(f"ends after {part.length:,} of {part.size:,} bytes")
    except Broken:
        if part.length < part.size:
            raise


def _check_answer(response: httpx2.Response, part: _Part) -> None:
    """Raise an error for an answer that does not continue the listed file. A new beginning empties the part."""
    total: str = response.headers.get("Content-Length", "*")
    if response.status_code == 206:
        given = re.fullmatch(r"bytes (\d{1,18})-\d{1,18}/(\d{1,18}|\*)", response.headers.get("Content-Range", ""))
        if not given or int(given[1]) != part.length:
            part.throw_away()
            raise Broken("gave a wrong range of bytes")
        total = given[2]
    after = part.length
    if response.status_code == 416:
        part.throw_away()
        raise Broken(f"has nothing after {after:,} bytes")
    if total.isascii() and total.isdigit() and int(total) != part.size:
        other = f"has {int(total):,} bytes, but the list of the dump says {part.size:,}"
        raise _WrongBytesError(f"{other}: another version, or an incomplete copy")
    if response.status_code == 200:
        part.throw_away()


class _Part:
    """The downloaded bytes of a file, and their hash."""

    def __init__(self, target: Path, size: int, listed: str, progress: Progress) -> None:
        self.target, self.size, self.listed, self.progress = target, size, listed, progress
        self.path = part_of(target, listed)
        self.length, self._hash = 0, hashlib.sha1()

    async def read(self) -> None:
        """Read what an earlier run has downloaded. Parts of other versions are deleted."""
        for other in self.target.parent.glob(f".{self.target.name}.*.part"):
            if other != self.path or other.stat().st_size > self.size:
                other.unlink()
        if self.path.exists():
            async for chunk in chunks(self.path):
                self._count(chunk)

    def _count(self, chunk: bytes) -> None:
        self._hash.update(chunk)
        self.length += len(chunk)
        self.progress.update(len(chunk))

    async def write_all(self, body: AsyncIterator[bytes]) -> None:
        """Add the pieces of a body up to the size of the file."""
        with self.path.open("ab") as file:
            async for chunk in body:  # larger pieces would be lost if the connection breaks
                self.write(file.write, chunk[: self.size - self.length])
                if self.length == self.size:
                    return

    def write(self, write: Callable[[bytes], object], chunk: bytes) -> None:
        write(chunk)
        self._count(chunk)

    def check(self) -> None:
        """Raise _WrongBytesError, and throw the bytes away, if their SHA-1 is not the listed one."""
        if (found := self._hash.hexdigest()) != self.listed:
            self.throw_away()
            raise _WrongBytesError(f"SHA-1 {found}, not {self.listed}")

    def throw_away(self) -> None:
        self.path.unlink(missing_ok=True)
        self.progress.update(-self.length)
        self.length, self._hash = 0, hashlib.sha1()

    def finish(self) -> None:
        sync(self.path)
        self.path.replace(self.target)
        sync(self.target.parent)


async def chunks(path: Path) -> AsyncIterator[bytes]:
    """Yield the bytes of a file; others take their turns in between."""
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            yield chunk
            await asyncio.sleep(0)


def part_of(target: Path, sha1: str) -> Path:
    """Return the name of a file while it is incomplete. It has the listed SHA-1, so no other version is continued."""
    return target.with_name(f".{target.name}.{sha1}.part")
