"""What the generated world is made of: relations, names and sentences, pages, and items of Wikidata."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Literal, NamedTuple

from temporalwiki.base.json_files import read_yaml
from temporalwiki.builders import dumps
from temporalwiki.builders.dumps import Json, Statement, statement_id

_TABLES: dict[str, Any] = read_yaml(Path(__file__).with_name("words.yaml"))


class Kind(NamedTuple):
    """A kind of item: how many there are for each person, what Wikidata calls it, and how its items are named."""

    share: float
    description: str
    names: list[str]


class Relation(NamedTuple):
    """A property, the kinds of item that it joins, and its sentence."""

    id: str
    label: str
    subjects: list[str]  # kinds
    object: str
    sentence: str  # {S} is the subject at the start of the sentence, {o} the object
    share: float = 0.8  # of the subjects that have it in the first month


PEOPLE: list[str] = _TABLES["people"]
GIVEN_NAMES: dict[str, list[str]] = _TABLES["given_names"]
KINDS = {name: Kind(**kind) for name, kind in _TABLES["kinds"].items()}
VOCABULARY: dict[str, list[str]] = _TABLES["vocabulary"]
SECTIONS: list[str] = _TABLES["sections"]
RELATIONS = [Relation(**relation) for relation in _TABLES["relations"]]
WORDINGS: list[str] = _TABLES["wordings"]
TIMES = {"P569": "date of birth", "P580": "start time", "P582": "end time"}
LABELS = {"P31": "instance of"} | TIMES | {relation.id: relation.label for relation in RELATIONS}


@dataclass(frozen=True)
class WorldText:
    """A piece of text as a reader sees it, and as wikitext."""

    plain: str
    wiki: str


def as_is(plain: str) -> WorldText:
    """Return text without markup."""
    return WorldText(plain, plain)


def fill(template: str, **fields: WorldText) -> WorldText:
    """Fill a template twice: for readers and as wikitext."""
    return WorldText(
        template.format(**{name: text.plain for name, text in fields.items()}),
        template.format(**{name: text.wiki for name, text in fields.items()}),
    )


class NamePool:
    """Makes names, none of them twice."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._taken: set[str] = set()

    def part(self, name: str) -> str:
        """Return a random name of the kind ``name``: surname, place, land or thing. It may be returned again."""
        first, second = (self._rng.choice(words) for words in _TABLES["parts"][name])
        return f"{first} {second}" if name == "thing" else first + second

    def unique(self, templates: list[str]) -> str:
        """Fill one of the templates with a name that no other item has."""
        attempt = 0
        while True:
            name = self._rng.choice(templates).format(**{part: self.part(part) for part in _TABLES["parts"]})
            attempt += 1
            if attempt > 20:  # most names are taken
                name += f" {self._rng.randrange(2, 20 * attempt)}"
            if name not in self._taken:
                self._taken.add(name)
                return name


def filler_sentence(rng: Random) -> WorldText:
    """Return a sentence that states no fact about any item."""
    words = " ".join(rng.choice(phrases) for phrases in _TABLES["fillers"])
    numbers = {"year": rng.randrange(1950, 2021), "n": f"{rng.randrange(12, 9800):,}", "small": rng.randrange(4, 21)}
    return as_is(f"{words.format(**numbers)}.")


@dataclass(eq=False)
class Block:
    """A paragraph, a bulleted list, or ``raw`` wikitext such as a heading."""

    kind: Literal["prose", "list", "raw"]
    sentences: list[WorldText] = field(default_factory=list)
    raw: str = ""

    def wikitext(self) -> str:
        """Return the block as the page has it."""
        if self.kind == "list":
            return "\n".join(f"* {sentence.wiki}" for sentence in self.sentences)
        return self.raw or " ".join(sentence.wiki for sentence in self.sentences)


@dataclass(eq=False)
class WorldPage(dumps.Page):
    """A page of the generated Wikipedia: its text is written from its blocks."""

    item: str | None = None
    blocks: list[Block] = field(default_factory=list)
    tail: str = ""
    told: dict[tuple[str, str], list[WorldText]] = field(default_factory=dict)  # (relation, object) -> what says so

    def paragraphs(self) -> list[Block]:
        """Return its paragraphs without its lists."""
        return [block for block in self.blocks if block.kind == "prose"]

    def has(self, text: WorldText) -> bool:
        """Return whether the page has a sentence with the same plain text, with any markup."""
        return any(sentence.plain == text.plain for block in self.blocks for sentence in block.sentences)

    def plain(self) -> list[list[str]]:
        """Return paragraphs and lists as lists of sentences, as readers see them."""
        return [[sentence.plain for sentence in block.sentences] for block in self.blocks if block.kind != "raw"]

    def replace(self, old: WorldText, *new: WorldText) -> None:
        """Replace a sentence by any number of others. A paragraph that becomes empty is removed."""
        for block in self.blocks:
            if old in block.sentences:
                place = block.sentences.index(old)
                block.sentences[place : place + 1] = new
                if not block.sentences:
                    self.blocks.remove(block)
                break
        self.told = {fact: kept for fact, of in self.told.items() if (kept := [one for one in of if one is not old])}

    def wikitext(self, kind: str, infobox: Mapping[str, str]) -> str:
        """Return the wikitext of a page about a ``kind`` of thing."""
        if self.redirect is not None:
            return f"#REDIRECT [[{self.redirect}]]\n\n{{{{Redirect category shell|\n{{{{R from move}}}}\n}}}}"
        box = "".join(f"| {name:<12} = {value}\n" for name, value in infobox.items())
        parts = [f"{{{{Short description|{kind} of a generated world}}}}\n{{{{Infobox {kind}\n{box}}}}}\n"]
        for block in self.blocks:
            parts += [block.wikitext(), "\n" if block.raw.startswith("==") else "\n\n"]
        return "".join(parts) + self.tail


def link(title: str | None, label: str) -> WorldText:
    """Return a link to an article, or plain text if the label would break a link."""
    if title is None or any(c in label for c in "|[]{}<>"):
        return WorldText(label, label.replace("<", "&lt;").replace(">", "&gt;"))
    return WorldText(label, f"[[{label}]]" if title == label else f"[[{title}|{label}]]")


class WorldFact(NamedTuple):
    """The ids of a subject, a relation and an object."""

    subject: str
    relation: str
    object: str


@dataclass(eq=False)
class WorldItem:
    """An item of Wikidata and its article, if it has one."""

    number: int
    kind: str
    labels: dict[str, str]  # by language
    description: str
    pronoun: str = "it"
    page: WorldPage | None = None
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

    def facts(self) -> dict[WorldFact, str | None]:
        """Return each fact with its end, or None. Facts are the statements of the best rank whose value is an item."""
        found: dict[WorldFact, str | None] = {}
        for relation in dict.fromkeys(statement.relation for statement in self.statements):
            every = self.of(relation)
            best = [s for s in every if s.rank == "preferred"] or [s for s in every if s.rank == "normal"]
            found |= {WorldFact(self.id, relation, s.object): s.end for s in best if s.object is not None}
        return found

    def written(self, wiki: str) -> dumps.Item:
        """Return the item as it is written."""
        others = {
            id: [{"mainsnak": snak, "type": "statement", "id": statement_id(self.id, id), "rank": "normal"}]
            for id, snak in self.other.items()
        }
        links = self.other_links | ({} if self.page is None else {wiki: self.page.title})
        item = dumps.Item(self.id, self.labels, self.statements, links, description=self.description)
        item.other_claims, item.revision, item.modified = others, self.revision, self.modified
        return item
