"""Recipes: YAML files with training options, including the papers'.

A recipe's ``methods`` holds the options of each method, its ``experiment`` the months, methods and tasks to run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from temporalwiki.base.errors import UsageError, in_one_line
from temporalwiki.base.options import did_you_mean, from_mapping
from temporalwiki.methods import CONTROLS, METHODS, find_method
from temporalwiki.methods.options import TrainOptions

if TYPE_CHECKING:
    from temporalwiki.methods.method import Method

HERE = Path(__file__).parent


class _WithoutAliases(yaml.SafeLoader):
    """A YAML loader that rejects aliases: with them, a file of ten lines can expand to more than memory holds."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError(f"an alias, *{self.peek_event().anchor[:40]}: replace it by its content")
        return super().compose_node(parent, index)


def names() -> list[str]:
    """Return the names of the recipes in the package."""
    return sorted(path.stem for path in HERE.glob("*.yaml"))


def read_recipe(name_or_path: str, method: str | None) -> dict[str, Any]:
    """Return a recipe's options. The options of ``method`` (default: the recipe's) override the common ones.

    Raises UsageError for an unknown recipe, a file that is not a recipe, and an unknown method in it. The names of
    options are not checked here.
    """
    path = Path(name_or_path)
    if not path.is_file():
        path = HERE / f"{name_or_path}.yaml"
        if name_or_path not in names():
            hint = did_you_mean(name_or_path, names())
            raise UsageError(f"no recipe {name_or_path!r}{hint}: a YAML file, or {', '.join(names())}")
    try:
        recipe = _WithoutAliases(path.read_text("utf-8")).get_single_data()
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise UsageError(f"{path}: cannot be read: {in_one_line(error)}") from None
    if not isinstance(recipe, dict) or not all(isinstance(key, str) for key in recipe):
        raise UsageError(f"{path}: a recipe is a mapping of options, such as learning_rate: 1.0e-4")
    recipe = {key.replace("-", "_"): value for key, value in recipe.items()}
    methods = recipe.pop("methods", None) or {}
    if not isinstance(methods, dict) or not all(isinstance(own, dict) for own in methods.values()):
        raise UsageError(f"{path}: methods must map names of methods to mappings of their options")
    for known in methods:
        if known not in METHODS | CONTROLS:
            raise UsageError(f"{path}: no method {known!r}{did_you_mean(str(known), METHODS)}")
    wanted = method or recipe.get("method")
    if wanted is not None and not isinstance(wanted, str):
        raise UsageError(f"{path}: method must be one name, not {wanted!r}")
    own = methods.get(wanted, {})
    return recipe | {str(key).replace("-", "_"): value for key, value in own.items()}


def configured(name: str, values: Mapping[str, Any], where: str) -> tuple[Method, TrainOptions]:
    """Return method ``name`` and its training options, both made from plain values.

    Raises UsageError, with a message that starts with ``where``, for an unknown option and for a value with a wrong
    type or out of range.
    """
    of = find_method(name)
    own = {f.name for f in fields(of)}
    known = [*own, *(f.name for f in fields(TrainOptions))]
    for key in values:
        if key not in known:
            raise UsageError(
                f"{where}no option {key!r}{did_you_mean(key, known)}; there are {', '.join(sorted(known))}"
            )
    common = {key: value for key, value in values.items() if key not in own}
    try:
        method = from_mapping(of, {key: value for key, value in values.items() if key in own}, where)
        return method, from_mapping(TrainOptions, dict(of.defaults) | common, where)
    except UsageError as error:
        message = str(error)  # for a value out of range it does not start with ``where`` yet
        raise UsageError(message if message.startswith(where) else f"{where}{message}") from None
