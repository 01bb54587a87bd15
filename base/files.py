"""Files that are written whole or not at all, and folders that one process holds."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from temporalwiki.base.errors import InputError


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A name to write under, which becomes ``path`` when the block ends well and vanishes when it does not."""
    # process ids of two machines can be the same
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with room_for(path):
            yield part
            with part.open("rb") as file:
                os.fsync(file.fileno())
            part.replace(path)
    finally:
        part.unlink(missing_ok=True)


@contextlib.contextmanager
def room_for(path: Path) -> Iterator[None]:
    """Say which file did not fit where the disk is full; libraries name it rarely. Raises InputError then."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise InputError(f"{path}: no space left on the disk; free some and run the same command again") from None


@contextlib.contextmanager
def only_one(folder: Path, what: str) -> Iterator[None]:
    """Hold ``folder`` for this process alone; raise InputError if another one is at work in it."""
    whole = folder.absolute()  # "." has no name
    whole.parent.mkdir(parents=True, exist_ok=True)
    lock = whole.with_name(f".{whole.name}.lock")
    lock.touch()  # a folder that cannot be written to says so here
    try:
        with FileLock(lock, timeout=0):
            try:
                yield
            finally:
                # while it is held: nobody waits for it, and whoever comes next makes a new one
                lock.unlink(missing_ok=True)
    except Timeout:
        raise InputError(f"{folder}: another {what} is at work here; wait for it, or use another folder") from None


def discard(folder: Path) -> None:
    """Delete a folder: killed meanwhile, nothing of it is left under its name, and the next time deletes the rest."""
    gone = folder.with_name(f".{folder.name}.gone")
    shutil.rmtree(gone, ignore_errors=True)
    if folder.exists():
        folder.replace(gone)
        shutil.rmtree(gone, ignore_errors=True)


def sweep(folder: Path) -> None:
    """Remove what killed processes left aside in a folder, and in those in it; no other one may be at work there."""
    for part in list(folder.rglob(".*.part")):
        if part.is_dir():
            shutil.rmtree(part, ignore_errors=True)
        else:
            part.unlink(missing_ok=True)
