"""kill -9 at any moment: no incomplete file has a final name, and a rerun ends with the same bytes.

A series kills a command several times, before or after a change of its files or after some time, and then runs it to
its end. In some series the first kill is near the end, where results get their names. ``SEEDS=200`` tries 200 series
of each command. A failure names its seed.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from faults.commands import DATA, MODELS, Bench, Command
from faults.rows import SAME_BYTES

pytestmark = pytest.mark.slow

SEEDS = int(os.environ.get("SEEDS") or 0)
SERIES = 3  # of each command, by default
KILLS = 3  # in a row
LONG = {"build in two processes", "experiment"}  # other tests kill these a few times


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


def kill_in_series(bench: Bench, name: str) -> int:
    """Kill a command in several series, and return the number of kills."""
    killed = sum(kill(bench, name, seed) for seed in range(SEEDS or SERIES))
    assert killed, "it was never killed"
    return killed


def cases(commands: Mapping[str, Command]) -> list[Any]:
    found = []
    for name in commands:
        marks = [pytest.mark.fault("kill -9", f"{name}: at random moments", SAME_BYTES)]
        if name in LONG:
            marks.append(pytest.mark.skipif(not SEEDS, reason="takes long: SEEDS=1 runs it"))
        found.append(pytest.param(name, id=name, marks=marks))
    return found


@pytest.mark.parametrize("name", cases(DATA))
def test_of_data(name: str, of_data: Bench, record_property: Callable[[str, object], None]) -> None:
    record_property("cases", kill_in_series(of_data, name))


@pytest.mark.parametrize("name", cases(MODELS))
def test_of_models(name: str, of_models: Bench, record_property: Callable[[str, object], None]) -> None:
    record_property("cases", kill_in_series(of_models, name))
