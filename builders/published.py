"""The list of a dataset folder's months that are on the Hub: ``published.json``.

`temporalwiki publish` writes it, so that a model that was trained on the folder can name the dataset on the Hub.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from temporalwiki.base.files import sweep
from temporalwiki.base.json_files import read_json, write_json
from temporalwiki.builders.manifests import Commit, DataSource, Digest, Manifest, RepoId, Tag, read_manifests

PUBLISHED = "published.json"


class Place(msgspec.Struct, frozen=True):
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


def read_published(folder: Path) -> dict[str, Place]:
    """Return the places of a folder's published months, by interval. Raises InputError for a damaged file."""
    path = folder / PUBLISHED
    if not path.is_file():
        return {}
    return read_json(path, dict[str, Place], "the list of published months; remove it and publish again")


def record_published(
    folder: Path, repository: str, published: Iterable[Manifest], commit_of: Callable[[Manifest], str]
) -> None:
    """Add the places of published manifests to the folder's list, if the folder has the same manifests."""
    here, known = {manifest.name: manifest.sha256 for manifest in read_manifests(folder)}, read_published(folder)
    places = {
        manifest.name: Place(repository, commit_of(manifest), manifest.content.get("tag"), manifest.sha256)
        for manifest in published
        if here.get(manifest.name) == manifest.sha256
    }
    sweep(folder, f".{PUBLISHED}.*.part")  # of a killed publisher
    if known | places != known:
        write_json(folder / PUBLISHED, msgspec.to_builtins(known | places))
