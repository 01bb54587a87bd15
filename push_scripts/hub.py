"""A repository on the Hub. Each step can be repeated after any fault.

huggingface_hub repeats uploads and listings after a fault. It does not repeat commits, requests about branches, tags
and refs, or steps that failed halfway, and it cannot find a commit whose answer was lost. This module does these
things.
"""

import contextlib
import functools
import re
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import httpx2
from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, errors, get_token
from huggingface_hub.errors import HfHubHTTPError
from huggingface_hub.hf_api import GitRefs, RepoFile
from huggingface_hub.utils import (  # type: ignore[attr-defined]
    are_progress_bars_disabled,
    disable_progress_bars,
    enable_progress_bars,
    parse_ratelimit_headers,
    validate_repo_id,
)

from temporalwiki.base.errors import InputError, UsageError, in_one_line
from temporalwiki.base.files import read_small
from temporalwiki.base.progress import Progress
from temporalwiki.base.terminal import say
from temporalwiki.push_scripts.repository_state import Changes, Head, Kind, RemoteFile, Revision

WAITS = (1.0, 2.0, 4.0, 8.0, 16.0)  # seconds between attempts, unless the Hub asks for another wait
_LONGEST_WAIT = 300.0  # seconds
_TEMPORARY = (408, 409, 425, 429, 500, 502, 503, 504)  # status codes
_PER_UPLOAD = 20  # files; after a fault only these are sent again
_SMALL = 10 * 2**20  # bytes; the Hub takes larger files only as LFS
_ATTRIBUTES = ".gitattributes"  # the Hub itself adds lines to it
_NO_RIGHT = "use a token that may write there (https://huggingface.co/settings/tokens)"

T = TypeVar("T")


class Repository:
    """One repository on the Hub."""

    def __init__(self, repo_id: str, kind: Kind, waits: Sequence[float] = WAITS) -> None:
        """Raise UsageError for a name that the Hub refuses. ``waits`` are the seconds between attempts."""
        ask(repo_id, lambda: validate_repo_id(repo_id))
        if "/" not in repo_id:
            raise UsageError(
                f"{repo_id!r} is not the name of a repository: write ORG/NAME, with your user name or organisation"
            )
        self.api = HfApi(library_name="temporalwiki")
        self.repo_id, self.kind, self._waits = repo_id, kind, waits
        self.name = repo_id if kind == "model" else f"{kind}s/{repo_id}"
        self.url = f"{self.api.endpoint}/{self.name}"

    def head(self, revision: str = "main") -> Head:
        """Return the state of the repository at a branch, tag or commit. Raises InputError if it cannot be read."""
        try:
            refs = self._refs()
        except NotFound:
            return self.absent()
        tags = {tag.name: tag.target_commit for tag in refs.tags}
        commit = (tags | _branches(refs)).get(revision)
        if commit is None and re.fullmatch("[0-9a-f]{40}", revision):
            commit = revision
        if commit is None:
            raise InputError(f"{self.name}: it has no branch or tag {revision}")
        download = functools.partial(self._download, commit)
        return Head(self.repo_id, self.kind, commit, self._files(commit), tags, download)

    def absent(self) -> Head:
        """Return the head of a repository that does not exist."""
        return Head(self.repo_id, self.kind, None, {}, {}, lambda _path: b"")

    def check_rights(self, head: Head, dry_run: bool) -> None:
        """Raise InputError if this user may not write. A dry run needs no token."""
        if ask(self.name, get_token) is None:
            if dry_run:
                return
            raise InputError(f"{self.name}: no token: run `hf auth login`, or set HF_TOKEN to one that may write")
        if head.commit is not None:
            try:
                self._ask(lambda: self.api.auth_check(self.repo_id, repo_type=self.kind, write=True))
            except NotFound as error:
                raise InputError(f"{self.name}: this token has no right to write: {_NO_RIGHT}") from error
            return
        me = self._ask(self.api.whoami)
        user, namespace = str(me.get("name")), self.repo_id.split("/")[0]
        roles = {str(org.get("name")): str(org.get("roleInOrg", "")) for org in me.get("orgs") or []}
        if namespace != user and namespace not in roles:
            raise InputError(
                f"{self.name}: it does not exist or is hidden from you, and you are not in {namespace}; "
                f"you can create it as {' or '.join([user, *sorted(roles)])}"
            )
        token_role = str(((me.get("auth") or {}).get("accessToken") or {}).get("role", ""))
        if "read" in (token_role, roles.get(namespace)):
            raise InputError(f"{self.name}: this token has no right to write: {_NO_RIGHT}")

    def create(self, space_sdk: str | None) -> Head:
        """Create the repository, unless somebody else just did, and return its state.

        Raises InputError if it cannot be created.
        """
        self._ask(lambda: self.api.create_repo(self.repo_id, repo_type=self.kind, exist_ok=True, space_sdk=space_sdk))
        head = self.head()
        if head.commit is None:
            raise InputError(f"{self.name}: created, but this token cannot see it; run the same command again")
        return head

    def commit(self, parent: str, head: Head, revision: Revision, changes: Changes) -> str | None:
        """Make one commit on main and return it, or None if somebody else committed first.

        ``parent`` is the commit of ``head``. Raises InputError if the Hub refuses the commit, or if a file is not the
        one that was hashed any more; main is then unchanged.
        """
        self._upload(changes)
        # new operations: the ones of the upload remember the state of main at that time
        operations: list[CommitOperationAdd | CommitOperationDelete] = list(self._additions(changes))
        operations += [CommitOperationDelete(path, is_folder=False) for path in changes.remove]

        def send() -> str:
            with _no_bars(), warnings.catch_warnings():  # the large files are sent already
                # about Parquet files in a Space, and cards without a header
                warnings.simplefilter("ignore", UserWarning)
                done = self.api.create_commit(
                    self.repo_id,
                    operations,
                    commit_message=revision.message,
                    revision="main",
                    parent_commit=parent,
                    repo_type=self.kind,
                )
            return str(done.oid)

        commit = self._once(send, lambda: _branches(self._refs()).get("main"), parent)
        if commit == parent:
            raise InputError(
                f"{self.name}: the Hub refused {revision.message!r}, although main has not moved; run it again"
            )
        return commit if commit and _difference(head, changes, self._files(commit)) is None else None

    def commit_of(self, commit: str, revision: Revision) -> str:
        """Return the commit for the tag of a published revision: the commit of its ``mark``, else ``commit``."""
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
        """Tag a commit. Raises InputError if somebody else put the tag on another one."""

        def send() -> str:
            # no message: with one, the tag would point to a tag object
            self.api.create_tag(self.repo_id, tag=tag, revision=commit, repo_type=self.kind)
            return commit

        def state() -> str | None:
            return {ref.name: ref.target_commit for ref in self._refs().tags}.get(tag)

        found = self._once(send, state, None)
        if found != commit:
            raise InputError(f"{self.name}: somebody else put the tag {tag} on {found}, not on {commit}")

    def _additions(self, changes: Changes) -> Iterator[CommitOperationAdd]:
        """Yield an operation for each file. Raises InputError for a file that has changed since it was hashed.

        Small files are read here, once. The Hub itself checks the hashes of the large ones.
        """
        for path, file in changes.add.items():
            content = file.content
            if isinstance(content, Path) and file.size <= _SMALL:
                content = content.read_bytes()
            addition = CommitOperationAdd(path, content)
            if addition.upload_info.sha256.hex() != file.sha256:
                raise InputError(f"{self.name}: {path} has changed meanwhile; main is unchanged, run it again")
            yield addition

    def _upload(self, changes: Changes) -> None:
        """Send the large files before the commit, so that a rerun need not send them again."""
        additions = list(self._additions(changes))
        with _no_bars(), Progress(f"{self.name}: upload", len(additions), "files") as progress:
            for first in range(0, len(additions), _PER_UPLOAD):
                batch = additions[first : first + _PER_UPLOAD]
                send = functools.partial(
                    self.api.preupload_lfs_files, self.repo_id, batch, repo_type=self.kind, free_memory=False
                )
                self._ask(send)
                if ignored := [addition.path_in_repo for addition in batch if addition._should_ignore]:
                    raise InputError(f"{self.name}: its .gitignore leaves out {', '.join(ignored)}; main is unchanged")
                progress.update(len(batch))

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
        return read_small(Path(found))

    def _once(self, send: Callable[[], str], state: Callable[[], str | None], before: str | None) -> str | None:
        """Send a request that must not arrive twice, and return the state that it leads to.

        After a fault, it is sent again only if the state is still ``before``. If the Hub answers that the state has
        changed (412), the new state is returned.
        """
        sent = False

        def attempt() -> str | None:
            nonlocal sent
            if sent and (now := state()) != before:
                return now
            sent = True
            try:
                return send()
            except HfHubHTTPError as error:
                if error.response.status_code != 412:
                    raise
                return state()

        return self._ask(attempt)

    def _ask(self, call: Callable[[], T]) -> T:
        return ask(self.name, call, self._waits)


class NotFound(InputError):
    """The Hub lacks or hides the repository or the revision."""


class Unreachable(InputError):
    """The Hub does not answer."""


def ask(name: str, call: Callable[[], T], waits: Sequence[float] = WAITS) -> T:
    """Call the Hub, and try again after temporary faults. Error messages begin with ``name``.

    Raises UsageError for a name that the Hub refuses, NotFound, Unreachable, and InputError for all other faults.
    """
    left = iter(waits)
    while True:
        try:
            return call()
        except InputError:
            raise
        except errors.HFValidationError as error:
            raise UsageError(f"the Hub refuses the name {name!r}: {in_one_line(error)}") from None
        except errors.GatedRepoError as error:
            raise InputError(f"{name}: it is gated; ask for access on its page") from error
        except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError) as error:
            raise NotFound(f"{name}: {_explained(error)}") from error
        except errors.OfflineModeIsEnabled:
            raise Unreachable(f"{name}: HF_HUB_OFFLINE is set, but this needs the Hub") from None
        except errors.OIDCError as error:
            raise InputError(f"{name}: the trusted publisher got no token: {in_one_line(error)}") from error
        # an upload raises RuntimeError, or a kind of OSError in the Xet client
        except (HfHubHTTPError, httpx2.HTTPError, OSError, RuntimeError, ValueError) as error:
            fault = _fault(error)
            status = fault.response.status_code if isinstance(fault, HfHubHTTPError) else None
            wait = next(left, None)
            cut = isinstance(fault, httpx2.TransportError | ConnectionError)
            temporary = status in _TEMPORARY or cut
            if wait is None or not temporary:
                again = "; run the same command again to go on" if temporary else ""
                raise (Unreachable if cut else InputError)(f"{name}: {_explained(fault)}{again}") from error
            wait = _wait_of(name, fault) or wait
            say(f"{name}: {_explained(fault)}; next attempt in {wait:.0f} s")
            time.sleep(wait)


def _wait_of(name: str, fault: BaseException) -> float | None:
    """Return the seconds that the Hub asks to wait. Raises InputError if they are too many."""
    if not isinstance(fault, HfHubHTTPError):
        return None
    headers = fault.response.headers
    after, limit = headers.get("retry-after", ""), parse_ratelimit_headers(headers)
    seconds = float(after) if after.isdecimal() else None
    if seconds is None and limit is not None and fault.response.status_code == 429:  # it is on every answer
        seconds = float(limit.reset_in_seconds)
    if seconds is not None and seconds > _LONGEST_WAIT:
        raise InputError(f"{name}: the Hub asks to wait for {seconds:.0f} s; run the same command after that")
    return seconds


@contextlib.contextmanager
def _no_bars() -> Iterator[None]:
    """Hide the progress bars of huggingface_hub."""
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
    """Return the first path where ``files`` are not what ``head`` would be after ``changes``, or None."""
    expected = (head.files.keys() - set(changes.remove)) | changes.add.keys()
    different = expected ^ files.keys()
    for path in expected & files.keys():
        sent = changes.add.get(path)
        if not (files[path].holds(sent) if sent else files[path] == head.files[path]):
            different.add(path)
    return min(different - {_ATTRIBUTES}, default=None)


def _fault(error: BaseException) -> BaseException:
    """Return the answer of the Hub or the network, which huggingface_hub may wrap in other errors."""
    fault = error
    while not isinstance(fault, HfHubHTTPError | httpx2.TransportError):
        if fault.__cause__ is None:
            return error
        fault = fault.__cause__
    return fault


def _explained(fault: BaseException) -> str:
    if isinstance(fault, HfHubHTTPError):
        status, answer = fault.response.status_code, fault.server_message or fault.response.reason_phrase
        if status in (401, 403):
            return f"not allowed ({in_one_line(answer)}): {_NO_RIGHT}"
        request = fault.response.request
        return f"the Hub answered {status} to {request.method} {request.url.path}: {in_one_line(answer)}"
    if isinstance(fault, httpx2.TransportError | ConnectionError):
        return f"the Hub cannot be reached ({in_one_line(fault) or type(fault).__name__})"
    return in_one_line(fault)
