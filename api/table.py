"""The result of a function: where its files are, and its figures as a table."""

from __future__ import annotations

import base64
import json
import mimetypes
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from temporalwiki.base.terminal import print_result, say

_SHOWN = 60  # rows of a table in a notebook, as pandas has it


@dataclass(frozen=True, repr=False)
class Table:
    """The result of a function: the path of its files, and its figures. Notebooks show them below the chart.

    Pass it wherever a function takes a path: ``train(data=build(...))``.
    """

    path: Path
    rows: Sequence[Mapping[str, Any]]
    text: str  # what the command prints

    @property
    def picture(self) -> Path | None:
        """The chart among the files, or None."""
        return None

    def to_pandas(self) -> Any:
        """Return the figures as a ``pandas.DataFrame``."""
        import pyarrow as pa

        columns = dict.fromkeys(name for row in self.rows for name in row)
        return pa.table({name: [row.get(name) for row in self.rows] for name in columns}).to_pandas()

    def as_json(self) -> str:
        """Return path and figures as JSON, as ``--json`` prints them."""
        return json.dumps({"path": str(self.path), "rows": self.rows}, ensure_ascii=False, indent=1)

    def _repr_html_(self) -> str:
        # pandas escapes the cells, and browsers run no script of an image
        table = str(self.to_pandas().to_html(index=False, max_rows=_SHOWN))
        if self.picture is None:
            return table
        kind, content = mimetypes.guess_type(self.picture)[0], base64.b64encode(self.picture.read_bytes()).decode()
        return f'<img alt="{self.picture.stem}" src="data:{kind};base64,{content}" style="max-width: 100%">{table}'

    def __repr__(self) -> str:
        return self.text

    def __fspath__(self) -> str:
        return str(self.path)


def show(made: Table, as_json: bool) -> None:
    """Print the result of a function. If several processes share a run, only the first one prints."""
    text = made.as_json() if as_json else made.text
    if text and os.environ.get("RANK", "0") == "0":
        print_result(text)


def tell(text: str, as_json: bool) -> None:
    """Print a message of a command while it works. With ``--json`` it goes to standard error: the output is JSON."""
    if as_json:
        for line in text.splitlines():
            say(line)
    else:
        print_result(text)
