"""Which live facts changed within the interval, by their dates or by the text, and why the others are set aside."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from temporalwiki.builders.ckl.eligibility import right_answers
from temporalwiki.builders.ckl.templates import RelationTemplate
from temporalwiki.builders.snapshot import Interval
from temporalwiki.builders.wikidata.align import says

START, END, TEXT = SHOWN_BY = ("start", "end", "text")
_YEAR = re.compile(r"(?<![\d.,])(?:1\d{3}|20\d{2})(?!\d|[.,]\d)")


def shown_by(row: Mapping[str, Any], template: RelationTemplate, interval: Interval) -> str:
    """Return what shows that a fact changed within the interval: one of SHOWN_BY.

    If nothing does, return the reason instead, for the split ``backfilled``.
    """
    prev = datetime.strptime(interval.prev, "%Y%m%d").replace(tzinfo=UTC)
    begin, gone = row["start_time"], row["gone_end"]
    # without a start, "within" is a point in time, unless it is the end
    if row["dated"] == "within" and (row["end_time"] is None if begin is None else begin >= prev):
        return START
    if gone is not None and gone >= prev:
        return END
    if row["dated"] == "over" or (begin is not None and _last_day(begin) < prev):
        return "began_before"
    if not row["newly_stated"]:
        return "not_newly_stated"
    if len(right_answers(row)) > 1:
        return "one_of_several_answers"  # an undated list that changed was usually edited
    years = {int(year) for year in _YEAR.findall(row["evidence"])}
    of_interval = range(int(interval.prev[:4]), int(interval.recent[:4]) + 1)
    if years and years.isdisjoint(of_interval):
        return "dated_otherwise_in_the_text"
    if years:
        return TEXT
    if template.lasting or row["kind"] == "new_subject":
        return "may_be_an_old_fact"  # such as a birthplace, or a village that has an article now
    if any(says(row["evidence"], old) for old in row["gone_objects"]):
        return "old_answer_in_the_text"  # "Christian 92% (mostly Catholic)" only groups Catholics differently
    return TEXT


def _last_day(day: datetime) -> datetime:
    """Return the last day that a day can mean: the first day of a month or year may stand for all of it."""
    if (day.month, day.day) == (1, 1):
        return day.replace(month=12, day=31)
    return (day + timedelta(days=31)).replace(day=1) - timedelta(days=1) if day.day == 1 else day
