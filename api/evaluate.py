"""``temporalwiki.evaluate``: score a model on tasks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from temporalwiki.api.table import Table
from temporalwiki.base.errors import UsageError
from temporalwiki.base.options import did_you_mean, from_mapping
from temporalwiki.builders.after_cutoff import read_after
from temporalwiki.eval_harness.tasks import find_task
from temporalwiki.methods import needs
from temporalwiki.methods.recipes import read_recipe

if TYPE_CHECKING:
    from datasets import Dataset, DatasetDict
    from peft import PeftModel
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from temporalwiki.eval_harness.held_model import HeldModel
    from temporalwiki.eval_harness.results import Result
    from temporalwiki.eval_harness.stored_scores import Scored

PRECISIONS = ("auto", "fp32", "bf16")
IN_MEMORY = "in memory"  # the name of a dataset that is an object


class Score(NamedTuple):
    """A score with the ends of its 95 % interval, which are None if all items are about one subject."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True, repr=False)
class Scores(Table):
    """The results of a model: its scores with their 95 % intervals, and the path of the result files."""

    results: Sequence[Result]

    @property
    def scores(self) -> dict[str, Score]:
        """The scores by measure, such as "changed/perplexity"; with several results, by TASK/CONFIG/MEASURE."""
        found = {}
        for result in self.results:
            where = f"{result.manifest.task.name}/{result.manifest.data.config}/" if len(self.results) > 1 else ""
            for name, score in result.manifest.scores.items():
                found[where + name] = Score(score.value, score.low, score.high)
        return found


def evaluate(
    model: str | os.PathLike[str] | PreTrainedModel | PeftModel | None = None,
    data: str | os.PathLike[str] | Dataset | DatasetDict | None = None,
    tasks: str | Sequence[str] | Mapping[str, Mapping[str, Any] | None] | None = None,
    *,
    config: str | Sequence[str] | None = None,
    output: str | os.PathLike[str] | None = None,
    limit: int | None = None,
    start: str | os.PathLike[str] | PreTrainedModel | PeftModel | None = None,
    judge: str | None = None,
    precision: str | None = None,
    after_cutoff: str | None = None,
    retrieve: str | None = None,
    top_k: int | None = None,
    recipe: str | os.PathLike[str] | None = None,
    tokenizer: str | os.PathLike[str] | PreTrainedTokenizerBase | None = None,
    name: str | None = None,
    **options: Any,
) -> Scores:
    """Score a model on tasks, and return its scores. The arguments are the options of ``temporalwiki evaluate``.

    Results that exist in ``output`` are not computed again, and a text is scored only once for each model.

    Args:
        model: a folder, a Hub id, a .gguf file, package:NAME, the name of a provider's model such as openai/NAME, or
            a model in memory.
        data: a folder, a Hub id, id@revision, or a dataset in memory. A ``Dataset`` is one split, "changed" if it has
            no name.
        tasks: names of tasks, or a mapping from their names to their options.
        config: configs to score on; by default all that the tasks can read. For data in memory, it is the data's name.
        output: folder of the result files; results by default.
        limit: score only the first rows of each split.
        start: the model before its training, or the results of that model.
        judge: a second model of a provider, which also reads the replies.
        precision: precision of likelihoods: "auto" (the default), "fp32" or "bf16".
        after_cutoff: score only facts that began, and text that appeared, after a date or after a model's cutoff: a
            cutoff.json of ``temporalwiki cutoff``, or the name of a model that has one in ``output``.
        retrieve: what the model reads before each question: passages of a config with text, such as diffset-1112, or
            the "evidence" of each row.
        top_k: how many passages of the config to read; by default 5.
        recipe: YAML file with these arguments. The other arguments override it.
        tokenizer: tokenizer of models in memory. By default it is loaded from the model's ``name_or_path``.
        name: name of a model in memory, for the results; by default its ``name_or_path``. Two models may have the
            same name, because results also have a hash of the weights.
        options: options of the tasks, such as ``light_tuning=False``.

    Raises UsageError for a wrong argument, and InputError for a model or data that cannot be used.
    """
    if recipe is not None:
        given = {"model": model, "data": data, "tasks": tasks, "config": config, "output": output, "limit": limit}
        given |= {"start": start, "judge": judge, "precision": precision, "after_cutoff": after_cutoff}
        given |= {"retrieve": retrieve, "top_k": top_k}
        given |= {"tokenizer": tokenizer, "name": name, **options}
        return evaluate(**_from_recipe(os.fspath(recipe), given))
    if limit is not None and limit < 1:
        raise UsageError(f"--limit must be at least 1, not {limit}")
    if top_k is not None and retrieve is None:
        raise UsageError("--top-k: name the config to retrieve from with --retrieve")
    for argument, value in (("model", model), ("data", data), ("tasks", tasks)):
        if value is None:
            raise UsageError(f"--{argument} is required, on the command line or in a recipe")
    if not (names := names_of(tasks or ())):
        raise UsageError("--tasks: name one or more, separated by commas")
    output, precision = Path("results" if output is None else output), precision or "auto"
    after = None if after_cutoff is None else read_after(after_cutoff, output)
    own = tasks if isinstance(tasks, Mapping) else {}
    chosen = _with_options({task: find_task(task) for task in names}, options, own)
    with needs("eval"):
        from temporalwiki.eval_harness.cached_model import CachedModel
        from temporalwiki.eval_harness.held_model import HeldModel, modes_kept
        from temporalwiki.eval_harness.interface_model import InterfaceModel
        from temporalwiki.eval_harness.results import table
        from temporalwiki.eval_harness.runner import Evaluation
        from temporalwiki.eval_harness.runner import evaluate as score

    scored = open_model(model, precision, tokenizer, name)
    first: str | CachedModel | None = None
    if start is not None:
        first = os.fspath(start) if isinstance(start, str | os.PathLike) else open_held(start, precision, tokenizer)
    if judge is not None:
        reader = open_model(judge, precision)
        if not isinstance(scored, InterfaceModel) or not isinstance(reader, InterfaceModel):
            raise UsageError("--judge: both --model and --judge must be models of a provider, such as openai/NAME")
        scored.judge = reader
    configs = (config,) if isinstance(config, str) else tuple(config or ())
    rows = None if isinstance(data, str | os.PathLike) else _configs_in(data, configs, chosen)
    wanted = Evaluation(
        os.fspath(model) if isinstance(model, str | os.PathLike) else scored.name,
        os.fspath(data) if isinstance(data, str | os.PathLike) else IN_MEMORY,
        chosen,
        configs,
        output,
        limit,
        start=first,
        rows=rows,
        after=after,
        retrieve=retrieve,
        top_k=5 if top_k is None else top_k,
    )
    with ExitStack() as stack:
        for held in (scored, first):
            if isinstance(held, HeldModel):
                stack.enter_context(modes_kept(held.loaded.model))
        results = score(wanted, scored)
    paths = [result.path for result in results]
    meaning = "Brackets: 95 % intervals; docs/evaluating.md explains the scores."
    text = "\n".join([table(results), meaning, *map(str, paths)])
    path = paths[0] if len(paths) == 1 else wanted.output
    return Scores(path, [row for result in results for row in score_rows(result)], text, results)


def names_of(tasks: str | Iterable[str]) -> list[str]:
    """Return a list of names of tasks, from a list, a mapping, or a text with commas."""
    return tasks.replace(",", " ").split() if isinstance(tasks, str) else list(tasks)


def open_model(model: Any, precision: str, tokenizer: Any = None, name: str | None = None) -> Scored:
    """Return a model, given by name or in memory, ready to score. Raises UsageError for a wrong argument."""
    if precision not in PRECISIONS:
        raise UsageError(f"no precision {precision!r}; there are {', '.join(PRECISIONS)}")
    if tokenizer is not None or not isinstance(model, str | os.PathLike):
        return open_held(model, precision, tokenizer, name)
    if name is not None:
        raise UsageError(f"name= is for a model in memory, not for {os.fspath(model)}")
    with needs("eval"):
        from temporalwiki.eval_harness.cached_model import default_precision
        from temporalwiki.eval_harness.score_cache import cache_folder
        from temporalwiki.eval_harness.stored_scores import open_scores

    return open_scores(os.fspath(model), cache_folder(), default_precision() if precision == "auto" else precision)


def open_held(model: Any, precision: str, tokenizer: Any = None, name: str | None = None) -> HeldModel:
    """Return a model in memory, ready to score. A model that is given by name is loaded."""
    with needs("eval"):
        from temporalwiki.eval_harness.held_model import held_model
        from temporalwiki.eval_harness.score_cache import cache_folder
        from temporalwiki.methods.checkpoint import load_model

    if isinstance(model, str | os.PathLike):
        model = load_model(os.fspath(model))
    return held_model(model, tokenizer, cache_folder(), precision, name)


def _from_recipe(recipe: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of ``evaluate`` in a recipe; arguments that are given override them.

    Raises UsageError for a recipe that cannot be read, and for a value of the wrong type.
    """
    values = read_recipe(recipe, None)
    where = f"--recipe {recipe}: "
    known = {f.name for f in fields(_Recipe)}
    if wrong := sorted({"recipe", "tokenizer", "name"} & values.keys()):
        raise UsageError(f"{where}no option {wrong[0]!r} in a recipe")
    tasks = values.get("tasks")
    if isinstance(tasks, dict):
        parts = (tasks, *tasks.values())
        if not all(
            isinstance(part, dict | None) and all(isinstance(key, str) for key in part or ()) for part in parts
        ):
            raise UsageError(f"{where}tasks must map names of tasks to mappings of their options")
        known -= {"tasks"}
    own = from_mapping(_Recipe, {name: value for name, value in values.items() if name in known}, where)
    found = values | {name: getattr(own, name) for name in values.keys() & known}
    return found | {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True)
class _Recipe:
    """A recipe of an evaluation, without the options of tasks; ``tasks`` may also map names to options."""

    model: str | None = None
    data: str | None = None
    tasks: tuple[str, ...] | None = None
    config: tuple[str, ...] | None = None
    output: str | None = None
    limit: int | None = None
    retrieve: str | None = None
    top_k: int | None = None
    start: str | None = None
    judge: str | None = None
    precision: str | None = None
    after_cutoff: str | None = None


def _with_options(
    tasks: Mapping[str, Any], options: Mapping[str, Any], own: Mapping[str, Mapping[str, Any] | None]
) -> dict[str, Any]:
    """Return the tasks with their options: ``options`` are for all tasks that have them, ``own`` for single tasks.

    Raises UsageError for an unknown option.
    """
    known = dict.fromkeys(option.name for task in tasks.values() for option in fields(task))
    for name in options:
        if name not in known:
            there = f"; there are {', '.join(known)}" if known else ""
            raise UsageError(f"{', '.join(tasks)}: no option {name!r}{did_you_mean(name, known)}{there}")
    given: dict[str, Any] = {}
    for task, of in tasks.items():
        shared = {option.name for option in fields(of)} & options.keys()
        values = dict(own.get(task) or {}) | {name: options[name] for name in shared}
        given[task] = from_mapping(of, values, "--" if task not in own else f"{task}: ")
    return given


def _configs_in(data: Any, configs: Sequence[str], tasks: Mapping[str, Any]) -> dict[str, DatasetDict]:
    """Return data in memory as configs, named as ``configs`` says, else as the data is, else as each task expects."""
    from datasets import Dataset, DatasetDict

    if isinstance(data, Dataset):
        data = DatasetDict({str(data.split or "changed"): data})
    if not isinstance(data, DatasetDict) or not data:
        raise UsageError(f"data is a folder, a Hub id, a Dataset or a DatasetDict, not {type(data).__name__}")
    own = next(iter(data.values())).info.config_name
    read = [task.configs for task in tasks.values()]
    if configs:
        names = list(configs)
    elif own and any(own.startswith(prefixes) for prefixes in read):
        names = [own]
    else:
        names = [f"{prefixes[0].rstrip('-')}-memory" for prefixes in read]
    return dict.fromkeys(names, data)


def score_rows(result: Result) -> list[dict[str, Any]]:
    """Return a row for each score of a result."""
    found = result.manifest
    rows: list[dict[str, Any]] = []
    for name, score in found.scores.items():
        test, _, measure = name.rpartition("/")
        where = {"task": found.task.name, "config": found.data.config, "test": test, "measure": measure}
        rows.append(where | {"value": score.value, "low": score.low, "high": score.high, "items": score.items})
    return rows
