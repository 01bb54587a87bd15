"""Evaluate one model: run each task on each config that it reads, and write one result file for each pair."""

import json
import re
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import datasets
import msgspec
import numpy as np

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.base.files import make_folder
from temporalwiki.base.json_files import fingerprint, write_json
from temporalwiki.base.terminal import say
from temporalwiki.builders.after_cutoff import After, Filter
from temporalwiki.builders.configs import BACKFILLED
from temporalwiki.builders.loading import config_names
from temporalwiki.builders.published import source_of
from temporalwiki.eval_harness.known import SCORED
from temporalwiki.eval_harness.leak import leak
from temporalwiki.eval_harness.misalignment import month_of
from temporalwiki.eval_harness.models.cache import cache_folder
from temporalwiki.eval_harness.models.model import LIKELIHOODS, REPLIES, WEIGHTS, Model
from temporalwiki.eval_harness.models.stored import open_scores
from temporalwiki.eval_harness.results import Result, path_of, read_result, write_result
from temporalwiki.eval_harness.retrieval import EVIDENCE, PASSAGES, Retriever, found_right
from temporalwiki.eval_harness.task import NothingToScoreError, Row, Task, check_columns
from temporalwiki.eval_harness.tasks import TASKS, find_task
from temporalwiki.methods.training_data import check_config, load

_LIBRARIES = ("torch", "transformers", "tokenizers", "peft", "datasets")
_PLACE = "temporalwiki: place"  # of a row in its split, a column of its own
_LONG_NAME = re.compile(r"-\d{8}-\d{8}$")  # of an interval, such as diffset-20211101-20211201


@dataclass(frozen=True)
class Evaluation:
    """A model, and the tasks and configs to score it on."""

    model: str  # folder, Hub id, .gguf file or package:NAME
    data: str  # folder, Hub id or id@revision
    tasks: Mapping[str, Task]  # by name
    configs: tuple[str, ...]  # empty: all that the tasks read
    output: Path
    limit: int | None  # most rows of each split
    label: str = ""  # the model's name on a leaderboard; empty: the name of its method
    start: str | Model | None = None  # the model that the model started from, or its results
    rows: Mapping[str, datasets.DatasetDict] | None = None  # the configs of data in memory
    after: After | None = None  # score only rows that are newer
    retrieve: str | None = None  # what the model reads before each question: a config with text, or "evidence"
    top_k: int = 5  # passages of that config


def evaluate(wanted: Evaluation, model: Model, available: list[str] | None = None) -> list[Result]:
    """Return the results of all tasks. Results that exist in ``wanted.output`` are read, the others computed.

    ``available`` are the configs of the data, if the caller knows them. A config without anything to score, and a task
    that needs a start model and has none, are left out with a printed line. Raises UsageError for a config or task
    that does not fit, and InputError for a model or data that cannot be used, or if nothing at all can be scored.
    """
    if model.can & {LIKELIHOODS, REPLIES}:  # other models are results: tasks that cannot read them are left out
        if unfit := [name for name, task in wanted.tasks.items() if not task.needs & model.can]:
            raise UsageError(_refusal(model, unfit))
        if wanted.start is not None and REPLIES in model.can:
            start = wanted.start if isinstance(wanted.start, str) else wanted.start.name
            raise UsageError(f"--start {start}: {model.reference} gives no likelihoods to compare{model.hint}")
    if wanted.output.exists() and not wanted.output.is_dir():
        raise InputError(f"{wanted.output}: is a file; name a folder with --output")
    if available is None:
        available = config_names(wanted.data) if wanted.rows is None else list(wanted.rows)
    for config in wanted.configs:
        check_config(wanted.data, config, available)
    plan = [
        (name, task, config)
        for name, task in wanted.tasks.items()
        for config in _configs_of(name, task, wanted, available)
    ]
    unused = set(wanted.configs) - {config for _, _, config in plan}
    if unused:
        raise UsageError(f"--config {min(unused)}: none of the tasks {', '.join(wanted.tasks)} reads it")
    retriever = _retriever(wanted, model, available)
    for task in wanted.tasks.values():
        task.recorded_options()  # notices a missing tagger before the model and the data are downloaded
    model.check()  # notices a wrong model before the data are downloaded
    results = []
    missing = _set_start(wanted, model)
    for name, task in wanted.tasks.items():
        if task.start == "used" and missing and wanted.start and model.state.is_main_process:
            say(f"{name}: not compared with a start model: {missing}")
    if wanted.after and wanted.start and missing and model.state.is_main_process:
        say(f"leak check of {wanted.model} itself: {missing}")
    for name, task, config in plan:
        try:
            if task.start == "needed" and missing:
                raise NothingToScoreError(f"{name}: {missing}")
            results.append(_evaluate(name, task, config, wanted, available, model, retriever))
        except NothingToScoreError as error:  # the other configs are still scored
            if (name, task, config) == plan[-1] and not results:
                raise
            if model.state.is_main_process:
                say(f"left out: {error}")
    return results


def _refusal(model: Model, tasks: Sequence[str]) -> str:
    """Return why a model cannot do some tasks, and which tasks it can do."""
    able = ", ".join(name for name in TASKS if find_task(name).needs & model.can)
    return model.refusal.format(tasks=", ".join(tasks), able=able, reference=model.reference, hint=model.hint)


def _retriever(wanted: Evaluation, model: Model, available: list[str]) -> Retriever | None:
    """Return the retriever of ``--retrieve``, or None. Raises UsageError if a task, model or data cannot have one."""
    if wanted.retrieve is None:
        return None
    asked = f"--retrieve {wanted.retrieve}"
    if unfit := [name for name, task in wanted.tasks.items() if not task.query]:
        raise UsageError(f"{asked}: {', '.join(unfit)} asks no questions that text could answer; leave it out")
    if WEIGHTS not in model.can:
        raise UsageError(f"{asked}: it needs a model whose weights are here, not {model.reference}")
    if wanted.rows is not None and wanted.retrieve != EVIDENCE:
        raise UsageError(f"{asked}: data in memory is one config; name a dataset folder, or retrieve {EVIDENCE}")
    retriever = Retriever(wanted.data, wanted.retrieve, wanted.top_k)
    retriever.check(available)
    return retriever


def _set_start(wanted: Evaluation, model: Model) -> str:
    """Give the model its start model. Return "", or the reason why no start model can be used."""
    if not any(task.start for task in wanted.tasks.values()) and wanted.after is None:
        model.start = None  # two models may not fit in memory
        return ""
    if wanted.start is None:
        model.start = None
        base = model.training().get("base")
        known = f"; it was trained from {base}" if base and model.training().get("method") else ""
        return f"name the model that {wanted.model} started from, or its results, with --start{known}"
    if model.start is not None and WEIGHTS in model.start.can and model.start.reference == wanted.start:
        return ""  # set by an earlier call: an experiment calls ``evaluate`` many times
    model.start = None
    start: Model
    try:
        if isinstance(wanted.start, str):
            start = open_scores(wanted.start, cache_folder(), model.precision)
        else:
            start = wanted.start
        start.check()
    except InputError as error:
        return f"--start {error}"
    if REPLIES in start.can:
        return f"--start {start.reference}: gives no likelihoods"
    if LIKELIHOODS in model.can and WEIGHTS in start.can - model.can:
        return (
            f"--start {start.reference}: has weights here, but {model.reference} is scored by its server; name one on "
            "a server, or its results"
        )
    if start.precision != model.precision:
        return (
            f"--start {start.reference}: its scores are {start.precision}, but {wanted.model} is scored in "
            f"{model.precision}; score both with the same --precision"
        )
    model.start = start
    return ""


def _configs_of(name: str, task: Task, wanted: Evaluation, available: list[str]) -> list[str]:
    readable = [config for config in available if config.startswith(task.configs)]
    if wanted.configs:
        readable = [config for config in wanted.configs if config in readable]
    else:  # the short and the long name of an interval have the same rows
        readable = [config for config in readable if not _LONG_NAME.search(config)] or readable
    if not readable:
        kinds = ", ".join(f"{kind}*" for kind in task.configs)
        raise UsageError(f"{name} reads {kinds}, and none of {', '.join(wanted.configs or available)} is one")
    return readable


def _evaluate(
    name: str,
    task: Task,
    config: str,
    wanted: Evaluation,
    available: list[str],
    model: Model,
    retriever: Retriever | None,
) -> Result:
    begun = time.perf_counter()
    if not task.needs & model.can:
        raise NothingToScoreError(_refusal(model, [name]))
    newer = None if wanted.after is None else _Newer(wanted.after, config, available, task)
    loaded = _splits(wanted, config)
    source = None if wanted.rows is not None else source_of(wanted.data, config, loaded)
    rows = _read(loaded, task.splits, wanted.limit, task.max_rows, newer, task.whole)
    for split, of_split in rows.items():
        check_columns(of_split, task.columns, f"{wanted.data}, {config}, {split}")
    if newer is not None and newer.nothing:
        count = sum(newer.dropped.values())
        raise NothingToScoreError(
            f"{wanted.data}, {config}: none of its {count:,} rows is newer than {wanted.after}, so {name} has nothing "
            "to score"
        )
    if not any(rows.values()):
        splits = ", ".join(loaded)
        raise NothingToScoreError(
            f"{wanted.data}, {config}: no rows in {', '.join(task.splits) or 'it'}, so nothing to score; "
            f"its splits are {splits}"
        )
    for prefix, other in task.extra_configs(config).items():
        if other in available:
            found = _read(_splits(wanted, other), (), None, None)
            rows |= {f"{prefix}/{split}": of_split for split, of_split in found.items()}
    # the Hub has no splits without rows
    with_rows = {split: of_split for split, of_split in rows.items() if of_split}
    inputs: dict[str, dict[str, Any]] = {
        "task": {"name": name, "version": task.version, "options": task.recorded_options()},
        "model": {"name": model.name, "revision": model.revision, "precision": model.precision},
        "data": {
            "dataset": (source and source.id) or wanted.data,
            "config": config,
            "rows": {split: sum(row.get(SCORED, True) for row in of) for split, of in with_rows.items()},
            "hash": fingerprint(json.dumps(with_rows, sort_keys=True, default=str)),  # str: for timestamps
        },
    }
    if source is not None:
        inputs["data"]["source"] = msgspec.to_builtins(source)
    if newer is not None:
        inputs["data"]["newer"] = newer.recorded
    if retriever is not None:
        retriever = retriever if "," not in retriever.source else replace(retriever, month=month_of(config))
        inputs["data"]["retrieved"] = retriever.identity
    if task.start and model.start is not None:
        inputs["start"] = {
            "name": model.start.name,
            "revision": model.start.revision,
            "precision": model.start.precision,
        }
    costs = Counter(model.costs)
    if model.judge is not None:
        inputs["judge"] = {"name": model.judge.name, "revision": model.judge.revision}
    path = path_of(wanted.output, inputs)
    if path.is_file():
        result = read_result(path)
        model.state.wait_for_everyone()  # all processes must look before one of them writes
        if source is not None and model.state.is_main_process:
            _name_source(result, inputs["data"])
        model.state.wait_for_everyone()
        return read_result(path)
    make_folder(path.parent)  # an error here comes before the work
    if retriever is not None:
        read = {split: of for split, of in rows.items() if "/" not in split}  # not the facts for light-tuning
        where = f"{wanted.data}, {config}"
        rows |= {split: retriever.with_passages(of, task.query, where) for split, of in read.items()}
        with_some = {split: sum(bool(row[PASSAGES]) for row in rows[split]) for split in read}
        facts = {split: counts for split in read if (counts := found_right(rows[split]))}
    if source is not None and REPLIES in model.can:
        rows = {split: [{**row, "language": source.language} for row in of] for split, of in rows.items()}
    outcome = task.run(model, rows)
    if not outcome.scores:
        why = ", ".join(f"{count} {reason}" for reason, count in outcome.excluded.items())
        raise NothingToScoreError(f"{wanted.data}, {config}: {name} could score nothing ({why})")
    checked = None if newer is None else leak(model, rows, outcome.items)
    if model.state.is_main_process:
        run = {
            "seconds": round(time.perf_counter() - begun, 1),
            "temporalwiki": version("temporalwiki"),
            "device": str(model.state.device),
            "processes": model.state.num_processes,
            "python": sys.version.split()[0],
            "libraries": {library: version(library) for library in _LIBRARIES},
            **(model.costs - costs),
        }
        # not part of the identity: the description of the training depends on which folders still exist
        label = {"label": wanted.label} if wanted.label else {}
        trained = model.training()
        run |= {"training_seconds": seconds} if (seconds := trained.pop("seconds", None)) is not None else {}
        described = {**inputs, "model": inputs["model"] | trained | label}
        if retriever is not None:
            described["data"] = inputs["data"] | {
                "retrieved": retriever.identity | {"found": with_some, "facts": facts}
            }
        if checked is not None:
            described["leak"] = msgspec.structs.asdict(checked)
        write_result(path, described, outcome, run)
    model.state.wait_for_everyone()
    return read_result(path)


def _splits(wanted: Evaluation, config: str) -> Any:
    return load(wanted.data, config, None) if wanted.rows is None else wanted.rows[config]


class _Newer:
    """A filter that counts the rows it keeps and drops. It keeps all rows of the splits that a task compares with."""

    def __init__(self, after: After, config: str, available: Sequence[str], task: Task) -> None:
        self._after, self._compared = after, task.compared
        self._filter = Filter.of(after, config, available)
        self.kept: dict[str, int] = {}
        self.dropped: dict[str, int] = {}

    def __call__(self, split: str, rows: Any) -> Any:
        kept = rows if split in self._compared else self._filter.kept(rows, split)
        self.kept[split], self.dropped[split] = len(kept), len(rows) - len(kept)
        return kept

    @property
    def nothing(self) -> bool:
        """Whether no row is left outside the compared splits."""
        left = [count for split, count in self.kept.items() if split not in self._compared]
        return any(self.dropped.values()) and not any(left)

    @property
    def recorded(self) -> dict[str, Any]:
        """The counts that a result records."""
        known = {"day": str(self._after.day), "model": self._after.model}
        return {**known, "kept": self.kept, "dropped": self.dropped}


def _name_source(result: Result, data: Mapping[str, Any]) -> None:
    """Name the dataset in a stored result as ``data`` does, unless the result names a revision on the Hub."""
    stored, known = result.data["data"], result.manifest.data.source
    named = {key: data[key] for key in ("dataset", "source")}
    better = known.id is None if known is not None else "@" in named["dataset"]
    if better and named != {key: stored.get(key) for key in named}:
        write_json(result.path, {**result.data, "data": {**stored, **named}})


def _read(
    splits_of: Mapping[str, Any],
    wanted: Sequence[str],
    limit: int | None,
    max_rows: int | None,
    newer: _Newer | None = None,
    whole: bool = False,
) -> dict[str, list[Row]]:
    """Return the rows of a config by split: of the ``wanted`` splits, or of all splits if none is named.

    BACKFILLED is never read. ``newer`` drops rows first. A split with more than ``max_rows`` rows is sampled with a
    fixed seed. Then the limit keeps the first rows. If ``whole``, all rows are returned, and ``SCORED`` is False in
    those that are not kept.
    """
    read = {}
    for split, rows in splits_of.items():
        if split == BACKFILLED or (wanted and split not in wanted):
            continue
        every = rows
        if whole:
            rows = rows.add_column(_PLACE, range(len(rows)))
        if newer is not None:
            rows = newer(split, rows)
        if max_rows is not None and len(rows) > max_rows:
            rows = rows.select(np.sort(np.random.default_rng(0).choice(len(rows), max_rows, replace=False)))
        read[split] = list(rows.select(range(min(len(rows), limit or len(rows)))))
        if whole:
            kept = {row[_PLACE] for row in read[split]}
            read[split] = [row if i in kept else {**row, SCORED: False} for i, row in enumerate(every)]
    return read
