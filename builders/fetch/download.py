"""One file: fetched with resume, checked, and only then under its name.

Beside the file there are, until it is whole, ``.NAME.part`` and a note ``.NAME.part.json`` that says which version of
the file the part is of. The note is there before the first byte, and the part is empty before the note changes: so
after a kill at any moment either the two belong together or there is nothing to belong to.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import httpx2

from temporalwiki.base.errors import InputError
from temporalwiki.base.files import room_for
from temporalwiki.base.json_files import write_json
from temporalwiki.builders.fetch.connection import READ, TRIES_OF_A_FILE, Broken, Connection, Failed, Patience, Stopped
from temporalwiki.builders.fetch.progress import Progress

_PROGRESS = 1 << 16  # bytes: fewer are no progress, or a server that gives one at a time is asked for ever


def download(
    connection: Connection,
    urls: Sequence[str],
    target: Path,
    size: int,
    sha1: str,
    progress: Progress,
) -> None:
    """Fetch ``target`` from the first of ``urls`` that gives ``size`` bytes with that SHA-1.

    Raises InputError where no server gives the file or the disk is full, and Stopped where the connection was
    stopped.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
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
    """Fill the part from one server. Raises Failed."""
    patience, furthest = Patience(connection, url, TRIES_OF_A_FILE), part.length
    for last in (False, True):
        while part.length < part.size:
            try:
                _ask(connection, url, part)
            except Broken as problem:
                if part.length == part.size:
                    break
                if part.length >= furthest + _PROGRESS:
                    furthest = part.length
                    patience.progress()
                patience.wait(problem)
        found = part.sha1()
        if found == part.listed:
            return
        part.throw_away()
        furthest = 0
        if not last:
            connection.say(f"{url}: came with another SHA-1 than the one listed; fetched once more")
    raise Failed(f"gives other bytes than those listed, twice: SHA-1 {found}, not {part.listed}")


def _ask(connection: Connection, url: str, part: _Part) -> None:
    """One request for what is missing. Raises Broken where something is missing still."""
    headers = {}
    if part.length:
        version = part.version(url)
        if version is None:  # nothing tells whether what is there is of the file that is there now
            part.throw_away()
        else:
            headers = {"Range": f"bytes={part.length}-", "If-Range": version}
    with connection.ask(url, headers) as response:
        _check_answer(response, url, part)
        if response.status_code == 200 or not part.length:
            part.begin(url, response)
        with part.path.open("ab") as file:
            for chunk in response.iter_raw():  # as it comes: larger pieces would be lost when a connection is cut
                if connection.stopped.is_set():
                    raise Stopped
                if part.length == part.size:
                    return  # whatever else would come
                part.write(file.write, chunk)
    if part.length < part.size:
        raise Broken(f"ends after {part.length:,} of {part.size:,} bytes")


def _check_answer(response: httpx2.Response, url: str, part: _Part) -> None:
    """Refuse an answer that is no piece, or not the next one, of the file that is listed."""
    if response.status_code == 416:
        after = part.length
        part.throw_away()
        raise Broken(f"has nothing after {after:,} bytes")
    if response.status_code == 206:
        given = re.fullmatch(r"bytes (\d{1,18})-\d{1,18}/(\d{1,18}|\*)", response.headers.get("Content-Range", ""))
        if not given or int(given[1]) != part.length or not part.goes_on(url, response):
            part.throw_away()
            raise Broken("gives another piece than the one asked for")
        total = given[2]
    else:
        total = response.headers.get("Content-Length", "*")
    if total.isascii() and total.isdigit() and int(total) != part.size:
        raise Failed(
            f"has {int(total):,} bytes there, and the dump's list says {part.size:,}: "
            "another version, or a copy that is not whole"
        )


class _Part:
    """The bytes that are there, what they are of, and their hash so far."""

    def __init__(self, connection: Connection, target: Path, size: int, listed: str, progress: Progress) -> None:
        self.target, self.size, self.listed, self.progress = target, size, listed, progress
        self.path, self.note_path = part_of(target), target.with_name(f".{target.name}.part.json")
        self.note: dict[str, str | int | None] = {}
        self.length, self._hash = 0, hashlib.sha1()
        self.note = self._read_note()
        if (self.note.get("sha1"), self.note.get("size")) != (listed, size) or self.path.stat().st_size > size:
            self.throw_away()
            return
        with self.path.open("rb") as file:
            while chunk := file.read(READ):
                if connection.stopped.is_set():
                    raise Stopped
                self._count(chunk)
        progress.kept(self.length)

    def _read_note(self) -> dict[str, str | int | None]:
        try:
            note = json.loads(self.note_path.read_text("utf-8"))
            return note if isinstance(note, dict) and self.path.is_file() else {}
        except (OSError, ValueError, RecursionError):
            return {}

    def _count(self, chunk: bytes) -> None:
        self._hash.update(chunk)
        self.length += len(chunk)

    def sha1(self) -> str:
        return self._hash.hexdigest()

    def version(self, url: str) -> str | None:
        """What a server can tell the file's version by; of another server only the date, which mirrors keep."""
        etag, modified = self.note.get("etag"), self.note.get("last_modified")
        if self.note.get("url") == url and isinstance(etag, str) and not etag.startswith("W/"):
            return etag
        return modified if isinstance(modified, str) else None

    def goes_on(self, url: str, response: httpx2.Response) -> bool:
        """Whether a piece is of the version that the part is of: the server may not have looked at If-Range."""
        names = ["last_modified", "etag"] if self.note.get("url") == url else ["last_modified"]
        given = {"last_modified": response.headers.get("Last-Modified"), "etag": response.headers.get("ETag")}
        return not self.length or all(given[name] in (None, self.note.get(name)) for name in names)

    def begin(self, url: str, response: httpx2.Response) -> None:
        """Start over with the version that this answer is of."""
        self.throw_away()
        self.path.touch()
        headers = response.headers
        self.note = {
            "url": url,
            "etag": headers.get("ETag"),
            "last_modified": headers.get("Last-Modified"),
            "size": self.size,
            "sha1": self.listed,
        }
        write_json(self.note_path, self.note)

    def write(self, write: Callable[[bytes], object], chunk: bytes) -> None:
        chunk = chunk[: self.size - self.length]
        write(chunk)
        self._count(chunk)
        self.progress.came(len(chunk))

    def throw_away(self) -> None:
        self.path.unlink(missing_ok=True)
        self.note_path.unlink(missing_ok=True)
        self.progress.came(-self.length)
        self.note, self.length, self._hash = {}, 0, hashlib.sha1()

    def finish(self) -> None:
        with self.path.open("rb") as file:
            os.fsync(file.fileno())
        self.path.replace(self.target)
        self.note_path.unlink(missing_ok=True)


def part_of(target: Path) -> Path:
    """Where a file grows."""
    return target.with_name(f".{target.name}.part")
