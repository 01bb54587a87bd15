"""temporalwiki: datasets of Wikipedia and Wikidata changes, continual-learning methods, and evaluation.

``temporalwiki.load_dataset`` loads the benchmark; the command ``temporalwiki`` builds it, trains and evaluates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from temporalwiki.builders.loading import load_dataset

__version__ = "0.1.0"
__all__ = ["__version__", "load_dataset"]


def __getattr__(name: str) -> Any:
    # imported on first use: `datasets` takes seconds to import, and most commands do not need it
    if name == "load_dataset":
        from temporalwiki.builders.loading import load_dataset

        return load_dataset
    raise AttributeError(f"module 'temporalwiki' has no attribute {name!r}")
