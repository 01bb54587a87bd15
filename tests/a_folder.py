"""What lies in a folder."""

from __future__ import annotations

from pathlib import Path


def contents(folder: Path, pattern: str = "*") -> dict[str, bytes]:
    """The bytes of all files in a folder whose names fit, by their paths in it."""
    files = (path for path in sorted(folder.rglob(pattern)) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def without_manifests(out: Path) -> dict[str, bytes]:
    """The same of a dataset folder, without its manifests, which tell of the run."""
    return {name: data for name, data in contents(out).items() if not name.startswith("manifests/")}
