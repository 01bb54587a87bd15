"""Progress of long work: a bar on a terminal, a line now and then in a log."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any, Self

from tqdm import tqdm

LOG_SECONDS = 60.0  # between two lines in a log; work that takes less than a tenth of it prints none


class Progress:
    """How far some work is, shown on standard error; a context manager that any thread may ``update``.

    Args:
        name: what is being done; it heads the bar or the line.
        total: how many units there are in all, or None if nobody knows.
        unit: the unit's name; "B" is shown as kB, MB and so on.
        done: units that an earlier run did.
        shown: False shows nothing, for all processes of a run but the first.
    """

    def __init__(self, name: str, total: int | None, unit: str = "it", done: int = 0, shown: bool = True) -> None:
        self.name, self.total, self.unit, self.done = name, total, unit, done
        terminal = sys.stderr.isatty()
        self._bar: Any = None
        if shown and terminal:
            self._bar = tqdm(desc=name, total=total, unit=unit, unit_scale=unit == "B", initial=done)
        self._logs = shown and not terminal
        self._lock = threading.Lock()
        self._begun = self._said = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.close()
        elif time.monotonic() - self._begun > LOG_SECONDS / 10:
            self._log()

    def update(self, units: int = 1) -> None:
        """Note that so many more units are done."""
        with self._lock:
            self.done += units
            if self._bar is not None:
                self._bar.update(units)
            elif time.monotonic() - self._said > LOG_SECONDS:
                self._log()

    def _log(self) -> None:
        if self._logs:
            self._said = time.monotonic()
            scaled = self.unit == "B"
            counts = [
                tqdm.format_sizeof(count) if scaled else str(count) for count in (self.done, self.total) if count
            ]
            took = tqdm.format_interval(self._said - self._begun)
            print(f"{self.name}: {' of '.join(counts) or 0} {self.unit}, {took}", file=sys.stderr)
