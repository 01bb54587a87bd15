"""Items of the generated Wikidata."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from temporalwiki.builders import dumps
from temporalwiki.builders.dumps import Json, Statement, statement_id
from temporalwiki.builders.world.pages import Page


class Fact(NamedTuple):
    """The ids of a subject, a relation and an object."""

    subject: str
    relation: str
    object: str


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

    def written(self, wiki: str) -> dumps.Item:
        """Return the item as it is written."""
        others = {
            id: [{"mainsnak": snak, "type": "statement", "id": statement_id(self.id, id), "rank": "normal"}]
            for id, snak in self.other.items()
        }
        links = self.other_links | ({} if self.page is None else {wiki: self.page.title})
        return dumps.Item(
            self.id,
            self.labels,
            self.statements,
            links,
            description=self.description,
            other_claims=others,
            revision=self.revision,
            modified=self.modified,
        )
