"""Four months of the job, run daily: with CKL and a leaderboard, a kill in each month, and what may go wrong."""

import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from dump_forms import write_page_props

from temporalwiki.builders.world import World, write_world
from temporalwiki.commands import main

import tiny_models
from file_server import FileServer, served
from loopback_hub import LoopbackHub

REPO, CKL, SPACE = "ORG/temporalwiki", "ORG/ckl", "ORG/board"
DATES = ("20210801", "20210901", "20211001", "20211101", "20211201")
TAGS = ["2021.09", "2021.10", "2021.11", "2021.12"]
RECIPE = {
    "batch_size": 2,
    "sequence_length": 16,
    "max_steps": 1,
    "precision": "fp32",
}
EXPERIMENT = {
    "months": {"since": "20210801-20210901"},
    "methods": {"initial": None, "diff": None},
    "tasks": {"twiki_probes": {"answers": False, "light_tuning": False}},
    "limit": 4,
}


def world(folder: Path, people: int) -> dict[str, bytes]:
    write_page_props(folder, write_world(folder, World(people=people, dates=DATES, wikidata_dates=DATES)))
    return served(folder)


def of(files: Mapping[str, bytes], *dates: str) -> dict[str, bytes]:
    return {path: data for path, data in files.items() if any(f"/{date}/" in path for date in dates)}


@pytest.mark.slow
@pytest.mark.fault(
    "unattended job",
    "monthly: four months with CKL and a leaderboard, a kill in each, a late dump, a jump and its repair",
    "each month has its tags, each run ends with a plain line, and the work folder keeps one month",
)
def test_four_months(hub: LoopbackHub, tmp_path: Path, capsys: pytest.CaptureFixture[str], quick: None) -> None:
    right, large, out = world(tmp_path / "right", 30), world(tmp_path / "large", 90), tmp_path / "temporalwiki"
    tiny_models.save("gpt2", tmp_path / "model")
    changes = {"data": str(out), "output": str(tmp_path / "experiment")}
    recipe = RECIPE | {"model": str(tmp_path / "model"), "experiment": EXPERIMENT | changes}
    (tmp_path / "monthly.yaml").write_text(yaml.safe_dump(recipe))
    # the first month is built by hand, with all unchanged facts, because the world is small; the others follow it
    built = ["--dumps", str(tmp_path / "right"), "--out", str(out), "--unchanged-fraction", "1"]
    assert main(["build", *DATES[:2], *built]) == 0
    words = [
        "monthly",
        "--repo",
        REPO,
        "--ckl",
        CKL,
        "--recipe",
        str(tmp_path / "monthly.yaml"),
        "--leaderboard",
        SPACE,
    ]
    words += ["--jobs", "1", "--dumps", str(tmp_path / "dumps"), "--out", str(out)]

    def day(files: Mapping[str, bytes]) -> tuple[int, str]:
        """Run the job, and return its exit status and what it says."""
        server.files = dict(files)
        capsys.readouterr()
        status, said = main([*words, "--mirror", server.url]), "".join(capsys.readouterr())
        assert "Traceback" not in said and "in the split backfilled" not in said, said  # which is better empty
        return status, said

    def killed(files: Mapping[str, bytes], request: str, after: bool = False) -> None:
        """Run the job until its first such request, and kill it there."""
        server.files = dict(files)
        command = [sys.executable, "-m", "temporalwiki", *words, "--mirror", server.url]
        with subprocess.Popen(command, env=hub.environment(tmp_path, "hf_me"), stdout=subprocess.DEVNULL) as job:
            hub.when("POST", request, job.kill, after=after)
            assert job.wait() == -signal.SIGKILL

    def tags() -> list[list[str]]:
        return [sorted(hub.repo("dataset", name).tags) for name in (REPO, CKL)]

    with FileServer({}) as server:
        killed(of(right, *DATES[:2]), f"{REPO}/commit/main$")  # month 1, killed before its commit
        assert (day(of(right, *DATES[:2]))[0], tags()) == (0, [TAGS[:1]] * 2)
        files = of(right, *DATES[:3])  # month 2, whose Wikidata dump is late; killed between CKL's commit and its tag
        status, said = day({path: data for path, data in files.items() if "entities/20211001/" not in path})
        assert (status, tags()) == (0, [TAGS[:1]] * 2) and "pending: 20210901-20211001: wikidata: no finished" in said
        killed(files, f"{CKL}/commit/main$", after=True)
        assert (day(files)[0], tags()) == (0, [TAGS[:2]] * 2)
        # month 3, whose dumps are faulty until they are made again; killed before its tag
        status, said = day({**files, **of(large, DATES[3])})
        assert (status, tags()) == (1, [TAGS[:2]] * 2) and "counts jump: " in said.splitlines()[-1]
        assert f"waits until {DATES[2]}-{DATES[3]}, which is in {out}, is published" in said
        killed(of(right, *DATES[:4]), f"{REPO}/tag/")
        assert (day(of(right, *DATES[:4]))[0], tags()) == (0, [TAGS[:3]] * 2)
        killed(of(right, *DATES), f"{SPACE}/commit/main$")  # month 4, killed before the page of the leaderboard
        assert (day(of(right, *DATES))[0], tags()) == (0, [TAGS] * 2)
    page = hub.repo("space", SPACE).files()["index.html"].decode()
    assert set(re.findall(r"20\d{6}-20\d{6}", page)) >= {f"{a}-{b}" for a, b in pairwise(DATES)}
    kept = [
        path.name for path in tmp_path.rglob("temporalwiki.work/**/*") if re.match("(enwiki|wikidata)-2", path.name)
    ]
    assert kept and all("-20211201" in name for name in kept)
