"""Continual-learning methods, one file each, found through METHODS, on one trainer."""

from __future__ import annotations

import importlib
from difflib import get_close_matches
from typing import TYPE_CHECKING

from temporalwiki.builders.errors import UsageError

if TYPE_CHECKING:
    from temporalwiki.methods.method import Method

# method -> the class in the module of that name; imported only when it is used, as torch takes seconds
METHODS = {
    "initial": "Initial",
    "full": "Full",
    "diff": "Diff",
    "recadam": "RecAdam",
    "mix_review": "MixReview",
    "replay": "Replay",
    "lora": "LoRA",
    "dora": "DoRA",
    "k_adapter": "KAdapter",
    "modular": "Modular",
    "ewc": "EWC",
    "lwf": "LwF",
    "merge": "Merge",
    "light_tuning": "LightTuning",
}


def not_installed(error: ModuleNotFoundError, extra: str = "train") -> Exception:
    """Return what to raise where a package of an extra, ``train``, ``eval`` or ``news``, is missing."""
    package = (error.name or "").split(".")[0]
    if package == "temporalwiki":
        return error
    what = {"train": "training", "eval": "evaluation", "news": "reading news"}[extra]
    return UsageError(f"{what} needs the package {package}: pip install 'temporalwiki[{extra}]'")


def find_method(name: str) -> type[Method]:
    """Return the class of method ``name``; raise UsageError for an unknown one, with the nearest that exists."""
    if name not in METHODS:
        near = get_close_matches(name.lower().replace("-", "_"), METHODS, n=1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise UsageError(f"no method {name!r}{hint}; there are {', '.join(METHODS)}")
    try:
        module = importlib.import_module(f"temporalwiki.methods.{name}")
    except ModuleNotFoundError as error:
        raise not_installed(error) from None
    method: type[Method] = getattr(module, METHODS[name])
    return method
