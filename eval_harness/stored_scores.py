"""Read a model's scores of facts from its result files, so that the model need not run again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from accelerate import PartialState

from temporalwiki.base.errors import InputError
from temporalwiki.eval_harness.cached_model import CachedModel
from temporalwiki.eval_harness.facts import UNSCORED, FactScore, identity, prompt_of, score_facts
from temporalwiki.eval_harness.results import is_result, read_result
from temporalwiki.eval_harness.task import NothingToScoreError, Row
from temporalwiki.eval_harness.tasks import find_task
from temporalwiki.methods.processes import processes

Item = dict[str, Any]

_TASKS = ("twiki_probes", "learned_and_forgotten", "deleted")  # they store the likelihoods of facts


class StoredScores:
    """A model that is known by its results: it has scores for their facts, and for no other text."""

    start: Scored | None = None  # the model that it started from

    def __init__(self, path: Path) -> None:
        """Read a result file, or all results in a folder. Raises InputError unless they are of one model."""
        found = [read_result(file) for file in _files(path)]
        self.reference = str(path)
        self._results = [result for result in found if result.manifest.task.name in _TASKS]
        if not self._results:
            raise InputError(f"{path}: holds no results of {', '.join(_TASKS)}, which store the scores of facts")
        models = {(result.manifest.model.name, result.manifest.model.revision) for result in self._results}
        if len(models) > 1:
            names = ", ".join(sorted(name for name, _ in models))
            raise InputError(
                f"{path}: holds results of {len(models)} models ({names}); name the folder or file of one"
            )
        self.name = self._results[0].manifest.model.name
        self.revision = self._results[0].manifest.model.revision
        self.precision = self._results[0].manifest.model.precision

    @cached_property
    def state(self) -> PartialState:
        """The processes that share the work."""
        return processes()

    def check(self) -> None:
        """Do nothing: the results have been read."""

    def training(self) -> dict[str, Any]:
        """Return how the model was trained, from its results; see ``cached_model.training``."""
        known = self._results[0].data["model"]
        return {name: value for name, value in known.items() if name not in ("name", "revision", "precision")}

    def facts(self, rows: Sequence[Row]) -> list[FactScore | None]:
        """Return the scores of facts, or None for those that the results left out as not scorable.

        Raises NothingToScoreError if the results are of other versions of their tasks, or of other facts.
        """
        known: dict[str, FactScore] = {}
        left_out, other = 0, []
        for result in self._results:
            task = result.manifest.task
            if task.version != find_task(task.name).version:
                other.append(f"{task.name} version {task.version}, now {find_task(task.name).version}")
                continue
            left_out += sum(n for why, n in result.manifest.excluded.items() if why.endswith(UNSCORED))
            for item in result.items():
                if "/" not in item["split"]:  # not after light-tuning
                    known.setdefault(item["id"], FactScore(*(item[name] for name in FactScore._fields)))
        if other and not known:
            raise NothingToScoreError(
                f"{self.reference}: of other task versions ({'; '.join(other)}); evaluate it again"
            )
        found = [known.get(identity(row)["id"]) for row in rows]
        missing = [row for row, score in zip(rows, found, strict=True) if score is None]
        if len(missing) > left_out:
            raise NothingToScoreError(
                f"{self.reference}: of other facts: {len(missing):,} of {len(rows):,} are not in it, such as "
                f"{prompt_of(missing[0])} {missing[0]['object']!r}; evaluate {self.name} on this data"
            )
        return found


Scored = CachedModel | StoredScores


def open_scores(reference: str, cache: Path, precision: str) -> Scored:
    """Return a model, or the stored scores if ``reference`` is a result file or a folder of results."""
    path = Path(reference)
    return StoredScores(path) if _files(path) else CachedModel(reference, cache, precision)


def scored_facts(model: Scored, facts: Mapping[str, Sequence[Row]], excluded: Counter[str]) -> list[Item]:
    """Return an item for each fact (by split), with its ``gain`` since ``model.start`` if that is known.

    ``excluded`` counts facts that cannot be scored. Raises NothingToScoreError if the two models have different
    tokenizers.
    """
    items: list[Item] = []
    for split, rows in facts.items():
        after = _scores(model, rows, f"{split}: facts")
        before = after if model.start is None else _scores(model.start, rows, f"{split}: facts, start model")
        for row, score, first in zip(rows, after, before, strict=True):
            if score is None or first is None:
                excluded[f"{split}: {UNSCORED}"] += 1
                continue
            item = {**identity(row), "split": split, **score._asdict()}
            if model.start is not None:
                if first.object_tokens != score.object_tokens:
                    raise NothingToScoreError(
                        f"{model.reference} and {model.start.reference} have different tokenizers: {row['object']!r} "
                        f"has {score.object_tokens} tokens of the first and {first.object_tokens} of the second"
                    )
                gain = (first.object_nll - score.object_nll) / score.object_tokens
                item |= {"start_nll": first.object_nll, "gain": gain}
            items.append(item)
    return items


def _scores(model: Scored, rows: Sequence[Row], what: str) -> list[FactScore | None]:
    if isinstance(model, StoredScores):
        return model.facts(rows)
    return score_facts(model, [(prompt_of(row), row["object"]) for row in rows], what)


def _files(path: Path) -> list[Path]:
    try:
        files = [path] if path.is_file() else sorted([*path.glob("*.json"), *path.glob("*/*.json")])
    except (OSError, ValueError):  # the name of a model may not be a path
        return []
    return [file for file in files if is_result(file)]
