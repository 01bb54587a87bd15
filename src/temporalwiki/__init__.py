"""temporalwiki: datasets of Wikipedia and Wikidata changes, continual-learning methods, and evaluation.

Each command of ``temporalwiki`` is a function here, and its options are the function's keyword arguments. Functions
raise ``temporalwiki.errors.InputError``, or ``UsageError`` for a wrong argument.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

if importlib.util.find_spec(f"{__name__}.base") is None:
    # Windows checks out a link to a package as a file with the link's target. The packages lie two folders up.
    __path__.append(f"{__path__[0]}/../..")

from temporalwiki import errors

if TYPE_CHECKING:
    from temporalwiki.api.build import build
    from temporalwiki.api.cutoff import cutoff
    from temporalwiki.api.evaluate import evaluate
    from temporalwiki.api.experiment import experiment
    from temporalwiki.api.forgetting import ForgettingCallback
    from temporalwiki.api.leaderboard import leaderboard
    from temporalwiki.api.publish import publish
    from temporalwiki.api.train import train
    from temporalwiki.builders.loading import load_dataset

__version__ = "0.2.0"
_PLACES = {
    "ForgettingCallback": "api.forgetting",
    "build": "api.build",
    "cutoff": "api.cutoff",
    "evaluate": "api.evaluate",
    "experiment": "api.experiment",
    "leaderboard": "api.leaderboard",
    "publish": "api.publish",
    "train": "api.train",
    "load_dataset": "builders.loading",
}
__all__ = [
    "ForgettingCallback",
    "__version__",
    "build",
    "cutoff",
    "errors",
    "evaluate",
    "experiment",
    "leaderboard",
    "load_dataset",
    "publish",
    "train",
]


def __getattr__(name: str) -> Any:
    # imported on first use: `datasets` and torch take seconds to import
    if name not in _PLACES:
        raise AttributeError(f"module 'temporalwiki' has no attribute {name!r}")
    from temporalwiki.base.libraries import keep_silent

    keep_silent()
    return getattr(importlib.import_module(f"temporalwiki.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return [*globals(), *_PLACES]
