"""``temporalwiki evaluate``: score a model on tasks, with confidence intervals.

Example:

    temporalwiki evaluate --model runs/lora-diffset-1112 --data temporalwiki --tasks twiki_probes --config probes-1112
    temporalwiki evaluate --model runs/lora-diffset-1112 --data temporalwiki --tasks learned_and_forgotten \\
        --start openai-community/gpt2-large                    # compared with the model that it started from
    temporalwiki evaluate --model runs/lora-diffset-1112 --data temporalwiki --tasks twiki_probes \\
        --after-cutoff 2021-10                                 # only facts that began later
    temporalwiki evaluate --model runs/lora-diffset-1112 --data temporalwiki --tasks twiki_probes \\
        --config probes-1112 --retrieve diffset-1112           # it reads the month's text before each question
    temporalwiki evaluate --recipe evaluation.yaml --model runs/lora-diffset-1112
    temporalwiki evaluate --tasks twiki_probes --help          # also shows the options of the task
    accelerate launch --num_processes 8 -m temporalwiki evaluate --model openai-community/gpt2-large \\
        --data temporalwiki --tasks twiki_probes               # the same on eight GPUs, all months

Existing results are not computed again, and a text is scored only once for each model.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from temporalwiki.api.arguments import Arg, Count, Flag, Folder, parameters
from temporalwiki.api.table import Table
from temporalwiki.base.errors import UsageError
from temporalwiki.base.options import did_you_mean, from_mapping, words
from temporalwiki.builders.after_cutoff import read_after
from temporalwiki.eval_harness.tasks import TASKS, find_task
from temporalwiki.methods import needs
from temporalwiki.methods.recipes import read_recipe

if TYPE_CHECKING:
    from datasets import Dataset, DatasetDict
    from peft import PeftModel
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from temporalwiki.eval_harness.models.local import HeldModel
    from temporalwiki.eval_harness.models.model import Model
    from temporalwiki.eval_harness.results import Result

PRECISIONS = ("auto", "fp32", "bf16")
MOST_ROWS = 6  # of a printed table
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
    model: Annotated[str | os.PathLike[str] | PreTrainedModel | PeftModel, Arg("ID_OR_DIR")] | None = None,
    data: Annotated[str | os.PathLike[str] | Dataset | DatasetDict, Arg("DATASET")] | None = None,
    tasks: Annotated[
        str | Sequence[str] | Mapping[str, Mapping[str, Any] | None], Arg("NAME", nargs="+", names=tuple(TASKS))
    ]
    | None = None,
    *,
    config: Annotated[str | Sequence[str], Arg("NAME", nargs="+")] | None = None,
    output: Folder | None = None,
    limit: Count | None = None,
    start: Annotated[str | os.PathLike[str] | PreTrainedModel | PeftModel, Arg("MODEL_OR_RESULTS")] | None = None,
    judge: Annotated[str, Arg("MODEL")] | None = None,
    precision: Annotated[str, Arg("NAME")] | None = None,
    after_cutoff: Annotated[str, Arg("DATE_OR_MODEL")] | None = None,
    retrieve: Annotated[str, Arg("CONFIG")] | None = None,
    top_k: Count | None = None,
    recipe: Annotated[str | os.PathLike[str], Arg("FILE")] | None = None,
    all_: Flag = False,
    tokenizer: str | os.PathLike[str] | PreTrainedTokenizerBase | None = None,
    name: str | None = None,
    **options: Any,
) -> Scores:
    """Score a model on tasks, and return its scores. The arguments are the options of ``temporalwiki evaluate``.

    Results that exist in ``output`` are not computed again, and a text is scored only once for each model.

    Args:
        model: a folder, a Hub id, a .gguf file, package:NAME, a model of inspect-ai's providers, such as openai/NAME
            or openai-api/SERVICE/NAME, or a log of inspect-ai or lm_eval. In Python, also a model in memory.
        data: dataset folder, Hub id or id@revision. In Python, also a dataset in memory; a ``Dataset`` is one split,
            "changed" if it has no name.
        tasks: names of tasks, separated by blanks or commas. In Python, also a list, or a mapping from their names
            to their options.
        config: configs to score on, separated by blanks or commas; by default all that the tasks can read. In Python,
            the name of data in memory.
        output: folder of the result files; results by default.
        limit: score only the first rows of each split.
        start: for learned_and_forgotten: the model that the training started from, or its result file or folder.
        judge: another model of a provider, which also judges the replies; the results say how often it agrees with
            the rules.
        precision: precision of likelihoods: auto, fp32 or bf16. auto, the default, is bf16 on GPUs that support it.
        after_cutoff: score only facts that began, and text that appeared, after a date (20211101, 2021-11) or after a
            model's cutoff: a cutoff.json of ``temporalwiki cutoff``, or the name of a model that has one in the
            output folder.
        retrieve: let the model read passages of this config, such as diffset-1112, before each question; of several
            with commas, those up to the month of the questions; or evidence: the sentence in the fact's own row.
        top_k: passages of --retrieve for each question; 5 by default.
        recipe: YAML file with these options. The other options override it.
        all_: print all rows, not only six, the main results first.
        tokenizer: tokenizer of models in memory. By default it is loaded from the model's ``name_or_path``.
        name: name of a model in memory, for the results; by default its ``name_or_path``. Two models may have the
            same name, because results also have a hash of the weights.
        options: options of the tasks, such as ``light_tuning=False``.

    Raises UsageError for a wrong argument, and InputError for a model or data that cannot be used.
    """
    given = {key: value for key, value in {**locals(), **options}.items() if key not in ("recipe", "options")}
    if recipe is not None:
        return evaluate(**_from_recipe(os.fspath(recipe), given))
    if limit is not None and limit < 1:
        raise UsageError(f"--limit must be at least 1, not {limit}")
    if top_k is not None and retrieve is None:
        raise UsageError("--top-k: name the config to retrieve from with --retrieve")
    for argument, value in (("model", model), ("data", data), ("tasks", tasks)):
        if value is None:
            raise UsageError(f"--{argument} is required, on the command line or in a recipe")
    if not (names := words(tasks or ())):
        raise UsageError("--tasks: name one or more, separated by commas")
    output, precision = Path("results" if output is None else output), precision or "auto"
    after = None if after_cutoff is None else read_after(after_cutoff, output)
    own = tasks if isinstance(tasks, Mapping) else {}
    chosen = _with_options({task: find_task(task) for task in names}, options, own)
    with needs("eval"):
        import trl  # noqa: F401  # light-tuning needs it: it is named before the work, not after

        from temporalwiki.eval_harness.models.local import modes_kept
        from temporalwiki.eval_harness.models.model import REPLIES
        from temporalwiki.eval_harness.results import table
        from temporalwiki.eval_harness.runner import Evaluation
        from temporalwiki.eval_harness.runner import evaluate as score

    scored = open_model(model, precision, tokenizer, name)
    first: str | Model | None = None
    if start is not None:
        first = os.fspath(start) if isinstance(start, str | os.PathLike) else open_held(start, precision, tokenizer)
    if judge is not None:
        reader = open_model(judge, precision)
        if REPLIES not in scored.can & reader.can:
            raise UsageError("--judge: both --model and --judge must be models of a provider, such as openai/NAME")
        scored.judge = reader
    configs = tuple(words(config or ()))
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
    with modes_kept(*scored.borrowed, *(() if first is None or isinstance(first, str) else first.borrowed)):
        results = score(wanted, scored)
    paths = [result.path for result in results]
    meaning = "First row: the main result. Brackets: 95 % intervals; docs/evaluating.md explains the scores."
    text = "\n".join([table(results, None if all_ else MOST_ROWS), meaning, *map(str, paths)])
    path = paths[0] if len(paths) == 1 else wanted.output
    return Scores(path, [row for result in results for row in score_rows(result)], text, results)


def open_model(model: Any, precision: str, tokenizer: Any = None, name: str | None = None) -> Model:
    """Return a model, given by name or in memory, ready to score. Raises UsageError for a wrong argument."""
    if precision not in PRECISIONS:
        raise UsageError(f"no precision {precision!r}; there are {', '.join(PRECISIONS)}")
    if tokenizer is not None or not isinstance(model, str | os.PathLike):
        return open_held(model, precision, tokenizer, name)
    if name is not None:
        raise UsageError(f"name= is for a model in memory, not for {os.fspath(model)}")
    with needs("eval"):
        from temporalwiki.eval_harness.models.cache import cache_folder
        from temporalwiki.eval_harness.models.local import default_precision
        from temporalwiki.eval_harness.models.stored import open_scores

    return open_scores(os.fspath(model), cache_folder(), default_precision() if precision == "auto" else precision)


def open_held(model: Any, precision: str, tokenizer: Any = None, name: str | None = None) -> HeldModel:
    """Return a model in memory, ready to score. A model that is given by name is loaded."""
    with needs("eval"):
        from temporalwiki.eval_harness.models.cache import cache_folder
        from temporalwiki.eval_harness.models.local import held_model
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
    known = [one for one in parameters(evaluate) if one.name != "recipe"]
    if wrong := sorted({"recipe", "tokenizer", "name"} & values.keys()):
        raise UsageError(f"{where}no option {wrong[0]!r} in a recipe")
    tasks = values.get("tasks")
    if isinstance(tasks, dict):
        parts = (tasks, *tasks.values())
        if not all(
            isinstance(part, dict | None) and all(isinstance(key, str) for key in part or ()) for part in parts
        ):
            raise UsageError(f"{where}tasks must map names of tasks to mappings of their options")
        known = [one for one in known if one.name != "tasks"]
    kinds = [(one.name, (tuple[one.kind, ...] if one.arg.many else one.kind) | None, None) for one in known]  # type: ignore[name-defined]
    typed = make_dataclass("Recipe", kinds)
    own: Any = from_mapping(typed, {name: values[name] for name, _, _ in kinds if name in values}, where)
    found = values | {name: getattr(own, name) for name, _, _ in kinds if name in values}
    return found | {name: value for name, value in given.items() if value is not None}


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
            near = did_you_mean(name, [*known, *(one.name for one in parameters(evaluate))])
            raise UsageError(f"{', '.join(tasks)}: no option {name!r}{near}{there}")
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
