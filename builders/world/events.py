"""What happens in a month: facts change, pages are edited. Each event books its own consequences."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import cycle
from random import Random
from typing import Literal

from temporalwiki.builders.world.filler import FIRST_PAGE
from temporalwiki.builders.world.items import Item
from temporalwiki.builders.world.names import Text, as_is
from temporalwiki.builders.world.pages import Block, Editor, Page, Sentence
from temporalwiki.builders.world.relations import BY_ID, PEOPLE, RELATIONS, Relation
from temporalwiki.builders.world.story import Story
from temporalwiki.builders.world.truth import Fact, IntervalTruth, PageDiff

# How news reaches the page. "none", "elsewhere" and "known" leave the fact without new text about it.
_TELLINGS = (
    "rewrite", "append", "first", "none", "paragraph", "last",
    "rewrite", "elsewhere", "insert", "append", "known",
)  # fmt: skip
# Not strftime: its names change with the locale.
_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_GAINS = ("replace", "replace_demoted", "add", "replace", "replace_kept", "new_relation", "replace_demoted")
_LOSSES = ("end", "remove", "deprecate", "make_unknown", "end")
_STILL = ("end_in_future", "flip_rank", "change_qualifier", "change_reference")


class Month:
    """The events between the story's month and the next."""

    def __init__(self, story: Story) -> None:
        world = story.world
        self.story = story
        self.number = story.month + 1
        self.rng = Random(f"month {world.seed} {self.number}")
        self.editor = Editor(self.rng, story.prose, self.number)
        self.prev_page_ids = {page.id for page in story.pages if page.live}
        self.top_page_id = max(self.prev_page_ids)
        if world.filler_pages:
            self.top_page_id = max(self.top_page_id, FIRST_PAGE + world.filler_pages - 1)
        self.prev_revisions = {page.id: page.revision for page in story.pages if page.live}
        self.prev_articles = {
            page.id: (page, [list(block.sentences) for block in page.told()])
            for page in story.pages
            if page.is_article
        }
        self.prev_facts = {Fact(s, r, o) for (s, r), objects in story.best.items() for o in objects}
        self.prev_objects = {key: tuple(sorted(objects)) for key, objects in story.best.items() if objects}
        self.dates = [datetime.date.fromisoformat(d) for d in world.dates[self.number - 1 : self.number + 1]]
        self.days = [datetime.date.fromisoformat(d) for d in world.wikidata_dates[self.number - 1 : self.number + 1]]
        day = self.days[0] if self.days[0].day < 25 else self.days[1]
        self.when = f"{_MONTHS[day.month - 1]} {day.year}"
        self.changed: dict[Fact, Literal["new_subject", "new_relation", "new_object"]] = {}
        self.deleted: dict[Fact, Literal["replaced", "ended", "removed"]] = {}
        self.stated: dict[Fact, Sentence] = {}
        self.renamed: dict[str, str] = {}
        self.fact_events: Counter[str] = Counter()
        self.page_events: Counter[str] = Counter()
        self.busy: set[tuple[str, str]] = set()  # slots with an event this month
        self.load: Counter[str] = Counter()  # events per item
        self.kept_revision: set[int] = set()  # undeleted pages whose old revision came back

    def happen(self) -> IntervalTruth:
        """Run all events of the month and return what they did."""
        self._rename()
        self._gains()
        self._losses()
        self._items()
        self._page_events()
        self._save_revisions()
        self.story.month = self.number
        return self._truth()

    # ---- facts: the slots

    def day(self) -> str:
        """A day within the month, YYYY-MM-DD."""
        span = (self.days[1] - self.days[0]).days
        return (self.days[0] + datetime.timedelta(days=self.rng.randint(1, max(1, span - 1)))).isoformat()

    def slots(self, relation: Relation, pattern: str) -> list[Item]:
        """Subjects whose slot has this pattern and that were left alone so far, in a random order."""
        found = [
            item
            for kind in relation.subjects
            for item in self.story.by_kind.get(kind, ())
            if item.live
            and self.load[item.id] < 2
            and (item.id, relation.id) not in self.busy
            and self.story.patterns.get((item.id, relation.id), "absent") == pattern
        ]
        self.rng.shuffle(found)
        return found

    def _book(self, item: Item, relation: str, event: str, pattern: str) -> None:
        self.busy.add((item.id, relation))
        self.load[item.id] += 1
        self.fact_events[event] += 1
        self.story.patterns[item.id, relation] = pattern
        item.touched = True

    def _gone(self, item: Item, relation: str, object: str, kind: Literal["replaced", "ended", "removed"]) -> None:
        """A fact leaves the recent facts."""
        del self.story.best[item.id, relation][object]
        self.deleted[Fact(item.id, relation, object)] = kind

    def _came(self, item: Item, relation: str, object: str, kind: Literal["new_relation", "new_object"]) -> None:
        """A fact that a statement already makes joins the recent facts."""
        self.story.best.setdefault((item.id, relation), {}).setdefault(object, None)
        self.changed[Fact(item.id, relation, object)] = kind

    # ---- facts: gains

    def _gains(self) -> None:
        kinds, tellings = cycle(_GAINS), cycle(_TELLINGS)
        for relation in RELATIONS:
            queues = {pattern: self.slots(relation, pattern) for pattern in ("single", "absent")}
            named = [item for item in queues["single"] if self._mention(item, relation) is not None]
            total = len(queues["single"])
            heavy = 4 if relation.id in ("P54", "P166") else 1  # so that a relation meets its cap
            least = max(self.story.world.changes_per_relation, total // 12)
            for _ in range(min(least, max(2, total // 2)) * heavy):
                kind, telling = next(kinds), next(tellings)
                if kind == "new_relation" and not queues["absent"]:
                    kind = "add"
                if relation.id == "P20":  # one dies once
                    kind = "new_relation"
                queue = queues["absent" if kind == "new_relation" else "single"]
                if telling == "known" and kind != "new_relation" and named:
                    queue = named
                while queue:
                    item = queue.pop()
                    if (item.id, relation.id) not in self.busy:
                        self._gain(item, relation, kind, telling)
                        break
        for id, namesake in self.story.eponym_of.items():  # filter 1 has to drop these
            item, relation = self.story.by_id[id], BY_ID["P463"]
            namesakes = self.prev_objects.get((id, "P463"), ())
            if namesake.id not in namesakes and self.rng.random() < 0.8 and item in self.slots(relation, "single"):
                self._gain(item, relation, "replace", "append", namesake.id)

    def _mention(self, item: Item, relation: Relation) -> str | None:
        """An object that the article names already, though no fact did."""
        object, sentence = self.story.mentioned.get((item.id, relation.id), ("", None))
        before = self.prev_objects.get((item.id, relation.id), ())
        return object if sentence is not None and sentence.died is None and object not in before else None

    def _gain(self, item: Item, relation: Relation, kind: str, telling: str, object: str | None = None) -> None:
        story, id = self.story, relation.id
        before = self.prev_objects.get((item.id, id), ())
        if telling == "known":
            object = self._mention(item, relation)
            telling = "known" if object is not None else "none"
        if object is None:
            object = story.pick(item, relation, *before)
            # Most go to one country and to three clubs: the cap on objects.
            favoured = {"country": story.by_kind["country"][1:2], "club": story.by_kind["club"][:3]}
            if relation.object in favoured and self.rng.random() < 0.95:
                object = next(
                    (o.id for o in favoured[relation.object] if o.id not in before and o is not item), object
                )
        old = item.of(id)[0] if before else None
        new = story.state(item, id, object, start=self.day())
        self._came(item, id, object, "new_object" if before else "new_relation")
        pattern = "single"
        if old is not None and old.object is not None:
            if kind == "replace":
                item.statements.remove(old)
                self._gone(item, id, old.object, "replaced")
            elif kind == "replace_demoted":
                old.end, new.rank, pattern = new.start, "preferred", "former"
                self._gone(item, id, old.object, "replaced")
            elif kind == "replace_kept":
                old.end, pattern = new.start, "mixed"
                story.best[item.id, id][old.object] = old.end
                self.deleted[Fact(item.id, id, old.object)] = "replaced"
            else:
                pattern = "list"
        self._book(item, id, kind, pattern)
        self._tell(item, relation, object, telling, before)

    def _tell(self, item: Item, relation: Relation, object: str, telling: str, before: tuple[str, ...]) -> None:
        page, editor = self.story.page_of.get(item.id), self.editor
        if page is None or not page.is_article or telling == "none":
            self.fact_events["untold"] += 1
            return
        if telling in ("elsewhere", "known"):
            editor.add(page, editor.filler(page), "end")
            page.edits.append("append_sentence")
            self.fact_events["told_" + telling] += 1
            return
        if self.story.by_id[object].label is None:
            return
        text = self.story.sentence(item, relation, object, self.when)
        if (sentence := editor.new(page, editor.cite(text) if self.rng.random() < 0.5 else text)) is None:
            return
        old = next((page.stated[relation.id, o][0] for o in before if (relation.id, o) in page.stated), None)
        if telling == "rewrite" and old is not None:
            editor.replace(page, old, sentence)
            event = "rewrite_sentence"
        elif telling == "paragraph":
            block = Block("prose", [editor.filler(page) for _ in range(self.rng.randint(1, 3))])
            block.sentences.insert(self.rng.randint(0, len(block.sentences)), sentence)
            editor.insert_paragraph(page, block)
            event = "new_paragraph"
        elif telling in ("first", "last", "insert"):
            editor.add(page, sentence, telling)
            event = f"edit_{telling}" if telling != "insert" else "insert_sentence"
        else:
            editor.add(page, sentence, "end")
            event = "append_sentence"
        page.stated[relation.id, object] = (sentence, self.story.by_id[object].name)
        self.stated[Fact(item.id, relation.id, object)] = sentence
        page.edits.append(event)
        self.story.refresh_infobox(page)

    # ---- facts: losses, and changes that change nothing

    def _losses(self) -> None:
        losses, stills = cycle(_LOSSES), cycle(_STILL)
        for relation in RELATIONS:
            for item in self.slots(relation, "single")[:2]:
                self._lose(item, relation, next(losses))
            for item in self.slots(relation, "single")[:1]:
                self._still(item, relation, next(stills))
            for item in self.slots(relation, "list")[:1]:
                self._choose_one(item, relation)
            former = [i for i in self.slots(relation, "former") if self.rng.random() < 0.3]
            if former:
                self._resurface(former[0], relation)
            rival = [i for i in self.slots(relation, "rival") if self.rng.random() < 0.5]
            if rival:
                self._level(rival[0], relation)
            ended = [i for i in self.slots(relation, "ended") if self.rng.random() < 0.5]
            if ended:
                self._correct_end(ended[0], relation)

    def _lose(self, item: Item, relation: Relation, how: str) -> None:
        statement = item.of(relation.id)[0]
        object = statement.object
        assert object is not None
        if how == "end":
            statement.end = self.day()
            self.story.best[item.id, relation.id][object] = statement.end
            self.deleted[Fact(item.id, relation.id, object)] = "ended"
        else:
            self._gone(item, relation.id, object, "removed")
            if how == "remove":
                item.statements.remove(statement)
            elif how == "deprecate":
                statement.rank = "deprecated"
            else:
                statement.object, statement.unknown = None, self.rng.choice(("somevalue", "novalue"))
        self._book(item, relation.id, how, {"end": "ended", "remove": "absent"}.get(how, "spoilt"))
        page = self.story.page_of.get(item.id)
        known = page.stated.get((relation.id, object)) if page is not None and page.is_article else None
        if page is not None and known is not None and self.rng.random() < 0.6:
            self.editor.remove(page, known[0])
            page.edits.append("delete_sentence")

    def _still(self, item: Item, relation: Relation, how: str) -> None:
        statement = item.of(relation.id)[0]
        other = self.rng.choice(self.story.by_kind["field"]).id
        pattern = "still"
        if how == "end_in_future":
            statement.end = (self.days[1] + datetime.timedelta(days=900)).isoformat()
            self.story.best[item.id, relation.id][str(statement.object)] = statement.end
        elif how == "flip_rank":
            statement.rank = "preferred"
        elif how == "change_qualifier":
            statement.qualifiers, pattern = [("P642", other), ("P1365", other)], "single"
        else:
            statement.reference, pattern = other, "single"
        self._book(item, relation.id, how, pattern)

    def _choose_one(self, item: Item, relation: Relation) -> None:
        """One of several normal statements becomes preferred: the others are facts no more."""
        first, *rest = (s for s in item.of(relation.id) if s.rank == "normal")
        first.rank = "preferred"
        for other in rest:
            self._gone(item, relation.id, str(other.object), "removed")
        self._book(item, relation.id, "choose_one", "rival")

    def _resurface(self, item: Item, relation: Relation) -> None:
        """The preferred statement goes: a former one, with its end time, is a best-rank fact again."""
        top = next(s for s in item.of(relation.id) if s.rank == "preferred")
        item.statements.remove(top)
        self._gone(item, relation.id, str(top.object), "removed")
        for statement in item.of(relation.id):
            self._came(item, relation.id, str(statement.object), "new_object")
            self.story.best[item.id, relation.id][str(statement.object)] = statement.end
        self._book(item, relation.id, "former_resurfaces", "ended")

    def _level(self, item: Item, relation: Relation) -> None:
        """The preferred statement becomes normal like its rival: both are facts now."""
        for statement in item.of(relation.id):
            if statement.rank == "preferred":
                statement.rank = "normal"
            else:
                self._came(item, relation.id, str(statement.object), "new_object")
        self._book(item, relation.id, "level_ranks", "list")

    def _correct_end(self, item: Item, relation: Relation) -> None:
        """Another end time for a fact that had ended before: it is unchanged."""
        statement = item.of(relation.id)[0]
        statement.end = f"{self.rng.randrange(2015, 2019)}-05-00"
        self.story.best[item.id, relation.id][str(statement.object)] = statement.end
        self._book(item, relation.id, "correct_end", "still")

    # ---- items

    def _some(self, share: float, least: int, total: int) -> int:
        return max(least, round(share * total))

    def _rename(self) -> None:
        """Labels change first, so that the month's sentences use the new ones."""
        for kind in ("club", "company", "organization", "position"):
            named = [item for item in self.story.by_kind[kind] if item.live and item.label is not None]
            for item in self.rng.sample(named, self._some(0.05, 1, len(named))):
                self.renamed[item.id] = item.name
                item.label = f"New {item.name}" if kind != "position" else f"Deputy {item.name}"
                item.touched = True
                self.fact_events["rename"] += 1

    def _items(self) -> None:
        story, rng = self.story, self.rng
        for number in range(self._some(0.02, 8, story.world.people)):
            self._new_person(PEOPLE[number % len(PEOPLE)])
        objects = {object for slot in story.best.values() for object in slot}
        lonely = [p for p in story.by_kind["person"] if p.live and p.id not in objects and not self.load[p.id]]
        for item in rng.sample(lonely, min(len(lonely), self._some(0.01, 3, story.world.people))):
            self._delete_item(item)
        calm = [item for item in story.items if item.live and not item.touched]
        for item in rng.sample(calm, self._some(0.02, 5, len(calm))):
            item.aliases, item.touched = [f"{item.name} {self.number}"], True
            self.fact_events["touch_item"] += 1

    def _new_person(self, kind: str) -> None:
        story = self.story
        item = story.add_person(kind)
        story.establish(item)
        if self.rng.random() < 0.85:
            page = story.add_page(item, self.editor)
            page.edits.append("new_page")
            for (relation, object), (sentence, _) in page.stated.items():
                self.stated[Fact(item.id, relation, object)] = sentence
        for fact in self._facts(item):
            self.changed[fact] = "new_subject"
        self.load[item.id] += 9
        self.fact_events["new_subject"] += 1

    def _facts(self, item: Item) -> list[Fact]:
        slots = ((id, self.story.best.get((item.id, id), {})) for id in ("P31", *BY_ID))
        return [Fact(item.id, relation, object) for relation, slot in slots for object in slot]

    def _delete_item(self, item: Item) -> None:
        """The item goes (deleted, or merged into another), with all its facts; its article stays."""
        item.live = False
        self.load[item.id] += 9
        for fact in self._facts(item):
            self._gone(item, fact.relation, fact.object, "removed")
        self.fact_events["delete_item"] += 1

    # ---- pages

    def _page_events(self) -> None:
        rng, story = self.rng, self.story
        calm = [page for page in story.pages if page.is_article and not page.edits]
        rng.shuffle(calm)
        total = len(calm)
        for name, event in self._edits().items():
            wanted, refused = self._some(0.006, 3, total), []
            while calm and wanted:
                page = calm.pop()
                if event(page):
                    page.edits.append(name)
                    wanted -= 1
                else:
                    refused.append(page)
            calm = refused[::-1] + calm
        for name, pages, act in self._arrivals():
            for page in pages:
                act(page)
                page.edits.append(name)
        for page in story.pages:
            if page.live and page.ns not in (0, 118) and rng.random() < 0.3:
                self.editor.add(page, self.editor.filler(page), "end")
                page.edits.append("other_namespace")

    def _edits(self) -> dict[str, Callable[[Page], bool]]:
        """Edits of articles that no fact asks for. Each returns whether the page could take it."""
        return {
            "rewrite_sentence": self._rewrite_one,
            "append_sentence": lambda page: self._add(page, "end"),
            "insert_sentence": lambda page: self._add(page, "any"),
            "edit_first": lambda page: self._add(page, "first"),
            "edit_last": lambda page: self._add(page, "last"),
            "new_paragraph": self._new_paragraph,
            "delete_sentence": self._delete_sentence,
            "delete_paragraph": self._delete_paragraph,
            "move_sentence": self._move_sentence,
            "swap_paragraphs": self._swap,
            "split_paragraph": self._split,
            "rewrite_and_move": lambda page: self._rewrite_one(page) and self._move_sentence(page),
            "rewrite_all": self._rewrite_all,
            "edit_list": self._edit_list,
            "restore_sentence": self._restore_sentence,
            "markup": self._markup,
            "infobox": self._infobox,
            "whitespace": self._whitespace,
            "revert": lambda page: True,
            "null_edit": lambda page: True,
            "move_page": self._move_page,
            "delete_page": self._delete_page,
            "to_redirect": self._to_redirect,
        }

    def _add(self, page: Page, where: str) -> bool:
        self.editor.add(page, self.editor.filler(page), where)
        return True

    def _new_paragraph(self, page: Page) -> bool:
        self.editor.insert_paragraph(page, self.editor.paragraph(page, self.rng.randint(2, 5)))
        return True

    def _rewrite_one(self, page: Page) -> bool:
        if (old := self.editor.spare(page)) is None:
            return False
        self.editor.replace(page, old, self.editor.filler(page))
        return True

    def _delete_sentence(self, page: Page) -> bool:
        if (sentence := self.editor.spare(page)) is None:
            return False
        self.editor.remove(page, sentence)
        return True

    def _delete_paragraph(self, page: Page) -> bool:
        blocks = page.prose()[1:]
        if not blocks:
            return False
        block = self.rng.choice(blocks)
        page.blocks.remove(block)
        self.editor.bury(page, block.sentences)
        return True

    def _move_sentence(self, page: Page) -> bool:
        sentence = self.editor.spare(page)
        if sentence is None or len(page.prose()) < 2:
            return False
        home = page.block_of(sentence)
        home.sentences.remove(sentence)
        self.rng.choice([block for block in page.prose() if block is not home]).sentences.append(sentence)
        return True

    def _swap(self, page: Page) -> bool:
        if len(page.prose()) < 3:
            return False
        one, other = (page.blocks.index(block) for block in self.rng.sample(page.prose()[1:], 2))
        page.blocks[one], page.blocks[other] = page.blocks[other], page.blocks[one]
        return True

    def _split(self, page: Page) -> bool:
        """A paragraph becomes two, with no word changed."""
        long = [block for block in page.prose() if len(block.sentences) > 2]
        if not long:
            return False
        block = self.rng.choice(long)
        page.blocks.insert(page.blocks.index(block) + 1, Block("prose", block.sentences[2:]))
        block.sentences = block.sentences[:2]
        return True

    def _rewrite_all(self, page: Page) -> bool:
        for block in page.told():
            if block.kind == "list":
                page.blocks.remove(block)
            self.editor.bury(page, block.sentences)
            block.sentences = [self.editor.filler(page) for _ in range(self.rng.randint(2, 5))]
        return True

    def _edit_list(self, page: Page) -> bool:
        lists = [block for block in page.blocks if block.kind == "list" and len(block.sentences) > 1]
        if not lists:
            return False
        self.editor.remove(page, lists[0].sentences[0])
        entry = self.editor.new(page, as_is(f"{self.story.names.place_name()} lists of {self.number} kinds"))
        if entry is not None:
            lists[0].sentences.append(entry)
        return True

    def _restore_sentence(self, page: Page) -> bool:
        """What an earlier month took away is back, word for word: new to the month before."""
        lost = [sentence for sentence in page.lost if (sentence.died or 0) < self.number]
        present = {sentence.text.plain for sentence in page.sentences()}
        lost = [sentence for sentence in lost if sentence.text.plain not in present]
        if not lost:
            return False
        self.editor.add(page, Sentence(lost[-1].text, self.number))
        return True

    def _markup(self, page: Page) -> bool:
        """Links go, references, emphasis and templates come: the words stay."""
        for sentence in self.rng.sample(list(page.sentences()), 2):
            if sentence.text.wiki.startswith("'''"):
                continue
            plain = sentence.text.plain
            if not any(c in plain for c in "<>|&'"):
                head, _, rest = plain.partition(" ")
                wiki = self.rng.choice((f"''{head}'' {rest}", f"[[{head}]] {rest}", f"{{{{nowrap|{head}}}}} {rest}"))
                sentence.text = Text(plain, wiki if rest and "{{!}}" not in wiki else plain)
            sentence.text = self.editor.cite(sentence.text)
        page.blocks.insert(0, Block("raw", raw="{{Use dmy dates|date=November 2021}}"))
        return True

    def _infobox(self, page: Page) -> bool:
        page.infobox["image"] = f"Portrait {self.rng.randrange(10**6)}.jpg"
        page.tail += "\n[[Category:Pages with a portrait]]"
        return True

    def _whitespace(self, page: Page) -> bool:
        for block, glue in zip(page.prose(), cycle(("  ", " \n", " ")), strict=False):
            block.glue = glue
        page.tail = "\n\n" + page.tail
        return True

    def _unlink(self, page: Page) -> Item | None:
        item = self.story.by_id[page.item] if page.item is not None else None
        if item is not None:
            item.sitelink, item.touched = None, True
        return item

    def _move_page(self, page: Page) -> bool:
        """Another title, the same page; the old title becomes a redirect with a new page id."""
        old, page.title = page.title, f"{page.title} (moved {self.number})"
        if (item := self._unlink(page)) is not None:
            item.sitelink = page.title
        left = Page(self.story.next_page_id(), old, redirect=page.title)
        left.edits.append("left_behind")
        self.story.pages.append(left)
        return True

    def _delete_page(self, page: Page) -> bool:
        self._unlink(page)
        self.editor.bury(page, list(page.sentences()))
        page.live = False
        return True

    def _to_redirect(self, page: Page) -> bool:
        self._unlink(page)
        self.editor.bury(page, list(page.sentences()))
        page.blocks, page.redirect = [], "Main Page"
        return True

    def _arrivals(self) -> Iterator[tuple[str, list[Page], Callable[[Page], None]]]:
        """Pages that are articles now and were none before."""
        pages, rng = self.story.pages, self.rng
        count = self._some(0.006, 3, len(pages))

        def renew(page: Page) -> None:
            page.infobox_name = page.infobox_name or "essay"
            page.redirect, page.live, page.ns = None, True, 0
            page.title = page.title.removeprefix("Draft:")
            for sentence in page.sentences():  # for the articles they are new, however old the page is
                sentence.born = self.number
            if not page.blocks:
                self.story.write_plain(page, self.editor)
            self._relink(page)

        redirects = [p for p in pages if p.redirect is not None and p.id in self.prev_page_ids and not p.edits]
        yield "from_redirect", rng.sample(redirects, min(count, len(redirects))), renew
        sleeping = [p for p in pages if not p.live and p.id not in self.prev_page_ids and p.item is None]
        back = [page for page in sleeping if not page.edits][:count]
        for page in back[::2]:  # an undeletion by itself brings back the old revision, and makes none
            self.kept_revision.add(page.id)
        yield "undelete", back, renew
        drafts = [p for p in pages if p.ns == 118 and p.live]
        yield "from_draft", drafts[:count], renew
        lost = [p for p in pages if p.ns == 0 and p.redirect is None and not p.live and p.edits == [] and p.item]
        yield "undelete", lost[:1], self._restore
        made = [self.story.plain_page(self.editor, self.story.names.unique("work") + " (essay)") for _ in range(count)]
        yield "new_page", made, lambda page: None

    def _restore(self, page: Page) -> None:
        """An article that an earlier month deleted is back; its text is new to the month before."""
        page.live = True
        for block in page.told():
            block.sentences = [Sentence(sentence.text, self.number) for sentence in block.sentences]
        self._relink(page)

    def _relink(self, page: Page) -> None:
        item = self.story.by_id[page.item] if page.item is not None else None
        if item is not None and item.live:
            item.sitelink, item.touched = page.title, True

    # ---- the end of the month

    def _save_revisions(self) -> None:
        story, rng = self.story, self.rng
        edited = [page for page in story.pages if page.edits]
        rng.shuffle(edited)
        seconds = max(1, (self.dates[1] - self.dates[0]).days * 86400 - 1)
        stamps = sorted(rng.randrange(seconds) for _ in edited)
        midnight = datetime.datetime.combine(self.dates[0], datetime.time())
        for page, stamp in zip(edited, stamps, strict=True):
            self.page_events.update(page.edits)
            moment = f"{midnight + datetime.timedelta(seconds=stamp):%Y-%m-%dT%H:%M:%SZ}"
            same_text = page.edits[0] in ("revert", "null_edit")
            if page.id in self.kept_revision:
                page.parent = page.parent or page.revision - 1
                page.text = page.render()
                continue
            first = page.revision == 0
            parent: int | None = None if first else page.revision
            if page.edits[0] == "revert":  # the revision in between is in no dump
                story.last_revision += 5
                parent = story.last_revision
            story.save(page, moment, parent, render=not same_text)
        for item in story.items:
            if item.touched:
                story.last_revision += rng.randint(1, 300)
                item.revision, item.touched = story.last_revision, False
                item.modified = f"{self.day()}T{rng.randrange(24):02}:{rng.randrange(60):02}:{rng.randrange(60):02}Z"

    def _truth(self) -> IntervalTruth:
        world = self.story.world
        diffs: dict[int, PageDiff] = {}
        same: dict[int, str] = {}
        for page in sorted(self.story.pages, key=lambda page: page.id):
            was = self.prev_articles.get(page.id)
            if page.is_article:
                if was is not None and not page.edits:
                    same[page.id] = "same revision"
                    continue
                paragraphs = self._marked([block.sentences for block in page.told()], "born")
                deleted = self._marked(was[1], "died") if was is not None else []
                if not paragraphs and not deleted:
                    same[page.id] = "+".join(page.edits)
                    continue
                kind: Literal["new", "updated"] = "new" if page.id > self.top_page_id else "updated"
                revision: int | None = page.revision
                diff = PageDiff(
                    page.id, page.title, kind, revision, self.prev_revisions.get(page.id),
                    paragraphs, deleted, tuple(page.edits),
                )  # fmt: skip
                diffs[page.id] = diff
            elif was is not None:
                deleted = [[sentence.text.plain for sentence in block] for block in was[1]]
                diffs[page.id] = PageDiff(
                    page.id,
                    page.title,
                    "deleted",
                    None,
                    self.prev_revisions[page.id],
                    [],
                    deleted,
                    tuple(page.edits),
                )
        stated = {
            fact: sentence.text.plain
            for fact, sentence in self.stated.items()
            if sentence.died is None and self.story.page_of[fact.subject].is_article
        }
        for page in self.story.pages:
            page.edits = []
        return IntervalTruth(
            prev=world.dates[self.number - 1],
            recent=world.dates[self.number],
            pages=diffs,
            same=same,
            changed=self.changed,
            previous_objects={fact: self.prev_objects.get(fact[:2], ()) for fact in self.changed},
            unchanged=frozenset(self.prev_facts - self.deleted.keys()),
            deleted=self.deleted,
            stated=stated,
            renamed=self.renamed,
            fact_events=dict(sorted(self.fact_events.items())),
            page_events=dict(sorted(self.page_events.items())),
        )

    def _marked(self, blocks: list[list[Sentence]], mark: Literal["born", "died"]) -> list[list[str]]:
        """Per paragraph the sentences that came (went) this month; paragraphs without one are left out."""
        found = (
            [sentence.text.plain for sentence in block if getattr(sentence, mark) == self.number] for block in blocks
        )
        return [block for block in found if block]


__all__ = ["Month"]
