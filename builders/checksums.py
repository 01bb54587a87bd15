"""Stage checksums: the SHA-1 of every input, compared with the lists that lie beside the dumps.

What an earlier build has read is not read again, nor what ``fetch`` did while it came.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from temporalwiki.base.errors import InputError
from temporalwiki.base.json_files import write_json
from temporalwiki.builders.stages import Report
from temporalwiki.builders.streams import digest

_FETCHED = ".fetched.json"  # in a folder of dumps: what `fetch` found whole, as it was then, and its SHA-1


@dataclass(frozen=True)
class ChecksumTask:
    """A file, and what tells that it is still the same one."""

    file: str
    size: int
    modified: int
    changed: int  # a copy can have the other's time of modification, but not this one
    algorithms: tuple[str, ...]


def plan(files: list[Path]) -> list[ChecksumTask]:
    """One task a file."""
    return [_task(file) for file in files]


def _task(file: Path) -> ChecksumTask:
    told = file.stat()
    algorithms = ("sha1", *sorted({algorithm for _, algorithm, _ in _listed(file)} - {"sha1"}))
    return ChecksumTask(str(file.resolve()), told.st_size, told.st_mtime_ns, told.st_ctime_ns, algorithms)


def run(task: ChecksumTask, _folder: Path) -> Report:
    """Read one file."""
    return {**asdict(task), **{algorithm: digest(Path(task.file), algorithm) for algorithm in task.algorithms}}


def check_unchanged(file: Path, task: ChecksumTask) -> None:
    """Raise InputError where a file is not the one any more that ``task`` told of."""
    try:
        told = file.stat()
    except FileNotFoundError:
        raise InputError(f"{file}: deleted while it was read; put it back and run the same command again") from None
    if (told.st_size, told.st_mtime_ns, told.st_ctime_ns) != (task.size, task.modified, task.changed):
        raise InputError(f"{file}: changed while it was read; run the same command again")


def state(file: Path) -> list[int]:
    """What tells that a file is still the same one, in a note: bytes, times of modification and of any change."""
    told = file.stat()
    return [told.st_size, told.st_mtime_ns, told.st_ctime_ns]


def notes(folder: Path) -> dict[str, Any]:
    """What is noted in a folder of dumps: state and SHA-1 by file name. Anybody may have written it."""
    try:
        found = json.loads((folder / _FETCHED).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def note(file: Path, before: list[int], sha1: str) -> None:
    """Note the SHA-1 of a file that was so before it was read."""
    found = notes(file.parent)
    if found.get(file.name) != [*before, sha1]:
        write_json(file.parent / _FETCHED, found | {file.name: [*before, sha1]})


def _noted(task: ChecksumTask) -> str | None:
    """The SHA-1 that is noted of a file as it is; a copied folder's notes are of other files, by their last time."""
    file = Path(task.file)
    found = notes(file.parent).get(file.name)
    if task.algorithms != ("sha1",) or not isinstance(found, list) or len(found) != 4:
        return None
    *before, sha1 = found
    right = before == [task.size, task.modified, task.changed] and isinstance(sha1, str)
    return sha1 if right and re.fullmatch("[0-9a-f]{40}", sha1) else None


def known(folder: Path, tasks: Sequence[ChecksumTask]) -> dict[ChecksumTask, Report]:
    """The reports of what need not be read again: of all runs whose folders lie in ``folder``, and ``fetch``'s.

    The latter's runs took nothing here, and have no beginning.
    """
    none = {"kept": True, "seconds": 0.0, "cpu_seconds": 0.0, "peak_memory_mb": 0}
    found: dict[ChecksumTask, Report] = {
        task: {**asdict(task), "sha1": sha1, "run": dict(none)} for task in tasks if (sha1 := _noted(task)) is not None
    }
    for file in sorted(folder.glob("*/reports/*.json")):
        with contextlib.suppress(KeyError, TypeError, ValueError):  # an older version's, or half of one
            report = json.loads(file.read_text("utf-8"))
            named = {field.name: report[field.name] for field in fields(ChecksumTask)}
            task = ChecksumTask(**named | {"algorithms": tuple(named["algorithms"])})
            report["run"]["kept"] = True
            if all(isinstance(report[algorithm], str) for algorithm in task.algorithms):
                found[task] = report
    return found


def is_listed(path: Path) -> bool:
    """Whether a list beside a file has a checksum of it."""
    return any(True for _ in _listed(path))


def compare(path: Path, report: Report) -> None:
    """Compare what was read of a file with the lists of checksums beside it; raise InputError where they differ."""
    for listing, algorithm, expected in _listed(path):
        if expected != report[algorithm]:
            raise InputError(f"{path}: not the file whose {algorithm} {listing.name} has; fetch it again")


def _listed(path: Path) -> Iterator[tuple[Path, str, str]]:
    """The checksums that lists beside a file have of it: the list, the algorithm, the checksum."""
    listings = [(file, "sha1") for file in sorted(path.parent.glob("*sha1sums*.txt"))]
    listings += [(file, "sha256") for file in sorted(path.parent.glob("SHA256SUMS"))]  # of content exports
    for listing, algorithm in listings:
        for line in listing.read_text("utf-8", errors="replace").splitlines():
            expected, _, name = line.partition(" ")  # then a blank or, for "binary", a star
            if name.lstrip(" *").strip() == path.name:
                yield listing, algorithm, expected.strip().lower()
