"""Files that the user gives, or has in folders: news, or an older corpus."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from temporalwiki.base.errors import InputError


def input_files(paths: Sequence[Path], fits: Callable[[Path], bool], kind: str) -> tuple[list[Path], list[Path]]:
    """Return the files to read, each once, and the other files of the folders; hidden ones are in neither list.

    Raises InputError for a path that does not exist, for a given file that does not fit, and if nothing is left to
    read. ``kind`` names the wanted files in messages.
    """
    found: dict[Path, Path] = {}  # by the resolved path, as names in the Hub's cache are links
    others: set[Path] = set()
    for path in paths:
        if path.is_dir():
            for file in path.rglob("*"):
                if file.is_file() and not any(part.startswith(".") for part in file.relative_to(path).parts):
                    if fits(file):
                        found.setdefault(file.resolve(), file)
                    else:
                        others.add(file.resolve())
        elif not path.exists():
            raise InputError(f"{path}: no such file or folder")
        elif not fits(path):
            raise InputError(f"{path}: not a file of {kind}")
        else:
            found.setdefault(path.resolve(), path)
    if not found:
        raise InputError(f"{', '.join(map(str, paths)) or 'no path'}: no files of {kind}")
    return sorted(found.values()), sorted(others)
