"""The demo's world with the oddities of real dumps: labels, statements, pages and edits."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from temporalwiki.builders.dumps import Statement, item_value, snak
from temporalwiki.builders.world import Snapshot, Story, World, write_story
from temporalwiki.builders.world.items import RELATIONS, Block, Relation, WorldItem, WorldPage, WorldText, as_is

# Labels and titles that break careless programs.
HOSTILE = {
    "band": ('"Quoted" Names', "=1+1", "- a: b", "yes: no", "🎉 Confetti 🎉", "@SUM(A1)", "NULL"),
    "book": ("../../etc/passwd", "Rook & Daughters", "{percent} %s %d", "Ночной поезд", "X:\\temp\\new", "~", "1e5"),
    "film": ("What's the \"Point\", Ma'am?", "100% Cotton", "-1", "東の橋", "Ünïcödé", "true", "Left | Right"),
    "award": ("a, b; c", "--- !!python/object", "It's 'So' Quiet", "<i>Loud</i>"),
}
CITATIONS = (
    "<ref name=\"r{n}\">\"Who was it?\", ''Gazette'', p. {n}. [https://x.example/{n} Web].</ref>",
    "<ref name=r{n} />",
    "<!-- checked, see talk page {n}. -->",
    "{{{{citation needed|date=November 2021}}}}",
)
NOT_PROSE = (
    '{{| class="wikitable sortable"\n|+ Figures\n! Year !! Total\n|-\n| 2001 || {n}\n|-\n'
    '| rowspan="2" | Sum. || {{{{nowrap|{n} 000}}}}\n|}}',
    "[[File:Picture {n}.jpg|thumb|A view in {n}. See [[Map {n}|the map]].]]",
    "{{{{Main|Topic {n}}}}}",
    "<gallery>\nFile:View {n}.jpg|A caption. It has two sentences.\n</gallery>",
)
OTHER_VALUES: dict[str, tuple[str, dict[str, Any]]] = {
    "P1082": ("quantity", {"value": {"amount": "+900", "unit": "1"}, "type": "quantity"}),
    "P625": ("globe-coordinate", {"value": {"latitude": 1.5, "longitude": -2}, "type": "globecoordinate"}),
    "P1477": ("monolingualtext", {"value": {"text": "Q5", "language": "en"}, "type": "monolingualtext"}),
    "P856": ("url", {"value": 'https://www.example/?a=1&b="2"', "type": "string"}),
    "P9999": ("wikibase-hologram", {"value": {"id": "Q1"}, "type": "wikibase-hologram"}),  # an unknown type
}


SOURCE = {"hash": "0" * 40, "snaks": {"P248": [snak("P248", "wikibase-item", item_value("Q9"))]}}
NO_VALUE = {"mainsnak": {"snaktype": "novalue", "property": "P1", "datatype": "wikibase-item"}}


class OddStory(Story):
    """A world with oddities; if it is not ``hostile``, names are harmless."""

    def __init__(self, world: World, *, hostile: bool = True) -> None:
        self.hostile_names = {kind: list(labels) for kind, labels in HOSTILE.items()} if hostile else {}
        self.titles: set[str] = set()
        self.deleted: list[WorldPage] = []
        self.page_events: dict[int, str] = {}  # of the running month
        self.fact_events: set[str] = set()
        super().__init__(world)

    # The first month

    def begin(self) -> None:
        """Make pages that are not articles, and articles with tables, lists, galleries ..."""
        super().begin()
        articles = list(self.pages)
        for number, page in enumerate(articles):
            if number % 3 == 0:
                page.blocks.insert(2, Block("raw", raw=self.filled(NOT_PROSE)))
            if number % 4 == 0:
                page.blocks.append(Block("list", [self.link(item.id) for item in self.rng.sample(self.items, 3)]))
        for number in range(4 * len(self.world.dates)):
            self.other_page(f"Redirect {number}").redirect = articles[number].title
            for ns, prefix in ((10, "Template:"), (14, "Category:"), (118, "Draft:"), (0, "Lost ")):
                page = self.other_page(f"{prefix}Page {number}")
                page.ns, page.blocks = ns, [self.paragraph(page, 3)]
                if prefix == "Lost ":  # it has a revision and is in no dump of this month
                    page.revision, page.parent, page.timestamp = 900 + number, 800, "2015-01-01T00:00:00Z"
                    page.text = self.wikitext(page)
                    self.deleted.append(page)
        ids = self.rng.sample([page.id for page in self.pages], len(self.pages))
        for page, id in zip(self.pages, ids, strict=True):
            page.id = id
        self.pages = [page for page in self.pages if page not in self.deleted]

    def other_page(self, title: str) -> WorldPage:
        """Add an empty page that no item knows."""
        self.last_page += self.rng.randint(1, 40)
        self.pages.append(WorldPage(self.last_page, title))
        return self.pages[-1]

    def title_of(self, item: WorldItem) -> str:
        """Return a title without the characters that no title can have."""
        title = "".join(c for c in item.name if c not in "#<>[]|{}_").replace("  ", " ").strip()
        title = title[0].upper() + title[1:]
        title = title if title not in self.titles else f"{title} ({item.description} {item.number})"
        self.titles.add(title)
        return title

    def add_item(self, kind: str, label: str, pronoun: str = "it") -> WorldItem:
        """Add an item, perhaps with odd labels, or none."""
        if self.hostile_names.get(kind):
            label = self.hostile_names[kind].pop()
        item = super().add_item(kind, label, pronoun)
        count = len(self.by_kind[kind])
        if kind in ("book", "club") and count % 6 == 5:
            item.labels = {"mul" if count % 4 == 1 else "en-gb": label}
        elif kind == "position" and count % 10 == 7:
            item.labels = {}
        elif count % 3 == 0 and kind != "class":
            item.labels["de"] = f"{label} (de)"
        if count % 4 == 0:
            item.other_links = {"arwiki": f"{label} (ar)", "enwikiquote": label}
        if kind in ("city", "company"):
            item.other |= {id: snak(id, datatype, value) for id, (datatype, value) in OTHER_VALUES.items()}
        return item

    def add_person(self, number: int) -> WorldItem:
        """Add a person, perhaps a namesake of the one before, or one whose name is in the name of a foundation."""
        person = super().add_person(number)
        if number % 25 == 24:
            person.labels = dict(self.by_kind["person"][-2].labels)
        elif number % 6 == 3 or (self.month and number % 2):  # a scientist, politician or executive
            self.state(person, "P463", self.add_item("organization", f"{person.name} Foundation").id)
        return person

    def add_facts(self, item: WorldItem, start: str | None = None) -> None:
        """Give an item facts; some statements have qualifiers, references, ranks, or no value."""
        super().add_facts(item, start)
        for statement in [statement for statement in item.statements if statement.relation != "P31"]:
            if self.rng.random() < 0.1:
                statement.more = {"references": [SOURCE]}
            if self.rng.random() < 0.35 and len(item.of(statement.relation)) == 1:
                self.make_odd(item, statement, self.rng.randrange(10))

    def make_odd(self, item: WorldItem, first: Statement, form: int) -> None:
        """Give a relation that has one object another form."""
        relation = next(relation for relation in RELATIONS if relation.id == first.relation)
        if form < 6:
            second = self.state(item, relation.id, self.pick(item, relation))
            match form:
                case 1:
                    first.rank, second.end = "preferred", "2005-00-00"
                case 2:
                    first.rank = "preferred"
                case 3:
                    second.rank = "deprecated"
                case 4:  # the same object twice
                    second.object, second.start, first.start = first.object, "2013-00-00", "2009-00-00"
                case 5:
                    second.object, second.rank = None, "preferred"
        elif form == 6:
            first.end = "2005-00-00"
        elif form == 7:
            first.rank = "preferred"
        else:
            first.object, first.more = None, NO_VALUE if form == 8 else {}

    # Sentences

    def filled(self, templates: Sequence[str]) -> str:
        """Return one of some pieces of wikitext, with a number in it."""
        return self.rng.choice(templates).format(n=self.rng.randrange(1000, 9999))

    def cite(self, text: WorldText) -> WorldText:
        """Return a sentence with a reference or a comment."""
        if self.rng.random() < 0.4:
            return super().cite(text)
        return WorldText(text.plain, text.wiki + self.filled(CITATIONS))

    # What happens in a month

    def events(self) -> None:
        """Change facts and pages in all ways that a build has to tell apart."""
        self.page_events, self.fact_events = {}, set()
        self.rename()
        super().events()
        self.change_facts()
        some = max(3, self.world.people // 60)
        calm = [page for page in self.pages if page.ns == 0 and self.wikitext(page) == page.text]
        self.rng.shuffle(calm)
        for name, (fits, edit) in PAGE_EVENTS.items():
            for page in [page for page in calm if fits(page)][:some]:
                edit(self, page)
                self.page_events[page.id] = name
                calm.remove(page)
        drafts, lost = [page for page in self.pages if page.ns == 118][:2], self.deleted[:2]
        for page in drafts:
            page.ns, page.title = 0, page.title.removeprefix("Draft:")
        self.deleted = self.deleted[2:]
        self.pages += lost
        lost[0].tail = "[[Category:Found]]"  # the other one comes back with its old revision
        for page in self.pages:
            if page.ns == 10:
                page.blocks.append(self.paragraph(page, 1))
        self.page_events |= {page.id: "from_draft" for page in drafts} | {page.id: "undelete" for page in lost}

    def change(self, item: WorldItem, relation: Relation, how: str, old: Statement | None = None) -> None:
        """Change a fact; now and then the new one does not get a better rank than the one that has ended."""
        super().change(item, relation, how, old)
        if how == "succeed" and self.rng.random() < 0.3:
            item.statements[-1].rank = "normal"

    def rename(self) -> None:
        """Change labels, so that the month's sentences have the new ones."""
        for kind in ("club", "company", "organization", "position"):
            item = self.rng.choice([item for item in self.by_kind[kind] if "en" in item.labels])
            item.labels["en"] = f"New {item.name}"

    def change_facts(self) -> None:
        """Change statements by their form; delete items; touch an item without changing a fact."""
        for name, (form, change) in FACT_EVENTS.items():
            slots = {(item, one.relation) for item in self.items for one in item.statements if one.relation != "P31"}
            found = [item.of(relation) for item, relation in sorted(slots, key=lambda slot: (slot[0].number, slot[1]))]
            fitting = [slot for slot in found if sorted(_form(one) for one in slot) == form.split()]
            for slot in self.rng.sample(fitting, min(len(fitting), 3)):
                change(slot)
                self.fact_events.add(name)
        objects = {statement.object for item in self.items for statement in item.statements}
        lonely = [item for item in self.by_kind["person"] if item.id not in objects]
        for item in self.rng.sample(lonely, 3):
            for group in (self.items, self.by_kind["person"], self.by_kind[item.kind]):
                group.remove(item)
        self.rng.choice(self.items).description = f"thing of month {self.month}"

    # Edits of pages

    def move(self, page: WorldPage) -> None:
        """Give a page another title; the old title becomes a redirect."""
        old, page.title, page.text = page.title, f"{page.title} (moved {self.month})", ""
        self.other_page(old).redirect = page.title

    def redirect(self, page: WorldPage) -> None:
        """Make an article a redirect."""
        self.by_id[page.item or ""].page = None
        page.blocks, page.redirect = [], "Main Page"

    def rewrite(self, page: WorldPage) -> None:
        """Give a page other text throughout."""
        page.blocks, page.redirect, page.told = [self.paragraph(page, 4), self.paragraph(page, 2)], None, {}

    def add_markup(self, page: WorldPage) -> None:
        """Add markup that readers do not see."""
        for block in page.paragraphs():
            block.sentences = [self.cite(sentence) for sentence in block.sentences]
        page.blocks.insert(0, Block("raw", raw="{{Use dmy dates|date=November 2021}}"))

    def move_sentence(self, page: WorldPage) -> None:
        """Move a sentence to another paragraph."""
        one, other = page.paragraphs()[:2]
        other.sentences.append(one.sentences.pop())

    def split(self, page: WorldPage) -> None:
        """Make two paragraphs of one."""
        block = page.paragraphs()[0]
        page.blocks.insert(page.blocks.index(block) + 1, Block("prose", block.sentences[1:]))
        del block.sentences[1:]

    def swap(self, page: WorldPage) -> None:
        """Exchange paragraphs."""
        one, other = (page.blocks.index(block) for block in page.paragraphs()[1:3])
        page.blocks[one], page.blocks[other] = page.blocks[other], page.blocks[one]

    def save_again(self, page: WorldPage) -> None:
        """Have a new revision with the same text."""
        page.text = ""

    def edit_list(self, page: WorldPage) -> None:
        """Replace an entry of a list."""
        page.blocks[-1].sentences[0] = as_is(f"An entry of month {self.month}")

    def new_paragraph(self, page: WorldPage) -> None:
        """Add a paragraph and a sentence at the very end."""
        page.blocks.insert(1, self.paragraph(page, 3))
        page.paragraphs()[-1].sentences.append(self.filler(page))

    def delete_paragraph(self, page: WorldPage) -> None:
        """Delete a paragraph."""
        page.blocks.remove(page.paragraphs()[1])


def _form(statement: Statement) -> str:
    unknown = "?" if statement.object is None else ""
    return statement.rank + unknown + ("-ended" if statement.end else "")


def _paragraphs(page: WorldPage) -> list[int]:
    return [len(block.sentences) for block in page.paragraphs()]


def _several(page: WorldPage) -> bool:
    return len(_paragraphs(page)) > 2 and _paragraphs(page)[0] > 1 and page.item is not None


# How the statements of a relation must look (by rank), and what happens to them.
FACT_EVENTS: dict[str, tuple[str, Callable[[list[Statement]], None]]] = {
    "make unknown": ("normal", lambda slot: setattr(slot[0], "object", None)),
    "deprecate": ("normal", lambda slot: setattr(slot[0], "rank", "deprecated")),
    "end in the future": ("normal", lambda slot: setattr(slot[0], "end", "2030-01-01")),
    "prefer the only one": ("normal", lambda slot: setattr(slot[0], "rank", "preferred")),
    "add a reference": ("normal", lambda slot: setattr(slot[0], "more", {"references": [SOURCE]})),
    "choose one of two": ("normal normal", lambda slot: setattr(slot[1], "rank", "preferred")),
    "prefer none": ("normal preferred", lambda slot: [setattr(one, "rank", "normal") for one in slot] and None),
    "the former holds again": ("normal-ended preferred", lambda slot: setattr(slot[-1], "rank", "deprecated")),
    "correct an end": ("normal-ended", lambda slot: setattr(slot[0], "end", "2006-00-00")),
}
# Which articles can have an edit, and the edit.
PAGE_EVENTS: dict[str, tuple[Callable[[WorldPage], bool], Callable[[OddStory, WorldPage], None]]] = {
    "edit_list": (lambda page: page.blocks[-1:] != [] and page.blocks[-1].kind == "list", OddStory.edit_list),
    "from_redirect": (lambda page: page.redirect is not None, OddStory.rewrite),
    "move_page": (_several, OddStory.move),
    "to_redirect": (_several, OddStory.redirect),
    "rewrite_all": (_several, OddStory.rewrite),
    "new_paragraph": (_several, OddStory.new_paragraph),
    "delete_paragraph": (_several, OddStory.delete_paragraph),
    "markup": (_several, OddStory.add_markup),
    "move_sentence": (_several, OddStory.move_sentence),
    "split_paragraph": (_several, OddStory.split),
    "swap_paragraphs": (_several, OddStory.swap),
    "null_edit": (_several, OddStory.save_again),
}


def write_odd_world(dumps: Path, world: World, *, hostile: bool = True) -> list[Snapshot]:
    """Write the dumps of all months of an odd world, and return what is true in each."""
    return write_story(dumps, OddStory(world, hostile=hostile))
