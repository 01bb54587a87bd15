"""The rows of the leaderboard: one row per score. Tables, figures and the page are made from them."""

import json
import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple, get_type_hints

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from temporalwiki.base.errors import InputError
from temporalwiki.base.files import whole_file
from temporalwiki.base.options import element
from temporalwiki.base.terminal import in_line, say
from temporalwiki.builders.parquet import read_table
from temporalwiki.eval_harness.measures import Columns, Composition, composition, earned, higher_is_better
from temporalwiki.eval_harness.misalignment import month_of, month_of_model, places
from temporalwiki.eval_harness.results import COMMIT, MOST_ITEMS, PROVIDER, SERVER, Result
from temporalwiki.eval_harness.statistics import Estimate, Items, Ranks, estimate, ranks
from temporalwiki.methods import CONTROLS
from temporalwiki.methods.manifest import Parameters


@dataclass(frozen=True)
class Row:
    """A score of a model on a test.

    ``label`` names the model's line of checkpoints: the name from an experiment, else the method, else the model's own
    name. ``month`` and ``tested`` are named as in configs, such as "1112". ``rank_best`` and ``rank_worst`` are the
    ends of a 95 % confidence set of the rank among the models that were asked the same questions.
    """

    label: str
    month: str | None  # the last month that it was trained on; None: none, or not known
    method: str | None  # None: not trained by temporalwiki, or not known
    base: str  # the model that its first phase started from; the model itself if it was not trained
    model: str  # a Hub id, or a path's last name: rows may be published, and paths are private
    revision: str
    learning_rate: float | None
    trainable: int | None  # parameters
    parameters: int | None
    tokens: int | None  # read in all training phases
    task: str  # with " after 2021-10-31" if older rows were dropped
    version: int
    config: str  # such as "probes-1112"
    kind: str  # of the config, such as "probes"
    tested: str | None  # the month of the config
    test: str  # such as "changed", "light-tuned/average"; "" if the task has only one
    measure: str  # such as "perplexity"
    higher_is_better: bool | None  # None: neither is, so models are not ranked
    value: float  # the mean if there are several runs
    low: float | None  # of the 95 % interval; None if it is not known
    high: float | None
    items: int
    clusters: int
    runs: int  # training runs of the same recipe with other seeds; the interval of one run leaves their spread out
    spread: float | None  # standard deviation over runs; None for one run
    competes: bool  # False for a control, and for a score that a model could have without knowing anything
    rank_best: int | None  # None: not ranked
    rank_worst: int | None
    result: str  # the result file, relative to the folder of results
    trained_on_test: bool = False  # such a model is marked, has no ranks, and is never the best
    retrieved: str = ""  # what the model read before each question; with it, it counts as another model
    control: bool = False  # it must know nothing, or it is the ceiling: it has no rank
    relations: float | None = None  # as many equal relations would count as much as those of the facts
    reported: str = ""  # where others say that the score is from, if they put it on the Hub; else ""
    verified: bool = False  # whether the Hub says that it has verified a reported score


# columns of text; the other columns of items are figures and answers
_NAMES = ("id", "cluster", "relation", "split", "kind", "form")
_WITHOUT_START = ("known", "new_known", "old_known", "chance")  # the same with any start model, or with none
_LEAST_VERSION = {"learned_and_forgotten": 2, "deleted": 3}  # earlier ones are in nats, not in facts
_MOST_ROWS = 200_000  # the most rows of a leaderboard
_FIGURES = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_null)


class _Scored(NamedTuple):
    """A score of a model, or of several runs of one."""

    at: int  # the index of its result, or of the first run's
    score: str
    estimate: Estimate
    runs: int
    spread: float | None
    competes: bool
    ranks: Ranks | None


_ARROW = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
_SCHEMA = pa.schema([(name, _ARROW[element(hint)[0]]) for name, hint in get_type_hints(Row).items()])


def rows(results: Sequence[Result], folder: Path) -> list[Row]:
    """Return the rows of the results in ``folder``.

    They are sorted by tested month (no month first), task, config, test and measure, then by the month and label of
    the model. A model's month gets the same name as the tested month, if there is one.
    """
    results = [result for result in results if not _outdated(result)]
    trained = [month_of_model(result.manifest.model) for result in results]
    tested = [month_of(result.manifest.data.config) for result in results]
    place = places({month for month in (*trained, *tested) if month})
    longest_first = sorted({month for month in tested if month}, key=lambda month: (-len(month), month))
    names = {place[month]: month for month in longest_first}
    found = []
    for scored in _scored(results):
        month, test = trained[scored.at], tested[scored.at]
        named = month and names.get(place[month], month)
        found.append(_row(results[scored.at], scored, named, test, folder))

    def key(row: Row) -> tuple[Any, ...]:
        of_test, of_model = (-1 if month is None else place[month] for month in (row.tested, row.month))
        return (of_test, row.task, row.config, row.test, row.measure, of_model, row.label, row.model, row.result)

    return sorted(found, key=key)


def _outdated(result: Result) -> bool:
    """Return whether a result is of an earlier version of its task, with scores in another unit; say so."""
    task = result.manifest.task
    if task.version >= _LEAST_VERSION.get(task.name, 0):
        return False
    say(
        f"left out: {result.path}: {task.name} version {task.version}, which measured nats: evaluate "
        f"{result.manifest.model.name} again with --tasks {task.name}"
    )
    return True


def _control(result: Result) -> bool:
    """Return whether a result is of a control, or of the ceiling: the start model with the evidence to read."""
    model, read = result.manifest.model, result.manifest.data.retrieved
    ceiling = read is not None and read.source == "evidence" and model.method in (None, "initial")
    return ceiling or model.method in CONTROLS or _temperature(result) != 1


def _temperature(result: Result) -> float:
    return float(result.data["task"].get("options", {}).get("temperature", 1))


def shown_rank(row: Row | None) -> str:
    """Return the range of a score's rank as text, such as 1–3; "" without a rank."""
    ends = dict.fromkeys((row.rank_best, row.rank_worst)) if row else ()
    return "–".join(str(rank) for rank in ends if rank is not None)


def write_parquet(rows: Sequence[Row], path: Path) -> None:
    """Write rows to a Parquet file."""
    with whole_file(path) as part:
        pq.write_table(pa.Table.from_pylist([asdict(row) for row in rows], _SCHEMA), part)


def is_leaderboard(path: Path) -> bool:
    """Return whether a file is from ``write_parquet``, also of another version."""
    try:
        return {"label", "task", "measure", "rank_best"} <= set(pq.read_schema(path).names)
    except (OSError, pa.ArrowException):
        return False


def read_parquet(path: Path) -> list[Row]:
    """Return the rows of a file from ``write_parquet``. Raises InputError for any other file."""
    try:
        found = msgspec.convert(read_table(path, _MOST_ROWS).to_pylist(), list[Row])
        months = {month for row in found for month in (row.month, row.tested) if month is not None}
        if all(month_of(f"probes-{month}") == month for month in months):
            return found
    except (OSError, UnicodeError, pa.ArrowException, msgspec.ValidationError):
        pass
    raise InputError(f"{path}: not the rows of a leaderboard; `temporalwiki leaderboard` writes them")


def _row(result: Result, scored: _Scored, month: str | None, tested: str | None, folder: Path) -> Row:
    model, task, config = result.manifest.model, result.manifest.task, result.manifest.data.config
    test, _, measure = scored.score.rpartition("/")
    name, method, parameters = model.name, model.method, model.parameters or Parameters()
    read = result.manifest.data.retrieved
    label = (model.label or method or _last(name)) + (" on a server" if model.precision == SERVER else "")
    if (temperature := _temperature(result)) != 1:
        label += f", temperature {temperature:g}"
    row = Row(
        label=model.marked(label + (f", with {read}" if read else "")),
        month=month,
        method=method,
        base=model.base or ("" if method else _last(name)),
        model=name if COMMIT.fullmatch(model.revision) else without_path(name),
        revision=model.revision,
        learning_rate=model.learning_rate,
        trainable=parameters.trainable,
        parameters=parameters.total,
        tokens=model.tokens,
        task=result.manifest.asked,
        version=task.version,
        config=config,
        kind=config.removesuffix(f"-{tested}"),
        tested=tested,
        test=test,
        measure=measure,
        higher_is_better=higher_is_better(task.name, measure),
        **asdict(scored.estimate),
        runs=scored.runs,
        spread=scored.spread,
        competes=scored.competes,
        rank_best=scored.ranks and scored.ranks.best,
        rank_worst=scored.ranks and scored.ranks.worst,
        result=path_in(folder, result),
        trained_on_test=bool(model.trained_on_test),
        retrieved=str(read or ""),
        control=_control(result),
    )
    # names are shown, on the page, in tables, figures and cards
    texts: dict[str, Any] = {name: in_line(text) for name, text in asdict(row).items() if isinstance(text, str)}
    return replace(row, **texts)


def path_in(folder: Path, result: Result) -> str:
    """Return the path of a result relative to a folder."""
    return Path(os.path.relpath(result.path, folder)).as_posix()


def read_score(result: Result, items: Columns, score: str) -> Composition | None:
    """Return a score of a result with its items, or None if the items do not give that score."""
    test, _, measure = score.rpartition("/")
    stored = result.manifest.scores.get(score)
    found = composition(items, test, measure) if stored else None
    if found is None or stored is None or not math.isclose(found.value, stored.value, rel_tol=1e-9, abs_tol=1e-12):
        return None
    return found


def read_items(result: Result) -> Columns | None:
    """Return the figures of the items of a result, sorted by id, or None; raises what ``items_in`` raises."""
    table = items_in(result)
    if table is None:
        return None
    columns = {}
    for name in table.column_names:
        kind = table.schema.field(name).type
        if name in _NAMES:
            columns[name] = np.array([sys.intern(str(value)) for value in table[name].to_pylist()], dtype=object)
        elif any(is_kind(kind) for is_kind in _FIGURES):
            columns[name] = table[name].cast(pa.float64(), safe=False).to_numpy()  # rounds large integers
    return columns


def items_in(result: Result) -> pa.Table | None:
    """Return the items of a result, sorted by id, or None if their file is missing.

    Raises InputError if the file cannot be read.
    """
    path = result.path.with_suffix(".parquet")
    if not path.is_file():
        return None
    try:
        return read_table(path, MOST_ITEMS).sort_by([("id", "ascending"), ("cluster", "ascending")])
    except (OSError, KeyError, UnicodeError, pa.ArrowException):
        raise InputError(f"{path}: not the items of a result; evaluate the model again") from None


def _scored(results: Sequence[Result]) -> Iterator[_Scored]:
    """Yield all scores. Runs of a recipe that were asked the same are one score, and compete as one model."""
    by_question: dict[str, list[int]] = {}
    for i, result in enumerate(results):
        content = result.data
        asked = content["model"]["precision"] == PROVIDER  # its prompts are not the prompts of other models
        task = {**content["task"], "name": results[i].manifest.asked}
        key = [task, content["data"]["config"], content["data"]["hash"], asked]
        by_question.setdefault(json.dumps(key, sort_keys=True), []).append(i)
    for same in by_question.values():
        names = dict.fromkeys(name for i in same for name in results[i].manifest.scores)
        needed = len(same) > 1
        items = {i: columns for i in same if needed and (columns := read_items(results[i])) is not None}
        for score in names:
            yield from _of_score(results, [i for i in same if score in results[i].manifest.scores], items, score)


def _of_score(
    results: Sequence[Result], same: Sequence[int], items: Mapping[int, Columns], score: str
) -> Iterator[_Scored]:
    test, _, measure = score.rpartition("/")
    made = {i: found for i in same if i in items and (found := read_score(results[i], items[i], score)) is not None}
    comparable: dict[tuple[Any, ...], list[tuple[int, ...]]] = {}
    of_start = measure not in _WITHOUT_START
    for runs in _runs(results, same, made):
        start = results[runs[0]].manifest.start if of_start else None
        asked = made[runs[0]].asked if runs[0] in made else runs
        comparable.setdefault((asked, start and start.revision), []).append(runs)
    better = higher_is_better(results[same[0]].manifest.task.name, measure)

    def competes(runs: Sequence[int], found: Estimate) -> bool:
        of_runs = [results[i].manifest for i in runs]
        chances = [run.scores.get(f"{test}/chance") for run in of_runs]
        chance = fmean(one.value for one in chances if one) if all(chances) else 0.0
        unfair = any(results[i].manifest.model.trained_on_test or _control(results[i]) for i in runs)
        return better is not None and not unfair and earned(measure, found, chance)

    for models in comparable.values():
        estimates: dict[tuple[int, ...], Estimate] = {}
        for runs in models:
            stored = results[runs[0]].manifest.scores[score]
            estimates[runs] = Estimate(**msgspec.structs.asdict(stored))
            if len(runs) > 1:
                estimates[runs] = estimate(together(made, runs), made[runs[0]].scale)
        ranked: dict[tuple[int, ...], Ranks] = {}
        able = [runs for runs in models if competes(runs, estimates[runs])]
        known = [runs for runs in able if runs[0] in made]
        if len(models) > 1 and known:
            groups = together(made, [i for runs in known for i in runs])
            scale, counts = made[known[0][0]].scale, [len(runs) for runs in known]
            fixed = [results[runs[0]].manifest.model.seed is None for runs in known]
            places = ranks(groups, scale, higher_is_better=bool(better), runs=counts, fixed=fixed)
            ranked = dict(zip(known, places or (), strict=bool(places)))
        for runs in models:
            spread = stdev(made[i].value for i in runs) if len(runs) > 1 else None
            yield _Scored(runs[0], score, estimates[runs], len(runs), spread, runs in able, ranked.get(runs))


def _runs(results: Sequence[Result], same: Sequence[int], made: Mapping[int, Composition]) -> list[tuple[int, ...]]:
    """Return groups of results: the runs of one recipe with different seeds on the same items, by seed."""
    groups: dict[tuple[Any, ...], dict[int, int]] = {}
    for i in same:
        model = results[i].manifest.model
        if model.recipe is None or model.seed is None or i not in made:
            groups[(i,)] = {0: i}
            continue
        read = results[i].manifest.data.retrieved
        source = read and (read.source, read.top_k, read.hash, read.version)
        start = results[i].manifest.start
        key = (model.label, model.recipe, model.base, source, made[i].asked, start and start.revision)
        again = sum(model.seed in group for other, group in groups.items() if other[:-1] == key)
        groups.setdefault((*key, again), {})[model.seed] = i
    return [tuple(i for _, i in sorted(group.items())) for group in groups.values()]


def together(made: Mapping[int, Composition], chosen: Sequence[int]) -> list[Items]:
    """Return the items of results that were asked the same, with a row of numerators for each."""
    return [
        group._replace(numerators=np.array([made[i].groups[k].numerators for i in chosen]))
        for k, group in enumerate(made[chosen[0]].groups)
    ]


def without_path(name: str) -> str:
    """Return the name of a model that is not on the Hub, without the path of a local folder."""
    try:
        local = Path(name).is_absolute() or name.startswith((".", "~")) or Path(name).exists()
    except OSError:  # too long
        local = True
    return _last(name) if local else "/".join(Path(name).parts[-2:])


def _last(reference: str) -> str:
    """Return the last component of a model's name."""
    return Path(reference).name or reference
