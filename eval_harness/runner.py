"""Evaluate one model: every task on every config that it is defined on, one result file each, nothing twice."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from temporalwiki import __version__
from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.base.json_files import fingerprint
from temporalwiki.eval_harness.cached_model import CachedModel, training
from temporalwiki.eval_harness.results import Result, path_of, read_result, write_result
from temporalwiki.eval_harness.task import Row, Task, check_columns
from temporalwiki.methods.training_data import check_config, config_names, load

_LIBRARIES = ("torch", "transformers", "tokenizers", "peft", "datasets")
_LONG = re.compile(r"-\d{8}-\d{8}$")  # an interval's name that says the days


class NothingToScoreError(InputError):
    """A config in which a task finds nothing that it can score."""


@dataclass(frozen=True)
class Evaluation:
    """What is scored, and on what."""

    model: str  # folder, Hub id, .gguf file or package:NAME
    data: str  # folder, Hub id or id@revision
    tasks: Mapping[str, Task]  # by name
    configs: tuple[str, ...]  # none: all that the tasks are defined on
    output: Path
    limit: int | None  # of rows of each split
    label: str = ""  # what the model is called on a leaderboard; nothing: as its method is


def evaluate(wanted: Evaluation, model: CachedModel, available: list[str] | None = None) -> list[Result]:
    """Return the results of all tasks, made now or found in ``wanted.output``.

    ``available``: the configs of the data, where the caller knows them.

    A config in which a task finds nothing to score is left out, with a line that says so. Raises UsageError where a
    config or task does not fit, InputError for a model or data that cannot be used, or where nothing can be scored.
    """
    if wanted.output.exists() and not wanted.output.is_dir():
        raise InputError(f"{wanted.output}: is a file; name a folder with --output")
    available = config_names(wanted.data) if available is None else available
    for config in wanted.configs:
        check_config(wanted.data, config, available)
    plan = [
        (name, task, config)
        for name, task in wanted.tasks.items()
        for config in _configs_of(name, task, wanted, available)
    ]
    unread = set(wanted.configs) - {config for _, _, config in plan}
    if unread:
        raise UsageError(f"--config {min(unread)}: none of the tasks {', '.join(wanted.tasks)} reads it")
    results = []
    for name, task, config in plan:
        try:
            results.append(_evaluate(name, task, config, wanted, available, model))
        except NothingToScoreError as error:  # a month without deleted facts is no reason to leave out the others
            if (name, task, config) == plan[-1] and not results:
                raise
            if model.state.is_main_process:
                print(f"left out: {error}", file=sys.stderr)
    return results


def _configs_of(name: str, task: Task, wanted: Evaluation, available: list[str]) -> list[str]:
    fitting = [config for config in available if config.startswith(task.configs)]
    if wanted.configs:
        fitting = [config for config in wanted.configs if config in fitting]
    else:  # each interval has a long name for the same rows
        fitting = [config for config in fitting if not _LONG.search(config)] or fitting
    if not fitting:
        kinds = ", ".join(f"{kind}*" for kind in task.configs)
        raise UsageError(f"{name} reads {kinds}, of which there is none in {', '.join(wanted.configs or available)}")
    return fitting


def _evaluate(
    name: str, task: Task, config: str, wanted: Evaluation, available: list[str], model: CachedModel
) -> Result:
    begun = time.perf_counter()
    rows = _read(wanted.data, config, task.splits, wanted.limit, task.max_rows, "")
    for split, of in rows.items():
        check_columns(of, task.columns, f"{wanted.data}, {config}, {split}")
    if not any(rows.values()):
        there = ", ".join(load(wanted.data, config, None))
        raise NothingToScoreError(
            f"{wanted.data}, {config}: no rows in {', '.join(task.splits) or 'it'}, so nothing to score; "
            f"its splits are {there}"
        )
    for prefix, other in task.extra_configs(config).items():
        if other in available:
            rows |= _read(wanted.data, other, (), None, None, f"{prefix}/")
    what: dict[str, dict[str, Any]] = {
        "task": {"name": name, "version": task.version, "options": task.recorded_options()},
        "model": {"name": model.reference, "revision": model.revision, "precision": model.precision},
        "data": {
            "dataset": wanted.data,
            "config": config,
            "rows": {split: len(of) for split, of in rows.items()},
            "hash": fingerprint(json.dumps(rows, sort_keys=True, default=str)),  # str: of times and the like
        },
    }
    path = path_of(wanted.output, what)
    if path.is_file():
        return read_result(path)
    path.parent.mkdir(parents=True, exist_ok=True)  # before the work is done
    outcome = task.run(model, rows)
    if not outcome.scores:
        why = ", ".join(f"{count} {reason}" for reason, count in outcome.excluded.items())
        raise NothingToScoreError(f"{wanted.data}, {config}: {name} could score nothing ({why})")
    if model.state.is_main_process:
        run = {
            "seconds": round(time.perf_counter() - begun, 1),
            "temporalwiki": __version__,
            "device": str(model.state.device),
            "processes": model.state.num_processes,
            "python": sys.version.split()[0],
            "libraries": {library: version(library) for library in _LIBRARIES},
        }
        # what is known of the training depends on which folders are still there, so it is not in the identity
        label = {"label": wanted.label} if wanted.label else {}
        described = {**what, "model": what["model"] | training(model.reference) | label}
        write_result(path, described, outcome, run)
    model.state.wait_for_everyone()
    return read_result(path)


def _read(
    data: str, config: str, splits: Sequence[str], limit: int | None, most: int | None, prefix: str
) -> dict[str, list[Row]]:
    """Return a config's rows by split, those splits alone that are named if any are.

    Of more than ``most`` rows so many are drawn; ``limit`` takes the first of what is left.
    """
    read = {}
    for split, rows in load(data, config, None).items():
        if splits and split not in splits:
            continue
        if most is not None and len(rows) > most:
            rows = rows.select(np.sort(np.random.default_rng(0).choice(len(rows), most, replace=False)))
        read[prefix + split] = list(rows.select(range(min(len(rows), limit or len(rows)))))
    return read
