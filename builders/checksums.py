"""Stage checksums: the SHA-1 of every input, compared with the lists that lie beside the dumps."""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from temporalwiki.builders.engine import Report
from temporalwiki.builders.errors import InputError
from temporalwiki.builders.streams import digest


@dataclass(frozen=True)
class ChecksumTask:
    """A file, and what tells that it is still the same one."""

    file: str
    size: int
    modified: int


def plan(files: list[Path]) -> list[ChecksumTask]:
    """One task a file."""
    return [ChecksumTask(str(f.resolve()), f.stat().st_size, f.stat().st_mtime_ns) for f in files]


def run(task: ChecksumTask, _folder: Path) -> Report:
    """Read one file."""
    return {**asdict(task), "sha1": digest(Path(task.file), "sha1")}


def known(folder: Path) -> dict[ChecksumTask, Report]:
    """The reports of all runs whose folders lie in ``folder``, by what was read."""
    found: dict[ChecksumTask, Report] = {}
    for file in sorted(folder.glob("*/reports/*.json")):
        with contextlib.suppress(KeyError):  # an older version's does not say what it has read
            report = json.loads(file.read_text("utf-8"))
            found[ChecksumTask(report["file"], report["size"], report["modified"])] = report
    return found


def compare(path: Path, sha1: str) -> None:
    """Compare a file with the lists of checksums beside it; raise InputError where one has another."""
    listings = [(file, "sha1") for file in sorted(path.parent.glob("*sha1sums*.txt"))]
    listings += [(file, "sha256") for file in sorted(path.parent.glob("SHA256SUMS"))]  # of content exports
    for listing, algorithm in listings:
        for line in listing.read_text("utf-8", errors="replace").splitlines():
            expected, _, name = line.partition(" ")  # then a blank or, for "binary", a star
            if name.lstrip(" *").strip() != path.name:
                continue
            if expected.strip().lower() != (sha1 if algorithm == "sha1" else digest(path, algorithm)):
                raise InputError(f"{path}: not the file whose {algorithm} {listing.name} has; fetch it again")
