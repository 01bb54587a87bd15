"""The state of the monthly dataset: which months are published, pending or missing, and what a person must look at."""

import datetime
from collections.abc import Iterator, Sequence
from itertools import pairwise

from temporalwiki.base.errors import InputError
from temporalwiki.builders.fetch import NotYet
from temporalwiki.builders.manifests import BuiltManifest
from temporalwiki.builders.snapshot import Interval
from temporalwiki.push_scripts.ckl_dataset import published_ckl
from temporalwiki.push_scripts.dataset import published_months
from temporalwiki.push_scripts.dataset_repository import damage
from temporalwiki.push_scripts.hub import Repository
from temporalwiki.push_scripts.monthly import MonthlyJob, months_between

OLDEST = 45  # days; a dump of the 1st is done between the 3rd and the 10th of its month


def status(job: MonthlyJob, today: datetime.date | None = None) -> Iterator[str]:
    """Yield lines on the months that are published, pending and missing. It reads only listings and manifests.

    Raises InputError if the Hub or the dump server cannot be read. Raises it at the end, with all faults in one line,
    if no month is published, the newest is more than ``OLDEST`` days old ``today`` (default: the day in UTC), a file
    is damaged on the Hub, or a month has no tag, no changed or no unchanged probes.
    """
    today = today or datetime.datetime.now(datetime.UTC).date()
    dataset = Repository(job.repo_id, "dataset", waits=())  # somebody is waiting for the answer
    head = dataset.head()
    months = published_months(head)
    faults = [fault for month in months for fault in _faults(month, month.tag in head.tags)]
    if months:
        newest = months[-1]
        age = (today - _day(newest.interval.recent)).days
        yield f"{dataset.name}: published: {', '.join(str(month.tag) for month in months)}"
        dates = f"{newest.interval.prev} to {newest.interval.recent}"
        yield f"{dataset.name}: the newest is {newest.tag}, {dates}, {age} days old"
        if age > OLDEST:
            faults.insert(0, f"the newest month, {newest.tag}, is {age} days old, more than {OLDEST}")
    else:
        yield f"{dataset.name}: published: nothing"
        faults.append("no month is published")
    if said := damage(head, months, job.out):
        faults.append(said)
    if job.ckl is not None:
        ckl = Repository(job.ckl, "dataset", waits=()).head()
        if said := damage(ckl, published_ckl(ckl), job.beside("ckl")):
            faults.append(f"datasets/{job.ckl}: {said}")
    for interval in missing_months(months):
        yield f"missing: {interval.name}, between published months"
    try:
        done = Interval(job.wiki, *job.source.newest(job.wiki))
        last = months[-1].interval.recent if months else done.prev
        if done.recent > last:
            for interval in (*months_between(last, done), done):
                yield f"pending: {interval.name}, to be made by the next run if its dumps are there"
        if waiting := job.source.unfinished(job.wiki, max(last, done.recent)):
            yield f"pending: {waiting}"
    except NotYet as error:
        yield f"pending: {error}"
    except InputError as error:
        faults.append(f"the dump server cannot be read, so pending months are unknown: {error}")
    if faults:
        raise InputError(f"{dataset.name}: {'; '.join(faults)}")


def missing_months(published: Sequence[BuiltManifest]) -> list[Interval]:
    """Return the months between published ones that are not published, oldest first."""
    gaps = []
    for one, other in pairwise(published):
        if one.interval.recent < other.interval.prev:
            first = Interval(one.interval.wiki, other.interval.prev, other.interval.recent)
            gaps += months_between(one.interval.recent, first)
    return gaps


def _faults(month: BuiltManifest, tagged: bool) -> Iterator[str]:
    counts = month.counts.probes
    for split, count in (("changed", counts.changed), ("unchanged", counts.unchanged)):
        if not count.kept:
            yield f"{month.tag} has no {split} probes"
    if not tagged:
        yield f"{month.tag} has no tag; run `temporalwiki monthly` to add it"


def _day(date: str) -> datetime.date:
    return datetime.date.fromisoformat(date)
