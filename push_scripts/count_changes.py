"""Counts of a month that jumped against the month before, as a fault of a builder or of a dump would move them.

Two kinds of counts are compared:

- what a snapshot holds (pages, entities, facts) grows by about 1 % a month: up to 10 % a month is no jump;
- what happened in an interval (articles in the diffset, facts that changed) is compared per day, and may differ by a
  factor of 1.6. TemporalWiki's four months differ by 1.13 in articles, 1.12 in tokens and 1.51 in changed probes a
  day, so none of them is a jump; half of any of them, or twice as much, is one.

Small counts have more play: chance alone, as in a Poisson process, must not explain the rest of the difference.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator
from typing import Any, Literal

from temporalwiki.builders.dataset_folder import Manifest, interval_name
from temporalwiki.builders.snapshot import check_date

_Of = Literal["text", "facts"]  # whose dates an interval has

GROWTH = 1.1  # a month, of what a snapshot holds
FACTOR = 1.6  # between what happened in two intervals, per day, and between shares
_DEVIATIONS = 4.0  # of chance, beyond that: some thirty counts are compared each month
_MONTH = 30.4  # days

# what is said -> where the count is in a manifest; a mapping counts as the sum of its values
_HELD = {
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
_IN_TEXT = {
    "articles in the diffset": "diffset/articles",
    "words in the diffset": "diffset/words",
    "new articles": "pages/new",
    "updated articles": "pages/updated",
    "articles dropped": "pages/dropped",
    "articles deleted": "prev_pages/deleted",
}
_IN_FACTS = {
    "facts categorised as changed": "facts/changed",
    "facts categorised as deleted": "facts/deleted",
    "probes kept, changed": "probes/changed/kept",
    "probes kept, deleted": "probes/deleted/kept",
}
# a sample of what a snapshot holds, after filters: not per day, and with the play of what happens
_SAMPLED = {"probes kept, unchanged": "probes/unchanged/kept"}
_TOGETHER = {"diffset/words": 1_000}  # what comes so many at a time has the chance of its articles
_SHARES = {
    f"share of {split} facts that are aligned": (f"probes/{split}/aligned", f"probes/{split}/sampled")
    for split in ("unchanged", "changed", "deleted")
}
_OPTIONS = ("include", "unchanged_fraction", "unchanged_pages", "allow_truncated")  # those that counts follow


def jumps(manifest: Manifest, before: Manifest) -> list[str]:
    """Return a line for each count of ``manifest`` that jumped against that of the month ``before``; none is well.

    Options that differ are said as well, as they move the counts, and facts that do not go on where they ended.
    """
    return [*_other_options(manifest, before), *_gap(manifest, before), *_jumped(manifest, before)]


def _other_options(manifest: Manifest, before: Manifest) -> Iterator[str]:
    wikis = [str(of["interval"].get("wiki")) for of in (manifest, before)]
    if wikis[0] != wikis[1]:
        yield f"wiki: {wikis[0]} now, {wikis[1]} in {interval_name(before)}"
    for name in _OPTIONS:
        now, then = (_plain(of.get("options", {}).get(name)) for of in (manifest, before))
        if then is not None and now != then:
            yield f"option {name}: {now} now, {then} in {interval_name(before)}"


def _gap(manifest: Manifest, before: Manifest) -> Iterator[str]:
    """Say it where the facts do not go on from where those of the month before ended."""
    (now, then) = (of["interval"] for of in (manifest, before))
    began, ended = now.get("wikidata_prev"), then.get("wikidata_recent")
    if now["prev"] == then["recent"] and began and ended and began != ended:
        yield f"Wikidata: from {began} on now, to {ended} in {interval_name(before)}"


def _jumped(manifest: Manifest, before: Manifest) -> Iterator[str]:
    months = min(60.0, max(1.0, abs((_date(manifest, "recent") - _date(before, "recent")).days) / _MONTH))
    for what, place in _HELD.items():
        yield from _jump(what, place, (manifest, before), GROWTH**months)
    for what, place in _SAMPLED.items():
        yield from _jump(what, place, (manifest, before), FACTOR)
    for what, place in _IN_TEXT.items():
        yield from _jump(what, place, (manifest, before), FACTOR, "text")
    for what, place in _IN_FACTS.items():  # Wikidata's dumps have days of their own
        yield from _jump(what, place, (manifest, before), FACTOR, "facts")
    for what, (part, whole) in _SHARES.items():
        parts, wholes = ((_count(manifest, place), _count(before, place)) for place in (part, whole))
        if all(wholes) and _differ(parts, wholes, FACTOR):
            now, then = (of / all_ for of, all_ in zip(parts, wholes, strict=True))
            yield f"{what}: {now:.2%} now, {then:.2%} in {interval_name(before)}{_change(now, then)}"


def _jump(
    what: str,
    place: str,
    manifests: tuple[Manifest, Manifest],
    factor: float,
    days_of: _Of | None = None,
) -> Iterator[str]:
    """Say it where a count jumped; that of what happened in the interval is compared per day."""
    now, then = (_count(of, place) for of in manifests)
    days = (_days(manifests[0], days_of), _days(manifests[1], days_of)) if days_of else (1, 1)
    # what changes twice in a longer interval is counted once in it: so less a day, and only less
    longer, shorter = (0, 1) if days[0] > days[1] else (1, 0)
    if (now, then)[longer] * days[shorter] < (now, then)[shorter] * days[longer]:
        factor *= math.sqrt(days[longer] / days[shorter])
    at_once = _TOGETHER.get(place, 1)
    if _differ((now // at_once, then // at_once), days, factor):
        of = f" a day, {days[0]} days against {days[1]}" if days[0] != days[1] else ""
        change = _change(now / days[0], then / days[1], of)
        yield f"{what}: {now:,} now, {then:,} in {interval_name(manifests[1])}{change}"


def _differ(counts: tuple[int, int], of: tuple[int, int], factor: float) -> bool:
    """Whether the rates ``counts`` / ``of`` differ by more than ``factor`` and more than chance explains.

    The root of a Poisson count has a standard deviation of one half, whatever its mean; the 1 keeps it so near 0.
    """
    (most, of_most), (least, of_least) = sorted(zip(counts, of, strict=True), key=lambda pair: -pair[0] / pair[1])
    factor *= of_most / of_least
    chance = math.sqrt(1 + factor) / 2
    return math.sqrt(most + 1) - math.sqrt(factor * (least + 1)) > _DEVIATIONS * chance


def _change(now: float, then: float, of: str = "") -> str:
    return f" ({(now / then - 1) * 100:+,.1f} %{of})" if then else ""


def _count(manifest: Manifest, place: str) -> int:
    """Return a count, or the sum of a mapping of counts; 0 where there is none."""
    found: Any = manifest.get("counts")
    for key in place.split("/"):
        found = found.get(key) if isinstance(found, dict) else None
    return _sum(found)


def _sum(found: Any) -> int:
    if isinstance(found, dict):
        return sum(map(_sum, found.values()))
    return found if isinstance(found, int) and found > 0 else 0


def _plain(value: Any) -> Any:
    """An option as JSON has it: a manifest that was never written has tuples."""
    return list(value) if isinstance(value, tuple) else value


def _date(manifest: Manifest, side: str) -> datetime.date:
    return datetime.date.fromisoformat(check_date(str(manifest["interval"][side])))


def _days(manifest: Manifest, days_of: _Of) -> int:
    sides = ("prev", "recent")
    if days_of == "facts" and all(manifest["interval"].get(f"wikidata_{side}") for side in sides):
        sides = ("wikidata_prev", "wikidata_recent")
    return max(1, (_date(manifest, sides[1]) - _date(manifest, sides[0])).days)
