"""Files for targets that read files, in memory where that can be: thousands are written a minute."""

import atexit
import functools
import os
import shutil
import tempfile
from pathlib import Path


@functools.cache
def folder() -> Path:
    """A folder of this process."""
    memory = Path("/dev/shm")
    made = tempfile.mkdtemp(prefix="temporalwiki-fuzz-", dir=memory if os.access(memory, os.W_OK) else None)
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return Path(made)


def file(name: str, data: bytes) -> Path:
    """A file with these bytes; the next one of this name takes its place."""
    path = folder() / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path
