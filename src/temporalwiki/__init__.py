"""temporalwiki: data, methods and evaluation for language models that are kept up to date.

``temporalwiki.load_dataset`` loads a revision of the benchmark; the command ``temporalwiki`` builds one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from temporalwiki.builders.loading import load_dataset

__version__ = "0.1.0"
__all__ = ["__version__", "load_dataset"]


def __getattr__(name: str) -> Any:
    # `datasets` takes seconds to import, and the command line mostly does without it
    if name == "load_dataset":
        from temporalwiki.builders.loading import load_dataset

        return load_dataset
    raise AttributeError(f"module 'temporalwiki' has no attribute {name!r}")
