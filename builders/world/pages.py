"""Pages made of sentences that remember when they came and went: no diff is needed to know the changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Literal

from temporalwiki.builders.world.names import Prose, Text


@dataclass(eq=False)
class Sentence:
    """A sentence on a page; ``born`` and ``died``: the months (snapshot numbers) of its coming and going."""

    text: Text
    born: int
    died: int | None = None


@dataclass(eq=False)
class Block:
    """A paragraph, a bulleted list, or something that is not prose (``raw``: headings, tables, files)."""

    kind: Literal["prose", "list", "raw"]
    sentences: list[Sentence] = field(default_factory=list)
    raw: str = ""
    glue: str = " "

    def wikitext(self) -> str:
        """The block as it stands in the page."""
        if self.kind == "raw":
            return self.raw
        if self.kind == "list":
            return "\n".join(f"* {sentence.text.wiki}" for sentence in self.sentences)
        return self.glue.join(sentence.text.wiki for sentence in self.sentences)


@dataclass(eq=False)
class Page:
    """A page and its newest revision. ``text`` is fixed when a revision is saved."""

    id: int
    title: str
    item: str | None = None
    ns: int = 0
    blocks: list[Block] = field(default_factory=list)
    infobox: dict[str, str] = field(default_factory=dict)
    infobox_name: str = ""
    tail: str = ""
    redirect: str | None = None
    live: bool = True
    text: str = ""
    revision: int = 0
    parent: int | None = None
    timestamp: str = ""
    comment: str | None = None
    minor: bool = False
    user: str | None = None  # a name, "127.0.0.1" for an address, None for a hidden one
    stated: dict[tuple[str, str], tuple[Sentence, str]] = field(
        default_factory=dict
    )  # (relation, object) -> with label
    used: set[str] = field(default_factory=set)  # every sentence the page ever had
    lost: list[Sentence] = field(default_factory=list)  # what went, in order
    edits: list[str] = field(default_factory=list)  # events of the running month

    @property
    def is_article(self) -> bool:
        """Whether the page counts as an article."""
        return self.live and self.ns == 0 and self.redirect is None

    def told(self) -> list[Block]:
        """Paragraphs and lists, in order."""
        return [block for block in self.blocks if block.kind != "raw"]

    def prose(self) -> list[Block]:
        """Paragraphs, in order."""
        return [block for block in self.blocks if block.kind == "prose"]

    def sentences(self) -> Iterator[Sentence]:
        """Sentences of paragraphs and lists, in order."""
        for block in self.told():
            yield from block.sentences

    def block_of(self, sentence: Sentence) -> Block:
        """The block that holds a sentence."""
        return next(block for block in self.told() if sentence in block.sentences)

    def render(self) -> str:
        """The wikitext."""
        if self.redirect is not None:
            return f"#REDIRECT [[{self.redirect}]]\n\n{{{{Redirect category shell|\n{{{{R from move}}}}\n}}}}"
        box = "".join(f"| {name:<12} = {value}\n" for name, value in self.infobox.items())
        parts = [f"{{{{Short description|{self.infobox_name} of a generated world}}}}\n"]
        if box:
            parts.append(f"{{{{Infobox {self.infobox_name}\n{box}}}}}\n")
        for block in self.blocks:
            parts.append(block.wikitext())
            parts.append("\n" if block.raw.startswith("==") else "\n\n")
        return "".join(parts) + self.tail


class Editor:
    """The edits of one month. Every edit keeps the books: who came, who went."""

    def __init__(self, rng: Random, prose: Prose, month: int) -> None:
        self.rng = rng
        self.month = month
        self._prose = prose

    def new(self, page: Page, text: Text) -> Sentence | None:
        """A sentence of this month, or None if the page ever had it (it would be no change)."""
        if text.plain in page.used:
            return None
        page.used.add(text.plain)
        return Sentence(text, self.month)

    def filler(self, page: Page) -> Sentence:
        """A sentence that the page never had and that states no fact."""
        while True:
            if (sentence := self.new(page, self._prose.sentence())) is not None:
                return sentence

    def cite(self, text: Text) -> Text:
        """The same sentence with a reference, now and then with a comment."""
        number = self.rng.randrange(1, 10**6)
        form = self.rng.choice(
            (
                "<ref>{{{{cite web |url=https://news.example/{n}?a=1&b=2 |title=Item {n}. Part two}}}}</ref>",
                "<ref name=\"r{n}\">\"Who was it?\", ''Gazette'', p. {n}. [https://x.example/{n} Web].</ref>",
                "<ref name=r{n} />",
                "<!-- checked, see talk page {n}. -->",
                "{{{{citation needed|date=November 2021}}}}",
            )
        )
        return Text(text.plain, text.wiki + form.format(n=number))

    def paragraph(self, page: Page, size: int) -> Block:
        """A paragraph of ``size`` sentences of filler."""
        return Block("prose", [self.filler(page) for _ in range(size)])

    def add(self, page: Page, sentence: Sentence, where: str = "any") -> None:
        """Put a sentence into the ``first``, the ``last`` or any paragraph, or at the ``end`` of any.

        It never comes before the first sentence, which opens the article.
        """
        blocks = page.prose()
        block = {"first": blocks[0], "last": blocks[-1]}.get(where) or self.rng.choice(blocks)
        place = len(block.sentences) if where == "end" else self.rng.randint(1, len(block.sentences))
        block.sentences.insert(place, sentence)

    def insert_paragraph(self, page: Page, block: Block) -> None:
        """Put a block behind a paragraph that is drawn."""
        anchor = self.rng.choice(page.prose())
        page.blocks.insert(page.blocks.index(anchor) + 1, block)

    def remove(self, page: Page, sentence: Sentence) -> None:
        """Take a sentence away, and its paragraph where it was the only one."""
        block = page.block_of(sentence)
        block.sentences.remove(sentence)
        self.bury(page, [sentence])
        if not block.sentences:
            page.blocks.remove(block)

    def bury(self, page: Page, sentences: list[Sentence]) -> None:
        """Record sentences as gone. The facts that they stated are no longer told by the page."""
        for sentence in sentences:
            sentence.died = self.month
        page.lost += sentences
        for key, (sentence, _) in list(page.stated.items()):
            if sentence.died is not None:
                del page.stated[key]

    def replace(self, page: Page, old: Sentence, new: Sentence) -> None:
        """Put a sentence into the place of another."""
        block = page.block_of(old)
        block.sentences[block.sentences.index(old)] = new
        self.bury(page, [old])

    def spare(self, page: Page) -> Sentence | None:
        """A sentence that may go: not the page's first one, and not the only one of its paragraph."""
        choices = [sentence for block in page.prose() if len(block.sentences) > 1 for sentence in block.sentences[1:]]
        return self.rng.choice(choices) if choices else None

    def list_block(self, page: Page, items: list[Text]) -> Block:
        """A list of items."""
        sentences = [sentence for text in items if (sentence := self.new(page, text)) is not None]
        return Block("list", sentences)

    def heading(self, name: str) -> Block:
        """A heading of a section."""
        return Block("raw", raw=f"== {name} ==")

    def ornament(self, page: Page) -> Block:
        """A table, a file or a quotation template: nothing of it is prose."""
        n = self.rng.randrange(100, 999)
        return Block(
            "raw",
            raw=self.rng.choice(
                (
                    '{| class="wikitable sortable"\n|+ Figures\n! Year !! Total\n|-\n'
                    f'| 20{n % 22:02} || {n}\n|-\n| rowspan="2" | Sum. || {{{{nowrap|{n} 000}}}}\n|}}',
                    f"[[File:Picture {n}.jpg|thumb|A view in {1800 + n % 200}. See [[Map {n}|the map]].]]",
                    f"{{{{Main|Topic {n}}}}}",
                    f"<gallery>\nFile:View {n}.jpg|A caption. It has two sentences.\n</gallery>",
                )
            ),
        )


def lead(label: Text, description: str) -> Text:
    """The opening sentence of an article."""
    article = "an" if description[0] in "aeiou" else "a"
    return Text(
        f"{label.plain} is {article} {description}.",
        f"'''{label.wiki}''' is {article} [[{description}]].",
    )


def link(title: str | None, label: str) -> Text:
    """A link to an article; plain text where the label would break one."""
    wiki = label.replace("<", "&lt;").replace(">", "&gt;")
    if title is None or any(c in label for c in "|[]{}<>"):
        return Text(label, wiki)
    return Text(label, f"[[{label}]]" if title == label else f"[[{title}|{label}]]")
