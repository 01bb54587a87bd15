"""The wheel holds every file that a command or a function reads; `make release` installs and tries it."""

import email
import os
import re
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


def a_source(source: Path) -> Path:
    """Copy what a wheel is made from."""
    junk = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in (*PACKAGES, "src"):
        shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=junk)
    for name in ("setup.py", "setup.cfg", "pyproject.toml", "README.md", "LICENSE", "MANIFEST.in"):
        shutil.copy(ROOT / name, source / name)
    return source


def without_links(source: Path) -> Path:
    """Copy the clone as Windows checks it out: each link is a file that holds its target."""
    for link in [path for path in a_source(source).rglob("*") if path.is_symlink()]:
        target = str(link.readlink())
        link.unlink()
        link.write_text(target)
    return source


def unpacked_sdist(source: Path, into: Path) -> Path:
    """Make an sdist of a folder, and unpack it. It has no links."""
    words = [sys.executable, "-c", "import setuptools.build_meta as b; b.build_sdist('dist')"]
    subprocess.run(words, check=True, cwd=source, capture_output=True)
    [sdist] = (source / "dist").iterdir()
    with tarfile.open(sdist) as archive:
        assert [one.name for one in archive.getmembers() if one.issym() or one.islnk()] == []
        archive.extractall(into, filter="data")
    [unpacked] = into.iterdir()
    return unpacked


def wheel_of(source: Path, into: Path) -> Path:
    """Build the wheel of a folder, without the network."""
    words = ["wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(into)]
    environment = os.environ | {"SOURCE_DATE_EPOCH": "1700000000"}
    subprocess.run([sys.executable, "-m", "pip", *words, str(source)], check=True, env=environment)
    [wheel] = into.iterdir()
    return wheel


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


def test_the_wheel_is_the_same_with_and_without_links(tmp_path: Path) -> None:
    """From the sdist of a clone, from a clone without links, and from the sdist of such a clone."""
    whole, bare = a_source(tmp_path / "whole"), without_links(tmp_path / "bare")
    places = {
        "sdist": unpacked_sdist(whole, tmp_path / "sdist"),
        "bare": bare,
        "bare sdist": unpacked_sdist(bare, tmp_path / "bare sdist"),
    }
    made = {name: wheel_of(place, tmp_path / "made" / name).read_bytes() for name, place in places.items()}
    assert made == dict.fromkeys(places, wheel_of(whole, tmp_path / "made" / "whole").read_bytes())


def test_the_wheel_holds_the_files_of_the_packages(tmp_path: Path) -> None:
    source = a_source(tmp_path / "source")
    with zipfile.ZipFile(wheel_of(source, tmp_path / "made")) as archive:
        held = {name.removeprefix("temporalwiki/") for name in archive.namelist()}
        [metadata] = [archive.read(name).decode("utf-8") for name in held if name.endswith("/METADATA")]
    files = [path.relative_to(source) for name in PACKAGES for path in (source / name).rglob("*") if path.is_file()]
    assert {path.as_posix() for path in files if not path.as_posix().startswith(CLONE)} - held == set()
    assert not [name for name in held if name.startswith(CLONE)], "in the wheel after all: take it out of CLONE"
    assert {"py.typed", "__init__.py", "__main__.py", "errors.py"} <= held

    # The package index shows README.md without its folder: a picture or link needs a whole address.
    header = email.message_from_string(metadata)
    readme = header.get_payload()
    targets = re.findall(r'(?:\]\(|\b(?:src|srcset|href)=")([^")]+)', readme)
    assert [target for target in targets if not target.startswith("https://")] == []
    ours = f"{header['Home-page']}/(?:blob|raw)/v{header['Version']}/"
    paths = {re.sub(ours, "", target) for target in targets if re.match(ours, target)}
    assert {"docs/study/known.svg", "docs/study/known_narrow.svg"} <= paths
    assert [path for path in paths if not (ROOT / path).is_file()] == []
