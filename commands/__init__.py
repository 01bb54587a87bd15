"""The command ``temporalwiki``: it runs a function of ``api`` and prints its result, or its error in one line."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from temporalwiki.api.arguments import parameters
from temporalwiki.api.table import Table, telling
from temporalwiki.base.errors import InputError, UsageError, in_one_line
from temporalwiki.base.libraries import keep_silent, quiet
from temporalwiki.base.terminal import guard, open_closed_streams, print_result, say
from temporalwiki.commands.cli import COMMANDS, function, parser_of

# Some libraries do not raise MemoryError when memory runs out. Their errors contain one of these texts.
_NO_MEMORY = ("can't allocate memory", "cannot allocate memory", "failed to map segment", "can't start new thread")
_LONGEST_NAME = 200  # characters


def main(argv: Sequence[str] | None = None) -> int:
    """Run a subcommand and return the exit status: 0 done, 1 failed (with one line of error), 2 wrong usage."""
    argv = list(sys.argv[1:] if argv is None else argv)
    wanted = next((word for word in argv if not word.startswith("-")), None)
    report = print_result if sys.stderr is None else say
    open_closed_streams()
    guard()
    try:
        _run(argv, wanted)
    except Exception as error:
        line = _line_of(error)
        if line is None or "--debug" in argv:
            raise
        report(f"temporalwiki {wanted}: {line}")
        return 2 if isinstance(error, UsageError) else 1
    except BaseException as error:
        if type(error).__name__ == "PanicException" and "--debug" not in argv:  # of a library in Rust
            report(f"temporalwiki {wanted}: a library gave up: {in_one_line(error)}")
            return 1
        if not isinstance(error, KeyboardInterrupt):
            raise
        say(f"temporalwiki {wanted}: interrupted; run the same command again to continue")
        return 1
    return 0


def _run(argv: list[str], wanted: str | None) -> None:
    keep_silent()
    quiet()
    parser = parser_of([wanted] if wanted in COMMANDS else [], argv)
    if not argv:
        parser.error("the following arguments are required: COMMAND; `temporalwiki --help` lists them")
    arguments, unknown = parser.parse_known_args(argv)
    if unknown:  # the subcommand's parser can suggest one of its options
        arguments.parser.refuse(unknown)
    _check_endpoint()
    for text in (*argv, str(Path.cwd())):
        text.encode()  # fail here with one message: each library has its own for a name that is not UTF-8
    run = function(arguments.command)
    own = [parameter.name for parameter in parameters(run)]
    given = {name: value for name, value in vars(arguments).items() if value is not None}
    given = {name: value for name, value in given.items() if name in own or name not in _OF_THE_COMMAND}
    as_json = getattr(arguments, "json", False)
    with telling(as_json) as told:
        try:
            _show(run(**given), as_json, told)
        except BaseException as error:
            _show(getattr(error, "made", None), as_json, told)
            raise


_OF_THE_COMMAND = ("command", "parser", "debug", "json")


def _show(made: Table | None, as_json: bool, told: list[str]) -> None:
    """Print a result, unless the function told it already. If several processes share a run, only the first prints."""
    if made is not None and os.environ.get("RANK", "0") == "0" and (as_json or (made.text and not told)):
        print_result(made.as_json() if as_json else made.text)


def _line_of(error: Exception) -> str | None:
    """Return the message for an error that the input or the machine caused, or None for a bug."""
    said = in_one_line(error)
    if isinstance(error, InputError | OSError):
        return said
    if isinstance(error, UnicodeEncodeError) and error.reason == "surrogates not allowed":
        return f"{error.object[-_LONGEST_NAME:]}: a name that is not UTF-8; rename the file or folder"
    if isinstance(error, RuntimeError) and said.startswith("Symlink loop"):  # from pathlib, before Python 3.13
        return f"{said}; remove the link, or name another folder"
    if isinstance(error, MemoryError) or any(sign in said for sign in _NO_MEMORY):
        return f"out of memory ({said or 'Python had too little'}); free some, or raise the limit (ulimit -v)"
    return None


def _check_endpoint() -> None:
    """Raise UsageError if the Hub's address contains a password: addresses appear in messages and caches."""
    if "@" in os.environ.get("HF_ENDPOINT", ""):
        raise UsageError("HF_ENDPOINT contains a user name or password: remove it, and set HF_TOKEN to a token")
