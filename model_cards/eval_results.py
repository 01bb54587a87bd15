"""A model's ``.eval_results``: its entries on the benchmark's leaderboard in the Hub's Community Evals."""

import datetime
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml, parse_eval_result_entries
from huggingface_hub.constants import ENDPOINT

from temporalwiki.eval_harness.leaderboard.rows import Row
from temporalwiki.eval_harness.leaderboard.tables import number
from temporalwiki.eval_harness.result_manifest import ResultManifest, ResultScore
from temporalwiki.eval_harness.results import Result

PATH = ".eval_results/temporalwiki.yaml"
TASK, SPLITS, MEASURE = "twiki_probes", ("unchanged", "changed"), "exact_match"  # as in the dataset's eval.yaml
_PROBES = re.compile(r"probes-\d{8}-\d{8}")


class HubDataset(NamedTuple):
    """A dataset on the Hub."""

    id: str
    commit: str | None  # None if the result does not name one
    full_names: Mapping[str, str]  # short name of a config -> full name


def eval_results(results: Sequence[Result], datasets: Mapping[str, HubDataset], before: bytes = b"") -> str | None:
    """Return the content of the file ``PATH`` with a model's results on the probes, or None without such results.

    ``datasets`` are the datasets on the Hub, by the names that the results use. Results on other data or with
    ``--after-cutoff`` give no entries. A model that was trained on test data has none. The value is zero-shot exact
    match in percent, not perplexity, because entries cannot say that lower is better. If a task has several results,
    one of its latest version counts, in fp32 if there is one. The date of an entry is the day on which its result was
    written. Entries in the file ``before`` stay, unless there is a new one of their task.
    """
    earlier = {(one.dataset_id, one.task_id): one for one in _earlier(before)}
    entries: dict[tuple[str, str], EvalResultEntry] = {}
    for result in sorted(results, key=_rank):
        data = result.manifest.data
        on_hub, config = datasets.get(data.dataset), data.config
        if result.manifest.scored != TASK or on_hub is None or result.manifest.model.trained_on_test:
            continue
        config = on_hub.full_names.get(config, config)
        if not _PROBES.fullmatch(config):
            continue
        for split in SPLITS:
            score = result.manifest.scores.get(f"{split}/{MEASURE}")
            if score is None or not math.isfinite(score.value):
                continue
            entries[on_hub.id, f"{config}-{split}"] = EvalResultEntry(
                dataset_id=on_hub.id,
                task_id=f"{config}-{split}",
                value=round(score.value, 2),
                dataset_revision=on_hub.commit,
                date=_day(result.path),
                source_url=f"{ENDPOINT}/datasets/{on_hub.id}",
                source_name="temporalwiki",
                notes=_notes(result.manifest, split, score),
            )
    if not entries:
        return None
    listed = eval_result_entries_to_yaml([entry for _, entry in sorted((earlier | entries).items())])
    text: str = yaml.safe_dump(listed, sort_keys=False, width=120)
    return text


def _earlier(before: bytes) -> list[EvalResultEntry]:
    """Return the entries in a file of a model's page; a file that holds none gives no entries."""
    try:
        return parse_eval_result_entries(yaml.safe_load(before) or [])
    except (yaml.YAMLError, RecursionError, ValueError, TypeError, AttributeError, KeyError):
        return []


def _day(path: Path) -> str | None:
    """Return the day on which a result was written, or None if its file is gone."""
    if not path.is_file():
        return None
    return datetime.datetime.fromtimestamp(path.stat().st_mtime, datetime.UTC).date().isoformat()


def _rank(result: Result) -> tuple[Any, ...]:
    """Return a key that sorts the results of one task: the last one counts."""
    found = result.manifest
    return found.task.version, found.model.precision == "fp32", -len(found.data.config), result.path.name


def _notes(result: ResultManifest, split: str, score: ResultScore) -> str:
    interval = ""
    if score.low is not None and score.high is not None:
        interval = f", 95 % interval {number(score.low)} to {number(score.high)}"
    f1 = result.scores.get(f"{split}/f1")
    with_f1 = f"; F1 {number(f1.value)}" if f1 else ""
    beams = result.task.options.get("beams", 1)
    decoding = "greedy" if beams == 1 else f"{beams} beams"
    return (
        f"exact match in percent{interval}; {score.items:,} probes of {score.clusters:,} subjects"
        f"{with_f1}; the model goes on from 'SUBJECT RELATION' ({decoding}, no "
        f"instruction) and the answer ends with its sentence; temporalwiki {TASK} {result.task.version}"
    )


def with_interval(score: ResultScore | Row) -> str:
    """Return a score with its 95 % interval."""
    ends = ""
    if score.low is not None and score.high is not None:
        ends = f" [{number(score.low)}, {number(score.high)}]"
    return f"{number(score.value)}{ends}"
