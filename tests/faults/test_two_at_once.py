"""Two commands in one folder at the same time: the second is refused, and the first is not disturbed."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from temporalwiki.base.errors import InputError
from temporalwiki.base.files import only_one

from faults.commands import Bench
from faults.rows import REFUSED

pytestmark = pytest.mark.slow

# share of the first command's changes of files when the second starts, and the second's error
OF_DATA = {
    "build": (0.5, "another build is at work here"),
    "fetch": (0.5, "another fetch is at work here"),
    "ckl": (0.5, "another ckl is at work here"),
    "import": (0.5, "another import is at work here"),
}
OF_MODELS = {
    "train": (0.4, "another training is at work here"),
    "evaluate": (0.6, "another evaluation is at work here"),
    "experiment": (0.4, "another experiment is at work here"),
    "leaderboard": (0.5, "another leaderboard is at work here"),
}


def disturb(bench: Bench, name: str, share: float, said: str) -> None:
    """Run a command while it is held in the middle of its work, and let go of it then."""
    folder, (_, whole) = bench.folder / f"{name} twice", bench.undisturbed(name)
    bench.prepare(name, folder)
    words, hold = bench.commands[name].words(bench.there), bench.folder / f"{name} held"
    first = bench.struck.start(words, folder, at=int(whole.changes * share), hold=hold)
    end = time.monotonic() + 120
    while not hold.exists() and time.monotonic() < end:
        time.sleep(0.01)
    second = bench.run(name, folder)
    hold.unlink()
    ended = bench.struck.end(first)
    assert (second.status, second.out) == (1, ""), second.err
    assert said in second.err.splitlines()[-1]
    assert "Traceback" not in second.err
    assert ended.status == 0, ended.err
    bench.check_whole(name, folder, {}, "two at once")
    bench.check_same(name, folder, "afterwards")


def cases(commands: Mapping[str, tuple[float, str]]) -> list[Any]:
    return [
        pytest.param(
            name, *how, id=name, marks=pytest.mark.fault("two at once", f"two runs of {name} in one folder", REFUSED)
        )
        for name, how in commands.items()
    ]


@pytest.mark.parametrize(("name", "share", "said"), cases(OF_DATA))
def test_of_data(name: str, share: float, said: str, of_data: Bench) -> None:
    disturb(of_data, name, share, said)


@pytest.mark.parametrize(("name", "share", "said"), cases(OF_MODELS))
def test_of_models(name: str, share: float, said: str, of_models: Bench) -> None:
    disturb(of_models, name, share, said)


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
        process.join(120)
    assert [process.exitcode for process in processes] == [0] * 8
    assert len((tmp_path / "turns").read_text()) > 8
    assert not (tmp_path / "together").exists()
