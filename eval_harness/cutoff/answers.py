"""Graded answers of any model to dated questions: from a CSV file to a cutoff that holds for all forms of asking."""

import csv
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from temporalwiki.base.errors import InputError
from temporalwiki.base.markdown import spreadsheet_cell
from temporalwiki.base.options import did_you_mean
from temporalwiki.base.terminal import in_line
from temporalwiki.eval_harness.cutoff.estimator import FEWEST, Belief, ChangeEvidence, Cutoff, curve, join, share_known
from temporalwiki.eval_harness.cutoff.report import Report, written

COLUMNS = ("model", "form", "date", "topic", "grade")
GRADES = ("right", "wrong", "abstained", "unreadable")
KINDS = ("change", "unchanged", "never")
_DAY = re.compile(r"([12]\d{3})-(0[1-9]|1[0-2])(-\d\d)?")
_LONGEST = 10_000_000  # rows


class Answer(NamedTuple):
    """A graded answer to a question about a dated event."""

    form: str
    topic: str
    kind: str  # change; unchanged and never are controls: the right answer is that nothing happened
    grade: str
    item: ChangeEvidence
    advertised: str | None = None  # the last month that the model knows, as its provider says


def read_answers(path: Path) -> dict[str, list[Answer]]:
    """Return the answers in a CSV file by model.

    Raises InputError, which names the row, for a file that is not such a table, and for a wrong grade, kind or date.
    """
    found: dict[str, list[Answer]] = {}
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            table = csv.DictReader(file, strict=True)
            if missing := [name for name in COLUMNS if name not in (table.fieldnames or ())]:
                near = did_you_mean(missing[0], table.fieldnames or ())
                raise InputError(f"{path}: no column {missing[0]}{near}; it needs {', '.join(COLUMNS)}")
            for number, row in enumerate(table, 2):
                if number > _LONGEST:
                    raise InputError(f"{path}: more than {_LONGEST:,} rows")
                if None in row or None in row.values():
                    raise InputError(f"{path}, row {number}: has not as many cells as the first row")
                found.setdefault(row["model"], []).append(_answer(row, f"{path}, row {number}", number))
    except (OSError, UnicodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    if not found:
        raise InputError(f"{path}: no answers in it")
    return found


def _answer(row: Mapping[str, str], where: str, number: int) -> Answer:
    kind, day = row.get("kind") or KINDS[0], _DAY.fullmatch(row["date"])
    for name, value, choices in (("grade", row["grade"], GRADES), ("kind", kind, KINDS)):
        if value not in choices:
            near = did_you_mean(value, choices)
            raise InputError(f"{where}: no {name} {in_line(value)!r}{near}; there are {', '.join(choices)}")
    if day is None:
        raise InputError(f"{where}: {in_line(row['date'])!r} is not a date: write YYYY-MM-DD")
    advertised = row.get("advertised") or None
    if advertised and not (_DAY.fullmatch(advertised) and len(advertised) == len("2025-03")):
        raise InputError(f"{where}: advertised {in_line(advertised)!r} is not a month: write YYYY-MM")
    if not row["model"] or not row["form"]:
        raise InputError(f"{where}: no {'form' if row['model'] else 'model'}")
    month = int(day[1]) * 12 + int(day[2]) - 1
    # a model that does not answer does not know: an abstention counts as a wrong answer
    known = 1.0 if row["grade"] == "right" else -1.0
    event = row.get("event") or f"row {number}"
    item = ChangeEvidence(month, row["topic"], event, known)
    return Answer(row["form"], row["topic"], kind, row["grade"], item, advertised)


def judged_answers(
    model: str, answers: Sequence[Answer], source: str, first: int | None = None, last: int | None = None
) -> Report:
    """Return the report of a model from its graded answers to events from month ``first`` to ``last``.

    Raises InputError for fewer than FEWEST readable answers about changes.
    """
    read = [one for one in answers if one.grade != "unreadable"]
    asked = [one for one in read if (first or 0) <= one.item.month <= (last or one.item.month)]
    changes = [one for one in asked if one.kind == "change"]
    if len(changes) < FEWEST:
        raise InputError(
            f"{source}: {in_line(model)}: {len(changes)} answers about changes; at least {FEWEST} are needed"
        )
    controls = {
        kind: share_known([one.item for one in asked if one.kind == kind]).value
        for kind in KINDS[1:]
        if any(one.kind == kind for one in asked)
    }
    overall, forms = _by_form(changes)
    topics = {topic: _by_form([one for one in changes if one.topic == topic])[0] for topic in _names(changes, "topic")}
    if any(right < 50 for right in controls.values()):  # it calls everything changed
        overall = _without_level(overall)
        forms, topics = ({name: _without_level(one) for name, one in of.items()} for of in (forms, topics))
    counts = {"answers": len(asked), "unreadable": len(answers) - len(read)}
    named = [(*map(spreadsheet_cell, (one.form, *one.item[1:3])), one.grade) for one in changes]
    items = [(written(one.item.month), *of) for one, of in zip(changes, named, strict=True)]
    told = next((one.advertised for one in answers if one.advertised), None)
    points, topics = curve([one.item for one in changes]), topics if len(topics) > 1 else {}
    return Report(model, overall, topics, points, source, counts, {}, forms, controls, told, items)


def _by_form(answers: Sequence[Answer]) -> tuple[Cutoff, dict[str, Cutoff]]:
    names = _names(answers, "form")
    items = [[one.item for one in answers if one.form == name] for name in names]
    events = [{item.cluster for item in of} for of in items]
    overall, forms = join([Belief.of(of) for of in items], len(set().union(*events)) / sum(map(len, events)))
    return overall, dict(zip(names, forms, strict=True))


def _without_level(found: Cutoff) -> Cutoff:
    """Return a cutoff that needs a fall: a model that calls everything changed need not know any month."""
    told = found.verdict in ("found", "before the data")
    return found if told else Cutoff(None, None, found.high, "cannot tell")


def _names(answers: Sequence[Answer], column: str) -> list[str]:
    return sorted({getattr(one, column) for one in answers})
