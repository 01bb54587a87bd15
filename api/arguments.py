"""How arguments of functions are written on the command line: ``dumps: Annotated[str, Arg("DIR")]``.

An option is written once, as an argument of a function in ``api``: its type and default are in the signature, its help
is in the docstring. Commands, completion, recipes and docs/options.md are made from these. An argument without an
``Arg`` is only for Python.
"""

import inspect
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin, get_type_hints

_ONLY_PYTHON = " In Python, "  # the rest of a help text is not shown on the command line


@dataclass(frozen=True)
class Arg:
    """How an argument is written on the command line."""

    metavar: str | tuple[str, ...] | None = None
    positional: bool = False
    nargs: str | int | None = None
    repeat: bool = False  # whether the option can be given several times
    choices: Sequence[str] = ()  # the command line checks the value
    names: Sequence[str] = ()  # values for completion; the function checks the value
    group: str = ""  # title in the help

    @property
    def many(self) -> bool:
        """Whether the argument is a list."""
        return bool(self.nargs not in (None, "?") or self.repeat or str(self.metavar).endswith(",..."))


Path = str | os.PathLike[str]
Flag = Annotated[bool, Arg()]
Folder = Annotated[Path, Arg("DIR")]
Count = Annotated[int, Arg("N")]


@dataclass(frozen=True)
class Parameter:
    """An argument of a function that the command line has."""

    name: str
    arg: Arg
    kind: type  # of one value
    default: Any
    required: bool
    help: str

    @property
    def flag(self) -> str:
        """The option's name on the command line."""
        return f"--{self.name.rstrip('_').replace('_', '-')}"


class _Names(dict[str, Any]):
    """The names in a module; those that only type checkers import are Any."""

    def __missing__(self, name: str) -> Any:
        return Any


def parameters(function: Callable[..., Any]) -> list[Parameter]:
    """Return the arguments of a function that the command line has."""
    names = _Names(vars(inspect.builtins) | function.__globals__)  # type: ignore[attr-defined]
    hints = get_type_hints(function, localns=names, include_extras=True)
    texts = help_texts(function)
    found = []
    for name, one in inspect.signature(function).parameters.items():
        arg, kinds = _read(hints[name])
        if arg is not None:
            kind = next((kind for kind in (bool, int, float) if kind in kinds and str not in kinds), str)
            required = one.default is one.empty
            default = None if required else one.default
            found.append(
                Parameter(name, arg, kind, default, required, texts[name].partition(_ONLY_PYTHON)[0].rstrip("."))
            )
    return found


def help_texts(function: Callable[..., Any]) -> Mapping[str, str]:
    """Return the descriptions of the arguments in a docstring."""
    section = inspect.cleandoc(function.__doc__ or "").partition("\nArgs:\n")[2].partition("\n\n")[0]
    found: dict[str, str] = {}
    for line in section.splitlines():
        if begun := re.match(r"    (\w+): (.*)", line):
            name, found[begun[1]] = begun[1], begun[2]
        else:
            found[name] += f" {line.strip()}"
    return {name: text.replace("``", "`") for name, text in found.items()}


def _read(hint: Any) -> tuple[Arg | None, set[Any]]:
    """Return the Arg in a type hint, and the plain types in it."""
    if get_origin(hint) is Annotated:
        kind, *more = get_args(hint)
        return next((one for one in more if isinstance(one, Arg)), None), _read(kind)[1]
    if not get_args(hint):
        return None, {hint}
    parts = [_read(part) for part in get_args(hint)]
    return next((arg for arg, _ in parts if arg is not None), None), {kind for _, kinds in parts for kind in kinds}
