"""``load_dataset`` of CKL's configs: by name only, by a folder, and without rows."""

import os
import shutil
from pathlib import Path
from typing import Any

import datasets
import pytest

import temporalwiki
from temporalwiki.base.errors import InputError
from temporalwiki.builders.ckl.schemas import CONFIGS, SCHEMAS
from temporalwiki.builders.loading import config_names, state_of

from a_ckl_config import add, cloze, config, invariantlama, live


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "ckl"


def load(*arguments: str, **options: Any) -> Any:
    return temporalwiki.load_dataset(*arguments, cache_dir="cache", **options)


def test_short_names_and_folders_by_any_name(folder: Path) -> None:
    add(folder, invariantlama(), config("updatedlama-20211101-20211201", short_name="updatedlama-1112"))
    assert load("invariantlama")["test"][0] == cloze(1)
    assert load("updatedlama-1112", split="test")["old_answers"][:] == [["Lazio"]]
    folder.rename(folder.with_name("mine"))
    assert load("mine", "updatedlama-1112", split="test")["old_answers"][:] == [["Lazio"]]
    assert [row["subject"] for row in load("./mine", "invariantlama", split="test", streaming=True)] == ["Ann", "Bo"]


def test_a_folder_may_have_the_name_of_a_builder_of_the_library(folder: Path) -> None:
    add(folder, invariantlama())
    folder.rename(folder.with_name("json"))
    assert config_names("json") == ["invariantlama"]
    assert load("json", "invariantlama")["test"][0] == cloze(1)
    with pytest.raises(InputError, match="a local folder has no revision 'v1'"):
        load("json", "invariantlama", revision="v1")


def test_a_folder_around_a_dataset_is_none(folder: Path) -> None:
    add(folder / "inner", invariantlama())
    (folder / "empty").mkdir()
    with pytest.raises(InputError, match=r"^ckl: no manifests in it, so it is no dataset folder; ckl/inner is one$"):
        config_names("ckl")
    with pytest.raises(InputError, match=r"^ckl/empty: no manifests in it, so it is no dataset folder: "):
        config_names("ckl/empty")


def test_splits_without_rows_are_there_and_empty(folder: Path) -> None:
    rows: dict[str, list[Any]] = {"train": [], "test": [{"id": "1", "input": "q", "output": None, "answers": []}]}
    add(folder, config("kilt-nq", rows, kind="kilt"), config("newlama", {"test": []}, short_name="newlama-1112"))
    loaded = load("kilt-nq")
    assert {split: len(of) for split, of in loaded.items()} == {"train": 0, "test": 1}
    assert loaded["train"].features == loaded["test"].features
    assert loaded["test"][0] == rows["test"][0]
    assert load("newlama-1112", split="test").features.arrow_schema.equals(SCHEMAS["live"])
    assert {split: list(of) for split, of in load("kilt-nq", streaming=True).items()} == rows
    assert list(load("newlama", split="test", streaming=True)) == []
    assert {split: list(of) for split, of in load("newlama", streaming=True).items()} == {"test": []}


def test_without_the_folder_the_line_says_which_command_makes_it(folder: Path) -> None:
    with pytest.raises(InputError, match=r"no folder \./ckl: make one with `temporalwiki ckl`.*\"invariantlama\""):
        load("invariantlama")
    with pytest.raises(InputError, match=r"no folder \./temporalwiki: make one with `temporalwiki build`"):
        load("diffset-1112")


def test_rows_of_a_folder_stay_out_of_the_cache_that_answers_in_other_folders(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a network, ``datasets`` loads the newest rows that it has cached under a name."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", folder.with_name("cache"))
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    add(folder, invariantlama())
    assert temporalwiki.load_dataset("invariantlama")["test"][0] == cloze(1)
    elsewhere = folder.with_name("elsewhere")
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    for name in ("invariantlama", None):
        with pytest.raises(ConnectionError, match="Couldn't reach 'ckl' on the Hub"):
            datasets.load_dataset("ckl", name)
    monkeypatch.chdir(folder.parent)
    assert len(datasets.load_dataset("ckl", "invariantlama")["test"]) > 0  # the library's own cache is as before
    monkeypatch.chdir(elsewhere)
    assert len(datasets.load_dataset("ckl", "invariantlama")["test"]) > 0


def test_cached_rows_last_as_long_as_the_files_of_their_config(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add(folder, invariantlama())
    old, whole = state_of(Path("ckl"), "invariantlama"), state_of(Path("ckl"), None)
    assert state_of(folder, "invariantlama") == old
    add(folder, config("newlama-20211101-20211201", {"test": [live(7)]}, short_name="newlama-1112"))
    assert state_of(Path("ckl"), "invariantlama") == old
    assert state_of(Path("ckl"), None) != whole
    new = state_of(Path("ckl"), "newlama-1112")
    assert state_of(Path("ckl"), "newlama-20211101-20211201") == new != old
    shutil.copytree(folder, folder.with_name("elsewhere") / "ckl")  # with the times of the files
    os.utime(next(folder.glob("data/invariantlama/*")), (1, 1))
    assert state_of(Path("ckl"), "invariantlama") != old
    assert state_of(Path("ckl"), "newlama-1112") == new
    monkeypatch.chdir(folder.with_name("elsewhere"))
    assert state_of(Path("ckl"), "invariantlama") != old


@pytest.mark.parametrize(
    ("name", "of_ckl"),
    [
        *((name, True) for name in CONFIGS),
        ("newlama-1112", True),
        ("invariantlama-20211101-20220201", True),
        ("kilt", False),  # several
        ("kilt-nothing", False),
        ("newlama-easy-1112", False),
        ("ORG/newlama", False),
        ("./newlama", False),
    ],
)
def test_names_that_mean_the_folder_of_ckl_are_those_that_can_be_made(
    name: str, of_ckl: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asked: list[str] = []
    monkeypatch.setattr(datasets, "load_dataset", lambda path, *_, **__: asked.append(path))
    if of_ckl:
        with pytest.raises(InputError, match=r"no folder \./ckl"):
            temporalwiki.load_dataset(name)
    else:
        temporalwiki.load_dataset(name)
    assert asked == ([] if of_ckl else [name])
