"""``temporalwiki list``: list the methods, the tasks, the recipes, or the configs of a dataset.

Example:

    temporalwiki list methods
    temporalwiki list tasks
    temporalwiki list recipes
    temporalwiki list configs temporalwiki
    temporalwiki list configs ORG/temporalwiki --json
"""

import ast
import itertools
import re
from pathlib import Path
from typing import Annotated, Any

from temporalwiki import eval_harness, methods
from temporalwiki.api.arguments import Arg
from temporalwiki.api.build import split_rows
from temporalwiki.api.table import Table
from temporalwiki.base.errors import UsageError
from temporalwiki.base.terminal import table
from temporalwiki.builders.loading import DEFAULT, config_names
from temporalwiki.builders.manifests import read_manifests
from temporalwiki.eval_harness.tasks import TASKS
from temporalwiki.methods import METHODS, recipes

WHAT = ("methods", "tasks", "recipes", "configs")


def list_(
    what: Annotated[str, Arg("{methods,tasks,recipes,configs}", positional=True, choices=WHAT)],
    path: Annotated[str, Arg("PATH", positional=True, nargs="?")] | None = None,
) -> Table:
    """List the methods, the tasks, the recipes, or the configs of a dataset.

    Args:
        what: what to list.
        path: for configs: dataset folder, Hub id or id@revision; temporalwiki by default.

    Raises UsageError for a path of anything but configs, and InputError for a dataset that cannot be read.
    """
    if what == "configs":
        rows, of = _configs(path or DEFAULT), Path(path or DEFAULT)
    elif path is not None:
        raise UsageError(f"{what} have no PATH: {path}")
    elif what == "recipes":
        of = recipes.HERE
        rows = [{"name": name, "description": _comment(of / f"{name}.yaml")} for name in recipes.names()]
    else:
        names, package = (METHODS, methods) if what == "methods" else (TASKS, eval_harness)
        of = Path(str(package.__file__)).parent / ("" if what == "methods" else "tasks")
        rows = [{"name": name, "description": _docstring(of / f"{name}.py")} for name in names]
    shown = [[f"{cell:,}" if isinstance(cell, int) else cell or "" for cell in row.values()] for row in rows]
    return Table(of, rows, "\n".join(table([[name.replace("_", " ") for name in rows[0]], *shown])))


def _docstring(module: Path) -> str:
    """Return the first line of a module's docstring; an import of the module would take seconds."""
    return str(ast.get_docstring(ast.parse(module.read_text("utf-8")))).split("\n")[0]


def _comment(file: Path) -> str:
    """Return the first sentence of the comment at the head of a YAML file."""
    lines = itertools.takewhile(lambda line: line.startswith("#"), file.read_text("utf-8").splitlines())
    return re.split(r"(?<=[.:]) ", " ".join(line.lstrip("# ") for line in lines))[0].rstrip(".:")


def _configs(data: str) -> list[dict[str, Any]]:
    """Return the configs of a dataset. For a folder with manifests, add the number of rows of each split."""
    rows = [row for manifest in read_manifests(Path(data)) for row in split_rows(manifest)]
    if rows:
        return rows
    return [{"config": name} for name in config_names(data)]
