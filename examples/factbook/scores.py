"""Write every number of docs/study.md: python examples/factbook/scores.py OUT.parquet [NAME=]RESULTS...

RESULTS is a folder of results; study.sh makes the study's. With small=RESULTS, methods are named "diff, small". The
recipe demo-price makes results for docs/price.md.
"""

from __future__ import annotations

import csv
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from temporalwiki.base.files import whole_file
from temporalwiki.eval_harness.leaderboard.fuar_rows import fuar_rows
from temporalwiki.eval_harness.leaderboard.rows import Row, read_items, rows, together
from temporalwiki.eval_harness.leaderboard.selection import ModelBoard, ScoreName
from temporalwiki.eval_harness.leaderboard.tables import paid
from temporalwiki.eval_harness.measures import Columns, Composition, composition
from temporalwiki.eval_harness.misalignment import month_of_model
from temporalwiki.eval_harness.results import Result, read_results
from temporalwiki.eval_harness.statistics import Comparison, Estimate, compare, estimate
from temporalwiki.methods.options import ADDED

MEASURES = ("new_known", "old_known", "learned", "forgotten", "corrected", "chance")
TESTS = ("all", "strict", "unread", "name/all", "cloze/all", "question/all")
_Runs = Sequence[tuple[Result, Columns]]
LASTING = "lasting"  # changed facts that no later year of the study changes again
SCHEMA = pa.schema(
    [(name, pa.string()) for name in ("measure", "method", "minus", "read", "year", "test", "relation")]
    + [(name, pa.int64()) for name in ("runs", "facts")]
    + [(name, pa.float64()) for name in ("value", "low", "high")]
)


def numbers(results: Sequence[Result], folder: Path) -> Iterator[dict[str, Any]]:
    """Yield a row for each score of a method, of each of its runs, and of its difference to ``diff``.

    ``read`` and ``year`` are the years that the model had read and whose facts were asked. A difference compares
    the means over all runs, fact by fact, in points, and "study-2x" with "diff-2x" as well. With several years,
    the test ``lasting`` asks the facts of a year that all later years leave as they are. Their measure ``lost`` is how
    many points of new facts known are gone after ``read``, such as "2 later" years, on average over the years. A
    difference of the ``read`` "just read" is the mean over all years of differences just after each.
    """
    scored = rows(results, folder)
    yield from prices(scored, folder.parent / "cells.csv")
    for row in (*scored, *fuar_rows(results, scored, folder)):
        if row.task == "fuar" and row.test == "known":
            found = Estimate(row.value, row.low, row.high, row.items, row.clusters)
            yield _number(row.label, "", row.month, row.tested, "all/fuar", row.runs, found)
        if row.task == "learned_and_forgotten" and row.test in TESTS and row.measure in MEASURES:
            found = Estimate(row.value, row.low, row.high, row.items, row.clusters)
            yield _number(row.label, "", row.month, row.tested, f"{row.test}/{row.measure}", row.runs, found)
    by_run: dict[tuple[Any, ...], list[tuple[Result, dict[str, Any]]]] = defaultdict(list)
    for result in results:
        plain = result.data["task"]["options"].get("temperature", 1) == 1 and not result.manifest.data.retrieved
        if plain and (items := read_items(result)) is not None:
            by_run[
                month_of_model(result.manifest.model), result.manifest.data.config, result.manifest.model.label or ""
            ].append((result, dict(items)))
    _mark_lasting(by_run)
    yield from _over_years(by_run)
    for (read, config, label), runs in by_run.items():
        year, seeded = config.removeprefix("probes-"), len(runs) > 1
        for measure in ("new_known", "learned"):
            if made := _together(runs, LASTING, measure):
                lasting = estimate(made.groups, made.scale)
                yield _number(label, "", read, year, f"{LASTING}/{measure}", len(runs), lasting)
        for test in TESTS:
            for measure in MEASURES[:-1]:
                score = f"{test}/{measure}"
                for result, _ in runs if seeded else ():
                    seed = f"{label}, seed {result.manifest.model.seed}"
                    if score in (scores := result.manifest.scores):
                        one = scores[score]
                        found = Estimate(one.value, one.low, one.high, one.items, one.clusters)
                        yield _number(seed, "", read, year, score, 1, found)
                for base in dict.fromkeys(("diff", re.sub("^[^-]*", "diff", label))):
                    there = by_run.get((read, config, base), []) if score in runs[0][0].manifest.scores else []
                    if label != base and there and (apart := _apart(there, runs, test, measure)) is not None:
                        yield _number(label, base, read, year, score, len(runs), apart)


def prices(scored: Sequence[Row], cells: Path) -> Iterator[dict[str, Any]]:
    """Yield what each method's models cost: tokens in thousands, seconds, kilobytes, and tokens per learned fact.

    Tokens and seconds count all months up to the model's; the seconds are the fastest run's, which other programs
    disturb least. Kilobytes count what the last month changed or added. Where the interval of ``learned``
    holds 0, a fact may cost any number of tokens: that end is None, as is the price if nothing was learned.
    """
    board, seconds = ModelBoard(scored), _seconds(cells)
    for line in board.lines:
        by_name = board.own_month(line, ScoreName("learned_and_forgotten", "learned", "name/all"))
        for at, row in board.own_month(line, ScoreName("learned_and_forgotten", "learned", "all")).items():
            tokens = paid(board, line, row)
            if tokens is None or row.month is None or row.trainable is None:
                continue
            took = sum(of for (label, month), of in seconds.items() if label == row.label and month <= row.month)
            found = {"thousand_tokens": tokens / 1e3, "kilobytes": ADDED * row.trainable / 1e3}
            found |= {"seconds": took} if took else {}
            facts = by_name.get(at, row).items
            each = [
                None if points is None or points <= 0 else tokens / 1e3 / (points / 100 * facts)
                for points in (row.value, row.high, row.low)
            ]
            ends = {measure: (value, None, None) for measure, value in found.items()}
            for measure, (value, low, high) in (ends | {"thousand_tokens_per_fact": tuple(each)}).items():
                number = _number(row.label, "", row.month, row.tested, f"all/{measure}", row.runs, row)
                yield number | {"facts": facts, "value": value, "low": low, "high": high}


def _seconds(cells: Path) -> dict[tuple[str, str], float]:
    """Return (label, month) -> the seconds of its fastest training, from an experiment's list of cells."""
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for cell in csv.DictReader(cells.read_text("utf-8").splitlines()) if cells.is_file() else ():
        name, _, month = cell["cell"].partition("/")
        if month and "/" not in month and cell["state"] == "done" and cell["seconds"]:
            found[re.sub(r"-seed\d+$", "", name), month].append(float(cell["seconds"]))
    return {key: min(each) for key, each in found.items()}


def _mark_lasting(by_run: Mapping[tuple[Any, ...], Sequence[tuple[Result, dict[str, Any]]]]) -> None:
    """Give items of several years the column ``lasting``."""
    changed: dict[str, set[tuple[str, str]]] = {}
    for (_, config, _), runs in by_run.items():
        for _, items in runs:
            of = items["split"] == "changed"
            keys = zip(items["cluster"][of], items["relation"][of], strict=True)
            changed.setdefault(config, set()).update(keys)
    for (_, config, _), runs in by_run.items():
        # names of configs are sorted by date
        later = set().union(*(keys for other, keys in changed.items() if other > config))
        for _, items in runs if len(changed) > 1 else ():
            keys = zip(items["cluster"], items["relation"], strict=True)
            items[LASTING] = np.array([float(key not in later) for key in keys])


def _over_years(by_run: Mapping[tuple[Any, ...], _Runs]) -> Iterator[dict[str, Any]]:
    """Yield what is lost some years later, and differences to ``diff`` just after a year was read, over all years."""
    years = sorted({config.removeprefix("probes-") for _, config, _ in by_run})

    def cell(label: str, at: int, later: int) -> _Runs:
        return by_run.get((years[at + later], f"probes-{years[at]}", label), [])

    for label in dict.fromkeys(label for _, _, label in by_run):
        for later in range(1, len(years)):
            pairs = [(cell(label, at, later), cell(label, at, 0)) for at in range(len(years) - later)]
            if lost := _mean_apart(pairs, LASTING):
                yield _number(label, "", f"{later} later", "all", f"{LASTING}/lost", *lost)
        pairs = [(cell("diff", at, 0), cell(label, at, 0)) for at in range(len(years))]
        if label != "diff" and len(pairs) > 1 and all(map(all, pairs)) and (found := _mean_apart(pairs, "all")):
            yield _number(label, "diff", "just read", "all", "all/new_known", *found)


def _mean_apart(pairs: Iterable[tuple[_Runs, _Runs]], test: str) -> tuple[int, Comparison] | None:
    """Return the runs of each side, and the second minus the first side's new facts known, on average over pairs."""
    pairs = [pair for pair in pairs if all(pair)]
    runs = min((len(side) for pair in pairs for side in pair), default=0)
    sides = [[_together(pair[i][:runs], test, "new_known") for pair in pairs] for i in (0, 1)]
    one, other = ([made for made in side if made is not None] for side in sides)
    if not one or len(one) < len(other):
        return None
    groups = [[group for made in side for group in made.groups] for side in (one, other)]
    return runs, compare(groups[0], groups[1], one[0].scale)


def _together(runs: _Runs, test: str, measure: str) -> Composition | None:
    made = [composition(items, test, measure) for _, items in runs]
    known = {at: found for at, found in enumerate(made) if found is not None}
    if len(known) < len(made):
        return None
    return known[0]._replace(groups=together(known, range(len(made))))


def _apart(base: _Runs, runs: _Runs, test: str, measure: str) -> Comparison | None:
    one, other = (_together(side, test, measure) for side in (base, runs))
    return compare(one.groups, other.groups, one.scale) if one and other else None


def _number(
    method: str,
    minus: str,
    read: str | None,
    year: str | None,
    score: str,
    runs: int,
    found: Estimate | Comparison | Row,
) -> dict[str, Any]:
    test, _, measure = score.rpartition("/")
    value = found.difference if isinstance(found, Comparison) else found.value
    names = {"measure": measure, "method": method, "minus": minus, "read": read or "", "year": year, "test": test}
    return names | {
        "relation": "",
        "runs": runs,
        "facts": found.items,
        "value": value,
        "low": found.low,
        "high": found.high,
    }


if __name__ == "__main__":
    out, *given = sys.argv[1:]
    found = [
        number | {"method": ", ".join(filter(None, (number["method"], name)))}
        for name, _, folder in (argument.rpartition("=") for argument in given)
        for number in numbers(read_results(Path(folder)), Path(folder))
    ]
    with whole_file(Path(out)) as part:
        pq.write_table(pa.Table.from_pylist(found, SCHEMA), part)
