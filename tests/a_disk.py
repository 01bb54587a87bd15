"""A disk of limited size."""

import contextlib
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def disk(folder: Path, size: str | int) -> Iterator[Callable[[str], None]]:
    """A disk of a size (bytes, or as in "64k") at ``folder``, and what gives it another size.

    The test is skipped where none can be had.
    """
    folder.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")

    def resize(to: str) -> None:
        subprocess.run(["mount", "-o", f"remount,size={to}", str(folder)], check=True)

    try:
        yield resize
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)  # a tensor may still be mapped
