"""The processes of a run that `accelerate launch` starts."""

import os

from accelerate import PartialState
from accelerate.utils import parse_flag_from_env

from temporalwiki.base.errors import UsageError


def processes() -> PartialState:
    """Return the state of the processes; a run without `accelerate launch` has one process.

    On CPUs, several processes find each other only if the first PartialState is made with ``cpu=True``.
    """
    return PartialState(cpu=os.environ.get("ACCELERATE_USE_CPU", "").lower() in ("1", "true", "yes"))


def sharded() -> bool:
    """Return True if `accelerate launch` was told to shard parameters with FSDP.

    Raises UsageError if it was told to use DeepSpeed, which is not supported.
    """
    if parse_flag_from_env("ACCELERATE_USE_DEEPSPEED"):
        raise UsageError("DeepSpeed is not supported: shard with FSDP, or train with DDP")
    return bool(parse_flag_from_env("ACCELERATE_USE_FSDP"))
