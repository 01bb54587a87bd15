"""Items, properties and their statements, and their JSON as Wikidata writes it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any, Literal

from temporalwiki.builders.world.relations import BY_ID, OTHER_PROPERTIES

Rank = Literal["preferred", "normal", "deprecated"]
Json = dict[str, Any]


@dataclass(eq=False)
class Statement:
    """A statement about an item. ``object`` is an item, or None for somevalue and novalue."""

    id: str
    relation: str
    object: str | None
    rank: Rank = "normal"
    start: str | None = None  # YYYY-MM-DD; 00 for an unknown month or day
    end: str | None = None
    unknown: Literal["somevalue", "novalue"] = "somevalue"
    qualifiers: list[tuple[str, str]] = field(default_factory=list)  # items, which are no facts
    reference: str | None = None  # an item, which is no fact


@dataclass(eq=False)
class Item:
    """An item of Wikidata. ``kind`` is one of the world's ("club"), ``sitelink`` its article's title."""

    number: int
    kind: str
    label: str | None
    description: str
    pronoun: str = "it"
    language: str = "en"
    aliases: list[str] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
    other: dict[str, Json] = field(default_factory=dict)  # property -> data value that is no item
    sitelink: str | None = None
    live: bool = True
    revision: int = 0
    modified: str = ""
    touched: bool = True

    @property
    def id(self) -> str:
        """Its id, Q and the number."""
        return f"Q{self.number}"

    @property
    def name(self) -> str:
        """Its label, or its id where it has none."""
        return self.label if self.label is not None else self.id

    def of(self, relation: str) -> list[Statement]:
        """Its statements of a relation."""
        return [statement for statement in self.statements if statement.relation == relation]

    def json(self, wiki: str) -> Json:
        """The entity as a dict in the key order of the dump; empty maps are lists, as PHP writes them."""
        claims: dict[str, list[Json]] = {}
        for statement in self.statements:
            claims.setdefault(statement.relation, []).append(_statement(statement))
        for relation, data in self.other.items():
            claims[relation] = [_plain_statement(f"{self.id}${_guid(self.id + relation)}", relation, data)]
        labels = {} if self.label is None else {self.language: self.label}
        if self.label is not None and self.language == "en" and self.number % 3 == 0:
            labels["de"] = f"{self.label} (de)"  # never to be taken for the English one
        wiki_links = {} if self.sitelink is None else {wiki: self.sitelink}
        if self.sitelink is not None and self.number % 4 == 0:
            wiki_links = {"arwiki": f"{self.sitelink} (x)", **wiki_links, f"{wiki}quote": self.sitelink}
        return {
            "type": "item",
            "id": self.id,
            "labels": _terms(labels),
            "descriptions": _terms({"en": self.description} if self.description else {}),
            "aliases": {"en": [{"language": "en", "value": a} for a in self.aliases]} if self.aliases else [],
            "claims": claims or [],
            "sitelinks": {s: {"site": s, "title": t, "badges": []} for s, t in wiki_links.items()} or [],
            "pageid": self.number + 200,
            "ns": 0,
            "title": self.id,
            "lastrevid": self.revision,
            "modified": self.modified,
        }


def property_json(number: int, id: str, revision: int, modified: str, class_item: str) -> Json:
    """A property as an entity. Its claims are about the property, so they are no facts of the world."""
    label, datatype = (BY_ID[id].label, "wikibase-item") if id in BY_ID else OTHER_PROPERTIES[id]
    about = {"entity-type": "property", "numeric-id": 361, "id": "P361"}
    claims = {
        "P31": [_plain_statement(f"{id}${_guid(id)}", "P31", _entity(class_item))],
        "P1647": [
            _plain_statement(f"{id}${_guid(id + 'P1647')}", "P1647", {"value": about, "type": "wikibase-entityid"})
        ],
    }
    return {
        "type": "property",
        "datatype": datatype,
        "id": id,
        "labels": _terms({"en": label, "de": f"{label} (de)"}),
        "descriptions": _terms({"en": f"property for {label}"}),
        "aliases": [],
        "claims": claims if number % 2 else [],
        "pageid": 3_900_000 + number,
        "ns": 120,
        "title": f"Property:{id}",
        "lastrevid": revision,
        "modified": modified,
    }


def label_of_property(id: str) -> str:
    """The label of a property by its id."""
    return BY_ID[id].label if id in BY_ID else OTHER_PROPERTIES[id][0]


def time_value(day: str) -> Json:
    """A data value for a day; a month or a day of 00 makes it a year or a month."""
    precision = 9 if day[5:7] == "00" else 10 if day[8:] == "00" else 11
    value = {
        "time": f"+{day}T00:00:00Z",
        "timezone": 0,
        "before": 0,
        "after": 0,
        "precision": precision,
        "calendarmodel": "http://www.wikidata.org/entity/Q1985727",
    }
    return {"value": value, "type": "time"}


def quantity_value(amount: int) -> Json:
    """A data value for a number without a unit."""
    return {"value": {"amount": f"+{amount}", "unit": "1"}, "type": "quantity"}


def coordinate_value(latitude: float, longitude: float) -> Json:
    """A data value for a place on Earth, in degrees."""
    value = {
        "latitude": latitude,
        "longitude": longitude,
        "altitude": None,
        "precision": 0.0001,
        "globe": "http://www.wikidata.org/entity/Q2",
    }
    return {"value": value, "type": "globecoordinate"}


def string_value(text: str) -> Json:
    """A data value for a string."""
    return {"value": text, "type": "string"}


def monolingual_value(text: str) -> Json:
    """A data value for a text in English."""
    return {"value": {"text": text, "language": "en"}, "type": "monolingualtext"}


def hologram_value(text: str) -> Json:
    """A value of a type that does not exist (yet)."""
    return {"value": {"beam": text, "id": "Q1"}, "type": "wikibase-hologram"}


def _terms(terms: dict[str, str]) -> Json | list[Any]:
    return {language: {"language": language, "value": value} for language, value in terms.items()} or []


def _entity(item: str) -> Json:
    value = {"entity-type": "item", "numeric-id": int(item[1:]), "id": item}
    return {"value": value, "type": "wikibase-entityid"}


def _guid(seed: str) -> str:
    digest = hashlib.sha1(seed.encode()).hexdigest().upper()
    return "-".join((digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:32]))


def _datatype(relation: str) -> str:
    return "wikibase-item" if relation in BY_ID else OTHER_PROPERTIES[relation][1]


def _snak(relation: str, data: Json | None, unknown: str = "somevalue", *, hashed: bool = False) -> Json:
    snak: Json = {"snaktype": "value" if data is not None else unknown, "property": relation}
    if hashed:  # qualifiers and references carry the snak's hash
        snak["hash"] = hashlib.sha1(f"{relation}{data}".encode()).hexdigest()
    if data is not None:
        snak["datavalue"] = data
    snak["datatype"] = _datatype(relation)
    return snak


def _plain_statement(id: str, relation: str, data: Json) -> Json:
    return {"mainsnak": _snak(relation, data), "type": "statement", "id": id, "rank": "normal"}


def _statement(statement: Statement) -> Json:
    data = None if statement.object is None else _entity(statement.object)
    json: Json = {"mainsnak": _snak(statement.relation, data, statement.unknown), "type": "statement"}
    qualifiers: dict[str, list[Json]] = {}
    for relation, day in (("P580", statement.start), ("P582", statement.end)):
        if day is not None:
            qualifiers.setdefault(relation, []).append(_snak(relation, time_value(day), hashed=True))
    for relation, item in statement.qualifiers:
        qualifiers.setdefault(relation, []).append(_snak(relation, _entity(item), hashed=True))
    if qualifiers:
        json["qualifiers"] = qualifiers
        json["qualifiers-order"] = list(qualifiers)
    json["id"] = statement.id
    json["rank"] = statement.rank
    if statement.reference is not None:
        snaks = {
            "P248": [_snak("P248", _entity(statement.reference), hashed=True)],
            "P854": [_snak("P854", string_value("https://news.example/1"), hashed=True)],
        }
        digest = hashlib.sha1(f"{statement.reference}".encode()).hexdigest()
        json["references"] = [{"hash": digest, "snaks": snaks, "snaks-order": list(snaks)}]
    return json
