"""The command line, made from the functions in ``api`` and their docstrings."""

from __future__ import annotations

import argparse
import importlib
import inspect
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from typing import Any, NamedTuple, NoReturn, get_type_hints

from temporalwiki import __version__
from temporalwiki.api.arguments import Parameter, parameters
from temporalwiki.base.errors import UsageError
from temporalwiki.base.options import OTHER_NAMES, did_you_mean, element, words
from temporalwiki.base.terminal import in_line

# Command -> its summary. The module of the same name in ``api`` has its function and, in its docstring, an example.
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
    "seal": "write down, before a month, what will draw its probes",
    "publish": "publish a dataset, model, metric or leaderboard on the Hub",
    "monthly": "fetch, build, check and publish the newest month",
    "inspect": "show the content of a dataset folder, a dump or a result file",
    "list": "list the methods, the tasks, the recipes, or the configs of a dataset",
    "completion": "print a script with which bash or zsh completes this command",
}
METAVARS = {int: "N", float: "X", str: "NAME"}


class Parser(argparse.ArgumentParser):
    """An argument parser that suggests the nearest name for a misspelled subcommand or option."""

    words: Sequence[str] = ()  # of the command line
    owners: Callable[[], Mapping[str, type]] = dict  # methods or tasks -> the dataclass of their own options

    def commands(self) -> Mapping[str, Parser]:
        """Return the parsers of the subcommands."""
        [found] = [action.choices for action in self._actions if isinstance(action, argparse._SubParsersAction)]
        return found

    def error(self, message: str) -> NoReturn:
        """End with status 2, the usage, and one line that says what is wrong and which name is near."""
        self.print_usage(sys.stderr)
        what, _, words = message.rpartition(": ")
        missing = what.endswith(" required")
        if missing:  # perhaps because the required option is misspelled
            given = (word.partition("=")[0] for word in self.words if word.startswith("--"))
            wrong = next((word for word in given if word not in self._option_string_actions), "")
        else:
            wrong = next((word.strip("'\"").partition("=")[0] for word in words.split() if word), "")
        hint = self._near(wrong)
        if missing and hint:
            hint = f"; found {wrong}{hint}"
        self.exit(2, f"{self.prog}: {in_line(message)}{hint}\n")  # a shell may have expanded `*` to file names

    def _near(self, wrong: str) -> str:
        other = OTHER_NAMES.get(wrong.lstrip("-").replace("-", "_"))
        if wrong.startswith("--") and other:
            owned = any(other == f.name for of in self.owners().values() for f in fields(of))
            flag = f"--{other.replace('_', '-')}"
            if owned or flag in self._option_string_actions:
                return f" (did you mean {flag}?)"
        names = [*COMMANDS, *self._option_string_actions]
        names += [choice for action in self._actions for choice in action.choices or ()]
        near = did_you_mean(wrong, names)
        return "" if near == f" (did you mean {wrong}?)" else near

    def refuse(self, unknown: Sequence[str]) -> NoReturn:
        """Exit because of unknown arguments: name the methods or tasks with an option, or suggest the nearest name."""
        for word in unknown:
            flag = word.partition("=")[0]
            name = flag.removeprefix("--").removeprefix("no-").replace("-", "_")
            if flag.startswith("--") and name not in OTHER_NAMES:
                owners = [owner for owner, of in self.owners().items() if name in (f.name for f in fields(of))]
                if owners:
                    named = f"{flag} is an option of {', '.join(owners)}, which the command does not name"
                    self.exit(2, f"{self.prog}: {named}\n")
        self.error(f"unrecognized arguments: {' '.join(unknown)}")


class Extra(NamedTuple):
    """Options that depend on what a command line names: the fields of a dataclass."""

    title: str
    options: type
    defaults: Mapping[str, Any]


def function(command: str) -> Callable[..., Any]:
    """Return the function of a command."""
    module = importlib.import_module(f"temporalwiki.{'commands' if command == 'completion' else 'api'}.{command}")
    found: Callable[..., Any] = getattr(module, command, None) or getattr(module, f"{command}_")
    return found


def parser_of(wanted: Collection[str], argv: Sequence[str]) -> Parser:
    """Return the command's parser. Only the subcommands ``wanted`` have arguments: some take seconds to import.

    ``argv`` is the command line. Some subcommands have options for the method, task or config that it names.
    """
    parser = Parser(
        prog="temporalwiki",
        description="Datasets of changes, continual-learning methods and evaluation for language models.",
        epilog="Begin with `temporalwiki demo`. `temporalwiki COMMAND --help` shows the options of a command.",
    )
    parser.add_argument("--version", action="version", version=f"temporalwiki {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=Parser)
    for name, summary in COMMANDS.items():
        subparser = subparsers.add_parser(
            name,
            help=summary,
            description=summary,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,  # else a misspelled option can pass as the abbreviation of another
        )
        if name in wanted:
            _fill(subparser, name, argv)
            subparser.set_defaults(parser=subparser)
            subparser.words = argv
    return parser


def _fill(parser: Parser, command: str, argv: Sequence[str]) -> None:
    """Add the description and the arguments of a command."""
    run = function(command)
    text = inspect.cleandoc(sys.modules[run.__module__].__doc__ or "").partition("\n\n")[2]
    parser.epilog = text.replace("Example:\n\n", "example:\n").replace("\n    ", "\n  ")
    for one in parameters(run):
        _add(parser, one)
    if command in _OWNERS:
        parser.owners = _OWNERS[command]
    groups: dict[str, Any] = {}
    for title, options, defaults in extras(command, argv):
        known = {action.dest for action in parser._actions}
        groups[title] = groups.get(title) or parser.add_argument_group(title)
        add_options(groups[title], options, known, defaults)
    if command != "completion":  # it prints a script
        parser.add_argument("--json", action="store_true", help="print tables as JSON")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")


def _add(parser: argparse.ArgumentParser, one: Parameter, lenient: bool = False) -> None:
    """Add an argument of a function. A ``lenient`` parser only looks for what a command line names."""
    arg = one.arg
    to: Any = parser
    if arg.group:
        to = next((group for group in parser._action_groups if group.title == arg.group), None)
        to = to or parser.add_argument_group(arg.group)
    names = [name for name in arg.names if name not in one.help] and f": {', '.join(arg.names)}"
    shown = ",".join(map(str, one.default)) if isinstance(one.default, tuple) else one.default
    default = f" (default: {shown})" if shown is not None and shown is not False and shown != "" else ""
    more: dict[str, Any] = {"help": f"{one.help}{names or ''}{default}".replace("%", "%%")}
    if one.kind is bool:
        to.add_argument(one.flag, dest=one.name, action="store_true", default=None, **more)
        return
    more |= {"metavar": arg.metavar, "choices": arg.choices or None}
    more |= {"type": one.kind} if one.kind is not str else {}
    more |= {"action": "append"} if arg.repeat else {"nargs": arg.nargs} if arg.nargs else {}
    if not arg.positional:
        added = to.add_argument(one.flag, dest=one.name, required=one.required and not lenient, **more)
    else:
        added = to.add_argument(one.name, **({"nargs": "?"} if lenient else more))
    added.names = arg.names  # for completion


def add_options(group: Any, options: type, known: Collection[str], defaults: Mapping[str, Any]) -> None:
    """Add an option for each field of the dataclass ``options`` whose name is not ``known``.

    The help shows the default in ``defaults``, or else the field's own. The parser has no defaults: an option that is
    not given can come from a recipe.
    """
    hints = get_type_hints(options)
    for f in fields(options):
        if f.name in known:
            continue
        kind, many = element(hints[f.name])
        flag = f"--{f.name.replace('_', '-')}"
        default = defaults.get(f.name, f.default)
        text = f"{f.metadata['help']}{'' if default in (None, ()) else f' (default: {default})'}"
        if kind is bool:
            group.add_argument(flag, action=argparse.BooleanOptionalAction, default=None, help=text)
        else:
            choices = f.metadata.get("choices") or None
            metavar = None if choices else METAVARS[kind] + (",..." if many else "")
            group.add_argument(flag, metavar=metavar, choices=choices, help=text)


def extras(command: str, argv: Sequence[str]) -> Iterator[Extra]:
    """Yield the options of the method, tasks or config that a command line names."""
    if command in _EXTRAS:
        yield from _EXTRAS[command](_named(command, argv))


def variants(command: str) -> list[list[str]]:
    """Return command lines that together have all options of a command."""
    names = {one.name: [*one.arg.names] for one in parameters(function(command))}
    if command == "ckl":
        return [[config] for config in names["config"]]
    if command == "evaluate":
        return [["--tasks", task] for task in names["tasks"]]
    return [["--method", method] for method in names["method"]] if command == "train" else []


def _named(command: str, argv: Sequence[str]) -> argparse.Namespace:
    """Return what a command line names. The options depend on it, so it is read before them."""
    first = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    for one in parameters(function(command)):
        _add(first, one, lenient=True)
    words = [*argv[argv.index(command) + 1 :]] if command in argv else [*argv]
    try:
        return first.parse_known_args([word for word in words if word not in ("-h", "--help", "--debug", "--json")])[0]
    except argparse.ArgumentError:
        return argparse.Namespace()  # the real parser reports the error


def _recipe(named: argparse.Namespace) -> dict[str, Any]:
    from temporalwiki.methods.recipes import read_recipe

    with suppress(UsageError):  # the function reports the error
        return read_recipe(named.recipe, None) if getattr(named, "recipe", None) else {}
    return {}


def _of_training(named: argparse.Namespace) -> Iterator[Extra]:
    from temporalwiki.methods import METHODS, find_method
    from temporalwiki.methods.options import TrainOptions

    method = getattr(named, "method", None) or _recipe(named).get("method")
    of = find_method(method) if isinstance(method, str) and method in METHODS else None
    yield Extra("training", TrainOptions, getattr(of, "defaults", {}))
    if of is not None:
        yield Extra(f"options of {method}", of, {})


def _of_tasks(named: argparse.Namespace) -> Iterator[Extra]:
    from temporalwiki.eval_harness.tasks import find_task

    tasks = getattr(named, "tasks", None) or _recipe(named).get("tasks") or ()
    if isinstance(tasks, str | list | dict) and all(isinstance(task, str) for task in tasks):
        for task in words(tasks):
            yield Extra(f"options of {task}", find_task(task), {})


def _of_config(named: argparse.Namespace) -> Iterator[Extra]:
    from temporalwiki.api.ckl import own_options
    from temporalwiki.builders.ckl.schemas import check_name

    with suppress(UsageError):  # the function reports the error
        if config := getattr(named, "config", None):
            check_name(config)
            if (of := own_options(config)) is not None:
                yield Extra(f"options of {config}", of, {})


def _methods() -> dict[str, type]:
    from temporalwiki.methods import METHODS, find_method

    return {name: find_method(name) for name in METHODS}


def _tasks() -> dict[str, type]:
    from temporalwiki.eval_harness.tasks import TASKS, find_task

    return {name: find_task(name) for name in TASKS}


_EXTRAS: Mapping[str, Callable[[argparse.Namespace], Iterator[Extra]]] = {
    "ckl": _of_config,
    "evaluate": _of_tasks,
    "train": _of_training,
}
_OWNERS: Mapping[str, Callable[[], Mapping[str, type]]] = {"evaluate": _tasks, "train": _methods}
