"""Publish a dataset folder: one revision with a tag for each month, next to the earlier months."""

import dataclasses
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.base.files import leads_out, read_small
from temporalwiki.builders.dataset_folder import SEALS
from temporalwiki.builders.manifests import (
    BuiltManifest,
    CklManifest,
    ImportedManifest,
    Manifest,
    not_a_dataset,
    read_manifests,
)
from temporalwiki.builders.published import record_published
from temporalwiki.builders.snapshot import Interval
from temporalwiki.model_cards.edits import keep_edits
from temporalwiki.push_scripts.ckl_dataset import publish_ckl
from temporalwiki.push_scripts.count_changes import large_changes
from temporalwiki.push_scripts.dataset_repository import (
    OF_INTERVAL,
    damage,
    damaged,
    files_of,
    maintainers_settings,
    manifests_of,
    replaced_files,
    to_json,
)
from temporalwiki.push_scripts.repository_state import Content, Head, Revision
from temporalwiki.push_scripts.revision import publish


def publish_dataset(
    folder: Path,
    repo_id: str,
    *,
    tag: str | None = None,
    accept_jump: bool = False,
    replace: bool = False,
    mend: bool = False,
    accept_noncommercial: bool = False,
    interval: str | None = None,
    dry_run: bool = False,
) -> Iterator[str]:
    """Publish the intervals of a dataset folder that the repository lacks, oldest first; yield a line for each step.

    Each interval is one commit that adds its files to the earlier months. Its tag is the month of its later
    snapshot, ``2021.12``, or ``tag`` if only one interval is new. Published intervals stay as they are. With
    ``replace``, an interval that differs from the published one replaces it on main and gets the new ``tag``; the
    earlier tag keeps the earlier bytes. With ``mend``, a commit without a tag first puts back files that main has lost
    or that changed there. With ``interval``, only that interval is published. A CKL folder goes to ``publish_ckl``. At
    the end, ``published.json`` in the folder names the revisions, for models trained on it.

    Raises InputError, before anything is sent, if a file does not match its manifest (for published months see
    ``check_copies``), a file on main is damaged (with ``mend``: and missing in the folder), a month is published with
    other bytes, counts changed too much since the month before (unless ``accept_jump``), or rows are from an archive
    without a licence. Raises UsageError for options that do not fit the folder, and what ``publish`` raises.
    """
    if replace and tag is None:
        raise UsageError("--replace needs --tag, because the tag of the replaced interval keeps its meaning")
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder")
    manifests = read_manifests(folder)
    if links := [one.path for one in manifests if leads_out(folder / one.path, folder)]:
        raise InputError(f"{folder}: {links[0]}: is a link out of the folder; publish a copy without links")
    if imported := [one.path for one in manifests if one.imported and interval in (None, one.name)]:
        raise InputError(
            f"{folder}: imported from archives without a licence, so never published: {', '.join(imported)}"
        )
    if of_ckl := [manifest for manifest in manifests if isinstance(manifest, CklManifest)]:
        if replace or accept_jump or interval is not None:
            raise UsageError(
                "--replace and --accept-jump are for months; a new CKL config always replaces the old one"
            )
        yield from publish_ckl(folder, of_ckl, repo_id, tag, accept_noncommercial, dry_run)
        return
    months = [one for one in manifests if isinstance(one, BuiltManifest) and interval in (None, one.name)]
    if not months:
        raise InputError(not_a_dataset(folder))
    if accept_noncommercial:
        raise UsageError("--accept-noncommercial is for CKL; a folder of months does not need it")
    heads: list[Head] = []

    def plan(head: Head) -> list[Revision]:
        if not heads:
            check_copies(folder, head, months)
        heads[:] = [head]
        return _plan(folder, months, tag, accept_jump, replace, mend, head)

    yield from publish(repo_id, "dataset", plan, dry_run=dry_run)
    if not dry_run:
        remember_published(folder, heads[0])


def remember_published(folder: Path, head: Head) -> None:
    """Write to the folder's ``published.json`` the revision of each of its months that the repository has."""
    months = [month for month in published_months(head) if month.tag in head.tags]
    record_published(folder, head.repo_id, months, lambda month: head.tags[month.content["tag"]])


def check_copies(folder: Path, head: Head, months: Sequence[Manifest]) -> None:
    """Raise InputError if a file of a published month in the folder is damaged. A month without any files is deleted.

    ``months`` are the folder's manifests to look at.
    """
    published = {month.sha256: month for month in published_months(head)}
    for month in months:
        twin = published.get(month.sha256)
        if twin is not None and any((folder / file.path).exists() for file in month.files):
            files_of(folder, month, f"`{_fetch(head, twin, folder)}` fetches the published copy")


def month_tag(interval: Interval, published: Sequence[BuiltManifest] = ()) -> str:
    """Return the tag of an interval: year and month of its later snapshot, ``2021.12``.

    If a published interval has this tag already, it is the day, ``2021.12.20``, or else the name of the interval.
    """
    taken, recent = {manifest.tag for manifest in published}, interval.recent
    month = f"{recent[:4]}.{recent[4:6]}"
    return next(tag for tag in (month, f"{month}.{recent[6:]}", interval.name) if tag not in taken)


def published_months(head: Head) -> list[BuiltManifest]:
    """Return the manifests of a repository, oldest interval first; each names its ``tag``.

    Raises InputError if the repository holds anything but months that `temporalwiki publish` wrote.
    """
    months = []
    for manifest in manifests_of(head):
        where = f"datasets/{head.repo_id}: {manifest.path}"
        if isinstance(manifest, CklManifest):
            raise InputError(f"{where}: of CKL, but months need their own repository; choose another")
        if isinstance(manifest, ImportedManifest) or manifest.tag is None:
            raise InputError(f"{where}: `temporalwiki publish` did not write this manifest: it has no tag")
        months.append(manifest)
    return months


def _plan(
    folder: Path,
    manifests: Sequence[BuiltManifest],
    tag: str | None,
    accept_jump: bool,
    replace: bool,
    mend: bool,
    head: Head,
) -> list[Revision]:
    """Return a revision for each missing tag, and then the next interval that is not published."""
    published = published_months(head)
    if said := damage(head, published, folder):
        if not mend:
            raise InputError(f"datasets/{head.repo_id}: {said}")
        return [_mended(folder, manifests, published, head)]
    if replace:
        here = {manifest.age: manifest for manifest in manifests}
        published = [one for one in published if _files(here.get(one.age, one)) == _files(one)]
    by_age = {manifest.age: manifest for manifest in published}
    wikis = {manifest.interval.wiki for manifest in (*published, *manifests)}
    if len(wikis) > 1:
        raise InputError(f"datasets/{head.repo_id}: a repository has one wiki, not {' and '.join(sorted(wikis))}")
    for manifest in manifests:
        _check_unchanged(head, manifest, published)
    # a publisher may have been killed between its commit and its tag
    untagged = [
        Revision(_message(manifest, str(manifest.tag)), {}, tag=manifest.tag, mark=manifest.path)
        for manifest in published
        if manifest.tag not in head.tags
    ]
    new = [manifest for manifest in manifests if manifest.age not in by_age]
    if tag is not None:
        _check_tag(head, tag, new, [str(by_age[one.age].tag) for one in manifests if one.age in by_age])
    seals = _seals(folder, head)
    if not new:
        return [*untagged, *([Revision(f"Seal {', '.join(path[6:-5] for path in seals)}", seals)] if seals else [])]
    month = _revision(folder, new[0], published, tag, accept_jump, head)
    return [*untagged, dataclasses.replace(month, files={**month.files, **seals})]


def _mended(
    folder: Path, manifests: Sequence[BuiltManifest], published: Sequence[BuiltManifest], head: Head
) -> Revision:
    """Return the revision that puts back damaged files. Raises InputError if the folder lacks one."""
    found = damaged(head, published)
    files: dict[str, Content] = {}
    for month in manifests:  # if the Hub has lost a month's manifest, no manifest lists its files
        tag, others = month_tag(month.interval), [one for one in published if one.age != month.age]
        wrong = damaged(head, [*others, month])
        lost = len(others) == len(published) and tag in head.tags
        if lost and not any(file.path in wrong for file in month.files):
            files[month.path] = to_json(_published(month, tag))
            published = sorted([*published, month], key=lambda one: one.age)
    wanted = {file.path: (month, file) for month in published for file in month.files}
    for path in found:
        if path in wanted:
            month, file = wanted[path]
            if problem := file.problem(folder):
                raise InputError(f"{folder}: {path}: {problem}; `{_fetch(head, month, folder)}` fetches it")
            files[path] = folder / path
    if "README.md" in found:
        files["README.md"] = _card(folder, published, head)
    remove = tuple(path for path in found if path not in wanted and path != "README.md")
    return Revision(f"Mend {len(found)} damaged file{'s' if len(found) > 1 else ''}", files, remove)


def _fetch(head: Head, month: BuiltManifest, folder: Path) -> str:
    """Return the command that fetches the published data of a month."""
    again = ["hf", "download", head.repo_id, "--repo-type", "dataset", "--revision", str(month.tag)]
    return shlex.join([*again, "--include", f"data/*{month.interval.recent}/*", "--local-dir", str(folder)])


def _seals(folder: Path, head: Head) -> dict[str, Content]:
    """Return the seals that the repository lacks. Raises InputError if it has another one of a month."""
    found: dict[str, Content] = {}
    for file in sorted((folder / SEALS).glob("*.json")):
        if leads_out(file, folder):
            raise InputError(f"{file}: is a link out of the folder; publish a copy without links")
        path, content = f"{SEALS}/{file.name}", read_small(file)
        there = head.read(path)
        if there is None:
            found[path] = content
        elif there != content:
            raise InputError(f"datasets/{head.repo_id}: has another {path}, and a published seal never changes")
    return found


def _files(manifest: BuiltManifest) -> dict[str, list[tuple[str, str]]]:
    """Return the path and SHA-256 of each file, by config."""
    return {
        name: sorted((file.path, file.sha256) for split in config.splits.values() for file in split.files)
        for name, config in manifest.configs.items()
    }


def _check_unchanged(head: Head, manifest: BuiltManifest, published: Sequence[BuiltManifest]) -> None:
    """Raise InputError if the Hub already has a config with other bytes, or the interval with other configs."""
    files = _files(manifest)
    for other in published:
        for name, theirs in sorted(_files(other).items()):
            if files.get(name, theirs) != theirs:
                raise InputError(
                    f"datasets/{head.repo_id}: {name} is published already (tag {other.tag}) with other bytes, and "
                    "published data never change; to correct it, use --replace and another --tag"
                )
        if other.age == manifest.age and manifest.configs.keys() != other.configs.keys():
            changed = ", ".join(sorted(manifest.configs.keys() ^ other.configs.keys()))
            raise InputError(
                f"datasets/{head.repo_id}: {manifest.name} is published already (tag {other.tag}) with other configs "
                f"({changed} differ); build it with the same --include"
            )


def _check_tag(head: Head, tag: str, new: Sequence[BuiltManifest], tags: Sequence[str]) -> None:
    """Raise an error unless ``tag`` can name the one new interval, or is among the ``tags`` of those published."""
    if len(new) > 1:
        names = ", ".join(manifest.name for manifest in new)
        raise UsageError(f"--tag {tag}: there are {len(new)} intervals to publish ({names}); each gets its own tag")
    if not new and tag not in tags:
        raise InputError(f"datasets/{head.repo_id}: this is published already, as {', '.join(tags)}, not as {tag}")


def _revision(
    folder: Path,
    manifest: BuiltManifest,
    published: Sequence[BuiltManifest],
    tag: str | None,
    accept_jump: bool,
    head: Head,
) -> Revision:
    # imported here: importing huggingface_hub takes a second
    from temporalwiki.model_cards import croissant
    from temporalwiki.model_cards.eval_yaml import eval_yaml

    tag = tag or month_tag(manifest.interval, published)
    if taken := next((one for one in published if one.tag == tag), None):
        raise InputError(
            f"datasets/{head.repo_id}: the tag {tag} belongs to {taken.name}; choose another one with --tag"
        )
    earlier = [one for one in published if one.age < manifest.age]
    if earlier and not accept_jump and (found := large_changes(manifest, earlier[-1])):
        raise InputError(
            f"{folder}: counts jump: {'; '.join(found)}; find out why, and publish with --accept-jump if they are true"
        )
    months = sorted([*published, msgspec.structs.replace(manifest, tag=tag)], key=lambda one: one.age)
    data = files_of(folder, manifest, "`temporalwiki build` its interval again")
    files: dict[str, Content] = {
        **data,
        manifest.path: to_json(_published(manifest, tag)),
        "README.md": _card(folder, months, head),
        croissant.PATH: croissant.dataset_croissant(months, head.repo_id, tag),
    }
    if benchmark := eval_yaml(months):
        files["eval.yaml"] = benchmark.encode()
    remove = replaced_files(head, [manifest], files)
    return Revision(_message(manifest, tag), files, remove, tag=tag, mark=manifest.path)


def _published(manifest: BuiltManifest, tag: str) -> dict[str, Any]:
    """Return the content of a published manifest: without "run", which differs between two builds of the same data."""
    return {key: value for key, value in manifest.content.items() if key != "run"} | {"tag": tag}


def _card(folder: Path, months: Sequence[BuiltManifest], head: Head) -> bytes:
    """Return the card of the dataset; it shows rows of the newest month if the folder has them."""
    # imported here: importing huggingface_hub takes a second
    from temporalwiki.model_cards.dataset import dataset_card
    from temporalwiki.model_cards.dataset_rows import rows_section
    from temporalwiki.push_scripts.token_count import token_sentence

    card, newest = head.read("README.md"), months[-1]
    here = not any(file.problem(folder) for file in newest.files)
    rows, tokens = (rows_section(folder, newest), token_sentence(folder, newest)) if here else ("", "")
    settings = maintainers_settings(card, OF_INTERVAL.fullmatch)
    return keep_edits(dataset_card(months, head.repo_id, settings, rows, tokens), card).encode()


def _message(manifest: BuiltManifest, tag: str) -> str:
    interval = manifest.interval
    return f"{tag}: {interval.wiki} {interval.prev} to {interval.recent}"
