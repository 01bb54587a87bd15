"""Run the cells of an experiment as jobs: local processes with a GPU each, Slurm jobs, or Hub Jobs.

A job is the command ``temporalwiki experiment RECIPE --cell NAME ...``. All jobs share the experiment's folder, and
the notes in it say which cells are done; the exit status of a job does not matter.
"""

import os
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from temporalwiki.base.errors import UsageError
from temporalwiki.base.options import did_you_mean
from temporalwiki.builders import slurm
from temporalwiki.eval_harness.experiment.recipe import Experiment

_PARENT = "TEMPORALWIKI_PARENT"  # environment variable with the id of the process that started a local job


@dataclass(frozen=True)
class CellJob:
    """A running job."""

    log: str  # the place of its output
    ended: Callable[[], bool]  # whether it has ended, with or without success


@dataclass(frozen=True)
class JobRunner:
    """Starts jobs."""

    start: Callable[[str, Sequence[str]], CellJob]  # given a name and the cells that the job runs, in this order
    remote: bool = True  # whether asking for the state of a job needs a network


def find_job_runner(name: str, experiment: Experiment, at_once: int) -> JobRunner | None:
    """Return the job runner ``name`` (the option --engine), or None if one process is to run everything.

    Raises UsageError for an unknown name or parameter, or a missing package.
    """
    if name not in JOB_RUNNERS:
        raise UsageError(f"no engine {name!r}{did_you_mean(name, JOB_RUNNERS)}; there are {', '.join(JOB_RUNNERS)}")
    for other in experiment.engines:
        if other not in JOB_RUNNERS:
            known = ", ".join(JOB_RUNNERS)
            raise UsageError(
                f"{experiment.path}: engines: no {other!r}{did_you_mean(other, JOB_RUNNERS)}; there are {known}"
            )
    return JOB_RUNNERS[name](experiment, dict(experiment.engines.get(name, {})), at_once)


def command(recipe: str, cells: Sequence[str], python: str = sys.executable) -> list[str]:
    """Return the command of a job."""
    return [python, "-m", "temporalwiki", "experiment", recipe, *(part for cell in cells for part in ("--cell", cell))]


def end_with_parent() -> None:
    """End this job when the command that started it ends, so that it does not compete with a rerun.

    Jobs of schedulers have no such parent and continue.
    """
    parent = os.environ.get(_PARENT)

    def watch() -> None:
        while str(os.getppid()) == parent:
            time.sleep(1)
        os._exit(1)

    if parent is not None:
        threading.Thread(target=watch, daemon=True).start()


def _local(experiment: Experiment, parameters: dict[str, Any], at_once: int) -> JobRunner | None:
    """Return a runner of local processes, each with its own GPU, or with its share of the cores."""
    if parameters:
        raise UsageError(f"{experiment.path}: engines: local takes no parameters; --jobs N sets the number of jobs")
    if at_once == 1:
        return None
    import torch

    gpus = torch.cuda.device_count()
    slots: dict[int, subprocess.Popen[bytes]] = {}

    def start(name: str, cells: Sequence[str]) -> CellJob:
        slot = next(slot for slot in range(at_once) if slot not in slots or slots[slot].poll() is not None)
        environment = os.environ | {_PARENT: str(os.getpid())}
        if gpus:
            environment["CUDA_VISIBLE_DEVICES"] = _visible(gpus)[slot % gpus]
        else:
            environment.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // at_once)))
        log = _logs(experiment) / f"{_file(name)}.log"
        with log.open("wb") as file:
            process = subprocess.Popen(
                command(experiment.path, cells), stdin=subprocess.DEVNULL, stdout=file, stderr=file, env=environment
            )
        slots[slot] = process
        return CellJob(str(log), lambda: process.poll() is not None)

    return JobRunner(start, remote=False)


def _visible(gpus: int) -> list[str]:
    """Return the names of this process's GPUs, as in CUDA_VISIBLE_DEVICES."""
    given = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    return [part for part in given.split(",") if part] or [str(i) for i in range(gpus)]


def _slurm(experiment: Experiment, parameters: dict[str, Any], at_once: int) -> JobRunner:
    """Return a runner of Slurm jobs, with options of ``sbatch`` and the first shell commands of a job from the recipe.

    submitit's names of options, such as ``slurm_partition``, also work.
    """
    where = f"{experiment.path}: engines: slurm: "
    slurm.check_installed()
    if parameters.pop("cluster", "slurm") != "slurm":
        raise UsageError(f"{where}cluster is not an option of sbatch; --engine local runs cells without Slurm")
    setup = parameters.pop("slurm_setup", parameters.pop("setup", []))
    if not isinstance(setup, list) or not all(isinstance(line, str) for line in setup):
        raise UsageError(f"{where}setup must be a list of shell commands")
    arguments = []
    more = parameters.pop("slurm_additional_parameters", {})
    for name, value in (parameters | more).items():
        if not isinstance(value, str | int | float):
            raise UsageError(f"{where}{name} must be text, a number, true or false, not {value!r}")
        option = name.removeprefix("slurm_").replace("_", "-")
        if option == "mem-gb":
            option, value = "mem", f"{value}G"
        option = {"timeout-min": "time", "tasks-per-node": "ntasks-per-node"}.get(option, option)
        if value is not False:
            arguments.append(f"--{option}" if value is True else f"--{option}={value}")

    def start(name: str, cells: Sequence[str]) -> CellJob:
        job_name, logs = _file(name)[:60], _logs(experiment)
        script = "\n".join(
            ["#!/bin/bash", "set -e", *setup, f"exec {shlex.join(command(experiment.path, cells))}", ""]
        )
        output = f"--output={str(logs).replace('%', '%%')}/%j.out"
        job, cluster = slurm.submit(script, *arguments, f"--job-name={job_name}", output)

        def ended() -> bool:
            queued = slurm.queued(job_name, [cluster] if cluster else [])
            return queued is not None and job not in {other.partition("_")[0] for other in queued}

        return CellJob(str(logs / f"{job}.out"), ended)

    return JobRunner(start)


# the experiment's folder within a Hub job
MOUNTED = "/experiment"


def _hub_jobs(experiment: Experiment, parameters: dict[str, Any], at_once: int) -> JobRunner:
    """Return a runner of jobs of the Hugging Face Hub, with a bucket that is mounted in all of them.

    The recipe is in the bucket; data and models are in it or on the Hub. The command that waits for the jobs reads the
    same bucket, so it must run on a machine that mounts it.
    """
    where = f"{experiment.path}: engines: hub_jobs: "
    bucket = parameters.pop("bucket", None)
    image = parameters.pop("image", "pytorch/pytorch:2.13.0-cuda13.0-cudnn9-runtime")
    package = f"temporalwiki[eval]=={version('temporalwiki')}"
    setup = parameters.pop("setup", f"env --unset=HF_TOKEN pip install --quiet '{package}'")
    if not isinstance(bucket, str) or not isinstance(image, str) or not isinstance(setup, str):
        raise UsageError(f"{where}name a bucket, ORG/NAME, that all jobs share; image and setup must be text")
    known = ("flavor", "timeout", "attempts", "env", "namespace", "resource_group_id")
    for name in parameters:
        if name not in known:
            raise UsageError(f"{where}no parameter {name!r}{did_you_mean(name, known)}; there are {', '.join(known)}")

    def start(name: str, cells: Sequence[str]) -> CellJob:
        from huggingface_hub import Volume, get_token, inspect_job, run_job

        inside = shlex.join(command(experiment.path, cells, "python"))
        job = run_job(
            image=image,
            command=["bash", "-c", f"cd {MOUNTED} && {setup} && {inside}"],
            volumes=[Volume(type="bucket", source=bucket, mount_path=MOUNTED)],
            labels={"temporalwiki": _file(name)[:60]},
            secrets={"HF_TOKEN": token} if (token := get_token()) else None,
            **parameters,
        )

        def ended() -> bool:
            stage = inspect_job(job_id=job.id, namespace=parameters.get("namespace")).status.stage
            return str(getattr(stage, "value", stage)) in ("COMPLETED", "CANCELED", "ERROR", "DELETED")

        return CellJob(str(getattr(job, "url", job.id)), ended)

    return JobRunner(start)


def _logs(experiment: Experiment) -> Path:
    folder = experiment.output / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _file(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "._+=-" else "-" for letter in name)


# name -> function of an experiment, the parameters in its recipe, and the number of jobs at once
JOB_RUNNERS: dict[str, Callable[[Experiment, dict[str, Any], int], JobRunner | None]] = {
    "local": _local,
    "slurm": _slurm,
    "hub_jobs": _hub_jobs,
}
