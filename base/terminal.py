"""Output for the terminal: what the program prints is first made safe here, as it may hold untrusted text."""

import logging
import os
import re
import signal
import sys
import traceback
import warnings
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from tqdm import tqdm

# Control characters but tab and newline, characters that change the direction of writing, lone surrogates. They could
# change other text on the screen, or the order of its letters.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def open_closed_streams() -> None:
    """Open the null device for each standard stream that is closed.

    Otherwise the next file would get its number, and what a library prints would be written into that file.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(descriptor, True)  # processes of this command need it, too
            if descriptor != number:
                os.dup2(descriptor, number)
                os.close(descriptor)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


def printable(text: str) -> str:
    """Replace control characters by escapes such as ``\\x1b``, so that untrusted text is safe to print."""
    return _UNSAFE.sub(lambda found: ascii(found[0])[1:-1], text)


def in_line(text: str) -> str:
    """Return an untrusted text in one line, so that it cannot look like another line of output."""
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def table(rows: Sequence[Sequence[str]], left: int | None = None) -> list[str]:
    """Return the lines of a table. Columns after the first ``left`` are aligned to the right; by default, numbers."""
    rows = [[in_line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if (cell[:1].isdigit() if left is None else i >= left) else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def print_result(text: object) -> None:
    """Print a result on standard output. End the program if the reader has gone, as `head` goes after some lines."""
    try:
        print(printable(str(text)), flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python would print an error when it closes the stream
        sys.exit(128 + signal.SIGPIPE)  # as the shell reports it of other programs


def say(text: object) -> None:
    """Print a message in one line on standard error, above the progress bar if there is one."""
    tqdm.write(in_line(str(text)), file=sys.stderr)


def guard() -> None:
    """Make log records, warnings and tracebacks, which libraries and Python itself print, ``printable`` as well."""
    logging.setLogRecordFactory(_Record)
    warnings.formatwarning = _printable_warning
    sys.excepthook = _print_traceback


class _Record(logging.LogRecord):
    def getMessage(self) -> str:
        return printable(super().getMessage())


_format_warning = warnings.formatwarning


def _printable_warning(*arguments: Any, **options: Any) -> str:
    return printable(_format_warning(*arguments, **options))


def _print_traceback(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    print(printable("".join(traceback.format_exception(kind, error, trace))), end="", file=sys.stderr)
