"""What the loopback Hub promises, shown with the real clients."""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from huggingface_hub import (
    CommitOperationAdd,
    CommitOperationCopy,
    CommitOperationDelete,
    HfApi,
    constants,
    get_hf_file_metadata,
    hf_hub_url,
)
from huggingface_hub.errors import (
    EntryNotFoundError,
    HfHubHTTPError,
    RemoteEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.hf_api import RepoFile, RepoFolder
from hypothesis import given
from hypothesis import strategies as st

from loopback_hub import LoopbackHub
from loopback_hub.cards import check
from loopback_hub.repository import File, Repo, default_attributes, folders, goes_by_lfs

DATA = "ORG/temporalwiki"

# What the client does with the parts of a file.
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[LoopbackHub]:
    """A Hub with three people; parts and pages are small, so that there are several."""
    with LoopbackHub(part_size=1000, page_size=3) as hub:
        hub.add_user("me", "hf_me", orgs={"ORG": "write"})
        hub.add_user("me", "hf_read", orgs={"ORG": "write"}, role="read")
        hub.add_user("reader", "hf_reader", orgs={"ORG": "read"})
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
    """The status of the Hub's refusal."""
    with pytest.raises(HfHubHTTPError) as caught:
        call()
    return int(caught.value.response.status_code)


def noise(size: int) -> bytes:
    return random.Random(size).randbytes(size)


def sent(hub: LoopbackHub, method: str, part: str) -> list[int]:
    """The answers' statuses to such requests."""
    return [request.status for request in hub.requests if request.method == method and part in request.path]


# -- git --------------------------------------------------------------------------------------------------------------


def test_hashes_are_those_of_git() -> None:
    """Golden values by `git hash-object` and `git ls-tree`."""
    tree = {"a.txt": File(b"hi"), "a/b/x.txt": File(b"hello\n"), "a/z": File(b"")}
    assert [file.oid for file in tree.values()] == [
        "32f95c0d1244a78b2be1bab8de17906fabb2c4a8",
        "ce013625030ba8dba906f756967f9e9ca394464a",
        "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
    ]
    assert folders(tree) == {
        "": "7c04f03ddf58d7128b2e08a54493cbc738248cbf",
        "a": "ed05e9b1120fa9def46dfdaa78283712abfdb180",
        "a/b": "9fa6a6d71d42445400aef1e5fda85a9cd64eb517",
    }


def test_a_file_by_lfs_is_a_pointer_in_git() -> None:
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize 5\n"
    digest = b"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"  # sha256 of "hello"
    assert File(b"hello", lfs=True).stored == pointer % digest


@given(st.lists(st.dictionaries(st.sampled_from(["a", "b/c", "b/d"]), st.binary(max_size=2)), min_size=1))
def test_commits_are_told_apart_and_kept(trees: list[dict[str, bytes]]) -> None:
    repo = Repo("dataset", DATA)
    oids = [repo.add("main", {p: File(c) for p, c in tree.items()}, "same").oid for tree in trees]
    assert len(set(oids)) == len(trees)
    assert [commit.oid for commit in repo.commits()] == oids[::-1]
    for oid, tree in zip(oids, trees, strict=True):
        assert repo.files(oid) == repo.files(oid[:10]) == tree


# -- accounts and repositories ----------------------------------------------------------------------------------------


def test_whoami(hub: LoopbackHub) -> None:
    me = HfApi().whoami()
    assert (me["name"], me["auth"]["accessToken"]["role"]) == ("me", "write")
    assert [(org["name"], org["roleInOrg"]) for org in me["orgs"]] == [("ORG", "write")]
    assert status(lambda: HfApi(token="hf_nobody").whoami()) == 401


@pytest.mark.parametrize(("kind", "where"), [("model", ""), ("dataset", "datasets/"), ("space", "spaces/")])
def test_a_new_repository_has_one_commit(hub: LoopbackHub, kind: Any, where: str) -> None:
    api = HfApi()
    more: dict[str, Any] = {"space_sdk": "static"} if kind == "space" else {}
    url = api.create_repo("ORG/new", repo_type=kind, **more)
    assert url == f"{hub.endpoint}/{where}ORG/new"
    assert api.create_repo("ORG/new", repo_type=kind, exist_ok=True, **more) == url
    assert status(lambda: api.create_repo("ORG/new", repo_type=kind, **more)) == 409
    assert [item.title for item in api.list_repo_commits("ORG/new", repo_type=kind)] == ["initial commit"]
    files = hub.repo(kind, "ORG/new").files()
    assert b"*.safetensors filter=lfs" in files[".gitattributes"]
    assert (b"\nsdk: static\n" in files["README.md"]) if kind == "space" else ("README.md" not in files)


@pytest.mark.parametrize(
    ("token", "repo_id", "expected"),
    [
        ("hf_me", "me/own", None),
        ("hf_me", "ORG/new", None),
        ("hf_me", "OTHER/new", 403),
        ("hf_read", "me/own", 403),
        ("hf_reader", "ORG/new", 403),
        ("hf_nobody", "ORG/new", 401),
        (False, "ORG/new", 401),
    ],
)
def test_who_may_make_a_repository(hub: LoopbackHub, token: Any, repo_id: str, expected: int | None) -> None:
    def make() -> object:
        return HfApi(token=token).create_repo(repo_id, repo_type="dataset")

    if expected is None:
        make()
        assert list(hub.repo("dataset", repo_id).files()) == [".gitattributes"]
    else:
        assert status(make) == expected


@pytest.mark.parametrize(
    "payload",
    [
        {"name": "a--b", "organization": "ORG"},
        {"name": "a..b", "organization": "ORG"},
        {"name": "-a", "organization": "ORG"},
        {"name": "a.git", "organization": "ORG"},
        {"name": "../a", "organization": "ORG"},
        {"name": "", "organization": "ORG"},
        {"name": "a" * 97, "organization": "ORG"},
        {"name": "café", "organization": "ORG"},
        {"name": "a", "organization": "ORG", "type": "space"},
        {"name": "a", "organization": "ORG", "type": "space", "sdk": "cobol"},
        {"name": "a", "organization": "ORG", "type": "bucket"},
    ],
)
def test_what_cannot_be_a_repository(hub: LoopbackHub, payload: dict[str, str]) -> None:
    headers = {"Authorization": "Bearer hf_me"}
    assert httpx2.post(f"{hub.endpoint}/api/repos/create", json=payload, headers=headers).status_code == 400


@pytest.mark.parametrize(
    ("token", "read", "write", "read_private"),
    [
        ("hf_me", None, None, None),
        ("hf_read", None, 403, None),
        ("hf_reader", None, 403, None),
        ("hf_stranger", None, 403, 404),
        (False, None, 401, 401),
    ],
)
def test_who_may_read_and_write(
    hub: LoopbackHub, token: Any, read: int | None, write: int | None, read_private: int | None
) -> None:
    hub.commit("dataset", DATA, {"a.json": b"{}"})
    hub.commit("dataset", "ORG/secret", {"a.json": b"{}"}, private=True)
    api = HfApi(token=token)
    # An empty commit is refused: something must change.
    calls: list[tuple[int | None, Callable[[], object]]] = [
        (read, lambda: api.auth_check(DATA, repo_type="dataset")),
        (read, lambda: list(api.list_repo_tree(DATA, repo_type="dataset"))),
        (read, lambda: api.hf_hub_download(DATA, "a.json", repo_type="dataset")),
        (write, lambda: api.auth_check(DATA, repo_type="dataset", write=True)),
        (write, lambda: commit(api, add("b.json", b"{}"))),
        (write, lambda: commit(api, add("b.parquet", b"PAR1"))),
        (write, lambda: api.create_tag(DATA, tag="2021.12", repo_type="dataset")),
        (write, lambda: api.create_branch(DATA, branch="next", repo_type="dataset")),
        (read_private, lambda: api.auth_check("ORG/secret", repo_type="dataset")),
        (read_private, lambda: api.dataset_info("ORG/secret")),
    ]
    for expected, call in calls:
        if expected is None:
            call()
        else:
            assert status(call) == expected
    assert (write is None) == ("b.json" in hub.repo("dataset", DATA).files())


def test_a_repository_that_is_not_there(hub: LoopbackHub) -> None:
    for token in (None, False, "hf_stranger"):
        for call in (
            lambda api: api.dataset_info("ORG/nothing"),
            lambda api: api.model_info("gpt2"),
            lambda api: api.list_repo_refs("ORG/nothing", repo_type="dataset"),
            lambda api: list(api.list_repo_tree("ORG/nothing", repo_type="space")),
            lambda api: get_hf_file_metadata(hf_hub_url("ORG/nothing", "README.md"), token=api.token),
        ):
            with pytest.raises(RepositoryNotFoundError):
                call(HfApi(token=token))


def test_a_trusted_publisher(hub: LoopbackHub, api: HfApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """A workflow without a token proves itself, and may then write to one repository."""
    hub.add_publisher("eyJ", "dataset", DATA)
    api.create_repo("ORG/other")
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setenv("HF_OIDC_RESOURCE", f"datasets/{DATA}")
    monkeypatch.setenv("HF_OIDC_ID_TOKEN", "wrong")
    with pytest.raises(HfHubHTTPError, match="no trusted publisher"):
        commit(HfApi(), add("a.json", b"1"))
    monkeypatch.setenv("HF_OIDC_ID_TOKEN", "eyJ")
    commit(HfApi(), add("a.json", b"1"), add("b.bin", b"1"))
    assert hub.repo("dataset", DATA).files()["a.json"] == b"1"
    assert status(lambda: HfApi().auth_check("ORG/other", write=True)) == 403
    assert status(lambda: HfApi().create_repo("ORG/new")) == 403
    assert status(HfApi().whoami) == 401
    assert sent(hub, "POST", "/oauth/token") == [400, 200]


# -- commits ----------------------------------------------------------------------------------------------------------


def test_files_come_back_as_they_went(hub: LoopbackHub, api: HfApi, tmp_path: Path) -> None:
    contents = {
        "README.md": b"---\nlicense: cc-by-sa-4.0\n---\n",
        "data.json": b"{}",
        "empty.parquet": b"",
        "binary": b"\0\1",
        "small.parquet": noise(1000),
        "months/large.parquet": noise(2500),
    }
    oid = commit(api, *(add(path, content) for path, content in contents.items()))
    assert hub.repo("dataset", DATA).files(oid).items() >= contents.items()
    tree = api.list_repo_tree(DATA, repo_type="dataset", recursive=True)
    files = {entry.path: entry for entry in tree if isinstance(entry, RepoFile)}
    for path, content in contents.items():
        found = api.hf_hub_download(DATA, path, repo_type="dataset", cache_dir=tmp_path / "cache")
        assert Path(found).read_bytes() == content
        lfs = files[path].lfs
        assert files[path].size == len(content)
        assert (lfs.sha256 if lfs else None) == (
            hashlib.sha256(content).hexdigest()
            if path in ("binary", "small.parquet", "months/large.parquet")
            else None
        )
    # One file needs three parts; each of the others by LFS goes in one piece.
    assert sent(hub, "PUT", "/upload-part/") == [200, 200, 200]
    assert sent(hub, "PUT", "/upload/") == [200, 200]
    # The name of one says nothing: the Hub notes it.
    attributes = hub.repo("dataset", DATA).files()[".gitattributes"]
    assert attributes.endswith(b"\nbinary filter=lfs diff=lfs merge=lfs -text\n")


def test_what_is_there_is_not_sent_again(hub: LoopbackHub, api: HfApi) -> None:
    files = {"a.json": b"{}", "b.parquet": noise(2000)}
    first = commit(api, *(add(path, content) for path, content in files.items()))
    uploads = len(sent(hub, "PUT", "/"))
    assert commit(api, *(add(path, content) for path, content in files.items())) == first
    # The same content elsewhere is a commit, but no upload.
    assert commit(api, add("c.parquet", files["b.parquet"])) != first
    assert len(sent(hub, "PUT", "/")) == uploads


def test_what_goes_by_lfs_is_said_by_the_repository(hub: LoopbackHub, api: HfApi) -> None:
    commit(api, add(".gitattributes", b"*.json filter=lfs diff=lfs merge=lfs -text\nx/* filter=lfs\n*.md -text\n"))
    commit(api, add("a.json", b"{}"), add("a.parquet", b"PAR1"), add("x/y.txt", b"1"), add("a.md", b"1"))
    infos = api.get_paths_info(DATA, ["a.json", "a.parquet", "x/y.txt", "a.md"], repo_type="dataset")
    assert [bool(info.lfs) for info in infos if isinstance(info, RepoFile)] == [True, False, True, False]


@pytest.mark.parametrize(
    ("path", "sample", "size", "expected"),
    [
        ("a/b.parquet", b"PAR1", 4, True),
        ("a/b.parquet", b"", 0, False),
        ("parquet", b"PAR1", 4, False),
        ("saved_model/x/y", b"1", 1, True),
        ("a.tar.gz", b"1", 1, True),
        ("a.json", b"{}", 10 * 2**20, False),
        ("a.json", b"{}", 10 * 2**20 + 1, True),
        ("a.json", b"{\0", 2, True),
    ],
)
def test_what_goes_by_lfs_in_a_new_repository(path: str, sample: bytes, size: int, expected: bool) -> None:
    assert goes_by_lfs(path, sample, size, default_attributes("dataset")) == expected


def test_operations_of_a_commit(hub: LoopbackHub, api: HfApi) -> None:
    kept = {"keep.json": b"1", "data/b.parquet": noise(1500)}
    commit(api, *(add(p, c) for p, c in {**kept, "drop.json": b"2", "old/x.json": b"3", "old/y/z.json": b"4"}.items()))
    commit(
        api,
        CommitOperationDelete("drop.json"),
        CommitOperationDelete("old/"),
        CommitOperationCopy("data/b.parquet", "copy/b.parquet"),
        CommitOperationCopy("keep.json", "copy/keep.json"),
        add("new.json", b"5"),
    )
    files = hub.repo("dataset", DATA).files()
    del files[".gitattributes"]
    assert files == {
        **kept,
        "copy/b.parquet": kept["data/b.parquet"],
        "copy/keep.json": b"1",
        "new.json": b"5",
    }


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (CommitOperationDelete("nothing.json"), 404),
        (CommitOperationDelete("nothing/"), 404),
        (add("a.json/b.json", b"1"), 400),  # a.json is a file
        (add("x", b"1"), 400),  # and x a folder
    ],
)
def test_operations_that_cannot_be(hub: LoopbackHub, api: HfApi, operation: Any, expected: int) -> None:
    head = commit(api, add("a.json", b"1"), add("x/b.json", b"1"))
    assert status(lambda: commit(api, add("c.json", b"1"), operation)) == expected
    assert hub.repo("dataset", DATA).branches == {"main": head}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ({"key": "lfsFile", "value": {"path": "a.bin", "algo": "sha256", "oid": "0" * 64, "size": 1}}, 400),
        ({"key": "file", "value": {"path": "../a", "content": "", "encoding": "base64"}}, 400),
        ({"key": "file", "value": {"path": "/a", "content": "", "encoding": "base64"}}, 400),
        ({"key": "file", "value": {"path": ".git/a", "content": "", "encoding": "base64"}}, 400),
        ({"key": "file", "value": {"path": "README.md", "content": "---\na: b\n---\n"}}, 200),
        ({"key": "file", "value": {"path": "README.md", "content": "---\na: b: c\n---\n"}}, 400),
    ],
)
def test_commits_that_a_client_would_not_send(hub: LoopbackHub, api: HfApi, line: Any, expected: int) -> None:
    head = {"key": "header", "value": {"summary": "m", "description": ""}}
    response = httpx2.post(
        f"{hub.endpoint}/api/datasets/{DATA}/commit/main",
        content="\n".join(map(json.dumps, [head, line])),
        headers={"Authorization": "Bearer hf_me", "Content-Type": "application/x-ndjson"},
    )
    assert response.status_code == expected


def test_a_large_file_must_go_by_lfs(hub: LoopbackHub, api: HfApi) -> None:
    large = add("a.txt", b"a" * (10 * 2**20 + 1))
    large._upload_mode = "regular"
    assert status(lambda: commit(api, large)) == 413
    preuploaded = add("a.txt", b"a" * (10 * 2**20 + 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hub._protocol, "part_size", 2**24)
        commit(api, preuploaded)
    assert preuploaded._upload_mode == "lfs"


def test_wrong_bytes_are_not_taken(hub: LoopbackHub, api: HfApi) -> None:
    me = {"Authorization": "Bearer hf_me"}
    contents = {hashlib.sha256(content).hexdigest(): content for content in (b"right", noise(1500))}
    batch = httpx2.post(
        f"{hub.endpoint}/datasets/{DATA}.git/info/lfs/objects/batch",
        json={"transfers": ["multipart"], "objects": [{"oid": oid, "size": len(c)} for oid, c in contents.items()]},
        headers=me,
    ).json()
    (small, large), (single, several) = contents, (item["actions"]["upload"] for item in batch["objects"])
    assert httpx2.put(single["href"], content=b"wrong").status_code == 400
    # A signed address is called without a token: a client must not show it there.
    assert httpx2.put(single["href"], content=b"right", headers=me).status_code == 400
    pieces = [contents[large][:1000], contents[large][1000:]]
    etags = [httpx2.put(several["header"][f"{n}"], content=c).headers["etag"] for n, c in enumerate(pieces, 1)]
    parts = [{"partNumber": n, "etag": etag} for n, etag in enumerate(etags, 1)]

    def complete(oid: str, *parts: Any) -> int:
        return httpx2.post(several["href"], json={"oid": oid, "parts": parts}).status_code

    assert complete(large, parts[0]) == complete(large, parts[0], {**parts[1], "etag": etags[0]}) == 400
    assert complete(small, *parts) == 400
    verify = batch["objects"][0]["actions"]["verify"]["href"]
    assert httpx2.post(verify, json={"oid": small, "size": 5}, headers=me).status_code == 404
    assert hub.repo("dataset", DATA).objects == {}
    assert complete(large, *parts) == 200
    assert httpx2.put(single["href"], content=b"right").status_code == 200
    assert httpx2.post(verify, json={"oid": small, "size": 5}, headers=me).status_code == 200
    assert hub.repo("dataset", DATA).objects == contents


def test_the_head_must_be_the_parent(hub: LoopbackHub, api: HfApi) -> None:
    first = commit(api, add("a.json", b"1"))
    second = commit(api, add("a.json", b"2"), parent_commit=first)
    assert status(lambda: commit(api, add("a.json", b"3"), parent_commit=first)) == 412
    third = commit(api, add("a.json", b"3"), parent_commit=second[:10])
    assert hub.repo("dataset", DATA).branches == {"main": third}


def together(*calls: Callable[[], object]) -> list[BaseException | None]:
    """Run all at the same time; what each raised."""
    out: list[BaseException | None] = [None] * len(calls)
    start = threading.Barrier(len(calls))

    def run(i: int) -> None:
        start.wait()
        try:
            calls[i]()
        except HfHubHTTPError as error:
            out[i] = error

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return out


def test_of_two_on_one_parent_one_comes_first(hub: LoopbackHub, api: HfApi, monkeypatch: pytest.MonkeyPatch) -> None:
    # Between the look at the head and the commit the other one would come in, could it.
    apply = hub._protocol.apply

    def slowly(*of: Any) -> None:
        apply(*of)
        time.sleep(0.005)

    monkeypatch.setattr(hub._protocol, "apply", slowly)
    for turn in range(3):
        parent = hub.repo("dataset", DATA).branches["main"]

        def publish(name: str, parent: str = parent) -> str:
            return commit(api, add(f"{name}.json", b"1"), add(f"{name}.bin", noise(9)), parent_commit=parent)

        errors = together(*(partial(publish, f"{turn}-{name}") for name in "ab"))
        assert [error.response.status_code for error in errors if isinstance(error, HfHubHTTPError)] == [412]
        names = [path for path in hub.repo("dataset", DATA).files() if path.startswith(f"{turn}-")]
        assert len(names) == 2 and len({name[:3] for name in names}) == 1  # both files of one, none of the other


def test_without_a_parent_all_are_kept(hub: LoopbackHub, api: HfApi) -> None:
    assert together(*(partial(commit, api, add(f"{n}.json", b"1")) for n in range(4))) == [None] * 4
    assert {f"{n}.json" for n in range(4)} <= set(hub.repo("dataset", DATA).files())
    assert len(hub.repo("dataset", DATA).commits()) == 5


# -- cards ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "block", "error"),
    [
        ("dataset", "license: cc-by-sa-4.0\nlanguage:\n- en\npretty_name: 'a: b'\n", None),
        ("dataset", "license: [cc-by-sa-4.0, cc0-1.0]\nlanguage: zh\n", None),
        ("dataset", "language: zh-Hant\n", '"language"'),
        ("dataset", "license: cc-by-sa\n", '"license"'),
        ("dataset", "language: English\n", '"language"'),
        ("dataset", "language: no\n", '"language"'),
        ("dataset", "pretty_name: a: b\n", "Invalid YAML"),
        ("dataset", "pretty_name: 'a\n", "Invalid YAML"),
        ("dataset", "a: 1\na: 2\n", "duplicated mapping key"),
        ("dataset", "? [1]\n: 2\n", "Invalid YAML"),
        ("dataset", "- a\n", "mapping"),
        ("dataset", "pretty_name: 2021\n", '"pretty_name"'),
        ("dataset", "tags:\n- 2021\n", '"tags"'),
        ("dataset", "configs:\n- config_name: a\n  data_files:\n  - split: train\n    path: a/*\n", None),
        ("dataset", "configs:\n- config_name: a\n- config_name: a\n", "twice"),
        ("dataset", "configs:\n- config_name: 1112\n", "config_name"),
        ("dataset", "configs:\n- config_name: a\n  data_files:\n  - path: a/*\n", "split"),
        ("dataset", "configs: a\n", "array"),
        ("model", "base_model: HuggingFaceTB/SmolLM2-135M\ndatasets:\n- ORG/temporalwiki\n", None),
        ("model", "base_model: /home/me/model\n", '"base_model"'),
        ("model", "model-index: a\n", "array"),
        ("model", "model-index:\n- name: a\n", "results"),
        (
            "model",
            "model-index:\n- name: a\n  results:\n  - task: {type: t}\n    dataset: {name: d, type: ORG/d}\n"
            "    metrics:\n    - {type: fuar, value: 1.5}\n",
            None,
        ),
        ("model", "model-index:\n- name: a\n  results:\n  - task: {type: t}\n    metrics: []\n", "dataset.name"),
        ("space", "sdk: gradio\nsdk_version: '6.31.0'\ncolorFrom: red\npinned: false\n", None),
        ("space", "title: a\n", '"sdk"'),
        ("space", "sdk: gradio\nsdk_version: 6.31\n", '"sdk_version"'),
        ("space", "sdk: static\ncolorTo: orange\n", '"colorTo"'),
        ("space", f"sdk: static\nshort_description: {'a' * 61}\n", '"short_description"'),
    ],
)
def test_cards(hub: LoopbackHub, kind: Any, block: str, error: str | None) -> None:
    readme = f"---\n{block}---\ntext\n---\n"
    errors, warnings = check(readme, kind)
    assert warnings == []
    assert (error is None and errors == []) or (error is not None and error in errors[0])
    more: dict[str, Any] = {"space_sdk": "static"} if kind == "space" else {}
    api = HfApi()
    api.create_repo("ORG/card", repo_type=kind, **more)
    head = hub.repo(kind, "ORG/card").branches["main"]

    def send() -> object:
        return api.create_commit("ORG/card", [add("README.md", readme.encode())], commit_message="m", repo_type=kind)

    if error is None:
        send()
        assert hub.repo(kind, "ORG/card").files()["README.md"] == readme.encode()
    else:
        with pytest.raises(ValueError, match=r"Invalid metadata in README\.md"):
            send()
        assert hub.repo(kind, "ORG/card").branches["main"] == head


@pytest.mark.parametrize("readme", ["", "text", "---\n---\n", "---\n\n---\n", "---\nno end", " ---\na: 1\n---\n"])
def test_no_card(readme: str) -> None:
    assert check(readme, "dataset") == ([], ["empty or missing yaml metadata in repo card"])
    assert check(readme, "space")[0] == ["Missing configuration in README"]


# -- names of commits -------------------------------------------------------------------------------------------------


def test_tags_stay(hub: LoopbackHub, api: HfApi) -> None:
    first = commit(api, add("a.json", b"1"))
    api.create_tag(DATA, tag="2021.12", repo_type="dataset", revision=first)
    commit(api, add("a.json", b"2"))
    assert status(lambda: api.create_tag(DATA, tag="2021.12", repo_type="dataset")) == 409
    api.create_tag(DATA, tag="2021.12", repo_type="dataset", exist_ok=True)
    assert hub.repo("dataset", DATA).tags == {"2021.12": first}
    assert hub.repo("dataset", DATA).files("2021.12")["a.json"] == b"1"
    for tag in ("", "a b", "a..b", ".a", "a.lock", "a~1", "a:b"):
        assert status(partial(api.create_tag, DATA, tag=tag, repo_type="dataset")) == 400
    with pytest.raises(RevisionNotFoundError):
        api.create_tag(DATA, tag="x", repo_type="dataset", revision="0" * 40)


def test_branches(hub: LoopbackHub, api: HfApi) -> None:
    first = commit(api, add("a.json", b"1"))
    second = commit(api, add("a.json", b"2"))
    api.create_branch(DATA, branch="next/2021.12", revision=first, repo_type="dataset")
    assert status(lambda: api.create_branch(DATA, branch="next/2021.12", repo_type="dataset")) == 409
    third = commit(api, add("a.json", b"3"), add("b.bin", b"3"), revision="next/2021.12", parent_commit=first)
    refs = api.list_repo_refs(DATA, repo_type="dataset")
    assert {(ref.name, ref.ref, ref.target_commit) for ref in refs.branches} == {
        ("main", "refs/heads/main", second),
        ("next/2021.12", "refs/heads/next/2021.12", third),
    }
    assert api.dataset_info(DATA, revision="next/2021.12").sha == third
    api.delete_branch(DATA, branch="next/2021.12", repo_type="dataset")
    assert status(lambda: api.delete_branch(DATA, branch="main", repo_type="dataset")) == 403
    # The commit stays, as on the Hub.
    assert hub.repo("dataset", DATA).files(third)["a.json"] == b"3"


def test_only_a_branch_takes_commits(hub: LoopbackHub, api: HfApi) -> None:
    first = commit(api, add("a.json", b"1"))
    api.create_tag(DATA, tag="2021.12", repo_type="dataset")
    for revision in ("2021.12", first, "nothing"):
        with pytest.raises(RevisionNotFoundError):
            commit(api, add("a.json", b"2"), revision=revision)


# -- reading ----------------------------------------------------------------------------------------------------------


def test_trees(hub: LoopbackHub, api: HfApi) -> None:
    commit(api, *(add(f"a/{n}.json", b"1") for n in range(5)), add("a/b/c.json", b"1"), add("z.json", b"1"))
    second = commit(api, add("a/b/c.json", b"2"))

    def names(path: str | None = None, **more: Any) -> list[str]:
        return [entry.path for entry in api.list_repo_tree(DATA, path, repo_type="dataset", **more)]

    files = [f"a/{n}.json" for n in range(5)]
    assert names() == [".gitattributes", "a", "z.json"]
    assert names("a") == [*files, "a/b"]
    assert names(recursive=True) == [".gitattributes", "a", *files, "a/b", "a/b/c.json", "z.json"]
    assert names("a/b", recursive=True) == ["a/b/c.json"]
    with pytest.raises(EntryNotFoundError):
        names("nothing")
    with pytest.raises(RevisionNotFoundError):
        names(revision="nothing")
    changed = {
        entry.path
        for entry in api.list_repo_tree(DATA, recursive=True, expand=True, repo_type="dataset")
        if entry.last_commit is not None and entry.last_commit.oid == second
    }
    assert changed == {"a", "a/b", "a/b/c.json"}
    # Three entries to a page: 3, 6, 10, 1, and 10 again.
    assert sent(hub, "GET", "/tree/main") == [200] * (1 + 2 + 4 + 1) + [404] + [200] * 4


def test_some_paths(hub: LoopbackHub, api: HfApi) -> None:
    oid = commit(api, add("a/b.json", b"12"), add("c.bin", b"123"))
    found = api.get_paths_info(DATA, ["a", "a/b.json", "c.bin", "nothing"], repo_type="dataset", expand=True)
    assert [(type(entry), entry.path) for entry in found] == [
        (RepoFolder, "a"),
        (RepoFile, "a/b.json"),
        (RepoFile, "c.bin"),
    ]
    assert all(entry.last_commit is not None and entry.last_commit.oid == oid for entry in found)
    assert status(lambda: api.get_paths_info(DATA, ["a"] * 1001, repo_type="dataset")) == 413


def test_info(hub: LoopbackHub, api: HfApi) -> None:
    card = b"---\nlicense: cc0-1.0\ntags:\n- diffset\nbuilt: 2021-12-01\n---\n"
    first = commit(api, add("README.md", card), add("a.bin", b"123"))
    second = commit(api, add("b.json", b"1"))
    info = api.dataset_info(DATA, files_metadata=True)
    assert info.sha == second
    assert api.dataset_info(DATA, revision=first).sha == first
    assert info.card_data is not None and info.card_data["license"] == "cc0-1.0"
    siblings = {entry.rfilename: entry for entry in info.siblings or []}
    assert list(siblings) == [".gitattributes", "README.md", "a.bin", "b.json"]
    assert (siblings["b.json"].size, siblings["b.json"].blob_id) == (1, "56a6051ca2b02b04ef92d5150c9ef600403cb1de")
    lfs = siblings["a.bin"].lfs
    assert lfs is not None and lfs.sha256 == hashlib.sha256(b"123").hexdigest()
    assert api.dataset_info(DATA, expand=["sha"]).siblings is None
    assert api.list_repo_files(DATA, repo_type="dataset") == list(siblings)
    assert [item.commit_id for item in api.list_repo_commits(DATA, repo_type="dataset")][:2] == [second, first]


HOSTILE = [
    "a b.json",
    "ü/😀.json",
    "100%.json",
    "a%2Fb.json",
    "#?&=.json",
    "'\"<>.json",
    "|*.json",
    "=c().json",
    "[x].bin",
]


def test_hostile_paths(hub: LoopbackHub, api: HfApi, tmp_path: Path) -> None:
    commit(api, *(add(path, path.encode()) for path in HOSTILE))
    infos = api.get_paths_info(DATA, HOSTILE, repo_type="dataset")
    assert [info.path for info in infos] == HOSTILE
    assert [entry.path for entry in api.list_repo_tree(DATA, "ü", repo_type="dataset")] == ["ü/😀.json"]
    for path in HOSTILE:
        found = api.hf_hub_download(DATA, path, repo_type="dataset", cache_dir=tmp_path / "cache")
        assert Path(found).read_bytes() == path.encode()


def test_large_files_lie_elsewhere(hub: LoopbackHub, api: HfApi) -> None:
    oid = commit(api, add("a.json", b"{}"), add("b.bin", b"12345"))
    hub.repo("dataset", DATA).private = True
    regular = get_hf_file_metadata(hf_hub_url(DATA, "a.json", repo_type="dataset"))
    assert (regular.commit_hash, regular.etag, regular.size) == (oid, "9e26dfeeb6e641a33dae4961196235bdb965b21b", 2)
    large = get_hf_file_metadata(hf_hub_url(DATA, "b.bin", repo_type="dataset"))
    assert (large.commit_hash, large.etag, large.size) == (oid, hashlib.sha256(b"12345").hexdigest(), 5)
    assert large.location.startswith(f"{hub.cdn}/lfs/")
    assert regular.location.startswith(f"{hub.endpoint}/datasets/")
    with pytest.raises(RemoteEntryNotFoundError) as caught:
        get_hf_file_metadata(hf_hub_url(DATA, "nothing", repo_type="dataset"))
    assert caught.value.response.headers["X-Repo-Commit"] == oid
    with pytest.raises(RevisionNotFoundError):
        get_hf_file_metadata(hf_hub_url(DATA, "a.json", repo_type="dataset", revision="nothing"))


@pytest.mark.parametrize(
    ("asked", "expected", "content", "said"),
    [
        (None, 200, b"0123456789", None),
        ("bytes=0-", 206, b"0123456789", "bytes 0-9/10"),
        ("bytes=4-", 206, b"456789", "bytes 4-9/10"),
        ("bytes=4-5", 206, b"45", "bytes 4-5/10"),
        ("bytes=4-99", 206, b"456789", "bytes 4-9/10"),
        ("bytes=-3", 206, b"789", "bytes 7-9/10"),
        ("bytes=10-", 416, b"", "bytes */10"),
    ],
)
@pytest.mark.parametrize("path", ["a.txt", "a.bin"])
def test_ranges(
    hub: LoopbackHub, path: str, asked: str | None, expected: int, content: bytes, said: str | None
) -> None:
    hub.commit("dataset", DATA, {path: b"0123456789"})
    url = f"{hub.endpoint}/datasets/{DATA}/resolve/main/{path}"
    response = httpx2.get(url, headers={"Range": asked} if asked else {}, follow_redirects=True)
    assert (response.status_code, response.content) == (expected, content)
    assert response.headers.get("Content-Range") == said


# -- faults -----------------------------------------------------------------------------------------------------------


def test_a_limit_on_requests(hub: LoopbackHub, api: HfApi) -> None:
    hub.fault("POST", r"/preupload/", status=429, headers={"Retry-After": "7"}, times=2)
    commit(api, add("a.json", b"1"))
    assert sent(hub, "POST", "/preupload/") == [429, 429, 200]
    assert hub.waits == [8.0, 8.0]  # the client adds one second


def test_500_after_the_commit(hub: LoopbackHub, api: HfApi) -> None:
    hub.fault("POST", r"/commit/main$", status=500, after=True)
    assert status(lambda: commit(api, add("a.json", b"1"))) == 500
    assert hub.repo("dataset", DATA).files()["a.json"] == b"1"


def test_500_before_the_commit(hub: LoopbackHub, api: HfApi) -> None:
    hub.fault("POST", r"/commit/main$", status=500)
    assert status(lambda: commit(api, add("a.json", b"1"))) == 500
    assert "a.json" not in hub.repo("dataset", DATA).files()


@pytest.mark.parametrize("after", [False, True])
def test_a_cut_connection(hub: LoopbackHub, api: HfApi, after: bool) -> None:
    hub.fault("POST", r"/commit/main$", cut=True, after=after)
    with pytest.raises(httpx2.TransportError):
        commit(api, add("a.json", b"1"))
    assert ("a.json" in hub.repo("dataset", DATA).files()) == after
    assert sent(hub, "POST", "/commit/") == [0]


def test_cut_uploads_are_sent_again(hub: LoopbackHub, api: HfApi) -> None:
    hub.fault("PUT", r"^/upload-part/\d+/2$", cut=True)
    hub.fault("PUT", r"^/upload/", cut=True, after=True)
    hub.fault("POST", r"/verify$", status=503)
    files = {"a.bin": noise(2500), "b.bin": noise(10)}
    commit(api, *(add(path, content) for path, content in files.items()))
    assert sorted(sent(hub, "PUT", "/")) == [0, 0, 200, 200, 200, 200]
    assert hub.repo("dataset", DATA).files().items() >= files.items()


def test_a_cut_download_goes_on(hub: LoopbackHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 10_000)
    content = noise(100_000)
    hub.commit("dataset", DATA, {"a.bin": content})
    hub.fault("GET", r"^/lfs/", cut_after_bytes=30_000)
    hub.fault("GET", r"^/lfs/", nth=2, cut=True)
    found = HfApi().hf_hub_download(DATA, "a.bin", repo_type="dataset", cache_dir=tmp_path)
    assert Path(found).read_bytes() == content
    asked = [request.headers.get("range") for request in hub.requests if request.path.startswith("/lfs/")]
    assert asked == [None, "bytes=30000-", "bytes=30000-"]


def test_which_request_a_fault_is_about(hub: LoopbackHub) -> None:
    hub.fault("GET", r"^/api/agent", nth=2, times=2, status=418, headers={"X-Tea": "1"})
    hub.fault("*", r"whoami", status=503, delay=0.01)
    answers = [httpx2.get(f"{hub.endpoint}/api/agent-harnesses") for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 418, 418, 200]
    assert answers[1].headers["X-Tea"] == "1"
    assert httpx2.get(f"{hub.endpoint}/api/whoami-v2").status_code == 503


def test_somebody_comes_first(hub: LoopbackHub, api: HfApi) -> None:
    parent = commit(api, add("a.json", b"1"))
    other = HfApi(token="hf_me")
    hub.when("POST", r"/commit/main$", lambda: commit(other, add("b.json", b"other")))
    assert status(lambda: commit(api, add("c.json", b"1"), parent_commit=parent)) == 412
    files = hub.repo("dataset", DATA).files()
    assert "b.json" in files and "c.json" not in files


def test_a_look_at_every_step(hub: LoopbackHub, api: HfApi) -> None:
    seen: list[bool] = []
    hub.when("*", ".", lambda: seen.append("a.json" in hub.repo("dataset", DATA).files()), times=99, after=True)
    commit(api, add("a.json", b"1"), add("b.bin", b"1"))
    # Of two files: preupload, LFS batch, upload, verify, commit.
    assert seen == [False, False, False, False, True]


def test_something_happens_after(hub: LoopbackHub, api: HfApi) -> None:
    seen: list[bytes] = []
    hub.when("POST", r"/commit/main$", lambda: seen.append(hub.repo("dataset", DATA).files()["a.json"]), after=True)
    commit(api, add("a.json", b"1"))
    assert seen == [b"1"]


def test_a_client_that_is_killed(hub: LoopbackHub, api: HfApi, tmp_path: Path) -> None:
    """Killed as its commit comes in: with the fault it was never made, without it was."""
    code = (
        "from huggingface_hub import HfApi, CommitOperationAdd as Add\n"
        f"HfApi().create_commit({DATA!r}, [Add('a.json', b'1')], commit_message='m', repo_type='dataset')\n"
    )
    for cut in (True, False):
        process = subprocess.Popen(
            [sys.executable, "-c", code], env=hub.environment(tmp_path, "hf_me"), cwd=tmp_path, stderr=subprocess.PIPE
        )
        hub.when("POST", r"/commit/main$", process.kill)
        if cut:
            hub.fault("POST", r"/commit/main$", cut=True)
        process.communicate(timeout=60)
        assert process.returncode == -9
        until = time.monotonic() + 30  # the Hub may still be at it
        while not cut and "a.json" not in hub.repo("dataset", DATA).files() and time.monotonic() < until:
            time.sleep(0.05)
        assert ("a.json" in hub.repo("dataset", DATA).files()) != cut


# -- the loopback itself ----------------------------------------------------------------------------------------------


def test_what_it_does_not_know_fails_the_test() -> None:
    with pytest.raises(AssertionError, match="GET /api/papers/search"), LoopbackHub() as hub:
        response = httpx2.get(f"{hub.endpoint}/api/papers/search")
        assert response.status_code == 501
        assert "does not know" in response.json()["error"]
        assert hub.unknown == ["GET /api/papers/search"]


def test_a_hook_that_fails_fails_the_test() -> None:
    with pytest.raises(AssertionError, match="ZeroDivisionError"), LoopbackHub() as hub:
        hub.when("GET", "whoami", lambda: 1 // 0)
        httpx2.get(f"{hub.endpoint}/api/whoami-v2")


def test_the_environment_of_a_process(hub: LoopbackHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("https_proxy", "ALL_PROXY", "HF_TOKEN", "HF_HUB_CACHE", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.setenv(name, "of the person who tests")
    env = hub.environment(tmp_path)
    assert "of the person who tests" not in env.values()
    assert (env["HF_ENDPOINT"], env["HF_HOME"], env["PATH"]) == (hub.endpoint, str(tmp_path), os.environ["PATH"])
    assert hub.environment(tmp_path, "hf_me")["HF_TOKEN"] == "hf_me"
    assert hub.python("raise SystemExit(3)", tmp_path, check=False).returncode == 3
    with pytest.raises(AssertionError, match="exit status 1"):
        hub.python("raise ValueError", tmp_path)


# -- the clients that need a process of their own ---------------------------------------------------------------------


def parquet(*texts: str) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table({"text": list(texts)}), out)
    return out.getvalue()


CARD = b"""---
configs:
- config_name: diffset-1112
  data_files:
  - split: train
    path: diffset-1112/train-*.parquet
- config_name: all
  default: true
  data_files:
  - split: train
    path: "*/*.parquet"
---
"""
METRIC = b"""
import datasets
import evaluate
from .count import same

class Fuar(evaluate.Metric):
    def _info(self):
        number = datasets.Value("int64")
        features = datasets.Features({"predictions": number, "references": number})
        return evaluate.MetricInfo(description="", citation="", inputs_description="", features=features)

    def _compute(self, predictions, references):
        return {"fuar": same(predictions, references)}
"""
COUNT = b"""
def same(predictions, references):
    return sum(map(int.__eq__, predictions, references))
"""
READ = """
import json
from datasets import load_dataset
from evaluate import load

out = {}
for revision in ("2021.12", "2022.01"):
    for streaming in (False, True):
        rows = load_dataset("ORG/temporalwiki", "diffset-1112", revision=revision, streaming=streaming)["train"]
        out[f"{revision} {streaming}"] = [row["text"] for row in rows]
out["default"] = [row["text"] for row in load_dataset("ORG/temporalwiki")["train"]]
out["metric"] = load("ORG/fuar").compute(predictions=[1, 2], references=[1, 3])
print("OUT" + json.dumps(out))
"""


def test_datasets_and_evaluate(hub: LoopbackHub, tmp_path: Path) -> None:
    files = {f"diffset-1112/train-{n:05}-of-00004.parquet": parquet(f"{n}") for n in range(4)}
    hub.commit("dataset", DATA, {"README.md": CARD, **files}, tag="2021.12")
    changed = {"diffset-1112/train-00000-of-00004.parquet": parquet("new"), "more/a.parquet": parquet("more")}
    hub.commit("dataset", DATA, changed, tag="2022.01")
    hub.commit("space", "ORG/fuar", {"fuar.py": METRIC, "count.py": COUNT})
    output = hub.python(READ, tmp_path / "home").stdout
    assert json.loads(output.partition("OUT")[2]) == {
        "2021.12 False": ["0", "1", "2", "3"],
        "2021.12 True": ["0", "1", "2", "3"],
        "2022.01 False": ["new", "1", "2", "3"],
        "2022.01 True": ["new", "1", "2", "3"],
        "default": ["new", "1", "2", "3", "more"],
        "metric": {"fuar": 1},
    }


MODELS = """
import json
import torch
from huggingface_hub import HfApi
from peft import AutoPeftModelForCausalLM, LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel

api, tokens = HfApi(), torch.tensor([[1, 2]])
base = GPT2LMHeadModel(GPT2Config(vocab_size=8, n_positions=8, n_embd=8, n_layer=1, n_head=1, eos_token_id=0)).eval()
base.save_pretrained("base")
api.create_repo("ORG/base")
api.upload_folder(repo_id="ORG/base", folder_path="base")
api.create_tag("ORG/base", tag="2021.12")
first = base(tokens).logits
read = AutoModelForCausalLM.from_pretrained("ORG/base", revision="2021.12").eval()
config = LoraConfig(task_type="CAUSAL_LM", r=1, init_lora_weights=False, fan_in_fan_out=True)
adapted = get_peft_model(read, config).eval()
adapted.save_pretrained("adapter")
api.create_repo("ORG/adapter")
api.upload_folder(repo_id="ORG/adapter", folder_path="adapter")
second = adapted(tokens).logits
same = [torch.equal(first, AutoModelForCausalLM.from_pretrained("ORG/base").eval()(tokens).logits)]
for auto in (AutoModelForCausalLM, AutoPeftModelForCausalLM):
    same.append(torch.equal(second, auto.from_pretrained("ORG/adapter").eval()(tokens).logits))
print("OUT" + json.dumps([*same, torch.equal(first, second)]))
"""


def test_transformers_and_peft(hub: LoopbackHub, tmp_path: Path) -> None:
    output = hub.python(MODELS, tmp_path / "home", "hf_me").stdout
    assert json.loads(output.partition("OUT")[2]) == [True, True, True, False]
    assert hub.repo("model", "ORG/base").tags == {"2021.12": hub.repo("model", "ORG/base").branches["main"]}
