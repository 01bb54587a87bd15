"""Publish a leaderboard's folder as a static Space of the Hub."""

import re
from collections.abc import Iterator
from html import escape
from pathlib import Path

from huggingface_hub import HfApi

from temporalwiki.base.errors import InputError
from temporalwiki.base.files import leads_out, read_small
from temporalwiki.eval_harness.leaderboard.rows import read_parquet
from temporalwiki.push_scripts.repository_state import Content, Revision
from temporalwiki.push_scripts.revision import publish_space

_PAGE, _ROWS = "index.html", "results.parquet"
_NEEDED = (_PAGE, _ROWS, "README.md")
_IMAGES_AND_TABLES = re.compile(r"(?:figures/[a-z0-9_]+\.(?:png|svg)|tables/[a-z0-9_]+\.(?:md|csv))")
_LINKED = re.compile(rf'(?:href|src|srcset|content)="\./({_IMAGES_AND_TABLES.pattern})"')


def publish_leaderboard(path: Path, repo_id: str, *, tag: str | None = None, dry_run: bool = False) -> Iterator[str]:
    """Publish the leaderboard in the folder ``path`` as the Space ``repo_id``; yield a line for each step.

    Raises InputError, before anything is sent, for an incomplete folder or a Space of something else. Raises what
    ``publish`` raises.
    """
    revision = leaderboard_revision(path, tag, f"{HfApi().endpoint}/spaces/{repo_id}/resolve/main")
    yield from publish_space(repo_id, revision, "static", _ROWS, _IMAGES_AND_TABLES, dry_run)


def leaderboard_revision(folder: Path, tag: str | None = None, address: str = ".") -> Revision:
    """Return the Space's files: only what ``temporalwiki leaderboard`` wrote.

    The page is sent without its links to result files, which stay on this machine. The link to its preview image gets
    the ``address`` of the files, because the programs that read it follow no relative links. Raises InputError if the
    folder is not a leaderboard or lacks a file that its page shows.
    """
    for name in _NEEDED:
        if not (folder / name).is_file():
            raise InputError(
                f"{folder}: no {name} in it; choose one that `temporalwiki leaderboard RESULTS --out FOLDER` wrote"
            )
    rows = read_parquet(folder / _ROWS)
    page = without_results(read_small(folder / _PAGE).decode("utf-8", "replace"))
    files: dict[str, Content] = {name: folder / name for name in _NEEDED}
    for path in sorted(set(_LINKED.findall(page))):
        if not (folder / path).is_file():
            raise InputError(f"{folder}: {_PAGE} shows {path}, which is missing; run `temporalwiki leaderboard`")
        files[path] = folder / path
    for path in files:
        if leads_out(folder / path, folder):
            raise InputError(f"{folder}: {path}: is a link out of the folder; publish a copy without links")
    files[_PAGE] = page.replace('content="./figures/', f'content="{escape(address)}/figures/').encode()
    models = len({(row.model, row.revision) for row in rows})
    return Revision(f"Leaderboard: {len(rows):,} scores, models: {models:,}", files, tag=tag)


def without_results(page: str) -> str:
    """Return the text of a leaderboard's page without its links to result files.

    A published page must not show the paths of the machine that wrote it.
    """
    return re.sub(r'\{"results":"[^"]*",', '{"results":null,', page, count=1)  # quotation marks in data are escaped
