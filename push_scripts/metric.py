"""Publish a metric's folder as a Space of the Hub, from which ``evaluate.load("ORG/NAME")`` loads it.

`evaluate` fetches NAME.py, and the modules that it imports with a dot, from the Space's branch main, and runs them
without asking. The other files are the Space's app.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.model_cards.metric import metric_card
from temporalwiki.push_scripts.repository_state import Revision
from temporalwiki.push_scripts.revision import publish_space

# before main, `evaluate` looks for a tag of its own version, such as v0.4.6, and it puts a v before such a revision
_VERSION = re.compile(r"v?\d*\.\d*\.\d*")
_MODULE = re.compile(r"[^/]+\.py")


def publish_metric(path: Path, repo_id: str, *, tag: str | None = None, dry_run: bool = False) -> Iterator[str]:
    """Publish the metric in the folder ``path`` as the Space ``repo_id``; yield a line for each step.

    Raises what ``metric_revision`` raises, before anything is sent, and what ``publish`` raises.
    """
    revision = metric_revision(path, repo_id, tag)
    yield from publish_space(repo_id, revision, "gradio", f"{repo_id.rpartition('/')[2]}.py", _MODULE, dry_run)


def metric_revision(folder: Path, repo_id: str, tag: str | None = None) -> Revision:
    """Return the Space's files: the folder's modules and requirements, and its card.

    The folder's code runs, as in ``evaluate.load``. Raises UsageError if the repository is not named like the module,
    or if ``evaluate`` would take the tag for one of its versions. Raises InputError if a file is missing or the module
    cannot be loaded.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; choose that of a metric, such as eval_harness/metrics/fuar")
    name = folder.resolve().name
    org, slash, repository = repo_id.rpartition("/")
    if repository != name or not slash:
        raise UsageError(
            f"{repo_id}: evaluate loads {name}.py only from a repository of that name; "
            f"call the repository {org or 'ORG'}/{name}"
        )
    if tag and _VERSION.match(tag):
        raise UsageError(f"the tag {tag}: evaluate takes it for one of its versions; choose another, such as 2021.12")
    card = metric_card(folder, repo_id)
    # definition.py may be a link to a module outside the folder, so the content is sent
    modules = [file for file in sorted(folder.glob("*.py")) if file.is_file() and not file.name.startswith(".")]
    for file in (*modules, folder / "requirements.txt"):
        if file.resolve().suffix != file.suffix:
            raise InputError(
                f"{file}: is a link to a file of another kind, {file.resolve()}; put a copy of the file here instead"
            )
    files = {file.name: file.read_bytes() for file in modules}
    files |= {"README.md": card.encode(), "requirements.txt": (folder / "requirements.txt").read_bytes()}
    return Revision(f"Publish the metric {name}", files, tag=tag)
