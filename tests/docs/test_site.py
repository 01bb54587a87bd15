"""The site with its API reference is built without a warning, and there is a docstring for all that is public."""

import ast
import os
import re
import shutil
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
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
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


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Broken links, links to missing headings and pages outside the menu are errors: see `strict` in mkdocs.yml."""
    for package in ("mkdocs", "mkdocs_api_autonav", "material", "mkdocstrings_handlers.python"):
        pytest.importorskip(package, reason="the extra docs, which builds the site, is not installed")
    folder = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(folder)]
    env = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    return folder


def test_the_site_has_all_modules_and_loads_nothing_from_elsewhere(site: Path) -> None:
    page = (site / "api" / "temporalwiki" / "builders" / "snapshot.html").read_text("utf-8")
    assert "Return <code>text</code> if it is a date written YYYYMMDD" in page
    pages = {
        path.relative_to(site / "api" / "temporalwiki").with_suffix("") for path in (site / "api").rglob("*.html")
    }
    names = {path.relative_to(ROOT).with_suffix("") for path in FILES if not path.name.startswith("_")}
    assert {name.as_posix() for name in names - pages if "metrics" not in name.parts} == {
        "push_scripts/schedule/hub_job"
    }
    loaded = re.compile(r"<(?:script|img|link)[^>]*(?:src|href)=[\"']?https?://")
    assert not [path for path in site.rglob("*.html") if loaded.search(path.read_text("utf-8"))]


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium to open the site with; on Debian: apt-get install chromium")
@pytest.mark.parametrize("page", ["index.html", "maintaining/fuzzing.html"])
def test_a_site_that_is_opened_from_disk_can_be_searched(site: Path, page: str) -> None:
    api = pytest.importorskip(
        "playwright.sync_api", reason="the browser tests need playwright: pip install -e '.[test]'"
    )
    with api.sync_playwright() as playwright:
        shown = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"]).new_page()
        asked: list[str] = []
        shown.on("request", lambda request: asked.append(request.url))
        shown.goto((site / page).as_uri())
        shown.click("[name=query]")
        shown.keyboard.type("lighttuning")
        shown.locator(".md-search-result__link").first.wait_for()
        links = [link.get_attribute("href") for link in shown.locator(".md-search-result__link").all()]
        assert (site / "data.html").as_uri() in links
        shown.goto(links[0])
        assert "lighttuning" in shown.inner_text("article").lower()
        assert all(url.startswith(("file:", "data:", "about:")) for url in asked)
