"""A metric's folder as a Space of the Hub, from which ``evaluate.load("ORG/NAME")`` loads it.

`evaluate` fetches NAME.py, and the modules that it imports with a dot, from the Space's branch main; it asks nobody
before it runs them. The other files are the Space's app.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.model_cards.metric import metric_card
from temporalwiki.push_scripts.revision import Head, Revision, publish

# `evaluate` looks for a tag of its own version, v0.4.6, before it takes main, and puts a v before such a revision
_VERSION = re.compile(r"v?\d*\.\d*\.\d*")
_MODULE = re.compile(r"[^/]+\.py")
_OF_A_NEW_SPACE = {".gitattributes", "README.md"}


def publish_metric(path: Path, repo_id: str, *, tag: str | None = None, dry_run: bool = False) -> Iterator[str]:
    """Publish the metric in the folder ``path`` as the Space ``repo_id`` and yield lines that say what is done.

    Raises InputError or UsageError, before anything is sent, for what ``metric_revision`` refuses, and what
    ``publish`` raises.
    """
    revision = metric_revision(path, repo_id, tag)
    yield from publish(
        repo_id, "space", lambda head: [_on_top_of(head, revision)], dry_run=dry_run, space_sdk="gradio"
    )


def metric_revision(folder: Path, repo_id: str, tag: str | None = None) -> Revision:
    """Return what the Space is to hold: the folder's modules and requirements, and a card made from its module.

    The folder's code runs, as ``evaluate.load`` would run it. Raises UsageError for a repository of another name than
    the module's and for a tag that ``evaluate`` takes for one of its versions, InputError where a file is missing or
    the module cannot be loaded.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; name that of a metric, such as eval_harness/metrics/fuar")
    name = folder.resolve().name
    org, slash, repository = repo_id.rpartition("/")
    if repository != name or not slash:
        raise UsageError(
            f"{repo_id}: evaluate loads {name}.py from a repository of that name alone; "
            f"name the repository {org or 'ORG'}/{name}"
        )
    if tag and _VERSION.match(tag):
        raise UsageError(f"the tag {tag}: evaluate takes it for a version of its own; name another, such as 2021.12")
    card = metric_card(folder, repo_id)
    if not (folder / "app.py").is_file():
        raise InputError(f"{folder}: no app.py, which the Space runs")
    # definition.py may be a link to a file elsewhere, which the Space does not have: what is sent is its content
    modules = [file for file in sorted(folder.glob("*.py")) if file.is_file() and not file.name.startswith(".")]
    files = {file.name: file.read_bytes() for file in modules}
    files |= {"README.md": card.encode(), "requirements.txt": (folder / "requirements.txt").read_bytes()}
    return Revision(f"Publish the metric {name}", files, tag=tag)


def _on_top_of(head: Head, revision: Revision) -> Revision:
    """Return the revision that also takes away the Space's modules that it lacks; refuse a Space of something else."""
    module = f"{head.repo_id.rpartition('/')[2]}.py"
    if module not in head.files and (others := sorted(head.files.keys() - _OF_A_NEW_SPACE)):
        raise InputError(
            f"spaces/{head.repo_id}: has no {module} but {others[0]}, so it is no metric; name another repository"
        )
    old = [path for path in sorted(head.files) if _MODULE.fullmatch(path) and path not in revision.files]
    return replace(revision, remove=tuple(old))
