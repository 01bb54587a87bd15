"""What a generated world knows about itself: the answers that a build has to find."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from temporalwiki.builders.world.filler import FillerTruth


class Fact(NamedTuple):
    """A best-rank, item-valued main snak of an item: entity ids."""

    subject: str
    relation: str
    object: str


@dataclass(frozen=True)
class ArticleTruth:
    """A page of namespace 0 that is no redirect.

    A bulleted list counts as a paragraph, its items as sentences.

    Plain text: of templates that carry text the text stays (``{{nowrap|x}}`` is ``x``,
    ``{{convert|3|km|mi}}`` is ``3 kilometres``), ``&nbsp;`` is a space;
    headings, tables, references, comments and other templates are gone.
    """

    page_id: int
    title: str
    revision_id: int
    item: str | None
    paragraphs: list[list[str]]
    lists: frozenset[int]  # indexes of the paragraphs that are bulleted lists


@dataclass(frozen=True)
class SnapshotTruth:
    """One month as it is: articles of the story, facts and labels of all of Wikidata but the filler."""

    date: str
    wikidata_date: str
    articles: dict[int, ArticleTruth]
    redirects: dict[int, str]  # page id -> target title
    pages: int  # story pages of every namespace, redirects too
    facts: frozenset[Fact]
    ended: dict[Fact, str]  # facts with an end time (P582): the day, as YYYY-MM-DD
    told: dict[Fact, str]  # facts that their article states, with the sentence (a lower bound of alignment)
    labels: dict[str, str]  # English, else "mul", else "en-gb"; items and properties; absent where there is none
    items: dict[str, str]  # item -> title of its article


@dataclass(frozen=True)
class PageDiff:
    """A page that an interval changed.

    ``paragraphs`` is what DESIGN 4.4 puts in the diffset, ``deleted`` its mirror image.

    A page that is no article any more (deleted, or a redirect now) has kind ``deleted`` and no revision id.
    """

    page_id: int
    title: str
    kind: Literal["new", "updated", "deleted"]
    revision_id: int | None
    previous_revision_id: int | None
    paragraphs: list[list[str]]
    deleted: list[list[str]]
    edits: tuple[str, ...]  # the events that did it


@dataclass(frozen=True)
class IntervalTruth:
    """What happened between two neighbouring snapshots."""

    prev: str
    recent: str
    pages: dict[int, PageDiff]  # pages with prose added or removed
    same: dict[int, str]  # articles of both months with the same prose, and why: "same revision" or the edit's name
    changed: dict[Fact, Literal["new_subject", "new_relation", "new_object"]]
    previous_objects: dict[Fact, tuple[str, ...]]  # of changed facts: objects of prev, sorted
    unchanged: frozenset[Fact]
    deleted: dict[Fact, Literal["replaced", "ended", "removed"]]
    stated: dict[Fact, str]  # changed facts that the diffset states, with the sentence (a lower bound of alignment)
    renamed: dict[str, str]  # items whose label changed -> the label before
    fact_events: dict[str, int] = field(default_factory=dict)
    page_events: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Truth:
    """All of it; ``filler`` answers for the load pages, which are too many to be listed."""

    snapshots: tuple[SnapshotTruth, ...]
    intervals: tuple[IntervalTruth, ...]
    filler: FillerTruth

    def snapshot(self, date: str) -> SnapshotTruth:
        """The snapshot of a Wikipedia date."""
        return next(one for one in self.snapshots if one.date == date)

    def interval(self, prev: str, recent: str) -> IntervalTruth:
        """The interval between two neighbouring Wikipedia dates."""
        return next(one for one in self.intervals if (one.prev, one.recent) == (prev, recent))
