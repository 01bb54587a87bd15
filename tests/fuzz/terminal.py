"""Text of strangers on the terminal: whatever it is, no character of it can change the screen or how a line reads."""

import contextlib
import io
import unicodedata

from temporalwiki.base import terminal
from temporalwiki.base.errors import InputError, in_one_line
from temporalwiki.base.markdown import one_line
from temporalwiki.base.progress import Progress
from temporalwiki.commands.cli import Parser

SEEDS = (
    b"probes-1112: 34 facts, 12 changed\n\tthe rest are unchanged",
    "\x1b[2J\x1b]0;title\x07 and \x9b31m, \r over \b\b it, \x00\x7f\x0b\x0c".encode(),
    "\u202eevil\u202c \u2066x\u2069 \u200e\u200f\u061c \u2028\u2029\x85 \ufeff".encode(),
    "Zürich 北京 مرحبا שלום नमस्ते \U0001f468\u200d\U0001f469 e\u0301".encode(),
    b"\xff\xfe\xed\xa0\x80 not UTF-8",
)
WORDS = (b"\x1b[", b"\x1b]8;;", b"\xc2\x9b", b"\xe2\x80\xae", b"\xe2\x81\xa6", b"\xd8\x9c", b"\xe2\x80\xa8", b"\r",
         b"\0", b"\\x1b", b"\\u202e", b"\xed\xa0\x80", b"\xc2\xad", b"\xf3\xa0\x81\x81")  # fmt: skip
LONGEST = 512


def check(data: bytes) -> None:
    for text in (data.decode("utf-8", "replace"), data.decode("utf-8", "surrogateescape"), data.decode("latin-1")):
        _check(text)


def _check(text: str) -> None:
    shown = terminal.printable(text)
    assert all(map(_is_safe, shown)), f"raw: {shown!a}"
    assert terminal.printable(shown) == shown, "another text the second time"
    kept = [char for char in text if _is_safe(char)]
    left = iter(shown)
    assert all(char in left for char in kept), "a character is lost"
    assert len(kept) < len(text) or shown == text, "harmless text is changed"
    for said in (_said(text), _said(InputError(in_one_line(text)))):
        assert all(map(_is_safe, said)), f"raw: {said!a}"
    assert "\n" not in in_one_line(text) and "\n" not in one_line(text)


def _said(text: object) -> str:
    """Return what reaches the terminal of a result, a message, a log's line, and an argument that nothing takes."""
    out, error = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        terminal.print_result(text)
        terminal.say(text)
        with Progress(str(text), 10, unit="row") as progress:
            progress.note(str(text))
            progress._log()
        with contextlib.suppress(SystemExit):
            Parser("temporalwiki").error(f"unrecognized arguments: {text}")
    return out.getvalue() + error.getvalue()


def _is_safe(char: str) -> bool:
    """Return whether a character only shows itself, by the Unicode tables of Python."""
    if char in "\t\n":
        return True
    if unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp"):
        return False
    directs = unicodedata.bidirectional(char) in ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
    return not directs and char not in "\u061c\u200e\u200f"
