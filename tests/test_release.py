"""The wheel holds every file that a command or a function reads; `make release` installs and tries it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = [link.name for link in sorted((ROOT / "src" / "temporalwiki").iterdir()) if link.is_symlink()]
# read in a clone only: the Spaces of metrics, which their authors publish, and files to copy to a scheduler
CLONE = ("eval_harness/metrics/fuar/", "eval_harness/metrics/knowledge_match/")
CLONE += ("eval_harness/metrics/knowledge_perplexity/", "push_scripts/schedule/")


_IMPORTS = "import temporalwiki.api.evaluate as e, temporalwiki.eval_harness.runner; print(e.__file__)"


def without_links(source: Path) -> None:
    """Copy the clone as Windows checks it out: each link is a file that holds its target."""
    junk = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in (*PACKAGES, "src"):
        shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=junk)
    for link in [path for path in source.rglob("*") if path.is_symlink()]:
        target = str(link.readlink())
        link.unlink()
        link.write_text(target)


def test_a_clone_without_links_works(tmp_path: Path) -> None:
    """As an editable install there: ``src`` is on the path of Python."""
    without_links(tmp_path)
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "src")}
    words = [sys.executable, "-c", _IMPORTS]
    place = subprocess.run(words, check=True, env=environment, capture_output=True, text=True).stdout
    assert Path(place.strip()).resolve() == tmp_path / "api" / "evaluate.py"
    words = [sys.executable, "-m", "temporalwiki", "list", "methods", "--json"]
    listed = subprocess.run(words, check=True, env=environment, capture_output=True, text=True, cwd=tmp_path).stdout
    assert "k_adapter" in listed


def test_a_wheel_from_an_sdist_without_links_is_whole(tmp_path: Path) -> None:
    """The sdist holds the packages as folders, so a system without links builds the same wheel from it."""
    source = tmp_path / "source"
    for name in (*PACKAGES, "src"):
        junk = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=junk)
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE", "MANIFEST.in"):
        shutil.copy(ROOT / name, source / name)
    words = [sys.executable, "-c", "import setuptools.build_meta as b; print(b.build_sdist('.'))"]
    subprocess.run(words, check=True, cwd=source, capture_output=True)
    [sdist] = source.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        assert [one.name for one in archive.getmembers() if one.issym() or one.islnk()] == []
        archive.extractall(tmp_path / "unpacked", filter="data")
    [unpacked] = (tmp_path / "unpacked").iterdir()
    assert all((unpacked / "src" / "temporalwiki" / name / "__init__.py").is_file() for name in PACKAGES)


def test_the_wheel_holds_the_files_of_the_packages(tmp_path: Path) -> None:
    source, made = tmp_path / "source", tmp_path / "made"
    for name in (*PACKAGES, "src"):
        junk = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=junk)
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    words = ["wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(made)]
    subprocess.run([sys.executable, "-m", "pip", *words, str(source)], check=True)
    [wheel] = made.iterdir()
    with zipfile.ZipFile(wheel) as archive:
        held = {name.removeprefix("temporalwiki/") for name in archive.namelist()}
    files = [path.relative_to(source) for name in PACKAGES for path in (source / name).rglob("*") if path.is_file()]
    assert {path.as_posix() for path in files if not path.as_posix().startswith(CLONE)} - held == set()
    assert not [name for name in held if name.startswith(CLONE)], "in the wheel after all: take it out of CLONE"
    assert {"py.typed", "__init__.py", "__main__.py", "errors.py"} <= held
