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
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from temporalwiki.builders.engine import fingerprint, whole_file, write_json

_FINISHED = "finished.json"  # in an extract's folder
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


class Task(Protocol):
    """A range of a dump: a dataclass."""

    @property
    def file(self) -> str:
        """The dump's file."""

    @property
    def base(self) -> Base | None:
        """The extract that this one goes on from; None: all is read."""


def base_of(folder: Path) -> Base | None:
    """A finished extract as the base of the next one; None where the next one is to read all anew."""
    done = _done(folder)
    if done is None:
        return None
    base = _base(done)
    generation = 0 if base is None else base.generation + 1
    return Base(folder.name, generation, fingerprint(done)) if generation < GENERATIONS else None


def is_finished(folder: Path) -> bool:
    """Whether an extract that can be a base, or be taken as it is, is in ``folder``."""
    return (folder / _FINISHED).exists()


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
    write_json(folder / _FINISHED, {"plan": _key(tasks), "base": asdict(base) if base is not None else None})


def link(path: Path, target: Path) -> None:
    """Give a file that is never written again another name, or copy it; one that is there already is right."""
    if target.exists():
        return
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
        return {"plan": done["plan"], "base": done["base"]}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _base(done: dict[str, Any]) -> Base | None:
    return Base(**done["base"]) if done["base"] is not None else None


def _key(tasks: Sequence[Any]) -> str:
    return fingerprint([replace(task, file=Path(task.file).name, base=None) for task in tasks])
