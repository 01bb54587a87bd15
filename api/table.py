"""The result of a function: where its files are, and its figures as a table."""

import base64
import json
import mimetypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from temporalwiki.base.terminal import print_result, say

E = TypeVar("E", bound=BaseException)
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


_told: list[Callable[[str], None]] = []  # the command that runs, if any


def tell(text: str) -> None:
    """Print a message while a function works, if a command runs it. A function in Python prints nothing."""
    for one in _told:
        one(text)


@contextmanager
def telling(as_json: bool) -> Iterator[list[str]]:
    """Print what functions tell, and list it. With ``as_json`` it goes to standard error: the output is JSON."""
    lines: list[str] = []

    def one(text: str) -> None:
        lines.append(text)
        for line in text.splitlines() if as_json else [text]:
            (say if as_json else print_result)(line)

    _told.append(one)
    try:
        yield lines
    finally:
        _told.remove(one)


def failed(error: E, made: Table) -> E:
    """Return the error. The command still prints ``made`` before it."""
    error.__dict__["made"] = made
    return error
