"""DuckDB as the stages use it: with bounded memory, and a temporary folder for the rest."""

import contextlib
import glob
import resource
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb

from temporalwiki.base.errors import InputError, first_line

_LEAST_ROOM = 1 << 30  # bytes of address space


@contextlib.contextmanager
def database(folder: Path, memory: int) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a database that uses at most ``memory`` bytes and spills the rest to a temporary folder in ``folder``.

    Raises InputError if memory or disk space runs out, and KeyboardInterrupt if Ctrl-C interrupts DuckDB.
    """
    room = _address_space()
    if room < _LEAST_ROOM:  # DuckDB crashes where the system refuses it memory
        limit = f"this process may use only {room >> 20} MB more (ulimit -v), and DuckDB needs {_LEAST_ROOM >> 20} MB"
        raise InputError(f"{folder}: {limit}; raise the limit and run the same command again")
    memory = min(memory, room // 2)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".duckdb-", suffix=".part") as temp:
        config: dict[str, str | bool | int | float | list[str]] = {
            "threads": 1,
            "memory_limit": f"{memory >> 20}MB",
            "temp_directory": temp,
            "preserve_insertion_order": False,
        }
        try:
            with duckdb.connect(config=config) as db:
                yield db
        except (duckdb.OutOfMemoryException, duckdb.IOException) as error:
            short = f"DuckDB had too little memory or disk ({memory >> 20} MB of memory): {first_line(error)}"
            raise InputError(f"{folder}: {short}; give more --memory, or fewer --jobs") from None
        except (duckdb.InterruptException, RuntimeError) as error:
            if "interrupted" not in str(error).lower():
                raise
            raise KeyboardInterrupt from None


def _address_space() -> int:
    """Return how many bytes this process may still map: few under ``ulimit -v``."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return sys.maxsize
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
    return max(0, limit - pages * resource.getpagesize())


def run_script(db: duckdb.DuckDBPyConnection, script: str, values: dict[str, Any]) -> None:
    """Run SQL statements one after another, with ``values`` for their $-names."""
    for statement in duckdb.extract_statements(script):
        names = statement.named_parameters
        db.execute(statement, {name: values[name] for name in names} or None)


def rows_of(paths: list[Path]) -> str:
    """Return SQL for the rows of some files, whose paths may contain quotes and wildcards."""
    quoted = ", ".join("'" + glob.escape(str(path)).replace("'", "''") + "'" for path in paths)
    return f"read_parquet([{quoted}])"
