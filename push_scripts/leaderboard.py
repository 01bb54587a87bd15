"""A leaderboard's folder as a static Space of the Hub."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from temporalwiki.base.errors import InputError
from temporalwiki.eval_harness.leaderboard.page import without_results
from temporalwiki.eval_harness.leaderboard.rows import read_parquet
from temporalwiki.push_scripts.revision import Content, Head, Revision, publish

_PAGE, _ROWS = "index.html", "results.parquet"
_NEEDED = (_PAGE, _ROWS, "README.md")
_SHOWN = re.compile(r"(?:figures/[a-z0-9_]+\.(?:png|svg)|tables/[a-z0-9_]+\.(?:md|csv))")
_LINKED = re.compile(rf'(?:href|src|data-png)="\./({_SHOWN.pattern})"')
_OF_A_NEW_SPACE = {".gitattributes", "README.md", _PAGE, "style.css"}


def publish_leaderboard(path: Path, repo_id: str, *, tag: str | None = None, dry_run: bool = False) -> Iterator[str]:
    """Publish the leaderboard in the folder ``path`` as the Space ``repo_id`` and yield lines that say what is done.

    Raises InputError, before anything is sent, for what ``leaderboard_revision`` refuses, a Space of something else,
    and what ``publish`` raises.
    """
    revision = leaderboard_revision(path, tag)
    yield from publish(
        repo_id, "space", lambda head: [_on_top_of(head, revision)], dry_run=dry_run, space_sdk="static"
    )


def leaderboard_revision(folder: Path, tag: str | None = None) -> Revision:
    """Return what the Space is to hold: what ``temporalwiki leaderboard`` wrote, and nothing else of the folder.

    The page is sent without its links to result files, which stay on this machine. Raises InputError where the folder
    is no leaderboard or lacks a file that its page shows.
    """
    for name in _NEEDED:
        if not (folder / name).is_file():
            raise InputError(
                f"{folder}: no {name} in it; name a folder that `temporalwiki leaderboard RESULTS --out FOLDER` wrote"
            )
    rows = read_parquet(folder / _ROWS)
    page = without_results((folder / _PAGE).read_bytes().decode("utf-8", "replace"))
    files: dict[str, Content] = {name: folder / name for name in _NEEDED} | {_PAGE: page.encode()}
    for path in sorted(set(_LINKED.findall(page))):
        if not (folder / path).is_file():
            raise InputError(f"{folder}: {_PAGE} shows {path}, which is not there; run `temporalwiki leaderboard`")
        files[path] = folder / path
    models = len({(row.model, row.revision) for row in rows})
    return Revision(f"Leaderboard: {len(rows):,} scores, models: {models:,}", files, tag=tag)


def _on_top_of(head: Head, revision: Revision) -> Revision:
    """Return the revision that also takes away the Space's figures and tables that it lacks; refuse other Spaces."""
    if _ROWS not in head.files and (others := sorted(head.files.keys() - _OF_A_NEW_SPACE)):
        raise InputError(
            f"spaces/{head.repo_id}: has no {_ROWS} but {others[0]}, so it is no leaderboard; name another repository"
        )
    old = [path for path in sorted(head.files) if _SHOWN.fullmatch(path) and path not in revision.files]
    return replace(revision, remove=tuple(old))
