"""A power cut at any moment: each result is the old or the new one, and a rerun ends with the same bytes.

No disk is cut off from power. A command runs while every sync is recorded, and is killed at some change of its files;
what it had not synced is then taken away (``disk.py``). ``SEEDS=200`` tries 200 cuts of each command. A failure names
its seed.
"""

from __future__ import annotations

import os
import random
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from temporalwiki.builders.published import PUBLISHED

from a_folder import contents
from a_month import add_month, article, probe
from faults.commands import DATA, MODELS, Bench, Command
from faults.disk import KEPT
from faults.struck import Ended, Struck
from loopback_hub import LoopbackHub

pytestmark = pytest.mark.slow

SEEDS = int(os.environ.get("SEEDS") or 0)
CUTS = 6  # of each command, by default
# Syncs are recorded in the process of the command only.
LEFT_OUT = {"build in two processes"}
LONG = {"experiment"}
MONTHS = (("20211101", "20211201"), ("20211201", "20220101"))
OLD_OR_NEW = "each result is the old or the new one, and a rerun ends with the same bytes"


def cut(bench: Bench, name: str, seed: int) -> None:
    """Cut the power during a command, or right after its end, run it again, and compare."""
    folder, chance = bench.folder / f"{name} cut {seed}", random.Random(f"{name} {seed}")
    wanted, whole = bench.undisturbed(name)
    bench.prepare(name, folder)
    before = bench.contents(name, folder)
    # the names of results come last
    late = max(1, whole.changes - int(chance.expovariate(1 / 16)))
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


def cases(commands: Mapping[str, Command]) -> list[Any]:
    found = []
    for name in sorted(commands.keys() - LEFT_OUT, key=list(commands).index):
        marks = [pytest.mark.fault("power cut", f"{name}: at random moments", OLD_OR_NEW)]
        if name in LONG:
            marks.append(pytest.mark.skipif(not SEEDS, reason="takes long: SEEDS=6 runs it"))
        found.append(pytest.param(name, id=name, marks=marks))
    return found


@pytest.mark.parametrize("name", cases(DATA))
def test_of_data(name: str, of_data: Bench, record_property: Callable[[str, object], None]) -> None:
    for seed in range(SEEDS or CUTS):
        cut(of_data, name, seed)
    record_property("cases", SEEDS or CUTS)


@pytest.mark.parametrize("name", cases(MODELS))
def test_of_models(name: str, of_models: Bench, record_property: Callable[[str, object], None]) -> None:
    for seed in range(SEEDS or CUTS):
        cut(of_models, name, seed)
    record_property("cases", SEEDS or CUTS)


@pytest.mark.fault(
    "power cut", "publish: at random moments", "the repository is the old or the new one, a rerun ends it"
)
def test_of_publishing(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
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
                names = [repo.encode(), re.sub(r"\W", "_", repo).encode()]  # the second is in the key of a citation
                files = {
                    path: content.replace(names[0], b"ID").replace(names[1], b"ID")
                    for path, content in found.files().items()
                }
                return files, set(found.tags)

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
