"""docs/maintaining/dependencies.md, setup.cfg and the imports of all files say the same."""

import ast
import configparser
import importlib.metadata
import re
import sys
from functools import cache
from pathlib import Path

import pytest

import temporalwiki

ROOT = Path(temporalwiki.__file__).parents[2]
OURS = ("base", "builders", "methods", "eval_harness", "model_cards", "push_scripts", "api", "commands", "benchmarks")
OURS += ("tests",)


@cache
def declared() -> dict[str, set[str]]:
    """Package -> where setup.cfg names it: an extra, or base."""
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    parts = {"base": parser["options"]["install_requires"], **parser["options.extras_require"]}
    found: dict[str, set[str]] = {}
    for extra, text in parts.items():
        for line in text.split("\n"):
            name = re.match(r"[\w.-]*", line.strip())
            if name and name[0] and name[0] != "temporalwiki":
                found.setdefault(name[0], set()).add(extra)
    return found


def tables() -> list[list[list[str]]]:
    """The tables of docs/maintaining/dependencies.md, without their heads."""
    text = (ROOT / "docs" / "maintaining" / "dependencies.md").read_text("utf-8")
    found = re.findall(r"\|[-|]+\|\n((?:\|.*\|\n)+)", text)
    return [[[cell.strip(" `") for cell in line[1:-1].split(" | ")] for line in one.splitlines()] for one in found]


@cache
def imports() -> dict[str, set[str]]:
    """File -> the packages that it imports from outside of Python and of the project, by name or by importlib."""
    known = {path.stem for path in (ROOT / "tests").iterdir()} | {"temporalwiki"}
    found = {}
    for folder in OURS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            names = set()
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Import):
                    names |= {alias.name for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.level == 0:
                    names.add(node.module or "")
                elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "import_module":
                    names |= {part.value for part in node.args if isinstance(part, ast.Constant)}
            own = {name.split(".")[0] for name in names} - set(sys.stdlib_module_names) - known
            found[path.relative_to(ROOT).as_posix()] = own - {other.stem for other in path.parent.iterdir()}
    return found


def test_the_table_names_what_setup_cfg_does() -> None:
    assert {row[0]: set(row[2].split(", ")) for row in tables()[0]} == declared()


def test_each_has_a_version_that_was_tested() -> None:
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pinned = [plain(line.partition("==")[0]) for line in lines if "==" in line and not line.startswith("#")]
    assert len(pinned) == len(set(pinned))
    assert set(map(plain, declared())) <= set(pinned)


def locked(name: str) -> dict[str, str]:
    """The lines of a file of requirements/, by package."""
    lines = (ROOT / "requirements" / f"{name}.txt").read_text("utf-8").splitlines()
    return {plain(line.partition("==")[0]): line for line in lines if not line.startswith("#")}


def test_each_locked_package_has_the_tested_version_and_a_hash() -> None:
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    tested = {plain(line.partition("==")[0]): line.partition("==")[2] for line in lines}
    for name in ("base", "eval", "test", "torch", "build"):
        for package, line in locked(name).items():
            assert re.fullmatch(rf"[\w.-]+=={re.escape(tested[package])}( --hash=sha256:[0-9a-f]{{64}})+", line)


@pytest.mark.parametrize(
    ("name", "extras"),
    [
        ("base", {"base"}),
        ("eval", {"base", "eval", "train"}),
        ("test", {"base", "eval", "train", "adapters", "news", "docs", "gguf", "test"}),
    ],
)
def test_what_an_installation_needs_is_locked(name: str, extras: set[str]) -> None:
    needed = {plain(package) for package, where in declared().items() if where & extras} - {"torch"}
    assert needed <= locked(name).keys()
    assert locked(name).keys().isdisjoint({"torch", "setuptools"})  # which have files of their own
    assert locked("base").items() <= locked("eval").items() <= locked("test").items()
    assert list(locked("torch")) == ["torch"] and list(locked("build")) == ["setuptools"]


def plain(name: str) -> str:
    """A package's name as the index compares it."""
    return re.sub("[-_.]+", "-", name).lower()


def test_each_is_used_where_the_table_says() -> None:
    for package, module, _, _, where, _ in tables()[0]:
        by_name = re.search(rf"\b{re.escape(module)}\b", (ROOT / where).read_text("utf-8"))
        assert module in imports().get(where, ()) or by_name, f"{package} is not used in {where}"


def test_nothing_is_imported_that_is_not_declared() -> None:
    modules = {row[1] for row in tables()[0]}
    undeclared = {name: path for path, names in imports().items() for name in names - modules}
    assert undeclared == {}


def test_each_that_can_be_imported_is_imported_somewhere() -> None:
    """What is only named are programs, types, plugins, and what another package looks for."""
    everywhere = set().union(*imports().values())
    only_named = {row[0] for row in tables()[0] if row[1] not in everywhere}
    programs = {"mypy", "ruff", "pytest-xdist", "indexed_bzip2", "types-regex"}
    others = {"types-tqdm", "gguf", "lxml", "bitsandbytes", "tensorboard", "trackio", "atheris", "openai"}
    site = {"mkdocs", "mkdocs-api-autonav", "mkdocs-material", "mkdocstrings-python"}
    assert only_named <= programs | others | site


def test_all_that_is_not_permissive_is_named() -> None:
    """All installed packages count, indirect ones included; their metadata names the licence."""
    found = set()
    for installed in importlib.metadata.distributions():
        said = installed.metadata
        classifiers = [text for text in said.get_all("Classifier") or [] if text.startswith("License")]
        first = (said.get("License") or "").split("\n")[0][:100]
        licence = " ".join([said.get("License-Expression") or "", first, *classifiers])
        if re.search(r"GPL|General Public|EUPL|SSPL|CC-BY-(NC|SA)|Commercial|Proprietary", licence):
            found.add(re.sub("^nvidia-.*", "nvidia-*", said["Name"].lower()))
    named = {row[0] for row in tables()[1]}
    assert found <= named
