"""The people, clubs, cities ... of a generated world, what is true of them, and the articles about them."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from random import Random
from typing import TYPE_CHECKING

from temporalwiki.builders.world import items as wd
from temporalwiki.builders.world.filler import FIRST_PAGE
from temporalwiki.builders.world.items import Item, Statement
from temporalwiki.builders.world.names import Names, Prose, Text, as_is, fill
from temporalwiki.builders.world.pages import Editor, Page, Sentence, lead, link
from temporalwiki.builders.world.relations import (
    BY_ID,
    HOSTILE,
    OTHER_PROPERTIES,
    PEOPLE,
    RELATIONS,
    VOCABULARY,
    Relation,
)
from temporalwiki.builders.world.truth import ArticleTruth, Fact, SnapshotTruth

if TYPE_CHECKING:
    from temporalwiki.builders.world import World

# Kinds of item with their number per person of the story and what Wikidata calls them.
_KINDS = {
    "country": (0.07, "country"),
    "region": (0.06, "region"),
    "city": (0.16, "city"),
    "league": (0.04, "association football league"),
    "club": (0.10, "association football club"),
    "stadium": (0.09, "stadium"),
    "company": (0.17, "company"),
    "university": (0.10, "university"),
    "party": (0.08, "political party"),
    "organization": (0.06, "learned society"),
    "label": (0.06, "record label"),
    "band": (0.10, "musical group"),
    "film": (0.12, "film"),
    "album": (0.10, "studio album"),
    "book": (0.12, "novel"),
    "award": (0.06, "award"),
    "position": (0.15, "public office"),
}
_WITHOUT_PAGE = {"league", "award", "position", "class", *VOCABULARY}
_PERSON_NAMES = {"executive": "business executive"}
# Of the slots (subject, relation) that have statements at all: how the statements look.
_PATTERNS = {
    "single": 100,
    "list": 14,  # several objects of normal rank
    "former": 10,  # a former object with an end time beside a preferred one
    "rival": 5,  # a normal object beside a preferred one, no times
    "ended": 6,  # one object, of normal rank, with an end time of long ago
    "deprecated": 5,  # a deprecated object beside a normal one
    "unknown": 4,  # somevalue or novalue
    "hidden": 3,  # a preferred somevalue above a normal object: no fact
    "alone": 4,  # one preferred object
    "twice": 4,  # two statements with the same object
}
_SECTIONS = ("Background", "Career", "History", "Reception", "Later years", "Works", "Organisation")
_USERS = ("Mossback", "Tern 42", "Étude", "Bot of Hearth", "203.0.113.7", "2001:db8::7", None)


class Story:
    """The state of the world in one month. The events of :mod:`.events` move it on."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.rng = Random(f"story {world.seed}")
        self.names = Names(self.rng)
        self.prose = Prose(self.rng, self.names, world.hard_sentences)
        self.month = 0
        self.items: list[Item] = []
        self.by_kind: dict[str, list[Item]] = {}
        self.by_id: dict[str, Item] = {}
        self.pages: list[Page] = []
        self.page_of: dict[str, Page] = {}
        self.best: dict[tuple[str, str], dict[str, str | None]] = {}  # (item, relation) -> object -> end time
        self.patterns: dict[tuple[str, str], str] = {}
        self.mentioned: dict[tuple[str, str], tuple[str, Sentence]] = {}  # objects that pages name without a fact
        self.titles: set[str] = set()
        self.last_item, self.last_page, self.last_revision = 1000, 600, 1_040_000_000
        self._build()

    # ---- building the first month

    def _build(self) -> None:
        self.add_item("class", "human", number=5)
        for kind in (*_KINDS, *VOCABULARY):
            name = _KINDS[kind][1] if kind in _KINDS else f"kind of {kind}"
            self.add_item("class", name)
        for kind, words in VOCABULARY.items():
            for word in words.split("|"):
                self.add_item(kind, word)
        for kind, (share, _) in _KINDS.items():
            for number in range(max(8, round(share * self.world.people))):
                hostile = HOSTILE.get(kind, ()) if self.world.hostile_names else ()
                self.add_item(kind, hostile[number] if number < len(hostile) else self._name(kind))
        for number in range(self.world.people):
            self.add_person(PEOPLE[number % len(PEOPLE)])
        self._eponyms()
        self._odd_labels()
        known = list(self.items)
        for item in known:
            self.establish(item)
        editor = Editor(self.rng, self.prose, 0)
        described = [item for item in known if item.kind not in _WITHOUT_PAGE]
        for item in described:  # first the titles, so that pages can link to pages that come later
            item.sitelink = self.title_for(item)
        for item in described:
            self.add_page(item, editor)
        self._other_pages(editor)
        self._mix_page_ids()
        for page in self.pages:
            self._first_revision(page)
        for item in known:
            self.last_revision += 1
            item.revision, item.modified, item.touched = (
                self.last_revision,
                self._old_day() + "T08:15:30Z",
                False,
            )
        if self.world.filler_pages:  # later pages come after the filler
            self.last_page = FIRST_PAGE + self.world.filler_pages

    def _name(self, kind: str) -> str:
        cities = self.by_kind.get("city", [])
        place = self.rng.choice(cities).name if cities else self.names.place_name()
        made = {"film": "work", "album": "work", "book": "work", "company": "brand", "region": "country"}
        name = self.names.unique(made.get(kind, kind), place=place)
        return f"{name} Province" if kind == "region" else name

    def add_item(self, kind: str, label: str | None, *, pronoun: str = "it", number: int | None = None) -> Item:
        """Add an item of a kind; without ``number`` it gets the next free one."""
        if number is None:
            self.last_item += self.rng.randint(1, 9)
            number = self.last_item
        described = _PERSON_NAMES.get(kind, kind) if kind in PEOPLE else _KINDS[kind][1] if kind in _KINDS else kind
        item = Item(number, kind, label, described, pronoun)
        rng = self.rng
        if rng.random() < 0.3:
            item.aliases = [f"{label} {rng.choice(('(old)', 'II', 'et al.'))}"]
        if rng.random() < 0.1:
            item.description = ""
        self.items.append(item)
        self.by_kind.setdefault(kind, []).append(item)
        if kind in PEOPLE:
            self.by_kind.setdefault("person", []).append(item)
            item.other["P569"] = wd.time_value(f"{rng.randrange(1940, 2000)}-{rng.randrange(13):02}-00")
        elif kind == "city":
            item.other["P1082"] = wd.quantity_value(rng.randrange(900, 900_000))
            item.other["P625"] = wd.coordinate_value(rng.randrange(-60, 60), rng.randrange(-179, 179) + 0.5)
        elif kind in ("company", "club", "university"):
            item.other["P856"] = wd.string_value(f'https://www.{number}.example/?a=1&b="2"')
            item.other["P2002"] = wd.string_value(f"user_{number}")
        if rng.random() < 0.05:
            item.other["P9999"] = wd.hologram_value(f"beam {number}")
        self.by_id[item.id] = item
        return item

    def add_person(self, kind: str) -> Item:
        """Add a person with a name that nobody has."""
        pronoun = self.rng.choice(("she", "he"))
        item = self.add_item(kind, self.names.unique("person", pronoun=pronoun), pronoun=pronoun)
        item.other["P1477"] = wd.monolingual_value(item.name)
        return item

    def _eponyms(self) -> None:
        """Organizations named after people: the subject's label lies within the object's (filter 1)."""
        members = [p for p in self.by_kind["person"] if p.kind in BY_ID["P463"].subjects]
        self.eponym_of = {
            person.id: self.add_item("organization", f"{person.label} Foundation")
            for person in members[:: max(1, len(members) // 16)]
        }

    def _odd_labels(self) -> None:
        """Some labels are missing, some are only there in other codes for English, some are shared."""
        books, clubs, people = self.by_kind["book"], self.by_kind["club"], self.by_kind["person"]
        books[-1].language, books[-2].language, clubs[-1].language = "mul", "en-gb", "mul"
        self.by_kind["position"][-1].label = None
        people[-1].label = people[-2].label  # namesakes

    def establish(self, item: Item) -> None:
        """The item's first statements."""
        if item.kind == "class":
            return
        classes = self.by_kind["class"]
        name = (
            "human" if item.kind in PEOPLE else _KINDS[item.kind][1] if item.kind in _KINDS else f"kind of {item.kind}"
        )
        self.fact(item, "P31", next(c for c in classes if c.label == name).id)
        for relation in RELATIONS:
            if item.kind in relation.subjects and self.rng.random() < relation.chance:
                self._slot(item, relation)

    def _slot(self, item: Item, relation: Relation) -> None:
        patterns = list(_PATTERNS)
        pattern = self.rng.choices(patterns, weights=list(_PATTERNS.values()))[0]
        first = self.pick(item, relation)
        second = self.pick(item, relation, first)
        old = f"{self.rng.randrange(1995, 2015)}-00-00"
        id = relation.id
        match pattern:
            case "single":
                self.fact(item, id, first, start=self._old_day() if self.rng.random() < 0.3 else None)
            case "list":
                self.fact(item, id, first)
                self.fact(item, id, second)
            case "former":
                self.state(item, id, second, end=old)
                self.fact(item, id, first, rank="preferred")
            case "rival":
                self.state(item, id, second)
                self.fact(item, id, first, rank="preferred")
            case "ended":
                self.fact(item, id, first, end=old)
            case "deprecated":
                self.state(item, id, second, rank="deprecated")
                self.fact(item, id, first)
            case "unknown":
                self.state(item, id, None).unknown = self.rng.choice(("somevalue", "novalue"))
            case "hidden":
                self.state(item, id, None, rank="preferred")
                self.state(item, id, first)
            case "alone":
                self.fact(item, id, first, rank="preferred")
            case "twice":
                self.fact(item, id, first, start="2009-00-00")
                self.state(item, id, first, start="2013-00-00")
        self.patterns[item.id, id] = pattern
        for statement in item.of(id):
            if self.rng.random() < 0.25:
                statement.reference = self.rng.choice(self.by_kind["book"]).id
            if self.rng.random() < 0.1:
                statement.qualifiers.append(("P642", self.rng.choice(self.by_kind["field"]).id))

    def pick(self, item: Item, relation: Relation, *but: str) -> str:
        """An object for the relation: a few are far more frequent than the rest, as in life."""
        pool = self.by_kind[relation.object]
        if relation.object == "country" and pool[0].id not in but and self.rng.random() < 0.45:
            return pool[0].id  # the large country, which meets the cap on objects
        while True:
            choice = pool[int(len(pool) * self.rng.random() ** 1.4)]
            if choice is not item and choice.id not in but and choice.live:
                return choice.id

    def state(
        self,
        item: Item,
        relation: str,
        object: str | None,
        *,
        rank: wd.Rank = "normal",
        start: str | None = None,
        end: str | None = None,
    ) -> Statement:
        """A statement that is no fact (or that the caller books as one)."""
        guid = "-".join(f"{self.rng.getrandbits(4 * n):0{n}X}" for n in (8, 4, 4, 4, 12))
        statement = Statement(f"{item.id}${guid}", relation, object, rank, start, end)
        item.statements.append(statement)
        item.touched = True
        return statement

    def fact(
        self,
        item: Item,
        relation: str,
        object: str,
        *,
        rank: wd.Rank = "normal",
        start: str | None = None,
        end: str | None = None,
    ) -> Statement:
        """A statement that is one of the item's facts."""
        self.best.setdefault((item.id, relation), {})[object] = end
        return self.state(item, relation, object, rank=rank, start=start, end=end)

    # ---- pages

    def link(self, id: str) -> Text:
        """A link to an item's page, or its name where it has none."""
        item = self.by_id[id]
        if item.label is None:
            return as_is("an office without a name")
        return link(item.sitelink or (item.label if item.kind in _WITHOUT_PAGE else None), item.name)

    def subject(self, item: Item, opening: bool) -> Text:
        """What a sentence calls its subject."""
        roll = self.rng.random()
        if roll < 0.45 or (item.pronoun == "it" and item.kind in ("city", "country")):
            return link(None, item.name)
        word = item.pronoun if item.pronoun != "it" else f"the {_KINDS[item.kind][1]}"
        return as_is(word[0].upper() + word[1:] if opening else word)

    def sentence(self, item: Item, relation: Relation, object: str, when: str | None = None) -> Text:
        """A sentence for a fact; with ``when``, as news."""
        template = relation.standing if when is None else relation.changed
        name = self.link(object)
        if template.endswith("{o}.") and name.plain.endswith("."):
            template = template[:-1]
        opening = template.startswith("{S}")
        return fill(template, S=self.subject(item, opening), o=name, when=as_is(when or ""))

    def title_for(self, item: Item) -> str:
        """A page's title for an item, which no other page has."""
        # No title may hold # < > [ ] | { } or _, or begin with a small letter where the case is first-letter.
        base = "".join(c for c in item.name if c not in "#<>[]|{}_").replace("  ", " ").strip()
        base = base[0].upper() + base[1:]
        title = base if base not in self.titles else f"{base} ({item.description or item.kind} {item.number})"
        self.titles.add(title)
        return title

    def next_page_id(self) -> int:
        """An id above all that were given."""
        self.last_page += self.rng.randint(1, 40)
        return self.last_page

    def add_page(self, item: Item, editor: Editor) -> Page:
        """An article about an item: lead, sections, facts told among other sentences, a list, categories."""
        rng = self.rng
        page = Page(self.next_page_id(), item.sitelink or self.title_for(item), item.id)
        page.infobox_name = "person" if item.kind in PEOPLE else item.kind
        item.sitelink, item.touched = page.title, True
        description = _PERSON_NAMES.get(item.kind, item.kind) if item.kind in PEOPLE else _KINDS[item.kind][1]
        opening = editor.new(page, lead(link(None, item.name), description))
        assert opening is not None
        told = []
        for (relation_id, object), sentence in self._tellings(item):
            new = editor.new(page, editor.cite(sentence) if rng.random() < 0.3 else sentence)
            if new is not None:
                page.stated[relation_id, object] = (new, self.by_id[object].name)
                told.append(new)
        for relation_id, object, text in self._mentions(item):
            if (new := editor.new(page, text)) is not None:
                self.mentioned[item.id, relation_id] = (object, new)
                told.append(new)
        rng.shuffle(told)
        paragraphs = [editor.paragraph(page, rng.randint(1, 4)) for _ in range(rng.randint(3, 7))]
        paragraphs[0].sentences.insert(0, opening)
        for new in told:
            block = rng.choice(paragraphs)
            block.sentences.insert(rng.randint(1, len(block.sentences)), new)
        sections = iter(rng.sample(_SECTIONS, 4))
        for number, block in enumerate(paragraphs):
            if number % 2 and number < 8:
                page.blocks.append(editor.heading(next(sections)))
            if rng.random() < 0.12:
                page.blocks.append(editor.ornament(page))
            page.blocks.append(block)
        if rng.random() < 0.3:
            related = rng.sample(self.items, 3)
            block = editor.list_block(page, [self.link(other.id) for other in related if other.label is not None])
            page.blocks += [editor.heading("Achievements"), block]
        self.refresh_infobox(page)
        page.tail = (
            "== References ==\n{{Reflist}}\n\n{{Authority control}}\n\n"
            f"[[Category:{description.capitalize()} pages]]\n[[Category:Pages with {item.id}]]"
        )
        self.pages.append(page)
        self.page_of[item.id] = page
        return page

    def _tellings(self, item: Item) -> Iterator[tuple[tuple[str, str], Text]]:
        for relation in RELATIONS:
            for object in self.best.get((item.id, relation.id), {}):
                # Unnamed things cannot be told of, and some facts stand in the infobox only.
                if self.by_id[object].label is not None and self.rng.random() < 0.8:
                    yield (relation.id, object), self.sentence(item, relation, object)

    def _mentions(self, item: Item) -> Iterator[tuple[str, str, Text]]:
        for relation in RELATIONS:
            key = (item.id, relation.id)
            if self.patterns.get(key) == "single" and self.rng.random() < 0.12:
                object = self.pick(item, relation, *self.best[key])
                if self.by_id[object].label is not None:
                    text = fill("A rumour of the time linked the name with {o}.", o=self.link(object))
                    yield relation.id, object, text

    def refresh_infobox(self, page: Page) -> None:
        """Show what Wikidata says now."""
        if page.item is None:
            return
        item = self.by_id[page.item]
        page.infobox = {"name": link(None, item.name).wiki.replace("|", "{{!}}")}
        for relation in RELATIONS:
            for object in self.best.get((item.id, relation.id), {}):
                page.infobox[relation.label.replace(" ", "_")] = self.link(object).wiki.replace(" | ", " {{!}} ")

    def _other_pages(self, editor: Editor) -> None:
        """Redirects, other namespaces, drafts, and pages that are deleted at first."""
        rng = self.rng
        articles = list(self.pages)
        months = max(1, len(self.world.dates) - 1)
        count = max(6, len(articles) // 60)
        for number in range(len(articles) // 6 + count * months):
            target = rng.choice(articles)
            title = f"{self.names.surname()} {self.names.place_name()} {number}"
            self.pages.append(Page(self.next_page_id(), title, redirect=target.title))
        for number in range(len(articles) // 12):
            ns, prefix = ((10, "Template"), (14, "Category"), (4, "Wikipedia"))[number % 3]
            page = Page(self.next_page_id(), f"{prefix}:{self.names.place_name()} {number}", ns=ns)
            page.blocks = [editor.paragraph(page, 2)]
            self.pages.append(page)
        for number in range(2 * count * months):
            page = self.plain_page(editor, f"{self.names.unique('work')} (lost {number})")
            if number % 2:
                page.ns, page.title = 118, f"Draft:{page.title}"
            else:
                page.live = False

    def _mix_page_ids(self) -> None:
        """Give out the page ids anew, so that every sort of page is anywhere; the largest is an article's."""
        ids = [page.id for page in self.pages]
        self.rng.shuffle(ids)
        top = ids.index(max(ids))
        ids[0], ids[top] = ids[top], ids[0]
        for page, id in zip(self.pages, ids, strict=True):
            page.id = id

    def plain_page(self, editor: Editor, title: str) -> Page:
        """An article that no item knows."""
        page = Page(self.next_page_id(), title)
        page.infobox_name = "essay"
        self.write_plain(page, editor)
        self.pages.append(page)
        return page

    def write_plain(self, page: Page, editor: Editor) -> None:
        """Write a page of filler alone."""
        sizes = [self.rng.randint(2, 6) for _ in range(self.rng.randint(2, 4))]
        page.blocks = [editor.paragraph(page, size) for size in sizes]
        page.tail = "[[Category:Essays of a generated world]]"

    # ---- revisions

    def _old_day(self) -> str:
        start = datetime.date.fromisoformat(self.world.dates[0]) - datetime.timedelta(days=10)
        return (start - datetime.timedelta(days=self.rng.randrange(1, 3000))).isoformat()

    def _first_revision(self, page: Page) -> None:
        parent = self.last_revision + 1 if self.rng.random() < 0.8 else None
        stamp = f"{self._old_day()}T{self.rng.randrange(24):02}:{self.rng.randrange(60):02}:07Z"
        self.save(page, stamp, parent, render=True)

    def save(self, page: Page, timestamp: str, parent: int | None, *, render: bool) -> None:
        """A new revision, of the new text or of the same."""
        rng = self.rng
        self.last_revision += rng.randint(3, 400)
        page.revision, page.parent, page.timestamp = self.last_revision, parent, timestamp
        page.user = rng.choice(_USERS)
        page.minor = rng.random() < 0.2
        page.comment = rng.choice((None, "", '/* Career */ [[WP:CE|copy edit]] & "fixes"', "Undid <revision>", "ok"))
        if render:
            page.text = page.render()

    # ---- what the dumps need, and the truth

    def dump_pages(self) -> list[Page]:
        """Pages that there are this month, by id."""
        return sorted((page for page in self.pages if page.live), key=lambda page: page.id)

    def entities(self) -> Iterator[wd.Json]:
        """Items in the order of Wikidata's dumps (by age, not by number), then properties."""
        day = f"{datetime.date.fromisoformat(self.world.wikidata_dates[0])}T00:00:00Z"
        for item in self.items:
            if item.live:
                yield item.json(self.world.wiki)
        for number, id in enumerate([*OTHER_PROPERTIES, *BY_ID]):
            yield wd.property_json(number, id, 1_500_000 + number, day, "Q5")

    def truth(self) -> SnapshotTruth:
        """The snapshot as the books have it."""
        articles, redirects, told = {}, {}, {}
        labels = {item.id: item.label for item in self.items if item.live and item.label is not None}
        for page in self.dump_pages():
            if page.redirect is not None:
                redirects[page.id] = page.redirect
            elif page.ns == 0:
                blocks = page.told()
                articles[page.id] = ArticleTruth(
                    page.id,
                    page.title,
                    page.revision,
                    page.item if page.item is not None and self.by_id[page.item].live else None,
                    [[sentence.text.plain for sentence in block.sentences] for block in blocks],
                    frozenset(n for n, block in enumerate(blocks) if block.kind == "list"),
                )
                for (relation, object), (sentence, label) in page.stated.items():
                    known = page.item is not None and object in self.best.get((page.item, relation), {})
                    if known and labels.get(object) == label:
                        told[Fact(str(page.item), relation, object)] = sentence.text.plain
        facts = {Fact(s, r, o): end for (s, r), objects in self.best.items() for o, end in objects.items()}
        return SnapshotTruth(
            date=self.world.dates[self.month],
            wikidata_date=self.world.wikidata_dates[self.month],
            articles=articles,
            redirects=redirects,
            pages=len(self.dump_pages()),
            facts=frozenset(facts),
            ended={fact: end for fact, end in facts.items() if end is not None},
            told=told,
            labels=labels | {id: wd.label_of_property(id) for id in (*OTHER_PROPERTIES, *BY_ID)},
            items={page.item: page.title for page in self.pages if page.is_article and page.item is not None},
        )
