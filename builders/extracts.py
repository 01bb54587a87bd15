"""What the extracts of Wikipedia's and Wikidata's dumps share: their tasks are ranges of a dump's file."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class DumpTask:
    """A range of the compressed bytes of a dump's file; an ``end`` of None means the end of the file."""

    index: int
    file: str
    start: int
    end: int | None
    listed: bool = field(default=False, kw_only=True)  # its publisher's list of checksums confirms the file


def sizes(tasks: Sequence[DumpTask]) -> list[int]:
    """Return the compressed bytes of each task."""
    length = {task.file: Path(task.file).stat().st_size for task in tasks}
    return [(length[task.file] if task.end is None else task.end) - task.start for task in tasks]
