"""A dataset's repository on the Hub: its manifests, the files of a publish, and the settings of its card."""

import json
import re
from collections.abc import Callable, Collection
from hashlib import sha256
from pathlib import Path
from typing import Any

from temporalwiki.base.errors import InputError
from temporalwiki.base.files import leads_out
from temporalwiki.builders.configs import SCHEMAS
from temporalwiki.builders.manifests import OTHER, BuiltManifest, CklManifest, ImportedManifest, Manifest, decode
from temporalwiki.model_cards.edits import read_header
from temporalwiki.push_scripts.repository_state import Head

OF_INTERVAL = re.compile(rf"({'|'.join(SCHEMAS)})-\d+(-\d+)?")  # the name of a config
_LISTED = 3  # damaged files in an error, which is one line


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


def damaged(head: Head, manifests: Collection[Manifest]) -> dict[str, str]:
    """Return what is wrong on the Hub, by path: with the data files that these manifests list, and with the card.

    Only the listing of the repository is read, and files that are not LFS, of which the listing has no SHA-256.
    """
    listed = {file.path: file for manifest in manifests for file in manifest.files}
    configs = {name for manifest in manifests for name in manifest.configs}
    found = {}
    for path, file in listed.items():
        there = head.files.get(path)
        if there is None:
            found[path] = "missing"
        elif there.size != file.size or (there.sha256 or sha256(head.read(path) or b"").hexdigest()) != file.sha256:
            found[path] = OTHER
    for path in head.files:
        config = path.removeprefix("data/").partition("/")[0]
        lost = OF_INTERVAL.fullmatch(config) and f"{config[-8:-4]}.{config[-4:-2]}" in head.tags
        if path.startswith("data/") and path not in listed and (config in configs or lost):
            found[path] = "no manifest lists it"
    if manifests and "README.md" not in head.files:
        found["README.md"] = "missing"
    return dict(sorted(found.items()))


def damage(head: Head, manifests: Collection[Manifest], folder: Path) -> str | None:
    """Return what ``damaged`` finds in one line, with the command that mends it from ``folder``; or None."""
    found = [f"{path}: {what}" for path, what in damaged(head, manifests).items()]
    if not found:
        return None
    more = f" and {len(found) - _LISTED} more" if len(found) > _LISTED else ""
    mend = f"temporalwiki publish dataset {folder} {head.repo_id} --mend"
    return f"damaged on the Hub: {'; '.join(found[:_LISTED])}{more}; `{mend}` puts back what the folder has"


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
