"""The report of an experiment: the outcome of each cell, and the leaderboard of its results."""

import csv
from collections import Counter
from collections.abc import Iterator, Sequence

from temporalwiki.base.files import only_one, sweep, whole_file
from temporalwiki.base.terminal import table
from temporalwiki.eval_harness.experiment.recipe import Experiment
from temporalwiki.eval_harness.experiment.run import DONE, FAILED, NOT_RUN, NOTHING, CellOutcome
from temporalwiki.eval_harness.leaderboard.write import Card, write_leaderboard
from temporalwiki.eval_harness.results import read_result

_SHOWN = 10  # most failures that are printed


def show(experiment: Experiment, outcomes: Sequence[CellOutcome], card: Card) -> Iterator[str]:
    """Write OUTPUT/cells.csv and OUTPUT/leaderboard, and yield lines about them.

    ``card`` makes the text of the leaderboard's README.md, as in ``write_leaderboard``.
    """
    path = experiment.output / "cells.csv"
    with only_one(experiment.output, "experiment"):
        sweep(experiment.output)
        with whole_file(path) as part, part.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["cell", "state", "seconds", "why"])
            writer.writerows([one.cell.name, one.state, one.note.get("seconds", ""), one.why] for one in outcomes)
    yield _table(outcomes)
    bad = [one for one in outcomes if one.state == FAILED]
    for one in bad[:_SHOWN]:
        yield f"failed: {one.cell.name}: {one.why}"
    if len(bad) > _SHOWN:
        yield f"and {len(bad) - _SHOWN} more, see {path}"
    files = [experiment.output / name for one in outcomes for name in one.note.get("results", [])]
    if files:
        results = [read_result(file) for file in dict.fromkeys(files)]
        folder, out = experiment.output / "results", experiment.output / "leaderboard"
        yield from write_leaderboard(results, folder, out, card, experiment.data)
    else:
        yield "no result yet, so no leaderboard"


def _table(outcomes: Sequence[CellOutcome]) -> str:
    """Return one line per checkpoint: the state of its training, and the number of evaluations in each state."""
    models: dict[str, list[CellOutcome]] = {}
    for one in outcomes:
        models.setdefault(one.cell.group.removesuffix("/evaluate"), []).append(one)
    lines = [["checkpoint", "training", "evaluations"]]
    for name, of_model in models.items():
        trainings = [one for one in of_model if one.cell.group == name]
        trained = ", ".join(
            f"{one.state}, {one.note['seconds']:,.0f} s" if one.note else one.state for one in trainings
        )
        states = Counter(one.state for one in of_model if one.cell.group != name)
        counts = ", ".join(f"{states[state]} {state}" for state in (DONE, NOTHING, FAILED, NOT_RUN) if states[state])
        lines.append([name, trained, counts])
    return "\n".join(table(lines, left=3))
