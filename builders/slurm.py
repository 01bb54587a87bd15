"""Slurm's commands: submit jobs, list them and cancel them."""

import os
import shutil
import subprocess
from collections.abc import Sequence

from temporalwiki.base.errors import InputError, UsageError, in_one_line

GRACE = 60.0  # seconds until files that a node wrote are visible here, on any shared file system


class RefusedError(InputError):
    """What ``sbatch`` said when it refused a job."""


def check_installed(commands: Sequence[str] = ("sbatch", "squeue", "scancel")) -> None:
    """Raise UsageError if one of Slurm's commands is not installed on this machine."""
    for command in commands:
        if shutil.which(command) is None:
            raise UsageError(f"there is no {command} here: run --engine slurm where jobs are submitted to Slurm")


def submit(script: str, *arguments: str) -> tuple[str, str]:
    """Submit a script and return its job id and its cluster, which is "" for the local one.

    An argument overrides a variable SBATCH_*, and both override an "#SBATCH" line of the script. Raises RefusedError
    if Slurm refuses the job.
    """
    done = _run("sbatch", "--parsable", *arguments, script=script)
    if done.returncode != 0:
        raise RefusedError(in_one_line(done.stderr) or f"exit status {done.returncode}")
    job, _, cluster = done.stdout.strip().split("\n")[-1].partition(";")
    return job, cluster


def queued(name: str, clusters: Sequence[str]) -> set[str] | None:
    """Return the ids of the jobs with this name that wait or run, or None if Slurm does not answer.

    A task of an array has the id of the array, "_" and its index.
    """
    found: set[str] = set()
    for cluster in _each(clusters):
        done = _run("squeue", *cluster, "--noheader", "--array", f"--name={name}", "--format=%i")
        if done.returncode != 0:
            return None
        found |= set(done.stdout.split())
    return found


def cancel(name: str, clusters: Sequence[str]) -> None:
    """Cancel all jobs with this name."""
    for cluster in _each(clusters):
        _run("scancel", *cluster, f"--name={name}")


def _each(clusters: Sequence[str]) -> list[list[str]]:
    """Return the arguments that name each cluster; the local cluster needs none."""
    return [[f"--clusters={cluster}"] for cluster in clusters] or [[]]


def _run(*command: str, script: str = "") -> subprocess.CompletedProcess[str]:
    # these variables would hide jobs from squeue and scancel, or make sbatch wait until the jobs end
    hidden = ("SQUEUE_", "SCANCEL_", "SBATCH_WAIT")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    return subprocess.run(command, input=script, capture_output=True, text=True, env=environment)
