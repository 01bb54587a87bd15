"""A dataset's repository on the Hub: its manifests, the files of a publish, and the settings of its card."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from temporalwiki.base.errors import InputError
from temporalwiki.base.files import leads_out
from temporalwiki.builders.manifests import BuiltManifest, CklManifest, ImportedManifest, Manifest, decode
from temporalwiki.model_cards.edits import read_header
from temporalwiki.push_scripts.repository_state import Head


def manifests_of(head: Head) -> list[BuiltManifest | ImportedManifest | CklManifest]:
    """Return a repository's manifests, oldest interval first. Raises InputError if one is damaged or misplaced."""
    manifests = []
    for path in sorted(path for path in head.files if path.startswith("manifests/") and path.endswith(".json")):
        where = f"datasets/{head.repo_id}: {path}"
        manifest = decode(head.read(path) or b"", where)
        if path != manifest.path:
            raise InputError(f"{where}: `temporalwiki publish` did not write this manifest: its path is wrong")
        manifests.append(manifest)
    return sorted(manifests, key=lambda manifest: manifest.age)


def files_of(folder: Path, manifest: Manifest, remedy: str) -> dict[str, Path]:
    """Return the data files of a manifest by their paths.

    Raises InputError for a link out of the folder, and, with ``remedy`` at its end, for a missing or changed file.
    """
    for file in manifest.files:
        if problem := file.problem(folder):
            raise InputError(f"{folder}: {file.path}: {problem}; {remedy}")
        if leads_out(folder / file.path, folder):
            raise InputError(f"{folder}: {file.path}: is a link out of the folder; publish a copy without links")
    return {file.path: folder / file.path for file in manifest.files}


def replaced_files(head: Head, manifests: Collection[Manifest], files: Collection[str]) -> tuple[str, ...]:
    """Return the data files that a publish of ``files`` must remove from these manifests' configs.

    Otherwise the card's patterns would also load the shards of an earlier version.
    """
    folders = tuple(f"data/{name}/" for manifest in manifests for name in manifest.configs)
    return tuple(path for path in head.files if path.startswith(folders) and path not in files)


def to_json(content: dict[str, Any]) -> bytes:
    """Return a manifest as it is published."""
    return (json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()


def maintainers_settings(card: bytes | None, is_ours: Callable[[str], object]) -> dict[str, Any]:
    """Return the settings and configs that the maintainer added to the header of a published card."""
    settings = read_header(card)
    if not settings:
        return {}
    for key in ("configs", "dataset_info"):
        listed = settings.get(key)
        settings[key] = [
            config
            for config in (listed if isinstance(listed, list) else [])
            if isinstance(config, dict) and not is_ours(str(config.get("config_name")))
        ]
    return settings
