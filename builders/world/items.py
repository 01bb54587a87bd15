"""Items and their statements, and their JSON as Wikidata writes it."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from temporalwiki.builders.world.pages import Page
from temporalwiki.builders.world.relations import TIMES

Json = dict[str, Any]


class Fact(NamedTuple):
    """The ids of a subject, a relation and an object."""

    subject: str
    relation: str
    object: str


@dataclass(eq=False)
class Statement:
    """A statement of an item."""

    id: str
    relation: str
    object: str | None  # an item; None for an unknown value
    rank: Literal["preferred", "normal", "deprecated"] = "normal"
    start: str | None = None  # YYYY-MM-DD
    end: str | None = None
    more: Json = field(default_factory=dict)  # other keys of its JSON

    def json(self) -> Json:
        """Return the statement as Wikidata writes it."""
        data = None if self.object is None else item_value(self.object)
        json: Json = {"mainsnak": snak(self.relation, "wikibase-item", data), "type": "statement"}
        days = {"P580": self.start, "P582": self.end}
        qualifiers = {id: [snak(id, "time", time_value(day))] for id, day in days.items() if day}
        if qualifiers:
            json |= {"qualifiers": qualifiers, "qualifiers-order": list(qualifiers)}
        return json | {"id": self.id, "rank": self.rank} | self.more


@dataclass(eq=False)
class Item:
    """An item of Wikidata and its article, if it has one."""

    number: int
    kind: str
    labels: dict[str, str]  # by language
    description: str
    pronoun: str = "it"
    page: Page | None = None
    statements: list[Statement] = field(default_factory=list)
    other: dict[str, Json] = field(default_factory=dict)  # by property: snaks whose value is not an item
    other_links: dict[str, str] = field(default_factory=dict)  # titles of pages in other wikis
    revision: int = 0
    modified: str = ""

    @property
    def id(self) -> str:
        """Return its id, such as Q5."""
        return f"Q{self.number}"

    @property
    def name(self) -> str:
        """Return its English label, or its id if it lacks one."""
        return next((self.labels[code] for code in ("en", "mul", "en-gb") if code in self.labels), self.id)

    def of(self, relation: str) -> list[Statement]:
        """Return the statements of a relation."""
        return [statement for statement in self.statements if statement.relation == relation]

    def facts(self) -> dict[Fact, str | None]:
        """Return each fact with its end, or None. Facts are the statements of the best rank whose value is an item."""
        found: dict[Fact, str | None] = {}
        for relation in dict.fromkeys(statement.relation for statement in self.statements):
            every = self.of(relation)
            best = [s for s in every if s.rank == "preferred"] or [s for s in every if s.rank == "normal"]
            found |= {Fact(self.id, relation, s.object): s.end for s in best if s.object is not None}
        return found

    def content(self, wiki: str) -> Json:
        """Return what an edit can change, in the order of the dumps; empty maps are lists, as PHP writes them."""
        claims: dict[str, list[Json]] = {}
        for statement in self.statements:
            claims.setdefault(statement.relation, []).append(statement.json())
        for id, value in self.other.items():
            guid = str(uuid.uuid5(uuid.NAMESPACE_URL, self.id + id)).upper()
            claims[id] = [{"mainsnak": value, "type": "statement", "id": f"{self.id}${guid}", "rank": "normal"}]
        links = self.other_links | ({} if self.page is None else {wiki: self.page.title})
        return {
            "labels": terms(self.labels),
            "descriptions": terms({"en": self.description}),
            "aliases": [],
            "claims": claims or [],
            "sitelinks": {s: {"site": s, "title": t, "badges": []} for s, t in links.items()} or [],
        }

    def json(self, wiki: str) -> Json:
        """Return the item as a line of the dump holds it."""
        numbers = {"pageid": self.number + 200, "ns": 0, "title": self.id, "lastrevid": self.revision}
        return {"type": "item", "id": self.id} | self.content(wiki) | numbers | {"modified": self.modified}


def property_json(number: int, id: str, label: str) -> Json:
    """Return a property as a line of the dump holds it."""
    head = {"type": "property", "datatype": "time" if id in TIMES else "wikibase-item", "id": id}
    numbers = {"pageid": 3_900_000 + number, "ns": 120, "title": f"Property:{id}", "lastrevid": 1_500_000 + number}
    return head | {"labels": terms({"en": label}), "descriptions": [], "aliases": [], "claims": []} | numbers


def terms(texts: dict[str, str]) -> Json | list[Any]:
    """Return labels or descriptions by language."""
    return {language: {"language": language, "value": text} for language, text in texts.items()} or []


def snak(id: str, datatype: str, data: Json | None) -> Json:
    """Return the value of a property; None is an unknown value."""
    head = {"snaktype": "somevalue" if data is None else "value", "property": id}
    return head | ({} if data is None else {"datavalue": data}) | {"datatype": datatype}


def item_value(id: str) -> Json:
    """Return a data value that is an item."""
    return {"value": {"entity-type": "item", "numeric-id": int(id[1:]), "id": id}, "type": "wikibase-entityid"}


def time_value(day: str) -> Json:
    """Return a data value that is a day; 2005-00-00 is a year."""
    precision = 9 if day.endswith("-00-00") else 11
    calendar = "http://www.wikidata.org/entity/Q1985727"
    zeros = {"timezone": 0, "before": 0, "after": 0}
    value = {"time": f"+{day}T00:00:00Z"} | zeros | {"precision": precision, "calendarmodel": calendar}
    return {"value": value, "type": "time"}
