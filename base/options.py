"""Options as dataclass fields, from which the command line, recipes and manifests are made."""

import operator
from collections.abc import Iterable, Mapping
from dataclasses import field, fields
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from temporalwiki.base.errors import UsageError

T = TypeVar("T")

_LIMITS = {"at_least": operator.ge, "above": operator.gt, "at_most": operator.le, "below": operator.lt}


def option(default: Any, help: str, choices: tuple[str, ...] = (), **limits: float) -> Any:
    """Return a dataclass field with its default, help text and allowed values.

    ``limits`` are ``at_least``, ``above``, ``at_most`` and ``below``.
    """
    return field(default=default, metadata={"help": help, "choices": choices, "limits": limits})


def check_options(options: Any, of: str = "") -> None:
    """Raise UsageError for a value that its option does not allow. The message begins with ``of``."""
    for f in fields(options):
        value, choices, limits = getattr(options, f.name), f.metadata["choices"], f.metadata["limits"]
        if value is None:
            continue
        if choices and value not in choices:
            raise UsageError(
                f"{of}no {f.name} {value!r}{did_you_mean(value, choices)}; there are {', '.join(choices)}"
            )
        if not all(_LIMITS[name](value, limit) for name, limit in limits.items()):
            allowed = " and ".join(f"{name.replace('_', ' ')} {limit}" for name, limit in limits.items())
            raise UsageError(f"{of}{f.name} must be {allowed}, not {value}")


# names in transformers, trl and lm_eval -> our names
OTHER_NAMES = {
    "lr": "learning_rate",
    "num_train_epochs": "epochs",
    "per_device_train_batch_size": "micro_batch_size",
    "per_device_eval_batch_size": "micro_batch_size",
    "max_seq_length": "sequence_length",
    "model_name_or_path": "model",
    "dataset_name": "data",
    "output_dir": "output",
    "configs": "config",
    "num_fewshot": "light_tuning",
}


def did_you_mean(wrong: str, names: Any) -> str:
    """Return " (did you mean X?)", or "" if no name is similar."""
    names = list(names)
    near = [OTHER_NAMES[wrong]] if OTHER_NAMES.get(wrong) in names else get_close_matches(wrong, names, n=1)
    return f" (did you mean {near[0]}?)" if near else ""


def words(names: str | Iterable[str]) -> list[str]:
    """Return names as a list, from texts in which commas or blanks separate them."""
    return [name for text in ([names] if isinstance(names, str) else names) for name in text.replace(",", " ").split()]


def from_mapping(of: type[T], values: Mapping[str, Any], where: str) -> T:
    """Return an instance of dataclass ``of`` made from plain values, which are converted to the types of its fields.

    Raises UsageError for an unknown name or a wrong type. The message begins with ``where``.
    """
    known = {f.name: f for f in fields(of)}  # type: ignore[arg-type]
    hints = get_type_hints(of)
    given = {}
    for name, value in values.items():
        plain = name.replace("-", "_")
        if plain not in known:
            raise UsageError(f"{where}no option {name!r}{did_you_mean(plain, known)}; there are {', '.join(known)}")
        given[plain] = _convert(value, hints[plain], f"{where}{name}")
    return of(**given)


def element(hint: Any) -> tuple[Any, bool]:
    """Return the type in a field's type hint, apart from None, and True if the field holds a tuple of that type."""
    kinds = [kind for kind in get_args(hint) if kind is not NoneType] if isinstance(hint, UnionType) else [hint]
    (kind,) = kinds
    return (get_args(kind)[0], True) if get_origin(kind) is tuple else (kind, False)


def _convert(value: Any, hint: Any, where: str) -> Any:
    kind, many = element(hint)
    if value is None and isinstance(hint, UnionType):
        return None
    if many:
        if isinstance(value, str):
            value = [part for part in value.split(",") if part]
        if not isinstance(value, list | tuple):
            raise UsageError(f"{where} must be a list, not {value!r}")
        return tuple(_convert(part, kind, where) for part in value)
    if kind is bool and isinstance(value, bool):
        return value
    if kind is str and isinstance(value, str):
        return value
    if kind in (int, float) and isinstance(value, int | float | str) and not isinstance(value, bool):
        try:
            number = float(value)
        except (ValueError, OverflowError):
            number = float("nan")
        if number == number and abs(number) != float("inf") and (kind is float or number == int(number)):
            return kind(number)
    names = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
    raise UsageError(f"{where} must be {names[kind]}, not {value!r}")
