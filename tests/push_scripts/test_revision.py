"""A revision reaches the Hub whole or not at all, even if requests fail."""

import contextlib
import hashlib
import itertools
import multiprocessing
import os
import signal
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import constants

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.push_scripts import hub as client
from temporalwiki.push_scripts.repository_state import Head, RemoteFile, Revision
from temporalwiki.push_scripts.revision import publish, read_file

from a_revision import AFTER, BIG, NEW_README, OLD, REPO, REVISION, plan, publish_it
from loopback_hub import LoopbackHub

Hubs = Generator[tuple[int, LoopbackHub], None, None]


def files(hub: LoopbackHub, revision: str = "main", repo_id: str = REPO) -> dict[str, bytes]:
    return {p: c for p, c in hub.repo("dataset", repo_id).files(revision).items() if p != ".gitattributes"}


def assert_published(hub: LoopbackHub) -> None:
    """The revision is there, once, with its tag, and nothing is left over."""
    repo = hub.repo("dataset", REPO)
    assert files(hub) == AFTER
    assert files(hub, "2021.12") == AFTER
    assert set(repo.branches) == {"main"}
    assert [c.title for c in repo.commits("main")].count("2021.12: new") == 1
    assert all(state in (OLD, AFTER) for state in _states(hub))


def _states(hub: LoopbackHub) -> list[dict[str, bytes]]:
    """What main has held since the old files were there."""
    repo = hub.repo("dataset", REPO)
    found = [files(hub, commit.oid) for commit in repo.commits("main")]
    return [state for state in found if state]  # the first commit is empty


@pytest.fixture
def hubs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hubs]:
    """Number from 1, and give each number a Hub of its own with the old files."""

    def numbered() -> Hubs:
        for number in itertools.count(1):
            with LoopbackHub() as hub, monkeypatch.context() as patch:
                hub.add_user("me", "hf_me", orgs={"ORG": "write"})
                hub.online(patch, token="hf_me", home=tmp_path / "huggingface")
                patch.setattr(client.time, "sleep", lambda _seconds: None)
                hub.commit("dataset", REPO, OLD)
                yield number, hub

    with contextlib.closing(numbered()) as found:
        yield found


@pytest.fixture
def old(hub: LoopbackHub) -> LoopbackHub:
    hub.commit("dataset", REPO, OLD)
    hub.requests.clear()
    return hub


def run(repo_id: str = REPO, dry_run: bool = False) -> list[str]:
    return list(publish(repo_id, "dataset", plan, dry_run=dry_run))


def test_a_revision_changes_what_it_names_and_leaves_the_rest(old: LoopbackHub) -> None:
    lines = run()
    assert_published(old)
    assert lines[-1] == f"{old.endpoint}/datasets/{REPO}/tree/2021.12"


def test_a_repository_that_is_not_there_is_made(hub: LoopbackHub) -> None:
    lines = run()
    assert lines[0] == f"datasets/{REPO}: create the repository"
    assert files(hub) == {"README.md": b"# New\n", "b.parquet": BIG + b"new", "c.txt": b"c"}


def test_a_second_run_does_nothing(old: LoopbackHub) -> None:
    run()
    old.requests.clear()
    assert run() == [f"datasets/{REPO}: up to date"]
    assert {request.method for request in old.requests} == {"GET"}
    assert_published(old)


def test_a_dry_run_says_each_operation_and_sends_nothing(old: LoopbackHub) -> None:
    def sha(content: bytes) -> str:
        return hashlib.sha256(content).hexdigest()[:16]

    assert run(dry_run=True) == [
        f"datasets/{REPO}: 2021.12: new",
        f"  ~ README.md  6 bytes (was 6), sha256 {sha(NEW_README)}",
        f"  + b.parquet  5,127 bytes, sha256 {sha(BIG + b'new')}",
        f"  + c.txt  1 bytes, sha256 {sha(b'c')}",
        "  - gone.txt  4 bytes",
        "  tag 2021.12",
        f"datasets/{REPO}: dry run, nothing was sent",
    ]
    assert {request.method for request in old.requests} == {"GET"}
    assert files(old) == OLD


def test_a_dry_run_of_several_revisions_takes_each_as_done_for_the_next(hub: LoopbackHub) -> None:
    def months(head: Head) -> list[Revision]:
        there = head.read("log.txt") or b""
        if there == b"12":
            return []
        number = len(there) + 1
        return [Revision(f"month {number}", {"log.txt": there + b"%d" % number}, tag=f"v{number}")]

    said = list(publish(REPO, "dataset", months, dry_run=True))
    assert [line for line in said if "month" in line] == [f"datasets/{REPO}: month 1", f"datasets/{REPO}: month 2"]
    done = list(publish(REPO, "dataset", months))
    assert [line for line in done if "  " in line] == [line for line in said if "  " in line]
    assert files(hub, "v1") == {"log.txt": b"1"}
    assert files(hub, "v2") == {"log.txt": b"12"}


FAULTS = {
    "cut before it is handled": {"cut": True},
    "cut after it is handled": {"cut": True, "after": True},
    "409": {"status": 409},
    "429, wait 2 s": {"status": 429, "headers": {"Retry-After": "2"}},
    "500": {"status": 500},
    "500 after it is handled": {"status": 500, "after": True},
    "503 for long": {"status": 503, "times": 60},
    "412": {"status": 412},
}


@pytest.mark.fault(
    "dead network in a push",
    "every request of a push fails in every way: cut, 409, 412, 429, 5xx",
    "main is complete at every moment, and a rerun completes the push",
)
@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_request_fails_main_is_whole_and_a_rerun_completes(fault: str, hubs: Hubs) -> None:
    """Each request of a publish fails in turn."""
    failed = 0
    for number, hub in hubs:
        hub.fault("*", "", nth=number, **FAULTS[fault])  # type: ignore[arg-type]
        try:
            run()
        except InputError as error:
            failed += 1
            assert str(error).startswith(f"datasets/{REPO}: ")
            assert "\n" not in str(error)
        struck = len(hub.requests) >= number
        assert all(state in (OLD, AFTER) for state in _states(hub))
        hub._faults.clear()
        run()
        assert_published(hub)
        if not struck:
            break
    assert number > 10  # it was struck at each of the requests
    assert (failed > 0) == (fault in ("503 for long", "412"))  # the others pass, and are waited for


@pytest.fixture
def killable(tmp_path: Path) -> Callable[[str], multiprocessing.process.BaseProcess]:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["temporalwiki.push_scripts.hub", "a_revision"])

    def start(endpoint: str) -> multiprocessing.process.BaseProcess:
        process = context.Process(target=publish_it, args=(endpoint, str(tmp_path)))
        process.start()
        return process

    return start


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True], ids=["before the request", "after the request"])
@pytest.mark.fault(
    "kill -9",
    "publish: before or after any of its requests",
    "the Hub has the whole revision or none of it, and a rerun completes it",
)
def test_killed_at_any_request_a_rerun_completes(
    after: bool, hubs: Hubs, killable: Callable[[str], multiprocessing.process.BaseProcess]
) -> None:
    for number, hub in hubs:
        process = killable(hub.endpoint)
        hub.when("*", "", lambda p=process: os.kill(p.pid, signal.SIGKILL), nth=number, after=after)  # type: ignore[misc]
        process.join()
        assert process.exitcode in (0, -signal.SIGKILL)
        hub._faults.clear()
        assert all(state in (OLD, AFTER) for state in _states(hub))
        run()
        assert_published(hub)
        if process.exitcode == 0:
            break
    assert number > 11


@pytest.mark.fault(
    "two at once", "publish: somebody else commits, at any moment", "that commit is kept, and ours follows it"
)
def test_a_commit_by_somebody_else_at_any_moment_is_kept(hubs: Hubs) -> None:
    overtaken, theirs = 0, {"theirs.txt": b"theirs"}
    for number, hub in hubs:
        hub.when("*", "", lambda h=hub: h.commit("dataset", REPO, theirs), nth=number)  # type: ignore[misc]
        lines = run()
        assert files(hub) == AFTER | theirs or len(hub.requests) < number
        assert files(hub, "2021.12") in (AFTER, AFTER | theirs)
        assert set(hub.repo("dataset", REPO).branches) == {"main"}
        overtaken += any("somebody else" in line for line in lines)
        if len(hub.requests) < number:
            break
    assert overtaken > 3


def test_whoever_is_always_overtaken_says_so(old: LoopbackHub) -> None:
    commits = iter(range(1000))
    for nth in range(1, 30):
        old.when("POST", "/commit/main$", lambda: old.commit("dataset", REPO, {"n": b"%d" % next(commits)}), nth=nth)
    with pytest.raises(InputError, match="others came first 10 times; run the same command again"):
        run()
    assert set(old.repo("dataset", REPO).branches) == {"main"}


def test_a_tag_that_a_killed_publisher_did_not_make_goes_to_its_own_commit(old: LoopbackHub) -> None:
    with pytest.raises(InputError):
        old.fault("POST", "/tag/", status=403)
        run()
    assert files(old) == AFTER
    commit = old.repo("dataset", REPO).branches["main"]
    old.commit("dataset", REPO, {"later.txt": b"later"})
    run()
    assert old.repo("dataset", REPO).tags == {"2021.12": commit}


def test_a_tag_is_never_moved(old: LoopbackHub) -> None:
    run()
    again = Revision("2021.12: other", {"c.txt": b"other"}, tag="2021.12")
    old.requests.clear()
    with pytest.raises(InputError, match=r"the tag 2021\.12 exists already, on commit [0-9a-f]{40}.*--tag"):
        list(publish(REPO, "dataset", lambda _head: [again]))
    assert {request.method for request in old.requests} == {"GET"}


def test_a_tag_that_somebody_made_in_between_is_not_taken_for_ours(old: LoopbackHub) -> None:
    tags = old.repo("dataset", REPO).tags
    first = old.repo("dataset", REPO).branches["main"]
    old.when("POST", "/tag/", lambda: tags.update({"2021.12": first}))
    with pytest.raises(InputError, match=rf"^datasets/ORG/data: somebody else put the tag 2021\.12 on {first}"):
        run()


@pytest.mark.parametrize(
    ("small", "when", "expected"),
    [
        (2**20, "/commit/main", None),  # it was read by then
        (2**20, "/preupload/", "b.parquet has changed meanwhile; main is unchanged"),
        (0, "/preupload/", "the Hub answered 400"),  # the Hub checks the hash of a large file
        (0, "/auth-check", "b.parquet has changed meanwhile; main is unchanged"),
    ],
)
def test_a_file_that_changes_is_published_as_it_was_hashed_or_not_at_all(
    small: int, when: str, expected: str | None, old: LoopbackHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "b.parquet"
    path.write_bytes(BIG + b"new")
    time = path.stat().st_mtime_ns
    planned = Revision("2021.12: new", {"b.parquet": path}, tag="2021.12")
    read_file(path)  # hashes it

    def change() -> None:
        path.write_bytes(BIG + b"now")
        os.utime(path, ns=(time, time))

    monkeypatch.setattr(client, "_SMALL", small)
    old.when("*", when, change)
    if expected is None:
        list(publish(REPO, "dataset", lambda head: [] if "2021.12" in head.tags else [planned]))
        assert files(old) == OLD | {"b.parquet": BIG + b"new"}
    else:
        with pytest.raises(InputError, match=expected):
            list(publish(REPO, "dataset", lambda _head: [planned]))
        assert files(old) == OLD


def test_a_file_that_the_repositorys_gitignore_leaves_out_is_said(
    old: LoopbackHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = client.HfApi.preupload_lfs_files

    def ignore(self: Any, repo_id: str, additions: list[Any], **more: Any) -> None:
        send(self, repo_id, additions, **more)
        additions[0]._should_ignore = True

    monkeypatch.setattr(client.HfApi, "preupload_lfs_files", ignore)
    with pytest.raises(InputError, match=r"its \.gitignore leaves out README\.md; main is unchanged"):
        run()
    assert files(old) == OLD


@pytest.mark.parametrize("nth", range(1, 20))
@pytest.mark.fault("two at once", "two publishers of one month, at any moment", "the month is published once")
def test_the_same_revision_is_published_by_another_at_any_moment(nth: int, old: LoopbackHub) -> None:
    old.when("*", "", run, nth=nth)  # type: ignore[arg-type]
    run()
    old._faults.clear()
    assert_published(old)


@pytest.mark.parametrize("tagged", [True, False])
@pytest.mark.parametrize("nth", range(2, 16))
def test_a_repository_that_is_deleted_meanwhile_is_one_clear_line(nth: int, tagged: bool, old: LoopbackHub) -> None:
    revision = REVISION if tagged else Revision("without a tag", REVISION.files)
    old.when("*", "", lambda: old._protocol.repos.clear(), nth=nth)
    try:
        lines = list(itertools.islice(publish(REPO, "dataset", lambda _head: [revision]), 100))
        assert len(lines) < 100  # it ends
    except InputError as error:
        assert str(error).count(f"datasets/{REPO}: ") == 1
        assert "\n" not in str(error)
    old.unknown.clear()  # an upload's second half finds no repository


def test_a_repository_that_cannot_be_seen_after_it_was_made_is_said(hub: LoopbackHub) -> None:
    hub.fault("GET", "/refs", nth=2, status=404, headers={"X-Error-Code": "RepoNotFound"})
    with pytest.raises(InputError, match="created, but this token cannot see it"):
        run()


def test_a_trusted_publisher_without_its_proof_is_told(old: LoopbackHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    monkeypatch.setenv("HF_OIDC_RESOURCE", "datasets/ORG/data")
    with pytest.raises(InputError, match=f"datasets/{REPO}: the trusted publisher got no token"):
        run()


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ({"status": 404, "headers": {"X-Error-Code": "RevisionNotFound"}}, "404"),
        ({"status": 401}, "401"),
        ({"status": 500}, "500"),
        ({"cut": True}, "cannot be reached"),
    ],
)
def test_a_fault_of_the_clients_other_way_to_upload_is_one_clear_line(
    fault: dict[str, Any], said: str, old: LoopbackHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Xet, which the loopback does not speak but for its first request, raises exceptions of its own."""
    pytest.importorskip("hf_xet")
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", False)
    monkeypatch.setenv("HF_XET_CLIENT_RETRY_MAX_ATTEMPTS", "1")
    old.fault("GET", "xet-write-token", times=99, **fault)
    with pytest.raises(InputError, match=f"datasets/{REPO}: .*{said}.*") as error:
        run()
    assert "\n" not in str(error.value)
    assert files(old) == OLD


def test_the_hub_says_how_long_to_wait(old: LoopbackHub, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(client.time, "sleep", waits.append)
    old.fault("GET", "/refs", status=429, headers={"Retry-After": "7"})
    old.fault("POST", "/commit/main", status=429, headers={"ratelimit": '"api";r=0;t=55'})
    old.fault("POST", "/tag/", status=502, headers={"ratelimit": '"api";r=900;t=250'})  # it is on every answer
    run()
    assert waits == [7.0, 55.0, client.WAITS[0]]


def test_a_wait_that_is_too_long_to_sit_there_is_said(old: LoopbackHub) -> None:
    old.fault("POST", "/commit/main", status=429, headers={"Retry-After": "3600"})
    with pytest.raises(InputError, match="asks to wait for 3600 s; run the same command after that"):
        run()


REFUSED = {  # repository, token -> the message
    ("ORG/data", None): "no token: run `hf auth login`, or set HF_TOKEN",
    ("ORG/data", "hf_reader"): "not allowed (Forbidden: you must use a write token): use a token that may write there",
    ("ORG/data", "hf_stranger"): "not allowed (You don't have the rights to write",
    ("ORG/data", "hf_wrong"): "not allowed (Invalid credentials",
    ("ORG/fresh", "hf_wrong"): "not allowed (Invalid credentials",
    ("ORG/fresh", None): "no token",
    ("ORG/fresh", "hf_reader"): "this token has no right to write",
    ("ORG/fresh", "hf_stranger"): "you are not in ORG; you can create it as stranger",
    ("READERS/fresh", "hf_me"): "this token has no right to write",
    ("data", "hf_me"): "'data' is not the name of a repository: write ORG/NAME",
    ("ORG/da ta", "hf_me"): "the Hub refuses the name 'ORG/da ta'",
    ("", "hf_me"): "the Hub refuses the name",
}


@pytest.mark.parametrize(("repo_id", "token"), REFUSED)
def test_who_may_not_write_is_told_before_anything_is_sent(
    repo_id: str, token: str | None, old: LoopbackHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    old.add_user("reader", "hf_reader", orgs={"ORG": "write"}, role="read")
    old.add_user("stranger", "hf_stranger")
    monkeypatch.delenv("HF_TOKEN")
    if token:
        monkeypatch.setenv("HF_TOKEN", token)
    with pytest.raises(InputError) as error:
        run(repo_id)
    assert REFUSED[repo_id, token] in str(error.value)
    assert "\n" not in str(error.value)
    assert isinstance(error.value, UsageError) == ("name" in REFUSED[repo_id, token])
    assert {request.method for request in old.requests} <= {"GET"}


NO_TAGS = ["", "a b", "../main", "-x", "a\n", "refs/heads/main", "é", "a..b", "a.", "x.lock", "main", "HEAD"]


@pytest.mark.parametrize("tag", [*NO_TAGS, "20211201", "0123456789abcdef"])  # the last two are names of commits
def test_what_cannot_be_a_tag_is_refused(tag: str) -> None:
    with pytest.raises(UsageError, match="cannot be a tag"):
        Revision("message", {}, tag=tag)


def test_a_dry_run_needs_no_token_and_no_hub(old: LoopbackHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_TOKEN")
    assert run(dry_run=True)[-1] == f"datasets/{REPO}: dry run, nothing was sent"
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:1")
    first, *said = run(dry_run=True)
    assert "the Hub cannot be reached" in first
    assert first.endswith("the lines below are for a new repository")
    assert said[0] == f"datasets/{REPO}: create the repository"
    assert [line.split("  ")[1] for line in said[2:-1]] == ["+ README.md", "+ b.parquet", "+ c.txt", "tag 2021.12"]


@pytest.mark.fault("dead network in a push", "the Hub does not answer", "one clear line")
def test_a_hub_that_is_not_there_is_said(
    hub: LoopbackHub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """At once, with how long it waits until each next try; and in the end."""
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:1")
    with pytest.raises(InputError, match=r"the Hub cannot be reached .*; run the same command again to go on"):
        run()
    said = capsys.readouterr().err.splitlines()
    assert all(line.startswith(f"datasets/{REPO}: the Hub cannot be reached (") for line in said)
    assert [line.split("; ")[-1] for line in said] == [f"next attempt in {seconds:.0f} s" for seconds in client.WAITS]
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(InputError, match="HF_HUB_OFFLINE is set"):
        run()


def test_files_are_known_by_their_hashes(tmp_path: Path) -> None:
    content = b"temporalwiki\n"
    path = tmp_path / "file"
    path.write_bytes(content)
    blob = hashlib.sha1(b"blob 13\0temporalwiki\n").hexdigest()  # as `git hash-object` does
    assert RemoteFile(13, None, blob).holds(read_file(path)) and RemoteFile(13, None, blob).holds(read_file(content))
    assert RemoteFile(13, hashlib.sha256(content).hexdigest(), "pointer").holds(read_file(path))
    assert not RemoteFile(13, None, blob).holds(read_file(b"Temporalwiki\n"))
    assert not RemoteFile(13, "0" * 64, blob).holds(read_file(path))
    path.write_bytes(b"other")  # read again once it changes
    assert read_file(path).sha256 == hashlib.sha256(b"other").hexdigest()
