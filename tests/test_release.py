"""The wheel holds every file that a command or a function reads; `make release` installs and tries it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = [link.name for link in sorted((ROOT / "src" / "temporalwiki").iterdir()) if link.is_symlink()]
# read in a clone only: the Spaces of metrics, which their authors publish, and files to copy to a scheduler
CLONE = ("eval_harness/metrics/fuar/", "eval_harness/metrics/knowledge_match/")
CLONE += ("eval_harness/metrics/knowledge_perplexity/", "push_scripts/schedule/")


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
