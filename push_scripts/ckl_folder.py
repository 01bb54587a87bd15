"""Publish CKL's dataset folder: all its configs in one commit, beside those that the repository has from elsewhere."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path

from temporalwiki.base.errors import InputError
from temporalwiki.builders.ckl.manifest import check_ckl_manifest
from temporalwiki.builders.dataset_folder import Manifest, is_ckl, manifest_path
from temporalwiki.push_scripts.dataset_folder import as_text, files_of, manifests_there, not_ours, stale
from temporalwiki.push_scripts.revision import Content, Head, Revision, publish

_NAMED = 3  # configs in a commit's message, which is one line


def publish_ckl(
    folder: Path,
    manifests: list[Manifest],
    repo_id: str,
    tag: str | None,
    accept_noncommercial: bool,
    dry_run: bool,
) -> Iterator[str]:
    """Publish the configs of a CKL folder that the repository lacks or has otherwise; yield what is done.

    It is one commit, with a ``tag`` where one is given. Configs that only the repository has stay as they are.

    Raises InputError, before anything is sent, where files are not what their manifest says, where the repository
    holds something else or a config of that name of another wiki, and where a licence forbids commercial use, as
    LAMA's does, unless that is accepted with ``accept_noncommercial``; and what ``publish`` raises.
    """
    for manifest in manifests:
        check_ckl_manifest(manifest, str(folder / manifest_path(manifest)))
    bound = [manifest["config"] for manifest in manifests if any("-nc" in one for one in manifest["licences"])]
    if bound and not accept_noncommercial:
        raise InputError(
            f"{folder}: not for commercial use by licence: {', '.join(bound)}; publish with --accept-noncommercial, "
            "or from a folder without them"
        )
    yield from publish(repo_id, "dataset", functools.partial(_plan, folder, manifests, tag), dry_run=dry_run)


def _plan(folder: Path, manifests: list[Manifest], tag: str | None, head: Head) -> list[Revision]:
    # imported here: the card needs `datasets` for its feature types, which costs seconds
    from temporalwiki.model_cards.ckl_dataset import ckl_card

    there = {manifest["config"]: manifest for manifest in ckl_published(head)}
    mine = {manifest["config"]: manifest for manifest in manifests}
    for name in sorted(mine.keys() & there.keys()):
        wiki, other = (of["options"].get("wiki") for of in (mine[name], there[name]))
        if wiki != other:
            raise InputError(
                f"datasets/{head.repo_id}: has {name} of {other or 'no wiki'}, and this one is of "
                f"{wiki or 'no wiki'}; name another repository"
            )
    files: dict[str, Content] = {}
    for manifest in manifests:
        files |= files_of(folder, manifest, "make it again with `temporalwiki ckl`")
        files[manifest_path(manifest)] = as_text(manifest)
    ours = {name for manifest in [*there.values(), *manifests] for name in _names(manifest)}
    kept = not_ours(head.read("README.md"), ours.__contains__)
    files["README.md"] = ckl_card(list((there | mine).values()), head.repo_id, kept).encode()
    return [Revision(_message(mine, there), files, stale(head, manifests, files), tag=tag)]


def ckl_published(head: Head) -> list[Manifest]:
    """Return the manifests that a repository holds. Raises InputError where one is not of CKL."""
    manifests = []
    for where, path, manifest in manifests_there(head):
        if not isinstance(manifest, dict) or not is_ckl(manifest):
            raise InputError(f"{where}: not of CKL, which has a repository of its own; name another one")
        check_ckl_manifest(manifest, where)
        if path != manifest_path(manifest):
            raise InputError(f"{where}: not a manifest that `temporalwiki publish` wrote: its place is wrong")
        manifests.append(manifest)
    return manifests


def _names(manifest: Manifest) -> set[str]:
    return {manifest["config"], manifest["configs"][manifest["config"]]["short_name"]} - {None}


def _message(mine: dict[str, Manifest], there: dict[str, Manifest]) -> str:
    added = sorted(mine.keys() - there.keys())
    changed = sorted(name for name in mine.keys() & there.keys() if mine[name] != there[name])
    said = [f"{verb} {_listed(names)}" for verb, names in (("add", added), ("replace", changed)) if names]
    return f"CKL: {'; '.join(said) or 'the card anew'}"


def _listed(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= _NAMED else f"{len(names)} configs, {names[0]} to {names[-1]}"
