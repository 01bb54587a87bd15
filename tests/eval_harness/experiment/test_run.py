"""An experiment runs each cell once, continues after a failure or a kill, and ends with the same results."""

import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.eval_harness.experiment import cells as cells_module
from temporalwiki.eval_harness.experiment import read_experiment, run_experiment
from temporalwiki.eval_harness.experiment.job_runners import CellJob, JobRunner, find_job_runner
from temporalwiki.eval_harness.experiment.run import CellOutcome
from temporalwiki.eval_harness.leaderboard.rows import read_parquet

import fake_slurm
import tiny_models
from a_dataset import write_dataset
from faults.rows import SAME_BYTES
from tiny_probes import OF_A_PANEL, rows

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick")]

Write = Callable[..., Path]


def run(recipe: Path, **how: Any) -> dict[str, CellOutcome]:
    return {one.cell.name: one for one in run_experiment(read_experiment(str(recipe)), **how)}


def results(out: Path) -> dict[str, Any]:
    """Return the content of the result files without "run", and the bytes of their items."""
    found: dict[str, Any] = {}
    for path in sorted(out.glob("results/*/*.json")):
        data = json.loads(path.read_text("utf-8"))
        del data["run"]
        # the folder's name is the experiment's own choice, and differs between two runs of a test
        data["model"]["name"] = Path(data["model"]["name"]).name
        found[str(path.relative_to(out))] = data, path.with_suffix(".parquet").read_bytes()
    return found


def states(progress: dict[str, CellOutcome]) -> dict[str, str]:
    return {name: one.state for name, one in progress.items()}


def test_all_is_trained_and_scored_once(write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = write()
    progress = run(recipe)
    assert set(states(progress).values()) == {"done"}
    found = results(tmp_path / "out")
    assert len(found) == 5 * 2  # models x months
    labels = {(data["model"]["label"], *data["model"]["trained_on"]) for data, _ in found.values()}
    assert labels == {
        ("initial",),
        *(
            (label, *months)
            for label in ("diff", "lora")
            for months in (["diffset-0910"], ["diffset-0910", "diffset-1011"])
        ),
    }
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*") if path.is_file()}
    capsys.readouterr()
    assert set(states(run(recipe)).values()) == {"done"}
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*") if path.is_file()} == files
    assert "15 cells, 15 of them done before" in capsys.readouterr().err


def test_results_with_passages_stand_next_to_those_without(write: Write, there: Path, tmp_path: Path) -> None:
    """The controls are the start model at another temperature and with the evidence to read, and ``untrained``."""
    data = Path(shutil.copytree(there / "data", tmp_path / "data"))
    probes = {"probes-0910": {split: rows(facts) for split, facts in OF_A_PANEL.items()}}
    shutil.copytree(write_dataset(tmp_path / "panels", probes) / "data", data / "data", dirs_exist_ok=True)
    recipe = write(
        **{
            "experiment/data": str(data),
            "experiment/months": ["0910"],
            "experiment/methods": {"initial": None, "diff": None},
            "experiment/tasks": {"learned_and_forgotten": {}},
            "experiment/retrieve": ["diffset"],
        }
    )
    assert set(states(run(recipe)).values()) == {"done"}
    read = [(data["model"]["label"], "retrieved" in data["data"]) for data, _ in results(tmp_path / "out").values()]
    assert sorted(read) == [
        ("diff", False), ("diff", True), ("initial", False), ("initial", False), ("initial", True), ("initial", True),
        ("untrained", False),
    ]  # fmt: skip


def test_what_was_taken_away_is_made_again_if_it_is_needed(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe, out = write(**{"experiment/methods": {"initial": None, "diff": None}}), tmp_path / "out"
    run(recipe)
    before = results(out)
    shutil.rmtree(out / "models")  # no remaining cell reads them
    capsys.readouterr()
    assert set(states(run(recipe)).values()) == {"done"}
    assert "9 cells, 9 of them done before" in capsys.readouterr().err
    next(out.glob("results/diff-1011-*/probes-0910.*.json")).unlink()
    assert set(states(run(recipe)).values()) == {"done"}
    assert "9 cells, 6 of them done before" in capsys.readouterr().err  # it, and both months' trainings
    assert results(out) == before
    assert not list(out.glob("models/initial-*"))
    damaged = next(out.glob("models/diff-0910-*/model.safetensors"))
    damaged.write_bytes(damaged.read_bytes()[:-1])
    with pytest.raises(InputError, match=r"model\.safetensors: not the file that the manifest describes; remove"):
        run(recipe)


def test_the_base_of_an_adapter_is_made_again_for_its_evaluations(write: Write, tmp_path: Path) -> None:
    out, changes = tmp_path / "out", {"experiment/methods": {"lora": None}, "experiment/months": ["0910"]}
    changes["experiment/start"] = {"method": "full", "config": "wikipedia-10"}
    recipe = write(**changes)
    run(recipe)
    before = results(out)
    shutil.rmtree(next(out.glob("models/start-*")))
    next(out.glob("results/lora-0910-*/probes-0910.*.json")).unlink()
    assert set(states(run(recipe)).values()) == {"done"}
    assert results(out) == before


def test_no_scored_model_is_kept_while_another_is_trained(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    train, kept = cells_module.train, []

    def watched(run: Any, configs: Any = None) -> Any:
        kept.append(cells_module._load_model.cache_info().currsize)
        return train(run, configs)

    monkeypatch.setattr(cells_module, "train", watched)
    run(write())
    assert kept == [0] * 5


def test_a_failed_cell_stops_no_other_and_is_tried_again(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = write()
    train = cells_module.train

    def fails(run: Any, configs: Any = None) -> Any:
        if run.name == "diff" and run.config == "diffset-0910":
            raise RuntimeError("CUDA out of memory\nsecond line")
        return train(run, configs)

    monkeypatch.setattr(cells_module, "train", fails)
    progress = run(recipe)
    found = states(progress)
    assert found.pop("diff/0910") == "failed"
    assert {found.pop(name) for name in list(found) if name.startswith("diff/")} == {"not run"}
    assert set(found.values()) == {"done"}
    assert "second line" in progress["diff/0910"].why  # and where the traceback is
    assert "CUDA out of memory" in progress["diff/0910"].cell.failure_path.read_text()
    assert progress["diff/1011"].why == "diff/0910 failed"
    assert progress["diff/1011/twiki_probes/probes-0910"].why == "diff/1011 not run"
    monkeypatch.undo()
    assert set(states(run(recipe)).values()) == {"done"}
    assert not list((tmp_path / "out" / "cells").glob("*.failed.txt"))


def test_a_month_without_facts_is_no_failure(write: Write, there: Path, tmp_path: Path) -> None:
    from a_dataset import write_dataset
    from tiny_probes import rows

    write_dataset(tmp_path / "facts", {"probes-0910": {"changed": rows([("", "is", "x")])}})
    tasks = {"twiki_probes": {"data": str(tmp_path / "facts"), "answers": False, "light_tuning": False}}
    progress = run(write(**{"experiment/tasks": tasks, "experiment/methods": {"initial": None}}))
    assert progress["initial/twiki_probes/probes-0910"].state == "nothing to score"
    assert "could score nothing" in progress["initial/twiki_probes/probes-0910"].why


def test_an_unknown_cell(write: Write) -> None:
    with pytest.raises(UsageError, match=re.escape("no cell 'diff/0911' (did you mean diff/")):
        run(write(), only=["diff/0911"])


COMMAND = [sys.executable, "-m", "temporalwiki", "experiment"]


@pytest.mark.fault("kill -9", "experiment: at random moments", SAME_BYTES)
def test_killed_at_random_moments_it_ends_with_the_same_results(write: Write, tmp_path: Path) -> None:
    recipe = write(save_steps=1, max_steps=6)
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    moments, quiet = random.Random(44), subprocess.DEVNULL

    def notes() -> int:
        return len(list((tmp_path / "out" / "cells").glob("*.json")))

    for _ in range(3):
        process = subprocess.Popen([*COMMAND, str(recipe)], env=environment, stderr=quiet, stdout=quiet)
        enough = notes() + moments.randint(1, 3)
        while notes() < enough:
            assert process.poll() is None, "it ended by itself"
            time.sleep(0.2)
        time.sleep(moments.uniform(0.0, 0.3))
        process.kill()
        process.wait()
        assert process.returncode == -signal.SIGKILL, "it was done before it was killed"
    subprocess.run([*COMMAND, str(recipe)], env=environment, check=True, capture_output=True)
    whole = write("whole", save_steps=1, max_steps=6, **{"experiment/output": str(tmp_path / "whole")})
    # cached scores would compare the run with itself
    environment["HF_HOME"] = str(tmp_path / "home")
    subprocess.run([*COMMAND, str(whole)], env=environment, check=True, capture_output=True)
    assert results(tmp_path / "out") == results(tmp_path / "whole")
    boards = [read_parquet(tmp_path / name / "leaderboard" / "results.parquet") for name in ("out", "whole")]
    assert boards[0] == boards[1]
    assert list((tmp_path / "out").rglob(".*.part")) == []


def test_jobs_of_this_machine_end_with_the_same_results(write: Write, tmp_path: Path) -> None:
    changes = {"experiment/methods": {"initial": None, "diff": None}, "experiment/months": ["0910"]}
    run(write(**changes))
    experiment = read_experiment(str(write("jobs", **changes, **{"experiment/output": str(tmp_path / "jobs")})))
    progress = run_experiment(experiment, find_job_runner("local", experiment, 2), 2)
    assert {one.state for one in progress} == {"done"}
    assert results(tmp_path / "jobs") == results(tmp_path / "out")
    assert (tmp_path / "jobs" / "logs" / "diff-0910.log").read_text().count(
        "experiment: 1 cells, 0 of them done before"
    ) == 1


def test_a_job_that_fails_stops_no_other(write: Write, tmp_path: Path) -> None:
    recipe = write(**{"experiment/methods": {"initial": None, "modular": {"small": "no/such"}}})  # for T5 only
    experiment = read_experiment(str(recipe))
    progress = {one.cell.name: one for one in run_experiment(experiment, find_job_runner("local", experiment, 2), 2)}
    assert progress["modular/0910"].state == "failed"
    assert "modular does not support" in progress["modular/0910"].why
    assert progress["modular/1011/twiki_probes/probes-0910"].state == "not run"
    assert progress["initial/twiki_probes/probes-1011"].state == "done"


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="processes are looked for in /proc")
def test_jobs_of_this_machine_end_with_who_started_them(write: Write, tmp_path: Path) -> None:
    recipe = write(**{"max_steps": 100_000, "experiment/methods": {"diff": None}})
    process = subprocess.Popen(
        [*COMMAND, str(recipe), "--jobs", "2"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    next(line for line in process.stderr if "diff/0910 started" in line)

    def jobs() -> list[str]:
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):  # it has just ended
                found.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        return [words for words in found if f"experiment {recipe} --cell" in words]

    try:
        while not any((tmp_path / "out" / "models").glob("*/run.json")):  # the job has not begun to train
            assert process.poll() is None, "it ended by itself"
            time.sleep(0.2)
        assert jobs()
    finally:
        process.kill()
        process.communicate()
    while jobs():  # a job that goes on ends only after 100,000 steps, with a finished model
        time.sleep(0.2)
    assert not any((tmp_path / "out" / "models").glob("*/training.json"))


def test_a_job_that_dies_stops_none_of_the_others_of_its_group(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    from temporalwiki.eval_harness.experiment import job_runners

    made = job_runners.command

    def dies(recipe: str, cells: Any, python: str = sys.executable) -> list[str]:
        if cells[0].endswith("probes-0910"):
            return [sys.executable, "-c", "import os; os.abort()"]
        return made(recipe, cells, python)

    monkeypatch.setattr(job_runners, "command", dies)
    experiment = read_experiment(str(write(**{"experiment/methods": {"initial": None}})))
    progress = run_experiment(experiment, find_job_runner("local", experiment, 2), 2)
    assert [one.state for one in progress] == ["done", "failed", "done"]
    assert "its log: " in progress[1].why


def test_a_scheduler_that_refuses_is_a_failure_and_one_that_is_silent_is_asked_again(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = read_experiment(str(write(**{"experiment/methods": {"initial": None}})))
    local = find_job_runner("local", experiment, 2)
    assert local is not None
    silent = iter([True, True])

    def start(name: str, cells: Any) -> CellJob:
        if name == "initial":
            job = local.start(name, cells)
            return CellJob(job.log, lambda: bool(1 / 0) if next(silent, False) else job.ended())
        raise OSError("sbatch: error: Batch job submission failed")

    progress = run_experiment(experiment, JobRunner(start, remote=False), 2)
    assert [one.state for one in progress] == ["done", "failed", "failed"]
    assert "sbatch: error" in progress[1].why


def test_jobs_of_slurm(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fake commands on PATH run the jobs as processes; SBATCH_TIMELIMIT yields to the recipe."""
    spool = fake_slurm.install(tmp_path / "slurm")
    monkeypatch.setenv("PATH", f"{tmp_path / 'slurm' / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("SBATCH_TIMELIMIT", "1")
    monkeypatch.setattr("temporalwiki.eval_harness.experiment.run.POLL", 0.2)
    options = {
        "slurm_partition": "gpu",
        "gpus_per_node": 1,
        "mem_gb": 64,
        "timeout_min": 5,
        "tasks_per_node": 1,
        "exclusive": True,
        "overcommit": False,
        "slurm_additional_parameters": {"mail-user": "me"},
        "slurm_setup": [f"touch {tmp_path / 'set_up'}"],
    }
    changes = {"experiment/methods": {"initial": None}, "experiment/months": ["0910"]}
    experiment = read_experiment(str(write(**changes, **{"experiment/engines": {"slurm": options}})))
    progress = run_experiment(experiment, find_job_runner("slurm", experiment, 2), 2)
    assert {one.cell.name: one.state for one in progress} == {
        "initial": "done",
        "initial/twiki_probes/probes-0910": "done",
    }
    assert (tmp_path / "set_up").exists()
    asked = (spool / "100.asked").read_text().split()
    assert [word for word in asked if not word.startswith("output=")] == [
        "exclusive=",
        "gpus-per-node=1",
        "job-name=initial",
        "mail-user=me",
        "mem=64G",
        "ntasks-per-node=1",
        "parsable=",
        "partition=gpu",
        "time=5",
        "timelimit=1",
    ]
    assert (experiment.output / "logs" / "100.out").exists()


def test_without_slurm_there_is_one_line(write: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match=r"^there is no sbatch here: run --engine slurm where jobs are submitted"):
        find_job_runner("slurm", read_experiment(str(write())), 2)


def test_jobs_of_the_hub(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for the Hub that runs its jobs on this machine and notes the requests."""
    import huggingface_hub

    asked = []

    def run_job(*, image: str, command: list[str], volumes: list[Any], **more: Any) -> Any:
        asked.append((image, command, [(v.type, v.source, v.mount_path) for v in volumes], more))
        line = command[2].replace("cd /experiment", f"cd {tmp_path}").replace("python -m", f"{sys.executable} -m")
        process = subprocess.Popen(["bash", "-c", line], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return type("Job", (), {"id": process, "url": "https://job"})

    def inspect_job(*, job_id: Any, namespace: str | None) -> Any:
        code = job_id.poll()
        stage = "RUNNING" if code is None else "COMPLETED" if code == 0 else "ERROR"
        return type("Info", (), {"status": type("Status", (), {"stage": stage})})

    monkeypatch.setattr(huggingface_hub, "run_job", run_job)
    monkeypatch.setattr(huggingface_hub, "inspect_job", inspect_job)
    monkeypatch.setattr("temporalwiki.eval_harness.experiment.run.POLL", 0.2)
    hub = {"bucket": "me/runs", "flavor": "a10g-small", "timeout": "2h", "setup": "true"}
    recipe = write(**{"experiment/methods": {"initial": None}, "experiment/engines": {"hub_jobs": hub}})
    experiment = read_experiment(str(recipe))
    progress = run_experiment(experiment, find_job_runner("hub_jobs", experiment, 2), 2)
    assert {one.state for one in progress} == {"done"}
    assert len(asked) == 2  # the checkpoint, then its evaluations
    image, command, volumes, more = asked[0]
    assert image.startswith("pytorch/pytorch:")
    assert command[:2] == ["bash", "-c"]
    assert command[2] == f"cd /experiment && true && python -m temporalwiki experiment {recipe} --cell initial"
    assert volumes == [("bucket", "me/runs", "/experiment")]
    assert more == {"labels": {"temporalwiki": "initial"}, "secrets": None, "flavor": "a10g-small", "timeout": "2h"}


BAD_RUNNERS: dict[str, tuple[str, dict[str, Any], str]] = {
    "unknown": ("slrm", {}, "no engine 'slrm' (did you mean slurm?)"),
    "unknown in the recipe": ("local", {"slrm": {}}, "engines: no 'slrm' (did you mean slurm?)"),
    "local with parameters": ("local", {"local": {"gpus": 2}}, "local takes no parameters"),
    "no bucket": ("hub_jobs", {"hub_jobs": {}}, "name a bucket"),
    "a mapping for sbatch": ("slurm", {"slurm": {"gres": {"gpu": 1}}}, "gres must be text, a number, true or false"),
    "set-up that is not a list": ("slurm", {"slurm": {"setup": "true"}}, "setup must be a list of shell commands"),
    "submitit's stand-in": ("slurm", {"slurm": {"cluster": "local"}}, "--engine local runs cells without Slurm"),
    "unknown parameter": ("hub_jobs", {"hub_jobs": {"bucket": "a/b", "flavour": "x"}}, "did you mean flavor?"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_RUNNERS)
def test_engines_that_cannot_be_used(write: Write, case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_slurm.install(tmp_path / "slurm")
    monkeypatch.setenv("PATH", str(tmp_path / "slurm" / "bin"))
    name, engines, said = BAD_RUNNERS[case]
    experiment = read_experiment(str(write(**{"experiment/engines": engines})))
    with pytest.raises(UsageError) as raised:
        find_job_runner(name, experiment, 2)
    assert said in str(raised.value)


def test_two_processes_run_each_cell_together(write: Write, tmp_path: Path) -> None:
    tiny_models.save("llama", tmp_path / "model")  # without dropout, whose numbers differ between processes
    changes = {
        "model": str(tmp_path / "model"),
        "experiment/methods": {"initial": None, "diff": None},
        "experiment/months": ["0910"],
    }
    run(write(**changes))
    together = write("together", **changes, **{"experiment/output": str(tmp_path / "together")})
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    process = subprocess.run(
        [*launch, "-m", "temporalwiki", "experiment", str(together)],
        env=os.environ | {"ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1", "HF_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr
    assert process.stdout.count("the page: ") == 1
    one, two = results(tmp_path / "out"), results(tmp_path / "together")
    assert len(two) == len(one) == 2
    for (before, _), (after, _) in zip(one.values(), two.values(), strict=True):
        for name, score in before["scores"].items():  # the weights differ by the order of sums
            assert after["scores"][name]["value"] == pytest.approx(score["value"], rel=1e-4)
