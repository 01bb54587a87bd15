"""``temporalwiki list``: the methods, the tasks, or the configs of a dataset."""

from __future__ import annotations

import argparse
import ast
from pathlib import Path
from typing import Any

from temporalwiki import eval_harness, methods
from temporalwiki.api.build import split_rows
from temporalwiki.api.table import Table
from temporalwiki.builders.inspection import table
from temporalwiki.builders.loading import DEFAULT
from temporalwiki.builders.manifests import read_manifests
from temporalwiki.eval_harness.tasks import TASKS
from temporalwiki.methods import CONTROLS, METHODS, needs

_EXAMPLE = """\
example:
  temporalwiki list methods
  temporalwiki list tasks
  temporalwiki list configs temporalwiki
  temporalwiki list configs ORG/temporalwiki --json
"""


def add_arguments(parser: argparse.ArgumentParser, argv: list[str]) -> None:
    """Add the subcommand's arguments."""
    parser.epilog = _EXAMPLE
    parser.add_argument(
        "what",
        choices=("methods", "tasks", "configs"),
        metavar="{methods,tasks,configs}",  # else the error of a missing one calls it "what"
        help="what to list",
    )
    parser.add_argument(
        "path",
        nargs="?",
        metavar="PATH",
        help=f"for configs: dataset folder, Hub id or id@revision (default: {DEFAULT})",
    )


def run(arguments: argparse.Namespace) -> Table:
    """List the methods, tasks or configs. Raises InputError for a dataset that cannot be read."""
    if arguments.what == "configs":
        return _configs(arguments.path or DEFAULT)
    if arguments.path is not None:
        arguments.parser.error(f"{arguments.what} have no PATH: {arguments.path}")
    of, package = (METHODS | CONTROLS, methods) if arguments.what == "methods" else (TASKS, eval_harness)
    folder = Path(str(package.__file__)).parent / ("" if arguments.what == "methods" else "tasks")
    rows = [{"name": name, "description": _description(folder / f"{name}.py")} for name in of]
    return Table(folder, rows, _text(rows))


def _description(module: Path) -> str:
    """Return the first line of a module's docstring; an import of the module would take seconds."""
    return str(ast.get_docstring(ast.parse(module.read_text("utf-8")))).split("\n")[0]


def _configs(data: str) -> Table:
    """Return the configs of a dataset. For a folder with manifests, add the number of rows of each split."""
    rows = [row for manifest in read_manifests(Path(data)) for row in split_rows(manifest)]
    if not rows:
        with needs("train"):
            from temporalwiki.methods.training_data import config_names
        rows = [{"config": name} for name in config_names(data)]
    return Table(Path(data), rows, _text(rows))


def _text(rows: list[dict[str, Any]]) -> str:
    shown = [[f"{cell:,}" if isinstance(cell, int) else cell or "" for cell in row.values()] for row in rows]
    return "\n".join(table([[name.replace("_", " ") for name in rows[0]], *shown]))
