"""Tasks for the tests of the engine: worker processes import them, so they lie in a module of their own."""

from __future__ import annotations

import gc
import mmap
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from temporalwiki.base.errors import InputError
from temporalwiki.base.files import whole_file
from temporalwiki.base.json_files import write_json
from temporalwiki.builders.stages import Report


def write_square(task: int, folder: Path) -> Report:
    """Leaves a trace of every call, so that a test can tell what ran."""
    with (folder.parent / "calls").open("a") as calls:
        calls.write(f"{task} ")
    path = folder / f"{task}.txt"
    with whole_file(path) as part:
        part.write_text(str(task * task))
    return {"count": {"tasks": 1}, "wrote": [path]}


def collections(fails: bool, _folder: Path) -> Report:
    """Say how many new objects Python's garbage collector waits for."""
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
    """A worker that is killed while a file is half written, and the next one, too."""
    deaths = folder.parent / "deaths"
    if task == 3 and (not deaths.exists() or deaths.stat().st_size < 2):
        (folder / ".3.txt.dead.part").write_text("half")
        with deaths.open("a") as file:
            file.write("x")
        os.kill(os.getpid(), signal.SIGKILL)
    return write_square(task, folder)


def wait_for_the_signal(task: int, folder: Path) -> Report:
    """Says which node of Ray runs it, then waits for the file ``go`` above; it never ends on the node in that."""
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
    """Can be pickled and not be made again."""

    def __init__(self, what: str, where: str) -> None:
        super().__init__(f"{what} in {where}")


def raise_what_does_not_travel(task: int, folder: Path) -> Report:
    raise NeedsTwo("a mistake", "three.xml")


def begin_anew(task: int, folder: Path) -> Report:
    """While it works, another command takes the folder for other tasks."""
    write_json(folder / "stage.json", {"plan": "other", "tasks": 1})
    return write_square(task, folder)


class Weighed:
    """A task that notes each time when it is sent to a worker."""

    def __init__(self, number: int, log: Path) -> None:
        self.number, self.log = number, log

    def __getstate__(self) -> dict[str, object]:
        with self.log.open("a") as file:
            file.write("x")
        return vars(self)


def weigh(task: Weighed, folder: Path) -> Report:
    return {"number": task.number}


def hold(megabytes: int, folder: Path) -> Report:
    """Holds so much memory for a moment; the system has it back at once, whatever the allocator keeps."""
    with mmap.mmap(-1, megabytes << 20) as held:
        for page in range(0, len(held), mmap.PAGESIZE):
            held[page] = 1
        return {"bytes": len(held)}


def spin_in_a_process(seconds: float, folder: Path) -> Report:
    """Lets a process of its own use the CPU for so long."""
    program = f"import time\nwhile time.process_time() < {seconds}: pass"
    subprocess.run([sys.executable, "-c", program], check=True)
    return {}
