"""The state of a repository on the Hub, the state that a revision gives it, and the difference."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from temporalwiki.base.errors import UsageError

Kind = Literal["dataset", "model", "space"]
Content = Path | bytes

# git refuses other names, or takes them for a branch or a commit
_TAG = re.compile(r"(?!(?:main|HEAD|[0-9a-f]{7,40})\Z)(?!.*(?:\.\.|\.lock\Z|\.\Z))[A-Za-z0-9][A-Za-z0-9._-]{0,80}")


@dataclass(frozen=True)
class Revision:
    """The files that a repository should have, and the commit message and tag that bring them."""

    message: str
    files: Mapping[str, Content]  # by path in the repository; only new and changed files are sent
    remove: tuple[str, ...] = ()  # paths
    tag: str | None = None
    mark: str | None = None  # if no file changes, the tag goes to the last commit that changed this file

    def __post_init__(self) -> None:
        """Raise UsageError for a name that cannot be a tag."""
        if self.tag is not None and not _TAG.fullmatch(self.tag):
            raise UsageError(f"{self.tag!r} cannot be a tag: write letters, digits, dots and dashes, such as 2021.12")


@dataclass(frozen=True)
class File:
    """A file on this machine, with the hashes that the Hub's copy must have."""

    content: Content
    size: int  # bytes
    sha256: str
    blob_id: str  # git's hash: a SHA-1 that covers the size


@dataclass(frozen=True)
class RemoteFile:
    """A file of a repository."""

    size: int  # bytes
    sha256: str | None  # None unless the file is large (LFS)
    blob_id: str  # git's hash of the file, or of the pointer to a large file

    def holds(self, file: File) -> bool:
        """Return whether the content is that of ``file``."""
        same = file.sha256 == self.sha256 if self.sha256 else file.blob_id == self.blob_id
        return same and file.size == self.size


@dataclass(frozen=True)
class Head:
    """The state of a repository. One that does not exist has no commit and no files."""

    repo_id: str
    kind: Kind
    commit: str | None
    files: Mapping[str, RemoteFile]
    tags: Mapping[str, str]  # tag -> commit
    download: Callable[[str], bytes] = field(repr=False, compare=False)
    unsent: Mapping[str, Content] = field(default_factory=dict, repr=False)  # files that a dry run treats as sent

    def read(self, path: str) -> bytes | None:
        """Return a file's content, or None if the repository lacks it."""
        if (content := self.unsent.get(path)) is not None:
            return content if isinstance(content, bytes) else content.read_bytes()
        return self.download(path) if path in self.files else None


@dataclass(frozen=True)
class Changes:
    """The difference between a revision and a head."""

    add: Mapping[str, File]
    remove: tuple[str, ...]
    same: int  # files that need no change

    def __bool__(self) -> bool:
        """Return whether anything changes."""
        return bool(self.add or self.remove)
