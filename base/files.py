"""Files and folders that are written whole or not at all, even in a power cut, and folders for one process at a time.

A power cut may lose the content of every file, and every change of a folder's list of names, that was not synced. So a
file is synced before it gets its name, and its folder after that. No power cut can undo a finished write.
"""

import contextlib
import errno
import hashlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from temporalwiki.base.errors import InputError

LARGEST_TEXT = 64 << 20  # bytes of a text or JSON file that is read as a whole
# the pattern of the temporary names that ``whole_file`` gives
UNFINISHED = ".*." + "[0-9a-f]" * 8 + ".part"


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path. The file becomes ``path`` if the block ends well, and is deleted otherwise.

    The folder of ``path`` is made if it is missing.
    """
    # random, because processes of two machines can have the same id
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with room_for(path):
            make_folder(path.parent)
            yield part
            sync(part)
            part.replace(path)
            sync(path.parent)
    finally:
        part.unlink(missing_ok=True)


@contextlib.contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """Yield a new folder to fill. It becomes ``folder`` if the block ends well, and is deleted otherwise."""
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)  # from a process that was killed
    make_folder(part)
    try:
        with room_for(folder):
            yield part
            sync_tree(part)
            part.replace(folder)
            sync(folder.parent)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def read_small(path: Path, most: int = LARGEST_TEXT) -> bytes:
    """Return the content of a small file, which need not be trusted.

    Raises OSError for a file that is not regular, such as a pipe, and for one larger than ``most`` bytes.
    """
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    if status.st_size > most:
        raise OSError(errno.EOVERFLOW, f"larger than {most >> 20} MB", str(path))
    return path.read_bytes()


def digest(path: Path, algorithm: str) -> str:
    """Return the hash of a file in hexadecimal, by the name of its algorithm: "sha1" or "sha256"."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest()


def leads_out(path: Path, folder: Path) -> bool:
    """Return whether ``path``, which lies in ``folder``, leads outside of it: it may be or pass through a link."""
    return not path.resolve().is_relative_to(folder.resolve())


def make_folder(folder: Path) -> None:
    """Make a folder, and the folders that it lies in, unless they exist."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        sync(folder.parent)


def sync(path: Path) -> None:
    """Wait until the content of a file, or the list of names in a folder, is safe from a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some network file systems cannot sync a folder
            raise
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Sync a folder and all files and folders in it, but not what links point to."""
    for at, _, files in os.walk(folder, topdown=False):
        for file in (Path(at) / name for name in sorted(files)):
            if file.is_file() and not file.is_symlink():
                sync(file)
        sync(Path(at))


@contextlib.contextmanager
def room_for(path: Path) -> Iterator[None]:
    """Raise an InputError that names ``path`` if the block fails because the disk is full or a size limit is reached.

    Libraries rarely name the file.
    """
    try:
        yield
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise InputError(f"{path}: larger than a file may be here; raise the limit (ulimit -f)") from None
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise InputError(f"{path}: no space left on the disk; free some and run the same command again") from None


@contextlib.contextmanager
def only_one(folder: Path, what: str) -> Iterator[None]:
    """Lock ``folder`` for this process. ``what`` says in messages what it does there, such as "build".

    Raises InputError if another process holds the lock, or if the folder cannot be written.
    """
    whole = folder.absolute()  # "." has no name
    lock = whole.with_name(f".{whole.name}.lock")
    if lock.is_symlink():
        raise InputError(f"{lock}: is a link, which would be followed; remove it")
    try:
        make_folder(whole.parent)
        lock.touch()
    except OSError as error:  # it names a file or folder that the user did not
        raise InputError(
            f"{folder}: cannot be written: {whole.parent}: {error.strerror}; use another folder"
        ) from None
    try:
        with FileLock(lock, timeout=0):
            try:
                yield
            finally:
                # before the release: nobody waits for the lock, and the next process makes a new file
                lock.unlink(missing_ok=True)
    except Timeout:
        raise InputError(f"{folder}: another {what} is at work here; wait for it, or use another folder") from None


def discard(folder: Path) -> None:
    """Rename a folder, then delete it, so that its own name never holds a part of it.

    If the process is killed, the next call for this folder deletes the rest.
    """
    gone = folder.with_name(f".{folder.name}.gone")
    shutil.rmtree(gone, ignore_errors=True)
    if folder.exists():
        folder.replace(gone)
        shutil.rmtree(gone, ignore_errors=True)


def sweep(folder: Path, pattern: str = UNFINISHED) -> None:
    """Delete the unfinished files that killed processes left in a folder tree. No other process may be using it.

    ``pattern`` says which names are unfinished files. By default, these are the temporary names of ``whole_file``.
    """
    for part in list(folder.rglob(pattern)):
        if part.is_dir():
            shutil.rmtree(part, ignore_errors=True)
        else:
            part.unlink(missing_ok=True)
