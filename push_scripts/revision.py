"""One revision of a repository on the Hub, published whole or not at all.

A revision is one commit, which names its parent, so the Hub refuses it (412) if `main` has moved. It is read back, and
the tag comes last. So `main` can be loaded at every moment, a rerun completes the work of a killed publisher, and if
two publishers run at once, the slower one starts over from the commit of the other.
"""

import functools
import hashlib
import io
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, Literal

from temporalwiki.base.errors import InputError
from temporalwiki.base.files import read_small
from temporalwiki.base.json_files import fingerprint
from temporalwiki.model_cards.edits import keep_edits
from temporalwiki.push_scripts.repository_state import Changes, Content, File, Head, Kind, RemoteFile, Revision

_ATTEMPTS = 10  # to commit before another publisher does
# files that the Hub itself puts into a new Space
_NEW_SPACE = {
    "gradio": {".gitattributes", "README.md"},
    "static": {".gitattributes", "README.md", "index.html", "style.css"},
}


def publish(
    repo_id: str,
    kind: Kind,
    plan: Callable[[Head], list[Revision]],
    *,
    dry_run: bool = False,
    space_sdk: str | None = None,
) -> Iterator[str]:
    """Publish the revisions that ``plan`` returns, and yield a line for each step.

    ``plan`` gets the state of the repository and returns the revisions that it should have, oldest first. It runs
    again after each revision, and after another publisher's commit. Before anything is sent, it runs once for each
    revision, so its errors come first. With ``dry_run`` nothing is sent, and the lines say exactly what would be.

    Raises UsageError for a name that the Hub refuses, and InputError if this user may not write, the Hub cannot be
    reached, or the Hub refuses the revision.
    """
    from temporalwiki.push_scripts.hub import Repository, Unreachable  # huggingface_hub takes a second to import

    repository = Repository(repo_id, kind)
    create = f"{repository.name}: create the repository{f', a Space of kind {space_sdk}' if space_sdk else ''}"
    try:
        head = repository.head()
    except Unreachable as error:
        if not dry_run:
            raise
        yield f"{error}: the lines below are for a new repository"
        head = repository.absent()
    else:
        repository.check_rights(head, dry_run)
    rehearsed = list(_rehearsal(plan, head))  # before anything is sent: an error in a later revision stops all
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
    overtaken = sent = 0
    while (next_one := _next(plan(head), head)) is not None:
        revision, changes = next_one
        parent = head.commit
        if parent is None:
            raise InputError(
                f"{repository.name}: somebody has just deleted it; run the same command to create it again"
            )
        yield from _description(repository.name, head, revision, changes)
        if changes:
            commit = repository.commit(parent, head, revision, changes)
        else:
            commit = repository.commit_of(parent, revision)
        if commit is None:
            overtaken += 1
            if overtaken == _ATTEMPTS:
                raise InputError(f"{repository.name}: others came first {_ATTEMPTS} times; run the same command again")
            yield f"{repository.name}: somebody else has changed it: starting over from their commit"
        else:
            if revision.tag:
                repository.tag(revision.tag, commit)
            sent += 1
            yield f"{repository.url}/tree/{revision.tag or commit}"
        head = repository.head()
    if not sent:
        yield f"{repository.name}: up to date"


def publish_space(
    repo_id: str, revision: Revision, sdk: Literal["static", "gradio"], mark: str, own: re.Pattern[str], dry_run: bool
) -> Iterator[str]:
    """Publish a Space; files of it that match ``own`` and are not in the revision are removed.

    What people wrote into its card stays (``model_cards.edits``).

    Raises InputError for a Space that lacks the file ``mark`` and is not new, and what ``publish`` raises.
    """

    def plan(head: Head) -> list[Revision]:
        if mark not in head.files and (others := sorted(head.files.keys() - _NEW_SPACE[sdk])):
            raise InputError(
                f"spaces/{head.repo_id}: it has no {mark}, but {others[0]}: it is for something else; choose another"
            )
        old = [path for path in sorted(head.files) if own.fullmatch(path) and path not in revision.files]
        card = revision.files["README.md"]
        text = (card if isinstance(card, bytes) else read_small(card)).decode("utf-8", "replace")
        files = {**revision.files, "README.md": keep_edits(text, head.read("README.md")).encode()}
        return [replace(revision, files=files, remove=tuple(old))]

    yield from publish(repo_id, "space", plan, dry_run=dry_run, space_sdk=sdk)


def read_file(content: Content) -> File:
    """Return a file with its hashes. A file on disk is read only once, unless it changes."""
    if isinstance(content, bytes):
        return _hashed(content, len(content), io.BytesIO(content))
    stat = content.stat()
    return _read_from_disk(content, stat.st_size, stat.st_mtime_ns)


@functools.cache
def _read_from_disk(path: Path, size: int, _modified: int) -> File:
    with path.open("rb") as file:
        return _hashed(path, size, file)


def _hashed(content: Content, size: int, file: BinaryIO) -> File:
    sha256, blob = hashlib.sha256(), hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    while block := file.read(1 << 20):
        sha256.update(block)
        blob.update(block)
    return File(content, size, sha256.hexdigest(), blob.hexdigest())


def _rehearsal(plan: Callable[[Head], list[Revision]], head: Head) -> Iterator[tuple[Head, Revision, Changes]]:
    """Yield the missing revisions, each with the head that the earlier ones lead to and the changes to that head."""
    while (next_one := _next(plan(head), head)) is not None:
        yield (head, *next_one)
        head = _head_after(head, *next_one)


def _next(revisions: list[Revision], head: Head) -> tuple[Revision, Changes] | None:
    """Return the first revision that the repository lacks."""
    for revision in revisions:
        changes = _changes(revision, head)
        if changes and revision.tag and revision.tag in head.tags:
            raise InputError(
                f"{head.repo_id}: the tag {revision.tag} exists already, on commit {head.tags[revision.tag]}, and a "
                "tag never moves; choose another one with --tag"
            )
        if changes or (revision.tag and revision.tag not in head.tags):
            return revision, changes
    return None


def _changes(revision: Revision, head: Head) -> Changes:
    files = {path: read_file(content) for path, content in sorted(revision.files.items())}
    same = {path for path, file in files.items() if path in head.files and head.files[path].holds(file)}
    add = {path: file for path, file in files.items() if path not in same}
    return Changes(add, tuple(path for path in sorted(revision.remove) if path in head.files), len(same))


def _description(name: str, head: Head, revision: Revision, changes: Changes) -> Iterator[str]:
    """Yield lines that list the changes of a revision."""
    yield f"{name}: {revision.message if changes else 'nothing to commit'}"
    for path, file in changes.add.items():
        sign, was = ("~", f" (was {head.files[path].size:,})") if path in head.files else ("+", "")
        yield f"  {sign} {path}  {file.size:,} bytes{was}, sha256 {file.sha256[:16]}"
    for path in changes.remove:
        yield f"  - {path}  {head.files[path].size:,} bytes"
    if changes.same:
        yield f"  = {changes.same:,} file{'s' if changes.same > 1 else ''} there already"
    if revision.tag and revision.tag not in head.tags:
        yield f"  tag {revision.tag}"


def _head_after(head: Head, revision: Revision, changes: Changes) -> Head:
    """Return the head that a revision would lead to."""
    files = {path: file for path, file in head.files.items() if path not in changes.remove}
    files |= {path: RemoteFile(file.size, file.sha256, "") for path, file in changes.add.items()}
    commit = fingerprint(head.commit, sorted(changes.add), changes.remove) if changes else head.commit or ""
    tags = {**head.tags, revision.tag: commit} if revision.tag else head.tags
    unsent = {**head.unsent, **{path: file.content for path, file in changes.add.items()}}
    return replace(head, commit=commit, files=files, tags=tags, unsent=unsent)
