"""Tasks for the tests of executors, in a module of their own because worker processes import them."""

import gc
import mmap
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from temporalwiki.base.errors import InputError
from temporalwiki.base.files import whole_file
from temporalwiki.base.json_files import write_json
from temporalwiki.builders.stages import Report


def calls(tmp_path: Path) -> list[int]:
    """Return the tasks that ran, once for each run."""
    return sorted(int(call) for call in (tmp_path / "calls").read_text().split())


def wait_for(what: Callable[[], Any]) -> Any:
    """Wait until ``what`` returns something true, and return that."""
    while not (found := what()):
        time.sleep(0.05)
    return found


def write_square(task: int, folder: Path) -> Report:
    """Write a file, and record the call for ``calls``."""
    with (folder.parent / "calls").open("a") as calls:
        calls.write(f"{task} ")
    path = folder / f"{task}.txt"
    with whole_file(path) as part:
        part.write_text(str(task * task))
    return {"count": {"tasks": 1}, "wrote": [path]}


def collections(fails: bool, _folder: Path) -> Report:
    """Report how many new objects Python's garbage collector waits for."""
    if fails:
        raise InputError(f"{gc.get_threshold()[0]}")
    return {"objects": {"threshold": gc.get_threshold()[0]}}


def die_at_three(task: int, folder: Path) -> Report:
    if task == 3 and not (folder.parent / "mended").exists():
        os.kill(os.getpid(), signal.SIGKILL)
    return write_square(task, folder)


def refuse_three(task: int, folder: Path) -> Report:
    if task == 3:
        raise InputError("three.xml: page 3 is bad")
    return write_square(task, folder)


def die_twice_at_three(task: int, folder: Path) -> Report:
    """Kill the worker while a file is half written, and the next worker as well."""
    deaths = folder.parent / "deaths"
    if task == 3 and (not deaths.exists() or deaths.stat().st_size < 2):
        (folder / ".3.txt.dead.part").write_text("half")
        with deaths.open("a") as file:
            file.write("x")
        os.kill(os.getpid(), signal.SIGKILL)
    return write_square(task, folder)


def wait_for_the_signal(task: int, folder: Path) -> Report:
    """Record the Ray node, and wait for the file ``go``. A task on the node that the file names never ends."""
    import ray

    node, go = ray.get_runtime_context().get_node_id(), folder.parent / "go"
    with (folder.parent / "nodes").open("a") as nodes:
        nodes.write(f"{task} {node}\n")
    while not go.exists() or go.read_text() == node:
        time.sleep(0.02)
    return write_square(task, folder)


def break_down_at_three(task: int, folder: Path) -> Report:
    if task == 3:
        raise KeyError("not a mistake of the input")
    return write_square(task, folder)


class NeedsTwo(Exception):
    """An error that can be pickled but not unpickled."""

    def __init__(self, what: str, where: str) -> None:
        super().__init__(f"{what} in {where}")


def raise_what_does_not_travel(task: int, folder: Path) -> Report:
    raise NeedsTwo("a mistake", "three.xml")


def start_again(task: int, folder: Path) -> Report:
    """Act as if another command took the folder for other tasks."""
    write_json(folder / "stage.json", {"plan": "other", "tasks": 1})
    return write_square(task, folder)


class Weighed:
    """A task that records each time that it is sent to a worker."""

    def __init__(self, number: int, log: Path) -> None:
        self.number, self.log = number, log

    def __getstate__(self) -> dict[str, object]:
        with self.log.open("a") as file:
            file.write("x")
        return vars(self)


def weigh(task: Weighed, folder: Path) -> Report:
    return {"number": task.number}


def hold(megabytes: int, folder: Path) -> Report:
    """Hold memory for a moment. It is mapped, so that no allocator keeps it."""
    with mmap.mmap(-1, megabytes << 20) as held:
        for page in range(0, len(held), mmap.PAGESIZE):
            held[page] = 1
        return {"bytes": len(held)}


def spin_in_a_process(seconds: float, folder: Path) -> Report:
    """Use the CPU for some seconds in a child process."""
    program = f"import time\nwhile time.process_time() < {seconds}: pass"
    subprocess.run([sys.executable, "-c", program], check=True)
    return {}
