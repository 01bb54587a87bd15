"""Kill a process, or fill the disk, at the n-th call that changes files."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from types import TracebackType
from typing import Any

import pytest

_CHANGES = [(os, name) for name in ("replace", "rename", "unlink", "rmdir", "mkdir", "link", "fsync")]
_CHANGES += [(shutil, "copyfile")]
# What a full disk refuses: what is taken away or renamed needs no room.
_NEEDS_ROOM = ("mkdir", "fsync", "copyfile")


class Killed(BaseException):
    """What nothing catches, as nothing catches SIGKILL: no handler can change a file afterwards."""


class Stop:
    """A context where calls that change files raise Killed, from the n-th on.

    With ``full``, only calls that need room on the disk fail. ``reached`` is True if there were n calls.
    """

    def __init__(self, nth: int, full: bool = False) -> None:
        self.nth, self.full, self.calls = nth, full, 0
        self._patch = pytest.MonkeyPatch()

    @property
    def reached(self) -> bool:
        return self.calls >= self.nth

    def __enter__(self) -> Stop:
        for module, name in _CHANGES:
            if not self.full or name in _NEEDS_ROOM:
                self._patch.setattr(module, name, self._stopping(getattr(module, name)))
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        self._patch.undo()

    def _stopping(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            self.calls += 1
            if self.reached:
                raise OSError(errno.ENOSPC, "No space left on device") if self.full else Killed
            return real(*arguments, **options)

        return call
