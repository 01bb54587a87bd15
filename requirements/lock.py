"""Write the files of this folder: the packages of an extra and the hash of each file, as pip finds them here.

    python3.11 requirements/lock.py

Run it on Linux, x86-64, after each change of constraints.txt; it needs the package `packaging`. Where pip does not
find torch's build for CPUs, add --extra-index-url https://download.pytorch.org/whl/cpu.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

HERE = Path(__file__).parent
# file -> the extras of temporalwiki whose packages it lists
SETS = {"base": (), "eval": ("eval",), "test": ("adapters", "news", "test")}
APART = {"build": "setuptools", "torch": "torch"}  # file -> its only package; see docs/maintaining/dependencies.md
HEAD = "# Made by requirements/lock.py: files for Linux on x86-64 and CPython 3.11.\n"


def main() -> None:
    """Ask pip for all packages of constraints.txt, and write the lists."""
    words = ["--dry-run", "--no-deps", "--ignore-installed", "--quiet", "--report", "-", *sys.argv[1:]]
    words += ["-r", str(HERE.parent / "constraints.txt"), str(HERE.parent)]
    done = subprocess.run([sys.executable, "-m", "pip", "install", *words], check=True, stdout=subprocess.PIPE)
    found = {canonicalize_name(one["metadata"]["name"]): one for one in json.loads(done.stdout)["install"]}
    apart = set(APART.values())
    lists = {name: needed(found, extras) - apart for name, extras in SETS.items()}
    lists |= {name: {package} for name, package in APART.items()}
    for name, packages in lists.items():
        lines = "".join(f"{line(found[package])}\n" for package in sorted(packages))
        (HERE / f"{name}.txt").write_text(HEAD + lines, "utf-8")


def needed(found: dict[str, Any], extras: tuple[str, ...]) -> set[str]:
    """Return the names of the packages that temporalwiki needs with these extras, its own name left out."""
    todo, seen = [("temporalwiki", extra) for extra in ("", *extras)], set()
    while todo:
        name, extra = todo.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        for text in found[name]["metadata"].get("requires_dist", ()):
            wanted = Requirement(text)
            if wanted.marker is None or wanted.marker.evaluate({"extra": extra}):
                todo += [(canonicalize_name(wanted.name), other) for other in ("", *wanted.extras)]
    return {name for name, _ in seen} - {"temporalwiki"}


def line(package: Any) -> str:
    """Return a package as a line of requirements. Its version has no mark of a local build, such as ``+cpu``."""
    name, version = package["metadata"]["name"], package["metadata"]["version"].partition("+")[0]
    return f"{name}=={version} --hash=sha256:{package['download_info']['archive_info']['hashes']['sha256']}"


if __name__ == "__main__":
    main()
