"""Where rows come from: the config, manifest and commit that a model was trained or scored on, on the Hub or not.

`temporalwiki publish` lists a dataset folder's months that are on the Hub in ``published.json``, so that a model that
was trained on the folder can name the dataset on the Hub.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import httpx2
import msgspec
from huggingface_hub import HfApi
from huggingface_hub.errors import HfHubHTTPError

from temporalwiki.base.files import read_small, sweep
from temporalwiki.base.json_files import read_json, write_json
from temporalwiki.builders.configs import SCHEMAS, names
from temporalwiki.builders.manifests import (
    AnyManifest,
    Digest,
    Language,
    Manifest,
    decode,
    find_config,
    read_manifests,
)
from temporalwiki.builders.snapshot import Interval

if TYPE_CHECKING:
    import datasets

RepoId = Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9._-]+)?\Z", max_length=200)]
Commit = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{40}\Z")]
Tag = Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z0-9][A-Za-z0-9._-]*\Z", max_length=200)]

PUBLISHED = "published.json"
_COMMIT = re.compile(r"[0-9a-f]{40}")
_INTERVAL = re.compile(r"(\d{8})-(\d{8})")


class DataSource(msgspec.Struct, frozen=True, omit_defaults=True):
    """A config that a model was trained or scored on, so that its rows can be found again."""

    config: str  # the full name, if it is known
    manifest_sha256: Digest | None = None  # ``Manifest.sha256``
    repository: RepoId | None = None  # on the Hub; None for a folder that is not known to be published
    commit: Commit | None = None
    tag: Tag | None = None
    language: Language | None = None  # of its rows; None if it is English, or if the manifest is not known

    @property
    def id(self) -> str | None:
        """The repository with its tag or commit (``ORG/NAME@2021.12``), or None if it is not on the Hub."""
        at = self.tag or self.commit
        return f"{self.repository}@{at}" if self.repository and at else None


class PublishedPlace(msgspec.Struct, frozen=True):
    """The revision that has a published month."""

    repository: RepoId
    commit: Commit
    tag: Tag | None  # of a month
    manifest_sha256: Digest


def on_hub(folder: Path, source: DataSource) -> DataSource:
    """Return the source with the place of its published copy, if the folder knows one with the same manifest."""
    for place in read_published(folder).values():
        if place.manifest_sha256 == source.manifest_sha256:
            return msgspec.structs.replace(source, repository=place.repository, commit=place.commit, tag=place.tag)
    return source


def read_published(folder: Path) -> dict[str, PublishedPlace]:
    """Return the places of a folder's published months, by interval. Raises InputError for a damaged file."""
    path = folder / PUBLISHED
    if not path.is_file():
        return {}
    return read_json(path, dict[str, PublishedPlace], "the list of published months; remove it and publish again")


def record_published(
    folder: Path, repository: str, published: Iterable[Manifest], commit_of: Callable[[Manifest], str]
) -> None:
    """Add the places of published manifests to the folder's list, if the folder has the same manifests."""
    here, known = {manifest.name: manifest.sha256 for manifest in read_manifests(folder)}, read_published(folder)
    places = {
        manifest.name: PublishedPlace(repository, commit_of(manifest), manifest.content.get("tag"), manifest.sha256)
        for manifest in published
        if here.get(manifest.name) == manifest.sha256
    }
    sweep(folder, f".{PUBLISHED}.*.part")  # of a killed publisher
    if known | places != known:
        write_json(folder / PUBLISHED, msgspec.to_builtins(known | places))


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


def find_on_hub(repository: str, config: str, revision: str) -> tuple[str, AnyManifest] | None:
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


def _other_than_english(manifest: AnyManifest) -> str | None:
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
