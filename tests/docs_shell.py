"""A shell for what the docs tell a reader to type: `temporalwiki`, `hf`, and `python` with -c, -m or a file.

A process that has imported what is slow to import and forks for each command, which therefore runs as in a process of
its own. It reads one JSON list a line (the words of a command), appends what the command says to the file `said`, and
answers with its exit status. Run as `python docs_shell.py MIRROR`: the dump server that stands in for Wikimedia's.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import shlex
import subprocess
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path

from documents import Typed, simple_commands

SLOW = (
    "datasets", "duckdb", "evaluate", "matplotlib.pyplot", "peft", "spacy", "torch", "transformers", "trl",
    "temporalwiki.builders.build", "temporalwiki.builders.ckl.build_config", "temporalwiki.eval_harness.demo",
    "temporalwiki.methods.train", "temporalwiki.push_scripts.monthly",
)  # fmt: skip


class Shell:
    """The process, in a folder; a context manager. ``env`` is the process's environment."""

    def __init__(self, folder: Path, env: Mapping[str, str], mirror: str = "http://127.0.0.1:9") -> None:
        self.folder = folder
        self._process = subprocess.Popen(
            [sys.executable, __file__, mirror],
            cwd=folder,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        if self._answer() != "ready":
            raise AssertionError("the shell of the docs did not start")

    def __enter__(self) -> Shell:
        return self

    def __exit__(self, *error: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def run(self, words: list[str]) -> tuple[int, str]:
        """Run a command and return its exit status and what it said."""
        said = self.folder / "said"
        said.write_bytes(b"")
        assert self._process.stdin is not None
        print(json.dumps(words), file=self._process.stdin, flush=True)
        return int(self._answer()), said.read_text("utf-8", errors="replace")

    def type(self, command: Typed) -> str:
        """Run a line of commands or a block of Python and return its output; AssertionError if one fails."""
        if command.language == "python":
            lines = [["python", "-c", command.text]]
        else:
            words = simple_commands(command.text)
            lines = [[name for word in line for name in self._names(word)] for line in words]
        text = ""
        for line in lines:
            status, said = self.run(line)
            if status:
                raise AssertionError(f"{command.place}: {shlex.join(line)}\nended with {status}:\n{said[-4000:]}")
            text += said
        return text

    def _names(self, word: str) -> list[str]:
        """As a shell does it: the files that a word with a star means."""
        if "*" not in word or " " in word:
            return [word]
        return sorted(path.relative_to(self.folder).as_posix() for path in self.folder.glob(word)) or [word]


def main(mirror: str) -> None:
    for name in SLOW:
        importlib.import_module(name)
    import torch

    torch.set_num_threads(1)  # threads do not outlive a fork
    importlib.import_module("temporalwiki.builders.fetch").MIRROR = mirror
    print("ready", flush=True)
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            run(json.loads(line))
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


def run(words: list[str]) -> None:
    """Run a command and end the process."""
    said = os.open("said", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    null = os.open(os.devnull, os.O_RDONLY)
    for number, file in ((0, null), (1, said), (2, said)):
        os.dup2(file, number)
    status = 1
    try:
        program, *rest = words
        if program == "temporalwiki":
            from temporalwiki.commands import main

            sys.argv = words
            status = main(rest)
        elif program == "hf":
            from huggingface_hub.cli.hf import main as hf

            sys.argv = words
            hf()
            status = 0
        elif program == "python" and rest[0] == "-c":
            sys.argv = ["-c", *rest[2:]]
            exec(compile(rest[1], "<docs>", "exec"), {"__name__": "__main__"})  # noqa: S102 - the docs are ours
            status = 0
        elif program == "python" and rest[0] == "-m":
            sys.argv = rest[1:]
            runpy.run_module(rest[1], run_name="__main__", alter_sys=True)
            status = 0
        elif program == "python" and rest[0].endswith(".py"):
            sys.argv = rest
            runpy.run_path(rest[0], run_name="__main__")
            status = 0
        else:
            print(f"{program}: this shell does not know it")
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:  # noqa: BLE001 - a shell says what a program died of
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    sys.path.insert(0, "")
    main(sys.argv[1])
