"""A power cut: a folder keeps only the content of files, and the names in folders, that were synced before."""

import os
import random
import resource
import shutil
import stat
from pathlib import Path

# How much of what was never synced is on the disk all the same. Content that was not synced is lost each time: ext4
# writes names long before content.
KEPT = ("no names", "all names", "some names")

_Names = dict[str, tuple[int, bool]]  # the inode of each name in a folder, and whether it is a folder


class Disk:
    """What a power cut leaves of a folder, from the moment when this object is made."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[int, int] = {}  # descriptors by inode: the number of an open file is not given to another
        self._content: dict[int, bytes] = {}  # of files, by inode
        self._names: dict[int, _Names] = {}  # of folders, by inode
        resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
        for at, _, files in os.walk(folder, topdown=False):
            for path in (*(Path(at) / name for name in files), Path(at)):
                self._keep(path)

    def synced(self, descriptor: int) -> None:
        """Record that a file or folder was synced."""
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        if path.is_relative_to(self._folder) and path.exists():
            self._keep(path)

    def cut(self, kept: str, chance: random.Random) -> None:
        """Leave the folder as it would be after a power cut now."""
        found: list[tuple[Path, bytes | None]] = []
        self._find(self._folder, self._folder.stat().st_ino, self._now(), kept, chance, found)
        for path in self._folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        for path, content in found:
            if content is None:
                path.mkdir()
            else:
                path.write_bytes(content)

    def _keep(self, path: Path) -> None:
        inode = self._hold(path)
        if path.is_dir():
            named = [child for child in path.iterdir() if child.is_dir() or child.is_file()]
            self._names[inode] = {child.name: (self._hold(child), child.is_dir()) for child in named}
        elif path.is_file():
            self._content[inode] = path.read_bytes()

    def _hold(self, path: Path) -> int:
        inode = path.stat().st_ino
        if inode not in self._held and stat.S_IFMT(path.stat().st_mode) in (stat.S_IFREG, stat.S_IFDIR):
            self._held[inode] = os.open(path, os.O_RDONLY)
        return inode

    def _now(self) -> dict[int, _Names]:
        """Return the names in each folder, synced or not."""
        return {
            Path(at).stat().st_ino: {
                name: ((Path(at) / name).stat().st_ino, name in folders) for name in (*folders, *files)
            }
            for at, folders, files in os.walk(self._folder)
        }

    def _find(
        self,
        path: Path,
        inode: int,
        now: dict[int, _Names],
        kept: str,
        chance: random.Random,
        found: list[tuple[Path, bytes | None]],
    ) -> None:
        """Add all files and folders in the folder ``path`` that survive to ``found``; a folder has no content."""
        all_names = kept == "all names" or (kept == "some names" and chance.random() < 0.5)
        # a folder that is deleted has no names now
        names = now.get(inode, {}) if all_names else self._names.get(inode, {})
        for name, (child, is_folder) in sorted(names.items()):
            if is_folder:
                found.append((path / name, None))
                self._find(path / name, child, now, kept, chance, found)
            else:
                found.append((path / name, self._content.get(child, b"")))
