"""Read the files in a folder, and change entries of a JSON file."""

import json
from pathlib import Path
from typing import Any


def contents(folder: Path, pattern: str = "*") -> dict[str, bytes]:
    """The bytes of all files in a folder whose names fit, by their paths in it."""
    files = (path for path in sorted(folder.rglob(pattern)) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def model_files(folder: Path, **base: Any) -> dict[str, bytes]:
    """The same of a checkpoint, with other entries where an adapter or an expansion names its base."""
    files = contents(folder)
    for name in files.keys() & {"adapter_config.json", "expansion.json"} if base else ():
        files[name] = json.dumps(json.loads(files[name]) | base).encode()
    return files


def rewrite(path: Path, /, **entries: Any) -> None:
    """Change or add entries of a JSON file and keep its other entries."""
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | entries), "utf-8")


def without_manifests(out: Path) -> dict[str, bytes]:
    """The same of a dataset folder, without its manifests, which tell of the run."""
    return {name: data for name, data in contents(out).items() if not name.startswith("manifests/")}
