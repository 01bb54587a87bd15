"""Loading what is published: without a network from the cache, from a full disk, and from damaged files."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from temporalwiki.push_scripts.dataset import publish_dataset

from a_disk import disk
from a_month import add_month, article
from loopback_hub import LoopbackHub

REPO, FILE = "ORG/temporalwiki", "data/diffset-20211001-20211101/train-00000-of-00001.parquet"
LOAD = """
import os, sys
import temporalwiki
from temporalwiki.base.errors import InputError
from temporalwiki.builders.loading import config_names
path, _, revision = sys.argv[1].partition("@")
try:
    if sys.argv[2:]:
        print(temporalwiki.load_dataset(path, sys.argv[2], split="train", revision=revision or None)["id"][:])
    else:
        print(*config_names(sys.argv[1]))
except InputError as error:
    print(error)
sys.stdout.flush()
os._exit(0)  # on a full disk, threads of pyarrow may abort a process that ends
"""
Load = Callable[..., str]


@pytest.fixture
def folder(tmp_path: Path, hub: LoopbackHub) -> Path:
    """Return a dataset folder that is published."""
    add_month(tmp_path / "temporalwiki", "20211001", "20211101", [article(i, text="Text. " * 90) for i in range(400)])
    list(publish_dataset(tmp_path / "temporalwiki", REPO))
    return tmp_path / "temporalwiki"


@pytest.fixture
def load(hub: LoopbackHub, tmp_path: Path) -> Load:
    """Load a config in a process of its own, or list the configs; return what it prints."""

    def load(*words: str, offline: bool = False, home: Path = tmp_path / "home") -> str:
        environment = hub.environment(home) | ({"HF_HUB_OFFLINE": "1"} if offline else {})
        command = [sys.executable, "-c", LOAD, *words]
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return load


@pytest.mark.fault(
    "no network",
    "train, evaluate and load_dataset: HF_HUB_OFFLINE=1 after the data were loaded once",
    "names, commits and tags come from the cache; what it cannot prove is refused in one line",
)
@pytest.mark.slow
def test_what_was_loaded_online_is_found_offline(folder: Path, hub: LoopbackHub, load: Load) -> None:
    first = hub.repo("dataset", REPO).tags["2021.11"]
    assert load(REPO, "diffset-1011", offline=True).startswith(f"{REPO}: ")  # one line
    assert "HF_HUB_OFFLINE is set, and " in load(REPO, offline=True)
    rows = load(f"{REPO}@2021.11", "diffset-1011")
    add_month(folder, "20211101", "20211201", [article(7)])
    list(publish_dataset(folder, REPO, accept_jump=True))
    assert load(REPO, "diffset-1112") == "[7]"
    assert load(REPO, offline=True) == "diffset-1011 diffset-1112"
    for reference in (REPO, f"{REPO}@2021.11", f"{REPO}@{first}"):
        assert load(reference, "diffset-1011", offline=True) == rows
    assert load(f"{REPO}@2021.11", offline=True) == "diffset-1011"
    assert load(f"{REPO}@2021.11", "diffset-1112", offline=True) == (
        f"{REPO}: the offline cache has no diffset-1112 of 2021.11; it has diffset-1011"
    )
    for revision in ("main", "2021.12", "../refs/2021.11"):
        assert f"revision {revision!r} cannot be checked offline" in load(
            f"{REPO}@{revision}", "diffset-1011", offline=True
        )
    assert f"of {'0' * 40}; it has nothing" in load(f"{REPO}@{'0' * 40}", "diffset-1011", offline=True)
    # the newest copy of a config is another commit's: the pinned one is still its own
    add_month(folder, "20211001", "20211101", [article(9)])
    list(publish_dataset(folder, REPO, replace=True, tag="2021.11.1"))
    assert load(REPO, "diffset-1011") == "[9]"
    assert load(f"{REPO}@2021.11", "diffset-1011", offline=True) == rows


@pytest.mark.fault("full disk", "load_dataset: HF_HOME", "one line names the disk")
@pytest.mark.parametrize("size", ["24k", "100k"], ids=["while it downloads", "while it unpacks"])
def test_a_full_disk_of_the_cache_is_named(size: str, folder: Path, load: Load, tmp_path: Path) -> None:
    with disk(tmp_path / "small", size):
        for place in (REPO, str(folder)):
            said = load(place, "diffset-1011", home=tmp_path / "small")
            assert said.startswith(f"{place}: {tmp_path / 'small'}/"), said
            assert said.endswith("No space left on device; free some space, or set HF_HOME to another disk")


@pytest.mark.fault(
    "hostile Parquet", "load_dataset: a file is damaged", "one line names the file, why, and what to do"
)
@pytest.mark.parametrize("where", ["folder", "Hub", "cache"])
def test_a_damaged_file_is_named(where: str, folder: Path, hub: LoopbackHub, load: Load, tmp_path: Path) -> None:
    good = (folder / FILE).read_bytes()
    bad = good[:4] + bytes(60) + good[64:]
    if where == "folder":
        (folder / FILE).write_bytes(bad)
        said, file, mend = load(str(folder), "diffset-1011"), str(folder / FILE), "build its month again"
    elif where == "Hub":
        commit = hub.commit("dataset", REPO, {FILE: bad})
        said, file = load(REPO, "diffset-1011"), f"hf://datasets/{REPO}@{commit}/{FILE}"
        mend = "it is so on the Hub: tell its maintainers"
    else:
        load(REPO, "diffset-1011")
        [copy] = {path.resolve() for path in (tmp_path / "home" / "hub").rglob("*.parquet")}
        copy.write_bytes(bad)
        (tmp_path / "home" / "datasets").rename(tmp_path / "elsewhere")
        commit = hub.repo("dataset", REPO).branches["main"]
        said, file = load(REPO, "diffset-1011"), f"hf://datasets/{REPO}@{commit}/{FILE}"
        mend = f"delete {copy} and load it again"
    assert said.startswith(f"{file}: damaged (") and said.endswith(f"; {mend}") and said.count("\n") == 0, said
