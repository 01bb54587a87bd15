"""What an experiment shows at its end: what became of each cell, and the leaderboard of its results."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Sequence

from temporalwiki.base.files import only_one, sweep, whole_file
from temporalwiki.eval_harness.experiment.recipe import Experiment
from temporalwiki.eval_harness.experiment.run import DONE, FAILED, NOT_RUN, NOTHING, Progress
from temporalwiki.eval_harness.leaderboard import Card, write_leaderboard
from temporalwiki.eval_harness.results import read_result

_SHOWN = 10  # failures


def show(experiment: Experiment, progress: Sequence[Progress], card: Card) -> Iterator[str]:
    """Write OUTPUT/cells.csv and OUTPUT/leaderboard, and yield lines that say what was done.

    ``card`` makes the text of the leaderboard's README.md, as in ``write_leaderboard``.
    """
    path = experiment.output / "cells.csv"
    with only_one(experiment.output, "experiment"):
        sweep(experiment.output)
        experiment.output.mkdir(exist_ok=True)
        with whole_file(path) as part:
            part.write_text(_csv(progress), "utf-8")
    yield _table(progress)
    bad = [one for one in progress if one.state == FAILED]
    for one in bad[:_SHOWN]:
        yield f"failed: {one.cell.name}: {one.why}"
    if len(bad) > _SHOWN:
        yield f"and {len(bad) - _SHOWN} more, see {path}"
    files = [experiment.output / name for one in progress for name in one.noted.get("results", [])]
    if files:
        results = [read_result(file) for file in dict.fromkeys(files)]
        folder, out = experiment.output / "results", experiment.output / "leaderboard"
        yield from write_leaderboard(results, folder, out, card, experiment.data)
    else:
        yield "no result yet, so no leaderboard"


def _csv(progress: Sequence[Progress]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["cell", "state", "seconds", "why"])
    for one in progress:
        writer.writerow([one.cell.name, one.state, one.noted.get("seconds", ""), one.why])
    return text.getvalue()


def _table(progress: Sequence[Progress]) -> str:
    """Return a line a checkpoint: its training, and how many of its evaluations are done."""
    models: dict[str, list[Progress]] = {}
    for one in progress:
        models.setdefault(one.cell.group.removesuffix("/evaluate"), []).append(one)
    lines = [["checkpoint", "training", "evaluations"]]
    for name, of in models.items():
        trainings = [one for one in of if one.cell.group == name]
        trained = ", ".join(
            f"{one.state}, {one.noted['seconds']:,.0f} s" if one.noted else one.state for one in trainings
        )
        states = Counter(one.state for one in of if one.cell.group != name)
        counts = ", ".join(f"{states[state]} {state}" for state in (DONE, NOTHING, FAILED, NOT_RUN) if states[state])
        lines.append([name, trained, counts])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )
