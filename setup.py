"""What setup.cfg cannot say: README.md for the package index, and the packages of a clone without links."""

import configparser
import re
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).parent


def readme() -> str:
    """Return README.md with whole addresses of this version, because the index has none of the linked files."""
    setup_cfg = configparser.ConfigParser()
    setup_cfg.read(HERE / "setup.cfg", "utf-8")
    [version] = re.findall(r'^__version__ = "(.+)"$', (HERE / "src/temporalwiki/__init__.py").read_text("utf-8"), re.M)
    project, text = setup_cfg["metadata"]["url"], (HERE / "README.md").read_text("utf-8")
    text = re.sub(r'\b(src|srcset)="(?!https:)', rf'\1="{project}/raw/v{version}/', text)
    return re.sub(r"\]\((?!https:|#)", f"]({project}/blob/v{version}/", text)


def packages() -> dict[str, object]:
    """Return nothing for a clone with links, and else, as on Windows, the packages next to `src`."""
    if (HERE / "src" / "temporalwiki" / "base").is_dir():
        return {}
    found = find_packages(str(HERE), exclude=["tests*"])
    folders = {f"temporalwiki.{name}": name for name in found if "." not in name}
    names = ["temporalwiki", *(f"temporalwiki.{name}" for name in found)]
    return {"packages": names, "package_dir": {"": "src"} | folders}


setup(long_description=readme(), **packages())
