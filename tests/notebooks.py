"""Run notebooks in the current folder, as Jupyter would: python notebooks.py FILE.ipynb ...

Each cell runs after the others, and its last expression is shown. Jupyter itself would be thirty more packages.
"""

from __future__ import annotations

import ast
import json
import sys
import time
from pathlib import Path
from typing import Any


def run(notebook: Path) -> list[Any]:
    """Run the cells, and return what they show, in order. Raises what a cell raises."""
    names: dict[str, Any] = {"__name__": "__main__"}
    shown = []
    for number, cell in enumerate(json.loads(notebook.read_text("utf-8"))["cells"]):
        if cell["cell_type"] != "code":
            continue
        *before, last = ast.parse("".join(cell["source"])).body
        where = f"{notebook.name}, cell {number}"
        if isinstance(last, ast.Expr):
            exec(compile(ast.Module(before, []), where, "exec"), names)  # noqa: S102 - the notebooks are ours
            value = eval(compile(ast.Expression(last.value), where, "eval"), names)  # noqa: S307
            if value is not None:
                shown.append(value)
                html(value)  # an error there is an error of the cell
        else:
            exec(compile(ast.Module([*before, last], []), where, "exec"), names)  # noqa: S102
    return shown


def html(value: Any) -> str:
    """Return what Jupyter shows of a value: its HTML, or else its text."""
    return str(value._repr_html_()) if hasattr(value, "_repr_html_") else repr(value)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        begun = time.perf_counter()
        values = run(Path(name))
        print(f"{Path(name).name}: {len(values)} tables and pictures in {time.perf_counter() - begun:.0f} s")
