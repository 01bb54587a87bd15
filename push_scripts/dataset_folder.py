"""What a publish takes from a dataset folder, and what it keeps of a repository that holds one."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import yaml

from temporalwiki.base.errors import InputError
from temporalwiki.builders.dataset_folder import Manifest
from temporalwiki.push_scripts.revision import Head, read_file

_LARGEST_HEADER = 1_000_000  # values
_HEADER = re.compile(r"\A---[^\S\n]*\n(.*?)\n---\s*(?:\n|\Z)", re.DOTALL)


def manifests_there(head: Head) -> Iterator[tuple[str, str, Any]]:
    """Yield what a repository holds under manifests/, unchecked: where that is for people, its path, its JSON."""
    for path in sorted(path for path in head.files if path.startswith("manifests/") and path.endswith(".json")):
        try:
            manifest = json.loads(head.read(path) or b"")
        except (ValueError, RecursionError):
            manifest = None
        yield f"datasets/{head.repo_id}: {path}", path, manifest


def files_of(folder: Path, manifest: Manifest, again: str) -> dict[str, Path]:
    """Return the data files of a manifest; raise InputError, with how to make them ``again``, unless as it says."""
    files = {}
    for config in manifest["configs"].values():
        for split in config["splits"].values():
            for file in split["files"]:
                path = folder / str(file["path"])
                if not path.is_file():
                    raise InputError(f"{folder}: {file['path']}: missing; {again}")
                if read_file(path).hashes.sha256 != file["sha256"]:
                    raise InputError(f"{folder}: {file['path']}: not the file that the manifest describes; {again}")
                files[file["path"]] = path
    return files


def stale(head: Head, manifests: Collection[Manifest], files: Collection[str]) -> tuple[str, ...]:
    """Return the data files of these manifests' configs that are nobody's any more.

    The card's patterns would take shards of another number for data.
    """
    folders = tuple(f"data/{name}/" for manifest in manifests for name in manifest["configs"])
    return tuple(path for path in head.files if path.startswith(folders) and path not in files)


def as_text(manifest: Manifest) -> bytes:
    """Return a manifest as it is published."""
    return (json.dumps(manifest, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()


def _written_out(value: Any, known: dict[int, float]) -> float:
    """How many values there are where each alias of YAML is written out; without end in what contains itself."""
    if not isinstance(value, list | dict):
        return 1
    if id(value) not in known:
        known[id(value)] = math.inf
        parts = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_written_out(part, known) for part in parts)
    return known[id(value)]


def not_ours(card: bytes | None, ours: Callable[[str], object]) -> dict[str, Any]:
    """Return what a published card's header has besides ours: settings and configs that the maintainer added."""
    found = _HEADER.match((card or b"").decode("utf-8", "replace").replace("\r\n", "\n"))
    try:
        header = yaml.safe_load(found[1]) if found else None
        if _written_out(header, {}) > _LARGEST_HEADER:
            header = None
    except (yaml.YAMLError, ValueError, TypeError, RecursionError):  # the Hub takes no such card
        header = None
    if not isinstance(header, dict):
        return {}
    kept = {str(key): value for key, value in header.items()}
    for key in ("configs", "dataset_info"):
        listed = kept.get(key)
        kept[key] = [
            one
            for one in (listed if isinstance(listed, list) else [])
            if isinstance(one, dict) and not ours(str(one.get("config_name")))
        ]
    return kept
