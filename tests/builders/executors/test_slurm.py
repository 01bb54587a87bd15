"""Tasks as Slurm jobs. Fake commands on PATH run them as processes, and lose, refuse or hold them."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.builders import slurm as commands
from temporalwiki.builders.executors import SLURM_JOBS, slurm
from temporalwiki.builders.machine import Machine, find_machine
from temporalwiki.builders.stages import remove, run_stage, total

import engine_tasks
import fake_slurm
from engine_tasks import (
    break_down_at_three,
    calls,
    die_at_three,
    die_twice_at_three,
    refuse_three,
    wait_for,
    write_square,
)

pytestmark = pytest.mark.slow

SLURM = Machine(2, 2 << 30, "slurm")


@pytest.fixture(autouse=True)
def spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The spool of the fake commands, with short waits."""
    spool = fake_slurm.install(tmp_path / "slurm")
    monkeypatch.setenv("PATH", f"{tmp_path / 'slurm' / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(Path(engine_tasks.__file__).parent), prepend=os.pathsep)  # of the jobs
    monkeypatch.setattr(slurm, "POLL", 0.05)
    monkeypatch.setattr(commands, "GRACE", 0.3)
    yield spool
    for file in spool.glob("*.pid"):
        fake_slurm.end(int(file.read_text()))
    for job in fake_slurm.jobs(spool):
        if pid := (spool / job).read_text():
            fake_slurm.end(int(pid))


def arrays(spool: Path) -> int:
    return len(list(spool.glob("*.name")))


def test_a_stage_is_one_array_and_reports_come_in_order(tmp_path: Path, spool: Path) -> None:
    reports = run_stage("square", write_square, [3, 2, 1], tmp_path / "out", SLURM)
    assert calls(tmp_path) == [1, 2, 3]
    assert total(reports, "count") == {"tasks": 3}
    run_stage("square", write_square, [3, 2, 1], tmp_path / "out", SLURM)
    assert calls(tmp_path) == [1, 2, 3]  # nothing again
    assert arrays(spool) == 1
    assert not (tmp_path / "out" / SLURM_JOBS).exists()
    asked = (spool / "100.asked").read_text().split()
    asked = [word for word in asked if not word.startswith(("job-name=", "output="))]
    assert asked == ["array=0-2%2", "cpus-per-task=1", "mem=1024M", "nodes=1", "parsable=", "requeue="]
    assert list((tmp_path / "out" / "executor").glob("array-*")) == []


def test_a_job_that_is_killed_is_submitted_again(tmp_path: Path, spool: Path) -> None:
    run_stage("square", die_twice_at_three, [1, 3], tmp_path / "out", SLURM)
    assert calls(tmp_path) == [1, 3]
    assert arrays(spool) == 3
    assert list((tmp_path / "out").glob(".*")) == []


def test_a_job_that_is_lost_again_and_again_is_an_error_that_names_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm, "ATTEMPTS", 2)
    with pytest.raises(InputError, match="square: the job of task 0 was lost 2 times ") as raised:
        run_stage("square", die_at_three, [3], tmp_path / "out", SLURM)
    assert f"see {tmp_path}/out/slurm_logs/101_0.out;" in str(raised.value)
    assert "\n" not in str(raised.value)
    (tmp_path / "mended").touch()
    run_stage("square", die_at_three, [3], tmp_path / "out", SLURM)
    assert calls(tmp_path) == [3]


def test_what_a_task_raises_comes_out_and_ends_the_others(tmp_path: Path, spool: Path) -> None:
    with pytest.raises(InputError) as raised:
        run_stage("square", refuse_three, [3, 1, 2], tmp_path / "out", Machine(1, engine="slurm"))
    assert str(raised.value) == "three.xml: page 3 is bad"
    assert type(raised.value) is InputError
    assert fake_slurm.jobs(spool) == []
    with pytest.raises(InputError, match="page 3 is bad"):  # the rerun forgets the old error and finds the same
        run_stage("square", refuse_three, [3, 1, 2], tmp_path / "out", SLURM)
    assert arrays(spool) == 2


def test_a_task_that_breaks_down_shows_where(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"square, task 0:\n(.|\n)*engine_tasks(.|\n)*not a mistake of the input"):
        run_stage("square", break_down_at_three, [3], tmp_path / "out", SLURM)


HIDING = {
    "SBATCH_JOB_NAME": "mine",
    "SBATCH_WAIT": "1",
    "SBATCH_CLUSTERS": "west",
    "SQUEUE_STATES": "FAILED",
    "SCANCEL_STATE": "PENDING",
}


@pytest.mark.parametrize("variable", HIDING)
def test_no_variable_hides_the_jobs(
    tmp_path: Path, spool: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, HIDING[variable])
    killed_while_jobs_wait(tmp_path, spool)
    if variable == "SBATCH_CLUSTERS":  # the folder records it
        monkeypatch.delenv(variable)
    run_stage("square", write_square, [1, 3], tmp_path / "out", SLURM)
    assert not [job for job in fake_slurm.jobs(spool) if job.startswith("100_")]
    assert calls(tmp_path) == [1, 3]
    assert arrays(spool) == 2


def test_a_queue_that_has_room_again_takes_whole_arrays(tmp_path: Path, spool: Path) -> None:
    (spool / "limit").write_text("1")
    (spool / "100.held").touch()

    def make_room() -> None:
        refused = spool / "refused"
        wait_for(lambda: refused.exists() and refused.read_text() == "6 3 1 ")  # and one was taken before the last
        (spool / "limit").unlink()
        (spool / "100.held").unlink()

    helper = threading.Thread(target=make_room)
    helper.start()
    run_stage("square", write_square, [1, 2, 3, 4, 5, 6], tmp_path / "out", SLURM)
    helper.join()
    assert calls(tmp_path) == [1, 2, 3, 4, 5, 6]
    assert arrays(spool) == 2


def test_an_error_comes_out_of_a_full_disk(tmp_path: Path, spool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = slurm.Executor._write_jobs

    def full(self: slurm.Executor, cancelled: bool = False) -> None:
        if cancelled:
            raise InputError("no space left")
        write(self)

    monkeypatch.setattr(slurm.Executor, "_write_jobs", full)
    with pytest.raises(InputError, match="page 3 is bad"):
        run_stage("square", refuse_three, [3, 1, 2], tmp_path / "out", Machine(1, engine="slurm"))
    assert fake_slurm.jobs(spool) == []


def test_a_full_queue_is_waited_for(tmp_path: Path, spool: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (spool / "limit").write_text("1")
    run_stage("square", write_square, [1, 2, 3], tmp_path / "out", SLURM)
    assert calls(tmp_path) == [1, 2, 3]
    assert arrays(spool) == 3
    said = capfd.readouterr().err
    assert said.count("square: Slurm takes no more jobs now, waiting: sbatch: error:") == 1


@pytest.mark.parametrize(("largest", "waits"), [(2, True), (1, False)])
def test_an_array_waits_for_one_that_keeps_all_workers_busy(
    tmp_path: Path, spool: Path, monkeypatch: pytest.MonkeyPatch, largest: int, waits: bool
) -> None:
    monkeypatch.setattr(slurm, "LARGEST_ARRAY", largest)
    run_stage("square", write_square, [1, 2, 3][: largest + 1], tmp_path / "out", SLURM)
    assert calls(tmp_path) == [1, 2, 3][: largest + 1]
    assert ("dependency=afterany:100" in (spool / "101.asked").read_text().split()) == waits


def test_a_controller_that_does_not_answer_loses_nothing(
    tmp_path: Path, spool: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (spool / "down").touch()
    run_stage("square", write_square, [1, 2], tmp_path / "out", SLURM)
    assert calls(tmp_path) == [1, 2]
    assert arrays(spool) == 1
    assert capfd.readouterr().err.count("square: squeue does not answer, waiting\n") == 1


def test_what_slurm_refuses_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SBATCH_PARTITION", "none")
    with pytest.raises(InputError, match=r"^square: Slurm refused the job: .*invalid partition specified: none.*$"):
        run_stage("square", write_square, [1], tmp_path / "out", SLURM)


@pytest.mark.parametrize("command", ["squeue", "scancel"])
def test_half_of_slurm_is_one_line(tmp_path: Path, command: str) -> None:
    (tmp_path / "slurm" / "bin" / command).unlink()
    with pytest.raises(UsageError, match=f"there is no {command} here"):
        run_stage("square", write_square, [1], tmp_path / "out", SLURM)


def test_without_slurm_there_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="there is no sbatch here"):
        run_stage("square", write_square, [1], tmp_path / "out", SLURM)
    (tmp_path / "out" / SLURM_JOBS).write_text("{}")
    with pytest.raises(UsageError, match=r"may still write here; .* delete slurm_jobs\.json .*no scancel"):
        run_stage("square", write_square, [1], tmp_path / "out")


def start(tmp_path: Path) -> subprocess.Popen[bytes]:
    program = tmp_path / "program.py"
    program.write_text(
        "from pathlib import Path\n"
        "from engine_tasks import write_square\n"
        "from temporalwiki.builders.stages import run_stage\n"
        "from temporalwiki.builders.machine import Machine\n"
        f"run_stage('square', write_square, [1, 2], Path({str(tmp_path / 'out')!r}), Machine(2, engine='slurm'))\n"
    )
    return subprocess.Popen([sys.executable, str(program)], stderr=subprocess.DEVNULL)


def killed_while_jobs_wait(tmp_path: Path, spool: Path, sent: signal.Signals = signal.SIGKILL) -> None:
    """Start a stage whose jobs are held, and send a signal to its command when it has submitted them."""
    (spool / "100.held").touch()
    running = start(tmp_path)
    state = tmp_path / "out" / SLURM_JOBS
    wait_for(lambda: state.exists() and json.loads(state.read_text())["jobs"])
    running.send_signal(sent)
    running.wait()


def test_a_rerun_goes_on_with_the_jobs_of_a_killed_command(tmp_path: Path, spool: Path) -> None:
    killed_while_jobs_wait(tmp_path, spool)
    (spool / "100.held").unlink()
    run_stage("square", write_square, [1, 2], tmp_path / "out", SLURM)
    assert calls(tmp_path) == [1, 2]
    assert arrays(spool) == 1


@pytest.mark.parametrize(
    ("tasks", "machine"), [([1, 2], Machine()), ([1, 3], SLURM)], ids=["another engine", "another plan"]
)
def test_jobs_that_nobody_waits_for_are_cancelled(
    tmp_path: Path, spool: Path, tasks: list[int], machine: Machine
) -> None:
    killed_while_jobs_wait(tmp_path, spool)
    run_stage("square", write_square, tasks, tmp_path / "out", machine)
    assert calls(tmp_path) == tasks
    assert not [job for job in fake_slurm.jobs(spool) if job.startswith("100_")]


def test_jobs_are_cancelled_before_their_folder_is_deleted(tmp_path: Path, spool: Path) -> None:
    killed_while_jobs_wait(tmp_path, spool)
    (tmp_path / "place").mkdir()
    (tmp_path / "out").rename(tmp_path / "place" / "out")
    name = next(spool.glob("100.name"))
    name.write_text(slurm._job_name(tmp_path / "place" / "out"))
    remove(tmp_path / "place")
    assert not (tmp_path / "place").exists()
    assert fake_slurm.jobs(spool) == []


def test_jobs_that_the_killed_command_did_not_record_are_cancelled(tmp_path: Path, spool: Path) -> None:
    killed_while_jobs_wait(tmp_path, spool)
    (tmp_path / "out" / SLURM_JOBS).write_text('{"jobs": {}, "cancelled": false}')
    run_stage("square", write_square, [1, 2], tmp_path / "out", SLURM)
    assert calls(tmp_path) == [1, 2]
    assert arrays(spool) == 2


def test_an_interrupt_cancels_the_jobs(tmp_path: Path, spool: Path) -> None:
    killed_while_jobs_wait(tmp_path, spool, signal.SIGINT)
    assert fake_slurm.jobs(spool) == []
    (spool / "100.held").unlink()
    run_stage("square", write_square, [1, 2], tmp_path / "out", SLURM)
    assert calls(tmp_path) == [1, 2]


def test_jobs_are_by_default_a_hundred() -> None:
    assert find_machine("slurm") == Machine(100, 100 << 30, "slurm")
