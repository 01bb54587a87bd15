"""Run notebooks in the current folder, as Jupyter would: python notebooks.py [--store] FILE.ipynb ...

Each cell runs after the others, and its last expression is shown. --store writes what is shown into the files: in an
empty folder, so that no path of a machine gets into them. Jupyter itself would be thirty more packages.
"""

import ast
import base64
import io
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def run(notebook: Path) -> list[Any]:
    """Run the cells, and return what they show, in order. Raises what a cell raises."""
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    return [value for _, value in run_cells(notebook.name, cells) if value is not None]


def store(notebook: Path) -> int:
    """Run the cells, write what they show into the file, and return how many show something."""
    content = json.loads(notebook.read_text("utf-8"))
    for number, (cell, value) in enumerate(run_cells(notebook.name, content["cells"]), 1):
        shown = {"output_type": "execute_result", "execution_count": number, "metadata": {}}
        cell |= {"execution_count": number, "outputs": [] if value is None else [shown | {"data": data(value)}]}
    notebook.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return sum(bool(cell.get("outputs")) for cell in content["cells"])


def run_cells(name: str, cells: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], Any]]:
    """Run the cells of code, and yield each with the value of its last expression."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(cells):
        if cell["cell_type"] != "code":
            continue
        *before, last = ast.parse("".join(cell["source"])).body
        where = f"{name}, cell {number}"
        value = None
        if isinstance(last, ast.Expr):
            exec(compile(ast.Module(before, []), where, "exec"), names)  # noqa: S102 - the notebooks are ours
            value = eval(compile(ast.Expression(last.value), where, "eval"), names)  # noqa: S307
            html(value)  # an error there is an error of the cell
        else:
            exec(compile(ast.Module([*before, last], []), where, "exec"), names)  # noqa: S102
        yield cell, value


def data(value: Any) -> dict[str, Any]:
    """Return what Jupyter stores of a value: its text, and its HTML or picture if it has one."""
    found: dict[str, Any] = {"text/plain": repr(value).splitlines(keepends=True)}
    if hasattr(value, "_repr_html_"):
        found["text/html"] = html(value).splitlines(keepends=True)
    elif figure := getattr(value, "figure", None):
        file = io.BytesIO()
        figure.savefig(file, format="png", dpi=72, bbox_inches="tight", metadata={"Software": None})
        found["image/png"] = base64.b64encode(file.getvalue()).decode()
    return found


def html(value: Any) -> str:
    """Return what Jupyter shows of a value: its HTML, or else its text."""
    return str(value._repr_html_()) if hasattr(value, "_repr_html_") else repr(value)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        if name == "--store":
            continue
        begun = time.perf_counter()
        count = store(Path(name)) if "--store" in sys.argv else len(run(Path(name)))
        print(f"{Path(name).name}: {count} tables and pictures in {time.perf_counter() - begun:.0f} s")
