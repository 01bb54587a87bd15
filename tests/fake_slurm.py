"""Fake commands sbatch, squeue and scancel, which run jobs as processes.

A job exists while its file ``ARRAY_INDEX`` is in the folder ``spool``. There, the file ``limit`` holds the largest
number of jobs, ``ARRAY.held`` keeps the jobs of an array from starting, and with ``down`` no command gets an answer.
As in Slurm, sbatch prefers an argument to a variable SBATCH_*, and that to a line of the script.
"""

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

COMMANDS = ("sbatch", "squeue", "scancel")


def install(folder: Path) -> Path:
    """Write the commands to ``folder``/bin, with which PATH must begin, and return the spool."""
    (folder / "bin").mkdir(parents=True)
    (folder / "spool").mkdir()
    for command in COMMANDS:
        program = folder / "bin" / command
        line = shlex.join([sys.executable, "-S", "-E", str(Path(__file__).resolve()), str(folder / "spool"), command])
        program.write_text(f'#!/bin/sh\nexec {line} "$@"\n')
        program.chmod(0o755)
    return folder / "spool"


def jobs(spool: Path) -> list[str]:
    return sorted(path.name for path in spool.iterdir() if "_" in path.name)


def sbatch(spool: Path, arguments: list[str]) -> str:
    options = dict(argument.removeprefix("--").partition("=")[::2] for argument in arguments)
    script = sys.stdin.read()
    given = dict(
        line.removeprefix("#SBATCH --").partition("=")[::2]
        for line in script.splitlines()
        if line.startswith("#SBATCH --")
    )
    given |= {name: value for name, value in variables("SBATCH_").items() if value}
    given |= options
    if "wait" in given:
        sys.exit("sbatch: error: would wait until all jobs have ended")
    indices, _, at_once = options.get("array", "").partition("%")
    many = int(indices.partition("-")[2]) + 1 if indices else 1
    limit = spool / "limit"
    if limit.exists() and len(jobs(spool)) + many > int(limit.read_text()):
        with (spool / "refused").open("a") as file:
            file.write(f"{many} ")
        sys.exit("sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit)")
    if given.get("partition") == "none":
        sys.exit("sbatch: error: invalid partition specified: none\nsbatch: error: Batch job submission failed")
    number = str(100 + len(list(spool.glob("*.name"))))
    (spool / f"{number}.name").write_text(given["job-name"])
    (spool / f"{number}.cluster").write_text(given.get("clusters", ""))
    (spool / f"{number}.asked").write_text(shlex.join(f"{k}={v}" for k, v in sorted(given.items())))
    (spool / f"{number}.script").write_text(script)
    for index in range(many):
        (spool / f"{number}_{index}").touch()
    command = [sys.executable, "-S", "-E", __file__, str(spool), "run", number, str(many), at_once or "1"]
    command += [options["output"], options.get("dependency", "").removeprefix("afterany:")]
    environment = {name: value for name, value in os.environ.items() if name != "SLURM_ARRAY_TASK_ID"}
    runner = subprocess.Popen(
        command,
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
    )
    (spool / f"{number}.pid").write_text(str(runner.pid))
    return f"{number};{given['clusters']}" if "clusters" in given else number


def variables(prefix: str) -> dict[str, str]:
    """Return the variables with a prefix, named like arguments."""
    found = {name.removeprefix(prefix): value for name, value in os.environ.items() if name.startswith(prefix)}
    return {name.lower().replace("_", "-"): value for name, value in found.items()}


def run(spool: Path, arguments: list[str]) -> str:
    number, many, at_once, output, before = arguments
    waiting, running = list(range(int(many))), dict[int, subprocess.Popen[bytes]]()
    while before and any(job.startswith(f"{before}_") for job in jobs(spool)):
        time.sleep(0.02)
    while waiting or running:
        while waiting and len(running) < int(at_once) and not (spool / f"{number}.held").exists():
            index = waiting.pop(0)
            log = Path(output.replace("%A", number).replace("%j", number).replace("%a", str(index)))
            job = {"SLURM_ARRAY_TASK_ID": str(index), "SLURM_JOB_ID": number}
            with log.open("wb") as file:
                running[index] = subprocess.Popen(
                    ["/bin/bash", str(spool / f"{number}.script")],
                    stdout=file,
                    stderr=file,
                    env=os.environ | job,
                    start_new_session=True,
                )
            (spool / f"{number}_{index}").write_text(str(running[index].pid))
        for index, process in list(running.items()):
            if process.poll() is not None:
                del running[index]
                (spool / f"{number}_{index}").unlink(missing_ok=True)
        time.sleep(0.02)
    return ""


def squeue(spool: Path, arguments: list[str]) -> str:
    if (spool / "down").exists():
        sys.exit("slurm_load_jobs error: Unable to contact slurm controller (connect failure)")
    mine = asked_for(spool, variables("SQUEUE_"), arguments)
    return "\n".join(job for job in jobs(spool) if job.partition("_")[0] in mine)


def asked_for(spool: Path, hidden: dict[str, str], arguments: list[str]) -> list[str]:
    """Return the arrays with a name on a cluster, or none if a variable hides them."""
    options = dict(argument.removeprefix("--").partition("=")[::2] for argument in arguments)
    named = [file.stem for file in spool.glob("*.name") if file.read_text() == options["name"]]
    cluster = options.get("clusters", "")
    return [array for array in named if (spool / f"{array}.cluster").read_text() == cluster and not hidden]


def scancel(spool: Path, arguments: list[str]) -> str:
    for array in asked_for(spool, variables("SCANCEL_"), arguments):
        mine = [spool / job for job in jobs(spool) if job.startswith(f"{array}_")]
        for pid in [(spool / f"{array}.pid").read_text(), *(job.read_text() for job in mine)]:
            if pid:
                end(int(pid))
        for job in mine:
            job.unlink(missing_ok=True)
    return ""


def end(pid: int) -> None:
    """Kill a process group."""
    with contextlib.suppress(ProcessLookupError):  # it has ended by itself
        os.killpg(pid, signal.SIGKILL)


if __name__ == "__main__":
    place, verb, *rest = sys.argv[1:]
    print({"sbatch": sbatch, "run": run, "squeue": squeue, "scancel": scancel}[verb](Path(place), rest))
