"""Which revision of every item an extract holds: asked for a line at a time, with little memory.

A file holds pairs of 64-bit integers, item and revision, by item, for the items of some buckets. A dump's items come
in about the order of their numbers, so the part of a file that answered last mostly answers next, too.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from temporalwiki.base.files import whole_file

_BLOCK = 1024  # pairs that are read together
_PAIR = 16  # bytes

Integers = npt.NDArray[np.int64]


def write(folder: Path, first: int, end: int, items: Integers, revisions: Integers) -> Path:
    """Write the file of buckets [first, end) and return its path; ``items`` must ascend."""
    folder.mkdir(parents=True, exist_ok=True)
    pairs = np.empty((len(items), 2), "<i8")
    pairs[:, 0], pairs[:, 1] = items, revisions
    path = folder / f"revisions-{first:02d}-{end:02d}.bin"
    with whole_file(path) as part:
        part.write_bytes(pairs.tobytes())
    return path


class Revisions:
    """Looks up revisions in the files of a folder, which together have every bucket once."""

    def __init__(self, folder: Path, apart: Callable[[Integers], npt.NDArray[np.bool_]]) -> None:
        self._paths = sorted(folder.glob("revisions-*.bin"))
        self._firsts = [_firsts(path) for path in self._paths]
        self._apart = apart
        self._blocks: dict[tuple[int, int], Integers] = {}  # those that were read last
        self.at_hand: dict[int, int] = {}  # the revisions in them, but those of items that are ``apart``
        bounds = [path.stem.split("-")[1:] for path in self._paths]
        self._file_of = [at for at, (first, end) in enumerate(bounds) for _ in range(int(first), int(end))]

    def of(self, item: int) -> int:
        """The revision of an item, 0 if it is not known. Those of the next items are at hand then."""
        number = self._file_of[item % len(self._file_of)]
        at = bisect.bisect_right(self._firsts[number], item) - 1
        if at < 0:
            return 0
        block = self._blocks.get((number, at))
        if block is None:
            if len(self._blocks) >= 2 * len(self._paths):
                self._blocks.clear()
                self.at_hand.clear()
            block = np.fromfile(self._paths[number], "<i8", 2 * _BLOCK, offset=at * _BLOCK * _PAIR).reshape(-1, 2)
            self._blocks[number, at] = block
            items, revisions = block[~self._apart(block[:, 0])].T.tolist()
            self.at_hand.update(zip(items, revisions, strict=True))
        row = int(np.searchsorted(block[:, 0], item))
        return int(block[row, 1]) if row < len(block) and block[row, 0] == item else 0


def _firsts(path: Path) -> list[int]:
    """The first item of every block."""
    if not path.stat().st_size:
        return []
    items: list[int] = np.memmap(path, "<i8", "r")[:: 2 * _BLOCK].tolist()
    return items
