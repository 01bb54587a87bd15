"""An index of the revision of every item in an extract, for many look-ups one after another with little memory.

A file covers some buckets and holds pairs of 64-bit integers, (item, revision), sorted by item. A dump lists its items
in roughly ascending order, so the block of a file that was used last can usually answer the next look-up.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable
from pathlib import Path

import numpy as np

from temporalwiki.base.files import whole_file
from temporalwiki.builders.wikidata.tables import Integers, Mask

_BLOCK = 1024  # pairs that are read together
_PAIR = 16  # bytes


def write(folder: Path, first: int, end: int, items: Integers, revisions: Integers) -> Path:
    """Write the file of buckets [first, end) and return its path; ``items`` must ascend."""
    pairs = np.empty((len(items), 2), "<i8")
    pairs[:, 0], pairs[:, 1] = items, revisions
    path = folder / f"revisions-{first:02d}-{end:02d}.bin"
    with whole_file(path) as part:
        part.write_bytes(pairs.tobytes())
    return path


class RevisionIndex:
    """Looks up revisions in the index files of a folder, which together cover every bucket once.

    ``cached`` maps items to their revisions: those in the blocks that were read last, except the items for which
    ``uncached`` is true. Callers may look there first, which is faster than calling ``of``.
    """

    def __init__(self, folder: Path, uncached: Callable[[Integers], Mask]) -> None:
        self._paths = sorted(folder.glob("revisions-*.bin"))
        self._first_items = [_first_items(path) for path in self._paths]
        self._uncached = uncached
        self._blocks: dict[tuple[int, int], Integers] = {}
        self.cached: dict[int, int] = {}
        bounds = [path.stem.split("-")[1:] for path in self._paths]
        self._file_of_bucket = [at for at, (first, end) in enumerate(bounds) for _ in range(int(first), int(end))]

    def of(self, item: int) -> int:
        """Return the revision of an item, or 0 if it is unknown."""
        file = self._file_of_bucket[item % len(self._file_of_bucket)]
        number = bisect.bisect_right(self._first_items[file], item) - 1
        if number < 0:
            return 0
        block = self._blocks.get((file, number))
        if block is None:
            if len(self._blocks) >= 2 * len(self._paths):
                self._blocks.clear()
                self.cached.clear()
            offset = number * _BLOCK * _PAIR
            block = np.fromfile(self._paths[file], "<i8", 2 * _BLOCK, offset=offset).reshape(-1, 2)
            self._blocks[file, number] = block
            items, revisions = block[~self._uncached(block[:, 0])].T.tolist()
            self.cached.update(zip(items, revisions, strict=True))
        row = int(np.searchsorted(block[:, 0], item))
        return int(block[row, 1]) if row < len(block) and block[row, 0] == item else 0


def _first_items(path: Path) -> list[int]:
    """Return the first item of every block of a file."""
    if not path.stat().st_size:
        return []
    items: list[int] = np.memmap(path, "<i8", "r")[:: 2 * _BLOCK].tolist()
    return items
