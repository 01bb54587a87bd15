"""Stages: resuming, killed workers, whole files."""

import gc
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import pytest

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.builders.executors import local
from temporalwiki.builders.machine import Machine, find_machine
from temporalwiki.builders.stages import remove, run_stage, total

from engine_tasks import (
    Weighed,
    calls,
    collections,
    die_at_three,
    hold,
    raise_what_does_not_travel,
    refuse_three,
    spin_in_a_process,
    start_again,
    wait_for,
    weigh,
    write_square,
)


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_task_runs_once_and_reports_come_in_order(tmp_path: Path, jobs: int) -> None:
    reports = run_stage("square", write_square, [1, 2, 3, 4], tmp_path / "out", Machine(jobs))
    assert calls(tmp_path) == [1, 2, 3, 4]
    assert total(reports, "count") == {"tasks": 4}
    run_stage("square", write_square, [1, 2, 3, 4], tmp_path / "out", Machine(jobs))
    assert calls(tmp_path) == [1, 2, 3, 4]  # nothing again
    run_stage("square", write_square, [2, 5], tmp_path / "out")  # other tasks start the folder afresh
    assert calls(tmp_path) == [1, 2, 2, 3, 4, 5]
    assert {path.name for path in (tmp_path / "out").glob("*.txt")} == {"2.txt", "5.txt"}


def test_a_tmpdir_with_too_long_a_path_for_sockets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = tmp_path / ("x" * 100)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    monkeypatch.setitem(vars(multiprocessing.current_process())["_config"], "tempdir", None)  # of earlier pools
    with pytest.raises(UsageError, match=f"^{long}: too long a path for .* in TMPDIR, or --jobs 1$"):
        run_stage("square", write_square, [1, 2], tmp_path / "out", Machine(2))
    run_stage("square", write_square, [1, 2], tmp_path / "out", Machine(1))
    assert calls(tmp_path) == [1, 2]


def test_reports_say_what_an_earlier_run_did(tmp_path: Path) -> None:
    def kept(jobs: int) -> list[bool]:
        reports = run_stage("square", write_square, [1, 2], tmp_path / "out", Machine(jobs))
        return [report["run"]["kept"] for report in reports]

    assert kept(1) == [False, False]
    marker = tmp_path / "out" / "executor" / "completions" / "00000"
    marker.unlink()
    report = tmp_path / "out" / "reports" / "00001.json"
    ahead = report.read_text().replace('"began": 1', '"began": 9')  # the clock of another machine may be far ahead
    report.write_text(ahead)
    assert kept(2) == [False, True]


LOST: dict[str, Callable[[Path], object]] = {
    "its file": lambda out: (out / "2.txt").unlink(),
    "half of its file": lambda out: (out / "2.txt").write_text(""),
    "a bit of its file": lambda out: (out / "2.txt").write_text("5"),
    "its report": lambda out: (out / "reports/00001.json").unlink(),
    "all of its report": lambda out: (out / "reports/00001.json").write_text(""),
    "what its report must say": lambda out: (out / "reports/00001.json").write_text("{}"),
    "the shape of its report": lambda out: (out / "reports/00001.json").write_text('{"run": {}, "files": []}'),
}


@pytest.mark.fault(
    "intermediate file missing or damaged",
    "build: a finished stage has lost a file or a report",
    "only its task runs again",
)
@pytest.mark.parametrize("case", LOST)
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_task_that_lost_a_file_or_its_report_runs_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], case: str, jobs: int
) -> None:
    out = tmp_path / "out"
    [before, _, _] = run_stage("square", write_square, [1, 2, 3], out)
    assert [*before["files"]] == ["1.txt"]
    LOST[case](out)
    reports = run_stage("square", write_square, [1, 2, 3], out, Machine(jobs))
    assert calls(tmp_path) == [1, 2, 2, 3]
    assert [report["run"]["kept"] for report in reports] == [True, False, True]
    assert (out / "2.txt").read_text() == "4"
    assert "is missing or has changed; its task runs again" in capsys.readouterr().err


@pytest.mark.parametrize("nested", [False, True], ids=["another plan", "a folder of stages"])
def test_nothing_is_used_of_a_folder_whose_deletion_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nested: bool
) -> None:
    out = tmp_path / "place" / "square"
    out.parent.mkdir()
    run_stage("square", write_square, [1, 2], out)

    def killed(folder: Path) -> None:
        for file in folder.rglob("*.txt"):
            file.unlink()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            if nested:
                remove(out.parent)
            else:
                run_stage("square", write_square, [5], out)
    run_stage("square", write_square, [1, 2], out)
    assert {path.name for path in out.glob("*.txt")} == {"1.txt", "2.txt"}


def test_a_task_whose_folder_was_taken_by_another_command_does_not_count(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="another command has started this stage again"):
        run_stage("square", start_again, [1], tmp_path / "out")
    assert list((tmp_path / "out" / "reports").iterdir()) == []


def test_what_a_task_raises_comes_out_and_what_cannot_be_sent_is_no_killed_worker(tmp_path: Path) -> None:
    for jobs in (1, 2):
        with pytest.raises(InputError, match=r"three\.xml: page 3 is bad"):
            run_stage("square", refuse_three, [1, 2, 3, 4], tmp_path / "raised", Machine(jobs))
    with pytest.raises(RuntimeError, match=r"raise_what_does_not_travel(.|\n)*NeedsTwo: a mistake in three\.xml"):
        run_stage("square", raise_what_does_not_travel, [1, 2], tmp_path / "out", Machine(2))


def test_tasks_are_sent_to_each_worker_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    tasks = [Weighed(number, log) for number in range(10)]
    reports = run_stage("weigh", weigh, tasks, tmp_path / "out", Machine(2), plan="weighed")
    assert [report["number"] for report in reports] == list(range(10))
    assert len(log.read_text()) == 2 * len(tasks)


@pytest.mark.fault(
    "too little memory", "build: a worker is killed in a stage", "one line names the stage; a rerun completes it"
)
def test_a_killed_worker_is_an_error_and_the_rerun_goes_on(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a worker process was killed"):
        run_stage("square", die_at_three, [1, 2, 3, 4, 5, 6], tmp_path / "out", Machine(2))
    before = calls(tmp_path) if (tmp_path / "calls").exists() else []
    (tmp_path / "mended").touch()
    reports = run_stage("square", die_at_three, [1, 2, 3, 4, 5, 6], tmp_path / "out", Machine(2))
    assert len(reports) == 6
    assert set(calls(tmp_path)) == {1, 2, 3, 4, 5, 6}
    assert calls(tmp_path).count(3) == 1
    assert len(calls(tmp_path)) <= 6 + len(before)


@pytest.mark.fault(
    "too little memory",
    "build: the process that starts workers is killed",
    "one line names the stage; a rerun completes it",
)
@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError("handle is closed"), "a worker process was killed"),  # while tasks were sent to it
        (OSError(11, "Resource temporarily unavailable"), "Resource temporarily unavailable"),
    ],
)
def test_a_worker_may_be_killed_while_tasks_are_sent(
    error: OSError, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def submit(*_: object) -> None:
        raise error

    monkeypatch.setattr(local.ProcessPoolExecutor, "submit", submit)
    with pytest.raises((InputError, OSError), match=said):
        run_stage("square", write_square, [1, 2, 3], tmp_path / "out", Machine(2))


def test_the_process_that_starts_workers_may_be_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begin = forkserver.connect_to_new_process

    def killed(fds: list[int]) -> tuple[int, int]:
        forkserver.ensure_running()
        server = forkserver._forkserver._forkserver_pid  # type: ignore[attr-defined]
        os.kill(server, signal.SIGSTOP)
        asked = begin(fds)
        os.kill(server, signal.SIGKILL)
        # its files are closed before it counts as ended: a rerun in this process could ask the dying one again
        os.waitid(os.P_PID, server, os.WEXITED | os.WNOWAIT)
        return asked

    with monkeypatch.context() as patch:
        patch.setattr(forkserver, "connect_to_new_process", killed)
        with pytest.raises(InputError, match="square: a worker process was killed"):
            run_stage("square", write_square, [1, 2, 3], tmp_path / "out", Machine(2))
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
    assert len(run_stage("square", write_square, [1, 2, 3], tmp_path / "out", Machine(2))) == 3
    assert sorted(calls(tmp_path)) == [1, 2, 3]


SLEEP = """
import os, time
def sleep(task, folder):
    (folder / f"pid{task}").write_text(str(os.getpid()))
    time.sleep(60)
    return {}
"""
PROGRAM = """
import sys
from pathlib import Path
from temporalwiki.builders.stages import run_stage
from temporalwiki.builders.machine import Machine
from work import sleep
if __name__ == "__main__":
    run_stage("sleep", sleep, [1, 2], Path(sys.argv[1]), Machine(2))
"""


@pytest.mark.fault("kill -9", "build: its workers when it is killed", "they end as well")
def test_workers_end_when_their_command_is_killed(tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text(SLEEP)  # workers do not read the main module
    (tmp_path / "program.py").write_text(PROGRAM)
    arguments = [sys.executable, str(tmp_path / "program.py"), str(tmp_path / "out")]
    running = subprocess.Popen(arguments, stderr=subprocess.DEVNULL)

    def pids() -> list[str]:
        found = [file.read_text() for file in (tmp_path / "out").glob("pid*")]
        return found if len(found) == 2 and all(found) else []

    workers = wait_for(pids)
    running.kill()
    running.wait()
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))


def pretend(monkeypatch: pytest.MonkeyPatch, cores: int, gigabytes: int) -> None:
    """Make this machine look like another one, in no control group."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: set(range(cores)))
    monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": gigabytes << 18}.__getitem__)
    monkeypatch.setattr(local, "_GROUPS", Path("/nowhere"))


@pytest.mark.parametrize(
    ("cores", "gigabytes", "given", "machine"),
    [
        (4, 64, {}, Machine(4, 8 << 30)),
        (64, 256, {}, Machine(64, 64 << 30)),
        (64, 16, {}, Machine(16, 16 << 30)),  # no more than there is memory for
        (1, 0, {}, Machine(1, 768 << 20)),
        (4, 3, {}, Machine(3, 3 << 30)),
        (4, 64, {"jobs": 4}, Machine(4, 8 << 30)),
        (4, 2, {"jobs": 4}, Machine(4, 3 << 30)),
        (16, 64, {"memory": 4 << 30}, Machine(5, 4 << 30)),
        (16, 64, {"memory": 768 << 20}, Machine(1, 768 << 20)),
        (2, 64, {"jobs": 24}, Machine(24, 24 << 30)),
        (2, 64, {"jobs": 3, "memory": 4 << 30}, Machine(3, 4 << 30)),
    ],
)
def test_the_default_machine_uses_all_cores_and_memory(
    cores: int, gigabytes: int, given: dict[str, int], machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(monkeypatch, cores, gigabytes)
    assert find_machine(**given) == machine


@pytest.mark.parametrize(
    ("limit", "machine"),
    [
        ({"memory.max": "max"}, Machine(16, 16 << 30)),
        ({"memory.max": str(5 << 30)}, Machine(5, 5 << 30)),
        ({"memory/memory.limit_in_bytes": str(5 << 30)}, Machine(5, 5 << 30)),
        ({"memory/memory.limit_in_bytes": str(2**63 - 4096)}, Machine(16, 16 << 30)),
    ],
)
def test_the_memory_of_a_container_is_its_groups(
    limit: dict[str, str], machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(monkeypatch, 16, 64)
    groups = tmp_path / "groups"  # as if this process were in one of each version
    groups.write_text("4:cpu,memory:/outside/inside\n0::/outside/inside\n")
    for name, text in limit.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"{text}\n")
    monkeypatch.setattr(local, "_GROUPS", tmp_path)
    monkeypatch.setattr(local, "_OWN_GROUPS", groups)
    assert find_machine() == machine


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"jobs": 0}, "--jobs must be at least 1, not 0"),
        ({"jobs": 4, "memory": 1 << 30}, "at least 768MB for each job, so 3072MB for --jobs 4"),
        ({"memory": 1 << 20}, "--memory 1MB is too little"),
        ({"engine": "spark"}, "no engine 'spark'; there are local, ray, slurm"),
    ],
)
def test_a_machine_that_cannot_work_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        find_machine(**given)
    if "jobs" in given or "engine" in given:
        with pytest.raises(UsageError, match=message):
            Machine(**given)


def test_without_ray_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match=r"Ray is not installed: pip install 'temporalwiki\[ray\]'"):
        find_machine("ray")


def test_garbage_is_collected_rarely_in_a_task_and_as_before_after_it(tmp_path: Path) -> None:
    before = gc.get_threshold(), gc.get_freeze_count()
    [report] = run_stage("one", collections, [False], tmp_path / "one")
    assert report["objects"]["threshold"] > 10 * before[0][0]
    with pytest.raises(InputError, match=str(report["objects"]["threshold"])):
        run_stage("fails", collections, [True], tmp_path / "fails")
    assert (gc.get_threshold(), gc.get_freeze_count()) == before


def test_a_report_has_the_cost_of_its_task_and_its_child_processes(tmp_path: Path) -> None:
    before = time.time()
    big, small = (report["run"] for report in run_stage("hold", hold, [300, 1], tmp_path / "out"))
    assert before <= big["began"] <= small["began"] <= time.time()
    assert big["peak_memory_mb"] >= 300
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        pytest.skip("this system keeps the peak of a process")
    assert small["peak_memory_mb"] <= big["peak_memory_mb"] - 250
    [spun] = run_stage("spin", spin_in_a_process, [0.3], tmp_path / "spun")
    assert spun["run"]["cpu_seconds"] >= 0.3


def test_unfinished_files_of_killed_tasks_are_deleted(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(InputError):
        run_stage("square", refuse_three, [1, 3], out)
    (out / "deep" / ".duckdb.part").mkdir(parents=True)
    (out / "deep" / ".duckdb.part" / "spilled").touch()
    (out / ".3.txt.0a1b.part").touch()
    run_stage("square", refuse_three, [1, 2], out / ".." / "other")  # it deletes nothing of another stage
    assert (out / ".3.txt.0a1b.part").exists()
    with pytest.raises(InputError):
        run_stage("square", refuse_three, [1, 3], out)
    assert sorted(path.name for path in out.rglob(".*")) == []
    assert (out / "1.txt").exists()
