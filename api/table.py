"""What a function returns: the place of its files, and its figures as a table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, repr=False)
class Table:
    """The place of the files that a function made, and its figures. Notebooks show it as a table.

    It stands for its path wherever a function takes a path: ``train(data=build(...))``.
    """

    path: Path
    rows: Sequence[Mapping[str, Any]]
    text: str  # what the command prints

    def to_pandas(self) -> Any:
        """Return the figures as a ``pandas.DataFrame``."""
        import pyarrow as pa

        return pa.Table.from_pylist([dict(row) for row in self.rows]).to_pandas()

    def as_json(self) -> str:
        """Return path and figures as JSON, as ``--json`` prints them."""
        return json.dumps({"path": str(self.path), "rows": self.rows}, ensure_ascii=False, indent=1)

    def _repr_html_(self) -> str:
        return str(self.to_pandas().to_html(index=False))  # pandas escapes what stands in the cells

    def __repr__(self) -> str:
        return self.text

    def __fspath__(self) -> str:
        return str(self.path)
