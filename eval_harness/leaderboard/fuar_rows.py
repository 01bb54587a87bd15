"""FUAR of every checkpoint: how much it forgot for what it gained, in clozes and in probes (CKL, section 3.3)."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from temporalwiki.eval_harness.leaderboard.rows import Row, path_in, read_items, read_score
from temporalwiki.eval_harness.measures import Composition
from temporalwiki.eval_harness.metrics.fuar import TASKS, fuar
from temporalwiki.eval_harness.misalignment import month_of, places
from temporalwiki.eval_harness.results import Result
from temporalwiki.eval_harness.statistics import Floats, Items, quotient

_CLOZES = {"invariant": "invariantlama", "updated": "updatedlama", "new": "newlama"}
# scores of probes (task, test, measure) -> the test of FUAR, the split that they are of, and 1 if higher is better
_PROBES = {
    ("twiki_probes", "changed", "perplexity"): ("probes", "changed", -1.0),
    ("twiki_probes", "unchanged", "perplexity"): ("probes", "unchanged", -1.0),
    ("learned_and_forgotten", "all", "new_known"): ("known", "changed", 1.0),
    ("learned_and_forgotten", "all", "old_known"): ("known", "unchanged", 1.0),
}


class _WithItems(NamedTuple):
    """A score with its items."""

    row: Row
    made: Composition


class _Cell(NamedTuple):
    """One test on one set of rows of a config. Models with equal cells answered the same questions."""

    config: str
    hash: str  # of its rows
    task: str  # with version and options, as JSON
    test: str
    kind: str
    tested: str | None


@dataclass
class _FuarModel:
    """A checkpoint and its scores. All results of Initial with the same base are one model."""

    row: Row
    trained_on: tuple[str, ...]
    scores: dict[_Cell, _WithItems] = field(default_factory=dict)


def fuar_rows(results: Sequence[Result], rows: Sequence[Row], folder: Path) -> list[Row]:
    """Return the FUAR of every trained checkpoint as rows of the task "fuar"; ``rows`` are the rows of ``results``.

    - Test "lama" compares exact match with Initial's: losses on InvariantLAMA, gains on UpdatedLAMA and NewLAMA. It
      reads the configs of the checkpoint's own month, or configs without a month.
    - Test "known" uses the percentage of facts that learned_and_forgotten calls known, over all earlier models
      (equation 1). The invariant task of a corpus is the unchanged probes of the next month, its updated task the
      changed probes of its own month. It has no new task.
    - Test "probes" is the same with minus the log of the perplexity of twiki_probes.

    The earlier models of a checkpoint are Initial, and the checkpoints of the same label and base that were trained on
    a prefix of its configs. A checkpoint gets a row only if all of them are known, scored, and were asked the same
    questions. Intervals are Fieller's, over the clusters of all tests together. If the upper end is inf, there may be
    no gain.
    """
    models = _models(results, rows, folder)
    months = [month_of(config) for model in models for config in model.trained_on]
    months += [month for row in rows for month in (row.month, row.tested)]
    place = places({month for month in months if month})
    of_base: dict[str, list[_FuarModel]] = {}
    for model in models:
        of_base.setdefault(model.row.base, []).append(model)
    found: list[Row | None] = []
    for model in models:
        before = None if _initial(model.row) else _before(model, of_base[model.row.base])
        if before:
            found += [_clozes(model, before, place)]
            found += [_probes(model, before, place, test) for test in ("known", "probes")]

    def key(row: Row) -> tuple[Any, ...]:
        return row.test, place[row.month] if row.month else -1, row.label, row.base, row.model, row.result

    return sorted((row for row in found if row is not None), key=key)


def _models(results: Sequence[Result], rows: Sequence[Row], folder: Path) -> list[_FuarModel]:
    """Return the models with scores that FUAR uses: scores of the weights only, without retrieval."""
    wanted: dict[str, list[Row]] = {}
    for row in (row for row in rows if not row.retrieved):
        if (row.task, row.measure) == ("lama", "exact_match") or (row.task, row.test, row.measure) in _PROBES:
            wanted.setdefault(row.result, []).append(row)
    models: dict[tuple[Any, ...], _FuarModel] = {}
    for result in results:
        of_result = wanted.get(path_in(folder, result), [])
        items = read_items(result) if of_result else None
        if items is None:
            continue
        task = json.dumps(result.data["task"], sort_keys=True)
        for row in of_result:
            trained_on = tuple(result.manifest.model.trained_on)
            who = () if _initial(row) else (row.label, row.revision)
            model = models.setdefault((row.base, trained_on, *who), _FuarModel(row, trained_on))
            made = read_score(result, items, f"{row.test}/{row.measure}")
            if made is not None:
                score = (row.task, row.test, row.measure)
                test = "/".join(_PROBES[score][:2]) if score in _PROBES else row.test
                cell = _Cell(row.config, result.manifest.data.hash, task, test, row.kind, row.tested)
                model.scores.setdefault(cell, _WithItems(row, made))
    return list(models.values())


def _initial(row: Row) -> bool:
    return row.month is None and row.method in (None, "initial")


def _before(model: _FuarModel, models: Iterable[_FuarModel]) -> list[_FuarModel] | None:
    """Return the earlier models of a checkpoint, Initial first; None if one is not known."""
    chain: list[_FuarModel] = []
    for phases in reversed(range(len(model.trained_on))):
        same = [other for other in models if other.trained_on == model.trained_on[:phases]]
        own = [other for other in same if other.row.label == model.row.label and not _initial(other.row)]
        if len(own) > 1:  # checkpoints of several learning rates can have one label
            own = [other for other in own if other.row.learning_rate == model.row.learning_rate]
        if initial := [other for other in same if _initial(other.row) and not own]:
            return [initial[0], *chain]
        if len(own) != 1:
            return None
        chain.insert(0, own[0])
    return None


def _clozes(model: _FuarModel, before: Sequence[_FuarModel], place: Mapping[str, int]) -> Row | None:
    """Return the row of the test "lama", or None."""
    cells, month = _cells(model), model.row.month
    for task in sorted({cell.task for cell in cells}):
        found: dict[str, list[_WithItems]] = {}
        for name, kind in _CLOZES.items():
            of_kind = [cell for cell in cells if (cell.task, cell.kind) == (task, kind)]
            own = [cell for cell in of_kind if cell.tested and month and place[cell.tested] == place[month]]
            chosen = own or [cell for cell in of_kind if cell.tested is None]
            scored = _common([before[0], model], chosen)
            if scored is None or len({cell.test for cell in chosen}) > 1:  # the config has several splits
                break
            found[name] = scored
        else:
            configs = ", ".join(scores[-1].row.config for scores in found.values())
            pairs = [{name: (after, first) for name, (first, after) in found.items()}]
            return _row(model, "lama", configs, pairs, 1.0)
    return None


def _probes(model: _FuarModel, before: Sequence[_FuarModel], place: Mapping[str, int], test: str) -> Row | None:
    """Return the row of the test "known" or "probes", or None."""
    months = [month_of(config) for config in model.trained_on[len(before[0].trained_on) :]]
    order = [place[month] for month in months if month]
    if len(order) < len(months) or order != sorted(set(order)):
        return None  # the order of the corpora is not known
    cells = [cell for cell in _cells(model) if cell.kind == "probes"]

    def common(models: Sequence[_FuarModel], at: int, split: str) -> list[_WithItems] | None:
        of_month = (cell for cell in cells if cell.tested and place[cell.tested] == at)
        return _common(models, (cell for cell in of_month if cell.test == f"{test}/{split}"))

    updated = common([*before, model], order[-1], "changed")
    invariant = [common([other, model], at, "unchanged") for other, at in zip(before, order, strict=True)]
    if updated is None or None in invariant:
        return None
    pairs = [
        {"invariant": (kept[1], kept[0]), "updated": (updated[-1], first)}
        for first, kept in zip(updated[:-1], filter(None, invariant), strict=True)
    ]
    sign = next(sign for of, _, sign in _PROBES.values() if of == test)
    return _row(model, test, updated[-1].row.config, pairs, sign)


def _cells(model: _FuarModel) -> list[_Cell]:
    """Return the cells that a model was scored on, short names of months first."""
    return sorted(model.scores, key=lambda cell: (len(cell.config), *map(str, cell)))


def _common(models: Sequence[_FuarModel], cells: Iterable[_Cell]) -> list[_WithItems] | None:
    """Return the scores of the models on the first cell where all were asked the same questions, or None."""
    for cell in cells:
        found = [model.scores[cell] for model in models if cell in model.scores]
        if len(found) == len(models) and len({scored.made.asked for scored in found}) == 1:
            return found
    return None


def _row(
    model: _FuarModel,
    test: str,
    config: str,
    pairs: Sequence[Mapping[str, tuple[_WithItems, _WithItems]]],
    sign: float,
) -> Row:
    """Return the row of a FUAR from pairs of scores (of the model, of the earlier model), one dict for each corpus.

    A score is ``sign`` times the mean of the ratios of its groups, such as the forms that facts were asked in.
    """
    scored = {id(one): one for pair in pairs for both in pair.values() for one in both}
    groups: list[Items] = []
    at: dict[int, list[int]] = {}
    for key, one in scored.items():
        at[key] = list(range(len(groups), len(groups) + len(one.made.groups)))
        groups += [group._replace(numerators=sign * np.asarray(group.numerators)) for group in one.made.groups]
    sums = [(np.sum(of.numerators), np.sum(np.broadcast_to(of.denominators, len(of.ids)))) for of in groups]
    means = {key: float(np.mean([sums[i][0] / sums[i][1] for i in of])) for key, of in at.items()}

    def weights(tasks: Sequence[str], better: int) -> Floats:
        """Return the weights of the tests in the sum of all gaps above 0, or of all gaps if there are no such gaps."""
        gaps = [
            (id(pair[task][better]), id(pair[task][1 - better])) for pair in pairs for task in tasks if task in pair
        ]
        counted = [(plus, minus) for plus, minus in gaps if means[plus] > means[minus]] or gaps
        found = np.zeros(len(groups))
        for plus, minus in counted:
            found[at[plus]] += 1 / len(at[plus])
            found[at[minus]] -= 1 / len(at[minus])
        return found

    found = quotient(groups, weights(("invariant",), 1), weights(("updated", "new"), 0))
    sides = (
        [{task: means[id(pair[task][side])] if task in pair else None for task in TASKS} for pair in pairs]
        for side in (0, 1)
    )
    value = fuar(*sides)["fuar"]
    own = {id(both[0]): both[0] for pair in pairs for both in pair.values()}.values()
    return replace(
        next(iter(own)).row,
        task="fuar",
        version=1,
        config=config,
        kind="fuar",
        tested=model.row.month,
        test=test,
        measure="fuar",
        higher_is_better=False,
        value=value,
        low=found.low,
        high=found.high,
        items=sum(one.row.items for one in own),
        clusters=found.clusters,
        runs=1,
        spread=None,
        competes=True,
        rank_best=None,
        rank_worst=None,
    )
