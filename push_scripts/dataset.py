"""Publish a dataset folder: one revision a month, each with a tag, earlier months kept."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.builders.dataset_folder import (
    SCHEMAS,
    Manifest,
    age,
    check_manifest,
    interval_name,
    is_ckl,
    manifest_path,
    read_manifests,
)
from temporalwiki.push_scripts.ckl_folder import publish_ckl
from temporalwiki.push_scripts.count_changes import jumps
from temporalwiki.push_scripts.dataset_folder import as_text, files_of, manifests_there, not_ours, stale
from temporalwiki.push_scripts.revision import Content, Head, Revision, publish

_CONFIG = re.compile(rf"({'|'.join(SCHEMAS)})-\d+(-\d+)?")  # the names that are ours


def publish_dataset(
    folder: Path,
    repo_id: str,
    *,
    tag: str | None = None,
    accept_jump: bool = False,
    replace: bool = False,
    accept_noncommercial: bool = False,
    interval: str | None = None,
    dry_run: bool = False,
) -> Iterator[str]:
    """Publish the intervals of a dataset folder that the repository does not hold, oldest first; yield what is done.

    A folder of CKL goes as ``publish_ckl`` says. Each interval is one commit that adds its files to those of earlier
    months, with a tag: the month of its later snapshot, ``2021.12``, or ``tag`` where there is one interval to
    publish. What is published already is left as it is, but that with ``replace`` an interval that has other bytes
    there is published in its place, under a ``tag`` of its own; the earlier tag keeps the earlier bytes. ``interval``
    names the one interval of the folder that counts.

    Raises InputError, before anything is sent, where files are not what their manifest says, a month is published with
    other bytes, counts jump against the month before (unless ``accept_jump``), or rows were imported from an archive,
    which has no licence; UsageError for options that are not of this kind of folder; and what ``publish`` raises.
    """
    if replace and tag is None:
        raise UsageError("--replace needs --tag: the tag of what is replaced keeps its meaning")
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder")
    manifests = read_manifests(folder)
    of_ckl = any(map(is_ckl, manifests))
    if not of_ckl:
        manifests = [one for one in manifests if interval in (None, interval_name(one))]
    if not manifests:
        raise InputError(f"{folder}: no manifests in it, so it is no dataset folder")
    if imported := [manifest_path(one) for one in manifests if one.get("imported")]:
        raise InputError(
            f"{folder}: imported from archives that have no licence, so never published: {', '.join(imported)}"
        )
    if of_ckl:
        if replace or accept_jump or interval is not None:
            raise UsageError("--replace and --accept-jump are of months; CKL's configs are replaced as they are")
        yield from publish_ckl(folder, manifests, repo_id, tag, accept_noncommercial, dry_run)
        return
    if accept_noncommercial:
        raise UsageError("--accept-noncommercial is of CKL; nothing in a folder of months needs it")
    for manifest in manifests:
        check_manifest(manifest, str(folder / manifest_path(manifest)))
    plan = functools.partial(_plan, folder, manifests, tag, accept_jump, replace)
    yield from publish(repo_id, "dataset", plan, dry_run=dry_run)


def month_tag(manifest: Manifest, there: Sequence[Manifest] = ()) -> str:
    """Return the tag of an interval: year and month of its later snapshot, ``2021.12``.

    Where another interval that is ``there`` has this one, it is the day, ``2021.12.20``, or both days.
    """
    interval, taken = manifest["interval"], {other["tag"] for other in there}
    recent = interval["recent"]
    names = (f"{recent[:4]}.{recent[4:6]}", f"{recent[:4]}.{recent[4:6]}.{recent[6:]}", f"{interval['prev']}-{recent}")
    return next(name for name in names if name not in taken)


def published(head: Head) -> list[Manifest]:
    """Return the manifests that a repository holds, oldest interval first; each names its ``tag``.

    Raises InputError for one that is none.
    """
    manifests = []
    for where, path, manifest in manifests_there(head):
        if isinstance(manifest, dict) and is_ckl(manifest):
            raise InputError(f"{where}: of CKL, which has a repository of its own; name another one")
        check_manifest(manifest, where)
        if path != manifest_path(manifest) or not isinstance(manifest.get("tag"), str):
            raise InputError(
                f"{where}: not a manifest that `temporalwiki publish` wrote: its place or its tag is wrong"
            )
        manifests.append(manifest)
    return sorted(manifests, key=age)


def _plan(
    folder: Path, manifests: list[Manifest], tag: str | None, accept_jump: bool, replace: bool, head: Head
) -> list[Revision]:
    """Return the tags that are missing and the next interval that is."""
    there = published(head)
    if replace:
        mine = {age(manifest): _contents(manifest) for manifest in manifests}
        there = [other for other in there if mine.get(age(other), _contents(other)) == _contents(other)]
    by_age = {age(manifest): manifest for manifest in there}
    wikis = {m["interval"]["wiki"] for m in [*there, *manifests]}
    if len(wikis) > 1:
        raise InputError(f"datasets/{head.repo_id}: a repository is of one wiki, here meet {', '.join(sorted(wikis))}")
    for manifest in manifests:
        _check_same(head, manifest, there)
    # of a publisher that was killed before it could tag
    healed = [_tagged(head, manifest) for manifest in there if manifest["tag"] not in head.tags]
    new = [manifest for manifest in manifests if age(manifest) not in by_age]
    if tag is not None:
        _check_tag(head, tag, manifests, new, by_age)
    if not new:
        return healed
    return [*healed, _revision(folder, new[0], there, tag, accept_jump, head)]


def _check_same(head: Head, manifest: Manifest, there: list[Manifest]) -> None:
    """Refuse configs that are published with other bytes."""
    for other in there:
        for name in sorted(manifest["configs"].keys() & other["configs"].keys()):
            mine, theirs = manifest["configs"][name], other["configs"][name]
            if _content(mine) != _content(theirs):
                raise InputError(
                    f"datasets/{head.repo_id}: {name} is published already (tag {other['tag']}) with other bytes, and "
                    "what is published never changes; to mend it, --replace it under another --tag"
                )
        if age(other) == age(manifest) and manifest["configs"].keys() != other["configs"].keys():
            changed = ", ".join(sorted(manifest["configs"].keys() ^ other["configs"].keys()))
            raise InputError(
                f"datasets/{head.repo_id}: {interval_name(manifest)} is published already (tag {other['tag']}) with "
                f"other configs ({changed} differ); build it with the same --include"
            )


def _check_tag(
    head: Head, tag: str, manifests: list[Manifest], new: list[Manifest], by_age: Mapping[Any, Manifest]
) -> None:
    """``--tag`` names one interval: the one that is to be published, or one that is."""
    if len(new) > 1:
        names = ", ".join(map(interval_name, new))
        raise UsageError(f"--tag {tag}: there are {len(new)} intervals to publish ({names}); each gets its own tag")
    theirs = [by_age[age(manifest)]["tag"] for manifest in manifests if age(manifest) in by_age]
    if not new and tag not in theirs:
        raise InputError(f"datasets/{head.repo_id}: this is published already, as {', '.join(theirs)}, not as {tag}")


def _content(config: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What a config's files are: path and SHA-256."""
    return sorted((f["path"], f["sha256"]) for split in config["splits"].values() for f in split["files"])


def _contents(manifest: Manifest) -> list[list[tuple[str, str]]]:
    return [_content(config) for _, config in sorted(manifest["configs"].items())]


def _tagged(head: Head, manifest: Manifest) -> Revision:
    """Return the revision of an interval that is there, for its tag alone."""
    path = manifest_path(manifest)
    return Revision(_message(manifest, manifest["tag"]), {}, tag=manifest["tag"], mark=path)


def _revision(
    folder: Path, manifest: Manifest, there: list[Manifest], tag: str | None, accept_jump: bool, head: Head
) -> Revision:
    # imported here: the card needs `datasets` for its feature types, which costs seconds
    from temporalwiki.model_cards.dataset import dataset_card
    from temporalwiki.model_cards.eval_yaml import eval_yaml

    tag = tag or month_tag(manifest, there)
    if taken := next((m for m in there if m["tag"] == tag), None):
        raise InputError(
            f"datasets/{head.repo_id}: the tag {tag} is that of {interval_name(taken)}; name another with --tag"
        )
    before = [m for m in there if age(m) < age(manifest)]
    if before and not accept_jump and (found := jumps(manifest, before[-1])):
        raise InputError(
            f"{folder}: counts jump: {'; '.join(found)}; look into it, and publish with --accept-jump if it is right"
        )
    # how long a build took differs from one to the next; what is published does not
    mine = {key: value for key, value in manifest.items() if key != "run"} | {"tag": tag}
    manifests = sorted([*there, mine], key=age)
    kept = not_ours(head.read("README.md"), _CONFIG.fullmatch)
    files: dict[str, Content] = {
        **files_of(folder, manifest, "`temporalwiki build` its interval again"),
        manifest_path(manifest): as_text(mine),
        "README.md": dataset_card(manifests, head.repo_id, kept).encode(),
    }
    if benchmark := eval_yaml(manifests):
        files["eval.yaml"] = benchmark.encode()
    return Revision(
        _message(manifest, tag), files, stale(head, [manifest], files), tag=tag, mark=manifest_path(manifest)
    )


def _message(manifest: Manifest, tag: str) -> str:
    interval = manifest["interval"]
    return f"{tag}: {interval['wiki']} {interval['prev']} to {interval['recent']}"
