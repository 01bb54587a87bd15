"""Read the recipe of an experiment: training options, and the key ``experiment`` with methods, months and tasks."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any

import msgspec

from temporalwiki.base.errors import UsageError, in_one_line
from temporalwiki.base.options import did_you_mean, from_mapping
from temporalwiki.builders.loading import config_names
from temporalwiki.eval_harness.task import Task
from temporalwiki.eval_harness.tasks import find_task
from temporalwiki.methods import find_method
from temporalwiki.methods.method import Method
from temporalwiki.methods.options import TrainOptions
from temporalwiki.methods.recipes import configured, read_recipe

START = "start"  # the label of the phase that all methods start from
HEADLINE = "learned_and_forgotten"  # a board of this task has controls
_CONTROLS = ("initial", "shuffled", "untrained")  # what such a board needs next to the methods
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._+=-]{0,80}")  # becomes the name of a folder
_LONG = re.compile(r"\d{8}-\d{8}")
_MONTH = re.compile(r"\d{4}|\d{8}-\d{8}")

Text = Annotated[str, msgspec.Meta(pattern=r"\S")]
Seed = Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]
Seeds = Annotated[tuple[Seed, ...], msgspec.Meta(min_length=1)]
Mappings = dict[str, dict[str, Any] | None]


class _Wanted(msgspec.Struct, kw_only=True):
    """The keys of ``experiment`` in a recipe."""

    data: Text
    methods: Mappings
    tasks: Mappings
    months: Any = None
    phases: tuple[Text, ...] | None = None
    start: dict[str, Any] | None = None
    past: Text | None = None
    seeds: Seeds | None = None
    limit: Annotated[int, msgspec.Meta(ge=1)] | None = None
    retrieve: tuple[Text, ...] = ()
    output: Text | None = None
    engines: Mappings | None = None


@dataclass(frozen=True)
class MethodPlan:
    """A method and its phases; each phase starts from the checkpoint of the previous one."""

    label: str
    name: str  # of the method
    method: Method
    options: TrainOptions
    past: str | None
    configs: tuple[str, ...]  # one per phase
    run: str = ""  # follows the label in the names of cells: "-seed1"
    retrieve: tuple[str, ...] = ()  # score it also with passages: kinds of configs, such as diffset, or "evidence"
    added: bool = False  # the recipe does not name it; only the task ``HEADLINE`` scores it


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
    start: MethodPlan | None
    lines: tuple[MethodPlan, ...]
    tasks: tuple[TaskPlan, ...]
    limit: int | None  # most rows of a split to score
    output: Path
    engines: Mapping[str, Mapping[str, Any]]  # name of a job runner -> its parameters


def read_experiment(recipe: str) -> Experiment:
    """Return the experiment of a YAML file, or of a recipe that the package contains, by its name.

    Paths in it are relative to the current folder. Raises UsageError, with the file and the key, for an unknown or
    missing key or a value of the wrong type.
    """
    common = read_recipe(recipe, None)
    where = f"{recipe}: experiment"
    content = common.pop("experiment", None)
    if not isinstance(content, dict):
        raise UsageError(f"{recipe}: no key `experiment`: it names data, months, methods and tasks")
    content = {str(key).replace("-", "_"): value for key, value in content.items()}
    _check_names(content, _Wanted.__struct_fields__, where, "key")
    model = _checked(common.get("model"), Text, f"{recipe}: model")
    wanted = _checked(content, _Wanted, where)
    months, phases = _months(wanted.months, wanted.data, f"{where}: months"), wanted.phases or ()
    if bool(months) == bool(phases):
        raise UsageError(f'{where}: needs either `months`, such as ["1112"], or `phases`')
    for what, listed in (("month or phase", months + phases), ("seed", wanted.seeds or ())):
        if len(set(listed)) < len(listed):
            raise UsageError(f"{where}: a {what} is listed twice")
    start = None
    if wanted.start is not None:
        config = _checked(wanted.start.pop("config", None), Text, f"{where}: start: config")
        start = _line(recipe, START, wanted.start, None, (config,))
    lines: list[MethodPlan] = []
    runs: list[MethodPlan] = []
    for label, own in wanted.methods.items():
        if not _LABEL.fullmatch(label) or label == START:
            raise UsageError(f"{where}: methods: {label!r} is not a name of letters, digits, dots and dashes")
        own = dict(own or {})
        seeds = _checked(own.pop("seeds", wanted.seeds), Seeds | None, f"{where}: methods: {label}: seeds")
        sources = own.pop("retrieve", wanted.retrieve)
        retrieve = _checked(sources, tuple[Text, ...], f"{where}: methods: {label}: retrieve")
        if len(set(retrieve)) < len(retrieve):
            raise UsageError(f"{where}: a source to retrieve from is listed twice")
        line = replace(_line(recipe, label, own, wanted.past, phases, months), retrieve=retrieve)
        if same := next((other for other in lines if replace(other, label=label) == line), None):
            raise UsageError(f"{where}: methods: {same.label} and {label} are the same")
        lines.append(line)
        runs += _runs(line, seeds)
    if HEADLINE in wanted.tasks:
        for name in _CONTROLS:
            if not any(name in (line.name, line.label) for line in lines):
                added = replace(_line(recipe, name, {}, wanted.past, phases, months), added=True)
                runs += _runs(added, wanted.seeds)
    if not lines:
        raise UsageError(f"{where}: methods: the list is empty")
    return Experiment(
        name=Path(recipe).stem,
        path=recipe,
        model=model,
        data=wanted.data,
        months=months,
        start=start,
        lines=tuple(runs),
        tasks=tuple(_task_plan(name, own or {}, wanted.data, where) for name, own in wanted.tasks.items()),
        limit=wanted.limit,
        output=Path(wanted.output or f"experiments/{Path(recipe).stem}"),
        engines={name: own or {} for name, own in (wanted.engines or {}).items()},
    )


def _line(
    recipe: str,
    label: str,
    own: dict[str, Any],
    past: str | None,
    phases: tuple[str, ...],
    months: tuple[str, ...] = (),
) -> MethodPlan:
    where = f"{recipe}: experiment: {label}: "
    name = _checked(own.pop("method", label), str, f"{where}method")
    try:
        find_method(name)
    except UsageError as error:
        raise UsageError(f"{where}{error}") from None
    past = _checked(own.pop("past", past), Text | None, f"{where}past")
    values = read_recipe(recipe, name)
    own = {str(key).replace("-", "_"): value for key, value in own.items()}
    for key in ("experiment", "model", "method", "data", "config", "past", "output"):
        values.pop(key, None)
    method, options = configured(name, values | own, where)
    configs = phases or tuple(_config(method, month) for month in months)
    return MethodPlan(label, name, method, options, past, configs if method.trains else configs[:1])


def _runs(line: MethodPlan, seeds: tuple[int, ...] | None) -> list[MethodPlan]:
    """Return a line for each seed; they share their label, so that a leaderboard shows them as one model."""
    if seeds is None or not line.method.trains:
        return [line]
    return [replace(line, options=replace(line.options, seed=seed), run=f"-seed{seed}") for seed in seeds]


def _config(method: Method, month: str) -> str:
    """Return the config that a method is trained on for a month.

    The name of a ``wikipedia-*`` config has only the date of the month's later snapshot.
    """
    if method.data == "wikipedia":
        return f"wikipedia-{month[2:] if len(month) == 4 else month[-8:]}"
    return f"{method.data}-{month}"


def _task_plan(name: str, own: dict[str, Any], data: str, where: str) -> TaskPlan:
    try:
        kind = find_task(name)
    except UsageError as error:
        raise UsageError(f"{where}: tasks: {error}") from None
    where = f"{where}: tasks: {name}"
    data = _checked(own.pop("data", data), Text, f"{where}: data")
    configs = _checked(own.pop("configs", None), tuple[Text, ...] | None, f"{where}: configs") or ()
    options = {str(key).replace("-", "_"): value for key, value in own.items()}
    _check_names(options, ("data", "configs", *sorted(f.name for f in fields(kind))), where, "option")
    return TaskPlan(name, from_mapping(kind, options, f"{where}: "), data, configs)


def _months(wanted: Any, data: str, where: str) -> tuple[str, ...]:
    """Return the months of a list, or, for ``since: 20211101-20211201``, all from that one on."""
    if not isinstance(wanted, dict):
        months = _checked(wanted, tuple[Any, ...] | None, where) or ()
        for month in months:
            if not isinstance(month, str) or not _MONTH.fullmatch(month):
                raise UsageError(
                    f"{where}: {month!r} is not an interval: write two months in quotes, such as "
                    '"1112" (YAML reads 0112 as a number), or its long name, such as 20211101-20211201'
                )
        return months
    since = wanted.get("since")
    if wanted.keys() != {"since"} or not isinstance(since, str) or not _LONG.fullmatch(since):
        raise UsageError(
            f"{where}: {wanted!r}: write a list of months, or since: and the long name of the first one, such as "
            '{since: "20211101-20211201"}'
        )
    available = [name.removeprefix("diffset-") for name in config_names(data) if name.startswith("diffset-")]
    months = tuple(sorted(month for month in available if _LONG.fullmatch(month) and month >= since))
    if since not in months:
        raise UsageError(f"{where}: {data} has no diffset-{since} to begin with")
    return months


def _check_names(given: Iterable[str], known: Sequence[str], where: str, what: str) -> None:
    for name in given:
        if name not in known:
            raise UsageError(f"{where}: no {what} {name!r}{did_you_mean(name, known)}; there are {', '.join(known)}")


def _checked(value: Any, kind: Any, where: str) -> Any:
    """Return a value, checked to be of a type. Raises UsageError, with the place within the value."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise UsageError(f"{where}: {in_one_line(error)}".replace("`$.", "`")) from None
