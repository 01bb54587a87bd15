"""The loopback Hub, shown with the real clients: what the tests of publishing rely on."""

import hashlib
import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
from huggingface_hub import CommitOperationAdd, CommitOperationCopy, CommitOperationDelete, HfApi
from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError
from huggingface_hub.hf_api import RepoFile

from loopback_hub import LoopbackHub
from loopback_hub.cards import check
from loopback_hub.repository import File

DATA = "ORG/temporalwiki"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[LoopbackHub]:
    """A Hub with three people."""
    with LoopbackHub() as hub:
        hub.add_user("me", "hf_me", orgs={"ORG": "write"})
        hub.add_user("me", "hf_read", orgs={"ORG": "write"}, role="read")
        hub.add_user("stranger", "hf_stranger")
        hub.online(monkeypatch, "hf_me", tmp_path)
        yield hub


@pytest.fixture
def api(hub: LoopbackHub) -> HfApi:
    api = HfApi()
    api.create_repo(DATA, repo_type="dataset")
    return api


def add(path: str, content: bytes) -> CommitOperationAdd:
    return CommitOperationAdd(path, content)


def commit(api: HfApi, *operations: Any, **more: Any) -> str:
    return str(api.create_commit(DATA, operations, commit_message="a month", repo_type="dataset", **more).oid)


def status(call: Callable[[], object]) -> int:
    """The status of the Hub's refusal; 200 without one."""
    try:
        call()
    except HfHubHTTPError as error:
        return error.response.status_code
    return 200


def noise(size: int) -> bytes:
    return random.Random(size).randbytes(size)


def test_hashes_of_files_are_those_of_git() -> None:
    """Golden values by `git hash-object`."""
    assert File(b"hello\n").oid == "ce013625030ba8dba906f756967f9e9ca394464a"
    digest = b"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"  # SHA-256 of "hello"
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize 5\n"
    assert File(b"hello", lfs=True).stored == pointer % digest


@pytest.mark.parametrize(
    ("token", "read", "write", "read_private"),
    [("hf_me", 200, 200, 200), ("hf_read", 200, 403, 200), ("hf_stranger", 200, 403, 404), (False, 200, 401, 401)],
)
def test_who_may_read_and_write(hub: LoopbackHub, token: Any, read: int, write: int, read_private: int) -> None:
    hub.commit("dataset", DATA, {"a.json": b"{}"})
    hub.commit("dataset", "ORG/secret", {"a.json": b"{}"}, private=True)
    api = HfApi(token=token)
    assert status(lambda: api.hf_hub_download(DATA, "a.json", repo_type="dataset")) == read
    assert status(lambda: api.auth_check(DATA, repo_type="dataset", write=True)) == write
    assert status(lambda: commit(api, add("b.parquet", b"PAR1"))) == write
    assert status(lambda: api.create_tag(DATA, tag="2021.12", repo_type="dataset")) == write
    assert status(lambda: api.create_repo("ORG/new", repo_type="dataset")) == write
    assert status(lambda: api.dataset_info("ORG/secret")) == read_private
    with pytest.raises(RepositoryNotFoundError):
        api.dataset_info("ORG/nothing")


def test_files_come_back_as_they_went(hub: LoopbackHub, api: HfApi, tmp_path: Path) -> None:
    names = ["a b.json", "ü/😀.json", "a%2Fb.json", "#?&=.json", "[x].bin", "empty.parquet", "small.parquet"]
    contents = {name: name.encode() for name in names} | {"empty.parquet": b"", "months/large.parquet": noise(2500)}
    oid = commit(api, *(add(path, content) for path, content in contents.items()))
    assert hub.repo("dataset", DATA).files(oid).items() >= contents.items()
    tree = api.list_repo_tree(DATA, repo_type="dataset", recursive=True)
    files = {entry.path: entry for entry in tree if isinstance(entry, RepoFile)}
    for path, content in contents.items():
        found = api.hf_hub_download(DATA, path, repo_type="dataset", cache_dir=tmp_path / "cache")
        lfs, large = files[path].lfs, path in ("[x].bin", "small.parquet", "months/large.parquet")
        assert (Path(found).read_bytes(), files[path].size) == (content, len(content))
        assert (lfs.sha256 if lfs else None) == (hashlib.sha256(content).hexdigest() if large else None)
    uploads = len([one for one in hub.requests if one.method == "PUT"])
    assert commit(api, *(add(path, content) for path, content in contents.items())) == oid  # nothing to do
    assert len([one for one in hub.requests if one.method == "PUT"]) == uploads


def test_commits_and_tags(hub: LoopbackHub, api: HfApi) -> None:
    repo = hub.repo("dataset", DATA)
    first = commit(api, add("keep.json", b"1"), add("drop.json", b"2"), add("b.parquet", noise(1500)))
    api.create_tag(DATA, tag="2021.12", repo_type="dataset")
    copied = CommitOperationCopy("b.parquet", "copy.parquet")
    second = commit(api, CommitOperationDelete("drop.json"), copied, parent_commit=first)
    assert repo.files(second).keys() == {".gitattributes", "keep.json", "b.parquet", "copy.parquet"}
    assert repo.files("2021.12")["drop.json"] == b"2"
    refused = [
        (412, partial(commit, api, add("d.json", b"3"), parent_commit=first)),  # main has moved
        (404, partial(commit, api, CommitOperationDelete("nothing.json"))),
        (404, partial(commit, api, add("d.json", b"3"), revision="2021.12")),  # only a branch takes commits
        (409, partial(api.create_tag, DATA, tag="2021.12", repo_type="dataset", revision=second)),
        (400, partial(api.create_tag, DATA, tag="a..b", repo_type="dataset")),
    ]
    assert [status(call) for _, call in refused] == [expected for expected, _ in refused]
    assert (repo.branches, repo.tags) == ({"main": second}, {"2021.12": first})


@pytest.mark.parametrize(
    ("kind", "block", "error"),
    [
        ("dataset", "license: [cc-by-sa-4.0, cc0-1.0]\nlanguage: zh\n", None),
        ("dataset", "license: cc-by-sa\n", '"license"'),
        ("dataset", "language: English\n", '"language"'),
        ("dataset", "pretty_name: a: b\n", "Invalid YAML"),
        ("dataset", "tags:\n- 2021\n", '"tags"'),
        ("dataset", "configs:\n- config_name: a\n- config_name: a\n", "twice"),
        ("model", "base_model: /home/me/model\n", '"base_model"'),
        ("model", "model-index:\n- name: a\n  results:\n  - task: {type: t}\n    metrics: []\n", "dataset.name"),
        ("space", "sdk: gradio\nsdk_version: '6.31.0'\ncolorFrom: red\npinned: false\n", None),
        ("space", "title: a\n", '"sdk"'),
        ("space", f"sdk: static\nshort_description: {'a' * 61}\n", '"short_description"'),
    ],
)
def test_cards(hub: LoopbackHub, kind: Any, block: str, error: str | None) -> None:
    readme = f"---\n{block}---\ntext\n---\n"
    errors, warnings = check(readme, kind)
    assert warnings == [] and bool(errors) == (error is not None)
    assert (error or "") in "".join(errors)
    api = HfApi()
    api.create_repo("ORG/card", repo_type=kind, space_sdk="static" if kind == "space" else None)
    send = partial(api.create_commit, "ORG/card", [add("README.md", readme.encode())], commit_message="m")
    if error is None:
        send(repo_type=kind)
        assert hub.repo(kind, "ORG/card").files()["README.md"] == readme.encode()
    else:
        with pytest.raises(ValueError, match=r"Invalid metadata in README\.md"):
            send(repo_type=kind)


@pytest.mark.parametrize("after", [False, True])
def test_a_lost_answer(hub: LoopbackHub, api: HfApi, after: bool) -> None:
    hub.fault("POST", r"/commit/main$", status=500, after=after)
    assert status(lambda: commit(api, add("a.json", b"1"))) == 500
    assert ("a.json" in hub.repo("dataset", DATA).files()) is after


def test_a_fault_of_one_request(hub: LoopbackHub) -> None:
    hub.fault("POST", r"/preupload/", status=429, headers={"Retry-After": "7"}, nth=2)
    hub.commit("dataset", DATA, {})
    for name in "ab":
        commit(HfApi(), add(f"{name}.json", b"1"))
    assert [one.status for one in hub.requests if "/preupload/" in one.path] == [200, 429, 200]
    assert hub.waits[-1] == 8.0  # the client adds one second


def test_hooks_run_before_and_after_a_request(hub: LoopbackHub, api: HfApi) -> None:
    parent, seen = hub.repo("dataset", DATA).branches["main"], list[bool]()
    hub.when("POST", r"/commit/main$", lambda: commit(HfApi(), add("b.json", b"other")))
    hub.when("POST", r"/commit/main$", lambda: seen.append("b.json" in hub.repo("dataset", DATA).files()), after=True)
    assert status(lambda: commit(api, add("c.json", b"1"), parent_commit=parent)) == 412
    assert seen == [True] and "c.json" not in hub.repo("dataset", DATA).files()


def test_what_it_does_not_know_and_hooks_that_fail_fail_the_test() -> None:
    with pytest.raises(AssertionError, match="GET /api/papers/search"), LoopbackHub() as hub:
        assert httpx2.get(f"{hub.endpoint}/api/papers/search").status_code == 501
    with pytest.raises(AssertionError, match="ZeroDivisionError"), LoopbackHub() as hub:
        hub.when("GET", "whoami", lambda: 1 // 0)
        httpx2.get(f"{hub.endpoint}/api/whoami-v2")
