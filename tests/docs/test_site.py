"""The site with its API reference is built without a warning, and there is a docstring for all that is public."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from documents import ROOT

pytestmark = pytest.mark.slow

PACKAGES = ("api", "base", "builders", "commands", "eval_harness", "methods", "model_cards", "push_scripts")
FILES = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")) if not path.is_symlink()]
OURS = {"InputError", "UsageError", "UnreadablePage", "NotAnEntity", "ValueError", "RuntimeError"}
SAYS = ("raise", "refuse", "error")  # words with which a docstring mentions an error
Documented = ast.FunctionDef | ast.ClassDef


def public(path: Path) -> Iterator[tuple[str, Documented]]:
    """Public functions, classes and methods of a module, those within functions left out."""
    nodes: list[tuple[str, ast.Module | ast.ClassDef]] = [("", ast.parse(path.read_text("utf-8")))]
    while nodes:
        prefix, node = nodes.pop()
        for one in node.body:
            if isinstance(one, Documented) and not one.name.startswith("_"):
                yield f"{prefix}{one.name}", one
                if isinstance(one, ast.ClassDef):
                    nodes.append((f"{prefix}{one.name}.", one))


def raised(function: ast.FunctionDef) -> set[str]:
    """What a function itself raises by name, those within it left out."""
    found, nodes = set[str](), list[ast.AST](function.body)
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and isinstance(node.exc.func, ast.Name):
            found.add(node.exc.func.id)
        if not isinstance(node, ast.FunctionDef | ast.Lambda):
            nodes += ast.iter_child_nodes(node)
    return found & OURS


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_what_is_public_has_a_docstring_that_mentions_its_errors(path: Path) -> None:
    text = path.read_text("utf-8")
    assert ast.get_docstring(ast.parse(text)) or not text, "the module lacks a docstring"
    for name, one in public(path):
        docstring = ast.get_docstring(one)
        assert docstring, f"{name}: no docstring"
        errors = raised(one) if isinstance(one, ast.FunctionDef) else ()
        assert not errors or any(word in docstring.lower() for word in SAYS), f"{name}: raises {errors}"


def test_the_site_is_built_without_a_broken_link_and_has_all_modules(tmp_path: Path) -> None:
    """Broken links, links to missing headings and pages outside the menu are errors: see `strict` in mkdocs.yml."""
    for package in ("mkdocs", "mkdocs_api_autonav", "material", "mkdocstrings_handlers.python"):
        pytest.importorskip(package, reason="the extra docs, which builds the site, is not installed")
    words = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(tmp_path)]
    done = subprocess.run(
        words, cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    page = (tmp_path / "api" / "temporalwiki" / "builders" / "snapshot" / "index.html").read_text("utf-8")
    assert "Return <code>text</code> if it is a date written YYYYMMDD" in page
    pages = {path.parent.relative_to(tmp_path / "api" / "temporalwiki") for path in (tmp_path / "api").rglob("*.html")}
    names = {path.relative_to(ROOT).with_suffix("") for path in FILES if not path.name.startswith("_")}
    assert {name.as_posix() for name in names - pages if "metrics" not in name.parts} == {
        "push_scripts/schedule/hub_job"
    }
    loaded = re.compile(r"<(?:script|img|link)[^>]*(?:src|href)=[\"']?https?://")
    assert not [path for path in tmp_path.rglob("*.html") if loaded.search(path.read_text("utf-8"))]
