"""Every command that writes files: killed, without power, on a full disk, and twice at once.

No incomplete file ever has a final name, and a rerun ends with the same bytes. ``SEEDS=200`` tries 200 series of kills
and 200 power cuts of each command. A failure names its seed.
"""

import multiprocessing
import os
import random
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from temporalwiki.base.errors import InputError
from temporalwiki.base.files import only_one
from temporalwiki.builders.published import PUBLISHED

from a_disk import disk
from a_folder import contents
from a_month import add_month, article, probe
from faults.commands import COMMANDS, Bench
from faults.disk import KEPT
from faults.rows import ONE_LINE, REFUSED, SAME_BYTES
from faults.struck import Ended, Struck, at_work
from loopback_hub import LoopbackHub

pytestmark = pytest.mark.slow

SEEDS = int(os.environ.get("SEEDS") or 0)
Record = Callable[[str, object], None]


def cases(row: str, done: str, happens: str, names: Iterable[str], long: Iterable[str] = ()) -> list[Any]:
    """Return commands as cases of the table; ``long`` ones run only with SEEDS."""
    skipped = pytest.mark.skipif(not SEEDS, reason="takes long: SEEDS=1 runs it")
    return [
        pytest.param(name, marks=[pytest.mark.fault(row, done.format(name), happens), *([skipped] * (name in long))])
        for name in names
    ]


# Kills. A series kills a command several times, before or after a change of its files or after some time, and then
# runs it to its end. In some series the first kill is near the end, where results get their names.

SERIES, KILLS = 3, 3  # of each command, by default; in a row


def kill(bench: Bench, name: str, seed: int) -> int:
    """Kill a command several times, run it to its end, compare, and return the number of kills."""
    folder, chance = bench.folder / f"{name} {seed}", random.Random(f"{name} {seed}")
    _, whole = bench.undisturbed(name)
    bench.prepare(name, folder)
    before = bench.contents(name, folder)
    killed = 0
    for _ in range(KILLS):
        when: dict[str, Any]
        if not killed and seed % 3 == 1:
            when = {"at": chance.choice(whole.opened[-2:])}
        elif not killed and seed % 3 == 2:
            when = {"at": max(1, whole.changes - int(chance.expovariate(1 / 8)))}
        elif not killed or chance.random() < 0.75:
            when = {"at": chance.randint(1, whole.changes)}
        else:
            when = {"after": whole.seconds * chance.random()}
        ended = bench.run(name, folder, **when)
        killed += ended.killed
        assert ended.killed or ended.status == 0, f"seed {seed}, {when}: {ended.err}"
        bench.check_whole(name, folder, before, f"seed {seed}, {when}")
        if not ended.killed:
            break
    bench.check_same(name, folder, f"seed {seed}")
    shutil.rmtree(folder)
    return killed


@pytest.mark.parametrize(
    "name",
    cases("kill -9", "{}: at random moments", SAME_BYTES, COMMANDS, long=("build in two processes", "experiment")),
)
def test_kill(name: str, bench: Bench, record_property: Record) -> None:
    killed = sum(kill(bench, name, seed) for seed in range(SEEDS or SERIES))
    assert killed, "it was never killed"
    record_property("cases", killed)


# Power cuts. No disk is cut off from power: a command runs while every sync is recorded, and is killed at some change
# of its files; what it had not synced is then taken away (disk.py).

CUTS = 6  # of each command, by default
OLD_OR_NEW = "each result is the old or the new one, and a rerun ends with the same bytes"
MONTHS = (("20211101", "20211201"), ("20211201", "20220101"))


def cut(bench: Bench, name: str, seed: int) -> None:
    """Cut the power during a command, or right after its end, run it again, and compare."""
    folder, chance = bench.folder / f"{name} cut {seed}", random.Random(f"{name} {seed}")
    wanted, whole = bench.undisturbed(name)
    bench.prepare(name, folder)
    before = bench.contents(name, folder)
    late = max(1, whole.changes - int(chance.expovariate(1 / 16)))  # the names of results come last
    at = None if seed % 6 == 0 else late if seed % 2 else chance.randint(1, whole.changes)
    kept = KEPT[seed % 3]
    ended = bench.run(name, folder, at=at, cut=f"{kept} {seed}")
    why = f"seed {seed}: {kept}, change {at} of {whole.changes}"
    if at is None:
        assert ended.status == 0, f"{why}: {ended.err}"
        assert wanted.items() <= bench.contents(name, folder).items(), why  # what is deleted last may be there
    else:
        assert ended.killed or ended.status == 0, f"{why}: {ended.err}"
        bench.check_whole(name, folder, before, why)
    bench.check_same(name, folder, why)
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    "name",
    cases(
        *("power cut", "{}: at random moments", OLD_OR_NEW),
        [name for name in COMMANDS if name != "build in two processes"],  # syncs are recorded in one process
        long=("experiment",),
    ),
)
def test_power_cut(name: str, bench: Bench, record_property: Record) -> None:
    for seed in range(SEEDS or CUTS):
        cut(bench, name, seed)
    record_property("cases", SEEDS or CUTS)


@pytest.mark.fault(
    "power cut", "publish: at random moments", "the repository is the old or the new one, a rerun ends it"
)
def test_power_cut_of_publishing(tmp_path: Path, record_property: Record) -> None:
    """Cut the power of the publisher while it sends a second month. The Hub has power."""
    old, new = tmp_path / "old" / "temporalwiki", tmp_path / "new" / "temporalwiki"
    for folder, months in ((old, MONTHS[:1]), (new, MONTHS)):
        for number, (prev, recent) in enumerate(months, 1):
            add_month(folder, prev, recent, [article(number)], [probe(number)])
    modules = [f"temporalwiki.{name}" for name in ("api.publish", "push_scripts.dataset", "model_cards.dataset")]
    with LoopbackHub() as hub:
        hub.add_user("me", "hf_me", orgs={"ORG": "write"})
        online = hub.environment(tmp_path / "home", "hf_me") | {"HF_HUB_OFFLINE": "0"}
        online.pop("PYTHONPATH", None)  # the process has its own
        with Struck(modules, online) as struck:

            def publish(folder: Path, repo: str, **options: Any) -> Ended:
                return struck.run(["publish", "dataset", "temporalwiki", repo], folder.parent, **options)

            def state(repo: str) -> tuple[dict[str, bytes], set[str]]:
                found = hub.repo("dataset", repo)
                # the second is in the key of a citation
                names = f"{re.escape(repo)}|{re.sub(r'[^a-zA-Z0-9]', '_', repo)}".encode()
                return {path: re.sub(names, b"ID", of) for path, of in found.files().items()}, set(found.tags)

            publish(old, "ORG/whole")
            before = state("ORG/whole")
            ended = publish(new, "ORG/whole")
            wanted = state("ORG/whole")
            assert ended.status == 0, ended.err
            assert before != wanted
            data = without_places(new)
            for seed in range(SEEDS or CUTS):
                repo, chance = f"ORG/cut-{seed}", random.Random(seed)
                publish(old, repo)
                at = None if seed % 6 == 0 else chance.randint(1, ended.changes)
                why = f"seed {seed}: change {at} of {ended.changes}"
                cut_off = publish(new, repo, at=at, cut=f"{KEPT[seed % 3]} {seed}")
                assert (cut_off.killed or at is None) or cut_off.status == 0, f"{why}: {cut_off.err}"
                files, tags = state(repo)
                assert files in (before[0], wanted[0]), why
                assert before[1] <= tags <= wanted[1], why
                again = publish(new, repo)
                assert again.status == 0, f"{why}: {again.err}"
                assert state(repo) == wanted, why
                assert without_places(new) == data, why
    record_property("cases", SEEDS or CUTS)


def without_places(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder, without the list of its published months: each repository has its own commits."""
    return {path: content for path, content in contents(folder).items() if path != PUBLISHED}


# Full disks, which are small file systems in memory. The tests are skipped if the system cannot mount them.

PAGE = 4096  # bytes; a file takes whole pages
SAID = ("no space left on the disk; free some", "free; make room", "database or disk is full; set HF_HOME to")
# a command and its folder on a small disk -> sizes of that disk as shares of the needed room
FULL: dict[tuple[str, str, str], tuple[float, ...]] = {
    ("build", "--out", "temporalwiki"): (0.4,),
    ("build", "--work", "work"): (0.0, 0.6),
    ("build of the next month", "--out", "temporalwiki"): (0.5,),
    ("fetch", "--dumps", "dumps"): (0.0, 0.6),
    ("ckl", "--out", "ckl"): (0.0, 0.6),
    ("import", "--out", "temporalwiki"): (0.0, 0.6),
    ("evaluate", "--output", "results"): (0.5,),
    ("evaluate", "cached scores", ".home"): (0.0,),
    ("experiment", "its output folder", "out"): (0.3,),
    ("leaderboard", "--out", "leaderboard"): (0.0, 0.6),
}


@pytest.mark.parametrize(
    ("name", "place", "share"),
    [
        pytest.param(
            *(name, place, share),
            id=f"{name}: {option}, {share:.0%} of the needed room",
            marks=pytest.mark.fault("full disk", f"{name}: {option}", ONE_LINE),
        )
        for (name, option, place), shares in FULL.items()
        for share in shares
    ],
)
def test_full_disk(name: str, place: str, share: float, bench: Bench) -> None:
    """Run a command whose folder is on a disk with a share of the needed room, and again with enough room."""
    bench.undisturbed(name)
    files = [path for path in (bench.folder / "whole" / name / place).rglob("*") if path.is_file()]
    needed = sum(-(-file.stat().st_size // PAGE) * PAGE for file in files)
    top = bench.folder / f"{name} {place} {share}"
    with ExitStack() as mounted:
        at = top / place
        resize = mounted.enter_context(disk(at, "100m"))
        bench.prepare(name, top)
        before = bench.contents(name, top)
        found = os.statvfs(at)
        used = max(1, found.f_blocks - found.f_bfree) * found.f_frsize
        resize(str(used + int(needed * share)))
        ended = bench.run(name, top)
        last = ended.err.splitlines()[-1]
        assert ended.status == 1, ended.err
        # an experiment prints which of its cells are done
        assert not ended.out or name == "experiment", ended.out
        assert last.startswith(f"temporalwiki {name.split()[0]}: "), ended.err
        assert any(said in last for said in SAID), last
        assert str(at) in last or last.split()[2].startswith(place), last
        assert "Traceback" not in ended.err
        # the leaderboard of an experiment has the cells that are done: other bytes, but whole ones
        bench.check_whole(name, top, before, "full", but=("out/leaderboard/",))
        for table in top.glob("out/leaderboard/*.parquet"):
            assert pq.read_table(table).num_rows
        resize("100m")
        bench.check_same(name, top, "with room")


@pytest.mark.parametrize(
    "name",
    cases(
        *("full disk", "{}: TMPDIR", "nothing is written there: the same bytes"),
        ("build in two processes", "ckl", "train", "evaluate", "leaderboard"),
    ),
)
def test_tmpdir(name: str, bench: Bench) -> None:
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


# Two at once

# command -> the share of its changes of files when the second starts, and how the second's error calls it
TWICE = {
    "build": (0.5, "build"),
    "fetch": (0.5, "fetch"),
    "ckl": (0.5, "ckl"),
    "import": (0.5, "import"),
    "train": (0.4, "training"),
    "evaluate": (0.6, "evaluation"),
    "experiment": (0.4, "experiment"),
    "leaderboard": (0.5, "leaderboard"),
}


@pytest.mark.parametrize("name", cases("two at once", "two runs of {} in one folder", REFUSED, TWICE))
def test_two_at_once(name: str, bench: Bench) -> None:
    """Run a command while it is held in the middle of its work, and let go of it then."""
    folder, (_, whole) = bench.folder / f"{name} twice", bench.undisturbed(name)
    bench.prepare(name, folder)
    hold, (share, called) = bench.folder / f"{name} held", TWICE[name]
    first = bench.start(name, folder, at=int(whole.changes * share), hold=hold)
    while not hold.exists() and at_work(first):
        time.sleep(0.01)
    second = bench.run(name, folder)
    hold.unlink()
    ended = bench.struck.end(first)
    assert (second.status, second.out) == (1, ""), second.err
    assert f"another {called} is at work here" in second.err.splitlines()[-1]
    assert "Traceback" not in second.err
    assert ended.status == 0, ended.err
    bench.check_whole(name, folder, {}, "two at once")
    bench.check_same(name, folder, "afterwards")


def take_turns(folder: Path, rounds: int) -> None:
    """Lock the folder again and again; record each turn, and each time when another process held the lock."""
    held = folder.with_name("held")
    for _ in range(rounds):
        try:
            with only_one(folder, "test"):
                try:
                    held.mkdir()
                except FileExistsError:
                    folder.with_name("together").touch()
                    continue
                with folder.with_name("turns").open("a") as turns:
                    turns.write("x")
                held.rmdir()
        except InputError:
            pass


@pytest.mark.fault("two at once", "eight processes lock one folder again and again", "two never hold it at once")
def test_a_folder_is_never_held_by_two(tmp_path: Path) -> None:
    """A lock's file is deleted with the lock, so another process may lock the file just then."""
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=take_turns, args=(tmp_path / "folder", 300)) for _ in range(8)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 8
    assert len((tmp_path / "turns").read_text()) > 8
    assert not (tmp_path / "together").exists()
