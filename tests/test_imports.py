"""Imports go one way: a floor imports from the floors below it, and modules of a floor form no circle."""

from __future__ import annotations

import ast
import functools
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "temporalwiki"
FLOORS = ("base", "builders", "methods", "eval_harness", "model_cards", "push_scripts", "api", "commands")


@functools.cache
def sources() -> dict[str, ast.Module]:
    """The syntax tree of every module, by its name without the package's."""
    found = {}
    for floor in FLOORS:
        for path in sorted((ROOT / floor).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found[name] = ast.parse(path.read_text("utf-8"))
    return found


def imported(node: ast.AST, importer: str) -> Iterator[str]:
    """The names that a node imports from the package: by a statement, or as text for importlib."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        parent = f"{PACKAGE}.{importer}".rsplit(".", node.level)[0] + "." if node.level else ""
        yield from (f"{parent}{node.module}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr) and isinstance(node.values[0], ast.Constant):
        yield str(node.values[0].value)


def inside(names: Iterator[str]) -> Iterator[str]:
    prefix = f"{PACKAGE}."
    return (name.removeprefix(prefix) for name in names if name.startswith(prefix) and " " not in name)


def at_module_level(tree: ast.Module, checked: bool) -> Iterator[ast.stmt]:
    """The statements that run when a module is imported, and, if ``checked``, those for type checkers only."""
    statements: list[ast.stmt] = list(tree.body)
    while statements:
        statement = statements.pop()
        yield statement
        if isinstance(statement, ast.Try):
            statements += statement.body + [line for handler in statement.handlers for line in handler.body]
        elif isinstance(statement, ast.If) and (checked or "TYPE_CHECKING" not in ast.unparse(statement.test)):
            statements += statement.body + statement.orelse


def module(name: str) -> str:
    """The module that a name lies in: "base.files.whole_file" lies in base.files."""
    while name not in sources():
        name = name.rpartition(".")[0]
    return name


def test_no_import_goes_up() -> None:
    """Imports inside functions count, and so does a module's name as text, as importlib.import_module takes it."""
    wrong = []
    for importer, tree in sources().items():
        floor = FLOORS.index(importer.split(".")[0])
        for node in ast.walk(tree):
            for name in inside(imported(node, importer)):
                top = name.split(".")[0]
                if top in FLOORS and FLOORS.index(top) > floor:
                    wrong.append(f"{importer} line {node.lineno}: {name}")  # type: ignore[attr-defined]
    assert wrong == []


@functools.cache
def graph(checked: bool = False) -> dict[str, set[str]]:
    """The modules that each module imports when it is imported, and, if ``checked``, when its types are."""
    found = {}
    for importer, tree in sources().items():
        statements = (node for node in at_module_level(tree, checked) if isinstance(node, ast.Import | ast.ImportFrom))
        names = {name for statement in statements for name in inside(imported(statement, importer))}
        found[importer] = {module(name) for name in names if name.split(".")[0] in FLOORS} - {importer}
    return found


def test_no_modules_import_each_other_in_a_circle() -> None:
    left = dict(graph(checked=True))
    while leaves := {name for name, targets in left.items() if not targets & left.keys()}:
        for name in leaves:
            del left[name]
    assert {name: sorted(targets & left.keys()) for name, targets in left.items()} == {}


PARSER, TRAINER = "builders.wikipedia.plain_text", "methods.trainer"


@pytest.mark.parametrize(
    ("name", "most", "without"),
    [
        ("methods.train", 31, {PARSER}),
        ("eval_harness.runner", 61, {PARSER, TRAINER}),
        ("builders.build", 55, {TRAINER}),
    ],
)
def test_importing_a_module_loads_few_others(name: str, most: int, without: set[str]) -> None:
    found, waiting = {name}, [name]
    while waiting:
        new = graph()[waiting.pop()] - found
        found |= new
        waiting += new
    assert len(found) <= most, sorted(found)
    assert not found & without


def test_code_lies_on_the_floors() -> None:
    """A new top-level package needs a place among the floors."""
    linked = {path.name for path in (ROOT / "src" / PACKAGE).iterdir() if path.is_symlink()}
    assert linked == set(FLOORS)


SHARED = {"Executor"}  # ``--engine`` names a module, and this is its class


def test_a_class_name_says_which_class_it_is() -> None:
    classes = Counter(
        node.name for tree in sources().values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
    )
    assert {name for name, times in classes.items() if times > 1} <= SHARED
