"""A full disk: one line names it, no incomplete file has a final name, and a rerun with free space continues.

The disks are small file systems in memory. The tests are skipped if the system cannot mount them.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from a_disk import disk
from faults.commands import Bench
from faults.rows import ONE_LINE

pytestmark = pytest.mark.slow

PAGE = 4096  # bytes; a file takes whole pages
SAID = ("no space left on the disk; free some", "free; make room", "database or disk is full; set HF_HOME to")


@dataclass(frozen=True)
class Place:
    """A command, its folder on a small disk, and sizes of that disk as shares of the needed room."""

    command: str
    folder: str
    shares: tuple[float, ...] = (0.0, 0.6)


OF_DATA = {
    "build: --out": Place("build", "temporalwiki", (0.4,)),
    "build: --work": Place("build", "work"),
    "build of the next month: --out": Place("build of the next month", "temporalwiki", (0.5,)),
    "fetch: --dumps": Place("fetch", "dumps"),
    "ckl: --out": Place("ckl", "ckl"),
    "import: --out": Place("import", "temporalwiki"),
}
OF_MODELS = {
    "evaluate: --output": Place("evaluate", "results", (0.5,)),
    "evaluate: cached scores": Place("evaluate", ".home", (0.0,)),
    "experiment: its output folder": Place("experiment", "out", (0.3,)),
    "leaderboard: --out": Place("leaderboard", "leaderboard"),
}


def fill(bench: Bench, place: Place, share: float) -> None:
    """Run a command whose folder is on a disk with a share of the needed room, and again with enough room."""
    name = place.command
    bench.undisturbed(name)
    files = [path for path in (bench.folder / "whole" / name / place.folder).rglob("*") if path.is_file()]
    needed = sum(-(-file.stat().st_size // PAGE) * PAGE for file in files)
    top = bench.folder / f"{name} {place.folder} {share}"
    with ExitStack() as mounted:
        at = top / place.folder
        resize = mounted.enter_context(disk(at, "100m"))
        bench.prepare(name, top)
        before = bench.contents(name, top)
        resize(str(_used(at) + int(needed * share)))
        ended = bench.run(name, top)
        last = ended.err.splitlines()[-1]
        assert ended.status == 1, ended.err
        # an experiment prints which of its cells are done
        assert not ended.out or name == "experiment", ended.out
        assert last.startswith(f"temporalwiki {name.split()[0]}: "), ended.err
        assert any(said in last for said in SAID), last
        assert str(at) in last or last.split()[2].startswith(place.folder), last
        assert "Traceback" not in ended.err
        # the leaderboard of an experiment has the cells that are done: other bytes, but whole ones
        bench.check_whole(name, top, before, "full", but=("out/leaderboard/",))
        for table in top.glob("out/leaderboard/*.parquet"):
            assert pq.read_table(table).num_rows
        resize("100m")
        bench.check_same(name, top, "with room")


def _used(at: Path) -> int:
    """Return the bytes of a disk that are in use."""
    found = os.statvfs(at)
    return max(1, found.f_blocks - found.f_bfree) * found.f_frsize


def cases(places: dict[str, Place]) -> list[Any]:
    return [
        pytest.param(
            place,
            share,
            id=f"{name}, {share:.0%} of the needed room",
            marks=pytest.mark.fault("full disk", name, ONE_LINE),
        )
        for name, place in places.items()
        for share in place.shares
    ]


def without_tmpdir(bench: Bench, name: str) -> None:
    """Run a command with hardly any room in TMPDIR; libraries use it if a few bytes fit."""
    bench.undisturbed(name)
    top = bench.folder / f"{name} without"
    # not in the test's own folder, because a socket's path has at most 107 bytes
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as short, disk(aside := Path(short) / "aside", PAGE):
        bench.prepare(name, top)
        ended = bench.run(name, top, environment={"TMPDIR": str(aside)})
        assert ended.status == 0, ended.err
        assert not any(path.is_file() for path in aside.rglob("*"))
        bench.check_same(name, top, "afterwards")


def with_no_tmpdir(names: list[str]) -> list[Any]:
    happens = "nothing is written there: the same bytes"
    return [
        pytest.param(name, id=name, marks=pytest.mark.fault("full disk", f"{name}: TMPDIR", happens)) for name in names
    ]


@pytest.mark.parametrize("name", with_no_tmpdir(["build in two processes", "ckl"]))
def test_tmpdir_of_data(name: str, of_data: Bench) -> None:
    without_tmpdir(of_data, name)


@pytest.mark.parametrize("name", with_no_tmpdir(["train", "evaluate", "leaderboard"]))
def test_tmpdir_of_models(name: str, of_models: Bench) -> None:
    without_tmpdir(of_models, name)


@pytest.mark.parametrize(("place", "share"), cases(OF_DATA))
def test_of_data(place: Place, share: float, of_data: Bench) -> None:
    fill(of_data, place, share)


@pytest.mark.parametrize(("place", "share"), cases(OF_MODELS))
def test_of_models(place: Place, share: float, of_models: Bench) -> None:
    fill(of_models, place, share)
