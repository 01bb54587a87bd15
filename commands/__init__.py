"""The command ``temporalwiki``: one file per subcommand, listed in COMMANDS."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from typing import NoReturn

from temporalwiki import __version__
from temporalwiki.api.table import show
from temporalwiki.base.errors import InputError, UsageError, in_one_line
from temporalwiki.base.libraries import keep_silent, quiet
from temporalwiki.base.terminal import guard, in_line, open_closed_streams, print_result, say

# Subcommand -> its summary. The module of the same name has add_arguments(parser, argv) and run(arguments).
COMMANDS = {
    "demo": "run everything on a small generated world: build, train, evaluate, leaderboard",
    "fetch": "download and check the dumps of two snapshots; resume interrupted downloads",
    "build": "build a dataset folder from two snapshots of Wikipedia and Wikidata",
    "import": "convert the released archives of TemporalWiki and CKL to a dataset folder",
    "ckl": "build a config of Continual Knowledge Learning: LAMA, news, KILT, or one from a month's changes",
    "train": "train a method on a config and write a checkpoint",
    "evaluate": "score a model on tasks, with confidence intervals",
    "cutoff": "find the month up to which a model knows what changed",
    "experiment": "train and evaluate several methods over several months, and compare them",
    "leaderboard": "make a page, tables and figures from result files",
    "publish": "publish a dataset, model, metric or leaderboard on the Hub",
    "monthly": "fetch, build, check and publish the newest month",
    "inspect": "show the content of a dataset folder, a dump or a result file",
    "list": "list the methods, the tasks, or the configs of a dataset",
    "completion": "print a script with which bash or zsh completes this command",
}

# Some libraries do not raise MemoryError when memory runs out. Their errors contain one of these texts.
_NO_MEMORY = ("can't allocate memory", "cannot allocate memory", "failed to map segment", "can't start new thread")
_LONGEST_NAME = 200  # characters


class _Parser(argparse.ArgumentParser):
    """An argument parser that suggests the nearest name for a misspelled subcommand or option."""

    words: Sequence[str] = ()  # of the command line
    owners: Callable[[], Mapping[str, type]] = dict  # methods or tasks -> the dataclass of their own options

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        what, _, words = message.rpartition(": ")
        missing = what.endswith(" required")
        if missing:  # perhaps because the required option is misspelled
            given = (word.partition("=")[0] for word in self.words if word.startswith("--"))
            wrong = next((word for word in given if word not in self._option_string_actions), "")
        else:
            wrong = next((word.strip("'\"") for word in words.split() if word), "")
        choices = [choice for action in self._actions for choice in action.choices or ()]
        near = get_close_matches(wrong, [*COMMANDS, *self._option_string_actions, *choices], n=1)
        hint = f" (did you mean {near[0]}?)" if near and near[0] != wrong else ""
        if missing and hint:
            hint = f"; found {wrong}{hint}"
        self.exit(2, f"{self.prog}: {in_line(message)}{hint}\n")  # a shell may have expanded `*` to file names

    def refuse(self, unknown: Sequence[str]) -> NoReturn:
        """Exit because of unknown arguments: name the methods or tasks with an option, or suggest the nearest name."""
        for word in unknown:
            flag = word.partition("=")[0]
            name = flag.removeprefix("--").removeprefix("no-").replace("-", "_")
            owners = [owner for owner, of in self.owners().items() if name in (f.name for f in fields(of))]
            if owners and flag.startswith("--"):
                self.exit(
                    2, f"{self.prog}: {flag} is an option of {', '.join(owners)}, which the command does not name\n"
                )
        self.error(f"unrecognized arguments: {' '.join(unknown)}")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a subcommand and return the exit status: 0 done, 1 failed (with one line of error), 2 wrong usage."""
    argv = [*(sys.argv[1:] if argv is None else argv)]  # not list(): here this name is the module commands/list.py
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
    except KeyboardInterrupt:
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
    made = arguments.run(arguments)
    if made is not None:
        show(made, arguments.json)


def parser_of(wanted: Collection[str], argv: list[str]) -> argparse.ArgumentParser:
    """Return the command's parser. Only the subcommands ``wanted`` have arguments: some take seconds to import.

    ``argv`` is the command line. Some subcommands add options for the method, task or config that it names.
    """
    parser = _Parser(
        prog="temporalwiki",
        description="Datasets of changes, continual-learning methods and evaluation for language models.",
        epilog="Begin with `temporalwiki demo`. `temporalwiki COMMAND --help` shows the options of a command.",
    )
    parser.add_argument("--version", action="version", version=f"temporalwiki {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=_Parser)
    for name, summary in COMMANDS.items():
        subparser = subparsers.add_parser(
            name,
            help=summary,
            description=summary,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,  # else a misspelled option can pass as the abbreviation of another
        )
        if name in wanted:
            module = importlib.import_module(f"temporalwiki.commands.{name}")
            module.add_arguments(subparser, argv)
            if name != "completion":  # it prints a script
                subparser.add_argument("--json", action="store_true", help="print tables as JSON")
            subparser.add_argument("--debug", action="store_true", help="show the traceback of an error")
            subparser.set_defaults(run=module.run, parser=subparser)
            subparser.words = argv
    return parser


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
