"""What a piece of work costs: its time, its CPU time and its peak of memory."""

import contextlib
import ctypes
import re
import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa


@contextlib.contextmanager
def measured() -> Iterator[dict[str, Any]]:
    """Yield a dict that gets the block's start, wall seconds, CPU seconds and peak of memory when it ends well."""
    cost: dict[str, Any] = {}
    give_back_memory()
    began, clock, cpu, children = time.time(), time.perf_counter(), time.process_time(), _cpu_of_children()
    with contextlib.suppress(OSError):  # the kernel forgets the peak of earlier tasks, where it can
        Path("/proc/self/clear_refs").write_text("5")
    yield cost
    cost |= {
        "began": round(began, 3),
        "seconds": round(time.perf_counter() - clock, 3),
        "cpu_seconds": round(time.process_time() - cpu + _cpu_of_children() - children, 3),
        "peak_memory_mb": _peak() >> 20,
    }


def give_back_memory() -> None:
    """Return freed memory to the kernel. Otherwise, Arrow and the C library cannot use memory that the other freed."""
    pa.default_memory_pool().release_unused()
    with contextlib.suppress(OSError, AttributeError):  # only glibc has it
        ctypes.CDLL(None).malloc_trim(0)


def _cpu_of_children() -> float:
    """Return the CPU seconds of the child processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _peak() -> int:
    """Return this process's peak of memory in bytes, since the kernel last forgot it."""
    with contextlib.suppress(OSError):
        if found := re.search(r"^VmHWM:\s*(\d+)", Path("/proc/self/status").read_text(), re.MULTILINE):
            return int(found[1]) << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
