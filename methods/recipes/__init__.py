"""Recipes: YAML files of training options, as the papers have them; ``methods`` in one holds each method's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from temporalwiki.builders.errors import UsageError
from temporalwiki.methods import METHODS
from temporalwiki.methods.options import did_you_mean

HERE = Path(__file__).parent


def names() -> list[str]:
    """Return the names of the recipes that come with the package."""
    return sorted(path.stem for path in HERE.glob("*.yaml"))


def read_recipe(name_or_path: str, method: str | None) -> dict[str, Any]:
    """Return a recipe's options, with those of ``method`` (or of the recipe's own ``method``) over the common ones.

    Raises UsageError for an unknown recipe, a file that is no recipe, and an unknown method in it. Names of options
    are checked by whom they are for.
    """
    path = Path(name_or_path)
    if not path.is_file():
        path = HERE / f"{name_or_path}.yaml"
        if name_or_path not in names():
            hint = did_you_mean(name_or_path, names())
            raise UsageError(f"no recipe {name_or_path!r}{hint}: a YAML file, or {', '.join(names())}")
    try:
        recipe = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise UsageError(f"{path}: cannot be read: {' '.join(str(error).split())}") from None
    if not isinstance(recipe, dict) or not all(isinstance(key, str) for key in recipe):
        raise UsageError(f"{path}: a recipe is a mapping of options, such as learning_rate: 1.0e-4")
    recipe = {key.replace("-", "_"): value for key, value in recipe.items()}
    methods = recipe.pop("methods", None) or {}
    if not isinstance(methods, dict) or not all(isinstance(own, dict) for own in methods.values()):
        raise UsageError(f"{path}: methods is a mapping of methods to mappings of their options")
    for known in methods:
        if known not in METHODS:
            raise UsageError(f"{path}: no method {known!r}{did_you_mean(str(known), METHODS)}")
    wanted = method or recipe.get("method")
    if wanted is not None and not isinstance(wanted, str):
        raise UsageError(f"{path}: method is one name, not {wanted!r}")
    own = methods.get(wanted, {})
    return recipe | {str(key).replace("-", "_"): value for key, value in own.items()}
