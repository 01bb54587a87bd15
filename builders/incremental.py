"""Extracts made of the one of the month before: what the new dump has in the same revision is not read again.

Such an extract is layers, each of one generation: what was read for it, what was read for its base, for its base's
base. It has base's files under names of its own, so that it stands alone. Its folder is named after the dump's
content, whichever way it came about; which way that was stands beside it once it is finished.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from temporalwiki.base.files import whole_file
from temporalwiki.base.json_files import fingerprint, write_json
from temporalwiki.builders.stages import checksums_in, first_lost

_FINISHED = "finished.json"  # in an extract's folder: which tasks and base it was read with, and all its files
_OWN = ("[!.]*.*", "reports/*.json", "executor/completions/*")
_FILES = (*_OWN, *(f"carried/{pattern}" for pattern in _OWN))  # all but logs
# Extracts in a row that are made of the one before; the next reads all anew. A month changes about 5 % of Wikidata's
# items, whose old rows stay in the files and are read for nothing: a third after so many. And what no check found
# ends here.
GENERATIONS = 6


@dataclass(frozen=True)
class Base:
    """A finished extract in the folder in which the next one is made."""

    name: str  # of its folder
    generation: int
    made: str  # the same for extracts of the same layers


@dataclass(frozen=True)
class Task:
    """A compressed byte range of a dump's file: ``end`` None means to the end of the file."""

    index: int
    file: str
    start: int
    end: int | None
    base: Base | None = field(default=None, kw_only=True)  # the extract that this one goes on from; None: all is read
    listed: bool = field(default=False, kw_only=True)  # the file is the one whose checksum its maker has listed

    @property
    def generation(self) -> int:
        """Of what is read here: base's and one, 0 without a base."""
        return 0 if self.base is None else self.base.generation + 1


def sizes(tasks: Sequence[Task]) -> list[int]:
    """Compressed bytes of each range."""
    length = {task.file: Path(task.file).stat().st_size for task in tasks}
    return [(length[task.file] if task.end is None else task.end) - task.start for task in tasks]


def base_of(folder: Path) -> Base | None:
    """A finished extract as the base of the next one; None where the next one is to read all anew."""
    done = _done(folder)
    if done is None:
        return None
    base = _base(done)
    generation = 0 if base is None else base.generation + 1
    made = fingerprint({"plan": done["plan"], "base": done["base"]})
    return Base(folder.name, generation, made) if generation < GENERATIONS else None


def is_finished(folder: Path) -> bool:
    """Whether an extract that can be a base, or be taken as it is, is in ``folder``."""
    return (folder / _FINISHED).exists()


def lost(folder: Path) -> Path | None:
    """A file that was in the extract in ``folder`` when it was finished, and is gone or another one now.

    None if there is none, or if it is not finished. One that lost a file is no use: what reads it takes what is there.
    """
    if not is_finished(folder):
        return None
    done = _done(folder)
    name = _FINISHED if done is None else first_lost(folder, done["files"])
    return folder / name if name is not None else None


def finished_with(folder: Path, tasks: Sequence[Task], base: Base | None) -> Base | None:
    """The base that a finished extract of ``tasks`` was read with; ``base`` where there is none in ``folder``."""
    done = _done(folder)
    return _base(done) if done is not None and done["plan"] == _key(tasks) else base


def made_with(folder: Path, base: Base) -> bool:
    """Whether a finished extract was read with ``base``."""
    done = _done(folder)
    return done is not None and _base(done) == base


def finish(folder: Path, tasks: Sequence[Task], base: Base | None) -> None:
    """Note that all of an extract is there, and with which base it was read: another one need not read it again."""
    files = [path for pattern in _FILES for path in folder.glob(pattern) if path.name != _FINISHED]
    read = {"plan": _key(tasks), "base": asdict(base) if base is not None else None}
    write_json(folder / _FINISHED, read | {"files": checksums_in(folder, files)})


def link(path: Path, target: Path) -> None:
    """Give a file that is never written again another name, or copy it; one that is there in its size is right."""
    if target.exists() and target.stat().st_size == path.stat().st_size:
        return
    target.unlink(missing_ok=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(path, target)
    except OSError:  # not every disk has links, and some have few
        with whole_file(target) as part:
            shutil.copyfile(path, part)


def _done(folder: Path) -> dict[str, Any] | None:
    """What a finished extract says of itself; None where there is none, or it says nothing that can be read."""
    try:
        done = json.loads((folder / _FINISHED).read_text("utf-8"))
        _base(done)
        return {"plan": done["plan"], "base": done["base"], "files": dict[str, str](done["files"])}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _base(done: dict[str, Any]) -> Base | None:
    return Base(**done["base"]) if done["base"] is not None else None


def _key(tasks: Sequence[Task]) -> str:
    return fingerprint([replace(task, file=Path(task.file).name, base=None, listed=False) for task in tasks])
