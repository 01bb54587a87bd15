"""Files are whole or absent, and one process at a time holds a folder."""

import contextlib
import itertools
import os
import re
from pathlib import Path

import pytest

from temporalwiki.base.errors import InputError
from temporalwiki.base.files import discard, only_one, read_small, sweep, whole_file, whole_folder
from temporalwiki.base.json_files import read_json
from temporalwiki.builders.checksums import is_listed
from temporalwiki.builders.manifests import read_manifests
from temporalwiki.methods.manifest import read_training

from a_stop import Killed, Stop


def test_a_file_is_whole_or_absent(tmp_path: Path) -> None:
    path = tmp_path / "f"
    with pytest.raises(RuntimeError), whole_file(path) as part:
        part.write_text("half")
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []
    with whole_file(path) as part:
        part.write_text("whole")
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is synced and renamed, in order; the random part of a name is a star."""
    found: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def record(step: str, path: str | Path) -> None:
        found.append(f"{step} {re.sub('[0-9a-f]{8}', '*', Path(path).name)}")

    def record_fsync(descriptor: int) -> None:
        record("sync", Path(f"/proc/self/fd/{descriptor}").readlink())
        fsync(descriptor)

    def record_replace(path: Path, target: Path) -> Path:
        record("rename to", target)
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", record_fsync)
    monkeypatch.setattr(Path, "replace", record_replace)
    return found


def test_a_file_is_synced_before_it_gets_its_name_and_its_folder_after_it(tmp_path: Path, steps: list[str]) -> None:
    with whole_file(tmp_path / "new" / "f") as part:
        assert steps == [f"sync {tmp_path.name}"]  # it has got a folder
        part.write_text("whole")
    assert steps[1:] == ["sync .f.*.part", "rename to f", "sync new"]


def test_all_of_a_folder_is_synced_before_it_gets_its_name(tmp_path: Path, steps: list[str]) -> None:
    with whole_folder(tmp_path / "out") as part:
        (part / "a").write_text("a")
        (part / "in").mkdir()
        (part / "in" / "b").write_text("b")
        steps.clear()
    assert steps == ["sync b", "sync in", "sync a", "sync .out.part", "rename to out", f"sync {tmp_path.name}"]


def test_two_writers_of_one_file_do_not_meet(tmp_path: Path) -> None:
    with whole_file(tmp_path / "f") as one, whole_file(tmp_path / "f") as other:
        one.write_text("one")
        other.write_text("other")
        assert (one.read_text(), other.read_text()) == ("one", "other")
        assert {path.name[0] for path in tmp_path.iterdir()} == {"."}
    assert [path.read_text() for path in tmp_path.iterdir()] == ["one"]  # the last one to end wins


def test_a_folder_is_held_by_one_build(tmp_path: Path) -> None:
    with (
        only_one(tmp_path / "out", "build"),
        pytest.raises(InputError, match="another build"),
        only_one(tmp_path / "out", "build"),
    ):
        raise AssertionError("two at once")
    with only_one(tmp_path / "out", "build"):  # free again
        assert [path.name for path in tmp_path.iterdir()] == [".out.lock"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("folder", "why"),
    [("/proc/out", "/proc: "), ("/proc/deep/out", "/proc/deep: "), ("file/out", "/file: File")],
)
def test_a_folder_that_cannot_be_held_is_named_and_not_its_lock(folder: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    path = tmp_path / folder
    with pytest.raises(InputError, match=f"^{path}: cannot be written: .*{why}") as raised, only_one(path, "build"):
        pass
    assert "lock" not in str(raised.value)


def test_a_discarded_folder_is_whole_or_absent_at_every_kill(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    for nth in itertools.count(1):
        for file in (folder / "a.json", folder / "deep" / "b.json"):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
        stop = Stop(nth)
        with stop, contextlib.suppress(Killed):
            discard(folder)
        assert not folder.exists() or len(list(folder.rglob("*.json"))) == 2
        discard(folder)
        assert list(tmp_path.iterdir()) == []
        if not stop.reached:
            break
    assert nth > 4


@pytest.mark.fault(
    "hostile JSON", "a manifest, a result or a list of checksums is a pipe or larger than 64 MB", "refused in one line"
)
@pytest.mark.parametrize("kind", ["a pipe", "a device", "a folder", "too large"])
def test_a_small_file_is_regular_and_small(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "f"
    if kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a device":
        path.symlink_to("/dev/zero")
    elif kind == "a folder":
        path.mkdir()
    else:
        path.touch()
        os.truncate(path, 3 << 30)  # takes no room on the disk
    said = f"larger than 64 MB: '{path}'" if kind == "too large" else f"not a regular file: '{path}'"
    with pytest.raises(OSError, match=said):
        read_small(path)
    with pytest.raises(InputError, match=f"^{path}: not JSON that temporalwiki can use"):
        read_json(path, dict)
    (tmp_path / "manifests").mkdir()
    for place in ("manifests/20211101-20211201.json", "sha1sums.txt"):
        (tmp_path / place).symlink_to(path)
    for read in (
        lambda: read_training(path),
        lambda: read_manifests(tmp_path),
        lambda: is_listed(tmp_path / "dump"),
    ):
        with pytest.raises((OSError, InputError), match=r"larger than 64 MB|not a regular file"):
            read()


def test_a_small_file_is_read(tmp_path: Path) -> None:
    for content in (b"", b"x" * 100_000):
        (tmp_path / "f").write_bytes(content)
        assert read_small(tmp_path / "f") == content
    with pytest.raises(FileNotFoundError):
        read_small(tmp_path / "g")


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / ".out.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match=r"\.out\.lock: is a link"), only_one(tmp_path / "out", "build"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == [".out.lock"]


def test_only_unfinished_files_of_ours_are_swept(tmp_path: Path) -> None:
    theirs = tmp_path / ".holiday.mp4.part"
    theirs.touch()
    with whole_file(tmp_path / "f") as part:
        part.write_text("left")
        part.with_name(part.name.replace(part.name.split(".")[-2], "0123abcd")).touch()
    sweep(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [theirs.name, "f"]
