"""An invented Wikipedia and Wikidata over several months, in the dumps' own formats.

``temporalwiki demo`` goes from these dumps to a leaderboard. The same settings always give the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from temporalwiki.builders.dumps import write_dumps
from temporalwiki.builders.world.items import LABELS, Fact
from temporalwiki.builders.world.story import Article, Snapshot, Story

__all__ = ["Article", "Fact", "Snapshot", "Story", "World", "write_month", "write_world"]


@dataclass(frozen=True)
class World:
    """The configuration of a generated world."""

    seed: int = 0
    dates: tuple[str, ...] = ("20211101", "20211201")
    wikidata_dates: tuple[str, ...] = ("20211101", "20211129")  # one for each date, at or before it
    wiki: str = "enwiki"
    people: int = 240  # there are about 2.3 articles for each
    wordings: int = 1  # sentences that state a fact; with several, an article has little else
    relations: tuple[str, ...] = ()  # ids of the relations that there are; empty: all
    changes: int = 0  # of each relation in a month; 0: a few, and more of prizes and transfers
    skew: float = 2.5  # how much more frequent a few objects are than the others; 1: all are equally frequent

    def __post_init__(self) -> None:
        rising = all(list(dates) == sorted(set(dates)) for dates in (self.dates, self.wikidata_dates))
        late = any(wikidata > wiki for wiki, wikidata in zip(self.dates, self.wikidata_dates, strict=True))
        if late or not rising or self.people < 30 or len(self.dates) < 2:
            raise ValueError("a world needs 30 people and two rising dates, each with a Wikidata date at or before it")


def write_world(dumps: Path, world: World = World()) -> list[Snapshot]:
    """Write the dumps of all months, laid out as Wikimedia does, and return what is true in each month."""
    story = Story(world)
    snapshots = []
    for month in range(len(world.dates)):
        if month:
            story.next_month()
        write_month(dumps, story)
        snapshots.append(story.snapshot())
    return snapshots


def write_month(dumps: Path, story: Story) -> None:
    """Write the dumps of a story's present month."""
    world, date, wikidata_date = story.world, story.world.dates[story.month], story.world.wikidata_dates[story.month]
    items = [item.written(world.wiki) for item in story.items]
    write_dumps(dumps, date, story.pages, items, LABELS, wiki=world.wiki, wikidata_date=wikidata_date)
