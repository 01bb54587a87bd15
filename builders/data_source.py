"""The sources of rows: which repository, commit and manifest a config was read from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import datasets
import httpx2
import msgspec
from huggingface_hub import HfApi
from huggingface_hub.errors import HfHubHTTPError

from temporalwiki.base.files import read_small
from temporalwiki.builders.configs import SCHEMAS, names
from temporalwiki.builders.manifests import (
    BuiltManifest,
    CklManifest,
    DataSource,
    ImportedManifest,
    decode,
    find_config,
)
from temporalwiki.builders.published import on_hub
from temporalwiki.builders.snapshot import Interval

_COMMIT = re.compile(r"[0-9a-f]{40}")
_INTERVAL = re.compile(r"(\d{8})-(\d{8})")


def source_of(data: str, config: str, rows: datasets.Dataset | Mapping[Any, datasets.Dataset]) -> DataSource:
    """Return the source of ``rows``, which were loaded from a config of ``data`` (a folder, Hub id or id@revision).

    The commit is the one that `datasets` has read. Without a network, the manifest and the tag of a dataset on the Hub
    may stay unknown.
    """
    folder = Path(data)
    if folder.is_dir():
        if (here := find_config(folder, config)) is None:
            return DataSource(config)
        return on_hub(folder, DataSource(here[0], here[1].sha256, language=_other_than_english(here[1])))
    repository, _, revision = data.partition("@")
    commit = _commit(rows) or (revision if _COMMIT.fullmatch(revision) else None)
    known = {"config": config, "repository": repository, "commit": commit}
    try:
        described = None if commit is None else find_on_hub(repository, config, commit)
        if described is not None:
            full_name, manifest = described
            known |= {
                "config": full_name,
                "manifest_sha256": manifest.sha256,
                "language": _other_than_english(manifest),
            }
            known["tag"] = manifest.content.get("tag")
        return msgspec.convert(known, DataSource)
    except (HfHubHTTPError, httpx2.HTTPError, OSError, ValueError):  # no network, or another program's dataset
        return DataSource(config, repository=repository, commit=commit)


def find_on_hub(
    repository: str, config: str, revision: str
) -> tuple[str, BuiltManifest | ImportedManifest | CklManifest] | None:
    """Return the full name and the manifest of a config on the Hub; None if no manifest of temporalwiki has it.

    Raises the errors of huggingface_hub, and InputError for a damaged manifest.
    """
    api = HfApi()
    listed = api.list_repo_tree(repository, "manifests", repo_type="dataset", revision=revision)
    paths = [entry.path for entry in listed if _may_have(Path(entry.path).stem, config)]
    for path in sorted(paths, key=lambda path: (path.rpartition("-")[2], path), reverse=True):  # newest first
        local = api.hf_hub_download(repository, path, repo_type="dataset", revision=revision)
        manifest = decode(read_small(Path(local)), f"datasets/{repository}: {path}")
        for full_name, found in manifest.configs.items():
            if config in (full_name, found.short_name):
                return full_name, manifest
    return None


def _other_than_english(manifest: BuiltManifest | ImportedManifest | CklManifest) -> str | None:
    return None if manifest.language == "en" else manifest.language


def _may_have(name: str, config: str) -> bool:
    """Return whether a manifest of this name (an interval, or a config of CKL) may describe a config."""
    kind = config.split("-")[0]
    if (dates := _INTERVAL.fullmatch(name)) is None:
        return name.split("-")[0] == kind
    return kind in SCHEMAS and config in names(kind, Interval("enwiki", dates[1], dates[2]))


def _commit(rows: datasets.Dataset | Mapping[Any, datasets.Dataset]) -> str | None:
    """Return the commit that rows were read at: `datasets` names the folder of their cache after it."""
    for split in rows.values() if isinstance(rows, Mapping) else (rows,):
        for file in split.cache_files:
            if _COMMIT.fullmatch(commit := Path(file["filename"]).parent.name):
                return commit
    return None
