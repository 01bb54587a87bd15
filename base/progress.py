"""Progress of long work: a bar on a terminal or in a notebook, a line now and then in a log."""

import builtins
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any, Self, TypeVar, cast

from tqdm import tqdm

from temporalwiki.base.terminal import in_line, say

T = TypeVar("T")

LOG_SECONDS = 60.0  # between two lines in a log; work that takes less than half of it prints none


class Progress:
    """Shows on standard error how far some work has got. It is a context manager, and any thread may update it.

    Args:
        name: what is being done; it heads the bar or the line.
        total: how many units there are in all, or None if nobody knows.
        unit: the unit's name; "B" is shown as kB, MB and so on.
        done: units that an earlier run did; they do not count for the rate.
        shown: whether to show anything; of several processes of one run, only the first should.
    """

    def __init__(self, name: str, total: int | None, unit: str = "it", done: int = 0, shown: bool = True) -> None:
        self.name, self.total, self.unit, self.done, self.shown = in_line(name), total, unit, done, shown
        self._earlier, self._note = done, ""
        self._bar: Any = None
        # a notebook shows a bar as well: its stderr is not a terminal
        if shown and (sys.stderr.isatty() or hasattr(builtins, "__IPYTHON__")):
            # leave=None: a bar below another one vanishes when it ends
            self._bar = tqdm(desc=self.name, total=total, unit=unit, unit_scale=unit == "B", initial=done, leave=None)
        self._lock = threading.Lock()
        self._begun = self._last_line = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the bar; in a log, print a last line if the work took a while."""
        if self._bar is not None:
            self._bar.close()
        elif time.monotonic() - self._begun > LOG_SECONDS / 2:
            self._log()

    def each(self, items: Iterable[T]) -> Iterator[T]:
        """Yield the items, and count each one when the next is asked for."""
        for item in items:
            yield item
            self.update()

    def update(self, units: int = 1) -> None:
        """Count units that are done now; a negative number takes some back."""
        with self._lock:
            self.done += units
            if self._bar is not None:
                self._bar.update(units)
            elif time.monotonic() - self._last_line > LOG_SECONDS:
                self._log()

    def skip(self, units: int) -> None:
        """Count units that an earlier run did; they do not count for the rate."""
        with self._lock:
            self.done += units
            self._earlier += units
            if self._bar is not None:
                self._bar.initial += units
                self._bar.last_print_n += units
                self._bar.n += units
                self._bar.refresh()

    def note(self, text: str) -> None:
        """Show a text, such as the loss, after the counts from now on."""
        with self._lock:
            self._note = text = in_line(text)
            if self._bar is not None:
                self._bar.set_postfix_str(text)

    def _log(self) -> None:
        if self.shown:
            self._last_line = time.monotonic()
            line = tqdm.format_meter(
                n=self.done,
                total=cast(float, self.total),  # its type in the stubs excludes None, which it accepts
                elapsed=self._last_line - self._begun,
                ncols=0,
                prefix=self.name,
                unit=self.unit,
                unit_scale=self.unit == "B",
                initial=self._earlier,
                postfix=self._note,
            )
            say(line)
