"""Git repositories in memory, as the Hub keeps them: git's hashes of files, which go by LFS or not."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import pairwise
from typing import Literal

Kind = Literal["model", "dataset", "space"]

# Larger files must use LFS.
REGULAR_LIMIT = 10 * 2**20

_EVERYWHERE = (
    "*.7z *.arrow *.bin *.bz2 *.ckpt *.ftz *.gz *.h5 *.joblib *.lfs.* *.mlmodel *.model *.msgpack *.npy *.npz *.onnx"
    " *.ot *.parquet *.pb *.pickle *.pkl *.pt *.pth *.rar *.safetensors saved_model/**/* *.tar.* *.tar *.tflite *.tgz"
    " *.wasm *.xz *.zip *.zst *tfevents*"
)
_DATASETS_ONLY = (
    "*.avro *.lz4 *.mds *.pcm *.sam *.raw *.aac *.flac *.mp3 *.ogg *.wav *.bmp *.gif *.png *.tiff *.jpg *.jpeg *.webp"
    " *.mp4 *.webm"
)


def default_attributes(kind: Kind) -> bytes:
    """The .gitattributes of a new repository: which names go by LFS."""
    patterns = _EVERYWHERE + (f" {_DATASETS_ONLY}" if kind == "dataset" else "")
    return "".join(f"{pattern} filter=lfs diff=lfs merge=lfs -text\n" for pattern in patterns.split()).encode()


class HubError(Exception):
    """An error answer: status, the Hub's error code (a header that clients read), message, body."""

    def __init__(self, status: int, message: str, code: str | None = None, **body: object) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.body = body
        self.commit: str | None = None


def git_hash(kind: str, content: bytes) -> str:
    return hashlib.sha1(f"{kind} {len(content)}\0".encode() + content).hexdigest()


@dataclass(frozen=True)
class File:
    content: bytes
    lfs: bool = False

    @cached_property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    @property
    def size(self) -> int:
        return len(self.content)

    @cached_property
    def stored(self) -> bytes:
        """What lies in git: a pointer in place of a file that went by LFS."""
        if not self.lfs:
            return self.content
        return f"version https://git-lfs.github.com/spec/v1\noid sha256:{self.sha256}\nsize {self.size}\n".encode()

    @cached_property
    def oid(self) -> str:
        return git_hash("blob", self.stored)


Tree = Mapping[str, File]


def folders(tree: Tree) -> dict[str, str]:
    """Every folder with a hash of what lies in it, the root's under "". No client compares it with git's own."""
    inside: dict[str, list[str]] = {"": []}
    for path, file in sorted(tree.items()):
        for above in ("", *parents(path)):
            inside.setdefault(above, []).append(f"{path} {file.oid}")
    return {folder: git_hash("tree", "\n".join(lines).encode()) for folder, lines in inside.items()}


@dataclass(frozen=True)
class Commit:
    oid: str
    parent: str | None
    tree: Tree
    title: str
    description: str
    author: str
    date: datetime

    @cached_property
    def folders(self) -> dict[str, str]:
        return folders(self.tree)


class Repo:
    """One repository. ``branches`` and ``tags`` map names to commits' oids."""

    def __init__(self, kind: Kind, repo_id: str, *, private: bool = False, sdk: str | None = None) -> None:
        self.kind = kind
        self.repo_id = repo_id
        self.private = private
        self.sdk = sdk
        self.branches: dict[str, str] = {}
        self.tags: dict[str, str] = {}
        self.objects: dict[str, bytes] = {}  # LFS uploads, by SHA-256
        self._commits: dict[str, Commit] = {}
        self.pulls: list[tuple[str, str]] = []  # titles and authors of pull requests; the branches are refs/pr/N

    def files(self, revision: str = "main") -> dict[str, bytes]:
        """Return all files at a revision (branch, tag or commit). Raises HubError if it does not exist."""
        return {path: file.content for path, file in self.resolve(revision).tree.items()}

    def commits(self, revision: str = "main") -> list[Commit]:
        """The revision's commits, newest first."""
        out = [self.resolve(revision)]
        while (parent := out[-1].parent) is not None:
            out.append(self._commits[parent])
        return out

    def resolve(self, revision: str) -> Commit:
        oid = self._ref(revision)
        if oid is None and re.fullmatch("[0-9a-f]{7,40}", revision):
            oid = next((known for known in self._commits if known.startswith(revision)), None)
        if oid is None:
            raise HubError(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        return self._commits[oid]

    def _ref(self, revision: str) -> str | None:
        return self.branches.get(revision) or self.tags.get(revision)

    def add(self, ref: str, tree: Tree, title: str, description: str = "", author: str = "someone") -> Commit:
        """Put a commit on a branch, which is created if it is new."""
        for path in tree:
            for above in parents(path):
                if above in tree:
                    raise HubError(400, f"{path}: {above} is a file")
        parent = self._ref(ref)
        number = len(self._commits)
        date = datetime(2022, 1, 1, tzinfo=UTC) + timedelta(seconds=number)
        lines = [f"tree {folders(tree)['']}", *([f"parent {parent}"] if parent else [])]
        lines += [f"author {author} {number}", "", title, "", description]
        commit = Commit(
            git_hash("commit", "\n".join(lines).encode()), parent, dict(tree), title, description, author, date
        )
        self._commits[commit.oid] = commit
        self.move(ref, commit.oid)
        return commit

    def open_pulls(self) -> list[int]:
        """The numbers of the pull requests that are not merged."""
        merged = {commit.oid for commit in self.commits()}
        return [n for n in range(1, len(self.pulls) + 1) if self.branches[f"refs/pr/{n}"] not in merged]

    def move(self, ref: str, oid: str) -> None:
        self.branches[ref] = oid

    def last_commit(self, path: str, revision: str) -> Commit:
        """The newest commit that changed a file or folder."""
        chain = self.commits(revision)

        def content(commit: Commit) -> str | None:
            file = commit.tree.get(path)
            return file.oid if file else commit.folders.get(path)

        for newer, older in pairwise(chain):
            if content(newer) != content(older):
                return newer
        return chain[-1]


def parents(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:n]) for n in range(1, len(parts))]


def tracked(path: str, attributes: bytes) -> bool:
    """Whether a .gitattributes says that this path goes by LFS."""
    name = path.rpartition("/")[2]
    for line in attributes.decode().splitlines():
        pattern, *settings = line.split() or [""]
        pattern = pattern.replace("[[:space:]]", " ")
        if "filter=lfs" not in settings:
            continue
        if pattern == path or fnmatchcase(path if "/" in pattern else name, pattern.replace("**/", "")):
            return True
    return False


def goes_by_lfs(path: str, sample: bytes, size: int, attributes: bytes) -> bool:
    """Whether the Hub wants this file by LFS: by its name, or as it is large or binary. An empty one never."""
    return size > 0 and (tracked(path, attributes) or size > REGULAR_LIMIT or b"\0" in sample)
