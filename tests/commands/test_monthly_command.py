"""`temporalwiki monthly` as a command: what it hands on, and wrong usage in one line, before anything is asked."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from temporalwiki.base.errors import InputError
from temporalwiki.builders.executors.local import most_memory
from temporalwiki.builders.machine import LEAST_MEMORY, Machine, find_machine
from temporalwiki.commands import main
from temporalwiki.push_scripts import monthly
from temporalwiki.push_scripts.month_source import DumpServer
from temporalwiki.push_scripts.monthly import MonthlyJob

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture()
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[MonthlyJob, bool]]:
    """What the job was asked for; it says two lines."""
    found: list[tuple[MonthlyJob, bool]] = []

    def stand_in(job: MonthlyJob, dry_run: bool) -> Any:
        found.append((job, dry_run))
        yield from ("one", "two")

    monkeypatch.setattr(monthly, "monthly", stand_in)
    return found


def test_two_options_are_enough(asked: list[tuple[MonthlyJob, bool]], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["monthly", "--wiki", "enwiki", "--repo", "ORG/temporalwiki"]) == 0
    assert capsys.readouterr().out == "one\ntwo\n"
    ((job, dry_run),) = asked
    assert not dry_run
    assert job == MonthlyJob(
        wiki="enwiki",
        repo_id="ORG/temporalwiki",
        dumps=Path("dumps"),
        out=Path("temporalwiki"),
        work=Path("temporalwiki.work").resolve(),
        machine=find_machine(),
        source=DumpServer("https://dumps.wikimedia.org"),
    )


def fail(job: MonthlyJob, dry_run: bool = False) -> Any:
    yield "one"
    raise InputError("too old")


@pytest.mark.parametrize(
    ("option", "fails", "status", "steps"),
    [("--dry-run", None, 0, ["one", "two"]), ("--dry-run", "monthly", 1, ["one"]), ("--status", "status", 1, ["one"])],
    ids=["all is done", "a step fails", "--status finds a fault"],
)
@pytest.mark.usefixtures("asked")
def test_json_has_a_row_for_each_step_that_was_done(
    option: str, fails: str | None, status: int, steps: list[str], monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    if fails:
        monkeypatch.setattr(f"temporalwiki.push_scripts.{fails}.{fails}", fail)
    found, out, err = run("monthly", "--repo", "ORG/x", "--json", option)
    assert found == status
    assert json.loads(out) == {"path": "temporalwiki", "rows": [{"step": step} for step in steps]}
    assert err.splitlines()[: len(steps)] == steps
    assert ("too old" in err) == (status == 1)


@pytest.mark.parametrize("words", ["--leaderboard ORG/y", "--clone c", "--clone c --converter f --mirror http://a"])
def test_wrong_usage_prints_no_json(words: str, run: Run) -> None:
    assert run("monthly", "--repo", "ORG/x", "--json", *words.split())[:2] == (2, "")


def test_all_options(asked: list[tuple[MonthlyJob, bool]], tmp_path: Path) -> None:
    words = "--dumps d --out . --work w --jobs 16 --memory 32GB --engine slurm --mirror http://a --mirror http://b"
    more = "--accept-jump --accept-dates --recipe monthly.yaml --leaderboard ORG/board"
    assert main(["monthly", "--wiki", "kowiki", "--repo", "ORG/ko", *words.split(), *more.split()]) == 0
    ((job, dry_run),) = asked
    assert not dry_run
    assert job == MonthlyJob(
        wiki="kowiki",
        repo_id="ORG/ko",
        dumps=Path("d"),
        out=Path(),
        work=Path("w"),
        machine=Machine(16, 32 << 30, "slurm"),
        source=DumpServer("http://a", ("http://b",)),
        accept_jump=True,
        accept_dates=True,
        recipe="monthly.yaml",
        leaderboard="ORG/board",
    )


def test_many_jobs_get_a_gigabyte_each(asked: list[tuple[MonthlyJob, bool]]) -> None:
    assert main(["monthly", "--repo", "ORG/x", "--jobs", "24"]) == 0
    machine = asked[0][0].machine
    assert (machine.jobs, machine.memory) == (24, min(24 << 30, max(most_memory(), 24 * LEAST_MEMORY)))


def test_a_dry_run_starts_no_cluster(asked: list[tuple[MonthlyJob, bool]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)  # it would end here
    assert main(["monthly", "--repo", "ORG/x", "--engine", "ray", "--dry-run"]) == 0
    ((job, dry_run),) = asked
    assert dry_run
    assert job.machine == find_machine()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (InputError("x: counts jump: words: 1 now,\n 2 before"), "x: counts jump: words: 1 now, 2 before"),
        (KeyboardInterrupt(), "interrupted; run the same command again to continue"),
    ],
)
def test_what_fails_or_is_stopped_is_one_line(error: BaseException, said: str, run: Run, monkeypatch: Any) -> None:
    def fails(job: MonthlyJob, dry_run: bool) -> Any:
        yield "one"
        raise error

    monkeypatch.setattr(monthly, "monthly", fails)
    assert run("monthly", "--repo", "ORG/x") == (1, "one\n", f"temporalwiki monthly: {said}\n")
