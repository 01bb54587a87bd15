"""Find the knowledge cutoff of a model on a dataset, and write it as JSON, as a chart and in words."""

import csv
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from temporalwiki.base.errors import InputError
from temporalwiki.base.files import make_folder, whole_file
from temporalwiki.base.json_files import write_json
from temporalwiki.base.markdown import spreadsheet_cell
from temporalwiki.base.terminal import in_line
from temporalwiki.builders.after_cutoff import CUTOFF, CUTOFF_ITEMS
from temporalwiki.eval_harness.cutoff.changes import MONTHS, TEXT, Change, Topics, evidence, read_changes
from temporalwiki.eval_harness.cutoff.estimator import (
    FEWEST,
    TYPICAL,
    Belief,
    ChangeEvidence,
    Cutoff,
    Point,
    curve,
    find_cutoff,
    join,
)
from temporalwiki.eval_harness.models.model import Model

_ITEMS = ("month", "form", "topic", "event", "outcome")
_CONTROLS = {"unchanged": "what did not change", "never": "what never happened"}


@dataclass(frozen=True)
class Report:
    """What a model knows of the changes of a dataset."""

    model: str
    overall: Cutoff
    topics: Mapping[str, Cutoff]
    curve: Sequence[Point]
    data: str
    evidence: Mapping[str, int]  # how many facts and pairs of sentences count
    panel: Mapping[str, int] = field(default_factory=dict)  # the reference models and the last month that each knows
    forms: Mapping[str, Cutoff] = field(default_factory=dict)  # the ways in which the model was asked
    controls: Mapping[str, float] = field(default_factory=dict)  # percentage of right answers to what did not change
    advertised: str | None = None  # the last month that the model knows, as its provider says
    items: Sequence[tuple[str | None, ...]] = ()  # month, form, topic, subject or event, and evidence or grade

    def as_json(self) -> dict[str, Any]:
        """Return the content of ``cutoff.json``."""
        points = [{**point._asdict(), "month": written(point.month)} for point in self.curve]
        topics = {name: _as_json(cutoff) for name, cutoff in self.topics.items()}
        known: dict[str, Any] = {"model": self.model, "data": self.data, "evidence": dict(self.evidence)}
        if self.panel:
            known["panel"] = {name: written(month) for name, month in self.panel.items()}
        if self.advertised:
            known["advertised"] = self.advertised
        if self.controls:
            known["controls"] = dict(self.controls)
        forms = {name: _as_json(cutoff) for name, cutoff in self.forms.items()}
        return {**known, "overall": _as_json(self.overall), "forms": forms, "topics": topics, "curve": points}

    def lines(self) -> Iterator[str]:
        """Yield a line for the whole dataset, and one for each topic."""
        yield f"{self.model} {said(self.overall, self.curve)}"
        for name, cutoff in ({**self.forms, **self.topics} if len(self.forms) > 1 else self.topics).items():
            yield f"  {in_line(name)}: {said(cutoff, self.curve)}"
        for name, right in self.controls.items():
            yield f"  asked for {_CONTROLS[name]}, it is right in {right:.0f} % of its answers"


def report(
    model: Model,
    data: str,
    topics: Topics = "none",
    first: int | None = None,
    last: int | None = None,
    panel: Sequence[tuple[Model, int]] = (),
) -> Report:
    """Score the dated changes of a dataset, and find the cutoff of all of them and of each topic.

    ``panel`` are reference models; see ``evidence``. Raises InputError if they may know all changes.
    """
    changes = read_changes(data, topics, first, last)
    if panel and max(change.month for change in changes) <= (known := min(last for _, last in panel)):
        raise InputError(f"--panel: each model may know all changes of {data}; it knows up to {written(known)}")
    found = judged(model.name, data, changes, evidence(model, changes, panel), topics)
    return replace(found, panel={reference.name: last for reference, last in panel})


def judged(name: str, data: str, changes: Sequence[Change], items: Sequence[ChangeEvidence], topics: Topics) -> Report:
    """Return the report of a model from its items."""
    by_topic: dict[str, list[ChangeEvidence]] = {}
    if topics != "none":
        topic_of = {(change.month, change.relation, change.cluster): change.topic for change in changes}
        for topic in sorted(topic_of.values()):
            by_topic.setdefault(topic, [])
        for item in items:
            by_topic[topic_of[item[:3]]].append(item)
    found = {topic: find_cutoff(of) for topic, of in by_topic.items()}
    kinds = Counter("text" if item.relation == TEXT else "facts" for item in items)
    form = "answers" if all(abs(item.evidence) in (0, 1) for item in items) else "likelihoods"
    overall, [asked] = join([Belief.of(items)])
    rows = [(written(one.month), form, *map(spreadsheet_cell, one[1:3]), f"{one.evidence:.4g}") for one in items]
    return Report(name, overall, found, curve(items), data, kinds, forms={form: asked}, items=rows)


def write_report(found: Report, folder: Path) -> list[Path]:
    """Write ``cutoff.json``, ``cutoff.svg`` and ``cutoff_items.csv``, and return the paths of the first two."""
    from temporalwiki.eval_harness.leaderboard.figures import cutoff  # takes seconds to import
    from temporalwiki.eval_harness.leaderboard.figures.style import save

    make_folder(folder)
    chart, data = folder / "cutoff.svg", folder / CUTOFF
    save(cutoff.draw(found.curve, found.overall, said(found.overall, found.curve)), chart)
    with whole_file(folder / CUTOFF_ITEMS) as part, part.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([_ITEMS, *found.items])
    write_json(data, found.as_json())
    return [data, chart]


def written(month: int | None) -> str | None:
    """Return a month as YYYY-MM."""
    return None if month is None else f"{month // 12:04}-{month % 12 + 1:02}"


def in_words(month: int, year: int | None = None) -> str:
    """Return the name of a month, with its year unless that is ``year``."""
    return MONTHS[month % 12] + (f" {month // 12}" if month // 12 != year else "")


def said(found: Cutoff, curve: Sequence[Point]) -> str:
    """Return a cutoff in plain words: "knows what changed up to March 2025 [January, May]"."""
    falls = f"; knowledge falls after {' and after '.join(map(in_words, found.falls))}" if found.falls else ""
    if found.verdict == "found" and found.cutoff is not None and found.low is not None and found.high is not None:
        year = found.cutoff // 12
        ends = f"[{in_words(found.low, year)}, {in_words(found.high, year)}]"
        return f"knows what changed up to {in_words(found.cutoff)} {ends}{falls}"
    if found.verdict == "before the data" and found.high is not None:
        begin = in_words(curve[0].month)
        sure = "" if found.high < curve[0].month else f"; at most up to {in_words(found.high)}"
        return f"does not know what changed from {begin} on{sure}"
    if found.verdict == "after the data" and found.low is not None:
        end = in_words(curve[-1].month)
        sure = "" if found.low >= curve[-1].month else f"; at least up to {in_words(found.low)}"
        return f"knows what changed up to the last month of the data, {end}{sure}"
    known = {"at least": found.low, "at most": found.high}
    if bounds := [f"{end} up to {in_words(month)}" for end, month in known.items() if month is not None]:
        return f"cannot tell where it ends: knows what changed {', and '.join(bounds)}{falls}"
    if found.shown is not None:
        smallest, enough = found.shown
        more = f", and {enough} changes a month one of {100 * TYPICAL:.0f}" if enough and smallest > TYPICAL else ""
        return f"cannot tell: no clear fall; the data would show one of {100 * smallest:.0f} points{more}"
    return f"cannot tell: no clear fall after any month (or fewer than {FEWEST} changes)"


def _as_json(found: Cutoff) -> dict[str, Any]:
    months = {"cutoff": found.cutoff, "low": found.low, "high": found.high}
    known: dict[str, Any] = {**{name: written(month) for name, month in months.items()}, "verdict": found.verdict}
    if found.likely:
        known["likely"] = [{"month": written(month), "probability": share} for month, share in found.likely]
    if found.falls:
        known["falls"] = [written(month) for month in found.falls]
    if found.shown is not None:
        known["smallest_fall"], known["enough_changes_a_month"] = found.shown
    return known
