"""Writing a config into CKL's folder: completely or not at all, and never over a config of another origin."""

import contextlib
import errno
import itertools
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from temporalwiki.base.errors import InputError
from temporalwiki.builders.ckl.config import described
from temporalwiki.builders.dataset_folder import problems, strays
from temporalwiki.builders.inspection import describe_manifest
from temporalwiki.builders.manifests import read_manifests

from a_ckl_config import add, config, invariantlama, live
from a_folder import contents
from a_stop import Killed, Stop


def sound(folder: Path) -> dict[str, int]:
    """Return the rows by config of a folder without problems."""
    manifests = read_manifests(folder)
    assert [*(one for manifest in manifests for one in problems(folder, manifest)), *strays(folder, manifests)] == []
    return {manifest.name: manifest.content["counts"]["kept"] for manifest in manifests}


@pytest.mark.slow
def test_stopped_while_it_is_finished_it_is_finished_by_the_next(tmp_path: Path) -> None:
    """tests/builders/test_dataset_folder.py stops an install at each step."""
    before = tmp_path / "before" / "ckl"
    add(before, config("newlama"), invariantlama())
    for first in itertools.count(1):
        folder = tmp_path / "stopped" / "ckl"
        shutil.rmtree(folder.parent, ignore_errors=True)
        shutil.copytree(before, folder)
        with contextlib.suppress(Killed), Stop(first):
            add(folder, config("newlama", {"test": [live(1), live(2)]}))
        if any("stopped before its end" in stray for stray in strays(folder, read_manifests(folder))):
            break
    for second in itertools.count(1):
        again = tmp_path / str(second) / "ckl"
        shutil.copytree(folder, again)
        stop = Stop(second)
        with stop, contextlib.suppress(Killed):
            add(again, config("updatedlama"))
        add(again, config("kilt-fever"))
        assert [path.name for path in again.parent.iterdir()] == ["ckl"]
        rows = sound(again)
        assert rows.pop("updatedlama", 1) == 1
        assert rows == {"invariantlama": 2, "kilt-fever": 1, "newlama": 2}, second
        if not stop.reached:
            break
    assert second > 20


@pytest.mark.parametrize(("module", "call"), [(shutil, "copyfile"), (os, "fsync")])
@pytest.mark.fault(
    "full disk", "ckl: while a config is installed", "one line names the disk, and the earlier files are unchanged"
)
def test_a_full_disk_is_named_and_nothing_is_lost(
    module: Any, call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "ckl"
    add(folder, config("newlama"))
    before = contents(folder)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(module, call, full)
    with pytest.raises(InputError, match=r"ckl.*: no space left on the disk; free some"):
        add(folder, config("newlama", {"test": [live(1), live(2)]}))
    assert contents(folder) == before


@pytest.mark.parametrize(
    ("there", "new", "said"),
    [
        ({"imported": True}, {}, "already has newlama, imported from an archive"),
        ({}, {"imported": True}, "already has newlama, built by `temporalwiki ckl`"),
        ({"options": {"wiki": "enwiki"}}, {"options": {"wiki": "dewiki"}}, "of enwiki, and the new one is of dewiki"),
    ],
)
def test_configs_that_are_not_replaced(there: dict[str, Any], new: dict[str, Any], said: str, tmp_path: Path) -> None:
    folder = tmp_path / "ckl"
    add(folder, config("newlama", **there))
    before = contents(folder)
    other = config("newlama", **new)
    other.splits = {"test": iter(lambda: pytest.fail("rows were read before it was refused"), None)}
    with pytest.raises(InputError, match=f"{said}.*choose another --out"):
        add(folder, other)
    assert contents(folder) == before
    add(folder, config("newlama", **there), config("updatedlama", **new))


def test_a_warning_is_said_by_whoever_shows_the_manifest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``temporalwiki ckl`` prints the description of the manifest that ``write`` returns."""
    [manifest] = add(tmp_path / "ckl", config("newlama", {"test": [live(1)], "validation": []}))
    said = capsys.readouterr()
    shown = said.out + said.err + describe_manifest(tmp_path / "ckl", manifest)
    assert shown.count("no rows in the split validation") == 1


def test_inputs_are_named_without_their_folder(tmp_path: Path) -> None:
    """The same files elsewhere give the same bytes."""
    folders = []
    for person in ("alice", "bob"):
        files = []
        for sub, text in (("x", "1"), ("y", "2")):
            (tmp_path / person / sub).mkdir(parents=True)
            files.append(tmp_path / person / sub / "n.jsonl")
            files[-1].write_text(text, "utf-8")
        folders.append(tmp_path / person / "ckl")
        add(folders[-1], config("newlama", inputs=files if person == "alice" else files[::-1]))
    assert contents(folders[0]) == contents(folders[1])
    [manifest] = read_manifests(folders[0])
    # printf 1 | sha1sum
    ones = ["356a192b7913b04c54574d18c28d46e6395428ab", "da4b9237bacccdf19c0760cab7aec4a8359010b0"]
    assert manifest.content["inputs"] == [{"file": "n.jsonl", "size": 1, "sha1": one} for one in ones]
    with pytest.raises(InputError, match="no such file"):
        described([tmp_path / "nowhere"])
