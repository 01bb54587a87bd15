"""A generated Wikipedia and Wikidata over several months, in the dumps' own formats, that knows the truth.

``write_world`` serves the demo, the tests (every diff sentence and every probe is compared with its
``Truth``) and the benchmarks (``filler_pages`` and ``filler_items`` for load). Equal worlds give equal bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from temporalwiki.builders.world.dumps import write_entities, write_page_props, write_pages
from temporalwiki.builders.world.events import Month
from temporalwiki.builders.world.filler import Filler, FillerTruth
from temporalwiki.builders.world.story import Story
from temporalwiki.builders.world.truth import (
    ArticleTruth,
    Fact,
    IntervalTruth,
    PageDiff,
    SnapshotTruth,
    Truth,
)

__all__ = [
    "ArticleTruth", "Fact", "FillerTruth", "IntervalTruth", "PageDiff", "SnapshotTruth", "Truth", "World",
    "write_world",
]  # fmt: skip


@dataclass(frozen=True)
class World:
    """The configuration of a generated world."""

    seed: int = 0
    dates: tuple[str, ...] = ("20211101", "20211201")
    wikidata_dates: tuple[str, ...] = ("20211101", "20211129")  # one for each date, at or before it
    wiki: str = "enwiki"
    people: int = 240  # people of the story; its other pages grow with them: about 2.3 pages a person
    changes_per_relation: int = 6  # facts that a month gains in each relation, at least
    hard_sentences: float = 0.1  # share of filler sentences with full stops that end nothing; 0 for none
    hostile_names: bool = True  # labels and titles that break careless programs (and sentence splitters)
    filler_pages: int = 0  # pages for load, about 8 KB each
    filler_items: int = 0  # items for load, about 14 KB each, as Wikidata's are
    filler_changed: float = 0.05  # share of both that a month changes
    parts: int = 1  # numbered parts of the page dump
    schema: Literal["0.10", "0.11"] = "0.10"
    wikidata_compression: Literal["gz", "bz2"] = "gz"
    page_props: bool = False  # also write the table that maps pages to items
    compression_level: int = 9  # 1 is faster

    def __post_init__(self) -> None:
        if len(self.dates) < 2 or len(self.dates) != len(self.wikidata_dates):
            raise ValueError("a world needs two dates or more, and a Wikidata date for each")
        if any(wikidata > wiki for wiki, wikidata in zip(self.dates, self.wikidata_dates, strict=True)):
            raise ValueError("a Wikidata date must be at or before its Wikipedia date")
        if any(list(dates) != sorted(set(dates)) for dates in (self.dates, self.wikidata_dates)):
            raise ValueError("dates must rise")
        if self.people < 30:
            raise ValueError("a story needs 30 people or more")


def write_world(dumps: Path, world: World = World()) -> Truth:
    """Write the dumps of all months below a folder, as Wikimedia lays them out, and return the truth."""
    filler = Filler(world)
    story = Story(world)
    snapshots, intervals = [], []
    for month, date in enumerate(world.dates):
        if month:
            intervals.append(Month(story).happen())
        write_pages(dumps / world.wiki / date, story, filler)
        if world.page_props:
            write_page_props(dumps / world.wiki / date, story, filler)
        write_entities(dumps / "wikidatawiki" / "entities" / world.wikidata_dates[month], story, filler)
        snapshots.append(story.truth())
    return Truth(tuple(snapshots), tuple(intervals), filler.truth)
