"""Find counts of a month that changed too much since the month before, as a fault of a builder or dump would cause.

Most counts are of one of two kinds:

- A snapshot's content (pages, entities, facts) grows by about 1 % a month. A change of up to 10 % a month is accepted.
- What happened in an interval (articles in the diffset, facts that changed) is compared per day. A factor of up to 1.6
  is accepted. TemporalWiki's four months differ by 1.13 in articles, 1.12 in tokens and 1.51 in changed probes a day,
  so all of them are accepted; half or twice as much of any of them is not.

Shares, such as the share of facts that are aligned, and the number of unchanged probes may also differ by a factor of
1.6. Small counts vary more: a difference beyond these bounds must also be larger than chance (a Poisson process)
explains.
"""

import datetime
import math
from collections.abc import Iterator
from typing import Any, Literal

from temporalwiki.builders.manifests import BuiltManifest

_Days = Literal["text", "facts"]  # which dumps' dates count: Wikidata's dumps have their own

GROWTH = 1.1  # a month, of a snapshot's content
FACTOR = 1.6  # between two intervals, per day, and between shares
_DEVIATIONS = 4.0  # of chance, in addition: some thirty counts are compared each month
_MONTH = 30.4  # days

# name of a count -> its place in a manifest's counts; a mapping counts as the sum of its values
_CONTENT = {
    "pages read in the earlier dump": "extracts/wiki-extract prev/pages/read",
    "pages read in the later dump": "extracts/wiki-extract recent/pages/read",
    "articles in the earlier dump": "extracts/wiki-extract prev/pages/articles",
    "articles in the later dump": "extracts/wiki-extract recent/pages/articles",
    "items in the earlier Wikidata dump": "extracts/wikidata-extract prev/entities/items",
    "items in the later Wikidata dump": "extracts/wikidata-extract recent/entities/items",
    "facts in the earlier Wikidata dump": "extracts/wikidata-extract prev/statements/facts",
    "facts in the later Wikidata dump": "extracts/wikidata-extract recent/statements/facts",
    "facts categorised as unchanged": "facts/unchanged",
}
_TEXT = {
    "articles in the diffset": "diffset/articles",
    "words in the diffset": "diffset/words",
    "new articles": "pages/new",
    "updated articles": "pages/updated",
    "articles dropped": "pages/dropped",
    "articles deleted": "prev_pages/deleted",
}
_FACTS = {
    "facts categorised as changed": "facts/changed",
    "facts categorised as deleted": "facts/deleted",
    "probes kept, changed": "probes/changed/kept",
    "probes kept, deleted": "probes/deleted/kept",
}
# a filtered sample of a snapshot's content: not per day, but it varies like the events of an interval
_SAMPLED = {"probes kept, unchanged": "probes/unchanged/kept"}
_PER_EVENT = {"diffset/words": 1_000}  # an article brings many words at once: chance acts on articles
_SHARES = {
    f"share of {split} facts that are aligned": (f"probes/{split}/aligned", f"probes/{split}/sampled")
    for split in ("unchanged", "changed", "deleted")
}
# options that change the counts
_OPTIONS = ("include", "unchanged_fraction", "unchanged_pages", "allow_truncated", "compare", "caps", "variant")


def large_changes(manifest: BuiltManifest, before: BuiltManifest) -> list[str]:
    """Return a line for each count that changed too much since the interval ``before``.

    The lines also name options that differ, because they change the counts, and a gap between the Wikidata dumps.
    """
    return [*_other_options(manifest, before), *_gap(manifest, before), *_changed_counts(manifest, before)]


def _other_options(manifest: BuiltManifest, before: BuiltManifest) -> Iterator[str]:
    if manifest.interval.wiki != before.interval.wiki:
        yield f"wiki: {manifest.interval.wiki} now, {before.interval.wiki} in {before.name}"
    for name in _OPTIONS:
        now, then = (one.content["options"].get(name) for one in (manifest, before))
        if then is not None and now != then:
            yield f"option {name}: {now} now, {then} in {before.name}"


def _gap(manifest: BuiltManifest, before: BuiltManifest) -> Iterator[str]:
    """Yield a line if the facts do not start where last month's ended."""
    now, then = manifest.interval, before.interval
    began, ended = now.wikidata_prev, then.wikidata_recent
    if now.prev == then.recent and began and ended and began != ended:
        yield f"Wikidata: starts with the dump of {began} now, but ended with that of {ended} in {before.name}"


def _changed_counts(manifest: BuiltManifest, before: BuiltManifest) -> Iterator[str]:
    days = abs(_between(before.interval.recent, manifest.interval.recent))
    months = min(60.0, max(1.0, days / _MONTH))
    kinds: list[tuple[dict[str, str], float, _Days | None]]
    kinds = [
        (_CONTENT, GROWTH**months, None),
        (_SAMPLED, FACTOR, None),
        (_TEXT, FACTOR, "text"),
        (_FACTS, FACTOR, "facts"),
    ]
    for places, factor, per_day in kinds:
        for name, place in places.items():
            yield from _compared(name, place, (manifest, before), factor, per_day)
    for name, (part, whole) in _SHARES.items():
        parts, wholes = ((_count(manifest, place), _count(before, place)) for place in (part, whole))
        if all(wholes) and _differ(parts, wholes, FACTOR):
            now, then = (share / all_ for share, all_ in zip(parts, wholes, strict=True))
            yield f"{name}: {now:.2%} now, {then:.2%} in {before.name}{_percent(now, then)}"


def _compared(
    name: str,
    place: str,
    manifests: tuple[BuiltManifest, BuiltManifest],
    factor: float,
    per_day: _Days | None = None,
) -> Iterator[str]:
    """Yield a line if a count changed by more than ``factor``."""
    now, then = (_count(manifest, place) for manifest in manifests)
    days = (_days(manifests[0], per_day), _days(manifests[1], per_day)) if per_day else (1, 1)
    # a longer interval has fewer changes per day, because what changes twice in it counts once
    longer, shorter = (0, 1) if days[0] > days[1] else (1, 0)
    if (now, then)[longer] * days[shorter] < (now, then)[shorter] * days[longer]:
        factor *= math.sqrt(days[longer] / days[shorter])
    per_event = _PER_EVENT.get(place, 1)
    if _differ((now // per_event, then // per_event), days, factor):
        unit = f" a day, {days[0]} days against {days[1]}" if days[0] != days[1] else ""
        change = _percent(now / days[0], then / days[1], unit)
        yield f"{name}: {now:,} now, {then:,} in {manifests[1].name}{change}"


def _differ(counts: tuple[int, int], units: tuple[int, int], factor: float) -> bool:
    """Return whether the rates ``counts`` / ``units`` differ by more than ``factor`` and more than chance explains.

    The square root of a Poisson count has a standard deviation of one half for any mean; the 1 extends this to
    counts near 0.
    """
    (most, of_most), (least, of_least) = sorted(zip(counts, units, strict=True), key=lambda pair: -pair[0] / pair[1])
    factor *= of_most / of_least
    chance = math.sqrt(1 + factor) / 2
    return math.sqrt(most + 1) - math.sqrt(factor * (least + 1)) > _DEVIATIONS * chance


def _percent(now: float, then: float, unit: str = "") -> str:
    return f" ({(now / then - 1) * 100:+,.1f} %{unit})" if then else ""


def _count(manifest: BuiltManifest, place: str) -> int:
    """Return a count, or the sum of a mapping of counts; 0 if the manifest lacks it."""
    found: Any = manifest.content["counts"]
    for key in place.split("/"):
        found = found.get(key) if isinstance(found, dict) else None
    return _sum(found)


def _sum(found: Any) -> int:
    if isinstance(found, dict):
        return sum(map(_sum, found.values()))
    return found if isinstance(found, int) and found > 0 else 0


def _days(manifest: BuiltManifest, per_day: _Days) -> int:
    dates = manifest.interval
    if per_day == "facts" and dates.wikidata_prev and dates.wikidata_recent:
        return max(1, _between(dates.wikidata_prev, dates.wikidata_recent))
    return max(1, _between(dates.prev, dates.recent))


def _between(earlier: str, later: str) -> int:
    """Return the days between two dates."""
    return (datetime.date.fromisoformat(later) - datetime.date.fromisoformat(earlier)).days
