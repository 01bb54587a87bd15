"""Extracts that reuse last month's extract, their base, for everything that has the same revision in the new dump.

The base's files are linked into the new extract, so that it is complete without the base. An extract therefore holds
files of several generations: files from its own dump, files that its base read, the base of the base, and so on.
The name of an extract's folder depends on the content of its dump only, because the extract means the same with any
base. The file ``finished.json`` in it records the base.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated

import msgspec

from temporalwiki.base.errors import InputError
from temporalwiki.base.files import whole_file
from temporalwiki.base.json_files import fingerprint, read_json, write_json
from temporalwiki.builders.stages import FileName, checksums_in, first_lost

_FINISHED = "finished.json"
_PATTERNS = ("[!.]*.*", "reports/*.json", "executor/completions/*")  # all files of a stage but logs
_FILES = (*_PATTERNS, *(f"carried/{pattern}" for pattern in _PATTERNS))
# The largest number of extracts in a row with a base; the next one reads its whole dump. A month changes about 5 % of
# Wikidata's items, whose old rows stay in the files: after six months every third row is read for nothing. It also
# ends an error that no check found.
GENERATIONS = 6


@dataclass(frozen=True)
class Base:
    """A finished extract that the next one reuses. Both folders lie next to each other."""

    name: Annotated[str, msgspec.Meta(pattern=r"\A[^./\0][^/\0]*\Z")]  # of its folder
    generation: Annotated[int, msgspec.Meta(ge=0, lt=GENERATIONS)]
    made: str  # a fingerprint of how it was made, with its own base


@dataclass(frozen=True)
class Task:
    """A range of the compressed bytes of a dump's file; an ``end`` of None means the end of the file."""

    index: int
    file: str
    start: int
    end: int | None
    base: Base | None = field(default=None, kw_only=True)  # None: read everything
    listed: bool = field(default=False, kw_only=True)  # its publisher's list of checksums confirms the file

    @property
    def generation(self) -> int:
        """The generation of the files that this task writes."""
        return 0 if self.base is None else self.base.generation + 1


class _Finished(msgspec.Struct):
    """The content of ``finished.json``."""

    plan: str
    base: Base | None
    files: dict[FileName, str]  # checksums


def sizes(tasks: Sequence[Task]) -> list[int]:
    """Return the compressed bytes of each task."""
    length = {task.file: Path(task.file).stat().st_size for task in tasks}
    return [(length[task.file] if task.end is None else task.end) - task.start for task in tasks]


def base_of(folder: Path) -> Base | None:
    """Return a finished extract as a base, or None if it is not finished or its generation is GENERATIONS."""
    finished = _read(folder)
    if finished is None:
        return None
    generation = 0 if finished.base is None else finished.base.generation + 1
    made = fingerprint({"plan": finished.plan, "base": finished.base})
    return Base(folder.name, generation, made) if generation < GENERATIONS else None


def is_finished(folder: Path) -> bool:
    """Return whether the folder of an extract has a ``finished.json``."""
    return (folder / _FINISHED).exists()


def lost(folder: Path) -> Path | None:
    """Return a file of a finished extract that is missing or has changed since, or None."""
    if not is_finished(folder):
        return None
    finished = _read(folder)
    name = _FINISHED if finished is None else first_lost(folder, finished.files)
    return None if name is None else folder / name


def finished_with(folder: Path, tasks: Sequence[Task], base: Base | None) -> Base | None:
    """Return the base of a finished extract of these tasks, or ``base`` if the folder records no base."""
    finished = _read(folder)
    return finished.base if finished is not None and finished.plan == _plan(tasks) else base


def made_with(folder: Path, base: Base) -> bool:
    """Return whether the folder holds a finished extract with this base."""
    finished = _read(folder)
    return finished is not None and finished.base == base


def finish(folder: Path, tasks: Sequence[Task], base: Base | None) -> None:
    """Write ``finished.json``, after which no build reads this dump again."""
    files = [path for pattern in _FILES for path in folder.glob(pattern) if path.name != _FINISHED]
    content = {"plan": _plan(tasks), "base": None if base is None else asdict(base)}
    write_json(folder / _FINISHED, content | {"files": checksums_in(folder, files)})


def link(path: Path, target: Path) -> None:
    """Link or copy a file to ``target``. Such files never change, so a ``target`` of the right size is kept."""
    if target.exists() and target.stat().st_size == path.stat().st_size:
        return
    target.unlink(missing_ok=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(path, target)
    except OSError:  # some file systems have no links, or few
        with whole_file(target) as part:
            shutil.copyfile(path, part)


def _read(folder: Path) -> _Finished | None:
    """Read ``finished.json``. Return None if it is missing or damaged."""
    try:
        return read_json(folder / _FINISHED, _Finished)
    except InputError:
        return None


def _plan(tasks: Sequence[Task]) -> str:
    """Return a fingerprint of the tasks that does not depend on where the dump lies, on its lists or on a base."""
    return fingerprint([replace(task, file=Path(task.file).name, base=None, listed=False) for task in tasks])
