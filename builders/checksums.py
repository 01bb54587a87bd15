"""Stage checksums: the SHA-1 of every input, compared with the publisher's lists next to the dumps.

A file that an earlier build or ``fetch`` has hashed is not read again.
"""

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from temporalwiki.base.errors import InputError
from temporalwiki.base.files import digest, read_small
from temporalwiki.base.json_files import fingerprint, read_json, write_json
from temporalwiki.builders.machine import Machine
from temporalwiki.builders.stages import Report, run_stage

_FETCHED = ".fetched.json"  # in a folder of dumps: the state and SHA-1 of each file that `fetch` completed


@dataclass(frozen=True)
class ChecksumTask:
    """A file to hash, with its size and times, which show whether it has changed later."""

    file: str
    size: int
    modified: int
    changed: int  # unlike the time of modification, a copy cannot keep this one
    algorithms: tuple[str, ...]


def plan(files: list[Path]) -> list[ChecksumTask]:
    """Return one task for each file."""
    tasks = []
    for file in files:
        size, modified, changed = state(file)
        algorithms = ("sha1", *sorted({algorithm for _, algorithm, _ in _listed(file)} - {"sha1"}))
        tasks.append(ChecksumTask(str(file.resolve()), size, modified, changed, algorithms))
    return tasks


def run(task: ChecksumTask, _folder: Path) -> Report:
    """Hash one file."""
    return {**asdict(task), **{algorithm: digest(Path(task.file), algorithm) for algorithm in task.algorithms}}


def check_unchanged(file: Path, task: ChecksumTask) -> None:
    """Raise InputError if the file has changed since ``task`` was planned."""
    try:
        now = state(file)
    except FileNotFoundError:
        raise InputError(f"{file}: deleted while it was read; put it back and run the same command again") from None
    if now != [task.size, task.modified, task.changed]:
        raise InputError(f"{file}: changed while it was read; run the same command again")


def state(file: Path) -> list[int]:
    """Return a file's size and its times of modification and status change. New content changes at least one."""
    status = file.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def notes(folder: Path) -> dict[str, Any]:
    """Return the notes in a folder of dumps: state and SHA-1 by file name. Values are unchecked."""
    try:
        return read_json(folder / _FETCHED, dict[str, Any])
    except InputError:
        return {}


def note(file: Path, before: list[int], sha1: str) -> None:
    """Note the SHA-1 of a file whose state was ``before`` when reading began."""
    found = notes(file.parent)
    if found.get(file.name) != [*before, sha1]:
        write_json(file.parent / _FETCHED, found | {file.name: [*before, sha1]})


def _noted(task: ChecksumTask) -> str | None:
    """Return the noted SHA-1 of a file, or None if the note does not fit its state, as in a copied folder."""
    file = Path(task.file)
    match notes(file.parent).get(file.name):
        case [*before, str(sha1)] if before == [task.size, task.modified, task.changed]:
            return sha1 if task.algorithms == ("sha1",) and re.fullmatch("[0-9a-f]{40}", sha1) else None
    return None


def known(folder: Path, tasks: Sequence[ChecksumTask]) -> dict[ChecksumTask, Report]:
    """Return the reports of files that need not be read again, from earlier runs in ``folder`` and from ``fetch``.

    For a file that ``fetch`` hashed, "run" in its report says that it cost nothing, and has no "began".
    """
    no_cost = {"kept": True, "seconds": 0.0, "cpu_seconds": 0.0, "peak_memory_mb": 0}
    found: dict[ChecksumTask, Report] = {
        task: {**asdict(task), "sha1": sha1, "run": dict(no_cost)}
        for task in tasks
        if (sha1 := _noted(task)) is not None
    }
    for file in sorted(folder.glob("*/reports/*.json")):
        with contextlib.suppress(KeyError, TypeError, ValueError):  # of an older version, or damaged
            report = read_json(file, dict[str, Any])
            named = {field.name: report[field.name] for field in fields(ChecksumTask)}
            task = ChecksumTask(**named | {"algorithms": tuple(named["algorithms"])})
            report["run"]["kept"] = True
            if all(isinstance(report[algorithm], str) for algorithm in task.algorithms):
                found[task] = report
    return found


def compute(tasks: Sequence[ChecksumTask], folder: Path, machine: Machine | None = None) -> dict[ChecksumTask, Report]:
    """Return the reports of all files; files that are ``known`` in ``folder`` are not read again."""
    found = known(folder, tasks)
    new = [task for task in tasks if task not in found]
    made = run_stage("checksums", run, new, folder / fingerprint(new), machine, [task.size for task in new])
    return found | dict(zip(new, made, strict=True))


def is_listed(path: Path) -> bool:
    """Return whether a list next to a file has a checksum of it."""
    return any(True for _ in _listed(path))


def compare(path: Path, report: Report) -> None:
    """Raise InputError if a list next to a file gives another checksum for it than ``report``."""
    for listing, algorithm, expected in _listed(path):
        if expected != report[algorithm]:
            raise InputError(f"{path}: not the file whose {algorithm} {listing.name} has; fetch it again")


def _listed(path: Path) -> Iterator[tuple[Path, str, str]]:
    """Yield the checksums of a file in lists next to it, as (list, algorithm, checksum)."""
    listings = [(file, "sha1") for file in sorted(path.parent.glob("*sha1sums*.txt"))]
    listings += [(file, "sha256") for file in sorted(path.parent.glob("SHA256SUMS"))]  # of content exports
    for listing, algorithm in listings:
        for line in read_small(listing).decode("utf-8", "replace").splitlines():
            expected, _, name = line.partition(" ")  # then a blank, or a star for "binary"
            if name.lstrip(" *").strip() == path.name:
                yield listing, algorithm, expected.strip().lower()
