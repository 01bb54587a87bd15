"""Where the cells of an experiment run: processes of this machine, a GPU each; Slurm; Hub Jobs.

A job is the command ``temporalwiki experiment RECIPE --cell NAME ...``: what is done is seen in the experiment's
folder, which all of them share, never in how a job ended.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from temporalwiki.base.errors import UsageError
from temporalwiki.base.options import did_you_mean
from temporalwiki.builders import slurm
from temporalwiki.eval_harness.experiment.recipe import Experiment

_PARENT = "TEMPORALWIKI_PARENT"  # in a job's environment: the process that started it on this machine


class Job(Protocol):
    """A job that was started."""

    @property
    def log(self) -> str:
        """Where its output is."""

    def ended(self) -> bool:
        """Whether it has ended, well or not."""


class Engine(Protocol):
    """What starts jobs."""

    remote: bool  # whether asking how they are goes over a network

    def start(self, name: str, cells: Sequence[str]) -> Job:
        """Start a job that runs cells, in this order."""


def find_engine(name: str, experiment: Experiment, at_once: int) -> Engine | None:
    """Return an engine by name; None for one process that runs everything.

    Raises UsageError for an unknown one, parameters that it does not take, and a package that is not there.
    """
    if name not in ENGINES:
        raise UsageError(f"no engine {name!r}{did_you_mean(name, ENGINES)}; there are {', '.join(ENGINES)}")
    for other in experiment.engines:
        if other not in ENGINES:
            known = ", ".join(ENGINES)
            raise UsageError(
                f"{experiment.path}: engines: no {other!r}{did_you_mean(other, ENGINES)}; there are {known}"
            )
    return ENGINES[name](experiment, dict(experiment.engines.get(name, {})), at_once)


def command(recipe: str, cells: Sequence[str], python: str = sys.executable) -> list[str]:
    """Return the command of a job."""
    return [python, "-m", "temporalwiki", "experiment", recipe, *(part for cell in cells for part in ("--cell", cell))]


def end_with_parent() -> None:
    """End this job when the command that started it is gone, so that nobody computes beside its rerun.

    Jobs of schedulers go on: they have been given no parent.
    """
    parent = os.environ.get(_PARENT)

    def watch() -> None:
        while str(os.getppid()) == parent:
            time.sleep(1)
        os._exit(1)

    if parent is not None:
        threading.Thread(target=watch, daemon=True).start()


@dataclass
class _Local:
    """Processes of this machine, each with a GPU of its own where there are any, else its share of the cores."""

    experiment: Experiment
    at_once: int
    gpus: int
    remote: bool = False

    def __post_init__(self) -> None:
        self._slots: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, name: str, cells: Sequence[str]) -> Job:
        slot = next(
            slot for slot in range(self.at_once) if slot not in self._slots or self._slots[slot].poll() is not None
        )
        environment = os.environ | {_PARENT: str(os.getpid())}
        if self.gpus:
            environment["CUDA_VISIBLE_DEVICES"] = _visible()[slot % self.gpus]
        else:
            environment.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // self.at_once)))
        log = _logs(self.experiment) / f"{_file(name)}.log"
        with log.open("wb") as file:
            process = subprocess.Popen(
                command(self.experiment.path, cells),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                env=environment,
            )
        self._slots[slot] = process
        return _Process(process, str(log))


@dataclass
class _Process:
    process: subprocess.Popen[bytes]
    log: str  # a file

    def ended(self) -> bool:
        return self.process.poll() is not None


def _local(experiment: Experiment, parameters: dict[str, Any], at_once: int) -> Engine | None:
    if parameters:
        raise UsageError(f"{experiment.path}: engines: local takes no parameters: --jobs N says how many at once")
    if at_once == 1:
        return None
    import torch

    return _Local(experiment, at_once, torch.cuda.device_count())


def _visible() -> list[str]:
    """Return the GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them."""
    import torch

    given = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    return [part for part in given.split(",") if part] or [str(i) for i in range(torch.cuda.device_count())]


@dataclass
class _Slurm:
    """Jobs of Slurm. The recipe gives the arguments of ``sbatch`` and the shell commands that a job runs first."""

    experiment: Experiment
    arguments: Sequence[str]
    setup: Sequence[str]
    remote: bool = True

    def start(self, name: str, cells: Sequence[str]) -> Job:
        job_name = _file(name)[:60]
        logs = _logs(self.experiment)
        run = f"exec {shlex.join(command(self.experiment.path, cells))}"
        script = "\n".join(["#!/bin/bash", "set -e", *self.setup, run, ""])
        output = f"--output={str(logs).replace('%', '%%')}/%j.out"
        job, cluster = slurm.submit(script, *self.arguments, f"--job-name={job_name}", output)
        return _SlurmJob(job, job_name, [cluster] if cluster else [], str(logs / f"{job}.out"))


@dataclass
class _SlurmJob:
    id: str
    name: str
    clusters: Sequence[str]
    log: str

    def ended(self) -> bool:
        queued = slurm.queued(self.name, self.clusters)
        return queued is not None and self.id not in {job.partition("_")[0] for job in queued}


def _slurm(experiment: Experiment, parameters: dict[str, Any], at_once: int) -> Engine:
    """Make the engine from options of ``sbatch``; submitit's names, such as ``slurm_partition``, work as well."""
    where = f"{experiment.path}: engines: slurm: "
    slurm.check_installed()
    if parameters.pop("cluster", "slurm") != "slurm":
        raise UsageError(f"{where}cluster is no option of sbatch; --engine local runs cells without Slurm")
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
    return _Slurm(experiment, arguments, setup)


# where the experiment's folder is in a job of the Hub
MOUNTED = "/experiment"


@dataclass
class _HubJobs:
    """Jobs of the Hugging Face Hub, which share a bucket that is mounted in all of them.

    Data and models come from the Hub or lie in the bucket, as the recipe does; who waits reads the same bucket, so
    the experiment is started where it is mounted.
    """

    experiment: Experiment
    parameters: Mapping[str, Any]
    bucket: str
    image: str
    setup: str
    remote: bool = True

    def start(self, name: str, cells: Sequence[str]) -> Job:
        from huggingface_hub import Volume, get_token, run_job

        inside = shlex.join(command(self.experiment.path, cells, "python"))
        job = run_job(
            image=self.image,
            command=["bash", "-c", f"cd {MOUNTED} && {self.setup} && {inside}"],
            volumes=[Volume(type="bucket", source=self.bucket, mount_path=MOUNTED)],
            labels={"temporalwiki": _file(name)[:60]},
            secrets={"HF_TOKEN": token} if (token := get_token()) else None,
            **self.parameters,
        )
        return _HubJob(job.id, str(getattr(job, "url", job.id)), self.parameters.get("namespace"))


@dataclass
class _HubJob:
    id: str
    log: str
    namespace: str | None

    def ended(self) -> bool:
        from huggingface_hub import inspect_job

        stage = inspect_job(job_id=self.id, namespace=self.namespace).status.stage
        return str(getattr(stage, "value", stage)) in ("COMPLETED", "CANCELED", "ERROR", "DELETED")


def _hub_jobs(experiment: Experiment, parameters: dict[str, Any], at_once: int) -> Engine:
    where = f"{experiment.path}: engines: hub_jobs: "
    bucket = parameters.pop("bucket", None)
    image = parameters.pop("image", "pytorch/pytorch:2.13.0-cuda13.0-cudnn9-runtime")
    setup = parameters.pop("setup", "pip install --quiet 'temporalwiki[eval]'")
    if not isinstance(bucket, str) or not isinstance(image, str) or not isinstance(setup, str):
        raise UsageError(
            f"{where}bucket is wanted: ORG/NAME of a bucket that all jobs share; image and setup are text"
        )
    known = ("flavor", "timeout", "attempts", "env", "namespace", "resource_group_id")
    for name in parameters:
        if name not in known:
            raise UsageError(f"{where}no parameter {name!r}{did_you_mean(name, known)}; there are {', '.join(known)}")
    return _HubJobs(experiment, parameters, bucket, image, setup)


def _logs(experiment: Experiment) -> Path:
    folder = experiment.output / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _file(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "._+=-" else "-" for letter in name)


# engine -> what makes it of an experiment, its parameters in the recipe and how many jobs may run at once
ENGINES: dict[str, Callable[[Experiment, dict[str, Any], int], Engine | None]] = {
    "local": _local,
    "slurm": _slurm,
    "hub_jobs": _hub_jobs,
}
