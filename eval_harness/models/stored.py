"""Read a model's scores of facts from its result files, so that the model need not run again."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
import pyarrow as pa

from temporalwiki.base.errors import InputError
from temporalwiki.builders.loading import exists
from temporalwiki.eval_harness.facts import UNSCORED, identity, prompt_of
from temporalwiki.eval_harness.models.completions import CompletionsModel
from temporalwiki.eval_harness.models.local import CachedModel
from temporalwiki.eval_harness.models.logged import LoggedModel, is_log
from temporalwiki.eval_harness.models.model import STORED, FactScore, Model
from temporalwiki.eval_harness.models.server import COMPLETIONS, InterfaceModel, check_provider, is_interface
from temporalwiki.eval_harness.results import PROVIDER, Result, read_result, result_files
from temporalwiki.eval_harness.task import NothingToScoreError, Row
from temporalwiki.eval_harness.tasks import find_task
from temporalwiki.methods.checkpoint import ADAPTER
from temporalwiki.methods.expansion import SPEC

_TASKS = ("twiki_probes", "learned_and_forgotten", "deleted")  # they store the likelihoods of facts
_OF_MODELS = ("config.json", ADAPTER, SPEC)  # a model's folder has one of these files


class _LeftOut(NamedTuple):
    """A split of a result with facts that could not be scored."""

    split: str
    scored: frozenset[str]  # the ids of its scored facts
    unscored: int


Item = dict[str, Any]
_Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class _InPanel(msgspec.Struct):
    """The figures of an item that other results are compared with."""

    id: str
    panel: str
    chance: _Share
    known: _Share
    object_nll: float
    object_tokens: Annotated[int, msgspec.Meta(ge=1)]


class StoredScores(Model):
    """A model that is known by its results: it has scores for their facts, and for no other text."""

    can = frozenset({STORED})
    refusal = "{tasks}: {reference} holds results; this task needs the model itself"

    def __init__(self, path: Path) -> None:
        """Read a result file, or all results in a folder. Raises InputError unless they are of one model."""
        found = [read_result(file) for file in result_files(path)]
        self.reference = str(path)
        closed = [result for result in found if not _is_control(result)]
        self._results = [result for result in closed if result.manifest.task.name in _TASKS]
        if not self._results:
            only = " without --retrieve and --temperature" if len(closed) < len(found) else ""
            raise InputError(f"{path}: holds no results of {', '.join(_TASKS)}{only}, which store the scores of facts")
        models = [result.manifest.model for result in self._results]
        known = sorted({(model.name, model.revision, model.precision) for model in models})
        if len(known) > 1:
            names = ", ".join(f"{name} in {precision}" for name, _, precision in known)
            raise InputError(f"{path}: holds results of {len(known)} models ({names}); name the folder or file of one")
        self.name, self.revision, self.precision = known[0]
        if self.precision == PROVIDER:
            raise InputError(f"{path}: holds results of {self.name}, which gives no likelihoods")

    def training(self) -> dict[str, Any]:
        """Return how the model was trained, from its results; see ``local.training``."""
        known = self._results[0].data["model"]
        return {name: value for name, value in known.items() if name not in ("name", "revision", "precision")}

    def stored(self, rows: Sequence[Row], split: str) -> list[FactScore | None]:
        """Return the scores of the facts of a split, or None for facts that the model could not score.

        Raises NothingToScoreError if all results are of other versions of their tasks, or if they lack some of the
        facts, and InputError for damaged results.
        """
        known, left_out = self._read
        ids = [identity(row)["id"] for row in rows]
        missing = [row for row, id in zip(rows, ids, strict=True) if id not in known]
        asked = set(ids)
        if missing and not any(
            of.split == split and of.scored < asked and len(asked - of.scored) == of.unscored for of in left_out
        ):
            raise NothingToScoreError(
                f"{self.reference}: of other facts: {len(missing):,} of {len(rows):,} are not in it, such as "
                f"{prompt_of(missing[0])} {missing[0]['object']!r}; evaluate {self.name} on this data"
            )
        return [known.get(id) for id in ids]

    def known_items(self) -> dict[str, Item]:
        """Return the items of facts in panels by their id, from results of this version of the task."""
        found: dict[str, Item] = {}
        for result in self._results:
            task = result.manifest.task
            if task.name == "learned_and_forgotten" and task.version == find_task(task.name).version:
                found |= {item["id"]: item for item in _items_of(result)}
        return found

    @cached_property
    def _read(self) -> tuple[dict[str, FactScore], list[_LeftOut]]:
        """The scores of facts by id, and the splits that lack some."""
        known: dict[str, FactScore] = {}
        left_out: list[_LeftOut] = []
        other = []
        for result in self._results:
            task = result.manifest.task
            if task.version != find_task(task.name).version:
                other.append(f"{task.name} version {task.version}, now {find_task(task.name).version}")
                continue
            for split, scores in _scores_in(result).items():
                known |= scores
                if unscored := result.manifest.excluded.get(f"{split}: {UNSCORED}"):
                    left_out.append(_LeftOut(split, frozenset(scores), unscored))
        if other and not known:
            raise NothingToScoreError(
                f"{self.reference}: of other task versions ({'; '.join(other)}); evaluate it again"
            )
        return known, left_out


def _is_control(result: Result) -> bool:
    """Return whether the model had passages to read, or another temperature."""
    softened = "temperature" in result.data["task"].get("options", {})
    return softened or result.manifest.data.retrieved is not None


def _scores_in(result: Result) -> dict[str, dict[str, FactScore]]:
    """Return split -> id -> score, without splits of a light-tuned model. Raises InputError for a damaged file."""
    found: dict[str, dict[str, FactScore]] = {}
    with _undamaged(result):
        for item in result.items():
            # facts in other words are of no use to other tasks
            if "/" not in item["split"] and item.get("form", "name") == "name":
                score = msgspec.convert([item[name] for name in FactScore._fields], FactScore)
                if score.object_tokens < 1 or not math.isfinite(score.object_nll):
                    raise ValueError
                found.setdefault(item["split"], {})[item["id"]] = score
    return found


def _items_of(result: Result) -> list[Item]:
    """Return the items of a result with facts in panels. Raises InputError for a damaged file."""
    with _undamaged(result):
        items = [item for item in result.items() if item["form"] != "spelling"]
        for item in items:
            msgspec.convert(item, _InPanel)
    return items


@contextmanager
def _undamaged(result: Result) -> Iterator[None]:
    """Raise InputError for the errors of a damaged file of items."""
    try:
        yield
    except InputError:
        raise
    except (OSError, KeyError, TypeError, ValueError, pa.ArrowException):
        raise InputError(
            f"{result.path.with_suffix('.parquet')}: not the items of a result; evaluate the model again"
        ) from None


def open_scores(reference: str, cache: Path, precision: str) -> Model:
    """Return a model, or the stored scores if ``reference`` is a result file or a folder of results.

    The name of a provider's model gives a model behind an interface, and a log of another harness a ``LoggedModel``.
    Raises UsageError for an unknown provider, and InputError for a damaged log.
    """
    if is_interface(reference):
        completes = reference.partition("/")[0] in COMPLETIONS
        return CompletionsModel(reference, cache) if completes else InterfaceModel(reference, cache)
    check_provider(reference)
    path = Path(reference)
    if exists(reference) and not any((path / name).is_file() for name in _OF_MODELS):
        if result_files(path):
            return StoredScores(path)
        if is_log(path):
            return LoggedModel(path)
    return CachedModel(reference, cache, precision)
