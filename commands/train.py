"""``temporalwiki train``: train a method on a config, from a starting checkpoint to the next one."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any, get_type_hints

from temporalwiki.api.table import Table
from temporalwiki.api.train import train
from temporalwiki.base.errors import UsageError
from temporalwiki.base.options import element, from_mapping
from temporalwiki.methods import CONTROLS, METHODS, find_method
from temporalwiki.methods.options import TrainOptions
from temporalwiki.methods.recipes import names, read_recipe

_EXAMPLE = """\
example:
  temporalwiki train --method lora --model openai-community/gpt2-large --data temporalwiki --config diffset-1112
  temporalwiki train --method lora --help        # also shows the options of LoRA
  accelerate launch --num_processes 8 -m temporalwiki train --recipe temporalwiki-gpt2-large --method diff \\
      --data temporalwiki --config diffset-1112  # the same on eight GPUs

Options on the command line override the recipe.
"""
_NOT_OPTIONS = {"command", "run", "parser", "debug", "json", "resume"}


def add_arguments(parser: argparse.ArgumentParser, argv: list[str]) -> None:
    """Add the arguments of all trainings, and of the method in ``argv``."""
    parser.epilog = _EXAMPLE
    needed = parser.add_argument_group("needed, here or in the recipe")
    needed.add_argument("--method", metavar="NAME", help=f"method: one of {', '.join(METHODS)}")
    needed.add_argument(
        "--model", metavar="ID_OR_DIR", help="starting checkpoint: folder, Hub id, .gguf file or package:NAME"
    )
    needed.add_argument("--data", metavar="DATASET", help="dataset folder, Hub id or id@revision")
    needed.add_argument(
        "--config", nargs="+", metavar="NAME", help="config to train on, such as diffset-1112; several in turn"
    )
    parser.add_argument(
        "--past", metavar="CONFIG", help="config of past data, for methods that use it (default: chosen by --config)"
    )
    parser.add_argument("--output", metavar="DIR", help="folder of the checkpoint (default: runs/METHOD-CONFIG)")
    parser.add_argument("--recipe", metavar="FILE", help=f"YAML file with options, or one of {', '.join(names())}")
    parser.add_argument(
        "--resume",
        action="store_true",
        help="continue an interrupted run; the same command does so without this option",
    )
    parser.owners = lambda: {name: find_method(name) for name in METHODS}  # type: ignore[attr-defined]
    training = parser.add_argument_group("training")
    if method := _method_in(argv):
        of = find_method(method)
        add_options(training, TrainOptions, defaults=of.defaults)
        add_options(parser.add_argument_group(f"options of {method}"), of)
    else:
        add_options(training, TrainOptions)


def run(arguments: argparse.Namespace) -> Table:
    """Train, and return the checkpoint. Raises UsageError if an option is missing."""
    return train(**given(arguments, vars(arguments).keys() - _NOT_OPTIONS))


def _method_in(argv: list[str]) -> str | None:
    """Return the method in ``argv``. It is needed before parsing, because the options depend on it."""
    first = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    first.add_argument("--method")
    first.add_argument("--recipe")
    try:
        found, _ = first.parse_known_args(argv)
        method = found.method or (read_recipe(found.recipe, None).get("method") if found.recipe else None)
    except (argparse.ArgumentError, UsageError):
        return None  # the real parser reports the error
    return method if isinstance(method, str) and method in METHODS | CONTROLS else None


def add_options(
    group: Any, options: type, known: Collection[str] = (), defaults: Mapping[str, Any] = MappingProxyType({})
) -> None:
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
            metavar = {int: "N", float: "X", str: "NAME"}[kind] + (",..." if many else "")
            choices = f.metadata.get("choices") or None
            group.add_argument(flag, metavar=None if choices else metavar, choices=choices, help=text)


def given(arguments: argparse.Namespace, names: Collection[str]) -> dict[str, Any]:
    """Return the arguments ``names`` that the user gave, as keyword arguments."""
    return {name: value for name in names if (value := getattr(arguments, name, None)) is not None}


def given_options(options: type, arguments: argparse.Namespace) -> Any:
    """Return an instance of the dataclass ``options`` with the values that were given; see ``from_mapping``."""
    return from_mapping(options, given(arguments, [f.name for f in fields(options)]), "")
