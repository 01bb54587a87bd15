"""A repository on the Hub, each step of which can be taken again after any fault."""

from __future__ import annotations

import contextlib
import functools
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import httpx2
from huggingface_hub import CommitOperationAdd, CommitOperationCopy, CommitOperationDelete, HfApi, get_token
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    OfflineModeIsEnabled,
    OIDCError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.hf_api import GitRefs, RepoFile
from huggingface_hub.utils import (  # type: ignore[attr-defined]
    are_progress_bars_disabled,
    disable_progress_bars,
    enable_progress_bars,
    parse_ratelimit_headers,
    validate_repo_id,
)

from temporalwiki.base.errors import InputError, UsageError, in_one_line
from temporalwiki.base.json_files import fingerprint
from temporalwiki.push_scripts.revision import Changes, Head, Kind, RemoteFile, Revision

WAITS = (1.0, 2.0, 4.0, 8.0, 16.0)  # seconds between tries, unless the Hub says how long
_LONGEST_WAIT = 300.0  # seconds that the Hub may ask for
_PASSING = (408, 409, 425, 429, 500, 502, 503, 504)
_PER_UPLOAD = 20  # files; those that were sent are not sent again after a fault
_STAGED = re.compile(r"publish-.*-([0-9a-f]{8})-[0-9a-f]{16}")  # a branch of ours: the commit that it is based on
_ATTRIBUTES = ".gitattributes"  # the Hub adds lines to it by itself
_NO_RIGHT = "take one that may write there (https://huggingface.co/settings/tokens)"

Operation = CommitOperationAdd | CommitOperationCopy | CommitOperationDelete
T = TypeVar("T")


class Repository:
    """One repository on the Hub."""

    def __init__(self, repo_id: str, kind: Kind) -> None:
        """Name a repository; raise UsageError for a name that the Hub refuses."""
        try:
            validate_repo_id(repo_id)
        except HFValidationError as error:
            raise UsageError(f"the Hub refuses the name {repo_id!r}: {in_one_line(error)}") from None
        if "/" not in repo_id:
            raise UsageError(f"{repo_id!r} names no repository: write ORG/NAME, with your user name or organisation")
        self.api = HfApi(library_name="temporalwiki")
        self.repo_id, self.kind = repo_id, kind
        self.name = repo_id if kind == "model" else f"{kind}s/{repo_id}"
        self.url = f"{self.api.endpoint}/{self.name}"

    def head(self) -> Head:
        """Read the repository as it is. Raises InputError where it cannot be read."""
        try:
            refs = self._refs()
        except NotThere:
            return self.nothing()
        commit = _branches(refs).get("main")
        if commit is None:
            raise InputError(f"{self.name}: has no branch main")
        tags = {tag.name: tag.target_commit for tag in refs.tags}
        download = functools.partial(self._download, commit)
        return Head(self.repo_id, self.kind, commit, self._files(commit), tags, download)

    def nothing(self) -> Head:
        """Return the head of a repository that is not there."""
        return Head(self.repo_id, self.kind, None, {}, {}, lambda _path: b"")

    def check_rights(self, head: Head, dry_run: bool) -> None:
        """Raise InputError where this user may not write. A dry run may go without a token."""
        if ask(self.name, get_token) is None:
            if dry_run:
                return
            raise InputError(f"{self.name}: no token: run `hf auth login`, or set HF_TOKEN to one that may write")
        if head.commit is not None:
            try:
                self._ask(lambda: self.api.auth_check(self.repo_id, repo_type=self.kind, write=True))
            except NotThere as error:
                raise InputError(f"{self.name}: this token has no right to write: {_NO_RIGHT}") from error
            return
        me = self._ask(self.api.whoami)
        user, namespace = str(me.get("name")), self.repo_id.split("/")[0]
        roles = {str(org.get("name")): str(org.get("roleInOrg", "")) for org in me.get("orgs") or []}
        if namespace != user and namespace not in roles:
            raise InputError(
                f"{self.name}: is not there, or hidden from you, and you are not in {namespace}; "
                f"you can make it as one of {', '.join([user, *sorted(roles)])}"
            )
        of_token = str(((me.get("auth") or {}).get("accessToken") or {}).get("role", ""))
        if "read" in (of_token, roles.get(namespace)):
            raise InputError(f"{self.name}: this token has no right to write: {_NO_RIGHT}")

    def create(self, space_sdk: str | None) -> Head:
        """Create the repository, unless somebody has by now, and return it.

        Raises InputError where it cannot be created.
        """
        self._ask(lambda: self.api.create_repo(self.repo_id, repo_type=self.kind, exist_ok=True, space_sdk=space_sdk))
        head = self.head()
        if head.commit is None:
            raise InputError(
                f"{self.name}: is made now, but cannot be seen with this token; run the same command again"
            )
        return head

    def commit(self, parent: str, head: Head, revision: Revision, changes: Changes) -> str | None:
        """Make one commit on main, on top of ``parent``, and return it; None where somebody else came first.

        ``parent`` is the commit of ``head``.
        Raises InputError where the Hub takes none.
        """
        content = {path: (file.hashes.sha256, file.size) for path, file in changes.add.items()}
        key = fingerprint(parent, content, changes.remove)
        branch = f"publish-{revision.tag or 'revision'}-{parent[:8]}-{key}"
        deletions = [CommitOperationDelete(path, is_folder=False) for path in changes.remove]
        self._upload(changes)
        try:
            self._ask(
                lambda: self.api.create_branch(
                    self.repo_id, branch=branch, revision=parent, exist_ok=True, repo_type=self.kind
                )
            )
            # anew: what was asked of main for the upload may be of a main that others have moved meanwhile
            additions = [CommitOperationAdd(path, file.content) for path, file in changes.add.items()]
            staged = self._commit_on(branch, parent, revision.message, [*additions, *deletions])
            if staged is None:
                return None
            if differs := _difference(head, changes, self._files(staged)):
                raise InputError(f"{self.name}: the Hub does not have {differs} as it was sent; main is as it was")
            # what was read back, to the byte, and not what may lie on this machine by now
            copies = [CommitOperationCopy(path, path, src_revision=staged) for path in changes.add]
            commit = self._commit_on("main", parent, revision.message, [*copies, *deletions])
        except NotThere:  # the branch: whoever came first has tidied up
            return None
        finally:
            self._delete(branch)
        return commit if commit and _difference(head, changes, self._files(commit)) is None else None

    def commit_of(self, commit: str, revision: Revision) -> str:
        """Return the commit that brought a revision that is there already, at ``commit``, which it is by default."""
        if (mark := revision.mark) is not None:
            infos = self._ask(
                lambda: self.api.get_paths_info(
                    self.repo_id, [mark], expand=True, revision=commit, repo_type=self.kind
                )
            )
            if infos and isinstance(infos[0], RepoFile) and infos[0].last_commit is not None:
                return infos[0].last_commit.oid
        return commit

    def tag(self, tag: str, commit: str) -> None:
        """Tag a commit; raise InputError where the tag is on another one."""

        def send() -> str:
            # without a message, which would make it an object of its own
            self.api.create_tag(self.repo_id, tag=tag, revision=commit, repo_type=self.kind)
            return commit

        def at() -> str | None:
            return {ref.name: ref.target_commit for ref in self._refs().tags}.get(tag)

        found = self._once(send, at, None)
        if found != commit:
            raise InputError(f"{self.name}: somebody else put the tag {tag} on {found}; it was to be on {commit}")

    def tidy(self, head: Head) -> None:
        """Remove the branches that killed publishers left; what is based on another commit can come to nothing."""
        for branch in _branches(self._refs()):
            staged = _STAGED.fullmatch(branch)
            if staged and not (head.commit or "").startswith(staged[1]):
                self._delete(branch)

    def _upload(self, changes: Changes) -> None:
        """Send the large files, which the commit and a rerun find there.

        They belong to the repository, not to a branch, which another publisher might tidy away meanwhile.
        """
        additions = [CommitOperationAdd(path, file.content) for path, file in changes.add.items()]
        terminal = sys.stderr.isatty()
        for first in range(0, len(additions), _PER_UPLOAD):
            send = functools.partial(
                self.api.preupload_lfs_files,
                self.repo_id,
                additions[first : first + _PER_UPLOAD],
                repo_type=self.kind,
                free_memory=False,
            )
            with contextlib.nullcontext() if terminal else _no_bars():
                self._ask(send)
            if not terminal:
                done = min(first + _PER_UPLOAD, len(additions))
                print(f"{self.name}: {done:,} of {len(additions):,} files sent", file=sys.stderr, flush=True)

    def _commit_on(self, branch: str, parent: str, message: str, operations: list[Operation]) -> str | None:
        """Make one commit on a branch that is at ``parent``; return what the branch is at then, None where it is gone.

        That may be somebody else's commit: whoever comes second is refused. A commit whose answer was lost is found.
        """

        def send() -> str:
            with _no_bars(), warnings.catch_warnings():  # the large files are there
                # that a Space has Parquet files; that a card has no header
                warnings.simplefilter("ignore", UserWarning)
                done = self.api.create_commit(
                    self.repo_id,
                    operations,
                    commit_message=message,
                    revision=branch,
                    parent_commit=parent,
                    repo_type=self.kind,
                )
            return str(done.oid)

        commit = self._once(send, lambda: _branches(self._refs()).get(branch), parent)
        if commit == parent:
            raise InputError(
                f"{self.name}: the Hub refused {message!r}, though {branch} is where it was; run it again"
            )
        return commit

    def _delete(self, branch: str) -> None:
        """Remove a branch; what does not go away now does at the next publish."""
        with contextlib.suppress(HfHubHTTPError, httpx2.HTTPError, OSError):
            self.api.delete_branch(self.repo_id, branch=branch, repo_type=self.kind)

    def _refs(self) -> GitRefs:
        return self._ask(lambda: self.api.list_repo_refs(self.repo_id, repo_type=self.kind))

    def _files(self, commit: str) -> dict[str, RemoteFile]:
        entries = self._ask(
            lambda: list(self.api.list_repo_tree(self.repo_id, recursive=True, revision=commit, repo_type=self.kind))
        )
        return {
            entry.path: RemoteFile(entry.size, entry.lfs.sha256 if entry.lfs else None, entry.blob_id)
            for entry in entries
            if isinstance(entry, RepoFile)
        }

    def _download(self, commit: str, path: str) -> bytes:
        found = self._ask(lambda: self.api.hf_hub_download(self.repo_id, path, revision=commit, repo_type=self.kind))
        return Path(found).read_bytes()

    def _once(self, send: Callable[[], str], at: Callable[[], str | None], before: str | None) -> str | None:
        """Send what must not arrive twice, and return where that leaves what is changed.

        After a fault it is looked first where it is ``at``: anywhere but ``before``, and it is not sent again. Where
        the Hub says that it has moved (412), it is looked as well.
        """
        tried = False

        def attempt() -> str | None:
            nonlocal tried
            if tried and (now := at()) != before:
                return now
            tried = True
            try:
                return send()
            except HfHubHTTPError as error:
                if error.response.status_code != 412:
                    raise
                return at()

        return self._ask(attempt)

    def _ask(self, call: Callable[[], T]) -> T:
        return ask(self.name, call)


class NotThere(InputError):
    """The Hub has no such repository, or revision of it, or hides it."""


class Unreachable(InputError):
    """There is no way to the Hub."""


def ask(name: str, call: Callable[[], T]) -> T:
    """Call the Hub, again after faults that pass, for what ``name`` says.

    Raises UsageError for a name that the Hub refuses, NotThere, Unreachable, and InputError for all else.
    """
    waits = iter(WAITS)
    while True:
        try:
            return call()
        except InputError:
            raise
        except HFValidationError as error:
            raise UsageError(f"the Hub refuses the name {name!r}: {in_one_line(error)}") from None
        except GatedRepoError as error:
            raise InputError(f"{name}: is gated: ask for access on its page") from error
        except (RepositoryNotFoundError, RevisionNotFoundError) as error:
            raise NotThere(f"{name}: {_explained(error)}") from error
        except OfflineModeIsEnabled:
            raise Unreachable(f"{name}: HF_HUB_OFFLINE is set, and this needs the Hub") from None
        except OIDCError as error:
            raise InputError(f"{name}: the trusted publisher got no token: {in_one_line(error)}") from error
        # what goes wrong in an upload comes as RuntimeError, or from the Xet client as a kind of OSError
        except (HfHubHTTPError, httpx2.HTTPError, OSError, RuntimeError, ValueError) as error:
            fault = _fault(error)
            status = fault.response.status_code if isinstance(fault, HfHubHTTPError) else None
            wait = next(waits, None)
            cut = isinstance(fault, httpx2.TransportError | ConnectionError)
            passes = status in _PASSING or cut
            if wait is None or not passes:
                again = "; run the same command again to go on" if passes else ""
                raise (Unreachable if cut else InputError)(f"{name}: {_explained(fault)}{again}") from error
            wait = _asked_for(name, fault) or wait
            print(f"{name}: {_explained(fault)}; next try in {wait:.0f} s", file=sys.stderr, flush=True)
            time.sleep(wait)


def _asked_for(name: str, fault: BaseException) -> float | None:
    """Return the seconds that the Hub asks to wait. Raises InputError where that is too long to sit there."""
    if not isinstance(fault, HfHubHTTPError):
        return None
    headers = fault.response.headers
    after, limit = headers.get("retry-after", ""), parse_ratelimit_headers(headers)
    seconds = None
    if after.isdecimal():
        seconds = float(after)
    elif limit is not None and fault.response.status_code == 429:  # it is on every answer
        seconds = float(limit.reset_in_seconds)
    if seconds is not None and seconds > _LONGEST_WAIT:
        raise InputError(f"{name}: the Hub asks to wait for {seconds:.0f} s; run the same command then")
    return seconds


@contextlib.contextmanager
def _no_bars() -> Iterator[None]:
    """Keep the client's bars away."""
    shown = not are_progress_bars_disabled()
    disable_progress_bars()
    try:
        yield
    finally:
        if shown:
            enable_progress_bars()


def _branches(refs: GitRefs) -> dict[str, str]:
    return {branch.name: branch.target_commit for branch in refs.branches}


def _difference(head: Head, changes: Changes, files: Mapping[str, RemoteFile]) -> str | None:
    """Return a path where ``files`` are not what ``changes`` make of ``head``; None where there is none."""
    expected = {path for path in head.files if path not in changes.remove} | set(changes.add)
    for path in sorted((expected ^ set(files)) - {_ATTRIBUTES}):
        return path
    for path, file in changes.add.items():
        if not files[path].holds(file):
            return path
    untouched = expected - set(changes.add) - {_ATTRIBUTES}
    return next((path for path in sorted(untouched) if files[path] != head.files[path]), None)


def _fault(error: BaseException) -> BaseException:
    """Return what the Hub or the network answered, which the client wraps at times."""
    inner: BaseException | None = error
    while inner is not None:
        if isinstance(inner, HfHubHTTPError | httpx2.TransportError):
            return inner
        inner = inner.__cause__
    return error


def _explained(fault: BaseException) -> str:
    if isinstance(fault, HfHubHTTPError):
        status, said = fault.response.status_code, fault.server_message or fault.response.reason_phrase
        if status in (401, 403):
            return f"not allowed ({in_one_line(said)}): {_NO_RIGHT}"
        request = fault.response.request
        asked = f"{request.method} {request.url.path}"
        return f"the Hub answered {status} to {asked}: {in_one_line(said)}"
    if isinstance(fault, httpx2.TransportError | ConnectionError):
        said = in_one_line(fault) or type(fault).__name__
        return f"the Hub cannot be reached ({said})"
    return in_one_line(fault)
