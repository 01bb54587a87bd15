"""The people, clubs, cities ... of the generated world, the articles about them, and what happens in a month."""

import datetime
import uuid
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from random import Random

from temporalwiki.builders.dumps import Json, Statement, snak, time_value, write_dumps
from temporalwiki.builders.world.items import (
    GIVEN_NAMES,
    KINDS,
    LABELS,
    PEOPLE,
    RELATIONS,
    SECTIONS,
    VOCABULARY,
    WORDINGS,
    Block,
    NamePool,
    Relation,
    WorldFact,
    WorldItem,
    WorldPage,
    WorldText,
    as_is,
    fill,
    filler_sentence,
    link,
)

_WITHOUT_PAGE = {"league", "award", "position", "class", *VOCABULARY}


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


@dataclass(frozen=True)
class WorldArticle:
    """An article of one month; a bulleted list counts as a paragraph, its items as sentences."""

    title: str
    revision_id: int
    item: str | None
    paragraphs: list[list[str]]


@dataclass(frozen=True)
class Snapshot:
    """All that is true in one month."""

    date: str
    wikidata_date: str
    articles: dict[int, WorldArticle]  # by page id
    revisions: dict[int, int]  # of all pages, with redirects and other namespaces
    facts: dict[WorldFact, str | None]  # with the day on which they end
    labels: dict[str, str]  # of items and properties


class Story:
    """The world in one month; ``next_month`` moves it on."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.rng = Random(f"world {world.seed}")
        self.relations = [one for one in RELATIONS if not world.relations or one.id in world.relations]
        self.names = NamePool(self.rng)
        self.month = 0
        self.items: list[WorldItem] = []
        self.by_id: dict[str, WorldItem] = {}
        self.by_kind: dict[str, list[WorldItem]] = {"person": []}
        self.pages: list[WorldPage] = []
        self.last_item, self.last_page, self.last_revision = 1000, 600, 1_040_000_000
        self._saved: dict[str, Json] = {}
        self.begin()
        self.save()

    def next_month(self) -> None:
        """Let a month pass."""
        self.month += 1
        self.events()
        self.save()

    # The first month

    def begin(self) -> None:
        """Make the items, their facts and their articles."""
        for label in ("human", *(kind.description for kind in KINDS.values()), *VOCABULARY):
            self.add_item("class", label)
        for kind, words in VOCABULARY.items():
            for word in words:
                self.add_item(kind, word)
        for name, of in KINDS.items():
            for _ in range(max(8, round(of.share * self.world.people))):
                self.add_item(name, self.names.unique(of.names))
        for number in range(self.world.people):
            self.add_person(number)
        for item in self.items:
            self.add_facts(item)
        with_page = [item for item in self.items if item.kind not in _WITHOUT_PAGE]
        for item in with_page:  # before the articles, which link to them
            self.add_page(item)
        for item in with_page:
            self.write_article(item)

    def add_item(self, kind: str, label: str, pronoun: str = "it") -> WorldItem:
        """Add an item whose only fact is its class."""
        description = KINDS[kind].description if kind in KINDS else kind
        self.last_item += self.rng.randint(1, 9)
        item = WorldItem(self.last_item, kind, {"en": label}, description, pronoun)
        self.items.append(item)
        self.by_id[item.id] = item
        self.by_kind.setdefault(kind, []).append(item)
        if kind != "class":
            of = "human" if kind in PEOPLE else description
            self.state(item, "P31", next(one.id for one in self.by_kind["class"] if one.name == of))
        return item

    def add_person(self, number: int) -> WorldItem:
        """Add a person, whose occupation depends on ``number``."""
        pronoun = self.rng.choice(list(GIVEN_NAMES))
        name = self.names.unique([f"{self.rng.choice(GIVEN_NAMES[pronoun])} {{surname}}"])
        person = self.add_item(PEOPLE[number % len(PEOPLE)], name, pronoun)
        person.other["P569"] = snak("P569", "time", time_value(f"{self.rng.randrange(1940, 2000)}-00-00"))
        self.by_kind["person"].append(person)
        return person

    def add_facts(self, item: WorldItem, start: str | None = None) -> None:
        """Give an item facts of some of the relations that it can have."""
        for relation in self.relations:
            if item in self.subjects(relation) and self.rng.random() < relation.share:
                self.state(item, relation.id, self.pick(item, relation), start)

    def subjects(self, relation: Relation) -> list[WorldItem]:
        """Return the items that can have a relation."""
        return [item for kind in relation.subjects for item in self.by_kind[kind]]

    def pick(self, item: WorldItem, relation: Relation) -> str:
        """Draw an object that the item does not have; a few are far more frequent than the others."""
        pool = self.by_kind[relation.object]
        taken = {item.id, *(statement.object for statement in item.of(relation.id))}
        while (choice := pool[int(len(pool) * self.rng.random() ** self.world.skew)].id) in taken:
            pass
        return choice

    def state(self, item: WorldItem, relation: str, object: str | None, start: str | None = None) -> Statement:
        """Add a statement."""
        guid = str(uuid.UUID(int=self.rng.getrandbits(128))).upper()
        item.statements.append(Statement(relation, object, start, id=f"{item.id}${guid}"))
        return item.statements[-1]

    # Articles

    def add_page(self, item: WorldItem) -> WorldPage:
        """Add an empty page about an item; its id is above all others."""
        self.last_page += self.rng.randint(1, 40)
        item.page = WorldPage(self.last_page, self.title_of(item), item=item.id)
        self.pages.append(item.page)
        return item.page

    def title_of(self, item: WorldItem) -> str:
        """Return a title that no other page has."""
        return item.name

    def write_article(self, item: WorldItem) -> None:
        """Write the first sentence, facts among other sentences, headings and categories."""
        page, rng = item.page, self.rng
        assert page is not None
        rest = f" is {'an' if item.description[0] in 'aeiou' else 'a'} {item.description}."
        name = link(None, item.name)
        for number in range(rng.randint(3, 7)):
            if number % 2:
                page.blocks.append(Block("raw", raw=f"== {SECTIONS[number]} =="))
            page.blocks.append(self.paragraph(page, rng.randint(1, 4 if self.world.wordings == 1 else 1)))
        page.blocks[0].sentences.insert(0, WorldText(name.plain + rest, f"'''{name.wiki}'''{rest}"))
        for statement in item.statements:
            if statement.relation != "P31" and rng.random() < 0.8:  # some facts are only in the infobox
                self.tell(item, statement)
        page.tail = f"== References ==\n{{{{Reflist}}}}\n\n[[Category:{item.description.capitalize()} pages]]"

    def paragraph(self, page: WorldPage, size: int) -> Block:
        """Return a paragraph that states no facts."""
        return Block("prose", [self.filler(page) for _ in range(size)])

    def filler(self, page: WorldPage) -> WorldText:
        """Return a sentence that states no fact and that the page does not have."""
        while page.has(text := filler_sentence(self.rng)):
            pass
        return text

    def link(self, id: str) -> WorldText:
        """Return a link to the page of an item."""
        item = self.by_id[id]
        unwritten = item.name if item.kind in _WITHOUT_PAGE else None
        return link(unwritten if item.page is None else item.page.title, item.name)

    def tell(self, item: WorldItem, statement: Statement, old: Statement | None = None, *, news: bool = False) -> None:
        """Write a sentence that states a fact into the article of its subject, in place of that of ``old``, if given.

        With ``news``, the sentence begins with the month.
        """
        page, object = item.page, statement.object
        if page is None or object is None:
            return
        before = [] if old is None else page.told.get((old.relation, str(old.object)), [])
        told = []
        relation = next(relation for relation in RELATIONS if relation.id == statement.relation)
        for template in (relation.sentence, *WORDINGS)[: self.world.wordings]:
            text = self.sentence(item, relation, template, object, news=news)
            if page.has(text):
                continue
            if before:
                page.replace(before[0], text)
                before = before[1:]
            else:
                self.insert(page, text)
            told.append(text)
        if told:
            page.told[statement.relation, object] = told
            for sentence in before:
                page.replace(sentence)

    def sentence(self, item: WorldItem, relation: Relation, template: str, object: str, *, news: bool) -> WorldText:
        """Return a sentence that states a fact, perhaps with a reference."""
        name = link(None, item.name)
        short = template == relation.sentence and item.kind not in ("city", "country")
        if short and self.rng.random() < 0.5:
            word = item.pronoun if item.pronoun != "it" else f"the {item.description}"
            name = as_is(word if news else word[0].upper() + word[1:])
        if news:
            template = f"As of {self.days()[0]:%B %Y}, {template[0].lower()}{template[1:]}"
        text = fill(template, S=name, r=as_is(relation.label), o=self.link(object))
        return self.cite(text) if self.rng.random() < 0.4 else text

    def cite(self, text: WorldText) -> WorldText:
        """Return a sentence with a reference."""
        number = self.rng.randrange(1, 10**6)
        source = f"{{{{cite web |url=https://news.example/{number}?a=1&b=2 |title=Item {number}. Part two}}}}"
        return WorldText(text.plain, f"{text.wiki}<ref>{source}</ref>")

    def insert(self, page: WorldPage, sentence: WorldText) -> None:
        """Put a sentence anywhere in an article but at its start."""
        block = self.rng.choice(page.paragraphs())
        block.sentences.insert(self.rng.randint(1, len(block.sentences)), sentence)

    # What happens in a month

    def events(self) -> None:
        """Change facts and articles."""
        changes = cycle(("replace", "succeed", "add", "replace", "begin", "end", "succeed", "begin"))
        for relation in self.relations:
            subjects = self.rng.sample(found := self.subjects(relation), len(found))
            # Prizes and transfers are frequent; a person dies once.
            frequency = {"P54": 4, "P166": 4, "P20": 0}.get(relation.id, 1)
            for _ in range(self.world.changes or max(3, self.world.people // 20) * frequency):
                self.change_one(subjects, relation, next(changes))
        for number in range(max(8, self.world.people // 25)):
            person = self.add_person(number)
            self.add_facts(person, self.day())
            self.add_page(person)
            self.write_article(person)
        articles = self.rng.sample([page for page in self.pages if page.paragraphs()], len(self.pages) // 10)
        for number, page in enumerate(articles):
            (self.delete if number < 2 else self.edit)(page)

    def change_one(self, subjects: list[WorldItem], relation: Relation, how: str) -> None:
        """Change a fact of the last of ``subjects`` that fits; remove it and all after it from the list.

        It fits if it has a single fact of the relation, which has not ended; or none, if ``how`` is "begin".
        """
        while subjects:
            item = subjects.pop()
            found = item.of(relation.id)
            if len(found) == (how != "begin") and all(one.object and not one.end for one in found):
                self.change(item, relation, how, *found)
                return

    def change(self, item: WorldItem, relation: Relation, how: str, old: Statement | None = None) -> None:
        """Change a fact and, mostly, the article."""
        new = None if how == "end" else self.state(item, relation.id, self.pick(item, relation), self.day())
        if old is not None and how == "replace":
            item.statements.remove(old)
        elif old is not None and how != "add":
            old.end = self.day()
            if new is not None:
                new.rank = "preferred"
        if item.page is None or self.rng.random() < 0.15:
            return
        if new is not None:
            self.tell(item, new, None if how == "add" else old, news=True)
        elif old is not None:
            for sentence in item.page.told.get((relation.id, str(old.object)), []):
                item.page.replace(sentence)

    def edit(self, page: WorldPage) -> None:
        """Add, replace or remove a sentence that states no fact."""
        others = [sentence for block in page.paragraphs() for sentence in block.sentences[1:]]
        told = [sentence for of in page.told.values() for sentence in of]
        free = [sentence for sentence in others if sentence not in told]
        if not free or self.rng.random() < 0.4:
            self.insert(page, self.filler(page))
        else:
            page.replace(self.rng.choice(free), *[self.filler(page)] * self.rng.randint(0, 1))

    def delete(self, page: WorldPage) -> None:
        """Delete a page."""
        self.pages.remove(page)
        if page.item is not None:
            self.by_id[page.item].page = None

    # Revisions and dumps

    def days(self) -> list[datetime.date]:
        """Return the dates of the previous and the present Wikidata dump; only the latter in the first month."""
        dates = self.world.wikidata_dates
        return [datetime.date.fromisoformat(date) for date in dates[max(0, self.month - 1) : self.month + 1]]

    def day(self) -> str:
        """Draw a day of the running month."""
        first, last = self.days()
        return str(first + datetime.timedelta(days=self.rng.randint(1, max(1, (last - first).days - 1))))

    def save(self) -> None:
        """Make a new revision of every page and item that was edited."""
        last = datetime.datetime.strptime(self.world.dates[self.month], "%Y%m%d")
        first = last - datetime.timedelta(days=3000)
        if self.month:
            first = datetime.datetime.strptime(self.world.dates[self.month - 1], "%Y%m%d")
        edited = [(page, text) for page in self.pages if (text := self.wikitext(page)) != page.text]
        self.rng.shuffle(edited)
        for number, (page, text) in enumerate(edited, 1):
            self.last_revision += self.rng.randint(3, 400)
            page.text, page.parent, page.revision = text, page.revision or None, self.last_revision
            page.timestamp = f"{first + (last - first) * number / (len(edited) + 1):%Y-%m-%dT%H:%M:%SZ}"
        for item in self.items:
            content = item.written(self.world.wiki).content()
            if self._saved.get(item.id) != content:
                self._saved[item.id] = content
                self.last_revision += self.rng.randint(1, 300)
                item.revision = self.last_revision
                item.modified = f"{self.day() if self.month else first.date()}T08:15:30Z"

    def wikitext(self, page: WorldPage) -> str:
        """Return the wikitext of a page; its infobox has what Wikidata says."""
        if page.item is None:
            return page.wikitext("essay", {})
        item = self.by_id[page.item]
        infobox = {"name": link(None, item.name).wiki}
        infobox |= {LABELS[fact.relation].replace(" ", "_"): self.link(fact.object).wiki for fact in item.facts()}
        return page.wikitext(item.kind, infobox)

    def snapshot(self) -> Snapshot:
        """Return all that is true this month."""
        items = {item.page.id: item.id for item in self.items if item.page is not None}
        return Snapshot(
            date=self.world.dates[self.month],
            wikidata_date=self.world.wikidata_dates[self.month],
            articles={
                page.id: WorldArticle(page.title, page.revision, items.get(page.id), page.plain())
                for page in sorted(self.pages, key=lambda page: page.id)
                if page.ns == 0 and page.redirect is None
            },
            revisions={page.id: page.revision for page in self.pages},
            facts={fact: end for item in self.items for fact, end in item.facts().items()},
            labels={item.id: item.name for item in self.items if item.name != item.id} | LABELS,
        )


def write_world(dumps: Path, world: World = World()) -> list[Snapshot]:
    """Write the dumps of all months, laid out as Wikimedia does, and return what is true in each month."""
    return write_story(dumps, Story(world))


def write_story(dumps: Path, story: Story) -> list[Snapshot]:
    """Do what ``write_world`` does for a story in its first month."""
    world, snapshots = story.world, []
    for month, (date, wikidata_date) in enumerate(zip(world.dates, world.wikidata_dates, strict=True)):
        if month:
            story.next_month()
        items = [item.written(world.wiki) for item in story.items]
        write_dumps(dumps, date, story.pages, items, LABELS, wiki=world.wiki, wikidata_date=wikidata_date)
        snapshots.append(story.snapshot())
    return snapshots
