"""The processes of a run that `accelerate launch` starts."""

from __future__ import annotations

import os

from accelerate import PartialState
from accelerate.utils import parse_flag_from_env


def processes() -> PartialState:
    """Return the state of the processes; a run without `accelerate launch` has one process.

    On CPUs, several processes find each other only if the first PartialState is made with ``cpu=True``.
    """
    return PartialState(cpu=os.environ.get("ACCELERATE_USE_CPU", "").lower() in ("1", "true", "yes"))


def sharding() -> str | None:
    """Return "FSDP" or "DeepSpeed" if `accelerate launch` was told to shard parameters with it, else None."""
    return next((how for how in ("FSDP", "DeepSpeed") if parse_flag_from_env(f"ACCELERATE_USE_{how.upper()}")), None)
