"""Publish CKL's dataset folder: all its configs in one commit, next to the configs that only the repository has."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from temporalwiki.base.errors import InputError
from temporalwiki.builders.manifests import CklManifest, Manifest
from temporalwiki.builders.published import record_published
from temporalwiki.model_cards.edits import keep_edits
from temporalwiki.push_scripts.dataset_repository import (
    damage,
    files_of,
    maintainers_settings,
    manifests_of,
    replaced_files,
    to_json,
)
from temporalwiki.push_scripts.repository_state import Content, Head, Revision
from temporalwiki.push_scripts.revision import publish

_LISTED = 3  # configs in a commit's message, which is one line


def publish_ckl(
    folder: Path,
    manifests: Sequence[CklManifest],
    repo_id: str,
    tag: str | None,
    accept_noncommercial: bool,
    dry_run: bool,
) -> Iterator[str]:
    """Publish the configs of a CKL folder that are new or differ in the repository, and yield a line for each step.

    All of them go into one commit, which gets the ``tag`` if there is one. Configs that only the repository has stay.
    A config without rows, which `datasets` cannot load, is left out. Files of the folder's configs that are
    damaged on the Hub are put back.

    Raises InputError, before anything is sent, if a file does not match its manifest, if the repository is not of CKL
    or has a config of the same name from another wiki, or if a licence forbids commercial use, as LAMA's does, and
    ``accept_noncommercial`` is not set. Raises it at the end if files of other configs are damaged on the Hub. Raises
    what ``publish`` raises.
    """
    restricted = [manifest.config for manifest in manifests if any("-nc" in licence for licence in manifest.licences)]
    if restricted and not accept_noncommercial:
        raise InputError(
            f"{folder}: licences forbid commercial use: {', '.join(restricted)}; publish with --accept-noncommercial, "
            "or from a folder without these configs"
        )
    for manifest in manifests:
        if not has_rows(manifest):
            yield f"{manifest.config}: none of {manifest.counts.read:,} rows was kept, so it is not published"
    manifests = [manifest for manifest in manifests if has_rows(manifest)]
    if not manifests:
        return
    heads: list[Head] = []

    def plan(head: Head) -> list[Revision]:
        heads[:] = [head]
        return _plan(folder, manifests, tag, head)

    yield from publish(repo_id, "dataset", plan, dry_run=dry_run)
    if not dry_run:
        record_published(folder, repo_id, published_ckl(heads[0]), lambda _config: str(heads[0].commit))
    if said := damage(heads[0], published_ckl(heads[0]), folder):
        raise InputError(f"datasets/{repo_id}: {said}, which lacks these files")


def _plan(folder: Path, manifests: Sequence[CklManifest], tag: str | None, head: Head) -> list[Revision]:
    # imported here: importing huggingface_hub takes a second
    from temporalwiki.model_cards import croissant
    from temporalwiki.model_cards.ckl_dataset import ckl_card

    published = {manifest.config: manifest for manifest in published_ckl(head)}
    new = {manifest.config: manifest for manifest in manifests}
    for name in sorted(new.keys() & published.keys()):
        wiki, other = (of[name].options.get("wiki") for of in (new, published))
        if wiki != other:
            raise InputError(
                f"datasets/{head.repo_id}: its {name} is from {other or 'no wiki'}, but that of {folder} is from "
                f"{wiki or 'no wiki'}; choose another repository"
            )
    files: dict[str, Content] = {}
    for manifest in manifests:
        files |= files_of(folder, manifest, "make it again with `temporalwiki ckl`")
        files[manifest.path] = to_json(manifest.content)
    configs = [(name, config) for one in (*published.values(), *manifests) for name, config in one.configs.items()]
    names = {either for name, config in configs for either in (name, config.short_name)}
    card = head.read("README.md")
    settings = maintainers_settings(card, names.__contains__)
    together = list((published | new).values())
    files["README.md"] = keep_edits(ckl_card(together, head.repo_id, settings), card).encode()
    files[croissant.PATH] = croissant.ckl_croissant(together, head.repo_id, tag or "main")
    return [Revision(_message(new, published), files, replaced_files(head, manifests, files), tag=tag)]


def has_rows(manifest: Manifest) -> bool:
    """Return whether any split of a manifest has a row."""
    return any(split.num_examples for config in manifest.configs.values() for split in config.splits.values())


def published_ckl(head: Head) -> list[CklManifest]:
    """Return the manifests of a CKL repository. Raises InputError if it holds anything else."""
    manifests = []
    for manifest in manifests_of(head):
        if not isinstance(manifest, CklManifest):
            raise InputError(
                f"datasets/{head.repo_id}: {manifest.path}: not of CKL; CKL needs its own repository, choose another"
            )
        manifests.append(manifest)
    return manifests


def _message(new: dict[str, CklManifest], published: dict[str, CklManifest]) -> str:
    added = sorted(new.keys() - published.keys())
    changed = sorted(name for name in new.keys() & published.keys() if new[name] != published[name])
    parts = [f"{verb} {_listed(names)}" for verb, names in (("add", added), ("replace", changed)) if names]
    return f"CKL: {'; '.join(parts) or 'update the card'}"


def _listed(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= _LISTED else f"{len(names)} configs, {names[0]} to {names[-1]}"
