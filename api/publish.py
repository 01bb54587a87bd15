"""``temporalwiki.publish``: publish a dataset, model, metric or leaderboard on the Hub."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from temporalwiki.api.table import Table
from temporalwiki.base.errors import UsageError
from temporalwiki.methods import needs

KINDS = ("dataset", "model", "metric", "leaderboard")
_OF = {"accept_jump": "dataset", "replace": "dataset", "accept_noncommercial": "dataset"}
_OF |= {"base": "model", "dataset": "model", "results": "model"}


def publish(
    kind: str,
    path: str | os.PathLike[str],
    repo_id: str,
    *,
    tag: str | None = None,
    dry_run: bool = False,
    accept_jump: bool = False,
    replace: bool = False,
    accept_noncommercial: bool = False,
    base: str | None = None,
    dataset: str | None = None,
    results: str | os.PathLike[str] | None = None,
) -> Table:
    """Publish a folder on the Hub, and return a row for each step. The arguments are the options of the command.

    Args:
        kind: dataset, model, metric or leaderboard.
        path: folder to publish.
        repo_id: ORG/NAME; created if it does not exist.
        tag: tag of the commit. For datasets, the default is the month, such as 2021.12.
        dry_run: return the steps, and send nothing.
        accept_jump: publish a dataset even if counts jump since last month.
        replace: replace an interval of a dataset, under a new ``tag``.
        accept_noncommercial: publish a dataset's configs with a licence like LAMA's (CC BY-NC).
        base: for an adapter, the Hub id of its base model.
        dataset: for a model that was trained on a local folder, the same dataset on the Hub: ORG/NAME@TAG.
        results: for a model, the folder with its results of ``evaluate``, which the card shows.

    Raises UsageError for a wrong argument, and InputError for a folder or a repository that cannot be used.
    """
    options: dict[str, Any] = {
        "accept_jump": accept_jump,
        "replace": replace,
        "accept_noncommercial": accept_noncommercial,
    }
    options |= {"base": base, "dataset": dataset, "results": results}
    lines = list(steps(kind, path, repo_id, tag=tag, dry_run=dry_run, **options))
    return Table(Path(path), [{"step": line} for line in lines], "\n".join(lines))


def steps(
    kind: str, path: str | os.PathLike[str], repo_id: str, *, tag: str | None, dry_run: bool, **options: Any
) -> Iterator[str]:
    """Publish as ``publish`` does, and yield a line for each step when it is done. Raises the same errors."""
    if kind not in KINDS:
        raise UsageError(f"there is no kind {kind!r} to publish; there are {', '.join(KINDS)}")
    for name, value in options.items():
        if value and kind != _OF[name]:
            raise UsageError(f"--{name.replace('_', '-')} is an option for a {_OF[name]}, not a {kind}")
    own = {name: value for name, value in options.items() if kind == _OF[name]}
    if own.get("results") is not None:
        own["results"] = Path(own["results"])
    with needs("eval"):
        module = importlib.import_module(f"temporalwiki.push_scripts.{kind}")
        yield from getattr(module, f"publish_{kind}")(Path(path), repo_id, tag=tag, dry_run=dry_run, **own)
