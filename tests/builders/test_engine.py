"""Stages: resuming, killed workers, whole files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from temporalwiki.builders.engine import fingerprint, only_one, run_stage, total, whole_file, write_json
from temporalwiki.builders.errors import InputError

from engine_tasks import die_at_three, refuse_three, write_square


def calls(tmp_path: Path) -> list[int]:
    return sorted(int(call) for call in (tmp_path / "calls").read_text().split())


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_task_runs_once_and_reports_come_in_order(tmp_path: Path, jobs: int) -> None:
    reports = run_stage("square", write_square, [1, 2, 3, 4], tmp_path / "out", jobs)
    assert calls(tmp_path) == [1, 2, 3, 4]
    assert total(reports, "count") == {"tasks": 4}
    run_stage("square", write_square, [1, 2, 3, 4], tmp_path / "out", jobs)
    assert calls(tmp_path) == [1, 2, 3, 4]  # nothing again


def test_other_tasks_start_the_folder_afresh(tmp_path: Path) -> None:
    run_stage("square", write_square, [1, 2], tmp_path / "out")
    run_stage("square", write_square, [2, 5], tmp_path / "out")
    assert calls(tmp_path) == [1, 2, 2, 5]
    assert {path.name for path in (tmp_path / "out").glob("*.txt")} == {"2.txt", "5.txt"}


def test_a_killed_worker_is_an_error_and_the_rerun_goes_on(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a worker process was killed"):
        run_stage("square", die_at_three, [1, 2, 3, 4, 5, 6], tmp_path / "out", jobs=2)
    before = calls(tmp_path) if (tmp_path / "calls").exists() else []
    (tmp_path / "mended").touch()
    reports = run_stage("square", die_at_three, [1, 2, 3, 4, 5, 6], tmp_path / "out", jobs=2)
    assert len(reports) == 6
    assert set(calls(tmp_path)) == {1, 2, 3, 4, 5, 6}
    assert calls(tmp_path).count(3) == 1
    assert len(calls(tmp_path)) <= 6 + len(before)


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_a_task_raises_comes_out(tmp_path: Path, jobs: int) -> None:
    with pytest.raises(InputError, match=r"three\.xml: page 3 is bad"):
        run_stage("square", refuse_three, [1, 2, 3, 4], tmp_path / "out", jobs)


def test_workers_end_when_their_command_is_killed(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import os, sys, time\n"
        "from pathlib import Path\n"
        "from temporalwiki.builders.engine import run_stage\n"
        "def sleep(task, folder):\n"
        "    (folder / f'pid{task}').write_text(str(os.getpid()))\n"
        "    time.sleep(60)\n"
        "    return {}\n"
        "if __name__ == '__main__':\n"
        f"    run_stage('sleep', sleep, [1, 2], Path({str(tmp_path / 'out')!r}), jobs=2)\n"
    )
    running = subprocess.Popen([sys.executable, str(program)], stderr=subprocess.DEVNULL)
    pids: list[Path] = []
    for _ in range(200):
        pids = list((tmp_path / "out").glob("pid*"))
        if len(pids) == 2 and all(pid.read_text() for pid in pids):
            break
        subprocess.run(["sleep", "0.1"], check=True)
    assert len(pids) == 2
    running.kill()
    running.wait()
    for pid in pids:
        for _ in range(100):
            if not Path(f"/proc/{pid.read_text()}").exists():
                break
            subprocess.run(["sleep", "0.1"], check=True)
        assert not Path(f"/proc/{pid.read_text()}").exists()


def test_a_file_is_whole_or_absent(tmp_path: Path) -> None:
    path = tmp_path / "f"
    with pytest.raises(RuntimeError), whole_file(path) as part:
        part.write_text("half")
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []
    with whole_file(path) as part:
        part.write_text("whole")
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


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


def test_fingerprints_are_of_content() -> None:
    assert fingerprint({"a": 1, "b": [2]}) == fingerprint({"b": [2], "a": 1})
    assert fingerprint({"a": 1}) != fingerprint({"a": 2})
    with pytest.raises(TypeError):
        fingerprint(object())


def test_json_is_written_sorted_and_in_utf_8(tmp_path: Path) -> None:
    write_json(tmp_path / "a" / "b.json", {"é": 1, "a": [2]})
    assert (tmp_path / "a" / "b.json").read_bytes() == '{\n "a": [\n  2\n ],\n "é": 1\n}\n'.encode()
