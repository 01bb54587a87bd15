"""The cells of an experiment (trainings and evaluations), each with a hash of everything its result depends on."""

import gc
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, cast

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.base.json_files import fingerprint
from temporalwiki.builders.loading import config_names, split_revision
from temporalwiki.eval_harness.experiment.recipe import HEADLINE, START, Experiment, MethodPlan, TaskPlan
from temporalwiki.eval_harness.misalignment import month_of
from temporalwiki.eval_harness.models.cache import cache_folder
from temporalwiki.eval_harness.models.local import CachedModel, default_precision, revision
from temporalwiki.eval_harness.retrieval import EVIDENCE, Retriever
from temporalwiki.eval_harness.runner import Evaluation, evaluate
from temporalwiki.eval_harness.task import NothingToScoreError
from temporalwiki.eval_harness.text_model import open_model
from temporalwiki.methods import CONTROLS
from temporalwiki.methods import checkpoint as checkpoints
from temporalwiki.methods.options import MAY_DIFFER
from temporalwiki.methods.train import MANIFEST, Run, train
from temporalwiki.methods.training_data import (
    check_config,
    check_content,
    configs_to_read,
    content_key,
    facts_config,
    load,
)

Note = dict[str, Any]  # what is written about a finished cell
SOFTER = 1.25  # a control: the start model at this temperature knows what the start model knows


@dataclass(frozen=True)
class Cell:
    """A training or an evaluation. It is done once its note exists, because the note is written last."""

    name: str  # such as "diff/1112", or "diff/1112/twiki_probes/probes-1112"
    group: str  # one job runs the cells of a group, in order, because they share a model
    needs: str | None  # the name of the training whose checkpoint it reads
    note_path: Path
    run: Callable[[], Note]

    @property
    def failure_path(self) -> Path:
        """The file with the traceback of the last failure."""
        return self.note_path.with_suffix(".failed.txt")


@dataclass(frozen=True)
class _Checkpoint:
    cell: str  # the name of its training; "" for a model that exists already
    folder: str
    key: str


def plan_cells(experiment: Experiment) -> list[Cell]:
    """Return all cells, each after the training that it needs; the evaluations of a checkpoint follow its training.

    Raises UsageError for configs that the data does not have, that are named twice, or that have no text to retrieve.
    Raises InputError for a missing model or dataset.
    """
    # the data may have changed since the last call
    for function in (_configs, _content, _check_source, _has_evidence):
        function.cache_clear()
    _configs(experiment.data)  # before the model is downloaded or hashed
    planned: list[Cell] = []
    base = _Checkpoint("", experiment.model, fingerprint("model", revision(experiment.model)))
    begin = base
    if experiment.start is not None:
        begin = _plan_training(experiment, experiment.start, experiment.start.configs[0], base, START, planned)
    headline = any(task.name == HEADLINE for task in experiment.tasks)
    for line in experiment.lines:
        if line.added and not _has_facts(experiment, line):
            continue
        before = begin
        months = [month_of(config) for config in line.configs]
        for config, month in zip(line.configs, months, strict=True):
            phase = month if month and months.count(month) == 1 else config
            name = f"{line.label}{line.run}/{phase}" if line.method.trains else line.label
            before = _plan_training(experiment, line, config, before, name, planned)
            for task in experiment.tasks:
                if task.name != HEADLINE and headline and (line.added or line.name in CONTROLS):
                    continue  # a control says something about known facts only
                for scored in _configs_to_score(experiment, task):
                    if line.method.trains or task.task.start != "needed":
                        start = begin if line.method.trains else None
                        planned.append(_plan_evaluation(experiment, line, before, start, task, scored))
                    sources = _sources(experiment, line, task, scored)
                    if line.name == "initial" and task.name == HEADLINE:
                        softer = replace(task, task=replace(cast(Any, task.task), temperature=SOFTER))
                        planned.append(_plan_evaluation(experiment, line, before, None, softer, scored))
                        if _has_evidence(task.data, scored):  # the ceiling
                            sources = list(dict.fromkeys([*sources, EVIDENCE]))
                    # passages can also teach the start model, which is then scored as well
                    planned += [
                        _plan_evaluation(experiment, line, before, begin, task, scored, source) for source in sources
                    ]
    names = [cell.name for cell in planned]
    if twice := next((name for i, name in enumerate(names) if name in names[:i]), None):
        raise UsageError(f"{experiment.path}: two cells are called {twice}: a config is named twice")
    return planned


def _has_facts(experiment: Experiment, line: MethodPlan) -> bool:
    """Return whether a control can be made: ``shuffled`` needs the diffsets of the months and their facts."""
    if not line.method.reads_facts:
        return True
    if not all(config.startswith("diffset-") for config in line.configs):
        return False
    return {name for one in line.configs for name in facts_config(line.method, one)} <= set(_configs(experiment.data))


@cache
def _has_evidence(data: str, config: str) -> bool:
    return any(EVIDENCE in split.column_names for split in load(data, config, None).values())


def _plan_training(
    experiment: Experiment, line: MethodPlan, config: str, before: _Checkpoint, name: str, planned: list[Cell]
) -> _Checkpoint:
    """Add the cell of a training to ``planned``, and return the checkpoint that it will write."""
    data = experiment.data
    reads = configs_to_read(line.name, line.method, data, config, line.past, line.options, _configs(data))
    check_content(data, reads, line.method, line.options)
    options = {key: value for key, value in asdict(line.options).items() if key not in MAY_DIFFER}
    if line.options.budget is None:
        del options["budget"]  # recipes without one keep their cells
    inputs = [
        line.name,
        asdict(line.method),
        options,
        [[read, _content(data, read)] for read in [*reads, *facts_config(line.method, config)]],
    ]
    key = fingerprint("training", before.key, *inputs)
    folder = experiment.output / "models" / f"{_plain(name)}-{key[:8]}"
    run = Run(
        line.name,
        line.method,
        before.folder,
        data,
        config,
        reads[1] if reads[1:] else None,
        line.options,
        folder,
        open_model=open_model,
    )

    def training() -> Note:
        _load_model.cache_clear()  # free the device's memory for the training
        gc.collect()
        _bring_base(before.folder, experiment.model)
        (manifest,) = train(run)
        return {"checkpoint": str(folder)} | {name: manifest.get(name) for name in ("steps", "loss", "parameters")}

    note = experiment.output / "cells" / f"{_plain(name)}-{key[:8]}.json"
    planned.append(Cell(name, name, before.cell or None, note, training))
    return _Checkpoint(name, str(folder), key)


def _configs_to_score(experiment: Experiment, plan: TaskPlan) -> list[str]:
    """Return the configs that the recipe names for a task, else all of the experiment's months or without a month."""
    available = _configs(plan.data)
    if plan.configs:
        for config in plan.configs:
            check_config(plan.data, config, available)
        return list(plan.configs)
    readable = [config for config in available if config.startswith(plan.task.configs)]
    if not readable:
        kinds = ", ".join(f"{kind}*" for kind in plan.task.configs)
        raise UsageError(f"{plan.name} reads {kinds}, but {plan.data} has no such config")
    trained = {month for line in experiment.lines for config in line.configs if (month := month_of(config))}
    chosen = [config for config in readable if month_of(config) in (None, *(experiment.months or trained))]
    if not chosen:
        months = ", ".join(experiment.months or sorted(trained)) or "no month"
        raise UsageError(f"{plan.name} reads {', '.join(readable[:6])} of {plan.data}, none of them of {months}")
    return chosen


def _sources(experiment: Experiment, line: MethodPlan, plan: TaskPlan, scored: str) -> list[str]:
    """Return a method's sources of passages for the questions of a config; a source has the same month."""
    month = month_of(scored)
    if not plan.task.query or plan.data != experiment.data:
        return []
    sources = [of if of == EVIDENCE else f"{of}-{month}" for of in line.retrieve if month or of == EVIDENCE]
    for source in sources:
        _check_source(plan.data, source)
    return sources


@cache
def _check_source(data: str, source: str) -> None:
    Retriever(data, source).check(_configs(data))


def _plan_evaluation(
    experiment: Experiment,
    line: MethodPlan,
    checkpoint: _Checkpoint,
    start: _Checkpoint | None,
    plan: TaskPlan,
    config: str,
    source: str | None = None,
) -> Cell:
    """Return the cell of an evaluation; with ``source``, the model reads passages of this config, or the evidence."""
    extra = [other for other in plan.task.extra_configs(config).values() if other in _configs(plan.data)]
    extra += [source] if source and source != EVIDENCE else []
    read = [[name, _content(plan.data, name)] for name in (config, *extra)]
    # The precision is not hashed: a login node that plans may choose another one than the machine that scores.
    inputs = [plan.name, plan.task.version, plan.task.recorded_options(), experiment.limit, line.label]
    compared = start if plan.task.start else None
    more = [*([compared.key] if compared else []), *([source] if source else [])]
    key = fingerprint("evaluation", checkpoint.key, inputs, read, *more)
    temperature = plan.task.recorded_options().get("temperature")
    name = f"{checkpoint.cell}/{plan.name}/{config}" + (f" at temperature {temperature}" if temperature else "")
    name += f" with {source}" if source else ""
    wanted = Evaluation(
        checkpoint.folder,
        plan.data,
        {plan.name: plan.task},
        (config,),
        experiment.output / "results",
        experiment.limit,
        line.label,
        compared.folder if compared else None,
        retrieve=source,
    )

    def evaluation() -> Note:
        _bring_base(checkpoint.folder, experiment.model)
        model = _load_model(checkpoint.folder, default_precision())
        if compared:
            _bring_base(compared.folder, experiment.model)
            if model.start is None or model.start.reference != compared.folder:
                model.start = CachedModel(compared.folder, cache_folder(), model.precision)
            model.start.check()  # the cell must fail: ``evaluate`` would leave out the scores that need this model
        try:
            results = evaluate(wanted, model, _configs(plan.data))
        except NothingToScoreError as error:  # such as a month without facts
            return {"results": [], "nothing": str(error)}
        return {"results": [result.path.relative_to(experiment.output).as_posix() for result in results]}

    note = experiment.output / "cells" / f"{_plain(name)}-{key[:8]}.json"
    return Cell(name, f"{checkpoint.cell}/evaluate", checkpoint.cell or None, note, evaluation)


def _bring_base(folder: str, model: str) -> None:
    """Download the base of a checkpoint if the recipe's model is on the Hub and the base is not here yet."""
    base = checkpoints.base_of(Path(folder))
    if base is None or split_revision(base)[0] != split_revision(model)[0]:
        return
    try:
        checkpoints.base_options(folder, base, {})
    except InputError:
        checkpoints.load_model(base, device_map="meta")


@lru_cache(maxsize=1)  # one model at a time is in memory
def _load_model(folder: str, precision: str) -> CachedModel:
    if not (Path(folder) / MANIFEST).is_file():
        raise InputError(f"{folder}: no finished checkpoint; run the experiment again to train it")
    return CachedModel(folder, cache_folder(), precision)


_configs = cache(config_names)
_content = cache(content_key)


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._+=-]+", "-", name)
