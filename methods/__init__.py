"""Continual-learning methods: one file each, listed in METHODS, all trained by one trainer."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from temporalwiki.base.errors import UsageError
from temporalwiki.base.options import did_you_mean

if TYPE_CHECKING:
    from temporalwiki.methods.method import Method

# Module name -> class name. A module is imported only when its method is used, because torch takes seconds to import.
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


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Raise UsageError if the block imports a missing package; the extra ``extra`` installs it."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").split(".")[0]
        if package == "temporalwiki":
            raise
        what = {"train": "training", "eval": "evaluation", "news": "reading news", "api": "asking a model"}
        what |= {"completion": "completion"}
        raise UsageError(f"{what[extra]} needs the package {package}: pip install 'temporalwiki[{extra}]'") from None


def find_method(name: str) -> type[Method]:
    """Return the class of method ``name``; raise UsageError for an unknown name and suggest the nearest one."""
    if name not in METHODS:
        near = did_you_mean(name.lower().replace("-", "_"), METHODS)
        raise UsageError(f"no method {name!r}{near}; there are {', '.join(METHODS)}")
    with needs("train"):
        module = importlib.import_module(f"temporalwiki.methods.{name}")
    method: type[Method] = getattr(module, METHODS[name])
    return method
