"""``temporalwiki completion``: a script with which bash or zsh completes commands, options, names and files."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from temporalwiki import commands
from temporalwiki.api.cutoff import TOPICS
from temporalwiki.api.publish import KINDS
from temporalwiki.base.errors import UsageError
from temporalwiki.base.terminal import print_result
from temporalwiki.builders.ckl.build_config import CONFIGS
from temporalwiki.eval_harness.tasks import TASKS
from temporalwiki.methods import METHODS, needs
from temporalwiki.methods.recipes import names

_EXAMPLE = """\
example:
  temporalwiki completion bash > ~/.local/share/bash-completion/completions/temporalwiki
  temporalwiki completion zsh > ~/.zfunc/_temporalwiki     # a folder in fpath, before compinit

Begin a new shell afterwards. The package that writes the script comes with: pip install 'temporalwiki[completion]'
"""
# (subcommand, argument) -> the argument's values, if its parser has no `choices` because a later step checks the value
_VALUES: Mapping[tuple[str, str], Sequence[str]] = {
    ("ckl", "config"): [*CONFIGS],
    ("cutoff", "topics"): TOPICS,
    ("evaluate", "tasks"): [*TASKS],
    ("experiment", "recipe"): names(),
    ("publish", "kind"): KINDS,
    ("train", "method"): [*METHODS],
    ("train", "recipe"): names(),
}
_PATHS = ("DATASET", "DIR", "DUMPS", "FILE", "ID_OR_DIR", "MODEL", "PATH", "PATHS", "RECIPE", "RESULTS")


def add_arguments(parser: argparse.ArgumentParser, argv: list[str]) -> None:
    """Add the subcommand's arguments."""
    parser.epilog = _EXAMPLE
    parser.add_argument(
        "shell", choices=("bash", "zsh"), metavar="{bash,zsh}", help="the shell that will read the script"
    )


def run(arguments: argparse.Namespace) -> None:
    """Print the script. Raises UsageError if the package that writes it is not installed."""
    with needs("completion"):
        import shtab
    print_result(shtab.complete(_parser(shtab.FILE), arguments.shell))


def _parser(files: object) -> argparse.ArgumentParser:
    """Return the parser of all subcommands, with the options of all methods, tasks and configs."""
    parser = commands.parser_of(commands.COMMANDS, [])
    for name, subparser in _subparsers(parser):
        for argv in _variants(name):
            with suppress(UsageError):  # the options of methods and tasks need torch
                for other, more in _subparsers(commands.parser_of([name], [name, *argv])):
                    if other == name:
                        _add_missing(subparser, more)
        for action in subparser._actions:
            if values := _VALUES.get((name, action.dest)):
                action.choices = values
            elif action.metavar in _PATHS and not action.choices:
                action.complete = files  # type: ignore[attr-defined]
    return parser


def _subparsers(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.items()


def _variants(name: str) -> list[list[str]]:
    """Return command lines that together have all options of a subcommand."""
    return {
        "ckl": [[config] for config in CONFIGS],
        "evaluate": [["--tasks", ",".join(TASKS)]],
        "train": [["--method", method] for method in METHODS],
    }.get(name, [])


def _add_missing(parser: argparse.ArgumentParser, other: argparse.ArgumentParser) -> None:
    known = parser._option_string_actions
    for action in other._actions:
        if action.option_strings and not known.keys() & set(action.option_strings):
            parser._add_action(action)
