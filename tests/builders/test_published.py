"""The source of rows: the same for a folder and its published copy, and the commit that was really read."""

import hashlib
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from temporalwiki.base.errors import InputError
from temporalwiki.builders.manifests import read_manifests
from temporalwiki.builders.published import DataSource, find_on_hub, on_hub, read_published, source_of
from temporalwiki.push_scripts.dataset import publish_dataset

import a_ckl_config
from a_month import add_month, article
from loopback_hub import LoopbackHub

REPO = "ORG/monthly"
PROGRAM = """
import json, msgspec
from temporalwiki.builders.published import source_of
from temporalwiki.builders.loading import load_dataset
for data, config in json.loads({cases!r}):
    name, _, revision = data.partition("@")
    rows = load_dataset(name, config, revision=revision or None)
    print(json.dumps(msgspec.to_builtins(source_of(data, config, rows))))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two Novembers and a December, not published."""
    folder = tmp_path / "temporalwiki"
    for prev, recent in (("20201101", "20201201"), ("20211101", "20211201"), ("20211201", "20220101")):
        add_month(folder, prev, recent, [article(1, text=recent)])
    return folder


def sha256_of(manifest: dict[str, Any]) -> str:
    """Return the hash as a reader of the documentation computes it."""
    described = {key: value for key, value in manifest.items() if key not in ("run", "tag")}
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()


def test_a_month_has_the_same_hash_in_its_folder_and_on_the_hub(folder: Path, hub: LoopbackHub) -> None:
    path = folder / "manifests" / "20211101-20211201.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"run": {"stages": {}}}))
    list(publish_dataset(folder, REPO))
    published = hub.repo("dataset", REPO).files()
    for manifest in read_manifests(folder):
        there = json.loads(published[manifest.path])
        assert there["tag"] and "run" not in there
        assert manifest.sha256 == sha256_of(there) == sha256_of(json.loads((folder / manifest.path).read_text()))


def test_a_folder_knows_its_months_on_the_hub_only_after_they_are_there(folder: Path, hub: LoopbackHub) -> None:
    [_, manifest, _] = read_manifests(folder)
    local = DataSource("probes-20211101-20211201", manifest.sha256)
    list(publish_dataset(folder, REPO, dry_run=True))
    assert source_of(str(folder), "probes-1112", {}) == local
    list(publish_dataset(folder, REPO))
    commit = hub.repo("dataset", REPO).tags["2021.12"]
    placed = DataSource("probes-20211101-20211201", manifest.sha256, REPO, commit, "2021.12")
    assert source_of(str(folder), "probes-1112", {}) == placed
    assert placed.id == "ORG/monthly@2021.12"
    # a month that is built again with other rows is another one
    add_month(folder, "20211101", "20211201", [article(2)])
    assert source_of(str(folder), "probes-1112", {}).repository is None


def test_the_language_is_that_of_the_wiki_here_and_on_the_hub(tmp_path: Path, hub: LoopbackHub) -> None:
    folder = tmp_path / "german"
    add_month(folder, "20211101", "20211201", [article(1)], wiki="dewiki")
    assert source_of(str(folder), "probes-1112", {}).language == "de"
    add_month(tmp_path / "english", "20211101", "20211201", [article(1)])
    english = source_of(str(tmp_path / "english"), "probes-1112", {})
    assert msgspec.to_builtins(english).keys() == {"config", "manifest_sha256"}  # as in older results
    list(publish_dataset(folder, REPO))
    commit = hub.repo("dataset", REPO).tags["2021.12"]
    assert source_of(f"{REPO}@{commit}", "probes-1112", {}).language == "de"


def test_a_publisher_that_was_killed_before_its_list_writes_it_in_the_next_run(folder: Path, hub: LoopbackHub) -> None:
    list(publish_dataset(folder, REPO))
    (folder / "published.json").unlink()
    assert list(publish_dataset(folder, REPO)) == [f"datasets/{REPO}: up to date"]
    tags = {"20201101-20201201": "2020.12", "20211101-20211201": "2021.12", "20211201-20220101": "2022.01"}
    assert {name: place.tag for name, place in read_published(folder).items()} == tags


def test_ckl_has_a_commit_and_no_tag(tmp_path: Path, hub: LoopbackHub) -> None:
    config = a_ckl_config.config("updatedlama-20211101-20211201", short_name="updatedlama-1112")
    a_ckl_config.add(tmp_path / "ckl", config)
    list(publish_dataset(tmp_path / "ckl", "ORG/ckl"))
    commit = hub.repo("dataset", "ORG/ckl").branches["main"]
    for name in ("updatedlama-1112", "updatedlama-20211101-20211201"):
        source = source_of(str(tmp_path / "ckl"), name, {})
        assert (source.config, source.id) == ("updatedlama-20211101-20211201", f"ORG/ckl@{commit}")
        assert find_on_hub("ORG/ckl", name, commit)


@pytest.mark.parametrize("content", ["[]", "{", '{"x": {"repository": "../..", "commit": "1", "tag": "t"}}'])
def test_a_damaged_list_is_one_clear_error(content: str, folder: Path) -> None:
    (folder / "published.json").write_text(content)
    with pytest.raises(InputError, match=r"published\.json: not the list of published months; remove it and publish"):
        on_hub(folder, DataSource("probes-1112"))


def test_a_folder_without_manifests_has_only_the_name_of_its_config(tmp_path: Path) -> None:
    assert source_of(str(tmp_path), "new", {}) == DataSource("new")


def test_rows_of_the_hub_name_the_commit_that_was_read(folder: Path, hub: LoopbackHub, tmp_path: Path) -> None:
    list(publish_dataset(folder, REPO))
    repo = hub.repo("dataset", REPO)
    hub.commit("dataset", REPO, {"notes.md": b"later"})
    hub.commit("dataset", "ORG/other", {"train.jsonl": b'{"text": "a"}\n'})
    cases = [[REPO, "probes-1112"], [f"{REPO}@2020.12", "probes-1112"]]
    cases += [[REPO, "wikipedia-20220101"], ["ORG/other", "default"]]
    done = hub.python(PROGRAM.format(cases=json.dumps(cases)), tmp_path / "home")
    old, newest, later = (manifest.sha256 for manifest in read_manifests(folder))
    main = repo.branches["main"]
    expected = [
        DataSource("probes-20211101-20211201", newest, REPO, main, "2021.12"),
        DataSource("probes-20201101-20201201", old, REPO, repo.tags["2020.12"], "2020.12"),
        DataSource("wikipedia-20220101", later, REPO, main, "2022.01"),
        DataSource("default", None, "ORG/other", hub.repo("dataset", "ORG/other").branches["main"]),
    ]
    found = [DataSource(**json.loads(line)) for line in done.stdout.splitlines()]
    assert found == expected


@pytest.mark.parametrize("name", ["99999999-99999999", "20211101-20211201", "x"])
def test_a_strangers_manifest_is_no_source(name: str, hub: LoopbackHub, tmp_path: Path) -> None:
    files = {"README.md": b"", f"manifests/{name}.json": b'{"tag": ["x"]}'}
    files["probes-1112/train.jsonl"] = b'{"text": "a"}\n'
    commit = hub.commit("dataset", "ORG/odd", files)
    found = source_of(f"ORG/odd@{commit}", "probes-1112", {})
    assert found == DataSource("probes-1112", None, "ORG/odd", commit)
