"""Read the recipe of an experiment: training options, and the key ``experiment`` with methods, months and tasks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from temporalwiki.base.errors import UsageError
from temporalwiki.base.options import did_you_mean, from_mapping
from temporalwiki.eval_harness.task import Task
from temporalwiki.eval_harness.tasks import find_task
from temporalwiki.methods import find_method
from temporalwiki.methods.method import Method
from temporalwiki.methods.options import TrainOptions
from temporalwiki.methods.recipes import configured, read_recipe
from temporalwiki.methods.training_data import config_names

START = "start"  # the label of the phase that all methods start from
_KEYS = ("data", "start", "months", "phases", "past", "methods", "tasks", "limit", "output", "engines")
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._+=-]{0,80}")  # becomes the name of a folder
_LONG = re.compile(r"\d{8}-\d{8}")
_MONTH = re.compile(r"\d{4}|\d{8}-\d{8}")


@dataclass(frozen=True)
class Line:
    """A method and its phases; each phase starts from the checkpoint of the previous one."""

    label: str
    name: str  # of the method
    method: Method
    options: TrainOptions
    past: str | None
    configs: tuple[str, ...]  # one per phase


@dataclass(frozen=True)
class TaskPlan:
    """A task and the configs to score it on."""

    name: str
    task: Task
    data: str
    configs: tuple[str, ...]  # empty: all of the experiment's months, and all without a month


@dataclass(frozen=True)
class Experiment:
    """The content of a recipe, checked."""

    name: str
    path: str
    model: str  # folder, Hub id, .gguf file or package:NAME
    data: str
    months: tuple[str, ...]  # named as in configs; empty if the recipe names phases
    start: Line | None
    lines: tuple[Line, ...]
    tasks: tuple[TaskPlan, ...]
    limit: int | None  # most rows of a split to score
    output: Path
    engines: Mapping[str, Mapping[str, Any]]  # name of a job runner -> its parameters


def read_experiment(recipe: str) -> Experiment:
    """Return the experiment of a YAML file, or of a recipe of the package by name.

    Paths in it are relative to the current folder. Raises UsageError, with the file and the key, for an unknown or
    missing key or a value of the wrong type.
    """
    common = read_recipe(recipe, None)
    where = f"{recipe}: "
    wanted = common.pop("experiment", None)
    if not isinstance(wanted, dict):
        raise UsageError(f"{where}no key `experiment`: it names data, months, methods and tasks")
    wanted = {str(key).replace("-", "_"): value for key, value in wanted.items()}
    for key in wanted:
        if key not in _KEYS:
            raise UsageError(
                f"{where}experiment: no key {key!r}{did_you_mean(key, _KEYS)}; there are {', '.join(_KEYS)}"
            )
    model = _text(common.get("model"), f"{where}model")
    data = _text(wanted.get("data"), f"{where}experiment: data")
    months = _months(wanted.get("months"), data, where)
    phases = tuple(_text(name, f"{where}experiment: phases") for name in _list(wanted.get("phases"), where))
    if bool(months) == bool(phases):
        raise UsageError(f'{where}experiment: needs either `months`, such as ["1112"], or `phases`')
    if len(set(months + phases)) < len(months + phases):
        raise UsageError(f"{where}experiment: a month or phase is listed twice")
    past = wanted.get("past")
    start = wanted.get("start")
    if start is not None:
        start = dict(_mapping(start, f"{where}experiment: start"))
        config = _text(start.pop("config", None), f"{where}experiment: start: config")
        start = _line(recipe, START, start, None, (config,))
    methods = _mapping(wanted.get("methods"), f"{where}experiment: methods")
    lines = []
    for label, own in methods.items():
        if not isinstance(label, str) or not _LABEL.fullmatch(label) or label == START:
            raise UsageError(
                f"{where}experiment: methods: {label!r} is not a name of letters, digits, dots and dashes"
            )
        own = dict(_mapping(own or {}, f"{where}experiment: methods: {label}"))
        lines.append(_line(recipe, label, own, past, phases, months))
    for i, line in enumerate(lines):
        if same := next((other for other in lines[:i] if _without_label(other) == _without_label(line)), None):
            raise UsageError(f"{where}experiment: methods: {same.label} and {line.label} are the same")
    if not lines:
        raise UsageError(f"{where}experiment: methods: the list is empty")
    tasks = []
    for name, own in _mapping(wanted.get("tasks"), f"{where}experiment: tasks").items():
        tasks.append(_task_plan(str(name), own or {}, data, f"{where}experiment: tasks: "))
    limit = wanted.get("limit")
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
        raise UsageError(f"{where}experiment: limit must be a whole number above 0, not {limit!r}")
    engines = _mapping(wanted.get("engines") or {}, f"{where}experiment: engines")
    return Experiment(
        name=Path(recipe).stem,
        path=recipe,
        model=model,
        data=data,
        months=months,
        start=start,
        lines=tuple(lines),
        tasks=tuple(tasks),
        limit=limit,
        output=Path(_text(wanted.get("output") or f"experiments/{Path(recipe).stem}", f"{where}experiment: output")),
        engines={str(name): _mapping(own, f"{where}experiment: engines: {name}") for name, own in engines.items()},
    )


def _line(
    recipe: str, label: str, own: dict[str, Any], past: Any, phases: tuple[str, ...], months: tuple[str, ...] = ()
) -> Line:
    where = f"{recipe}: experiment: {label}: "
    name = own.pop("method", label)
    if not isinstance(name, str):
        raise UsageError(f"{where}method must be a name, not {name!r}")
    try:
        find_method(name)
    except UsageError as error:
        raise UsageError(f"{where}{error}") from None
    past = own.pop("past", past)
    if past is not None:
        past = _text(past, f"{where}past")
    values = read_recipe(recipe, name)
    own = {str(key).replace("-", "_"): value for key, value in own.items()}
    for key in ("experiment", "model", "method", "data", "config", "past", "output"):
        values.pop(key, None)
    method, options = configured(name, values | own, where)
    configs = phases or tuple(_config(method, month) for month in months)
    return Line(label, name, method, options, past, configs if method.trains else configs[:1])


def _config(method: Method, month: str) -> str:
    """Return the config that a method is trained on for a month; a snapshot has only the second date."""
    if method.data == "wikipedia":
        return f"wikipedia-{month[2:] if len(month) == 4 else month[-8:]}"
    return f"{method.data}-{month}"


def _without_label(line: Line) -> tuple[Any, ...]:
    return line.name, line.method, line.options, line.past, line.configs


def _task_plan(name: str, own: Any, data: str, where: str) -> TaskPlan:
    try:
        kind = find_task(name)
    except UsageError as error:
        raise UsageError(f"{where}{error}") from None
    own = dict(_mapping(own, f"{where}{name}"))
    data = _text(own.pop("data", data), f"{where}{name}: data")
    configs = _list(own.pop("configs", None), f"{where}{name}: configs")
    known = {f.name for f in fields(kind)}
    for key in own:
        if str(key).replace("-", "_") not in known:
            names = ("data", "configs", *sorted(known))
            raise UsageError(
                f"{where}{name}: no option {key!r}{did_you_mean(str(key), names)}; there are {', '.join(names)}"
            )
    task = from_mapping(kind, own, f"{where}{name}: ")
    return TaskPlan(name, task, data, tuple(_text(config, f"{where}{name}: configs") for config in configs))


def _months(wanted: Any, data: str, where: str) -> tuple[str, ...]:
    """Return the months of a list, or, for ``since: 20211101-20211201``, all from that one on."""
    if not isinstance(wanted, dict):
        return tuple(_month(month, where) for month in _list(wanted, f"{where}experiment: months"))
    since = wanted.get("since")
    if wanted.keys() != {"since"} or not isinstance(since, str) or not _LONG.fullmatch(since):
        raise UsageError(
            f"{where}experiment: months: {wanted!r}: write a list of months, or since: and the long name of the "
            'first one, such as {since: "20211101-20211201"}'
        )
    available = [name.removeprefix("diffset-") for name in config_names(data) if name.startswith("diffset-")]
    months = sorted(month for month in available if _LONG.fullmatch(month) and month >= since)
    if since not in months:
        raise UsageError(f"{where}experiment: months: {data} has no diffset-{since} to begin with")
    return tuple(months)


def _month(month: Any, where: str) -> str:
    if not isinstance(month, str) or not _MONTH.fullmatch(month):
        raise UsageError(
            f'{where}experiment: months: {month!r} is not an interval: write two months in quotes, such as "1112" '
            "(YAML reads 0112 as a number), or its long name, such as 20211101-20211201"
        )
    return month


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise UsageError(f"{where} {'is missing' if value is None else f'must be text, not {value!r}'}")
    return value


def _list(value: Any, where: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise UsageError(f"{where} must be a list, not {value!r}")
    return value


def _mapping(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UsageError(f"{where} {'is missing' if value is None else f'must be a mapping, not {value!r}'}")
    return value
