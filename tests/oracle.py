"""What a build has to find between two months of a generated world, by the slow and obvious way."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from temporalwiki.builders.world import Snapshot, WorldArticle, WorldFact
from temporalwiki.builders.world.items import RELATIONS


@dataclass(frozen=True)
class PageDiff:
    """A page whose prose differs between two months."""

    title: str
    kind: Literal["new", "updated", "deleted"]  # deleted: it is not an article any more
    revision_id: int | None
    previous_revision_id: int | None
    paragraphs: list[list[str]]  # the new sentences
    deleted: list[list[str]]


@dataclass(frozen=True)
class Changes:
    """The differences between two months."""

    pages: dict[int, PageDiff]
    same: dict[int, bool]  # articles of both months with the same prose; true if they have a new revision
    changed: dict[WorldFact, Literal["new_subject", "new_relation", "new_object"]]
    unchanged: set[WorldFact]
    deleted: dict[WorldFact, Literal["replaced", "ended", "removed"]]
    stated: set[WorldFact]  # changed facts that a new sentence states


def changes(prev: Snapshot, recent: Snapshot) -> Changes:
    """Compare two months."""
    pages, same = _pages(prev, recent)
    subjects = {fact.subject for fact in prev.facts}
    relations = {fact[:2] for fact in prev.facts}
    changed: dict[WorldFact, Literal["new_subject", "new_relation", "new_object"]] = {}
    for fact in recent.facts.keys() - prev.facts.keys():
        known = fact[:2] in relations
        changed[fact] = "new_object" if known else "new_relation" if fact.subject in subjects else "new_subject"
    today = "{}-{}-{}".format(*re.findall(r"^\d{4}|\d\d", recent.wikidata_date))
    ended = {f for f, end in recent.facts.items() if f in prev.facts and not prev.facts[f] and end and end <= today}
    gone = (prev.facts.keys() - recent.facts.keys()) | ended
    replaced = {fact[:2] for fact in changed if not (end := recent.facts[fact]) or end > today}
    return Changes(
        pages,
        same,
        changed,
        (prev.facts.keys() & recent.facts.keys()) - gone,
        {fact: "replaced" if fact[:2] in replaced else "ended" if fact in ended else "removed" for fact in gone},
        _stated(recent, changed, pages),
    )


def _pages(prev: Snapshot, recent: Snapshot) -> tuple[dict[int, PageDiff], dict[int, bool]]:
    pages, same = {}, {}
    for id in prev.articles.keys() | recent.articles.keys():
        before, now = prev.articles.get(id), recent.articles.get(id)
        added, removed = _only_in(now, before), _only_in(before, now)
        revisions = recent.articles[id].revision_id if now else None, prev.revisions.get(id)
        if not added and not removed:
            same[id] = revisions[0] != revisions[1]
            continue
        kind: Literal["new", "updated", "deleted"] = "new" if id > max(prev.revisions) else "updated"
        title = (now or prev.articles[id]).title if now or before else ""
        pages[id] = PageDiff(title, kind if now else "deleted", *revisions, added, removed)
    return pages, same


def _only_in(one: WorldArticle | None, other: WorldArticle | None) -> list[list[str]]:
    known = {sentence for paragraph in other.paragraphs for sentence in paragraph} if other else set()
    kept = [[s for s in paragraph if s not in known] for paragraph in (one.paragraphs if one else [])]
    return [paragraph for paragraph in kept if paragraph]


def _stated(recent: Snapshot, changed: Iterable[WorldFact], pages: dict[int, PageDiff]) -> set[WorldFact]:
    """Return the changed facts that their subject's page states in a new sentence of the relation's form."""
    forms = {relation.id: re.escape(relation.sentence).replace(r"\{S\}", ".+") for relation in RELATIONS}
    page_of = {article.item: pages[id] for id, article in recent.articles.items() if id in pages}
    stated = set()
    for fact in changed:
        if fact.relation in forms and fact.object in recent.labels and fact.subject in page_of:
            text = forms[fact.relation].replace(r"\{o\}", re.escape(recent.labels[fact.object]))
            form = re.compile(rf"(As of \w+ \d+, )?{text}", re.IGNORECASE)
            if any(form.fullmatch(s) for paragraph in page_of[fact.subject].paragraphs for s in paragraph):
                stated.add(fact)
    return stated
