"""One revision of a repository on the Hub, published whole or not at all.

A revision is one commit. It is first made on a branch of its own and read back there; then `main` gets the same
commit, on the condition that it has not moved since (its parent is named, and the Hub answers 412 otherwise); last
comes the tag. So `main` can be loaded at every moment, a publisher that was killed is finished by a rerun, and of two
publishers at once the later one starts over from what the first has made.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, NamedTuple

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.base.json_files import fingerprint

Kind = Literal["dataset", "model", "space"]
Content = Path | bytes

# git takes no others, or takes them for a branch or a commit; a commit that cannot be tagged stays without for ever
_TAG = re.compile(r"(?!(?:main|HEAD|[0-9a-f]{7,40})\Z)(?!.*(?:\.\.|\.lock\Z|\.\Z))[A-Za-z0-9][A-Za-z0-9._-]{0,80}")
_STARTS = 10  # how often others may come first


@dataclass(frozen=True)
class Revision:
    """What a repository is to hold."""

    message: str  # the commit's
    files: Mapping[str, Content]  # path in the repository -> content; what is there already is not sent
    remove: tuple[str, ...] = ()  # paths, where they are there
    tag: str | None = None  # made on the commit
    mark: str | None = None  # where all is there already, the tag belongs to the last commit that changed this file

    def __post_init__(self) -> None:
        """Refuse what cannot be a tag."""
        if self.tag is not None and not _TAG.fullmatch(self.tag):
            raise UsageError(f"{self.tag!r} cannot be a tag: write letters, digits, dots and dashes, such as 2021.12")


class Hashes(NamedTuple):
    """Of a file's content, in hex."""

    sha256: str
    blob_id: str  # git's own: a SHA-1 that covers the size


@dataclass(frozen=True)
class File:
    """A file on this machine as it was when it was read; the Hub is held to that."""

    content: Content
    size: int  # bytes
    hashes: Hashes


@dataclass(frozen=True)
class RemoteFile:
    """A file of a repository."""

    size: int  # bytes
    sha256: str | None  # of a large file (LFS)
    blob_id: str  # as git has it; of a large file that of its pointer

    def holds(self, file: File) -> bool:
        """Tell whether this is the file's content."""
        same = file.hashes.sha256 == self.sha256 if self.sha256 else file.hashes.blob_id == self.blob_id
        return same and file.size == self.size


@dataclass(frozen=True)
class Head:
    """A repository as it is now. One that does not exist has no commit and no files."""

    repo_id: str
    kind: Kind
    commit: str | None
    files: Mapping[str, RemoteFile]
    tags: Mapping[str, str]  # tag -> commit
    download: Callable[[str], bytes] = field(repr=False, compare=False)
    unsent: Mapping[str, Content] = field(default_factory=dict, repr=False)  # what a dry run takes as sent

    def read(self, path: str) -> bytes | None:
        """Return a file's content, None where there is no such file."""
        if (content := self.unsent.get(path)) is not None:
            return content if isinstance(content, bytes) else content.read_bytes()
        return self.download(path) if path in self.files else None


@dataclass(frozen=True)
class Changes:
    """What a revision changes in a head."""

    add: Mapping[str, File]
    remove: tuple[str, ...]
    kept: int  # files that are there as they are to be

    def __bool__(self) -> bool:
        """Tell whether anything changes."""
        return bool(self.add or self.remove)


def publish(
    repo_id: str,
    kind: Kind,
    plan: Callable[[Head], list[Revision]],
    *,
    dry_run: bool = False,
    space_sdk: str | None = None,
) -> Iterator[str]:
    """Bring a repository to what ``plan`` says, and yield lines that say what is done.

    ``plan`` gets the repository as it is and returns the revisions that it is to have, oldest first. It is asked again
    after each of them, and when another publisher came first. All is planned once before anything is sent, so that
    what ``plan`` raises comes first. With ``dry_run`` nothing is sent, and the lines say exactly what would be.

    Raises UsageError for a name that the Hub refuses, InputError where there is no token or no right to write, and
    where the Hub cannot be reached or does not take the revision.
    """
    from temporalwiki.push_scripts.hub import Repository, Unreachable  # the Hub's client takes a second to import

    repository = Repository(repo_id, kind)
    create = f"{repository.name}: create the repository{f', a Space of kind {space_sdk}' if space_sdk else ''}"
    try:
        head = repository.head()
    except Unreachable as error:
        if not dry_run:
            raise
        yield f"{error}: this is what a repository that is not there would get"
        head = repository.nothing()
    else:
        repository.check_rights(head, dry_run)
    rehearsed = list(_rehearsal(plan, head))  # what is refused of a later revision is so before an earlier one is sent
    if dry_run:
        if head.commit is None and rehearsed:
            yield create
        for before, revision, changes in rehearsed:
            yield from _description(repository.name, before, revision, changes)
        yield f"{repository.name}: dry run, nothing was sent"
        return
    if head.commit is None and rehearsed:
        yield create
        head = repository.create(space_sdk)
    behind = sent = 0
    while (next_one := _next(plan(head), head)) is not None:
        revision, changes = next_one
        parent = head.commit
        if parent is None:
            raise InputError(f"{repository.name}: somebody removed it meanwhile; the same command makes it again")
        yield from _description(repository.name, head, revision, changes)
        if changes:
            commit = repository.commit(parent, head, revision, changes)
        else:
            commit = repository.commit_of(parent, revision)
        if commit is None:
            behind += 1
            if behind == _STARTS:
                raise InputError(f"{repository.name}: others came first {_STARTS} times; run the same command again")
            yield f"{repository.name}: changed by somebody else in between: starting over from what they made"
        else:
            if revision.tag:
                repository.tag(revision.tag, commit)
            sent += 1
            yield f"{repository.url}/tree/{revision.tag or commit}"
        head = repository.head()
    if not sent:
        yield f"{repository.name}: all of it is there already"
    repository.tidy(head)


def read_file(content: Content) -> File:
    """Return a file with the hashes by which the Hub knows it. It is read once, unless it changes."""
    if isinstance(content, bytes):
        blob = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False)
        return File(content, len(content), Hashes(hashlib.sha256(content).hexdigest(), blob.hexdigest()))
    stat = content.stat()
    return File(content, stat.st_size, _hashes(content, stat.st_size, stat.st_mtime_ns))


@functools.cache
def _hashes(path: Path, size: int, _modified: int) -> Hashes:
    sha256, blob = hashlib.sha256(), hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            sha256.update(block)
            blob.update(block)
    return Hashes(sha256.hexdigest(), blob.hexdigest())


def _rehearsal(plan: Callable[[Head], list[Revision]], head: Head) -> Iterator[tuple[Head, Revision, Changes]]:
    """Yield each revision that is to be made, with what it changes in the head that there would be then."""
    while (next_one := _next(plan(head), head)) is not None:
        yield (head, *next_one)
        head = _as_if(head, *next_one)


def _next(revisions: list[Revision], head: Head) -> tuple[Revision, Changes] | None:
    """Return the first revision that the repository does not have yet."""
    for revision in revisions:
        changes = _changes(revision, head)
        if changes and revision.tag and revision.tag in head.tags:
            raise InputError(
                f"{head.repo_id}: the tag {revision.tag} is there already, on commit {head.tags[revision.tag]}, and a "
                "tag never changes its meaning; name another with --tag"
            )
        if changes or (revision.tag and revision.tag not in head.tags):
            return revision, changes
    return None


def _changes(revision: Revision, head: Head) -> Changes:
    files = {path: read_file(content) for path, content in sorted(revision.files.items())}
    there = {path for path, file in files.items() if path in head.files and head.files[path].holds(file)}
    add = {path: file for path, file in files.items() if path not in there}
    return Changes(add, tuple(path for path in sorted(revision.remove) if path in head.files), len(there))


def _description(name: str, head: Head, revision: Revision, changes: Changes) -> Iterator[str]:
    """Say exactly what a revision changes."""
    yield f"{name}: {revision.message if changes else 'nothing to commit'}"
    for path, file in changes.add.items():
        sign, was = ("~", f" (was {head.files[path].size:,})") if path in head.files else ("+", "")
        yield f"  {sign} {path}  {file.size:,} bytes{was}, sha256 {file.hashes.sha256[:16]}"
    for path in changes.remove:
        yield f"  - {path}  {head.files[path].size:,} bytes"
    if changes.kept:
        yield f"  = {changes.kept:,} file{'s' if changes.kept > 1 else ''} there already"
    if revision.tag and revision.tag not in head.tags:
        yield f"  tag {revision.tag}"


def _as_if(head: Head, revision: Revision, changes: Changes) -> Head:
    """Return the head that there would be."""
    files = {path: file for path, file in head.files.items() if path not in changes.remove}
    files |= {path: RemoteFile(file.size, file.hashes.sha256, "") for path, file in changes.add.items()}
    commit = fingerprint(head.commit, sorted(changes.add), changes.remove) if changes else head.commit or ""
    tags = {**head.tags, revision.tag: commit} if revision.tag else head.tags
    unsent = {**head.unsent, **{path: file.content for path, file in changes.add.items()}}
    return replace(head, commit=commit, files=files, tags=tags, unsent=unsent)
