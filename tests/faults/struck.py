"""Commands that run in a fork of a process that has imported the program, and are killed or held there.

Importing takes longer than most of the tested commands. Run as a program, this module is that process.
"""

import builtins
import contextlib
import functools
import io
import json
import mmap
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from faults.disk import Disk

# audit events before a change of files; "open" is another, if it is for writing
_CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.truncate", "os.symlink"}
_DONE = ("replace", "rename", "unlink", "link", "fsync")  # of os; a change is counted after each call as well
_MOMENTS = 1 << 16  # the largest number of changes for which ``Ended.opened`` works


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    status: int  # of the process; negative: the signal that killed it
    out: str
    err: str
    changes: int  # moments before and after a change of files, in the process of the command
    opened: list[int]  # the moments when a file had just been opened for writing and was empty
    seconds: float

    @property
    def killed(self) -> bool:
        return self.status == -signal.SIGKILL


class Struck:
    """A process that has imported ``modules``, with variables added to its environment."""

    def __init__(self, modules: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        self._modules, self._environment = list(modules), dict(environment or {})

    def __enter__(self) -> Self:
        tests = Path(__file__).parents[1]
        path = os.pathsep.join(filter(None, (str(tests), os.environ.get("PYTHONPATH"))))
        own = {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
        self._process = subprocess.Popen(
            [sys.executable, __file__, *self._modules],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **own, **self._environment},
        )  # fmt: skip
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def run(self, words: Sequence[object], folder: Path, *, after: float | None = None, **options: Any) -> Ended:
        """Start a command with the options of ``start``, and wait for its end, or kill it ``after`` some seconds."""
        return self.end(self.start(words, folder, **options), after)

    def start(
        self,
        words: Sequence[object],
        folder: Path,
        *,
        at: int | None = None,
        cut: str | None = None,
        hold: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> int:
        """Start a command in ``folder``, and return its process id.

        ``at`` the n-th change of files it is killed; what ``publish`` sends counts as a change as well. With ``hold``
        it makes that file instead, and waits until somebody deletes it. With ``cut``, one of ``KEPT`` and a seed,
        ``folder`` is left as after a power cut; the power is cut at the end if ``at`` is None.
        """
        order = {"words": [str(word) for word in words], "folder": str(folder), "at": at, "cut": cut}
        return int(self._ask(order | {"hold": hold and str(hold), "environment": dict(environment or {})}))

    def end(self, process: int, after: float | None = None) -> Ended:
        """Wait for a command that was started, or kill it ``after`` some seconds."""
        return Ended(**self._ask({"end": process, "after": after}))

    def _ask(self, order: Mapping[str, Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(order), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        assert answer, "the process of the commands has ended"
        return json.loads(answer)


def _serve(orders: Iterator[str]) -> None:
    running: dict[int, tuple[mmap.mmap, list[int], float]] = {}
    for line in orders:
        order = json.loads(line)
        if "end" in order:
            print(json.dumps(_end(order["end"], *running.pop(order["end"]), order["after"])), flush=True)
            continue
        count, said = mmap.mmap(-1, 8 + _MOMENTS), [os.memfd_create(name) for name in ("out", "err")]
        begun = time.monotonic()
        pid = os.fork()
        if pid == 0:
            _be_the_command(order, count, said)
        running[pid] = count, said, begun
        print(pid, flush=True)


def _end(pid: int, count: mmap.mmap, said: list[int], begun: float, after: float | None) -> dict[str, Any]:
    """Wait for a command. The processes that it started end a little later, so a rerun may meet them."""
    status = _wait(pid, after)
    seconds = time.monotonic() - begun
    texts = [os.pread(file, os.fstat(file).st_size, 0).decode(errors="replace") for file in said]
    for file in said:
        os.close(file)
    changes = int.from_bytes(count[:8], "little")
    opened = [number for number in range(1, min(changes + 1, _MOMENTS)) if count[8 + number]]
    return asdict(Ended(status, *texts, changes, opened, seconds))


def at_work(command: int) -> bool:
    """Return whether a command runs; one that has ended stays as a zombie until its parent asks."""
    return Path(f"/proc/{command}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def _wait(pid: int, after: float | None) -> int:
    if after is not None:
        end = time.monotonic() + after
        while time.monotonic() < end:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.002)
        os.kill(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _be_the_command(order: Mapping[str, Any], count: mmap.mmap, said: Sequence[int]) -> None:
    from temporalwiki.commands import main

    status = 70
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(said[0], 1)
        os.dup2(said[1], 2)
        sys.stdout, sys.stderr = (open(number, "w", encoding="utf-8", closefd=False) for number in (1, 2))  # noqa: SIM115
        os.environ.update(order["environment"])
        tempfile.tempdir = None  # an import may have set it
        os.chdir(order["folder"])
        if "datasets" in sys.modules:  # other commands' cached scores must not be compared with themselves
            sys.modules["datasets"].config.HF_CACHE_HOME = os.path.join(order["folder"], ".home")  # noqa: PTH118
        cut = _record_syncs(Path(order["folder"]), order["cut"]) if order["cut"] else None
        publishes = order["words"][0] == "publish"  # what it changes lies elsewhere
        _count_changes(count, order["at"], order["hold"], cut, publishes)
        status = main(order["words"])
        if cut is not None and order["at"] is None:
            cut()
    except SystemExit as stop:
        status = int(stop.code or 0)
    except BaseException:  # noqa: BLE001 - the fork must never return into the server
        sys.excepthook(*sys.exc_info())
        status = 70  # a bug, because main turns user errors into a status
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def _record_syncs(folder: Path, cut: str) -> Callable[[], None]:
    """Record every sync in ``folder`` from now on, and return a function that leaves it as after a power cut."""
    kept, _, seed = cut.rpartition(" ")
    disk, real = Disk(folder.resolve()), os.fsync

    def fsync(file: Any) -> None:
        real(file)
        disk.synced(file if isinstance(file, int) else file.fileno())

    os.fsync = fsync
    return lambda: disk.cut(kept, random.Random(seed))


def _count_changes(
    count: mmap.mmap, at: int | None, hold: str | None, cut: Callable[[], None] | None, requests: bool
) -> None:
    own, over = os.getpid(), 0

    def change(opened: bool = False) -> None:
        nonlocal over
        if os.getpid() != own:  # only the command itself is killed
            return
        if over:
            while threading.get_ident() != over:  # the power is off
                time.sleep(1)
            return
        number = int.from_bytes(count[:8], "little") + 1
        count[:8] = number.to_bytes(8, "little")
        if opened and number < _MOMENTS:
            count[8 + number] = 1
        if number == at and hold is None:
            over = threading.get_ident()
            if cut is not None:
                cut()
            os.kill(own, signal.SIGKILL)
        elif number == at:
            Path(hold or "").touch()
            while Path(hold or "").exists():
                time.sleep(0.01)

    def hear(event: str, arguments: tuple[Any, ...]) -> None:
        if event in _CHANGES or (event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)):
            change()

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(real)
        def call(*arguments: Any, **options: Any) -> Any:
            came = real(*arguments, **options)
            change()
            return came

        return call

    def opened(file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        came = real_open(file, mode, *arguments, **options)
        if set(mode) & set("wax+"):
            change(opened=True)
        return came

    real_open = open
    for module in (builtins, io):  # pathlib uses io.open
        vars(module)["open"] = opened
    for name in _DONE:
        setattr(os, name, counted(getattr(os, name)))
    if requests:
        socket.socket.sendall = counted(socket.socket.sendall)  # type: ignore[method-assign]
        socket.socket.send = counted(socket.socket.send)  # type: ignore[method-assign]
    sys.addaudithook(hear)


if __name__ == "__main__":
    for module in sys.argv[1:]:
        __import__(module)
    _serve(iter(sys.stdin.readline, ""))
