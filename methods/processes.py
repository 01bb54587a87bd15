"""The processes that share a run's work, as ``accelerate launch`` starts them."""

from __future__ import annotations

import os

from accelerate import PartialState


def processes() -> PartialState:
    """Return them; one where nothing was launched.

    Several on CPUs find each other only where CPUs are asked for when the state is first made.
    """
    return PartialState(cpu=os.environ.get("ACCELERATE_USE_CPU", "").lower() in ("1", "true", "yes"))
