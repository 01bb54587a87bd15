"""The cells of an experiment, trainings and evaluations, each with a key of all that its result depends on."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.base.json_files import fingerprint
from temporalwiki.eval_harness.cached_model import CachedModel, default_precision, revision
from temporalwiki.eval_harness.experiment.recipe import START, Asked, Experiment, Line
from temporalwiki.eval_harness.misalignment import month_of
from temporalwiki.eval_harness.runner import Evaluation, NothingToScoreError, evaluate
from temporalwiki.eval_harness.score_cache import cache as score_store
from temporalwiki.methods.options import MAY_DIFFER
from temporalwiki.methods.train import MANIFEST, Run, train
from temporalwiki.methods.training_data import check_config, config_names, content_key, past_config

Done = dict[str, Any]  # what is noted of a finished cell


@dataclass(frozen=True)
class Cell:
    """A training or an evaluation. It is done when its note is written, which is last."""

    name: str  # such as "diff/1112", or "diff/1112/twiki_probes/probes-1112"
    group: str  # the cells of a group share a model: one job runs them, in this order
    needs: str | None  # the cell whose checkpoint it reads
    note: Path  # JSON: what came of it
    run: Callable[[], Done]

    @property
    def failure(self) -> Path:
        """Where the traceback of its last try is."""
        return self.note.with_suffix(".failed.txt")


@dataclass(frozen=True)
class _Checkpoint:
    cell: str  # its training; "" for a model that is there already
    folder: str
    key: str


def cells(experiment: Experiment) -> list[Cell]:
    """Return all cells in an order in which each comes after what it needs.

    A checkpoint's evaluations follow its training. Raises UsageError for configs that the data does not have,
    InputError for a model or data that is not there.
    """
    for kept in (_configs, _content):  # the data may have changed since the last plan of this process
        kept.cache_clear()
    planned: list[Cell] = []
    base = _Checkpoint("", experiment.model, fingerprint("model", revision(experiment.model)))
    begin = base
    if experiment.start is not None:
        begin = _phase(experiment, experiment.start, experiment.start.configs[0], base, START, planned)
    for line in experiment.lines:
        before = begin
        months = [month_of(config) for config in line.configs]
        for config, month in zip(line.configs, months, strict=True):
            phase = month if month and months.count(month) == 1 else config
            name = f"{line.label}/{phase}" if line.method.trains else line.label
            before = _phase(experiment, line, config, before, name, planned)
            planned += _evaluations(experiment, line, before)
    names = [cell.name for cell in planned]
    if twice := next((name for i, name in enumerate(names) if name in names[:i]), None):
        raise UsageError(f"{experiment.path}: two cells are called {twice}: a config is named twice")
    return planned


def _phase(
    experiment: Experiment, line: Line, config: str, before: _Checkpoint, name: str, planned: list[Cell]
) -> _Checkpoint:
    """Plan a training, and return the checkpoint that it will leave."""
    data = experiment.data
    check_config(data, config, _configs(data))
    reads = [config] if line.method.trains else []
    if line.method.needs_past:
        reads.append(line.past or past_config(line.name, data, config, _configs(data)))
        check_config(data, reads[1], _configs(data))
    options = {key: value for key, value in asdict(line.options).items() if key not in MAY_DIFFER}
    what = [line.name, asdict(line.method), options, [[read, _content(data, read)] for read in reads]]
    key = fingerprint("training", before.key, *what)
    folder = experiment.output / "models" / f"{_plain(name)}-{key[:8]}"
    run = Run(
        line.name, line.method, before.folder, data, config, reads[1] if reads[1:] else None, line.options, folder
    )

    def training() -> Done:
        _evaluated.cache_clear()  # the device is for the training alone
        gc.collect()
        (manifest,) = train(run)
        kept = {name: manifest.get(name) for name in ("steps", "loss", "parameters")}
        return {"checkpoint": str(folder), **kept}

    note = experiment.output / "cells" / f"{_plain(name)}-{key[:8]}.json"
    planned.append(Cell(name, name, before.cell or None, note, training))
    return _Checkpoint(name, str(folder), key)


def _evaluations(experiment: Experiment, line: Line, checkpoint: _Checkpoint) -> list[Cell]:
    return [
        _evaluation(experiment, line, checkpoint, asked, config)
        for asked in experiment.tasks
        for config in _tested(experiment, asked)
    ]


def _tested(experiment: Experiment, asked: Asked) -> list[str]:
    """Return the configs that a task is scored on: of the experiment's months, and of none."""
    there = _configs(asked.data)
    if asked.configs:
        for config in asked.configs:
            check_config(asked.data, config, there)
        return list(asked.configs)
    fitting = [config for config in there if config.startswith(asked.task.configs)]
    if not fitting:
        kinds = ", ".join(f"{kind}*" for kind in asked.task.configs)
        raise UsageError(f"{asked.name} reads {kinds}, of which there is none in {asked.data}")
    trained = {month for line in experiment.lines for config in line.configs if (month := month_of(config))}
    chosen = [config for config in fitting if month_of(config) in (None, *(experiment.months or trained))]
    if not chosen:
        months = ", ".join(experiment.months or sorted(trained)) or "no month"
        raise UsageError(f"{asked.name} reads {', '.join(fitting[:6])} of {asked.data}: none is of {months}")
    return chosen


def _evaluation(experiment: Experiment, line: Line, checkpoint: _Checkpoint, asked: Asked, config: str) -> Cell:
    beside = [other for other in asked.task.beside(config).values() if other in _configs(asked.data)]
    read = [[name, _content(asked.data, name)] for name in (config, *beside)]
    # not the precision: who plans, a login node, may have another than the machine that scores; the result names it
    what = [asked.name, asked.task.version, asked.task.identity(), experiment.limit, line.label]
    key = fingerprint("evaluation", checkpoint.key, what, read)
    name = f"{checkpoint.cell}/{asked.name}/{config}"
    wanted = Evaluation(
        checkpoint.folder,
        asked.data,
        {asked.name: asked.task},
        (config,),
        experiment.output / "results",
        experiment.limit,
        line.label,
    )

    def evaluation() -> Done:
        try:
            found = evaluate(wanted, _evaluated(checkpoint.folder, default_precision()), _configs(asked.data))
        except NothingToScoreError as error:  # such as a month without facts
            return {"results": [], "nothing": str(error)}
        return {"results": [result.path.relative_to(experiment.output).as_posix() for result in found]}

    note = experiment.output / "cells" / f"{_plain(name)}-{key[:8]}.json"
    return Cell(name, f"{checkpoint.cell}/evaluate", checkpoint.cell or None, note, evaluation)


@lru_cache(maxsize=1)  # the model at hand: the one before it leaves the memory
def _evaluated(folder: str, precision: str) -> CachedModel:
    if not (Path(folder) / MANIFEST).is_file():
        raise InputError(f"{folder}: no finished checkpoint; run the experiment again to train it")
    return CachedModel(folder, score_store(), precision)


_configs = cache(config_names)
_content = cache(content_key)


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._+=-]+", "-", name)
