"""What people read on the terminal: everything that the program prints passes here."""

from __future__ import annotations

import re
import sys

from tqdm import tqdm

# Control characters but tab and newline, characters that change the direction of writing, lone surrogates. They could
# change what stands elsewhere on the screen, or how it reads.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """Return a text whose control characters are escapes such as ``\\x1b``; it may come from strangers."""
    return _UNSAFE.sub(lambda found: ascii(found[0])[1:-1], text)


def print_result(text: object) -> None:
    """Print a result on standard output."""
    print(printable(str(text)), flush=True)


def say(text: object) -> None:
    """Print a message on standard error; a bar that is shown moves below it."""
    tqdm.write(printable(str(text)), file=sys.stderr)
